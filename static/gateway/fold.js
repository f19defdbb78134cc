// What is shown folded: details of answers, and long messages of people. gateway/chat/labels.py has the same rule for
// messages.

import { fromTemplate } from "./parts.js";

const LINES = 30;
const CHARACTERS = 3000;

function foldedSize(text) {
  const lines = text.split("\n").length;
  const characters = [...text].length;
  if (lines <= LINES && characters <= CHARACTERS) return "";
  const size = new TextEncoder().encode(text).length;
  return size >= 1000 ? `${Math.round(size / 1000)} kB` : `${lines} lines`;
}

// Folds a message that was just sent, if it is long.
export function fold(said, text) {
  const size = foldedSize(text);
  if (!size) return;
  const button = fromTemplate("unfold");
  button.textContent = `Show all (${size})`;
  said.classList.add("fold");
  said.after(button);
}

function toggle(button) {
  const open = button.previousElementSibling.classList.toggle("fold--open");
  button.setAttribute("aria-expanded", String(open));
  button.dataset.other ??= "Show less";
  [button.textContent, button.dataset.other] = [button.dataset.other, button.textContent];
  return open;
}

export function installFolds(root) {
  root.addEventListener("click", (event) => {
    const button = event.target.closest("[data-unfold]");
    if (button && !toggle(button)) button.previousElementSibling.scrollIntoView({ block: "nearest" });
  });
}

// Keeps open what a person has opened in turns when another rendering replaces them.
export function keepOpen(shown, rendered) {
  const inOther = (node, selector) => {
    const { turn } = node.closest(".turn").dataset; // those of imported sessions are empty
    return turn ? rendered.querySelector(`[data-turn="${CSS.escape(turn)}"] ${selector}`) : null;
  };
  for (const details of shown.querySelectorAll("details[data-fold][open]")) {
    inOther(details, `details[data-fold="${details.dataset.fold}"]`)?.setAttribute("open", "");
  }
  for (const button of shown.querySelectorAll("[data-unfold][aria-expanded=true]")) {
    const other = inOther(button, "[data-unfold]");
    if (other) toggle(other);
  }
}
