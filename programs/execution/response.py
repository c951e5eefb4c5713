"""Estimate how much of a difference between two results of attention code rounding explains.

No bound is known for arbitrary code, so its rounding is recorded and measured.  A call is run under
a recorder that sees every operation: the coarsest format u in which numbers occur, how many
operations round, and how many terms their sums have at most.  Then the inputs are perturbed by one
unit in the last place of that format, and the response r of the output is measured.  Each rounding
inside changes some number by a factor 1 ± u, as the perturbation does, so ::

    allowed = 2 (n + N u' / u) (r + u max|output|)

with n the roundings, N the terms of all sums, u' the format of sums (float32 or finer, as in every
matrix product of torch) and 2 for the two results that are compared.  The response makes the bound
grow with scores, norms and positions where the code does, and vanish where nothing is rounded.

The bound grows with depth: for six blocks in bfloat16 it is several times the output itself.  So a
law is first tested in float64.  If code accepts only a short format, a fault of that size cannot be
told from rounding: if an output changes at all, causal is left undecided.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from .draw import Draw
from .finite import looking

REAL = {
    torch.complex32: torch.float16,
    torch.complex64: torch.float32,
    torch.complex128: torch.float64,
}
CONTAINERS = (tuple, list, dict)
PERTURBATIONS = 3  # perturbations of the inputs; the largest response counts
TOGETHER = 4  # multiply-adds in the time of writing one entry
CANCELLED = 8  # times the measured effect of inner rounding is allowed
# a fused attention: a product, a scale, a mask, a maximum, exp, a sum, a quotient, a product
FUSED = 8

# operations that round nothing, those that may overflow, and (parts of) names of sums
EXACT = ("clone", "cat", "stack", "index", "index_select", "gather", "masked_fill", "where",
         "copy_", "repeat", "zeros", "zeros_like", "ones", "empty", "empty_like",
         "roll", "flip")  # fmt: skip
GROWING = ("exp", "exp2", "expm1", "cosh", "sinh", "square", "mul", "add", "sub", "sum", "prod",
           "cumsum", "cumprod", "mm", "bmm", "addmm", "baddbmm", "dot", "mv")  # fmt: skip
# and those that select or move numbers: a selected number still equals the one that was selected
SELECTING = ("topk", "sort", "kthvalue", "median", "mode", "max", "min", "amax", "amin", "aminmax",
             "maximum", "minimum", "clamp", "clamp_min", "clamp_max", "cummax", "cummin", "relu",
             "abs", "neg", "scatter", "index_put", "slice_scatter", "select_scatter",
             "constant_pad_nd", "tril", "triu", "masked_select", "take")  # fmt: skip
SUMS = ("mm", "mv", "dot", "sum", "mean", "var", "norm", "softmax", "linear", "conv", "einsum")


class NotDeterministic(RuntimeError):
    """Two equal calls, of the code with this name, gave different results."""

    def __init__(self, gap: float, name: str = "") -> None:
        self.gap = gap
        why = "it draws random numbers, or keeps state between calls" if name else ""
        of = f" of {name}" if name else ""
        super().__init__(
            f"two equal calls{of} differ by {gap:.3g}: {why or 'see evaluation-repeats'}"
        )


@cache
def unit_of(dtype: torch.dtype) -> float:
    """Return the unit roundoff u of a float format, half the distance from 1 to the next number.

    >>> unit_of(torch.float32) == 2.0**-24
    True
    """
    return torch.finfo(REAL.get(dtype, dtype)).eps / 2


def gap(here: Tensor, there: Tensor) -> float:
    """Return the largest difference; equal infinities agree.

    NaN and different shapes count as infinitely far apart.

    >>> gap(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.5]))
    0.5
    """
    if here.shape != there.shape:
        return math.inf
    if not here.numel():
        return 0.0
    return float(differences(here.double(), there.double()).max())


def differences(here: Tensor, there: Tensor) -> Tensor:
    """Return entrywise distances: 0 for equal infinities, infinite for NaN."""
    off = (here - there).abs().nan_to_num_(nan=math.inf, posinf=math.inf)
    return off.masked_fill_(here == there, 0.0)


def place_of_largest(x: Tensor) -> tuple[int, ...]:
    """Return the index of the largest entry, the first if there are several.

    >>> place_of_largest(torch.tensor([[0.0, 1.0], [3.0, 2.0]]))
    (1, 0)
    """
    return tuple(int(i) for i in torch.unravel_index(x.argmax(), x.shape))


@dataclass(frozen=True)
class Allowance:
    """A result, the difference that rounding allows there, and the effect of a single rounding.

    ``unit``: the unit roundoff of the coarsest format seen.
    """

    output: Tensor
    value: float
    each: float
    unit: float = 0.0

    def __call__(self, times: float = 1.0, places: float = 0.0) -> float:
        """Return the allowed difference, ``times`` as much where a bound says so.

        An angle or bias at position p is off by p u before it is used: ``places`` adds p roundings
        of this result, and of the one it is compared with.
        """
        return self.value * times + 2 * places * self.each


class Watching(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """A mode that sees the operations of code, also of code that compiles itself."""

    supports_higher_order_operators = True  # flex_attention is one, and counts as one operation

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Let torch call the mode itself: it imports torch._dynamo, for a second, to skip it."""
        return False

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Allow code to compile itself, as flex_attention does: else it would run uncompiled."""
        return True


class Recorder(Watching):
    """Counts roundings and terms, and keeps the coarsest unit of all operands and results.

    Positions in bfloat16 that are only compared, as in a mask, round no number.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.roundings, self.terms = 0, 0
        self._any = self._computed = 0.0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if looking():
            return result
        read, made = _floats((args, kwargs or {})), _floats(result)
        coarsest = max((unit_of(t.dtype) for t in (*read, *made)), default=0.0)
        self._any = max(self._any, coarsest)
        if read and made and not getattr(func, "is_view", False):
            self._computed = max(self._computed, coarsest)
        if made:
            fused, rounds, sums = _kind(func)
            if rounds:
                self.roundings += FUSED + len(read) if fused else 1
            if sums:
                self.terms += max((max(t.shape, default=1) for t in read), default=1)
        return result

    def unit(self, output: Any) -> float:
        """Return the coarsest unit of the output, and of operations that compute it from floats.

        Where there are none of these, as in code outside torch, it is that of all operations.
        """
        made = (unit_of(x.dtype) for x in _floats(output))
        return max((self._computed or self._any, *made))


