// Shows an answer while it is streamed: the blocks that the server renders and sanitises, the line for a running tool, and
// the caret. The nodes of a finished block are kept.

import { boxesOf, selectionOf } from "./kept_selection.js";
import { element, parsed } from "./parts.js";

// Texts for running and finished tools, from the server's table of tools in the page's template.
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
    this.blocks = []; // {html, nodes} of each block, in order
    this.count = 0;
    this.from = 0; // the first block to render again
    this.frame = 0;
    this.prose.replaceChildren();
    this.caret = element("span", { className: "caret", ariaHidden: "true" });
    this.draw();
  }

  show(event) {
    if (event.type === "html") {
      for (const { block, keep, html } of event.data.blocks) {
        const shown = (this.blocks[block] ??= { html: "", nodes: [] });
        shown.html = shown.html.slice(0, keep) + html;
        shown.changed = true;
        this.from = Math.min(this.from, block);
      }
      this.count = event.data.count;
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
    const select = selectionOf(this.prose);
    const scroll = boxesOf(this.prose);
    this.caret.remove();
    for (const { nodes } of this.blocks.splice(this.count)) for (const node of nodes) node.remove();
    let after = null;
    for (const block of this.blocks.slice(this.from).reverse()) {
      if (block.changed) {
        for (const node of block.nodes) node.remove();
        block.nodes = [...parsed(block.html).children];
        block.changed = false;
        for (const node of block.nodes) this.prose.insertBefore(node, after);
      }
      after = block.nodes[0] ?? after;
    }
    this.from = this.blocks.length;
    select(this.prose);
    scroll(this.prose);
    this.#place().append(this.caret);
    this.onDrawn();
  }

  // Moves the caret to where the next word will appear.
  #place() {
    let place = this.prose;
    for (let last = place.lastElementChild; last; last = last.matches(".code") ? last.querySelector("pre code") : last.lastElementChild) {
      if (!last.matches("p, h3, h4, h5, h6, ul, ol, li, blockquote, .code, pre, code")) break;
      place = last;
      if (last.matches("code")) break;
    }
    return place;
  }

  // The text is complete.
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
