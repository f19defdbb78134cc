// An answer while it is written: its text as it comes, the line for the tool at work, the caret.

import { createProgressive } from "./markdown.js";

// While it works, and when it is done and the model goes on.
const TOOL_WORDS = {
  add_memory: () => ["Writing a memory…", "Wrote a memory."],
  update_memory: () => ["Correcting a memory…", "Corrected a memory."],
  delete_memory: () => ["Deleting a memory…", "Deleted a memory."],
  search_memories: ({ query }) => (query ? [`Looking in your memories for “${query}”…`, `Looked in your memories for “${query}”.`] : ["Looking in your memories…", "Looked in your memories."]),
  get_memories: () => ["Reading your memories…", "Read your memories."],
  read: ({ path = "a document" }) => [`Reading ${path}…`, `Read ${path}.`],
};

function argumentsOf(event) {
  if (typeof event.arguments !== "string") return event.arguments ?? {};
  try {
    return JSON.parse(event.arguments);
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
      const [doing, done] = TOOL_WORDS[event.data.name]?.(argumentsOf(event.data)) ?? [`Using ${event.data.name}…`, `Used ${event.data.name}.`];
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
