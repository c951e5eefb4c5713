"""Checks of payloads against the numbers beside them, and a record of operations on positions.

A rule states what an operation is in exact arithmetic.  If torch computes something else (integers
overflow, a cast truncates, a number taken for −inf becomes finite again), the payload is read off
the numbers anew, or refused, so that results hold for the code that actually ran.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ...numeric.residues.residue import common
from .session import HIDDEN, Field, Lost, NoMeaning, Number, Pair, Payload, Session

POSITION = 1
"""The source of integers that the code received as positions; it is 0 for all other numbers."""
SMOOTH = frozenset((
    "index", "index_select", "gather", "embedding", "take", "div", "true_divide", "reciprocal",
    "pow", "log", "log2", "log10", "log1p", "exp", "exp2", "expm1", "sqrt", "rsqrt", "mean", "sum",
    "cumsum", "mm", "bmm", "matmul", "dot", "mv", "tan", "tanh", "sigmoid", "sinh", "cosh", "atan",
    "scalar_tensor", "new_zeros", "new_ones", "new_full", "new_empty",
))  # fmt: skip
"""Operations that act in the same way at all positions; others may differ at positions not run."""
FINITENESS_TESTS = ("isnan", "isinf", "isneginf", "nan_to_num")
CLOSE = 2.0**-20


def whole(numbers: Tensor) -> Number:
    """Return whole numbers as a payload."""
    return Number(((numbers.long(), torch.ones(numbers.shape, dtype=torch.float64)),))


def as_numbers(numbers: Tensor) -> Number:
    """Return known numbers as a payload."""
    if numbers.is_floating_point():
        value = numbers.double()
        return Number(((torch.ones_like(value, dtype=torch.int64), value),))
    return whole(numbers)


def reconciled(found: Payload, numbers: Tensor, name: str) -> Payload:
    """Return the payload if it agrees with the numbers; else read it off them, or refuse.

    Raises ``NoMeaning``.
    """
    real = not numbers.dtype.is_complex
    if isinstance(found, Pair) and real:
        found = found.real  # a cast to real numbers keeps the real part
    if isinstance(found, Number):
        return _number(found, numbers)
    if isinstance(found, Lost):
        return found
    if real and not numbers.is_floating_point():
        raise NoMeaning(f"torch.{name} into {numbers.dtype} has no meaning in a finite field")
    if isinstance(found, Field):
        if found.top.shape != numbers.shape:
            told = f"{tuple(found.top.shape)} in the field and {tuple(numbers.shape)} in numbers"
            raise NoMeaning(f"torch.{name}: {told}")
        if not _above_hidden(found.top) and bool(
            ((found.top == -torch.inf) & (numbers > HIDDEN / 2)).any()
        ):
            raise NoMeaning(f"a number taken for −inf became finite again (torch.{name})")
    return found


def _above_hidden(top: Tensor) -> bool:
    """Whether no entry is −inf, by the least one; False if an entry is NaN."""
    return not top.numel() or float(top.amin()) > -torch.inf


def _number(found: Number, numbers: Tensor) -> Number:
    """Return known numbers; those of torch instead if they differ by more than rounding.

    Whole numbers must agree exactly.
    """
    if numbers.dtype.is_complex:
        return found
    n, f = found.terms[0]
    if common(tuple(n.shape), tuple(f.shape)) != tuple(numbers.shape):
        return as_numbers(numbers)
    parts = [n.double() * f for n, f in found.terms]
    value = parts[0]
    for part in parts[1:]:
        value = value + part
    if torch.equal(value, numbers.double()):
        return found
    size = torch.stack([part.abs() for part in parts]).sum(0)
    exact = found.whole or not numbers.is_floating_point()
    low = torch.finfo(numbers.dtype).eps if numbers.is_floating_point() else 0.0
    apart = (value - numbers.double()).abs() > (0.0 if exact else max(CLOSE, 8 * low)) * size
    return as_numbers(numbers) if bool(apart.any()) else found


def same_in_numbers(name: str, x: Any, carried: Any) -> None:
    """Raise ``NoMeaning`` if the code tests for NaN or inf, and field and numbers differ there."""
    if name not in FINITENESS_TESTS or not isinstance(carried, Field):
        return
    for look in (torch.isnan, torch.isinf):
        if not bool((look(carried.top) == look(x)).all()):
            raise NoMeaning(f"torch.{name}: other entries are not finite in the field")


def narrow(dtype: torch.dtype, most: int) -> bool:
    """Whether a dtype cannot represent every whole number up to ``most``."""
    if dtype.is_complex or dtype == torch.bool:
        return dtype == torch.bool
    if dtype.is_floating_point:
        return 2 / torch.finfo(dtype).eps < most
    return torch.iinfo(dtype).max < most


def record_choice(
    session: Session, name: str, carried: Any, results: Any, most: Sequence[int]
) -> None:
    """Record an operation on positions whose effect may differ at positions that did not run.

    ``most``: the sources of the inputs.
    """
    if POSITION not in most:
        return
    if name == "_to_copy" and isinstance(results, Tensor) and narrow(results.dtype, session.most):
        session.chosen.add(f"a cast to {results.dtype}")
    elif carried is None and name not in SMOOTH:
        told = {"_local_scalar_dense": "a number read out", "_to_copy": "a cast"}
        session.chosen.add(told.get(name, f"torch.{name}"))
