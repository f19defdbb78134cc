// Consolidation: its progress, the cost of a rebuild, and stopping it. Polled only while it is running.

import { attempt, call, tryFragment } from "../gateway/api.js";

const OPEN = new Set(["scheduled", "running", "paused"]);
const PAUSE = 3000;
const LONGEST = 30000;

export class Panel {
  constructor(root, documents) {
    this.root = root;
    this.documents = documents;
    this.force = false;
    this.pause = PAUSE;
    root.addEventListener("click", (event) => {
      const button = event.target.closest("button, [data-document]");
      if (!button) return;
      if (button.matches("[data-document]")) {
        event.preventDefault();
        documents.open(button.dataset.document, button);
      } else if (button.matches("[data-edit-document]")) documents.open(button.dataset.editDocument, button, "edit");
      else if (button.matches("[data-preview]")) attempt(this.root, button, () => this.#preview());
      else if (button.matches("[data-not-now]")) this.#hide();
      else if (button.matches("[data-rebuild]")) attempt(this.root, button, () => this.#rebuild());
      else if (button.matches("[data-stop]")) attempt(this.root, button, () => this.#stop(button.dataset.stop));
    });
    root.addEventListener("change", (event) => {
      if (!event.target.matches("[data-choose-book]")) return;
      root.dataset.book = event.target.value;
      window.history.replaceState(null, "", `?book=${encodeURIComponent(root.dataset.book)}`);
      this.refresh("[data-choose-book]");
    });
    documents.addEventListener("changed", () => this.refresh());
    this.#watch();
  }

  get book() {
    return this.root.dataset.book;
  }

  // `focus`: selector of the element to focus afterwards; by default, the one that had the focus.
  async refresh(focus = "") {
    if (this.root.querySelector("#preview:not([hidden])") && !focus) return; // the preview is open
    const nodes = await tryFragment(`/fragments/consolidation/?book=${encodeURIComponent(this.book)}`);
    if (nodes) {
      const held = this.root.contains(document.activeElement) ? sameAs(document.activeElement) : "";
      this.root.replaceChildren(nodes);
      if (held || focus) (this.root.querySelector(focus || held) ?? this.root.querySelector("button, a"))?.focus();
    }
    this.#watch();
  }

  #watch() {
    clearTimeout(this.timer);
    if (!OPEN.has(this.root.querySelector("[data-state]").dataset.state)) {
      this.pause = PAUSE;
      return;
    }
    this.timer = setTimeout(() => this.refresh(), this.pause);
    this.pause = Math.min(LONGEST, this.pause * 1.3);
  }

  async #preview() {
    const found = await call("POST", "/api/consolidations", { book: this.book, dry_run: true });
    const preview = this.root.querySelector("#preview");
    const nothing = !found.sessions_total && !found.synthesis;
    this.force = nothing;
    const again = nothing ? " “Rebuild anyway” writes the documents again from the same notes." : "";
    preview.querySelector("[data-text]").textContent = found.text + again;
    preview.querySelector("[data-rebuild]").textContent = nothing ? "Rebuild anyway" : "Rebuild now";
    preview.hidden = false;
    this.root.querySelector("[data-preview]").setAttribute("aria-expanded", "true");
    preview.querySelector("[data-rebuild]").focus();
  }

  #hide() {
    const opener = this.root.querySelector("[data-preview]");
    this.root.querySelector("#preview").hidden = true;
    opener.setAttribute("aria-expanded", "false");
    opener.focus();
  }

  async #rebuild() {
    await call("POST", "/api/consolidations", { book: this.book, force: this.force });
    this.#hide();
    this.pause = PAUSE;
    await this.refresh("[data-stop]");
  }

  async #stop(id) {
    await call("POST", `/api/consolidations/${id}/stop`, {});
    await this.refresh("[data-preview]");
  }
}

// Returns a selector that finds the focused element again after the panel was rendered.
function sameAs(element) {
  const name = element.getAttribute("aria-label");
  if (name) return `[aria-label="${CSS.escape(name)}"]`;
  const part = element.getAttributeNames().find((attribute) => attribute.startsWith("data-"));
  return part ? `[${part}="${CSS.escape(element.getAttribute(part))}"]` : "button";
}
