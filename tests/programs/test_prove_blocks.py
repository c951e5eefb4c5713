"""Code of which a part runs that was not traced, or that is answered alike in each run."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.finding import Finding
from attnproof.programs.prove import prove
from attnproof.programs.subjects import Attention
from tests.programs.test_prove_branches import of_layer, told

SECONDS = 3.0
FAR = 70_000  # tokens that are never run
is_kind = isinstance


def late(x: Tensor) -> Tensor:
    """The same for fewer tokens, and nothing in it is compared."""
    return 2 * x.roll(max(0, x.shape[1] - FAR), 1)


def with_gradients(x: Tensor) -> Tensor:
    return late(x) if x.requires_grad else 2 * x


def loop(x: Tensor) -> Tensor:
    if not x.is_contiguous():
        for _ in range(FAR, x.shape[1]):
            x = x.cumsum(1)
    return 2 * x


def slice_of(x: Tensor) -> Tensor:
    more = torch.is_grad_enabled() and x[:, FAR:].sum(1, keepdim=True)
    return 2 * x + more


def other_name(x: Tensor) -> Tensor:
    return late(x) if is_kind(x.shape[1], int) else 2 * x


def text_of(x: Tensor) -> Tensor:
    return late(x) if repr(x.shape)[12:].find("s") < 0 else 2 * x


def kind_by_map(x: Tensor) -> Tensor:
    (kind,) = map(type, x[:, 0, 0].shape)
    found: dict[bool, Callable[[Tensor], Tensor]] = {True: late, False: lambda y: 2 * y}
    return found[kind is int](x)


class Quiet:
    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> bool:
        return True


def after_an_error(x: Tensor) -> Tensor:
    more = 0
    with Quiet():
        n = int.__add__(x.shape[1], 0)  # no int while it is traced
        more = max(0, n - FAR)
    return 2 * x.roll(more, 1)


class Marked(Tensor):
    pass


KNOWN: set[int] = set()
UNTRACED = "ran untraced"
CONDITIONS: dict[str, tuple[Callable[[Tensor], Tensor], str]] = {
    "gradients": (with_gradients, UNTRACED),
    "a loop": (loop, UNTRACED),
    "a slice": (slice_of, UNTRACED),
    "another name": (other_name, UNTRACED),
    "a text": (text_of, UNTRACED),
    "a kind": (kind_by_map, UNTRACED),
    "an error": (after_an_error, UNTRACED),
    "a method": (lambda x: x.cumsum(1) if x.is_neg() else x, "`x.is_neg()` is false"),
    "an attribute": (lambda x: x.cumsum(1) if x._backward_hooks else x, "`x._backward_hooks` is"),
    "a setting": (
        lambda x: x.cumsum(1) if torch.distributed.is_initialized() else x,
        "`torch.distributed.is_initialized()` is false",
    ),
    "a subclass": (lambda x: x.cumsum(1) if isinstance(x, Marked) else x, "`isinstance(x, Marked)"),
    "names of it": (lambda x: x.cumsum(1) if "flag" in dir(x) else x, "`dir(x)` returns"),
    "nothing": (lambda x: x.cumsum(1) if id(x) in KNOWN else x, "`id(x) in KNOWN` finds nothing"),
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_what_no_graph_is_of_is_a_condition(name: str) -> None:
    code, condition = CONDITIONS[name]
    finding = of_layer(code)
    assert finding.verdict == "holds", finding.why
    assert condition in told(finding)


def of_attention(same: Callable[[Tensor, Tensor, Tensor], bool]) -> Finding:
    def attend(q: Tensor, k: Tensor, v: Tensor, _: object = None) -> Tensor:
        k = k.cumsum(2) if same(q, k, v) else k
        return torch.softmax(q @ k.mT, -1) @ v

    subject = Attention(name="a", attend=attend, heads=2, groups=2, width=4)
    (found,) = prove(subject, ("order-of-keys",), seconds=SECONDS).findings
    return found


def test_parts_of_one_array_are_a_condition() -> None:
    finding = of_attention(lambda q, k, _: q._base is not None and q._base is k._base)
    assert finding.verdict == "holds", finding.why
    assert "`q._base is k._base` is false" in told(finding)


def test_keys_may_be_values_while_queries_are_others() -> None:
    finding = of_attention(lambda q, k, v: k is v and q is not k and q.shape == k.shape)
    assert finding.verdict == "undecided"
    assert "one array for all inputs of its shape but the first" in finding.why


class Correct(nn.Module):
    """What it asks turns out in both ways, or a graph is of it; what runs besides only copies."""

    def forward(self, x: Tensor) -> Tensor:
        y = x.detach() if x.requires_grad else x
        if not y.is_contiguous():
            y = y.contiguous()
        if x.dtype is torch.float16 or not x.is_floating_point() or not torch.is_tensor(x):
            raise ValueError
        return 2 * y if not self.training and x.dim() == 3 else y


def test_copies_are_no_condition() -> None:
    finding = of_layer(Correct().eval())
    assert finding.verdict == "holds", finding.why
    assert "every run" not in told(finding)
