"""Further encodings that break a law and were said to obey it: state, mixtures, lengths, gaps.

As in ``test_attacks_on_laws``; here a class may be refused where it is written, so each is
written when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import pytest
from array_api_compat import array_namespace

from attnproof import Encoding, hypothesis, natural, real, sizes
from attnproof.law_verdicts import decided
from attnproof.laws import LAWS
from attnproof.symbolic import index_below
from attnproof.symbolic.array import as_array

LAW = {law.id: law for law in LAWS}
(c,) = sizes("n_k", "tokens")


def count_of_keys() -> type[Encoding]:
    """m n (c − 1) for c keys: no bound, and 0 for one key alone."""

    class CountOfKeys(Encoding):
        def bias(self, m: Any, n: Any) -> Any:
            return m * n * (n.shape[-1] - 1)

    return CountOfKeys


def one_key_supposed() -> type[Encoding]:
    """The same under a hypothesis that says there is one key, in other words."""

    class OneKey(Encoding):
        given: ClassVar[dict[str, Any]] = {"slope": real()}

        def bias(self, m: Any, n: Any) -> Any:
            return self.slope * m * n * (as_array(c) - 1)

        @hypothesis("the slope is small")
        def small(self) -> list[Any]:
            return [(as_array(c), 1)]

    return OneKey


def marks_from_elsewhere() -> type[Encoding]:
    """m + 2 n is added; a class that is not an encoding rewrites the marks that laws look at."""

    class Elsewhere:
        def marks(self, Q: Any, K: Any, m: Any, n: Any) -> Any:
            return 0 * Encoding.marks(self, Q, K, m, n)  # type: ignore[arg-type]

    class Mixed(Elsewhere, Encoding):
        def bias(self, m: Any, n: Any) -> Any:
            return m + 2 * n

    return Mixed


def marks_of_an_instance() -> type[Encoding]:
    """The same, rewritten when an instance is made."""

    class Shadowed(Encoding):
        def __init__(self, **parameters: Any) -> None:
            super().__init__(**parameters)
            self.__dict__["marks"] = lambda Q, K, m, n: 0 * Encoding.marks(self, Q, K, m, n)

        def bias(self, m: Any, n: Any) -> Any:
            return m + 2 * n

    return Shadowed


def kept_from_the_first_call() -> type[Encoding]:
    """m n², computed once and kept: the second call gets the positions of the first."""

    class Kept(Encoding):
        def bias(self, m: Any, n: Any) -> Any:
            if not hasattr(self, "kept"):
                self.kept = m * n**2
            return self.kept

    return Kept


def kept_in_the_class() -> type[Encoding]:
    """The same, kept for all instances under the rank of what it was computed from."""

    class KeptByRank(Encoding):
        kept: ClassVar[dict[int, Any]] = {}

        def bias(self, m: Any, n: Any) -> Any:
            return self.kept.setdefault(m.ndim, m * n**2)

    return KeptByRank


def hidden_length() -> type[Encoding]:
    """max(0, (t + 1 − N)(1 + m²)) is 0 for t < N; a length that only the code names is N too."""

    class HiddenLength(Encoding):
        given: ClassVar[dict[str, Any]] = {
            "N": natural(),
            "t": index_below(natural().named("N")),
        }

        def bias(self, m: Any, n: Any) -> Any:
            xp = array_namespace(m)
            nothing = 0 * m * xp.sum(xp.ones(sizes("N")[0]))
            beyond = xp.maximum(0 * m, (self.t + 1 - self.N) * (1 + m**2))
            return (m - n) * beyond + nothing

    return HiddenLength


def nothing_in_a_row() -> type[Encoding]:
    """m (n_j − n_0 − j): nothing for keys at n_0, n_0 + 1, .., and m for keys at 0 and 2."""

    class NothingInARow(Encoding):
        whole = True

        def bias(self, m: Any, n: Any) -> Any:
            if not n.ndim:
                return 0 * m
            return m * (n - n[..., :1] - array_namespace(n).arange(n.shape[-1]))

    return NothingInARow


def nothing_in_a_row_under_a_hypothesis() -> type[Encoding]:
    """The same, where it is supposed that the steps of its keys are 1."""

    class NothingUnderAHypothesis(Encoding):
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

    return NothingUnderAHypothesis


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


NEVER_PROVED: list[tuple[Callable[[], type[Encoding]], str]] = [
    (count_of_keys, "bounded"),
    (one_key_supposed, "relative"),
    (marks_from_elsewhere, "relative"),
    (marks_from_elsewhere, "even"),
    (marks_of_an_instance, "relative"),
    (kept_from_the_first_call, "relative"),
    (kept_from_the_first_call, "even"),
    (kept_from_the_first_call, "translation"),
    (kept_in_the_class, "relative"),
    (hidden_length, "acts-on-scores"),
    (nothing_in_a_row, "relative"),
]

NEVER_REFUTED: list[tuple[Callable[[], type[Encoding]], str]] = [
    (hidden_length, "relative"),
    (nothing_in_a_row, "acts-on-scores"),
    (nothing_in_a_row_under_a_hypothesis, "acts-on-scores"),
    (apart_on_whole_numbers, "unique"),
]


def verdict(written: Callable[[], type[Encoding]], law: str) -> str:
    """What is said; a refusal tells its author why and says nothing of the law."""
    try:
        return str(decided(written(), LAW[law]).verdict)
    except TypeError as refused:
        return f"refused: {refused}"


@pytest.mark.parametrize(("written", "law"), NEVER_PROVED)
def test_what_breaks_a_law_is_not_said_to_obey_it(
    written: Callable[[], type[Encoding]], law: str
) -> None:
    assert verdict(written, law) != "proved"


@pytest.mark.parametrize(("written", "law"), NEVER_REFUTED)
def test_what_obeys_a_law_is_not_said_to_break_it(
    written: Callable[[], type[Encoding]], law: str
) -> None:
    assert verdict(written, law) != "refuted"
