// Gives select2 widgets an accessible name: their label, which the widget omits, followed by the selected value. Names of
// columns, which lists show on a phone, begin with a capital letter as on a wide screen.
"use strict";
{
  document.addEventListener("DOMContentLoaded", () => {
    for (const { dataset } of document.querySelectorAll("[data-label]")) {
      dataset.label = dataset.label.charAt(0).toUpperCase() + dataset.label.slice(1);
    }
  });
  const name = (select) => {
    const box = select.nextElementSibling?.querySelector("[role='combobox']");
    const label = select.labels?.[0];
    if (!box || !label || box.dataset.named) return;
    box.dataset.named = "yes";
    label.id ||= `${select.id}_label`;
    box.setAttribute("aria-labelledby", `${label.id} ${box.getAttribute("aria-labelledby") ?? ""}`.trim());
    box.querySelector("[role='textbox']")?.setAttribute("aria-labelledby", label.id);
  };
  // Widgets are created after the page has loaded, and again when a part of the page is swapped.
  new MutationObserver(() => document.querySelectorAll("select.select2-hidden-accessible").forEach(name)).observe(
    document.documentElement,
    { childList: true, subtree: true },
  );
}
