"""Ask the laws of some code over finite fields, by running the code itself."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from time import perf_counter
from typing import Any

import torch
from torch import nn

from ..programs.finding import Finding, Seen
from ..programs.laws import CodeLaw, laws_of
from ..programs.subjects import Rotary, Subject
from ..residues.towers import NoTower
from .comparing import Compared, compared
from .lab import LAWS, Lab, NotAsked
from .payload import NoMeaning, TooDeep
from .running import Running
from .session import Session

__all__ = ["exact"]

MODULES = ("rotary", "attention", "tables")
DEEPEST, TOWERS = 3, 2
OF_ANGLES = frozenset(("relative", "norm", "composition", "identity-at-zero",
                       "shift-of-cached-keys", "cache-keeps-its-positions"))  # fmt: skip
"""Laws that hold by relations of cosines and sines, which plain numbers have lost."""


def exact(
    subject: Subject, laws: Collection[str] = (), seed: int = 0,
    tell: Callable[[Finding], None] | None = None,
) -> tuple[Finding, ...]:  # fmt: skip
    """What finite fields say of these laws (all they know, if none is named), in their order.

    Both sides of a law are computed by the code itself, over two towers of fields, with every
    number that goes in drawn at random; sides that agree there "holds", and ``why`` says how
    likely a false law is to pass, where that is known.  A law is "broken" only if the sides differ
    in the numbers of the same run by more than rounding explains.  Code that does what has no
    meaning in a field is "not asked", with the operation.  ``tell`` hears of each finding as soon
    as it is made.

    >>> import torch
    >>> from attnproof.numeric.programs.subjects import Layer
    >>> halves = Layer(name="mean", call=lambda x: x + x.mean(1, keepdim=True), embed=4)
    >>> exact(halves, laws=["permutation"])[0].verdict
    'holds'
    """
    for name in MODULES:
        import_module(f"{__package__}.{name}")
    found, depth = [], 1
    for law in laws_of(subject.kind):
        known = (law.id, subject.kind) in LAWS
        if (laws and law.id not in laws) or not (known or laws):
            continue
        if not known:
            why = "this law is not asked in finite fields: it is measured"
            made = Finding(law.id, "exact", "not asked", why, seed=seed)
        else:
            meant, wanted = _meant(subject, law, laws), law.id in laws
            with _one_thread():
                made, depth = _found(subject, law.id, seed, meant, wanted, depth)
        found.append(made)
        if tell is not None:
            tell(made)
    return tuple(found)


def _meant(subject: Subject, law: CodeLaw, laws: Collection[str]) -> bool:
    """Whether code that breaks the law is wrong: always, as declared, or as it is asked."""
    declared = getattr(subject, "declared", None)
    if law.id == "permutation":
        return law.id in laws or getattr(declared, "causal", None) is False
    if law.id == "products-of-offset":
        return law.id in laws or declared is not None
    return True  # the others are not asked where nothing says that they should hold


@contextmanager
def _kept(module: nn.Module | None) -> Iterator[None]:
    """What the code leaves in its module is taken out again, and evaluation is where it ran."""
    parts = [] if module is None else list(module.modules())
    before = [(part, {k: _copied(v) for k, v in vars(part).items()}) for part in parts]
    try:
        for part in parts:
            part.training = False
        yield
    finally:
        for part, state in before:
            vars(part).clear()
            vars(part).update(state)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Arrays are so small here that threads only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _copied(x: Any) -> Any:
    return copy(x) if isinstance(x, (dict, list, set)) else x


@dataclass
class _Asked:
    """What was seen of one law, in all its sides and both towers."""

    entries: int = 0
    error: float = 0.0
    bound: float = 0.0
    chance: Fraction | None = Fraction(0)
    primes: tuple[int, ...] = ()
    functions: tuple[str, ...] = ()
    doubt: str = ""
    open: bool = False
    hidden: bool = False


def _found(
    subject: Subject, law: str, seed: int, meant: bool, wanted: bool, depth: int
) -> tuple[Finding, int]:  # fmt: skip
    """What is found, and how many exponentials stood inside one another."""
    start = perf_counter()

    def made(verdict: str, why: str, seen: Seen | None = None, **more: Any
             ) -> tuple[Finding, int]:  # fmt: skip
        return Finding(
            law, "exact", verdict, why, witness=seen, seed=seed,
            dtype=str(_dtype(subject)).removeprefix("torch."), seconds=perf_counter() - start,
            **more,
        ), depth  # fmt: skip

    building = False
    while True:
        try:
            asked, broken = _asked(subject, law, seed, depth, wanted, building)
        except TooDeep:
            if depth < DEEPEST:
                depth += 1
                continue
            return made("not asked", f"more than {DEEPEST} exponentials inside one another")
        except Exception as error:  # noqa: BLE001 (any code may raise anything)
            if not building and subject.make is not None and not isinstance(error, NotAsked):
                building = True
                continue
            if isinstance(error, (NotAsked, NoMeaning, NoTower)):
                return made("not asked", str(error))
            told = " ".join(str(error).split())[:200]
            return made("undecided", f"the code raised {type(error).__name__}: {told}")
        if asked.doubt and not building and subject.make is not None:
            building = True
            continue
        break
    if broken is None:
        return made(*_judged(asked), error=asked.error, bound=asked.bound)
    here, there = broken.sides.here[0], broken.sides.there[0]
    if meant:
        why = f"{here} and {there} differ, in the field and in {broken.dtype}"
        return made("broken", why, broken.seen(), error=broken.error, bound=broken.bound)
    why = f"{here} and {there} differ, and nothing says that they should agree"
    return made("not asked", why)


def _judged(asked: _Asked) -> tuple[str, str]:
    if asked.doubt:
        return "undecided" if asked.open else "not asked", asked.doubt
    fields = " and ".join(str(p) for p in asked.primes)
    why = f"{asked.entries} entries agree exactly, modulo {fields}"
    if asked.chance:
        why += (f"; one that differs agrees with probability at most {float(asked.chance):.1e} "
                "(Schwartz–Zippel)")  # fmt: skip
    elif asked.functions:
        why += f"; {', '.join(asked.functions)} as unknown functions; no bound is known for chance"
    else:
        why += "; no bound is known for chance: exponentials are no polynomials of low degree"
    if asked.hidden:
        why += "; what is added at or below −10000 is taken as −inf"
    if asked.error > asked.bound:
        why += f"; the numbers differ by {asked.error:.1e}, which is rounding"
    return "holds", why


def _asked(
    subject: Subject, law: str, seed: int, depth: int, wanted: bool, building: bool
) -> tuple[_Asked, Compared | None]:  # fmt: skip
    asked = _Asked()
    for place in range(TOWERS):
        session = Session(seed * TOWERS + place, depth, place)
        lab = Lab(session, _dtype(subject), wanted=wanted)
        try:
            with _kept(subject.module):
                code = _built(subject, session) if building else subject
                broken: Compared | None = _tower(code, law, lab, asked)
        except (NotAsked, NoMeaning):
            raise
        except Exception as error:
            if session.refused is not None:  # the code, or who calls it, raised another of it
                raise session.refused from error
            raise
        finally:
            session.open = False
        if broken is not None or asked.doubt:
            return asked, broken
    return asked, None


def _tower(subject: Subject, law: str, lab: Lab, asked: _Asked) -> Compared | None:
    session = lab.session
    with torch.no_grad(), Running(session):
        for sides in LAWS[law, subject.kind](subject, lab):
            seen = compared(sides, session)
            asked.error, asked.bound = max(asked.error, seen.error), max(asked.bound, seen.bound)
            plain = law in OF_ANGLES and isinstance(subject, Rotary) and not session.angles
            if seen.differ and seen.error > seen.bound and not plain:
                return seen
            if seen.differ or not seen.entries:
                asked.doubt, asked.open = _doubt(sides.here[0], seen, plain)
                return None
            asked.entries += seen.entries
            if asked.chance is not None:
                asked.chance = None if seen.chance is None else max(asked.chance, seen.chance)
    asked.primes = (*asked.primes, session.tower.primes[-1])
    asked.functions = tuple(sorted({*asked.functions, *session.functions}))
    asked.hidden |= session.hidden
    return None


def _doubt(name: str, seen: Compared, plain: bool) -> tuple[str, bool]:
    """Why neither is said, and whether the law was asked at all."""
    if not seen.entries:
        return f"{name}: no entry is defined in the field", False
    if plain:
        return "its cosines came as plain numbers: the field knows no angles in them", False
    told = "agree in numbers and differ in the field, which does not know all relations of"
    return f"{name}: the sides {told} the constants and functions that the code uses", True


def _dtype(subject: Subject) -> torch.dtype:
    """That of the parameters; float32 where none are known."""
    module = subject.module
    parts = [] if module is None else [*module.parameters(), *module.buffers()]
    return next((x.dtype for x in parts if x.is_floating_point()),
                torch.float32)  # fmt: skip


def _remade(make: Callable[..., Any], base: float | None) -> Any:
    """Built anew; where a base is declared it is given, as code without one may be copied only."""
    if base is not None:
        with suppress(Exception):
            return make(base=base)
    return make()


def _built(subject: Subject, session: Session) -> Subject:
    """The same code built anew, so that positions in tables made beforehand are followed."""
    assert subject.make is not None
    with torch.random.fork_rng(devices=[]), Running(session, building=True), torch.no_grad():
        made = _remade(subject.make, getattr(getattr(subject, "declared", None), "base", None))
    if not isinstance(made, type(subject)):
        raise NoMeaning("its tables hold plain numbers: `make` builds no code of this kind")
    if made.module is not None:
        made.module.eval()
    return made
