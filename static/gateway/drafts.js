// Drafts of messages, kept in this browser for each person and session until their message is sent: the text in local
// storage, the attachments in IndexedDB, since they are too large for it.

import { forget, keep, recall } from "./storage.js";

const STORE = "attached";
const LONGEST = 7 * 24 * 3600 * 1000; // milliseconds for which attachments are kept

forget(/^draft:[^:]*$/); // from before drafts were kept for each person

const keyOf = (session) => `draft:${document.body.dataset.owner}:${session || "new"}`;

// `sentAfter`: the last turn of the session when the draft was sent, or "" if it is not sent or that turn is not known.
export function keepDraft(session, text, sentAfter = "") {
  keep(keyOf(session), text);
  keep(`${keyOf(session)}:sent`, sentAfter);
}

// Whether the draft was sent and has become the `last` turn, even if the page was left before it knew that.
export function hasArrived(session, last) {
  const sentAfter = recall(`${keyOf(session)}:sent`);
  return Boolean(sentAfter && last) && sentAfter !== last;
}

export function draftOf(session) {
  return recall(keyOf(session)) ?? "";
}

// Rejects if the browser stores nothing for this page, or has no room left.
export async function keepAttached(session, items) {
  const store = await opened();
  if (items.length) store.put({ items, at: Date.now() }, keyOf(session));
  else store.delete(keyOf(session));
  await finished(store.transaction);
}

// Resolves to the attachments of the draft; deletes those of old drafts.
export async function attachedOf(session) {
  const store = await opened();
  const old = store.index("at").getAllKeys(IDBKeyRange.upperBound(Date.now() - LONGEST));
  old.onsuccess = () => old.result.forEach((key) => store.delete(key));
  const kept = store.get(keyOf(session));
  await finished(store.transaction);
  return kept.result?.items ?? [];
}

// Deletes all drafts of a person.
export async function forgetDrafts(owner) {
  forget(new RegExp(`^draft:${owner}:`));
  const store = await opened();
  store.delete(IDBKeyRange.bound(`draft:${owner}:`, `draft:${owner};`));
  await finished(store.transaction);
}

let database = null;

async function opened() {
  database ??= new Promise((resolve, reject) => {
    const request = indexedDB.open("daybook");
    request.onupgradeneeded = () => request.result.createObjectStore(STORE).createIndex("at", "at");
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
  return (await database).transaction(STORE, "readwrite").objectStore(STORE);
}

function finished(transaction) {
  return new Promise((resolve, reject) => {
    transaction.oncomplete = resolve;
    transaction.onabort = () => reject(transaction.error);
  });
}
