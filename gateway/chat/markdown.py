"""Renders Markdown from a model or a person as HTML that is safe to embed in a page.

HTML in the text is escaped except a few harmless tags, lines break where they break in the text, remote images become
links, and links open in a new tab without a referrer. The sanitiser runs last. The same renderer is used while an
answer is streamed (gateway.chat.live_markdown) and afterwards."""

import re
from collections.abc import MutableMapping, Sequence
from html import escape
from typing import Any

import nh3
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import OptionsDict

from gateway.chat import formulas, markdown_rules
from gateway.chat.highlight import CSS_CLASSES, Budget, highlight

Tokens = Sequence[Token]
Env = MutableMapping[str, Any]

_TAGS = "a blockquote br code div em h3 h4 h5 h6 hr input li ol p pre s span strong table tbody td th thead tr ul"
_FOOTNOTE_LINK = re.compile(r"#fn(ref)?-[A-Za-z0-9_.-]{1,100}")


def _relative(address: str) -> str | None:
    """Return a relative URL if it points to a footnote of the same page, else None."""
    return address if _FOOTNOTE_LINK.fullmatch(address) else None


_LONG_INLINE = 20
"""Characters of LaTeX above which a formula within a line may be wider than a phone, so that it gets a box that
scrolls."""
_LONG_CELL = 40
"""Characters above which a cell of a table holds a sentence, whose column must not become as narrow as a word."""
_FORMULA_BOX = 'tabindex="0" role="group" aria-label="Formula"'
_BOX = {"tabindex": {"0"}, "role": {"group"}}
_CLEANER = nh3.Cleaner(
    tags={*_TAGS.split(), *markdown_rules.TAGS, *formulas.TAGS},
    attributes={
        "a": {"href", "title", "id", "aria-label"},
        "div": {"aria-label"},
        "span": {"aria-label"},
        "input": {"aria-label", "checked", "disabled"},
        "math": {"alttext"},
        "ol": {"start"},
        "p": {"id"},
        "pre": {"tabindex", "aria-label"},
        **{tag: set(formulas.ATTRIBUTES) for tag in formulas.TAGS - {"math"}},
    },
    tag_attribute_values={
        "a": {"target": {"_blank"}},
        "code": {"class": {"tex"}},
        "div": {"class": {"code", "code__bar", "formula", "table"}, **_BOX},
        "input": {"type": {"checkbox"}},
        "li": {"class": {"task"}},
        "math": {"display": {"block", "inline"}},
        "ol": {"class": {"digits-3", "digits-4", "digits-5"}},
        "p": {"class": {"footnote"}},
        "span": {"class": {*CSS_CLASSES, "formula"}, **_BOX},
        "td": {"align": {"left", "right", "center"}, "class": {"long"}},
        "th": {"align": {"left", "right", "center"}, "class": {"long"}},
    },
    link_rel="noopener nofollow",
    url_schemes={"http", "https", "mailto"},
    url_relative=_relative,
)
_LANGUAGE = re.compile(r"[A-Za-z0-9+#._-]{1,24}")
# A bare URL. Punctuation at its end belongs to the sentence.
_ADDRESS = re.compile(r"https?://[^\s<>\"'`\\|^{}]{1,2000}")
_TRAILING_PUNCTUATION = ".,;:!?)]*_~"

MAX_CHARS = 100_000
"""A longer text is shown unrendered."""
MAX_MARKS = 20_000
"""A text with more Markdown characters is shown unrendered: each may become an element, so their number, not the
length, makes rendering slow."""
_MARKS = "*_[]`<|~&$\\\n"
MAX_NESTING = 60
"""Levels of quotations and lists; a list takes two. A text that nests deeper is shown unrendered."""
STEPS_PER_TEXT = 70_000
"""Steps of the parser for one text, some 10 µs each. A text that needs more is shown unrendered."""


