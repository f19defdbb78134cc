// The account page: confirmation before a key is revoked, copying a new key, the browser's time zone, the typed phrase.

import { copyText } from "./copy.js";
import { confirmed } from "./shell.js";

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (!form.dataset.confirmTitle) return;
  event.preventDefault();
  if (await confirmed({ title: form.dataset.confirmTitle, text: form.dataset.confirmText, action: form.dataset.confirmAction ?? "Revoke" })) form.submit();
});

document.addEventListener("click", async (event) => {
  const copy = event.target.closest("[data-copy-key]");
  if (!copy) return;
  const key = document.getElementById("plain-key");
  if (await copyText(key.textContent)) copy.querySelector("span").textContent = "Copied";
  else getSelection().selectAllChildren(key);
});

document.addEventListener("htmx:afterSwap", () => document.querySelector("[data-new-key]")?.focus());

const zones = document.getElementById("time-zone");
const here = document.querySelector("[data-here]");
const mine = Intl.DateTimeFormat().resolvedOptions().timeZone;
const isKnown = [...zones.options].some(({ value }) => value === mine);
if (isKnown && "noTimeZone" in document.body.dataset) zones.value = mine; // the shell saves it
else if (isKnown && mine !== zones.value) {
  here.querySelector("[data-name]").textContent = mine;
  here.hidden = false;
  here.addEventListener("click", () => {
    zones.value = mine;
    zones.form.requestSubmit();
  });
}

const line = document.getElementById("delete-line");
const button = document.querySelector("[data-delete] [type=submit]");
const ready = () => {
  button.disabled = line.value.trim() !== line.dataset.wanted;
};
line.addEventListener("input", ready);
ready();
