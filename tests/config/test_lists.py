"""Every list of the native API: its filters by a choice"""

from typing import Any

import pytest

from config.api import api
from memories.models import Owner
from tests.conftest import Api
from tests.factories import key_make

CHOICES = {
    ("/api/memories", "target"): ["user", "memory"],
    ("/api/memories", "write_origin"): [
        "tool", "background_review", "consolidation", "user", "admin", "import", "system",
    ],
    ("/api/reviews", "state"): [
        "scheduled", "running", "awaiting_approval", "saved", "nothing_to_save", "timed_out", "failed", "cancelled",
        "undone",
    ],
    ("/api/proposals", "state"): ["waiting", "approved", "rejected", "expired"],
    ("/api/usage", "by"): ["day", "key", "agent", "model"],
    ("/api/sessions", "archived"): ["true", "false"],
}  # fmt: skip
AUDIT = ("/api/audit", "action")


@pytest.fixture
def bob_api(bob: Owner) -> Api:
    return Api(key_make(bob)[1])


@pytest.mark.parametrize(("path", "name"), [*CHOICES, AUDIT])
async def test_a_filter_refuses_what_no_entry_can_be(bob_api: Api, path: str, name: str) -> None:
    for value in ("zz", "ZZ", "user,memory"):
        status, answer = await bob_api.get(f"{path}?{name}={value}")
        assert (status, answer["error"]["code"], answer["error"]["param"]) == (400, "invalid_request", name)
    for allowed in CHOICES.get((path, name), ["view", "change"]):
        assert (await bob_api.get(f"{path}?{name}={allowed}"))[0] == 200
        if name not in {"archived", "action"}:
            assert allowed in answer["error"]["message"]


@pytest.mark.parametrize(("path", "name"), [*CHOICES, AUDIT])
async def test_an_empty_one_filters_nothing(bob_api: Api, path: str, name: str) -> None:
    if name not in {"archived", "by"}:
        assert (await bob_api.get(f"{path}?{name}="))[0] == 200


def test_the_choices_are_documented() -> None:
    document = api.get_openapi_schema()["paths"]
    for (path, name), allowed in CHOICES.items():
        (found,) = [each for each in document[path]["get"]["parameters"] if each["name"] == name]
        if name != "archived":
            assert allowed == _enum(found["schema"]), (path, name)


def _enum(schema: dict[str, Any]) -> Any:
    inner = [_enum(each) for key in ("anyOf", "allOf") for each in schema.get(key, ())]
    return schema.get("enum") or next(filter(None, inner), None)
