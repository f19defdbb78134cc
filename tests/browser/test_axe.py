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


def test_low_contrast_is_found_on_what_shines_through_a_bar(chat: Page) -> None:
    """The same bar passes over white and fails over grey."""
    chat.evaluate(ADD_TEXT)
    bar = "position: fixed; inset: 0 0 auto; z-index: 99; color: rgb(95, 95, 95); background: "
    set_style(chat, bar + "rgb(255 255 255 / 0.2)")
    under = "(colour) => { document.body.insertAdjacentHTML('beforeend', `<div id=under></div>`); "
    under += "under.style.cssText = `position: fixed; inset: 0; z-index: 98; background: ${colour}`; }"
    chat.evaluate(under, "white")
    assert serious_findings(chat) == []
    chat.evaluate("() => { under.style.background = 'rgb(150, 150, 150)' }")
    assert serious_findings(chat) == ['color-contrast: [["#added"]]']


def test_links_are_told_from_their_text_in_the_dark_too(chat: Page) -> None:
    chat.evaluate(ADD_TEXT)
    text = "A long line of words around <a href='/'>a link</a> in it."
    chat.evaluate("(html) => { document.getElementById('added').innerHTML = html }", text)
    style = "color: color-mix(in srgb, currentcolor, gray 20%); text-decoration: none; border: none"
    chat.evaluate("(style) => { added.querySelector('a').style.cssText = style }", style)
    found = [finding.split(":")[0] for finding in findings_light_and_dark(chat)]
    assert found == ["link-in-text-block", "in the dark, link-in-text-block"]
