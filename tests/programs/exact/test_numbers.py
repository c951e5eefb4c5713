"""Two paths that differ by little, by type, or at inf: `exact` says no more than is true."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from attnproof.programs.declarations import DeclaredAttention
from attnproof.programs.exact.session import Session
from attnproof.programs.subjects import Attention, Rotary
from tests.cases import each

from .exact_asked import of, verdict

One = Callable[[Tensor], Tensor]
PRIMES = 4194287 * 4194167


def paths(here: One, there: One) -> str:
    code = Attention(name="p", layer=here, paths={"other": there}, embed=4)
    return verdict(code, "paths-agree")


def rotating(call: Callable[[Tensor], Tensor], other: Callable[[Tensor], Tensor]) -> str:
    """Two paths of factors at positions (B, T)."""

    def rotate(factor: Callable[[Tensor], Tensor]) -> Any:
        return lambda x, p: x * factor(p)[:, None, :, None]

    code = Rotary(name="t", rotate=rotate(call), paths={"other": rotate(other)}, width=4)
    return verdict(code, "paths-agree")


def as_complex(x: Tensor) -> Tensor:
    return torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))


def _set(x: torch.Tensor, value: float) -> torch.Tensor:
    """The same, but for the odd places of its last axis."""
    changed = x.clone()
    changed[:, :, torch.tensor([1, 3])] = value
    return changed


def _gathered(x: torch.Tensor) -> torch.Tensor:
    """At each place of the last axis of length 4, the sum along it, as four additions."""
    rows, places = x.movedim(-1, 0), torch.arange(4).repeat(4)
    sums = torch.zeros_like(rows).index_put(
        (places,), rows.repeat_interleave(4, 0), accumulate=True
    )
    return sums.movedim(0, -1)


FALSE: dict[str, tuple[One, One]] = {
    "absolute values": (lambda x: x.abs(), lambda x: x),
    "the root of a square": (lambda x: x.pow(2).sqrt(), lambda x: x),
    "the root of a product": (lambda x: (x * x).pow(0.5), lambda x: x),
    "an exponential and its start": (lambda x: x.exp(), lambda x: 1 + x + x * x / 2),
    "an exponential of another base": (lambda x: x.exp(), lambda x: x.exp2()),
    "exponentials with other constants": (lambda x: (1.1 * x).exp(), lambda x: x.exp() * 1.1),
    "a little more": (lambda x: x, lambda x: x * (1 + 1e-5)),
    "a little added": (lambda x: x, lambda x: x + 1e-12),
    "constants that nearly agree": (lambda x: x * 0.1, lambda x: x * 0.100002),
    "another small constant in a root": (
        lambda x: x * (x * x + 1e-6).rsqrt(),
        lambda x: x * (x * x + 1e-5).rsqrt(),
    ),
    "a product of both primes": (lambda x: x * PRIMES, lambda x: x * 0),
    "a multiple of the prime in an exponential": (
        lambda x: (x * 2097143).exp(),
        lambda x: (x * 2097143 * 2).exp(),
    ),
    "a bound that no input met": (lambda x: x, lambda x: x.clamp(-1e5, 1e5)),
    "a threshold that no input met": (lambda x: x, lambda x: functional.threshold(x, -1e5, 0.0)),
    "the imaginary part left out": (
        lambda x: (as_complex(x) * (1 + 2j)).real,
        lambda x: as_complex(x).real,
    ),
    "conjugates": (
        lambda x: torch.view_as_real(as_complex(x).conj()),
        lambda x: torch.view_as_real(as_complex(x)),
    ),
    "the imaginary part": (lambda x: as_complex(x).imag, lambda x: as_complex(x).real),
    "numbers of which the lower are −inf": (lambda x: x - 20000, lambda x: x - 30000),
    "products with what is −inf": (lambda x: x * -20000, lambda x: x * -30000),
    "a mean of one less": (lambda x: x.var(-1), lambda x: x.var(-1, correction=0)),
    "nearer to one of two": (
        lambda x: torch.lerp(x, x * x, 0.25),
        lambda x: torch.lerp(x * x, x, 0.25),
    ),
    "normed by groups and whole": (
        lambda x: functional.group_norm(x, x.shape[1], eps=0.5),
        lambda x: functional.group_norm(x, 1, eps=0.5),
    ),
    "the gate and what is gated": (
        lambda x: functional.glu(torch.cat((x, 2 * x), -1)),
        lambda x: functional.glu(torch.cat((2 * x, x), -1)),
    ),
    "a norm of order 1": (lambda x: x.norm(p=1, dim=-1), lambda x: x.norm(dim=-1)),
    "the largest": (lambda x: x.amax(-1), lambda x: x.amax(-1).abs()),
    "the largest and the smallest": (lambda x: x.amax(-1), lambda x: x.amin(-1)),
    "sorted": (lambda x: x.sort(-1).values, lambda x: x),
    "argmax": (lambda x: x * x.argmax(-1, True), lambda x: x * 0),
    "remainders": (lambda x: x % 1e6, lambda x: x),
    "whole quotients": (lambda x: x // 1e6, lambda x: x * 0),
    "floor": (lambda x: x.floor(), lambda x: x),
    "signs": (lambda x: x * x.sign(), lambda x: x),
    "a choice by size": (lambda x: torch.where(x < 1e5, x, 0.0), lambda x: x),
    "all that is finite": (lambda x: torch.where(x.isfinite(), x, 0.0), lambda x: x),
    "accumulated": (
        lambda x: (
            x
            * torch.arange(4.0).index_put(
                (torch.tensor([1, 1]),), torch.tensor([2.0, 3.0]), accumulate=True
            )
        ),
        lambda x: x * torch.arange(4.0),
    ),
    "accumulated by part": (lambda x: _gathered(x / (1 + x)), lambda x: x / (1 + x)),
    "set behind whole axes": (lambda x: _set(x, 7.0), lambda x: x),
}


@each(FALSE)
def test_paths_that_differ_are_not_held_to_agree(name: str) -> None:
    assert paths(*FALSE[name]) in ("broken", "undecided", "not asked")


TRUE: dict[str, tuple[One, One]] = {
    "a square": (lambda x: x.pow(2), lambda x: x * x),
    "exponentials of sums": (lambda x: (x + 1).exp() * (x - 1).exp(), lambda x: (2 * x).exp()),
    "fractions": (lambda x: x / 3 + x / 6, lambda x: x / 2),
    "tenths": (lambda x: 0.1 * x + 0.2 * x, lambda x: 0.3 * x),
    "complex products": (
        lambda x: torch.view_as_real(as_complex(x) * as_complex(x)).flatten(-2),
        lambda x: torch.stack(
            (x[..., ::2] ** 2 - x[..., 1::2] ** 2, 2 * x[..., ::2] * x[..., 1::2]), -1
        ).flatten(-2),
    ),
    "the real part": (lambda x: (as_complex(x) * 1j).real, lambda x: -as_complex(x).imag),
    "what is not NaN": (lambda x: torch.where(x.isnan(), 0.0, x), lambda x: x),
    "a mean": (lambda x: x.mean(1), lambda x: x.sum(1) / x.shape[1]),
    "a variance": (lambda x: x.var(-1), lambda x: (x - x.mean(-1, True)).square().sum(-1) / 3),
    "a softmax of shifted scores": (lambda x: x.softmax(-1), lambda x: (x + 7).softmax(-1)),
    "a softmax of what is seen": (
        lambda x: x.masked_fill(torch.arange(4) > 1, -math.inf).softmax(-1)[..., :2],
        lambda x: x[..., :2].softmax(-1),
    ),
    "large whole numbers": (lambda x: x * 2**30, lambda x: x * 2**15 * 2**15),
    "accumulated": (
        lambda x: (
            x
            * torch.arange(4.0).index_put(
                (torch.tensor([1, 1]),), torch.tensor([2.0, 3.0]), accumulate=True
            )
        ),
        lambda x: x * torch.tensor([0.0, 6.0, 2.0, 3.0]),
    ),
    "accumulated by part": (
        lambda x: _gathered(x / (1 + x)),
        lambda x: torch.stack([(x / (1 + x)).sum(-1)] * 4, -1),
    ),
    "between two": (lambda x: torch.lerp(x, x * x, 0.25), lambda x: 0.75 * x + x * x / 4),
    "normed by groups": (
        lambda x: functional.group_norm(x, 1, eps=0.5),
        lambda x: functional.layer_norm(x, x.shape[1:], eps=0.5),
    ),
    "a product and a sum": (
        lambda x: (
            torch.addbmm(x[0], x, x.mT, beta=2.0, alpha=3.0) if x.shape[1] == x.shape[2] else x
        ),
        lambda x: 2 * x[0] + 3 * (x @ x.mT).sum(0) if x.shape[1] == x.shape[2] else x,
    ),
    "a product behind a gate": (
        lambda x: functional.glu(torch.cat((x, x), -1)),
        lambda x: x * torch.sigmoid(x),
    ),
    "set behind whole axes": (
        lambda x: _set(x, 7.0),
        lambda x: torch.where(torch.arange(4) % 2 > 0, 7.0, x),
    ),
}


@pytest.mark.parametrize("name", TRUE)
def test_their_neighbours_agree(name: str) -> None:
    assert paths(*TRUE[name]) == "holds"


ANGLES_FALSE: dict[str, tuple[One, One]] = {
    "cosine and sine": (torch.cos, torch.sin),
    "the sine of the opposite": (lambda p: torch.sin(-p), torch.sin),
    "half an angle": (lambda p: torch.cos(p * 0.5), lambda p: torch.cos(p) * 0.5),
    "a frequency that nearly agrees": (
        lambda p: torch.cos(p * 0.5),
        lambda p: torch.cos(p * 0.501),
    ),
    "a full turn, nearly": (lambda p: torch.cos(p * 6.28), lambda p: p * 0 + 1),
    "hyperbolic": (lambda p: torch.cosh(p * 0.1), lambda p: torch.cos(p * 0.1)),
    "a square of a position": (lambda p: torch.cos(p * p), torch.cos),
}
ANGLES_TRUE: dict[str, tuple[One, One]] = {
    "twice an angle": (lambda p: torch.cos(2 * p), lambda p: 2 * torch.cos(p) ** 2 - 1),
    "squares": (lambda p: torch.cos(p * 0.3) ** 2 + torch.sin(p * 0.3) ** 2, lambda p: p * 0 + 1),
    "the opposite": (lambda p: torch.sin(-p), lambda p: -torch.sin(p)),
    "a full turn": (lambda p: torch.cos(p * (2 * math.pi)), lambda p: p * 0 + 1),
    "a sum": (
        lambda p: torch.cos(p * 0.3 + p * 0.5),
        lambda p: torch.cos(p * 0.3) * torch.cos(p * 0.5) - torch.sin(p * 0.3) * torch.sin(p * 0.5),
    ),
}


@pytest.mark.parametrize("name", ANGLES_FALSE)
def test_angles_that_differ_are_not_held_to_agree(name: str) -> None:
    assert rotating(*ANGLES_FALSE[name]) in ("broken", "undecided", "not asked")


@pytest.mark.parametrize("name", ANGLES_TRUE)
def test_angles_that_agree_do(name: str) -> None:
    assert rotating(*ANGLES_TRUE[name]) == "holds"


def test_sides_without_a_number_say_nothing() -> None:
    assert paths(lambda x: x[:, :0], lambda x: -x[:, :0]) == "not asked"
    assert paths(lambda x: x + math.inf, lambda x: x * 2 + math.inf) in ("not asked", "undecided")
    assert paths(lambda x: (x + math.inf) - math.inf, lambda x: x) in ("not asked", "undecided")
    assert paths(lambda x: x / (x - x), lambda x: x * 2) in ("not asked", "undecided")


@pytest.mark.parametrize("fill", [-math.inf, -1e9, -1e4])
def test_rows_that_see_nothing_are_not_said_to_agree(fill: float) -> None:
    def attend(q: Tensor, k: Tensor, v: Tensor, _: Any = None) -> Tensor:
        late = torch.ones(q.shape[2], k.shape[2]).triu(0).bool()  # the first sees nothing
        weights = (q @ k.mT).masked_fill(late, fill).softmax(-1)
        return weights.nan_to_num(1 / k.shape[2]) @ v

    said = DeclaredAttention(causal=True)
    code = Attention(name="a", attend=attend, heads=2, groups=2, width=4, declared=said)
    found = of(code, "causal")["causal"]
    assert found.verdict != "holds", found.why


def test_a_write_into_a_constant_is_in_no_other_of_its_values() -> None:
    session, numbers = Session(), torch.tensor([0.3, 2.0])
    first, other = session.constant(numbers), session.constant(numbers.clone())
    known = first.top.clone()
    first.top.zero_()
    assert torch.equal(other.top, known)
    assert torch.equal(session.constant(numbers.clone()).top, known)
    assert not torch.equal(session.constant(-numbers).top, known)
