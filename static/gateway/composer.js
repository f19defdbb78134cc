// The composer: Enter sends, drafts are stored in this browser, agent and Temporary can be chosen for a new session.

import { Attachments } from "./attachments.js";
import { draftOf, keepDraft } from "./drafts.js";
import { element } from "./parts.js";

const CLOSED = {
  ended: "This session has ended. Its messages stay.",
  deleted: "This session was deleted elsewhere.",
};

export class Composer extends EventTarget {
  constructor(form, main, conversation) {
    super();
    this.form = form;
    this.main = main;
    this.conversation = conversation;
    this.area = form.querySelector("#message");
    this.agent = form.querySelector("#agent");
    this.temporary = form.querySelector("#temporary");
    this.sendButton = form.querySelector("#send");
    this.stopButton = form.querySelector("#stop");
    this.ask = form.querySelector("#ask");
    this.attachments = new Attachments(form);
    this.offline = false;
    this.closed = "ended" in main.dataset ? "ended" : "";
    this.waiting = null; // sends the message once its files are read
    this.#install();
    // Text typed before the script was loaded takes precedence over the draft.
    this.text = this.text || this.#leftDraft(conversation.lastSaid);
    this.keepDraft();
    this.setOffline(false);
  }

  get text() {
    return this.area.value;
  }

  set text(value) {
    this.area.value = value;
    this.#changed();
  }

  get session() {
    return this.main.dataset.session;
  }

