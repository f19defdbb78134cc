"""The cache of passed contrast checks in tests/browser/axe.py hides no finding."""

import pytest
from playwright.sync_api import Page

from tests.browser.axe import findings_light_and_dark, serious_findings

pytestmark = pytest.mark.browser
ADD_TEXT = "() => document.querySelector('main').insertAdjacentHTML('beforeend', `<p id=added>A line.</p>`)"


def set_style(page: Page, style: str) -> None:
    page.evaluate("(style) => document.getElementById('added').style.cssText = style", style)


def test_low_contrast_is_found_after_other_texts_have_passed(chat: Page) -> None:
    chat.evaluate(ADD_TEXT)
    assert findings_light_and_dark(chat) == []
    for style in (
        "color: rgb(200, 200, 200); background: white",
        "color: rgb(118, 118, 118); background: rgb(200, 200, 200)",
        "opacity: 0.3",
    ):
        set_style(chat, style)
        for _ in range(2):  # findings are not cached
            assert serious_findings(chat) == ['color-contrast: [["#added"]]'], style
    set_style(chat, "color: black; background: white")
    assert findings_light_and_dark(chat) == []
    chat.evaluate("() => document.getElementById('added').innerHTML = '<button></button>'")
    assert [finding.split(":")[0] for finding in serious_findings(chat)] == ["button-name"]
