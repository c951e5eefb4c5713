"""Square roots, logarithms and exponentials of lengths are functions of the length in a graph."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, lru_cache
from math import log as natural_logarithm
from typing import Any

import pytest
import torch
from torch import Tensor

from attnproof.programs.declarations import DeclaredAttention
from attnproof.programs.equal.deciding import compare
from attnproof.programs.equal.sides import Operand
from attnproof.programs.prove import prove
from attnproof.programs.prove.exporting import read, traced
from attnproof.programs.subjects import Attention, Layer

Code = Callable[[Tensor], Tensor]
LINE = "x: B n E -> B n E"
ROWS = "rows-of-batch-apart"


def scores(x: Tensor, scale: float) -> Tensor:
    """Attention whose scores have this factor."""
    found: Tensor = (x @ x.mT * scale).softmax(-1) @ x
    return found


def by_length(x: Tensor) -> Tensor:
    return scores(x, math.log(x.shape[1]) / math.sqrt(x.shape[-1]))


def imported(x: Tensor) -> Tensor:
    return scores(x, natural_logarithm(x.shape[1]) * x.shape[-1] ** -0.5)


def one_more(x: Tensor) -> Tensor:
    return scores(x, math.log(x.shape[1] + 1) / math.sqrt(x.shape[-1]))


def other_width(x: Tensor) -> Tensor:
    return scores(x, math.log(x.shape[1]) / math.sqrt(x.shape[1]))


def in_base(x: Tensor) -> Tensor:
    return x * math.log(x.shape[1], 512)


def in_twos(x: Tensor) -> Tensor:
    return x * math.log2(x.shape[1]) / 9


def decimal(x: Tensor) -> Tensor:
    return x * math.log10(x.shape[1]) * math.exp(-1 / x.shape[1])


def decimal_apart(x: Tensor) -> Tensor:
    return 2 * x * math.log(x.shape[1], 100) / math.exp(1 / x.shape[1])


@pytest.mark.parametrize(
    ("one", "other"), [(by_length, imported), (in_base, in_twos), (decimal, decimal_apart)]
)
def test_both_programs_are_equal_at_all_lengths(one: Code, other: Code) -> None:
    found = compare(Operand(one, "first", LINE), Operand(other, "second", LINE))
    assert found.verdict == "proved"
    assert not [c.text for c in found.assuming if " = " in c.text or "did not occur" in c.text]


@pytest.mark.parametrize("other", [one_more, other_width])
def test_a_logarithm_of_another_length_is_another_scale(other: Code) -> None:
    found = compare(Operand(by_length, "first", LINE), Operand(other, "second", LINE))
    assert found.verdict == "counterexample"


def branching(x: Tensor) -> Tensor:
    return x if math.sqrt(x.shape[1]) < 3 else x.flip(0)


def rounded(x: Tensor) -> Tensor:
    return x.roll(int(math.sqrt(x.shape[1])), 1)


def compared(x: Tensor) -> Tensor:
    return x if math.log(x.shape[1]) < 2 else x.flip(0)


def raised(x: Tensor) -> Tensor:
    return x * math.ceil(math.log2(x.shape[1]))


def other_at_some(x: Tensor) -> Tensor:
    return x * math.log(x.shape[1]) if x.shape[1] != 4000 else x.flip(0)


def of_floats(x: Tensor) -> Tensor:
    """A float is no tensor: while it is traced it is one."""
    scale: Any = math.log(x.shape[1])
    return x.flip(0) if isinstance(scale, float) and x.shape[1] >= 3000 else x * scale


@pytest.mark.parametrize("code", [branching, rounded, compared, raised])
def test_a_function_that_decides_something_fixes_the_length(code: Code) -> None:
    graph = read(traced(code, (torch.randn(3, 5, 4),), ((True, True, False),)))
    assert not isinstance(graph.shapes[0][0], int)
    assert graph.shapes[0][1] == 5


@pytest.mark.parametrize("code", [by_length, decimal])
def test_no_length_is_fixed_otherwise(code: Code) -> None:
    graph = read(traced(code, (torch.randn(3, 5, 4),), ((True, True, True),)))
    assert not [n for n in graph.shapes[0] if isinstance(n, int)]
    assert not graph.conditions


@pytest.mark.usefixtures("every_length")
@pytest.mark.parametrize("code", [branching, compared, other_at_some, of_floats])
def test_code_that_breaks_a_law_at_some_lengths_is_not_proved(code: Code) -> None:
    found = prove(Layer(name="layer", call=code, embed=4, positional=True), [ROWS])
    (law,) = found.findings
    told = {c.text for c in law.assuming}
    assert law.verdict != "holds" or "n = 5" in told


@pytest.mark.parametrize(
    ("code", "condition"),
    [
        (lambda x: x / math.log(x.shape[1]), "log(n) ≠ 0"),
        (lambda x: x * math.log(x.shape[1] - 1), "n - 1 > 0"),
        (lambda x: x * math.sqrt(x.shape[1] - 3), "n - 3 ≥ 0"),
    ],
)
def test_where_a_function_has_no_value_is_a_condition(code: Code, condition: str) -> None:
    found = prove(Layer(name="layer", call=code, embed=4, positional=True), [ROWS])
    (law,) = found.findings
    assert law.verdict == "holds"
    assert condition in {c.text for c in law.assuming}


@lru_cache(maxsize=2)
def kept_mask(tokens: int, shown: int = 0) -> Tensor:
    return torch.ones(tokens, tokens).tril(shown)


@cache
def kept_scale(tokens: int) -> float:
    return 1.0 if tokens < 4000 else 2.0


def kept(x: Tensor) -> Tensor:
    hidden = kept_mask(x.shape[1], shown=0) == 0
    return (x @ x.mT).masked_fill(hidden, -torch.inf).softmax(-1) @ x


def shows_one_more(x: Tensor) -> Tensor:
    hidden = kept_mask(x.shape[1], shown=1) == 0
    return (x @ x.mT).masked_fill(hidden, -torch.inf).softmax(-1) @ x


def kept_branch(x: Tensor) -> Tensor:
    return x if kept_scale(x.shape[1]) == 1 else x.flip(0)


@pytest.mark.parametrize(("code", "verdict"), [(kept, "holds"), (shows_one_more, "broken")])
def test_what_is_kept_by_length_is_computed_from_it(code: Code, verdict: str) -> None:
    causal = DeclaredAttention(causal=True)
    layer = Attention(name="kept", layer=code, embed=4, declared=causal)
    (law,) = prove(layer, ["causal"]).findings
    assert law.verdict == verdict
    assert not [c.text for c in law.assuming if "n =" in c.text or "n′ =" in c.text]
    assert type(kept_mask(3)) is Tensor  # as it was, with its cache
    assert kept_mask.cache_info().currsize


@pytest.mark.usefixtures("every_length")
def test_a_branch_that_is_kept_is_a_branch() -> None:
    (law,) = prove(Layer(name="kept", call=kept_branch, embed=4, positional=True), [ROWS]).findings
    assert law.verdict != "holds" or "n ≤ 3999" in {c.text for c in law.assuming}


def test_the_module_is_as_before() -> None:
    before = {name: getattr(math, name) for name in ("sqrt", "exp", "log", "log2", "log10")}
    traced(by_length, (torch.randn(3, 5, 4),), ((True, True, True),))
    with pytest.raises(Exception, match="reads"):
        traced(failing, (torch.randn(3, 5, 4),), ((True, True, True),))
    assert {name: getattr(math, name) for name in before} == before
    assert natural_logarithm is math.log


def failing(x: Tensor) -> Tensor:
    raise ValueError(f"it reads {math.sqrt(x.shape[1])}")


def whole_logarithm(x: Tensor) -> Tensor:
    return scores(x, math.floor(math.log2(x.shape[1])))


def test_graphs_that_torch_gives_up_are_not_printed(capfd: pytest.CaptureFixture[str]) -> None:
    layer = Layer(name="layer", call=whole_logarithm, embed=16)
    assert [one.verdict for one in prove(layer, [ROWS]).findings] == ["holds"]
    assert capfd.readouterr() == ("", "")
