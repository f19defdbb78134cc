"""LaTeX in answers: what counts as a formula, and that no LaTeX produces active HTML"""

from html import unescape
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.chat import formulas
from gateway.chat.formulas import MAX_DEPTH, MAX_FORMULA_CHARS, MAX_TOTAL_CHARS, mathml
from gateway.chat.markdown import render_markdown
from tests.gateway.test_markdown import Seen, assert_harmless


def rendered_formulas(text: str) -> list[tuple[str | None, str | None]]:
    found = [attributes for tag, attributes in Seen(render_markdown(text)).elements if tag == "math"]
    return [(attributes["alttext"], attributes["display"]) for attributes in found]


@pytest.mark.parametrize(
    ("text", "latex", "display"),
    [
        (r"so \(a^2\) is", "a^2", "inline"),
        (r"so \[ a^2 \] is", "a^2", "block"),
        ("$$\na\n- b\n= c\n$$", "a\n- b\n= c", "block"),
        ("text\n\\[\nx_1\n\\]\nmore", "x_1", "block"),
        ("- item\n  $$x+y$$", "x+y", "block"),
        ("the $x$-axis", "x", "inline"),
        (r"$\alpha$ and", r"\alpha", "inline"),
        ("$a + b$.", "a + b", "inline"),
        ("| $x^2$ |\n|---|", "x^2", "inline"),
        ("> \\(y\\)", "y", "inline"),
    ],
)
def test_a_formula_becomes_mathml_with_its_latex_as_alttext(text: str, latex: str, display: str) -> None:
    assert (latex, display) in rendered_formulas(text)


@pytest.mark.parametrize(
    "text",
    [
        "It costs $5 and $10.",
        "It costs $5, or 6$ there.",
        "$HOME/$USER and ${X}",
        "between $5 and the rest$ of it",
        "US$5=A$7",
        r"\$x\$",
        "`$x$`",
        "```\n$$\nx\n$$\n```",
        r"\[no link\](https://a.example)",
        "$$\nnot closed\n\nhere",
        "a$b$c",
    ],
)
def test_amounts_of_money_and_variables_stay_text(text: str) -> None:
    assert "<math" not in render_markdown(text)


@pytest.mark.parametrize(
    "latex", [r"\frac{", "a_", "}{", r"\left( x", "a+" * MAX_FORMULA_CHARS, "{" * 60 + "a" + "}" * 60]
)
def test_invalid_latex_is_shown_as_written(latex: str) -> None:
    html = render_markdown(f"so \\({latex}\\) is")
    assert f'<code class="tex">\\({latex}\\)</code>' in unescape(html)


def test_a_long_inline_formula_gets_a_box_of_its_own() -> None:
    long = "+".join(f"x_{{{number}}}" for number in range(40))
    html = render_markdown(f"so \\({long}\\) and \\(x=1\\)")
    assert html.count('<span class="formula" tabindex="0" role="group" aria-label="Formula"><math') == 1
    assert html.count("<math") == 2


def test_the_nesting_depth_is_limited() -> None:
    assert mathml(r"\sqrt" * (MAX_DEPTH + 1) + "x", block=False) is None


def test_the_total_length_of_formulas_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    rendered = []
    monkeypatch.setattr(
        formulas, "mathml", lambda latex, *, block: rendered.append(latex) or f"<math>{len(latex)}</math>"
    )
    text = "\n\n".join(f"\\({number} {'x' * 500}\\)" for number in range(100))
    html = render_markdown(text)
    assert sum(map(len, rendered)) <= MAX_TOTAL_CHARS
    assert len(rendered) > MAX_TOTAL_CHARS // 600
    assert html.count("<code") == 100 - len(rendered)


def test_an_aligned_formula_has_rows_and_no_numbers() -> None:
    for name in ("aligned", "align", "align*", "split"):
        html = render_markdown(f"\\[\n\\begin{{{name}}} a &= b \\\\ c &= d \\end{{{name}}}\n\\]")
        assert html.count("<mtr>") == 2, name
        assert "(1)" not in html


def test_text_in_a_formula_is_escaped_and_links_and_styles_are_dropped() -> None:
    html = render_markdown(
        r"\(\text{<img src=x onerror=alert(1)>&lt;b&gt;}"
        r" \href{javascript:alert(1)}{x} \style{color:red}{y} \class{z}{w}\)"
    )
    assert [tag for tag, _ in Seen(html).elements if tag in {"img", "a", "b"}] == []
    assert "javascript" not in html.replace(r"\href{javascript", "")
    assert_harmless(html)


_PARTS = [r"\text", r"\frac", r"\href", r"\style", r"\class", r"\color", r"\sqrt", r"\left(", r"\right)"]
_PARTS += [r"\begin{matrix}", r"\end{matrix}", r"\\", "&lt;", "script", *"{}^_&<>\"'a1[] "]


@given(st.lists(st.sampled_from(_PARTS), max_size=20).map("".join))
def test_no_latex_produces_active_html(latex: str) -> None:
    assert_harmless(render_markdown(f"a \\({latex}\\) b\n\n$$\n{latex}\n$$"))


@given(st.text(max_size=60))
def test_any_text_as_latex_gives_balanced_elements_or_nothing(latex: str) -> None:
    class Balanced(HTMLParser):
        opened = 0

        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            assert tag in formulas.TAGS
            self.opened += 1

        def handle_endtag(self, tag: str) -> None:
            self.opened -= 1

    parser = Balanced()
    parser.feed(mathml(latex, block=True) or "")
    parser.close()
    assert parser.opened == 0
