"""The laws over finite fields: random inputs, and both sides as the code itself computes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from attnproof.theorems.laws import Formula

from ...numeric.residues.residue import Degree
from ..execution.draw import counting
from ..execution.rotary_matrices import MADE, require_shape_of
from ..reading.applicability import no_formula
from ..reading.calls import REFUSALS, Adapter, calls_of
from ..reading.derived_calls import NotAsked
from ..subjects import (
    Additive,
    Attention,
    Layer,
    Pair,
    Rotary,
    Subject,
    formulas_of,
    lengths_of_code,
)
from .guards import POSITION, as_numbers, whole
from .session import Field, NoMeaning, Session
from .tensor import Duck, not_intercepted, numbers_of


@dataclass(frozen=True)
class Sides:
    """Two results that should agree, each with a description, and their inputs."""

    here: tuple[str, Tensor]
    there: tuple[str, Tensor]
    inputs: Mapping[str, Any]
    from_inputs: bool = True
    """Whether the code takes the drawn inputs; else both sides depend on sizes only."""


class Lab:
    """The source of random inputs of one session, in a dtype.

    ``given``: the code as the user gave it; ``wanted``: the law was asked for by name.
    """

    def __init__(
        self, session: Session, dtype: torch.dtype, *, wanted: bool = False, given: Any = None
    ) -> None:
        self.session, self.dtype, self.wanted, self.given = session, dtype, wanted, given
        self._drawn = 0
        self.whys: dict[int, str] = {}
        self.shapes: list[tuple[int, ...]] = []
        self.places: tuple[int, int] | None = None
        self.asked: dict[int, Formula] = {}
        session.most = getattr(given, "most", session.most)

    @property
    def unsaid(self) -> tuple[str, ...]:
        """The parts of the law's sentence that no formula checked here covers."""
        left = dict.fromkeys(one.unsaid for one in self.asked.values())
        return () if "" in left else tuple(left)

    def again(self, start: int = 0) -> None:
        """Restart the sequence of draws, from the beginning or from another offset."""
        self._drawn = start

    def _next(self) -> torch.Generator:
        self._drawn += 1
        return torch.Generator().manual_seed(self.session.seed * 1009 + self._drawn)

    @not_intercepted
    def numbers(self, *shape: int) -> Duck:
        """Draw independent random numbers, with independent residues."""
        if shape not in self.shapes and len(shape) > 1:
            self.shapes.append(shape)
        numbers = torch.randn(shape, generator=self._next(), dtype=torch.float64).to(self.dtype)
        levels = tuple(
            self.session.drawn(k, shape, self._drawn) for k in range(len(self.session.fields))
        )
        return Duck(numbers, Field(levels, Degree(1, 0)), self.session)

    @not_intercepted
    def positions(self, x: Tensor) -> Duck:
        """Return positions as whole numbers that are followed."""
        if x.numel():
            low, high = self.places or (int(x.min()), int(x.max()))
            self.places = min(low, int(x.min())), max(high, int(x.max()))
        return Duck(x, whole(x), self.session, POSITION)

    @not_intercepted
    def followed(self, x: Tensor) -> Duck:
        """Return whole numbers as positions, and real ones (0, 1 and the like) as known numbers."""
        if not x.is_floating_point():
            return self.positions(x)
        numbers = x.to(self.dtype)
        return Duck(numbers, as_numbers(numbers), self.session)

    @not_intercepted
    def whole_numbers(self, most: int, *shape: int, first: int = 0) -> Tensor:
        """Draw plain whole numbers from ``first`` to ``most``."""
        return torch.randint(first, most + 1, shape, generator=self._next())

    @not_intercepted
    def order(self, n: int) -> Tensor:
        """Draw a permutation of n > 1 entries that moves every entry."""
        generator, found = self._next(), torch.arange(n)
        while bool((found == torch.arange(n)).any()):
            found = torch.randperm(n, generator=generator)
        return found


# All different, so that axes cannot be confused; small for rotary code.
LENGTHS = {"B": 2, "A": 1, "n": 5, "r": 3, "m": 2}
ROTATED = {"n": 3, "r": 4, "c": 8}
SHIFT, SPAN = 5, 11
ANGLES = "its table holds plain numbers, whose angles are not known in the field"
PLAIN_BIAS = "the bias is made of plain numbers, whose positions are not known in the field"
OF_WINDOWS = ("windowed", "indexed", "gridded")  # calls that take sizes
VANISHES = "channels vanish, or change their sign: the law does not apply to those"
Calls = SimpleNamespace


