// A button that shows the password.

import "./shell.js";

const button = document.querySelector("[data-reveal]");
const field = document.getElementById("password");

if (button) button.hidden = false;
button?.addEventListener("click", () => {
  const shown = field.type === "password";
  field.type = shown ? "text" : "password";
  button.setAttribute("aria-pressed", String(shown));
  button.textContent = shown ? "Hide" : "Show";
  button.setAttribute("aria-label", shown ? "Hide password" : "Show password");
  field.focus();
});
