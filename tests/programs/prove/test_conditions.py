"""Branches on lengths: what is broken beyond one, and the conditions that a proof prints."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
import sympy
import torch
from torch import Tensor
from torch.utils._sympy import functions
from torch.utils._sympy.functions import FloorDiv, IntTrueDiv, Max, Mod, ToFloat
from torch.utils._sympy.value_ranges import ValueRanges

from attnproof.programs.prove import prove
from attnproof.programs.prove.exporting import _length, read, traced
from attnproof.programs.prove.guards import (
    OPERATIONS,
    compiled,
    conditions_of,
    satisfiable,
    satisfied,
)
from attnproof.programs.prove.printed_lengths import _always_holds, printed_conditions
from attnproof.programs.prove.reached_arrays import NotTraced
from attnproof.programs.subject import adapted_as
from attnproof.programs.subjects import Subject
from attnproof.symbolic.array import Array
from attnproof.symbolic.scalars import add, size
from benchmarks.false_programs import outside

from .test_attacks import SECONDS, causal, layer, only, rotated

BEYOND: dict[str, tuple[Callable[[], Subject], str, str]] = {
    "a remainder": (
        lambda: layer(lambda x: x.cumsum(1) if x.shape[1] % 7 == 0 else 2 * x),
        "permutation",
        "n mod 7 ≠ 0",
    ),
    "a difference": (
        lambda: layer(lambda x: x.cumsum(1) if x.shape[1] == x.shape[0] + 20 else 2 * x),
        "permutation",
        "n ≠ B + 20",
    ),
    "a length, met by the longer input": (
        lambda: causal(lambda x: x.flip(1) if x.shape[1] > 40 else 2 * x),
        "causal",
        "n + n′ ≤ 40",
    ),
}


@pytest.mark.parametrize("name", BEYOND)
def test_a_law_that_is_broken_beyond_a_branch_is_broken(name: str) -> None:
    make, law, words = BEYOND[name]
    (found,) = prove(make(), (law,), seconds=SECONDS).findings
    assert found.verdict == "broken"
    assert found.why.startswith("proved for")
    assert words in found.why
    assert "other code runs, and breaks it" in found.why


def both_rotated(branch: Callable[[Tensor, Tensor], bool]) -> Callable[..., tuple[Tensor, Tensor]]:
    """Queries and keys are rotated in one call; where a branch on lengths is taken no key is."""

    def rotate(q: Tensor, k: Tensor, p: Tensor) -> tuple[Tensor, Tensor]:
        return rotated(q, p), k + 1 if branch(q, k) else rotated(k, p)

    return rotate


BOTH = "q: B H n D, k: B G n D, p: B n positions -> q, k"
OF_BOTH: dict[str, tuple[Callable[[Tensor, Tensor], bool], str]] = {
    "fewer key heads than query heads": (lambda q, k: q.shape[1] != k.shape[1], "differ"),
    "a long call": (lambda q, _: q.shape[2] > 40, "elsewhere, as at"),
    "many key heads": (lambda _, k: k.shape[1] > 21, "elsewhere, as at"),
}


@pytest.mark.parametrize("name", OF_BOTH)
def test_what_rotates_queries_and_keys_is_asked_on_every_side_of_a_branch(name: str) -> None:
    branch, why = OF_BOTH[name]
    (found,) = prove(adapted_as(both_rotated(branch), BOTH), ("linear",), seconds=SECONDS).findings
    assert found.verdict == "broken"
    assert why in found.why


def test_heads_are_told_by_the_letters_of_what_is_rotated() -> None:
    """One graph is of queries and of keys: a law of keys calls their heads H, and the others G."""

    def code(q: Tensor, k: Tensor, p: Tensor) -> tuple[Tensor, Tensor]:
        unseen = str(k.shape[1]) == "23"  # of which no condition is kept
        return rotated(q, p), 2 * k if unseen else rotated(k, p)

    (found,) = prove(adapted_as(code, BOTH), ("linear",), seconds=SECONDS).findings
    assert found.verdict == "undecided"
    assert "H = 1, n = 1, G = 23 and B = 1, G = 1, n = 1, H = 23" in found.why


def test_both_sides_of_a_branch_on_the_heads_of_keys_are_proved() -> None:
    def code(q: Tensor, k: Tensor, p: Tensor) -> tuple[Tensor, Tensor]:
        return rotated(q, p), 2 * rotated(k, p) if k.shape[1] > 21 else rotated(k, p)

    told = only(prove(adapted_as(code, BOTH), ("linear",), seconds=SECONDS), "linear")
    assert {"G ≤ 21", "H ≤ 21"} <= set(told)
    assert sum("for which it is proved" in one for one in told) == 2


def test_beyond_a_branch_on_heads_of_keys_their_own_code_is_traced() -> None:
    """Both results are of one trace, of as many heads of each as the call of either has."""
    code = adapted_as(both_rotated(lambda _, k: k.shape[1] > 21), BOTH)
    found = prove(code, ("relative", "every-head-alike"), seconds=SECONDS)
    one, other = sorted(found.findings, key=lambda finding: finding.law)
    assert other.verdict == "broken", other.why
    assert one.verdict == "holds", one.why
    assert "for which it is not proved" not in "; ".join(told.text for told in one.assuming)


def test_lengths_that_are_equal_wherever_both_are_rotated_are_told() -> None:
    code = both_rotated(lambda q, k: q.shape[2] != k.shape[2])
    subject = adapted_as(code, BOTH.replace("H n", "H r").replace("G", "H"))
    assert "as many queries as keys" in only(prove(subject, ("linear",)), "linear")
    proved = only(prove(adapted_as(both_rotated(lambda _, __: False), BOTH), ("linear",)), "linear")
    assert not any("G" in one for one in proved), "for any number of key heads"


def test_conditions_are_told_of_the_lengths_that_a_law_uses() -> None:
    def branches(x: Tensor) -> Tensor:
        return x.flip(1) if x.shape[1] % 2 == 0 else 2 * x

    graph = read(traced(branches, (torch.randn(3, 5, 4),), ((True, True, False),)))
    ((_, tokens, _),) = graph.shapes
    conditions = conditions_of(graph.program)
    assert graph.conditions == conditions
    n, r = size("n"), size("r")
    alone, longer = (((str(tokens), length),) for length in (n, add(n, r)))
    assert printed_conditions(conditions, (alone,)) == ("n mod 2 ≠ 0",)
    assert printed_conditions(conditions, (((str(tokens), Array(n).term),),)) == ("n mod 2 ≠ 0",)
    assert satisfiable([(conditions, {}, (alone, longer))])
    other = ((str(tokens), r),)
    assert not satisfiable([(conditions, {}, (alone, other, longer))]), "odd + odd is not odd"
    assert not satisfiable([((sympy.false,), {}, (alone,))])


def test_lengths_that_depend_on_each_other_are_no_lengths() -> None:
    def padded(x: Tensor) -> Tensor:
        return x.flip(1) if x.shape[1] == x.shape[0] + 2 else 2 * x

    with pytest.raises(NotTraced, match="depend on one another"):
        read(traced(padded, (torch.randn(3, 5, 4),), ((True, True, False),)))
    with pytest.raises(NotTraced, match="depend on one another"):
        _length(sympy.Symbol("s0") + 2)
    assert _length(sympy.Symbol("s0")) == "s0"


def test_a_condition_that_is_turned_round_is_told_once() -> None:
    heads, groups = sympy.symbols("s0 s1", integer=True)
    bound = [(("s0", size("H", "heads")), ("s1", size("G", "heads")))]
    both = [sympy.Ne(heads, groups), sympy.Ne(groups, heads)]
    assert printed_conditions(both, bound) == ("H ≠ G",)
    assert printed_conditions([heads < groups, groups > heads, *both], bound) == ("H < G",)
    assert printed_conditions([heads < groups, groups < heads], bound) == ("H < G", "G < H")


def test_what_follows_from_another_condition_is_left_out() -> None:
    tokens, keys = sympy.symbols("s0 s1", integer=True, positive=True)
    bound = [(("s0", size("n")), ("s1", size("r")))]
    assert printed_conditions([tokens > 1000, tokens >= 1001, -2 * tokens < -90], bound) == (
        "n ≥ 1001",
    )
    assert printed_conditions([2 * tokens <= 64, tokens < 33, tokens < 32], bound) == ("n ≤ 31",)
    assert printed_conditions([tokens + keys <= 64, 3 * tokens < 192], bound) == ("n + r ≤ 64",)
    ranges = {"s0": ValueRanges(1001, 2000)}
    assert printed_conditions([tokens > 1000, tokens < 2001], bound, ranges) == ()
    assert printed_conditions([tokens > 1001, tokens < 2000], bound, ranges) == (
        "n ≥ 1002",
        "n ≤ 1999",
    )
    assert printed_conditions([tokens > keys], bound, ranges) == ("n > r",)
    odd = [sympy.Ne(tokens, one) for one in (1000, 1001, 1500, 2000, 2001)]
    assert printed_conditions(odd, bound, ranges) == ("n ≠ 1001", "n ≠ 1500", "n ≠ 2000")
    rest = [sympy.Ne(Mod(one, tokens, evaluate=False), 0) for one in (1000, 1001)]
    assert printed_conditions(rest, bound, ranges) == ("1001 mod n ≠ 0",)


def test_a_length_beside_a_number_that_is_none_is_told_as_one_writes_it() -> None:
    tokens = sympy.Symbol("s0", integer=True, positive=True)
    bound = [(("s0", size("n")),)]
    half = ToFloat(tokens) <= sympy.Float(31.5)
    assert printed_conditions([half, tokens < 100], bound) == ("n ≤ 31.5", "n ≤ 99")
    assert not outside("n ≤ 31.5", {"n": 31})
    assert outside("n ≤ 31.5", {"n": 33})


def test_conditions_on_quotients_that_hold_everywhere_are_left_out() -> None:
    tokens, width = sympy.symbols("s0 s1", integer=True, positive=True)
    half, third = FloorDiv(tokens, 2), FloorDiv(tokens, 3)
    rest = tokens - half
    kept = [half >= 2, sympy.Ne(half, 1), sympy.Ne(rest, 1), third >= 1, rest > half, half < 2]
    gone = [
        half <= tokens,
        rest >= 0,
        rest >= half,
        third <= half,
        sympy.Ne(width * tokens, width * half),
        sympy.Ne(width * tokens, width * Max(1, rest)),  # type: ignore[no-untyped-call]
        width * rest >= 2,
    ]
    bound = [(("s0", size("n")), ("s1", size("E")))]
    ranges = {"s0": ValueRanges(2, 4096), "s1": ValueRanges(2, 4096)}
    assert printed_conditions([*kept, *gone], bound, ranges) == printed_conditions(
        kept, bound, ranges
    )
    for one in kept:
        assert printed_conditions([one], bound, ranges), one
    for one in gone:
        assert not printed_conditions([one], bound, ranges), one


def test_a_condition_that_is_left_out_holds_at_each_length() -> None:
    n, r = sympy.symbols("n r", integer=True, positive=True)
    parts = (n, FloorDiv(n, 2), FloorDiv(n, 3), r * FloorDiv(n, 2), sympy.S.One)
    relations = (sympy.Ge, sympy.Gt, sympy.Ne, sympy.Le)
    draw, out = Random(0), 0
    for _ in range(300):
        condition = draw.choice(relations)(sum(draw.randint(-3, 3) * one for one in parts), 0)
        first = draw.randint(1, 5)
        if condition in (True, False) or not _always_holds(condition, {n: first}):
            continue
        out += 1
        for at in range(first, first + 8):
            for rows in (1, 2, 5):
                assert condition.subs({n: at, r: rows}) == sympy.true, condition
    assert out > 10
    assert not _always_holds(FloorDiv(n, 4096) <= n, {}), "so many cases are not looked at"


def test_lengths_at_which_a_condition_divides_by_zero_do_not_satisfy_it() -> None:
    n = sympy.Symbol("n", integer=True, positive=True)
    above = IntTrueDiv(n, n - 1) >= 1
    assert satisfied([above], {"n": 2})
    assert not satisfied([above], {"n": 1})


def test_lengths_that_are_rounded_up_from_floats_are_read() -> None:
    rows = layer(lambda x: x * torch.arange(x.shape[1] - 1, -1, -1.0)[:, None])
    assert only(prove(rows, ["rows-of-batch-apart"]), "rows-of-batch-apart")


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_on_lengths_are_those_of_torch(name: str) -> None:
    made: Any = getattr(functions, name)
    n, r = sympy.symbols("n r", integer=True, positive=True)
    given: tuple[Any, ...]
    given = (n / sympy.Integer(4),) if name.endswith("ToInt") else (n, r)
    given = (n,) if name == "ToFloat" else given
    for numbers in ((1, 1), (7, 2), (10, 3), (6, 6), (11, 1)):
        at = dict(zip((n, r), numbers, strict=True))
        names, own = compiled(made(*given))
        known = [one.subs(at) for one in given]
        wanted = made(*(map(sympy.Float, known) if name.startswith("Float") else known))
        by_name = {str(length): number for length, number in at.items()}
        assert own(*(by_name[one] for one in names)) == float(wanted)
