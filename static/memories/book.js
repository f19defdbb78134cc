// The menu of a book: import, and permanent deletion of everything with a typed phrase and a receipt.

import { attempt, call } from "../gateway/api.js";
import { element, some } from "../gateway/parts.js";
import { installImport } from "./importing.js";

export function installBook(list) {
  const menu = document.getElementById("book-menu");
  const openImport = installImport(document.getElementById("import"), list);
  place(menu);
  menu.querySelector("[data-export]").addEventListener("click", () => menu.hidePopover());
  document.querySelector("[data-import]").addEventListener("click", () => {
    menu.hidePopover();
    openImport();
  });
  document.querySelector("[data-forget]").addEventListener("click", () => {
    menu.hidePopover();
    openForget(list);
  });
  installForget(document.getElementById("forget"), list);
}

// Positions the menu below its button.
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

function openForget(list) {
  const dialog = document.getElementById("forget");
  const meters = document.querySelector("[data-memories-in-book]").dataset;
  dialog.querySelector("[data-what]").textContent =
    `This deletes ${some(meters.memoriesInBook, "memory", "memories")}, ${some(meters.documentsInBook, "document", "documents")} ` +
    `and their history in book ${list.book} for good. It cannot be undone.`;
  dialog.querySelector("[data-line]").textContent = `delete ${list.book}`;
  dialog.querySelector("form").reset();
  dialog.querySelector("[data-ask]").hidden = false;
  dialog.querySelector("[data-receipt]").hidden = true;
  dialog.querySelector("[data-error]").hidden = true;
  dialog.querySelector("[data-done]").textContent = "Keep it";
  dialog.querySelector("[data-forget-now]").hidden = false;
  dialog.querySelector("[data-forget-now]").disabled = true;
  dialog.showModal();
}

// Shows every second how many memories are left, until the request has finished. Returns its response.
async function whileSaying(dialog, list, request) {
  let over = false;
  const timer = setInterval(async () => {
    await list.refreshSummary();
    if (over) return;
    const left = document.querySelector("[data-memories-in-book]").dataset.memoriesInBook;
    const words = `Deleting: ${some(left, "memory is", "memories are")} left. This continues even if you close this page.`;
    dialog.querySelector("[data-receipt]").replaceChildren(element("p", {}, words));
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
    event.preventDefault(); // the form's default button would cancel
    if (ready()) button.click();
  });
  button.addEventListener("click", () =>
    attempt(dialog, button, async () => {
      const request = call("DELETE", `/api/account/memories?book=${encodeURIComponent(list.book)}`);
      const receipt = await whileSaying(dialog, list, request);
      const erased = Object.entries(receipt.erased).filter(([, count]) => count);
      const at = new Date(receipt.at).toISOString().slice(0, 16).replace("T", " ");
      const lines = (erased.length ? erased : [["nothing", 0]]).map(([what, count]) =>
        element("div", {}, element("dt", {}, what.replaceAll("_", " ")), element("dd", {}, Number(count).toLocaleString("en"))),
      );
      const figures = element("dl", { className: "receipt" }, ...lines);
      dialog.querySelector("[data-receipt]").replaceChildren(element("p", {}, `Deleted for good, ${at} UTC. The receipt:`), figures);
      dialog.querySelector("[data-receipt]").hidden = false;
      dialog.querySelector("[data-ask]").hidden = true;
      button.hidden = true;
      dialog.querySelector("[data-done]").textContent = "Close";
      dialog.querySelector("[data-done]").focus();
      await list.narrow();
      list.refreshSummary();
    }).finally(() => {
      button.disabled = !ready(); // the dialog may have been opened again, maybe for another book
    }),
  );
}