class _Renderer(RendererHTML):
    """Renders headings below the page's own, images as links, and code in a box."""

    def fence(self, tokens: Tokens, at: int, options: OptionsDict, env: Env) -> str:
        # The language is shown above the code. The page's script adds the copy button.
        match = _LANGUAGE.match(tokens[at].info.strip())
        language = match[0] if match else ""
        name = escape(language or "text")
        code = env["highlight"](tokens[at].content, language)
        return (
            f'<div class="code"><div class="code__bar"><span>{name}</span></div>'
            f'<pre tabindex="0" aria-label="Code, {name}"><code>{code}</code></pre></div>\n'
        )

    def code_block(self, tokens: Tokens, at: int, options: OptionsDict, env: Env) -> str:
        return self.fence(tokens, at, options, env)

    def image(self, tokens: Tokens, at: int, options: OptionsDict, env: Env) -> str:
        # Loading it would reveal the reader to the other host, and the URL may contain words of the conversation.
        token = tokens[at]
        label = escape(self.renderInlineAsText(token.children or [], options, env) or "image")
        source = str(token.attrGet("src") or "")
        return _link(source, label) if source.startswith(("https://", "http://")) else label

    def heading_open(self, tokens: Tokens, at: int, options: OptionsDict, env: Env) -> str:
        return f"<{_demoted(tokens[at].tag)}>"

    def heading_close(self, tokens: Tokens, at: int, options: OptionsDict, env: Env) -> str:
        return f"</{_demoted(tokens[at].tag)}>\n"

    def table_open(self, tokens: Tokens, at: int, options: OptionsDict, env: Env) -> str:
        return '<div class="table" tabindex="0" role="group" aria-label="Table"><table>\n'

    def table_close(self, tokens: Tokens, at: int, options: OptionsDict, env: Env) -> str:
        return "</table></div>\n"

    def text(self, tokens: Tokens, at: int, options: OptionsDict, env: Env) -> str:
        content = tokens[at].content
        return escape(content) if env.get("links") else _linkified(content)

    def link_open(self, tokens: Tokens, at: int, options: OptionsDict, env: Env) -> str:
        env["links"] = env.get("links", 0) + 1
        if not str(tokens[at].attrGet("href") or "").startswith("#"):
            tokens[at].attrSet("target", "_blank")
        return self.renderToken(tokens, at, options, env)

    def link_close(self, tokens: Tokens, at: int, options: OptionsDict, env: Env) -> str:
        env["links"] -= 1
        return self.renderToken(tokens, at, options, env)

    def th_open(self, tokens: Tokens, at: int, options: OptionsDict, env: Env) -> str:
        # The parser writes alignment as a style attribute, which the page's Content-Security-Policy blocks.
        tag, style = tokens[at].tag, str(tokens[at].attrGet("style") or "")
        side = style.removeprefix("text-align:") if style.startswith("text-align:") else ""
        align = f' align="{escape(side)}"' if side else ""
        room = ' class="long"' if len(tokens[at + 1].content) > _LONG_CELL else ""
        return f"<{tag}{align}{room}>"

    td_open = th_open

    def ordered_list_open(self, tokens: Tokens, at: int, options: OptionsDict, env: Env) -> str:
        # The page makes room for long numbers, which would otherwise stand left of the text.
        if (digits := tokens[at].meta["digits"]) > 2:
            tokens[at].attrSet("class", f"digits-{min(digits, 5)}")
        return self.renderToken(tokens, at, options, env)

    def softbreak(self, tokens: Tokens, at: int, options: OptionsDict, env: Env) -> str:
        return "<br>\n"

    def list_item_open(self, tokens: Tokens, at: int, options: OptionsDict, env: Env) -> str:
        return '<li class="task">' if tokens[at].meta.get("task") else "<li>"

    def paragraph_open(self, tokens: Tokens, at: int, options: OptionsDict, env: Env) -> str:
        opening = self.renderToken(tokens, at, options, env)
        done = tokens[at].meta.get("done")
        if done is None:
            return opening
        state = 'checked="" aria-label="Done"' if done else 'aria-label="To do"'
        return f'{opening}<input type="checkbox" disabled="" {state}> '

    def formula(self, tokens: Tokens, at: int, options: OptionsDict, env: Env) -> str:
        shown = _formula(tokens[at], env)
        is_long = len(tokens[at].content) > _LONG_INLINE and shown.startswith("<math")
        return f'<span class="formula" {_FORMULA_BOX}>{shown}</span>' if is_long else shown

    def formula_block(self, tokens: Tokens, at: int, options: OptionsDict, env: Env) -> str:
        shown = _formula(tokens[at], env)
        return f'<div class="formula" {_FORMULA_BOX}>{shown}</div>\n'

    def formula_pending(self, tokens: Tokens, at: int, options: OptionsDict, env: Env) -> str:
        return ""

    def footnote_reference(self, tokens: Tokens, at: int, options: OptionsDict, env: Env) -> str:
        label = tokens[at].content
        if tokens[at].hidden or env.get("links"):  # not defined yet, or within a link
            return f"<sup>{label}</sup>"
        own = f' id="fnref-{env["scope"]}-{label}"' if _first_use(env, "reference", label) else ""
        return f'<sup><a href="#fn-{env["scope"]}-{label}"{own} aria-label="Footnote {label}">{label}</a></sup>'

    def footnote_open(self, tokens: Tokens, at: int, options: OptionsDict, env: Env) -> str:
        label = tokens[at].info
        own = f' id="fn-{env["scope"]}-{label}"' if _first_use(env, "definition", label) else ""
        return f'<p class="footnote"{own}><sup>{label}</sup> '

    def footnote_close(self, tokens: Tokens, at: int, options: OptionsDict, env: Env) -> str:
        label = tokens[at].info
        if ("reference", label) not in env["numbered"]:
            return "</p>\n"
        return f' <a href="#fnref-{env["scope"]}-{label}" aria-label="Back to footnote {label} in the text">↩</a></p>\n'


