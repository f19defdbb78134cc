"""The chat page and its fragments as rendered by the server. Scripted behaviour is tested in tests/browser."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from gateway.chat.labels import why_given
from gateway.models import Agent, Message, Run, Session
from gateway.runs.ingested import messages_add
from gateway.runs.rows import message_rows
from gateway.services import agent_save, configuration_save
from gateway.sessions.message_index import history_index
from memories.database.batches import finish
from memories.models import ChangeSet, Owner, WriteOrigin
from memories.services import MemoryFields, Source, book_get_or_create, book_writing, owner_for_user
from tests.factories import caller_make
from tests.pages import html_of, text_of
from tests.unsliced import undo_changes

pytestmark = pytest.mark.django_db

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


@pytest.fixture
def charlie_page() -> Client:
    client = Client()
    client.force_login(User.objects.create_user("charlie"))
    return client


@pytest.fixture(autouse=True)
def agent() -> Agent:
    return Agent.objects.create(name="assistant")


def session_make(owner: Owner, title: str = "Backups", *, at: datetime = NOON, temporary: bool = False) -> Session:
    return Session.objects.create(
        owner=owner, agent=Agent.objects.get(), title=title, last_active_at=at, temporary=temporary
    )


def turn_make(
    session: Session,
    said: str,
    answer: str = "Fine.",
    *,
    number: int | None = None,
    state: str = "completed",
    superseded: bool = False,
    recalled: list[dict[str, object]] | None = None,
    error: dict[str, str] | None = None,
    trace: dict[str, str] | None = None,
    at: datetime = NOON,
) -> Run:
    first = Message.objects.filter(session=session).count() + 1
    run = Run.objects.create(
        owner=session.owner,
        session=session,
        turn=number or first,
        state=state,
        superseded=superseded,
        text=answer,
        recalled=recalled or [],
        error=error,
        trace=trace or {},
        request_id="r",
        started_at=at,
        finished_at=at,
    )
    texts = [("user", said)] + ([("assistant", answer)] if state in {"completed", "stopped"} else [])
    for place, (role, text) in enumerate(texts):
        Message.objects.create(
            owner=session.owner,
            session=session,
            run=run,
            seq=first + place,
            role=role,
            text=text,
            created_at=at,
        )
    return run


def write(owner: Owner, run: Run, *contents: str, update: int | None = None) -> ChangeSet:
    source = Source(actor="model", origin=WriteOrigin.TOOL, kind=ChangeSet.Kind.TOOL, run_id=run.pk)
    with book_writing(book_get_or_create(owner.pk, "main"), source) as writer:
        for content in contents:
            if update is None:
                writer.add(MemoryFields(content=content))
            else:
                writer.update(update, MemoryFields(content=content))
        assert writer.change_set is not None
        return writer.change_set


def test_pages_redirect_anonymous_visitors_to_the_sign_in_page() -> None:
    for path in ("/", "/new/", f"/c/{uuid4()}/"):
        response = Client().get(path)
        assert response.status_code == 302
        assert response.headers["Location"].startswith("/login/?next=")


def test_fragments_answer_401_to_anonymous_visitors() -> None:
    some = uuid4()
    for path in (
        "/fragments/sessions/",
        f"/fragments/turn/{some}/{some}/",
        f"/fragments/turns/{some}/",
        f"/fragments/review/{some}/",
    ):
        assert Client().get(path).status_code == 401


def test_the_first_page_offers_three_prompts(page: Client) -> None:
    html = html_of(page, "/")
    assert "The first page is yours." in html
    assert html.count('<li><button class="prompt"') == 3
    assert "Your sessions will be listed here by day." in html


@pytest.mark.any_database
@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"memory_review_interval": 3}, "After every 3 messages a review reads the conversation and saves what"),
        ({"memory_review_interval": 1}, "After every message a review reads"),
        ({"memory_review_idle_minutes": 30}, "When you have paused for a while a review reads"),
        ({}, None),
    ],
)
def test_the_first_page_says_when_reviews_run(page: Client, settings: dict[str, int], says: str | None) -> None:
    agent_save("assistant", settings)
    html = html_of(page, "/")
    assert says in html if says else "a review reads" not in html


def test_the_page_names_the_demo_model_only_when_it_is_used(page: Client, settings: object) -> None:
    settings.DAYBOOK_UPSTREAMS = {}  # type: ignore[attr-defined]
    assert "Demo model." in html_of(page, "/")
    settings.DAYBOOK_UPSTREAMS = {"default": {"url": "http://127.0.0.1:1/v1", "key": ""}}  # type: ignore[attr-defined]
    assert "Demo model." not in html_of(page, "/")


@pytest.mark.parametrize("path", ["/", "/new/", "/login/"])
def test_pages_need_no_inline_script_or_style(page: Client, alice: Owner, path: str) -> None:
    turn_make(session_make(alice), "<script>alert(1)</script>", "```bash\nls\n```")
    client = Client() if path == "/login/" else page
    response = client.get(path)
    html = response.content.decode()
    assert not re.search(r"<script(?![^>]*\bsrc=)", html)
    assert not re.search(r"<style|\sstyle=|\son[a-z]+=|javascript:", html)
    assert not re.search(r"(?:src|href)=\"(?:https?:)?//", html)
    policy = response.headers["Content-Security-Policy"]
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy


@pytest.mark.parametrize("path", ["/", "/memories/", "/reviews/", "/account/"])
def test_pages_say_that_they_need_scripts(page: Client, path: str) -> None:
    assert re.search(r"<noscript>.*Daybook needs JavaScript\..*</noscript>", html_of(page, path))


@pytest.mark.any_database
def test_answers_of_a_page_share_a_time_limit_for_highlighting(
    page: Client, alice: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = session_make(alice)
    for answer in ("first", "second"):
        turn_make(session, "How?", f"```python\nif True: print('{answer}')\n```")
    address = f"/c/{session.pk}/"
    assert html_of(page, address).count('<span class="k">if') == 2
    monkeypatch.setattr("gateway.chat.turn_views.SECONDS_PER_PAGE", 0.0)
    assert html_of(page, address).count('<span class="k">if') == 0


def test_the_chat_opens_with_the_most_recent_session(page: Client, alice: Owner) -> None:
    session_make(alice, "Older", at=NOON - timedelta(days=1))
    session_make(alice, "Newer")
    assert '<h1 id="session-title">Newer</h1>' in html_of(page, "/")


def test_a_new_session_takes_its_agent_and_temporary_from_the_query(page: Client) -> None:
    Agent.objects.create(name="kitchen")
    html = html_of(page, "/new/?agent=kitchen&temporary=1")
    assert "<option selected>kitchen</option>" in html
    assert 'data-session="" data-agent="kitchen"' in html
    assert 'class="app--chat is-temporary"' in html
    assert "<option selected>assistant</option>" in html_of(page, "/new/?agent=nobody")


def test_somebody_elses_session_is_not_found(charlie_page: Client, alice: Owner) -> None:
    session = session_make(alice, "Secret plans")
    run = turn_make(session, "hidden words")
    for path in (
        f"/c/{session.pk}/",
        f"/fragments/turn/{session.pk}/{run.pk}/",
        f"/fragments/turns/{session.pk}/",
    ):
        html = html_of(charlie_page, path, status=404)
        assert "hidden words" not in html
        assert "Secret plans" not in html
    assert "Secret plans" not in html_of(charlie_page, "/fragments/sessions/?q=hidden")
    assert "Secret plans" not in html_of(charlie_page, "/")


def test_a_deleted_session_shows_a_message(page: Client) -> None:
    assert "There is nothing here." in html_of(page, f"/c/{uuid4()}/", status=404)


@pytest.mark.parametrize("path", ["/c/00000000-0000-7000-8000-000000000000/", "/nothing/"])
def test_a_missing_page_is_not_cached(page: Client, path: str) -> None:
    """Its frame names the person who is signed in."""
    answer = page.get(path)
    assert (answer.status_code, "no-store" in answer.headers.get("Cache-Control", "")) == (404, True)


def test_user_messages_are_shown_as_typed_and_answers_as_markdown(page: Client, alice: Owner) -> None:
    session = session_make(alice)
    turn_make(session, "is 1 < 2 **or** not?", "It **is**. <b>Really</b>")
    html = html_of(page, f"/c/{session.pk}/")
    assert "is 1 &lt; 2 **or** not?" in html
    assert "<p>It <strong>is</strong>. &lt;b&gt;Really&lt;/b&gt;</p>" in html


def test_a_superseded_answer_is_not_shown(page: Client, alice: Owner) -> None:
    session = session_make(alice)
    turn_make(session, "question", "first answer", number=1, superseded=True)
    turn_make(session, "question", "second answer", number=1)
    html = html_of(page, f"/c/{session.pk}/")
    assert "first answer" not in html
    assert "second answer" in html


def test_every_turn_can_be_edited_and_regenerated(page: Client, alice: Owner) -> None:
    session = session_make(alice)
    turn_make(session, "one")
    last = turn_make(session, "two")
    html = html_of(page, f"/c/{session.pk}/")
    assert html.count('data-edit-message aria-label="Edit your message"') == 2
    assert html.count('data-answer-again aria-label="Answer again"') == 2
    assert "Answer again" in html_of(page, f"/fragments/turn/{session.pk}/{last.pk}/")


@pytest.mark.any_database
@pytest.mark.parametrize(
    ("state", "error", "words"),
    [
        ("failed", {"code": "upstream_timeout"}, "The model server took too long to answer. Your message is kept."),
        ("failed", {"code": "upstream_error"}, "The model server answered with an error. Your message is kept."),
        ("failed", {"code": "overloaded"}, "Too much at once. Your message is kept."),
        (
            "failed",
            {"code": "internal_error", "message": "It is in the log."},
            "Something went wrong in the gateway. Your message is kept.",
        ),
        ("failed", {"code": "rate_limited"}, "Too much at once. Your message is kept."),
        (
            "failed",
            {"code": "too_large"},
            "This message is longer than the agent can read. Shorten it or send it in parts.",
        ),
        ("failed", {"code": "not_found"}, "It was deleted meanwhile. Reload the page, or copy your message into a new"),
        (
            "failed",
            {"code": "upstream_error", "message": "The model server answered with an error (500)."},
            "The model server answered with an error (500). Your message is kept. The fault is on its side.",
        ),
        (
            "failed",
            {"code": "upstream_error", "message": "The model server refused the gateway's key."},
            "key. Your message is kept. An administrator has to set a valid key for this model server.",
        ),
        (
            "failed",
            {"code": "rate_limited", "message": "The model server is receiving too many requests. Try again later."},
            "The model server is receiving too many requests. Your message is kept.",
        ),
        ("failed", {"code": "odd", "message": "Odd. Your message is kept."}, "Odd. Your message is kept."),
        ("failed", {"code": "what_is_this"}, "The answer could not be finished. Your message is kept."),
        ("failed", None, "The answer could not be finished."),
        ("stopped", None, "Stopped by you."),
        ("awaiting_client_tools", None, "Waiting for the client that started this turn."),
    ],
)
def test_failed_stopped_and_waiting_turns_show_a_message(
    page: Client, alice: Owner, state: str, error: dict[str, str] | None, words: str
) -> None:
    session = session_make(alice)
    turn_make(session, "hello", "Half an", state=state, error=error)
    html = html_of(page, f"/c/{session.pk}/")
    assert words in text_of(html)
    assert ("data-answer-again>" in html) == (state == "failed")


def test_empty_and_truncated_answers_show_a_message(page: Client, alice: Owner) -> None:
    session = session_make(alice)
    turn_make(session, "hello", "")
    turn_make(session, "tell me all", "It began", trace={"finish_reason": "length"})
    words = text_of(html_of(page, f"/c/{session.pk}/"))
    assert "The model gave an empty answer. Ask again, or rephrase your message." in words
    assert "It began The answer ends here because the model reached its token limit." in words


def test_version_counts_leave_out_failures_without_a_following_turn(page: Client, alice: Owner) -> None:
    session = session_make(alice)
    first = turn_make(session, "one", "First.", number=1, superseded=True)
    turn_make(session, "one", number=1, state="failed", superseded=True)
    other_turn = turn_make(session, "one", "Third.", number=1)
    after = turn_make(session, "two", number=2)
    Run.objects.filter(pk=after.pk).update(follows=other_turn.pk)
    html = html_of(page, f"/c/{session.pk}/")
    assert html.count('aria-label="Versions of this turn"') == 1
    assert f'data-choose="{first.pk}" aria-label="Earlier version"' in html
    assert ">2/2<" in html


def test_turns_since_a_hidden_one_begin_with_the_last_shown_turn_before_it(page: Client, alice: Owner) -> None:
    session = session_make(alice)
    one = turn_make(session, "one", number=1)
    hidden = [turn_make(session, text, number=number, superseded=True) for number, text in ((2, "two"), (3, "three"))]
    shown = turn_make(session, "zwei", number=2)
    for run, follows in ((hidden[0], one), (hidden[1], hidden[0]), (shown, one)):
        Run.objects.filter(pk=run.pk).update(follows=follows.pk)

    def since(run: Run) -> list[str]:
        html = html_of(page, f"/fragments/turns/{session.pk}/?since={run.pk}")
        return re.findall(r'data-turn="([^"]+)"', html)

    assert since(hidden[1]) == since(one) == [str(one.pk), str(shown.pk)]
    assert since(shown) == [str(shown.pk)]
    Run.objects.filter(pk=one.pk).update(superseded=True)
    assert since(hidden[1]) == [str(shown.pk)]


def test_turns_since_a_hidden_one_offer_the_turns_before_them(page: Client, alice: Owner) -> None:
    session = session_make(alice)
    one, two = (turn_make(session, text, number=number) for number, text in ((1, "one"), (2, "two")))
    hidden = turn_make(session, "three", number=3, superseded=True)
    shown = turn_make(session, "drei", number=3)
    for run, follows in ((two, one), (hidden, two), (shown, two)):
        Run.objects.filter(pk=run.pk).update(follows=follows.pk)
    html = html_of(page, f"/fragments/turns/{session.pk}/?since={hidden.pk}")
    assert re.findall(r'data-turn="([^"]+)"', html) == [str(two.pk), str(shown.pk)]
    assert "Show 1 earlier turn<" in html
    assert "data-earlier" not in html_of(page, f"/fragments/turns/{session.pk}/?since={shown.pk}")


def test_reasoning_tools_and_details_are_shown_under_the_answer(page: Client, alice: Owner) -> None:
    configuration_save("prices", {"m": {"input": 10, "output": 20}})
    session = session_make(alice)
    usage = {"total_tokens": 30_000, "prompt_tokens": 10_000, "completion_tokens": 20_000}
    run = turn_make(session, "What do I drink?", "Tea.", trace={})
    Run.objects.filter(pk=run.pk).update(
        reasoning="Look <b>it</b> up.", trace={"thought_ms": 8200}, usage=usage, model="m"
    )
    call = {"id": "c1", "type": "function", "function": {"name": "search_memories", "arguments": '{"query": "tea"}'}}
    rows = {"owner": alice, "session": session, "run": run}
    Message.objects.create(**rows, seq=3, role="assistant", tool_calls=[call])
    Message.objects.create(**rows, seq=4, role="tool", tool_call_id="c1", text="x" * 5000)
    html = html_of(page, f"/c/{session.pk}/")
    words = text_of(html)
    assert "Look &lt;b&gt;it&lt;/b&gt; up." in html
    assert "Thought for 8 s Look" in words
    assert "Used 1 tool search_memories query tea Result xxx" in words
    assert "x" * 2001 not in html
    assert "Details Model m Tokens 30,000 tokens: 10,000 read, 20,000 written Cost $0.50 Time 0.0 s" in words


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (r'{"query": "tea \ud800"}', "query tea ?"),
        (r'{"tea \ud800": [{"kind": "green \udc00"}]}', "green ?"),
    ],
)
def test_arguments_of_a_tool_that_no_page_can_contain_do_not_fail_it(
    page: Client, alice: Owner, given: str, shown: str
) -> None:
    session = session_make(alice)
    run = turn_make(session, "What do I drink?", "Tea.")
    call = {"id": "c1", "type": "function", "function": {"name": "look_up", "arguments": given}}
    rows = {"owner": alice, "session": session, "run": run}
    Message.objects.create(**rows, seq=3, role="assistant", tool_calls=[call])
    Message.objects.create(**rows, seq=4, role="tool", tool_call_id="c1", text=given)
    words = text_of(html_of(page, f"/c/{session.pk}/"))
    assert words.count(shown) == 2


@pytest.mark.parametrize(
    ("by", "words", "offered"),
    [
        ("request", "Stopped by you.", False),
        ("client", "Stopped: the client disconnected.", False),
        ("unwatched", "Stopped: nobody was watching.", False),
        ("restart", "Interrupted: Daybook was restarted while this was being answered.", True),
        ("process", "Interrupted: the process that was answering went away.", True),
    ],
)
def test_a_stopped_answer_says_why_and_an_interrupted_one_offers_a_retry(
    page: Client, alice: Owner, by: str, words: str, offered: bool
) -> None:
    session = session_make(alice)
    turn_make(session, "hello", "Half an", state="stopped", trace={"stopped_by": by})
    html = html_of(page, f"/c/{session.pk}/")
    assert f"Half an {words}" in text_of(html)
    assert ("data-answer-again>" in html) is offered


def test_a_running_turn_is_marked_for_the_script(page: Client, alice: Owner) -> None:
    session = session_make(alice)
    run = turn_make(session, "hello", "so far", state="running")
    html = html_of(page, f"/c/{session.pk}/")
    assert f'data-turn="{run.pk}" data-state="running"' in html
    assert 'data-answer aria-busy="true"' in html


def test_an_answer_lists_the_recalled_memories_with_reasons(page: Client, alice: Owner) -> None:
    session = session_make(alice)
    earlier = turn_make(session, "the disk was at 97 % on Tuesday too", number=1)
    write(alice, earlier, "Backs up every night.")
    recalled: list[dict[str, object]] = [
        {"memory_id": "1", "turn_id": None, "lane": "long_term", "why": "Shares the word “night” with your question."},
        {"memory_id": None, "turn_id": str(earlier.pk), "lane": "short_term", "why": "x"},
        {"memory_id": "99", "turn_id": None, "lane": "long_term", "why": "forgotten since"},
    ]
    turn_make(session, "and now?", recalled=recalled)
    text = text_of(html_of(page, f"/c/{session.pk}/"))
    assert "Given 2 memories Backs up every night. Shares the word “night” with your question." in text
    assert "“the disk was at 97 % on Tuesday too” Said earlier in this conversation, turn 1." in text


@pytest.mark.parametrize(("count", "words"), [(0, ""), (1, ""), (2, " Recalled twice."), (12, " Recalled 12 times.")])
def test_the_reason_ends_with_the_number_of_recalls(count: int, words: str) -> None:
    why = "Shares the words “backup” and “night” with your question."
    assert why_given({"lane": "long_term", "why": why}, usage_count=count) == why + words
    frozen = {"lane": "frozen", "why": "pinned, so it is in every answer"}
    assert why_given(frozen, usage_count=count) == "Pinned, so it is in every answer."


@pytest.mark.any_database
def test_memories_of_other_owners_are_never_shown(page: Client, alice: Owner, charlie_page: Client) -> None:
    charlie = owner_for_user(User.objects.get(username="charlie"))
    theirs = turn_make(session_make(charlie), "x")
    write(charlie, theirs, "Charlie's secret.")
    session = session_make(alice)
    turn_make(session, "y", recalled=[{"memory_id": "1", "turn_id": str(theirs.pk), "lane": "long_term", "why": ""}])
    assert "secret" not in html_of(page, f"/c/{session.pk}/")


def test_a_saved_memory_is_shown_under_its_answer_with_edit_and_undo(page: Client, alice: Owner) -> None:
    session = session_make(alice)
    change_set = write(alice, turn_make(session, "hello"), "Keeps dumps for 14 days.")
    html = html_of(page, f"/c/{session.pk}/")
    assert "Memory saved" in html
    assert f'data-change-set="{change_set.pk}"' in html
    assert 'data-edit-memory="1" data-version="1" data-content="Keeps dumps for 14 days."' in html


@pytest.mark.any_database
def test_an_updated_memory_shows_its_change_as_del_and_ins(page: Client, alice: Owner) -> None:
    session = session_make(alice)
    write(alice, turn_make(session, "hello"), "Backs up at 02:30 daily.")
    write(alice, turn_make(session, "moved"), "Backs up at 03:15 daily.", update=1)
    html = html_of(page, f"/c/{session.pk}/")
    assert "Memory updated" in html
    assert "Backs up at <del>02:30</del> <ins>03:15</ins> daily." in html


def test_memories_saved_in_one_step_share_one_undo(page: Client, alice: Owner) -> None:
    session = session_make(alice)
    write(alice, turn_make(session, "hello"), "Likes tea.", "Likes rye bread.")
    html = html_of(page, f"/c/{session.pk}/")
    assert "2 memories saved" in html
    assert html.count("data-change-set") == 1
    assert html.count("data-edit-memory=") == 2


@pytest.mark.any_database
def test_an_undone_change_is_struck_through_and_can_be_restored(page: Client, alice: Owner) -> None:
    session = session_make(alice)
    run = turn_make(session, "hello")
    change_set = write(alice, run, "Likes tea.")
    by_alice = Source(actor=f"user:{alice.user_id}", origin=WriteOrigin.USER, kind=ChangeSet.Kind.UNDO)
    undone = undo_changes(change_set, replace(by_alice, undoes=change_set.pk))
    html = html_of(page, f"/fragments/turn/{session.pk}/{run.pk}/")
    assert "Undone by you" in html
    assert "<s>Likes tea.</s>" in html
    assert f'data-change-set="{undone.change_set}"' in html
    assert "Restore" in html
    again = ChangeSet.objects.get(pk=undone.change_set)
    back = undo_changes(again, replace(by_alice, undoes=again.pk))
    html = html_of(page, f"/fragments/turn/{session.pk}/{run.pk}/")
    assert "Memory saved" in html
    assert "Undone" not in html
    assert f'data-change-set="{back.change_set}"' in html


def test_writes_of_a_superseded_answer_are_shown_with_the_new_one(page: Client, alice: Owner) -> None:
    session = session_make(alice)
    write(alice, turn_make(session, "q", number=1, superseded=True), "Likes tea.")
    turn_make(session, "q", number=1)
    assert "Likes tea." in html_of(page, f"/c/{session.pk}/")


def test_writes_of_a_review_are_listed_for_its_toast(page: Client, charlie_page: Client, alice: Owner) -> None:
    review = uuid4()
    source = Source(actor="review", origin=WriteOrigin.BACKGROUND_REVIEW, kind=ChangeSet.Kind.REVIEW, review_id=review)
    with book_writing(book_get_or_create(alice.pk, "main"), source) as writer:
        writer.add(MemoryFields(content="Likes <tea>."))
    assert "<span>Likes &lt;tea&gt;.</span>" in html_of(page, f"/fragments/review/{review}/")
    assert charlie_page.get(f"/fragments/review/{review}/").status_code == 204


def test_a_long_conversation_shows_its_newest_turns_and_links_to_earlier_ones(page: Client, alice: Owner) -> None:
    session = session_make(alice)
    for number in range(25):
        turn_make(session, f"question {number}.")
    html = html_of(page, f"/c/{session.pk}/")
    assert "question 5." in html
    assert "question 4." not in html
    assert "Show 5 earlier turns" in html
    link = re.search(r'data-earlier="(/fragments/turns/[^"]+)"', html)
    assert link is not None
    earlier = html_of(page, link[1])
    assert "question 0." in earlier
    assert "question 4." in earlier
    assert "question 5." not in earlier
    assert "earlier turn" not in earlier
    assert "data-last" not in earlier


@pytest.mark.any_database
def test_a_long_conversation_takes_no_more_queries_than_a_short_one(page: Client, alice: Owner) -> None:
    def queries(turns: int) -> int:
        session = session_make(alice)
        for number in range(turns):
            run = turn_make(session, f"q{number}", recalled=[{"memory_id": "1", "lane": "frozen", "why": ""}])
            write(alice, run, f"Fact {turns} {number}.")
        with CaptureQueriesContext(
            connection,
        ) as captured:
            html_of(page, f"/c/{session.pk}/")
        return len(captured)

    queries(1)  # fills the cache of prices
    assert queries(2) == queries(8)


def test_sessions_are_grouped_by_day_in_the_owners_time_zone(
    page: Client, alice: Owner, time_machine_at_noon: None
) -> None:
    alice.time_zone = "Pacific/Auckland"
    alice.save()
    session_make(alice, "Late in Auckland", at=datetime(2026, 11, 20, 11, 30, tzinfo=UTC))  # 00:30 on the 21st
    session_make(alice, "The evening before", at=datetime(2026, 11, 20, 10, 30, tzinfo=UTC))  # 23:30 on the 20th
    session_make(alice, "This week", at=datetime(2026, 11, 15, 12, 0, tzinfo=UTC))
    session_make(alice, "Last week", at=datetime(2026, 11, 10, 12, 0, tzinfo=UTC))
    session_make(alice, "Long ago", at=datetime(2025, 3, 4, 12, 0, tzinfo=UTC))
    text = text_of(html_of(page, "/fragments/sessions/"))
    assert text == (
        "Today Late in Auckland Yesterday The evening before Last 7 days This week November Last week "
        "March 2025 Long ago"
    )


@pytest.fixture
def time_machine_at_noon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.chat.session_list.timezone.now", lambda: NOON)


def test_sessions_are_found_by_title_and_messages(page: Client, alice: Owner) -> None:
    turn_make(session_make(alice, "Dinner"), "no hazelnuts please", "Noted.")
    session_make(alice, "Hazelnut orchard")
    session_make(alice, "Trains")
    text = text_of(html_of(page, "/fragments/sessions/?q=hazelnut"))
    assert "Dinner" in text
    assert "Hazelnut orchard" in text
    assert "Trains" not in text
    assert "Nothing matches “quince”." in text_of(html_of(page, "/fragments/sessions/?q=quince"))


def test_ingested_messages_are_listed_only_once_somebody_continues_them(page: Client, alice: Owner) -> None:
    for name in ("", "kitchen"):
        said = message_rows(alice.pk, None, [{"role": "user", "content": "no hazelnuts please"}], history=1)
        messages_add(caller_make(alice), said, book=None, session_ref=name)
    finish(history_index(alice.pk))
    assert "Your sessions will be listed here" in html_of(page, "/fragments/sessions/")
    assert text_of(html_of(page, "/fragments/sessions/?q=hazelnut")).count("From messages") == 1
    kitchen = Session.objects.get(external_id="kitchen")
    turn_make(kitchen, "What is for dinner?")
    assert "no hazelnuts please" in text_of(html_of(page, "/fragments/sessions/"))
    ended = Session.objects.get(state="ended")
    html = text_of(html_of(page, f"/c/{ended.pk}/"))
    assert "no hazelnuts please" in html
    assert "This session has ended." in html


def test_a_session_without_a_title_is_named_by_its_first_message(page: Client, alice: Owner) -> None:
    session = session_make(alice, "")
    turn_make(session, "The backup job filled the disk again\nlast night. Can you give me a script?")
    assert "The backup job filled the disk again last night. Can you…" in html_of(page, f"/c/{session.pk}/")


@pytest.mark.parametrize("minutes", [1, 0], ids=["one a minute", "all at the same moment"])
def test_a_long_session_list_is_paged(page: Client, alice: Owner, minutes: int) -> None:
    for number in reversed(range(45)):
        session_make(alice, f"Session {number:02}.", at=NOON - timedelta(minutes=number * minutes))
    first = html_of(page, "/fragments/sessions/")
    more = re.search(r'hx-get="(/fragments/sessions/[^"]+)"', first)
    assert more is not None
    second = html_of(page, more[1].replace("&amp;", "&"))
    shown = re.findall(r"<span>(Session \d\d\.)</span>", first + second)
    assert shown == [f"Session {number:02}." for number in range(45)]
    assert "<h2>" not in second  # still the same day
    assert "hx-get" not in second


def test_a_temporary_session_shows_its_notice(page: Client, alice: Owner) -> None:
    session = session_make(alice, temporary=True)
    html = html_of(page, f"/c/{session.pk}/")
    line = re.search(r'<p class="temporary" id="temporary-line"([^>]*)>', html)
    assert line is not None
    assert "hidden" not in line[1]


def test_an_ended_session_has_its_message_field_disabled(page: Client, alice: Owner) -> None:
    session = session_make(alice)
    Session.objects.update(state=Session.State.ENDED)
    html = html_of(page, f"/c/{session.pk}/")
    assert "This session has ended." in html
    assert re.search(r'<textarea id="message"[^>]* disabled>', html)


def test_the_context_fill_is_the_newest_runs_share_of_the_token_limit(page: Client, alice: Owner) -> None:
    session = session_make(alice)
    run = turn_make(session, "hello")
    Run.objects.filter(pk=run.pk).update(usage={"total_tokens": 28_000})
    html = html_of(page, f"/c/{session.pk}/")
    assert 'id="fill" data-fill="88"' in html  # of 32,000
    assert "Older turns will be summarised" in text_of(html)


def test_a_wrong_password_shows_an_error() -> None:
    User.objects.create_user("alice", password="ink-and-paper-9")
    response = Client().post("/login/", {"username": "alice", "password": "wrong"})
    assert response.status_code == 200
    assert "The user name or password is not correct. Check both and try again." in response.content.decode()
    right = Client().post("/login/", {"username": "alice", "password": "ink-and-paper-9", "next": "/new/"})
    assert (right.status_code, right.headers["Location"]) == (302, "/new/")


FAR_CURSOR = "before=%s_01a20650-d0a0-7484-b03a-04197972ff6f"  # in a zone in which no database or calendar has the time


@pytest.mark.any_database
@pytest.mark.parametrize(
    "query",
    [
        "before=x",
        "before=" + "9" * 30,
        "before=-1",
        "before=",
        FAR_CURSOR % "9999-12-31T23:59:59-14:00",
        FAR_CURSOR % "2020-01-01T00:00:00%2B23:59",
    ],
)
def test_an_invalid_page_position_is_ignored(page: Client, alice: Owner, query: str) -> None:
    session = session_make(alice)
    turn_make(session, "hello")
    for path in (f"/fragments/turns/{session.pk}/", "/fragments/sessions/"):
        assert page.get(f"{path}?{query}").status_code == 200
