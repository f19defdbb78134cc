// A turn that is replaced leaves the page with all that followed it, and comes back when nothing came of that.

// A turn and what follows it.
export function from(section) {
  const nodes = [];
  for (let node = section; node; node = node.nextSibling) nodes.push(node);
  return nodes;
}

// Removes a turn that did not begin; what it was to replace stands there again.
export function takeBack(section) {
  section.replaceWith(...(section.leaving ?? []));
}

// Lets what is below a message that is being edited be as in another rendering of its turn. An editor of a memory is part
// of that itself: then all stays, and is shown with the next rendering.
export function replaceBelow(editor, section, rendered) {
  const message = editor.closest(".entry--you");
  if (!message) return;
  rendered.querySelector(".entry--you").remove();
  while (message.nextSibling) message.nextSibling.remove();
  message.after(...rendered.childNodes);
}

// Lets other turns take the place of a section and what follows it. Their day is named once, by the page or by them.
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
