"""What an entry must be before it is stored: its words cleaned, checked and scanned. Nothing here writes.
Called by memories.services for every write, and by reviews.staged, which answers a review like the real book."""

import hashlib
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from django.conf import settings

from memories.counters import count_refusal
from memories.errors import BlockedByScan, InvalidRequest, TooLarge
from memories.evidence import Hold, WriteHeld, decide
from memories.limits import KEYWORD_LENGTH, KEYWORDS_GIVEN
from memories.models import Evidence, Memory, Target
from memories.storable import storable_text
from memories.verdicts import NO_METADATA, ScanVerdict, verdict_of, words_hash
from prompts.copies import is_prompt_copy

MAX_CATEGORY = 40
MAX_KEYWORDS = 12
MAX_KEYWORD = 40


def content_key(content: str) -> str:
    """Return a hash of the words alone: case, width, spacing and closing punctuation do not make another memory."""
    folded = " ".join(unicodedata.normalize("NFKC", content).casefold().split()).rstrip(".!。 ")
    return hashlib.sha256(folded.encode()).hexdigest()


def clean_content(content: str) -> str:
    """Return content as it is stored: trimmed, and without what a database refuses. Raises InvalidRequest, TooLarge."""
    content = storable_text(content).strip()
    if not content:
        raise InvalidRequest("A memory needs some words.", param="content")
    if len(content) > settings.MAX_ENTRY:
        raise TooLarge(
            f"A memory has at most {settings.MAX_ENTRY} characters; this one has {len(content)}. "
            "Shorten it or split it.",
            param="content",
            limit=settings.MAX_ENTRY,
        )
    return content


def clean_category(category: str) -> str:
    """Return a category as stored: one short line. Raises InvalidRequest."""
    category = " ".join(storable_text(category).split())
    if not category or len(category) > MAX_CATEGORY:
        raise InvalidRequest(f"A category has 1 to {MAX_CATEGORY} characters.", param="category")
    return category


def clean_target(target: str) -> str:
    """Raises InvalidRequest unless it is one of the two targets."""
    if target not in Target.values:
        raise InvalidRequest(f"target is one of {', '.join(Target.values)}.", param="target")
    return str(target)


def clean_expiry(expires_at: datetime | None) -> datetime | None:
    """Return a time of expiry as stored. Raises InvalidRequest as clean_moment does."""
    return clean_moment(expires_at, "A memory expires between", "expires_at")


def clean_moment(moment: datetime | None, refusal: str, param: str) -> datetime | None:
    """Return a time in UTC; one without a time zone is taken for UTC. Raises InvalidRequest for years that not every
    database and time zone knows; `refusal` is the beginning of its sentence."""
    if moment is None:
        return None
    if not 1970 <= moment.year <= 9998:
        raise InvalidRequest(f"{refusal} the years 1970 and 9998.", param=param)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def clean_keywords(keywords: Sequence[str]) -> list[str]:
    """Keywords as stored: the first 12 different ones, of at most 40 letters, digits, spaces and hyphens each; other
    characters become spaces, and further words are left out (keywords only help the search).

    Raises InvalidRequest for more keywords, or longer ones, than one request may name."""
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
        if kept:
            found.setdefault(kept.casefold(), kept)
        if len(found) == MAX_KEYWORDS:
            break
    return list(found.values())


def check_scan(content: str, keywords: Sequence[str], metadata: Mapping[str, str] = NO_METADATA) -> ScanVerdict:
    """Scan before a write; returns the verdict. Raises BlockedByScan without repeating what was found."""
    if any(map(is_prompt_copy, (content, " ".join(keywords), " ".join(metadata.values())))):
        count_refusal("prompt_copy", "prompt")
        raise BlockedByScan(
            "Not saved. This repeats Daybook's own instructions to the model. Say what is to be remembered.",
            rule="prompt_copy",
            kind="prompt",
        )
    verdict = verdict_of(content, keywords, metadata)
    refuse_blocked(verdict)
    return verdict


def check_hold(verdict: ScanVerdict, evidence: Evidence, hold: Hold) -> None:
    """Raises Held where a write waits for a person."""
    if doubt := decide(verdict, evidence, hold):
        raise WriteHeld(doubt.reason, rule=doubt.rule)


def refuse_blocked(verdict: ScanVerdict) -> None:
    """Raises BlockedByScan where a rule matched, and counts that."""
    if verdict.rule:
        count_refusal(verdict.rule, verdict.kind)
        raise BlockedByScan(
            f"Not saved. Rule `{verdict.rule}` found something that {verdict.reason}. Change the text and save again.",
            rule=verdict.rule,
            kind=verdict.kind,
        )


def set_verdict(memory: Memory) -> None:
    """Scan a memory that is not refused (undo, rows from elsewhere) and keep the verdict with it, unless the verdict
    that it has is of these rules and words."""
    words = (memory.content, memory.keywords, memory.metadata)
    if memory.scan_hash == words_hash(*words):
        return
    verdict = verdict_of(*words)
    memory.scan_hash = verdict.scan_hash
    memory.scan_rule, memory.scan_reason = verdict.rule, verdict.reason[:200]
