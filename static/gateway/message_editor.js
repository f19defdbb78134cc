// Edits a message in place: the conversation continues from it, and what followed it remains as another version.

import { installKeys } from "./editor_keys.js";
import { fromTemplate } from "./parts.js";

export function editMessage(section, send) {
  const body = section.querySelector(".entry--you .entry__body");
  if (body.querySelector("[data-message-editor]")) return;
  const editor = fromTemplate("message-editor");
  const area = editor.querySelector("textarea");
  const opener = document.activeElement;
  const shown = body.querySelectorAll(":scope > :not(.attached)"); // the attachments are kept
  area.defaultValue = section.querySelector("[data-said]").content.textContent;
  for (const child of shown) child.hidden = true;
  body.prepend(editor);
  area.setSelectionRange(area.value.length, area.value.length);
  area.focus();
  editor.scrollIntoView({ block: "nearest" });

  const close = () => {
    editor.remove();
    for (const child of shown) child.hidden = false;
    if (opener?.isConnected) opener.focus();
  };
  installKeys(editor, close, ({ shiftKey, target }) => !shiftKey && target === area);
  editor.addEventListener("submit", (event) => {
    event.preventDefault();
    const content = area.value.trim();
    if (content) send(content);
  });
}
