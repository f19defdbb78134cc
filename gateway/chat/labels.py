"""Words on the chat's pages that depend on a value: errors, days, and why a memory was given. They are kept together so
that the page, its fragments and the script use the same words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any

from gateway.agents.settings import AgentSettings
from gateway.upstream.faults import (
    BROKE_OFF,
    CERTIFICATE,
    KEY_REFUSED,
    NO_CREDIT_LEFT,
    NO_SUCH_ADDRESS,
    NO_TLS,
    NOT_REACHED,
    UNKNOWN_MODEL,
)


@dataclass(frozen=True, slots=True)
class ErrorWords:
    """An error in words: what happened, and what was kept or should be done."""

    code: str
    headline: str
    rest: str


_UNFOLDED_LINES, _UNFOLDED_CHARACTERS = 30, 3_000
_KEPT = "Your message is kept."
_WROTE = f"{_KEPT} Memory was changed already: see below."
_PRECISE = frozenset({"upstream_error", "upstream_timeout", "rate_limited", "overloaded"})
_LATER = " Try again later."
_OPERATOR = "An administrator has to"
# What to do, by words in the sentence of a model server's error.
_TO_DO: Mapping[str, str] = {
    KEY_REFUSED: f"{_OPERATOR} set a valid key for this model server.",
    UNKNOWN_MODEL: f"{_OPERATOR} name another model in the agent's settings.",
    NO_SUCH_ADDRESS: f"{_OPERATOR} correct its address: most end with /v1.",
    NO_CREDIT_LEFT: f"{_OPERATOR} add credit there, or name another model server.",
    CERTIFICATE: f"{_OPERATOR} renew it, or make this machine trust it (`SSL_CERT_FILE`).",
    NO_TLS: f"{_OPERATOR} correct its address.",
    NOT_REACHED: "Try again; if it stays so, it is not running, or its address is wrong.",
    BROKE_OFF: "Try again.",
    "took too long": "Try again, or ask for less at once.",
    "(5": "The fault is on its side. Try again in a while.",
}
_RESTARTED = "Interrupted: Daybook was restarted while this was being answered."
INTERRUPTED = frozenset({"restart", "process", "taken_over"})
_EMPTY = "The model gave an empty answer. Ask again, or put it in other words."
_ENDED: Mapping[str, str] = {
    "length": "The answer ends here because the model reached its limit of tokens. Ask it to go on.",
    "content_filter": "The model server's filter ended this answer.",
}
_STOPPED: Mapping[str, str] = dict.fromkeys(INTERRUPTED, _RESTARTED) | {
    "process": "Interrupted: the process that was answering went away.",
    "client": "Stopped: the client disconnected.",
    "unwatched": "Stopped: nobody was watching.",
    "access": "Stopped: the key was revoked, or the account switched off.",
}
_FAULT_WORDS: Mapping[str, str] = {
    "rate": "was asked too much",
    "overload": "was overloaded",
    "network": "broke off",
    "connect": "could not be reached",
    "certificate": "has no certificate that is accepted",
    "silence": "did not answer in time",
    "locked": "refused the gateway",
    "unknown": "could not be used",
    "context": "can't read that much",
    "queue": "had too many requests",
    "tools": "takes no tools",
    "open": "is skipped after repeated failures",
}
ERROR_WORDS: Mapping[str, ErrorWords] = {
    code: ErrorWords(code, headline, rest)
    for code, headline, rest in (
        ("upstream_timeout", "The model server took too long to answer.", f"{_KEPT} Nothing was saved to memory."),
        ("upstream_error", "The model server answered with an error.", _KEPT),
        ("internal_error", "Something went wrong in the gateway.", _KEPT),
        ("overloaded", "Too much at once.", _KEPT),
        ("rate_limited", "Too much at once.", _KEPT),
        ("too_large", "This message is longer than the agent can read.", "Shorten it or send it in parts."),
        ("not_found", "There is nothing here.", "It may have been deleted."),
        ("model_not_found", "This agent no longer exists.", "Choose another one."),
        ("conflict", "This session is busy or was ended.", "Wait for its answer, or start a new session."),
        ("unauthorized", "You are signed out.", "Sign in again; your message is kept in this browser."),
        ("forbidden", "You may not do this.", "Ask an administrator."),
        (
            "blocked_by_scan",
            "Not saved.",
            "The scan found something that does not belong in a memory. Change the text and save again.",
        ),
        ("over_budget", "No room.", "Edit or delete a memory first."),
        ("connection", "The connection broke off.", "Your message is kept. Try again when you are connected."),
        ("error", "The answer could not be finished.", _KEPT),
    )
}


def error_words(error: Mapping[str, Any] | None, *, wrote: bool = False) -> ErrorWords:
    """Return the words for an error `{code, message}`, which may be nested below `error`. If the code says little, the
    headline is the error's own sentence, since people need to know which fault the model server had. `wrote`: memory
    was changed before the error, and the page shows how."""
    inner = (error or {}).get("error", error) or {}
    if not isinstance(inner, Mapping):
        inner = {}
    code, said = str(inner.get("code", "error")), str(inner.get("message") or "")
    words = ERROR_WORDS.get(code, ERROR_WORDS["error"])
    if wrote:
        words = replace(words, rest=_WROTE)
    if not said or (code in ERROR_WORDS and code not in _PRECISE):
        return ErrorWords(code, words.headline, words.rest)
    said = said.removesuffix(_LATER)  # the page has a button for it and counts down the seconds
    rest = "" if _KEPT in said and not wrote else words.rest
    to_do = next((advice for part, advice in _TO_DO.items() if part in said), "")
    return ErrorWords(code, said, f"{rest} {to_do}".strip())


def stopped_words(by: str, *, by_person: str = "Stopped by you.") -> str:
    """Return why an answer ended early, from its run's trace."""
    return _STOPPED.get(by, by_person)


