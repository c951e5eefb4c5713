"""The binary digits of the position, added to the tokens."""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace

from attnproof import Encoding, equal, for_all, hypothesis, natural, sizes
from attnproof.symbolic.claim import iterate
from attnproof.theorems.definitions.positions import binary_digit
from attnproof.theorems.definitions.powers import each, number_power

(d,) = sizes("d", "features")


def number(digits: Any, count: Any) -> Any:
    """Σ_t 2^t · digits(t) over the first ``count`` places."""
    return iterate(count, 0, lambda t, total: total + number_power(2, t) * digits(t))


class BinaryDigits(Encoding):
    """⌊p / 2^t⌋ mod 2 is added in channel t: 0 or 1.

    These are the digits of 1, 2, 4, .., 2^{d−1} in p = 0, 1, 2, ..  They tell the positions below
    2^d apart; from there on they repeat.
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
