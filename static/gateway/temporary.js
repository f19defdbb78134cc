// Deletes a temporary session when its tab navigates away. A reload keeps it; if the tab was closed, the server deletes it
// within a day.

import { call, refused } from "./api.js";
import { keepDraft } from "./drafts.js";

const KEY = "daybook:temporary";

export function rememberTemporary(session) {
  sessionStorage.setItem(KEY, session);
}

export async function leaveTemporary() {
  const left = sessionStorage.getItem(KEY);
  const { session, temporary } = document.getElementById("main")?.dataset ?? {};
  if (temporary !== undefined && session) rememberTemporary(session);
  if (!left || left === session) return;
  if (sessionStorage.getItem(KEY) === left) sessionStorage.removeItem(KEY);
  keepDraft(left, "");
  await refused(() => call("DELETE", `/api/sessions/${left}`)); // or else deleted already, or within a day
}
