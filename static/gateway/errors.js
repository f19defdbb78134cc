// Errors in words. The words are the server's: it puts them into the page once, by code.

export function wordsFor(code) {
  const rows = document.getElementById("error-words")?.content;
  const row = rows?.querySelector(`[data-code="${CSS.escape(code)}"]`) ?? rows?.querySelector('[data-code="error"]');
  return {
    code,
    headline: row?.querySelector("b").textContent ?? "It did not work.",
    rest: row?.querySelector("span").textContent ?? "",
  };
}
