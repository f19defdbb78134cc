// The conversation on the page: turns as sections of the log, streamed answers, and the reader's place in it.

import { ApiError, call, comesBack, fragment, tryFragment } from "./api.js";
import { from, merge, replaceFrom, replaceTurn, takeBack } from "./branches.js";
import { countDown, isBusy } from "./busy.js";
import { addCopyButtons } from "./copy.js";
import { refusalOf } from "./errors.js";
import { keepOpen } from "./fold.js";
import { placeNamed } from "./found.js";
import { focusOf } from "./kept_selection.js";
import { LiveAnswer } from "./live_answer.js";
import { LiveSteps } from "./live_steps.js";
import { append, liveTurn } from "./live_turn.js";
import { Place } from "./place.js";
import { followTurn, startTurn, stopTurn } from "./stream.js";

// Placeholders for ids in the URL patterns that the server writes into the page.
const NO_SESSION = "00000000-0000-0000-0000-000000000000";
const NO_TURN = "11111111-1111-1111-1111-111111111111";

export class Conversation extends EventTarget {
  // `ensureSession` creates the session, if there is none yet; what it throws refuses the message.
  constructor(main, ensureSession) {
    super();
    this.main = main;
    this.ensureSession = ensureSession;
    this.place = new Place(main.querySelector("#log"), main.querySelector("#new-text"));
    this.ledger = main.querySelector("#ledger");
    this.status = main.querySelector("#status");
    this.current = null; // {section, turn, begun} of the answer in progress
    addCopyButtons(this.ledger);
    this.named = placeNamed(this.ledger);
    if (this.named) this.named.scrollIntoView({ block: this.named.matches("mark") ? "center" : "start" });
    else if (this.session) this.place.toEnd();
  }

  get session() {
    return this.main.dataset.session;
  }

  get answering() {
    return this.current !== null;
  }

  get last() {
    return [...this.ledger.querySelectorAll("[data-last]:not([data-refused])")].at(-1);
  }

  // The last turn that is shown, without commands and messages that did not arrive.
  get lastTurn() {
    return [...this.ledger.querySelectorAll('.turn:not([data-refused], [data-command], [data-turn=""])')].at(-1);
  }

  // The link to later turns, at the place of a search.
  get later() {
    return this.ledger.querySelector("[data-later]");
  }

  get lastSaid() {
    return this.last?.querySelector("[data-said]")?.content.textContent ?? "";
  }

  // Texts of messages that the server does not have: they are being sent, or were refused.
  get unsent() {
    const sections = [...this.ledger.querySelectorAll(".turn[data-turn='']")]; // those of imported sessions are empty, too
    return sections.map(({ unsent }) => (unsent?.again ? "" : unsent?.content));
  }

  // Sends a message and shows its answer. `again`: the message of the turn to replace; `edited`: its new text. Both keep
  // the attachments. Resolves when the answer is complete, was refused, or broke off.
  async send(content, { attached = [], ...rest } = {}) {
    const { replaces = null, again = false, edited = false, attempt = 0 } = rest;
    const options = { ...rest, attached };
    const section = this.#liveTurn({ content, attached, again }, replaces);
    this.dispatchEvent(new CustomEvent("sent"));
    const parts = [...(content ? [{ type: "text", text: content }] : []), ...attached.map(({ part }) => part)];
    const said = again ? {} : { content: attached.length ? parts : content, keep_attached: edited };
    const body = { ...said, replaces, last_turn: section.lastTurn };
    try {
      const last = await this.#run(section, this.#started(body));
      if (last?.type !== "error" || !isBusy(last.data.code, attempt)) return;
      const { turn } = last;
      if (await this.#later(this.#shown(turn), last.data.details?.retry_after)) await this.send(content, { replaces: turn, again: true, attempt: attempt + 1 });
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.#refuse(section, content, options, error);
      if (section.dataset.turn || !isBusy(error.code, attempt)) return;
      if (await this.#later(section, error.retryAfter)) await this.send(content, { ...options, attempt: attempt + 1 });
    }
  }

  async *#started(body) {
    await this.ensureSession();
    yield* startTurn(this.session, body);
  }

  // Follows a running answer that this page did not start, or lost the connection to.
  resume() {
    const section = this.ledger.querySelector('.turn[data-state="running"]');
    if (!section) return;
    this.#run(section, followTurn(this.session, section.dataset.turn)).catch((error) => this.#refuse(section, "", null, error));
  }

  // The server says which turn is the newest. A hidden page catches up when it is shown, and an answer in progress says
  // itself when it is over.
  async hear(turn) {
    await this.current?.begun; // it may be the turn that this page is starting
    const shown = this.lastTurn?.dataset;
    const isShown = shown?.turn === turn?.id && (shown?.state === turn?.state || (this.answering && this.current.turn === turn?.id));
    return document.hidden || isShown ? false : this.catchUp();
  }

  // Shows what another device or client has changed in this session. Resolves to whether anything is new.
  async catchUp() {
    if (!this.session) return false;
    this.behind = this.fetching || this.#mustStay();
    if (this.behind) return false;
    const since = this.lastTurn?.dataset.turn;
    const nodes = await this.#fetched(this.#turnsUrl(since));
    const isStale = this.#mustStay() || this.lastTurn?.dataset.turn !== since;
    const isNew = nodes !== null && !isStale && this.#merge(nodes); // also if there is more to load: that may go on for long
    this.behind ||= isStale;
    return (this.behind && (await this.catchUp())) || isNew;
  }

  // Shows the turns of a fragment that are new, without touching the others. Returns whether there are any.
  #merge(nodes) {
    const focus = focusOf(this.ledger);
    if (!merge(this.ledger, nodes)) return false;
    const newest = [...this.ledger.querySelectorAll(".turn:not([data-refused])")].at(-1);
    if (newest) {
      newest.dataset.last = "";
      this.#makeLast(newest);
      this.#settled(newest);
    }
    addCopyButtons(this.ledger);
    focus();
    this.place.keep();
    this.resume();
    return true;
  }

