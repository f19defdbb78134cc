"""Which lexer can a block of code stop? Bad texts of a block's greatest length, for every lexer that colours code.

    python bench/highlighting.py [--size 50000] [--lexer NAME]

A text is a beginning (an opened string, comment, bracket or tag) and one or two signs again and again. The time that
counts is the longest between two tokens, because the colours' budget of time is looked at between them: a pattern that
looks back runs on, and keeps the interpreter's lock. Prints per lexer how many texts there were, the longest such time
in milliseconds and the text; as its last line one JSON object. A pattern is given up after --cap milliseconds."""

import argparse
import json
import signal
import sys
import time
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from pygments.lexer import Lexer  # noqa: E402
from pygments.lexers import get_lexer_by_name  # noqa: E402

from gateway.chat.highlight import LEXERS, MAX_CODE_CHARS  # noqa: E402

TOKENS = 40
"""Tokens of a text that are asked for: the first ones have the most text before them."""
ENOUGH = 12
"""Texts above --cap after which a lexer is known to be slow."""
SIGNS = tuple("\"'\\`([{< \na0/*#$@-=.,:;_!%&|?+~^>)]}\té")
WORDS = (
    *("<!--", '"""', "'''", "${", "#{", "{{", "<a ", "a b ", "0x", "1e", "<<a\n", "=begin\n", "<?php ", "a-b ", "a::"),
    *("\\\n", "/*", "*/", "{-", "-}", "(*", "--", "a=b ", 'a="b" ', "a: b\n", "- a\n", "<a>", "</a>", "a()", "a.b"),
    *("fn ", "def ", "if ", "u{", "\\x", "[a]", "a[", "@a", "#a", "&a;", '"a"', '""', "''", "//", "a\n ", "a\n\n"),
    *(" \n", "a ,", "a , ", "a.a ", "1 ", "a: ", "aaa "),
)
BEGINNINGS = (
    *("", '"', "'", "`", "/", "/*", "<!--", '"""', "'''", "{-", "(", "[", "{", '<a b="', "<?php ", "def ", "class "),
    *("function a", "import ", "a = ", "a: ", "@", "$", "${", 'r"', 'f"', "#", "<<EOF\n", "<<~A\n", "<", "</"),
    *("<script>", "<style>", "--", "select ", "type ", "fn a", "0", "a ", "-", "%", "!", "=", "let ", "@a(", "#!"),
    *("{{", "a{", "a(", "a<", "$ ", ">>> ", "|", "- ", "a:\n  ", "---\n", "\\", "q{", "s/", "m/", "qq(", "=pod\n"),
    *("[[", "--[[", "const ", 'string a = @"', '$"', 'u8"', "a {a:", "a {a: ", "@media "),
)
WITH_PAIRS = ("", '"', "'", "/", "`")


class _GivenUp(Exception):
    """A pattern took longer than the cap."""


def texts(size: int) -> Iterator[tuple[str, str, str]]:
    """Every bad text with the beginning and the signs it is made of."""
    pairs = ["".join(pair) for pair in permutations(SIGNS[:28], 2)]
    for beginning in BEGINNINGS:
        for signs in (*SIGNS, *WORDS, *(pairs if beginning in WITH_PAIRS else ())):
            yield beginning, signs, (beginning + signs * (size // len(signs)))[: size - 1] + "\n"


def longest_wait(lexer: Lexer, code: str, cap: float) -> float:
    """The longest time between two of the first tokens, in seconds of this thread; `cap` where a match was given up."""
    signal.setitimer(signal.ITIMER_VIRTUAL, cap)  # of the processor's time, whatever else the machine does
    longest, began = 0.0, time.thread_time()
    try:
        for number, _ in enumerate(lexer.get_tokens_unprocessed(code)):
            now = time.thread_time()
            longest, began = max(longest, now - began), now
            if number == TOKENS:
                break
    except _GivenUp:
        return cap
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return max(longest, time.thread_time() - began)


def _give_up(number: int, frame: FrameType | None) -> None:
    raise _GivenUp


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=MAX_CODE_CHARS, help="characters of a text")
    parser.add_argument("--lexer", default="", help="this lexer of Pygments alone, also one that is not used")
    parser.add_argument("--cap", type=float, default=300.0, help="milliseconds")
    given = parser.parse_args()
    signal.signal(signal.SIGVTALRM, _give_up)
    results: dict[str, float] = {}
    for name in [given.lexer] if given.lexer else sorted(set(LEXERS.values())):
        lexer, worst, slow, count = get_lexer_by_name(name), (0.0, "", ""), 0, 0
        for beginning, signs, code in texts(given.size):
            wait = longest_wait(lexer, code, given.cap / 1000)
            worst, count, slow = max(worst, (wait, beginning, signs)), count + 1, slow + (wait >= given.cap / 1000)
            if slow == ENOUGH:
                break
        results[name] = round(worst[0] * 1000, 1)
        print(f"{name:14} {count:6} texts {results[name]:8.1f} ms  {worst[1]!r} {worst[2]!r}", flush=True)
    print(json.dumps({"size": given.size, "longest_ms": results}))


if __name__ == "__main__":
    main()
