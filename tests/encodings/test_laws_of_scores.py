"""The laws on scores: each holds of its example, and fails of its counter-example and control."""

from __future__ import annotations

from typing import Any

import pytest
from array_api_compat import array_namespace

from attnproof import Encoding, nonnegative, positions, real
from attnproof.cards.registry import load_encodings
from attnproof.cards.verdicts import decided
from attnproof.encoding.law import EncodingLaw
from attnproof.laws import scores
from attnproof.laws.scores import (
    even,
    falls_with_distance,
    odd,
    relative,
    stays_under_envelope,
    tells_before_from_after,
)
from attnproof.symbolic.claim import equal
from attnproof.symbolic.prove import decide
from attnproof.symbolic.statement import Statement

KINDS = {kind.id(): kind for kind in load_encodings().kinds}
LAWS = [value for value in vars(scores).values() if isinstance(value, EncodingLaw)]


class Ramp(Encoding):
    """A bias that is linear in the offset: odd, and no distance."""

    given = {"slope": nonnegative()}

    def bias(self, m: Any, n: Any) -> Any:
        return self.slope * (n - m)


class RampHidden(Ramp):
    """The same, and keys after the query are hidden."""

    def sees(self, m: Any, n: Any) -> Any:
        return n <= m


class FarAlone(Encoding):
    """A query sees the keys that are two or more before it: the nearer one may be hidden."""

    def sees(self, m: Any, n: Any) -> Any:
        return n + 2 <= m


class Near(Encoding):
    """A query sees the keys at a distance below 2 alone; farther ones would score more."""

    def bias(self, m: Any, n: Any) -> Any:
        return array_namespace(m).maximum(0 * (m - n), m - n - 2)

    def sees(self, m: Any, n: Any) -> Any:
        return m - n < 2


class Plane(Encoding):
    """Positions are points of a plane, and the score falls with the square of the distance."""

    axes = 2
    given = {"slope": nonnegative()}

    def bias(self, m: Any, n: Any) -> Any:
        return -self.slope * array_namespace(m).sum((m - n) * (m - n), axis=-1)


class Curved(Encoding):
    """−slope·(3 r + log(1 + r)) is added for a distance r: it falls with slope as a factor."""

    given = {"slope": nonnegative()}

    def bias(self, m: Any, n: Any) -> Any:
        xp = array_namespace(m)
        distance = xp.abs(m - n)
        return -self.slope * (3 * distance + xp.log(1 + distance))

    def fall(self, x: Any, o: Any, step: Any) -> Any:
        log = array_namespace(x).log
        return self.slope * (3 * step + log(1 + o + step) - log(1 + o))


class CurvedHidden(Curved):
    """The same, and keys after the query are hidden."""

    def sees(self, m: Any, n: Any) -> Any:
        return n <= m


class Shrinking(Encoding):
    """q·k e^p / √d for a key at p, p a natural number: below (q² + k²) e^p / 2√d."""

    whole = True

    def key(self, k: Any, p: Any) -> Any:
        return array_namespace(p).exp(p)[..., None] * k

    def envelope(self, q: Any, k: Any, m: Any, n: Any) -> Any:
        xp = array_namespace(q)
        del m
        return xp.exp(n) * xp.sum(q * q + k * k) / 2 / q.shape[-1] ** 0.5

    def margin(self, q: Any, k: Any, m: Any, n: Any) -> Any:
        xp = array_namespace(q)
        del m
        return xp.exp(n) * xp.sum((q - k) * (q - k)) / 2 / q.shape[-1] ** 0.5


class TooLow(Shrinking):
    """A claim that is false: half the envelope."""

    def envelope(self, q: Any, k: Any, m: Any, n: Any) -> Any:
        return super().envelope(q, k, m, n) / 2


class WrongForm(Shrinking):
    """A true envelope with a margin that is not the difference."""

    def margin(self, q: Any, k: Any, m: Any, n: Any) -> Any:
        return 2 * super().margin(q, k, m, n)


class Centred(Encoding):
    """From each score the sum of the query's scores is taken: no pair has one of its own."""

    together = True

    def scores(self, Q: Any, K: Any, m: Any, n: Any) -> Any:
        scores = super().scores(Q, K, m, n)
        return scores - array_namespace(Q).sum(scores, axis=-1, keepdims=True)


def test_the_laws_are_these() -> None:
    assert [told.id for told in LAWS] == [
        "relative",
        "even",
        "odd",
        "tells-before-from-after",
        "falls-with-distance",
        "stays-under-envelope",
    ]


@pytest.mark.parametrize(
    ("kind", "told", "verdict"),
    [
        (Ramp, relative, "proved"),
        (Ramp, even, "refuted"),
        (Ramp, odd, "proved"),
        (Ramp, tells_before_from_after, "proved"),
        (Ramp, falls_with_distance, "proved"),
        (Ramp, stays_under_envelope, "refuted"),
        (RampHidden, odd, "refuted"),
        (RampHidden, relative, "proved"),
        (RampHidden, falls_with_distance, "proved"),
        (FarAlone, falls_with_distance, "refuted"),
        (FarAlone, tells_before_from_after, "proved"),
        (FarAlone, stays_under_envelope, "proved"),
        (Near, falls_with_distance, "proved"),
        (Plane, relative, "proved"),
        (Plane, even, "proved"),
        (Plane, tells_before_from_after, "refuted"),
        (Plane, falls_with_distance, "proved"),
        (Plane, stays_under_envelope, "proved"),
        (Curved, falls_with_distance, "proved"),
        (CurvedHidden, falls_with_distance, "proved"),
        (Shrinking, stays_under_envelope, "proved"),
        (TooLow, stays_under_envelope, "refuted"),
        (Centred, relative, "does not apply"),
    ],
)
def test_verdicts_that_can_be_seen_by_hand(
    kind: type[Encoding], told: EncodingLaw, verdict: str
) -> None:
    assert decided(kind, told).verdict == verdict


def test_a_form_that_is_not_the_difference_proves_nothing() -> None:
    assert decided(WrongForm, stays_under_envelope, limit_seconds=0.2).verdict == "undecided"


def test_where_pairs_have_no_score_laws_about_pairs_are_not_asked() -> None:
    for told in (even, odd, tells_before_from_after, falls_with_distance, stays_under_envelope):
        cell = decided(Centred, told)
        assert (cell.verdict, bool(cell.why)) == ("does not apply", True)


def test_without_a_mark_for_the_mask_nothing_would_be_told_apart() -> None:
    """The scores of a masked encoding are alike before and after; its marks are not."""
    e = KINDS["nope-causal"]()
    x, y, a, s = (
        g.named(n)
        for g, n in zip(
            (real(e.width), real(e.width), positions(), positions()), "xyas", strict=True
        )
    )
    same = equal(e.score(x, y, a + s, a), e.score(x, y, a + s, a + 2 * s))
    assert decide(Statement({}, {"": same}), refuting=False).verdict == "proved"
    assert decided(KINDS["nope-causal"], tells_before_from_after).verdict == "proved"
