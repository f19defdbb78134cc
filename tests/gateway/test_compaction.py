"""gateway.compaction: summaries of long native sessions"""

from typing import Any

import pytest
from django.db import OperationalError, transaction
from pytest_django.fixtures import Settings

from gateway import compaction
from gateway.compaction import choose_cut, compact_session
from gateway.models import Compaction, Message, Run, Session
from gateway.tokens import estimate, estimate_message
from gateway.upstream import ModelTarget
from gateway.upstream.kept import KeptFields, with_kept
from memories.database.access import in_thread
from memories.errors import UpstreamError
from memories.models import Owner
from memories.tokens import text_tokens
from prompts.conversation import compaction_prompt
from tests.conftest import Api
from tests.factories import agent_make, session_make
from tests.gateway.native import turns_path
from tests.gateway.v1 import assistant, user
from tests.scripted_model import Says, ScriptedModel, calls

LIMIT = 2000
LONG = "word " * 300  # about 380 tokens


@pytest.fixture
def long_session(alice: Owner) -> Session:
    return session_make(alice, agent_make("long", context_token_limit=LIMIT, tools=[]))


def test_the_cut_is_before_a_user_message_and_keeps_the_newest_turn() -> None:
    messages = [user(LONG), assistant("a"), user(LONG), assistant("b"), user(LONG)]
    assert choose_cut(messages, limit=LIMIT) == 2


def test_a_single_turn_is_never_cut() -> None:
    assert choose_cut([user(LONG * 9)], limit=LIMIT) == 0


def test_an_estimate_counts_every_part_and_more_for_other_scripts() -> None:
    assert text_tokens("日本語の文章") > text_tokens("abcdef")
    image = {"role": "user", "content": [{"type": "text", "text": "see"}, {"type": "image_url"}]}
    assert estimate_message(image) > 500
    assert estimate([user("a"), user("b")]) == 2 * estimate_message(user("a"))


def test_reasoning_counts_only_where_it_is_sent_again(settings: Settings) -> None:
    settings.DAYBOOK_UPSTREAMS = {
        "default": {"url": "http://127.0.0.1:1/v1", "key": ""},
        "quiet": {"url": "http://127.0.0.1:2/v1", "key": "", "options": {"replay_reasoning": False}},
    }
    answer = assistant("a")
    for upstream, counted in (("default", True), ("quiet", False)):
        with_reasoning = with_kept(answer, KeptFields(upstream=upstream, model="m", fields={"reasoning_content": LONG}))
        tokens = estimate([with_reasoning], ModelTarget(upstream, "m"))
        assert (tokens > text_tokens(LONG)) == counted
        assert estimate([with_reasoning], ModelTarget(upstream, "other")) == estimate([answer])


