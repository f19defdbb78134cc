"""Around the conversation: sessions list, notices, connection, phone layout, keyboard."""

import re
from uuid import uuid4

import pytest
from django.utils import timezone
from playwright.sync_api import Locator, Page, expect

from gateway.models import Agent, Run, Session
from memories.messaging.outbox import notify
from memories.models import Memory, Notification
from tests.browser.conftest import NewVisitor, Visitor, owner_of, run_in_thread, sign_in
from tests.browser.conversations import conversation_make
from tests.browser.page_actions import ask, expect_status, open_conversation, send
from tests.browser.puppet_model import PuppetModel
from tests.factories import memory_make, session_make

pytestmark = pytest.mark.browser

NOTICE = "Saved 1 memory from your last conversation."


def send_notice(name: str, text: str, kind: Notification.Kind = Notification.Kind.REVIEW_SAVED) -> None:
    owner = owner_of(name)
    run_in_thread(lambda: notify(owner_id=owner.pk, kind=kind, text=text, review_id=uuid4()))


def test_a_notice_appears_in_every_tab_of_its_owner_only(visitor: NewVisitor) -> None:
    alice, charlie = visitor("alice"), visitor("charlie")
    tabs = [alice.open("/"), alice.open("/new/")]
    stranger = charlie.open("/")
    send_notice("alice", NOTICE)
    for tab in tabs:
        expect(tab.locator(".toast")).to_contain_text(NOTICE)
    chat, toast = tabs[1], tabs[1].locator(".toast")
    expect(chat.get_by_label("Message to assistant")).to_be_focused()
    toast.get_by_role("button", name="Close notice").click()
    expect(toast).to_have_count(0)
    send_notice("alice", "A review wants to save 2 memories.", Notification.Kind.REVIEW_AWAITING_APPROVAL)
    expect(toast.get_by_role("link", name="Decide")).to_be_visible()
    expect(toast.get_by_role("button", name="Undo")).to_be_hidden()
    send_notice("charlie", "Saved 9 memories from your last conversation.")
    expect(stranger.locator(".toast")).to_have_count(1)
    expect(stranger.get_by_text(NOTICE)).to_have_count(0)


def test_going_offline_is_shown_and_loses_no_draft_and_no_notice(visitor: NewVisitor) -> None:
    alices = visitor("alice", alone=True)  # no other page of its context may receive the notice first
    alices.expect_error("ERR_INTERNET_DISCONNECTED")
    chat = alices.open("/")
    chat.get_by_label("Message to assistant").fill("half a thou")
    with chat.expect_response("**/api/notifications*"):  # a Daybook on this machine is reachable without a network
        chat.evaluate("() => window.dispatchEvent(new Event('offline'))")
    expect(chat.get_by_role("button", name="Send message")).to_be_enabled()
    expect(chat.get_by_text("Connection lost.")).to_be_hidden()
    alices.context.set_offline(True)
    expect(chat.get_by_text("Connection lost. Trying again…")).to_be_visible()
    expect(chat.get_by_role("button", name="Send message")).to_be_disabled()
    chat.keyboard.press("Enter")
    send_notice("alice", NOTICE)
    alices.context.set_offline(False)
    expect(chat.get_by_text("Connected again. Nothing was missed.")).to_be_visible()
    expect(chat.locator(".toast")).to_have_count(1)
    expect(chat.get_by_role("button", name="Send message")).to_be_enabled()
    expect(chat.get_by_label("Message to assistant")).to_have_value("half a thou")
    assert not Session.objects.exists()


def test_notices_arrive_where_only_websockets_are_blocked(visitor: NewVisitor, puppet: PuppetModel) -> None:
    alices = visitor("alice", alone=True)
    alices.context.route_web_socket("**/ws/notifications/**", lambda socket: socket.close())
    chat = alices.open("/")
    late = chat.get_by_text("No live connection: notices arrive late.")
    expect(late).to_be_visible(timeout=30_000)
    expect(chat.get_by_text("Connection lost.")).to_be_hidden()
    send_notice("alice", NOTICE)
    expect(chat.locator(".toast")).to_contain_text(NOTICE, timeout=30_000)
    expect(late).to_be_hidden()  # on a phone it covers the page
    puppet.answer("Fine.")
    ask(chat, "hello")
    alices.expect_error("status of 503")
    unready = {"error": {"code": "overloaded", "message": "The database is away."}}
    chat.route("**/api/notifications*", lambda route: route.fulfill(status=503, json=unready))
    expect(chat.get_by_text("Connection lost. Trying again…")).to_be_visible(timeout=30_000)
    expect(chat.get_by_role("button", name="Send message")).to_be_disabled()
    chat.unroute("**/api/notifications*")
    expect(chat.get_by_role("button", name="Send message")).to_be_enabled(timeout=30_000)


