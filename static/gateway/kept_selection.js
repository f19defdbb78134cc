// Keeps the selection, the focus, and what is scrolled sideways within an element that is replaced by another rendering of
// the same text. Places of a selection are counted in characters other than white space, since the renderings may differ in
// that.

function countedBefore(element, node, at) {
  const range = document.createRange();
  range.setStart(element, 0);
  range.setEnd(node, at);
  return range.toString().replaceAll(/\s/g, "").length;
}

// Returns the text node and the position in it after so many characters.
function placeAfter(element, count) {
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const { data } = walker.currentNode;
    for (let at = 0; at < data.length; at += 1) {
      if (/\S/.test(data[at])) count -= 1;
      if (count <= 0) return [walker.currentNode, at + 1];
    }
  }
  return [element, element.childNodes.length];
}

// Returns a function that selects in another element, or again in this one, what is now selected here, if anything is and
// its nodes have left the page.
export function selectionOf(element) {
  const { anchorNode, anchorOffset, focusNode, focusOffset, isCollapsed } = getSelection();
  if (!element || isCollapsed || !element.contains(anchorNode) || !element.contains(focusNode)) return () => {};
  const [anchor, focus] = [countedBefore(element, anchorNode, anchorOffset), countedBefore(element, focusNode, focusOffset)];
  const place = (other, count, end) => {
    if (count === end) return placeAfter(other, count);
    const [node, at] = placeAfter(other, count + 1); // the beginning is before the next character, not after white space
    return [node, Math.max(0, at - 1)];
  };
  return (other) => {
    if (!other || (anchorNode.isConnected && focusNode.isConnected)) return; // without `other` the answer failed
    const end = Math.max(anchor, focus);
    getSelection().setBaseAndExtent(...place(other, anchor, end), ...place(other, focus, end));
  };
}

// Returns a function that focuses, in another rendering of the same turn, what has the focus now, if it has left the page.
// A button that is disabled has just been used: its own code knows what comes next. The first data attribute names a button;
// others may be its state.
export function focusOf(ledger) {
  const { activeElement } = document;
  const turn = ledger.contains(activeElement) && activeElement.closest(".turn")?.dataset.turn;
  if (!turn || activeElement.disabled) return () => {};
  const fold = activeElement.matches("summary") ? `[data-fold="${activeElement.parentElement.dataset.fold}"] > ` : "";
  const [name] = [...activeElement.attributes].map((attribute) => attribute.name).filter((one) => one.startsWith("data-"));
  const selector = `[data-turn="${CSS.escape(turn)}"] ${fold}${activeElement.localName}${name ? `[${name}]` : ""}`;
  const at = [...ledger.querySelectorAll(selector)].indexOf(activeElement);
  return () => {
    if (document.activeElement === document.body) ledger.querySelectorAll(selector)[at]?.focus({ preventScroll: true });
  };
}

const BOXES = '[tabindex="0"]'; // code, tables and long formulas

// Returns a function that scrolls the boxes of another rendering of an answer, or of this one with new nodes, as they are
// scrolled now, and focuses the one that has the focus.
export function boxesOf(prose) {
  const boxes = [...(prose?.querySelectorAll(BOXES) ?? [])];
  const places = boxes.map(({ scrollLeft }) => scrollLeft);
  const focused = boxes.indexOf(document.activeElement);
  return (other) => {
    const others = other?.querySelectorAll(BOXES) ?? [];
    places.forEach((place, index) => place && others[index] && (others[index].scrollLeft = place));
    if (focused >= 0) others[focused]?.focus({ preventScroll: true });
  };
}
