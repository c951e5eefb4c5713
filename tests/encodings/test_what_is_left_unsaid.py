"""Code that does other things with rows than with one token, and terms that stand for numbers only
under a condition: neither comes out proved without a word.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest
from array_api_compat import array_namespace

from attnproof import Encoding, hypothesis, positive, real, sizes
from attnproof.cards.verdicts import decided
from attnproof.laws import LAWS
from attnproof.symbolic.array import as_array

LAW = {law.id: law for law in LAWS}
(N,) = sizes("N", "positions")
(c,) = sizes("n_k", "tokens")


class Longer(Encoding):
    """r queries are r times as long; one alone is as it was."""

    def query(self, q: Any, p: Any) -> Any:
        del p
        return q * q.shape[0] if q.ndim == 2 else q


class InRows(Encoding):
    """A row of tokens is multiplied by their positions, a token by itself by nothing."""

    def rotate(self, x: Any, p: Any) -> Any:
        return x * (1 + 0 * p) if p.ndim == 0 else x * p[..., None]


class Alike(Encoding):
    """The position is added where there is one token, and nothing where there are two."""

    def add(self, p: Any) -> Any:
        one = array_namespace(p).ones((self.width,))
        return (p[..., None] * one) * (2 - p.shape[0] if p.ndim else 1)


class Fifth(Encoding):
    """The entry 5 of a table of any length."""

    given: ClassVar[dict[str, Any]] = {"T": real(N)}
    defaults: ClassVar[dict[str, Any]] = {"T": np.arange(8.0)}

    def bias(self, m: Any, n: Any) -> Any:
        return array_namespace(m).cos(m - n) * self.T[5]


class FirstFive(Encoding):
    """The sum of the first five entries of a table of any length."""

    given: ClassVar[dict[str, Any]] = {"T": real(N)}
    defaults: ClassVar[dict[str, Any]] = {"T": np.arange(8.0)}

    def bias(self, m: Any, n: Any) -> Any:
        xp = array_namespace(m)
        return xp.cos(m - n) * xp.sum(self.T[:5])


class ByTheKeys(Encoding):
    """The number of a key is its score, and the number of keys is named as a bound."""

    together = True

    def scores(self, Q: Any, K: Any, m: Any, n: Any) -> Any:
        del m, n
        xp = array_namespace(Q)
        return xp.zeros((Q.shape[0], 1)) + xp.arange(K.shape[0])[None]

    def bound(self) -> Any:
        return as_array(c)


NEVER_PROVED: list[tuple[type[Encoding], str]] = [
    (Longer, "keeps-norms"),
    (Longer, "identity-at-zero"),
    (Longer, "composes"),
    (InRows, "keeps-norms"),
    (InRows, "identity-at-zero"),
    (InRows, "keeps-dot-products"),
    (InRows, "commutes-with-projections"),
    (InRows, "key-can-be-moved"),
    (Alike, "unique"),
    (Fifth, "continuous"),
    (Fifth, "bounded"),
    (Fifth, "defined-beyond"),
    (FirstFive, "continuous"),
    (FirstFive, "bounded"),
    (FirstFive, "defined-beyond"),
]


@pytest.mark.parametrize(("kind", "law"), NEVER_PROVED)
def test_what_rows_or_short_tables_break_is_not_proved(kind: type[Encoding], law: str) -> None:
    assert decided(kind, LAW[law]).verdict != "proved"


def test_a_bound_is_none_that_grows_with_the_number_of_keys() -> None:
    with pytest.raises(TypeError, match="parameters alone; that of ByTheKeys has n_k"):
        decided(ByTheKeys, LAW["bounded"])


class Divided(Encoding):
    """cos(m − n) / w: at w = 0 there is no such number."""

    given: ClassVar[dict[str, Any]] = {"w": real()}
    defaults: ClassVar[dict[str, Any]] = {"w": 1.0}

    def bias(self, m: Any, n: Any) -> Any:
        return array_namespace(m).cos(m - n) / self.w


class DividedByDistance(Encoding):
    """sin(1 / (m − n)), where m = n has none."""

    def bias(self, m: Any, n: Any) -> Any:
        return array_namespace(m).sin(1 / (m - n))


class DividedByMore(Divided):
    """The same with a hypothesis and a parameter that is never 0."""

    given: ClassVar[dict[str, Any]] = {"w": positive()}

    @hypothesis("w is 1")
    def one(self) -> list[Any]:
        return [(self.w, 1)]


@pytest.mark.parametrize(
    ("kind", "law", "line"),
    [
        (Divided, "continuous", "proved, if w ≠ 0"),
        (Divided, "bounded", "proved, if w ≠ 0"),
        (Divided, "defined-beyond", "proved, if w ≠ 0"),
        (DividedByDistance, "bounded", "proved, if -b + a ≠ 0"),
        (DividedByMore, "continuous", "proved"),
        (DividedByMore, "bounded", "proved"),
    ],
)
def test_what_must_hold_of_divisors_stands_on_the_line(
    kind: type[Encoding], law: str, line: str
) -> None:
    assert decided(kind, LAW[law]).line == line


def test_why_a_law_of_pairs_is_not_asked_is_said_to_the_end() -> None:
    why = (
        "the score of a query with a key depends on the other tokens, so a pair alone has no score"
    )
    together = "proved for all tokens together: the scores are unchanged when all positions are"
    assert decided(ByTheKeys, LAW["even"]).why == why
    assert decided(ByTheKeys, LAW["relative"]).why == f"{why}; {together} shifted equally"
