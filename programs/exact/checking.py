"""The check of laws over finite fields, by running the code itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from time import perf_counter
from typing import Any

import torch

from attnproof.theorems.laws import laws_of

from ...numeric.devices import name_of, one_thread
from ...numeric.residues.towers import NoTower
from ..applicable_laws import promised
from ..execution.running import describe_error, fault_in
from ..finding import Counterexample, Finding, involves_gradients
from ..reading.derived_calls import NotAsked
from ..subjects import Pair, Rotary, Subject
from .comparing import Comparison, Observations, compared, doubt, judged, same
from .laws import Lab, Sides, formulas, sides_of
from .running import Running, restored_module, with_copied_results
from .session import NoMeaning, Session, TooDeep

DEEPEST, TOWERS = 3, 2
OTHER_DRAWS = 5000  # more draws than any law makes: an offset for independent draws
ANGLE_LAWS = frozenset(
    (
        "relative",
        "norm",
        "composition",
        "identity-at-zero",
        "shift-of-cached-keys",
        "cache-keeps-its-positions",
    )
)
"""Laws that rest on relations between cosines and sines, which plain numbers do not keep."""

CHOOSES = "the code branches on its positions ({}): at positions not run it may take another branch"
LARGE = 16  # times the rounding bound: above it, agreement in the field may be by chance
NUMBERS_DIFFER = (
    "the sides agree in the field, but their numbers differ by {:.1e}, more than rounding"
)
FIXED = "both sides are the same for all inputs: the law holds vacuously for this code"
OF_TORCH = re.compile(r"no rule registered for HOP (\w+)")  # what torch raises for a function of it
STATE = "the same call returns another result after other calls"


def exact(
    subject: Subject,
    laws: Collection[str] = (),
    seed: int = 0,
    tell: Callable[[Finding], None] | None = None,
    *,
    named: bool = True,
) -> tuple[Finding, ...]:
    """Check these laws over finite fields (by default all that have a formula there), in order.

    Both sides of a law are computed by the code itself over two towers of fields, with random
    inputs.  If they agree, the law "holds", and ``why`` bounds the probability that a false law
    passes, if that is known.  This is a statement about the lengths, positions and weights that
    ran, and the branches taken there.  The law is "undecided" if the code compares or truncates
    its positions, or gives another result when the same call is repeated.  It is "broken" only if
    the sides also differ in the numbers of the same run by more than rounding explains, and "not
    asked", with the operation, if the code does something that has no meaning in a field.
    ``tell`` is called with each finding as soon as it is made.  ``named``: the user expects the
    code to obey ``laws``, which for some of them, such as the order of keys, nothing else implies.

    >>> import torch
    >>> from attnproof.programs.subjects import Layer
    >>> halves = Layer(name="mean", call=lambda x: x + x.mean(1, keepdim=True), embed=4)
    >>> exact(halves, laws=["permutation"])[0].verdict
    'holds'
    """
    if isinstance(subject, Pair):
        with one_thread():
            return (_finding(subject, subject.formulas[0].id, seed, True, True, 1)[0],)
    found, depth = [], 1
    for law in laws_of(subject.kind):
        known = bool(formulas(law.id, subject))
        if (laws and law.id not in laws) or not (known or laws):
            continue
        if not known:
            why = "this law is not checked in finite fields: it is measured"
            made = Finding(law.id, "exact", "not asked", why, seed=seed)
        else:
            wanted = named and law.id in laws
            meant = promised(law.id, subject, named=wanted)
            with one_thread():
                made, depth = _finding(subject, law.id, seed, meant, wanted, depth)
        found.append(made)
        if tell is not None:
            tell(made)
    return tuple(found)


def _without_meaning(error: Exception) -> str:
    """Return why code has no reading in a finite field, if that is why it stopped; else ""."""
    if isinstance(error, (NotAsked, NoMeaning, NoTower)):
        return str(error)
    of_torch = isinstance(error, NotImplementedError) and OF_TORCH.search(str(error))
    return f"{of_torch[1]} is not supported in a finite field" if of_torch else ""


def _finding(
    subject: Subject, law: str, seed: int, meant: bool, wanted: bool, depth: int
) -> tuple[Finding, int]:
    """Return the finding on one law, and how deeply exponentials were nested."""
    start = perf_counter()

    def made(
        verdict: str, why: str, seen: Counterexample | None = None, **more: Any
    ) -> tuple[Finding, int]:
        return Finding(
            law,
            "exact",
            verdict,
            why,
            witness=seen,
            seed=seed,
            dtype=name_of(subject.dtype),
            seconds=perf_counter() - start,
            **more,
        ), depth

    building = False
    while True:
        try:
            asked, broken = _asked(subject, law, seed, depth, wanted, building)
        except TooDeep:
            if depth < DEEPEST:
                depth += 1
                continue
            return made("not asked", f"more than {DEEPEST} nested exponentials")
        except Exception as error:  # noqa: BLE001 (any code may raise anything)
            if not building and subject.make is not None and not isinstance(error, NotAsked):
                building = True
                continue
            if why := _without_meaning(error):
                return made("not asked", why)
            fault = fault_in(subject, error)
            if fault is not None:
                return made("internal error", fault.message, traceback=fault.traceback)
            return made("undecided", describe_error(error, 200))
        if asked.doubt and not building and subject.make is not None:
            building = True
            continue
        break
    if broken is None:
        return made(*judged(asked, subject), error=asked.error, bound=asked.bound)
    here, there = broken.sides.here[0], broken.sides.there[0]
    if meant:
        why = f"{here} and {there} differ, in the field and in {broken.dtype}"
        return made("broken", why, broken.seen(), error=broken.error, bound=broken.bound)
    why = f"{here} and {there} differ, and nothing requires that they agree"
    return made("not asked", why)


def _asked(
    subject: Subject, law: str, seed: int, depth: int, wanted: bool, building: bool
) -> tuple[Observations, Comparison | None]:
    asked = Observations()
    for place in range(TOWERS):
        session = Session(seed * TOWERS + place, depth, place)
        lab = Lab(session, subject.dtype, wanted=wanted, given=subject)
        ran: list[Sides] = []
        try:
            with restored_module(subject.module):
                code = with_copied_results(_built(subject, session) if building else subject)
                broken: Comparison | None = _tower(code, law, lab, asked, ran)
            if not place and ran and broken is None and not asked.doubt:
                with restored_module(subject.module):
                    code = with_copied_results(_built(subject, session) if building else subject)
                    asked.doubt, asked.open = _again(code, law, lab, ran)
        except (NotAsked, NoMeaning):
            raise
        except Exception as error:
            if session.refused is not None:  # the code or its caller replaced our exception
                raise session.refused from error
            raise
        finally:
            session.open = False
        if broken is not None or asked.doubt:
            return asked, broken
    return asked, None


def _again(subject: Subject, law: str, lab: Lab, ran: list[Sides]) -> tuple[str, bool]:
    """Return what is wrong if results depend on earlier calls or on no input; "" if neither.

    Also return whether the law was asked at all: it was not if the sides depend on no input.
    """
    with torch.no_grad(), Running(lab.session):
        lab.again(OTHER_DRAWS)
        others = iter(sides_of(law, subject, lab))
        if _are_fixed(ran, others, lab.session):
            return f"{ran[0].here[0]}: {FIXED}", False
        lab.again()
        after = next(iter(sides_of(law, subject, lab)))
        if not same(ran[0], after, lab.session):
            return f"{after.here[0]}: {STATE}", True
    return "", False


def _are_fixed(ran: list[Sides], others: Iterator[Sides], session: Session) -> bool:
    """Whether no side depends on its inputs; runs with other inputs stop at one that does."""
    for before, other in zip(ran, others, strict=False):
        if not before.from_inputs or not same(before, other, session):
            return False
    return True


def _tower(
    subject: Subject, law: str, lab: Lab, asked: Observations, ran: list[Sides]
) -> Comparison | None:
    session = lab.session
    with torch.no_grad(), Running(session):
        for sides in sides_of(law, subject, lab):
            ran.append(sides)
            seen = compared(sides, session)
            asked.error, asked.bound = max(asked.error, seen.error), max(asked.bound, seen.bound)
            plain = law in ANGLE_LAWS and isinstance(subject, Rotary) and not session.angles
            if seen.differ and seen.error > seen.bound and not plain:
                return seen
            if seen.differ or seen.unknown or not seen.entries:
                asked.doubt, asked.open = doubt(sides.here[0], seen, plain)
                return None
            if seen.error > LARGE * max(seen.bound, 2.0**-40):
                asked.doubt, asked.open = (
                    f"{sides.here[0]}: {NUMBERS_DIFFER.format(seen.error)}",
                    True,
                )
                return None
            asked.entries += seen.entries
            if asked.chance is not None:
                asked.chance = None if seen.chance is None else max(asked.chance, seen.chance)
        if session.refused is not None:  # the code caught our exception and took another path
            raise session.refused
        if session.chosen:
            asked.doubt, asked.open = CHOOSES.format(", ".join(sorted(session.chosen))), True
            return None
    sizes = {k: v for sides in ran for k, v in sides.inputs.items() if isinstance(v, int)}
    asked.sizes = " and ".join(f"{n} {name}" for name, n in sizes.items())
    asked.shapes, asked.places = tuple(lab.shapes), lab.places
    gradients = ("gradients",) if involves_gradients(law, subject.kind) else ()
    asked.unsaid = (*lab.unsaid, *gradients)
    asked.primes = (*asked.primes, session.tower.primes[-1])
    asked.functions = tuple(sorted({*asked.functions, *session.functions}))
    asked.hidden = max(asked.hidden, session.hidden)
    return None


def _remade(make: Callable[..., Any], base: float | None) -> Any:
    """Build anew; pass a declared base, as without settings the code may just be copied."""
    if base is not None:
        with suppress(Exception):
            return make(base=base)
    return make()


def _built(subject: Subject, session: Session) -> Subject:
    """Build the code anew, so that positions in tables made by the constructor are followed."""
    assert subject.make is not None
    with torch.random.fork_rng(devices=[]), Running(session, building=True), torch.no_grad():
        made = _remade(subject.make, getattr(getattr(subject, "declared", None), "base", None))
    if not isinstance(made, type(subject)):
        raise NoMeaning("its tables hold plain numbers: `make` builds no code of this kind")
    if made.module is not None:
        made.module.eval()
    return made
