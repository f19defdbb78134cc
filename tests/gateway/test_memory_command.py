"""`/memory` in native turns and in /v1: answered by the gateway and stored as a command, without a model call"""

import re
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from django.test import Client

from gateway.chat.session_list import session_page
from gateway.chat.transcript import turn_of_run
from gateway.command_syntax import (
    COMMANDS,
    VERBS,
    ParsedCommand,
    is_command,
    parse_command,
    without_commands,
)
from gateway.commands import CommandCall, CommandReply, _handlers, register_handler
from gateway.models import Message, Run, Session
from gateway.runs.leases import lease_end
from gateway.services import session_end
from memories.artifacts.store import artifact_put
from memories.database.access import in_thread
from memories.models import Memory, Owner, ThreadRecord, WriteOrigin
from memories.services import Source, book_get_or_create
from reviews.models import ConsolidationRun
from tests.conftest import Api
from tests.factories import agent_make, key_make, memory_make, session_make
from tests.gateway.v1 import assistant, stream, user
from tests.reviews.consolidation.rows import settings_make
from tests.scripted_model import ScriptedModel


async def turn(api: Api, session: Session, content: Any, **more: Any) -> dict[str, Any]:
    status, body = await api.post(f"/api/sessions/{session.pk}/turns", {"content": content, **more})
    assert status == 200, body
    return body


async def complete(api: Api, *messages: dict[str, Any], **headers: str) -> tuple[str, str]:
    """Return `(answer, session)` of a request to /v1."""
    body = {"model": "assistant", "messages": list(messages)}
    response = await api.raw("POST", "/v1/chat/completions", body, **headers)
    assert response.status_code == 200, response.content
    return response.json()["choices"][0]["message"]["content"], response["x-daybook-session"]


@pytest.mark.parametrize(
    "text",
    [
        "/memory",
        "/memory view",
        "  /memory help\n",
        "/MEMORY Clear confirm abcd2345",
        "/memory clear confirm ab",  # an incomplete code
        "/memory clear confirm abcd2345.",  # a code followed by a full stop
    ],
)
def test_a_whole_message_is_a_command(text: str) -> None:
    assert is_command(text)


@pytest.mark.parametrize(
    "text",
    [
        "/memory leak in my C program",
        "/memory view please",
        "what does /memory view do?",
        "/memory\nview",
        "/memories",
        "/memory view\nand then tell me a joke",
        "/memory view confirm abcd2345",
        "/memory clear confirm what you said",
        "/memory/view",
        "/memory " + "x" * 41,
        "/help",
        "",
    ],
)
def test_a_message_that_only_mentions_a_command_is_not_a_command(text: str) -> None:
    assert not is_command(text)


def test_a_command_is_parsed_into_verb_and_code() -> None:
    parsed = parse_command("/memory Reset confirm ab12CD")
    assert parsed is not None
    assert (parsed.verb, parsed.code) == ("reset", "ab12CD")
    assert parse_command("/memory clear confirm") == ParsedCommand(verb="clear")


@pytest.mark.any_database
@pytest.mark.parametrize("text", ["/memory", "/memory bogus", "/memory --help", "  /MEMORY Forget\n", "/memory ?"])
async def test_an_unknown_memory_command_is_answered_with_the_help(
    alice_api: Api, session: Session, model: ScriptedModel, text: str
) -> None:
    native = (await turn(alice_api, session, text))["content"]
    whole, _ = await complete(alice_api, user(text))
    chunks = await stream(alice_api, text)
    streamed = "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks)
    assert native == whole == streamed
    assert all(f"`/memory {verb}`" in native for verb in VERBS)
    assert native.startswith("There is no such command.") == (text != "/memory")
    resent = [user(text), assistant(whole), user("Hi")]
    model.script("Hello.")
    await complete(alice_api, *resent)
    assert [m["content"] for m in model.calls[0].messages] == ["You are terse.", "Hi"]


async def test_help_alone_is_a_command_in_the_chat_but_not_on_v1(
    alice_api: Api, session: Session, model: ScriptedModel
) -> None:
    assert "`/memory view`" in (await turn(alice_api, session, " /Help "))["content"]
    assert model.calls == []
    model.script("I can help.")
    assert (await complete(alice_api, user("/help")))[0] == "I can help."


