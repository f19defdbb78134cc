// Loads earlier turns without moving what the reader is looking at.

import { fragment, refused } from "./api.js";
import { addCopyButtons } from "./copy.js";
import { wordsFor } from "./errors.js";
import { some } from "./parts.js";

export function installEarlier(main, say) {
  const log = main.querySelector("#log");
  const status = main.querySelector("#status");

  main.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-earlier]");
    if (!button || button.disabled) return;
    button.disabled = true;
    let nodes;
    const error = await refused(async () => (nodes = await fragment(button.dataset.earlier)));
    if (error) {
      button.disabled = false;
      return say(wordsFor(error.code).headline);
    }
    const place = button.closest("[data-earlier-place]");
    if (!place) return; // the conversation was rendered again meanwhile
    const loaded = nodes.querySelectorAll(".turn").length;
    addCopyButtons(nodes);
    put(nodes, place, log);
    status.textContent = `${some(loaded, "earlier turn")} loaded`;
    (main.querySelector("[data-earlier]") ?? log).focus({ preventScroll: true });
  });
}

function put(nodes, place, log) {
  const next = place.nextElementSibling;
  const day = next?.matches(".dayline") ? next.querySelector("h2") : null;
  const before = [...nodes.querySelectorAll(".dayline h2")].at(-1);
  const turn = day ? next.nextElementSibling : next;
  const anchor = turn?.firstElementChild; // a turn is display: contents
  const top = anchor?.getBoundingClientRect().top;
  log.style.overflowAnchor = "none"; // the browser would adjust the scroll position, too
  if (day && before && day.textContent === before.textContent) next.remove();
  place.replaceWith(nodes);
  if (anchor) log.scrollTop += anchor.getBoundingClientRect().top - top;
  requestAnimationFrame(() => requestAnimationFrame(() => (log.style.overflowAnchor = "")));
}
