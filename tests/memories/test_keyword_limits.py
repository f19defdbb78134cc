"""Keywords from people, clients, models and files: limited in number and length, and cleaned in one pass"""

import json

import pytest

from memories.database.access import in_thread
from memories.entry_rules import clean_keywords
from memories.errors import InvalidRequest
from memories.limits import KEYWORD_LENGTH, KEYWORDS_GIVEN
from memories.models import Book, Memory, Owner
from memories.services import MemoryFields, book_writing
from tests.call_count import count_calls
from tests.conftest import Api
from tests.factories import BY_HAND
from tests.unsliced import import_text

pytestmark = pytest.mark.any_database


def test_cleaning_keywords_takes_one_pass() -> None:
    half, whole = ([f"w{number}" for number in range(count)] for count in (KEYWORDS_GIVEN // 2, KEYWORDS_GIVEN))
    assert count_calls(clean_keywords, whole) < 3 * count_calls(clean_keywords, half)
    same = ["Tea"] * KEYWORDS_GIVEN
    assert clean_keywords(same) == ["Tea"]
    assert count_calls(clean_keywords, same) < 3 * count_calls(clean_keywords, same[: KEYWORDS_GIVEN // 2])


def test_the_first_twelve_different_keywords_are_kept_in_order_and_cleaned(book: Book) -> None:
    given = ["Tea", "TEA", "!", "<b>food</b>", "x" * 60, *(f"w{number}" for number in range(20))]
    kept = ["Tea", "b food b", "x" * 40, *(f"w{number}" for number in range(9))]
    assert clean_keywords(given) == kept
    with book_writing(book, BY_HAND) as writer:
        assert writer.add(MemoryFields(content="Likes tea.", keywords=given)).memory.keywords == kept


@pytest.mark.parametrize("given", [["w"] * (KEYWORDS_GIVEN + 1), ["w" * (KEYWORD_LENGTH + 1)]])
def test_too_many_or_too_long_keywords_are_refused(given: list[str]) -> None:
    with pytest.raises(InvalidRequest, match="keyword"):
        clean_keywords(given)


@pytest.mark.parametrize("given", [[f"w{number}" for number in range(22_000)], ["w" * 1_000_000]])
async def test_the_api_refuses_keywords_before_it_creates_the_book(alice_api: Api, given: list[str]) -> None:
    status, answer = await alice_api.post(
        "/api/memories", {"content": "Likes tea.", "keywords": given, "book": "untouched"}
    )
    assert (status, answer["error"]["code"]) == (400, "invalid_request")
    assert str(KEYWORDS_GIVEN if len(given) > 1 else KEYWORD_LENGTH) in answer["error"]["message"]
    assert not await in_thread(Book.objects.filter(name="untouched").exists)


async def test_a_tool_call_with_too_many_keywords_gets_an_error(alice_api: Api) -> None:
    arguments = {"content": "Likes tea.", "keywords": [f"w{number}" for number in range(22_000)]}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    status, answer = await alice_api.post("/mcp", message | {"params": {"name": "add_memory", "arguments": arguments}})
    assert status == 200
    result = answer["result"]["structuredContent"]
    assert result["error"] == "invalid_arguments"
    assert result["message"].startswith("keywords: give at most 100 keywords")
    assert not await in_thread(Memory.objects.exists)


def test_an_import_skips_a_line_with_too_many_keywords(alice: Owner) -> None:
    lines = [{"content": "Likes tea.", "keywords": ["w"] * 22_000}, {"content": "Likes rum.", "keywords": ["drink"]}]
    report = import_text(alice.pk, "\n".join(map(json.dumps, lines)))
    assert (report.refused, report.new) == (1, 1)