  // Whether the turns must stay as they are: an answer, turns that a refused edit is to replace, or the place of a search
  // would be lost.
  #mustStay() {
    const refused = [...this.ledger.querySelectorAll("[data-refused]")];
    return this.answering || this.choosing || refused.some(({ leaving }) => leaving) || this.later !== null;
  }

  // Shows another version of a turn and the turns after it, without moving what is above.
  async choose(section, turn) {
    if (this.answering || this.choosing) return;
    this.choosing = true;
    try {
      await call("POST", `/api/sessions/${this.session}/turns/${turn}/choose`, {});
      const nodes = await fragment(this.#turnsUrl(turn));
      this.#takeBackRefused();
      this.#showFrom(turn, nodes, section);
      this.place.look();
      this.#chosen(turn);
    } finally {
      this.choosing = false;
      if (this.behind) this.catchUp();
    }
  }

  #chosen(turn) {
    const versions = this.#shown(turn)?.querySelector(".versions");
    if (!versions) return;
    versions.querySelector("button:enabled").focus({ preventScroll: true });
    this.status.textContent = `Version ${versions.querySelector(".versions__place").textContent.replace("/", " of ")}`;
  }

  #turnsUrl(since) {
    const path = this.main.dataset.turnsUrl.replace(NO_SESSION, this.session);
    return since ? `${path}?since=${since}` : path;
  }

  // Shows a turn and those after it, in place of a section and those after that; or all, if the server sent all.
  #showFrom(turn, nodes, section = this.#shown(turn)) {
    keepOpen(this.ledger, nodes);
    const focus = focusOf(this.ledger);
    if (turn && nodes.querySelector(`[data-turn="${CSS.escape(turn)}"]`)) replaceFrom(section, nodes);
    else this.ledger.replaceChildren(nodes);
    this.#settled(this.ledger);
    window.htmx?.process(this.ledger);
    focus();
  }

  // Only one check at a time, since two would both start to follow the same answer. Null if it failed: the next return to
  // the page tries again.
  async #fetched(path) {
    this.fetching = true;
    try {
      return await tryFragment(path);
    } finally {
      this.fetching = false;
    }
  }

  // Stops the answer in progress, if necessary once its turn is known.
  async stop() {
    const { current } = this;
    await current?.begun;
    if (current?.turn && current === this.current) await stopTurn(this.session, current.turn);
  }

  // Renders a turn again; what is being edited in it keeps its text.
  async refresh(turn) {
    const section = this.#shown(turn);
    if (section) await this.#replaceWithServers(section, turn);
  }

  #shown(turn) {
    return this.ledger.querySelector(`[data-turn="${CSS.escape(turn)}"]`);
  }

  turnUrl(turn) {
    return this.main.dataset.turnUrl.replace(NO_SESSION, this.session).replace(NO_TURN, turn);
  }

  #liveTurn(unsent, replaces) {
    const section = liveTurn(unsent.content, unsent.attached, this.main.dataset.timeZone);
    section.unsent = unsent;
    this.#takeBackRefused(unsent);
    // At the place of a search, later turns are known not to be shown.
    section.lastTurn = this.later ? undefined : (this.lastTurn?.dataset.turn ?? "");
    const replaced = replaces && this.#shown(replaces);
    const kept = replaced && replaced.querySelector(".attached:not([hidden])");
    if (kept) section.querySelector("[data-attached]").replaceWith(kept.cloneNode(true));
    this.#put(section, replaced);
    this.place.toEnd();
    return section;
  }

  // Inserts the section in place of the turn it replaces and all turns after that, or at the end.
  #put(section, replaced) {
    if (!replaced) return append(this.ledger, section, this.main.dataset.timeZone);
    section.leaving = from(replaced);
    replaced.before(section);
    for (const node of section.leaving) node.remove();
  }

  // When a turn has started, earlier turns are no longer the last one, and the replaced turns are dropped.
  #makeLast(section) {
    section.leaving = null;
    for (const before of this.ledger.querySelectorAll("[data-last]:not([data-refused])")) {
      if (before !== section) delete before.dataset.last;
    }
  }

  async #run(section, events) {
    let begin;
    const begun = new Promise((resolve) => (begin = resolve));
    this.current = { section, turn: section.dataset.turn || null, begun };
    if (this.current.turn) begin();
    this.status.textContent = "Answering";
    this.dispatchEvent(new CustomEvent("answering"));
    const answer = new LiveAnswer(section, { onDrawn: () => this.place.keep() });
    const steps = new LiveSteps(section, (words) => answer.say(words));
    try {
      for await (const event of events) {
        if (event.type === "started") {
          const ours = !section.dataset.turn;
          this.current.turn = section.dataset.turn = event.data.turn.id;
          begin();
          this.#makeLast(section);
          if (ours) this.dispatchEvent(new CustomEvent("started", { detail: event.data.turn }));
        }
        answer.show(event);
        steps.show(event);
        if (event.type === "done" || event.type === "error") {
          answer.end();
          await this.#replaceWithServers(section, this.current.turn);
          await this.#showLater();
          const failure = this.#shown(this.current.turn)?.querySelector("[data-failure]")?.textContent ?? "No answer";
          const words = event.data.state === "stopped" ? "Answer stopped" : "Answer complete";
          this.status.textContent = event.type === "done" ? words : failure;
          this.dispatchEvent(new CustomEvent("complete", { detail: event.data }));
          return { ...event, turn: this.current.turn };
        }
      }
    } finally {
      steps.end();
      begin(); // a refused turn cannot be stopped
      this.current = null;
      this.dispatchEvent(new CustomEvent("idle"));
      if (this.behind) this.catchUp();
    }
  }

  // After a message from the place of a search, shows the turns between them.
  async #showLater() {
    const since = this.later?.previousElementSibling.dataset.turn;
    const nodes = since && (await this.#fetched(this.#turnsUrl(since)));
    if (!nodes) return;
    this.#showFrom(since, nodes);
    this.place.keep();
  }

  async #replaceWithServers(section, turn) {
    const nodes = await this.#rendered(turn);
    if (section.querySelector("[data-memory-editor]")) {
      section.dataset.outdated = ""; // rendered when the editor is closed
      return;
    }
    delete section.dataset.outdated;
    const { following } = this.place;
    const focus = focusOf(this.ledger);
    this.#settled(replaceTurn(section, nodes));
    focus();
    if (following) this.place.toEnd();
  }

  // A turn may end because the server restarts; retry until the server is back.
  async #rendered(turn) {
    for (let failures = 1; ; failures += 1) {
      try {
        return await fragment(this.turnUrl(turn));
      } catch (error) {
        if (!(await comesBack(error, failures))) throw error;
      }
    }
  }

  #settled(section) {
    addCopyButtons(section);
    if (section.dataset?.fill) this.dispatchEvent(new CustomEvent("fill", { detail: Number(section.dataset.fill) }));
  }

  // Nothing was started: the message stays on the page, and can be sent again or taken back.
  #refuse(section, content, options, error) {
    const refusal = refusalOf(error);
    section.querySelector("[data-answer]")?.replaceWith(refusal);
    section.dataset.state = "failed";
    this.status.textContent = "No answer";
    const again = refusal.querySelector("[data-send-again]");
    const back = refusal.querySelector("[data-take-back]");
    const turn = section.dataset.turn;
    if (turn) {
      // It started, but the connection was lost: check before anything is sent twice.
      again.addEventListener("click", () => this.catchUp());
      back.remove();
      return;
    }
    section.dataset.refused = "";
    again.addEventListener("click", () => {
      if (this.answering) this.dispatchEvent(new CustomEvent("busy"));
      else this.send(content, { ...options, attempt: 0 });
    });
    back.addEventListener("click", () => {
      this.#takeBack(section, true);
      if (this.behind) this.catchUp();
    });
    if (["conflict", "not_found"].includes(error.code)) this.catchUp(); // with another device, or it deleted that version
  }

  // Takes back messages that were refused, before another one is sent.
  #takeBackRefused({ content, attached } = {}) {
    for (const refused of this.ledger.querySelectorAll("[data-refused]")) {
      const { unsent } = refused;
      this.#takeBack(refused, !unsent.again && (unsent.content !== content || unsent.attached.some((file) => !attached.includes(file))));
    }
  }

  // Removes a refused message. It is written again in the composer, unless it is being sent again.
  #takeBack(section, isKept) {
    takeBack(section);
    if (isKept) this.dispatchEvent(new CustomEvent("taken-back", { detail: section.unsent }));
  }

  // The error counts down to a retry, unless its buttons, another message or another tab come first.
  #later(section, seconds) {
    const rest = section?.querySelector("[data-rest]");
    if (!rest) return false;
    const turn = this.lastTurn?.dataset.turn;
    return countDown(rest, seconds, () => rest.isConnected && this.lastTurn?.dataset.turn === turn && !this.answering && !section.querySelector(".editor"));
  }
}
