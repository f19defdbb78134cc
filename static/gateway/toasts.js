// Toasts, inserted into a live region of the page. They stay 12 seconds, and as long as they are hovered or one of their
// buttons has the focus.

import { call, refused, tryFragment } from "./api.js";
import { fromTemplate, some } from "./parts.js";

const STAYS = 12000;
const LEAST = 2000; // milliseconds after the pointer or focus has left

export class Toasts extends EventTarget {
  constructor(region) {
    super();
    this.region = region;
    this.before = null; // the element that had the focus before it moved into a toast
    // The sign-in page has no region.
    region?.addEventListener("focusin", ({ relatedTarget }) => {
      if (relatedTarget && !region.contains(relatedTarget)) this.before = relatedTarget;
    });
  }

  say(text) {
    const last = this.region.lastElementChild;
    if (last?.querySelector("[data-text]").textContent === text) last.remove(); // a button was pressed again
    return this.#lay(text);
  }

  // Shows what was done with an undo button; `undo` returns the text to show afterwards.
  undoable(text, undo) {
    const toast = this.#lay(text);
    const button = toast.querySelector("[data-undo]");
    toast.querySelector("[data-open]").remove();
    toast.querySelector("[data-acts]").hidden = button.hidden = false;
    button.addEventListener("click", async () => {
      const focused = document.activeElement === button;
      button.disabled = true;
      const said = toast.querySelector("[data-text]");
      const error = await refused(async () => (said.textContent = await undo()));
      if (error) {
        said.textContent = error.code === "not_found" ? "It is gone for good." : "It could not be undone. Try again.";
        button.disabled = error.code === "not_found";
        return;
      }
      toast.querySelector("[data-acts]").hidden = true;
      if (focused) toast.querySelector("[data-close]").focus();
    });
    return toast;
  }

  async review(message) {
    const toast = this.#lay(message.text);
    const acts = toast.querySelector("[data-acts]");
    acts.hidden = false;
    if (!message.review_id) return;
    const open = toast.querySelector("[data-open]");
    open.href = `/reviews/#review-${message.review_id}`;
    if (message.kind === "review.awaiting_approval") open.textContent = "Decide";
    else {
      const undo = toast.querySelector("[data-undo]");
      undo.hidden = false;
      undo.addEventListener("click", () => this.#undo(toast, undo, `/api/reviews/${message.review_id}/undo`));
    }
    await this.#entries(toast, message.review_id);
  }

  async #entries(toast, review) {
    const nodes = await tryFragment(`/fragments/review/${review}/`);
    const { session, turn } = nodes?.querySelector("[data-place]")?.dataset ?? {};
    if (turn) {
      toast.place = { session, turn };
      this.dispatchEvent(new CustomEvent("written", { detail: { toast, ...toast.place } }));
    }
    const list = toast.querySelector("[data-entries]");
    if (!nodes?.querySelector("li")) return; // the sentence alone is shown
    list.replaceChildren(nodes);
    list.hidden = false;
  }

  async #undo(toast, button, path) {
    button.disabled = true;
    const text = toast.querySelector("[data-text]");
    const list = toast.querySelector("[data-entries]");
    const error = await refused(async () => {
      const { undone, change_set: next } = await call("POST", path, {});
      const count = undone.length;
      const memories = some(count, "memory", "memories");
      const putBack = path.startsWith("/api/changes/") && toast.dataset.undone !== undefined;
      if (!count) text.textContent = "Changed since; see the review.";
      else text.textContent = putBack ? `Restored ${memories}.` : `Undone. ${memories} changed back.`;
      list.classList.toggle("is-undone", Boolean(count) && !putBack);
      toast.toggleAttribute("data-undone", Boolean(count) && !putBack);
      if (toast.place) this.dispatchEvent(new CustomEvent("changed", { detail: toast.place }));
      button.hidden = !count || !next;
      if (next && count) {
        const again = button.cloneNode(true);
        again.disabled = false;
        again.querySelector("span").textContent = putBack ? "Undo" : "Restore";
        again.addEventListener("click", () => this.#undo(toast, again, `/api/changes/${next}/undo`));
        const focused = document.activeElement === button || document.activeElement === document.body;
        button.replaceWith(again);
        if (focused) again.focus();
      }
    });
    if (!error) return;
    button.disabled = false;
    text.textContent = "It could not be undone. Try again, or open the review.";
  }

  #lay(words) {
    const toast = fromTemplate("toast");
    toast.querySelector("[data-text]").textContent = words;
    let left = STAYS;
    let since = 0;
    let timer = 0;
    const run = () => {
      if (timer) return;
      since = performance.now();
      timer = setTimeout(() => toast.remove(), left);
    };
    const hold = () => {
      if (!timer) return; // already paused, by hover or focus
      clearTimeout(timer);
      timer = 0;
      left = Math.max(LEAST, left - (performance.now() - since));
    };
    const release = () => {
      if (!toast.matches(":hover") && !toast.contains(document.activeElement)) run();
    };
    toast.addEventListener("mouseenter", hold);
    toast.addEventListener("focusin", hold);
    toast.addEventListener("mouseleave", release);
    toast.addEventListener("focusout", () => setTimeout(release));
    toast.querySelector("[data-close]").addEventListener("click", () => {
      const focused = toast.contains(document.activeElement);
      toast.remove();
      if (focused) this.before?.focus();
    });
    this.region.append(toast);
    run();
    return toast;
  }
}
