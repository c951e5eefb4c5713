"""Input designs: how the entries of token arrays are spread, so that faults show themselves.

==========  ==========================================================================
normal      independent normal entries; scores spread 3, a few keys stand out
shifted     values with a large row in common: attention is that row and a small rest
peaked      scores spread 3 times as wide: a few keys hold nearly all weight
needle      one key meets the queries far better than all others
large       scores 100 times as large: weights saturate, float16 is near its end
clustered   few distinct keys, any values
constant    all token rows equal
structured  two distinct keys, values 1 with one of them and −1 with the other
==========  ==========================================================================

What they do to the givens of a statement is in :mod:`~attnproof.numeric.design_changes`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


class UnknownDesign(ValueError):
    """No input design has the name asked for."""


@dataclass(frozen=True)
class Design:
    """One way to draw token arrays.

    ``continuous`` says that entries are independent draws from a continuous law, so that the
    probabilistic bound may be used: rounding errors of equal entries are equal, and do not cancel.
    """

    name: str
    continuous: bool = True


NORMAL = Design("normal")
# Equal keys have equal weights with equal errors.  Needle has no equal rows, but its queries and
# its key share one direction of equal entries, and beside the one large weight all others are
# tiny: below the range of float16 they are lost, all downwards, and such errors have no mean 0.
DESIGNS = {
    design.name: design
    for design in (
        NORMAL,
        Design("shifted"),
        Design("peaked"),
        Design("needle", continuous=False),
        Design("large"),
        Design("clustered", continuous=False),
        Design("constant", continuous=False),
        Design("structured", continuous=False),
    )
}


def designs_named(names: str | Sequence[str | Design]) -> tuple[Design, ...]:
    """The designs of these names, each once; "auto" is all of them, the normal one first.

    Raises :class:`UnknownDesign`, naming all there are, for another name or for none.

    >>> [design.name for design in designs_named(["needle", "large"])]
    ['needle', 'large']
    """
    if names == "auto":
        return tuple(DESIGNS.values())
    asked = [names] if isinstance(names, str) else list(names)
    found: list[Design] = []
    for name in asked:
        if isinstance(name, str) and name not in DESIGNS:
            raise UnknownDesign(
                f"design {name!r} was asked for; there are {', '.join(DESIGNS)}; or 'auto', which "
                "tries each that applies"
            )
        found.append(DESIGNS[name] if isinstance(name, str) else name)
    if not found:
        raise UnknownDesign(f"no design was asked for; there are {', '.join(DESIGNS)}, or 'auto'")
    return tuple(dict.fromkeys(found))
