// Actions on a session in the list: rename, tag, pin, archive, export, and delete with undo.

import { call, refused, showError } from "./api.js";
import { wordsFor } from "./errors.js";
import { element, isolated } from "./parts.js";
import { toasts } from "./shell.js";

const DELETED = "daybook:deleted";

// Normalises tags as the server does: lower case, without duplicates.
function tagsIn(text) {
  return [...new Set(text.split(",").map((tag) => tag.trim().replace(/\s+/g, " ").toLowerCase()))].filter(Boolean);
}

export class SessionActions {
  constructor(list) {
    this.list = list;
    this.menu = document.getElementById("session-menu");
    this.tags = document.getElementById("tags");
    this.#installMenu();
    this.#installTags();
    this.#offerUndo();
  }

  openMenu(button) {
    const place = button.getBoundingClientRect();
    const { session, ...marks } = button.closest(".session").dataset;
    this.menuFor = button;
    this.menu.querySelector("[data-pin] span").textContent = "pinned" in marks ? "Unpin" : "Pin";
    this.menu.querySelector("[data-archive] span").textContent = "archived" in marks ? "Unarchive" : "Archive";
    for (const link of this.menu.querySelectorAll("[data-export]")) link.href = `/api/sessions/${session}/export?format=${link.dataset.export}`;
    this.menu.showPopover();
    const top = Math.min(place.bottom, window.innerHeight - this.menu.offsetHeight - 8);
    this.menu.style.insetBlockStart = `${top}px`;
    this.menu.style.insetInlineStart = `${Math.max(8, Math.min(place.left, window.innerWidth - this.menu.offsetWidth - 8))}px`;
    button.setAttribute("aria-expanded", "true");
    this.menu.querySelector("[role=menuitem]").focus();
  }

