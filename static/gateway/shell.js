// Features of every page: theme, shortcuts, dialogs, the connection, toasts, and the number of waiting reviews.

import { refused, request } from "./api.js";
import { showHelp } from "./help.js";
import { Notifications } from "./notifications.js";
import { ReviewsWatch } from "./reviews_watch.js";
import { onTold, tell } from "./tabs.js";
import { forgetWordsOf, keep } from "./storage.js";
import { leaveTemporary } from "./temporary.js";
import { Toasts } from "./toasts.js";

const REACHED_STAYS = 5000;

export const toasts = new Toasts(document.getElementById("toasts"));
export const reviews = new ReviewsWatch();
export const notifications = document.body.dataset.notification === undefined ? null : new Notifications(document.body.dataset.notification, document.getElementById("main").dataset.session);

// Asks for confirmation before an action that cannot be undone.
export function confirmed({ title, text, action }) {
  const dialog = document.getElementById("confirm");
  dialog.querySelector("[data-title]").textContent = title;
  dialog.querySelector("[data-text]").textContent = text;
  dialog.querySelector("[data-confirm]").textContent = action;
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => dialog.addEventListener("close", () => resolve(dialog.returnValue === "confirm"), { once: true }));
}

function switchTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  keep("theme", root.dataset.theme);
}

function showConnection(shown) {
  for (const state of ["lost", "late", "regained"]) document.getElementById(`connection-${state}`).hidden = state !== shown;
}

// Shows the key names of this platform.
if (/^(mac|ip)/i.test(navigator.userAgentData?.platform ?? navigator.platform)) {
  for (const key of document.querySelectorAll("kbd")) key.textContent = key.textContent.replace("Ctrl", "⌘");
}

// The second click of a double click is not meant for a button that the first one has put there, such as Restore in place
// of Undo, or Approve of the next proposal. Arrows between versions, and × of several notices, are meant to be clicked fast.
let clicked = null;
document.addEventListener(
  "click",
  (event) => {
    const button = event.target.closest("button, a");
    if (event.detail > 1 && button && button !== clicked && !button.matches("[data-choose], .toast [data-close]")) {
      event.preventDefault();
      event.stopImmediatePropagation();
    } else clicked = button;
  },
  { capture: true },
);

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-theme-switch]")) switchTheme();
  if (event.target.closest("[data-shortcuts]")) {
    document.getElementById("account-menu")?.hidePopover();
    showHelp();
  }
});

// Whether text on this page is written nowhere else. The composer keeps its draft.
const hasUnsaved = () => [...document.querySelectorAll("textarea:not(#message)")].some((area) => area.checkVisibility() && area.value !== area.defaultValue);

// Attachments in the composer, and of a message that the server does not have.
const UNSENT = "#attached li, .turn:is([data-refused], [data-turn='']) [data-attached] li";

// The browser asks before it drops unsaved text, or attachments.
addEventListener("beforeunload", (event) => {
  if (document.querySelector(UNSENT) || hasUnsaved()) event.preventDefault();
});

document.addEventListener("keydown", (event) => {
  if (!(event.ctrlKey || event.metaKey) || event.altKey) return;
  const key = event.key.toLowerCase();
  const search = document.querySelector("[data-page-search]");
  if (key === "k" && !event.shiftKey && search) {
    if (!search.checkVisibility({ visibilityProperty: true })) document.querySelector(".topbar__menu")?.click();
    search.focus();
    search.select();
  } else if (key === "o" && event.shiftKey) location.href = "/new/";
  else if (key === "m" && event.shiftKey) location.href = "/memories/";
  else if (key === "/" && !event.shiftKey) showHelp();
  else return;
  event.preventDefault();
});

// The login has ended: the sign-in page opens, unless text on this page would be lost.
function loginEnded() {
  if (hasUnsaved()) document.dispatchEvent(new CustomEvent("signed-out"));
  else location.href = `/login/?next=${encodeURIComponent(location.pathname)}`;
}

// htmx requested a fragment.
document.body.addEventListener("htmx:responseError", ({ detail }) => {
  if (detail.xhr.status === 401) loginEnded();
});

// Times are shown in the zone of the person's first browser, until they choose another one. Some browsers name zones that
// neither the server nor their own formatting knows, such as Etc/Unknown.
const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
if ("noTimeZone" in document.body.dataset && timeZone !== "UTC") {
  refused(async () => {
    const saved = await request("POST", "/account/time-zone/", new URLSearchParams({ time_zone: timeZone }));
    await saved.text(); // an answer that is not read keeps its connection
    document.getElementById("main").dataset.timeZone = timeZone;
  });
}

const { formerOwner } = document.getElementById("deletion")?.dataset ?? {};
if (formerOwner) {
  forgetWordsOf(formerOwner);
  tell({ kind: "forgotten", owner: formerOwner }); // other tabs have drafts of their own
}
onTold(({ kind, owner }) => kind === "forgotten" && forgetWordsOf(owner));

if (notifications) {
  // The login has ended. The page's unsaved text stays while the person signs in in another tab.
  document.addEventListener("signed-out", () => {
    showConnection("");
    document.getElementById("signed-out").hidden = false;
  });
  notifications.addEventListener("ended", loginEnded);
  document.addEventListener("visibilitychange", () => {
    document.getElementById("signed-out").hidden = true; // if they are still signed out, the next request shows it again
  });
  let quiet = 0;
  for (const state of ["lost", "late", "regained"]) {
    notifications.addEventListener(state, () => {
      clearTimeout(quiet);
      showConnection(state);
      if (state === "lost") return;
      document.getElementById("signed-out").hidden = true;
      quiet = setTimeout(() => showConnection(""), REACHED_STAYS); // on a phone it covers the page
    });
  }
  notifications.addEventListener("message", ({ detail }) => {
    if (!detail.kind.startsWith("review.")) return;
    if (detail.text) toasts.review(detail);
    reviews.look();
  });
  onTold(({ kind }) => kind === "reviews" && reviews.look());
  reviews.addEventListener("looked", ({ detail }) => {
    const badge = document.getElementById("reviews-waiting");
    badge.querySelector("[data-count]").textContent = String(detail.waiting);
    badge.hidden = !detail.waiting;
  });
  reviews.look();
  leaveTemporary();
}
