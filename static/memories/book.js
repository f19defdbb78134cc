// Import with a look beforehand, and forgetting everything with a typed line and a receipt.

import { ApiError, call, fragment } from "../gateway/api.js";

const NOTHING = "Nothing is written yet.";

export function installBook(list) {
  const menu = document.getElementById("book-menu");
  place(menu);
  document.querySelector("[data-import]").addEventListener("click", () => {
    menu.hidePopover();
    openImport();
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

function openImport() {
  const dialog = document.getElementById("import");
  dialog.querySelector("form").reset();
  dialog.querySelector("[data-report]").replaceChildren();
  dialog.querySelector("[data-error]").hidden = true;
  dialog.querySelector("[data-write]").disabled = true;
  dialog.querySelector("[data-write]").hidden = false;
  dialog.querySelector("[data-write]").textContent = "Import";
  dialog.querySelector("[data-undo-import]").hidden = true;
  dialog.querySelector("[data-done]").textContent = "Cancel";
  dialog.showModal();
}

function installImport(dialog, list) {
  const file = dialog.querySelector("input[type=file]");
  const write = dialog.querySelector("[data-write]");
  const lines = () => new Blob([file.files[0]], { type: "application/x-ndjson" });
  const book = () => encodeURIComponent(list.book);
  const send = (preview) => call("POST", `/api/import?preview=${preview}&book=${book()}`, lines());
  const undo = dialog.querySelector("[data-undo-import]");
  let sets = [];
  const offerUndo = (found) => {
    sets = found;
    undo.hidden = !sets.length;
  };
  undo.addEventListener("click", () =>
    attempt(dialog, async () => {
      undo.hidden = true;
      let count = 0;
      for (const set of sets) count += (await call("POST", `/api/changes/${set}/undo`, {})).undone.length;
      dialog.querySelector("[data-report]").replaceChildren(paragraph(`Undone. ${count} ${count === 1 ? "memory was" : "memories were"} taken back.`));
      dialog.querySelector("[data-done]").focus();
      await list.refresh();
    }),
  );
  file.addEventListener("change", () =>
    attempt(dialog, async () => {
      write.disabled = true;
      dialog.querySelector("[data-report]").replaceChildren(paragraph(file.files.length ? "Looking at it…" : ""));
      if (!file.files.length) return;
      const report = await send(true);
      say(dialog, report, NOTHING);
      if (report.changed) sayChanges(dialog, report, await fragment(`/fragments/memories/import/?book=${book()}`, lines()));
      const count = report.new + report.changed;
      write.textContent = count ? `Import ${count}` : "Import";
      write.disabled = !count;
    }),
  );
  write.addEventListener("click", () =>
    attempt(dialog, async () => {
      write.disabled = true;
      const report = await send(false);
      say(dialog, report, "They are written; each one has its history.");
      write.hidden = true;
      offerUndo(report.change_sets);
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
  const lines = `${report.lines} line${report.lines === 1 ? "" : "s"}`;
  const words = paragraph(`${lines}: ${counts.map(([count, what]) => `${count} ${what}`).join(", ") || "no memories"}. ${ending}`);
  const problems = lineList("problems", "Lines that are left out");
  for (const problem of report.problems) {
    const item = document.createElement("li");
    item.textContent = problem.rule ? `Line ${problem.line}: rule ${problem.rule}.` : `Line ${problem.line}: ${problem.message}`;
    problems.append(item);
  }
  dialog.querySelector("[data-report]").replaceChildren(words, ...(report.problems.length ? [problems] : []));
}

// The words that would change, without the lines that are left out anyway.
function sayChanges(dialog, report, nodes) {
  const leftOut = new Set(report.problems.map(({ line }) => String(line)));
  const changes = lineList("rewordings", "Memories that would change");
  changes.append(...[...nodes.querySelectorAll("li")].filter((item) => !leftOut.has(item.dataset.line)));
  const more = report.changed - changes.children.length;
  dialog.querySelector("[data-report] p").after(changes, ...(more > 0 ? [paragraph(`And ${more} more.`)] : []));
}

// It scrolls, so the keyboard must get into it.
function lineList(className, label) {
  const made = document.createElement("ul");
  made.className = className;
  made.tabIndex = 0;
  made.setAttribute("aria-label", label);
  return made;
}

function openForget(list) {
  const dialog = document.getElementById("forget");
  const meters = document.querySelector("[data-memories-in-book]").dataset;
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

function some(count, one, many) {
  return `${count} ${Number(count) === 1 ? one : many}`;
}

// Says each second how many memories are left, until the request is over. Returns what the request answers.
async function whileSaying(dialog, list, request) {
  let over = false;
  const timer = setInterval(async () => {
    await list.refreshSummary();
    if (over) return;
    const left = document.querySelector("[data-memories-in-book]").dataset.memoriesInBook;
    const words = `Forgetting: ${some(left, "memory is", "memories are")} left. It goes on when you close this page.`;
    dialog.querySelector("[data-receipt]").replaceChildren(paragraph(words));
    dialog.querySelector("[data-receipt]").hidden = false;
    dialog.querySelector("[data-done]").textContent = "Close";
  }, 1000);
  try {
    return await request;
  } finally {
    over = true;
    clearInterval(timer);
  }
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
      const request = call("DELETE", `/api/account/memories?book=${encodeURIComponent(list.book)}`);
      const receipt = await whileSaying(dialog, list, request);
      const erased = Object.entries(receipt.erased).filter(([, count]) => count);
      const words = paragraph(`Forgotten, ${new Date(receipt.at).toISOString().slice(0, 16).replace("T", " ")} UTC. The receipt:`);
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

function paragraph(words) {
  const made = document.createElement("p");
  made.textContent = words;
  return made;
}

async function attempt(dialog, work) {
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
