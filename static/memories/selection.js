// Selecting memories, one by one, a range with Shift, or all shown, and bulk actions on them: each is one change set with
// one undo.

import { call, refused, showError } from "../gateway/api.js";
import { some } from "../gateway/parts.js";

const isGone = (row) => row.hasAttribute("data-gone");
const DONE = { delete: "deleted", restore: "restored", pin: "pinned", unpin: "unpinned" };

export class Selection {
  constructor(list, bar, done) {
    this.list = list;
    this.bar = bar;
    this.done = done;
    this.picked = new Set();
    this.last = "";
    list.root.addEventListener("click", (event) => {
      if (event.target.matches("[data-pick]")) this.#pick(event.target, event.shiftKey);
      else if (event.target.matches("[data-pick-all]")) this.#pickAll(event.target.checked);
    });
    list.root.addEventListener("listed", () => this.#show());
    for (const place of [list.root, bar]) {
      place.addEventListener("keydown", (event) => {
        if (event.key === "Escape" && this.picked.size) this.clear();
      });
    }
    bar.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (button?.dataset.do) this.#change(button.dataset.do);
      else if (button?.matches("[data-pick-none]")) this.clear();
    });
    this.category.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.isComposing) this.#change("categorise");
    });
    done.addEventListener("click", (event) => {
      if (event.target.closest("[data-bulk-undo]")) this.#undo();
      else if (event.target.closest("[data-bulk-close]")) {
        done.hidden = true;
        this.#focusList();
      }
    });
    list.filters.addEventListener("input", () => {
      done.hidden = true;
    });
  }

  get category() {
    return this.bar.querySelector("#bulk-category");
  }

  clear() {
    const inBar = this.bar.contains(document.activeElement);
    this.picked.clear();
    this.#show();
    if (inBar) this.#focusList();
  }

  #focusList() {
    (this.list.root.querySelector("[data-pick-all]") ?? document.getElementById("q")).focus();
  }

  #rows() {
    return [...this.list.rows.children];
  }

  // The rows that the list is about: the live ones, or the deleted ones among the deleted.
  #ownRows() {
    const { checked } = this.list.filters.elements.deleted;
    return this.#rows().filter((row) => isGone(row) === checked);
  }

  #pick(box, range) {
    const row = box.closest("[data-memory]");
    const rows = this.#rows();
    const from = range ? rows.findIndex((other) => other.dataset.memory === this.last) : -1;
    const at = rows.indexOf(row);
    const span = from < 0 ? [row] : rows.slice(Math.min(from, at), Math.max(from, at) + 1);
    for (const { dataset } of span) this.picked[box.checked ? "add" : "delete"](dataset.memory);
    this.last = row.dataset.memory;
    this.#show(isGone(row));
  }

  #pickAll(all) {
    this.picked = new Set(all ? this.#ownRows().map((row) => row.dataset.memory) : []);
    this.#show();
  }

  // Updates the checkboxes, the bar and its count; memories that are no longer listed are deselected. Deleted memories
  // have other actions than live ones: if both are selected, those stay selected that are deleted, or not, as `kept`.
  #show(kept = this.list.filters.elements.deleted.checked) {
    const rows = this.#rows();
    const picked = rows.filter((row) => this.picked.has(row.dataset.memory));
    const alike = picked.filter((row) => isGone(row) === kept);
    const gone = alike.length ? kept : !kept;
    this.picked = new Set((alike.length ? alike : picked).map((row) => row.dataset.memory));
    for (const row of rows) row.querySelector("[data-pick]").checked = this.picked.has(row.dataset.memory);
    const all = this.list.root.querySelector("[data-pick-all]");
    if (all) {
      all.checked = this.picked.size > 0 && this.#ownRows().every((row) => this.picked.has(row.dataset.memory));
      all.indeterminate = this.picked.size > 0 && !all.checked;
    }
    this.bar.hidden = !this.picked.size;
    if (!this.picked.size) return;
    this.done.hidden = true;
    this.bar.querySelector("[data-error]").hidden = true;
    this.bar.querySelector("[data-picked]").textContent = `${this.picked.size} selected`;
    for (const button of this.bar.querySelectorAll("[data-do]")) button.hidden = (button.dataset.do === "restore") !== gone;
    this.category.hidden = gone;
  }

  async #change(action) {
    const category = this.category.value.trim();
    if (action === "categorise" && !category) {
      this.category.focus();
      return;
    }
    const ids = [...this.picked];
    this.list.leaving = new Set(["delete", "restore"].includes(action) ? ids : []);
    this.bar.inert = true;
    const error = await refused(async () => {
      const body = { ids, action, book: this.list.shownBook, ...(action === "categorise" ? { category } : {}) };
      const result = await call("POST", "/api/memories/bulk", body);
      this.picked.clear();
      this.category.value = "";
      await this.list.refresh();
      this.#say(result, DONE[action] ?? `moved to “${category}”`, action);
    }).finally(() => (this.bar.inert = false));
    if (!error) return;
    this.list.leaving.clear();
    showError(this.bar, error.message);
  }

  #say({ change_set: set, changed, left_alone: left }, verb, action) {
    const words = [`${some(changed.length, "memory", "memories")} ${verb}.`];
    if (left.length) words.push(`${some(left.length, "was", "were")} left unchanged.`);
    if (action === "delete" && changed.length) words.push("Find them under Deleted.");
    const undo = this.done.querySelector("[data-bulk-undo]");
    this.done.querySelector("[data-words]").textContent = words.join(" ");
    this.done.dataset.changeSet = set ?? "";
    undo.hidden = !set;
    this.#show();
    this.done.hidden = false;
    if (set) undo.focus();
  }

  async #undo() {
    const words = this.done.querySelector("[data-words]");
    const undo = this.done.querySelector("[data-bulk-undo]");
    undo.disabled = true;
    const error = await refused(async () => {
      const { undone, left_alone: left } = await call("POST", `/api/changes/${this.done.dataset.changeSet}/undo`, {});
      await this.list.refresh();
      const rest = left.length ? ` ${some(left.length, "was", "were")} left alone: changed since, or another memory says the same.` : "";
      words.textContent = `Undone for ${some(undone.length, "memory", "memories")}.${rest}`;
      undo.hidden = true;
      this.#focusList();
    }).finally(() => (undo.disabled = false));
    if (error) words.textContent = error.message;
  }
}
