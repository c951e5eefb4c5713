"""The public checks for authors of encodings: what they accept, refuse, and say."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from array_api_compat import array_namespace
from hypothesis import given

from attnproof import Array, Encoding, at_least, card, hypothesis, load_encodings, real, sizes
from attnproof.encoding.conformance import require_read
from attnproof.encodings.bias import Alibi
from attnproof.encodings.rope import Rope
from attnproof.testing import LawBroken, NotAnEncoding, check_encoding, contents, lengths, positions

(h,) = sizes("h", "slopes")


class KeysTwiceAsFar(Rope):
    """A fault: keys rotate by twice their position."""

    def key(self, k: Any, p: Any) -> Any:
        return self.rotate(k, 2 * p)


class Branching(Alibi):
    """A fault: on numpy it does something else than on symbols."""

    def bias(self, m: Any, n: Any) -> Any:
        return super().bias(m, n) * (1 if isinstance(m, Array) else 2)


class WrongShape(Alibi):
    """A fault: on numpy the values get another shape."""

    def value(self, v: Any, m: Any, n: Any) -> Any:
        return v if isinstance(m * n, Array) else v[..., :1]


class OneSlope(Encoding):
    """A fault: with one slope, as usual, it is what its term says, and with two it is not."""

    given = {"w": real(h)}
    defaults = {"w": [1.0]}

    def bias(self, m: Any, n: Any) -> Any:
        slope = self.w[0] if isinstance(m, Array) else sum(self.w)
        return slope * (m - n)


class NegativePositions(Encoding):
    """A fault: at positions from 0 on it is what its term says."""

    def bias(self, m: Any, n: Any) -> Any:
        return m - n if isinstance(m, Array) else np.abs(m) - np.abs(n)


class BetweenPositions(Encoding):
    """A fault: at whole positions it is what its term says."""

    def bias(self, m: Any, n: Any) -> Any:
        return m - n if isinstance(m, Array) else np.round(m - n)


class FarAway(Encoding):
    """A fault: up to the distance 50 it is what its term says."""

    def bias(self, m: Any, n: Any) -> Any:
        return m - n if isinstance(m, Array) else np.where(m - n > 50, 0, m - n)


class OtherHypothesis(Alibi):
    """A fault: on numpy it supposes something else."""

    @hypothesis("the slope is at least 0")
    def falls(self) -> Any:
        return [at_least(self.slope, 0 if isinstance(self.slope, Array) else 1)]


class SymbolicOnly(Alibi):
    """A fault: on numpy it raises."""

    def bias(self, m: Any, n: Any) -> Any:
        return super().bias(m, n) + 0 * len(m.axes)


class NumpyOnly(Alibi):
    """A fault: on symbolic arrays it raises."""

    def bias(self, m: Any, n: Any) -> Any:
        return np.add(super().bias(m, n), 0)


class NoNumbers(Encoding):
    """Nothing in ``defaults``."""

    given = {"c": real()}

    def bias(self, m: Any, n: Any) -> Any:
        return self.c * array_namespace(m).abs(m - n)


class Claiming(Alibi):
    """It claims more than is true."""

    obeys = ("relative", "bounded")


def test_what_obeys_is_decided_and_returned() -> None:
    found = check_encoding(Rope, ["relative", "keeps-norms"])
    assert {cell.law for cell in found.cells} == {"relative", "keeps-norms", "travels-with-tokens"}
    assert {cell.verdict for cell in found.cells} == {"proved"}
    assert found.encodings[0].id == "rope"


def test_a_verdict_may_be_wanted() -> None:
    found = check_encoding(Rope, {"even": "refuted", "relative": "proved"})
    assert found.cell("rope", "even").witness


def test_a_broken_law_is_told_with_its_witness_and_a_line_that_repeats_it() -> None:
    with pytest.raises(LawBroken) as caught:
        check_encoding(KeysTwiceAsFar, ["relative"])
    told = str(caught.value)
    assert told.startswith("KeysTwiceAsFar: The scores depend only on the offset")
    assert "wanted proved, found refuted: " in told
    assert "s = 1" in told
    assert f"attnproof card {__file__} --law relative" in told
    assert caught.value.cell.witness in told


def test_a_wrong_requirement_is_refused_too() -> None:
    with pytest.raises(LawBroken, match="wanted refuted, found proved"):
        check_encoding(Alibi, {"relative": "refuted"})
    with pytest.raises(LawBroken, match="attnproof card alibi --law even"):
        check_encoding(Alibi, {"even": "refuted"})


def test_what_a_class_claims_is_asked() -> None:
    with pytest.raises(LawBroken) as caught:
        check_encoding(Claiming)
    assert caught.value.cell.law == "bounded"


def test_two_readings_that_differ_are_told() -> None:
    told = r"^Branching\.bias\(m, n\) is misread at \[0, 0\]: the code gives .* on numpy, its term"
    with pytest.raises(NotAnEncoding, match=told):
        check_encoding(Branching)
    with pytest.raises(NotAnEncoding, match=r"value\(v, m, n\) is misread: .* an array of shape"):
        check_encoding(WrongShape)


@pytest.mark.parametrize("kind", [OneSlope, NegativePositions, BetweenPositions, FarAway])
def test_what_is_misread_at_some_parameters_and_positions_alone(kind: type[Encoding]) -> None:
    """The usual numbers, and contents at positions 0, 1, 2, .., would show nothing of it."""
    method = r"bias\(m, n\)"
    with pytest.raises(NotAnEncoding, match=rf"^{kind.__name__}\.{method} is misread"):
        check_encoding(kind)
    found = card(kind)
    assert {cell.verdict for cell in found.cells} <= {"misread", "does not apply"}
    assert found.cell("relative").verdict == "misread"
    assert not found.record.ok
    (part,) = found.cell("relative").evidence
    assert part.kind == "misread"
    assert part.code != part.term
    told = str(found)
    assert re.search(rf"laws: {method} is misread", told)
    assert told.count("is misread") == 1


def test_a_class_that_changes_is_read_anew() -> None:
    class Changed(Alibi):
        pass

    def of_numbers(self: Any, m: Any, n: Any) -> Any:
        return self.slope * (m - n if "Array" in type(m).__name__ else m)

    def scaled(self: Any, x: Any, p: Any) -> Any:
        del self
        return x * p[..., None]

    assert check_encoding(Changed, ["relative"]).cells[0].verdict == "proved"
    assert not Changed.acts("rotate")
    Changed.rotate = scaled  # type: ignore[method-assign]
    assert Changed.acts("rotate")
    del Changed.rotate
    Changed.bias = of_numbers  # type: ignore[method-assign]
    with pytest.raises(NotAnEncoding, match="asks for the class of an array"):
        check_encoding(Changed, ["relative"])


def test_a_hypothesis_is_read_too() -> None:
    with pytest.raises(NotAnEncoding, match=r"falls, hypothesis 1 is misread: right side"):
        check_encoding(OtherHypothesis)


def test_code_that_does_not_run_on_one_of_the_two_is_refused() -> None:
    with pytest.raises(NotAnEncoding, match=r"does not run on numpy arrays .*AttributeError"):
        check_encoding(SymbolicOnly)
    with pytest.raises(NotAnEncoding, match="does not run on symbolic arrays: TypeError"):
        check_encoding(NumpyOnly)
    assert "AttributeError" in card(SymbolicOnly).cell("relative").error


def test_every_encoding_of_the_package_is_read_rightly() -> None:
    for kind in load_encodings().kinds:
        require_read(kind)


@pytest.mark.parametrize("thing", [Encoding, 3, int, "rope", None])
def test_what_is_no_encoding_is_refused(thing: Any) -> None:
    with pytest.raises(NotAnEncoding, match=r"wanted a subclass of attnproof\.Encoding"):
        check_encoding(thing)


def test_an_instance_stands_for_its_class() -> None:
    assert check_encoding(Alibi(), ["relative"]).encodings[0].id == "alibi"


def test_missing_numbers_are_named() -> None:
    with pytest.raises(NotAnEncoding, match="no number for c; name it in `defaults`"):
        check_encoding(NoNumbers)


def test_an_unknown_law_or_verdict_is_refused() -> None:
    with pytest.raises(ValueError, match="got 'relativ'; they are relative, "):
        check_encoding(Rope, ["relativ"])
    with pytest.raises(ValueError, match="got 'true'"):
        check_encoding(Rope, {"relative": "true"})


@given(positions(5, most=2050))
def test_positions_are_whole_numbers_in_range(p: Any) -> None:
    assert p.shape == (5,)
    assert ((p >= 0) & (p <= 2050) & (p == np.floor(p))).all()


@given(positions(axes=2, whole=False, most=10), lengths(3), contents(2, 4, most=1.0))
def test_places_lengths_and_contents(p: Any, n: int, x: Any) -> None:
    assert p.ndim == 2
    assert p.shape[1] == 2
    assert 1 <= n <= 3
    assert x.shape == (2, 4)
    assert (np.abs(x) <= 1).all()
