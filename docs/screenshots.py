"""Takes the screenshots for README.md and docs/tour.md with a fresh Daybook, a scripted model server, and Chromium.

    .venv/bin/python -m docs.screenshots

Writes docs/images/*.png. Needs the contributor's tools (`make install-dev`) and Chromium."""

import json
import shutil
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from playwright.sync_api import Browser, Page, sync_playwright

from docs import picture_story as story
from tests.e2e.running import manage, running_daybook
from tests.upstream_server import UpstreamServer, serving_upstream
from tests.waiting import eventually

REPO = Path(__file__).resolve().parent.parent
IMAGES = REPO / "docs" / "images"
PORT = 8731
PASSWORD = "only for pictures"  # noqa: S105 - the server runs for a minute
KEY = "dbk_" + "only-for-pictures-" * 3
ADDRESS = f"http://127.0.0.1:{PORT}"
WIDE, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
BACKDATE = """
from datetime import timedelta
from gateway.models import Session
for title, days in {days}.items():
    session = Session.objects.get(title=title)
    then = session.last_active_at - timedelta(days=days, hours=1)
    Session.objects.filter(pk=session.pk).update(last_active_at=then)
"""
USAGE = {"prompt_tokens": 1480, "completion_tokens": 96, "total_tokens": 1576}


@dataclass(frozen=True, slots=True)
class Daybook:
    """A running Daybook: its model server, its home, and the environment for its commands."""

    upstream: UpstreamServer
    home: Path
    environment: dict[str, str]

    def script(self, model: str, *steps: dict[str, Any]) -> None:
        """Queue the next answers of a model."""
        self.upstream.script(*({"model": model, "usage": USAGE, **step} for step in steps))


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chromium-headless-shell"))), None)
    with running() as daybook, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        screenshot_first_page(browser)
        store_earlier_data(daybook)
        hold_conversation(browser, daybook)
        store_later_data(daybook)
        for scheme in ("light", "dark"):
            take_screenshots(browser, scheme)
        browser.close()


def screenshot_first_page(browser: Browser) -> None:
    """Take the screenshot of an empty chat."""
    page = signed_in(browser, "light", WIDE)
    page.screenshot(path=IMAGES / "chat-empty.png")
    page.context.close()


def store_earlier_data(daybook: Daybook) -> None:
    """Create memories, and sessions of earlier days."""
    for memory in story.MEMORIES:
        call("POST", "/api/memories", memory)
    for title, message, _ in story.EARLIER_SESSIONS:
        session = call("POST", "/api/sessions", {"agent": "assistant", "title": title})
        daybook.script("main-model", {"text": "Gladly."})
        call("POST", f"/api/sessions/{session['id']}/turns", {"content": message})
    days = {title: days for title, _, days in story.EARLIER_SESSIONS}
    manage(daybook.home, "shell", "-c", BACKDATE.format(days=days), env=daybook.environment).check_returncode()


def hold_conversation(browser: Browser, daybook: Daybook) -> None:
    """Hold the conversation in the browser, until its review has finished, and take a screenshot."""
    page = signed_in(browser, "light", WIDE)
    page.goto(f"{ADDRESS}/new/")
    daybook.script("review-model", *story.REVIEW)
    for number, (message, steps) in enumerate(story.TURNS, start=1):
        daybook.script("main-model", *steps)
        page.fill("#message", message)
        page.keyboard.press("Enter")
        # Count completed turns, since an answer may be complete before its start is seen.
        page.wait_for_function(
            "count => document.querySelectorAll('.turn[data-state=completed]').length >= count", arg=number
        )
        if message == story.TURNS[0][0]:
            call("PATCH", f"/api/sessions/{page.url.rstrip('/').rpartition('/')[2]}", {"title": story.TITLE})
            page.reload()
    page.wait_for_selector(".toast")
    page.locator("details.note summary").first.click()
    page.wait_for_timeout(600)
    page.screenshot(path=IMAGES / "chat.png")
    page.context.close()


