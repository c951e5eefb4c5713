"""The position as a share of the sequence, added to the tokens."""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace

from attnproof import Encoding, at_least, hypothesis
from attnproof.symbolic.givens import positive


class NormalisedIndex(Encoding):
    """p/L is added in every channel, for a sequence whose last position is L: from 0 to 1.

    With N tokens, counted from 0, L = N − 1.  It may be any scale L > 0, such as N; a position
    beyond L is beyond 1.
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
        # a <= L, said as a/L <= 1
        return [claim for p in (a, b) for claim in (at_least(p, 0), at_least(1, p / self.last))]
