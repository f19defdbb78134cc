// Import of a file or of pasted text, with preview and undo.

import { attempt, call } from "../gateway/api.js";
import { element, isolated, some } from "../gateway/parts.js";

const NOTHING = "Nothing is saved yet.";
const PAUSE = 400; // milliseconds without typing before a preview is requested
const MOST_TITLES = 20;
const MOST_TRIES = 12; // about a minute

function startOver(dialog) {
  dialog.querySelector("[data-error]").hidden = true;
  const write = dialog.querySelector("[data-write]");
  write.disabled = true;
  write.hidden = false;
  write.textContent = "Import";
  dialog.querySelector("[data-undo-import]").hidden = true;
  dialog.querySelector("[data-done]").textContent = "Cancel";
}

// Returns a function that opens the dialog. What was given there stays until it is imported or cancelled.
export function installImport(dialog, list) {
  const form = dialog.querySelector("form");
  const file = dialog.querySelector("#import-file");
  const text = dialog.querySelector("#import-text");
  const format = dialog.querySelector("#import-format");
  const conversations = dialog.querySelector("#import-conversations");
  const write = dialog.querySelector("[data-write]");
  const undo = dialog.querySelector("[data-undo-import]");
  let sets = []; // what an undo has to undo yet
  let undone;
  let changed = 0;
  let looking = new AbortController();
  let timer;

  const given = () => {
    if (file.files.length) return new Blob([file.files[0]], { type: "application/octet-stream" });
    return text.value.trim() ? new Blob([text.value], { type: "text/plain" }) : null;
  };
  const send = (body, preview, signal) => {
    const name = file.files.length ? file.files[0].name : "";
    const query = new URLSearchParams({ preview, book: list.book, format: format.value, name: name.slice(-255), conversations: conversations.checked });
    return call("POST", `/api/import?${query}`, body, { signal });
  };
  // One import runs at a time, and the server may still be ending the preview that this one replaces.
  const preview = async (body, signal) => {
    for (let tries = 1; ; tries++) {
      try {
        return await send(body, true, signal);
      } catch (error) {
        if (!error.retryAfter || tries === MOST_TRIES) throw error;
        await new Promise((resolve) => setTimeout(resolve, 1000 * error.retryAfter));
      }
    }
  };
  const look = () => {
    clearTimeout(timer);
    startOver(dialog);
    looking.abort();
    looking = new AbortController();
    const { signal } = looking;
    const body = given();
    dialog.querySelector("[data-report]").replaceChildren(paragraph(body ? "Reading the file…" : ""));
    if (!body) return;
    attempt(dialog, null, async () => {
      try {
        const report = await preview(body, signal);
        if (signal.aborted) return; // another source was chosen meanwhile
        say(dialog, report, NOTHING);
        sayAdded(dialog, report);
        sayChanges(dialog, report);
        const count = report.new + report.changed + report.held + report.conversations.new;
        write.textContent = count ? `Import ${count.toLocaleString("en")}` : "Import";
        write.disabled = !count;
      } catch (error) {
        if (signal.aborted) return;
        dialog.querySelector("[data-report]").replaceChildren();
        throw error;
      }
    });
  };

  dialog.addEventListener("close", () => {
    looking.abort();
    clearTimeout(timer);
    if (write.hidden || dialog.returnValue === "cancel") {
      text.defaultValue = "";
      form.reset();
    }
    dialog.returnValue = "";
  });
  file.addEventListener("change", () => {
    if (file.files.length) text.value = "";
    look();
  });
  text.addEventListener("input", () => {
    if (text.value.trim()) file.value = "";
    write.disabled = true;
    looking.abort();
    clearTimeout(timer);
    timer = setTimeout(look, PAUSE);
  });
  format.addEventListener("change", look);
  conversations.addEventListener("change", look);
  write.addEventListener("click", () =>
    attempt(dialog, write, async () => {
      const report = await send(given(), false);
      say(dialog, report, report.lines ? "Saved. Each memory has its history." : "Saved.");
      write.hidden = true;
      text.defaultValue = text.value; // written now
      sets = report.change_sets;
      undone = { memories: 0, conversations: 0, proposals: 0 };
      changed = report.changed;
      undo.hidden = !sets.length;
      dialog.querySelector("[data-done]").textContent = "Close";
      dialog.querySelector("[data-done]").focus();
      await list.refresh();
    }),
  );
  undo.addEventListener("click", () =>
    attempt(dialog, undo, async () => {
      while (sets.length) {
        const result = await call("POST", `/api/changes/${sets[0]}/undo`, {});
        sets.shift();
        undone.memories += result.undone.length;
        undone.conversations += result.conversations;
        undone.proposals += result.proposals;
      }
      undo.hidden = true;
      const { memories, conversations: removed, proposals: withdrawn } = undone;
      const also = (removed ? ` ${some(removed, "conversation was", "conversations were")} removed.` : "")
        + (withdrawn ? ` ${some(withdrawn, "line", "lines")} no longer wait${withdrawn === 1 ? "s" : ""} for your decision.` : "");
      dialog.querySelector("[data-report]").replaceChildren(paragraph(`Undone. ${some(memories, "memory was", "memories were")} ${changed ? "removed or changed back" : "removed"}.${also}`));
      dialog.querySelector("[data-done]").focus();
      await list.refresh();
    }),
  );
  return () => {
    look();
    dialog.showModal();
  };
}

