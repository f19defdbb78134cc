// The dialog of commands and shortcuts: opened by `?` outside of text fields, and by `/help` in the composer. The key can
// be turned off, since speech input and other assistive technology may press it by accident.

import { keep, recall } from "./storage.js";

const dialog = document.getElementById("help");
const byKey = dialog.querySelector("[data-help-key]");

export function showHelp() {
  if (!dialog.open) dialog.showModal();
}

export function isHelp(text) {
  return text.trim().toLowerCase() === "/help";
}

function writing(target) {
  return target.isContentEditable || target.matches("input:not([type=checkbox], [type=radio], [type=button]), textarea, select");
}

byKey.checked = recall("help-key") !== "off";
byKey.addEventListener("change", () => keep("help-key", byKey.checked ? null : "off"));

document.addEventListener("keydown", (event) => {
  if (event.key !== "?" || event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.defaultPrevented) return;
  if (!byKey.checked || writing(event.target) || document.querySelector("dialog[open]")) return;
  event.preventDefault();
  showHelp();
});
