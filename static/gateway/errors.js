// Error texts, which the server writes into the page by code.

import { fromTemplate } from "./parts.js";

export function wordsFor(code) {
  const rows = document.getElementById("error-words")?.content;
  const row = rows?.querySelector(`[data-code="${CSS.escape(code)}"]`) ?? rows?.querySelector('[data-code="error"]');
  return {
    code,
    headline: row?.querySelector("b").textContent ?? "Something went wrong.",
    rest: row?.querySelector("span").textContent ?? "",
  };
}

// Returns the text for an error. For codes with many possible reasons, and for conflicts, the server's message is more
// specific.
export function wordsOf({ code, status, message }) {
  const words = wordsFor(code);
  if (code === "conflict") return { code, headline: message, rest: "" };
  return status >= 500 || code === "rate_limited" ? { ...words, headline: message } : words;
}

// Shows "No answer" in a turn, with the error text and actions.
export function refusalOf(error) {
  const { code, headline, rest } = wordsOf(error);
  const refusal = fromTemplate("refusal");
  refusal.querySelector("[data-headline]").textContent = headline;
  refusal.querySelector("[data-rest]").textContent = rest;
  refusal.querySelector("[data-code]").textContent = code;
  return refusal;
}
