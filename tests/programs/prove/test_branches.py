"""Code that does something else where a comparison turns out otherwise, or where it is asked so."""

from __future__ import annotations

import functools
import json
import os
import random
import re
import sys
import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.finding import Finding
from attnproof.programs.prove import prove
from attnproof.programs.prove.comparison_monitor import ComparedSides, Site
from attnproof.programs.prove.open_comparisons import OpenComparison, fitted, lengths_of_change
from attnproof.programs.subjects import Attention, Layer

pytestmark = pytest.mark.usefixtures("fewer_lengths")
SECONDS = 3.0


def of_layer(call: Any, law: str = "permutation") -> Finding:
    module = call if isinstance(call, nn.Module) else None
    subject = Layer(name="l", call=call, embed=4, module=module)
    (found,) = prove(subject, (law,), seconds=SECONDS).findings
    return found


def told(finding: Finding) -> str:
    return "; ".join(condition.text for condition in finding.assuming)


def is_run() -> bool:
    """Tracing takes the other branch, and no guard says so."""
    return not torch.compiler.is_compiling()


def late(x: Tensor, *, when: bool) -> Tensor:
    return x.cumsum(1) if when else 2 * x


# --- what is compared is made of several lengths


def of_a_product(x: Tensor) -> Tensor:
    return late(x, when=is_run() and x.shape[0] * x.shape[1] == 111)


def of_all_entries(x: Tensor) -> Tensor:
    return late(x, when=is_run() and x.numel() == 3 * 43 * 4)


def of_a_sum(x: Tensor) -> Tensor:
    return late(x, when=is_run() and x.size(0) + 2 * x.size(1) - 1 == 201 and x.size(0) == 10)


def of_a_shape(x: Tensor) -> Tensor:
    return late(x, when=is_run() and x.shape == (5, 59, 4))


def of_a_text(x: Tensor) -> Tensor:
    return late(x, when=f"{x.shape[0]}x{x.shape[1]}" == "6x53")


BY_SHAPE: dict[tuple[int, ...], bool] = {(5, 47): True}
BY_COUNT = {11 * 19}


def of_a_key(x: Tensor) -> Tensor:
    return late(x, when=is_run() and BY_SHAPE.get(tuple(x.shape[:2]), False))


def of_a_set(x: Tensor) -> Tensor:
    return late(x, when=is_run() and x.shape[0] * x.shape[1] in BY_COUNT)


def of_a_case(x: Tensor) -> Tensor:
    match x.shape[0] * x.shape[1] if is_run() else 0:
        case 217:
            return late(x, when=True)
        case _:
            return late(x, when=False)


def of_a_minimum(x: Tensor) -> Tensor:
    most = min(x.shape[0] * x.shape[1], 3 * 331) if is_run() else 5
    return late(x, when=most == 3 * 331)


def of_a_loop(x: Tensor) -> Tensor:
    for _ in range(x.shape[1] - 3000 if is_run() else 0):
        return late(x, when=True)
    return late(x, when=False)


def of_an_exception(x: Tensor) -> Tensor:
    try:
        _ = 1 // (x.shape[0] * x.shape[1] - 713 if is_run() else 1)
    except ZeroDivisionError:
        return late(x, when=True)
    return late(x, when=False)


def of_one_behind_another(x: Tensor) -> Tensor:
    if is_run() and x.shape[1] > 50:
        return late(x, when=x.shape[1] * x.shape[0] == 1111)
    return late(x, when=False)


def of_a_function_within(x: Tensor) -> Tensor:
    def is_long(rows: int, tokens: int) -> bool:
        return rows * tokens >= 1200

    return late(x, when=is_run() and is_long(*x.shape[:2]) and x.shape[0] == 3)


def of_a_logarithm(x: Tensor) -> Tensor:
    bits = x.shape[1].bit_length() if is_run() else 0
    return late(x, when=bits == 12)


# --- how the code is called, and at which lengths


STALE: dict[Any, Tensor] = {}


def kept_with_gradients(x: Tensor) -> Tensor:
    if x.requires_grad and x.shape[0] + x.shape[1] == 14:
        x = STALE.setdefault(x.shape, x.detach().clone())
    return late(x, when=False)


def in_another_order(x: Tensor) -> Tensor:
    return late(x, when=not x.is_contiguous() and x.shape[0] * x.shape[1] == 108)