def test_every_command_has_a_handler_and_no_other_can_be_registered() -> None:
    assert set(_handlers) == set(VERBS)
    with pytest.raises(LookupError, match="/memory forget"):
        register_handler("forget", lambda call: CommandReply(text=""))


async def test_the_page_lists_the_commands(client: Client, alice: Owner) -> None:
    def page() -> str:
        client.force_login(alice.user)
        return client.get("/new/").content.decode()

    shown = await in_thread(page)
    offered = re.findall(r'data-command="([^"]+)" aria-selected="false"><code>[^<]+</code><span>([^<]+)</span>', shown)
    assert offered[:-1] == [(command.line, command.about) for command in COMMANDS]
    assert offered[-1] == ("/help", "Show commands and shortcuts.")


async def test_help_lists_every_verb_and_calls_no_model(alice_api: Api, session: Session, model: ScriptedModel) -> None:
    body = await turn(alice_api, session, "/memory help")
    assert set(VERBS) == {"view", "clear", "reset", "enqueue", "rebuild", "help"}
    assert all(f"/memory {verb}" in body["content"] for verb in VERBS)
    assert (body["state"], body["recalled"], body["memory_changes"]) == ("completed", [], [])
    assert (body["kind"], body["reasoning"], body["tool_calls"]) == ("command", "", [])
    assert model.calls == []


@pytest.mark.parametrize("text", ["/memory help", "/help"])
async def test_a_command_may_be_a_content_part(
    alice_api: Api, session: Session, model: ScriptedModel, text: str
) -> None:
    answer = await turn(alice_api, session, [{"type": "text", "text": text}])
    assert (answer["kind"], answer["turn"], model.calls) == ("command", 0, [])
    _, listed = await alice_api.get(f"/api/sessions/{session.pk}/messages")
    assert (listed["data"][0]["kind"], listed["data"][0]["content"]) == ("command", text)


async def test_view_shows_exactly_the_injected_text(
    alice: Owner, alice_api: Api, session: Session, model: ScriptedModel
) -> None:
    def prepare() -> None:
        settings_make()
        source = Source(actor="user:1", origin=WriteOrigin.USER)
        artifact_put(book_get_or_create(alice.pk, "main"), "memory_summary.md", "Uses ```fences```.", source)
        memory_make(alice, "Likes <tea> & biscuits.")

    await in_thread(prepare)
    shown = (await turn(alice_api, session, "/memory view"))["content"]
    model.script("Hello.")
    await turn(alice_api, session, "Hi")
    injected = model.calls[0].messages[0]["content"].removeprefix("You are terse.\n\n")
    assert "<memories>" in injected
    assert f"\n````\n{injected}\n````" in shown


async def test_view_says_that_nothing_is_injected(alice_api: Api, session: Session) -> None:
    assert "Nothing from book main is given" in (await turn(alice_api, session, "/memory view"))["content"]


async def test_view_describes_recall_without_a_frozen_block(alice: Owner, alice_api: Api) -> None:
    def prepare() -> list[Session]:
        settings = {"frozen_char_limit": 0, "max_inject_memories": 3}
        memory_make(alice, "Likes tea.")
        sessions = [session_make(alice, agent_make("unfrozen", **settings))]
        sessions.append(session_make(alice, agent_make("off", inject_memories=False)))
        return sessions

    session, off = await in_thread(prepare)
    assert (await turn(alice_api, session, "/memory view"))["content"] == (
        "Nothing from book main is given to the agent with every message. The 1 memory of the book is searched for "
        "each message. At most 3 matches are given with it, within 4 KiB."
    )
    nothing = "Nothing from book main is given to the agent."
    assert (await turn(alice_api, off, "/memory view"))["content"] == nothing


async def test_view_describes_recall_in_addition_to_the_frozen_block(alice: Owner, alice_api: Api) -> None:
    def prepare() -> Session:
        for number in range(5):
            memory_make(alice, f"Likes tea number {number}.")
        return session_make(alice, agent_make(max_inject_memories=4))

    shown = (await turn(alice_api, await in_thread(prepare), "/memory view"))["content"]
    assert shown.count("<memory ") == 2
    assert shown.endswith(
        "Another 3 memories of the book are searched for each message. At most 2 matches are given with it, within "
        "4 KiB."
    )


