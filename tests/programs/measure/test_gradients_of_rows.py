"""No gradient flows from one row of a batch to another, even if values are those of rows alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from attnproof.programs.execution.draw import Draw
from attnproof.programs.finding import Finding
from attnproof.programs.measure.examine import examine
from attnproof.programs.subjects import Additive, Attention, Layer, Rotary, Subject


class Doubled(torch.autograd.Function):
    """Twice the input, with a gradient that is mixed among the rows."""

    @staticmethod
    def forward(_: Any, x: Tensor) -> Tensor:
        return 2 * x

    @staticmethod
    def backward(_: Any, *grads: Tensor) -> Tensor:
        return 2 * grads[0] + grads[0].mean(0, keepdim=True)


def pulled(y: Tensor) -> Tensor:
    """Zeros, with the gradient of something."""
    return y - y.detach()


def weighed(x: Tensor) -> Tensor:
    """Tokens as the means of others; what is subtracted from all scores has no effect."""
    scores = x @ x.mT
    return (scores - scores.amax()).softmax(-1) @ x


def hooked(x: Tensor) -> Tensor:
    if x.requires_grad:
        x.register_hook(lambda grad: grad + grad.roll(1, 0))  # type: ignore[no-untyped-call]
    return 2 * x


def attend(q: Tensor, k: Tensor, v: Tensor, _: Tensor | None = None) -> Tensor:
    return (q @ k.mT).softmax(-1) @ v


def rotate(x: Tensor, p: Tensor) -> Tensor:
    angle = p[:, None, :, None].to(x.dtype)
    u, v = x.chunk(2, -1)
    return torch.cat((u * angle.cos() - v * angle.sin(), u * angle.sin() + v * angle.cos()), -1)


def layer(call: Callable[[Tensor], Tensor]) -> Layer:
    return Layer(name="code", call=call, embed=4)


def added(call: Callable[[Tensor], Tensor]) -> Additive:
    return Additive(name="code", added=call, width=4)


def rotary(call: Callable[[Tensor, Tensor], Tensor], **fields: Any) -> Rotary:
    return Rotary(name="code", rotate=call, width=4, **fields)


def attention(call: Callable[..., Tensor]) -> Attention:
    return Attention(name="code", attend=call, heads=2, groups=2, width=4)


RIGHT: dict[str, Callable[[], Subject]] = {
    "a number subtracted from all scores": lambda: layer(weighed),
    "a gradient of the row itself": lambda: layer(lambda x: x + pulled(x.flip(1))),
    "a gradient that is not finite": lambda: layer(lambda x: x + 0 * (x - x).sqrt()),
    "no gradient at all": lambda: layer(lambda x: x.sign().detach()),
    "attention": lambda: attention(attend),
    "rotary": lambda: rotary(rotate),
    "rotary with positions of all rows": lambda: rotary(rotate, shared=True),
    "a table": lambda: added(lambda x: x + torch.arange(x.shape[1])[:, None]),
}
WRONG: dict[str, Callable[[], Subject]] = {
    "of the next row": lambda: layer(lambda x: 2 * x + pulled(x.roll(1, 0))),
    "of the row before, if there is one": lambda: layer(
        lambda x: x + pulled(torch.cat((0 * x[:1], x[:-1])))
    ),
    "of the mean of many rows": lambda: layer(
        lambda x: x + pulled(x.mean(0, keepdim=True)) if x.shape[0] > 6 else x
    ),
    "by a hook": lambda: layer(hooked),
    "by its own backward": lambda: layer(Doubled.apply),
    "of values": lambda: attention(lambda q, k, v, m: attend(q, k, v, m) + pulled(v.mean())),
    "of rotated vectors": lambda: rotary(lambda x, p: rotate(x, p) + pulled(x.flip(0))),
    "under positions of all rows": lambda: rotary(
        lambda x, p: rotate(x, p) + pulled(x.flip(0)), shared=True
    ),
    "of a table": lambda: added(lambda x: x + pulled(x.sum(0, keepdim=True))),
}


def found(code: Subject, dtype: torch.dtype) -> Finding:
    (one,) = examine(code, [Draw(dtype=dtype)], ("rows-of-batch-apart",))
    return one


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", RIGHT)
def test_rows_whose_gradients_are_their_own_are_apart(name: str, dtype: torch.dtype) -> None:
    assert found(RIGHT[name](), dtype).verdict == "holds"


@pytest.mark.parametrize("name", WRONG)
def test_a_gradient_that_reaches_another_row_is_found(name: str) -> None:
    one = found(WRONG[name](), torch.float32)
    assert one.verdict == "broken"
    assert "gradient of the" in one.why