def test_the_stream_resumes_after_its_connection_broke(chat: Page, alices: Visitor, puppet: PuppetModel) -> None:
    alices.expect_error("ERR_FAILED")
    broken: list[str] = []

    def break_once(route: object) -> None:
        # The first reconnection fails too, so the page has to try again.
        broken.append("events")
        if len(broken) == 1:
            route.abort()  # type: ignore[attr-defined]
        else:
            route.continue_()  # type: ignore[attr-defined]

    send(chat, "tell me")
    puppet.say("Perhaps ")
    expect(chat.get_by_text("Perhaps")).to_be_visible()
    chat.route(re.compile(r"/events\?render=html"), break_once)
    chat.reload()
    puppet.answer("twice.")
    expect(chat.get_by_text("Perhaps twice.")).to_be_visible()
    expect_status(chat, "Answer complete")
    assert len(broken) >= 2


def test_returning_to_a_page_shows_turns_from_other_devices(alices: Visitor, visitor: NewVisitor) -> None:
    session = conversation_make(owner_of("alice"), ("from the laptop", "Fine."))
    chat = alices.open(f"/c/{session.pk}/")
    phone = visitor("alice").open("/")
    ask(phone, "from the phone")
    conversation_make(owner_of("alice"), ("another", "Fine."), title="A session of the phone")
    chat.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(chat.get_by_text("from the phone")).to_be_visible()
    expect(chat.locator(".turn")).to_have_count(2)
    expect(chat.get_by_role("link", name="A session of the phone")).to_be_visible()


def test_returning_to_a_page_keeps_the_place_and_what_is_open(alices: Visitor, visitor: NewVisitor) -> None:
    turns = [(f"question {number}", "Fine. " * 50) for number in range(44)]
    session = conversation_make(owner_of("alice"), *turns, ("a long question\n" * 40, "Fine."))
    chat = alices.open(f"/c/{session.pk}/")
    chat.get_by_role("button", name="Show all").click()
    chat.get_by_role("button", name="Show 20 of 25 earlier turns").click()
    expect(chat.locator(".turn")).to_have_count(40)
    copying = chat.get_by_role("button", name="Copy answer").nth(30)
    copying.focus()
    place = chat.evaluate("document.getElementById('log').scrollTop")
    ask(visitor("alice").open("/"), "from the phone")
    chat.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(chat.get_by_text("from the phone")).to_have_count(1)
    expect(chat.locator(".turn")).to_have_count(41)
    expect(chat.get_by_role("button", name="Show less")).to_have_count(1)
    expect(copying).to_be_focused()
    assert chat.evaluate("document.getElementById('log').scrollTop") == place
    expect(chat.get_by_role("button", name="New text below")).to_be_visible()


def test_a_button_that_was_just_used_keeps_the_focus_when_its_turn_is_rendered_again(alices: Visitor) -> None:
    chat = open_conversation(alices, ("from the laptop", "Fine."))
    copying = chat.get_by_role("button", name="Copy answer")
    copying.press("Enter")
    expect(chat.get_by_role("button", name="Copied")).to_be_focused()
    Run.objects.update(state="stopped")
    chat.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(chat.locator(".turn")).to_have_attribute("data-state", "stopped")
    expect(copying).to_be_focused()


