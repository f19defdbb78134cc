// A button that shows the password, and the browser's time zone, which the server saves at the first sign-in so that the
// first page shows local times.

import "./shell.js";

const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
if (timeZone !== "UTC") document.cookie = `daybook_zone=${timeZone}; path=/; samesite=lax`;

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
