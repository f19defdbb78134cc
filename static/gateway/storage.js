// Local storage, with errors ignored if storage is not allowed.

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
    // Full or not allowed; nothing important is stored only here.
  }
}
