"""Finds passwords in sentences without a label directly before the password."""

from __future__ import annotations

import re
from collections.abc import Iterator

_LABEL = (
    r"(?:passwor[dt]|passcode|passphrase|kennwort|mot de passe|mdp|contrasena|senha|palavra-passe|wachtwoord"
    r"|haslo|heslo|losenord|adgangskode|passord|salasana|jelszo|parola|lozinka|sifre|парол\w{0,3})"
)
_VALUE = r"[\"'`]?(?P<v>[^\s\"'`,;<>(){}]{8,64}[^\s\"'`,;<>(){}.!?:])"
_SENTENCES = tuple(
    re.compile(pattern)
    for pattern in (
        rf"\b(?:logs?|logged|logging|signs?|signed|signing) (?:in|on) (?:with|using|by) {_VALUE}",
        r"\b(?:set|sets|changed?|changes|reset|switched|updated|renamed) (?:[\w\-']{1,20} ){1,4}?(?:to|as) "
        rf"{_VALUE}(?=[^\n]{{0,60}}{_LABEL})",
        rf"{_LABEL}[^\n.]{{0,50}}? (?:auf|in|to|en|a|por|op|til|na|на) {_VALUE}"
        r" (?:geandert|gesetzt|gestellt|changed|set|cambiad\w|gewijzigd|gezet|zmienion\w|изменен\w?)",
        rf"\b(?:type|enter|user(?:name)? is|user) (?:[\w.\-]{{1,30}} ){{1,2}}(?:and|,) (?:then )?{_VALUE}",
        rf"\bparole(?: ir|:) {_VALUE}",
    )
)
_DIGIT = re.compile(r"\d")


def sentence_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield possible passwords in the middle of sentences of a folded text. The caller must check the values. Passwords
    without digits are not found."""
    if _DIGIT.search(text):
        for pattern in _SENTENCES:
            yield from (match.span("v") for match in pattern.finditer(text))
