"""Statements whose shapes do not fit: the line as it is written, and where its axes disagree."""

from __future__ import annotations

import ast
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from .evidence import Formula

if TYPE_CHECKING:
    from .symbolic.array import AxisMismatch
    from .symbolic.statement import Statement, Theorem


def givens(theorem: Theorem) -> Statement:
    """A statement with the givens alone; there are no conclusions."""
    from inspect import signature

    from .symbolic.statement import Statement

    return Statement({name: theorem.given[name] for name in signature(theorem.body).parameters}, {})


def written(error: AxisMismatch, path: Path) -> Formula:
    """The line of the theorem file in which the axes meet; it has no LaTeX.

    What is returned is told without ``return``, and a definition as it stands.
    """
    frames = traceback.extract_tb(error.__traceback__)
    lines = [f.lineno for f in frames if Path(f.filename).resolve() == path.resolve() and f.lineno]
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt) and not isinstance(node, ast.FunctionDef)
        and lines and node.lineno <= lines[-1] <= (node.end_lineno or node.lineno)
    ]  # fmt: skip
    if not found:
        return Formula(latex="", text="")
    inner: ast.AST = found[-1]
    if isinstance(inner, ast.Return) and inner.value is not None:
        inner = inner.value
    return Formula(latex="", text=ast.unparse(inner))
