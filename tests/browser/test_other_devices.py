"""A page follows what other devices, tabs and clients change in its session"""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Locator, Page, WebSocket, expect

from gateway.models import Run, Session
from gateway.services import session_end
from gateway.sessions.keeping import session_change, session_discard, session_restore
from tests.browser.conftest import NewVisitor, Visitor, owner_of, run_in_thread
from tests.browser.conversations import conversation_make, long_conversation
from tests.browser.page_actions import ask, expect_status, hold_back, send
from tests.browser.puppet_model import PuppetModel
from tests.factories import key_make

pytestmark = pytest.mark.browser
BOX = "Message to assistant"
TURNS = ("one", "Answer to one."), ("two", "Answer to two.")


@pytest.fixture
def session(alices: Visitor) -> Session:
    return conversation_make(owner_of("alice"), *TURNS)


@pytest.fixture
def chat(alices: Visitor, session: Session) -> Page:
    """A conversation with two turns on Alice's laptop."""
    return alices.open(f"/c/{session.pk}/")


@pytest.fixture
def phone(visitor: NewVisitor, session: Session, chat: Page) -> Page:
    """The same conversation on her phone."""
    return visitor("alice").open(f"/c/{session.pk}/")


def said(page: Page) -> Locator:
    return page.locator(".turn .entry--you .prose")


def sent(puppet: PuppetModel) -> list[str]:
    """Return the user messages of the last model call."""
    return [message["content"] for message in puppet.requests[-1].messages if message["role"] == "user"]


def edit(page: Page, index: int, text: str) -> None:
    turn = page.locator(".turn").nth(index)
    turn.locator(".entry--you").hover()
    turn.get_by_role("button", name="Edit your message").click()
    page.get_by_role("textbox", name="Edit your message").fill(text)
    page.keyboard.press("Enter")


@contextmanager
def out_of_date(page: Page, visitor: Visitor) -> Iterator[None]:
    """Keep a page from loading what is new."""
    visitor.expect_error("ERR_FAILED")
    turns = re.compile(r"/fragments/turns/")
    page.route(turns, lambda route: route.abort())
    yield
    page.unroute(turns)


def test_a_page_shows_the_turn_of_another_device_while_it_is_answered(
    chat: Page, phone: Page, puppet: PuppetModel
) -> None:
    chat.get_by_label(BOX).fill("a draft")
    chat.evaluate("document.querySelector('.turn').isTheSame = true")
    chat.evaluate("getSelection().selectAllChildren(document.querySelectorAll('[data-prose]')[1])")
    send(phone, "three")
    expect(said(chat)).to_have_text(["one", "two", "three"])
    expect_status(chat, "Answering")
    puppet.say("Answer **to**")
    expect(chat.locator("[data-prose] strong")).to_have_text("to")
    puppet.answer(" three.")
    for page in (chat, phone):
        expect_status(page, "Answer complete")
        expect(page.locator(".turn").last).to_contain_text("Answer to three.")
        expect(page.locator(".turn[data-last]")).to_have_count(1)
    expect(chat.get_by_label(BOX)).to_have_value("a draft")
    expect(chat.get_by_label(BOX)).to_be_focused()
    assert chat.evaluate("document.querySelector('.turn').isTheSame")
    assert chat.evaluate("getSelection().toString()").strip() == "Answer to two."
    assert chat.locator(".dayline h2").count() == 1
    puppet.answer("Answer to a draft.")
    chat.keyboard.press("Enter")
    expect(said(phone)).to_have_text(["one", "two", "three", "a draft"])
    assert sent(puppet) == ["one", "two", "three", "a draft"]


def test_a_page_loads_nothing_again_after_its_own_turns(chat: Page, phone: Page, puppet: PuppetModel) -> None:
    loaded: list[str] = []
    chat.on("request", lambda request: loaded.append(request.url))
    puppet.answer("Answer to three.")
    ask(chat, "three")
    puppet.answer("Another answer to three.")
    chat.get_by_role("button", name="Answer again").last.click()
    expect(phone.get_by_text("Another answer to three.")).to_be_visible()
    puppet.answer("Answer to four.")
    ask(chat, "four")
    expect(phone.get_by_text("Answer to four.")).to_be_visible()
    assert [url for url in loaded if "/fragments/turns/" in url] == []