def computed(x: Tensor) -> Tensor:
    return late(x, when=x.requires_grad and not x.is_leaf and x.shape[1] == 33)


def in_inference(x: Tensor) -> Tensor:
    return late(x, when=torch.is_inference_mode_enabled() and x.numel() == 4 * 87)


def made_in_inference(x: Tensor) -> Tensor:
    return late(x, when=x.is_inference())


def gradients_enabled(x: Tensor) -> Tensor:
    return late(x, when=torch.is_grad_enabled() and not x.requires_grad)


def part_of_another(x: Tensor) -> Tensor:
    return late(x, when=is_run() and x.is_contiguous() and x.storage_offset() > 0)


def written_to(x: Tensor) -> Tensor:
    return late(x, when=is_run() and x._version > 0)


def of_a_subclass(x: Tensor) -> Tensor:
    own = is_run() and type(x) is not Tensor and not isinstance(x, nn.Parameter)
    return late(x, when=own)


class Frozen(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        return late(x, when=not self.linear.weight.requires_grad)


FOUND: tuple[Any, ...] = (
    of_a_product,
    of_all_entries,
    of_a_sum,
    of_a_shape,
    of_a_text,
    of_a_key,
    of_a_set,
    of_a_case,
    of_a_minimum,
    of_a_loop,
    of_an_exception,
    of_one_behind_another,
    of_a_function_within,
    of_a_logarithm,
    kept_with_gradients,
    in_another_order,
    computed,
    in_inference,
    made_in_inference,
    gradients_enabled,
    part_of_another,
    written_to,
    of_a_subclass,
    Frozen(),
)


@pytest.mark.parametrize("code", FOUND, ids=lambda one: getattr(one, "__name__", "frozen"))
def test_the_code_is_run_where_it_does_something_else(code: Any) -> None:
    subject = Layer(name="l", call=code, embed=4, module=code if code is FOUND[-1] else None)
    findings = prove(subject, ("permutation",), seconds=SECONDS).findings
    assert {one.verdict for one in findings} <= {"broken", "undecided"}


def test_code_of_one_length_is_run_in_every_way_too() -> None:
    def call(x: Tensor) -> Tensor:
        rows = [x[0], x[1], x[2]]
        tokens = torch.stack(list(torch.stack(rows).unbind(1)), 1)
        return late(tokens, when=x.requires_grad and not x.is_leaf)

    findings = prove(
        Layer(name="l", call=call, embed=4), ("permutation",), seconds=SECONDS
    ).findings
    assert not [one for one in findings if one.verdict == "holds"]


def test_one_input_of_several_may_want_gradients() -> None:
    def attend(q: Tensor, k: Tensor, v: Tensor, _: object = None) -> Tensor:
        scores = q @ k.mT
        own = k.requires_grad and not q.requires_grad
        return torch.softmax(scores.cumsum(-1) if own else scores, -1) @ v

    subject = Attention(name="a", attend=attend, heads=2, groups=2, width=4)
    (finding,) = prove(subject, ("order-of-keys",), seconds=SECONDS).findings
    assert finding.verdict == "undecided"
    assert "all inputs but the first requiring gradients" in finding.why


# --- what no run can turn is a condition


class Counting(nn.Module):
    calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return late(x, when=self.calls > 1_000_000)


def long_at_one_row(x: Tensor) -> Tensor:
    """While it is traced a length is no number that can be written down, and the error is kept."""
    try:
        alone = json.dumps(list(x.shape)).startswith("[1,")
    except TypeError:
        alone = False
    return late(x, when=alone and x.shape[1] ** 2 > 900_000_000)


SETTING = ContextVar("setting", default=False)
CONDITIONS: dict[str, tuple[Any, str]] = {
    "too long": (
        lambda x: late(x, when=is_run() and x.shape[1] > 100_000),
        "`x.shape[1] > 100000` is false",
    ),
    "a large square": (
        lambda x: late(x, when=is_run() and x.shape[1] ** 2 > 900_000_000),
        "`x.shape[1] ** 2 > 900000000` is false",
    ),
    "too long at one row alone": (long_at_one_row, "`x.shape[1] ** 2 > 900000000` is false"),
    "a count of calls": (Counting(), "`self.calls > 1000000` is false"),
    "chance": (
        lambda x: late(x, when=random.random() < 1e-9),
        "`random.random() < 1e-09` is false",
    ),
    "values": (
        lambda x: late(x, when=is_run() and bool(x.isinf().any())),
        "`x.isinf().any()` is false",
    ),
    "a clock": (lambda x: late(x, when=time.time() > 1e12), "`time`"),
    "the environment": (lambda x: late(x, when="LATE" in os.environ), "`os`"),
    "a setting": (lambda x: late(x, when=SETTING.get()), "`SETTING`"),
    "threads": (lambda x: late(x, when=torch.get_num_threads() > 999), "`get_num_threads`"),
    "no source": (
        eval("lambda x: (x.cumsum(1) if r() and x.shape[1] == 70001 else x)", {"r": is_run}),
        "whose source was not found",
    ),
}


@pytest.mark.usefixtures("lengths_of_one")
@pytest.mark.parametrize("name", CONDITIONS)
def test_what_turned_out_in_one_way_is_told(name: str) -> None:
    code, condition = CONDITIONS[name]
    finding = of_layer(code)
    assert finding.verdict == "holds", finding.why
    assert condition in told(finding)


loaded = [*sys.modules.values()]


def test_of_many_parts_of_the_environment_few_are_named() -> None:
    finding = of_layer(lambda x: late(x, when=len(loaded) < 3))
    assert finding.verdict == "holds", finding.why
    (condition,) = [one.text for one in finding.assuming if "reads the same" in one.text]
    assert re.search(r"(`[\w.]+`, ){6}`[\w.]+` and \d+ more as in every run", condition), condition


def plain(x: Tensor) -> Tensor:
    """Its comparisons turn, or are guards of its graph, or never vary."""
    b, n, _ = x.shape
    if n < 1 or b * n == 0:
        raise ValueError
    x = 2 * x if x.dim() == 3 and n % 2 else x + x
    for k in range(3):
        x = x if k == 5 else x * 1
    return x


@functools.lru_cache
def kept_step() -> Callable[[Tensor], Tensor]:
    def step(x: Tensor) -> Tensor:
        return x.cumsum(1) if torch.is_grad_enabled() and len(x[0]) > 70_000 else x

    return step


@pytest.mark.usefixtures("lengths_of_one")
def test_functions_that_a_factory_keeps_are_watched() -> None:
    def by_kept_step(x: Tensor) -> Tensor:
        return kept_step()(x) + 0

    finding = of_layer(by_kept_step)
    assert finding.verdict == "holds", finding.why
    assert "`len(x[0]) > 70000` is false, as it was in every run" in told(finding)


def test_code_without_such_branches_has_no_condition_more() -> None:
    finding = of_layer(plain)
    assert finding.verdict == "holds", finding.why
    assert "every run" not in told(finding)


# --- where a comparison turns


def open_of(sign: str, sides: Callable[[int, int], tuple[float, float]]) -> OpenComparison:
    sizes = [(b, n) for b in (2, 3, 5) for n in (2, 3, 7)]
    met = tuple(
        ComparedSides({"B": b, "n": n}, "plain", (a,), (c,), answer=False)
        for b, n in sizes
        for a, c in [sides(b, n)]
    )
    return OpenComparison((0, 0, 0), Site(sign, "?"), met, answer=False)


def test_lengths_are_found_at_which_two_sides_meet() -> None:
    at = lengths_of_change(open_of("==", lambda b, n: (b * n + 1, 112)))
    assert at
    assert all(one["B"] * one["n"] == 111 for one in at)
    assert {"B": 3, "n": 37} in at


def test_of_an_order_there_are_lengths_on_both_sides() -> None:
    at = lengths_of_change(open_of(">", lambda b, n: (n * n - b, 10_000)))
    assert at
    assert {one["n"] ** 2 - one["B"] > 10_000 for one in at} == {True, False}


def test_what_meets_at_no_length_and_what_is_no_polynomial() -> None:
    assert lengths_of_change(open_of("==", lambda b, n: (2 * n, 2 * b * n + 2 * n + 1))) == []
    assert lengths_of_change(open_of("==", lambda b, n: (hash((b, n)) % 1009, 3))) is None
    assert fitted([{"n": n} for n in range(6)], [2.0**n for n in range(6)]) is None
