// The turn of a message that this page sends, as the server would render it, until the server has.

import { show } from "./attachments.js";
import { fold } from "./fold.js";

// Returns the section of a turn that has a message and no answer yet.
export function liveTurn(content, attached, timeZone) {
  const section = document.getElementById("live-turn").content.cloneNode(true).querySelector(".turn");
  const said = section.querySelector("[data-said-text]");
  said.textContent = content;
  fold(said, content);
  show(section.querySelector("[data-attached]"), attached);
  const now = new Date();
  for (const time of section.querySelectorAll("time")) {
    time.dateTime = now.toISOString();
    time.textContent = now.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", timeZone });
  }
  return section;
}

// Appends the section to the turns, below a heading of today.
export function append(ledger, section, timeZone) {
  const heading = today(timeZone);
  if ([...ledger.querySelectorAll(".dayline h2")].at(-1)?.textContent !== heading) {
    const day = document.getElementById("live-day").content.cloneNode(true);
    day.querySelector("h2").textContent = heading;
    ledger.append(day);
  }
  ledger.append(section);
}

// The heading of today, as the server writes it: "Friday 20 November". The page may have been open since yesterday.
function today(timeZone) {
  const words = new Intl.DateTimeFormat("en-GB", { weekday: "long", day: "numeric", month: "long", timeZone });
  return words.formatToParts(new Date()).filter(({ type }) => type !== "literal").map(({ value }) => value).join(" ");
}
