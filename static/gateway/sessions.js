// The list of sessions and its search results: a single tab stop, arrow keys inside, a drawer on phones.

import { tryFragment } from "./api.js";
import { element } from "./parts.js";
import { SessionActions } from "./session_actions.js";
import { TAB, keep, recall } from "./storage.js";

const LIST_URL = "/fragments/sessions/";
const LEFT = `session-list:${document.body.dataset.owner}`; // how the last page of this tab left the list
const NARROW = matchMedia("(max-width: 47.99rem)");

export class SessionList extends EventTarget {
  constructor(main) {
    super();
    this.main = main;
    this.aside = document.getElementById("sessions");
    this.list = document.getElementById("session-list");
    this.search = this.aside.querySelector("[name=q]");
    this.tag = document.getElementById("session-tag");
    this.archived = "";
    this.opened = ""; // the path of the session whose link was clicked
    this.asked = 0;
    this.outdated = false; // not rendered again because a name is being edited
    this.actions = new SessionActions(this);
    this.#installList();
    this.#installDrawer();
    this.#oneTabStop();
    this.#showCurrent();
    this.#comeBack();
    addEventListener("pagehide", () => keep(LEFT, JSON.stringify(this.#state), TAB));
  }

  // Renders the list again, with as many sessions as are shown. It stays as it is while the server is unreachable.
  async refresh({ q, tag, archived, n } = this.#state) {
    this.asked += 1;
    const mine = this.asked;
    const query = new URLSearchParams({ q, tag, archived, n, current: this.main.dataset.session });
    const nodes = await tryFragment(`${LIST_URL}?${query}`);
    if (!nodes || mine !== this.asked) return;
    this.outdated = this.list.querySelector(".session input") !== null;
    if (this.outdated) return;
    const focused = this.list.contains(document.activeElement) ? document.activeElement : null;
    const session = focused?.closest(".session")?.dataset.session;
    this.list.replaceChildren(nodes);
    window.htmx?.process(this.list);
    this.#listed();
    if (session) this.focusRow(session, focused.matches("[data-session-menu]") ? "[data-session-menu]" : "a");
  }

  get #state() {
    const n = this.list.querySelectorAll(".session:not([data-pinned])").length;
    const next = this.opened || location.pathname; // the page is left for this one, or loaded again
    return { q: this.search.value, tag: this.tag.value, archived: this.archived, n, top: this.list.scrollTop, next };
  }

  #showCurrent() {
    this.list.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
  }

  // Shows the list as the last page of this tab left it: its filters, and the pages that were loaded. A search stays while
  // its results are opened one after another. A new session begins with the whole list, in which it will appear.
  async #comeBack() {
    const left = JSON.parse(recall(LEFT, TAB));
    if (!left || !this.main.dataset.session) return;
    const isBack = performance.getEntriesByType("navigation")[0]?.type === "back_forward"; // now and then there is no entry
    if (left.q && !isBack && left.next !== location.pathname) return;
    this.search.value = left.q;
    this.tag.value = this.knownTags().includes(left.tag) ? left.tag : "";
    this.archived = left.archived;
    if (left.q || left.tag || left.archived || left.n > this.#state.n) {
      this.list.style.visibility = "hidden"; // other rows would be under the pointer first
      await this.refresh({ ...this.#state, n: left.n });
      this.list.style.visibility = "";
    }
    this.list.scrollTop = left.top;
    this.#showCurrent();
  }

  // Focuses a session's link or another part of it; the first session's, if it is no longer listed.
  focusRow(session, part = "a") {
    const row = this.list.querySelector(`[data-session="${CSS.escape(session)}"]`) ?? this.list;
    (row.querySelector(part) ?? this.search).focus();
  }

  // Marks the sessions that a review is reading.
  showReviews(sessions) {
    for (const row of this.list.querySelectorAll(".session")) {
      const reviewing = sessions.has(row.dataset.session);
      const dot = row.querySelector("[data-review-dot]");
      dot.hidden = !reviewing;
      row.querySelector("[data-review-words]")?.remove();
      if (reviewing) {
        const words = element("span", { className: "vh", textContent: "Review in progress" });
        words.dataset.reviewWords = "";
        dot.after(words);
      }
    }
  }

  // Returns the owner's tags from the last rendering of the list.
  knownTags() {
    return [...this.tag.options].map((option) => option.value).filter(Boolean);
  }

  #takeTags() {
    const known = this.list.querySelector("[data-known-tags]");
    if (!known) return;
    const chosen = this.tag.value;
    const names = [...new Set([...[...known.options].map((option) => option.value), chosen])].filter(Boolean).sort();
    if (names.join() !== this.knownTags().join()) {
      this.tag.replaceChildren(new Option("All tags", ""), ...names.map((name) => new Option(name, name, false, name === chosen)));
    }
    this.tag.parentElement.hidden = !names.length;
  }

  #listed() {
    this.#takeTags();
    this.#oneTabStop();
    this.dispatchEvent(new CustomEvent("listed"));
  }

