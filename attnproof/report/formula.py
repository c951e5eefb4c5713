"""From LaTeX to MathML that a browser draws well, and that can never break a page."""

from __future__ import annotations

import re
from functools import lru_cache
from html import escape
from xml.etree import ElementTree as ET

from latex2mathml.converter import convert
from markupsafe import Markup

_SPACE = "http://www.w3.org/1998/Math/MathML"
_TAGS = frozenset((
    "math", "menclose", "mfrac", "mi", "mn", "mo", "mover", "mpadded", "mphantom", "mroot", "mrow",
    "ms", "mspace", "msqrt", "mstyle", "msub", "msubsup", "msup", "mtable", "mtd", "mtext", "mtr",
    "munder", "munderover",
))  # fmt: skip
_ATTRIBUTES = frozenset((
    "columnalign", "columnspacing", "display", "displaystyle", "fence", "form", "linethickness",
    "lspace", "mathvariant", "maxsize", "minsize", "rowspacing", "rspace", "scriptlevel",
    "stretchy", "width",
))  # fmt: skip
_BIG = ("∑", "∏")
_CLOSING = (")", "]", "}", "|", "!")


class BadFormula(ValueError):
    """LaTeX that has no faithful MathML."""


def _balanced(latex: str) -> bool:
    """Whether every brace that opens a group is closed, and in order."""
    depth = 0
    for brace in re.findall(r"(?<!\\)(?:\\\\)*([{}])", latex):
        depth += 1 if brace == "{" else -1
        if depth < 0:
            return False
    return depth == 0


def _opens(element: ET.Element) -> bool:
    """Whether a minus after it is a sign and not a difference."""
    name = element.tag.rpartition("}")[2]
    return name == "mspace" or (name == "mo" and (element.text or "") not in _CLOSING)


@lru_cache(maxsize=4096)
def mathml(latex: str, display: bool = False, large: bool = False) -> str:
    r"""One ``<math>`` element, with the LaTeX as its alternative text.

    ``display`` sets it on a line of its own, ``large`` in a line but with fractions in full size.

    latex2mathml passes on what it does not know (``<mi>\unknown</mi>``) and does not escape
    text, so its answer is parsed again, checked, and written anew.  Raises :class:`BadFormula`.
    """
    if not _balanced(latex):
        raise BadFormula("a brace is not closed")
    try:
        root = ET.fromstring(convert(latex, display="block" if display else "inline"))
    except Exception as error:
        raise BadFormula(f"{type(error).__name__}: {error}") from error
    for element in root.iter():
        tag = element.tag.removeprefix(f"{{{_SPACE}}}")
        if tag not in _TAGS:
            raise BadFormula(f"<{tag}> is not mathematics")
        element.tag = tag
        if not element.attrib.keys() <= _ATTRIBUTES:
            raise BadFormula(f"<{tag} {' '.join(element.attrib)}> is not mathematics")
        if "\\" in (element.text or "") or "&" in (element.text or ""):
            raise BadFormula(f"{element.text} was not understood")
        _dress(element)
    root.set("alttext", latex)
    root.set("display", "block" if display else "inline")
    if large:
        root.set("displaystyle", "true")
    return ET.tostring(root, encoding="unicode")


def _dress(element: ET.Element) -> None:
    """What browsers need and latex2mathml leaves out."""
    children = list(element)
    before = None
    for child in children:
        if child.text == "−" and (before is None or _opens(before)):
            child.attrib.update(form="prefix", lspace="0", rspace="0")
        before = child
    tag, text = element.tag, element.text or ""
    align = element.get("columnalign", "")
    if tag == "mtd" and align in ("left", "right", "center"):
        element.set("class", align)
    if tag == "mtable" and "displaystyle" in element.attrib:
        element.set("class", "aligned")
    for name in ("rowspacing", "columnspacing"):
        element.attrib.pop(name, None)
    if tag == "mo" and text in ("∞", "…"):
        element.tag = "mi"
    if tag == "mo" and text == "mod":
        element.attrib.update(lspace="0.3em", rspace="0.3em")
    elif tag == "mo" and text.isalpha():
        element.tag = "mi"  # softmax is a name, and a name has no space of its own
        element.attrib.clear()
        if len(text) == 1:
            element.set("mathvariant", "normal")
    if tag in ("msub", "msubsup") and children and children[0].text in _BIG:
        element.tag = "munder" if tag == "msub" else "munderover"
    if tag == "mi" and text == ":":
        element.tag = "mo"
        element.attrib.update(lspace="0", rspace="0")


def formula_html(latex: str, display: bool = False, large: bool = False) -> Markup:
    """The formula, or its LaTeX source with a word that says so."""
    try:
        return Markup(mathml(latex, display, large))
    except BadFormula as error:
        return Markup(
            f'<span class="unset"><code>{escape(latex)}</code> '
            f"<small>(shown as LaTeX source, because it could not be set: {escape(str(error))})"
            "</small></span>"
        )
