"""Code that may do other than its graph, where no comparison of lengths says so.

A length is no int while it is traced, a tensor may have more than its numbers, and what is counted
or kept from an earlier call is in no graph.  No run comes to where that matters: a line says it.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from sys import argv, platform
from typing import Any

import numpy as np
import pytest
import torch
import typing_extensions
from torch import Tensor, nn

from attnproof.programs.finding import Finding
from attnproof.programs.loading.source_numbers import cached_functions, state_of
from attnproof.programs.prove import prove
from attnproof.programs.prove.executed_code import stores
from attnproof.programs.subjects import Layer

FAR = 1_000_003  # rows, of which no run is made


def of_rows(code: Callable[[Tensor], Tensor]) -> Finding:
    module = code if isinstance(code, nn.Module) else None
    subject = Layer(name="l", call=code, embed=4, module=module)
    (found,) = prove(subject, ("rows-of-batch-apart",)).findings
    return found


def told(found: Finding) -> list[str]:
    return [one.text for one in found.assuming if "every run" in one.text and "`" in one.text]


def plus(x: Tensor, more: Any) -> Tensor:
    """Twice x, and something in which rows of a batch meet, more times."""
    found: Tensor = 2 * x + x.cumsum(0) * more
    return found


def traced(x: Tensor) -> Tensor:
    return plus(x, 0 if torch.compiler.is_compiling() else x.shape[0] // FAR)


def kind(x: Tensor) -> Tensor:
    return plus(x, isinstance(x.shape[0], int) * (x.shape[0] // FAR))


def class_of(x: Tensor) -> Tensor:
    n = x.shape[0]
    return plus(x, n // FAR if n.__class__.__name__ == "int" else 0)


def matched(x: Tensor) -> Tensor:
    match x.shape[0]:
        case int() as n:
            return plus(x, n // FAR)
        case _:
            return plus(x, 0)


def digits(x: Tensor) -> Tensor:
    return plus(x, min(1, len(str(x.shape[0])) // 7))


def formatted(x: Tensor) -> Tensor:
    return plus(x, min(1, len(f"{x.shape[0]}") // 7))


def by_percent(x: Tensor) -> Tensor:
    return plus(x, min(1, len("%s" % x.shape[0]) // 7))  # noqa: UP031 (it is asked so)


@functools.singledispatch
def far(_: Any) -> int:
    return 0


@far.register
def _(n: int) -> int:
    return n // FAR


def dispatched(x: Tensor) -> Tensor:
    return plus(x, far(x.shape[0]))


def has(x: Tensor) -> Tensor:
    return x.cumsum(0) if hasattr(x, "batch_sizes") else 2 * x


def gotten(x: Tensor) -> Tensor:
    return plus(x, getattr(x, "more", 0))


def listed(x: Tensor) -> Tensor:
    return plus(x, x.__dict__.get("more", 0))


def tried(x: Tensor) -> Tensor:
    try:
        return plus(x, x.more)  # type: ignore[attr-defined]
    except AttributeError:
        return 2 * x


def refused(x: Tensor) -> Tensor:
    try:
        return (2 * x).view(x.shape)
    except RuntimeError:
        return x.cumsum(0)


def sparse(x: Tensor) -> Tensor:
    return x.cumsum(0) if x.is_sparse else 2 * x


@functools.lru_cache
def fast() -> bool:
    return "FAST" in os.environ


def kept(x: Tensor) -> Tensor:
    return x.cumsum(0) if fast() else 2 * x


weights = np.zeros(4)


def of_numpy(x: Tensor) -> Tensor:
    return plus(x, float(weights[0]))


def by_errors(x: Tensor) -> Tensor:
    return plus(x, np.geterr()["divide"] == "call")


def by_drawing(x: Tensor) -> Tensor:
    return plus(x, np.random.rand() // 2)  # noqa: NPY002 (it is the state of the process)


def by_version(x: Tensor) -> Tensor:
    return plus(x, torch.__version__.startswith("9"))


def by_arguments(x: Tensor) -> Tensor:
    return plus(x, len(argv) // FAR)


def by_platform(x: Tensor) -> Tensor:
    return plus(x, platform == "none")


SAID: tuple[tuple[Callable[[Tensor], Tensor], str], ...] = (
    (traced, "querying `is_compiling` has no effect"),
    (kind, "querying `isinstance(x.shape[0], int)` has no effect"),
    (class_of, "querying `n.__class__` has no effect"),
    (matched, "querying `match x.shape[0]` has no effect"),
    (digits, "querying `str(x.shape[0])` has no effect"),
    (formatted, "querying `f'{x.shape[0]}'` has no effect"),
    (by_percent, "querying `'%s' % x.shape[0]` has no effect"),
    (dispatched, "the code reads the same from `far`"),
    (has, "`hasattr(x, 'batch_sizes')` returns the same"),
    (gotten, "`getattr(x, 'more', 0)` returns the same"),
    (listed, "`x.__dict__` returns the same"),
    (tried, "`except AttributeError` catches something"),
    (refused, "`except RuntimeError` catches nothing"),
    (sparse, "the code reads the same from `is_sparse`"),
    (of_numpy, "the code reads the same from `weights`"),
    (by_errors, "the code reads the same from `geterr`"),
    (by_drawing, "the code reads the same from `np.random`"),
    (by_version, "the code reads the same from `__version__`"),
    (by_arguments, "the code reads the same from `argv`"),
    (by_platform, "the code reads the same from `platform`"),
)


@pytest.mark.parametrize(("code", "said"), SAID, ids=[code.__name__ for code, _ in SAID])
def test_what_no_run_could_turn_is_a_condition(code: Callable[[Tensor], Tensor], said: str) -> None:
    found = of_rows(code)
    assert found.verdict == "holds", found.why
    assert any(one.startswith(said) for one in told(found)), found.assuming


def test_what_was_kept_before_is_a_condition() -> None:
    fast()
    found = of_rows(kept)
    assert found.verdict == "holds"
    assert "the code reads the same from `os` as in every run" in told(found)
    assert cached_functions([kept]) == [fast.__wrapped__]


class Keeping(nn.Module):
    """It reads its environment once."""

    @functools.cached_property
    def quick(self) -> bool:
        return "FAST" in os.environ

    def forward(self, x: Tensor) -> Tensor:
        return x.cumsum(0) if self.quick else 2 * x


def test_what_a_property_kept_before_is_a_condition() -> None:
    code = Keeping()
    assert code.quick == ("FAST" in os.environ)
    found = of_rows(code)
    assert found.verdict == "holds"
    assert "the code reads the same from `os`" in told(found)[0]


class Settings(nn.Module):
    """It asks for what is set, and catches what each of two lengths raises once."""

    window: int | tuple[int, int] = 7

    def forward(self, x: Tensor) -> Tensor:
        if isinstance(self.window, int) and hasattr(self, "window"):
            x = 2 * x
        sizes = list(x.shape)
        if len(sizes) > 9 or getattr(self, "missing", None) is not None:
            raise ValueError(f"wanted few axes, got {sizes} of {type(self.window)}")
        return x


def test_settings_are_no_condition() -> None:
    found = of_rows(Settings())
    assert found.verdict == "holds"
    assert not told(found)


asserted: Callable[..., Any] = torch._assert


def test_an_answer_that_nobody_takes_is_no_condition() -> None:
    def asserting(x: Tensor) -> Tensor:
        asserted(x.shape[-1] == 4, "wanted 4 features")
        return 2 * x

    def answered(x: Tensor) -> Tensor:
        return 2 * x if asserted(x.shape[-1] == 4, "wanted 4 features") is None else x

    def checking(x: Tensor) -> Tensor:
        return 2 * x if torch._check(x.shape[1] < FAR) is None else x  # type: ignore[no-untyped-call]

    assert not told(of_rows(asserting))
    assert not told(of_rows(checking))
    assert told(of_rows(answered))


@pytest.mark.filterwarnings("ignore:there is a newer one")
def test_a_backport_of_the_standard_library_is_not_code_of_the_user() -> None:
    old = typing_extensions.deprecated("there is a newer one")(asserted)

    def asserting(x: Tensor) -> Tensor:
        old(x.shape[-1] == 4, "wanted 4 features")
        return 2 * x

    assert not told(of_rows(asserting))


# --- what is counted


calls = [0]


def in_a_list(x: Tensor) -> Tensor:
    calls[0] += 1
    return plus(x, calls[0] // FAR)


class OfAnObject(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return plus(x, self.calls >> 20)


entries: set[int] = set()


def entered(x: Tensor) -> Tensor:
    entries.add(len(entries))
    return plus(x, len(entries) // FAR)


class OfTheLast(nn.Module):
    """It keeps the lengths of its last call, which a call of these leaves as they are."""

    def forward(self, x: Tensor) -> Tensor:
        self.last = tuple(x.shape)
        y = 2 * x
        y[..., 0] = 0
        return y


COUNTED = "state that the code keeps between calls has no effect, as in every run"


@pytest.mark.parametrize("code", [in_a_list, OfAnObject(), entered])
def test_what_is_counted_is_a_condition(code: Any) -> None:
    found = of_rows(code)
    assert found.verdict == "holds", found.why
    assert COUNTED in [one.text for one in found.assuming]


def test_what_is_kept_of_the_last_call_is_none() -> None:
    code = OfTheLast()
    found = of_rows(code)
    assert found.verdict == "holds"
    assert COUNTED not in [one.text for one in found.assuming]
    assert stores(OfTheLast.forward.__code__), "it is run to see that"
    before = state_of([code])
    code(torch.ones(2, 9, 4))
    assert state_of([code]) != before