def _first_use(env: Env, kind: str, label: str) -> bool:
    """Return True once per footnote, since an id must be unique in a page."""
    if (kind, label) in env["numbered"]:
        return False
    env["numbered"].add((kind, label))
    return True


def _formula(token: Token, env: Env) -> str:
    """Return MathML, or the LaTeX unchanged if it cannot be rendered."""
    block = token.markup in ("\\[", "$$")
    key, budget = (token.content, block), env["budget"]
    if key not in env["formulas"] and budget.formulas >= len(token.content):
        budget.formulas -= len(token.content)
        env["formulas"][key] = formulas.mathml(token.content, block=block)
    closing = {"\\(": "\\)", "\\[": "\\]"}.get(token.markup, token.markup)
    source = escape(f"{token.markup}{token.content}{closing}")
    return env["formulas"].get(key) or f'<code class="tex">{source}</code>'


def _link(address: str, label: str) -> str:
    """Return a link; `label` must be escaped HTML."""
    return f'<a href="{escape(address)}" target="_blank">{label}</a>'


def _demoted(tag: str) -> str:
    return f"h{min(6, max(3, int(tag[1]) + 1))}"


def _linkified(text: str) -> str:
    out, done = [], 0
    for match in _ADDRESS.finditer(text):
        address = match[0].rstrip(_TRAILING_PUNCTUATION)
        if match[0][len(address) :].startswith(")") and "(" in address:
            address += ")"
        out += [escape(text[done : match.start()]), _link(address, escape(address))]
        done = match.start() + len(address)
    out.append(escape(text[done:]))
    return "".join(out)


MARKDOWN = MarkdownIt("commonmark", {"html": False, "maxNesting": MAX_NESTING}, renderer_cls=_Renderer).enable(
    ["table", "strikethrough"]
)
"""The parser and renderer; its output must go through `clean`."""
markdown_rules.install(MARKDOWN)


def environment(scope: str, budget: Budget) -> dict[str, Any]:
    """Return the state of one rendering. `scope` becomes part of footnote ids and must be unique in the page."""
    return {
        "scope": re.sub(r"[^A-Za-z0-9-]", "-", scope)[:60],
        "budget": budget,
        "steps": min(STEPS_PER_TEXT, budget.steps),
        "highlight": lambda code, language: highlight(code, language, budget),
        "formulas": {},
        "numbered": set(),
    }


def count_marks(text: str) -> int:
    """Return the number of characters that are Markdown syntax."""
    return sum(map(text.count, _MARKS))


def unrendered(text: str) -> str:
    """Return the escaped text in a `<pre>`."""
    return f"<pre>{escape(text)}</pre>"


def clean(html: str) -> str:
    """Return sanitised HTML with only the allowed elements and attributes."""
    return _CLEANER.clean(html).strip()


def render_markdown(text: str, budget: Budget | None = None, *, scope: str = "") -> SafeString:
    """Render Markdown as safe HTML: no styles, no scripts, nothing loaded from another host, and no ids but those of
    footnotes, which contain `scope`.

    `budget` bounds the cost of parsing, highlighting and formulas; several texts may share it. A text beyond the limits
    is shown unrendered."""
    if len(text) > MAX_CHARS or count_marks(text) > MAX_MARKS:
        html = unrendered(text)
    else:
        html = _rendered(text, budget or Budget(), scope)
    return mark_safe(html)  # noqa: S308 - escaped, or sanitised by nh3


def _rendered(text: str, budget: Budget, scope: str) -> str:
    env = environment(scope, budget)
    budget.steps -= env["steps"]
    try:
        html = MARKDOWN.render(text, env)
    except markdown_rules.TooManySteps:
        return unrendered(text)
    finally:
        budget.steps += max(0, env["steps"])  # what is left
    return clean(html)
