"""How the pages are looked at with axe: what one of them passed hides nothing on another."""

import pytest
from playwright.sync_api import Page

from tests.browser.axe import findings_light_and_dark, serious_findings

pytestmark = pytest.mark.browser
ADDED = "() => document.querySelector('main').insertAdjacentHTML('beforeend', `<p id=added>A line.</p>`)"


def styled(page: Page, style: str) -> None:
    page.evaluate("(style) => document.getElementById('added').style.cssText = style", style)


def test_a_colour_too_pale_is_found_where_others_were_passed(chat: Page) -> None:
    chat.evaluate(ADDED)
    assert findings_light_and_dark(chat) == []
    for style in (
        "color: rgb(200, 200, 200); background: white",
        "color: rgb(118, 118, 118); background: rgb(200, 200, 200)",
        "opacity: 0.3",
    ):
        styled(chat, style)
        for _ in range(2):  # nothing is remembered of what was found
            assert serious_findings(chat) == ['color-contrast: [["#added"]]'], style
    styled(chat, "color: black; background: white")
    assert findings_light_and_dark(chat) == []
    chat.evaluate("() => document.getElementById('added').innerHTML = '<button></button>'")
    assert [finding.split(":")[0] for finding in serious_findings(chat)] == ["button-name"]