  #installMenu() {
    const items = [...this.menu.querySelectorAll("[role=menuitem]")];
    this.menu.addEventListener("keydown", (event) => {
      const at = items.indexOf(document.activeElement);
      const to = { ArrowDown: (at + 1) % items.length, ArrowUp: (at + items.length - 1) % items.length, Home: 0, End: items.length - 1 }[event.key];
      if (to !== undefined) {
        event.preventDefault();
        items[to].focus();
      } else if (event.key === "Tab") this.menu.hidePopover();
    });
    this.menu.addEventListener("toggle", (event) => {
      if (event.newState !== "closed" || !this.menuFor) return;
      this.menuFor.setAttribute("aria-expanded", "false");
      if (this.menu.contains(document.activeElement) || document.activeElement === document.body) this.menuFor.focus();
    });
    this.menu.addEventListener("click", (event) => {
      const row = this.menuFor.closest(".session");
      this.menu.hidePopover();
      if (event.target.closest("[data-rename]")) this.#rename(row);
      if (event.target.closest("[data-tag]")) this.#openTags(row.dataset.session, row.querySelector("a span").textContent, row.dataset.tags, this.menuFor);
      if (event.target.closest("[data-pin]")) this.#change(row, { pinned: !("pinned" in row.dataset) });
      if (event.target.closest("[data-archive]")) this.#change(row, { archived: !("archived" in row.dataset) });
      if (event.target.closest("[data-delete]")) this.#delete(row);
    });
  }

  // Runs an action that may be refused, and shows the error. Returns whether it succeeded.
  async #done(work) {
    const error = await refused(work);
    this.list.dispatchEvent(error ? new CustomEvent("trouble", { detail: wordsFor(error.code).headline }) : new CustomEvent("changed"));
    return !error;
  }

  async #change(row, what) {
    const { session } = row.dataset;
    if (!(await this.#done(() => call("PATCH", `/api/sessions/${session}`, what)))) return;
    await this.list.refresh();
    this.list.focusRow(session);
    if (!("archived" in what)) return;
    this.list.closeDrawer(); // it would cover the toast with the undo button
    toasts.undoable(what.archived ? "Archived. Searches still find it." : "Unarchived.", async () => {
      await call("PATCH", `/api/sessions/${session}`, { archived: !what.archived });
      this.list.dispatchEvent(new CustomEvent("changed"));
      await this.list.refresh();
      return "Undone.";
    });
  }

  // A name is also saved when the focus moves elsewhere; it stays there.
  #rename(row) {
    const link = row.querySelector("a");
    const title = link.querySelector("span").textContent;
    const input = element("input", { className: "input", value: title, maxLength: 200, ariaLabel: "New name of the session" });
    link.hidden = true;
    link.before(input);
    input.select();
    input.focus();
    let open = true;
    const close = async (save, back) => {
      if (!open) return;
      open = false;
      const chosen = input.value.trim();
      input.remove();
      link.hidden = false;
      if (back) link.focus();
      if (save && chosen && chosen !== title) await this.#renamed(row, chosen, title);
      if (this.list.outdated) await this.list.refresh();
    };
    input.addEventListener("keydown", (event) => {
      if (event.isComposing) return;
      if (event.key === "Enter") close(true, true);
      else if (event.key === "Escape") close(false, true);
      else return;
      event.stopPropagation();
      event.preventDefault();
    });
    input.addEventListener("blur", () => close(true, false));
  }

  async #renamed(row, title, before) {
    const { session } = row.dataset;
    const show = (text) => {
      row.querySelector("a span").textContent = text;
      row.querySelector("[data-session-menu]").setAttribute("aria-label", `More for ${text}`);
      if (session === this.list.main.dataset.session) this.list.dispatchEvent(new CustomEvent("renamed", { detail: text }));
    };
    show(title);
    if (!(await this.#done(() => call("PATCH", `/api/sessions/${session}`, { title })))) show(before);
  }

  #installTags() {
    const input = this.tags.querySelector("input");
    document.getElementById("edit-tags").addEventListener("click", (event) => {
      const title = document.getElementById("session-title").textContent;
      this.#openTags(this.list.main.dataset.session, title, document.getElementById("session-tags").textContent, event.currentTarget);
    });
    this.tags.querySelector("[data-cancel]").addEventListener("click", () => this.tags.close());
    this.tags.addEventListener("close", () => this.tagged.from.isConnected && this.tagged.from.focus());
    this.tags.querySelector("[data-known]").addEventListener("click", (event) => {
      if (!event.target.matches("button")) return;
      const name = event.target.textContent;
      const held = tagsIn(input.value);
      input.value = (held.includes(name) ? held.filter((one) => one !== name) : [...held, name]).join(", ");
      this.#showPressed();
    });
    input.addEventListener("input", () => this.#showPressed());
    this.tags.querySelector("form").addEventListener("submit", async (event) => {
      event.preventDefault();
      const { session, before } = this.tagged;
      const tags = tagsIn(input.value);
      if (tags.join() === before.join()) return this.tags.close();
      const error = await refused(() => this.#saveTags(session, tags));
      if (error) {
        showError(this.tags, error.message);
        return input.focus();
      }
      this.tags.close();
      this.#focusRowOf(session);
      this.list.closeDrawer();
      toasts.undoable(tags.length ? "Tags saved." : "Tags removed.", async () => {
        await this.#saveTags(session, before);
        return "Undone.";
      });
    });
  }

  #openTags(session, title, tags, from) {
    const input = this.tags.querySelector("input");
    const known = this.tags.querySelector("[data-known]");
    this.tagged = { session, before: tagsIn(tags), from };
    this.tags.querySelector("[data-title]").textContent = title;
    this.tags.querySelector("[data-error]").hidden = true;
    input.value = this.tagged.before.join(", ");
    known.replaceChildren(...this.list.knownTags().map((name) => element("button", { type: "button", className: "btn btn--small", textContent: name })));
    known.hidden = !known.children.length;
    this.#showPressed();
    this.tags.showModal();
    input.focus();
  }

  #showPressed() {
    const held = tagsIn(this.tags.querySelector("input").value);
    for (const button of this.tags.querySelectorAll("[data-known] button")) button.setAttribute("aria-pressed", String(held.includes(button.textContent)));
  }

  async #saveTags(session, tags) {
    const saved = await call("PATCH", `/api/sessions/${session}`, { tags });
    if (session === this.list.main.dataset.session) document.getElementById("session-tags").textContent = saved.tags.join(", ");
    this.list.dispatchEvent(new CustomEvent("changed"));
    await this.list.refresh();
  }

  // The list was rendered again, maybe with a new copy of the button that opened the dialog.
  #focusRowOf(session) {
    const { from } = this.tagged;
    if (from.isConnected) from.focus();
    else this.list.focusRow(session);
  }

  async #delete(row) {
    const { session } = row.dataset;
    const deleted = { session, title: row.querySelector("a span").textContent, shown: session === this.list.main.dataset.session };
    if (!(await this.#done(() => call("DELETE", `/api/sessions/${session}?restorable=true`)))) return;
    if (deleted.shown) {
      sessionStorage.setItem(DELETED, JSON.stringify(deleted));
      location.href = "/";
      return;
    }
    const next = row.nextElementSibling?.dataset.session ?? row.previousElementSibling?.dataset.session ?? "";
    await this.list.refresh();
    this.list.focusRow(next);
    this.list.closeDrawer();
    this.#sayDeleted(deleted);
  }

  // The deleted session's page is gone; the next page offers to undo.
  #offerUndo() {
    const kept = sessionStorage.getItem(DELETED);
    sessionStorage.removeItem(DELETED);
    if (kept) this.#sayDeleted(JSON.parse(kept));
  }

  #sayDeleted({ session, title, shown }) {
    toasts.undoable(`Deleted “${isolated(title)}”. Memories that came from it stay.`, async () => {
      await call("POST", `/api/sessions/${session}/restore`);
      this.list.dispatchEvent(new CustomEvent("changed"));
      if (shown) location.href = `/c/${session}/`;
      else await this.list.refresh();
      return `Restored “${isolated(title)}”.`;
    });
  }
}
