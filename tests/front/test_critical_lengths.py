"""Faults at lengths that only some comparisons of the code reach, few or many."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from attnproof.programs.declarations import DeclaredAttention
from attnproof.programs.execution.draw import Draw
from attnproof.programs.subjects import Bias, Layer, Mask, Rotary, Subject
from attnproof.real_code.longer_inputs import at_longer

Asked = Callable[[int, int], bool]  # of rows and tokens, or of queries and keys


@pytest.fixture(autouse=True)
def lengths() -> None:
    """Code is run at all of them here."""


def doubling(fails: Asked) -> Layer:
    """Return tokens as they are, but for the first, which is doubled where it fails."""

    def call(x: Tensor) -> Tensor:
        return torch.cat((2 * x[:, :1], x[:, 1:]), 1) if fails(x.shape[0], x.shape[1]) else x

    return Layer(name="l", call=call, embed=4)


def mixing(fails: Asked) -> Layer:
    """Return tokens as they are, but for the first row, which is the last where it fails."""

    def call(x: Tensor) -> Tensor:
        return torch.cat((x[-1:], x[1:])) if fails(x.shape[0], x.shape[1]) else x

    return Layer(name="l", call=call, embed=4)


def opened(fails: Asked) -> Mask:
    """Return a causal mask that is open where it fails."""

    def mask(T: int, S: int) -> Tensor:
        return torch.ones(T, S).tril(S - T + S * fails(T, S)).bool()

    return Mask(name="m", mask=mask, declared=DeclaredAttention(causal=True))


def moved(fails: Asked) -> Bias:
    """Return minus the distances, the first of which is another where it fails."""

    def bias(T: int, S: int) -> Tensor:
        found = distances(T, S)
        found[0, 0, 0] -= float(fails(T, S))
        return found

    return Bias(name="b", bias=bias, heads=1, paths={"other": distances})


def distances(T: int, S: int) -> Tensor:
    return -(torch.arange(S) - torch.arange(S - T, S)[:, None]).abs().double()[None]


def never(_: int, __: int) -> bool:
    return False


def rotated(x: Tensor, at: Tensor) -> Tensor:
    angle = at[:, None, :, None] * torch.tensor([1.0, 0.01]).to(x.dtype)
    a, b = x.chunk(2, -1)
    return torch.cat((a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()), -1)


def last_of(fails: Asked) -> Rotary:
    """Rotate the last queries as the last of the keys, but for a place too far where it fails."""

    def last(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        r, n = q.shape[2], k.shape[2]
        places = torch.arange(n).expand(len(k), n)
        return rotated(q, places[:, n - r :] + 1 * (fails(r, n) and r < n)), rotated(k, places)

    return Rotary(
        name="r",
        rotate=rotated,
        width=4,
        running=lambda x: last_of(fails).last(x, x)[1],  # type: ignore[misc]
        paths={"last": lambda x, _: last(x, x)[0]},
        last=last,
    )


def shifted(fails: Asked) -> Rotary:
    """Rotate keys in a cache by further steps, one too many where it fails."""

    def shift(k: Tensor, steps: int) -> Tensor:
        places = torch.full((len(k), k.shape[2]), steps + fails(len(k), k.shape[2]))
        return rotated(k, places)

    return Rotary(name="r", rotate=rotated, width=4, shift=shift)


FAULTS: dict[str, tuple[Callable[[Asked], Subject], str, Asked]] = {
    "few rows": (doubling, "permutation", lambda B, _: B == 6),
    "few tokens": (doubling, "permutation", lambda _, n: n == 4),
    "one token more": (mixing, "rows-of-batch-apart", lambda B, n: B > 2 and n == 6),
    "rows of many tokens": (doubling, "permutation", lambda B, n: n > 40 and B == 3),
    "tokens of some rows": (doubling, "permutation", lambda B, n: B == 3 and n > 40),
    "as many keys": (opened, "causal", lambda _, S: S == 300),
    "many queries": (opened, "causal", lambda T, _: T > 40),
    "many queries of a bias": (moved, "paths-agree", lambda T, _: T > 40),
    "keys of a bias": (moved, "offset-only", lambda _, S: S == 300),
    "a shift of keys": (shifted, "shift-of-cached-keys", lambda _, n: n == 30),
    "last of many": (last_of, "step-by-step", lambda _, n: n > 40),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_law_is_run_at_the_lengths_that_the_code_asks_for(fault: str) -> None:
    made, law, fails = FAULTS[fault]
    begun: list[str] = []
    found = [*at_longer(made(fails), [law], Draw(), begun.append)]
    assert [one.verdict in ("broken", "undecided") for one in found] == [True]
    assert "at lengths that the code asks about" in found[0].why


@pytest.mark.parametrize("fault", FAULTS)
def test_correct_code_needs_no_condition(fault: str) -> None:
    made, law, _ = FAULTS[fault]
    begun: list[str] = []
    assert [*at_longer(made(never), [law], Draw(), begun.append)] == []
    assert law in begun