def test_a_session_can_be_renamed_searched_and_deleted(alices: Visitor) -> None:
    for title in ("Why is the oven cold?", "Plan the trip to Gotland."):
        session = conversation_make(owner_of("alice"), (title, "Fine."), title=title)
    chat = alices.open(f"/c/{session.pk}/")
    rows = chat.locator(".session")
    expect(rows).to_have_count(2)

    rows.last.hover()
    rows.last.get_by_role("button", name="More for Why is the oven cold?").click()
    chat.get_by_role("menuitem", name="Rename").click()
    chat.get_by_label("New name of the session").fill("The oven")
    chat.keyboard.press("Enter")
    expect(rows.last.get_by_role("link")).to_have_text("The oven")
    expect(rows.last.get_by_role("link")).to_be_focused()

    chat.keyboard.press("Control+k")
    search = chat.get_by_label("Search sessions")
    expect(search).to_be_focused()
    search.fill("gotland")
    expect(rows).to_have_count(1)
    search.fill("nothing like it")
    expect(chat.get_by_text("Nothing matches “nothing like it”.")).to_be_visible()
    chat.get_by_role("button", name="Clear search").click()
    expect(rows).to_have_count(2)
    assert set(Session.objects.values_list("title", flat=True)) >= {"The oven"}

    rows.last.hover()
    rows.last.get_by_role("button", name="More for The oven").click()
    chat.get_by_role("menuitem", name="Delete").click()
    expect(rows).to_have_count(1)
    expect(rows.get_by_role("link")).to_be_focused()
    expect(chat.get_by_text("Deleted “The oven”.")).to_be_visible()
    assert Session.objects.count() == 1
    chat.get_by_role("button", name="Undo").click()
    expect(chat.get_by_text("Restored “The oven”.")).to_be_visible()
    expect(rows).to_have_count(2)
    expect(chat.get_by_role("heading", name="Plan the trip to Gotland.")).to_be_visible()
    assert Session.objects.count() == 2


def test_a_turn_in_another_tab_disturbs_neither_a_new_name_nor_the_focus(alices: Visitor) -> None:
    for title in ("The oven", "Gotland"):
        session = conversation_make(owner_of("alice"), (title, "Fine."), title=title)
    chat, other = alices.open(f"/c/{session.pk}/"), alices.open("/new/")
    chat.get_by_role("link", name="Gotland").press("Shift+F10")
    chat.keyboard.press("Enter")
    name = chat.get_by_label("New name of the session")
    name.fill("The trip to")
    with chat.expect_response("**/fragments/sessions/**"):
        ask(other, "Is it late?")
    expect(name).to_be_focused()
    name.press_sequentially(" Visby")
    assert set(Session.objects.values_list("title", flat=True)) >= {"Gotland"}
    name.press("Enter")
    renamed = chat.locator("#session-list").get_by_role("link", name="The trip to Visby")
    expect(renamed).to_be_focused()
    expect(chat.get_by_role("link", name="Is it late?")).to_be_visible()
    with chat.expect_response("**/fragments/sessions/**"):
        ask(other, "How late?")
    expect(renamed).to_be_focused()


def test_renaming_leaves_the_focus_where_it_is_and_archiving_moves_it_to_the_search_field(
    alices: Visitor,
) -> None:
    session = conversation_make(owner_of("alice"), ("The oven", "Fine."), title="The oven")
    chat = alices.open(f"/c/{session.pk}/")
    chat.get_by_role("link", name="The oven").press("Shift+F10")
    chat.keyboard.press("Enter")
    chat.get_by_label("New name of the session").fill("The stove")
    with chat.expect_response(f"**/api/sessions/{session.pk}"):
        chat.get_by_label("Message to assistant").click()
    expect(chat.get_by_role("heading", name="The stove")).to_be_visible()
    chat.keyboard.type("and so on")
    expect(chat.get_by_label("Message to assistant")).to_have_value("and so on")
    chat.get_by_role("link", name="The stove").press("Shift+F10")
    chat.get_by_role("menuitem", name="Archive").press("Enter")
    expect(chat.get_by_text("Archived. Searches still find it.")).to_be_visible()
    expect(chat.get_by_label("Search sessions")).to_be_focused()


