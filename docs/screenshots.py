"""Makes the pictures of README.md and docs/tour.md: a fresh Daybook with the demo model, driven by a real Chromium.

    .venv/bin/python docs/screenshots.py

Writes docs/images/*.png. Needs the contributor's tools (`make install-dev`) and Chromium."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

REPO = Path(__file__).resolve().parent.parent
IMAGES = REPO / "docs" / "images"
PORT = 8731
PASSWORD = "only for pictures"  # noqa: S105 - of a server that lives for a minute
ADDRESS = f"http://127.0.0.1:{PORT}"
SAID = (
    "Hello! What can you help me with?",
    "I'm vegetarian and I prefer short answers.",
    "What should I cook tonight?",
)
WIDE, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with running(), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        talk(browser)
        for scheme in ("light", "dark"):
            pictures(browser, scheme)
        browser.close()


def talk(browser: Browser) -> None:
    """The first conversation: its pictures, and what the other pages show."""
    page = signed_in(browser, "light", WIDE)
    page.screenshot(path=IMAGES / "chat-empty.png")
    for text in SAID:
        page.fill("#message", text)
        page.keyboard.press("Enter")
        page.wait_for_selector("article[aria-busy=true]")
        page.wait_for_selector("article[aria-busy=true]", state="detached")
    page.wait_for_selector(".toast")
    page.wait_for_timeout(600)
    page.screenshot(path=IMAGES / "chat.png")
    page.fill("#message", "What do you know about me?")
    page.keyboard.press("Enter")
    page.wait_for_selector("details.note")
    page.context.close()


def pictures(browser: Browser, scheme: str) -> None:
    """Every page, wide and on a phone."""
    ending = "" if scheme == "light" else "-dark"
    wide = signed_in(browser, scheme, WIDE)
    for path, name in {"/memories/": "memories", "/reviews/": "reviews", "/account/": "account"}.items():
        picture(wide, path, name + ending)
    picture(wide, "/admin/memories/memory/", "admin-memories" + ending)
    picture(wide, "/admin/", "admin" + ending)
    if scheme == "dark":
        picture(wide, "/", "chat-dark")
    else:
        phone = signed_in(browser, scheme, PHONE)
        picture(phone, "/", "chat-phone")
        picture(phone, "/memories/", "memories-phone")
        phone.context.close()
    wide.context.close()


def picture(page: Page, path: str, name: str) -> None:
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


@contextmanager
def running() -> Iterator[None]:
    """A fresh Daybook on this machine, stopped at the end."""
    with tempfile.TemporaryDirectory(prefix="daybook-pictures-") as home:
        env = os.environ | {"DAYBOOK_HOME": home, "DAYBOOK_ADMIN_PASSWORD": PASSWORD, "DAYBOOK_PORT": str(PORT)}
        command = [sys.executable, str(REPO / "manage.py"), "up"]
        process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL)  # noqa: S603 - our own command
        try:
            wait_until_ready()
            yield
        finally:
            process.terminate()
            process.wait(30)


def wait_until_ready() -> None:
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"{ADDRESS}/readyz", timeout=2):  # noqa: S310 - our own address
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.3)  # noqa: TID251 - a script, not a test
    raise SystemExit("Daybook did not start.")


if __name__ == "__main__":
    main()
