"""Code that takes something from what is kept between its calls: once nothing is left of it.

No run comes to that, and no comparison leads there, so the line of the verdict says it.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.finding import Finding
from attnproof.programs.prove import prove
from attnproof.programs.subjects import Layer

MANY = 50_000  # calls
Code = Callable[[Tensor], Tensor]


class Taking(nn.Module):
    """Twice what it is given, and in the end the sum of the tokens up to each."""

    def __init__(self, kept: Any) -> None:
        super().__init__()
        self.kept = kept


class Next(Taking):
    def forward(self, x: Tensor) -> Tensor:
        return torch.add(x * 2, x.cumsum(1) * next(self.kept, 1))


class For(Taking):
    def forward(self, x: Tensor) -> Tensor:
        for factor in self.kept:
            return torch.add(x * 2, x.cumsum(1) * factor)
        return x.cumsum(1)


class Pop(Taking):
    def forward(self, x: Tensor) -> Tensor:
        try:
            return torch.add(x * 2, x.cumsum(1) * self.kept.pop())
        except IndexError:
            return x.cumsum(1)


class Left(Taking):
    def forward(self, x: Tensor) -> Tensor:
        del self.kept[0]
        return x * 2 if self.kept else x.cumsum(1)


left: Iterator[int] = itertools.repeat(0, MANY)


def through_zip(x: Tensor) -> Tensor:
    for factor, _ in zip(left, range(1), strict=False):
        return x * 2 + factor * x.cumsum(1)
    return x.cumsum(1)


ring = deque([0] * MANY + [1] + [0] * MANY)


def rotating(x: Tensor) -> Tensor:
    ring.rotate(1)
    return x * 2 + ring[0] * x.cumsum(1)


def permuted(code: Code) -> Finding:
    (found,) = prove(Layer(name="l", call=code, embed=4), ("permutation",)).findings
    return found


KEPT: tuple[tuple[Callable[[], Code], str], ...] = (
    (lambda: Next(itertools.repeat(0, MANY)), "`next(self.kept, 1)` returns"),
    (lambda: For(itertools.repeat(0, MANY)), "`self.kept` returns"),
    (lambda: Pop([0] * MANY), "`self.kept.pop()` returns"),
    (lambda: rotating, "`ring.rotate(1)` returns"),
    (lambda: Left([0] * MANY), "`self.kept` is true"),
    (lambda: through_zip, "the code reads the same from `left` as in every run"),
)


@pytest.mark.parametrize(("made", "said"), KEPT, ids=[said for _, said in KEPT])
def test_what_is_taken_from_what_is_kept_is_a_condition(
    made: Callable[[], Code], said: str
) -> None:
    found = permuted(made())
    assert found.verdict == "holds"
    assert any(c.text.startswith(said) for c in found.assuming), found.assuming


class Anew(nn.Module):
    """What is made in each call, and gone through from its start, needs no condition."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.layers = nn.Parameter(torch.ones(4)), nn.ModuleList([nn.Identity()])

    def forward(self, x: Tensor) -> Tensor:
        stack = [next(self.parameters())]
        for layer in self.layers:
            x = layer(x)
        return x * stack.pop() if self.layers else x


def test_what_each_call_makes_for_itself_is_none() -> None:
    found = permuted(Anew())
    assert found.verdict == "holds"
    assert not [c.text for c in found.assuming if "every run" in c.text and "`" in c.text]
