// Shared code of a book's dialogs.

import { ApiError } from "../gateway/api.js";

export function some(count, one, many) {
  return `${Number(count).toLocaleString("en")} ${Number(count) === 1 ? one : many}`;
}

export function paragraph(words) {
  const made = document.createElement("p");
  made.textContent = words;
  return made;
}

export async function attempt(dialog, work) {
  const said = dialog.querySelector("[data-error]");
  said.hidden = true;
  try {
    await work();
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    dialog.querySelector("[data-report]")?.replaceChildren();
    said.textContent = error.message;
    said.hidden = false;
  }
}
