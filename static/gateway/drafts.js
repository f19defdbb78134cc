// Drafts of messages, kept in this browser for each person and session until their message is sent. Several tabs may be on
// the page of a new session, so each has its own draft there; tabs that are left hand theirs to the next ones on that page.

import { TAB, forget, keep, recall } from "./storage.js";

forget(/^draft:[^:]*$/); // from before drafts were kept for each person

const BETWEEN = "\0";

const keyOf = (session) => `draft:${document.body.dataset.owner}:${session || "new"}`;

export function keepDraft(session, text) {
  keep(keyOf(session), text, session ? undefined : TAB);
}

export function draftOf(session) {
  if (!session) takeOver();
  return recall(keyOf(session), session ? undefined : TAB) ?? "";
}

// The drafts that tabs have left, the newest last, so that a reload finds its own.
const leftDrafts = () => recall(keyOf(""))?.split(BETWEEN) ?? [];

function takeOver() {
  if (recall(keyOf(""), TAB)) return;
  const left = leftDrafts();
  keepDraft("", left.pop() ?? "");
  keep(keyOf(""), left.join(BETWEEN));
}

addEventListener("pagehide", () => {
  const own = recall(keyOf(""), TAB);
  if (!own) return;
  keep(keyOf(""), [...leftDrafts(), own].join(BETWEEN));
  keepDraft("", "");
});