def test_the_session_list_is_one_tab_stop_with_arrows_inside(alices: Visitor) -> None:
    for words in ("First one", "Second one"):
        session = conversation_make(owner_of("alice"), (words, "Fine."), title=words)
    chat = alices.open(f"/c/{session.pk}/")
    links = chat.locator(".session a")
    assert sorted(links.evaluate_all("all => all.map(link => link.tabIndex)")) == [-1, 0]
    links.first.focus()
    chat.keyboard.press("ArrowDown")
    expect(links.last).to_be_focused()
    chat.keyboard.press("Shift+F10")
    expect(chat.get_by_role("menuitem", name="Rename")).to_be_focused()
    chat.keyboard.press("End")
    expect(chat.get_by_role("menuitem", name="Delete")).to_be_focused()
    chat.keyboard.press("ArrowDown")
    expect(chat.get_by_role("menuitem", name="Rename")).to_be_focused()
    chat.keyboard.press("Escape")
    expect(chat.get_by_role("menu")).to_be_hidden()
    links.last.focus()
    chat.keyboard.press("Enter")
    expect(chat.get_by_role("heading", level=1)).to_have_text("First one")


def test_on_a_phone_the_sessions_are_a_drawer_and_nothing_scrolls_sideways(
    alices: Visitor, puppet: PuppetModel
) -> None:
    words = "A rather long message about " + "the oven " * 12
    page = open_conversation(alices, (words, "Fine."), title=words)
    sessions = page.get_by_role("complementary", name="Sessions")
    for width in (320, 390):
        page.set_viewport_size({"width": width, "height": 740})
        assert page.evaluate("document.documentElement.scrollWidth") == width
        expect(sessions).to_be_hidden()
        opener = page.get_by_role("button", name="Open sessions")
        opener.click()
        expect(sessions.get_by_role("button", name="Close sessions")).to_be_focused()
        assert page.locator("main").evaluate("main => main.inert")
        sessions.get_by_role("button", name="More for ").click()
        page.keyboard.press("Escape")
        expect(page.get_by_role("menuitem", name="Rename")).to_be_hidden()
        expect(sessions).to_be_visible()
        page.keyboard.press("Escape")
        expect(sessions).to_be_hidden()
        expect(opener).to_be_focused()
    send(page, "and?")
    puppet.say("Well")
    expect(page.get_by_text("Well")).to_be_visible()
    opener.click()
    page.keyboard.press("Escape")
    expect(sessions).to_be_hidden()
    puppet.answer(" and good.")
    expect(page.get_by_text("Well and good.")).to_be_visible()  # closing the drawer did not stop the answer
    expect(page.locator(".turn").last).to_have_attribute("data-state", "completed")
    opener.click()
    page.set_viewport_size({"width": 1000, "height": 390})  # the phone is turned
    assert not page.locator("main").evaluate("main => main.inert")
    expect(page.locator(".scrim")).to_be_hidden()


def test_the_first_page_begins_with_its_heading_on_a_small_phone(visitor: NewVisitor) -> None:
    page = visitor("alice", viewport={"width": 360, "height": 640}).open("/")
    page.wait_for_load_state("load")
    expect(page.get_by_role("heading", name="The first page is yours.")).to_be_in_viewport()


def test_a_reader_who_scrolled_up_stays_there_and_sees_that_there_is_new_text(
    alices: Visitor, puppet: PuppetModel
) -> None:
    chat = open_conversation(alices, ("go on", "A long answer.\n\n" * 60))
    send(chat, "and on")
    puppet.say("first of it")
    expect(chat.get_by_text("first of it")).to_be_in_viewport()
    chat.locator("#log").evaluate("log => { log.scrollTop = 0; }")
    puppet.say("\n\nmore of it")
    button = chat.get_by_role("button", name="New text below")
    expect(button).to_be_visible()
    assert chat.locator("#log").evaluate("log => log.scrollTop") == 0
    button.click()
    expect(chat.get_by_text("more of it")).to_be_in_viewport()
    expect(button).to_be_hidden()
    puppet.end()
    expect_status(chat, "Answer complete")


def test_signing_out_leads_to_the_sign_in_page(chat: Page, alices: Visitor) -> None:
    # Its socket is closed immediately; the page may notice before the form's response arrives.
    alices.expect_error("status of 401")
    chat.locator("#account-button").click()
    chat.get_by_role("button", name="Sign out").click()
    expect(chat.get_by_role("heading", name="Daybook")).to_be_visible()
    expect(chat).to_have_url(re.compile(r"/login/(\?next=%2F)?$"))


