// Drafts of messages, kept in this browser for each person and session until their message is sent.

import { forget, keep, recall } from "./storage.js";

forget(/^draft:[^:]*$/); // from before drafts were kept for each person

const keyOf = (session) => `draft:${document.body.dataset.owner}:${session || "new"}`;

export function keepDraft(session, text) {
  keep(keyOf(session), text);
}

export function draftOf(session) {
  return recall(keyOf(session)) ?? "";
}

// Deletes all drafts of a person.
export function forgetDrafts(owner) {
  forget(new RegExp(`^draft:${owner}:`));
}
