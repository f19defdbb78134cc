// Notifications while the page is open: a websocket that reconnects and misses nothing, since it sends the number of the
// last notification that it has seen. While it fails, each attempt is followed by a request: a proxy may block websockets
// only. Events: `message`; `session` (the one that the page shows has changed); `lost`, `late` (only websockets fail) and
// `regained`; `polled` (while it is late); `ended` (the login).

const LONGEST = 15000;
const QUIET_FAILURES = 4; // failures before a page that never connected, or has only lost its socket, says so

export class Notifications extends EventTarget {
  constructor(after, session) {
    super();
    this.last = Number(after);
    this.session = session;
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

  // Watches the session that the page has created.
  watch(session) {
    this.session = session;
    this.#now();
  }

  #open() {
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const query = new URLSearchParams({ after: this.last, ...(this.session && { session: this.session }) });
    const socket = new WebSocket(`${scheme}://${location.host}/ws/notifications/?${query}`);
    this.socket = socket;
    socket.addEventListener("open", () => {
      if (socket !== this.socket) return;
      this.failures = 0;
      if (this.state) this.#become("regained");
      this.state = "";
      this.wasOpen = true;
    });
    socket.addEventListener("message", ({ data }) => this.#show(JSON.parse(data)));
    socket.addEventListener("close", async () => {
      if (socket !== this.socket) return;
      this.failures += 1;
      if (this.wasOpen || this.failures >= QUIET_FAILURES) await this.#ask();
      if (socket !== this.socket) return;
      const delay = Math.min(LONGEST, 300 * 2 ** this.failures) * (0.75 + Math.random() / 2);
      this.timer = setTimeout(() => this.#open(), delay);
    });
  }

  #show(message) {
    if (message.session_id) {
      this.dispatchEvent(new CustomEvent("session", { detail: message }));
      return;
    }
    const number = Number(message.id);
    if (number <= this.last && message.kind !== "resync") return;
    this.last = Math.max(this.last, number);
    this.dispatchEvent(new CustomEvent("message", { detail: message }));
  }

  #become(state) {
    if (state === this.state) return;
    this.state = state;
    this.dispatchEvent(new CustomEvent(state));
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
    if ((await this.#missed()) !== null || old !== this.socket) return;
    this.socket = null;
    clearTimeout(this.timer);
    old?.close();
    this.#become("lost");
  }

  // Gets by a request what the socket did not bring.
  async #ask() {
    const { socket } = this;
    const missed = await this.#missed();
    if (socket !== this.socket) return;
    if (missed === null) this.#become("lost");
    else if (missed && (this.state || this.failures >= QUIET_FAILURES)) this.#become("late");
    for (const message of missed ?? []) this.#show(message);
    if (this.state === "late") this.dispatchEvent(new CustomEvent("polled"));
  }

  // Resolves to the notifications since the last one, to null if Daybook cannot say, or to undefined if the login has
  // ended: in another tab, or by a password change.
  async #missed() {
    if (this.leaving) return undefined;
    try {
      const response = await fetch(`/api/notifications?after=${this.last}`, { cache: "no-store", signal: AbortSignal.timeout(5000) });
      if (response.ok) return (await response.json()).data;
      if (response.status !== 401) return null; // its database is away, or a proxy answers
      this.dispatchEvent(new CustomEvent("ended"));
      return undefined;
    } catch {
      return null;
    }
  }
}
