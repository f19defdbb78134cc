// Replacing turns by other renderings of them, or by turns that are to take their place. The latter are removed from the
// page with all turns after them, and restored if the new turn did not start.

import { keepOpen } from "./fold.js";
import { boxesOf, selectionOf } from "./kept_selection.js";

// Returns a turn and the turns after it.
export function from(section) {
  const nodes = [];
  for (let node = section; node; node = node.nextSibling) nodes.push(node);
  return nodes;
}

// Removes a turn that did not start, and restores the turns that it was to replace.
export function takeBack(section) {
  section.replaceWith(...(section.leaving ?? []));
}

// Replaces a turn by another rendering of it, in which the same is open, selected, and scrolled sideways. A message that is
// being edited stays. Returns the section that is shown now.
export function replaceTurn(section, nodes) {
  const rendered = nodes.querySelector(".turn");
  const editor = section.querySelector("[data-message-editor]");
  const prose = section.querySelector("[data-prose]");
  keepOpen(section, nodes);
  // Their words would count, and the new rendering has none yet.
  for (const button of section.querySelectorAll("[data-copy-code]")) button.remove();
  const keepers = [selectionOf(prose), boxesOf(prose)];
  if (editor) replaceBelow(editor, rendered);
  else section.replaceWith(rendered);
  const shown = editor ? section : rendered;
  for (const keep of keepers) keep(shown.querySelector("[data-prose]"));
  return shown;
}

// Updates the content below a message that is being edited from a new rendering of its turn.
function replaceBelow(editor, rendered) {
  const message = editor.closest(".entry--you");
  rendered.querySelector(".entry--you").remove();
  while (message.nextSibling) message.nextSibling.remove();
  message.after(...rendered.childNodes);
}

// Replaces a section and those after it by other turns. Their day heading is shown once, by the page or by them.
export function replaceFrom(section, nodes) {
  const ledger = section.parentElement;
  sameDay(section, nodes);
  for (const node of from(section)) node.remove();
  ledger.append(nodes);
}

function sameDay(section, nodes) {
  const first = nodes.querySelector(".dayline");
  const own = section.previousElementSibling;
  if (own?.matches(".dayline:not(.dayline--earlier)")) own.remove();
  else if (first) {
    const days = [...section.parentElement.querySelectorAll(".dayline:not(.dayline--earlier)")];
    const above = days.filter((day) => day.compareDocumentPosition(section) & Node.DOCUMENT_POSITION_FOLLOWING).at(-1);
    if (above?.textContent === first.textContent) first.remove();
  }
}
