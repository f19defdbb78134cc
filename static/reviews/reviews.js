// The reviews page: the self-updating timeline, decisions, undo, and the panel beside it.

import { attempt, call, request, tryFragment, undo } from "../gateway/api.js";
import { notifications, reviews } from "../gateway/shell.js";
import { onTold, tell } from "../gateway/tabs.js";
import { reconcile } from "../memories/reconcile.js";
import { installDecisions } from "./decision.js";
import { Documents } from "./documents.js";
import { Panel } from "./panel.js";

const LIVE = 150;
const root = document.getElementById("timeline");
const said = document.getElementById("said");
const runs = () => root.querySelector("[data-runs]");

const documents = new Documents(document.getElementById("document"), document.getElementById("panel"));
const panel = new Panel(document.getElementById("panel"), documents);
installDecisions(root, refresh, say);

root.addEventListener("click", (event) => {
  const run = event.target.closest("[data-review]");
  const button = event.target.closest("button, [data-more]");
  if (!button) return;
  if (button.matches("[data-more]")) {
    event.preventDefault();
    runs().dataset.number = button.dataset.more;
    refresh();
  } else if (!run) return;
  else if (button.matches("[data-undo]")) act(run, button, "Undone.", () => undo(`/api/reviews/${run.dataset.review}/undo`));
  else if (button.matches("[data-undo-write]")) act(run, button, "Undone.", () => undo(`/api/reviews/${run.dataset.review}/undo`, { writes: [Number(button.dataset.undoWrite)] }));
  else if (button.matches("[data-change]")) act(run, button, "Restored.", () => undo(`/api/changes/${button.dataset.change}/undo`));
  else if (button.matches("[data-cancel]")) act(run, button, "Cancelled.", () => request("POST", `/reviews/${run.dataset.review}/cancel/`));
  else if (button.matches("[data-again]")) act(run, button, "A review is scheduled.", () => call("POST", `/api/sessions/${button.dataset.again}/review`, {}));
  else if (button.matches("[data-later]")) {
    const writes = button.dataset.later.split(",").map(Number);
    act(run, button, "Saved.", () => call("POST", `/api/reviews/${run.dataset.review}/approve`, { writes }));
  }
});

function act(run, button, done, write) {
  const focused = run.contains(document.activeElement); // a disabled button loses the focus
  return attempt(run, button, async () => {
    await write();
    say(done);
    await refresh();
    if (focused) document.getElementById(run.id)?.querySelector("button, a")?.focus();
  });
}

function say(words) {
  said.textContent = words;
  reviews.look();
  tell({ kind: "reviews" });
}

// A decision in progress is not replaced.
const deciding = (run) => run.querySelector("[data-decision][data-touched]");

let asked = 0;
let newest = null;

function refresh(through = "") {
  asked += 1;
  newest = load(through, asked);
  return newest;
}

async function load(through, mine) {
  const number = runs().dataset.number;
  const nodes = await tryFragment(`/fragments/reviews/?n=${number}${through && `&through=${encodeURIComponent(through)}`}`);
  if (mine !== asked) return newest; // an older response must not overwrite a newer one
  if (!nodes) return;
  const fresh = nodes.querySelector("[data-runs]");
  const [intro, freshIntro] = [root, nodes].map((place) => place.querySelector("[data-intro]"));
  if (!intro.isEqualNode(freshIntro)) intro.replaceWith(freshIntro); // its link may have the focus
  root.querySelector("[data-none]").replaceWith(nodes.querySelector("[data-none]"));
  root.querySelector(".runs__more")?.remove();
  const more = nodes.querySelector(".runs__more");
  if (more) root.append(more);
  runs().hidden = fresh.hidden;
  runs().dataset.number = fresh.dataset.number;
  await reconcile(runs(), [...fresh.children], { busy: deciding });
  for (const meta of root.querySelectorAll("[data-version^=running] .run__meta")) {
    const now = nodes.getElementById(meta.closest("[data-review]").id)?.querySelector(".run__meta");
    if (now) meta.replaceWith(now);
  }
}

let waiting = 0;
const soon = () => {
  clearTimeout(waiting);
  waiting = setTimeout(() => refresh(), LIVE);
};
notifications?.addEventListener("message", ({ detail }) => {
  if (detail.kind === "consolidation.finished" || detail.kind === "resync") panel.refresh();
  if (detail.kind !== "consolidation.finished") soon();
});
// Not every decision is a notification.
onTold(({ kind }) => kind === "reviews" && soon());
document.addEventListener("visibilitychange", () => {
  if (document.visibilityState !== "visible") return;
  soon();
  reviews.look();
});
let underWay = root.querySelectorAll("[data-version^=running], [data-version^=scheduled]").length > 0;
reviews.addEventListener("looked", ({ detail }) => {
  if (underWay || detail.sessions.size) soon();
  underWay = detail.sessions.size > 0;
});

// A link may refer to a review further down than the initial page.
async function find() {
  const id = location.hash.startsWith("#review-") ? location.hash.slice(1) : "";
  if (!id) return;
  if (!document.getElementById(id)) await refresh(id.slice("review-".length));
  const run = document.getElementById(id);
  if (!run) return;
  run.tabIndex = -1;
  run.focus({ preventScroll: true });
  run.scrollIntoView({ block: "start" });
}
window.addEventListener("hashchange", find);
find();