def test_a_page_that_hears_of_its_own_turn_before_that_has_begun_loads_nothing(
    chat: Page, phone: Page, session: Session, puppet: PuppetModel
) -> None:
    loaded = hold_back(chat, "**/fragments/turns/**")
    sending = hold_back(chat, "**/turns")
    puppet.answer("Answer to three.")
    send(chat, "three")
    expect(said(chat)).to_have_text(["one", "two", "three"])
    answer = sending[0].fetch()
    expect(phone.get_by_text("Answer to three.")).to_be_visible()
    run_in_thread(lambda: session_change(session, title="Black tea"))
    expect(chat.get_by_role("heading", name="Black tea")).to_be_visible()  # it has heard of everything so far
    sending[0].fulfill(response=answer)
    expect_status(chat, "Answer complete")
    assert loaded == []


def test_an_answer_is_stopped_by_the_page_of_another_device(chat: Page, phone: Page, puppet: PuppetModel) -> None:
    send(phone, "three")
    puppet.say("Well, ")
    expect(chat.get_by_text("Well,")).to_be_visible()
    chat.get_by_role("button", name="Stop answering").click()
    for page in (chat, phone):
        expect(page.get_by_text("Stopped by you.")).to_be_visible()
        expect(page.get_by_role("button", name="Send message")).to_be_visible()


def test_a_page_shows_the_turn_of_a_client_of_the_api(
    chat: Page, alices: Visitor, session: Session, puppet: PuppetModel
) -> None:
    _, key = key_make(owner_of("alice"))
    puppet.answer("Answer to three.")
    alices.context.request.post(
        f"{alices.address}/v1/chat/completions",
        headers={"authorization": f"Bearer {key}", "x-daybook-session": str(session.pk)},
        data={"model": "assistant", "messages": [{"role": "user", "content": "three"}]},
    )
    expect(chat.locator(".turn").last).to_contain_text("Answer to three.")
    expect(said(chat)).to_have_text(["one", "two", "three"])


def test_a_reader_who_scrolled_up_stays_there(alices: Visitor, visitor: NewVisitor, puppet: PuppetModel) -> None:
    session = long_conversation(owner_of("alice"), 30)
    chat = alices.open(f"/c/{session.pk}/")
    chat.get_by_role("button", name="earlier turns").click()
    expect(chat.locator(".turn")).to_have_count(30)
    chat.locator("#log").evaluate("log => (log.scrollTop = 300)")
    puppet.answer("Fine. " * 400)
    ask(visitor("alice").open(f"/c/{session.pk}/"), "from the phone")
    expect(said(chat)).to_have_count(31)
    expect(chat.get_by_role("button", name="New text below")).to_be_visible()
    assert chat.evaluate("document.getElementById('log').scrollTop") == 300
    expect(said(chat).last).to_have_text("from the phone")


def test_a_slow_page_shows_what_it_loaded_although_there_is_news_again(
    chat: Page, phone: Page, session: Session, puppet: PuppetModel
) -> None:
    held_back = hold_back(chat, "**/fragments/turns/**")
    puppet.answer("Answer to three.")
    ask(phone, "three")
    with chat.expect_response("**/fragments/sessions/**"):  # after the page has heard of everything so far
        run_in_thread(lambda: session_change(session, title="Black tea"))
    expect(chat.get_by_role("heading", name="Black tea")).to_be_visible()
    assert len(held_back) == 1
    held_back[0].continue_()
    expect(said(chat)).to_have_text(["one", "two", "three"])


def test_a_page_still_offers_earlier_turns_when_one_of_them_was_edited(
    alices: Visitor, visitor: NewVisitor, puppet: PuppetModel
) -> None:
    session = long_conversation(owner_of("alice"), 30)
    chat = alices.open(f"/c/{session.pk}/")
    phone = visitor("alice").open(f"/c/{session.pk}/")
    phone.get_by_role("button", name="earlier turns").click()
    expect(phone.locator(".turn")).to_have_count(30)
    puppet.answer("Fine.")
    edit(phone, 4, "another question")
    expect(said(chat)).to_have_text(["question 3", "another question"])
    expect(chat.get_by_text("Fine.")).to_be_visible()
    chat.get_by_role("button", name="Show 3 earlier turns").click()
    expect(said(chat)).to_have_text([*(f"question {number}" for number in range(4)), "another question"])
    assert chat.locator(".dayline h2").count() == 2


