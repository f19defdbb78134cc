// Shows what a running turn does besides writing text: waiting for the model, thinking, using tools. The texts are those
// of the server's rendering afterwards.

import { fromTemplate, some } from "./parts.js";

const LONG_WAIT = 4000; // milliseconds
const LONGER_WAIT = 20000;
const LONGEST = 2000; // characters of arguments and results

export class LiveSteps {
  constructor(section, say) {
    this.say = say;
    this.thought = section.querySelector('[data-fold="thought"]');
    this.uses = section.querySelector('[data-fold="uses"]');
    this.began = 0; // start of the current thinking
    this.spent = 0;
    this.used = new Set();
    this.#wait();
  }

  show({ type, data }) {
    if (type === "reasoning") this.#think(data);
    if (type === "html" || type === "tool") this.#thoughtOver();
    if (type === "tool" && data.result !== undefined) this.#use(data);
    if (type === "reasoning" || type === "html") this.#quiet();
    else if (type !== "waiting") this.#wait();
  }

  end() {
    this.#quiet();
    this.#thoughtOver();
  }

  // Says twice that nothing has arrived for a while.
  #wait() {
    this.#quiet();
    this.timers = [
      setTimeout(() => this.say("Waiting for the model…"), LONG_WAIT),
      setTimeout(() => this.say("Still waiting: the model server has not answered yet."), LONGER_WAIT),
    ];
  }

  #quiet() {
    this.timers?.forEach(clearTimeout);
  }

  #think({ at, text }) {
    this.say("");
    this.began ||= performance.now();
    this.thought.hidden = false;
    this.#words(this.thought, "Thinking…");
    const area = this.thought.querySelector("[data-thought]");
    area.textContent = area.textContent.slice(0, at) + text;
  }

  #thoughtOver() {
    if (!this.began) return;
    this.spent += performance.now() - this.began;
    this.began = 0;
    const seconds = Math.max(1, Math.round(this.spent / 1000));
    this.#words(this.thought, `Thought for ${seconds < 60 ? "" : `${Math.floor(seconds / 60)} min `}${seconds % 60} s`);
  }

  #use(data) {
    const known = JSON.stringify(data); // repeated after a lost connection
    if (this.used.has(known)) return;
    this.used.add(known);
    const item = fromTemplate("live-use");
    item.querySelector("[data-name]").textContent = data.name;
    item.querySelector("[data-arguments]").textContent = String(data.arguments).slice(0, LONGEST);
    item.querySelector("[data-result]").textContent = String(data.result).slice(0, LONGEST);
    this.uses.querySelector("[data-uses]").append(item);
    this.uses.hidden = false;
    this.#words(this.uses, `Used ${some(this.used.size, "tool")}`);
  }

  #words(fold, words) {
    fold.querySelector("[data-words]").textContent = words;
  }
}
