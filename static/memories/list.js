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
    this.another = false;
    this.leaving = new Set(); // what leaves the list at once, since it is changed here together with others
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

  // The book of what is listed: a memory that was found by its number may be of another than the chosen one.
  get shownBook() {
    return this.root.querySelector("[data-shown]").dataset.book;
  }

  get rows() {
    return this.root.querySelector("[data-rows]");
  }

  // The page's address: what is chosen, without what is not.
  query() {
    const { q, sort } = this.filters.elements;
    sort.disabled = Boolean(q.value.trim()); // a search is best first
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
      else if (field.name && !["book", "sort"].includes(field.name)) field.value = "";
    }
    this.filters.elements.q.focus();
    return this.narrow();
  }

  // One memory by its number, on whatever page of the list it is.
  async find(number) {
    this.filters.elements.q.value = `#${number}`;
    await this.narrow();
    this.reveal(number);
  }

  reveal(number) {
    const row = document.getElementById(`memory-${number}`);
    row?.classList.add("is-new");
    row?.scrollIntoView({ block: "nearest" });
    return row;
  }

  async extend(link) {
    const last = this.rows.lastElementChild;
    await this.#load(new URLSearchParams(new URL(link.href).search), false);
    last.nextElementSibling?.querySelector("[data-pick]")?.focus();
  }

  // Something was written, here or elsewhere.
  async refresh() {
    this.refreshSummary();
    const query = this.query();
    query.set("n", this.root.querySelector("[data-shown]").dataset.shown);
    const skip = new URLSearchParams(location.search).get("skip");
    if (skip) query.set("skip", skip);
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
    this.#tell();
    return fresh;
  }

  // `whole`: another list; else the same one, brought up to date. `news`: what is new in it settles. Who asks last is
  // shown, and shows another list if one was asked for meanwhile.
  async #load(query, whole = true, news = false) {
    this.asked += 1;
    this.another ||= whole;
    const mine = this.asked;
    const nodes = await shown(`/fragments/memories/?${query}`);
    if (!nodes || mine !== this.asked) return;
    whole = this.another;
    this.another = false;
    this.root.querySelector(".list__more")?.remove();
    const more = nodes.querySelector(".list__more");
    if (more) this.root.append(more);
    const status = this.root.querySelector("[data-shown]");
    const told = nodes.querySelector("[data-shown]");
    this.#toolsShown(told.dataset.empty === undefined);
    status.dataset.shown = told.dataset.shown;
    status.dataset.book = told.dataset.book;
    if (status.textContent !== told.textContent) status.replaceChildren(...told.childNodes);
    this.#pickAll(nodes);
    const incoming = [...nodes.querySelector("[data-rows]").children];
    for (const { dataset } of incoming) this.leaving.delete(dataset.memory);
    const busy = (row) => row.querySelector("[data-editor]");
    // Of a book in which nothing is left, not even deleted memories, no row is asked for any more.
    if (whole || told.dataset.empty !== undefined) this.rows.replaceChildren(...incoming);
    else await reconcile(this.rows, incoming, { news, busy, leave: (row) => this.#leave(row) });
    this.rows.hidden = !this.rows.children.length;
    this.#margins();
    this.#tell();
  }

  // Where there is nothing, nothing is filtered.
  #toolsShown(shown) {
    this.filters.parentElement.hidden = !shown;
  }

  // The box that selects all; it stays while there are rows, since it may have the focus.
  #pickAll(nodes) {
    const present = this.root.querySelector(".listed__line .pick");
    const fresh = nodes.querySelector(".listed__line .pick");
    if (present && fresh) present.firstElementChild.ariaLabel = fresh.firstElementChild.ariaLabel;
    else if (fresh) this.root.querySelector(".listed__line").prepend(fresh);
    else present?.remove();
  }

  #tell() {
    this.root.dispatchEvent(new Event("listed"));
  }

  // No longer listed: what was deleted stays struck, the rest leaves.
  async #leave(row) {
    const deleted = this.filters.elements.deleted.checked;
    if (this.leaving.has(row.dataset.memory)) {
      row.remove();
      return;
    }
    if (row.hasAttribute("data-gone") && !deleted) return;
    const nodes = await shown(`/fragments/memories/${row.dataset.memory}/`);
    const fresh = nodes?.querySelector(deleted ? "[data-memory]:not([data-gone])" : "[data-gone]");
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