def test_the_list_of_sessions_loads_more_at_its_end(alices: Visitor) -> None:
    agent = Agent.objects.get()
    for number in range(45):
        session_make(owner_of("alice"), agent, title=f"Session {number}")
    page = alices.open("/")
    rows = page.locator(".session")
    expect(rows).to_have_count(40)
    rows.last.scroll_into_view_if_needed()
    expect(rows).to_have_count(45)
    expect(page.locator("#session-list h2")).to_have_count(1)
    rows.last.get_by_role("link").focus()
    session_make(owner_of("alice"), agent, title="A session of the phone")
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(page.get_by_role("link", name="A session of the phone")).to_have_count(1)
    expect(rows).to_have_count(46)
    expect(rows.last.get_by_role("link")).to_be_focused()


def test_the_list_of_sessions_stays_as_it_is_while_sessions_are_opened(alices: Visitor) -> None:
    for number in range(90):
        conversation_make(owner_of("alice"), ("Which tree?", "A quince."), title=f"Session {number}")
    page = alices.open("/")
    rows, search = page.locator(".session"), page.get_by_label("Search sessions")
    for count in (80, 90):
        rows.last.scroll_into_view_if_needed()
        expect(rows).to_have_count(count)
    page.get_by_role("link", name="Session 2", exact=True).click()
    expect(page.get_by_role("heading", name="Session 2")).to_be_visible()
    expect(rows).to_have_count(90)
    expect(page.get_by_role("link", name="Session 2", exact=True)).to_be_in_viewport()
    search.fill("quince")
    expect(page.locator(".hit").first).to_be_visible()
    for _ in range(2):
        page.locator(".hit").nth(3).click()
        page.wait_for_url("**q=quince")
        expect(search).to_have_value("quince")
        expect(page.locator(".hit").nth(3)).to_be_in_viewport()
    page.reload()
    expect(search).to_have_value("quince")
    search.fill("Session 41 ")  # its title matches, and no message
    expect(rows).to_have_count(1)
    page.get_by_role("link", name="Session 41", exact=True).click()
    expect(page.get_by_role("heading", name="Session 41")).to_be_visible()
    expect(search).to_have_value("Session 41 ")
    page.get_by_role("link", name="New session").click()
    expect(search).to_have_value("")
    expect(rows).to_have_count(40)


def test_the_list_of_sessions_is_not_left_to_another_person(visitor: NewVisitor) -> None:
    for name in ("alice", "bob"):
        conversation_make(owner_of(name), ("Which tree?", "A quince."), title=f"Of {name}")
    conversation_make(owner_of("alice"), title="Old")
    Session.objects.filter(title="Old").update(archived_at=timezone.now())
    shared = visitor("alice")
    page = shared.open("/")
    page.get_by_role("button", name="Show archived").click()
    page.get_by_role("link", name="Old").click()
    expect(page.get_by_role("heading", name="Archived")).to_be_visible()
    page.goto(shared.address + "/memories/")
    sign_in(shared, "bob")
    page.goto(f"{shared.address}/c/{Session.objects.get(title='Of bob').pk}/")
    expect(page.locator("#session-list").get_by_role("link", name="Of bob")).to_be_visible()


def test_an_answer_and_its_code_can_be_copied(alices: Visitor) -> None:
    alices.context.grant_permissions(["clipboard-read", "clipboard-write"])
    long = ("all of it?", "```\n" + "ls\n" * 200 + "```")
    chat = open_conversation(alices, ("how?", "Run **this**:\n\n```bash\nls -l\n```"), long)
    expect(chat.get_by_role("button", name="Copy", exact=True).last).to_be_in_viewport()  # its end is shown
    chat.get_by_role("button", name="Copy", exact=True).first.click()
    assert chat.evaluate("navigator.clipboard.readText()") == "ls -l\n"
    chat.get_by_role("button", name="Copy answer").first.click()
    expect(chat.get_by_role("button", name="Copied").last).to_be_visible()
    assert chat.evaluate("navigator.clipboard.readText()") == "Run **this**:\n\n```bash\nls -l\n```"


