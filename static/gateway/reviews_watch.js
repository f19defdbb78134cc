// Reviews that are under way, as a quiet dot, and those that wait for a person, as a number on the tab.
// Nothing is polled while nothing is under way.

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

  // Looks now, and again for as long as something is under way, more and more seldom.
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
      if (error instanceof ApiError) return; // the dot is a courtesy
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
