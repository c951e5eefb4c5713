"""Code that makes a mask: f(T, S), f(T), f(x)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..subjects import Mask
from .code import Code, DoesNotFit
from .counts import Counts, S, T, called_with, rows_of, ways

__all__ = ["fit"]


def fit(code: Code) -> Mask:
    """The code as a `Mask`: (.., T, S) truth values, or numbers to add.  Raises ``DoesNotFit``."""
    failed = ""
    for how in ways(code):
        try:
            value = _read(called_with(code.again(), how, 1)(T, S))
            queries = S if how.square else T
            if value.shape[-2:] != (queries, S):
                raise DoesNotFit(f"({queries}, {S}) was wanted, {tuple(value.shape)} came")
            _read(called_with(code.again(), how, 1)(S, S))
        except Exception as error:  # noqa: BLE001 (the code may raise anything)
            failed = failed or f"called with ({how.told}): {' '.join(str(error).split())[:200]}"
            continue
        return _subject(code.again(), how)
    raise DoesNotFit(failed or "no parameter of it is a count of queries or keys")


def _read(value: Any) -> Tensor:
    """Truth values, or numbers to add; numbers that are all 0 and 1 are truth values.

    A mask of zeros alone hides nothing as numbers, and is left as it is.
    """
    if not isinstance(value, Tensor) or value.dim() < 2:
        raise DoesNotFit(f"a tensor (T, S) was wanted, and {type(value).__name__} came back")
    if value.dtype != torch.bool and bool(((value == 0) | (value == 1)).all()):
        return value.bool() if bool(value.any()) else value
    return value


def _subject(code: Code, how: Counts) -> Mask:
    call = called_with(code, how, 1)

    def mask(queries: int, keys: int) -> Tensor:
        value = _read(call(queries, keys))
        return rows_of(value, queries) if how.square else value

    def make(**settings: Any) -> Mask:
        return _subject(code.again(**settings), how)

    square = _read(called_with(code.again(), how, 1)(S, S))
    means = "visible"
    if square.dtype == torch.bool and not bool(square.diagonal(dim1=-2, dim2=-1).any()):
        means = "hidden"
    told = "; it knows one count, so the last rows are taken for fewer queries" * how.square
    said = f"; True means {means}, as no query hides itself" if square.dtype == torch.bool else ""
    return Mask(
        name=code.name, make=make, module=code.module, source=code.place, mask=mask,
        true_means=means, adapted=f"called as {code.name}({how.told}){told}{said}",
    )  # fmt: skip
