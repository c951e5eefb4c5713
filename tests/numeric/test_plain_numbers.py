"""Numbers outside arrays: whole ones are exact, of any size; angles and quotients are rounded."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from attnproof.numeric.check import measure
from attnproof.numeric.torch_reading import Integers, TorchReading
from attnproof.symbolic import namespace as xp
from attnproof.symbolic.claim import equal, rows
from attnproof.symbolic.givens import frequencies, index_map, inverse, natural, permutation, real
from tests.numeric.statements import CPU, B, d, n, stated


def test_whole_numbers_stay_exact_where_a_dtype_has_few_digits() -> None:
    m: Any = natural().named("m")
    number = 123_456_789
    read = TorchReading({}, {"m": number}, torch.bfloat16, CPU)
    assert read((m // 1000 * 1000 + m % 1000).term) == number
    assert Integers({}, {"m": 7})((m // (m - 7) + m % (m - 7)).term) == 7  # x // 0 = 0, x % 0 = x
    x: Any = real(n).named("x")
    for wrong in (x // 2, x % 2, m // 2.5):
        reading = TorchReading({"n": 2}, {"x": torch.ones(2), "m": 3}, torch.float32, CPU)
        with pytest.raises(TypeError, match="not an integer"):
            reading(wrong.term)


def test_maps_and_their_inverses() -> None:
    given = {"s": permutation(n), "e": index_map(n, n), "X": real(n, d)}

    def body(s: Any, e: Any, X: Any) -> Any:
        return {
            "back": equal(X[s][inverse(s)], X),
            "forth": equal(X[inverse(s)][e], X[inverse(s)][e]),
        }

    assert {m.status for m in measure(stated(given, body), scale="small")} == {"held"}
    wrong = stated(given, lambda s, X, **_: equal(X[s][s], X))
    assert {m.status for m in measure(wrong, scale="small")} == {"violated"}


def test_positions_in_a_table() -> None:
    """The table of rows e^{imω}, m = 0, 1, ..: an index may be a number and a position."""
    body = lambda omega: equal(  # noqa: E731
        rows(n, lambda m: xp.cos(m * omega)), xp.cos(xp.arange(n)[:, None] * omega)
    )
    said = measure(stated({"omega": frequencies(B)}, body), device="cpu")
    assert {m.status for m in said} == {"held"}
    other = lambda omega: equal(  # noqa: E731
        rows(n, lambda m: xp.cos((m + 1) * omega)), xp.cos(xp.arange(n)[:, None] * omega)
    )
    said = measure(stated({"omega": frequencies(B)}, other), scale="small", expected="refuted")
    assert {m.status for m in said} == {"violated"}


def test_angles_that_are_numbers_alone_are_rounded_too() -> None:
    """A cosine of a natural number, and sines that are 0 at multiples of π."""

    def body(a: Any) -> Any:
        return {
            "on the circle": equal(xp.cos(a) ** 2 + xp.sin(a) ** 2, 1),
            "half a turn": equal(xp.sin(xp.pi) + xp.cos(xp.pi), -1),
            "whole turns": equal(xp.sin(2 * xp.pi * a), 0),
            "a third": equal((1 / (a + 1)) * (a + 1), 1),
        }

    for seed in range(5):
        said = measure(stated({"a": natural()}, body), scale="small", device="cpu", seed=seed)
        assert {m.status for m in said if m.says != "whole turns"} == {"held"}
        assert {m.status for m in said} <= {"held", "skipped"}
    off = stated({"a": natural()}, lambda a: equal(xp.cos(a) ** 2 + xp.sin(a) ** 2, 1.001))
    assert measure(off, dtypes=["float64"])[0].status == "violated"
