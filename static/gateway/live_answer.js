// An answer while it is written: its text as it comes, the line for the tool at work, the caret.

import { createProgressive } from "./markdown.js";

// What is said while a tool works and when it is done: the server's table of tools, in the page's template.
const tools = Object.fromEntries([...document.getElementById("tool-words").content.children].map((item) => [item.dataset.tool, item.dataset]));

function wordsOf({ name, arguments: given }) {
  const tool = tools[name];
  if (!tool) return [`Using ${name}…`, `Used ${name}.`];
  const detail = tool.detail && argumentsOf(given)[tool.detail];
  if (!detail) return [tool.doing, tool.done];
  return [tool.doingDetail, tool.doneDetail].map((words) => words.replace("{}", () => detail));
}

function argumentsOf(given) {
  if (typeof given !== "string") return given ?? {};
  try {
    return JSON.parse(given) ?? {};
  } catch {
    return {};
  }
}

export class LiveAnswer {
  constructor(section, { onDrawn }) {
    this.prose = section.querySelector("[data-prose]");
    this.working = section.querySelector("[data-working]");
    this.onDrawn = onDrawn;
    this.text = "";
    this.frame = 0;
    this.prose.replaceChildren();
    this.progressive = createProgressive(this.prose);
    this.caret = document.createElement("span");
    this.caret.className = "caret";
    this.caret.setAttribute("aria-hidden", "true");
    this.draw();
  }

  show(event) {
    if (event.type === "delta") {
      this.text += event.data.text;
      this.say("");
      this.frame ||= requestAnimationFrame(() => this.draw());
    } else if (event.type === "tool") {
      const [doing, done] = wordsOf(event.data);
      this.say(event.data.result === undefined ? doing : done);
    } else if (event.type === "waiting") {
      this.say("Connection lost. Trying again…");
    }
  }

  draw() {
    this.frame = 0;
    const last = this.progressive(this.text);
    const code = last?.querySelector?.("pre code");
    const item = last?.querySelector?.("li:last-child");
    (code ?? item ?? last ?? this.prose).append(this.caret);
    this.onDrawn();
  }

  // The whole text stands there, and nothing more will come.
  end() {
    cancelAnimationFrame(this.frame);
    this.draw();
    this.caret.remove();
    this.prose.closest("[data-answer]")?.removeAttribute("aria-busy");
  }

  say(words) {
    this.working.textContent = words;
    this.working.hidden = !words;
  }
}
