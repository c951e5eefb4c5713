"""Input distributions: how the entries of token arrays are spread, chosen to expose faults.

==========  ==========================================================================
normal      independent normal entries; scores spread 3, a few keys stand out
shifted     values with a large common row: attention is that row plus a small remainder
peaked      scores spread 3 times as wide: a few keys hold nearly all weight
needle      one key matches the queries far better than all others
large       scores 100 times as large: weights saturate, float16 is near its limit
clustered   few distinct keys, any values
constant    all token rows equal
structured  two distinct keys, values 1 at one of them and −1 at the other
==========  ==========================================================================

Their effect on the givens of a statement is in :mod:`~attnproof.numeric.distribution_changes`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


class UnknownDistribution(ValueError):
    """No input distribution has the requested name."""


@dataclass(frozen=True)
class Distribution:
    """One way to draw token arrays.

    ``continuous`` says that entries are independent draws from a continuous distribution, so that
    the probabilistic bound may be used: rounding errors of equal entries are equal and do not
    cancel.
    """

    name: str
    continuous: bool = True


NORMAL = Distribution("normal")
# Equal keys have equal weights with equal errors.  Needle has no equal rows, but its queries and
# its key share one direction of equal entries, and compared with the one large weight all others
# are tiny: below the range of float16 they become 0, and errors of one sign do not have mean 0.
DISTRIBUTIONS = {
    distribution.name: distribution
    for distribution in (
        NORMAL,
        Distribution("shifted"),
        Distribution("peaked"),
        Distribution("needle", continuous=False),
        Distribution("large"),
        Distribution("clustered", continuous=False),
        Distribution("constant", continuous=False),
        Distribution("structured", continuous=False),
    )
}


def distributions_named(names: str | Sequence[str | Distribution]) -> tuple[Distribution, ...]:
    """The distributions of these names, each once; "auto" means all of them, the normal one first.

    Raises :class:`UnknownDistribution`, naming all there are, for another name or for none.

    >>> [distribution.name for distribution in distributions_named(["needle", "large"])]
    ['needle', 'large']
    """
    if names == "auto":
        return tuple(DISTRIBUTIONS.values())
    asked = [names] if isinstance(names, str) else list(names)
    found: list[Distribution] = []
    for name in asked:
        if isinstance(name, str) and name not in DISTRIBUTIONS:
            raise UnknownDistribution(
                f"wanted an input distribution ({', '.join(DISTRIBUTIONS)}), got {name!r}; or "
                "'auto', which tries each that applies"
            )
        found.append(DISTRIBUTIONS[name] if isinstance(name, str) else name)
    if not found:
        raise UnknownDistribution(
            f"wanted an input distribution ({', '.join(DISTRIBUTIONS)}) or 'auto', got none"
        )
    return tuple(dict.fromkeys(found))
