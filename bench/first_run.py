"""Measure the way of a new user from nothing to the first memory, with a fresh home, the demo model and a real browser.

    python bench/first_run.py [--make "make up"] [--most 10]

Starts Daybook with --make, reads address, name and password from its output, signs in, and writes messages until the
page shows that a memory was saved without a request to remember something. A step is one user action: the command, the
address, a field, a button, a message. Prints the time of each step and, as its last line, one JSON object. The time
includes what `make up` installs if there is no .venv yet. Needs Chromium and the contributor's tools."""

import argparse
import json
import os
import queue
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Page, expect, sync_playwright

REPO = Path(__file__).resolve().parent.parent
MESSAGES = (
    "I prefer short answers with the command first.",
    "I live in Ghent and I work as a nurse.",
    "What could I cook tonight?",
    "Thank you.",
)
"""Messages of a user who does not know what Daybook is for; the last one is repeated."""
TURNS_COMPLETED_JS = "count => document.querySelectorAll('.turn[data-state=completed]').length >= count"
START_TIMEOUT_SECONDS = 300.0
"""Includes the installation."""
REVIEW_TIMEOUT_MS = 20_000
"""How long to wait for a review before writing the next message."""
_OUTPUT_PATTERNS = {
    "name": re.compile(r"^Created the first administrator: (.+)$"),
    "password": re.compile(r"^  password: (.+)$"),
    "address": re.compile(r"^Daybook is ready at (http\S+)$"),
}


@dataclass(slots=True)
class Steps:
    """The user's steps so far, with their times in seconds."""

    began: float = field(default_factory=time.monotonic)
    done: list[tuple[str, float]] = field(default_factory=list)

    def add(self, step: str) -> None:
        """Record a step that has just been done."""
        self.done.append((step, self.seconds()))
        print(f"{self.seconds():7.1f} s  {step}", flush=True)

    def seconds(self) -> float:
        """Return the seconds since the start."""
        return time.monotonic() - self.began


def read_credentials(lines: Iterator[str]) -> dict[str, str]:
    """Read name, password and address from Daybook's output; the address is printed last."""
    found: dict[str, str] = {}
    for line in lines:
        for name, pattern in _OUTPUT_PATTERNS.items():
            if match := pattern.match(line.rstrip("\n")):
                found[name] = match[1]
        if "address" in found:
            return found
    raise SystemExit("Daybook ended before it was ready.")


@contextmanager
def running_daybook(command: str) -> Iterator[dict[str, str]]:
    """Start Daybook in a temporary home; yield the credentials from its output."""
    prefixes = ("DAYBOOK_", "OPENAI_", "REDIS_", "DATABASE_")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(prefixes)}
    with tempfile.TemporaryDirectory(prefix="daybook-first-run-") as home:
        environment = clean | {"DAYBOOK_HOME": home, "DAYBOOK_PORT": "0"}
        process = subprocess.Popen(
            shlex.split(command), cwd=REPO, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        try:
            yield read_credentials(_lines(process))
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(60)


def _lines(process: "subprocess.Popen[str]") -> Iterator[str]:
    """Yield the process's output until the timeout; go on reading it, so that the process never blocks on a full
    pipe."""
    lines: queue.Queue[str | None] = queue.Queue()

    def read() -> None:
        for line in process.stdout or ():
            lines.put(line)
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    deadline = time.monotonic() + START_TIMEOUT_SECONDS
    while (line := lines.get(timeout=max(0.1, deadline - time.monotonic()))) is not None:
        yield line


def sign_in(page: Page, credentials: dict[str, str], steps: Steps) -> None:
    page.goto(credentials["address"])
    steps.add("open the address")
    page.fill("[name=username]", credentials["name"])
    steps.add("type the name")
    page.fill("[name=password]", credentials["password"])
    steps.add("type the password")
    page.click("button[type=submit]")
    page.wait_for_selector("#message")
    page.wait_for_load_state("load")  # the form needs its scripts
    steps.add("press Sign in")


def talk(page: Page, max_messages: int, steps: Steps) -> int:
    """Write messages until a notice says that a memory was saved; return how many. Wait for a review only after a
    message that may have started one."""
    saved = page.locator("[data-change-set]").filter(has_text=re.compile("sav|add|remember", re.IGNORECASE))
    for number in range(1, max_messages + 1):
        page.fill("#message", MESSAGES[min(number, len(MESSAGES)) - 1])
        page.keyboard.press("Enter")
        steps.add(f"write message {number}")
        page.wait_for_function(TURNS_COMPLETED_JS, arg=number)
        if page.locator("#reviewing").is_visible() or number >= len(MESSAGES) - 1:
            try:
                expect(saved.first).to_be_visible(timeout=REVIEW_TIMEOUT_MS)
            except AssertionError:
                continue
            return number
        if saved.count():
            return number
    raise SystemExit(f"Nothing was saved after {max_messages} messages.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--make", default="make up", help="the command that starts Daybook")
    parser.add_argument("--most", type=int, default=10, help="give up after so many messages")
    given = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    steps = Steps()
    with running_daybook(given.make) as credentials, sync_playwright() as playwright:
        steps.add(given.make)
        ready = steps.seconds()
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        sign_in(page, credentials, steps)
        messages = talk(page, given.most, steps)
        seconds = steps.seconds()
        print(f"{seconds:7.1f} s  a memory is saved")
        page.goto(credentials["address"].rstrip("/") + "/memories/")
        memories = page.locator("[data-rows] > li").count()
        browser.close()
    if not memories:
        raise SystemExit("The memories page shows none.")
    figures = {"messages": messages, "steps": len(steps.done), "seconds": round(seconds, 1)}
    print(json.dumps({**figures, "ready_seconds": round(ready, 1), "memories": memories}))


if __name__ == "__main__":
    main()
