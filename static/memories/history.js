// The history drawer: beside the list, or over the page on narrow screens, where the page behind it is inert. Escape
// closes it and restores the focus.

import { attempt, call, tryFragment } from "../gateway/api.js";

const OVER = matchMedia("(max-width: 74.99rem)");

export class History {
  constructor(drawer, list) {
    this.drawer = drawer;
    this.list = list;
    this.number = ""; // of the memory whose history is shown
    this.wanted = ""; // of the one that was asked for last
    drawer.addEventListener("click", (event) => {
      if (event.target.closest("[data-close]")) this.close();
      const restore = event.target.closest("[data-restore]");
      if (restore) this.restore(restore);
    });
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && !drawer.hidden && (OVER.matches || drawer.contains(document.activeElement))) this.close();
    });
    OVER.addEventListener("change", () => this.#rest());
  }

  async open(number) {
    const before = this.#button;
    if (!(await this.#load(number))) return;
    before?.setAttribute("aria-expanded", "false");
    this.#button?.setAttribute("aria-expanded", "true");
    this.drawer.hidden = false;
    this.#rest();
    this.drawer.querySelector("[data-close]").focus();
  }

  close() {
    const button = this.#button;
    this.drawer.hidden = true;
    this.number = this.wanted = "";
    this.#rest();
    button?.setAttribute("aria-expanded", "false");
    (button ?? document.getElementById("q")).focus();
    this.drawer.replaceChildren();
  }

  // The memory may have been changed elsewhere while its history is open.
  refresh(numbers) {
    if (!this.number || this.wanted !== this.number) return;
    if (!numbers.length || numbers.map(String).includes(this.number)) this.#load(this.number);
  }

  async restore(button) {
    const number = this.number;
    await attempt(this.drawer, button, async () => {
      await call("POST", `/api/memories/${number}/restore`, { revision: button.dataset.restore });
      if (this.wanted === number) {
        await this.#load(number);
        this.drawer.querySelector("[data-close]")?.focus();
      }
      await this.list.refreshRow(number);
      this.#button?.setAttribute("aria-expanded", "true");
      this.list.refreshSummary();
    });
  }

  // Finds the button of the open memory; its row may have been rendered again.
  get #button() {
    return this.number ? document.querySelector(`#memory-${this.number} [data-history]`) : null;
  }

  // Shown only if the drawer was neither closed nor opened for another memory meanwhile.
  async #load(number) {
    this.wanted = String(number);
    const nodes = await tryFragment(`/fragments/memories/${number}/history/`);
    if (this.wanted !== String(number)) return false;
    if (!nodes) {
      this.wanted = this.number;
      return false;
    }
    const close = this.drawer.contains(document.activeElement) && document.activeElement.matches("[data-close]");
    this.number = this.wanted;
    this.drawer.replaceChildren(nodes);
    if (close) this.drawer.querySelector("[data-close]").focus();
    return true;
  }

  #rest() {
    const over = OVER.matches && !this.drawer.hidden;
    for (const part of [document.querySelector(".topbar"), this.drawer.previousElementSibling]) part.inert = over;
  }
}
