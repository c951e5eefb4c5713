"""Numbers of a source that no ordinary call meets: tried as inputs or lengths, or told."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from attnproof.programs.equal.deciding import compare
from attnproof.programs.equal.larger_inputs import compare_at_longer, input_conditions
from attnproof.programs.equal.measure import NumericComparison, compare_numerically
from attnproof.programs.equal.pair import ProgramPair, pair_programs
from attnproof.programs.equal.sides import Operand

Code = Callable[..., Tensor]
TOKENS = "x: B n E -> B n E"
COUNTED = "count = n -> n n"


def ordered(x: Tensor) -> Tensor:
    """No term is read for this."""
    return x.sort(1).values


def distances(n: int) -> Tensor:
    return torch.arange(n)[None] - torch.arange(n)[:, None]


def both(first: Code, second: Code, line: str) -> ProgramPair:
    return pair_programs(Operand(first, "first", line), Operand(second, "second", line))


def beyond(first: Code, second: Code, line: str) -> tuple[NumericComparison, list[str]]:
    """What is seen at more tokens, and the conditions."""
    found = NumericComparison(formats=("float64",))
    return found, [one.text for one in compare_at_longer(both(first, second, line), 0, found)]


def on_inputs(first: Code, second: Code, line: str) -> tuple[NumericComparison, list[str]]:
    """What is seen on unusual inputs, and the conditions."""
    pair = both(first, second, line)
    found = compare_numerically(pair)
    return found, [one.text for one in input_conditions(pair, 0, found)]


# A program that parts from its other half beyond a number, and the lengths that must stay below it.
FAR: dict[str, tuple[Code, Code, str, str]] = {
    "a cut of tokens": (lambda x: ordered(x[:, :200_000]), ordered, TOKENS, "B, n, E ≤ 199999"),
    "a cut of rows": (lambda x: ordered(x[: 400 * 500]), ordered, TOKENS, "B, n, E ≤ 199999"),
    "a threshold": (
        lambda x: ordered(x) + (torch.arange(x.shape[1]) > 3e6)[:, None],
        ordered,
        TOKENS,
        "B, n, E ≤ 2999999",
    ),
    "a distance": (
        lambda n: distances(n).clamp(-2_000_000, 2_000_000),
        distances,
        COUNTED,
        "n ≤ 1999999",
    ),
}


@pytest.mark.parametrize("name", FAR)
def test_lengths_stay_below_a_number_that_no_call_can_reach(name: str) -> None:
    first, second, line, told = FAR[name]
    found, conditions = beyond(first, second, line)
    assert found.counterexample is None
    assert told in conditions
    assert not beyond(second, second, line)[1]


def test_what_was_not_reached_stands_on_the_line() -> None:
    made = Operand(distances, "first", COUNTED), Operand(FAR["a distance"][0], "second", COUNTED)
    found = compare(*made, seconds=1.0)
    assert found.verdict == "measured"
    assert "n ≤ 1999999" in [one.phrase for one in found.assuming]


def test_channels_are_compared_beyond_the_numbers_of_the_source() -> None:
    found, _ = beyond(lambda x: ordered(x[..., :600]), ordered, TOKENS)
    assert found.counterexample is not None
    assert found.at["E"] == 601
    fixed, _ = beyond(lambda x: ordered(x[..., :600]), ordered, "x: B n 4 -> B n 4")
    assert fixed.counterexample is None


def test_heads_are_compared_beyond_the_numbers_of_the_source() -> None:
    line = "x: B H n D, y: B G n D -> B H n D"

    def whole(x: Tensor, y: Tensor) -> Tensor:
        return x.sort(2).values + y.sum() * 0

    found, _ = beyond(lambda x, y: whole(x[:, :600], y), whole, line)
    assert found.counterexample is not None
    assert found.at["H"] > 600
    assert beyond(whole, whole, line)[0].counterexample is None


weight = torch.eye(4)
CLAMPS: dict[str, tuple[Code, Code, str]] = {
    "close to the largest of float32": (lambda x: x.clamp(-1e35, 1e35), lambda x: x * 1, TOKENS),
    "in float32 alone": (
        lambda x: x.clamp(-3000.5, 3000.5) @ weight,
        lambda x: x @ weight,
        "x: B n 4 -> B n 4",
    ),
}


@pytest.mark.parametrize("name", CLAMPS)
def test_a_bound_of_entries_is_tried_as_an_entry(name: str) -> None:
    clamped, plain, line = CLAMPS[name]
    assert on_inputs(clamped, plain, line)[0].counterexample is not None
    assert on_inputs(clamped, clamped, line)[0].counterexample is None


def test_an_entry_at_which_two_programs_jump_apart_is_a_condition() -> None:
    """A rounding of the entry explains any difference, but the code may mean this number."""

    def marked(x: Tensor) -> Tensor:
        return torch.where(x == 0.7123, x + 1, x)

    found, conditions = on_inputs(marked, lambda x: x * 1, TOKENS)
    assert found.counterexample is None
    assert conditions == ["inputs are not exactly 0.7123: where all are, the two differ by 1"]
    assert not on_inputs(marked, marked, TOKENS)[1]


def test_numbers_of_the_source_that_were_not_tried_are_told() -> None:
    names = {"__name__": "model"}
    for count, told in ((43, ["inputs stay away from 140.5 and 2 more numbers"]), (3, [])):
        terms = "+".join(f"(x * {100 + k}.5).sin()" for k in range(count))
        code = eval(f"lambda x: {terms}", names)
        found, conditions = on_inputs(code, code, TOKENS)
        assert found.counterexample is None
        assert [one[: one.index(" of the source")] for one in conditions] == told


HERE, LOST = "inputs stay far ", "where second alone underflows"
PAIRS = "a: B n E, b: B n E -> B n E"
EXTREMES: dict[str, tuple[Code, Code, str, list[str]]] = {
    "squares": (
        torch.hypot,
        lambda a, b: (a * a + b * b).sqrt(),
        PAIRS,
        [f"{HERE}below 8e+28, where second alone overflows", f"{HERE}above 1e-29, {LOST}"],
    ),
    "a product": (
        lambda a, b: a / b,
        lambda a, b: a * b / (b * b),
        PAIRS,
        [f"{HERE}below 8e+28, where second alone overflows", f"{HERE}above 1e-29, {LOST}"],
    ),
    "neither": (lambda a, b: a + b, lambda a, b: b + a, PAIRS, []),
    "both": (lambda x: (x * x).sqrt(), lambda x: (x**2).sqrt(), TOKENS, []),
}


@pytest.mark.parametrize("name", EXTREMES)
def test_what_only_one_loses_on_the_way_is_a_condition(name: str) -> None:
    first, second, line, told = EXTREMES[name]
    found, conditions = on_inputs(first, second, line)
    assert found.counterexample is None
    assert conditions == told


@pytest.mark.usefixtures("every_length")
def test_a_product_of_tokens_and_channels_is_solved_for() -> None:
    def code(x: Tensor) -> Tensor:
        return ordered(x) + int(x.shape[1] * x.shape[2] == 4242)

    found, _ = beyond(code, ordered, TOKENS)
    assert found.counterexample is not None
    assert found.at["n"] * found.at["E"] == 4242
