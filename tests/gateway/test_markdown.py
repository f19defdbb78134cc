"""Markdown from models and people: how it is rendered, and that none of it becomes active content"""

import re
from html import escape, unescape
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.chat import formulas
from gateway.chat.highlight import LEXERS, MAX_CODE_CHARS, Budget, highlight
from gateway.chat.markdown import MAX_CHARS, MAX_MARKS, render_markdown

# The settings of the last run of bench/highlighting.py (bench/RESULTS.md). Run it again for a new lexer or longer code.
MEASURED_LENGTH = 10_000
_LEXERS = (
    "bash c# clojure css dart diff docker elixir erlang go graphql haskell html javascript json jsx julia kotlin lua "
    "nginx php postgresql powershell properties protobuf python r rust scss sql swift toml tsx typescript xml yaml zig"
)
MEASURED = frozenset(_LEXERS.split())
HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg><a xlink:href='javascript:alert(1)'>x</a></svg>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](data:text/html,<script>alert(1)</script>)",
    "[x](vbscript:x)",
    "<javascript:alert(1)>",
    '[x](https://a.example "onmouseover=alert(1)")',
    '[x](https://a.example/"onmouseover="alert(1))',
    "![x](javascript:alert(1))",
    "![a](data:image/svg+xml;base64,PHN2Zy8+)",
    '```"><script>alert(1)</script>\nx\n```',
    "```js onload=alert(1)\n</code></pre><script>alert(1)</script>\n```",
    '|a|\n|:-:|\n|<b style="x" onclick="y">c</b>|',
    "https://a.example/<script>alert(1)</script>",
    'https://a.example/"onclick="x',
    "<style>body{display:none}</style>",
    "<iframe src=https://a.example></iframe>",
    "<!-- --><base href=https://a.example>",
    r"\(\text{<img src=x onerror=alert(1)>}\)",
    r"\(\href{javascript:alert(1)}{x} \style{position:fixed}{y} \class{code}{z}\)",
    r"$$\text{</math><script>alert(1)</script>}$$",
    r"\[\mathbb{<style>*{}</style>} \color{red;}{x} \&lt;b&gt;\]",
    "x[^1]\n\n[^1]: <script>alert(1)</script> [a](#top)",
    "[x](#fn-other-1)",
    "- [x] <input type=text onfocus=alert(1) autofocus>",
]
PIECES = [
    "`",
    "*",
    "\n\n",
    "> ",
    "- ",
    "| a |\n|-|\n",
    "](",
    "text",
    "$",
    "$$",
    "\\(",
    "\\)",
    "\\[\n",
    "\\]",
    "[^1]",
    "[^1]: ",
    "<sub>",
    "</sub>",
    "<u>",
    "<br>",
]


