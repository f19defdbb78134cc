// The chat page: connects its parts.

import { call, refused } from "./api.js";
import { Composer } from "./composer.js";
import { installCommands } from "./commands.js";
import { Conversation } from "./conversation.js";
import { installCopy } from "./copy.js";
import { installEarlier } from "./earlier.js";
import { wordsFor } from "./errors.js";
import { installFolds } from "./fold.js";
import { isHelp, showHelp } from "./help.js";
import { editMessage } from "./message_editor.js";
import { installNotes } from "./notes.js";
import { SessionList } from "./sessions.js";
import { notifications, reviews, toasts } from "./shell.js";
import { onTold, tell } from "./tabs.js";
import { rememberTemporary } from "./temporary.js";

const main = document.getElementById("main");
const conversation = new Conversation(main, ensureSession);
const composer = new Composer(document.getElementById("composer"), main, conversation);
const sessions = new SessionList(main);
const editTags = document.getElementById("edit-tags");

installCommands(composer, document.getElementById("status"));
installCopy(main);
installFolds(main);
installEarlier(main, (words) => toasts.say(words));
installNotes(main, (turn) => conversation.refresh(turn));

function showTitle(title) {
  document.getElementById("session-title").textContent = title;
  document.getElementById("session-title").closest(".col").hidden = false;
  document.title = `${title} · Daybook`;
}

// The list does not have the session while it is filtered.
async function showListedTitle() {
  const listed = sessions.list.querySelector("[aria-current] span");
  if (listed) return showTitle(listed.textContent);
  if (composer.temporary.checked) return;
  await refused(async () => {
    const { title } = await call("GET", `/api/sessions/${main.dataset.session}`);
    if (title) showTitle(title);
  });
}

function showReviews() {
  document.getElementById("reviewing").hidden = !reviews.sessions.has(main.dataset.session) || conversation.answering;
  sessions.showReviews(reviews.sessions);
}

// A session is created with its first message, so that opening a page leaves nothing behind.
async function ensureSession() {
  if (main.dataset.session) return;
  const made = await call("POST", "/api/sessions", { agent: composer.agent.value, temporary: composer.temporary.checked });
  main.dataset.session = document.getElementById("current-session").value = made.id;
  if (made.temporary) rememberTemporary(made.id);
  composer.beginSession(made);
  notifications?.watch(made.id);
  editTags.disabled = false;
  history.replaceState(null, "", `/c/${made.id}/`);
}

function sayError({ code }) {
  const { headline, rest } = wordsFor(code);
  toasts.say(`${headline} ${rest}`);
}

const sayBusy = () => toasts.say("Wait until the answer is complete, or stop it.");

// Says why a button does nothing during an answer.
function isAnswering() {
  if (conversation.answering) sayBusy();
  return conversation.answering;
}

async function send(text, options = {}) {
  if (isAnswering()) return;
  const attached = options.replaces ? [] : composer.take(text);
  await conversation.send(text, { attached, ...options });
}

composer.addEventListener("send", ({ detail }) => {
  if (!isHelp(detail)) return send(detail);
  composer.text = "";
  composer.keepDraft();
  return showHelp();
});
composer.addEventListener("stop", () => stop());
composer.addEventListener("edit-last", () => edit());
composer.attachments.addEventListener("trouble", ({ detail }) => toasts.say(detail));

async function stop() {
  const error = await refused(() => conversation.stop());
  if (error) toasts.say(`It could not be stopped. ${wordsFor(error.code).headline}`);
}

function edit(section = conversation.last) {
  if (isAnswering()) return;
  if (section?.dataset.turn && section.querySelector("[data-said]")) {
    editMessage(section, (content) => send(content, { replaces: section.dataset.turn, edited: true }));
  }
}

async function choose(section, turn) {
  if (isAnswering()) return;
  const error = await refused(() => conversation.choose(section, turn));
  if (error) sayError(error);
  else tell({ kind: "turn", session: main.dataset.session });
}

