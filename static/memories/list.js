// The list of memories: filtered, searched, extended and updated in place row by row, so that rows which are being edited
// or were just deleted stay where they are.

import { ApiError, fragment, tryFragment } from "../gateway/api.js";
import { reconcile, replaceFocused } from "./reconcile.js";

const TYPING = 250;
const PAUSE = 3000; // milliseconds between polls of a running consolidation
const LONGEST = 30000;

// Shows a row as it was before it was edited.
export function closeEditor(row) {
  const editor = row?.querySelector("[data-editor]");
  if (!editor) return;
  for (const part of editor.parentElement.children) part.hidden = part.matches("[data-error]");
  editor.remove();
}

export class List {
  constructor(root, filters, summary) {
    this.root = root;
    this.filters = filters;
    this.summary = summary;
    this.asked = 0;
    this.another = false;
    this.leaving = new Set(); // rows to remove immediately, since they are changed together with others
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

  // The book of the listed memories; a memory found by its number may belong to another book than the chosen one.
  get shownBook() {
    return this.root.querySelector("[data-shown]").dataset.book;
  }

  get rows() {
    return this.root.querySelector("[data-rows]");
  }

  // The page's URL with the chosen filters only.
  query() {
    const { q, sort } = this.filters.elements;
    sort.disabled = Boolean(q.value.trim()); // search results are sorted by relevance
    const chosen = new URLSearchParams();
    for (const [name, value] of new FormData(this.filters)) {
      if (value && !(name === "book" && value === "main")) chosen.set(name, value);
    }
    return chosen;
  }

  // The filters have changed: load another list.
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

  // Shows one memory by its number, even if it is not on the loaded pages.
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

  // Memories were changed, here or elsewhere.
  async refresh() {
    this.refreshSummary();
    const query = this.query();
    query.set("n", this.root.querySelector("[data-shown]").dataset.shown);
    const skip = new URLSearchParams(location.search).get("skip");
    if (skip) query.set("skip", skip);
    await this.#load(query, false, true);
  }

  async refreshSummary() {
    const nodes = await tryFragment(`/fragments/memories/summary/?book=${encodeURIComponent(this.book)}`);
    if (nodes) {
      const held = this.summary.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
      this.summary.replaceChildren(nodes);
      if (held) this.summary.querySelector(`a[href="${CSS.escape(held)}"]`)?.focus();
    }
    this.#watch();
  }

  // Polls the progress of a running consolidation at increasing intervals.
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
    closeEditor(document.getElementById(id));
    if (this.query().has("q")) {
      await this.refresh();
      return document.getElementById(id);
    }
    let nodes = null;
    try {
      nodes = await fragment(`/fragments/memories/${number}/`);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.status !== 404) return document.getElementById(id); // it stays as it is
    }
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

  // `whole`: load another list instead of updating this one. `news`: highlight new rows. Only the last request is shown,
  // for which the others wait; it loads another list if any request meanwhile asked for that.
  #load(query, whole = true, news = false) {
    this.another ||= whole;
    this.newest = this.#loaded(query, news);
    return this.newest;
  }

  async #loaded(query, news) {
    this.asked += 1;
    const mine = this.asked;
    const nodes = await tryFragment(`/fragments/memories/?${query}`);
    if (mine !== this.asked) return this.newest;
    if (!nodes) return;
    const whole = this.another;
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
    // Do not request rows of an empty book without deleted memories.
    if (whole || told.dataset.empty !== undefined) this.rows.replaceChildren(...incoming);
    else await reconcile(this.rows, incoming, { news, busy, leave: (row) => this.#leave(row) });
    this.rows.hidden = !this.rows.children.length;
    this.#margins();
    this.#tell();
  }

  // Hide the filters of an empty book.
  #toolsShown(shown) {
    this.filters.parentElement.hidden = !shown;
  }

  // The "select all" checkbox stays while there are rows, since it may have the focus.
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

  // No longer listed: deleted rows stay struck through, others are removed.
  async #leave(row) {
    const deleted = this.filters.elements.deleted.checked;
    if (this.leaving.has(row.dataset.memory)) {
      row.remove();
      return;
    }
    if (row.hasAttribute("data-gone") && !deleted) return;
    const nodes = await tryFragment(`/fragments/memories/${row.dataset.memory}/`);
    const fresh = nodes?.querySelector(deleted ? "[data-memory]:not([data-gone])" : "[data-gone]");
    if (fresh) replaceFocused(row, fresh);
    else row.remove();
  }

  // A date is shown once per day.
  #margins() {
    let day = "";
    for (const time of this.rows.querySelectorAll(".entry__margin time")) {
      time.classList.toggle("ditto", time.textContent === day);
      day = time.textContent;
    }
  }
}