def ended_words(answer: str, finish_reason: str) -> str:
    """Return what is unusual about the end of a complete answer; "" if nothing is."""
    return _ENDED.get(finish_reason, "" if answer.strip() else _EMPTY)


def thought_words(milliseconds: int | None) -> str:
    """Return how long a model thought: "Thought for 8 s"; without a time if it is unknown."""
    if milliseconds is None:
        return "Thought"
    seconds = max(1, round(milliseconds / 1000))
    minutes, rest = divmod(seconds, 60)
    return f"Thought for {minutes} min {rest} s" if minutes else f"Thought for {seconds} s"


def answered_words(attempts: Sequence[Mapping[str, Any]]) -> str:
    """Return which model answered in place of another, from a run's trace: "Answered by b; a was overloaded." Return ""
    if the first model answered after all, or none did."""
    answers = [entry for entry in attempts if not entry["fault"]]
    if not answers:
        return ""
    by = answers[-1]
    failed = {(entry["upstream"], entry["model"]): entry for entry in attempts if entry["fault"]}
    failed.pop((by["upstream"], by["model"]), None)
    if not failed:
        return ""
    same = any(entry["model"] == by["model"] for entry in failed.values())
    name = "upstream" if same else "model"
    what = ", ".join(f"{entry[name]} {_FAULT_WORDS.get(entry['fault'], 'failed')}" for entry in failed.values())
    return f"Answered by {by[name]}; {what}."


def toolless_words(toolless: Mapping[str, Any] | None) -> str:
    """Return that a model takes no tools, from a run's trace; "" if it took those that it was offered."""
    if not toolless:
        return ""
    name = toolless.get("model") or "The default model"
    return f"{name} takes no tools, so it could not look up or change memories."


def fault_words(fault: str) -> str:
    """Return what was wrong with a model server, as the end of a sentence; "answered" if nothing was."""
    return _FAULT_WORDS.get(fault, "failed") if fault else "answered"


def day_words(day: date, today: date) -> str:
    """Return `Friday 20 November`, with the year if it is not the current one."""
    year = "" if day.year == today.year else f" {day.year}"
    return f"{day:%A} {day.day} {day:%B}{year}"


def near_day_words(day: date, today: date) -> str:
    """Return `Today`, `Yesterday`, or else the same as day_words."""
    return {0: "Today", 1: "Yesterday"}.get((today - day).days) or day_words(day, today)


def period_words(day: date, today: date) -> str:
    """Return `Today`, `Yesterday`, `Last 7 days`, or else the month, with the year if it is not the current one."""
    if (today - day).days < 2:
        return near_day_words(day, today)
    if (today - day).days < 7:
        return "Last 7 days"
    return f"{day:%B}" if day.year == today.year else f"{day:%B %Y}"


def review_words(settings: AgentSettings) -> str:
    """Return a sentence about when a conversation with this agent is reviewed; "" if it never is."""
    if every := settings.memory_review_interval:
        when = "After every message" if every == 1 else f"After every {every} messages"
    elif settings.memory_review_idle_minutes:
        when = "When you have paused for a while"
    else:
        return ""
    return f"{when} a review reads the conversation and saves what is worth keeping."


def margin_day(now: datetime) -> str:
    """Return `Fri 20 Nov`, for the margin."""
    return f"{now:%a} {now.day} {now:%b}"


def why_given(item: Mapping[str, Any], *, usage_count: int = 0, words: bool = True) -> str:
    """Return why an answer was given an item of its run's `recalled`. Reasons of the search quote the question, so a
    reader who may not see words gets ""."""
    lane = str(item.get("lane", ""))
    if not words and lane != "frozen":
        return ""
    return why_words(lane=lane, why=str(item.get("why") or ""), usage_count=usage_count)


def why_words(*, lane: str, why: str, usage_count: int) -> str:
    """Return why an answer was given a memory, as sentences. `why` is recall's own reason, if there is one."""
    general = "Part of what every answer is given." if lane == "frozen" else "Similar meaning."
    reason = why.strip() or general
    often = "twice" if usage_count == 2 else f"{usage_count} times"
    times = f" Recalled {often}." if lane == "long_term" and usage_count > 1 else ""
    return f"{reason[0].upper()}{reason[1:].rstrip('.')}.{times}"


def folded_size(text: str) -> str:
    """Return the size of a person's message that the page shows folded, as "50 kB" or "31 lines"; "" for a shorter one.
    static/gateway/fold.js has the same rule."""
    lines = text.count("\n") + 1
    if lines <= _UNFOLDED_LINES and len(text) <= _UNFOLDED_CHARACTERS:
        return ""
    size = len(text.encode(errors="replace"))
    return f"{round(size / 1000)} kB" if size >= 1000 else f"{lines} lines"
