// The editor of a new memory, or of one in the list. A concurrent change by someone else is shown beside it.

import { ApiError, attempt, call, fragment, tryFragment } from "../gateway/api.js";
import { installKeys } from "../gateway/editor_keys.js";
import { toasts } from "../gateway/shell.js";
import { closeEditor } from "./list.js";

const zone = document.querySelector("[data-memories]").dataset.zone;

export function installAdd(form, list) {
  const opener = document.querySelector(".page__acts [data-add]");
  let pressed = opener;
  const show = (open) => {
    form.hidden = !open;
    opener.setAttribute("aria-expanded", String(open));
    if (open) form.elements.content.focus();
    else pressed.focus();
  };
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-add]");
    if (!button) return;
    pressed = button.closest(".page__acts") ? button : opener;
    show(true);
  });
  watch(form, () => show(false));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    await attempt(form, form.querySelector("[type=submit]"), async () => {
      const { id } = await call("POST", "/api/memories", { ...filledIn(form), book: list.book });
      form.reset();
      form.querySelector("[data-count]").textContent = "0";
      show(false);
      showAdded(id, list); // another memory can be added meanwhile
    });
  });
}

// The list may be filtered or sorted so that it does not show the memory.
async function showAdded(number, list) {
  await list.refresh();
  if (!list.reveal(number)) toasts.say(`Saved as #${number}. It is not among the memories shown.`);
}

export async function openEditor({ id, dataset: { memory } }, list) {
  const nodes = await tryFragment(`/fragments/memories/${memory}/edit/`);
  if (!nodes) {
    await list.refreshRow(memory);
    return;
  }
  const row = document.getElementById(id); // the list may have been updated meanwhile
  if (!row || row.querySelector("[data-editor]")) return;
  const form = nodes.querySelector("form");
  const body = row.querySelector(".entry__body");
  for (const child of body.children) child.hidden = true;
  body.append(form);
  form.elements.content.focus();
  form.scrollIntoView({ block: "nearest" });
  const close = () => {
    closeEditor(row);
    row.querySelector("[data-edit]")?.focus();
  };
  watch(form, async () => {
    close();
    if (form.dataset.version !== row.dataset.version || form.querySelector("[data-conflict]")) await list.refreshRow(memory);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    attempt(form, form.querySelector("[type=submit]"), () => save(form, list));
  });
}

async function save(form, list) {
  const number = form.dataset.editor;
  try {
    await call("PATCH", `/api/memories/${number}`, values(form), { headers: { "If-Match": `"${form.dataset.version}"` } });
  } catch (error) {
    // Another memory with this text is a conflict, too, which only another text resolves.
    if (error instanceof ApiError && error.code === "conflict" && !error.details.memory_id) return showConflict(form, number, list);
    throw error;
  }
  const fresh = await list.refreshRow(number);
  fresh?.querySelector("[data-edit]")?.focus();
  return list.refreshSummary();
}

// Resolves an edit conflict: keep mine, take theirs, or edit both, so that nothing is overwritten unseen.
async function showConflict(form, number, list) {
  const nodes = await fragment(`/fragments/memories/${number}/edit/?mine=1`).catch((error) => {
    if (error.status !== 404) throw error;
    throw new ApiError("not_found", "It was deleted in the meantime. Cancel; you can restore it under Deleted.");
  });
  const conflict = nodes.querySelector("[data-conflict]");
  const area = form.elements.content;
  conflict.querySelector("[data-mine]").textContent = area.value.trim();
  form.querySelector("[data-conflict]")?.remove();
  form.prepend(conflict);
  conflict.querySelector("button").focus();
  conflict.addEventListener("click", async (event) => {
    const take = event.target.closest("[data-take]")?.dataset.take;
    if (!take) return;
    const theirs = conflict.querySelector("[data-theirs]").textContent.trim();
    form.dataset.version = conflict.dataset.version;
    if (take === "theirs") {
      const fresh = await list.refreshRow(number);
      fresh?.querySelector("[data-edit]")?.focus();
      return;
    }
    if (take === "both") area.value = `${theirs}\n${area.value.trim()}`;
    conflict.remove();
    if (take === "mine") form.requestSubmit();
    else area.focus();
  });
}

// Character count, Escape, Ctrl+Enter and Cancel.
function watch(form, close) {
  const area = form.elements.content;
  area.addEventListener("input", () => {
    form.querySelector("[data-count]").textContent = [...area.value.trim()].length;
  });
  installKeys(form, close);
}

function values(form) {
  const { content, category, target, pinned, keywords, expires } = form.elements;
  const found = {
    content: content.value,
    category: category.value,
    target: target.value,
    pinned: pinned.checked,
    keywords: keywords.value.split(",").map((word) => word.trim()).filter(Boolean),
  };
  // An unchanged date keeps its time.
  if (expires.value !== expires.dataset.was) found.expires_at = expires.value ? beginningOf(expires.value) : null;
  return found;
}

// Returns the fields that were filled in for a new memory; fields left alone are not changed in a memory that already
// exists.
function filledIn(form) {
  const { category, target, pinned, keywords } = form.elements;
  const found = values(form);
  if (category.value === category.defaultValue) delete found.category;
  if (target.selectedOptions[0].defaultSelected) delete found.target;
  if (pinned.checked === pinned.defaultChecked) delete found.pinned;
  if (keywords.value === keywords.defaultValue) delete found.keywords;
  return found;
}

// Returns when a day (2027-06-30) starts in the owner's time zone.
function beginningOf(day) {
  const utc = Date.parse(`${day}T00:00:00Z`);
  const parts = new Intl.DateTimeFormat("en", {
    timeZone: zone, hourCycle: "h23", year: "numeric", month: "numeric", day: "numeric", hour: "numeric", minute: "numeric", second: "numeric",
  });
  const there = (moment) => {
    const { year, month, day: date, hour, minute, second } = Object.fromEntries(parts.formatToParts(moment).map(({ type, value }) => [type, Number(value)]));
    return Date.UTC(year, month - 1, date, hour, minute, second);
  };
  const guess = utc - (there(utc) - utc);
  return new Date(guess - (there(guess) - utc)).toISOString(); // twice, in case the clocks change that night
}
