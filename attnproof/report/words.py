"""Words, numbers and formulas of a record as HTML: indices, links, matrices, MathML."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any
from xml.etree import ElementTree as ET

from latex2mathml.converter import convert
from markupsafe import Markup, escape

from ..documents.evidence import WitnessRecord
from ..symbolic.givens import GREEK
from ..symbolic.latex import name_latex

_LETTERS = {**GREEK, "ell": "ℓ"}
_SIGNS = (("<=", "≤"), (">=", "≥"), ("!=", "≠"), (" -> ", " → "), ("``", ""))
# A lower index, of one letter or in braces, of one letter or of a name with a capital: x_i, QW_Q,
# A_ij, Att_α, f(x)_{ij}; so a_name stays a name.  An upper one of anything: ℝ^{n×d}, M^j, 10^−4.
_LOW = r"(?:(?P<base>(?<![A-Za-z_])(?:[A-Z][A-Za-z]*|\w))|(?<=[)\]}′\u0304]))_"
_INDEX = r"(?:\{[^{}]*\}|(?:[^\W_]|[ijkmn]{2})(?![A-Za-z0-9_]))"
_HIGH = r"(?<=[\w)\]}′'‖|])\^(?P<high>\{[^{}]*\}|\([^()]*\)|[−-]?\d+|\w)"
_BOTH = re.compile(rf"{_LOW}(?P<low>{_INDEX})(?:\^(?P<also>{_INDEX}))?|{_HIGH}")


def prose(text: str) -> Markup:
    """Return text in which u_i, W_Q^h, R_{n−m} and ℝ^{n×d} have real indices.

    >>> prose("x_i ∈ ℝ^{d}, i <= n, a_name")
    Markup('x<sub>i</sub> ∈ ℝ<sup>d</sup>, i ≤ n, a_name')
    """
    for sign, becomes in _SIGNS:
        text = text.replace(sign, becomes)
    text = re.sub(r"(?<![.\w])\.\.(?!\.)", "…", text)
    text = re.sub(r"(?<=[\w)\]}])ᵀ", "^{T}", text).replace("ᵀ", "T")
    return _indexed(text)


def _indexed(text: str) -> Markup:
    told, done = Markup(""), 0
    for found in _BOTH.finditer(text):
        told += escape(text[done : found.start()] + (found["base"] or ""))
        for name, tag in (("low", "sub"), ("also", "sup"), ("high", "sup")):
            if found[name]:
                told += Markup(f"<{tag}>{{}}</{tag}>").format(_indexed(_inner(found[name])))
        done = found.end()
    return told + escape(text[done:])


def _inner(index: str) -> str:
    return index[1:-1] if index[0] in "{(" else index


def paragraphs(text: str) -> list[Markup]:
    """Return text split at empty lines; other line ends become spaces."""
    return [prose(" ".join(part.split())) for part in re.split(r"\n\s*\n", text) if part.strip()]


def breakable(name: str) -> Markup:
    """Return a name from code that may break after a dot or an underscore.

    >>> breakable("nn.a_b<")
    Markup('nn.<wbr>a_<wbr>b&lt;')
    """
    return Markup(re.sub(r"(?<=[._])(?=\w)", "<wbr>", str(escape(name))))


def minus(text: str) -> str:
    """Replace a hyphen that stands for a minus by a minus sign."""
    return re.sub(r"(?<![\w)])-(?=\d)|(?<= )-(?= )", "−", text)


def greek(told: Iterable[str]) -> list[str]:
    """Return the lines, each once, with Greek letters for Greek names."""
    words = r"\b(" + "|".join(_LETTERS) + r")\b"
    return [re.sub(words, lambda m: _LETTERS[m.group()], a) for a in dict.fromkeys(told)]


def linked(text: str) -> Markup:
    """Return text in which web addresses are links."""
    parts = re.split(r"(https?://[^\s<>\"']+)", text)
    return Markup("").join(
        Markup('<a href="{0}">{0}</a>').format(part) if k % 2 else escape(part)
        for k, part in enumerate(parts)
    )


SPACE = "Ω"
"""Prefix of the names of probability spaces."""

_NUMBER = re.compile(r"-?\d+(/\d+)?|True|False")


def value_latex(text: str) -> str | None:
    r"""Return an exact value of a record as LaTeX; None if it is not made of numbers.

    >>> value_latex("[[0, 1/2]]"), value_latex("[1, 0]"), value_latex("b(x) = x²")
    ('\\begin{pmatrix}0 & \\frac{1}{2}\\end{pmatrix}', '(1, 0)', None)
    """
    try:
        value = json.loads(_NUMBER.sub(lambda m: f'"{m.group()}"', text))
    except json.JSONDecodeError:
        return None
    return _shown(value)


def _shown(value: Any) -> str:
    if isinstance(value, str):
        top, slash, bottom = value.removeprefix("-").partition("/")
        sign = "-" if value.startswith("-") else ""
        if slash:
            return rf"{sign}\frac{{{top}}}{{{bottom}}}"
        return {"True": r"\text{T}", "False": r"\text{F}"}.get(value, value)
    while len(value) == 1 and isinstance(value[0], list) and len(value[0]) == 1:
        value = value[0]
    if value and all(isinstance(row, list) and not _nested(row) for row in value):
        rows = r" \\ ".join(" & ".join(map(_shown, row)) for row in value)
        return rf"\begin{{pmatrix}}{rows}\end{{pmatrix}}"
    if len(value) == 1 and isinstance(value[0], list):
        return _shown(value[0])
    parts = ", ".join(map(_shown, value))
    return rf"\left({parts}\right)" if _nested(value) else f"({parts})"


def _nested(value: list[Any]) -> bool:
    return any(isinstance(part, list) for part in value)


def inputs(witness: WitnessRecord) -> list[Markup]:
    """Return sizes and values, one formula each; sizes of 1 are combined."""
    sizes = {name: n for name, n in witness.sizes.items() if not name.startswith(SPACE)}
    large = {name: n for name, n in sizes.items() if n != 1}
    found = [formula_html(f"{name_latex(name)} = {n}") for name, n in large.items()]
    for name, n in witness.sizes.items():
        if name.startswith(SPACE):
            found.append(formula_html(name_latex(name)) + f": {n} equally likely outcomes")
    if len(large) < len(sizes):
        found.append(escape("every other size 1" if large else "every size 1"))
    for name, value in witness.values.items():
        latex = value_latex(value)
        if latex is not None:
            found.append(formula_html(f"{name_latex(name)} = {latex}"))
        elif " = " in value:
            head, _, body = value.partition(" = ")
            arguments = head[head.index("(") :] if "(" in head else ""
            found.append(formula_html(f"{name_latex(name)}{arguments} =") + " " + escape(body))
        else:
            found.append(formula_html(f"{name_latex(name)} =") + " " + escape(value))
    return found


def conclusion(witness: WitnessRecord) -> str:
    """Return what the witness shows, if that is more than two different sides."""
    tail = witness.text.rpartition(": ")[2]
    return "" if tail.startswith(f"left {witness.left},") or tail == witness.text else tail


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
_SCRIPTS = ("msub", "msup", "msubsup")
_SYMBOLS = ("mi", "mn", "mfrac", "msqrt", "mroot")
_ROWS = ("math", "mrow", "mstyle", "mtd", "msqrt")
_CLOSING = (")", "]", "}", "|", "!")


class BadFormula(ValueError):
    """LaTeX that has no faithful MathML."""


def _balanced(latex: str) -> bool:
    """Whether every brace that opens a group is closed, in order."""
    depth = 0
    for brace in re.findall(r"(?<!\\)(?:\\\\)*([{}])", latex):
        depth += 1 if brace == "{" else -1
        if depth < 0:
            return False
    return depth == 0


def _opens(element: ET.Element) -> bool:
    """Whether a minus after it is a sign and not a difference."""
    return _tag(element) == "mspace" or (
        _tag(element) == "mo" and (element.text or "") not in _CLOSING
    )


@lru_cache(maxsize=4096)
def mathml(latex: str, display: bool = False, large: bool = False) -> str:
    r"""Return one ``<math>`` element, with the LaTeX as its alternative text.

    ``display`` puts it on a line of its own, ``large`` in a line but with fractions in full size.

    latex2mathml passes on what it does not know (``<mi>\unknown</mi>``) and does not escape text,
    so its output is parsed again, checked, and rewritten.  Raises :class:`BadFormula`.
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
        if tag in _ROWS:
            _space_names(element)
    root.set("alttext", latex)
    root.set("display", "block" if display else "inline")
    if large:
        root.set("displaystyle", "true")
    return ET.tostring(root, encoding="unicode")


