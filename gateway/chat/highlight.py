"""Syntax highlighting with Pygments for code in answers: comments, strings, numbers, keywords, and the lines of diffs.

Code comes from models and other people, and pages are rendered on every view, so three things are bounded: the length
of the code, the processor time of one rendering, and the languages. The time is checked only between tokens, so no
single pattern may take long; bench/highlighting.py runs each lexer on worst-case texts of the maximum length. Pygments
lexers that are slow there (C, C++, Java, Ruby, Make, Perl, Scala and others) are not used; some of those languages
borrow the lexer of another language with similar keywords."""

import time
from functools import cache
from html import escape
from itertools import groupby
from operator import itemgetter

from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Generic, Keyword, Name, Number, String, _TokenType

from gateway.chat.formulas import MAX_TOTAL_CHARS

MAX_CODE_CHARS = 10_000
"""Longer code is shown plain."""
SECONDS_PER_TEXT = 0.1
"""Processor seconds for highlighting one text; the rest of its code is shown plain."""
SECONDS_PER_PAGE = 0.2
"""Processor seconds for highlighting all texts of a page together."""
STEPS_PER_PAGE = 150_000
"""Steps of the Markdown parser for all texts of a page together; see gateway.chat.markdown_rules."""

_NAMES = {
    "bash": "sh bash zsh shell fish make makefile",
    "c#": "csharp cs c# c h cpp c++ cc java objective-c objc",
    "clojure": "clojure clj",
    "css": "css",
    "dart": "dart",
    "diff": "diff patch",
    "docker": "dockerfile docker",
    "elixir": "elixir ex",
    "erlang": "erlang",
    "go": "go golang",
    "graphql": "graphql",
    "haskell": "haskell hs",
    "html": "html",
    "javascript": "javascript js mjs node",
    "json": "json jsonc json5 jsonl",
    "jsx": "jsx",
    "julia": "julia jl",
    "kotlin": "kotlin kt groovy scala",
    "lua": "lua",
    "nginx": "nginx",
    "php": "php",
    "postgresql": "postgresql postgres psql",
    "powershell": "powershell ps1",
    "properties": "properties env ini conf cfg",
    "protobuf": "protobuf proto",
    "python": "python py python3 starlark",
    "r": "r",
    "rust": "rust rs",
    "scss": "scss",
    "sql": "sql sqlite mysql",
    "swift": "swift",
    "toml": "toml",
    "tsx": "tsx",
    "typescript": "typescript ts",
    "xml": "xml svg",
    "yaml": "yaml yml",
    "zig": "zig",
}
LEXERS = {name: lexer for lexer, names in _NAMES.items() for name in names.split()}
"""The lexer name for each supported language name after a code fence."""

_lexer = cache(get_lexer_by_name)
_CLASSES = (
    (Comment, "c"),
    (String, "s"),
    (Number, "n"),
    (Keyword, "k"),
    (Name.Tag, "k"),
    (Generic.Inserted, "i"),
    (Generic.Deleted, "d"),
    (Generic.Subheading, "c"),
)
CSS_CLASSES = frozenset(css for _, css in _CLASSES)


class Budget:
    """The rendering budget left for one text or page: processor seconds for highlighting, characters of formulas, steps
    of the Markdown parser."""

    def __init__(self, seconds: float = SECONDS_PER_TEXT) -> None:
        self.seconds = seconds
        self.formulas = MAX_TOTAL_CHARS
        self.steps = STEPS_PER_PAGE


def highlight(code: str, language: str, budget: Budget | None = None) -> str:
    """Return code as escaped HTML with `<span class="c|s|n|k|i|d">` around comments, strings, numbers, keywords, and
    inserted and deleted lines. Code in an unknown language or beyond the limits is only escaped."""
    budget = budget or Budget()
    name = LEXERS.get(language.lower())
    if name is None or len(code) > MAX_CODE_CHARS or budget.seconds <= 0:
        return escape(code)
    started = time.thread_time()
    pieces: list[tuple[str, str]] = []  # (CSS class, text), in order; "" is plain text
    done = 0
    # Several lexers recognise a comment only if a newline ends its line.
    for start, kind, text in _lexer(name).get_tokens_unprocessed(code if code.endswith("\n") else code + "\n"):
        if time.thread_time() - started > budget.seconds:
            break
        if start < done:  # a lexer that embeds another one may return to earlier text
            continue
        end = start + len(text)
        pieces += [("", code[done:start]), (_css_class(kind), code[start:end])]
        done = end
    budget.seconds -= time.thread_time() - started
    pieces.append(("", code[done:]))
    out: list[str] = []
    for css, run in groupby(filter(itemgetter(1), pieces), key=itemgetter(0)):
        text = escape("".join(piece for _, piece in run))
        out.append(f'<span class="{css}">{text}</span>' if css else text)
    return "".join(out)


@cache
def _css_class(kind: _TokenType) -> str:
    return next((css for parent, css in _CLASSES if kind[: len(parent)] == parent), "")
