"""Find lexers that a code block can hang: run every lexer in use on bad texts of a block's maximum length.

    python bench/highlighting.py [--size 50000] [--lexer NAME]

A text is a prefix (an opened string, comment, bracket or tag) followed by one or two repeated characters. What counts
is the longest time between two tokens, because the time budget of highlighting is checked between them: a backtracking
pattern runs on and holds the interpreter lock. Prints per lexer the number of texts, the longest gap in milliseconds
and its text; as its last line one JSON object. A match is aborted after --cap milliseconds."""

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

TIMED_TOKENS = 40
"""Only the first tokens are timed: they have the most text ahead of them."""
MAX_SLOW_TEXTS = 12
"""A lexer with so many texts above --cap is known to be slow."""
CHARACTERS = tuple("\"'\\`([{< \na0/*#$@-=.,:;_!%&|?+~^>)]}\té")
SEQUENCES = (
    *("<!--", '"""', "'''", "${", "#{", "{{", "<a ", "a b ", "0x", "1e", "<<a\n", "=begin\n", "<?php ", "a-b ", "a::"),
    *("\\\n", "/*", "*/", "{-", "-}", "(*", "--", "a=b ", 'a="b" ', "a: b\n", "- a\n", "<a>", "</a>", "a()", "a.b"),
    *("fn ", "def ", "if ", "u{", "\\x", "[a]", "a[", "@a", "#a", "&a;", '"a"', '""', "''", "//", "a\n ", "a\n\n"),
    *(" \n", "a ,", "a , ", "a.a ", "1 ", "a: ", "aaa "),
)
PREFIXES = (
    *("", '"', "'", "`", "/", "/*", "<!--", '"""', "'''", "{-", "(", "[", "{", '<a b="', "<?php ", "def ", "class "),
    *("function a", "import ", "a = ", "a: ", "@", "$", "${", 'r"', 'f"', "#", "<<EOF\n", "<<~A\n", "<", "</"),
    *("<script>", "<style>", "--", "select ", "type ", "fn a", "0", "a ", "-", "%", "!", "=", "let ", "@a(", "#!"),
    *("{{", "a{", "a(", "a<", "$ ", ">>> ", "|", "- ", "a:\n  ", "---\n", "\\", "q{", "s/", "m/", "qq(", "=pod\n"),
    *("[[", "--[[", "const ", 'string a = @"', '$"', 'u8"', "a {a:", "a {a: ", "@media "),
)
PREFIXES_WITH_PAIRS = ("", '"', "'", "/", "`")


class _MatchTimeout(Exception):
    """A match took longer than the cap."""


def texts(size: int) -> Iterator[tuple[str, str, str]]:
    """Yield every bad text: its prefix, what is repeated, and the text."""
    pairs = ["".join(pair) for pair in permutations(CHARACTERS[:28], 2)]
    for prefix in PREFIXES:
        for repeated in (*CHARACTERS, *SEQUENCES, *(pairs if prefix in PREFIXES_WITH_PAIRS else ())):
            yield prefix, repeated, (prefix + repeated * (size // len(repeated)))[: size - 1] + "\n"


def longest_gap(lexer: Lexer, code: str, cap: float) -> float:
    """Return the longest thread time in seconds between two of the first tokens, or `cap` if a match was aborted."""
    signal.setitimer(signal.ITIMER_VIRTUAL, cap)  # processor time, so that other load does not matter
    longest, began = 0.0, time.thread_time()
    try:
        for number, _ in enumerate(lexer.get_tokens_unprocessed(code)):
            now = time.thread_time()
            longest, began = max(longest, now - began), now
            if number == TIMED_TOKENS:
                break
    except _MatchTimeout:
        return cap
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return max(longest, time.thread_time() - began)


def _time_out(number: int, frame: FrameType | None) -> None:
    raise _MatchTimeout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=MAX_CODE_CHARS, help="length of a text in characters")
    parser.add_argument("--lexer", default="", help="only this lexer of Pygments, even if Daybook does not use it")
    parser.add_argument("--cap", type=float, default=300.0, help="milliseconds")
    given = parser.parse_args()
    signal.signal(signal.SIGVTALRM, _time_out)
    results: dict[str, float] = {}
    for name in [given.lexer] if given.lexer else sorted(set(LEXERS.values())):
        lexer, worst, slow, count = get_lexer_by_name(name), (0.0, "", ""), 0, 0
        for prefix, repeated, code in texts(given.size):
            gap = longest_gap(lexer, code, given.cap / 1000)
            worst, count, slow = max(worst, (gap, prefix, repeated)), count + 1, slow + (gap >= given.cap / 1000)
            if slow == MAX_SLOW_TEXTS:
                break
        results[name] = round(worst[0] * 1000, 1)
        print(f"{name:14} {count:6} texts {results[name]:8.1f} ms  {worst[1]!r} {worst[2]!r}", flush=True)
    print(json.dumps({"size": given.size, "longest_ms": results}))


if __name__ == "__main__":
    main()
