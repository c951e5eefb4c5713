"""Run laws of traced code on the code itself, to find a witness where there is no proof."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from time import process_time
from types import SimpleNamespace
from typing import Any, Protocol

import torch
from torch import Tensor

from attnproof.symbolic.concrete import length_value
from attnproof.symbolic.terms import Term, free
from attnproof.theorems.laws import Formula

from ..execution.response import place_of_largest
from ..finding import Counterexample
from ..subjects import Pair, Rotary, Subject
from .calls import CodeRaised
from .comparison import ROUNDING
from .operations import Unread
from .statements import LIKE, TOKENS, Axes, calls_by_name, lengths_of

SMALL = (2, 3)
TRIES = 200
MOST_IN_BLOCK = 16  # tokens of a block, each place in which is a case of some laws
SHRINKING = 2.0  # time limit for shrinking a witness, in seconds


@dataclass(frozen=True)
class Run:
    """A law applied to some code: its inputs, both sides, and the difference that rounding allows.

    ``letters`` are the axes of the graphs; ``calls`` are calls of the code itself.
    """

    law: Formula
    calls: Mapping[str, Callable[..., Any]]
    letters: Axes
    subject: Subject
    operations: int = 1
    coarse: float = 0.0  # relative rounding of numbers in formats coarser than float32

    @cached_property
    def called(self) -> SimpleNamespace:
        """The calls as the law makes them."""
        return calls_by_name(self.calls, self.subject)

    def sides(self, values: Mapping[str, Tensor]) -> tuple[Tensor, Tensor] | None:
        """Return both sides, or None if the code rejects such inputs.

        Of several equations, return the one with the largest difference.
        """
        try:
            with torch.no_grad():
                told = self.law.equations(self.called, shown=True, **values)
        except (CodeRaised, IndexError, RuntimeError, ValueError):  # or returns other shapes
            return None
        pairs = [(a.double(), b.double()) for a, b in told]
        return max(pairs, key=lambda pair: _largest_difference(*pair))

    def gap(self, values: Mapping[str, Tensor]) -> tuple[float, float, tuple[int, ...]] | None:
        """Return the largest difference, what rounding allows there, and its place."""
        both = self.sides(values)
        if both is None or both[0].shape != both[1].shape:
            return None
        off = differences(*both)
        if not off.numel():
            return None
        largest = max(1.0, *(float(s.abs().nan_to_num(posinf=0).max()) for s in both))
        counted = [
            v
            for name, v in values.items()
            if v.numel() and not self.law.given[name].startswith("permutation")
        ]
        size = max([1.0, *(float(v.double().abs().max()) for v in counted)])
        rounding = ROUNDING * 16 * max(1, self.operations) + self.coarse
        allowed = rounding * largest * size
        return float(off.max()), allowed, place_of_largest(off)

    def breaks(self, values: Mapping[str, Tensor]) -> bool:
        """Whether the sides differ by more than rounding allows."""
        told = self.gap(values)
        return told is not None and told[0] > told[1]

    def _lengths(self, told: str) -> tuple[Term, ...]:
        """Return the axis lengths of a given."""
        return lengths_of(told, self.letters, self.subject)

    @cached_property
    def names(self) -> list[str]:
        """The names of lengths that may vary."""
        every = (n for told in self.law.given.values() for n in self._lengths(told))
        return sorted({s.data[0] for n in every for s in free(n)})

    def drawn(self, sizes: Mapping[str, int], seed: int, *, far: bool = False) -> dict[str, Tensor]:
        """Return small integers for all givens; permutations swap two tokens, near or ``far``."""
        generator = torch.Generator().manual_seed(seed)
        whole = self.subject.whole if isinstance(self.subject, Rotary) else True
        found = {}
        for name, told in self.law.given.items():
            shape = tuple(length_value(n, dict(sizes)) for n in self._lengths(told))
            kind = told.split()[0]
            if kind == "permutation":
                order = torch.arange(shape[0])  # not a shift of all tokens
                other = -1 if far else min(1, shape[0] - 1)
                order[[0, other]] = order[[other, 0]]
                found[name] = order
            elif kind in ("position", "shift"):
                drawn = torch.randint(0, 6, shape, generator=generator)
                found[name] = drawn if whole else drawn.double()
            elif kind == "index":
                found[name] = torch.randint(0, shape[0], (), generator=generator)
            elif kind in ("truth", "hidden", "keep", "padding"):
                shown = torch.randint(0, 2, shape, generator=generator).bool()
                shown[..., :1] = True
                shown = shown.cummin(-1).values if kind == "padding" else shown
                found[name] = ~shown if kind == "hidden" else shown
            else:
                found[name] = torch.randint(-2, 3, shape, generator=generator).float()
        return found

    def sizes(self) -> Iterator[dict[str, int]]:
        """Yield small lengths: all equal, and all different."""
        for size in SMALL:
            yield dict.fromkeys(self.names, size)
        for ordered in (self.names, self.names[::-1]):  # more queries than keys, or fewer
            yield {name: 3 + place for place, name in enumerate(ordered)}

    def sizes_at(
        self, at: Sequence[Mapping[str, int]], *, alone: bool = False
    ) -> Iterator[dict[str, int]]:
        """Yield lengths at which some calls of the law have those given.

        If a law concatenates two lengths of a kind, either their sum or one of them is as given;
        with ``alone``, all lengths of a kind are, or their sum.
        """
        sized = {c: one.data[0] for c, one in self.letters.items() if one.op == "size"}
        kinds = {more: sized[like] for more, like in LIKE.items() if like in sized}
        for given in at:
            known = {sized[c]: n for c, n in given.items() if c in sized}
            alike = {more: known[base] for more, base in kinds.items() if base in known}
            own = {name: known.get(name, 2) for name in self.names}
            behind = alike if alone else {}
            yield {name: known.get(name, behind.get(name, 2)) for name in self.names}
            for more, base in kinds.items():
                if more not in self.names or more in known:
                    continue
                whole = known.get(base, 2)
                for few in sorted({1, 2, whole}):
                    if not alone:
                        yield {**own, more: few}
                    if whole > few:
                        yield {**own, base: whole - few, more: few}

    def ordinary(self) -> Iterator[dict[str, Tensor]]:
        """Yield ordinary inputs, where each row sees a key: those of a pair, else random ones."""
        if isinstance(self.subject, Pair):
            yield dict(zip(self.law.given, self.subject.inputs, strict=True))
            return
        generator = torch.Generator().manual_seed(12)
        for sizes in self.sizes():
            values = self.drawn(sizes, 3)
            for name, told in self.law.given.items():
                if told.startswith("real"):
                    values[name] = torch.randn(values[name].shape, generator=generator)
            yield values


class _NotWhole(Exception):
    """A call of some tokens that are no whole number of blocks."""


def whole_variants(law: Formula, letters: Axes, subject: Subject) -> list[Formula]:
    """Return the law for all lengths with which it calls the code on whole blocks of tokens.

    A length of n tokens is that of some blocks, of some blocks and a part, or of a part; another
    length is that of some blocks without a part.  Of 3 tokens with 5 more behind them, code that
    takes multiples of 4 is given all 8.  Raises :class:`Unread` if there are too many cases.
    """
    own = sorted({c for told in law.given.values() for c in told.split()[1:] if c in TOKENS})
    if len(own) > 1 and subject.multiple_of > MOST_IN_BLOCK:
        raise Unread(f"no proof is tried for each place in a block of {subject.multiple_of} tokens")
    parts = range(1, subject.multiple_of)
    lengths = {"n": ["n", *(f"n+{k}" for k in parts), *map(str, parts)]}
    found = []
    for each in product(*(lengths.get(c, [c, *(f"{c}-{k}" for k in parts)]) for c in own)):
        named = dict(zip(own, each, strict=True))
        given = {
            name: " ".join(named.get(c, c) for c in told.split())
            for name, told in law.given.items()
        }
        one = replace(law, given=given)
        if _is_whole(one, letters, subject):
            found.append(one)
    return found


def _is_whole(law: Formula, letters: Axes, subject: Subject) -> bool:
    """Whether a law calls the code with whole blocks of tokens alone."""

    def called(x: Tensor, *_: Any) -> Tensor:
        if x.shape[1] % subject.multiple_of:
            raise _NotWhole
        return x

    run = Run(law, dict.fromkeys((law.call, *law.others), called), letters, subject)
    try:
        law.equations(run.called, shown=False, **run.drawn(dict.fromkeys(run.names, 2), 0))
    except _NotWhole:
        return False
    return True


def _largest_difference(left: Tensor, right: Tensor) -> float:
    if left.shape != right.shape or not left.numel():
        return 0.0
    return float(differences(left, right).max())


def differences(left: Tensor, right: Tensor) -> Tensor:
    """Return the differences of entries; equal ones, such as −∞ on both sides, differ by 0.

    NaN counts as no difference here; NaN in results is found elsewhere.
    """
    apart = (left - right).abs().nan_to_num(nan=float("inf"))
    return apart.masked_fill((left == right) | left.isnan() | right.isnan(), 0.0)


def witness_of(
    run: Run,
    *,
    at: Sequence[Mapping[str, int]] = (),
    after: Sequence[Mapping[str, int]] = (),
    alone: bool = False,
) -> Counterexample | None:
    """Return inputs for which the code itself breaks the law by more than rounding, shrunk.

    ``at``: lengths by letter at which the code differs from its graph, tried first; ``alone``: the
    usual sizes are skipped.  ``after``: further lengths, tried last.
    """
    last = list(run.sizes_at(after))
    usual = () if alone else run.sizes()
    for sizes in (*run.sizes_at(at, alone=alone), *usual, *last):
        for attempt in range(1 if sizes in last else 3):
            far = attempt == 1 or sizes in last  # the last of many tokens may be in another block
            values = run.drawn(sizes, attempt, far=far)
            if run.breaks(values):
                return counterexample_of(run, shrunk(run, values))
    return None


def is_broken(run: Run) -> bool:
    """Whether the code breaks the law by more than rounding with all lengths 2, or all 3."""
    return any(run.breaks(run.drawn(dict.fromkeys(run.names, size), 0)) for size in SMALL)


def gives_nan(run: Run) -> bool:
    """Whether a side of the law has NaN at ordinary inputs, as if it divides by 0.

    A proof "if x ≠ 0" is void if x is 0 somewhere for all inputs, as is the distance of a query
    from its own key.
    """
    for values in run.ordinary():
        try:
            with torch.no_grad():
                pairs = run.law.equations(run.called, shown=False, **values)
        except (CodeRaised, IndexError, RuntimeError, ValueError):
            continue
        if any(bool(x.isnan().any()) for pair in pairs for x in pair):
            return True
    return False


class Sides(Protocol):
    """What shrinking a witness needs: both sides of an equation, and their difference."""

    def sides(self, values: Mapping[str, Tensor]) -> tuple[Tensor, Tensor] | None:
        """Return both sides for these values."""

    def gap(self, values: Mapping[str, Tensor]) -> tuple[float, float, tuple[int, ...]] | None:
        """Return the largest difference, what rounding allows there, and its place."""


def shrunk(
    run: Sides, values: dict[str, Tensor], gap: Callable[..., Any] | None = None
) -> dict[str, Tensor]:
    """Return the values with as many zeros as keep the law broken, large blocks first.

    ``gap``: a quicker estimate than that of the run, whose result has to be looked at again.
    """
    gap, tries, begun = gap or run.gap, 0, process_time()
    for name in [n for n, v in values.items() if v.is_floating_point() and v.ndim]:
        block = values[name].numel()
        while block >= 1:
            for start in _starts_of_blocks(values[name], block):
                if tries >= TRIES or process_time() - begun >= SHRINKING:
                    return values
                flat = values[name].flatten().clone()
                flat[start : start + block] = 0
                tried = {**values, name: flat.reshape(values[name].shape)}
                tries += 1
                told = gap(tried)
                if told is not None and told[0] > 4 * told[1]:
                    values = tried
            block //= 4
    return values


def _starts_of_blocks(x: Tensor, length: int) -> list[int]:
    """Return where the blocks of this length begin that are not all plain zeros."""
    places = _nonzero(x.flatten()).nonzero().flatten().tolist()
    return sorted({place - place % length for place in places})


def _nonzero(x: Tensor) -> Tensor:
    """Return which entries are not plain zeros; code may tell −0 from 0."""
    return (x != 0) | x.signbit()


def counterexample_of(run: Sides, values: dict[str, Tensor]) -> Counterexample:
    """Return these values as a witness, at the place where the sides differ most."""
    told, both = run.gap(values), run.sides(values)
    assert told is not None
    assert both is not None
    gap, allowed, at = told
    inputs = {name: _plain(v) for name, v in values.items()}
    where = ", ".join(map(str, at))
    return Counterexample(
        inputs,
        (f"left side at ({where})", float(both[0][at])),
        (f"right side at ({where})", float(both[1][at])),
        gap,
        allowed,
    )


def _plain(value: Tensor) -> Any:
    """Return a tensor as lists, or if large and sparse by its nonzero entries."""
    if value.numel() <= 16:
        return value.tolist()
    nonzero = _nonzero(value).nonzero().tolist()
    if len(nonzero) <= 16:
        entries = {",".join(map(str, place)): value[tuple(place)].item() for place in nonzero}
        return {"shape": list(value.shape), "entries": entries}
    return value.tolist()
