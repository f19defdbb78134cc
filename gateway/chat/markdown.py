"""What a model or a person wrote, as HTML that is safe to put into a page.
Raw HTML is text, remote images become links, links leave in a new tab and tell nothing. The sanitiser comes last."""

import re
from collections.abc import MutableMapping, Sequence
from html import escape
from typing import Any

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import OptionsDict

from gateway.chat.highlight import Budget, highlight

_TAGS = "a blockquote br code div em h3 h4 h5 h6 hr li ol p pre s span strong table tbody td th thead tr ul"
_CLEANER = nh3.Cleaner(
    tags=set(_TAGS.split()),
    attributes={"a": {"href", "title"}, "ol": {"start"}, "pre": {"tabindex", "aria-label"}},
    tag_attribute_values={
        "div": {"class": {"code", "code__bar", "table"}},
        "span": {"class": {"k", "s", "c", "n"}},
        "td": {"align": {"left", "right", "center"}},
        "th": {"align": {"left", "right", "center"}},
    },
    set_tag_attribute_values={"a": {"target": "_blank"}},
    link_rel="noopener nofollow",
    url_schemes={"http", "https", "mailto"},
    url_relative="deny",
)
_LANGUAGE = re.compile(r"[A-Za-z0-9+#._-]{1,24}")
# A bare address, as models write them; what closes a sentence does not belong to it.
_ADDRESS = re.compile(r"https?://[^\s<>\"'`\\|^{}]{1,2000}")
_AFTER_ADDRESS = ".,;:!?)]*_~"


LONGEST = 100_000
"""Characters of a text that is rendered; a longer one is shown as it was written."""
MOST_MARKS = 20_000
"""Characters with a meaning in Markdown in a text that is rendered. Each may become an element: it is their number, not
the length, that makes a rendering slow."""
_MARKS = "*_[]`<|~&\\\n"


def _fence(tokens: Sequence[Token], at: int, env: MutableMapping[str, Any]) -> str:
    """Return a block of code with its language above it; the page's script adds the copy button."""
    token = tokens[at]
    match = _LANGUAGE.match(token.info.strip())
    language = match[0] if match else ""
    name = escape(language or "text")
    code = highlight(token.content, language, env["colours"])
    return (
        f'<div class="code"><div class="code__bar"><span>{name}</span></div>'
        f'<pre tabindex="0" aria-label="Code, {name}"><code>{code}</code></pre></div>\n'
    )


class _Renderer(RendererHTML):
    """Headings below the page's own; images as links; code in a box."""

    def fence(self, tokens: Sequence[Token], at: int, options: OptionsDict, env: MutableMapping[str, Any]) -> str:
        return _fence(tokens, at, env)

    def code_block(self, tokens: Sequence[Token], at: int, options: OptionsDict, env: MutableMapping[str, Any]) -> str:
        return _fence(tokens, at, env)

    def image(self, tokens: Sequence[Token], at: int, options: OptionsDict, env: MutableMapping[str, Any]) -> str:
        # Loading it would tell the other host who reads this, and could carry out what was said.
        token = tokens[at]
        label = escape(self.renderInlineAsText(token.children or [], options, env) or "image")
        source = str(token.attrGet("src") or "")
        if not source.startswith(("https://", "http://")):
            return label
        return f'<a href="{escape(source)}">{label}</a>'

    def heading_open(
        self, tokens: Sequence[Token], at: int, options: OptionsDict, env: MutableMapping[str, Any]
    ) -> str:
        return f"<{_lowered(tokens[at].tag)}>"

    def heading_close(
        self, tokens: Sequence[Token], at: int, options: OptionsDict, env: MutableMapping[str, Any]
    ) -> str:
        return f"</{_lowered(tokens[at].tag)}>\n"

    def table_open(self, tokens: Sequence[Token], at: int, options: OptionsDict, env: MutableMapping[str, Any]) -> str:
        return '<div class="table"><table>\n'

    def table_close(self, tokens: Sequence[Token], at: int, options: OptionsDict, env: MutableMapping[str, Any]) -> str:
        return "</table></div>\n"

    def text(self, tokens: Sequence[Token], at: int, options: OptionsDict, env: MutableMapping[str, Any]) -> str:
        content = tokens[at].content
        return escape(content) if env.get("links") else _with_addresses(content)

    def link_open(self, tokens: Sequence[Token], at: int, options: OptionsDict, env: MutableMapping[str, Any]) -> str:
        env["links"] = env.get("links", 0) + 1
        return self.renderToken(tokens, at, options, env)

    def link_close(self, tokens: Sequence[Token], at: int, options: OptionsDict, env: MutableMapping[str, Any]) -> str:
        env["links"] -= 1
        return self.renderToken(tokens, at, options, env)

    def th_open(self, tokens: Sequence[Token], at: int, options: OptionsDict, env: MutableMapping[str, Any]) -> str:
        return _cell(tokens[at])

    def td_open(self, tokens: Sequence[Token], at: int, options: OptionsDict, env: MutableMapping[str, Any]) -> str:
        return _cell(tokens[at])


def _lowered(tag: str) -> str:
    return f"h{min(6, max(3, int(tag[1]) + 1))}"


def _cell(token: Token) -> str:
    # The parser says alignment as a style, which the page's policy refuses.
    style = str(token.attrGet("style") or "")
    side = style.removeprefix("text-align:") if style.startswith("text-align:") else ""
    return f'<{token.tag} align="{escape(side)}">' if side else f"<{token.tag}>"


def _with_addresses(text: str) -> str:
    out, done = [], 0
    for match in _ADDRESS.finditer(text):
        address = match[0].rstrip(_AFTER_ADDRESS)
        if match[0][len(address) :].startswith(")") and "(" in address:
            address += ")"
        out += [escape(text[done : match.start()]), f'<a href="{escape(address)}">{escape(address)}</a>']
        done = match.start() + len(address)
    out.append(escape(text[done:]))
    return "".join(out)


_MARKDOWN = MarkdownIt("commonmark", {"html": False}, renderer_cls=_Renderer).enable(["table", "strikethrough"])


def render_markdown(text: str, colours: Budget | None = None) -> str:
    """Safe HTML of Markdown: block elements without styles, scripts, ids or anything that loads from another host.

    `colours` is the time that the colours of code may take, where several texts share it. A text above the bounds is
    shown as it was written, escaped."""
    if len(text) > LONGEST or sum(map(text.count, _MARKS)) > MOST_MARKS:
        return f"<pre>{escape(text)}</pre>"
    return _CLEANER.clean(_MARKDOWN.render(text, {"colours": colours or Budget()})).strip()
