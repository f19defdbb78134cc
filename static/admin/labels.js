// A choice made by typing (select2) gets the name of its label, which the widget leaves out; what is chosen follows it.
"use strict";
{
  const name = (select) => {
    const box = select.nextElementSibling?.querySelector("[role='combobox']");
    const label = select.labels?.[0];
    if (!box || !label || box.dataset.named) return;
    box.dataset.named = "yes";
    label.id ||= `${select.id}_label`;
    box.setAttribute("aria-labelledby", `${label.id} ${box.getAttribute("aria-labelledby") ?? ""}`.trim());
    box.querySelector("[role='textbox']")?.setAttribute("aria-labelledby", label.id);
  };
  // The widget is made some time after the page, and again where the page swaps a part of itself.
  new MutationObserver(() => document.querySelectorAll("select.select2-hidden-accessible").forEach(name)).observe(
    document.documentElement,
    { childList: true, subtree: true },
  );
}
