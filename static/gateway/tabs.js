// Tells the other tabs of this browser what one of them starts or changes.

const channel = "BroadcastChannel" in window ? new BroadcastChannel("daybook") : null;

export function tell(message) {
  channel?.postMessage(message);
}

export function onTold(listener) {
  channel?.addEventListener("message", (event) => listener(event.data));
}
