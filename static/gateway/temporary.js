// A temporary session goes when its tab shows something else. A reload keeps it; what a closed tab leaves goes within a
// day, by the server.

import { ApiError, call } from "./api.js";

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
  try {
    await call("DELETE", `/api/sessions/${left}`);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error; // it is gone already, or goes within a day
  }
}
