// Texts of a book's dialogs.

export function some(count, one, many) {
  return `${Number(count).toLocaleString("en")} ${Number(count) === 1 ? one : many}`;
}

export function paragraph(words) {
  const made = document.createElement("p");
  made.textContent = words;
  return made;
}