class Entries(Watching):
    """Counts the entries that operations compute; a sum of products counts as more."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        given, made = _arrays((args, kwargs or {})), _arrays(result)
        self.count += sum(x.numel() for x in made)
        if "mm" in str(func):
            self.count += made[0].numel() * int(given[-2].shape[-1]) // TOGETHER
        if "attention" in str(func):
            self.count += 8 * given[0].numel() * int(given[1].shape[-2]) // TOGETHER
        return result


def coarsest_unit(call: Callable[..., Tensor], *given: Any) -> tuple[Tensor, float]:
    """Return the result of a call and the coarsest unit of what it computes, see `Recorder`."""
    with Recorder() as recorder:
        output = call(*given)
    return output, recorder.unit(output)


class Rounding(Watching):
    """Perturbs the result of each operation by a unit in its last place; integers stay exact."""

    def __init__(self, draw: Draw, salt: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.draw, self.salt = draw, salt

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if looking() or not _kind(func)[1] or _name(func) in SELECTING:
            return result
        for made in _floats(result):
            if made.numel() and not made.is_complex():
                self.salt += 1
                moved = _moved(made, 2 * unit_of(made.dtype), self.draw, self.salt)
                made.copy_(torch.where(made == made.round(), made, moved))
        return result


class OutOfRange(Watching):
    """Detects numbers that leave their format: infinity from finite operands, or an exp of 0."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, given = _name(func), (*args, *(kwargs or {}).values())
        finite = all(bool(x.isfinite().all()) for x in _floats(given)) and not any(
            isinstance(x, float) and math.isinf(x) for x in given
        )
        result = func(*args, **(kwargs or {}))
        if finite and name in GROWING:
            made = _floats(result)
            self.seen |= any(bool(x.isinf().any()) for x in made)
            self.seen |= name in ("exp", "exp2") and any(bool((x == 0).any()) for x in made)
        return result


class OperationNames(Watching):
    """Collects the names of the operations of some code."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.names: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.add(_name(func))
        return func(*args, **(kwargs or {}))


def _name(func: Any) -> str:
    """Return ``add`` for ``aten.add.Tensor`` and for ``aten.add_.Scalar``."""
    return str(func).removeprefix("aten.").split(".")[0].removesuffix("_")


@lru_cache(maxsize=1024)
def _kind(func: Any) -> tuple[bool, bool, bool]:
    """Whether an operation is a fused attention, whether it rounds, and whether it may sum."""
    name = str(func).removeprefix("aten.").split(".")[0]
    fused = any(word in name for word in ("attention", "encoder_layer"))
    exact = getattr(func, "is_view", False) or name in EXACT
    summed = any(word in name for word in SUMS) or not str(func).startswith("aten.")
    return fused, fused or not exact, fused or summed


def _floats(value: object) -> list[Tensor]:
    """Return the floating-point and complex tensors in an operation's arguments or results."""
    tensors = (x for x in leaves(value) if isinstance(x, Tensor))
    return [x for x in tensors if x.is_floating_point() or x.is_complex()]


def _arrays(value: object) -> list[Tensor]:
    return [x for x in leaves(value) if isinstance(x, Tensor)]


