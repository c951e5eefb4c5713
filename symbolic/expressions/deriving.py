"""SymPy derives the conclusions of a statement from its code, at explicit small sizes.

The body runs on arrays of SymPy expressions, once for each choice of what chooses indices, and
each conclusion is derived entry by entry.  No term is looked at, and no search of the kernel.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice, product
from time import thread_time
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import sympy as sp

from ..bodies import Code, given_at
from ..budget import OutOfTime, spend, within
from ..concrete import ConcreteClaim
from ..givens import Given
from ..scalars import length_value
from ..terms import free
from .array import Expressions, Length, as_expressions
from .facts import Impossible, use
from .fractions import Undefined
from .generators import Finer, Generators, Unreadable
from .signs import (
    ABOVE,
    AT_LEAST,
    certain_sign,
    certainly_not_zero,
    certified_value,
    defined_with,
)
from .values import choices, count, value

if TYPE_CHECKING:
    from ..statement import Statement

__all__ = ["Derivation", "Sides", "derive", "sides"]

Status = Literal["derived", "refused", "not derived"]

MOST_CASES = 48
"""The choices of permutations, maps, masks and numbers that are taken at one choice of sizes."""

_FAILED = (NotImplementedError, Undefined, Unreadable, ArithmeticError, TypeError, ValueError,
           IndexError, KeyError, AttributeError)  # fmt: skip


@dataclass(frozen=True)
class Sides:
    """One conclusion at small sizes: its two sides as SymPy expressions, entry by entry."""

    says: str
    relation: str
    left: Any
    right: Any


@dataclass(frozen=True)
class Derivation:
    """What SymPy derived of a statement, and at which sizes.

    ``refused`` is a conclusion whose sides certainly differ at some numbers, which ``why`` tells.
    ``cases`` are the choices of indices, masks and natural numbers that were taken, of ``all``.
    """

    status: Status
    why: str = ""
    sizes: tuple[dict[str, int], ...] = ()
    cases: int = 0
    all: int = 0
    conclusions: int = 0
    natural: bool = False
    shown: tuple[Sides, ...] = ()
    seconds: float = 0.0


@dataclass
class _Outcome:
    """What came out at one choice of sizes."""

    cases: int = 0
    all: int = 0
    conclusions: int = 0
    why: str = ""
    refused: str = ""
    shown: tuple[Sides, ...] = ()
    natural: bool = False


class _Vacuous(Exception):
    """The hypotheses do not hold for this choice, so nothing is said of it."""


def derive(statement: Statement, code: Code, seconds: float = 1.0) -> Derivation:
    """Let SymPy derive all conclusions; what it could not, it says why.

    It stops when the seconds of this thread are over: sizes at which not every case was reached
    by then do not count.
    """
    started = thread_time()
    done: list[tuple[dict[str, int], _Outcome]] = []
    failed = _Outcome(why="no sizes were tried")
    for sizes in _plans(statement, code):
        left = seconds - (thread_time() - started)
        if done and left < 0.1 * seconds:
            break
        outcome = _at(statement, code, sizes, max(left, 0.4 * seconds))
        if outcome.refused:
            return Derivation(
                "refused", outcome.refused, (sizes,), outcome.cases, outcome.all,
                outcome.conclusions, outcome.natural, outcome.shown, thread_time() - started,
            )  # fmt: skip
        if outcome.why:
            failed = outcome
            if not outcome.why.startswith(_LATE):
                break
        elif outcome.cases:
            done.append((sizes, outcome))
    seconds = thread_time() - started
    late = failed.why.startswith(_LATE) and any(max(s.values(), default=2) > 1 for s, _ in done)
    if not done or (failed.why and failed.why != "no sizes were tried" and not late):
        return Derivation("not derived", failed.why, shown=failed.shown, seconds=seconds)
    found = [outcome for _, outcome in done]
    return Derivation(
        "derived", "", tuple(s for s, _ in done), sum(o.cases for o in found),
        sum(o.all for o in found), found[0].conclusions, any(o.natural for o in found),
        found[0].shown, seconds,
    )  # fmt: skip


_LATE = "the time was over"


def sides(statement: Statement, code: Code) -> tuple[Sides, ...]:
    """Both sides of every conclusion as SymPy expressions, at the first choice of small sizes."""
    for sizes in _plans(statement, code):
        run = _Run(statement, code, sizes)
        for case in run.cases():
            claims, _ = run.at(case)
            return _shown(claims)
    return ()


def _plans(statement: Statement, code: Code) -> Iterator[dict[str, int]]:
    """Choices of sizes: all 2, crossing each other in both ways, and all 1."""
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
        """The choices; variables that the code binds join them when they are first met."""
        taken, again = 0, True
        while again:
            known = dict(self.chosen)
            self.all = int(np.prod([count(g) for g in known.values()], dtype=float))
            pools = [list(choices(name, g)) for name, g in known.items()]
            for values in islice(_spread(pools), taken, MOST_CASES):
                taken += 1
                yield dict(zip(known, values, strict=True))
                again = len(self.chosen) > len(known)
                if again:
                    taken = 0
                    break
            else:
                again = False

    def at(self, case: Mapping[str, Any]) -> tuple[dict[str, ConcreteClaim], Any]:
        """The conclusions and hypotheses with these choices."""
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
        """Whether natural numbers were among what was chosen."""
        return any(g.kind == "natural" for g in self.chosen.values())


def _spread(pools: Sequence[Sequence[Any]]) -> Iterator[tuple[Any, ...]]:
    """All tuples; if they are many, those first in which every pool moves."""
    total = 1
    for pool in pools:
        total *= len(pool)
    if total <= MOST_CASES:
        yield from product(*pools)
        return
    seen = set()
    for i in range(MOST_CASES):
        place = tuple((i * (2 * k + 1) + i // len(p)) % len(p) for k, p in enumerate(pools))
        if place not in seen:
            seen.add(place)
            yield tuple(pool[at] for pool, at in zip(pools, place, strict=True))


def _at(statement: Statement, code: Code, sizes: dict[str, int], seconds: float) -> _Outcome:
    outcome = _Outcome()
    try:
        with within(seconds), _stopped_after(1.5 * seconds):
            run = _Run(statement, code, sizes)
            for case in run.cases():
                spend()
                claims, hypotheses = run.at(case)
                outcome.shown = outcome.shown or _shown(claims)
                outcome.conclusions = len(claims)
                try:
                    refused = _case(claims, hypotheses)
                except _Vacuous:
                    continue
                finally:
                    outcome.all, outcome.natural = run.all, run.natural
                outcome.cases += 1
                if refused:
                    outcome.refused = _with_case(refused, case)
                    return outcome
    except OutOfTime:
        outcome.why = f"{_LATE} at {_told(sizes)} after {outcome.cases} cases"
    except _NotDerived as reason:
        outcome.why = f"{reason} ({_told(sizes)})"
    except _FAILED as error:
        told = " ".join(str(error).split())
        outcome.why = f"{told or type(error).__name__} ({_told(sizes)})"
    return outcome


@contextmanager
def _stopped_after(seconds: float) -> Iterator[None]:
    """Stop even inside SymPy, in the main thread of a system that has such a timer."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(
        signal, "SIGVTALRM"
    ):
        yield
        return

    def stop(*_: object) -> None:
        raise OutOfTime("SymPy took longer than it may")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _told(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name} = {int(n)}" for name, n in sizes.items()) or "no sizes"


