"""The admin pages about a turn in a real browser: axe finds nothing serious and no page scrolls sideways, in light and
dark mode, on a wide screen and on a phone."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Page, ViewportSize

from gateway.models import Agent, Message, Run, UsageDay
from memories.models import ChangeSet, Memory, WriteOrigin
from memories.services import MemoryFields, Source, book_get_or_create, book_writing
from tests.admin_pages import saved_review_make
from tests.browser.axe import NAVIGATION, dark_contrast_findings, serious_findings
from tests.browser.conftest import LiveServer, NewVisitor, owner_of
from tests.factories import memory_make, session_make

pytestmark = pytest.mark.browser

WIDE: ViewportSize = {"width": 1440, "height": 900}
PHONE: ViewportSize = {"width": 390, "height": 844}
ANSWER = (
    "They run at **02:30**, every night.\n\n| job | at |\n|---|---|\n| dump | 02:30 |\n\n```sh\npg_dump daybook\n```"
)


@pytest.fixture
def run(server: LiveServer) -> Run:
    """A turn with memories, a tool call that wrote one, a failed attempt, a Markdown answer, and a review."""
    alice = owner_of("alice")
    User.objects.filter(pk=alice.user_id).update(is_staff=True, is_superuser=True)
    for content in ("Prefers short answers.", "Keeps database dumps for four weeks in the cellar."):
        memory_make(alice, content)
    session = session_make(alice, Agent.objects.get(name="assistant"), title="Nightly backups")
    run = Run.objects.create(
        owner=alice,
        session=session,
        turn=1,
        state="completed",
        request_id="request-of-tea",
        finished_at=timezone.now() + timedelta(seconds=2),
        model="scripted",
        text=ANSWER,
        usage={"prompt_tokens": 1200, "completion_tokens": 280, "total_tokens": 1480},
        recalled=[
            {"memory_id": "1", "turn_id": None, "lane": "frozen", "why": "In every answer of this session."},
            {"memory_id": "2", "turn_id": None, "lane": "long_term", "why": "Shares the word “backup” with you."},
        ],
        trace={
            "steps": 2,
            "recall": {
                "snapshot": {
                    "generation": 3, "epoch": 1, "agent_version": 1, "compaction_epoch": 0, "frozen": 1,
                },
                "long_term": {"state": "ok", "found": 1, "ms": 0.8},
            },
            "attempts": [
                {"upstream": "main", "model": "large", "fault": "overload", "seconds": 0.4},
                {"upstream": "spare", "model": "small", "fault": "", "seconds": 1.2},
            ],
        },
    )  # fmt: skip
    call = {"id": "c1", "function": {"name": "add_memory", "arguments": '{"content": "Backups run at 02:30."}'}}
    messages: list[dict[str, Any]] = [
        {"role": "user", "text": "When do the backups run at night?"},
        {"role": "assistant", "text": "One **moment**.", "tool_calls": [call]},
        {"role": "tool", "text": '{"ok": true, "id": 3}', "tool_call_id": "c1"},
        {"role": "assistant", "text": ANSWER},
    ]
    for seq, message in enumerate(messages, start=1):
        Message.objects.create(owner=alice, session=session, run=run, seq=seq, **message)
    book = book_get_or_create(alice.pk, "main")
    source = Source(
        actor="model", origin=WriteOrigin.TOOL, kind=ChangeSet.Kind.TOOL, session_id=session.pk, run_id=run.pk
    )
    with book_writing(book, source) as writer:
        writer.add(MemoryFields(content="Backups run at 02:30."))
    saved_review_make(session, book)
    return run


def page_of(run: Run) -> str:
    return reverse("admin:gateway_run_change", args=[run.pk])


def findings(page: Page) -> list[str]:
    scrolls_sideways = page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
    return [*serious_findings(page, without=NAVIGATION), *(["scrolls sideways"] if scrolls_sideways else [])]


def test_axe_finds_nothing_serious_and_no_page_scrolls_sideways(run: Run, visitor: NewVisitor) -> None:
    alice = visitor("alice")
    page = alice.context.new_page()
    memory = Memory.objects.get(number=2)
    UsageDay.objects.create(
        owner=run.owner, day=timezone.now().date(), agent="assistant", model="scripted", turns=12, requests=1_234,
        input_tokens=1_234_567, output_tokens=123_456, cost=123.45,
    )  # fmt: skip
    paths = {
        "turn": page_of(run),
        "session": reverse("admin:gateway_session_change", args=[run.session_id]),
        "memory": reverse("admin:memories_memory_change", args=[memory.pk]),
        "memories": reverse("admin:memories_memory_changelist"),
        "change_set": reverse("admin:memories_changeset_change", args=[ChangeSet.objects.latest("pk").pk]),
        "change_sets": reverse("admin:memories_changeset_changelist"),
        "runs": reverse("admin:gateway_run_changelist"),
        "agent": reverse("admin:gateway_agent_change", args=[Agent.objects.get(name="assistant").pk]),
        "user": reverse("admin:auth_user_change", args=[owner_of("bob").user_id]),
        "usage": reverse("admin:gateway_usageday_changelist"),
    }
    problems = []
    for name, path in paths.items():
        page.set_viewport_size(WIDE)
        page.goto(alice.address + path)
        for summary in page.locator("#content-main ~ details > summary, .db-turn summary, .db-raw summary").all():
            summary.click()
        problems += [f"{name}: {finding}" for finding in findings(page)]
        page.set_viewport_size(PHONE)
        problems += [f"{name} on a phone: {finding}" for finding in findings(page)]
        page.set_viewport_size(WIDE)
        dark = dark_contrast_findings(page, without=NAVIGATION)  # colours are the same on a phone
        problems += [f"{name}: {finding}" for finding in dark]
    assert problems == []
