// Storage of this browser, or of this tab, with errors ignored if storage is not allowed.

const PREFIX = "daybook:";
const BROWSER = "localStorage";
export const TAB = "sessionStorage";

export function recall(key, place = BROWSER) {
  try {
    return window[place].getItem(PREFIX + key);
  } catch {
    return null;
  }
}

// Removes the values whose keys match, in this browser and this tab.
export function forget(pattern) {
  try {
    for (const storage of [localStorage, sessionStorage]) {
      for (const key of Object.keys(storage)) {
        if (key.startsWith(PREFIX) && pattern.test(key.slice(PREFIX.length))) storage.removeItem(key);
      }
    }
  } catch {
    // Not allowed.
  }
}

// Removes what a person wrote or searched for. Their choices, such as the theme, stay.
export function forgetWordsOf(owner) {
  forget(new RegExp(`^(?:draft:${owner}:.*|session-list:${owner})$`, "s"));
}

export function keep(key, value, place = BROWSER) {
  try {
    if (value === null || value === "") window[place].removeItem(PREFIX + key);
    else window[place].setItem(PREFIX + key, value);
  } catch {
    // Full or not allowed; nothing important is stored only here.
  }
}
