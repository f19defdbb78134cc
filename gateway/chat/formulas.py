"""LaTeX formulas as MathML, which browsers show without a script. latex2mathml reads the LaTeX.

What the package returns is not trusted: its elements are copied one by one, with known names and attributes only, and
their text is escaped here. `\\href`, `\\style` and `\\class` have no effect. The sanitiser of the page comes after."""

from html import escape, unescape
from xml.etree.ElementTree import Element

from latex2mathml.converter import convert_to_element

LONGEST = 1_000
"""Characters of one formula that is rendered; a longer one is shown as it was written."""
MOST = 20_000
"""Characters of the formulas of one text, or of one page, that are rendered: 0.2 seconds of processor time at worst."""
DEEPEST = 40
"""Levels of elements inside each other."""

TAGS = {"math", "menclose", "mfrac", "mi", "mn", "mo", "mover", "mpadded", "mphantom", "mroot", "mrow", "mspace"}
TAGS |= {"msqrt", "mstyle", "msub", "msubsup", "msup", "mtable", "mtd", "mtext", "mtr", "munder", "munderover"}
ATTRIBUTES = {"accent", "accentunder", "columnalign", "display", "displaystyle", "fence", "form", "largeop"}
ATTRIBUTES |= {"linethickness", "mathcolor", "mathvariant", "maxsize", "minsize", "movablelimits", "notation"}
ATTRIBUTES |= {"rowlines", "scriptlevel", "separator", "stretchy", "symmetric", "width"}
# Environments that the package lacks, and those that it would number, beginning with 1 in each formula.
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
    """Return a formula as a `<math>` element whose `alttext` is the LaTeX; None if it cannot be rendered.

    `block` is a formula on a line of its own. The caller bounds the sum of the lengths with MOST."""
    if len(latex) > LONGEST:
        return None
    source = latex
    for environment, known in _ENVIRONMENTS.items():
        source = source.replace(environment, known)
    try:
        element = convert_to_element(source, display="block" if block else "inline")
        return _html(element, 0, f' alttext="{escape(latex)}"')
    except Exception:  # noqa: BLE001 - the package raises StopIteration, IndexError and others for LaTeX it cannot read
        return None


def _html(element: Element, depth: int, more: str = "") -> str:
    if depth > DEEPEST or element.tag not in TAGS:
        raise ValueError(element.tag)
    given = "".join(f' {name}="{escape(value)}"' for name, value in element.attrib.items() if name in ATTRIBUTES)
    # The package writes some characters as references.
    text = escape(unescape(element.text or ""), quote=False)
    inside = "".join(_html(child, depth + 1) for child in element)
    return f"<{element.tag}{given}{more}>{text}{inside}</{element.tag}>"