def store_later_data(daybook: Daybook) -> None:
    """Create a review that waits for a decision, and the documents of a consolidation."""
    session = call("POST", "/api/sessions", {"agent": "planner", "title": "Plan of the week"})
    daybook.script("main-model", {"text": story.PLAN[1]})
    call("POST", f"/api/sessions/{session['id']}/turns", {"content": story.PLAN[0]})
    daybook.script("review-model", *story.PROPOSALS)
    call("POST", f"/api/sessions/{session['id']}/review", {})
    eventually(lambda: call("GET", "/api/reviews")["data"][0]["state"] == "awaiting_approval", within=30)
    daybook.script("reading-model", *[story.EXTRACTION] * (len(story.EARLIER_SESSIONS) + 2))
    daybook.script("writing-model", story.SYNTHESIS)
    call("POST", "/api/consolidations", {"book": "main", "force": True})
    eventually(lambda: call("GET", "/api/books/main/artifacts")["data"], within=60)


def take_screenshots(browser: Browser, scheme: str) -> None:
    """Take screenshots of every page, also of some on a phone."""
    suffix = "" if scheme == "light" else "-dark"
    wide = signed_in(browser, scheme, WIDE)
    for path, name in {"/memories/": "memories", "/reviews/": "reviews", "/account/": "account"}.items():
        screenshot(wide, path, name + suffix)
    screenshot(wide, "/admin/memories/memory/", "admin-memories" + suffix)
    screenshot(wide, "/admin/", "admin" + suffix)
    (run,) = [review for review in call("GET", "/api/reviews")["data"] if review["state"] == "saved"]
    screenshot(wide, f"/admin/reviews/reviewrun/{run['id']}/change/", "admin-review" + suffix)
    if scheme == "dark":
        screenshot(wide, f"/c/{run['session_id']}/", "chat-dark")
    else:
        phone = signed_in(browser, scheme, PHONE)
        screenshot(phone, f"/c/{run['session_id']}/", "chat-phone")
        screenshot(phone, "/memories/", "memories-phone")
        screenshot(phone, "/reviews/", "reviews-phone")
        phone.context.close()
    wide.context.close()


def screenshot(page: Page, path: str, name: str) -> None:
    page.goto(ADDRESS + path)
    page.wait_for_timeout(700)
    page.screenshot(path=IMAGES / f"{name}.png")


def signed_in(browser: Browser, scheme: str, size: dict[str, int]) -> Page:
    context = browser.new_context(viewport=size, color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
    page = context.new_page()
    page.goto(f"{ADDRESS}/login/")
    page.fill("[name=username]", "admin")
    page.fill("[name=password]", PASSWORD)
    page.click("button[type=submit]")
    page.wait_for_selector("#message")
    return page


def call(method: str, path: str, body: Any = None) -> dict[str, Any]:
    """Send a request to the native API."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    request = urllib.request.Request(ADDRESS + path, method=method, data=data, headers=headers)  # noqa: S310 - our own
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
        return dict(json.load(answer))


@contextmanager
def running() -> Iterator[Daybook]:
    """Run a fresh Daybook, and stop it at the end."""
    with tempfile.TemporaryDirectory(prefix="daybook-pictures-") as folder, serving_upstream() as upstream:
        home, agents = Path(folder, "home"), Path(folder, "agents.yaml")
        agents.write_text(story.AGENTS)
        settings.configure(STATIC_ROOT=str(Path(folder, "static")))  # the only setting that tests.e2e.running uses
        environment = {
            "DAYBOOK_PORT": str(PORT),
            "DAYBOOK_ADMIN_PASSWORD": PASSWORD,
            "DAYBOOK_API_KEY": KEY,
            "DAYBOOK_AGENTS": str(agents),
            "DAYBOOK_MODEL": "main-model",
            "OPENAI_BASE_URL": upstream.url,
        }
        with running_daybook(home, environment):
            yield Daybook(upstream, home, environment)


if __name__ == "__main__":
    main()
