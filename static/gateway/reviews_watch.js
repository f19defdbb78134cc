// Shows running reviews as a dot, and the number of reviews that wait for a decision on the tab. Polls only while a review
// is running.

import { call, refused } from "./api.js";

const SOON = 1500;
const LONGEST = 30000;

// Not a review that waits for tomorrow, since today's are used up.
const isUnderWay = ({ state, error }) => state === "running" || (state === "scheduled" && error?.code !== "daily_limit");

export class ReviewsWatch extends EventTarget {
  constructor() {
    super();
    this.sessions = new Set();
    this.timer = 0;
    this.pause = SOON;
  }

  // Polls now, and while a review is running at increasing intervals.
  look() {
    this.pause = SOON;
    return this.#look();
  }

  async #look() {
    clearTimeout(this.timer);
    let newest, waiting;
    const error = await refused(async () => {
      [newest, waiting] = await Promise.all([call("GET", "/api/reviews?limit=50"), call("GET", "/api/reviews?state=awaiting_approval&limit=100")]);
    });
    if (error) return; // the dot is not essential
    this.sessions = new Set(newest.data.filter(isUnderWay).map((review) => review.session_id));
    const detail = { sessions: this.sessions, waiting: waiting.has_more ? "100+" : waiting.data.length };
    this.dispatchEvent(new CustomEvent("looked", { detail }));
    if (!this.sessions.size) return;
    this.timer = setTimeout(() => this.#look(), this.pause);
    this.pause = Math.min(LONGEST, this.pause * 1.5);
  }
}
