// Shows running reviews as a dot, and the number of reviews that wait for a decision on the tab. Polls only while a review
// is running.

import { ApiError, call } from "./api.js";

const SOON = 1500;
const LONGEST = 30000;
const UNDER_WAY = new Set(["scheduled", "running"]);

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
    let reviews;
    try {
      reviews = (await call("GET", "/api/reviews?limit=50")).data;
    } catch (error) {
      if (error instanceof ApiError) return; // the dot is not essential
      throw error;
    }
    this.sessions = new Set(reviews.filter(({ state }) => UNDER_WAY.has(state)).map((review) => review.session_id));
    const waiting = reviews.filter(({ state }) => state === "awaiting_approval").length;
    this.dispatchEvent(new CustomEvent("looked", { detail: { sessions: this.sessions, waiting } }));
    if (!this.sessions.size) return;
    this.timer = setTimeout(() => this.#look(), this.pause);
    this.pause = Math.min(LONGEST, this.pause * 1.5);
  }
}
