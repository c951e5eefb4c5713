"""The calls of some code on arrays that carry a value and a bound on its rounding error.

A law is evaluated on the results of these calls, in float64; so its two sides carry bounds that
follow from those of the calls: for rotary code derived from its format and its positions
(:mod:`..tolerance`), for attention and layers measured by their response (:mod:`..response`), for
tables and biases from their entries.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import torch
from torch import Tensor

from ...numeric.arithmetic import Arithmetic
from ...numeric.devices import unit_roundoff
from ...numeric.error_analysis import Rounded
from ...numeric.profile import profile_of
from ..execution.calling import seeded_call
from ..execution.draw import Draw
from ..execution.response import CANCELLED, PERTURBATIONS, Allowance, allowance, moved_inside
from ..execution.rotary_matrices import MADE, fastest, require_shape_of, rounding_for
from ..execution.running import describe_refusal
from ..execution.tolerance import STEPS, Rounding, rounding_of
from ..reading.offsets import HIDING, heads_of
from ..subjects import Additive, Rotary

ROW_FACTOR = 3  # roundings of an entry of a bias
CACHE_FACTOR = 2.0  # a step rounds like a whole call, and the cache once more
READ = ("shown", "weighs", "reached", "heeds", "padded")  # properties read off the code


@cache
def _arithmetic() -> Arithmetic:
    return Arithmetic(profile_of(torch.float64, torch.device("cpu")))


def exact(x: Tensor) -> Rounded:
    """Return numbers without error."""
    return _arithmetic().exact(x.detach().to("cpu", torch.float64))


class PieceRefused(Exception):
    """The code refused a piece after accepting the ones before."""


def _placed(inputs: Sequence[Any], numbers: Sequence[int], moved: Sequence[Tensor]) -> list[Any]:
    """Return the inputs with others at the places of those that are numbers."""
    placed = list(inputs)
    for k, x in zip(numbers, moved, strict=True):
        placed[k] = x
    return placed


@dataclass
class Roundings:
    """Error bounds for the results of some code's calls, in the format of a draw.

    ``floor`` is the unit roundoff of tables that the code keeps.  ``fastest`` is the largest
    frequency of rotary code; if it cannot be determined, the caller supplies one.  For attention
    and layers, ``plain`` calls are allowed no error, and ``still`` calls do not perturb the inputs.
    """

    subject: Any
    draw: Draw
    floor: float = 0.0
    pieces: bool = False
    plain: bool = False
    still: bool = False
    fastest: float = 0.0
    rounding: Rounding | None = None
    known: dict[Any, Allowance] = field(default_factory=dict)
    lengths: dict[int, tuple[Rounded, Tensor]] = field(default_factory=dict)
    """Bounds on the error of the norms of result vectors, smaller than their entries imply."""

    def call(self, name: str, code: Callable[..., Any]) -> Callable[..., Any]:
        """Return the call on arrays with their errors."""
        if name == "of_rows":
            return lambda n, *given: self._pulled(code, n, given, 0)
        if isinstance(self.subject, Rotary):
            return lambda *given: self._rotary(name, code, given)
        if name == "step":
            return lambda x, state: self._step(code, x, state)
        if name in ("biased", "masked"):
            return lambda x, y: self._made(code(x, y), x.shape[0], y.shape[0])
        if name in READ:
            return lambda *given: self._read(code, given)
        if name == "pulled":
            return lambda n, *given: self._pulled(code, n, given, -2)
        if name == "windowed":
            return lambda sizes: self._of_window(code(sizes), len(sizes))
        if name == "gridded":
            return lambda sizes: self._of_grid(code(sizes))
        if isinstance(self.subject, Additive):
            return lambda x: self._added(code, x)
        return lambda *given: self._attended(name, code, given)

    def fresh(self, fastest: float = 0.0) -> Roundings:
        """Return a copy that knows no earlier calls, with another largest frequency if given."""
        if isinstance(self.subject, Rotary):
            self._known()
        return replace(self, known={}, lengths={}, fastest=fastest or self.fastest)

    def _given(self, x: Any) -> Any:
        """Return an input as the code takes it: a copy, which it may write into."""
        if isinstance(x, Rounded):
            return x.value.to(self.draw.device, self.draw.dtype, copy=True).contiguous()
        return x.to(self.draw.device, copy=True).contiguous() if isinstance(x, Tensor) else x

    def _off(self, x: Rounded, given: Tensor) -> Tensor:
        """Bound the distance of an input from what it stands for, after the cast."""
        return x.error().expand(x.shape) + (x.value - given.to("cpu", torch.float64)).abs()

    # rotary

    def _known(self) -> Rounding:
        if self.rounding is None:
            self.rounding = rounding_for(self.subject, self.draw)
            self.fastest = self.fastest or fastest(self.subject, self.draw)
        return self.rounding

    def _rotary(self, name: str, code: Callable[..., Any], given: tuple[Any, ...]) -> Any:
        rounding, inputs = self._known(), [self._given(x) for x in given]
        if name == "evict":
            return self._evicted(code, given[0], inputs[0])
        if name == "convert":
            return tuple(exact(w) for w in code(*(w.clone() for w in inputs[:2]), inputs[2]))
        vectors = [x for x in given if isinstance(x, Rounded)]
        far = self._far(name, given)
        if name == "all_three":
            made = code(*(x.clone() for x in inputs[:3]), inputs[3])
        elif name == "last":
            made = code(*(x.clone() for x in inputs))
        else:
            made = (seeded_call(code, *inputs),)
        found = []
        for x, put, result in zip(vectors, inputs, made, strict=False):
            out = result.detach().to("cpu", torch.float64)
            if name in MADE:
                require_shape_of(put, out)
            before, after = (v.double().cpu().norm(dim=-1, keepdim=True) for v in (put, out))
            size = torch.maximum(before, after.nan_to_num(posinf=0.0))
            angle = STEPS * rounding.angle_unit * self.fastest * far
            radius = size * (rounding.rotating + angle) + float(torch.finfo(self.draw.dtype).tiny)
            own = self.lengths.get(id(x))
            off = self._off(x, put).norm(dim=-1, keepdim=True) if own is None else own[1]
            grow = (after / before).nan_to_num(nan=1.0, posinf=1.0).clamp(min=1).max()
            made_of = _with(out, radius + grow * off)
            self.lengths[id(made_of)] = made_of, radius + grow * off
            found.append(made_of)
        return found if name in ("all_three", "last") else found[0]

    def _far(self, name: str, given: tuple[Any, ...]) -> Tensor:
        """Return how far vectors are rotated: the sum of the coordinates of each position."""
        at = given[-1]
        if name == "shift":
            far = torch.tensor(abs(float(at)) * max(1, self.subject.axes))
        elif name == "last":
            far = torch.tensor(float(at.shape[2]))  # of the last key
        elif name == "running":
            far = torch.arange(given[0].shape[2], dtype=torch.float64)[:, None]
        else:
            p: Tensor = at.double().abs()
            many = self.subject.axes and p.dim() > 2
            far = (p.sum(-1) if many else p * max(1, self.subject.axes))[:, None, :, None]
        return far

    def _evicted(self, code: Callable[..., Any], x: Rounded, put: Tensor) -> Any:
        """Bound keys of a cache, which may be rotated again for every later key."""
        kept, raw, at = code(put.clone())
        kept, count = kept.detach().to("cpu", torch.float64), x.shape[2]
        size = float(torch.maximum(kept.norm(dim=-1).max(), raw.double().norm(dim=-1).max()))
        far = float(count) * max(1, self.subject.axes)
        radius = self._known().vector(size, self.fastest, *[far] * count)
        return _with(kept, torch.tensor(radius)), exact(raw), at

    # attention and layers

    def _attended(self, name: str, code: Callable[..., Any], given: tuple[Any, ...]) -> Rounded:
        inputs = [self._given(x) for x in given]
        numbers = [n for n, x in enumerate(given) if isinstance(x, Rounded)]

        def call(*moved: Tensor) -> Tensor:
            found: Tensor = code(*_placed(inputs, numbers, moved))
            return found

        if self.plain:
            return exact(call(*(inputs[n] for n in numbers)))
        own = [inputs[n] for n in numbers]
        key = (name, code, *((tuple(x.shape), _times(x)) for x in own))
        if key in self.known:
            out, allowed = call(*own), self.known[key]
            size = _size(out) / max(_size(allowed.output), torch.finfo(torch.float64).tiny)
        else:
            allowed = self._allowance(call, *own)
            if not self.still and any(
                _times(x) > 0 for x in own
            ):  # a number subtracted from all scores may be large
                inside = CANCELLED * moved_inside(call, *own, draw=self.draw)
                allowed = replace(allowed, value=max(allowed.value, inside))
            out, size, self.known[key] = allowed.output, 1.0, allowed
        # an angle or bias at a position p is off by p units before it is used
        further = given[1] if name == "whole_layer" else 0
        length = inputs[0].shape[1] if name in ("whole_layer", "hide") else 0
        radius = (allowed.value / 2 + (further + length) * allowed.each) * max(1.0, size)
        cast = max(float(self._off(given[n], inputs[n]).max()) for n in numbers)
        radius += allowed.each if cast else 0.0
        if self.pieces:
            radius *= 2 * CACHE_FACTOR
        return _with(out.detach().to("cpu", torch.float64), torch.tensor(radius))

    def _allowance(self, call: Callable[..., Tensor], *inputs: Tensor) -> Allowance:
        moved = 0 if self.still else PERTURBATIONS
        return allowance(call, *inputs, draw=self.draw, floor=self.floor, moved=moved)

    def _read(self, code: Callable[..., Any], given: tuple[Any, ...]) -> Any:
        """Read whether something is 0, or unchanged, which rounding does not affect."""
        found = code(*map(self._given, given))
        return [exact(x) for x in found] if isinstance(found, list) else exact(found)

    def _pulled(self, code: Callable[..., Any], n: int, given: tuple[Any, ...], axis: int) -> Any:
        """Return gradients, with the effect of rounding on those that should be 0 as their bound.

        They are those at later tokens, or at other rows: all but the first n along an axis, or the
        last if n is negative.  Where the parts of a gradient cancel, the remaining rounding moves
        as much as its own size.  A key with a weight of exp(-100) has a far smaller gradient, which
        hardly moves.
        """
        if self.plain:
            return self._read(code, (n, *given))
        inputs = [self._given(x) for x in given]
        numbers = [k for k, x in enumerate(given) if isinstance(x, Rounded)]

        def others(*moved: Tensor) -> Tensor:
            found = code(n, *_placed(inputs, numbers, moved))
            grads = found if isinstance(found, list) else [found]
            kept = [x.narrow(axis, max(n, 0), x.shape[axis] - abs(n)) for x in grads]
            return torch.cat([x.flatten() for x in kept])

        allowed = self._allowance(others, *(inputs[k] for k in numbers))
        found = code(n, *inputs)
        grads = found if isinstance(found, list) else [found]
        radius = torch.tensor(allowed.value)
        made = [_with(x.detach().to("cpu", torch.float64), radius) for x in grads]
        return made if isinstance(found, list) else made[0]

    def _step(self, code: Callable[..., Any], x: Rounded, state: Any) -> tuple[Rounded, Any]:
        """Run a piece; its error is part of the bound of the side that it is compared with."""
        try:
            found, state = code(self._given(x), state)
        except Exception as error:
            if state is None:
                raise
            raise PieceRefused(f"raised {describe_refusal(self.subject, error, 160)}") from error
        return exact(found), state

    # tables

    def _added(self, code: Callable[..., Any], x: Rounded) -> Rounded:
        put = self._given(x)
        out = seeded_call(code, put)
        rounding = rounding_of(self.draw.dtype)
        p = torch.arange(2, put.shape[1] + 2, dtype=torch.float64)[:, None]
        size = max(_size(out), _size(put))
        rotated = STEPS * rounding.angle_unit * p * (self.fastest or 1.0)
        return _with(out, size * (2 * rounding.unit + rounding.rotating + rotated))

    def _of_grid(self, found: Tensor) -> Rounded:
        """Return a table of a grid (*sizes, D): an angle is a coordinate times a frequency."""
        rounding, far = rounding_of(self.draw.dtype), 2 + max(found.shape[:-1])
        rotated = STEPS * rounding.angle_unit * far * (self.fastest or 1.0)
        off = _size(found) * (2 * rounding.unit + rounding.rotating + rotated)
        return _with(found.detach().to("cpu", torch.float64), torch.tensor(off))

    def _made(self, found: Tensor, queries: int, keys: int) -> Rounded:
        """Return a bias (H, r, n) with the rounding of its entries; hidden entries are −∞.

        An entry may be a product of two vectors whose angles, a position times a frequency of at
        most 1, are rounded twice each, in float32 or finer: 4 n u relative to the entry.
        """
        flat = heads_of(found, queries, keys)
        flat = torch.where(flat > HIDING, flat, -torch.inf)
        finite = torch.where(flat.isfinite(), flat.abs(), 0.0)
        unit = unit_roundoff(found.dtype)
        angles = 4 * max(queries, keys) * min(unit, unit_roundoff(torch.float32))
        radius = (ROW_FACTOR * unit + angles) * (finite.max() if finite.numel() else 0.0)
        return _with(flat, torch.as_tensor(radius))

    def _of_window(self, found: Tensor, axes: int) -> Rounded:
        """Return the bias (H, *window, *window) or index of a window: entries of one table."""
        return exact(found if found.dim() > 2 * axes else found[None])


def _times(x: Tensor) -> int:
    """Return the size of an array in powers of 64; arrays of other sizes round differently."""
    size = _size(x)
    return math.floor(math.log2(size) / 6) if size else 0


def _with(out: Tensor, radius: Tensor) -> Rounded:
    return Rounded(_arithmetic(), out, radius.double().expand(out.shape))


def _size(x: Tensor) -> float:
    """Return the largest absolute value of the finite entries."""
    sizes = x.double().abs()
    size = float(sizes.max()) if x.numel() else 0.0
    return size if math.isfinite(size) else float(sizes.nan_to_num(nan=0.0, posinf=0.0).max())
