"""Layers whose law is false where the fields do not look: `exact` never says it holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.declarations import DeclaredAttention
from attnproof.programs.subjects import Attention, Layer, Subject
from tests.cases import each

from .exact_asked import of, rotary, rotated, verdict

CAUSAL = DeclaredAttention(causal=True)


def layer(call: Callable[[Tensor], Tensor], **more: Any) -> Layer:
    return Layer(name="l", call=call, embed=4, **more)


def of_module(module: nn.Module) -> Layer:
    return layer(module, module=module)


class Data(nn.Module):
    """A scale that is written through ``.data``, which leaves no trace."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor([0.7, 0.3, 0.2, 0.9]))

    def forward(self, x: Tensor) -> Tensor:
        self.scale.data.mul_(1.5)
        return x * self.scale


class Counts(nn.Module):
    """Another result from the third call on; ``where``: how it is counted."""

    calls: Tensor

    def __init__(self, where: str, last: int = 2) -> None:
        super().__init__()
        self.where, self.last, self.count = where, last, 0
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x: Tensor) -> Tensor:
        if self.where == "buffer":
            self.calls += 1
        self.count += 1
        many = int(self.calls) if self.where == "buffer" else self.count
        return x.roll(1, 1) if many > self.last else x


class Keeps(nn.Module):
    """What the first call of a shape computed is given to all later ones."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[Any, Tensor] = {}

    def forward(self, x: Tensor, p: Tensor) -> Tensor:
        key = tuple(p.shape)
        if key not in self.kept:
            self.kept[key] = p
        return rotated(x, self.kept[key])


def unwritten(x: Tensor) -> Tensor:
    made = torch.empty_like(x)
    made[..., :2] = x[..., :2]
    return made


def unwritten_new(x: Tensor) -> Tensor:
    made = x.new_empty(x.shape)
    made[..., :2] = x[..., :2]
    return made


def unwritten_plain(x: Tensor) -> Tensor:
    return x + torch.empty(x.shape)


def fallen_back(x: Tensor) -> Tensor:
    try:
        return x.sort(1).values + x.cumsum(1)
    except Exception:  # noqa: BLE001
        return x


def refuses_itself(x: Tensor) -> Tensor:
    try:
        return x * float(x[0, 0, 0])
    except Exception:  # noqa: BLE001
        return x


def lists_itself(x: Tensor) -> Tensor:
    try:
        return x * len(x.tolist()) + x.cumsum(1)
    except Exception:  # noqa: BLE001
        return x


class OneMemory(nn.Module):
    """All results stand in one place, so that the last call is what all gave."""

    made: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        if self.made is None:
            self.made = torch.zeros_like(x)
        return self.made.copy_(x.cumsum(1)).expand(2, 4, 4)


PERMUTED: dict[str, Callable[[], Subject]] = {
    "swallowed by a number taken for −inf": lambda: layer(lambda x: x.cumsum(1) - 20000),
    "multiplied by a number taken for −inf": lambda: layer(
        lambda x: torch.cat((x, x.cumsum(1) * -20000), -1)
    ),
    "hidden, and back again": lambda: layer(lambda x: (x.cumsum(1) - 20000) + 20000),
    "relu of what is taken for −inf": lambda: layer(lambda x: (x.cumsum(1) - 20000).sigmoid() + x),
    "cut by a maximum": lambda: layer(lambda x: x + (x.cumsum(1) - 20000).amax(-1, keepdim=True)),
    "cut by a minimum": lambda: layer(lambda x: x + (x.cumsum(1) - 20000).amin(-1, keepdim=True)),
    "NaN in the field alone": lambda: layer(
        lambda x: x + (x.cumsum(1) - 20000).softmax(-1).nan_to_num()
    ),
    "a row that is hidden by a finite number": lambda: layer(
        lambda x: (
            x
            + (x @ x.mT)
            .masked_fill(torch.ones(4, 4).bool(), -1e9)
            .cumsum(1)
            .softmax(-1)
            .nan_to_num()
            @ x
        )
    ),
    "isnan of a row that is hidden": lambda: layer(
        lambda x: torch.where((x - 2e4).softmax(-1).isnan(), x, x.cumsum(1))
    ),
    "memory that was not written": lambda: layer(unwritten),
    "new memory that was not written": lambda: layer(unwritten_new),
    "plain memory that was not written": lambda: layer(unwritten_plain),
    "a refusal that is swallowed": lambda: layer(fallen_back),
    "a number read that is swallowed": lambda: layer(refuses_itself),
    "a list that is swallowed": lambda: layer(lists_itself),
    "one memory for all results": lambda: of_module(OneMemory()),
    "calls counted in a buffer": lambda: of_module(Counts("buffer")),
    "calls counted in Python": lambda: of_module(Counts("python")),
    "calls counted beside any module": lambda: layer(Counts("python")),
    "a write through .data": lambda: of_module(Data()),
    "bits read as another number": lambda: layer(
        lambda x: x.view(torch.int32).float() + x.cumsum(1)
    ),
    "a little of all before": lambda: layer(lambda x: x + 1e-9 * x.cumsum(1)),
    "a place by place factor": lambda: layer(
        lambda x: x * (1 + torch.arange(x.shape[1])[:, None] // 2)
    ),
    "narrow sums": lambda: layer(
        lambda x: x * (100 + torch.arange(4)).to(torch.int8).cumsum(0, dtype=torch.int8)[:, None]
    ),
    "a half in whole numbers": lambda: layer(
        lambda x: x * torch.arange(4).masked_fill(torch.arange(4) > 2, 1)[:, None]
    ),
    "cut to whole numbers": lambda: layer(lambda x: x + x.cumsum(1).long()),
    "summed as whole numbers": lambda: layer(lambda x: x + x.sum(-1, True, dtype=torch.int64)),
    "the largest": lambda: layer(lambda x: x + torch.maximum(x, x.roll(1, 1))),
    "the largest place": lambda: layer(lambda x: x + x.argmax(1, True)),
    "a random number": lambda: layer(lambda x: x + torch.rand(4)),
    "random numbers like it": lambda: layer(lambda x: x + torch.rand_like(x)),
    "a power of a number": lambda: layer(lambda x: x + torch.pow(2.0, x.cumsum(1))),
    "a part in memory": lambda: layer(
        lambda x: x.transpose(1, 2).as_strided((2, 4, 4), (16, 4, 1)).cumsum(1)
    ),
    "strides in memory": lambda: layer(
        lambda x: x[:, 1:].as_strided((2, 3, 4), (12, 4, 1)).roll(1, 1).sum(1, True) + x
    ),
}


@each(PERMUTED)
def test_a_layer_that_is_no_function_of_a_set_is_not_held(name: str) -> None:
    found = of(PERMUTED[name](), "permutation")["permutation"]
    assert found.verdict in ("undecided", "not asked", "broken"), found.why


def filled_up(x: Tensor) -> Tensor:
    made = torch.empty_like(x)
    made[..., :2] = x[..., :2]
    made[..., 2:] = x[..., 2:].sum(1, True)
    return made


RIGHT: dict[str, Callable[[], Subject]] = {
    "memory that was written": lambda: layer(filled_up),
    "a row with something hidden": lambda: layer(
        lambda x: (x @ x.mT).masked_fill(torch.eye(4).bool(), -1e9).softmax(-1) @ x
    ),
    "a largest number taken away": lambda: layer(
        lambda x: (x - x.amax(1, True)).exp() / (x - x.amax(1, True)).exp().sum(1, True)
    ),
    "a root": lambda: layer(lambda x: x * (x.pow(2).mean(-1, True) + 1e-6).rsqrt()),
    "a factor in float32": lambda: layer(lambda x: 0.1 * x + x.mean(1, True) / 3),
    "calls counted for nothing": lambda: of_module(Counts("buffer", 1000)),
    "numbers that are told apart by nothing": lambda: layer(
        lambda x: x + torch.arange(4).to(torch.int8)
    ),
    "complex numbers": lambda: layer(
        lambda x: torch.view_as_real(
            torch.view_as_complex(x.reshape(*x.shape[:-1], 2, 2)) * (1 + 2j)
        ).flatten(-2)
    ),
    "nothing": lambda: layer(lambda x: x[:, :0].sum(1, True) + x),
}


@pytest.mark.parametrize("name", RIGHT)
def test_its_neighbours_hold(name: str) -> None:
    found = of(RIGHT[name](), "permutation")["permutation"]
    assert found.verdict == "holds", found.why


def test_what_is_kept_of_an_earlier_call_is_seen() -> None:
    module = Keeps()
    assert verdict(rotary(module, module=module), "relative") in ("undecided", "broken")


def test_state_is_put_back() -> None:
    module = Counts("buffer", 1000)
    assert verdict(layer(module, module=module), "permutation") == "holds"
    assert int(module.calls) == 0


def test_a_verdict_is_said_of_what_ran() -> None:
    why = of(rotary(rotated), "norm")["norm"].why
    assert "of arrays (2, 2, 3, 4) at positions 0 to " in why
    module = nn.Linear(4, 4)
    why = of(layer(module, module=module), "permutation")["permutation"].why
    assert "with its weights in evaluation mode" in why
    assert "nothing that was drawn" not in why


@pytest.mark.parametrize("seen", [True, False])
def test_a_causal_layer_whose_rows_are_all_hidden(seen: bool) -> None:
    def call(x: Tensor) -> Tensor:
        late = torch.ones(x.shape[1], x.shape[1]).triu(1 if seen else 0).bool()
        return (x @ x.mT).masked_fill(late, -1e9).softmax(-1).nan_to_num() @ x

    found = verdict(Attention(name="a", layer=call, embed=4, declared=CAUSAL), "causal")
    assert (found == "holds") is seen


def test_fields_say_of_values_alone_that_code_is_causal() -> None:
    """A later token has a gradient from each output, and is not seen by value."""

    def leaks(x: Tensor) -> Tensor:
        return 2 * x.detach() + (x - x.detach()).sum(1, keepdim=True)

    found = of(layer(leaks), "causal", "permutation")
    assert found["causal"].verdict == "holds"
    assert found["causal"].why.endswith("left open in finite fields: gradients")
    assert "left open" not in found["permutation"].why


def test_what_no_formula_in_the_fields_says_of_a_law_is_left_open() -> None:
    """Exponentials without a maximum subtracted overflow, of which the law speaks too."""

    def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        del mask
        weights = torch.exp(q @ k.mT)
        return weights @ v / weights.sum(-1, keepdim=True)

    code = Attention(name="a", attend=attend, heads=2, groups=2, width=4)
    found = of(code, "shift-of-scores", "order-of-keys")
    assert found["shift-of-scores"].verdict == "holds", found["shift-of-scores"].why
    assert found["shift-of-scores"].why.endswith(
        "left open in finite fields: large scores give no NaN"
    )
    assert "left open" not in found["order-of-keys"].why