def test_a_page_shows_the_version_that_another_device_chose(chat: Page, phone: Page, puppet: PuppetModel) -> None:
    puppet.answer("Answer to eins.")
    edit(phone, 0, "eins")
    expect(said(chat)).to_have_text(["eins"])
    expect(chat.locator(".versions__place")).to_have_text("2/2")
    phone.get_by_role("button", name="Earlier version").click()
    expect(said(chat)).to_have_text(["one", "two"])
    expect(chat.locator(".versions__place")).to_have_text("1/2")
    expect(chat.locator(".turn[data-last]")).to_have_count(1)
    phone.get_by_role("button", name="Answer again").last.click()
    puppet.answer("Another answer to two.")
    expect(chat.get_by_text("Another answer to two.")).to_be_visible()
    expect(said(chat)).to_have_text(["one", "two"])


def test_a_message_continues_the_version_that_its_page_shows(
    chat: Page, phone: Page, alices: Visitor, puppet: PuppetModel
) -> None:
    with out_of_date(chat, alices):
        puppet.answer("Answer to eins.")
        edit(phone, 0, "eins")
        expect_status(phone, "Answer complete")
        puppet.answer("Answer to three.")
        ask(chat, "three")
    assert sent(puppet) == ["one", "two", "three"]
    for page in (chat, phone):
        expect(said(page)).to_have_text(["one", "two", "three"])
    expect(phone.locator(".versions__place")).to_have_text("1/2")


def test_a_message_is_not_sent_after_turns_that_its_page_does_not_show(
    chat: Page, phone: Page, alices: Visitor, puppet: PuppetModel
) -> None:
    alices.expect_error("status of 409")
    with out_of_date(chat, alices):
        puppet.answer("Answer to three.")
        ask(phone, "three")
        send(chat, "four")
        expect(chat.get_by_role("alert")).to_contain_text("This conversation went on elsewhere.")
        assert Run.objects.count() == 3
    chat.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(said(chat)).to_have_text(["one", "two", "three", "four"])
    expect(chat.get_by_text("Answer to three.")).to_be_visible()
    assert chat.locator(".dayline h2").count() == 1
    puppet.answer("Answer to four.")
    chat.get_by_role("button", name="Try again").click()
    expect_status(chat, "Answer complete")
    assert sent(puppet) == ["one", "two", "three", "four"]
    expect(said(phone)).to_have_text(["one", "two", "three", "four"])


def test_a_message_waits_beside_the_answer_that_another_device_began(
    chat: Page, phone: Page, alices: Visitor, puppet: PuppetModel
) -> None:
    alices.expect_error("status of 409")
    with out_of_date(chat, alices):
        send(phone, "three")
        expect_status(phone, "Answering")
        send(chat, "four")
        expect(chat.get_by_role("alert")).to_contain_text("An answer is still being written")
    chat.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(said(chat)).to_have_text(["one", "two", "three", "four"])
    chat.get_by_role("button", name="Try again").click()
    expect(chat.locator(".toast")).to_contain_text("Wait until the answer is complete")
    puppet.answer("Answer to three.")
    expect_status(chat, "Answer complete")
    puppet.answer("Answer to four.")
    chat.get_by_role("button", name="Try again").click()
    expect(said(phone)).to_have_text(["one", "two", "three", "four"])
    expect(chat.get_by_text("Answer to four.")).to_be_visible()


def test_a_message_that_is_being_edited_stays(chat: Page, phone: Page, puppet: PuppetModel) -> None:
    chat.locator(".entry--you").nth(1).hover()
    chat.get_by_role("button", name="Edit your message").nth(1).click()
    editor = chat.get_by_role("textbox", name="Edit your message")
    editor.fill("deux")
    puppet.answer("Answer to three.")
    ask(phone, "three")
    expect(chat.locator(".turn").last).to_contain_text("Answer to three.")
    expect(editor).to_have_value("deux")
    expect(editor).to_be_focused()
    puppet.answer("Answer to eins.")
    edit(phone, 0, "eins")
    expect_status(phone, "Answer complete")
    expect(editor).to_have_value("deux")  # although its turn is no longer shown elsewhere
    puppet.answer("Answer to deux.")
    editor.press("Enter")
    expect(chat.get_by_text("Answer to deux.")).to_be_visible()
    assert sent(puppet) == ["one", "deux"]
    expect(said(phone)).to_have_text(["one", "deux"])


