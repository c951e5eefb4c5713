"""A graph and its code, called on the same inputs, and what was seen of their results."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from math import prod
from typing import Any

import sympy
import torch
from torch import Tensor, nn
from torch._ops import HigherOrderOperator
from torch.fx import Node

from attnproof.documents.verdict_line import Condition

from ..aten import ROWS
from ..execution.response import OutOfRange
from .branches import letters_of
from .call_variants import call_in, inputs_for
from .comparison import all_results_function, result_function
from .exporting import Exported
from .guards import compiled, satisfied
from .lengths import Lengths
from .reached_arrays import modules_in
from .statements import Graph

# The work of a call, in entries that operations write: what is tried of some code must not depend
# on the load of the machine.

CALL, OVERHEAD = 100_000, 15_000  # cost of starting a call, an operation, in entries
SUBGRAPH_COST = 8_000_000  # cost of starting an operation with subgraphs
MULTIPLY_ADDS_PER_ENTRY = 4  # multiply-adds in the time of writing one entry
UNKNOWN_LENGTH = 16  # value of a length that depends on data
aten = torch.ops.aten


def work_of(graph: Exported) -> Callable[[Mapping[str, int]], int]:
    """Return the work of a call as a function of the lengths, by their names in the graph.

    It is CALL + Σ (OVERHEAD + entries written) over all operations; in matrix products and
    attention, each summed product adds a quarter of an entry.

    >>> from attnproof.programs.prove.exporting import read, traced
    >>> twice = read(traced(lambda x: 2 * x, (torch.ones(2, 3),), ((False, True),)))
    >>> work_of(twice)({str(twice.shapes[0][1]): 1000}) - CALL - OVERHEAD
    2000
    """
    operations = [node for node in graph.nodes if node.op == "call_function"]
    total = sympy.Add(*(_written(node) for node in operations))
    names, entries = compiled(total)

    def work(at: Mapping[str, int]) -> int:
        known = (at.get(name, UNKNOWN_LENGTH) for name in names)
        return CALL + OVERHEAD * len(operations) + int(entries(*known))

    return work


def _written(node: Node) -> Any:
    """Return the entries that an operation writes, plus the cost of the sums for them."""
    value = node.meta.get("val")
    written = sum(_entries(x) for x in (value if isinstance(value, (tuple, list)) else (value,)))
    if isinstance(node.target, HigherOrderOperator):  # flex_attention runs them on each score
        scores = [_entries(x) * _of(y.shape[-2]) for x, y in _queries_and_keys(node)]
        return SUBGRAPH_COST + written + sum(scores)
    if node.target is aten.scaled_dot_product_attention.default:
        q, k = (node.args[n].meta["val"] for n in (0, 1))  # type: ignore[union-attr]
        return _entries(q) * _of(k.shape[-2]) / MULTIPLY_ADDS_PER_ENTRY
    row = ROWS.get(str(node.target))
    if row is None or row.summed is None:
        return written
    summed = _of(node.args[row.summed].meta["val"].shape[-1])  # type: ignore[union-attr]
    return written + written * summed / MULTIPLY_ADDS_PER_ENTRY


def _queries_and_keys(node: Node) -> list[tuple[Any, Any]]:
    given = [getattr(x, "meta", {}).get("val") for x in node.args[:2]]
    fine = len(given) == 2 and all(isinstance(x, Tensor) and x.ndim > 1 for x in given)
    return [(given[0], given[1])] if fine else []


def _entries(x: Any) -> Any:
    return prod(map(_of, x.shape)) if isinstance(x, Tensor) else 0


def _of(length: Any) -> Any:
    """Return a length as a SymPy expression."""
    return length.node.expr if isinstance(length, torch.SymInt) else length


Results = tuple[Tensor, ...]
WORK_PER_CALL = 150_000_000  # of one call, in the units of work.py
SAFE_INPUT, SAFE_LENGTH = 4.0, 16  # up to these, no exponential of a score overflows
STEP = 2.0**-22
ROUNDED_GAP = 0.99  # of the allowed gap, so that rounding the gap itself cannot matter
# Rounding explains a difference of this many times what the last bits of inputs change.
LAST_BITS, EXPLAINED, LARGEST_SHARE = 8, 64.0, 0.05
POOL, POOL_STRIDE = 1_048_583, 104_729  # both prime, so that no axis repeats the same numbers
# How successive calls are made; see call_variants.py.
WAYS = (
    "plain",
    "gradients",
    "plain",
    "strided",
    "inference",
    "one",
    "trained",
    "repeated",
    "int32",
    "plain",
    "strided",
)


@dataclass
class Gate:
    """Lengths at which the code differs from its graph, and lengths at which only the code raises.

    ``differs_at`` has lengths by letter; ``how`` says how the call was made, if not plainly.
    ``changes``: why the result of an earlier call is not reproduced.  ``where``: conditions that
    the code tests and that had the same outcome in every run.  ``nan_at``: lengths at which the
    code gives NaN for ordinary numbers, or for zeros (``nan_at_zeros``); terms have no NaN, so that
    0 times anything is 0 there.
    """

    differs_at: list[dict[str, int]] = field(default_factory=list)
    how: str = ""
    raises: dict[str, int] | None = None
    changes: str = ""
    where: list[Condition] = field(default_factory=list)
    nan_at: dict[str, int] | None = None
    nan_at_zeros: bool = False
    letters: Mapping[str, str] = field(default_factory=dict)  # by the names of lengths in the graph

    def for_graph(self, graph: Graph) -> Gate:
        """Return the same gate for another graph of the same runs, with that graph's letters."""
        own = {letter: s for s, letter in self.letters.items()}
        names = letters_of(graph)

        def named(at: dict[str, int]) -> dict[str, int]:
            return {names[own[letter]]: n for letter, n in at.items()}

        return replace(
            self,
            differs_at=[named(at) for at in self.differs_at],
            raises=self.raises and named(self.raises),
            nan_at=self.nan_at and named(self.nan_at),
        )


