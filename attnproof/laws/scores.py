"""Laws about the scores: what they see of two positions.

If an encoding has a mask, a law is about ``marks``: exp of the score, and 0 where the mask hides
the key.  Equal marks are equal scores and equal masks.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from array_api_compat import array_namespace

from ..encoding.applicability import of_pairs, of_pairs_by_offset
from ..encoding.base import Encoding
from ..encoding.law import law
from ..symbolic.claim import Claim, at_least, equal
from ..symbolic.givens import Given, natural, positive
from ..theorems.laws.law import by_offset

law_of_scores = partial(law, group="the scores", applies=of_pairs)


def if_seen(e: Encoding, m: Any, n: Any, then: Any, otherwise: Any) -> Any:
    """Return one number if a query at m sees a key at n, and another if not.

    The mask is that of a row and a column of one, as in attention: code may tell single positions
    from rows, and its mask of single positions says nothing.
    """
    seen = e.sees(m[None, None], n[None, None])
    return array_namespace(m).where(seen, then, otherwise)[0, 0]


@law_of_scores(
    "The scores depend only on the offset of the positions",
    example="rope",
    breaks="sinusoidal",
    applies=of_pairs_by_offset,
)
def relative(e: Encoding, x: Any, y: Any, a: Any, b: Any, s: Any) -> Claim:
    """score(q, k, m + s, n + s) = score(q, k, m, n) for all positions m, n and shifts s.

    It is asked only if the score of a query with a key is proved to be the same among any other
    tokens.  If others enter, all scores may stay the same when all positions shift together, and
    the score of a pair is still not a function of its contents and its offset.
    """
    return equal(*by_offset(partial(e.mark, x, y), a, b, s=s))


@relative.negative_control("the key moves twice as far")
def twice_as_far(e: Encoding, x: Any, y: Any, a: Any, b: Any, s: Any) -> Claim:
    return equal(e.mark(x, y, a + s, b + 2 * s), e.mark(x, y, a, b))


@law_of_scores(
    "The score is unchanged when the positions are swapped", example="alibi", breaks="rope"
)
def even(e: Encoding, x: Any, y: Any, a: Any, b: Any) -> Claim:
    """score(q, k, m, n) = score(q, k, n, m): before and after are treated equally."""
    return equal(e.mark(x, y, a, b), e.mark(x, y, b, a))


@even.negative_control("the key's position is the same both times")
def even_with_one_key(e: Encoding, x: Any, y: Any, a: Any, b: Any) -> Claim:
    return equal(e.mark(x, y, a, b), e.mark(x, y, b, b))


@law_of_scores(
    "What positions add to the score changes sign when they are swapped",
    example="nope",
    breaks="alibi",
)
def odd(e: Encoding, x: Any, y: Any, a: Any, b: Any) -> Claim:
    """f(m, n) = −f(n, m), where f = score(q, k, m, n) − q·k/√d is what the positions do.

    Stated without f: the mean of the scores of (m, n) and (n, m) is the score without positions.
    With a mask this is stated for their exponentials, and a key that is hidden in one order has no
    such mean.
    """
    both, plain = (e.mark(x, y, a, b), e.mark(x, y, b, a)), e.plain(x, y)
    if not e.defines("sees"):
        return equal(both[0] + both[1], 2 * plain)
    return equal(both[0] * both[1], array_namespace(x).exp(2 * plain))


@odd.negative_control("the two scores add up to one score without positions")
def odd_once(e: Encoding, x: Any, y: Any, a: Any, b: Any) -> Claim:
    return equal(e.mark(x, y, a, b) + e.mark(x, y, b, a), e.plain(x, y))


@law_of_scores(
    "Keys before and after the query are distinguished",
    example="rope",
    breaks="alibi",
    some=True,
)
def tells_before_from_after(e: Encoding, x: Any, y: Any, a: Any, s: Any) -> Claim:
    """score(q, k, m, m − s) ≠ score(q, k, m, m + s) for some parameters, q, k, m and s.

    A mask counts: a hidden key differs from a visible one.

    The contrary: the key at m − s and an equal one at m + s always get the same score.
    """
    m = a + s
    return equal(e.mark(x, y, m, a), e.mark(x, y, m, m + s))


@tells_before_from_after.negative_control(
    "the second key is before its query too, at later positions"
)
def tells_before_from_before(e: Encoding, x: Any, y: Any, a: Any, s: Any) -> Claim:
    return equal(e.mark(x, y, a + s, a), e.mark(x, y, a + 2 * s, a + s))


def any_distance(e: Encoding) -> Given:
    """Return any positive number, or any natural number between whole positions."""
    return natural("a distance") if e.whole else positive()


@law_of_scores(
    "Of two earlier keys equal to the query, the nearer scores no lower",
    example="alibi",
    breaks="rope",
    given={"near": any_distance, "further": any_distance},
)
def falls_with_distance(
    e: Encoding, x: Any, a: Any, s: Any, near: Any, further: Any
) -> dict[str, Claim]:
    """score(x, x, m, m − o) >= score(x, x, m, m − o − t) for all distances o, t > 0, and o = 0.

    The query equals the keys, so that contents favour neither.  "At least as high" admits a
    score that ignores positions.  If positions are vectors, the query and the two keys are on one
    line: distances are multiples of one vector, which may be any.
    """
    own = falls(e, x, a, s, 0 * near, further)
    return {
        f"of the key where the query is{', ' * bool(says)}{says}": claim
        for says, claim in own.items()
    } | falls(e, x, a, s, near, further)


def falls(e: Encoding, x: Any, far: Any, s: Any, near: Any, further: Any) -> dict[str, Claim]:
    """State the law for two keys, at the distances near and near + further; also for the mask."""
    o, step = (near * s, further * s) if e.axes else (near, further)
    nearer = far + step
    m = nearer + o
    score, less = e.score(x, x, m, nearer), e.score(x, x, m, far)
    form = [("", e.fall(x, o, step))] if e.defines("fall") else []
    if not e.defines("sees"):
        return {"": at_least(score, less, *form)}
    return {
        "where the farther key is visible, so is the nearer": at_least(
            if_seen(e, m, nearer, 1, 0), if_seen(e, m, far, 1, 0)
        ),
        "where both are visible, the nearer one scores at least as high": at_least(
            if_seen(e, m, far, score, less),
            less,
            *[(why, if_seen(e, m, far, fall, 0)) for why, fall in form],
        ),
    }


@falls_with_distance.negative_control("the farther key has the higher score")
def rises_with_distance(e: Encoding, x: Any, a: Any, s: Any, near: Any, further: Any) -> Claim:
    o, step = (near * s, further * s) if e.axes else (near, further)
    m = a + step + o
    return at_least(e.score(x, x, m, a), e.score(x, x, m, a + step))


@law_of_scores("The score never exceeds its stated envelope", example="alibi", breaks="sinusoidal")
def stays_under_envelope(e: Encoding, x: Any, y: Any, a: Any, b: Any) -> Claim:
    """score(q, k, m, n) <= envelope(q, k, m, n) wherever the key is seen.

    The envelope is what the encoding claims it to be, or the score without positions if it claims
    nothing: the law then says that positions never raise a score.  Whether the envelope itself
    falls with the distance is not asked.
    """
    envelope = e.envelope(x, y, a, b)
    score = e.score(x, y, a, b)
    form = [("", e.margin(x, y, a, b))] if e.defines("margin") else []
    if not e.defines("sees"):
        return at_least(envelope, score, *form)
    return at_least(
        envelope,
        if_seen(e, a, b, score, envelope),
        *[(why, if_seen(e, a, b, margin, 0)) for why, margin in form],
    )


@stays_under_envelope.negative_control("the score stays above it")
def stays_over_envelope(e: Encoding, x: Any, y: Any, a: Any, b: Any) -> Claim:
    return at_least(e.score(x, y, a, b), e.envelope(x, y, a, b))
