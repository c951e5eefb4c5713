"""Products of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attnproof.symbolic import namespace as xp
from attnproof.symbolic.array import Array, as_array
from attnproof.symbolic.scalars import ONE

from .reading import Unread, numeric, reads

__all__ = ["einsum", "linear", "product"]


@reads("aten.matmul.default", "aten.mm.default", "aten.bmm.default", "aten.mv.default",
       "aten.dot.default")  # fmt: skip
def product(a: Any, b: Any) -> Array:
    """A·B; axes before the last two are broadcast."""
    x, y = numeric(a), numeric(b)
    if min(x.ndim, y.ndim) == 1 < max(x.ndim, y.ndim):
        if x.ndim == 1:
            return product(x[None], y)[..., 0, :]
        if y.ndim == 1 and x.ndim > 2:
            return product(x, y[:, None])[..., 0]
    return x @ y


@reads("aten.linear.default")
def linear(x: Any, weight: Any, bias: Any = None) -> Array:
    """x·Wᵀ + b."""
    found = product(x, numeric(weight).mT)
    return found if bias is None else found + numeric(bias)


@reads("aten.convolution.default")
def pointwise(
    x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
    out: Any, groups: int,
) -> Array:  # fmt: skip
    """Σ_c W_oc x_c + b_o at every place: a convolution whose kernel is one place wide."""
    a, w = numeric(x), numeric(weight)
    steps = {int(n) for n in (*stride, *dilation)}
    if transposed or groups != 1 or steps != {1} or any((*padding, *out)):
        raise Unread("a convolution in groups, with steps, or with padding")
    if any(n is not ONE for n in w.axes[2:]):
        raise Unread("a convolution whose kernel is wider than one place")
    matrix = w[(slice(None), slice(None), *(0,) * (w.ndim - 2))]
    found = linear(xp.moveaxis(a, 1, a.ndim - 1), matrix, bias)
    return xp.moveaxis(found, a.ndim - 1, 1)


@reads("aten.addmm.default", "aten.baddbmm.default")
def added_product(c: Any, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1) -> Array:
    """beta·C + alpha·A·B."""
    if alpha == 0 or beta == 0:
        found = as_array(0) if alpha == 0 else product(a, b) * numeric(alpha)
        return found if beta == 0 else found + numeric(c) * numeric(beta)
    return numeric(c) * numeric(beta) + product(a, b) * numeric(alpha)


@reads("aten.einsum.default")
def einsum(equation: str, operands: Sequence[Any], *_: Any, **__: Any) -> Array:
    """Σ of products of entries, over the letters that the result has not."""
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    letters: list[str] = inputs.split(",")
    arrays = [numeric(x) for x in operands]
    if "..." in equation:
        letters, output = _written_out(letters, output if arrow else "...", arrays)
    if any(len(set(part)) != len(part) for part in letters):
        raise Unread(f"einsum {equation!r} with a letter twice in one array")
    if not arrow:
        flat = "".join(letters)
        dots = "".join(c for c in output if c in flat)
        output = dots + "".join(sorted(c for c in set(flat) - set(dots) if flat.count(c) == 1))
    order = output + "".join(c for c in dict.fromkeys("".join(letters)) if c not in output)
    found = as_array(1)
    for part, a in zip(letters, arrays, strict=True):
        aligned = xp.permute_dims(a, [part.index(c) for c in order if c in part])
        found = aligned[tuple(slice(None) if c in part else None for c in order)] * found
    for axis in range(len(order) - 1, len(output) - 1, -1):
        found = xp.sum(found, axis=axis)
    return found


def _written_out(
    letters: list[str], output: str, arrays: list[Array]
) -> tuple[list[str], str]:
    """The three dots as capital letters."""
    spare = [c for c in "ZYXWVUTSRQPONM" if c not in "".join(letters)]
    plain = [part.replace("...", "") for part in letters]
    counts = [a.ndim - len(part) for part, a in zip(plain, arrays, strict=True)]
    most = max((n for n, part in zip(counts, letters, strict=True) if "..." in part), default=0)
    dots = "".join(spare[:most])
    full = [part.replace("...", dots[most - n :] if n else "") for part, n in
            zip(letters, counts, strict=True)]  # fmt: skip
    for part, a in zip(full, arrays, strict=True):
        if any(n is ONE for n in a.axes[: len(part)]) and dots:
            raise Unread("einsum that broadcasts axes of length 1")
    return full, output.replace("...", dots)
