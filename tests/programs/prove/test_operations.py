"""Every reading of an ATen operation gives the numbers of the operation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from attnproof.programs.prove.comparison import disagreement
from attnproof.programs.prove.exporting import read, traced
from attnproof.programs.prove.operations import READINGS, Notes, Pair, Unread, noted
from attnproof.programs.prove.program import CASTS
from attnproof.symbolic import namespace as xp
from attnproof.symbolic.array import Array, as_array
from attnproof.symbolic.givens import positions, positive, real
from attnproof.symbolic.scalars import is_truth, num, size
from tests.cases import each
from tests.numeric.operation_cases import CASES, Case, Of, Symint

LETTERS = {letter: size(letter) for letter in "nm"}
SIZES = ({"n": 2, "m": 3}, {"n": 5, "m": 2}, {"n": 4, "m": 4})
REFUSED = {"sym_int", "mod", "sym_max", "sym_min", "sym_not"}
NUMBERS = {"sym_float", "truediv", "pow"}  # of lengths
MEMORY = {
    "aten.empty.memory_format",
    "aten.empty_permuted.default",
    "aten.new_empty.default",
    "aten.empty_like.default",
}
INSIDE = {"flex_attention"}  # it has graphs inside: test_flex.py
ELSEWHERE = REFUSED | NUMBERS | MEMORY | INSIDE | set(CASTS)
OPERATIONS = 16  # of the allowance: a case is a few operations on numbers of size 1


class Inputs:
    """The tensors of a case, as terms and as numbers."""

    def __init__(self, sizes: dict[str, int]) -> None:
        self.sizes, self.notes = sizes, Notes()
        self.values: dict[str, Tensor] = {}
        self.tables: dict[str, Tensor] = {}
        self.generator = torch.Generator().manual_seed(sum(sizes.values()))

    def term(self, a: Any) -> Any:
        """What stands for an argument in a term; its numbers are drawn."""
        if isinstance(a, list):
            return [self.term(part) for part in a]
        if isinstance(a, Symint):
            return as_array(LETTERS[a.letter]) + a.more
        return self.tensor(a) if isinstance(a, Of) else a

    def tensor(self, told: Of) -> Any:
        axes = [LETTERS.get(a) or num(int(a)) for a in told.axes.split()]
        shape = [self.sizes.get(a) or int(a) for a in told.axes.split()]
        lengths = [Array(n) for n in axes]
        if told.kind == "complex":
            return Pair(self.tensor(Of("real", told.axes)), self.tensor(Of("real", told.axes)))
        if told.kind == "counted":
            return as_array(3)
        if told.kind == "following":
            return xp.arange(*lengths) + 2
        if told.kind == "alike":
            return xp.broadcast_to(self.tensor(Of("real")), tuple(lengths))
        name = f"{told.kind}_{len(self.values)}"
        drawn = torch.randn(shape, generator=self.generator, dtype=torch.float64)
        if told.kind == "positive":
            drawn = drawn.abs() + 0.5
        if told.kind == "whole":
            drawn = torch.randint(0, 9, shape, generator=self.generator)
        self.values[name] = drawn
        given = {"positive": positive, "whole": positions}.get(told.kind, real)(*lengths)
        found = given.named(name)
        if told.kind == "stored":
            self.notes.stored[found.term] = (name, drawn)
        if told.kind == "seen":  # a truth value for each key, the first one true
            return (found > 0) | (xp.arange(lengths[-1])[None, :] <= 0)
        return found > 0 if told.kind == "truth" else found

    def number(self, a: Any, values: Any) -> Any:
        """The same argument as torch has it, from the numbers in the order they were drawn."""
        if isinstance(a, list):
            return [self.number(part, values) for part in a]
        if isinstance(a, Symint):
            return self.sizes[a.letter] + a.more
        if not isinstance(a, Of):
            return a
        if a.kind == "counted":
            return torch.tensor(3)
        if a.kind == "following":
            return torch.arange(self.sizes[a.axes]) + 2
        if a.kind == "complex":
            return torch.complex(next(values), next(values))
        drawn = next(values)
        if a.kind == "alike":
            return drawn.expand([self.sizes.get(n) or int(n) for n in a.axes.split()])
        if a.kind == "seen":
            return (drawn > 0) | (torch.arange(drawn.shape[-1]) <= 0)
        return drawn > 0 if a.kind == "truth" else drawn


def operation(name: str) -> Callable[..., Any]:
    _, word, overload = name.split(".")
    return getattr(getattr(torch.ops.aten, word), overload)  # type: ignore[no-any-return]


def parts(value: Any) -> list[Any]:
    """The real arrays of an output, flat; None for a part that is not read."""
    if isinstance(value, Pair):
        return [value.real, value.imaginary]
    if isinstance(value, Tensor) and value.is_complex():
        return [value.real, value.imag]
    return [p for v in value for p in parts(v)] if isinstance(value, list | tuple) else [value]


def wrong(
    name: str,
    case: Case,
    sizes: dict[str, int],
    readings: Mapping[str, Callable[..., Any]] = READINGS,
) -> list[str]:
    """What is wrong with the reading of one call at these sizes, part by part."""
    inputs = Inputs(sizes)
    with noted(inputs.notes):
        terms = readings[name](
            *map(inputs.term, case.args), **{k: inputs.term(a) for k, a in case.keywords.items()}
        )
    names, values = list(inputs.values), list(inputs.values.values())

    def ran(drawn: Sequence[Tensor]) -> list[Any]:
        given = iter(drawn)
        args = [inputs.number(a, given) for a in case.args]
        return parts((case.code or operation(name))(*args, **case.keywords))

    def run(place: int) -> Callable[..., Tensor]:
        return lambda *drawn: torch.as_tensor(ran(drawn)[place])

    read, made = parts(terms), len(ran(values))
    known = sum(term is not None for term in read)
    if len(read) != made or not known:
        return [f"{name} at {sizes}: {made} parts made, {len(read)} given, {known} of them read"]
    found = []
    for place, term in enumerate(read):
        if term is None:
            continue
        array = as_array(term)
        array = xp.astype(array, float) if is_truth(array.term) else array
        told = disagreement(run(place), array, names, values, {}, OPERATIONS, sizes, inputs.notes)
        found += [f"{name}, part {place} at {sizes}: {told}"] if told else []
    return found


def test_every_reading_has_a_case() -> None:
    assert set(READINGS) - set(CASES) - ELSEWHERE == set(), "readings that no case looks at"
    assert (set(CASES) | ELSEWHERE) - set(READINGS) == set(), "cases of readings that are gone"


@each(sorted(CASES))
def test_a_reading_gives_the_numbers_of_its_operation(name: str) -> None:
    assert CASES[name], "no call of it is looked at"
    told = [line for case in CASES[name] for sizes in SIZES for line in wrong(name, case, sizes)]
    assert told == []


def test_lengths_that_are_computed_otherwise_are_refused() -> None:
    for name in REFUSED:
        with pytest.raises(Unread):
            READINGS[name](as_array(LETTERS["n"]), 2)


@pytest.mark.parametrize("least", [5, 1, 0])
def test_a_base_that_is_seen_to_be_positive_has_any_power(least: int) -> None:
    """1 − 2^(−k − h), the decay of a retention at head h, is 0 at h = k = 0."""
    decay = 1 - as_array(2) ** (-(xp.arange(Array(LETTERS["n"])) + least))
    exponent = real(Array(LETTERS["n"])).named("x")
    with noted(Notes()) as notes:
        if not least:
            with pytest.raises(Unread, match="positive"):
                READINGS["aten.pow.Tensor_Tensor"](decay, exponent)
            return
        term = READINGS["aten.pow.Tensor_Tensor"](decay, exponent)
    drawn = torch.randn(4, dtype=torch.float64)
    bases = 1 - 2.0 ** -(torch.arange(4, dtype=torch.float64) + least)
    assert disagreement(bases.pow, term, ["x"], [drawn], {}, OPERATIONS, {"n": 4}, notes) == ""


def test_roots_and_quotients_of_lengths_are_numbers() -> None:
    n = as_array(LETTERS["n"])
    with noted(Notes()):
        for name, given, wanted in (
            ("sym_float", (n,), n),
            ("truediv", (n, 2), n / 2),
            ("pow", (n, 0.5), n**0.5),
            ("pow", (n, -0.5), n**-0.5),
            ("pow", (n, 2), n**2),
        ):
            assert READINGS[name](*given).term is wanted.term
        for power in (0.3, n, 7):
            with pytest.raises(Unread):
                READINGS["pow"](n, power)


def test_a_convolution_that_mixes_places_is_refused() -> None:
    inputs = Inputs({"n": 2, "m": 3})
    x, wide, one = (inputs.tensor(Of("real", axes)) for axes in ("n 4 m", "3 4 3", "3 4 1"))
    read = READINGS["aten.convolution.default"]
    for weight, steps, padding, groups in (
        (wide, [1], [0], 1),
        (one, [2], [0], 1),
        (one, [1], [1], 1),
        (one, [1], [0], 2),
    ):
        with pytest.raises(Unread, match="a convolution"):
            read(x, weight, None, steps, padding, [1], False, [0], groups)


@pytest.mark.parametrize("name", sorted(MEMORY))
def test_memory_that_is_not_written_is_any_numbers_other_ones_at_every_use(name: str) -> None:
    notes = Notes()
    like = real(2, 3).named("x")
    given = [like] if name == "aten.empty_like.default" else [[2, 3], [0, 1]]
    given = [like, [2, 3]] if name == "aten.new_empty.default" else given
    with noted(notes):
        first, second = (READINGS[name](*given) for _ in range(2))
    assert first.axes == like.axes
    assert first.term is not second.term
    assert set(notes.givens) == {first.term.data[0], second.term.data[0]}


@pytest.mark.parametrize("name", sorted(CASTS))
def test_conversions(name: str) -> None:
    notes, x = Notes(), real(4).named("x")
    read = READINGS[name]
    with noted(notes):
        assert read(x, dtype=torch.float64, source=torch.float32).term is x.term
        cut = read(x, dtype=torch.int64, source=torch.float32)
        assert cut.term is not x.term  # 1.7 becomes 1
        assert is_truth(read(x, dtype=torch.bool, source=torch.float32).term)
        for narrow in (torch.int8, torch.uint8, torch.int16):
            with pytest.raises(Unread, match="wrap around"):
                read(positions(4).named("p"), dtype=narrow, source=torch.int64)
        assert not notes.readings
        read(x, dtype=torch.bfloat16, source=torch.float32)
        assert any("bfloat16" in told.text for told in notes.readings)


WRONG: dict[str, Callable[..., Any]] = {
    "aten.add.Tensor": lambda a, b, **_: a + b + a * 0.0625,
    "aten.sub.Tensor": lambda a, b, **_: b - a,
    "aten.softmax.int": lambda x, _: READINGS["aten.softmax.int"](x, 0),
    "aten.tril.default": lambda x, k=0: READINGS["aten.tril.default"](x, k + 1),
    "aten.roll.default": lambda x, s, axes: READINGS["aten.roll.default"](x, [-k for k in s], axes),
    "aten.transpose.int": lambda x, *_: x,
    "aten.cumsum.default": lambda x, axis: READINGS["aten.sum.dim_IntList"](x, [axis], True),
    "aten.chunk.default": lambda *given: READINGS["aten.chunk.default"](*given)[:1],
    "aten.max.dim": lambda *_: [None, None],
    "aten.index_put.default": lambda x, at, part: READINGS["aten.index_put.default"](
        x, [None, at[1] - 1], part
    ),
}


@pytest.mark.parametrize("name", sorted(WRONG))
def test_a_wrong_reading_is_noticed(name: str) -> None:
    assert [line for sizes in SIZES for line in wrong(name, CASES[name][0], sizes)] == []
    planted = {name: WRONG[name]}
    assert [line for sizes in SIZES for line in wrong(name, CASES[name][0], sizes, planted)]


def test_an_operation_that_code_registers_later_is_taken_apart_too() -> None:
    def fresh(x: Tensor) -> Any:
        return torch.special.xlog1py(x, x * x)

    def own(x: Tensor) -> Any:
        return torch.ops.of_a_test.thrice(x)

    x = torch.ones(2, 3)
    assert (
        read(traced(fresh, (x,), [(False, False)])).operations > 2
    )  # taken apart, and the table kept
    kind: Any = torch.library.Library
    library = kind("of_a_test", "DEF")
    library.define("thrice(Tensor x) -> Tensor")
    library.impl("thrice", lambda x: 3 * x, "CompositeImplicitAutograd")
    seen = read(traced(own, (x,), [(False, False)]))
    assert [str(node.target) for node in seen.nodes if node.op == "call_function"] == [
        "aten.mul.Tensor"
    ]
