// When Daybook or the model server is overloaded, the message is sent again automatically a few times, with a countdown.
// Pressing "Try again", editing the message or sending another one cancels this.

import { some } from "./parts.js";

const BUSY = new Set(["overloaded", "rate_limited"]);
const RETRIES = 3;
const USUAL = 8; // seconds
const LONGEST = 60;

export function isBusy(code, attempt) {
  return BUSY.has(code) && attempt < RETRIES;
}

// Counts down in `line` while `wanted()` is true, then restores its text. Resolves to whether it is still true.
export async function countDown(line, seconds, wanted) {
  const before = line.textContent;
  line.setAttribute("aria-live", "off"); // inside a live region, every second would be announced
  for (let left = Math.min(LONGEST, Math.ceil(Number(seconds) || USUAL)); left > 0; left -= 1) {
    line.textContent = `Trying again in ${some(left, "second")}.`;
    await new Promise((resolve) => setTimeout(resolve, 1000));
    if (!wanted()) break;
  }
  line.textContent = before;
  return wanted();
}
