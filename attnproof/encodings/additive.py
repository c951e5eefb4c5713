"""What is added to the tokens: sinusoids, the position itself, its digits, a learned table."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace

from attnproof import (
    Encoding,
    at_least,
    block_rotation,
    differ,
    equal,
    for_all,
    frequencies,
    function,
    hypothesis,
    natural,
    sizes,
)
from attnproof.symbolic.claim import iterate
from attnproof.symbolic.givens import positive
from attnproof.theorems.definitions.positions import binary_digit
from attnproof.theorems.definitions.powers import each, number_power

(B,) = sizes("B", "blocks")
(d,) = sizes("d", "features")


class Sinusoidal(Encoding):
    """sin(p ω_b) and cos(p ω_b) are added in the channels 2b and 2b + 1.

    The frequencies may be any; usually ω_b = 10000^{−2b/d}.
    """

    title = "sinusoidal"
    source = ("Vaswani et al. 2017, section 3.5",)
    width = 2 * B
    given = {"omega": frequencies(B)}
    defaults = {"omega": 10_000.0 ** (-np.arange(32) / 32)}

    def add(self, p: Any) -> Any:
        xp = array_namespace(p)
        angles = p[..., None] * self.omega
        pairs = xp.stack((xp.sin(angles), xp.cos(angles)), axis=-1)
        return xp.reshape(pairs, (*p.shape, self.width))

    def shift(self, s: Any) -> Any:
        return block_rotation(-s * self.omega)

    def tell(self, here: Any, there: Any) -> Any:
        return array_namespace(here).sum((here[0::2] * there[1::2] - here[1::2] * there[0::2]) ** 2)

    def apart(self, i: Any, j: Any) -> Any:
        xp = array_namespace(i)
        return xp.sum(xp.sin((i - j) * self.omega) ** 2)

    @hypothesis("some frequency is not a rational multiple of π")
    def irrational(self, i: Any, j: Any) -> list[Any]:
        # such as 1: then (i − j) ω_b is not a multiple of π
        return [differ(self.apart(i, j), 0)]


class SineOnly(Encoding):
    """sin(p ω_j) is added in channel j.

    The frequencies may be any; usually ω_j = 10000^{−j/d}.
    """

    title = "sines alone"
    source = ("document 004, the sine-only form",)
    width = d
    given = {"omega": frequencies(d)}
    defaults = {"omega": 10_000.0 ** (-np.arange(64) / 64)}

    def add(self, p: Any) -> Any:
        return array_namespace(p).sin(p[..., None] * self.omega)

    def apart(self, i: Any, j: Any) -> Any:
        cos, sin = self.halves(i, j)
        return 2 * cos * sin

    def halves(self, i: Any, j: Any) -> tuple[Any, Any]:
        """Return the factors of half the difference of sin(i ω_0) and sin(j ω_0)."""
        xp, omega = array_namespace(i), self.omega[0]
        return xp.cos((i + j) * omega / 2), xp.sin((i - j) * omega / 2)

    @hypothesis("the first frequency is not a rational multiple of π")
    def irrational(self, i: Any, j: Any) -> list[Any]:
        # such as 1: then neither half angle is a multiple of π/2
        return [differ(half, 0) for half in self.halves(i, j)]


class Index(Encoding):
    """p is added in every channel: x + p (1, .., 1)."""

    title = "index"
    source = ("document 004, the index of each position",)

    def add(self, p: Any) -> Any:
        return p[..., None] * array_namespace(p).ones((self.width,))


class IndexFromOne(Index):
    """p + 1 is added in every channel at position p = 0, 1, 2, ..: the first token gets 1.

    Where counting starts matters only if position 0 must leave tokens unchanged.
    """

    title = "index, from 1"
    source = ("document 004, the index of each position; counted from 1 as in Ganev, introduction",)

    def add(self, p: Any) -> Any:
        return super().add(p + 1)


class NormalisedIndex(Encoding):
    """p/L is added in every channel, for a sequence whose last position is L: from 0 to 1.

    With N tokens, counted from 0, L = N − 1.  L may be any scale > 0, such as N; a position beyond
    L gives a number above 1.
    """

    title = "normalised index"
    source = ("document 004, min-max normalisation",)
    given = {"last": positive()}
    defaults = {"last": 511.0}
    length = "last"

    def add(self, p: Any) -> Any:
        return (p / self.last)[..., None] * array_namespace(p).ones((self.width,))

    def tell(self, here: Any, there: Any) -> Any:
        return self.last * (here[0] - there[0])

    def apart(self, i: Any, j: Any) -> Any:
        return i - j

    @hypothesis("the positions are from 0 to the last")
    def within(self, a: Any, b: Any) -> list[Any]:
        # a <= L, written as a/L <= 1
        return [claim for p in (a, b) for claim in (at_least(p, 0), at_least(1, p / self.last))]


def number(digits: Any, count: Any) -> Any:
    """Return Σ_t 2^t · digits(t) over the first ``count`` places."""
    return iterate(count, 0, lambda t, total: total + number_power(2, t) * digits(t))


class BinaryDigits(Encoding):
    """⌊p / 2^t⌋ mod 2 is added in channel t: 0 or 1.

    These are the digits of 1, 2, 4, .., 2^{d−1} in p = 0, 1, 2, ..  They distinguish the positions
    below 2^d, and repeat from there on.
    """

    title = "binary digits"
    source = ("document 004, binary numerals",)
    width = d
    whole = True

    def add(self, p: Any) -> Any:
        places = array_namespace(p).arange(self.width)
        return each(p, lambda i: each(places, lambda t: binary_digit(i, t)))

    def tell(self, here: Any, there: Any) -> Any:
        own = number(lambda t: here[t], self.width)
        return own - number(lambda t: there[t], self.width)

    def apart(self, i: Any, j: Any) -> Any:
        return i - j

    def facts(self) -> dict[str, Any]:
        numbers = for_all(
            {"i": natural(), "t": natural()},
            lambda i, t: equal(
                number(lambda s: binary_digit(i, s), t),
                i - number_power(2, t) * (i // number_power(2, t)),
            ).by_induction(t),
        )
        return {
            f"the digits of {name} give it, but for a multiple of 2^d": numbers.at(
                i=natural().named(name), t=self.width
            )
            for name in "ij"
        }

    @hypothesis("the positions are below 2^d")
    def below(self, i: Any, j: Any) -> list[Any]:
        unit = number_power(2, self.width)
        return [(i // unit, 0), (j // unit, 0)]


_ROWS = np.random.default_rng(0).normal(scale=0.02, size=(512, 64))


def _row(p: Any) -> Any:
    """Return row p of a table of 512; raise ``IndexError`` if there is none."""
    place = np.asarray(p, dtype=int)
    if ((place != p) | (place < 0)).any():
        raise IndexError(f"the rows of a table are numbered 0, 1, 2, ..; there is none for {p}")
    return _ROWS[place]


class LearnedTable(Encoding):
    """A vector for each position p = 0, 1, 2, .. is added: the table is any function of p.

    A trained table has ``reach`` rows, and none for later positions.
    """

    title = "learned table"
    source = ("Gehring et al. 2017, section 3.1", "Devlin et al. 2019, BERT, with 512 positions")
    width = d
    whole = True
    given = {"table": function(0, out=(d,), says="a vector for each position")}
    defaults = {"table": _row}
    reach = len(_ROWS)

    def add(self, p: Any) -> Any:
        return self.table(p)

    def tell(self, here: Any, there: Any) -> Any:
        return array_namespace(here).sum((here - there) ** 2)

    def apart(self, i: Any, j: Any) -> Any:
        return self.tell(self.table(i), self.table(j))

    @hypothesis("no two of its rows are equal")
    def different(self, i: Any, j: Any) -> list[Any]:
        return [differ(self.apart(i, j), 0)]
