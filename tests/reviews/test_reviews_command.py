"""manage.py reviews try: how the session is found, and how writes are printed"""

from typing import Any

import pytest
from django.core.management import CommandError, call_command

from gateway.models import Agent, Session
from memories.models import Owner
from reviews.management.commands.reviews import lines_of
from reviews.writes import ReviewWrite

ADD: dict[str, Any] = {
    "action": "add",
    "memory_id": None,
    "target": "user",
    "category": "fact",
    "before": None,
    "after": "Lives in Graz.",
    "keywords": [],
    "reason": "",
}


@pytest.mark.django_db
def test_a_session_is_found_by_its_id_and_by_its_clients_name(alice: Owner, charlie: Owner, agent: Agent) -> None:
    session = Session.objects.create(owner=alice, agent=agent, external_id="trip")
    for given in (str(session.pk), "trip"):
        with pytest.raises(CommandError, match="Nothing was said in this session"):
            call_command("reviews", "try", session=given)
    Session.objects.create(owner=charlie, agent=agent, external_id="trip")
    with pytest.raises(CommandError, match="Sessions of several people have this name: give the id"):
        call_command("reviews", "try", session="trip")
    with pytest.raises(CommandError, match="There is no such session"):
        call_command("reviews", "try", session="journey")


def test_an_addition_is_printed_with_target_and_category() -> None:
    assert list(lines_of(ReviewWrite.from_json(ADD))) == ["add [user, fact] Lives in Graz."]


def test_an_update_is_printed_with_old_content_and_keywords() -> None:
    update = ADD | {"action": "update", "memory_id": "3", "before": "Lives in Linz.", "keywords": ["home", "city"]}
    assert list(lines_of(ReviewWrite.from_json(update))) == [
        "update 3 [user, fact] Lives in Graz.",
        "    instead of: Lives in Linz.",
        "    found also by: home, city",
    ]


def test_a_deletion_is_printed_with_its_content_and_a_refusal_with_its_reason() -> None:
    delete = ADD | {
        "action": "delete",
        "memory_id": "3",
        "before": "Lives in Linz.",
        "after": None,
        "keywords": ["home"],
    }
    assert list(lines_of(ReviewWrite.from_json(delete))) == ["delete 3 [user, fact] Lives in Linz."]
    assert (
        list(lines_of(ReviewWrite.from_json(ADD | {"reason": "No more than 5 writes."})))[1]
        == "    refused: No more than 5 writes."
    )
