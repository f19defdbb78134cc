// Replacing a turn: it is removed from the page with all turns after it, and restored if the new turn did not start.

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

// Updates the content below a message that is being edited from a new rendering of its turn.
export function replaceBelow(editor, rendered) {
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