def test_a_page_says_that_its_session_was_deleted_restored_or_ended_elsewhere(chat: Page, session: Session) -> None:
    chat.get_by_label(BOX).fill("a draft")
    run_in_thread(session_discard, session)
    expect(chat.locator("#ask")).to_contain_text("This session was deleted elsewhere.")
    expect(chat.get_by_role("button", name="Send message")).to_be_disabled()
    chat.get_by_label(BOX).press("Enter")
    expect(said(chat)).to_have_text(["one", "two"])
    expect(chat.get_by_label(BOX)).to_have_value("a draft")
    expect(chat.locator("#session-list").get_by_role("link", name="Tea")).to_have_count(0)
    run_in_thread(session_restore, session.owner_id, session.pk)
    expect(chat.locator("#ask")).to_be_empty()
    expect(chat.get_by_role("button", name="Send message")).to_be_enabled()
    run_in_thread(session_end, session)
    expect(chat.locator("#ask")).to_contain_text("This session has ended.")
    expect(chat.locator("#ask").get_by_role("link", name="New session")).to_be_visible()


def test_a_page_shows_the_new_name_of_its_session(chat: Page, session: Session) -> None:
    run_in_thread(lambda: session_change(session, title="Black tea"))
    expect(chat.get_by_role("heading", name="Black tea")).to_be_visible()
    expect(chat.locator("#session-list").get_by_role("link", name="Black tea")).to_be_visible()
    expect(chat).to_have_title("Black tea · Daybook")


def test_an_answer_ends_when_its_session_is_deleted_elsewhere(
    chat: Page, phone: Page, session: Session, puppet: PuppetModel
) -> None:
    send(chat, "three")
    puppet.say("Well, ")
    expect(phone.get_by_text("Well,")).to_be_visible()
    run_in_thread(session_discard, session)
    for page in (chat, phone):
        expect(page.locator("#ask")).to_contain_text("This session was deleted elsewhere.")


def test_a_page_catches_up_when_it_is_online_again(visitor: NewVisitor, session: Session, puppet: PuppetModel) -> None:
    laptop = visitor("alice", alone=True)
    laptop.expect_error("ERR_INTERNET_DISCONNECTED")
    chat = laptop.open(f"/c/{session.pk}/")
    expect(chat.get_by_role("button", name="Send message")).to_be_enabled()
    laptop.context.set_offline(True)
    expect(chat.get_by_role("button", name="Send message")).to_be_disabled()
    puppet.answer("Answer to three.")
    ask(visitor("alice").open(f"/c/{session.pk}/"), "three")
    laptop.context.set_offline(False)
    expect(chat.locator(".turn").last).to_contain_text("Answer to three.")


def test_the_first_page_of_a_new_session_follows_it(visitor: NewVisitor, alices: Visitor, puppet: PuppetModel) -> None:
    chat = alices.open("/new/")
    puppet.answer("Answer to one.")
    ask(chat, "one")
    puppet.answer("Answer to two.")
    ask(visitor("alice").open("/"), "two")
    expect(said(chat)).to_have_text(["one", "two"])


def test_another_person_learns_nothing(chat: Page, phone: Page, visitor: NewVisitor, puppet: PuppetModel) -> None:
    received: list[str] = []
    theirs = visitor("charlie", alone=True)

    def listen(websocket: WebSocket) -> None:
        websocket.on("framereceived", lambda frame: received.append(str(frame)))

    theirs.context.on("page", lambda page: page.on("websocket", listen))
    other = conversation_make(owner_of("charlie"), *TURNS)
    page = theirs.open(f"/c/{other.pk}/")
    expect(page.get_by_role("button", name="Send message")).to_be_enabled()
    puppet.answer("Answer to three.")
    ask(phone, "three")
    expect(chat.locator(".turn").last).to_contain_text("Answer to three.")
    puppet.answer("Answer to charlie.")
    ask(page, "charlie")  # what was sent to this page before has arrived
    assert len(received) > 1
    assert [frame for frame in received if str(other.pk) not in frame] == []
    expect(said(page)).to_have_text(["one", "two", "charlie"])


def test_a_message_from_the_place_of_a_search_follows_the_newest_turn(
    alices: Visitor, puppet: PuppetModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.chat.transcript.AROUND_TURNS", 22)
    session = long_conversation(owner_of("alice"), 30)
    chat = alices.open(f"/c/{session.pk}/?at=8")
    expect(chat.get_by_role("link", name="later turns: go to the newest")).to_be_visible()
    puppet.answer("Fine.")
    ask(chat, "question 30")
    expect(chat.locator("[data-later]")).to_have_count(0)
    numbers = [int(text.removeprefix("question ")) for text in said(chat).all_inner_texts()]
    assert numbers == list(range(numbers[0], 31))