def test_a_second_click_on_copy_does_not_change_the_button_for_good(visitor: NewVisitor) -> None:
    session = conversation_make(owner_of("alice"), ("how?", "Run:\n\n```bash\nls -l\n```"))
    chat = visitor("alice", alone=True, permissions=["clipboard-write"]).open(f"/c/{session.pk}/")
    chat.clock.install()
    button = chat.locator("[data-copy-code]")
    button.click()
    expect(button).to_have_text("Copied")
    button.click()
    chat.clock.fast_forward(5000)
    expect(button).to_have_text("Copy")


def test_copying_without_https_keeps_the_focus(alices: Visitor) -> None:
    chat = open_conversation(alices, ("how?", "Run:\n\n```bash\nls -l\n```"))
    chat.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    button = chat.get_by_role("button", name="Copy answer")
    button.press("Enter")
    expect(chat.get_by_role("button", name="Copied")).to_be_focused()


def test_after_undo_and_close_the_focus_is_not_lost(alices: Visitor) -> None:
    for title in ("The oven", "Gotland"):
        chat = open_conversation(alices, (title, "Fine."), title=title)
    chat.get_by_role("link", name="The oven").press("Shift+F10")
    chat.get_by_role("menuitem", name="Archive").press("Enter")
    expect(chat.get_by_role("link", name="Gotland")).to_be_focused()
    chat.locator(".toast").get_by_role("button", name="Undo").press("Enter")
    close = chat.locator(".toast").get_by_role("button", name="Close notice")
    expect(close).to_be_focused()
    chat.get_by_label("Message to assistant").focus()
    close.press("Enter")
    expect(chat.locator(".toast")).to_have_count(0)
    expect(chat.get_by_label("Message to assistant")).to_be_focused()


def memory_being_edited(alices: Visitor) -> tuple[Page, Locator]:
    """Open the memories page, and change the text of its only memory without saving it."""
    memory_make(owner_of("alice"), "Likes tea.")
    page = alices.open("/memories/")
    row = page.locator(".mem")
    row.hover()
    row.get_by_role("button", name="Edit: ").click()
    row.get_by_label("Memory", exact=True).fill("Likes green tea.")
    return page, row


def test_the_memories_page_keeps_an_edit_when_the_login_has_ended(alices: Visitor) -> None:
    alices.expect_error("status of 401")
    page, row = memory_being_edited(alices)
    cookies = alices.context.cookies()
    alices.context.clear_cookies()
    row.get_by_role("button", name="Save").click()
    expect(row.get_by_role("alert").filter(has_text="You are signed out.")).to_be_visible()
    again = page.get_by_role("banner").get_by_role("link", name="Sign in")
    expect(again).to_have_attribute("href", "/login/?next=/memories/")
    alices.context.add_cookies(cookies)  # type: ignore[arg-type]
    row.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Likes green tea.")).to_be_visible()
    assert Memory.objects.get().content == "Likes green tea."


def test_signing_out_in_another_tab_keeps_what_is_being_edited(alices: Visitor) -> None:
    alices.expect_error("status of 401")
    alices.expect_error("WebSocket connection")
    page, row = memory_being_edited(alices)
    other = alices.open("/")
    other.get_by_role("button", name="account of").click()
    other.get_by_role("button", name="Sign out").click()
    expect(other).to_have_url(re.compile("/login/"))
    expect(page.get_by_role("banner").get_by_role("link", name="Sign in")).to_be_visible()
    expect(page.get_by_text("Connection lost.")).to_be_hidden()
    expect(row.get_by_label("Memory", exact=True)).to_have_value("Likes green tea.")


def test_a_page_that_was_signed_out_elsewhere_redirects_to_the_sign_in_page(chat: Page, alices: Visitor) -> None:
    alices.expect_error("status of 401")
    alices.expect_error("Response Status Error Code 401")
    account = alices.open("/account/")
    account.get_by_label("Name of a new key").fill("laptop")
    alices.context.clear_cookies(name="daybook_session")
    account.get_by_role("button", name="Create key").click()
    expect(account).to_have_url(re.compile(r"/login/\?next=%2Faccount%2F"))
    chat.get_by_label("Search sessions").fill("anything")
    expect(chat).to_have_url(re.compile(r"/login/\?next=%2F"))
