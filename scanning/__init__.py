"""Scans everything that becomes a memory, before it is stored and again before it is injected.
`scan` finds injections and secrets, `redact` removes secrets from long documents, `scan_hash` identifies what a verdict
is valid for. Rules are data plus small functions, one file per family; see docs/scanning.md."""

from scanning.characters import is_blank
from scanning.provider_keys import looks_random, warm
from scanning.scanner import RULES_VERSION, SCAN_LIMIT, redact, scan, scan_hash
from scanning.verdict import Finding, Outcome, Redaction, Verdict
from scanning.words import classes_of


def forget_words() -> None:
    """Clear this process's caches of words from scanned texts."""
    classes_of.cache_clear()
    looks_random.cache_clear()
