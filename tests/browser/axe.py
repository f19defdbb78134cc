"""axe-core in the pages under test (https://github.com/dequelabs/axe-core); the script comes with the package
axe-playwright-python."""

from importlib.resources import files
from typing import Any

from playwright.sync_api import Page

# Colours are looked at when nothing moves any more; what breathes for ever does not count.
_SETTLED = """() => Promise.all(
  document.getAnimations()
    .filter((animation) => animation.effect.getTiming().iterations === 1)
    .map((animation) => animation.finished.catch(() => null)),
)"""
_SERIOUS = {"serious", "critical"}


def axe_source() -> str:
    """The text of axe-core's script."""
    return files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")


NAVIGATION = "#nav-sidebar"  # of the admin: the same on each of its pages, and half of what there is to look at
_COLOURS = {"runOnly": ["color-contrast"]}


def serious_findings(page: Page, source: str, *, without: str = "") -> list[str]:
    """What axe finds serious on the page as it is now, outside of the element `without`: rule, and the first elements
    it means."""
    page.evaluate(source)  # evaluated, not added as an element: the page's policy would refuse that
    return _found(page, without, {})


def contrast_findings_in_the_dark(page: Page, *, without: str = "") -> list[str]:
    """What it finds of colours on the same admin page in the dark; nothing else depends on the scheme. After
    serious_findings."""
    colour = "() => getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(colour)
    page.evaluate("() => document.documentElement.classList.add('dark')")
    assert page.evaluate(colour) != light, "the theme goes dark by another class now"
    return [f"in the dark, {finding}" for finding in _found(page, without, _COLOURS)]


def _found(page: Page, without: str, options: dict[str, Any]) -> list[str]:
    page.evaluate(_SETTLED)
    context = {"exclude": [[without]]} if without else {"include": [["html"]]}
    options = {"resultTypes": ["violations"], **options}
    found = page.evaluate("([context, options]) => axe.run(context, options)", [context, options])
    return [
        f"{violation['id']}: {[node['target'] for node in violation['nodes']][:3]}"
        for violation in found["violations"]
        if violation["impact"] in _SERIOUS
    ]
