"""Colours for code in answers: comments, strings, numbers and key words of the languages that come up most.
A lexer of one pass and linear patterns, not a parser: unknown languages stay plain."""

import re
from html import escape

_STRING = r"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'"
_NUMBER = r"(?<![\w.])\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w])"
_HASH = r"(?<![^\s;])\#[^\n]*"
_SLASHES = r"//[^\n]*|/\*(?:[^*]|\*(?!/))*\*/"
_DASHES = r"--[^\n]*|/\*(?:[^*]|\*(?!/))*\*/"

_WORDS = {
    "shell": """
        if then elif else fi for in do done while until case esac function return local export set unset
        source alias exit trap readonly declare eval exec shift sudo cd echo
    """,
    "python": """
        and as assert async await break class continue def del elif else except finally for from global if
        import in is lambda match case nonlocal not or pass raise return try while with yield None True
        False self
    """,
    "script": """
        async await break case catch class const continue debugger default delete do else enum export
        extends false finally for from function if implements import in instanceof interface let new null of
        return static super switch this throw true try type typeof undefined var void while yield
    """,
    "sql": """
        select from where and or not insert into values update set delete create table index view drop alter
        add column primary key foreign references join left right inner outer full on group by order having
        limit offset as distinct union all case when then else end null is in exists between like begin
        commit rollback with returning default unique constraint
    """,
    "compiled": """
        abstract as async auto bool boolean break byte case catch chan char class const continue crate
        default defer do double else enum extends extern false final finally float fn for func go goto if
        impl implements import in inline int interface let long loop map match mod mut namespace new nil
        null override package private protected pub public range return self short signed sizeof static
        struct super switch template this throw throws trait true try type typedef union unsafe unsigned use
        using var virtual void volatile where while string
    """,
    "data": "true false null yes no on off",
}
_KINDS = {
    "shell": ("shell", _HASH),
    "python": ("python", _HASH),
    "script": ("script", _SLASHES),
    "sql": ("sql", _DASHES),
    "compiled": ("compiled", _SLASHES),
    "data": ("data", _HASH),
    "json": ("data", None),
}
_LANGUAGES = {
    "shell": "sh bash zsh shell console fish dockerfile docker makefile make",
    "python": "python py python3 starlark",
    "script": "javascript js jsx typescript ts tsx mjs node",
    "sql": "sql postgresql postgres psql sqlite mysql",
    "compiled": "c h cpp c++ cc cs csharp c# java kotlin kt go golang rust rs swift scala dart zig php",
    "data": "yaml yml toml ini conf cfg env properties",
    "json": "json jsonc json5 jsonl",
}
_LONGEST = 40_000


def _pattern(kind: str) -> re.Pattern[str]:
    words, comment = _KINDS[kind]
    keys = "|".join(_WORDS[words].split())
    before = (
        r"\"\"\"(?:[^\"]|\"(?!\"\"))*\"\"\"|" if kind == "python" else r"`(?:[^`\\]|\\.)*`|" if kind == "script" else ""
    )
    parts = [f"(?P<c>{comment})"] if comment else []
    parts += [f"(?P<s>{before}{_STRING})", f"(?P<n>{_NUMBER})", rf"(?P<k>(?<![\w.$@/-])(?:{keys})(?![\w-]))"]
    return re.compile("|".join(parts), re.IGNORECASE if kind == "sql" else 0)


_PATTERNS = {name: _pattern(kind) for kind, names in _LANGUAGES.items() for name in names.split()}


def highlight(code: str, language: str) -> str:
    """Code as HTML: escaped, with `<span class="c|s|n|k">` around comments, strings, numbers and key words."""
    pattern = _PATTERNS.get(language.lower())
    if pattern is None or len(code) > _LONGEST:
        return escape(code)
    out, done = [], 0
    for match in pattern.finditer(code):
        out += [
            escape(code[done : match.start()]),
            f'<span class="{match.lastgroup}">{escape(match[0])}</span>',
        ]
        done = match.end()
    out.append(escape(code[done:]))
    return "".join(out)
