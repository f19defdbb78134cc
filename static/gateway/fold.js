// Long messages of people are shown folded. gateway/chat/labels.py has the same rule.

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

export function installFolds(root) {
  root.addEventListener("click", (event) => {
    const button = event.target.closest("[data-unfold]");
    if (!button) return;
    const open = button.previousElementSibling.classList.toggle("fold--open");
    button.setAttribute("aria-expanded", String(open));
    button.dataset.other ??= "Show less";
    [button.textContent, button.dataset.other] = [button.dataset.other, button.textContent];
    if (!open) button.previousElementSibling.scrollIntoView({ block: "nearest" });
  });
}
