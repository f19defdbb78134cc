"""Words for a password beside those of `vocabulary.secret_words`, which belong to what the score learned from, and
sentences that tell a password without a label right before it."""

from __future__ import annotations

import re
from collections.abc import Iterator

MORE_PASSWORDS = """
et: parool, parooli, salasona
lt: slaptazodis, slaptazodi
sl: geslo, gesla
ca: contrasenya, contrasenyes, clau de pas
gl: contrasinal
eu: pasahitza, pasahitz
sw: nenosiri, neno la siri
af: wagwoord
ms: kata laluan
sq: fjalekalimi, fjalekalim
is: lykilord
mk: лозинка, лозинката
be: пароль
hy: գաղտնաբառը, գաղտնաբառ
ka: პაროლი
kk: құпиясөз, кулипсөз
cy: cyfrinair
ga: pasfhocal
ta: கடவுச்சொல்
te: పాస్‌వర్డ్
mr: पासवर्ड
"""
_LABEL = (
    r"(?:passwor[dt]|passcode|passphrase|kennwort|mot de passe|mdp|contrasena|senha|palavra-passe|wachtwoord"
    r"|haslo|heslo"
    r"|losenord|adgangskode|passord|salasana|jelszo|parola|lozinka|sifre|парол\w{0,3})"
)
_VALUE = r"[\"'`]?(?P<v>[^\s\"'`,;<>(){}]{8,64}[^\s\"'`,;<>(){}.!?:])"
# Each with words of which its text has one; they are quick to look for.
_TOLD: tuple[tuple[tuple[str, ...], re.Pattern[str]], ...] = (
    (
        ("in with ", "in using ", "in by ", "on with ", "on using ", "on by "),
        re.compile(rf"\b(?:logs?|logged|logging|signs?|signed|signing) (?:in|on) (?:with|using|by) {_VALUE}"),
    ),
    (
        ("set", "change", "switched", "updated", "renamed"),
        re.compile(
            r"\b(?:set|sets|changed?|changes|reset|switched|updated|renamed) (?:[\w\-']{1,20} ){1,4}?(?:to|as) "
            rf"{_VALUE}(?=[^\n]{{0,60}}{_LABEL})"
        ),
    ),
    (
        (
            " geandert",
            " gesetzt",
            " gestellt",
            " changed",
            " set",
            " cambiad",
            " gewijzigd",
            " gezet",
            " zmien",
            " изменен",
        ),
        re.compile(
            rf"{_LABEL}[^\n.]{{0,50}}? (?:auf|in|to|en|a|por|op|til|na|на) {_VALUE}"
            r" (?:geandert|gesetzt|gestellt|changed|set|cambiad\w|gewijzigd|gezet|zmienion\w|изменен\w?)"
        ),
    ),
    (
        ("type ", "enter ", "user ", "user is ", "username is "),
        re.compile(rf"\b(?:type|enter|user(?:name)? is|user) (?:[\w.\-]{{1,30}} ){{1,2}}(?:and|,) (?:then )?{_VALUE}"),
    ),
    (("parole ir ", "parole: "), re.compile(rf"\bparole(?: ir|:) {_VALUE}")),
)
_DIGIT = re.compile(r"\d")


def told_spans(text: str) -> Iterator[tuple[int, int]]:
    """Return what a folded text tells as a password in the middle of a sentence; who calls judges the value, which has
    digits if it is one."""
    if not _DIGIT.search(text):
        return
    for words, pattern in _TOLD:
        if any(word in text for word in words):
            yield from (match.span("v") for match in pattern.finditer(text))
