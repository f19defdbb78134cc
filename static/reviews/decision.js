// Deciding on a review's proposals: which to save, and with which text.

import { call, refused, showError } from "../gateway/api.js";

const parts = (form) => [...form.querySelectorAll("[data-write]")];
const chosen = (form) => parts(form).filter((part) => part.querySelector("input").checked);

export function installDecisions(root, refresh, say) {
  root.addEventListener("input", (event) => {
    const form = event.target.closest("[data-decision]");
    if (!form) return;
    form.dataset.touched = "";
    count(form);
  });
  root.addEventListener("click", (event) => {
    const form = event.target.closest("[data-decision]");
    const edit = event.target.closest("[data-edit-write]");
    if (edit) openWords(edit);
    else if (form && event.target.closest("[data-reject]")) decide(form, "reject", {}, "Rejected.");
  });
  root.addEventListener("submit", (event) => {
    const form = event.target.closest("[data-decision]");
    if (!form) return;
    event.preventDefault();
    decide(form, "approve", { edits: edits(form) }, "Saved.");
  });

  async function decide(form, verb, more, done) {
    const run = form.closest("[data-review]");
    const writes = chosen(form).map((part) => Number(part.dataset.write));
    if (!writes.length) return;
    const buttons = form.querySelectorAll("button");
    const focused = run.contains(document.activeElement);
    for (const button of buttons) button.disabled = true;
    const error = await refused(async () => {
      await call("POST", `/api/reviews/${run.dataset.review}/${verb}`, { writes, ...more });
      delete form.dataset.touched;
      const next = run.nextElementSibling?.id;
      await refresh();
      say(done);
      if (focused) (document.getElementById(run.id)?.querySelector("button") ?? document.getElementById(next)?.querySelector("button, a"))?.focus();
    });
    if (!error) return;
    for (const button of buttons) button.disabled = false;
    count(form);
    if (error.code === "conflict") await show(form);
    const place = document.getElementById(run.id);
    if (place) showError(place, error.message);
  }

  // It was decided elsewhere: shows the review as it is now, with the selection and the edits of what still waits.
  async function show(form) {
    const { id } = form.closest("[data-review]");
    const [changed, selected] = [edits(form), chosen(form).map((part) => part.dataset.write)];
    delete form.dataset.touched;
    await refresh();
    const fresh = document.getElementById(id)?.querySelector("[data-decision]");
    if (!fresh || fresh === form) return;
    for (const part of parts(fresh)) {
      const { write } = part.dataset;
      part.querySelector("input").checked = selected.includes(write);
      if (changed[write] === undefined) continue;
      const edit = part.querySelector("[data-edit-write]");
      if (edit) openWords(edit);
      part.querySelector("textarea").value = changed[write];
    }
    fresh.dataset.touched = "";
    count(fresh);
  }
}

function openWords(button) {
  const part = button.closest("[data-write]");
  const area = part.querySelector("textarea");
  part.querySelector("[data-diff]").hidden = true;
  area.hidden = false;
  button.parentElement.hidden = true;
  part.closest("form").dataset.touched = "";
  area.focus();
}

function edits(form) {
  const changed = {};
  for (const part of chosen(form)) {
    const area = part.querySelector("textarea");
    if (area && !area.hidden && area.value.trim() !== area.defaultValue.trim()) changed[part.dataset.write] = area.value;
  }
  return changed;
}

// “Save both”, “Save 1”; disabled at 0.
function count(form) {
  const all = parts(form).length;
  const number = chosen(form).length;
  const save = form.querySelector("[data-save]");
  const reject = form.querySelector("[data-reject]");
  if (number === all) save.textContent = all === 1 ? "Save" : all === 2 ? "Save both" : `Save all ${all}`;
  else save.textContent = `Save ${number}`;
  reject.textContent = number === all || !number ? "Reject" : `Reject ${number}`;
  save.disabled = reject.disabled = !number;
}
