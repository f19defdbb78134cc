// What this browser remembers. Where storage is refused, a page simply forgets.

const PREFIX = "daybook:";

export function recall(key) {
  try {
    return localStorage.getItem(PREFIX + key);
  } catch {
    return null;
  }
}

export function keep(key, value) {
  try {
    if (value === null || value === "") localStorage.removeItem(PREFIX + key);
    else localStorage.setItem(PREFIX + key, value);
  } catch {
    // Full or refused: nothing that matters is kept only here.
  }
}
