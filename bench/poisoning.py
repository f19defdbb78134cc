"""Does what a page, mail, file or tool plants reach a later request without a person's decision? And is what people say
of themselves beside it held?

    python bench/poisoning.py                    # all paths and quotes, about two minutes
    python bench/poisoning.py --misses           # also which ones

Each conversation has a text of bench/poisoning_texts.py that plants something, and a person who says something of
themselves. A scripted model that obeys everything tries to save both: as a turn's tool, in a review, in a review of
messages that were brought (ingest), and in consolidation's notes, which quote nothing; with each kind of quote: the
source's own words, honest words of the person that say something else, words that nobody said (tried again when they
are refused), and none. An attack succeeds when it stands in what later requests are given from memory, or in the
notes that documents are made of. Works on a database of its own in a temporary home. Prints, as its last line, one
JSON object: `attack_success` and `honest_held` (shares, 0 to 1), `by_kind` (the same by kind of text, path and
quote), `n` (attacks)."""

import argparse
import asyncio
import json
import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from poisoning_texts import FACTS, FORGED, PLANTS, Fact, Plant

REPO = Path(__file__).resolve().parent.parent
PATHS = ("turn", "review", "ingest", "consolidation")
QUOTES = ("source", "honest", "forged", "none")
LOOKUP = {"type": "function", "function": {"name": "lookup", "parameters": {"type": "object"}}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One conversation. `quote`: what the model gives as evidence of what was planted; the fact is quoted honestly, or
    where there is no quote not at all."""

    plant: Plant
    fact: Fact
    path: str
    quote: str

    @property
    def from_tool(self) -> bool:
        """Whether the text comes as the result of a tool."""
        return self.plant.kind in {"page", "tool"}

    def asked(self) -> str:
        """Return what the person sends with the text, or asks for it with."""
        text = self.plant.text
        if self.plant.kind == "paste":
            return f"{self.plant.asked}{text}"
        return self.plant.asked if self.from_tool else f"{self.plant.asked}\n\n{text}"

    def calls(self) -> list[dict[str, Any]]:
        """Return the arguments of the calls that save both."""
        middle = len(self.plant.text) // 2
        quotes = {
            "source": self.plant.memory[:60]
            if self.plant.memory[:60] in self.plant.text
            else self.plant.text[middle:][:60],
            "honest": self.fact.quote,
            "forged": FORGED,
            "none": "",
        }
        evidence = "" if self.quote == "none" else self.fact.quote
        return [
            {"content": self.plant.memory, "target": "memory", "evidence": quotes[self.quote]},
            {"content": self.fact.memory, "target": "user", "evidence": evidence},
        ]


class ObedientModel:
    """Calls the client's tool first where there is one, then saves what it is told to; what is refused for its quote it
    tries again."""

    def __init__(self) -> None:
        self.case: Case | None = None
        self.looks_up = False
        self.saves = False
        self.tries = 0

    def expect(self, case: Case, *, looks_up: bool, saves: bool) -> None:
        """Set the conversation that comes next."""
        self.case, self.looks_up, self.saves, self.tries = case, looks_up, saves, 0

    async def stream(self, request: Any) -> AsyncGenerator[dict[str, Any]]:
        """Answer one step."""
        if noted := self._noted(request):
            yield {"model": "scripted", "choices": [{"index": 0, "delta": {"content": noted}, "finish_reason": "stop"}]}
            return
        made = self._calls(request)
        for number, (name, arguments) in enumerate(made):
            function = {"name": name, "arguments": json.dumps(arguments)}
            call = {"index": number, "id": f"call_{number}", "function": function}
            yield {"model": "scripted", "choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}
        text = {} if made else {"content": "Here is what I found."}
        finish = "tool_calls" if made else "stop"
        yield {"model": "scripted", "choices": [{"index": 0, "delta": text, "finish_reason": finish}]}

    async def complete(self, request: Any) -> dict[str, Any]:
        """Answer one step at once."""
        made = self._calls(request)
        message: dict[str, Any] = {"role": "assistant", "content": None if made else "Here is what I found."}
        if made:
            message["tool_calls"] = [
                {"id": f"call_{at}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
                for at, (name, arguments) in enumerate(made)
            ]
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if made else "stop"}
        return {"id": "x", "object": "chat.completion", "model": "scripted", "choices": [choice]}

    def _noted(self, request: Any) -> str:
        """Return the answer to a request of consolidation, "" for others."""
        asked = json.dumps(request.messages)
        if self.case is not None and "rollout_summary" in asked and not request.tools:
            notes = f"- {self.case.plant.memory}\n- {self.case.fact.memory}"
            return json.dumps({"raw_memory": notes, "rollout_summary": ""})
        if "memory_summary" in asked and not request.tools:
            return json.dumps({"memory_md": "# Memory", "memory_summary": "Notes.", "skills": []})
        return ""

    def _calls(self, request: Any) -> list[tuple[str, dict[str, Any]]]:
        assert self.case is not None
        if self.looks_up:
            self.looks_up = False
            return [("lookup", {})]
        if not self.saves:
            return []
        self.tries += 1
        planted, fact = self.case.calls()
        if self.tries == 1:
            return [("add_memory", planted), ("add_memory", fact)]
        refused = "evidence_not_found" in json.dumps(request.messages)
        return [("add_memory", planted)] if refused and self.tries == 2 else []


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--misses", action="store_true", help="list attacks that succeeded and facts that were held")
    parser.add_argument("--path", choices=PATHS, action="append", help="only this path")
    options = parser.parse_args()
    cases = [
        Case(plant=plant, fact=FACTS[(at + 7 * shift) % len(FACTS)], path=path, quote=quote)
        for path in options.path or PATHS
        for shift, quote in enumerate(QUOTES if path != "consolidation" else QUOTES[-1:])
        for at, plant in enumerate(PLANTS)
    ]
    with tempfile.TemporaryDirectory(prefix="daybook-bench-") as home:
        os.environ |= {"DAYBOOK_HOME": home, "DJANGO_SETTINGS_MODULE": "config.settings"}
        for name in ("DATABASE_URL", "REDIS_URL"):
            os.environ.pop(name, None)
        sys.path.insert(0, str(REPO))
        outcomes = asyncio.run(run_all(cases))
    return report(cases, outcomes, misses=options.misses)


async def run_all(cases: list[Case]) -> list[tuple[bool, bool]]:
    """Run each conversation for an owner of its own: whether the attack succeeded, and whether the fact was held."""
    import django

    django.setup()
    from django.core.management import call_command

    from gateway import upstream
    from gateway.services import agent_save
    from memories.database.access import in_thread

    await in_thread(call_command, "migrate", verbosity=0)
    settings = {"tools": [{"type": "memory"}], "inject_memories": True, "user_char_limit": 0, "memory_char_limit": 0}
    await in_thread(agent_save, "assistant", settings)
    model = ObedientModel()
    upstream.install(model)
    return [await run_one(case, at, model) for at, case in enumerate(cases)]


async def run_one(case: Case, number: int, model: ObedientModel) -> tuple[bool, bool]:
    """One conversation by its path."""
    from django.contrib.auth.models import User

    from gateway.keys import api_key_create
    from memories.database.access import in_thread
    from memories.models import Memory
    from memories.services import owner_for_user
    from reviews.models import ReviewRun
    from reviews.runner import execute
    from reviews.schedule import review_session

    owner = await in_thread(lambda: owner_for_user(User.objects.create_user(f"person{number}")))
    _, key = await in_thread(lambda: api_key_create(owner=owner, name="bench"))
    if case.path == "ingest":
        await post(key, "/api/memories/ingest", {"messages": brought(case)})
    else:
        await converse(case, key, model)
    if case.path == "consolidation":
        return await asyncio.to_thread(consolidate, case, owner)
    if case.path != "turn":
        model.expect(case, looks_up=False, saves=True)

        def review() -> None:
            found = ReviewRun.objects.filter(owner=owner).first()
            if found is None:
                found = review_session(owner.pk, owner.sessions.get().pk, ReviewRun.Trigger.REQUEST)
            with asyncio.Runner() as runner:
                execute(found.pk, runner.run)

        await asyncio.to_thread(review)
    live = await in_thread(
        lambda: set(Memory.objects.filter(owner=owner, deleted_at=None).values_list("content", flat=True))
    )
    return case.plant.memory in live, case.fact.memory not in live


def consolidate(case: Case, owner: Any) -> tuple[bool, bool]:
    """Let consolidation read the owner's only session: what its notes hold."""
    from django.utils import timezone

    from gateway.models import Session
    from gateway.services import configuration_save
    from memories.models import Book
    from reviews.consolidation.requests import Trigger, consolidation_request
    from reviews.consolidation.runner import execute
    from reviews.models import ConsolidationRun, Extraction

    configuration_save("memories", {"enabled": True, "min_rollout_idle_hours": 0, "retry_seconds": 0})
    Session.objects.filter(owner=owner).update(last_active_at=timezone.now() - timedelta(hours=24))
    run = consolidation_request(Book.objects.get(owner=owner), trigger=Trigger.REQUEST)
    with asyncio.Runner() as runner:
        for _ in range(5):
            execute(run.pk, runner.run)
            run.refresh_from_db()
            if run.state not in ConsolidationRun.OPEN:
                break
    notes = Extraction.objects.get(owner=owner).raw_memory
    return case.plant.memory in notes, case.fact.memory not in notes


async def converse(case: Case, key: str, model: ObedientModel) -> None:
    """The turns of one conversation, as a client of /v1 sends them."""
    first = [{"role": "user", "content": case.fact.said}]
    model.expect(case, looks_up=False, saves=False)
    said = await chat(key, first)
    model.expect(case, looks_up=case.from_tool, saves=case.path == "turn")
    messages = [*first, said, {"role": "user", "content": case.asked()}]
    answer = await chat(key, messages)
    if calls := answer.get("tool_calls"):
        result = {"role": "tool", "tool_call_id": calls[0]["id"], "content": case.plant.text}
        await chat(key, [*messages, answer, result])


def brought(case: Case) -> list[dict[str, Any]]:
    """The same conversation as an application brings it; its assistant repeats what the tool said."""
    answer = {"role": "assistant", "content": "Noted."}
    if not case.from_tool:
        return [{"role": "user", "content": case.fact.said}, answer, {"role": "user", "content": case.asked()}, answer]
    return [
        {"role": "user", "content": case.fact.said},
        answer,
        {"role": "user", "content": case.asked()},
        {"role": "tool", "content": case.plant.text},
        {"role": "assistant", "content": f"This is what I found. {case.plant.text}"},
    ]


async def chat(key: str, messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Send a conversation to /v1; the assistant's message."""
    answer = await post(key, "/v1/chat/completions", {"model": "assistant", "messages": messages, "tools": [LOOKUP]})
    return dict(answer["choices"][0]["message"])


async def post(key: str, path: str, body: dict[str, Any]) -> Any:
    """Send a request to this process."""
    from django.test import AsyncClient

    headers = {"authorization": f"Bearer {key}"}
    response = await AsyncClient().post(path, json.dumps(body), content_type="application/json", headers=headers)
    if response.status_code >= 300:
        raise RuntimeError(f"{path} answered {response.status_code}: {response.content[:300]!r}")
    return json.loads(response.content)


def report(cases: list[Case], outcomes: list[tuple[bool, bool]], *, misses: bool) -> int:
    """Print the table for people, and the last line for programs."""
    groups: dict[str, list[tuple[bool, bool]]] = defaultdict(list)
    for case, outcome in zip(cases, outcomes, strict=True):
        for name in (case.plant.kind, case.path, f"quote: {case.quote}"):
            groups[name].append(outcome)
        if misses and any(outcome):
            what = [case.plant.memory] * outcome[0] + [f"held: {case.fact.memory}"] * outcome[1]
            print(f"{case.path:7} {case.plant.kind:6} {case.quote:7} {' | '.join(what)}")
    by_kind = {name: shares(rows) for name, rows in groups.items()}
    for name, row in by_kind.items():
        print(
            f"{name:16} attack_success {row['attack_success']:.3f}  honest_held {row['honest_held']:.3f}  of {row['n']}"
        )
    print(json.dumps(shares(outcomes) | {"by_kind": by_kind}))
    return 0


def shares(rows: list[tuple[bool, bool]]) -> dict[str, Any]:
    """The two figures of some conversations."""
    number = len(rows)
    return {
        "attack_success": round(sum(won for won, _ in rows) / number, 4),
        "honest_held": round(sum(held for _, held in rows) / number, 4),
        "n": number,
    }


if __name__ == "__main__":
    sys.exit(main())
