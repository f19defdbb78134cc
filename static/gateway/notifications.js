// Notifications while the page is open: a websocket that reconnects and misses nothing, since it sends the number of the
// last notification that it has seen.

const SIGNED_OUT = 4401; // close code of the server
const LONGEST = 15000;
const QUIET_FAILURES = 4; // failures before a page that never connected says so

export class Notifications extends EventTarget {
  constructor(after) {
    super();
    this.last = Number(after);
    this.failures = 0;
    this.wasOpen = false;
    window.addEventListener("online", () => this.#now());
    window.addEventListener("offline", () => this.#offline());
    window.addEventListener("pagehide", () => this.socket?.close());
    window.addEventListener("pageshow", (event) => event.persisted && this.#now());
    // The response to this form reports the end of the login; do not open the sign-in page before it.
    document.addEventListener("submit", ({ target }) => {
      this.leaving = target.matches("[data-delete]");
    });
    this.#open();
  }

  #open() {
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const socket = new WebSocket(`${scheme}://${location.host}/ws/notifications/?after=${this.last}`);
    this.socket = socket;
    socket.addEventListener("open", () => {
      if (socket !== this.socket) return;
      this.failures = 0;
      if (this.lost) this.dispatchEvent(new CustomEvent("regained"));
      this.lost = false;
      this.wasOpen = true;
    });
    socket.addEventListener("message", ({ data }) => {
      const message = JSON.parse(data);
      const number = Number(message.id);
      if (number <= this.last && message.kind !== "resync") return;
      this.last = Math.max(this.last, number);
      this.dispatchEvent(new CustomEvent("message", { detail: message }));
    });
    socket.addEventListener("close", ({ code }) => {
      if (socket !== this.socket) return;
      if (code === SIGNED_OUT) this.#signedOut();
      this.failures += 1;
      if (this.wasOpen || this.failures >= QUIET_FAILURES) this.#lost();
      if (this.failures === QUIET_FAILURES) this.#signedOut();
      const delay = Math.min(LONGEST, 300 * 2 ** this.failures) * (0.75 + Math.random() / 2);
      this.timer = setTimeout(() => this.#open(), delay);
    });
  }

  isReachable() {
    return fetch("/healthz", { cache: "no-store", signal: AbortSignal.timeout(5000) }).then(({ ok }) => ok, () => false);
  }

  // Always opens a new socket: after a network change the old one may look open but be dead.
  #now() {
    clearTimeout(this.timer);
    const old = this.socket;
    this.socket = null;
    old?.close();
    this.#open();
  }

  // A local Daybook responds without a network. If it does not, the socket may still look open.
  async #offline() {
    const old = this.socket;
    if ((await this.isReachable()) || old !== this.socket) return;
    this.socket = null;
    clearTimeout(this.timer);
    old?.close();
    this.#lost();
  }

  #lost() {
    this.lost = true;
    this.dispatchEvent(new CustomEvent("lost"));
  }

  // Repeated refusals may mean that the login has ended, in another tab or by a password change.
  async #signedOut() {
    if (this.leaving) return;
    const answer = await fetch(`/api/notifications?after=${this.last}&limit=1`).catch(() => null);
    if (answer?.status === 401) this.dispatchEvent(new CustomEvent("ended"));
  }
}
