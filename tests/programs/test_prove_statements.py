"""What a traced law states is what its words say: code that breaks the words proves nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from attnproof.programs.prove import prove
from attnproof.programs.subjects import Additive, Attention, Rotary, Subject

from .test_prove_attacks import SECONDS, layer, only, rotary, rotated

STRETCH = torch.tensor([1.0, 2.0, 3.0, 4.0])


def attention(attend: Callable[..., Tensor], **more: Any) -> Attention:
    return Attention(name="a", attend=attend, heads=2, groups=2, width=4, **more)


def softmax(q: Tensor, k: Tensor, v: Tensor, _: Any = None) -> Tensor:
    return torch.softmax(q @ k.mT, -1) @ v


def twice(q: Tensor, k: Tensor, v: Tensor, _: Any = None) -> Tensor:
    return 2 * softmax(q, k, v)


def total(q: Tensor, k: Tensor, v: Tensor, _: Any = None) -> Tensor:
    return 0 * (q @ k.mT) @ v + v.sum(2, keepdim=True)


def later_keys_weigh_more(q: Tensor, k: Tensor, v: Tensor, _: Any = None) -> Tensor:
    return torch.softmax(q @ k.mT + torch.arange(k.shape[2]), -1) @ v


def mixed(q: Tensor, k: Tensor, v: Tensor, _: Any = None) -> Tensor:
    return softmax(q, k, v.cumsum(0))


def if_as_many(q: Tensor, k: Tensor, v: Tensor, _: Any = None) -> Tensor:
    return softmax(q, k, v if q.shape[2] == k.shape[2] else v.cumsum(2))


def not_read(x: Tensor) -> Tensor:
    return x * torch.rand(()) if x.shape[0] > 1 else x


def running(x: Tensor) -> Tensor:
    return rotated(x, torch.arange(x.shape[2])[None])


FALSE: dict[str, tuple[Callable[[], Subject], str]] = {
    "weights that add up to 2": (lambda: attention(twice), "rows-sum-to-one"),
    "weights of 1": (lambda: attention(total), "rows-sum-to-one"),
    "each channel as much longer as it likes": (
        lambda: rotary(lambda x, p: rotated(x * STRETCH, p)),
        "norm",
    ),
    "the same without positions": (
        lambda: Rotary(name="r", rotate=rotated, running=lambda x: running(x * STRETCH), width=4),
        "norm",
    ),
    "keys that become longer": (
        lambda: rotary(rotated, key=lambda x, p: rotated(x, p) * (1 + p[:, None, :, None])),
        "norm",
    ),
    "keys that are moved": (lambda: rotary(rotated, key=lambda x, p: rotated(x, p) + 1), "linear"),
    "rows of a batch added to the next": (
        lambda: layer(lambda x: x.cumsum(0)),
        "rows-of-batch-apart",
    ),
    "the same of rotary code": (
        lambda: rotary(lambda x, p: rotated(x.cumsum(0), p)),
        "rows-of-batch-apart",
    ),
    "the same of attention": (lambda: attention(mixed), "rows-of-batch-apart"),
    "the same of what is added": (
        lambda: Additive(name="d", added=lambda x: x.cumsum(0), width=4),
        "rows-of-batch-apart",
    ),
    "the same without positions in rows": (
        lambda: Rotary(name="r", rotate=rotated, running=lambda x: running(x.cumsum(0)), width=4),
        "rows-of-batch-apart",
    ),
    "key places in the scores": (lambda: attention(later_keys_weigh_more), "permutation"),
    "positions counted from the first token": (
        lambda: rotary(lambda x, p: rotated(x, p - p[:, :1])),
        "relative",
    ),
    "the ids of the first row for all": (
        lambda: rotary(lambda x, p: rotated(x, p[:1].expand_as(p))),
        "follows-its-ids",
    ),
    "the mean of the ids of all rows": (
        lambda: rotary(lambda x, p: rotated(x, 0 * p + p.float().mean(0))),
        "follows-its-ids",
    ),
    "a layer that is not read, beside attention that is": (
        lambda: attention(softmax, layer=not_read, embed=4),
        "rows-of-batch-apart",
    ),
}


@pytest.mark.parametrize("name", FALSE)
def test_what_breaks_the_words_of_a_law_is_not_proved(name: str) -> None:
    make, law = FALSE[name]
    found = prove(make(), (law,), seconds=SECONDS)
    assert found.findings, "the attack was not asked"
    assert [f for f in found.findings if f.verdict == "holds"] == []


TRUE: dict[str, tuple[Callable[[], Subject], tuple[str, ...]]] = {
    "attention": (
        lambda: attention(softmax),
        ("rows-sum-to-one", "permutation", "order-of-keys", "rows-of-batch-apart"),
    ),
    "longer by one number": (
        lambda: rotary(lambda x, p: 1.5 * rotated(x, p)),
        ("norm", "relative", "follows-its-ids", "rows-of-batch-apart"),
    ),
    "keys longer by another number": (
        lambda: rotary(rotated, key=lambda x, p: 2 * rotated(x, p)),
        ("norm", "relative"),
    ),
    "without positions": (
        lambda: Rotary(name="r", rotate=rotated, running=running, width=4),
        ("norm", "relative", "rows-of-batch-apart"),
    ),
}


@pytest.mark.parametrize("name", TRUE)
def test_what_obeys_the_words_is_proved(name: str) -> None:
    make, laws = TRUE[name]
    found = prove(make(), laws, seconds=SECONDS)
    for law in laws:
        only(found, law)


def test_as_many_queries_as_keys_is_told_where_a_proof_needs_it() -> None:
    told = "as many queries as keys"
    assert told not in only(prove(attention(softmax), ("order-of-keys",)), "order-of-keys")
    assert told in only(prove(attention(if_as_many), ("order-of-keys",)), "order-of-keys")


def test_channels_that_pass_beside_longer_ones_are_not_called_broken() -> None:
    def partly(x: Tensor, p: Tensor) -> Tensor:
        return torch.cat((1.5 * rotated(x[..., :2], p), x[..., 2:]), -1)

    (found,) = prove(rotary(partly), ("norm",), seconds=SECONDS).findings
    assert found.verdict in ("undecided", "broken")  # lengths of unlike vectors change unlike
