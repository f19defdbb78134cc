// Drafts of messages, kept in this browser for each person and session until their message is sent. Several tabs may be on
// the page of a new session, so each has its own draft there; a tab that is left hands it to the next one on that page.

import { TAB, forget, keep, recall } from "./storage.js";

forget(/^draft:[^:]*$/); // from before drafts were kept for each person

const keyOf = (session) => `draft:${document.body.dataset.owner}:${session || "new"}`;

export function keepDraft(session, text) {
  keep(keyOf(session), text, session ? undefined : TAB);
}

export function draftOf(session) {
  if (!session) takeOver();
  return recall(keyOf(session), session ? undefined : TAB) ?? "";
}

function takeOver() {
  const left = recall(keyOf(""));
  if (!left || recall(keyOf(""), TAB)) return;
  keepDraft("", left);
  keep(keyOf(""), null);
}

addEventListener("pagehide", () => {
  const own = recall(keyOf(""), TAB);
  if (!own || recall(keyOf(""))) return; // one tab's is kept already; this tab still has its own
  keep(keyOf(""), own);
  keepDraft("", "");
});

// Deletes all drafts of a person.
export function forgetDrafts(owner) {
  forget(new RegExp(`^draft:${owner}:`));
}
