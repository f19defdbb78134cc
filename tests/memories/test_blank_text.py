"""Text of which nothing can be seen is blank, like white space"""

from typing import Any

import pytest

from gateway.services import clean_title
from memories.entry_rules import clean_keywords
from tests.conftest import Api

pytestmark = [pytest.mark.any_database, pytest.mark.django_db]

BLANK = ["\u200b", "\u2060\ufeff", "\u00ad", " \u200b\n\u2060 "]


@pytest.mark.parametrize("text", BLANK)
@pytest.mark.parametrize(
    ("path", "field"), [("/api/memories", "content"), ("/api/memories", "category"), ("/api/keys", "name")]
)
async def test_text_without_visible_characters_is_refused(alice_api: Api, path: str, field: str, text: str) -> None:
    body: dict[str, Any] = {"content": "Likes tea."} if field == "category" else {}
    status, answer = await alice_api.post(path, {**body, field: text})
    assert (status, answer["error"]["code"], answer["error"]["param"]) == (400, "invalid_request", field)


async def test_a_memory_cannot_be_made_blank(alice_api: Api) -> None:
    _, memory = await alice_api.post("/api/memories", {"content": "Likes tea."})
    status, answer = await alice_api.call("PATCH", f"/api/memories/{memory['id']}", {"content": "\u200b"})
    assert (status, answer["error"]["message"]) == (400, "A memory needs some words.")


async def test_invisible_characters_within_words_are_kept(alice_api: Api) -> None:
    status, memory = await alice_api.post("/api/memories", {"content": "Family: 👩\u200d👧"})
    assert (status, memory["content"]) == (201, "Family: 👩\u200d👧")


def test_keywords_and_titles_without_visible_characters_are_empty() -> None:
    assert clean_keywords(["tea", "\ufe0f", "\u115f"]) == ["tea"]
    assert [clean_title("\u200b"), clean_title("My\u00adtitle")] == ["", "My\u00adtitle"]
