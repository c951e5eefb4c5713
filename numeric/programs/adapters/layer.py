"""Any map of tokens."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..subjects import Layer
from .code import Code
from .tokens_called import called, tokens_form

__all__ = ["fit"]


def fit(code: Code) -> Layer:
    """The code as a `Layer`: f(x) on tokens (B, T, E).  Raises ``DoesNotFit``."""
    form = tokens_form(code, keeps=False)
    return _subject(code.again(), replace(form))


def _subject(code: Code, form: Any) -> Layer:
    def make(**settings: Any) -> Layer:
        return _subject(code.again(**settings), form)

    axes = "(T, B, E)" if form.first else "(B, T, E)"
    return Layer(
        name=code.name, make=make, module=code.module, source=code.place, call=called(code, form),
        embed=form.embed,
        adapted=f"called as {code.name}({', '.join(['x'] * form.count)}); x is {axes}",
    )  # fmt: skip
