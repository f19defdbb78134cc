// Errors in words. The words are the server's: it puts them into the page once, by code.

export function wordsFor(code) {
  const rows = document.getElementById("error-words")?.content;
  const row = rows?.querySelector(`[data-code="${CSS.escape(code)}"]`) ?? rows?.querySelector('[data-code="error"]');
  return {
    code,
    headline: row?.querySelector("b").textContent ?? "Something went wrong.",
    rest: row?.querySelector("span").textContent ?? "",
  };
}

// The words for a refusal. The server's own sentence says more than its code where there are many reasons; that of a
// conflict says what to do, too.
export function wordsOf({ code, status, message }) {
  const words = wordsFor(code);
  if (code === "conflict") return { code, headline: message, rest: "" };
  return status >= 500 || code === "rate_limited" ? { ...words, headline: message } : words;
}

// "No answer" in a turn, with the words of its error and a way to go on.
export function refusalOf(error) {
  const { code, headline, rest } = wordsOf(error);
  const refusal = document.getElementById("refusal").content.cloneNode(true).firstElementChild;
  refusal.querySelector("[data-headline]").textContent = headline;
  refusal.querySelector("[data-rest]").textContent = rest;
  refusal.querySelector("[data-code]").textContent = code;
  return refusal;
}
