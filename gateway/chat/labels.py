"""Texts of the chat pages that depend on a value: errors, days, and why a memory was given. They are in one place so
that the page, its fragments and its script use the same words."""

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
    REDIRECTS,
    UNKNOWN_MODEL,
)
from memories.viewers import near_day_word


@dataclass(frozen=True, slots=True)
class ErrorWords:
    """The text for an error: what happened, and what was kept or should be done."""

    code: str
    headline: str
    rest: str


_UNFOLDED_LINES, _UNFOLDED_CHARACTERS = 30, 3_000
_KEPT = "Your message is kept."
_MEMORY_CHANGED = f"{_KEPT} Memory was changed already: see below."
_CODES_WITH_DETAIL = frozenset({"upstream_error", "upstream_timeout", "rate_limited", "overloaded"})
_TRY_LATER = " Try again later."
_ADMINISTRATOR = "An administrator has to"
# What to do, by a phrase in the message of a model server's error.
_ADVICE: Mapping[str, str] = {
    KEY_REFUSED: f"{_ADMINISTRATOR} set a valid key for this model server.",
    UNKNOWN_MODEL: f"{_ADMINISTRATOR} choose another model in the agent's settings.",
    NO_SUCH_ADDRESS: f"{_ADMINISTRATOR} correct its address: most end with /v1.",
    REDIRECTS: f"{_ADMINISTRATOR} enter the address that it redirects to.",
    NO_CREDIT_LEFT: f"{_ADMINISTRATOR} add credit there, or name another model server.",
    CERTIFICATE: f"{_ADMINISTRATOR} renew it, or make this machine trust it (`SSL_CERT_FILE`).",
    NO_TLS: f"{_ADMINISTRATOR} correct its address.",
    NOT_REACHED: "Try again. If this persists, it is not running, or its address is wrong.",
    BROKE_OFF: "Try again.",
    "took too long": "Try again, or ask for less at once.",
    "(5": "The fault is on its side. Try again in a while.",
}
_RESTARTED = "Interrupted: Daybook was restarted while this was being answered."
INTERRUPTED = frozenset({"restart", "process", "taken_over"})
_EMPTY_ANSWER = "The model gave an empty answer. Ask again, or rephrase your message."
_ENDED: Mapping[str, str] = {
    "length": "The answer ends here because the model reached its token limit. Ask it to continue.",
    "content_filter": "The model server's filter ended this answer.",
}
_STOPPED: Mapping[str, str] = dict.fromkeys(INTERRUPTED, _RESTARTED) | {
    "process": "Interrupted: the process that was answering went away.",
    "client": "Stopped: the client disconnected.",
    "unwatched": "Stopped: nobody was watching.",
    "access": "Stopped: the key was revoked, or the account deactivated.",
}
_FAULT_WORDS: Mapping[str, str] = {
    "rate": "received too many requests",
    "overload": "was overloaded",
    "network": "broke off",
    "connect": "could not be reached",
    "certificate": "has no trusted certificate",
    "silence": "did not answer in time",
    "locked": "refused access",
    "unknown": "could not be used",
    "context": "could not read that much",
    "queue": "had too many requests",
    "tools": "does not support tools",
    "media": "does not accept the attachment",
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
        ("not_found", "It was deleted meanwhile.", "Reload the page, or copy your message into a new session."),
        ("model_not_found", "This agent no longer exists.", "Choose another one."),
        ("conflict", "This session is busy or was ended.", "Wait for its answer, or start a new session."),
        ("unauthorized", "You are signed out.", "Sign in again; your message is kept in this browser."),
        ("forbidden", "You may not do this.", "Reload the page and try again. If that fails, ask an administrator."),
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


def error_words(error: Mapping[str, Any] | None, *, memory_changed: bool = False) -> ErrorWords:
    """Return the text for an error `{code, message}`, which may be nested in `error`. For codes that say little, the
    headline is the error's own message, since people need to know what the model server reported. `memory_changed`:
    memory was changed before the error, and the page shows how."""
    inner = (error or {}).get("error", error) or {}
    if not isinstance(inner, Mapping):
        inner = {}
    code, message = str(inner.get("code", "error")), str(inner.get("message") or "")
    words = ERROR_WORDS.get(code, ERROR_WORDS["error"])
    if memory_changed:
        words = replace(words, rest=_MEMORY_CHANGED)
    if not message or (code in ERROR_WORDS and code not in _CODES_WITH_DETAIL):
        return ErrorWords(code, words.headline, words.rest)
    message = message.removesuffix(_TRY_LATER)  # the page has a retry button with a countdown
    rest = "" if _KEPT in message and not memory_changed else words.rest
    advice = next((text for phrase, text in _ADVICE.items() if phrase in message), "")
    return ErrorWords(code, message, f"{rest} {advice}".strip())


def stopped_words(by: str, *, by_person: str = "Stopped by you.") -> str:
    """Return why an answer ended early. `by` is `stopped_by` of its run's trace."""
    return _STOPPED.get(by, by_person)


def ended_words(answer: str, finish_reason: str) -> str:
    """Return what is unusual about the end of a complete answer, or ""."""
    return _ENDED.get(finish_reason, "" if answer.strip() else _EMPTY_ANSWER)


def thought_words(milliseconds: int | None) -> str:
    """Return "Thought for 8 s", or "Thought" if the duration is unknown."""
    if milliseconds is None:
        return "Thought"
    seconds = max(1, round(milliseconds / 1000))
    minutes, rest = divmod(seconds, 60)
    return f"Thought for {minutes} min {rest} s" if minutes else f"Thought for {seconds} s"


def answered_words(attempts: Sequence[Mapping[str, Any]]) -> str:
    """Return which model answered in place of another, from the attempts in a run's trace: "Answered by b; a was
    overloaded." Return "" if the first model answered after all, or none did."""
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
    """Return a sentence if, according to a run's trace, the model accepts no tools; else ""."""
    if not toolless:
        return ""
    name = toolless.get("model") or "The default model"
    return f"{name} does not support tools, so it could not look up or change memories."


def fault_words(fault: str) -> str:
    """Return a predicate for the fault of a model server, such as "was overloaded"; "answered" if there was none."""
    return _FAULT_WORDS.get(fault, "failed") if fault else "answered"


def day_words(day: date, today: date) -> str:
    """Return `Friday 20 November`, with the year if it is not the current one."""
    year = "" if day.year == today.year else f" {day.year}"
    return f"{day:%A} {day.day} {day:%B}{year}"


def near_day_words(day: date, today: date) -> str:
    """Return `Today`, `Yesterday`, or else the result of day_words."""
    return near_day_word(day, today).capitalize() or day_words(day, today)


def period_words(day: date, today: date) -> str:
    """Return `Today`, `Yesterday`, `Last 7 days`, or else the month, with the year if it is not the current one."""
    if (today - day).days < 2:
        return near_day_words(day, today)
    if (today - day).days < 7:
        return "Last 7 days"
    return f"{day:%B}" if day.year == today.year else f"{day:%B %Y}"


def review_words(settings: AgentSettings) -> str:
    """Return a sentence that says when conversations with this agent are reviewed, or "" if they never are."""
    if every := settings.memory_review_interval:
        when = "After every message" if every == 1 else f"After every {every} messages"
    elif settings.memory_review_idle_minutes:
        when = "When you have paused for a while"
    else:
        return ""
    return f"{when} a review reads the conversation and saves what is worth keeping."


def margin_day(now: datetime) -> str:
    """Return `Fri 20 Nov`."""
    return f"{now:%a} {now.day} {now:%b}"


def why_given(item: Mapping[str, Any], *, usage_count: int = 0, words: bool = True) -> str:
    """Return why a run was given an item of its `recalled`, as sentences. The reasons of the search quote the question,
    so they are left out unless the reader may see `words`."""
    lane = str(item.get("lane", ""))
    if not words and lane != "frozen":
        return ""
    default = "Given with every message." if lane == "frozen" else "Similar meaning."
    reason = str(item.get("why") or "").strip() or default
    times = "twice" if usage_count == 2 else f"{usage_count} times"
    recalled = f" Recalled {times}." if lane == "long_term" and usage_count > 1 else ""
    return f"{reason[0].upper()}{reason[1:].rstrip('.')}.{recalled}"


def folded_size(text: str) -> str:
    """Return the size of a message that is long enough to be shown folded, as "50 kB" or "31 lines"; "" for a shorter
    one. static/gateway/fold.js has the same rule."""
    lines = text.count("\n") + 1
    if lines <= _UNFOLDED_LINES and len(text) <= _UNFOLDED_CHARACTERS:
        return ""
    size = len(text.encode(errors="replace"))
    return f"{round(size / 1000)} kB" if size >= 1000 else f"{lines} lines"