def leaves(x: Any, found: list[Any] | None = None) -> list[Any]:
    """Return what nested tuples, lists and dictionaries contain.

    >>> leaves([1, (2, [3]), {"a": 4}])
    [1, 2, 3, 4]
    """
    found = [] if found is None else found
    if not isinstance(x, CONTAINERS):
        found.append(x)
        return found
    for v in x.values() if isinstance(x, dict) else x:
        if isinstance(v, CONTAINERS):
            leaves(v, found)
        else:
            found.append(v)
    return found


def allowance(
    call: Callable[..., Tensor],
    *inputs: Tensor,
    draw: Draw,
    floor: float = 0.0,
    moved: int = PERTURBATIONS,
) -> Allowance:
    """Return what rounding may do to ``call`` at these float inputs.

    ``floor`` is a unit roundoff known from elsewhere.  The inputs are perturbed ``moved`` times;
    with 0 the response r is left out, which allows less and takes one call.  Raises
    ``NotDeterministic`` if two equal calls differ by more than rounding.

    >>> x = Draw().normal(3, 4)
    >>> 0 < allowance(lambda x: x @ x.mT, x, draw=Draw())() < 1e-4
    True
    """
    recorder = Recorder()
    given = [one.clone() for one in inputs]  # the code may write into them
    with recorder:
        output = call(*given)
    unit = max(recorder.unit(output), floor, *(unit_of(i.dtype) for i in inputs))
    sums = min(unit, unit_of(torch.float32))
    roundings, terms = recorder.roundings, recorder.terms
    if not terms and roundings <= 1:
        # Code outside torch (JAX, a custom kernel) is not seen: it may have done as much as
        # attention and four projections of the widest axis.
        widest = max((max(i.shape, default=1) for i in inputs), default=1)
        roundings, terms = roundings + FUSED + 8, 6 * widest
    factor = 2 * (roundings + terms * sums / unit)
    finite = output.double().nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)
    size = float(finite.abs().max()) if output.numel() else 0.0
    again = gap(call(*(one.clone() for one in inputs)), output) if moved else 0.0
    if again > factor * unit * size and not output.isnan().any():
        raise NotDeterministic(again)
    response = 0.0
    for turn in range(moved):
        near = [_moved(one, 2 * unit, draw, 9000 + 10 * turn + n) for n, one in enumerate(inputs)]
        met = gap(call(*near), output)
        response = max(response, met if math.isfinite(met) else 0.0)
    each = response + unit * size
    return Allowance(output, factor * each, each, unit)


def moved_inside(call: Callable[..., Tensor], *inputs: Tensor, draw: Draw) -> float:
    """Return how far a result moves when every operation of ``call`` rounds differently.

    Under cancellation, as in E x² − (E x)², this may be far more than the effect of perturbed
    inputs.

    >>> x = 1e3 + Draw().normal(64)
    >>> spread = lambda x: (x * x).mean() - x.mean() ** 2
    >>> apart = lambda x: (x - x.mean()).square().mean()
    >>> moved_inside(spread, x, draw=Draw()) > 1000 * moved_inside(apart, x, draw=Draw())
    True
    """
    output, response = call(*(one.clone() for one in inputs)), 0.0
    for turn in range(PERTURBATIONS):
        with Rounding(draw, 10_000 * (turn + 1)):
            met = gap(call(*(one.clone() for one in inputs)), output)
        response = max(response, met if math.isfinite(met) else 0.0)
    return response


def _moved(one: Tensor, step: float, draw: Draw, salt: int) -> Tensor:
    """Multiply each number by a factor 1 ± step."""
    signs = draw.cast(torch.float64).normal(one.numel(), salt=salt).sign().reshape(one.shape)
    return (one.double() * (1 + step * signs)).to(one.dtype)


class WithFloat64(Watching):
    """A mode in which products of grouped rows take float64: torch has no kernel for it.

    Code is run in float64 to tell what it computes from how it rounds.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if str(func).startswith("aten._grouped_mm.") and args[0].dtype == torch.float64:
            rows, matrices, offs = (*args, *(kwargs.get("offs"),) * (len(args) < 3))[:3]
            if rows.dim() == 2 and matrices.dim() == 3 and offs is not None:
                return of_grouped_rows(rows, matrices, offs)
        return func(*args, **kwargs)


def of_grouped_rows(rows: Tensor, matrices: Tensor, ends: Tensor) -> Tensor:
    """Return the products of rows with the matrix of their group, which ends before a given row.

    >>> x, w = torch.ones(3, 2), torch.stack((torch.eye(2), 2 * torch.eye(2)))
    >>> of_grouped_rows(x, w, torch.tensor([1, 3])).tolist()
    [[1.0, 1.0], [2.0, 2.0], [2.0, 2.0]]
    """
    found = rows.new_zeros(rows.shape[0], matrices.shape[2])
    start = 0
    for matrix, end in zip(matrices, ends.tolist(), strict=True):
        found[start:end] = rows[start:end] @ matrix
        start = end
    return found
