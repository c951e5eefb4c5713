"""Probes and their outcomes, and the setting in which attention code is probed.

A law is tested in float64 first, where rounding hides nothing, and then in the format of the draw.
Whatever a probe changes about the module is restored: formats, attributes, buffers, modes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from attnproof.documents.verdict_line import Condition
from attnproof.theorems.laws import LAWS

from ..applicable_laws import declared_of
from ..declarations import DeclaredAttention
from ..execution.calling import arranged
from ..execution.draw import Draw
from ..execution.finite import NotFinite
from ..execution.response import (
    Allowance,
    NotDeterministic,
    WithFloat64,
    allowance,
    place_of_largest,
)
from ..execution.rotary_matrices import in_long_calls
from ..finding import Counterexample
from ..subjects import Attention, Layer, Rotary, Subject

ALL_KINDS = "rotary attention bias additive mask layer"  # kinds of code
FINITE = "finite"  # the law that results at ordinary inputs are finite


@dataclass(frozen=True)
class Outcome:
    """The result of a probe: broken with a ``witness``, not asked if ``skipped``.

    ``assuming``: what a law that holds takes for granted.
    """

    why: str
    error: float | None = None
    bound: float | None = None
    witness: Counterexample | None = None
    skipped: bool = False
    doubtful: bool = False
    sizes: Mapping[str, int] | None = None
    assuming: tuple[Condition, ...] = ()


def holds(
    why: str, error: float | None = None, bound: float | None = None, **sizes: int
) -> Outcome:
    """Return the outcome of a law that held at every input tried."""
    return Outcome(why, error, bound, sizes=sizes)


def broken(
    why: str,
    inputs: Mapping[str, Any],
    here: tuple[str, Any],
    there: tuple[str, Any],
    difference: float,
    allowed: float = 0.0,
    **sizes: int,
) -> Outcome:
    """Return the outcome of a law that failed; the arguments form its :class:`Counterexample`."""
    witness = Counterexample(inputs, here, there, difference, allowed)
    return Outcome(why, difference, allowed, witness, sizes=sizes)


def not_asked(why: str) -> Outcome:
    """Return the outcome of a law that does not apply to this code, with the reason."""
    return Outcome(why, skipped=True)


def undecided(why: str, error: float | None = None, bound: float | None = None) -> Outcome:
    """Return the outcome if the code raised, or rounding hides the answer."""
    return Outcome(why, error, bound, doubtful=True)


def compare(
    found: Tensor,
    wanted: Tensor | float,
    radius: Tensor | float,
    tell: Callable[..., tuple[str, Mapping[str, Any], str]],
    why: str,
    *,
    there: str = "declared",
    **sizes: int,
) -> Outcome:
    """Compare numbers read off the code, each with its radius, with those its declaration implies.

    ``tell`` maps the place of a number to the reason why the law is broken, the inputs, and the
    name of the number; it is called for the largest difference in the first row that has one.
    """
    wanted, radius = (
        torch.as_tensor(x, dtype=torch.float64).expand_as(found) for x in (wanted, radius)
    )
    off = (found - wanted).abs().nan_to_num(nan=math.inf)
    over = ~(off <= radius)
    if not bool(over.any()):
        worst = int((off / radius).nan_to_num().argmax())
        return holds(why, float(off.flatten()[worst]), float(radius.flatten()[worst]), **sizes)
    row = int(over.flatten(1).any(1).nonzero()[0]) if off.dim() > 1 else int(over.nonzero()[0])
    inner = torch.where(over[row], off[row], -1.0)
    at = (row, *(place_of_largest(inner) if off.dim() > 1 else ()))
    words, inputs, here = tell(*at)
    said, implied = (here, float(found[at])), (there, float(wanted[at]))
    return broken(words, inputs, said, implied, float(off[at]), float(radius[at]), **sizes)


ProbeFunction = Callable[[Any, Draw], Outcome]


@dataclass(frozen=True)
class Probe:
    """A law, a kind of code, and the function that tests it."""

    law: str
    kind: str
    look: ProbeFunction


PROBES: list[Probe] = []


def probe(law: str, kinds: str) -> Callable[[ProbeFunction], ProbeFunction]:
    """Register a function (subject, draw) -> Outcome as the probe of a law for kinds of code."""
    for kind in kinds.split():
        if not any(known.id == law and kind in known.about for known in LAWS):
            raise ValueError(f"there is no law {law!r} of {kind} code")

    def wrap(look: ProbeFunction) -> ProbeFunction:
        PROBES.extend(Probe(law, kind, look) for kind in kinds.split())
        return look

    return wrap


LOW = (torch.float16, torch.bfloat16)


@dataclass(frozen=True)
class Scene:
    """Code, a draw in the current format, and the unit roundoff of the tables the code keeps.

    ``shrinks``: a counterexample is made as small as possible.
    """

    subject: Any  # Attention or Layer: probes use the fields of their kind
    draw: Draw
    floor: float = 0.0
    shrinks: bool = True

    @property
    def declared(self) -> DeclaredAttention:
        """The declared attention, else the one inferred from runs, else an empty declaration."""
        return declared_of(self.subject)

    @property
    def tokens(self) -> Callable[[Tensor], Tensor] | None:
        """The map of tokens (B, n, E) -> (B, n, E), if there is one."""
        one: Attention | Layer = self.subject
        return one.call if isinstance(one, Layer) else one.layer

    @property
    def low(self) -> bool:
        """Whether the current format may round small influences away."""
        return self.draw.dtype in LOW

    def draw_qkv(self, rows: int, tokens: int, salt: int = 0) -> tuple[Tensor, Tensor, Tensor]:
        """Draw normal queries, keys and values, with the numbers of heads of the code."""
        one: Attention = self.subject
        groups, width = self.declared.groups or one.groups, one.width or 5
        q, k, v = (
            self.draw.normal(rows, h, tokens, width, salt=salt + n)
            for n, h in enumerate((one.heads, groups, groups), 1)
        )
        return q, k, v

    def allow(self, call: Callable[..., Tensor], *inputs: Tensor) -> Allowance:
        """Return the result of a call, and what rounding allows there."""
        return allowance(call, *inputs, draw=self.draw, floor=self.floor)


class _MixedMasks(TorchFunctionMode):
    """Notice attention on float64 with a mask of another format.

    On the CPU torch 2.13 reads the memory of a float32 mask as float64, which is no fault of code
    that makes its masks in float32 and is given float32 by everyone but us.
    """

    found = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        kwargs = kwargs or {}
        if getattr(func, "__name__", "") == "scaled_dot_product_attention":
            query = kwargs.get("query", args[0] if args else None)
            mask = kwargs.get("attn_mask", args[3] if len(args) > 3 else None)
            if isinstance(query, Tensor) and isinstance(mask, Tensor):
                self.found |= mask.dtype not in (torch.bool, query.dtype)
        return func(*args, **kwargs)


def _seen(look: Callable[[Scene], Outcome], scene: Scene, *, only: bool) -> Outcome | None:
    """Return what a probe sees; None for a fault that mixed formats of masks may explain.

    ``only``: no other format will be run.
    """
    fault: NotFinite | None = None
    try:
        first = look(replace(scene, shrinks=only))  # it is run again
        if only or (first.witness is None and not first.doubtful):
            return first
    except NotFinite as error:
        if only:
            raise
        fault = error
    again: Outcome | None = None
    with _MixedMasks() as met, suppress(NotFinite):
        again = look(scene)
    if met.found:
        return None
    if fault is not None:
        raise fault
    return first if again is None or first.witness is None or again.witness is None else again


def in_formats(look: Callable[[Scene], Outcome]) -> ProbeFunction:
    """Run a probe in float64, if the code takes it, and in the format of the draw."""

    @wraps(look)
    def looked(subject: Any, draw: Draw) -> Outcome:
        seen: list[Outcome] = []
        taken: torch.dtype | None = None
        for dtype, mode in (
            (torch.float64, nullcontext),
            (torch.float64, WithFloat64),
            (draw.dtype, nullcontext),
        ):
            if dtype is taken:
                continue  # it takes float64 as it is
            try:
                with arranged(subject, dtype) as floor, mode():
                    scene = Scene(subject, draw.cast(dtype), floor)
                    one = _seen(look, scene, only=dtype is draw.dtype)
            except NotDeterministic as error:
                return undecided(str(error))
            except Exception:
                if dtype is draw.dtype:
                    raise
                continue  # code that takes a single format is tested in that one
            taken = dtype
            if one is None:
                continue
            if one.witness is not None or one.skipped:
                return one
            seen.append(one)
        # a verdict of the finest format stands if a coarser one hides the answer
        if seen[0].doubtful:
            return seen[0]
        return next(one for one in reversed(seen) if not one.doubtful)

    return looked


def in_calls_of_each_length(look: ProbeFunction) -> ProbeFunction:
    """Run a probe of rotary code in short calls and, if these have other frequencies, in long ones.

    What is found in short calls is returned if the long ones pass as well.
    """

    @wraps(look)
    def looked(subject: Any, draw: Draw) -> Outcome:
        seen = look(subject, draw)
        passes = seen.witness is None and not seen.skipped and not seen.doubtful
        if not (passes and isinstance(subject, Rotary) and subject.longest) or subject.run_at:
            return seen
        told = f"in calls with position {subject.longest - 1}"
        long = look(in_long_calls(subject), draw)
        if long.witness is not None or long.doubtful:
            return replace(long, why=f"{told}: {long.why}")
        if long.skipped:
            return seen
        also = f"also {told}" if long.why == seen.why else f"{told} {long.why}"
        return replace(seen, why=f"{seen.why}; {also}")

    return looked


CAST = Attention | Layer  # weights are cast to the dtype of the tokens; tables keep theirs


def formatted(look: ProbeFunction) -> ProbeFunction:
    """Run a probe of attention and layers in float64 first, then in the format of the draw."""

    @wraps(look)
    def looked(subject: Subject, draw: Draw) -> Outcome:
        if not isinstance(subject, CAST):
            return look(subject, draw)
        return in_formats(lambda scene: _with_format(look(scene.subject, scene.draw), scene))(
            subject, draw
        )

    return looked


def _with_format(seen: Outcome, scene: Scene) -> Outcome:
    """Add to a witness the format in which it was found."""
    if seen.witness is None:
        return seen
    witness = replace(seen.witness, inputs={**seen.witness.inputs, "format": scene.draw.format})
    return replace(seen, witness=witness)
