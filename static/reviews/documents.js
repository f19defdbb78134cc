// The drawer of a document: reading, editing and history. It replaces the panel; on narrow pages it covers everything, and
// the page behind it is inert.

import { attempt, call, request, tryFragment } from "../gateway/api.js";
import { confirmed } from "../gateway/shell.js";

const OVER = matchMedia("(max-width: 74.99rem)");

export class Documents extends EventTarget {
  constructor(drawer, panel) {
    super();
    this.drawer = drawer;
    this.panel = panel;
    this.opener = "";
    this.asked = 0;
    drawer.addEventListener("click", (event) => {
      const button = event.target.closest("button, [data-close]");
      if (!button) return;
      if (button.matches("[data-close]")) {
        event.preventDefault();
        this.#leave();
      } else if (button.matches("[data-document]")) this.#load(button.dataset.document);
      else if (button.matches("[data-edit-document]")) this.#load(button.dataset.editDocument, "edit");
      else if (button.matches("[data-document-history]")) this.#load(button.dataset.documentHistory, "history");
      else if (button.matches("[data-restore-document]")) this.#restore(button);
    });
    drawer.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#save(event.target);
    });
    drawer.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) drawer.querySelector("form")?.requestSubmit();
    });
    document.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || drawer.hidden || document.querySelector("dialog[open]")) return;
      if (!OVER.matches && !drawer.contains(document.activeElement)) return;
      event.preventDefault(); // it would also close the dialog that this opens
      this.#leave();
    });
    window.addEventListener("popstate", () => {
      const path = addressed();
      if (path && drawer.hidden) this.#load(path);
      else if (!path && !drawer.hidden) this.#leave();
    });
    OVER.addEventListener("change", () => this.#rest());
    this.#rest();
  }

  open(path, button, view = "") {
    this.opener = button.getAttribute("aria-label") ? `[aria-label="${CSS.escape(button.getAttribute("aria-label"))}"]` : `[data-document="${CSS.escape(path)}"]`;
    return this.#load(path, view);
  }

  // Closes the drawer, unless it has unsaved text that the person wants to keep.
  async #leave() {
    const area = this.drawer.querySelector("textarea");
    const discard = { title: "Discard your changes?", text: "What you wrote in this document is not saved.", action: "Discard" };
    if (!area || area.value === area.defaultValue || (await confirmed(discard))) this.#close();
    else {
      area.focus();
      this.#address(area.form.dataset.documentForm); // which Back has left
    }
  }

  #close() {
    this.asked += 1;
    this.drawer.hidden = true;
    this.drawer.replaceChildren();
    this.#rest();
    this.panel.querySelector(this.opener || "[data-document]")?.focus();
    this.#address("");
  }

  // Shown only if the drawer was neither closed nor asked for something else meanwhile.
  async #load(path, view = "") {
    this.asked += 1;
    const mine = this.asked;
    const nodes = await tryFragment(`/fragments/document/?book=${this.#book}&path=${encodeURIComponent(path)}&view=${view}`);
    if (mine !== this.asked) return;
    if (!nodes) {
      if (!this.drawer.hidden) this.#close();
      return;
    }
    this.drawer.replaceChildren(nodes);
    this.drawer.hidden = false;
    this.#rest();
    this.#address(path);
    (this.drawer.querySelector("textarea") ?? this.drawer.querySelector("[data-close]")).focus();
    this.drawer.scrollTop = 0;
  }

  get #book() {
    return encodeURIComponent(this.panel.dataset.book);
  }

  // Opening a document adds a step to the browser's history, and closing it goes back that step.
  #address(path) {
    const query = new URLSearchParams({ book: this.panel.dataset.book, ...(path && { doc: path }) });
    if (path && !addressed()) window.history.pushState({ opened: true }, "", `?${query}`);
    else if (!path && addressed() && window.history.state?.opened) window.history.back();
    else window.history.replaceState(window.history.state, "", `?${query}`);
  }

  async #save(form) {
    const path = form.dataset.documentForm;
    const content = form.elements.content.value;
    await attempt(this.drawer, form.querySelector("[type=submit]"), async () => {
      if (!(await this.#put(path, content, form.dataset.version))) return;
      if (content.trim()) await this.#load(path);
      else this.#close();
    });
  }

  async #restore(button) {
    const steps = this.drawer.querySelector("[data-document-steps]");
    const path = steps.dataset.documentSteps;
    await attempt(this.drawer, button, async () => {
      const query = `book=${this.#book}&path=${encodeURIComponent(path)}&revision=${button.dataset.restoreDocument}`;
      const content = await (await request("GET", `/fragments/document/?${query}`)).text();
      if (await this.#put(path, content, steps.dataset.version)) await this.#load(path, "history");
    });
  }

  // Returns whether the drawer was neither closed nor asked for something else meanwhile.
  async #put(path, content, version) {
    const { asked } = this;
    const headers = { "If-Match": `"${version}"` };
    const place = path.split("/").map(encodeURIComponent).join("/");
    await call("PUT", `/api/books/${this.#book}/artifacts/${place}`, { content }, { headers });
    this.dispatchEvent(new CustomEvent("changed"));
    return asked === this.asked;
  }

  #rest() {
    const open = !this.drawer.hidden;
    this.panel.hidden = open && !OVER.matches;
    for (const part of [document.querySelector(".topbar"), this.drawer.previousElementSibling, this.panel]) part.inert = open && OVER.matches;
  }
}

// Returns the path of the document that the page's address names, or null.
function addressed() {
  return new URLSearchParams(location.search).get("doc");
}