def formulas(law: str, subject: Subject) -> tuple[Formula, ...]:
    """Return the formulas of a law for this code that may have a meaning in finite fields."""
    return tuple(
        f for f in formulas_of(subject) if f.id == law and f.kind != "mask" and not f.floats
    )


def sides_of(law: str, subject: Any, lab: Lab) -> Iterator[Sides]:
    """Yield both sides of each equation that a law states for the code, at each of its lengths.

    A formula that the code refuses is skipped if another formula of the same call was evaluated:
    code of one length, for example, lets later tokens be changed but not removed.  Raises
    ``NotAsked`` with a reason if no formula was evaluated.
    """
    whys: list[str] = []
    said: set[str] = set()
    refused: dict[str, Exception] = {}
    calls: Calls | None = None
    for formula in formulas(law, subject):
        why = _why_not(formula, lab)
        if why:
            whys.append(why)
            continue
        calls = calls or _calls(subject, lab)
        if not hasattr(calls, formula.call):
            continue
        try:
            for found in _at_all_lengths(formula, calls, subject, lab):
                said.add(formula.call)
                lab.asked[id(formula)] = formula
                yield found
        except REFUSALS as error:
            if lab.session.refused is not None or isinstance(error, NoMeaning):
                raise
            refused.setdefault(formula.call, error)
    for call, raised in refused.items():
        if call not in said:
            raise raised
    if not said:
        raise NotAsked(whys[0] if whys else "the law does not apply to this code")


@not_intercepted
def _why_not(formula: Formula, lab: Lab) -> str:
    """Return why a formula does not apply to the code as given; "" if it does.  Cached."""
    if formula.call in OF_WINDOWS:
        return "it is checked for some sizes of windows, by measurement"
    place = id(formula)
    if place not in lab.whys:
        lab.whys[place] = no_formula(formula, lab.given, named=lab.wanted)
        lab.session.refused = None
    return lab.whys[place]


def _at_all_lengths(formula: Formula, calls: Calls, subject: Any, lab: Lab) -> Iterator[Sides]:
    for sizes in ({}, *formula.sizes):
        lengths = {**_lengths(subject), **sizes}
        try:
            found = _equations(formula, calls, subject, lab, lengths)
        except REFUSALS:
            many = {*lengths} & {c for told in formula.given.values() for c in told.split()[1:]}
            if (
                lab.session.refused is not None
                or not {"n", "r"} <= many
                or (lengths["n"] == lengths["r"] or formula.call != "attend")
            ):
                raise
            # the code may need equally many queries and keys
            found = _equations(formula, calls, subject, lab, {**lengths, "r": lengths["n"]})
        yield from found
        _above_zero(formula, calls, subject, lab, lengths)


def _equations(
    formula: Formula, calls: Calls, subject: Any, lab: Lab, lengths: Mapping[str, int]
) -> list[Sides]:
    values = {name: _drawn(told, subject, lab, lengths) for name, told in formula.given.items()}
    told = {name: _shown(value) for name, value in values.items()}
    inputs = {**_words(formula, lengths), **{k: v for k, v in told.items() if v is not None}}
    names = formula.names or (("the left side", "the right side"),)
    return [
        Sides(
            (names[k % len(names)][0], here),
            (names[k % len(names)][1], there),
            inputs,
            from_inputs=not formula.of_sizes,
        )
        for k, (here, there) in enumerate(formula.equations(calls, **values))
    ]


def _above_zero(formula: Formula, calls: Calls, subject: Any, lab: Lab, at: dict[str, int]) -> None:
    """Raise ``NotAsked`` if the formula's positivity condition fails: its equations are vacuous."""
    if formula.positive is None:
        return
    values = {name: _drawn(told, subject, lab, at) for name, told in formula.given.items()}
    if not bool((numbers_of(formula.positive(calls, **values)) > 0).all()):
        raise NotAsked(VANISHES)


def _shown(value: Any) -> Any:
    """Return an input as shown in a counterexample: whole numbers; None for real ones."""
    if isinstance(value, int):
        return value
    numbers = numbers_of(value)
    return None if numbers.is_floating_point() else numbers.tolist()


