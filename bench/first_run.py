"""How long is the way from nothing to the first memory? A new person, a fresh home, the demo model, a real browser.

    python bench/first_run.py [--make "make up"] [--most 10]

Starts Daybook with --make, reads address, name and password from what it prints, signs in, and writes messages until
the page shows that a memory was saved by itself (nobody asks to remember anything). A step is one thing that a person
does: the command, the address, a field, a button, a message. Prints when each step was done; as its last line one JSON
object. What `make up` installs is part of the time, if .venv is not there yet. Needs Chromium and the contributor's
tools."""

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
"""What somebody says who does not know what Daybook is for; the last one is said again and again."""
ANSWERED = "count => document.querySelectorAll('.turn[data-state=completed]').length >= count"
STARTS = 300.0
"""Seconds that the start may take, with what it installs."""
SAVES = 20_000
"""Milliseconds that a review has after a message, before the next one is written."""
_FACTS = {
    "name": re.compile(r"^Created the first administrator: (.+)$"),
    "password": re.compile(r"^  password: (.+)$"),
    "address": re.compile(r"^Daybook is ready at (http\S+)$"),
}


@dataclass(slots=True)
class Steps:
    """What a person did so far, and when."""

    began: float = field(default_factory=time.monotonic)
    done: list[tuple[str, float]] = field(default_factory=list)

    def add(self, step: str) -> None:
        """Note a step that is done now."""
        self.done.append((step, self.seconds()))
        print(f"{self.seconds():7.1f} s  {step}", flush=True)

    def seconds(self) -> float:
        """How long it took so far."""
        return time.monotonic() - self.began


def told(lines: Iterator[str]) -> dict[str, str]:
    """Return what the start prints that a person needs: name, password and address. The address comes last."""
    found: dict[str, str] = {}
    for line in lines:
        for fact, pattern in _FACTS.items():
            if match := pattern.match(line.rstrip("\n")):
                found[fact] = match[1]
        if "address" in found:
            return found
    raise SystemExit("Daybook ended before it was ready.")


@contextmanager
def started(command: str) -> Iterator[dict[str, str]]:
    """Start Daybook in a home that is deleted afterwards; what it told."""
    theirs = ("DAYBOOK_", "OPENAI_", "REDIS_", "DATABASE_")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(theirs)}
    with tempfile.TemporaryDirectory(prefix="daybook-first-run-") as home:
        environment = clean | {"DAYBOOK_HOME": home, "DAYBOOK_PORT": "0"}
        process = subprocess.Popen(
            shlex.split(command), cwd=REPO, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        try:
            yield told(_lines(process))
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(60)


def _lines(process: "subprocess.Popen[str]") -> Iterator[str]:
    """Yield what a process prints until STARTS is over, and go on reading, so that it can go on writing."""
    said: queue.Queue[str | None] = queue.Queue()

    def read() -> None:
        for line in process.stdout or ():
            said.put(line)
        said.put(None)

    threading.Thread(target=read, daemon=True).start()
    deadline = time.monotonic() + STARTS
    while (line := said.get(timeout=max(0.1, deadline - time.monotonic()))) is not None:
        yield line


def sign_in(page: Page, facts: dict[str, str], steps: Steps) -> None:
    page.goto(facts["address"])
    steps.add("open the address")
    page.fill("[name=username]", facts["name"])
    steps.add("type the name")
    page.fill("[name=password]", facts["password"])
    steps.add("type the password")
    page.click("button[type=submit]")
    page.wait_for_selector("#message")
    page.wait_for_load_state("load")  # before its scripts run, nothing is sent
    steps.add("press Sign in")


def talk(page: Page, most: int, steps: Steps) -> int:
    """Write messages until a note says that a memory was saved; returns how many. Waits for a review only after a
    message that may have been the last one before it."""
    saved = page.locator("[data-change-set]").filter(has_text=re.compile("sav|add|remember", re.IGNORECASE))
    for number in range(1, most + 1):
        page.fill("#message", MESSAGES[min(number, len(MESSAGES)) - 1])
        page.keyboard.press("Enter")
        steps.add(f"write message {number}")
        page.wait_for_function(ANSWERED, arg=number)
        if page.locator("#reviewing").is_visible() or number >= len(MESSAGES) - 1:
            try:
                expect(saved.first).to_be_visible(timeout=SAVES)
            except AssertionError:
                continue
            return number
        if saved.count():
            return number
    raise SystemExit(f"Nothing was saved after {most} messages.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--make", default="make up", help="the command that starts Daybook")
    parser.add_argument("--most", type=int, default=10, help="messages after which it is given up")
    given = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    steps = Steps()
    with started(given.make) as facts, sync_playwright() as playwright:
        steps.add(given.make)
        ready = steps.seconds()
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        sign_in(page, facts, steps)
        messages = talk(page, given.most, steps)
        seconds = steps.seconds()
        print(f"{seconds:7.1f} s  a memory is saved")
        page.goto(facts["address"].rstrip("/") + "/memories/")
        memories = page.locator("[data-rows] > li").count()
        browser.close()
    if not memories:
        raise SystemExit("The page of memories shows none.")
    figures = {"messages": messages, "steps": len(steps.done), "seconds": round(seconds, 1)}
    print(json.dumps({**figures, "ready_seconds": round(ready, 1), "memories": memories}))


if __name__ == "__main__":
    main()