async def test_a_command_is_stored_but_not_counted_recorded_or_reviewed(
    alice_api: Api, session: Session, model: ScriptedModel
) -> None:
    model.script("Hello.", "Again.")
    await turn(alice_api, session, "Hi")
    body = await turn(alice_api, session, "/memory help")
    await turn(alice_api, session, "Hi again")
    assert [m["content"] for m in model.calls[1].messages] == ["You are terse.", "Hi", "Hello.", "Hi again"]

    def stored() -> tuple[Any, ...]:
        row = Session.objects.get()
        kinds = list(Message.objects.order_by("seq").values_list("kind", "role"))
        return kinds, row.turns, row.turns_since_memory_review, Run.objects.count(), ThreadRecord.objects.count()

    chat, command = [("chat", "user"), ("chat", "assistant")], [("command", "user"), ("command", "assistant")]
    assert await in_thread(stored) == ([*chat, *command, *chat], 2, 2, 2, 2)
    status, shown = await alice_api.get(f"/api/sessions/{session.pk}/turns/{body['id']}")
    assert (status, shown["content"], shown["kind"]) == (200, body["content"], "command")
    view = await in_thread(lambda: turn_of_run(session, UUID(body["id"]), ZoneInfo("UTC")))
    assert view is not None
    assert (view.command, view.said, view.answer) == (True, "/memory help", body["content"])


async def test_a_command_is_streamed_like_a_turn(alice_api: Api, session: Session) -> None:
    status, text = await alice_api.stream(
        f"/api/sessions/{session.pk}/turns", {"content": "/memory help", "stream": True}
    )
    names = [line.removeprefix("event: ") for line in text.splitlines() if line.startswith("event: ")]
    assert (status, names) == (200, ["started", "delta", "done"])


async def test_v1_answers_a_command_without_the_model(alice_api: Api, agent: object, model: ScriptedModel) -> None:
    late_system = {"role": "system", "content": "Be brief."}
    for messages in ([user("/memory help")], [late_system, user("/memory help")], [user("/memory help"), late_system]):
        answer, _ = await complete(alice_api, *messages)
        assert "/memory rebuild" in answer
    status, text = await alice_api.stream(
        "/v1/chat/completions", {"model": "assistant", "messages": [user("/memory help")], "stream": True}
    )
    assert status == 200
    assert text.endswith("data: [DONE]\n\n")
    assert "/memory rebuild" in text
    assert model.calls == []


async def test_v1_commands_stay_in_their_session_and_are_not_sent_upstream(
    alice_api: Api, agent: object, model: ScriptedModel
) -> None:
    model.script("Hello.", "Fine.")
    first, named = await complete(alice_api, user("Hi"))
    answer, of_command = await complete(alice_api, user("Hi"), assistant(first), user("/memory view"))
    assert of_command == named
    resent = [user("Hi"), assistant(first), user("/memory view"), assistant(answer)]
    _, after = await complete(alice_api, *resent, user("How are you?"))
    assert after == named
    assert [m["content"] for m in model.calls[1].messages] == ["You are terse.", "Hi", "Hello.", "How are you?"]
    kinds = await in_thread(lambda: list(Message.objects.order_by("seq").values_list("kind", flat=True)))
    assert kinds == ["chat", "chat", "command", "command", "chat", "chat"]
    assert await in_thread(lambda: Session.objects.get().turns) == 2


async def test_v1_a_conversation_that_begins_with_commands_continues_in_their_session(
    alice: Owner, alice_api: Api, agent: object, model: ScriptedModel
) -> None:
    model.script("Hello.", "Fine.")
    said = [user("/memory view")]
    answer, named = await complete(alice_api, *said)
    said += [assistant(answer), user("/memory help")]
    answer, after_second = await complete(alice_api, *said)
    said += [assistant(answer), user("Hi")]
    answer, after_words = await complete(alice_api, *said)
    said += [assistant(answer), user("How are you?")]
    _, later = await complete(alice_api, *said)
    assert {named, after_second, after_words, later} == {named}
    assert [m["content"] for m in model.calls[1].messages] == ["You are terse.", "Hi", "Hello.", "How are you?"]

    def stored() -> tuple[Any, ...]:
        row = Session.objects.get()
        kinds = list(Message.objects.order_by("seq").values_list("kind", flat=True))
        listed = session_page(alice.pk, ZoneInfo("UTC")).groups[0].rows
        return row.turns, kinds, [title for _, title in listed]

    assert await in_thread(stored) == (2, ["command"] * 4 + ["chat"] * 4, ["Hi"])