class Seen(HTMLParser):
    """Collects the elements and attributes of a fragment."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))


HARMLESS = {
    "a": {"href", "title", "rel", "target", "id", "aria-label"},
    "ol": {"start", "class"},
    "pre": {"tabindex", "aria-label"},
    "code": {"class"},
    "div": {"class", "tabindex", "role", "aria-label"},
    "input": {"type", "disabled", "checked", "aria-label"},
    "li": {"class"},
    "math": {"display", "alttext"},
    "p": {"class", "id"},
    "span": {"class", "tabindex", "role", "aria-label"},
    "td": {"align", "class"},
    "th": {"align", "class"},
    **{tag: set(formulas.ATTRIBUTES) for tag in formulas.TAGS - {"math"}},
}
LOADING = {"img", "script", "style", "iframe", "object", "embed", "link", "base", "svg", "video", "audio", "form"}


def assert_harmless(html: str) -> None:
    for tag, attributes in Seen(html).elements:
        assert tag not in LOADING, html
        assert set(attributes) <= HARMLESS.get(tag, set()), html
        assert (attributes.get("id") or "fn-").startswith(("fn-", "fnref-")), html
        if tag == "input":
            assert (attributes["type"], "disabled" in attributes) == ("checkbox", True), html
        if tag == "a":
            assert re.match(r"(https?|mailto):|#fn(ref)?-", attributes.get("href") or "https:"), html
            elsewhere = not (attributes.get("href") or "#").startswith("#")
            assert attributes["rel"] == "noopener nofollow", html
            assert attributes.get("target") == "_blank" or not elsewhere, html


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_input_is_rendered_harmless(text: str) -> None:
    assert_harmless(render_markdown(text))


@given(st.lists(st.sampled_from([*HOSTILE, *PIECES]), max_size=6))
def test_combinations_of_hostile_pieces_are_rendered_harmless(pieces: list[str]) -> None:
    assert_harmless(render_markdown("".join(pieces)))


@given(st.text(max_size=300))
def test_any_text_renders_to_harmless_html(text: str) -> None:
    assert_harmless(render_markdown(text))


def test_raw_html_is_shown_as_text() -> None:
    assert render_markdown("a <b>bold</b> claim") == "<p>a &lt;b&gt;bold&lt;/b&gt; claim</p>"


def test_tags_for_what_markdown_cannot_write_are_rendered() -> None:
    assert render_markdown("H<sub>2</sub>O and x<SUP>**2**</SUP>") == (
        "<p>H<sub>2</sub>O and x<sup><strong>2</strong></sup></p>"
    )
    assert "<td>one<br>two<br>three</td>" in render_markdown("|a|\n|-|\n|one<br>two<BR />three|").replace("\n", "")
    assert render_markdown("<kbd>Ctrl</kbd>+<kbd>C</kbd>") == "<p><kbd>Ctrl</kbd>+<kbd>C</kbd></p>"
    assert render_markdown("<mark>a <u>b</u></mark>") == "<p><mark>a <u>b</u></mark></p>"
    assert render_markdown("`<br>` \\<br>") == "<p><code>&lt;br&gt;</code> &lt;br&gt;</p>"


@pytest.mark.parametrize(
    "text", ["a <sub>b", "a </sub> b", "<sub>a\n\nb</sub>", '<sub class="x">a</sub>', "<sub></sub>"]
)
def test_such_a_tag_without_its_end_or_with_attributes_is_shown_as_text(text: str) -> None:
    assert "<sub" not in render_markdown(text)
    assert "sub" in render_markdown(text)


def test_marks_do_not_reach_out_of_a_tag() -> None:
    assert render_markdown("**a <sub>b** c</sub>") == "<p>**a <sub>b** c</sub></p>"


def test_a_line_break_stays_one() -> None:
    assert render_markdown("Best regards,\nAlice\n\nand  \nmore").replace("\n", "") == (
        "<p>Best regards,<br>Alice</p><p>and<br>more</p>"
    )


def test_a_list_with_long_numbers_says_so() -> None:
    assert "<ol>" in render_markdown("1. a\n2. b")
    assert '<ol start="7">' in render_markdown("7. a\n2. b")
    assert '<ol start="98" class="digits-3">' in render_markdown("98. a\n1. b\n1. c")
    assert '<ol start="1986" class="digits-4">' in render_markdown("1986. A great year.")
    assert '<ol start="123456789" class="digits-5">' in render_markdown("123456789. a")


def test_a_remote_image_becomes_a_link_to_it() -> None:
    html = render_markdown("![the plan](https://evil.example/p.png?said=secret)")
    assert [tag for tag, _ in Seen(html).elements] == ["p", "a"]
    assert 'href="https://evil.example/p.png?said=secret"' in html
    assert ">the plan</a>" in html


def test_an_image_with_a_data_url_becomes_its_alt_text() -> None:
    assert render_markdown("![a cat](data:image/png;base64,AAAA)") == "<p>a cat</p>"


def test_a_relative_link_loses_its_href() -> None:
    assert "href" not in render_markdown("[out](/logout/)")


def test_a_bare_url_becomes_a_link_without_the_following_punctuation() -> None:
    html = render_markdown("See https://a.example/b_(c) and (https://d.example/e).")
    assert [attributes["href"] for tag, attributes in Seen(html).elements if tag == "a"] == [
        "https://a.example/b_(c)",
        "https://d.example/e",
    ]
    assert html.endswith("</a>).</p>")


def test_a_url_inside_a_link_becomes_no_second_link() -> None:
    html = render_markdown("[https://a.example **is** here](https://b.example) then https://c.example")
    assert [attributes["href"] for tag, attributes in Seen(html).elements if tag == "a"] == [
        "https://b.example",
        "https://c.example",
    ]


def test_code_shows_its_language_and_can_be_scrolled_by_keyboard() -> None:
    html = render_markdown("```bash\nset -e # stop\n```")
    assert '<div class="code__bar"><span>bash</span></div>' in html
    assert '<pre tabindex="0" aria-label="Code, bash">' in html
    assert 'set -e <span class="c"># stop' in html


def test_code_without_a_language_is_labelled_text() -> None:
    assert "<span>text</span>" in render_markdown("    indented")


def test_heading_levels_start_below_those_of_the_page() -> None:
    assert [tag for tag, _ in Seen(render_markdown("# a\n\n## b\n\n### c\n\n###### d")).elements] == [
        "h3",
        "h3",
        "h4",
        "h6",
    ]


def test_table_alignment_uses_no_inline_style() -> None:
    html = render_markdown("| a | b |\n|:--|--:|\n| 1 | 2 |")
    assert '<th align="left">a</th>' in html
    assert '<td align="right">2</td>' in html
    assert "style" not in html


def test_a_column_of_sentences_says_that_it_needs_room() -> None:
    html = render_markdown("| a | b |\n|--|--:|\n| 1 | " + "words " * 10 + "|")
    assert "<td>1</td>" in html
    assert '<td align="right" class="long">words' in html


def test_many_links_in_one_line_are_rendered() -> None:
    html = render_markdown("[a](https://a.example) *b* " * 2000)
    assert html.count("<a ") == 2000


@pytest.mark.parametrize("text", ["[" * (MAX_MARKS + 1), "x" * (MAX_CHARS + 1), "|\n" * MAX_MARKS, "> " * MAX_CHARS])
def test_a_text_over_the_limits_is_shown_as_written(text: str) -> None:
    assert render_markdown(text) == f"<pre>{escape(text)}</pre>".strip()


NESTED = "> " * 17 + "a\n"
TOO_SLOW = [
    NESTED + "b\n" * 15_000,  # each level looks at each line again
    "|".join("a" * 50) + "\n" + "|".join("-" * 50) + "\n" + "a\n" * 15_000,  # each row gets fifty cells
]


@pytest.mark.parametrize("text", [*TOO_SLOW, "- " * 40 + "a\nb"])
def test_a_text_that_takes_too_many_steps_or_nests_too_deep_is_shown_as_written(text: str) -> None:
    assert render_markdown(text) == f"<pre>{escape(text)}</pre>".strip()


def test_deep_quotations_and_lists_are_rendered() -> None:
    assert render_markdown("> " * 50 + "a\n" + "b\n" * 200).count("<blockquote>") == 50
    assert render_markdown("".join("  " * level + "- a\n" for level in range(25))).count("<ul>") == 25


def test_the_texts_of_a_page_share_one_budget_of_steps() -> None:
    budget = Budget()
    text = "b\n" * 10_000
    shown = [render_markdown(text, budget) for _ in range(6)]
    assert shown[0].startswith("<p>")
    assert shown[-1] == f"<pre>{text}</pre>"


def test_a_text_that_nests_too_deep_costs_other_texts_nothing() -> None:
    budget = Budget()
    for _ in range(5):
        render_markdown("- " * 40, budget)
    assert render_markdown("Some **bold**", budget) == "<p>Some <strong>bold</strong></p>"


def test_code_over_the_limits_is_not_highlighted() -> None:
    assert "<span" not in highlight("def f(): pass\n" * (MAX_CODE_CHARS // 14 + 1), "python")
    code = "def f(): pass\n" * 100
    partly = highlight(code, "python", Budget(1e-9))  # the budget ends at the first check of the clock
    assert partly.count("<span") <= 1
    assert unescape(re.sub("<[^>]*>", "", partly)) == code


def test_the_blocks_of_an_answer_share_one_highlighting_budget() -> None:
    budget = Budget(1e-9)
    highlight("def f(): pass", "python", budget)
    assert highlight("def f(): pass", "python", budget) == "def f(): pass"


def test_only_benchmarked_lexers_and_lengths_are_highlighted() -> None:
    assert MEASURED_LENGTH == MAX_CODE_CHARS
    assert set(LEXERS.values()) == MEASURED


@pytest.mark.parametrize("language", sorted(set(LEXERS.values()) & set(LEXERS)))
def test_highlighting_text_that_causes_backtracking_keeps_every_character(language: str) -> None:
    for bait in ('\\"', '"', "/*", "${", "<a ", "a ", "  \n", "\\"):
        code = bait * (1_000 // len(bait))
        assert unescape(re.sub("<[^>]*>", "", highlight(code, language, Budget(0.005)))) == code


@given(st.text(max_size=200), st.sampled_from(["python", "bash", "js", "sql", "go", "yaml", "json", "unknown", ""]))
def test_highlighting_keeps_every_character(code: str, language: str) -> None:
    class Text(HTMLParser):
        text = ""

        def handle_data(self, data: str) -> None:
            self.text += data

    parser = Text()
    parser.feed(highlight(code.replace("\r", "").replace("\0", ""), language))
    parser.close()
    assert parser.text == code.replace("\r", "").replace("\0", "")


@pytest.mark.parametrize(
    ("language", "code", "expected"),
    [
        ("python", "def f(): return 'a' # b", {("k", "def"), ("k", "return"), ("s", "'a'"), ("c", "# b")}),
        ("js", "const x = 4 // four", {("k", "const"), ("n", "4"), ("c", "// four")}),
        ("java", "public int x = 4; // four", {("k", "public"), ("k", "int"), ("n", "4"), ("c", "// four")}),
        ("sql", "SELECT 1 -- one", {("k", "SELECT"), ("n", "1"), ("c", "-- one")}),
        ("json", '{"a": [true, 1.5]}', {("k", '"a"'), ("k", "true"), ("n", "1.5")}),
        ("diff", "@@ -1 +1 @@\n-a\n+b\n", {("c", "@@ -1 +1 @@"), ("d", "-a"), ("i", "+b")}),
        ("bash", "if [ 'x' ]; fi # end", {("k", "if"), ("s", "'x'"), ("k", "fi"), ("c", "# end")}),
    ],
)
def test_highlighting_recognises_tokens(language: str, code: str, expected: set[tuple[str, str]]) -> None:
    found = re.findall(r'<span class="(\w)">(.*?)</span>', highlight(code, language))
    assert {(kind, text.replace("&#x27;", "'").replace("&quot;", '"')) for kind, text in found} == expected
