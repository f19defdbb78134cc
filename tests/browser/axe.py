"""Run axe-core (https://github.com/dequelabs/axe-core) in the pages under test; the script comes with the package
axe-playwright-python.

The contrast rule takes longer than all other rules together, and its result depends only on a text's colour and size
and its background: what its ancestors paint, and what lies under a positioned one that lets it shine through. So each
such combination that passed is not checked again in the same test process."""

from functools import cache
from importlib.resources import files

from playwright.sync_api import Page

NAVIGATION = "#nav-sidebar"  # in the admin: the same on every page, and half of its elements
_BACKGROUND = "() => getComputedStyle(document.body).backgroundColor"
# Finish all animations except endless ones. Run only rules that can find something serious, and return only the
# findings: the whole report takes as long as some rules.
_CHECK = """async ([without, onlyColours, passed]) => {
  const animations = document.getAnimations();
  animations.filter((each) => each.effect.getTiming().iterations === 1).forEach((each) => each.finish());
  const serious = (found) => ["serious", "critical"].includes(found.impact);
  const left_out = (rule) => rule.tags.some((tag) => ["experimental", "deprecated"].includes(tag));
  const ofColours = ["color-contrast", "link-in-text-block"];
  const rules = axe._audit.rules
    .filter((rule) => rule.enabled && serious(rule) && !left_out(rule))
    .map((rule) => rule.id)
    .filter((id) => !onlyColours || ofColours.includes(id));
  const exclude = without ? [[without]] : [];
  // Of the 260 permissions in a form, which differ in their words only, ten are checked.
  const alike = document.querySelectorAll("[id$=permissions] > div:nth-child(n + 11)");
  alike.forEach((each) => { each.hidden = true; });
  const violations = [];
  if (!onlyColours || window.axeSawLinksInText) {
    const all = { runOnly: rules.filter((id) => id !== "color-contrast"), resultTypes: ["violations"] };
    const found = await axe.run({ include: [["html"]], exclude }, all);
    violations.push(...found.violations);
    window.axeSawLinksInText = !found.inapplicable.some(({ id }) => id === "link-in-text-block");
  }

  const nothing = "rgba(0, 0, 0, 0),none,1,none,normal";
  const layerOf = ({ backgroundColor, backgroundImage, opacity, filter, mixBlendMode }) => {
    const layer = [backgroundColor, backgroundImage, opacity, filter, mixBlendMode].join();
    return layer === nothing ? "" : `${layer};`;
  };
  const backgrounds = new Map([[null, ""]]);
  const backgroundsOf = (element) => {
    if (!backgrounds.has(element)) {
      const style = getComputedStyle(element);
      // A positioned element without an opaque background may lie on something other than its parent.
      const open = !["static", "relative"].includes(style.position) && /^rgba|\\//.test(style.backgroundColor);
      backgrounds.set(element, `${layerOf(style)}${open ? "?" : ""}${backgroundsOf(element.parentElement)}`);
    }
    return backgrounds.get(element);
  };
  const lookOf = (element) => {
    const { color, fontSize, fontWeight, textShadow } = getComputedStyle(element);
    const look = [color, fontSize, fontWeight, textShadow, backgroundsOf(element)].join();
    if (!look.includes("?")) return look;
    // What lies under its middle. Outside of the window that is not known, and the look is not kept.
    const { x, y, width, height } = element.getBoundingClientRect();
    const pile = document.elementsFromPoint(x + width / 2, y + height / 2);
    if (!pile.includes(element)) return look;
    return `${look.replaceAll("?", "")}/${pile.map((each) => layerOf(getComputedStyle(each))).join("")}`;
  };
  const isIcon = (element) => getComputedStyle(element).fontFamily.includes("Symbols");  // axe does not check these
  const hasText = (element) => element.matches("input, select, textarea") ||
    ([...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim()) && !isIcon(element));
  const known = new Set(passed);
  const isNew = (element) => !known.has(lookOf(element));
  const isSeen = (element) => element.checkVisibility() && !(without && element.closest(without));
  const include = [...document.body.querySelectorAll("*")]
    .filter((each) => hasText(each) && isSeen(each) && isNew(each));
  const fresh = new Set();
  if (include.length) {
    const contrast = { runOnly: ["color-contrast"], resultTypes: ["violations", "passes"], elementRef: true };
    const found = await axe.run({ include, exclude }, contrast);
    violations.push(...found.violations);
    found.passes.flatMap((rule) => rule.nodes).forEach(({ element }) => fresh.add(lookOf(element)));
  }
  alike.forEach((each) => { each.hidden = false; });
  const findings = violations.filter(serious)
    .map(({ id, nodes }) => `${id}: ${JSON.stringify(nodes.slice(0, 3).map((node) => node.target))}`);
  return [rules.length, findings, [...fresh].filter((look) => !look.includes("?"))];
}"""
_passed: set[str] = set()
"""Combinations of text style and background whose contrast axe passed in this process."""


def serious_findings(page: Page, *, without: str = "", only_colours: bool = False) -> list[str]:
    """Return axe's serious findings on the page as it is now, outside the element `without`: the rule and its first
    elements. `only_colours` is for a page that was already checked in another theme."""
    if not page.evaluate("() => 'axe' in window"):
        # Evaluated, since the page's CSP would refuse a script element, and without Playwright, which would compile it
        # again for each page.
        session = page.context.new_cdp_session(page)
        session.send("Runtime.evaluate", {"expression": _source()})
        session.detach()
    rules, findings, passed = page.evaluate(_CHECK, [without, only_colours, sorted(_passed)])
    assert rules == 2 if only_colours else rules > 50, f"{rules} rules: axe has renamed them"
    if not findings:
        _passed.update(passed)
    return list(findings)


def findings_light_and_dark(page: Page) -> list[str]:
    """Return the findings for a page that follows the system's theme, and its contrast findings in dark mode, since
    nothing else depends on the theme."""
    findings = serious_findings(page)
    light = page.evaluate(_BACKGROUND)
    page.emulate_media(color_scheme="dark")
    findings += _dark_findings(page, light, "")
    page.emulate_media(color_scheme="light")
    return findings


def findings_wide_and_narrow(page: Page, narrow: int, *, height: int = 844) -> list[str]:
    """Return the findings in a wide window and in one that is `narrow` pixels wide, where the page must not scroll
    sideways. The window is wide again afterwards."""
    findings = findings_light_and_dark(page)
    page.set_viewport_size({"width": narrow, "height": height})
    findings += [f"on a phone, {finding}" for finding in findings_light_and_dark(page)]
    if not page.evaluate("() => document.documentElement.scrollWidth <= innerWidth"):
        findings.append("on a phone, scrolls sideways")
    page.set_viewport_size({"width": 1440, "height": 900})
    return findings


def dark_contrast_findings(page: Page, *, without: str = "") -> list[str]:
    """Return the contrast findings on the same admin page in dark mode. Call `serious_findings` first."""
    light = page.evaluate(_BACKGROUND)
    page.evaluate("() => document.documentElement.classList.add('dark')")
    return _dark_findings(page, light, without)


def _dark_findings(page: Page, light: str, without: str) -> list[str]:
    assert page.evaluate(_BACKGROUND) != light, "the page did not change to dark mode"
    return [f"in the dark, {finding}" for finding in serious_findings(page, without=without, only_colours=True)]


@cache
def _source() -> str:
    return files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