async def test_long_reasoning_triggers_compaction(
    alice_api: Api, alice: Owner, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await in_thread(lambda: session_make(alice, agent_make("long", context_token_limit=LIMIT)))
    scripted_stream = model.stream

    async def stream_with_reasoning(request: Any) -> Any:
        if request.tools:
            yield {"choices": [{"index": 0, "delta": {"reasoning_content": LONG * 4}, "finish_reason": None}]}
        async for chunk in scripted_stream(request):
            yield chunk

    monkeypatch.setattr(model, "stream", stream_with_reasoning)
    model.script(calls(("search_memories", '{"query": "tea"}')), "Yes.", "A summary.", "Still here.")
    assert (await alice_api.post(turns_path(session), {"content": "One"}))[0] == 200
    assert (await alice_api.post(turns_path(session), {"content": "Two"}))[1]["content"] == "Still here."
    assert len(model.calls) == 4


async def test_a_session_over_the_limit_is_compacted_before_the_model_is_called(
    alice_api: Api, long_session: Session, model: ScriptedModel
) -> None:
    model.script(*["Yes."] * 3, "They wrote <many> words.", "Still here.")
    for number in range(3):
        await alice_api.post(turns_path(long_session), {"content": f"Turn {number} {LONG}"})
    status, turn = await alice_api.post(turns_path(long_session), {"content": f"Now {LONG}"})
    assert (status, turn["content"]) == (200, "Still here.")
    assert "Turn 0" in model.calls[3].messages[0]["content"]  # the call that summarises
    sent = model.calls[4].messages
    assert [m["role"] for m in sent[:2]] == ["system", "system"]
    assert "<earlier_conversation>\nThey wrote &lt;many&gt; words.\n</earlier_conversation>" in sent[1]["content"]
    assert not any(m["content"].startswith("Turn 0") for m in sent if m["role"] == "user")
    assert sum(m["content"].startswith("Turn") for m in sent if m["role"] == "user") < 3
    # The transcript still shows the original messages.
    _, transcript = await alice_api.get(f"/api/sessions/{long_session.pk}/messages")
    assert transcript["data"][0]["content"].startswith("Turn 0")


async def test_the_next_turn_continues_from_the_summary(
    alice_api: Api, long_session: Session, model: ScriptedModel
) -> None:
    model.script(*["Yes."] * 3, "Summary one.", "Still here.", "And here.")
    for text in (f"A {LONG}", f"B {LONG}", f"C {LONG}", f"D {LONG}", "E"):
        await alice_api.post(turns_path(long_session), {"content": text})
    sent = model.calls[5].messages
    assert "Summary one." in sent[1]["content"]
    compaction = await in_thread(Compaction.objects.get)
    first = next(message["content"] for message in sent if message["role"] == "user")
    kept = await in_thread(Message.objects.filter(seq__gt=compaction.up_to).earliest, "seq")
    assert (kept.role, kept.text) == ("user", first)


async def test_a_failed_summary_drops_the_oldest_turns(
    alice_api: Api, long_session: Session, model: ScriptedModel
) -> None:
    model.script(*["Yes."] * 3, UpstreamError("The model server answered with an error (500)."), "Still here.")
    for text in (f"A {LONG}", f"B {LONG}", f"C {LONG}"):
        await alice_api.post(turns_path(long_session), {"content": text})
    status, turn = await alice_api.post(turns_path(long_session), {"content": f"D {LONG}"})
    assert (status, turn["content"]) == (200, "Still here.")
    sent = model.calls[4].messages
    assert "earlier_conversation" not in str(sent)
    assert estimate(sent) <= LIMIT
    trace = await in_thread(lambda: long_session.runs.order_by("-id").first().trace)
    assert (trace["compaction"]["state"], trace["compaction"]["kind"]) == ("failed", "upstream_error")
    assert await in_thread(Compaction.objects.count) == 0


@pytest.mark.any_database
@pytest.mark.parametrize(
    "answer",
    [
        Says(refuses="I'm sorry, I can't help with that."),
        Says(pieces=("They wrote",), finish_reason="content_filter"),
        Says(pieces=("<think>They wrote many words",)),
        Says(pieces=(compaction_prompt(earlier="", conversation=[("user", "Hi")], words=100),)),
    ],
)
async def test_a_refusal_or_a_repeated_prompt_is_no_summary(
    answer: Says, alice_api: Api, long_session: Session, model: ScriptedModel
) -> None:
    model.script(*["Yes."] * 3, answer, "Still here.")
    for text in (f"A {LONG}", f"B {LONG}", f"C {LONG}", f"D {LONG}"):
        status, turn = await alice_api.post(turns_path(long_session), {"content": text})
    assert (status, turn["content"]) == (200, "Still here.")
    assert "earlier_conversation" not in str(model.calls[4].messages)
    assert await in_thread(Compaction.objects.count) == 0


async def test_a_summary_that_cannot_be_stored_serves_its_turn(
    alice_api: Api, long_session: Session, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*args: Any, **more: Any) -> None:
        raise OperationalError("database is locked")

    monkeypatch.setattr(compaction, "compaction_store", busy)
    model.script(*["Yes."] * 3, "Summary one.", "Still here.")
    for text in (f"A {LONG}", f"B {LONG}", f"C {LONG}", f"D {LONG}"):
        status, turn = await alice_api.post(turns_path(long_session), {"content": text})
    assert (status, turn["content"]) == (200, "Still here.")
    assert "Summary one." in model.calls[4].messages[1]["content"]
    trace = (await in_thread(Run.objects.latest, "id")).trace
    assert (trace["compaction"]["state"], trace["compaction"]["kind"]) == ("failed", "OperationalError")


async def test_a_nearly_full_session_is_queued_for_compaction(
    alice_api: Api, long_session: Session, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    queued: list[str] = []
    monkeypatch.setattr("gateway.jobs.async_task", lambda task, session_id, **options: queued.append(session_id))
    monkeypatch.setattr(transaction, "on_commit", lambda hook, **options: hook())
    full = Says(pieces=("Yes.",), usage={"prompt_tokens": 1700, "completion_tokens": 1, "total_tokens": 1701})
    model.script("Yes.", "Yes.", full)
    for text in (f"A {LONG}", f"B {LONG}", f"C {LONG}"):
        await alice_api.post(turns_path(long_session), {"content": text})
    assert queued == [str(long_session.pk)]


def test_the_job_stores_one_summary(long_session: Session, model: ScriptedModel) -> None:
    for seq in range(1, 7):
        role = "user" if seq % 2 else "assistant"
        Message.objects.create(
            owner_id=long_session.owner_id, session=long_session, seq=seq, role=role, text=f"{seq} {LONG}"
        )
    model.script("<think>What did they say?</think>\n\nThe summary.")
    compact_session(str(long_session.pk))
    made = Compaction.objects.get()
    assert (made.summary, made.up_to) == ("The summary.", 4)
    compact_session(str(long_session.pk))  # fits now, so the model is not called again
    long_session.refresh_from_db()
    assert long_session.compaction_epoch == 1
