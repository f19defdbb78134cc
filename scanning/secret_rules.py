"""Combines all secret detectors, and adds reasons for people."""

from __future__ import annotations

from collections.abc import Iterable

from scanning.formats import format_spans
from scanning.personal_numbers import number_spans
from scanning.program_secrets import program_spans
from scanning.provider_keys import Span, provider_spans
from scanning.spoken import spoken_spans
from scanning.verdict import Finding
from scanning.views import View

REASONS = {
    "provider_key": "contains a key or token of a service",
    "private_key": "contains a private key",
    "json_web_token": "contains a signed token (JWT)",
    "url_password": "contains an address with a password in it",
    "card_number": "contains a payment card number",
    "bank_account": "contains a bank account number",
    "identity_number": "contains the number of a passport, a tax file or an identity card",
    "seed_phrase": "contains a wallet's recovery phrase",
    "password": "contains a password",
    "pin": "contains a PIN or an access code",
    "token": "contains an access key or token",
}


def written_findings(view: View) -> list[Finding]:
    """Return secrets with a known format in a view with its original case."""
    spans = (provider_spans, format_spans, program_spans, number_spans)
    return _findings(view, (span for find in spans for span in find(view.text)))


def spoken_findings(view: View, original: str) -> list[Finding]:
    """Return secrets announced by words in a folded view of `original`."""
    return _findings(view, spoken_spans(view, original))


def _findings(view: View, spans: Iterable[Span]) -> list[Finding]:
    found = []
    for start, end, rule in spans:
        first, last = view.located(start, end)
        found.append(Finding(kind="secret", rule=rule, start=first, end=last, reason=REASONS[rule]))
    return found
