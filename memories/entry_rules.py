"""Cleaning, validation and scanning of an entry before it is stored. Nothing here writes.
Called by memories.services for every write, and by reviews.staged, which imitates the real book for a review."""

import hashlib
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

from django.conf import settings

from memories.counters import count_refusal
from memories.errors import BlockedByScan, Conflict, InvalidRequest, TooLarge
from memories.evidence import Hold, WriteHeld, decide
from memories.limits import KEYWORD_LENGTH, KEYWORDS_GIVEN
from memories.models import Evidence, Memory, Target
from memories.storable import storable_text
from memories.verdicts import NO_METADATA, ScanVerdict, verdict_of, words_hash
from prompts.copies import is_prompt_copy
from scanning import is_blank
from search.normal_form import normalized

MAX_CATEGORY = 40
MAX_KEYWORDS = 12
MAX_KEYWORD = 40
SCANNED = ("content", "keywords", "metadata", "category")  # fields with text, as `verdict_of` takes them


def content_key(content: str) -> str:
    """Return a hash of the normalised content; case, width, spacing and closing punctuation do not matter."""
    folded = " ".join(normalized(content).casefold().split()).rstrip(".!。 ")
    return hashlib.sha256(folded.encode()).hexdigest()


def clean_content(content: str) -> str:
    """Return content in its stored form, trimmed and storable. Raises InvalidRequest, TooLarge."""
    content = storable_text(content).strip()
    if is_blank(content):
        raise InvalidRequest("A memory needs some words.", param="content")
    if len(content) > settings.MAX_ENTRY:
        raise TooLarge(
            f"A memory has at most {settings.MAX_ENTRY} characters; this one has {len(content)}. "
            "Shorten it or split it.",
            param="content",
            limit=settings.MAX_ENTRY,
        )
    return content


def said_already(memory_id: int | str) -> Conflict:
    """Return the refusal of a text that another memory of the book already has."""
    return Conflict(
        f"Memory {memory_id} already says this. Delete one of the two, or give this one another text.",
        memory_id=str(memory_id),
    )


def clean_category(category: str) -> str:
    """Return a category in its stored form, one short line. Raises InvalidRequest."""
    category = " ".join(storable_text(category).split())
    if is_blank(category) or len(category) > MAX_CATEGORY:
        raise InvalidRequest(f"A category has 1 to {MAX_CATEGORY} characters.", param="category")
    return category


def clean_target(target: str) -> str:
    """Return a valid target. Raises InvalidRequest for anything else."""
    if target not in Target.values:
        raise InvalidRequest(f"target is one of {', '.join(Target.values)}.", param="target")
    return str(target)


def clean_expiry(expires_at: datetime | None) -> datetime | None:
    """Return an expiry in its stored form. Raises InvalidRequest as clean_moment does."""
    return clean_moment(expires_at, "A memory expires between", "expires_at")


def clean_moment(moment: datetime | None, refusal: str, param: str) -> datetime | None:
    """Return a time in UTC; a naive one is taken to be UTC. Raises InvalidRequest for years that not every database and
    time zone supports; the message begins with `refusal`."""
    if moment is None:
        return None
    if not 1970 <= moment.year <= 9998:
        raise InvalidRequest(f"{refusal} the years 1970 and 9998.", param=param)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def clean_keywords(keywords: Sequence[str]) -> list[str]:
    """Return keywords in their stored form: the first 12 distinct ones, each of at most 40 letters, digits, spaces and
    hyphens. Other characters become spaces, and the rest is dropped, since keywords only help the search.

    Raises InvalidRequest for more or longer keywords than one request may contain."""
    if len(keywords) > KEYWORDS_GIVEN:
        raise InvalidRequest(f"A memory takes at most {KEYWORDS_GIVEN} keywords at once.", param="keywords")
    if any(len(keyword) > KEYWORD_LENGTH for keyword in keywords):
        raise InvalidRequest(f"A keyword has at most {KEYWORD_LENGTH} characters.", param="keywords")
    found: dict[str, str] = {}
    for keyword in keywords:
        kept = "".join(
            c if c.isalnum() or unicodedata.category(c) in {"Mn", "Mc"} or c == "-" else " " for c in keyword
        )
        kept = " ".join(kept.split())[:MAX_KEYWORD].strip()
        if not is_blank(kept):
            found.setdefault(kept.casefold(), kept)
        if len(found) == MAX_KEYWORDS:
            break
    return list(found.values())


def check_scan(
    content: str, keywords: Sequence[str], metadata: Mapping[str, str] = NO_METADATA, category: str = ""
) -> ScanVerdict:
    """Scan a memory before it is written and return the verdict. Raises BlockedByScan, without quoting the text."""
    if any(map(is_prompt_copy, (content, " ".join(keywords), " ".join(metadata.values()), category))):
        count_refusal("prompt_copy", "prompt")
        raise BlockedByScan(
            "Not saved. This repeats Daybook's own instructions to the model. Say what is to be remembered.",
            rule="prompt_copy",
            kind="prompt",
        )
    verdict = verdict_of(content, keywords, metadata, category)
    refuse_blocked(verdict)
    return verdict


def check_hold(verdict: ScanVerdict, evidence: Evidence, hold: Hold) -> None:
    """Raise WriteHeld if a write must wait for a person."""
    if held := decide(verdict, evidence, hold):
        raise WriteHeld(held.reason, rule=held.rule)


def refuse_blocked(verdict: ScanVerdict) -> None:
    """Raise BlockedByScan, and count it, if a rule matched."""
    if verdict.rule:
        count_refusal(verdict.rule, verdict.kind)
        raise BlockedByScan(
            f"Not saved. Rule {verdict.rule} found something that {verdict.reason}. Change the text and save again.",
            rule=verdict.rule,
            kind=verdict.kind,
        )


def scanned_words(memory: Memory, changes: Mapping[str, Any] = MappingProxyType({})) -> tuple[Any, ...]:
    """Return the SCANNED fields of a memory as they would be after these changes."""
    return tuple(changes.get(name, getattr(memory, name)) for name in SCANNED)


def set_verdict(memory: Memory) -> None:
    """Set the verdict of a memory that is stored even if it is blocked (undo, imported rows), unless its verdict is
    already of the current rules and words."""
    words = scanned_words(memory)
    if memory.scan_hash == words_hash(*words):
        return
    verdict = verdict_of(*words)
    memory.scan_hash = verdict.scan_hash
    memory.scan_rule, memory.scan_reason = verdict.rule, verdict.reason[:200]