async def test_v1_commands_alone_ask_for_a_message(alice_api: Api, agent: object, model: ScriptedModel) -> None:
    status, body = await alice_api.post(
        "/v1/chat/completions", {"model": "assistant", "messages": [user("/memory view"), assistant("Nothing.")]}
    )
    assert (status, body["error"]["message"][:17]) == (400, "Write a message: ")
    assert model.calls == []


async def test_v1_commands_of_new_chats_share_one_session(
    alice_api: Api, charlie_api: Api, agent: object, model: ScriptedModel
) -> None:
    model.script("Hello.", "Hello again.")
    _, first = await complete(alice_api, user("/memory view"))
    answer, second = await complete(alice_api, user("/memory help"))
    _, charlies = await complete(charlie_api, user("/memory help"))
    temporary = {"model": "assistant", "messages": [user("/memory help")], "metadata": {"temporary": "true"}}
    response = await alice_api.raw("POST", "/v1/chat/completions", temporary)
    assert (first == second, len({first, charlies, response["x-daybook-session"]})) == (True, 3)
    _, of_conversation = await complete(alice_api, user("/memory help"), assistant(answer), user("Hi"))
    assert of_conversation == first
    _, third = await complete(alice_api, user("/memory help"))
    assert third not in {first, charlies}, "a session with a conversation takes no command of a new chat"
    _, other = await complete(alice_api, user("Hi"))
    assert other not in {first, third}, "a chat without that command is a new session"


async def test_v1_a_resent_command_does_not_join_a_session_of_the_chat_page(
    alice_api: Api, session: Session, model: ScriptedModel
) -> None:
    await turn(alice_api, session, "/memory help")
    answer, named = await complete(alice_api, user("/memory help"))
    assert named != str(session.pk)
    model.script("Hello.")
    _, of_conversation = await complete(alice_api, user("/memory help"), assistant(answer), user("Hi"))
    assert of_conversation == named


async def test_v1_commands_accept_a_session_by_name(alice_api: Api, agent: object) -> None:
    _, one = await complete(alice_api, user("/memory help"), x_daybook_session="mine")
    _, two = await complete(alice_api, user("/memory view"), x_daybook_session="mine")
    assert one == two
    assert await in_thread(Session.objects.count) == 1


