"""Encodings that break a law and were once said to obey it, or obey it and were said to break it.

Each is written as a careless or a malicious author might write it; where a class may be refused as
it is written, that is done when it is asked for.  What must not be said of it stands in the table;
"undecided", and a refusal with an error that tells why, are always allowed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import pytest
from array_api_compat import array_namespace

from attnproof import Encoding, at_least, hypothesis, natural, positions, real, sizes
from attnproof.cards.verdicts import decided
from attnproof.encodings.additive import LearnedTable
from attnproof.encodings.bias import AlibiByPlace
from attnproof.laws import LAWS
from attnproof.symbolic import index_below
from attnproof.symbolic.array import as_array

LAW = {law.id: law for law in LAWS}
(c,) = sizes("n_k", "tokens")


# names: what a law calls its own, and a parameter that is called the same


class CalledAsTheMatrix(Encoding):
    """x at p is p² x W for a parameter W; a law asks whether some matrix W moves it."""

    given: ClassVar[dict[str, Any]] = {"W": real(Encoding.width, Encoding.width)}

    def rotate(self, x: Any, p: Any) -> Any:
        return (p**2)[..., None] * (x @ self.W)

    def shift(self, s: Any) -> Any:
        return array_namespace(s).zeros((self.width, self.width))


class CalledAsTheMap(Encoding):
    """p² (x W + w), where W and w are in one parameter, as the law has them."""

    given: ClassVar[dict[str, Any]] = {"W": real(Encoding.width + 1, Encoding.width)}

    def rotate(self, x: Any, p: Any) -> Any:
        return (p**2)[..., None] * (x @ self.W[: self.width] + self.W[self.width])

    def moved(self, k: Any, s: Any) -> Any:
        del s
        return 0 * k


class CalledAsTheKeys(Encoding):
    """1/(1 + m ‖k − K‖²) for a parameter K: it jumps, and 1 where K are the keys themselves."""

    given: ClassVar[dict[str, Any]] = {"K": real(c, Encoding.width)}

    def relate(self, q: Any, k: Any, m: Any, n: Any) -> Any:
        xp = array_namespace(q)
        return 1 / (1 + (m + 0 * n) * xp.sum((k - self.K[None]) ** 2 * q, axis=-1))


class CalledAsALength(Encoding):
    """max(0, (t + 1 − d)(1 + m²)) is 0 for t below a natural number d; d counts features too."""

    given: ClassVar[dict[str, Any]] = {"d": natural(), "t": index_below(natural().named("d"))}

    def bias(self, m: Any, n: Any) -> Any:
        xp = array_namespace(m)
        return (n - m) * xp.maximum(0 * m, (self.t + 1 - self.d) * (1 + m**2))


class CalledAsALengthAndEven(CalledAsALength):
    """The same of the distance."""

    def bias(self, m: Any, n: Any) -> Any:
        return array_namespace(m).abs(CalledAsALength.bias(self, m, n))


# hypotheses


class NoSuchSlope(Encoding):
    """(1 + slope²) m is added, under a hypothesis that no real slope obeys."""

    given: ClassVar[dict[str, Any]] = {"slope": real()}

    def bias(self, m: Any, n: Any) -> Any:
        return (1 + self.slope**2) * m + 0 * n

    @hypothesis("the slope is small")
    def small(self) -> list[Any]:
        return [(self.slope**2, as_array(-1))]


class NoSuchSlopeAtLeast(NoSuchSlope):
    """The same with an inequality: farther keys score more."""

    def bias(self, m: Any, n: Any) -> Any:
        return -(1 + self.slope**2) * n + 0 * m

    @hypothesis("the slope is small")
    def small(self) -> list[Any]:
        return [at_least(-1, self.slope**2)]


class AboutThePosition(Encoding):
    """slope·m is added, and the hypothesis bounds it at the position a that the law speaks of."""

    given: ClassVar[dict[str, Any]] = {"slope": real()}

    def bias(self, m: Any, n: Any) -> Any:
        return self.slope * m + 0 * n

    @hypothesis("the slope is small")
    def small(self) -> list[Any]:
        at = self.slope * positions().named("a")
        return [at_least(1, at), at_least(at, -1)]


class AboutBothPositions(AboutThePosition):
    """a = b is assumed of the two positions of the law."""

    @hypothesis("the slope is small")
    def small(self) -> list[Any]:
        return [(positions().named("a"), positions().named("b"))]


# what a law looks at, and what it leaves out


class ScoresThatGrow(Encoding):
    """Keys are rotated by nothing, and the scores multiplied by m n."""

    def rotate(self, x: Any, p: Any) -> Any:
        del p
        return x

    def scores(self, Q: Any, K: Any, m: Any, n: Any) -> Any:
        return Q @ K.mT * m[:, None] * n[None]


class NothingForOnes(Encoding):
    """m Σ (q − 1)² k is added to q·k: nothing for a query of ones."""

    def relate(self, q: Any, k: Any, m: Any, n: Any) -> Any:
        return array_namespace(q).sum((q - 1) ** 2 * k, axis=-1) * m + 0 * n


class ValuesThatGrow(Encoding):
    """A value is read n times as long."""

    def value(self, v: Any, m: Any, n: Any) -> Any:
        del m
        return v * n[..., None]


class OtherwiseAlone(Encoding):
    """m n is added to the scores, and nothing for a position that is a number alone."""

    def bias(self, m: Any, n: Any) -> Any:
        return m * n if m.ndim else 0 * m * n


class BiasOfNobody(Encoding):
    """⌊m⌋ is called a bias, and the scores do not add it."""

    def bias(self, m: Any, n: Any) -> Any:
        return m // 1 + 0 * n

    def scores(self, Q: Any, K: Any, m: Any, n: Any) -> Any:
        return Q @ K.mT + 0 * m[:, None] * n[None]


class ForgottenTogether(AlibiByPlace):
    """A bias by the places in memory that is not declared to look at them."""

    together = False


class ApartOnPlanes(Encoding):
    """(1 − D²/4) p for D = (x − y)(y − z)(x − z): at (0, 1, 2) and at (0, 2, 1) that is 0.

    Where two coordinates are equal, D is 0.
    """

    width = 3
    axes = 3

    def add(self, p: Any) -> Any:
        x, y, z = (p[..., axis] for axis in range(3))
        different = (x - y) * (y - z) * (x - z)
        return p * (1 - different**2 / 4)[..., None]

    def tell(self, here: Any, there: Any) -> Any:
        return sum(((here - there)[axis] ** 2 for axis in range(3)), as_array(0))

    def apart(self, i: Any, j: Any) -> Any:
        o, rest = natural().named("o"), natural().named("rest")
        return (i - j) ** 2 + 2 * (o - rest) ** 2


# where it means nothing


class RootOfNothing(Encoding):
    """√(0 n − 1): no number at any position."""

    def bias(self, m: Any, n: Any) -> Any:
        return m * array_namespace(m).sqrt(0 * n - 1)


class LogOfNothing(Encoding):
    """log(−1 − slope²): no number whatever the slope."""

    given: ClassVar[dict[str, Any]] = {"slope": real()}

    def bias(self, m: Any, n: Any) -> Any:
        return (m - n) * array_namespace(m).log(-1 - self.slope**2)


class ForgottenReach(LearnedTable):
    """A table of 512 rows that does not say so."""

    reach = 0


class FadesAtItsMask(Encoding):
    """Keys n < m are seen with the strength (m − n) exp(q·k / √d): continuous, 0 at the edge."""

    def sees(self, m: Any, n: Any) -> Any:
        return m - n > 0

    def bias(self, m: Any, n: Any) -> Any:
        xp = array_namespace(m)
        return xp.log(xp.where(m - n > 0, m - n, 1))


# state, mixtures, lengths, gaps


class CountOfKeys(Encoding):
    """m n (c − 1) for c keys: no bound, and 0 for one key alone."""

    def bias(self, m: Any, n: Any) -> Any:
        return m * n * (n.shape[-1] - 1)


class OneKey(Encoding):
    """The same under a hypothesis that says there is one key, in other words."""

    given: ClassVar[dict[str, Any]] = {"slope": real()}

    def bias(self, m: Any, n: Any) -> Any:
        return self.slope * m * n * (as_array(c) - 1)

    @hypothesis("the slope is small")
    def small(self) -> list[Any]:
        return [(as_array(c), 1)]


def marks_from_elsewhere() -> type[Encoding]:
    """m + 2 n is added; a class that is not an encoding rewrites the marks that laws look at."""

    class Elsewhere:
        def marks(self, Q: Any, K: Any, m: Any, n: Any) -> Any:
            return 0 * Encoding.marks(self, Q, K, m, n)  # type: ignore[arg-type]

    class Mixed(Elsewhere, Encoding):
        def bias(self, m: Any, n: Any) -> Any:
            return m + 2 * n

    return Mixed


class Shadowed(Encoding):
    """The same, rewritten when an instance is made."""

    def __init__(self, **parameters: Any) -> None:
        super().__init__(**parameters)
        self.__dict__["marks"] = lambda Q, K, m, n: 0 * Encoding.marks(self, Q, K, m, n)

    def bias(self, m: Any, n: Any) -> Any:
        return m + 2 * n


class Kept(Encoding):
    """m n², computed once and kept: the second call gets the positions of the first."""

    def bias(self, m: Any, n: Any) -> Any:
        if not hasattr(self, "kept"):
            self.kept = m * n**2
        return self.kept


class KeptByRank(Encoding):
    """The same, kept for all instances under the rank of what it was computed from."""

    kept: ClassVar[dict[int, Any]] = {}

    def bias(self, m: Any, n: Any) -> Any:
        return self.kept.setdefault(m.ndim, m * n**2)


class HiddenLength(Encoding):
    """max(0, (t + 1 − N)(1 + m²)) is 0 for t < N; a length that only the code names is N too."""

    given: ClassVar[dict[str, Any]] = {"N": natural(), "t": index_below(natural().named("N"))}

    def bias(self, m: Any, n: Any) -> Any:
        xp = array_namespace(m)
        nothing = 0 * m * xp.sum(xp.ones(sizes("N")[0]))
        beyond = xp.maximum(0 * m, (self.t + 1 - self.N) * (1 + m**2))
        return (m - n) * beyond + nothing


class NothingInARow(Encoding):
    """m (n_j − n_0 − j): nothing for keys at n_0, n_0 + 1, .., and m for keys at 0 and 2."""

    whole = True

    def bias(self, m: Any, n: Any) -> Any:
        if not n.ndim:
            return 0 * m
        return m * (n - n[..., :1] - array_namespace(n).arange(n.shape[-1]))


class NothingUnderAHypothesis(Encoding):
    """The same, where it is supposed that the steps of its keys are 1."""

    given: ClassVar[dict[str, Any]] = {"step": real()}
    defaults: ClassVar[dict[str, Any]] = {"step": 1.0}
    whole = True

    def bias(self, m: Any, n: Any) -> Any:
        if not n.ndim:
            return 0 * m
        return m * (n - n[..., :1] - self.step * array_namespace(n).arange(n.shape[-1]))

    @hypothesis("the step is 1")
    def step_is_one(self) -> list[Any]:
        return [(self.step, 1)]


def apart_on_whole_numbers() -> type[Encoding]:
    """(x + 2 (y mod 1), ⌊y⌋) is (x, y) for natural numbers; two fractions give it one code."""

    class WholeNumbersApart(Encoding):
        axes = 2
        width = 2
        whole = True

        def add(self, p: Any) -> Any:
            x, y = p[..., 0], p[..., 1]
            return array_namespace(p).stack([x + 2 * (y % 1), y - y % 1], axis=-1)

    return WholeNumbersApart


Written = type[Encoding] | Callable[[], type[Encoding]]
NEVER_PROVED: list[tuple[Written, str]] = [
    (CalledAsTheMatrix, "linear-shift"),
    (CalledAsTheMap, "key-can-be-moved"),
    (CalledAsTheKeys, "continuous"),
    (CalledAsALength, "tells-before-from-after"),
    (NoSuchSlope, "even"),
    (NoSuchSlope, "relative"),
    (NoSuchSlope, "bounded"),
    (NoSuchSlopeAtLeast, "falls-with-distance"),
    (AboutThePosition, "bounded"),
    (AboutBothPositions, "even"),
    (ScoresThatGrow, "bounded"),
    (NothingForOnes, "bounded"),
    (ValuesThatGrow, "bounded"),
    (OtherwiseAlone, "bounded"),
    (ForgottenTogether, "even"),
    (ForgottenTogether, "falls-with-distance"),
    (ApartOnPlanes, "unique"),
    (RootOfNothing, "defined-beyond"),
    (LogOfNothing, "defined-beyond"),
    (ForgottenReach, "defined-beyond"),
    (CountOfKeys, "bounded"),
    (OneKey, "relative"),
    (marks_from_elsewhere, "relative"),
    (marks_from_elsewhere, "even"),
    (Shadowed, "relative"),
    (Kept, "relative"),
    (Kept, "even"),
    (Kept, "translation"),
    (KeptByRank, "relative"),
    (HiddenLength, "acts-on-scores"),
    (NothingInARow, "relative"),
]

NEVER_REFUTED: list[tuple[Written, str]] = [
    (CalledAsALengthAndEven, "stays-under-envelope"),
    (BiasOfNobody, "bounded"),
    (FadesAtItsMask, "continuous"),
    (HiddenLength, "relative"),
    (NothingInARow, "acts-on-scores"),
    (NothingUnderAHypothesis, "acts-on-scores"),
    (apart_on_whole_numbers, "unique"),
]


def verdict(written: Written, law: str) -> str:
    """What is said; a refusal tells its author why and says nothing of the law."""
    try:
        kind = written if isinstance(written, type) else written()
        return str(decided(kind, LAW[law]).verdict)
    except TypeError as refused:
        return f"refused: {refused}"


@pytest.mark.parametrize(("written", "law"), NEVER_PROVED)
def test_what_breaks_a_law_is_not_said_to_obey_it(written: Written, law: str) -> None:
    assert verdict(written, law) != "proved"


@pytest.mark.parametrize(("written", "law"), NEVER_REFUTED)
def test_what_obeys_a_law_is_not_said_to_break_it(written: Written, law: str) -> None:
    assert verdict(written, law) != "refuted"


@pytest.mark.parametrize("name", ["mark", "code", "attention", "declared"])
def test_what_laws_look_at_may_not_be_rewritten(name: str) -> None:
    with pytest.raises(TypeError, match=f"Own.{name} is derived from the hooks"):
        type("Own", (Encoding,), {name: lambda *_: 0})
