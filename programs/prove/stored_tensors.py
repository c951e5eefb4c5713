"""Tensors stored in a graph: each is a constant, a formula, or a table of arbitrary numbers."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import torch
from torch import Tensor, nn
from torch.export.graph_signature import InputKind
from torch.fx import Node

from attnproof.symbolic.array import as_array
from attnproof.symbolic.givens import Given, boolean, real

from .operations.reading import NoTerm
from .reached_arrays import NotTraced
from .tables import Pattern, pattern_of

LIFTED_PREFIXES = ("lifted_tensor_", "_tensor_constant")  # names that torch.export gives
WIDE_INTEGERS = (torch.int32, torch.int64)  # integers taken not to wrap around


def holder_of(target: str, value: Tensor, kind: InputKind) -> str:
    """Describe what holds a tensor of a graph from call to call; a list entry has no name."""
    if kind == InputKind.BUFFER:
        return f"the buffer {target}"
    if kind != InputKind.CONSTANT_TENSOR:
        return ""
    if not target.rpartition(".")[2].startswith(LIFTED_PREFIXES):
        return f"the tensor {target}"
    return f"a tensor {tuple(value.shape)} that the code holds"


def table_role(
    target: str, value: Tensor, taken: Collection[str], held: str = ""
) -> tuple[tuple[str, Any], Given | None]:
    """Return the role of a stored tensor in the term: a recognised constant, or any numbers.

    ``taken`` are names already in use: ``a.b`` and ``a_b`` are two tables.  ``held``: what holds
    the tensor from call to call, and may hold other numbers later.
    """
    if not isinstance(value, Tensor):
        return ("constant", NoTerm(target, value)), None
    if value.is_floating_point() and not isinstance(value, nn.Parameter) and _is_undefined(value):
        return ("constant", NoTerm(target, value)), None  # its format may be all that is read
    pattern = pattern_of(value, target, held)
    if pattern is not None:
        return ("pattern", pattern), None
    name = _free_name(target, taken)
    if value.dtype == torch.bool and value.ndim:
        return ("table", name), boolean(*value.shape)
    literal = not held and not isinstance(value, nn.Parameter)
    if literal and not value.ndim and (value.dtype.is_floating_point or value.dtype == torch.bool):
        return ("constant", value.item()), None  # a literal in the code
    if value.dtype.is_floating_point or (value.dtype in WIDE_INTEGERS and value.ndim):
        return ("table", name), real(*value.shape, says=f"{target}, any real numbers")
    number = value.ndim == 0 and value.dtype != torch.bool and not value.is_complex()
    if number and held:
        whole = as_array(int(value))
        told = f"{held} keeps its value, {whole!r}"
        return ("pattern", Pattern(whole, lambda _: whole, told)), None
    return ("constant", as_array(int(value)) if number else NoTerm(target, value)), None


def _is_undefined(value: Tensor) -> bool:
    """Whether every entry is NaN, or every entry +∞, which no term is."""
    return bool(value.numel()) and bool(value.isnan().all() or (value == float("inf")).all())


def _free_name(target: str, taken: Collection[str]) -> str:
    name = "".join(c if c.isalnum() else "_" for c in target)
    while name in taken:
        name = f"{name}_"
    return name


def enter_parts(
    target: str, value: Tensor, tables: dict[str, Given], values: dict[str, Tensor]
) -> tuple[str, str]:
    """Enter the real and imaginary parts of complex numbers as two tables; return their names."""
    names = []
    for part, numbers in (("real", value.real), ("imag", value.imag)):
        name = _free_name(f"{target}.{part}", tables)
        tables[name] = real(*value.shape, says=f"the {part} parts of {target}, any real numbers")
        values[name] = numbers.contiguous()
        names.append(name)
    return names[0], names[1]


def state_role(
    target: str, value: Tensor, after: Node, taken: Collection[str]
) -> tuple[tuple[str, Any], Given]:
    """Return the role of a buffer that the code writes to: any numbers, which earlier calls left.

    Raises ``NotTraced`` if it does not hold real numbers, or may change its shape or its dtype.
    """
    left = after.meta["val"]
    if not value.is_floating_point():
        raise NotTraced(f"the code writes to {target}: its result depends on earlier calls")
    if left.dtype != value.dtype or [*map(str, left.shape)] != [*map(str, value.shape)]:
        raise NotTraced(f"the code leaves another shape or dtype in {target} for later calls")
    given = real(*value.shape, says=f"{target}, any real numbers, different in each call")
    return ("table", _free_name(target, taken)), given