  #links() {
    return [...this.list.querySelectorAll(".session a")];
  }

  #oneTabStop(focused = null) {
    const links = this.#links();
    const stop = focused ?? links.find((link) => link.hasAttribute("aria-current")) ?? links[0];
    for (const link of links) link.tabIndex = link === stop ? 0 : -1;
    for (const more of this.list.querySelectorAll("[data-session-menu]")) more.tabIndex = -1;
  }

  #installList() {
    // Of the list's own requests and those of its fields, only the last one is shown.
    document.body.addEventListener("htmx:beforeRequest", ({ detail }) => {
      if (detail.target === this.list) detail.xhr.asked = this.asked += 1;
    });
    document.body.addEventListener("htmx:beforeSwap", ({ detail }) => {
      if (detail.target === this.list && detail.xhr.asked !== this.asked) detail.shouldSwap = false;
    });
    document.body.addEventListener("htmx:afterSwap", (event) => {
      if (!this.list.contains(event.target)) return;
      this.#listed();
      if (event.target !== this.list) return; // the next page of the list
      this.archived = "";
      if (this.search.value.trim()) this.#sayFound();
    });
    this.search.addEventListener("keydown", (event) => {
      if (event.key !== "ArrowDown") return;
      event.preventDefault();
      this.#links()[0]?.focus();
    });
    this.list.addEventListener("focusin", (event) => {
      const link = event.target.closest(".session a");
      if (link) this.#oneTabStop(link);
    });
    this.list.addEventListener("keydown", (event) => this.#key(event));
    this.list.addEventListener("click", (event) => {
      const more = event.target.closest("[data-session-menu]");
      if (more) this.actions.openMenu(more);
      this.opened = event.target.closest("a")?.pathname ?? "";
      if (event.target.closest("[data-clear-search]")) {
        this.search.value = "";
        this.search.focus();
        this.refresh();
      }
      if (event.target.closest("[data-clear-tag]")) {
        this.tag.value = "";
        this.tag.focus();
        this.refresh();
      }
      const archive = event.target.closest("[data-archived-list]");
      if (archive) this.#showArchived(archive.dataset.archivedList);
    });
  }

  async #showArchived(archived) {
    this.archived = archived;
    await this.refresh();
    (this.#links()[0] ?? this.list.querySelector("[data-archived-list]"))?.focus();
  }

  #sayFound() {
    const count = this.list.querySelectorAll(".session").length;
    const more = this.list.querySelector(".sessions__more") ? " or more" : "";
    document.getElementById("status").textContent = `${count}${more} session${count === 1 && !more ? "" : "s"} found`;
  }

  #key(event) {
    const row = event.target.closest(".session");
    if (!row || event.target.matches("input")) return;
    const links = this.#links();
    const at = links.indexOf(event.target.closest("a") ?? row.querySelector("a"));
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: links.length - 1 }[event.key];
    if (to === -1 && this.search.value) this.search.focus();
    else if (to !== undefined) links[to]?.focus();
    else if (event.key === "ArrowRight") row.querySelector("[data-session-menu]").focus();
    else if (event.key === "ArrowLeft") row.querySelector("a").focus();
    else if ((event.key === "F10" && event.shiftKey) || event.key === "ContextMenu") this.actions.openMenu(row.querySelector("[data-session-menu]"));
    else return;
    event.preventDefault();
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
    this.closeDrawer = () => this.aside.hasAttribute("data-open") && set(false);
    opener.addEventListener("click", () => set(true));
    scrim.addEventListener("click", () => set(false));
    this.aside.querySelector(".sessions__close button").addEventListener("click", () => set(false));
    document.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || event.defaultPrevented || !this.aside.hasAttribute("data-open")) return;
      if (document.querySelector("dialog[open], :popover-open")) return; // it closes that
      event.preventDefault(); // it does not stop the answer, too
      this.closeDrawer();
    });
    NARROW.addEventListener("change", this.closeDrawer); // the device was turned
  }
}
