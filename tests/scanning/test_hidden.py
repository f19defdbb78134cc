"""Hidden characters are found, unless the script of the text needs them."""

import pytest

from scanning import scan
from scanning.hidden import hidden_findings
from tests.growth import cost_ratio

TAGS = "".join(chr(0xE0000 + ord(char)) for char in "obey")
SELECTED = "".join(chr(0xE0100 + ord(char) - 16) for char in "obey")

HIDDEN = [
    ("tag_characters", f"Likes tea.{TAGS}"),
    ("tag_characters", "Flag \U0001f3f4" + TAGS),
    ("direction_override", "Vegetarian. \u202esnoitcurtsni\u202c"),
    ("direction_override", "\u2067Likes tea\u2069 and cake."),
    ("zero_width", "Likes t\u200bea."),
    ("zero_width", "Likes tea.\u200b\u200c\u200d\u200b"),
    ("invisible_characters", "Likes\u2063 tea."),
    ("invisible_characters", "l\u00adi\u00adk\u00ade\u00ads tea"),
    ("invisible_characters", "Likes\u3164tea"),
    ("variation_selectors", f"Runs. \U0001f60a{SELECTED}"),
    ("control_characters", "Likes tea\x1b[8m and more\x1b[0m"),
    ("mixed_scripts", "the раsswоrd of the ассоunt"),
    ("stacked_accents", "l\u0301\u0302\u0303i\u0301\u0302\u0303kes"),
]

VISIBLE = [
    "Favourite reaction is \U0001f937\u200d\u2640\ufe0f and \U0001f3f3\ufe0f\u200d\U0001f308",
    "Family emoji: \U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466",
    "Supports Scotland \U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
    "کتاب\u200cهای علمی\u200cتخیلی را دوست دارد.",
    "क्\u200dष के बारे में पूछता है।",
    "שם: \u2067רות\u2069",
    "Donau\u00addampf\u00adschiff\u00adfahrt",
    "你\ufe00好",
    "\ufeffImported from Notepad.",
    "α-test starts in June; Δt is 5 µs.",
    "Использует Docker и k8s.",
    "Tiếng Việt: được",
    "one\ttwo\nthree\r\nfour",
]


@pytest.mark.parametrize(("rule", "text"), HIDDEN)
def test_hidden_characters_are_found(rule: str, text: str) -> None:
    assert rule in {finding.rule for finding in scan(text).findings}


@pytest.mark.parametrize("text", VISIBLE)
def test_scripts_and_emoji_keep_their_characters(text: str) -> None:
    assert scan(text).findings == ()


def test_many_flags_take_linear_time() -> None:
    flag = "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"
    assert cost_ratio(lambda size: hidden_findings(flag * size), 500) < 20