def _words(formula: Formula, lengths: Mapping[str, int]) -> dict[str, Any]:
    """Return the shapes of the real inputs as shown in a counterexample; for a bias, its tokens."""
    if formula.kind == "bias":
        return {"tokens": lengths["n"] + lengths["r"]}
    shapes = [told.split()[1:] for told in formula.given.values() if told.startswith("real ")]
    return {"shapes": [[lengths[c] for c in letters] for letters in shapes]}


def _lengths(subject: Subject) -> dict[str, int]:
    """Return the length of each letter."""
    if isinstance(subject, Pair):
        return subject.lengths
    found = {**LENGTHS, **lengths_of_code(subject)}
    if isinstance(subject, Rotary):
        found |= ROTATED
    if isinstance(subject, Attention):
        found |= {"D": subject.width or 4}
    several = isinstance(subject, (Additive, Layer)) or "image" in subject.given  # rows of an image
    return {**found, "n": 4} if several else found


def _drawn(told: str, subject: Any, lab: Lab, lengths: Mapping[str, int]) -> Any:
    """Draw an input of the given kind with these axes."""
    kind, *letters = told.split()
    shape = [lengths[c] for c in letters]
    if kind == "real":
        if "E" in letters and not lengths["E"]:
            raise NotAsked("the width of a token is not known")
        return lab.numbers(*shape)
    if kind == "permutation":
        return lab.order(*shape) if shape[0] > 1 else torch.arange(1)
    if kind in ("keep", "padding"):
        kept = counting(kind, *shape)
        if kind == "padding" and not getattr(subject, "from_start", False):
            kept[1::2] = kept[1::2].flip(1)  # in every other row padding stands at the start
        return kept
    if kind in ("truth", "hidden"):
        kept = lab.whole_numbers(1, *shape).bool()
        kept[..., :1] = True
        return kept if kind == "truth" else ~kept
    span = min(SPAN, (subject.most - subject.first) // 2) if isinstance(subject, Rotary) else SPAN
    if span < 2:
        raise NotAsked(f"the code has positions {subject.first} to {subject.most} only")
    if kind == "step":
        return min(SHIFT, span)
    axes = getattr(subject, "axes", 0) if kind in ("position", "shift") else 0
    if kind == "shift":
        drawn = lab.whole_numbers(min(SHIFT, span), *[axes] * bool(axes), first=1)
    else:
        shape += [axes] * bool(axes)
        drawn = lab.whole_numbers(subject.first + span, *shape, first=subject.first)
        if len(shape) > 1 and shape[1] > 1:  # not all at the same position
            drawn[0, 1] = (drawn[0, 0] - subject.first + 1) % (span + 1) + subject.first
        if letters[0] in "AB" and getattr(subject, "shared", False):
            drawn = drawn[:1].expand(drawn.shape).clone()  # so that rows are rotated together
    return lab.positions(drawn)


def _calls(subject: Any, lab: Lab) -> Calls:
    """Return the calls of the code, adapted to arrays of the field."""
    checks: dict[str, Callable[..., Any]] = {
        "biased": _require_followed_bias,
        "added": _require_followed_table,
    }
    rotary = isinstance(subject, Rotary)

    def call(name: str, code: Callable[..., Any]) -> Callable[..., Any]:
        """Return the call, made with contiguous copies of its tensors."""
        check = checks.get(name)

        def made(*given: Any) -> Any:
            # the code may write into its arguments
            whole = [x.contiguous().clone() if isinstance(x, Tensor) else x for x in given]
            found = code(*whole)
            if rotary and name in MADE:
                require_shape_of(whole[0], found)
            return found if check is None else check(lab, found, *given)

        return made

    return calls_of(subject, Adapter(call, lab.followed, numbers_of, lab.dtype))


def _require_followed_bias(lab: Lab, found: Any, x: Tensor, y: Tensor) -> Any:
    """Return the bias; raise if it is made of plain numbers, or is the same number everywhere."""
    del lab, y
    if not isinstance(found, Duck):
        raise NoMeaning(PLAIN_BIAS)
    numbers = numbers_of(found)
    if x.shape[0] > 1 and bool((numbers == numbers.flatten()[0]).all()):
        told = f"the bias is {float(numbers.flatten()[0]):g} everywhere"
        raise NotAsked(f"{told}: the law holds vacuously")
    return found


def _require_followed_table(lab: Lab, found: Any, x: Tensor) -> Any:
    """Return the result; raise if it is a table alone, of which the field follows no angle."""
    if not bool(numbers_of(x).any()) and lab.session.angles == 0:
        raise NoMeaning(ANGLES)
    return found
