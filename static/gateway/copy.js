// Copying answers and code, also where the page is not served over https and the clipboard API is missing.

export async function copyText(text) {
  if (navigator.clipboard && window.isSecureContext) {
    await navigator.clipboard.writeText(text);
    return;
  }
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "vh";
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

export function addCopyButtons(root) {
  const button = document.getElementById("copy-code");
  for (const bar of root.querySelectorAll(".code__bar")) {
    if (!bar.querySelector("[data-copy-code]")) bar.append(button.content.cloneNode(true));
  }
}

async function copied(button, text) {
  await copyText(text);
  const label = button.querySelector("span");
  const before = label ? label.textContent : button.getAttribute("aria-label");
  const say = (words) => (label ? (label.textContent = words) : button.setAttribute("aria-label", words));
  say("Copied");
  button.dataset.copied = "";
  setTimeout(() => {
    say(before);
    delete button.dataset.copied;
  }, 2000);
}

export function installCopy(root) {
  root.addEventListener("click", (event) => {
    const code = event.target.closest("[data-copy-code]");
    if (code) copied(code, code.closest(".code").querySelector("code").textContent);
    const answer = event.target.closest("[data-copy-answer]");
    if (answer) copied(answer, answer.closest(".entry").querySelector("[data-source]").content.textContent);
  });
}
