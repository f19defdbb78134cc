// The list of sessions: one tab stop, a menu for rename and delete, a drawer on the phone.

import { ApiError, call, fragment } from "./api.js";
import { wordsFor } from "./errors.js";
import { confirmed } from "./shell.js";

const LIST_URL = "/fragments/sessions/";

export class SessionList extends EventTarget {
  constructor(main) {
    super();
    this.main = main;
    this.aside = document.getElementById("sessions");
    this.list = document.getElementById("session-list");
    this.search = this.aside.querySelector("[name=q]");
    this.menu = document.getElementById("session-menu");
    this.#installList();
    this.#installMenu();
    this.#installDrawer();
    this.#oneTabStop();
    this.list.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
  }

  async refresh() {
    const query = new URLSearchParams({ q: this.search.value, current: this.main.dataset.session });
    this.list.replaceChildren(await fragment(`${LIST_URL}?${query}`));
    window.htmx?.process(this.list);
    this.#oneTabStop();
    this.dispatchEvent(new CustomEvent("listed"));
  }

  // Which sessions a review is reading.
  showReviews(sessions) {
    for (const row of this.list.querySelectorAll(".session")) {
      const reviewing = sessions.has(row.dataset.session);
      const dot = row.querySelector("[data-review-dot]");
      dot.hidden = !reviewing;
      row.querySelector("[data-review-words]")?.remove();
      if (reviewing) {
        const words = document.createElement("span");
        words.className = "vh";
        words.dataset.reviewWords = "";
        words.textContent = "Review in progress";
        dot.after(words);
      }
    }
  }

  #links() {
    return [...this.list.querySelectorAll(".session a")];
  }

  #oneTabStop(focused = null) {
    const links = this.#links();
    const stop = focused ?? links.find((link) => link.hasAttribute("aria-current")) ?? links[0];
    for (const link of links) {
      link.tabIndex = link === stop ? 0 : -1;
      link.closest(".session").querySelector("[data-session-menu]").tabIndex = -1;
    }
  }

  #installList() {
    document.body.addEventListener("htmx:afterSwap", (event) => {
      if (this.list.contains(event.target)) {
        this.#oneTabStop();
        this.dispatchEvent(new CustomEvent("listed"));
      }
    });
    this.list.addEventListener("focusin", (event) => {
      const link = event.target.closest(".session a");
      if (link) this.#oneTabStop(link);
    });
    this.list.addEventListener("keydown", (event) => this.#key(event));
    this.list.addEventListener("click", (event) => {
      const more = event.target.closest("[data-session-menu]");
      if (more) this.#openMenu(more);
      if (event.target.closest("[data-clear-search]")) {
        this.search.value = "";
        this.search.focus();
        this.refresh();
      }
    });
  }

  #key(event) {
    const row = event.target.closest(".session");
    if (!row || event.target.matches("input")) return;
    const links = this.#links();
    const at = links.indexOf(row.querySelector("a"));
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: links.length - 1 }[event.key];
    if (to !== undefined) links[to]?.focus();
    else if (event.key === "ArrowRight") row.querySelector("[data-session-menu]").focus();
    else if (event.key === "ArrowLeft") row.querySelector("a").focus();
    else if ((event.key === "F10" && event.shiftKey) || event.key === "ContextMenu") this.#openMenu(row.querySelector("[data-session-menu]"));
    else return;
    event.preventDefault();
  }

  #openMenu(button) {
    const place = button.getBoundingClientRect();
    this.menuFor = button;
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
      if (event.target.closest("[data-delete]")) this.#delete(row);
    });
  }

  #rename(row) {
    const link = row.querySelector("a");
    const title = link.querySelector("span").textContent;
    const input = document.createElement("input");
    Object.assign(input, { className: "input", value: title, maxLength: 200 });
    input.setAttribute("aria-label", "New name of the session");
    link.hidden = true;
    link.before(input);
    input.select();
    input.focus();
    let open = true;
    const close = async (save) => {
      if (!open) return;
      open = false;
      const chosen = input.value.trim();
      input.remove();
      link.hidden = false;
      if (save && chosen && chosen !== title) await this.#renamed(row, chosen, title);
      link.focus();
    };
    input.addEventListener("keydown", (event) => {
      if (event.key === "Enter") close(true);
      else if (event.key === "Escape") close(false);
      else return;
      event.stopPropagation();
      event.preventDefault();
    });
    input.addEventListener("blur", () => close(true));
  }

  async #renamed(row, title, before) {
    const name = row.querySelector("a span");
    const show = (text) => {
      name.textContent = text;
      row.querySelector("[data-session-menu]").setAttribute("aria-label", `More for ${text}`);
      if (row.dataset.session === this.main.dataset.session) this.dispatchEvent(new CustomEvent("renamed", { detail: text }));
    };
    show(title);
    try {
      await call("PATCH", `/api/sessions/${row.dataset.session}`, { title });
      this.dispatchEvent(new CustomEvent("changed"));
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      show(before);
      this.dispatchEvent(new CustomEvent("trouble", { detail: wordsFor(error.code).headline }));
    }
  }

  async #delete(row) {
    const title = row.querySelector("a span").textContent;
    const sure = await confirmed({
      title: `Delete “${title}”?`,
      text: "The conversation is deleted for good. Memories that came from it stay.",
      action: "Delete session",
    });
    if (!sure) return;
    try {
      await call("DELETE", `/api/sessions/${row.dataset.session}`);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.dispatchEvent(new CustomEvent("trouble", { detail: wordsFor(error.code).headline }));
      return;
    }
    this.dispatchEvent(new CustomEvent("changed"));
    if (row.dataset.session === this.main.dataset.session) location.href = "/";
    else await this.refresh();
  }

  #installDrawer() {
    const opener = document.querySelector(".topbar__menu");
    const scrim = document.querySelector(".scrim");
    const set = (open) => {
      this.aside.toggleAttribute("data-open", open);
      opener.setAttribute("aria-expanded", String(open));
      scrim.hidden = !open;
      this.main.inert = document.querySelector(".topbar").inert = open;
      (open ? this.aside.querySelector("button") : opener).focus();
    };
    opener.addEventListener("click", () => set(true));
    scrim.addEventListener("click", () => set(false));
    this.aside.querySelector(".sessions__close button").addEventListener("click", () => set(false));
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && this.aside.hasAttribute("data-open")) set(false);
    });
  }
}
