"""Derive the conclusions of a statement from its code with SymPy, at explicit small sizes.

Real arrays are symbols.  Discrete givens are concrete, and their values are enumerated:
permutations, index maps, indices, masks, natural numbers from 0 to 3, and the two kinds of
orthogonal matrices, rotations and rotations with a reflection.

The body runs on arrays of SymPy expressions, once for each choice of the discrete givens, and each
conclusion is derived entry by entry.  Neither terms nor the search for kernel proofs are used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice, permutations, product
from math import factorial, prod
from time import thread_time
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import sympy as sp

from ..bodies import Code, given_at
from ..budget import OutOfTime, check_time, interrupted_after, within
from ..concrete import ConcreteClaim, length_value, lengths
from ..givens import Given
from ..scalars import number_of
from ..terms import free
from .array import Expressions, Length, as_expressions, label, symbols
from .generators import Generators
from .judging import FAILURES, NotDerived, Vacuous, admitted, refusal

if TYPE_CHECKING:
    from ..statement import Statement


# Values of givens as arrays of SymPy expressions, at given sizes

MAX_NATURAL = 3
"""The largest natural number that is tried."""

_ASSUMED: dict[str, dict[str, bool]] = {
    "real": {},
    "angle": {},
    "position": {},
    "frequency": {},
    "positive": {"positive": True},
    "nonnegative": {"nonnegative": True},
}


class SymbolFunction:
    """An uninterpreted function: each entry of its value is an undefined function of SymPy."""

    def __init__(self, name: str, given: Given) -> None:
        self.name, self.given = name, given

    def __call__(self, *values: Any) -> Expressions:
        arrays = [as_expressions(v) for v in values]
        core = self.given.core
        if len(arrays) != len(core):
            raise TypeError(f"{self.name} takes {len(core)} arrays, and got {len(arrays)}")
        batches = [a.entries.shape[: a.ndim - k] for a, k in zip(arrays, core, strict=True)]
        batch = np.broadcast_shapes(*batches)
        parts = [
            np.broadcast_to(a.entries, (*batch, *a.entries.shape[a.ndim - k :]))
            for a, k in zip(arrays, core, strict=True)
        ]
        own = arrays[0].entries.shape[arrays[0].ndim - core[0] :]
        if self.given.out is not None:
            own = tuple(int(number_of(n) or 0) for n in self.given.out)
        result = np.empty((*batch, *own), dtype=object)
        for at in np.ndindex(*batch):
            rows = [np.asarray(part[at], dtype=object) for part in parts]
            for place in np.ndindex(*own):
                result[at + place] = self._entry(rows, place)
        return Expressions(result)

    def _entry(self, read: list[Any], place: tuple[int, ...]) -> sp.Expr:
        """Return one entry of the value.

        For an equivariant function, row i depends on row i of the first argument and on the
        multiset of its rows, so that a permutation of the rows permutes the result; an invariant
        function depends on the multiset.
        """
        own: list[Any] = []
        if "equivariant" in self.given.traits:
            own, place = [read[0][place[0]]], place[1:]
        if self.given.traits:
            read = [*own, *sorted(read[0], key=_in_order), *read[1:]]
        called = sp.Function(label(self.name, *place), real=True)
        return called(*(e for part in read for e in np.asarray(part).flat))


def _in_order(row: Any) -> list[Any]:
    return [sp.default_sort_key(e) for e in np.asarray(row).flat]


def count(given: Given) -> int:
    """Return the number of choices of a given; 1 if symbols stand for all values."""
    shape, below = _lengths(given)
    match given.kind:
        case "natural":
            return MAX_NATURAL + 1
        case "index":
            return below
        case "permutation":
            return factorial(below)
        case "injection":
            return factorial(below) // factorial(below - prod(shape)) if below >= prod(shape) else 0
        case "index map":
            return int(below ** prod(shape))
        case "boolean":
            return int(2 ** prod(shape))
        case "orthogonal":
            return 2
    return 1


def choices(name: str, given: Given) -> Iterator[Any]:
    """Yield all choices of a given; raises ``NotImplementedError`` for an unsupported kind."""
    shape, below = _lengths(given)
    match given.kind:
        case "natural":
            yield from map(as_expressions, range(MAX_NATURAL + 1))
        case "index":
            yield from map(as_expressions, range(below))
        case "permutation":
            yield from (as_expressions(np.array(p)) for p in _reordered(permutations(range(below))))
        case "injection":
            yield from (
                as_expressions(np.array(p))
                for p in _reordered(permutations(range(below), prod(shape)))
            )
        case "index map":
            for p in _reordered(product(range(below), repeat=prod(shape))):
                yield as_expressions(np.array(p))
        case "boolean":
            for p in _reordered(product((True, False), repeat=prod(shape))):
                yield as_expressions(np.array(p, dtype=bool).reshape(shape))
        case "orthogonal":
            yield from _orthogonal(name, shape[0])
        case "function":
            yield SymbolFunction(name, given)
        case _:
            yield value(name, given)


def value(name: str, given: Given) -> Any:
    """Return the symbols of a given; raises ``NotImplementedError`` for an unsupported kind."""
    if given.kind == "function":
        return SymbolFunction(name, given)
    if given.kind not in _ASSUMED:
        raise NotImplementedError(f"{name} is {given.says or given.kind}")
    return symbols(name, *_lengths(given)[0], **_ASSUMED[given.kind])


def _lengths(given: Given) -> tuple[tuple[int, ...], int]:
    if any(n.op == "space" for n in given.shape):
        return (), 0
    below = 0 if given.below is None else max(0, int(number_of(given.below) or 0))
    return lengths(given), below


def _reordered(found: Iterator[Any]) -> list[Any]:
    """Return at most 4096 items, reordered so that the first is not the identity."""
    listed = list(islice(found, 1 << 12))
    return [*listed[1::2], *listed[::2]]


def _orthogonal(name: str, n: int) -> Iterator[Expressions]:
    """Yield products of rotations of all coordinate pairs, with a reflection and without.

    Every orthogonal matrix is such a product (Givens).
    """

    def identity() -> Expressions:
        return Expressions(np.asarray(sp.eye(n).tolist(), dtype=object).reshape(n, n))

    turned, mirror = identity(), identity()
    for i, j in combinations(range(n), 2):
        angle, step = sp.Symbol(label(name, i, j), real=True), identity()
        step.entries[i, i] = step.entries[j, j] = sp.cos(angle)
        step.entries[i, j], step.entries[j, i] = -sp.sin(angle), sp.sin(angle)
        turned = turned @ step
    mirror.entries[0, 0] = sp.Integer(-1)
    yield turned @ mirror
    yield turned


# Derivation of the conclusions of a statement, at explicit small sizes

Status = Literal["derived", "refused", "not derived"]

MAX_CASES = 48
"""The most choices of permutations, maps, masks and numbers tried at one choice of sizes."""


@dataclass(frozen=True)
class Sides:
    """One conclusion at small sizes: its two sides as SymPy expressions, entry by entry.

    ``relation`` is that of the two sides, also for an existence.
    """

    says: str
    relation: str
    left: Any
    right: Any


@dataclass(frozen=True)
class Derivation:
    """What SymPy derived about a statement, and at which sizes.

    The status "refused" means that a conclusion certainly fails at some numbers, given in ``why``.
    ``cases`` is the number of choices of discrete givens that were tried, out of ``all``.
    """

    status: Status
    why: str = ""
    sizes: tuple[dict[str, int], ...] = ()
    cases: int = 0
    all: int = 0
    natural: bool = False
    shown: tuple[Sides, ...] = ()
    seconds: float = 0.0


def derive(statement: Statement, code: Code, seconds: float = 1.0) -> Derivation:
    """Derive all conclusions with SymPy; for those it cannot derive, the result says why.

    It stops after ``seconds`` of thread time; sizes whose cases were not all reached by then do
    not count.  As long as no sizes were finished, each choice is given all of these seconds.
    """
    started = thread_time()
    done: list[Derivation] = []
    failed = Derivation("not derived", "no sizes were tried")
    for sizes in _plans(statement, code):
        left = seconds - (thread_time() - started)
        if done and left < 0.1 * seconds:
            break
        one = _at(statement, code, sizes, max(left, 0.4 * seconds if done else seconds))
        if one.status == "refused":
            return replace(one, seconds=thread_time() - started)
        if one.status == "not derived":
            failed = one
            if not one.why.startswith(_OUT_OF_TIME):
                break
        elif one.cases:
            done.append(one)
    seconds = thread_time() - started
    reached = tuple(s for one in done for s in one.sizes)
    late = failed.why.startswith(_OUT_OF_TIME) and any(
        max(s.values(), default=2) > 1 for s in reached
    )
    if not done or (failed.why != "no sizes were tried" and not late):
        return Derivation("not derived", failed.why, shown=failed.shown, seconds=seconds)
    return Derivation(
        "derived",
        "",
        reached,
        sum(one.cases for one in done),
        sum(one.all for one in done),
        any(one.natural for one in done),
        done[0].shown,
        seconds,
    )


_OUT_OF_TIME = "the time limit was reached"


def sides(statement: Statement, code: Code) -> tuple[Sides, ...]:
    """Return both sides of every conclusion as SymPy expressions, at the first choice of sizes.

    They are those of the first case that the hypotheses admit, or of the first case if none is.
    """
    first: tuple[Sides, ...] = ()
    for sizes in _plans(statement, code):
        run = _Run(statement, code, sizes)
        for case in run.cases():
            claims, hypotheses = run.at(case)
            first = first or _sides_of(claims)
            if admitted(hypotheses):
                return _sides_of(claims)
        if first:
            break
    return first


def _plans(statement: Statement, code: Code) -> Iterator[dict[str, int]]:
    """Yield choices of sizes: all 2, then tokens and others larger in turn, then all 1."""
    lengths = (n for given in statement.givens.values() for n in given.lengths)
    roles = dict(t.data for n in lengths for t in free(n) if t.op == "size")
    names = sorted({*roles, *code.links.sizes})
    tokens = [name for name in names if roles.get(name) == "tokens"]
    others = [name for name in names if name not in tokens]
    seen: list[dict[str, int]] = []
    for first, second in (((2,), (2,)), ((3, 2), (1, 2)), ((2, 3), (2, 1)), ((1,), (1,))):
        plan = {name: first[i % len(first)] for i, name in enumerate(tokens)}
        plan |= {name: second[i % len(second)] for i, name in enumerate(others)}
        if not tokens and len(set(second)) > 1:
            plan = {name: n + 1 for name, n in plan.items()}
        for given in statement.givens.values():
            if given.kind == "injection" and given.shape[0].op == "size" and len(first) > 1:
                below = length_value(given.below, plan) if given.below is not None else 1
                plan[given.shape[0].data[0]] = max(1, below - 1)
        if plan not in seen:
            seen.append(plan)
            if all(count(given_at(g, plan)) for g in statement.givens.values()):
                yield {name: Length(n) for name, n in plan.items()}


class _Run:
    """A statement at one choice of sizes."""

    def __init__(self, statement: Statement, code: Code, sizes: Mapping[str, int]) -> None:
        self.code, self.sizes = code, sizes
        self.givens = {name: given_at(g, sizes) for name, g in statement.givens.items()}
        self.chosen: dict[str, Given] = {}
        self.fixed: dict[str, Any] = {}
        for name, given in self.givens.items():
            if count(given) > 1 or given.kind in ("natural", "index"):
                self.chosen[name] = given
            else:
                self.fixed[name] = next(iter(choices(name, given)))
        self.all = 0

    def cases(self) -> Iterator[dict[str, Any]]:
        """Yield the cases; variables bound by the code are added when they first occur."""
        taken, again = 0, True
        while again:
            known = dict(self.chosen)
            self.all = int(np.prod([count(g) for g in known.values()], dtype=float))
            pools = [list(choices(name, g)) for name, g in known.items()]
            for values in islice(_spread(pools), taken, MAX_CASES):
                taken += 1
                yield dict(zip(known, values, strict=True))
                again = len(self.chosen) > len(known)
                if again:
                    taken = 0
                    break
            else:
                again = False

    def at(self, case: Mapping[str, Any]) -> tuple[dict[str, ConcreteClaim], Any]:
        """Return the conclusions and hypotheses of one case."""
        from . import namespace

        def draw(name: str, given: Given) -> Any:
            own = name if name not in self.givens else f"{name}′"
            if own in case:
                return case[own]
            if count(given) > 1 or given.kind in ("natural", "index"):
                self.chosen.setdefault(own, given)
                return next(iter(choices(own, given)))
            return value(own, given)

        ran = self.code.run(self.sizes, {**self.fixed, **case}, xp=namespace, draw=draw)
        return dict(ran.conclusions), ran.hypotheses

    @property
    def natural(self) -> bool:
        """Whether natural numbers are among the discrete givens and variables."""
        return any(g.kind == "natural" for g in self.chosen.values())


def _spread(pools: Sequence[Sequence[Any]]) -> Iterator[tuple[Any, ...]]:
    """Yield all tuples of the pools or, if there are many, some in which every pool varies."""
    total = 1
    for pool in pools:
        total *= len(pool)
    if total <= MAX_CASES:
        yield from product(*pools)
        return
    seen = set()
    for i in range(MAX_CASES):
        place = tuple((i * (2 * k + 1) + i // len(p)) % len(p) for k, p in enumerate(pools))
        if place not in seen:
            seen.add(place)
            yield tuple(pool[at] for pool, at in zip(pools, place, strict=True))


def _at(statement: Statement, code: Code, sizes: dict[str, int], seconds: float) -> Derivation:
    """Derive all conclusions at one choice of sizes."""
    found: dict[str, Any] = {"cases": 0}

    def told(status: Status, why: str = "") -> Derivation:
        return Derivation(status, why, (sizes,), **found)

    try:
        with within(seconds), interrupted_after(1.5 * seconds):
            run, generators = _Run(statement, code, sizes), Generators()
            for case in run.cases():
                check_time()
                claims, hypotheses = run.at(case)
                if not found["cases"]:  # if hypotheses rule out all cases, the last one is shown
                    found["shown"] = _sides_of(claims)
                try:
                    refused = refusal(claims, hypotheses, generators)
                except Vacuous:
                    continue
                finally:
                    found |= {"all": run.all, "natural": run.natural}
                found["cases"] += 1
                if refused:
                    return told("refused", _with_case(refused, case))
    except OutOfTime:
        after = f"after {found['cases']} cases"
        return told("not derived", f"{_OUT_OF_TIME} at {_sizes_text(sizes)} {after}")
    except NotDerived as reason:
        return told("not derived", f"{reason} ({_sizes_text(sizes)})")
    except FAILURES as error:
        text = " ".join(str(error).split())
        return told("not derived", f"{text or type(error).__name__} ({_sizes_text(sizes)})")
    return told("derived")


def _sizes_text(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name} = {int(n)}" for name, n in sizes.items()) or "no sizes"


def _with_case(text: str, case: Mapping[str, Any]) -> str:
    chosen = ", ".join(
        f"{k} = {v.entries.tolist()}"
        for k, v in case.items()
        if isinstance(v, Expressions) and v.entries.size < 10
    )
    return f"{text} with {chosen}" if chosen else text


def _sides_of(claims: Mapping[str, ConcreteClaim]) -> tuple[Sides, ...]:
    return tuple(
        Sides(
            says,
            c.relation if c.inner is None else c.inner.relation,
            as_expressions(c.left).entries,
            as_expressions(0 if c.right is None else c.right).entries,
        )
        for says, c in claims.items()
    )
