// Updates a list in place. Entries have an id, and a data-version that changes with their content. Remaining entries are
// not moved, since one of them may be being edited.

export async function reconcile(list, incoming, { news = false, busy = () => false, leave = (entry) => entry.remove() } = {}) {
  const listed = new Set(incoming.map((entry) => entry.id));
  const gone = [...list.children].filter((entry) => !listed.has(entry.id));
  let place = list.firstElementChild;
  for (const fresh of incoming) {
    while (place && !listed.has(place.id)) place = place.nextElementSibling;
    const present = document.getElementById(fresh.id);
    if (!present) {
      list.insertBefore(fresh, place);
      fresh.classList.toggle("is-new", news);
      continue;
    }
    if (present === place) place = place.nextElementSibling;
    else list.insertBefore(present, place);
    if (present.dataset.version === fresh.dataset.version || busy(present)) continue;
    fresh.classList.toggle("is-new", news);
    replaceFocused(present, fresh);
  }
  for (const entry of gone) if (!busy(entry)) await leave(entry);
}

// A replaced entry keeps the focus on the same button.
export function replaceFocused(present, fresh) {
  const focused = present.contains(document.activeElement) ? document.activeElement.closest("button") : null;
  const label = focused?.getAttributeNames().find((name) => name.startsWith("data-"));
  present.replaceWith(fresh);
  if (label) (fresh.querySelector(`[${label}]`) ?? fresh.querySelector("button, a"))?.focus();
}
