"""axe-core in the pages under test (https://github.com/dequelabs/axe-core); the script comes with the package
axe-playwright-python."""

from functools import cache
from importlib.resources import files

from playwright.sync_api import Page

NAVIGATION = "#nav-sidebar"  # of the admin: the same on each of its pages, and half of what there is to look at
_COLOURS = ["color-contrast", "link-in-text-block"]
_GROUND = "() => getComputedStyle(document.body).backgroundColor"
# Colours are looked at when nothing moves any more; what breathes for ever does not count. Of the rules those run that
# can find something serious, and only findings leave the page: the whole report takes as long as some rules.
_LOOK = """async ([without, only]) => {
  await Promise.all(
    document.getAnimations()
      .filter((animation) => animation.effect.getTiming().iterations === 1)
      .map((animation) => animation.finished.catch(() => null)),
  );
  const serious = (found) => ["serious", "critical"].includes(found.impact);
  const left_out = (rule) => rule.tags.some((tag) => ["experimental", "deprecated"].includes(tag));
  const usual = axe._audit.rules.filter((rule) => rule.enabled && serious(rule) && !left_out(rule));
  const rules = usual.map((rule) => rule.id).filter((id) => !only.length || only.includes(id));
  const context = without ? { exclude: [[without]] } : { include: [["html"]] };
  const { violations } = await axe.run(context, { runOnly: rules, resultTypes: ["violations"] });
  const findings = violations.filter(serious)
    .map(({ id, nodes }) => `${id}: ${JSON.stringify(nodes.slice(0, 3).map((node) => node.target))}`);
  return [rules.length, findings];
}"""


def serious_findings(page: Page, *, without: str = "", only_colours: bool = False) -> list[str]:
    """Return what axe finds serious on the page as it is now, outside of the element `without`: rule, and the first
    elements it means. `only_colours` is for a page that is known already in other colours."""
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(_source())  # evaluated, not added as an element: the page's policy would refuse that
    rules, findings = page.evaluate(_LOOK, [without, _COLOURS if only_colours else []])
    assert rules == len(_COLOURS) if only_colours else rules > 50, f"{rules} rules: axe calls them otherwise now"
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
