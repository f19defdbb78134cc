// Scrolls to the target of a URL: a turn, or a message found by a search, with the matching words marked.

import { element } from "./parts.js";

const FOLDED = /\p{M}/gu;

function folded(text) {
  return text.normalize("NFD").replace(FOLDED, "").toLowerCase();
}

// Matches as the server does: all words, the last one as a prefix.
function pattern(query) {
  const words = folded(query).match(/[\p{L}\p{N}]+/gu) ?? [];
  if (!words.length) return null;
  const last = words.pop();
  const whole = words.map((word) => `${word}(?![\\p{L}\\p{N}])`);
  const all = [...whole, `${last}[\\p{L}\\p{N}]*`].sort((one, other) => other.length - one.length);
  return new RegExp(`(?<![\\p{L}\\p{N}])(?:${all.join("|")})`, "gu");
}

function mark(turn, query) {
  const found = pattern(query);
  if (!found) return;
  const walker = document.createTreeWalker(turn, NodeFilter.SHOW_TEXT, (node) => (node.parentElement.closest(".prose") ? NodeFilter.FILTER_ACCEPT : NodeFilter.FILTER_SKIP));
  const texts = [];
  while (walker.nextNode()) texts.push(walker.currentNode);
  for (const text of texts) {
    // Folding may change the length and thus positions; in that case, fold each letter separately.
    const plain = folded(text.data).length === text.data.length ? folded(text.data) : [...text.data].map((letter) => folded(letter).padEnd(letter.length).slice(0, letter.length)).join("");
    for (const match of [...plain.matchAll(found)].reverse()) {
      const range = document.createRange();
      range.setStart(text, match.index);
      range.setEnd(text, match.index + match[0].length);
      range.surroundContents(element("mark", { className: "found" }));
    }
  }
}

// Returns the element to scroll to, or null.
export function placeNamed(ledger) {
  const named = location.hash.startsWith("#turn-") && document.getElementById(location.hash.slice(1));
  if (named) return named.firstElementChild;
  const given = new URLSearchParams(location.search);
  const at = Number(given.get("at"));
  const turn = at ? [...ledger.querySelectorAll("[data-seq]")].filter((section) => Number(section.dataset.seq) <= at).at(-1) : null;
  if (!turn) return null;
  mark(turn, given.get("q") ?? "");
  const first = turn.querySelector("mark.found");
  const entry = first?.closest(".entry") ?? turn.querySelector(".entry"); // a turn is display: contents
  if (!entry) return null;
  entry.classList.add("entry--found");
  entry.tabIndex = -1;
  entry.focus({ preventScroll: true });
  return first ?? entry;
}
