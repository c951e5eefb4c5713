"""What is said of a law, and of what: the sizes, positions and weights that ran, and no others."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import inf

from ..subjects import Subject
from .comparing import Compared

__all__ = ["Asked", "doubt", "judged"]


@dataclass
class Asked:
    """What was seen of one law, in all its sides and both towers."""

    entries: int = 0
    error: float = 0.0
    bound: float = 0.0
    chance: Fraction | None = Fraction(0)
    primes: tuple[int, ...] = ()
    functions: tuple[str, ...] = ()
    doubt: str = ""
    open: bool = False
    hidden: float = -inf
    shapes: tuple[tuple[int, ...], ...] = ()
    sizes: str = ""
    places: tuple[int, int] | None = None


def judged(asked: Asked, subject: Subject) -> tuple[str, str]:
    """The verdict of sides that do not differ, and why."""
    if asked.doubt:
        return "undecided" if asked.open else "not asked", asked.doubt
    fields = " and ".join(str(p) for p in asked.primes)
    why = f"{asked.entries} entries agree exactly, modulo {fields}, {_scope(asked, subject)}"
    if asked.hidden > -inf:
        why += f", {asked.hidden:g} taken for −inf where it is added or stands in for a score"
    if asked.chance:
        why += (f"; one that differs agrees with probability at most {float(asked.chance):.1e} "
                "(Schwartz–Zippel)")  # fmt: skip
    elif asked.functions:
        why += f"; {', '.join(asked.functions)} as unknown functions; no bound is known for chance"
    else:
        why += "; no bound is known for chance: exponentials are no polynomials of low degree"
    if asked.error > asked.bound:
        why += f"; the numbers differ by {asked.error:.1e}, which is rounding"
    return "holds", why


def _scope(asked: Asked, subject: Subject) -> str:
    """Of what it is said."""
    shapes = " and ".join(str(shape) for shape in asked.shapes[:2])
    parts = [f"of arrays {shapes}"] if shapes else [f"of {asked.sizes}"] if asked.sizes else []
    if asked.places is not None:
        parts.append("at positions {} to {}".format(*asked.places))
    if subject.module is not None:
        parts.append("at its weights in evaluation")
    return " ".join([*parts, "on the branches taken there"])


def doubt(name: str, seen: Compared, plain: bool) -> tuple[str, bool]:
    """Why neither is said, and whether the law was asked at all."""
    if not seen.entries:
        return f"{name}: no entry is defined in the field", False
    if plain:
        return "its cosines came as plain numbers: the field knows no angles in them", False
    if seen.unknown and not seen.differ:
        told = "an entry that is a number in one run is none in the field, or on the other side"
        return f"{name}: {told}", True
    told = "agree in numbers and differ in the field, which does not know all relations of"
    return f"{name}: the sides {told} the constants and functions that the code uses", True
