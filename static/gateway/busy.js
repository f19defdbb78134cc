// Too much at once, here or at the model server: the message is sent again by itself, a few times, and the page counts
// the seconds. Whoever presses Try again, edits the message or says something else is quicker, and nothing more is sent.

const BUSY = new Set(["overloaded", "rate_limited"]);
const RETRIES = 3;
const USUAL = 8; // seconds
const LONGEST = 60;

export function isBusy(code, attempt) {
  return BUSY.has(code) && attempt < RETRIES;
}

// Counts down in `line`, and puts its words back when it is not wanted any more. Resolves to whether it still is.
export async function countDown(line, seconds, wanted) {
  const before = line.textContent;
  line.setAttribute("aria-live", "off"); // it stands in a live region, and every second would be read out
  for (let left = Math.min(LONGEST, Math.ceil(Number(seconds) || USUAL)); left > 0; left -= 1) {
    line.textContent = `Trying again in ${left} second${left === 1 ? "" : "s"}.`;
    await new Promise((resolve) => setTimeout(resolve, 1000));
    if (!wanted()) break;
  }
  line.textContent = before;
  return wanted();
}
