"""The numbers of a witness, as a person writes them: matrices, vectors, fractions."""

from __future__ import annotations

import json
import re
from typing import Any

from markupsafe import Markup, escape

from ..evidence import WitnessRecord
from ..symbolic.latex import name_latex
from .formula import formula_html

SPACE = "Ω"
"""How the name of a probability space begins."""

_NUMBER = re.compile(r"-?\d+(/\d+)?|True|False")


def value_latex(text: str) -> str | None:
    r"""An exact value of a record as LaTeX; None if it is not made of numbers.

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
    """Sizes and values, one formula each; sizes of 1 are told together."""
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
    """What the witness shows, where that is more than two different sides."""
    tail = witness.text.rpartition(": ")[2]
    return "" if tail.startswith(f"left {witness.left},") or tail == witness.text else tail
