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

const turnsIn = (place) => [...place.querySelectorAll(".turn:not([data-refused])")];
const versionOf = (section) => section.querySelector(".versions__place")?.textContent;

// Whether nothing is new in the server's rendering of a turn. One that failed or was stopped has buttons while it is the last.
function isSame(shown, rendered) {
  const [before, now] = [shown.dataset, rendered.dataset];
  const isOver = now.state === "completed" || (now.state !== "running" && now.last === before.last);
  return isOver && before.turn === now.turn && before.state === now.state && before.seq === now.seq && versionOf(shown) === versionOf(rendered);
}

// Removes from a fragment the turns at its beginning that the page shows as they are. Returns the section of the page from
// which the rest differs, or null if the rest follows what is shown; undefined if they have no turn in common.
function firstDifferent(ledger, nodes) {
  const [rendered, shown] = [turnsIn(nodes), turnsIn(ledger)];
  let at = shown.findIndex(({ dataset }) => dataset.turn && dataset.turn === rendered[0]?.dataset.turn);
  if (at < 0) return undefined;
  nodes.querySelector("[data-earlier-place]")?.remove();
  while (rendered.length && at < shown.length && isSame(shown[at], rendered[0])) {
    const same = rendered.shift();
    if (same.previousElementSibling?.matches(".dayline")) same.previousElementSibling.remove();
    same.remove();
    at += 1;
  }
  return shown[at] ?? null;
}

// Shows the turns of a fragment after those that they follow, or instead of all. Turns that are the same stay untouched, and
// refused messages stay at the end. Returns whether anything is new. If what is being edited would be lost, nothing changes.
export function merge(ledger, nodes) {
  const section = firstDifferent(ledger, nodes);
  if (section === null && !turnsIn(nodes).length) return false;
  const refused = [...ledger.querySelectorAll("[data-refused]")];
  const leaving = section === null ? [] : section ? from(section) : [...ledger.childNodes];
  if (leaving.some((node) => !refused.includes(node) && node.querySelector?.(".editor"))) return false;
  const { activeElement } = document;
  for (const node of refused) node.remove();
  keepOpen(ledger, nodes);
  if (section) replaceFrom(section, nodes);
  else if (section === undefined) ledger.replaceChildren(nodes);
  else {
    const day = ledger.lastElementChild; // of a refused message
    if (day?.matches(".dayline:not(.dayline--earlier)")) day.remove();
    ledger.append(nodes);
  }
  ledger.append(...refused);
  if (refused.some((node) => node.contains(activeElement))) activeElement.focus({ preventScroll: true });
  return true;
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