def _tag(element: ET.Element) -> str:
    return element.tag.rpartition("}")[2]


def _base(element: ET.Element) -> ET.Element:
    """Return what powers and indices are attached to."""
    return element[0] if _tag(element) in _SCRIPTS and len(element) else element


def _is_name(element: ET.Element) -> bool:
    """Whether it is a name of several letters, such as sin."""
    text = element.text or ""
    return _tag(element) in ("mi", "mo") and len(text) > 1 and text.isalpha() and text != "mod"


def _space_names(row: ET.Element) -> None:
    """Put the thin space of TeX between a name and a symbol beside it: sin a, and 2 sin a."""
    found = [_base(child) for child in row]
    for place in range(len(found) - 1, 0, -1):
        both = found[place - 1 : place + 1]
        names = [_is_name(one) for one in both]
        if any(names) and all(
            named or _tag(one) in _SYMBOLS for named, one in zip(names, both, strict=True)
        ):
            row.insert(place, ET.Element("mspace", width="0.1667em"))


def _dress(element: ET.Element) -> None:
    """Add what browsers need and latex2mathml leaves out."""
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
    """Return the formula, or its LaTeX source with a note that it could not be set."""
    try:
        return Markup(mathml(latex, display, large))
    except BadFormula as error:
        return Markup(
            f'<span class="unset"><code>{html.escape(latex)}</code> '
            "<small>(shown as LaTeX source, because it could not be set: "
            f"{html.escape(str(error))})</small></span>"
        )
