// Loads earlier turns without moving what the reader is looking at.

import { ApiError, fragment } from "./api.js";
import { addCopyButtons } from "./copy.js";
import { wordsFor } from "./errors.js";

export function installEarlier(main, say) {
  const log = main.querySelector("#log");
  const status = main.querySelector("#status");

  main.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-earlier]");
    if (!button || button.disabled) return;
    button.disabled = true;
    let nodes;
    try {
      nodes = await fragment(button.dataset.earlier);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      button.disabled = false;
      say(wordsFor(error.code).headline);
      return;
    }
    const place = button.closest("[data-earlier-place]");
    if (!place) return; // the conversation was rendered again meanwhile
    const loaded = nodes.querySelectorAll(".turn").length;
    addCopyButtons(nodes);
    put(nodes, place, log);
    status.textContent = `${loaded} earlier turn${loaded === 1 ? "" : "s"} loaded`;
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
