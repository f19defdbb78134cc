// The list of memories: filtered, searched and extended in place, and brought up to date row by row, so that what
// somebody is editing, or has just deleted and may want back, stays where it is.

import { ApiError, fragment } from "../gateway/api.js";
import { reconcile, replaceFocused } from "./reconcile.js";

const TYPING = 250;
const PAUSE = 3000; // between two looks at a consolidation that is under way
const LONGEST = 30000;

export class List {
  constructor(root, filters, summary) {
    this.root = root;
    this.filters = filters;
    this.summary = summary;
    this.asked = 0;
    this.pause = PAUSE;
    this.#watch();
    filters.addEventListener("submit", (event) => {
      event.preventDefault();
      this.narrow();
    });
    filters.addEventListener("input", (event) => {
      clearTimeout(this.typing);
      this.typing = setTimeout(() => this.narrow(), event.target.type === "search" ? TYPING : 0);
    });
    root.addEventListener("click", (event) => {
      const more = event.target.closest("[data-more]");
      const clear = event.target.closest("[data-clear]");
      if (!more && !clear) return;
      event.preventDefault();
      if (clear) this.clear();
      else this.extend(more);
    });
  }

  get book() {
    return this.filters.elements.book.value;
  }

  get rows() {
    return this.root.querySelector("[data-rows]");
  }

  // The page's address: what is chosen, without what is not.
  query() {
    const chosen = new URLSearchParams();
    for (const [name, value] of new FormData(this.filters)) {
      if (value && !(name === "book" && value === "main")) chosen.set(name, value);
    }
    return chosen;
  }

  // What is chosen has changed: another list.
  async narrow() {
    clearTimeout(this.typing);
    const query = this.query();
    window.history.replaceState(null, "", query.size ? `?${query}` : location.pathname);
    const { book } = this.summary.dataset;
    if (book !== this.book) this.refreshSummary();
    this.summary.dataset.book = this.book;
    await this.#load(query);
  }

  clear() {
    for (const field of this.filters.elements) {
      if (field.type === "checkbox") field.checked = false;
      else if (field.name && field.name !== "book") field.value = "";
    }
    this.filters.elements.q.focus();
    return this.narrow();
  }

  async extend(link) {
    const last = this.rows.lastElementChild;
    await this.#load(new URLSearchParams(new URL(link.href).search), false);
    last.nextElementSibling?.querySelector("button")?.focus();
  }

  // Something was written, here or elsewhere.
  async refresh() {
    this.refreshSummary();
    const query = this.query();
    query.set("n", this.root.querySelector("[data-shown]").dataset.shown);
    await this.#load(query, false, true);
  }

  async refreshSummary() {
    const nodes = await shown(`/fragments/memories/summary/?book=${encodeURIComponent(this.book)}`);
    if (nodes) {
      const held = this.summary.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
      this.summary.replaceChildren(nodes);
      if (held) this.summary.querySelector(`a[href="${CSS.escape(held)}"]`)?.focus();
    }
    this.#watch();
  }

  // The progress of a consolidation, more and more seldom; nothing is asked while none is under way.
  #watch() {
    clearTimeout(this.looking);
    if (!this.summary.querySelector("[data-consolidating]")) {
      this.pause = PAUSE;
      return;
    }
    this.looking = setTimeout(() => this.refreshSummary(), this.pause);
    this.pause = Math.min(LONGEST, this.pause * 1.3);
  }

  async refreshRow(number) {
    const id = `memory-${number}`;
    document.getElementById(id)?.querySelector("[data-editor]")?.remove();
    if (this.query().has("q")) {
      await this.refresh();
      return document.getElementById(id);
    }
    const nodes = await shown(`/fragments/memories/${number}/`);
    const row = document.getElementById(id);
    const fresh = nodes?.querySelector("[data-memory]");
    if (!row || !fresh) {
      row?.remove();
      return null;
    }
    replaceFocused(row, fresh);
    this.#margins();
    return fresh;
  }

  // `whole`: another list; else the same one, brought up to date. `news`: what is new in it settles.
  async #load(query, whole = true, news = false) {
    this.asked += 1;
    const mine = this.asked;
    const nodes = await shown(`/fragments/memories/?${query}`);
    if (!nodes || mine !== this.asked) return;
    this.root.querySelector(".list__more")?.remove();
    const more = nodes.querySelector(".list__more");
    if (more) this.root.append(more);
    const status = this.root.querySelector("[data-shown]");
    const told = nodes.querySelector("[data-shown]");
    status.dataset.shown = told.dataset.shown;
    if (status.textContent !== told.textContent) status.replaceChildren(...told.childNodes);
    const incoming = [...nodes.querySelector("[data-rows]").children];
    const busy = (row) => row.querySelector("[data-editor]");
    if (whole) this.rows.replaceChildren(...incoming);
    else await reconcile(this.rows, incoming, { news, busy, leave: (row) => this.#leave(row) });
    this.rows.hidden = !this.rows.children.length;
    this.#margins();
  }

  // No longer listed: what was deleted stays struck, the rest leaves.
  async #leave(row) {
    if (row.hasAttribute("data-gone")) return;
    const nodes = await shown(`/fragments/memories/${row.dataset.memory}/`);
    const fresh = nodes?.querySelector("[data-gone]");
    if (fresh) replaceFocused(row, fresh);
    else row.remove();
  }

  // A date is written once per day.
  #margins() {
    let day = "";
    for (const time of this.rows.querySelectorAll(".entry__margin time")) {
      time.classList.toggle("ditto", time.textContent === day);
      day = time.textContent;
    }
  }
}

// A fragment, or null when there is nothing of it or it can't be had now: the page stays as it is, and says that it is
// offline by itself.
export async function shown(path) {
  try {
    return await fragment(path);
  } catch (error) {
    if (error instanceof ApiError) return null;
    throw error;
  }
}
