// Import with a look beforehand, and forgetting everything with a typed line and a receipt.

import { ApiError, call } from "../gateway/api.js";

const NOTHING = "Nothing is written yet.";

export function installBook(list) {
  const menu = document.getElementById("book-menu");
  place(menu);
  document.querySelector("[data-import]").addEventListener("click", () => {
    menu.hidePopover();
    openImport(list);
  });
  document.querySelector("[data-forget]").addEventListener("click", () => {
    menu.hidePopover();
    openForget(list);
  });
  installImport(document.getElementById("import"), list);
  installForget(document.getElementById("forget"), list);
}

// The menu lies below its button.
function place(menu) {
  const button = document.querySelector("[data-menu]");
  menu.addEventListener("toggle", ({ newState }) => {
    if (newState !== "open") return;
    const { bottom, right } = button.getBoundingClientRect();
    menu.style.setProperty("top", `${bottom}px`);
    menu.style.setProperty("right", `${document.documentElement.clientWidth - right}px`);
    menu.querySelector("a").focus();
  });
}

function openImport(list) {
  const dialog = document.getElementById("import");
  dialog.querySelector("form").reset();
  dialog.querySelector("[data-report]").replaceChildren();
  dialog.querySelector("[data-error]").hidden = true;
  dialog.querySelector("[data-write]").disabled = true;
  dialog.querySelector("[data-write]").hidden = false;
  dialog.querySelector("[data-write]").textContent = "Import";
  dialog.querySelector("[data-done]").textContent = "Cancel";
  dialog.showModal();
}

function installImport(dialog, list) {
  const file = dialog.querySelector("input[type=file]");
  const write = dialog.querySelector("[data-write]");
  const send = (preview) => {
    const lines = new Blob([file.files[0]], { type: "application/x-ndjson" });
    return call("POST", `/api/import?preview=${preview}&book=${encodeURIComponent(list.book)}`, lines);
  };
  file.addEventListener("change", () =>
    attempt(dialog, async () => {
      write.disabled = true;
      dialog.querySelector("[data-report]").replaceChildren();
      if (!file.files.length) return;
      const report = await send(true);
      say(dialog, report, NOTHING);
      const count = report.new + report.changed;
      write.textContent = count ? `Import ${count}` : "Import";
      write.disabled = !count;
    }),
  );
  write.addEventListener("click", () =>
    attempt(dialog, async () => {
      write.disabled = true;
      const report = await send(false);
      say(dialog, report, "All of it is written; each one has its history.");
      write.hidden = true;
      dialog.querySelector("[data-done]").textContent = "Close";
      dialog.querySelector("[data-done]").focus();
      await list.refresh();
    }),
  );
}

// “31 lines: 24 new, 5 already there, 1 changed, 1 blocked by the scan.”
function say(dialog, report, ending) {
  const counts = [
    [report.new, "new"],
    [report.known, "already there"],
    [report.changed, "changed"],
    [report.blocked, "blocked by the scan"],
    [report.refused, "refused"],
  ].filter(([count]) => count);
  const words = document.createElement("p");
  const lines = `${report.lines} line${report.lines === 1 ? "" : "s"}`;
  words.textContent = `${lines}: ${counts.map(([count, what]) => `${count} ${what}`).join(", ") || "no memories"}. ${ending}`;
  const problems = document.createElement("ul");
  problems.className = "problems";
  for (const problem of report.problems) {
    const item = document.createElement("li");
    item.textContent = problem.rule ? `Line ${problem.line}: rule ${problem.rule}.` : `Line ${problem.line}: ${problem.message}`;
    problems.append(item);
  }
  dialog.querySelector("[data-report]").replaceChildren(words, ...(report.problems.length ? [problems] : []));
}

function openForget(list) {
  const dialog = document.getElementById("forget");
  const meters = document.querySelector("[data-memories-in-book]").dataset;
  const some = (count, one, many) => `${count} ${Number(count) === 1 ? one : many}`;
  dialog.querySelector("[data-what]").textContent =
    `This deletes ${some(meters.memoriesInBook, "memory", "memories")}, ${some(meters.documentsInBook, "document", "documents")} ` +
    `and their history in book ${list.book}. It cannot be undone.`;
  dialog.querySelector("[data-line]").textContent = `forget ${list.book}`;
  dialog.querySelector("form").reset();
  dialog.querySelector("[data-ask]").hidden = false;
  dialog.querySelector("[data-receipt]").hidden = true;
  dialog.querySelector("[data-error]").hidden = true;
  dialog.querySelector("[data-done]").textContent = "Keep it";
  dialog.querySelector("[data-forget-now]").hidden = false;
  dialog.querySelector("[data-forget-now]").disabled = true;
  dialog.showModal();
}

function installForget(dialog, list) {
  const typed = dialog.querySelector("input");
  const button = dialog.querySelector("[data-forget-now]");
  const ready = () => typed.value.trim() === dialog.querySelector("[data-line]").textContent;
  typed.addEventListener("input", () => {
    button.disabled = !ready();
  });
  typed.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault(); // the form's own button would keep everything
    if (ready()) button.click();
  });
  button.addEventListener("click", () =>
    attempt(dialog, async () => {
      button.disabled = true;
      const receipt = await call("DELETE", `/api/account/memories?book=${encodeURIComponent(list.book)}`);
      const erased = Object.entries(receipt.erased).filter(([, count]) => count);
      const words = document.createElement("p");
      words.textContent = `Forgotten, ${new Date(receipt.at).toISOString().slice(0, 16).replace("T", " ")} UTC. The receipt:`;
      const figures = document.createElement("dl");
      figures.className = "receipt";
      for (const [what, count] of erased.length ? erased : [["nothing", 0]]) {
        const line = document.createElement("div");
        const name = document.createElement("dt");
        const number = document.createElement("dd");
        name.textContent = what.replaceAll("_", " ");
        number.textContent = String(count);
        line.append(name, number);
        figures.append(line);
      }
      dialog.querySelector("[data-receipt]").replaceChildren(words, figures);
      dialog.querySelector("[data-receipt]").hidden = false;
      dialog.querySelector("[data-ask]").hidden = true;
      button.hidden = true;
      dialog.querySelector("[data-done]").textContent = "Close";
      dialog.querySelector("[data-done]").focus();
      await list.narrow();
      list.refreshSummary();
    }),
  );
}

async function attempt(dialog, work) {
  const said = dialog.querySelector("[data-error]");
  said.hidden = true;
  try {
    await work();
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    said.textContent = error.message;
    said.hidden = false;
  }
}
