"""axe-core in the pages under test (https://github.com/dequelabs/axe-core); the script comes with the package
axe-playwright-python.

Contrast takes axe longer than all other rules together, and is the same wherever the same colours meet. So it looks
once in a test process at each: the text's colour and size on the grounds that it stands on. What it did not pass is
looked at again."""

from functools import cache
from importlib.resources import files

from playwright.sync_api import Page

NAVIGATION = "#nav-sidebar"  # of the admin: the same on each of its pages, and half of what there is to look at
_GROUND = "() => getComputedStyle(document.body).backgroundColor"
# What moves is first brought to its end, but for what breathes for ever. Of the rules those run that can find something
# serious, and only findings leave the page: the whole report takes as long as some rules.
_LOOK = """async ([without, onlyColours, passed]) => {
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
  const all = { runOnly: rules.filter((id) => id !== "color-contrast"), resultTypes: ["violations"] };
  const violations = (await axe.run({ include: [["html"]], exclude }, all)).violations;

  const grounds = new Map([[null, ""]]);
  const groundsOf = (element) => {
    if (!grounds.has(element)) {
      const { backgroundColor, backgroundImage, opacity, filter, mixBlendMode, position } = getComputedStyle(element);
      const own = [backgroundColor, backgroundImage, opacity, filter, mixBlendMode].join();
      // What is taken out of the flow lies on something that is not its parent, where it has no ground of its own.
      const open = !["static", "relative"].includes(position) && /^rgba|\\//.test(backgroundColor);
      grounds.set(element, `${own}${open ? "?" : ""};${groundsOf(element.parentElement)}`);
    }
    return grounds.get(element);
  };
  const lookOf = (element) => {
    const { color, fontSize, fontWeight, textShadow } = getComputedStyle(element);
    return [color, fontSize, fontWeight, textShadow, groundsOf(element)].join();
  };
  const isIcon = (element) => getComputedStyle(element).fontFamily.includes("Symbols");  // axe does not judge these
  const says = (element) => element.matches("input, select, textarea") ||
    ([...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim()) && !isIcon(element));
  const known = new Set(passed);
  const isNew = (element) => !known.has(lookOf(element));
  const isSeen = (element) => element.checkVisibility() && !(without && element.closest(without));
  const include = [...document.body.querySelectorAll("*")].filter((each) => says(each) && isSeen(each) && isNew(each));
  const fresh = new Set();
  if (include.length) {
    const contrast = { runOnly: ["color-contrast"], resultTypes: ["violations", "passes"], elementRef: true };
    const found = await axe.run({ include, exclude }, contrast);
    violations.push(...found.violations);
    found.passes.flatMap((rule) => rule.nodes).forEach(({ element }) => fresh.add(lookOf(element)));
  }
  const findings = violations.filter(serious)
    .map(({ id, nodes }) => `${id}: ${JSON.stringify(nodes.slice(0, 3).map((node) => node.target))}`);
  return [rules.length, findings, [...fresh].filter((look) => !look.includes("?"))];
}"""
_passed: set[str] = set()
"""Looks of texts whose contrast axe passed in this process."""


def serious_findings(page: Page, *, without: str = "", only_colours: bool = False) -> list[str]:
    """Return what axe finds serious on the page as it is now, outside of the element `without`: rule, and the first
    elements it means. `only_colours` is for a page that is known already in other colours."""
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(_source())  # evaluated, not added as an element: the page's policy would refuse that
    rules, findings, passed = page.evaluate(_LOOK, [without, only_colours, sorted(_passed)])
    assert rules == 2 if only_colours else rules > 50, f"{rules} rules: axe calls them otherwise now"
    if not findings:
        _passed.update(passed)
    return list(findings)


def findings_light_and_dark(page: Page) -> list[str]:
    """Return the same for a page that follows the system, and what axe finds of its colours in the dark: nothing
    else depends on them."""
    findings = serious_findings(page)
    light = page.evaluate(_GROUND)
    page.emulate_media(color_scheme="dark")
    findings += _of_colours(page, light, "")
    page.emulate_media(color_scheme="light")
    return findings


def findings_wide_and_narrow(page: Page, narrow: int, *, height: int = 844) -> list[str]:
    """Return the same for a page of a wide window, and for that page on a phone of so many pixels, where it must not
    scroll sideways either. The page stays wide."""
    findings = findings_light_and_dark(page)
    page.set_viewport_size({"width": narrow, "height": height})
    findings += [f"on a phone, {finding}" for finding in findings_light_and_dark(page)]
    if not page.evaluate("() => document.documentElement.scrollWidth <= innerWidth"):
        findings.append("on a phone, scrolls sideways")
    page.set_viewport_size({"width": 1440, "height": 900})
    return findings


def contrast_findings_in_the_dark(page: Page, *, without: str = "") -> list[str]:
    """What it finds of colours on the same admin page in the dark. After serious_findings."""
    light = page.evaluate(_GROUND)
    page.evaluate("() => document.documentElement.classList.add('dark')")
    return _of_colours(page, light, without)


def _of_colours(page: Page, light: str, without: str) -> list[str]:
    assert page.evaluate(_GROUND) != light, "the theme goes dark in another way now"
    return [f"in the dark, {finding}" for finding in serious_findings(page, without=without, only_colours=True)]


@cache
def _source() -> str:
    return files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