def _with_case(told: str, case: Mapping[str, Any]) -> str:
    chosen = ", ".join(f"{k} = {v.entries.tolist()}" for k, v in case.items()
                       if isinstance(v, Expressions) and v.entries.size < 10)  # fmt: skip
    return f"{told} with {chosen}" if chosen else told


class _NotDerived(Exception):
    """A conclusion that was neither derived nor refused."""


def _case(claims: Mapping[str, ConcreteClaim], hypotheses: Iterable[ConcreteClaim]) -> str:
    """Derive every conclusion of one case; what refutes one, or "" if all are derived."""
    generators = None
    while True:
        generators = Generators(generators)
        try:
            judge = _Judge(generators, tuple(hypotheses))
            for says, claim in claims.items():
                why = judge.why_not(claim)
                if not why:
                    continue
                if not judge.assumed and (gap := _gap(claim)):
                    return f"{says}: {gap}" if says else gap
                raise _NotDerived(f"{says}: {why}" if says else why)
            return ""
        except Finer:
            spend()


@dataclass
class _Judge:
    """What SymPy can derive from the hypotheses of one case."""

    generators: Generators
    hypotheses: tuple[ConcreteClaim, ...]
    assumed: bool = False
    equations: list[sp.Expr] = field(default_factory=list)
    signs: dict[sp.Expr, int] = field(default_factory=dict)
    taken: list[tuple[Any, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for h in self.hypotheses:
            if h.again is not None or h.variables:
                self.assumed = True
                continue
            if h.relation == "=":
                self.equations += _differences(h.left, h.right)
            elif h.relation in (">", ">="):
                strength = ABOVE if h.relation == ">" else AT_LEAST
                for e in _differences(h.left, 0 if h.right is None else h.right):
                    if e.is_number and abs(told := certain_sign(e, self.generators)):
                        if told < 0 or (strength == ABOVE and told < ABOVE):
                            raise _Vacuous
                        continue
                    self.assumed = True
                    self.signs[e] = strength
            elif h.relation == "!=":
                differences = _differences(h.left, h.right)
                if all(e.is_zero for e in differences):
                    raise _Vacuous
                self.assumed |= not any(e.is_number for e in differences)
            else:
                self.assumed = True
        self.assumed |= any(not e.is_zero for e in self.equations)
        self._use(())

    def _use(self, more: Iterable[sp.Expr]) -> None:
        self.generators.rules.clear()
        try:
            use(self.generators, [*self.equations, *more])
        except Impossible:
            if not more:
                raise _Vacuous from None
            raise
        self._signs = {
            self.generators.canonical(self.generators.lower(e)): strength
            for e, strength in self.signs.items()
        }

    def _known(self, e: sp.Expr) -> int:
        if not self._signs:
            return 0
        try:
            form = self.generators.canonical(self.generators.lower(e))
        except (Undefined, Unreadable):
            return 0
        if form in self._signs:
            return self._signs[form]
        ratios = ((form / other, strength) for other, strength in self._signs.items())
        return next((s for r, s in ratios if r.is_Rational and r.is_positive), 0)

    def why_not(self, claim: ConcreteClaim) -> str:
        """Why a conclusion is not derived; "" if it is."""
        bound = [variable.name for variable in (*claim.variables, claim.unknown) if variable]
        if len(set(bound)) < len(bound):  # one symbol would stand for two numbers
            return "a name is bound inside itself"
        why = self._plainly(claim)
        if why and claim.using:
            facts = self._facts(claim)
            if facts:
                try:
                    self._use(facts)
                    why = self._plainly(claim)
                except Impossible:
                    why = ""
                finally:
                    self._use(())
        return why

    def _facts(self, claim: ConcreteClaim) -> list[sp.Expr]:
        """The equations that the author would use, if they are granted or derived themselves."""
        facts: list[sp.Expr] = []
        for instance in claim.using:
            spend()
            told = instance.claim
            if told.relation != "=":
                continue
            equations = _differences(told.left, told.right)
            if self._granted(instance.values, equations) or not self.why_not(told):
                facts += equations
        return facts

    def _granted(self, values: Mapping[str, Any], equations: Sequence[sp.Expr]) -> bool:
        for h in self.hypotheses:
            if h.again is None or h.relation != "=":
                continue
            if set(values) - {variable.name for variable in h.variables}:
                continue
            at = h.again(**values)
            if _differences(at.left, at.right) == list(equations):
                return True
        return False

    def _plainly(self, claim: ConcreteClaim) -> str:
        match claim.relation:
            case "=":
                return self._equal(claim)
            case ">" | ">=":
                return self._ordered(claim)
            case "!=":
                return self._differ(claim)
            case "exists":
                return self._exists(claim)
        return f"a conclusion with {claim.relation} is not of a kind that SymPy is asked for"

    def _equal(self, claim: ConcreteClaim) -> str:
        differences = _differences(claim.left, claim.right)
        if claim.by == "squares":
            differences = [sp.Add(*(e**2 for e in differences))]
        defined = 0
        for e in differences:
            spend()
            try:
                if not self.generators.is_zero(e):
                    return "the sides are not one normal form"
                defined += 1
            except Undefined:
                continue
        if not defined:
            raise _Vacuous
        return ""

    def _ordered(self, claim: ConcreteClaim) -> str:
        differences = _differences(claim.left, 0 if claim.right is None else claim.right)
        if not differences:
            raise _Vacuous
        forms = differences
        if claim.links:
            forms = _entries(claim.links[-1][1], differences)
        wanted = ABOVE if claim.relation == ">" else AT_LEAST
        for e, form in zip(differences, forms, strict=True):
            spend()
            options = [e] if e == form else [form, e]
            for option in options:
                if option is not e and not (
                    defined_with(option, [e], self.generators)
                    and self.generators.is_zero(option - e)
                ):
                    continue
                if certain_sign(option, self.generators, self._known) >= wanted:
                    break
            else:
                return "the form of the difference does not show its sign"
        return ""

    def _differ(self, claim: ConcreteClaim) -> str:
        differences = _differences(claim.left, claim.right)
        if any(certainly_not_zero(e, self.generators) for e in differences):
            return ""
        apart = as_expressions(claim.apart).item()
        first, last = (as_expressions(claim.links[k][1]).item() for k in (0, -1))
        if not all(defined_with(x, differences, self.generators) for x in (first, last, apart)):
            return "the contradiction divides by what may be 0, or takes a root of it"
        try:
            self._use(differences)
            if self.generators.is_zero(first - last - apart) or self.generators.is_zero(
                first - last
            ):
                reached = self.generators.is_zero(first - last)
            else:
                return "the steps of the contradiction are not one normal form"
        except Impossible:
            return ""
        finally:
            self._use(())
        if not self.generators.is_zero(first - last - apart):
            return "the last step of the contradiction is another number"
        if reached and certainly_not_zero(apart, self.generators):
            return ""
        return "that the difference is not 0 is not seen from its form"

    def _exists(self, claim: ConcreteClaim) -> str:
        if claim.witness is None or claim.unknown is None or claim.inner is None:
            return "the existence names no witness"
        unknown = as_expressions(claim.unknown.value).entries
        witness = np.broadcast_to(as_expressions(claim.witness).entries, unknown.shape)
        for array in claim.free_of:
            entries = list(as_expressions(array).entries.flat)
            if not all(e.is_Symbol for e in entries):
                return "what the witness must not depend on is no symbol"
            if any(e.free_symbols & set(entries) for e in witness.flat):
                return "the witness depends on what it must not"
        at = dict(zip(unknown.flat, witness.flat, strict=True))
        for e, found in at.items():
            wanted = ABOVE if e.is_positive else AT_LEAST if e.is_nonnegative else None
            if not e.is_Symbol:
                return "what exists is no array of symbols"
            if wanted and certain_sign(found, self.generators, self._known) < wanted:
                return "the witness is not seen to be of the kind that is wanted"

        def put(x: Any) -> Expressions:
            return Expressions(
                np.frompyfunc(lambda e: e.xreplace(at), 1, 1)(as_expressions(x).entries)
            )

        inner = claim.inner
        right = None if inner.right is None else put(inner.right)
        return self._plainly(ConcreteClaim(inner.relation, put(inner.left), right))


def _differences(left: Any, right: Any) -> list[sp.Expr]:
    x, y = as_expressions(left), as_expressions(right)
    if any(isinstance(e, sp.Expr) is False for a in (x, y) for e in a.entries.flat):
        raise Unreadable("a conclusion compares truth values")
    return [e for e in (x - y).entries.flat if not e.has(sp.nan, sp.zoo)]


def _entries(form: Any, like: Sequence[sp.Expr]) -> list[sp.Expr]:
    entries = list(as_expressions(form).entries.flat)
    return entries * len(like) if len(entries) == 1 else entries


def _gap(claim: ConcreteClaim) -> str:
    """Numbers at which a conclusion certainly fails, in words; "" if none are found."""
    if claim.relation not in ("=", ">", ">="):
        return ""
    differences = _differences(claim.left, 0 if claim.right is None else claim.right)
    symbols = sorted({s for e in differences for s in e.free_symbols}, key=str)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        values = {}
        for s in symbols:
            number = sp.Rational(int(rng.integers(1, 8)), int(rng.integers(1, 4)))
            free = not s.is_nonnegative and rng.integers(2)
            values[s] = -number if free else number
        for e in differences:
            spend()
            try:
                told = _sign_at(e, values)
            except _FAILED:
                continue
            if told and (claim.relation == "=" or told < 0):
                where = ", ".join(f"{s} = {v}" for s, v in islice(values.items(), 6))
                more = ", .." if len(values) > 6 else ""
                return f"left - right is not as said at {where}{more}" if where else "it fails"
    return ""


def _sign_at(e: sp.Expr, values: Mapping[sp.Symbol, sp.Rational]) -> int:
    """The certain sign of an expression at some numbers; 0 if the balls do not tell."""
    from flint import fmpq

    from ..certified_numbers import finite
    from ..turns import ball

    exact = {s: fmpq(int(v.p), int(v.q)) for s, v in values.items()}
    x = ball(certified_value(e, exact))
    if not finite(x):
        return 0
    return 1 if x > 0 else -1 if x < 0 else 0


def _shown(claims: Mapping[str, ConcreteClaim]) -> tuple[Sides, ...]:
    return tuple(
        Sides(says, c.relation, as_expressions(c.left).entries,
              as_expressions(0 if c.right is None else c.right).entries)
        for says, c in claims.items()
    )  # fmt: skip