main.addEventListener("click", (event) => {
  const section = event.target.closest(".turn");
  if (event.target.closest("[data-edit-message]")) edit(section);
  const version = event.target.closest("[data-choose]");
  if (version) choose(section, version.dataset.choose);
  if (event.target.closest("[data-answer-again]")) {
    send(section.querySelector("[data-said]").content.textContent, { replaces: section.dataset.turn, again: true });
  }
  const example = event.target.closest("[data-example]");
  if (example) composer.submit(example.textContent);
});

conversation.addEventListener("sent", () => {
  // The heading of a session that is about to be created is shown at once: later it would move the answer.
  if (!main.dataset.session && !composer.temporary.checked) {
    showTitle("New session");
    editTags.disabled = true;
  }
  composer.keepDraft();
  if (matchMedia("(hover: hover)").matches) composer.area.focus();
});
conversation.addEventListener("answering", () => {
  composer.setAnswering(true);
  showReviews();
});
conversation.addEventListener("busy", sayBusy);
conversation.addEventListener("started", () => {
  composer.keepDraft();
  tell({ kind: "turn", session: main.dataset.session });
  sessions.refresh().then(showListedTitle);
});
conversation.addEventListener("idle", () => {
  composer.setAnswering(false);
  showReviews();
});
conversation.addEventListener("complete", ({ detail }) => {
  if (detail?.turns_since_memory_review === 0) reviews.look();
});
conversation.addEventListener("fill", ({ detail }) => composer.setFill(detail));
conversation.addEventListener("taken-back", ({ detail }) => {
  document.querySelector(".chat__head .col").hidden = !main.dataset.session;
  composer.putBack(detail.content, detail.attached);
});

sessions.addEventListener("renamed", ({ detail }) => showTitle(detail));
sessions.addEventListener("listed", showReviews);
sessions.addEventListener("changed", () => tell({ kind: "sessions" }));
sessions.addEventListener("trouble", ({ detail }) => toasts.say(detail));
// Shows a review's writes and proposals under the turn that it followed.
toasts.addEventListener("written", ({ detail }) => {
  if (detail.session !== main.dataset.session) return;
  const text = detail.toast.querySelector("[data-text]");
  text.textContent = text.textContent.replace("from your last conversation", "from this conversation");
  if (!conversation.answering) conversation.refresh(detail.turn);
});
toasts.addEventListener("changed", ({ detail }) => {
  if (detail.session === main.dataset.session && !conversation.answering) conversation.refresh(detail.turn);
});
reviews.addEventListener("looked", showReviews);

onTold((told) => {
  if (told.kind === "sessions" || told.kind === "turn") sessions.refresh();
  if (told.kind === "turn" && told.session === main.dataset.session) conversation.catchUp();
});

// The session was changed, by this page or by another device or client.
notifications?.addEventListener("session", async ({ detail }) => {
  if (detail.session_id !== main.dataset.session) return;
  const isDeleted = detail.kind === "session.deleted";
  composer.setClosed(isDeleted ? "deleted" : detail.state === "ended" ? "ended" : "");
  const isRenamed = detail.title && !composer.temporary.checked && detail.title !== document.getElementById("session-title").textContent;
  if (isRenamed) showTitle(detail.title);
  const hasNews = !isDeleted && (await conversation.hear(detail.turn));
  if (isDeleted || isRenamed || hasNews) sessions.refresh();
});
notifications?.addEventListener("polled", () => document.hidden || catchUp());

notifications?.addEventListener("lost", () => composer.setOffline(true));
// Shows what another device did meanwhile.
function catchUp() {
  conversation.catchUp();
  if (!sessions.search.value.trim()) sessions.refresh();
}

for (const reached of ["late", "regained"]) {
  notifications?.addEventListener(reached, () => {
    composer.setOffline(false);
    catchUp();
  });
}
document.addEventListener("visibilitychange", () => {
  if (document.visibilityState === "visible") catchUp();
});

document.addEventListener("keydown", (event) => {
  const isClosing = event.target.matches("input") || document.querySelector("dialog[open], :popover-open"); // or clears a search
  if (event.key === "Escape" && !event.defaultPrevented && conversation.answering && !isClosing) stop();
});

conversation.resume();
if (matchMedia("(hover: hover)").matches && !conversation.named) composer.area.focus();
