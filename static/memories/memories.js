// The memories page: the self-updating list and its actions. Changes go through the API; updated parts are rendered by the
// server.

import { call, refused, showError } from "../gateway/api.js";
import { installFolds } from "../gateway/fold.js";
import { some } from "../gateway/parts.js";
import { notifications, toasts } from "../gateway/shell.js";
import { installAdd, openEditor } from "./editor.js";
import { installBook } from "./book.js";
import { History } from "./history.js";
import { List } from "./list.js";
import { Selection } from "./selection.js";

const LIVE = 150; // milliseconds in which several changes cause one refresh

const list = new List(document.getElementById("list"), document.getElementById("filters"), document.getElementById("summary"));
const history = new History(document.getElementById("history"), list);

new Selection(list, document.querySelector("[data-bulk]"), document.querySelector("[data-bulk-done]"));
installAdd(document.getElementById("add-memory"), list);
installBook(list);
installFolds(list.root);

list.root.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  const row = event.target.closest("[data-memory]");
  if (!button || !row) return;
  if (button.matches("[data-edit]")) openEditor(row, list);
  else if (button.matches("[data-history]")) history.open(row.dataset.memory);
  else if (button.matches("[data-pin]")) pin(row, button);
  else if (button.matches("[data-delete]")) remove(row, button);
  else if (button.matches("[data-restore]")) restore(row, button);
});
list.summary.addEventListener("click", (event) => {
  const button = event.target.closest("[data-undo-clear]");
  if (button) undoClear(button);
});
const [, linked] = /^#memory-(\d+)$/.exec(location.hash) ?? [];
if (linked && !list.reveal(linked)) list.find(linked);

const path = (row) => `/api/memories/${row.dataset.memory}`;
const unchanged = (row) => ({ headers: { "If-Match": `"${row.dataset.version}"` } });

function pin(row, button) {
  const pinned = button.getAttribute("aria-pressed") !== "true";
  return act(row, button, "[data-pin]", () => call("PATCH", path(row), { pinned }, unchanged(row)));
}

function remove(row, button) {
  return act(row, button, "[data-restore]", () => call("DELETE", path(row), undefined, unchanged(row)));
}

// Restores only this memory, even if others were deleted with it.
function restore(row, button) {
  return act(row, button, "[data-history]", () => call("POST", `${path(row)}/restore`, { revision: button.dataset.restore }));
}

async function undoClear(button) {
  button.disabled = true;
  const error = await refused(async () => {
    const { undone, left_alone: left } = await call("POST", `/api/changes/${button.dataset.undoClear}/undo`, {});
    const rest = left.length ? ` ${some(left.length, "was", "were")} left alone: changed since, or another memory says the same.` : "";
    toasts.say(`Undone: ${some(undone.length, "memory is", "memories are")} back, with the documents and notes.${rest}`);
    await list.refresh();
  });
  if (!error) return;
  button.disabled = false;
  toasts.say(error.message);
}

// Writes, then renders the row again and keeps the focus in it.
async function act(row, button, next, write) {
  const focused = row.contains(document.activeElement);
  button.disabled = true;
  try {
    const error = await refused(async () => {
      await write();
      const fresh = await list.refreshRow(row.dataset.memory);
      if (focused) fresh?.querySelector(next)?.focus();
      list.refreshSummary();
    });
    if (error?.code === "conflict") {
      const fresh = await list.refreshRow(row.dataset.memory);
      if (fresh) showError(fresh, "It was changed elsewhere in the meantime. This is the current text.");
    } else if (error) {
      showError(row, error.message);
    }
  } finally {
    button.disabled = false; // the row may not have been rendered again
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
