"""LaTeX formulas as MathML, which browsers show without a script. latex2mathml reads the LaTeX.

The package's output is not trusted: elements are copied one by one, known names and attributes only, and their text is
escaped here. `\\href`, `\\style` and `\\class` have no effect. The page's sanitiser runs on the result."""

from html import escape, unescape
from xml.etree.ElementTree import Element

from latex2mathml.converter import convert_to_element

MAX_FORMULA_CHARS = 1_000
"""A longer formula is shown as source."""
MAX_TOTAL_CHARS = 20_000
"""Rendered formula characters per text or per page: at worst 0.2 seconds of processor time."""
MAX_DEPTH = 40
"""Nesting levels of elements."""

TAGS = {"math", "menclose", "mfrac", "mi", "mn", "mo", "mover", "mpadded", "mphantom", "mroot", "mrow", "mspace"}
TAGS |= {"msqrt", "mstyle", "msub", "msubsup", "msup", "mtable", "mtd", "mtext", "mtr", "munder", "munderover"}
ATTRIBUTES = {"accent", "accentunder", "columnalign", "display", "displaystyle", "fence", "form", "largeop"}
ATTRIBUTES |= {"linethickness", "mathcolor", "mathvariant", "maxsize", "minsize", "movablelimits", "notation"}
ATTRIBUTES |= {"rowlines", "scriptlevel", "separator", "stretchy", "symmetric", "width"}
# Environments that the package lacks, or that it would number, starting from 1 in each formula.
_ENVIRONMENTS = {
    "{align}": "{align*}",
    "{aligned}": "{align*}",
    "{alignedat}": "{align*}",
    "{split}": "{align*}",
    "{equation}": "{equation*}",
    "{gather}": "{matrix}",
    "{gather*}": "{matrix}",
    "{gathered}": "{matrix}",
}


def mathml(latex: str, *, block: bool) -> str | None:
    """Return a formula as a `<math>` element whose `alttext` is the LaTeX, or None if it cannot be rendered.

    `block` selects display style. The caller must keep the total length within MAX_TOTAL_CHARS."""
    if len(latex) > MAX_FORMULA_CHARS:
        return None
    source = latex
    for environment, known in _ENVIRONMENTS.items():
        source = source.replace(environment, known)
    try:
        element = convert_to_element(source, display="block" if block else "inline")
        return _html(element, 0, f' alttext="{escape(latex)}"')
    except Exception:  # noqa: BLE001 - the package raises StopIteration, IndexError and others for LaTeX it cannot read
        return None


def _html(element: Element, depth: int, extra: str = "") -> str:
    if depth > MAX_DEPTH or element.tag not in TAGS:
        raise ValueError(element.tag)
    attributes = "".join(f' {name}="{escape(value)}"' for name, value in element.attrib.items() if name in ATTRIBUTES)
    # The package writes some characters as character references.
    text = escape(unescape(element.text or ""), quote=False)
    children = "".join(_html(child, depth + 1) for child in element)
    return f"<{element.tag}{attributes}{extra}>{text}{children}</{element.tag}>"
