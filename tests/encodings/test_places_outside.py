"""An encoding that reads a fixed place of its table: no place outside is ever read in a witness."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest
from array_api_compat import array_namespace as of

from attnproof import Encoding, at_least, hypothesis, real, sizes
from attnproof.cards.verdicts import decided
from attnproof.laws import LAWS
from attnproof.symbolic.certified_numbers import Balls, ReadsOutside
from attnproof.symbolic.claim import Law as Hypothesis
from attnproof.symbolic.claim import equal
from attnproof.symbolic.refute import find_example, refute

(L,) = sizes("L", "positions")
LAW = {law.id: law for law in LAWS}
GIVEN = {"T": real(L)}


class Fixed(Encoding):
    """A number from the table times the offset is added."""

    given: ClassVar[dict[str, Any]] = GIVEN
    defaults: ClassVar[dict[str, Any]] = {"T": np.arange(9.0)}

    def slope(self) -> Any:
        return self.T[5]

    def bias(self, m: Any, n: Any) -> Any:
        return self.slope() * (m - n)


class Sliced(Fixed):
    """The same with four rows of it."""

    def slope(self) -> Any:
        return of(self.T).sum(self.T[2:6])


class FromTheEnd(Fixed):
    """The same with a row from the end."""

    def slope(self) -> Any:
        return self.T[-7]


class Told(Fixed):
    """The same of a table that is long enough."""

    @hypothesis("the table has six rows")
    def long(self) -> list[Any]:
        return [at_least(self.T.shape[0], 6)]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.id)
@pytest.mark.parametrize("kind", [Fixed, Sliced, FromTheEnd])
def test_what_is_not_shown_to_stay_inside_is_told_with_what_to_write(
    kind: type[Encoding], law: Any
) -> None:
    cell = decided(kind, law, limit_seconds=1.0)
    assert cell.verdict in ("undecided", "does not apply"), cell.why
    if law.id == "unique":
        assert "a hypothesis at_least(L, " in cell.why


def test_with_the_hypothesis_that_was_asked_for_there_is_a_verdict() -> None:
    cell = decided(Told, LAW["translation"])
    assert (cell.verdict, cell.under) == ("proved", ("the table has six rows",))
    cell = decided(Told, LAW["unique"])
    assert (cell.verdict, cell.obeyed) == ("refuted", ("the table has six rows",))
    assert "L = 6" in cell.why


READS: dict[str, Callable[[Any], Any]] = {
    "pick": lambda x: x[2],
    "slice": lambda x: of(x).sum(x[1:3]),
    "from the end": lambda x: x[-3],
}


@pytest.mark.parametrize("read", READS.values(), ids=list(READS))
def test_a_place_outside_has_no_value(read: Callable[[Any], Any]) -> None:
    table = GIVEN["T"].named("T")
    term = read(table).term
    values = {"T": np.asarray([1, 2], dtype=object)}
    with pytest.raises(ReadsOutside, match="of an axis of length 2"):
        Balls({"L": 2}, values)(term)
    witness = refute(equal(read(table), 0), GIVEN)
    assert witness is not None
    assert "L = 3" in witness.text  # the smallest length at which all is inside


def test_sizes_that_a_hypothesis_excludes_are_not_tried() -> None:
    found = find_example(GIVEN, laws=(Hypothesis(at_least(GIVEN["T"].named("T").shape[0], 40)),))
    assert found is not None
    assert found.sizes == {"L": 40}
