// Copying answers and code, also where the page is not served over https and the clipboard API is missing.

import { element } from "./parts.js";

// Resolves to whether the text was copied.
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // It is not allowed, or the page is not served over https.
  }
  const focused = document.activeElement;
  const area = element("textarea", { value: text, className: "vh" });
  document.body.append(area);
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  focused?.focus({ preventScroll: true });
  return copied;
}

export function addCopyButtons(root) {
  const button = document.getElementById("copy-code");
  for (const bar of root.querySelectorAll(".code__bar")) {
    if (!bar.querySelector("[data-copy-code]")) bar.append(button.content.cloneNode(true));
  }
}

async function copied(button, text) {
  const done = await copyText(text);
  if ("copied" in button.dataset) return; // the label still says so
  const label = button.querySelector("span");
  const before = label ? label.textContent : button.getAttribute("aria-label");
  const say = (words) => (label ? (label.textContent = words) : button.setAttribute("aria-label", words));
  say(done ? "Copied" : "Not copied");
  button.dataset.copied = "";
  setTimeout(() => {
    say(before);
    delete button.dataset.copied;
  }, 2000);
}

// A selection with formulas is copied with their LaTeX source, which other programs can read.
function copyFormulas(event) {
  const selection = getSelection();
  if (!selection.rangeCount || selection.isCollapsed || event.target.closest?.("textarea, input")) return;
  const copy = element("div", { className: "copying" });
  for (let at = 0; at < selection.rangeCount; at += 1) copy.append(selection.getRangeAt(at).cloneContents());
  const within = selection.getRangeAt(0).commonAncestorContainer;
  const formula = (within.closest ? within : within.parentElement).closest("math");
  if (formula) copy.replaceChildren(formula.cloneNode());
  const formulas = copy.querySelectorAll("math[alttext]");
  if (!formulas.length) return;
  for (const math of formulas) {
    const latex = math.getAttribute("alttext");
    math.replaceWith(math.getAttribute("display") === "block" ? `$$${latex}$$` : `\\(${latex}\\)`);
  }
  document.body.append(copy); // innerText only has line breaks for elements with a layout
  event.clipboardData.setData("text/plain", copy.innerText);
  copy.remove();
  event.preventDefault();
}

export function installCopy(root) {
  root.addEventListener("copy", copyFormulas);
  root.addEventListener("click", (event) => {
    const code = event.target.closest("[data-copy-code]");
    if (code) copied(code, code.closest(".code").querySelector("code").textContent);
    const answer = event.target.closest("[data-copy-answer]");
    if (answer) copied(answer, answer.closest(".entry").querySelector("[data-source]").content.textContent);
  });
}
