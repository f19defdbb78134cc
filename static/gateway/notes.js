// Memory notes under an answer: undo and restore writes; edit and forget the memories that the answer was given.

import { ApiError, attempt, call, refused, undo } from "./api.js";
import { installKeys } from "./editor_keys.js";
import { wordsFor } from "./errors.js";
import { element, fromTemplate } from "./parts.js";

export function installNotes(root, refreshTurn) {
  root.addEventListener("click", (event) => {
    const summary = event.target.closest("details[data-fold] > summary");
    if (summary && !summary.parentElement.open) showOpened(summary.parentElement, refreshTurn);
    const taken = event.target.closest("[data-change-set] [data-undo]");
    if (taken) takeBack(taken, refreshTurn);
    const edit = event.target.closest("[data-edit-memory]");
    if (edit) openEditor(edit, refreshTurn);
    const removed = event.target.closest("[data-delete-memory]");
    if (removed) deleteMemory(removed, refreshTurn);
  });
}

// Brings opened details into view. Given memories are shown as they are now: they may have been changed or deleted since
// the turn was rendered.
async function showOpened(details, refreshTurn) {
  requestAnimationFrame(() => details.scrollIntoView({ block: "nearest" }));
  if (details.matches("[data-given]")) await refused(() => refreshTurn(details.closest(".turn").dataset.turn));
}

const LINE = ".note__line, .given li";

// Renders the turn again after a change, and puts the focus on a button of the same line. While another memory of the turn
// is being edited, only a word beside the button says that the change was made.
function refresher(button, refreshTurn) {
  const section = button.closest(".turn");
  const at = [...section.querySelectorAll(LINE)].indexOf(button.closest(LINE));
  return async () => {
    await refreshTurn(section.dataset.turn);
    if (button.isConnected) return sayBeside(button, "Done.");
    if (document.activeElement !== document.body) return; // the person went elsewhere meanwhile
    const lines = document.getElementById(section.id)?.querySelectorAll(LINE);
    lines?.[at]?.querySelector("button")?.focus({ preventScroll: true });
  };
}

// Writes, and renders the turn again. An error is shown beside the button.
async function change(button, refreshTurn, conflict, write) {
  const refresh = refresher(button, refreshTurn);
  button.disabled = true;
  const error = await refused(async () => {
    await write();
    await refresh();
  });
  if (!error) return;
  button.disabled = false;
  sayBeside(button, error.code === "conflict" ? conflict : wordsFor(error.code).headline);
}

function takeBack(button, refreshTurn) {
  const { changeSet } = button.closest("[data-change-set]").dataset;
  return change(button, refreshTurn, "Changed since; see its history under Memories.", () => undo(`/api/changes/${changeSet}/undo`));
}

function deleteMemory(button, refreshTurn) {
  const { deleteMemory: number, version } = button.dataset;
  const headers = { "If-Match": `"${version}"` };
  return change(button, refreshTurn, "Changed since; open it under Memories.", () => call("DELETE", `/api/memories/${number}`, undefined, { headers }));
}

function sayBeside(button, words) {
  const note = button.closest(LINE);
  let hint = note.querySelector("[data-said]");
  if (!hint) {
    hint = element("span", { className: "hint", role: "status" });
    hint.dataset.said = "";
    button.parentElement.after(hint);
  }
  hint.textContent = words;
}

function openEditor(button, refreshTurn) {
  const line = button.closest(LINE);
  const editor = fromTemplate("memory-editor");
  const area = editor.querySelector("textarea");
  area.defaultValue = button.dataset.content;
  line.hidden = true;
  line.after(editor);
  area.focus();
  editor.scrollIntoView({ block: "nearest" });
  const close = () => {
    editor.remove();
    line.hidden = false;
    button.focus();
    const { turn, outdated } = line.closest(".turn").dataset;
    if (outdated !== undefined) refreshTurn(turn);
  };
  installKeys(editor, close);
  editor.addEventListener("submit", (event) => {
    event.preventDefault();
    save(editor, line, button, refresher(button, refreshTurn));
  });
}

function save(editor, line, button, refresh) {
  const content = editor.querySelector("textarea").value.trim();
  const headers = { "If-Match": `"${button.dataset.version}"` };
  return attempt(editor, editor.querySelector("[type=submit]"), async () => {
    await call("PATCH", `/api/memories/${button.dataset.editMemory}`, { content }, { headers }).catch((error) => {
      if (error.code !== "conflict" || error.details.memory_id) throw error;
      throw new ApiError("conflict", "This memory was changed while you were editing. Cancel and look at it again.");
    });
    editor.remove();
    line.hidden = false;
    await refresh();
  });
}
