// The memories page: the list that keeps itself up to date, and everything that is pressed in it.
// What changes something goes to the API; what is shown again comes rendered from the server.

import { ApiError, call } from "../gateway/api.js";
import { notifications } from "../gateway/shell.js";
import { installAdd, openEditor } from "./editor.js";
import { installBook } from "./book.js";
import { History } from "./history.js";
import { List } from "./list.js";

const LIVE = 150; // several changes of one moment are one refresh

const list = new List(document.getElementById("list"), document.getElementById("filters"), document.getElementById("summary"));
const history = new History(document.getElementById("history"), list);

installAdd(document.getElementById("add-memory"), list);
installBook(list);

list.root.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  const row = event.target.closest("[data-memory]");
  if (!button || !row) return;
  if (button.matches("[data-edit]")) openEditor(row, button, list);
  else if (button.matches("[data-history]")) history.open(row.dataset.memory);
  else if (button.matches("[data-pin]")) pin(row, button);
  else if (button.matches("[data-delete]")) remove(row, button);
  else if (button.matches("[data-undo]")) undo(row, button);
});

const path = (row) => `/api/memories/${row.dataset.memory}`;
const unchanged = (row) => ({ headers: { "If-Match": `"${row.dataset.version}"` } });

function pin(row, button) {
  const pinned = button.getAttribute("aria-pressed") !== "true";
  return act(row, button, "[data-pin]", () => call("PATCH", path(row), { pinned }, unchanged(row)));
}

function remove(row, button) {
  return act(row, button, "[data-undo]", () => call("DELETE", path(row), undefined, unchanged(row)));
}

function undo(row, button) {
  return act(row, button, "[data-edit]", async () => {
    const result = await call("POST", `/api/changes/${button.dataset.undo}/undo`, {});
    if (!result.undone.length) throw new ApiError("conflict", "It was changed since; see its history.");
  });
}

// One write, then the row as it is now; the focus stays in it.
async function act(row, button, next, write) {
  const focused = row.contains(document.activeElement);
  button.disabled = true;
  try {
    await write();
    const fresh = await list.refreshRow(row.dataset.memory);
    if (focused) fresh?.querySelector(next)?.focus();
    list.refreshSummary();
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    button.disabled = false;
    const fresh = error.code === "conflict" ? await list.refreshRow(row.dataset.memory) : row;
    const said = fresh?.querySelector("[data-error]");
    if (!said) return;
    said.textContent = error.code === "conflict" ? "It was changed elsewhere meanwhile. This is how it reads now." : error.message;
    said.hidden = false;
  }
}

let waiting = 0;
notifications?.addEventListener("message", ({ detail }) => {
  if (detail.kind === "consolidation.finished") list.refreshSummary();
  if (!["memory.changed", "review.undone", "resync"].includes(detail.kind)) return;
  clearTimeout(waiting);
  waiting = setTimeout(async () => {
    await list.refresh();
    history.refresh(detail.memory_ids ?? []);
  }, LIVE);
});
document.addEventListener("visibilitychange", () => {
  if (document.visibilityState === "visible") list.refreshSummary();
});
