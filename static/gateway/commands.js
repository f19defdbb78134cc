// Completion of /memory commands: opens on "/" at the start, filters while typing; focus stays in the text field.

import { some } from "./parts.js";

export function installCommands(composer, status) {
  const { area } = composer;
  const list = document.getElementById("commands");
  const options = [...list.querySelectorAll("[role=option]")];
  let matches = [];
  let at = 0;
  let dismissed = "";

  const show = () => {
    const typed = area.value;
    matches = typed.startsWith("/") && typed !== dismissed ? options.filter((option) => option.dataset.command.startsWith(typed.trimEnd())) : [];
    if (matches.length === 1 && matches[0].dataset.command === typed.trim()) matches = [];
    const wasOpen = !list.hidden;
    list.hidden = !matches.length;
    for (const option of options) option.hidden = !matches.includes(option);
    at = 0;
    mark();
    if (matches.length) status.textContent = some(matches.length, "command");
    else if (wasOpen) status.textContent = "";
  };

  const mark = () => {
    options.forEach((option) => option.setAttribute("aria-selected", String(option === matches[at])));
    if (matches[at]) area.setAttribute("aria-activedescendant", matches[at].id);
    else area.removeAttribute("aria-activedescendant");
  };

  const take = (option) => {
    composer.text = option.dataset.command;
    area.focus();
  };

  // Registered before the text field's own keys, or Enter would send an incomplete command.
  composer.form.addEventListener("keydown", (event) => {
    if (event.target !== area || list.hidden || event.isComposing) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      at = (at + (event.key === "ArrowDown" ? 1 : matches.length - 1)) % matches.length;
      mark();
    } else if ((event.key === "Tab" && !event.shiftKey) || event.key === "Enter") take(matches[at]);
    else if (event.key === "Escape") {
      dismissed = area.value;
      show();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }, { capture: true });
  list.addEventListener("mousedown", (event) => {
    const option = event.target.closest("[role=option]");
    if (!option) return;
    event.preventDefault(); // the text field keeps the focus
    take(option);
  });
  composer.addEventListener("changed", () => {
    if (area.value !== dismissed) dismissed = "";
    show();
  });
}