@dataclass
class PairedRun:
    """A graph and its code, and the work of calls made so far.

    ``code`` and ``compiled`` return all results of a call as a tuple, whose entries are compared.
    """

    graph: Graph
    letters: dict[str, str]  # the first letter of each length in the graph
    code: Callable[..., Results]
    compiled: Callable[..., Results]
    gate: Gate = field(default_factory=Gate)
    done: int = 0  # work
    count: int = 0  # calls
    size: float = 1.0  # scale of the graph's results on inputs of size 1, at most 1
    far: tuple[int, ...] = ()  # numbers of the source that positions may start from

    def __post_init__(self) -> None:
        self.work = work_of(self.graph.exported)
        ranges = self.graph.exported.ranges
        self.longest = {s: int(r.upper) for s, r in ranges.items() if r.upper.is_Integer}
        self.pool = _pool()
        numbers = [x.is_floating_point() for x in self.graph.call.inputs]
        self.several, self.whole = sum(numbers) > 1, not all(numbers)
        self.rounded = STEP * (16 + self.graph.exported.operations)
        places = [
            (shape, letters.split())
            for shape, letters in zip(
                self.graph.exported.shapes, self.graph.call.letters, strict=True
            )
        ]
        self.row = [letters.index("B") if "B" in letters else None for _, letters in places]

    def shape(self, place: int, at: Lengths) -> tuple[int, ...]:
        """Return the shape of an input at these lengths."""
        return tuple(
            n if isinstance(n, int) else at[self.letters[n]]
            for n in self.graph.exported.shapes[place]
        )

    def inputs(self, at: Lengths, count: int, scale: float = 1.0) -> tuple[Tensor, ...]:
        """Return inputs of these lengths; positions are consecutive from some start, or random.

        Every fourth call starts far along: a branch on a length may also read positions.
        """
        generator = torch.Generator().manual_seed(count) if self.whole else None  # slow to make
        made = []
        for place, like in enumerate(self.graph.call.inputs):
            shape = self.shape(place, at)
            if like.is_floating_point():
                x = self.numbers(shape, count + place)
                made.append((x if scale == 1 else x * scale).to(like.dtype))
            elif count % 2 and len(shape) == 2 and like.dtype != torch.bool:
                first = torch.randint(0, 9, (shape[0], 1), generator=generator)
                start = self.far[count // 4 % len(self.far)] if self.far and count % 4 == 3 else 0
                made.append((torch.arange(shape[1]) + first + start).to(like.dtype))
            else:
                most = 2 if like.dtype == torch.bool else max(2, *shape)
                made.append(torch.randint(0, most, shape, generator=generator, dtype=like.dtype))
        return tuple(made)

    def numbers(self, shape: tuple[int, ...], salt: int) -> Tensor:
        """Return random numbers drawn once and read from a different offset on each call."""
        first, count = salt * POOL_STRIDE % POOL, math.prod(shape)
        if count <= POOL:  # the pool is stored twice, so that no draw wraps around
            return self.pool[first : first + count].view(shape)
        once = self.pool[first : first + POOL]
        return once.repeat(-(-count // POOL))[:count].view(shape)

    def allowed(self, at: Lengths) -> bool:
        """Whether the guards of the graph admit these lengths."""
        known = self.known(at)
        if any(known[s] > most for s, most in self.longest.items() if s in known):
            return False
        return satisfied(self.graph.exported.conditions, known)

    def known(self, at: Lengths) -> dict[str, int]:
        """Return the lengths by their names in the graph."""
        return {s: at[letter] for s, letter in self.letters.items()}

    def agrees(self, at: Lengths, way: str = "", inputs: tuple[Tensor, ...] | None = None) -> bool:
        """Whether code and graph agree, called in this way or the next; True if not comparable."""
        way = way or WAYS[self.count % len(WAYS)]
        self.count += 1
        work = self.work(self.known(at))
        if work > WORK_PER_CALL or not self.allowed(at):
            return True
        given = self.inputs(at, self.count) if inputs is None else inputs
        given = inputs_for(way, given, self.row)
        self.done += work
        want = self.graph_results(given)
        if want is None:
            return True
        got = self.code_results(given, way)
        if got is None:
            if way == "plain" and self.gate.raises is None and min(at.values(), default=2) > 1:
                self.gate.raises = dict(at)
            return True
        if self.gate.nan_at is None and max(at.values(), default=0) <= SAFE_LENGTH:
            self._record_nan(at, given, got)
        return self.agree(got, want) or self._is_rounding(given, got, want)

    def _is_rounding(self, given: tuple[Tensor, ...], got: Results, want: Results) -> bool:
        """Whether inputs that differ in their last bit change each entry of the graph as much.

        Where a denominator is almost 0, as of scores of both signs, an error of its last bit is
        seen in the first digits of a result.  No part of an entry above ``LARGEST_SHARE`` is taken
        for rounding.
        """
        changes = [x.new_zeros(x.shape, dtype=torch.float64) for x in want]
        for seed in range(LAST_BITS):
            results = self.graph_results(_with_other_last_bits(given, seed))
            if results is None:
                return False
            for change, x, y in zip(changes, results, want, strict=True):
                torch.maximum(change, (x.double() - y.double()).abs(), out=change)
        return all(
            a.shape == b.shape
            and bool(
                ((a - b).abs() <= torch.minimum(EXPLAINED * change, LARGEST_SHARE * b.abs()))
                .logical_or_(a == b)
                .all()
            )
            for a, b, change in zip(got, want, changes, strict=True)
        )

    def _record_nan(self, at: Lengths, given: tuple[Tensor, ...], got: Results) -> None:
        """Record the lengths if inputs that are not large give NaN."""
        numbers = [x for x in given if x.is_floating_point() and x.numel()]
        if any(bool(x.isnan().any()) for x in got):
            largest = max((float(x.abs().max()) for x in numbers), default=0.0)
            if largest <= SAFE_INPUT and not self._out_of_range(given):
                self.gate.nan_at, self.gate.nan_at_zeros = dict(at), bool(numbers) and not largest

    def _out_of_range(self, given: tuple[Tensor, ...]) -> bool:
        """Whether a number leaves the range of its format, which terms do not model."""
        mode = OutOfRange()
        with mode:
            self.code_results(given)
        return mode.seen

    def from_one(self) -> list[str]:
        """Return the letters of lengths that may be 1."""
        ranges = self.graph.exported.ranges
        return [letter for s, letter in self.letters.items() if s in ranges and ranges[s].lower < 2]

    def affordable(self, at: Lengths) -> bool:
        """Whether a call at these lengths is cheap enough to run."""
        return self.work(self.known(at)) <= WORK_PER_CALL

    def call(self, at: Lengths, way: str) -> None:
        """Run only the code, in this way."""
        self.count += 1
        self.done += self.work(self.known(at))
        self.code_results(inputs_for(way, self.inputs(at, self.count), self.row), way)

    def graph_results(self, inputs: tuple[Tensor, ...]) -> Results | None:
        """Return the results of the graph, or None if it raises."""
        for mode in (torch.inference_mode, torch.no_grad):  # the first is faster
            with suppress(Exception), mode():  # a graph may reject a length of 1
                return self.compiled(*inputs)
        return None

    def code_results(self, inputs: tuple[Tensor, ...], way: str = "plain") -> Results | None:
        """Return the results of the code, called in this way, or None if it raises."""
        try:
            modules = modules_of(self.graph) if way == "frozen" else ()  # slow to find
            return call_in(way, self.code, inputs, modules)
        except Exception:  # noqa: BLE001 (code may raise anything)
            return None

    def agree(self, got: Results, want: Results) -> bool:
        """Whether results agree pairwise up to rounding."""
        return all(
            _equal_up_to_rounding(a, b, self.rounded, self.size)
            for a, b in zip(got, want, strict=True)
        )

    def is_overwritten(self, at: Lengths) -> bool:
        """Whether a later call overwrites the results of an earlier one."""
        try:
            with torch.no_grad():
                kept = self.code(*(x.clone() for x in self.inputs(at, 1)))
                before = tuple(x.clone() for x in kept)
                self.code(*(x.clone() for x in self.inputs(at, 4)))
        except Exception:  # noqa: BLE001 (code may raise anything)
            return False
        return not all(
            torch.equal(a, b) or bool(b.isnan().any()) for a, b in zip(kept, before, strict=True)
        )


def _with_other_last_bits(inputs: tuple[Tensor, ...], seed: int) -> tuple[Tensor, ...]:
    """Return the inputs with each number moved up or down, in turn, by a unit in its last place."""
    generator = torch.Generator().manual_seed(seed)
    moved = []
    for x in inputs:
        if x.is_floating_point():
            sign = torch.randint(0, 2, x.shape, generator=generator) * 2 - 1
            x = x * (1 + torch.finfo(x.dtype).eps * sign).to(x.dtype)  # noqa: PLW2901
        moved.append(x)
    return tuple(moved)


@cache
def _pool() -> Tensor:
    """Return the numbers that graphs and their code are run on; nothing writes to them."""
    return torch.randn(POOL, generator=torch.Generator().manual_seed(0)).repeat(2)


def modules_of(graph: Graph) -> tuple[nn.Module, ...]:
    """Return the modules of a call."""
    return (*graph.call.modules, *modules_in(graph.call.code))


def both_calls(
    graph: Graph, *, whole: bool
) -> tuple[Callable[..., Results], Callable[..., Results]]:
    """Return the call as two functions, by its code and by its graph, that return all results."""
    code, pair, tables = graph.call.code, graph.call.pair, graph.exported.values
    if whole and pair is not None:
        return pair, all_results_function(graph, tables, often=True)
    alone = result_function(graph, tables, often=True)
    return lambda *given: (code(*given),), lambda *given: (alone(*given),)


def size_of(results: Results) -> float:
    """Return the largest absolute value among these results, or 1 if it is larger than 1, or 0."""
    largest = max(
        (
            float(x.detach().double().abs().nan_to_num(posinf=0.0).max())
            for x in results
            if x.numel()
        ),
        default=0.0,
    )
    return largest if 0 < largest < 1 else 1.0


def _equal_up_to_rounding(got: Tensor, want: Tensor, allowed: float, size: float) -> bool:
    """Whether two results agree up to rounding, judged by the entries that differ.

    Other entries may be far larger: the fill value of a mask is on both sides.
    """
    if got.shape != want.shape:
        return False
    if torch.equal(got, want):
        return True
    if got.is_floating_point() and float((got - want).abs().max()) < ROUNDED_GAP * allowed * size:
        return True  # and neither has NaN or ±∞
    a, b = (t.double() for t in (got, want))
    if bool((a.isfinite() != b.isfinite()).any()):
        return False
    differ = (a != b) & a.isfinite()
    if not bool(differ.any()):
        return bool(torch.equal(a.nan_to_num(), b.nan_to_num()))
    gap, of = (float(torch.where(differ, x.abs(), 0.0).max()) for x in (a - b, b))
    return gap <= allowed * max(size, of)