  #install() {
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.submit();
    });
    this.area.addEventListener("input", () => {
      this.keepDraft();
      this.ask.querySelector("[data-too-long]")?.remove();
      this.#changed();
    });
    this.area.addEventListener("keydown", (event) => {
      if (event.defaultPrevented || event.isComposing) return;
      if (event.key === "Enter" && !event.shiftKey && !event.ctrlKey && !event.metaKey && !event.altKey) {
        event.preventDefault();
        this.submit();
      } else if (event.key === "ArrowUp" && !this.text) {
        event.preventDefault();
        this.dispatchEvent(new CustomEvent("edit-last"));
      }
    });
    addEventListener("pageshow", ({ persisted }) => persisted && draftOf(this.session)); // it was handed over
    this.attachments.addEventListener("changed", () => {
      const submit = this.waiting;
      this.waiting = null;
      submit?.();
    });
    this.attachments.addEventListener("trouble", () => (this.waiting = null));
    this.attachments.addEventListener("removed", () => this.area.focus());
    this.stopButton.addEventListener("click", () => this.dispatchEvent(new CustomEvent("stop")));
    this.agent.addEventListener("change", () => this.#chosen({ agent: this.agent.value }));
    this.temporary.addEventListener("change", () => this.#chosen({ temporary: this.temporary.checked }));
  }

  // Sends the text of the composer, or the one given. It waits for files that are being read, and is not sent without one
  // that is refused.
  submit(given) {
    const text = (given ?? this.text).trim();
    if (this.attachments.reading) {
      this.waiting = () => this.submit(given);
      return;
    }
    if (!(text || this.attachments.items.length) || this.answering || this.offline || this.closed || this.#isTooLong(text)) return;
    this.dispatchEvent(new CustomEvent("send", { detail: text }));
  }

  // The server would refuse a longer text (it counts code points). It stays in the composer to be shortened.
  #isTooLong(text) {
    const most = Number(this.area.dataset.longest);
    const size = text.length > most ? [...text].length : 0;
    if (size <= most) return false;
    const number = new Intl.NumberFormat("en");
    const words = element("span", { textContent: `This message has ${number.format(size)} characters; at most ${number.format(most)} can be sent. Shorten it, or send it in parts.` });
    words.dataset.tooLong = "";
    this.ask.replaceChildren(words);
    return true;
  }

  // Removes the sent text, but not what was typed meanwhile. Returns its attachments.
  take(sent) {
    const typed = this.text.trim();
    if (typed.startsWith(sent)) this.text = typed.slice(sent.length).trimStart();
    return this.attachments.take();
  }

  // Restores a text before what has been typed since.
  putBack(text, attached) {
    this.text = [text, this.text].filter(Boolean).join("\n\n");
    this.keepDraft();
    this.attachments.putBack(attached);
    this.area.focus();
  }

  // Messages that the server does not have, and what has been typed since.
  get draft() {
    return [...this.conversation.unsent, this.text].filter(Boolean).join("\n\n");
  }

  keepDraft() {
    keepDraft(this.session, this.draft);
  }

  // Without the last message of the session: it arrived, although the page was left before it knew that.
  #leftDraft(said) {
    const draft = draftOf(this.session);
    return said && `${draft.trimEnd()}\n\n`.startsWith(`${said}\n\n`) ? draft.slice(said.length).trimStart() : draft;
  }

  // Shows what the session was created with, since another choice may have been made meanwhile.
  beginSession({ agent, temporary }) {
    this.agent.value = agent;
    this.temporary.checked = temporary;
    this.#apply();
    keepDraft("", "");
    this.keepDraft();
  }

  setAnswering(answering) {
    this.answering = answering;
    const hadFocus = document.activeElement === this.stopButton || document.activeElement === this.sendButton;
    this.sendButton.hidden = answering;
    this.stopButton.hidden = !answering;
    if (hadFocus) (answering ? this.stopButton : this.area).focus();
  }

  setOffline(offline) {
    this.offline = offline;
    this.sendButton.disabled = offline || this.closed !== "";
  }

  // Another device ended or deleted the session, or restored it (""). What is written here can still be copied.
  setClosed(closed) {
    if (closed === this.closed) return;
    this.closed = closed;
    this.setOffline(this.offline);
    this.ask.replaceChildren();
    if (closed) this.ask.append(element("span", { textContent: CLOSED[closed] }), element("a", { className: "btn btn--small", href: "/new/", textContent: "New session" }));
  }

  setFill(percent) {
    const fill = this.form.querySelector("#fill");
    fill.dataset.fill = String(percent);
    fill.classList.toggle("fill--near", percent >= 80);
    fill.querySelector(".bar__fill").setAttribute("width", String(Math.min(99.6, percent)));
    fill.querySelector("[data-percent]").textContent = String(percent);
    for (const words of this.form.querySelectorAll("[data-near]")) words.hidden = percent < 80;
  }

  // In an existing session, another agent or Temporary requires a new session: ask before changing anything.
  #chosen(choice) {
    if (!this.session) {
      this.#apply();
      return;
    }
    const agent = choice.agent ?? this.main.dataset.agent;
    const temporary = choice.temporary ?? "temporary" in this.main.dataset;
    if (agent === this.main.dataset.agent && temporary === "temporary" in this.main.dataset) {
      this.#askNothing();
      return;
    }
    const what = choice.agent ? `This starts a new session with ${agent}.` : temporary ? "This starts a new, temporary session." : "This starts a new session that may use memories.";
    const button = (textContent, className, onclick) => element("button", { type: "button", textContent, className, onclick });
    const start = button("Start it", "btn btn--small", () => {
      keepDraft("", this.draft);
      keepDraft(this.session, "");
      location.href = `/new/?${new URLSearchParams({ agent, ...(temporary && { temporary: "1" }) })}`;
    });
    const stay = button("Stay here", "link", () => this.#askNothing());
    this.ask.replaceChildren(element("span", { textContent: what }), start, stay);
  }

  #askNothing() {
    this.ask.replaceChildren();
    this.agent.value = this.main.dataset.agent;
    this.temporary.checked = "temporary" in this.main.dataset;
    this.area.focus();
  }

  #apply() {
    this.main.dataset.agent = this.agent.value;
    this.main.toggleAttribute("data-temporary", this.temporary.checked);
    document.body.classList.toggle("is-temporary", this.temporary.checked);
    document.getElementById("temporary-line").hidden = !this.temporary.checked;
    this.area.placeholder = `Message ${this.agent.value}`;
    this.area.setAttribute("aria-label", `Message to ${this.agent.value}`);
  }

  #changed() {
    if (!CSS.supports("field-sizing", "content")) {
      this.area.style.height = "auto";
      this.area.style.height = `${this.area.scrollHeight}px`;
    }
    this.dispatchEvent(new CustomEvent("changed"));
  }
}
