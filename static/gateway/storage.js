// Local storage, with errors ignored if storage is not allowed.

const PREFIX = "daybook:";

export function recall(key) {
  try {
    return localStorage.getItem(PREFIX + key);
  } catch {
    return null;
  }
}

// Removes the values whose keys match.
export function forget(pattern) {
  try {
    for (const key of Object.keys(localStorage)) {
      if (key.startsWith(PREFIX) && pattern.test(key.slice(PREFIX.length))) localStorage.removeItem(key);
    }
  } catch {
    // Not allowed.
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