// “31 lines: 24 new, 5 already there, 1 changed, 1 blocked by the scan. 12 conversations with 140 messages.”
function say(dialog, report, ending) {
  const counts = [
    [report.new, "new"],
    [report.known, "already there"],
    [report.changed, "changed"],
    [report.blocked, "blocked by the scan"],
    [report.refused, "refused"],
    [report.held, report.written ? "waiting for your decision" : "for you to decide"],
  ].filter(([count]) => count);
  const lines = report.format === "jsonl" ? some(report.lines, "line", "lines") : some(report.lines, "memory", "memories");
  const words = [report.lines ? `${lines}: ${counts.map(([count, what]) => `${count} ${what}`).join(", ") || "no memories"}.` : "No memories."];
  const { new: fresh, known, messages } = report.conversations;
  if (fresh) words.push(`${some(fresh, "new conversation", "new conversations")} with ${some(messages, "message", "messages")}.`);
  if (known) words.push(`${some(known, "conversation is", "conversations are")} already there.`);
  const label = dialog.querySelector(`#import-format option[value="${CSS.escape(report.format)}"]`)?.textContent;
  words.push(ending);
  if (label) words.push(`Read as: ${label}.`);
  const nodes = [paragraph(words.join(" "))];
  if (report.waiting.length) {
    nodes.push(listOf("rewordings", "Memories that wait for your decision", report.waiting.map(({ place, message, content }) => `${place}: ${content} – ${message}`)));
    nodes.push(...more(report.held - report.waiting.length));
    if (report.written) nodes.push(element("p", {}, element("a", { href: "/reviews/" }, "Decide about them")));
  }
  if (report.problems.length) {
    nodes.push(
      listOf("problems", "Entries that are left out", report.problems.map((problem) => `${problem.place}: ${problem.message}`)),
    );
  }
  if (fresh) {
    const titles = report.conversations.titles.slice(0, MOST_TITLES).map(({ title, messages: count }) => `${isolated(title) || "Untitled"} (${some(count, "message", "messages")})`);
    nodes.push(listOf("rewordings", "Conversations", titles), ...more(fresh - titles.length));
  }
  dialog.querySelector("[data-report]").replaceChildren(...nodes);
}

function sayAdded(dialog, report) {
  if (!report.added.length || report.format === "jsonl") return;
  const added = listOf("rewordings", "Memories that would be added", report.added.map(({ content }) => content));
  dialog.querySelector("[data-report] p").after(added, ...more(report.new - report.added.length));
}

function sayChanges(dialog, report) {
  if (!report.rewordings.length) return;
  const items = report.rewordings.map(({ place, pieces }) => [element("span", { className: "hint" }, place), " ", ...pieces.flatMap(marked)]);
  const changes = listOf("rewordings", "Memories that would change", items);
  dialog.querySelector("[data-report] p").after(changes, ...more(report.changed - items.length));
}

function marked({ kind, text }) {
  if (kind === "same") return [text];
  return kind === "del" ? [element("del", {}, text), " "] : [element("ins", {}, text)];
}

function paragraph(words) {
  return element("p", {}, words);
}

function more(count) {
  return count > 0 ? [paragraph(`And ${count} more.`)] : [];
}

// An item is a text, or a list of texts and nodes. The list scrolls, so it must be focusable by keyboard.
function listOf(className, label, items) {
  return element("ul", { className, tabIndex: 0, ariaLabel: label }, ...items.map((content) => element("li", {}, ...[content].flat())));
}