async def test_v1_a_command_in_an_ended_session_has_no_effect(
    alice_api: Api, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    executed: list[CommandCall] = []
    monkeypatch.setitem(_handlers, "rebuild", executed.append)
    await in_thread(session_end, session)
    body = {"model": "assistant", "messages": [user("/memory rebuild")]}
    response = await alice_api.raw("POST", "/v1/chat/completions", body, **{"x-daybook-session": str(session.pk)})
    assert (response.status_code, executed) == (409, [])


def test_without_commands_returns_the_last_answered_command() -> None:
    _, answered = without_commands(
        [user("/memory view"), assistant("A"), user("/memory help"), assistant("B"), assistant("C"), user("Hi")]
    )
    assert answered == ("/memory help", "B")
    _, answered = without_commands([user("/memory view"), assistant("A"), user("/memory help")])
    assert answered == ("/memory view", "A")
    assert without_commands([user("Hi"), assistant("A")])[1] is None
    assert without_commands([user("/memory view"), user("Hi"), assistant("A")])[1] is None


def test_resent_commands_are_removed_together_with_their_answers() -> None:
    remaining = [user("Hi"), assistant("Hello."), {"role": "system", "content": "S"}, user("Bye")]
    command = [user("/memory view"), assistant("```\n…\n```")]
    parts = {"role": "user", "content": [{"type": "text", "text": "/memory help"}]}
    picture = {"role": "user", "content": [{"type": "image_url"}, {"type": "text", "text": "/memory help"}]}
    assert (
        list(
            without_commands(
                [*command, remaining[0], remaining[1], *command, remaining[2], parts, assistant("x"), remaining[3]]
            )[0]
        )
        == remaining
    )
    assert list(without_commands([picture])[0]) == [picture]


async def test_a_read_only_key_cannot_use_commands(alice: Owner, agent: object, session: Session) -> None:
    plain = (await in_thread(lambda: key_make(alice, read_only=True)))[1]
    api = Api(plain)
    status, body = await api.post(f"/api/sessions/{session.pk}/turns", {"content": "/memory clear"})
    assert (status, body["error"]["code"]) == (403, "forbidden")
    body = {"model": "assistant", "messages": [user("/memory clear")]}
    assert (await api.post("/v1/chat/completions", body))[0] == 403


async def test_commands_in_another_owners_session_are_not_found(charlie_api: Api, session: Session) -> None:
    status, _ = await charlie_api.post(f"/api/sessions/{session.pk}/turns", {"content": "/memory clear"})
    assert status == 404


@pytest.mark.parametrize("verb", ["clear", "reset"])
async def test_clear_asks_for_confirmation_before_deleting(
    alice: Owner, alice_api: Api, session: Session, verb: str
) -> None:
    await in_thread(memory_make, alice)
    confirmation = (await turn(alice_api, session, f"/memory {verb}"))["content"]
    assert "This deletes 1 memory, 0 documents" in confirmation
    assert await in_thread(Memory.objects.filter(deleted_at=None).count) == 1
    line = confirmation.split("`")[1]
    assert line.startswith(f"/memory {verb} confirm ")
    done = await turn(alice_api, session, line)
    assert done["content"].startswith("Deleted 1 memory, 0 documents")
    assert [change["action"] for change in done["memory_changes"]] == ["delete"]
    assert await in_thread(Memory.objects.filter(deleted_at=None).count) == 0
    await in_thread(lambda: memory_make(alice, "Likes coffee."))
    assert "Nothing was deleted" in (await turn(alice_api, session, line))["content"], "a code works once"
    assert await in_thread(Memory.objects.filter(deleted_at=None).count) == 1


async def test_v1_clears_after_the_same_confirmation(
    alice: Owner, alice_api: Api, agent: object, model: ScriptedModel
) -> None:
    await in_thread(memory_make, alice)
    confirmation, named = await complete(alice_api, user("/memory clear"))
    assert await in_thread(Memory.objects.filter(deleted_at=None).count) == 1
    line = confirmation.split("`")[1]
    done, then = await complete(alice_api, user("/memory clear"), assistant(confirmation), user(line))
    assert done.startswith("Deleted 1 memory, 0 documents")
    assert (then == named, await in_thread(Memory.objects.filter(deleted_at=None).count)) == (True, 0)
    assert model.calls == []


async def test_a_wrong_code_deletes_nothing(alice: Owner, alice_api: Api, session: Session) -> None:
    await in_thread(memory_make, alice)
    await turn(alice_api, session, "/memory clear")
    answer = (await turn(alice_api, session, "/memory clear confirm aaaabbbb"))["content"]
    assert answer.startswith("Nothing was deleted.")
    assert await in_thread(Memory.objects.filter(deleted_at=None).count) == 1


async def test_rebuild_schedules_a_forced_run(alice_api: Api, session: Session) -> None:
    assert "Consolidation is off" in (await turn(alice_api, session, "/memory rebuild"))["content"]
    await in_thread(settings_make)
    answer = (await turn(alice_api, session, "/memory enqueue"))["content"]
    assert answer == (
        "Consolidation of book main is scheduled. No session can be read now, so it uses the existing notes. "
        "The book has no sessions to read. Memories shows its progress."
    )
    run = await in_thread(ConsolidationRun.objects.get)
    assert (run.force, run.trigger, run.state) == (True, "request", "scheduled")
    await turn(alice_api, session, "/memory rebuild")
    assert await in_thread(ConsolidationRun.objects.count) == 1


async def test_a_busy_session_refuses_commands(alice: Owner, alice_api: Api, session: Session) -> None:
    def add_running_run() -> None:
        Run.objects.create(owner=alice, session=session, turn=1, request_id="r", lease_expires_at=lease_end())

    await in_thread(add_running_run)
    status, body = await alice_api.post(f"/api/sessions/{session.pk}/turns", {"content": "/memory view"})
    assert (status, body["error"]["code"]) == (409, "conflict")
