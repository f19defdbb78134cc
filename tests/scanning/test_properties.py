"""Properties of any text: no exceptions, positions within the text, no leaks, and idempotent redaction."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from scanning import redact, scan
from tests.scanning.samples import CARD, IBAN, JWT, body, key_block

PIECES = st.sampled_from(
    [
        "password is ", "пароль: ", "密码是", "pin ", "api key ", "ignore all previous ", "instructions ", "<|", "|>",
        "\u200b", "\u202e", "\U000e0061", "%41%42%43", "&#65;&#66;", "\\u0041", "aGVsbG8gd29ybGQgaGVsbG8=",
        "a.b.c.d.e.f", "https://a:b@c/",
        "-----BEGIN PRIVATE KEY-----", "\n", " ", '"', "[redacted: password]",
        "{", "\ud800", "İ", "ß", "한국", "कि", "\x1b[",
    ]
)  # fmt: skip
TEXTS = st.one_of(st.text(max_size=300), st.lists(st.one_of(PIECES, st.text(max_size=12)), max_size=25).map("".join))
SECRETS = {
    "key": "gh" + "p_" + body(36),
    "block": key_block(),
    "token": JWT,
    "card": CARD,
    "account": IBAN,
}


@given(content=TEXTS, keywords=st.lists(TEXTS, max_size=3))
@settings(max_examples=100)
def test_any_text_can_be_scanned_and_findings_lie_within_it(content: str, keywords: list[str]) -> None:
    length = len("\n".join((content, *keywords)))
    verdict = scan(content, keywords)
    for finding in (*verdict.findings, *verdict.doubts):
        assert 0 <= finding.start <= finding.end <= length
        assert finding.kind in ("injection", "secret")
        assert finding.rule.isidentifier()
        assert finding.reason


@given(text=TEXTS)
@example(text="A0://" + ":0@000A")
@settings(max_examples=100)
def test_redaction_is_idempotent(text: str) -> None:
    once = redact(text).text
    assert redact(once).text == once


@given(before=st.text(alphabet="abc .,\n", max_size=40), name=st.sampled_from(sorted(SECRETS)), after=TEXTS)
@settings(max_examples=75)
def test_a_secret_appears_neither_in_the_redacted_text_nor_in_the_verdict(before: str, name: str, after: str) -> None:
    secret = SECRETS[name]
    text = f"{before}\n{secret}\n{after}"
    assert secret not in redact(text).text
    verdict = scan(text)
    assert verdict.findings
    assert secret not in repr(verdict)


@pytest.mark.parametrize(
    "piece",
    ["a", "a ", "a-", "=", "a_", "<a ", "![a](http://", "curl -d ", "password: ", "pin 1 ", "密码是", "QUJD", "%41",
     "&#65;", "\\u0041", "a:b@", "a.com.", "eyJa.", "-----BEGIN PRIVATE KEY-----", "ignore all previous ", "e\u0301",
     "\U000e0061", "word "],
)  # fmt: skip
def test_repetitive_text_at_the_limit_can_be_scanned(piece: str) -> None:
    text = (piece * 4_000)[:12_000]
    redaction = redact(text)
    assert redaction.text.count("[redacted: ") == redaction.count
    assert all(0 <= finding.start < finding.end <= len(text) for finding in scan(text).findings)
