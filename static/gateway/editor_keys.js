// Closes an editor with Escape or Cancel, and submits it with Ctrl+Enter, or with the Enter that `submits` accepts.

export function installKeys(form, close, submits = ({ ctrlKey, metaKey }) => ctrlKey || metaKey) {
  form.querySelector("[data-cancel]").addEventListener("click", close);
  form.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    if (event.key === "Escape") close();
    else if (event.key === "Enter" && submits(event)) form.requestSubmit();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
}
