"""Code with maxima, medians and sorted rows: what their symmetry shows is proved, and no more."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from attnproof.programs.prove import prove
from attnproof.programs.prove.operations import Notes, noted, order
from attnproof.programs.subjects import Attention, Layer
from attnproof.symbolic import real, sizes

Weighs = Callable[[Tensor], Tensor]


def attention(weights: Weighs) -> Attention:
    def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        assert mask is None
        return weights(q @ k.mT / 2) @ v

    return Attention(name="attention", attend=attend, heads=2, groups=2, width=4)


def steady(s: Tensor) -> Tensor:
    e = (s - s.amax(-1, keepdim=True)).exp()
    return e / (e.sum(-1, keepdim=True) + 1e-6)


def kept(count: int, smallest: int) -> Weighs:
    def weights(s: Tensor) -> Tensor:
        least = s.topk(count, -1, largest=not smallest).values[..., -1:]
        return s.masked_fill(s < least, -torch.inf).softmax(-1)

    return weights


def sparsemax(s: Tensor) -> Tensor:
    ordered = s.sort(-1, descending=True).values
    count = torch.arange(1, s.shape[-1] + 1, dtype=s.dtype)
    support = 1 + count * ordered > ordered.cumsum(-1)
    excess = (ordered * support).sum(-1, keepdim=True) - 1
    return (s - excess / support.sum(-1, keepdim=True).to(s.dtype)).clamp(min=0)


SYMMETRIC: dict[str, Weighs] = {
    "largest": steady,
    "smallest": lambda s: s - s.amin(-1, keepdim=True),
    "largest and smallest": lambda s: s / (1 + (s.amax(-1) - s.amin(-1))[..., None] ** 2),
    "the largest of several": lambda s: s / (1 + s.abs().amax((-2, -1), keepdim=True)),
    "both": lambda s: s * torch.aminmax(s, dim=-1, keepdim=True)[0],
    "median": lambda s: s - s.median(-1, keepdim=True).values,
    "second": lambda s: s * s.kthvalue(2, -1, keepdim=True).values,
    "mode": lambda s: s * s.mode(-1, keepdim=True).values,
    "top": kept(1, 0),
    "top two": kept(2, 0),
    "lowest two": kept(2, 1),
    "sorted": sparsemax,
}
ASKED = ("order-of-keys", "permutation", "rows-of-batch-apart")


@pytest.mark.parametrize("name", SYMMETRIC)
def test_what_disregards_the_order_of_keys_is_proved_to(name: str) -> None:
    found = prove(attention(SYMMETRIC[name]), ASKED)
    verdicts = {one.law: one.verdict for one in found.findings}
    assert verdicts == dict.fromkeys(ASKED, "holds"), (found.why, found.unread, found.findings)


IN_ORDER: dict[str, Weighs] = {
    "sorted scores at keys": lambda s: s + s.sort(-1).values,
    "the largest so far": lambda s: s.cummax(-1).values,
    "the smallest so far": lambda s: s.cummin(-1).values,
    "the k largest, in any order": lambda s: s * s.topk(2, -1, sorted=False).values[..., :1],
    "weighted by place": lambda s: s * (s * torch.arange(s.shape[-1])).amax(-1, keepdim=True),
}


@pytest.mark.parametrize("name", IN_ORDER)
def test_what_depends_on_the_order_of_keys_is_not_proved(name: str) -> None:
    found = prove(attention(IN_ORDER[name]), ASKED)
    proved = {one.law for one in found.findings if one.verdict == "holds"}
    assert proved == {"rows-of-batch-apart"}


X = real(*sizes("r n")).named("X")
READ: dict[str, tuple[Callable[[], object], bool]] = {
    "amax": (lambda: order.largest(X, [-1]), True),
    "amin": (lambda: order.smallest(X, [-1]), True),
    "median": (lambda: order.median(X, -1), True),
    "mode": (lambda: order.mode(X, -1), True),
    "kthvalue": (lambda: order.kth(X, 2), True),
    "sort": (lambda: order.sorted_row(X), True),
    "sort, descending": (lambda: order.sorted_stably(X, descending=True), True),
    "topk": (lambda: order.top(X, 3), True),
    "topk, smallest": (lambda: order.top(X, 3, -1, False), True),
    "cummax": (lambda: order.largest_so_far(X, -1), False),
    "cummin": (lambda: order.smallest_so_far(X, -1), False),
}


@pytest.mark.parametrize("name", READ)
def test_what_is_read_as_symmetric_is(name: str) -> None:
    read, symmetric = READ[name]
    rows = torch.randint(-4, 5, (200, 6)) + torch.randn(200, 1)
    others = torch.stack([row[torch.randperm(6)] for row in rows])
    with noted(Notes()) as notes:
        read()
    ((function, given),) = notes.givens.items()
    of = notes.of_rows[function]
    assert given.traits == ("invariant",) * symmetric
    assert torch.equal(of(rows), of(others)) == symmetric


def test_the_largest_number_of_a_batch_keeps_no_row_apart() -> None:
    for code in (lambda x: x / x.max(), lambda x: x - x.min(), lambda x: x * x.amax()):
        found = prove(Layer(name="layer", call=code, embed=4), ("rows-of-batch-apart",))
        assert [one.verdict for one in found.findings] == ["undecided"]


@pytest.mark.parametrize("of", ["sort", "median", "cummax", "min"])
def test_hidden_keys_are_not_put_in_order(of: str) -> None:
    def weights(s: Tensor) -> Tensor:
        n = s.shape[-1]
        hidden = s.masked_fill(torch.ones(n, n, dtype=torch.bool).triu(1), -torch.inf)
        ordered: Tensor = getattr(hidden, of)(-1).values
        return s * ordered.exp().reshape(*s.shape[:-1], -1)[..., :1]

    found = prove(attention(weights), ("rows-of-batch-apart",))
    assert not [one for one in found.findings if one.verdict == "holds"]
    assert "−∞ in a row" in " ".join((found.why, *found.unread))


def test_a_condition_stands_once_on_its_line() -> None:
    def scaled(x: Tensor) -> Tensor:
        return (x - x.amin(-1, keepdim=True)) / (x.amax(-1, True) - x.amin(-1, True) + 1e-6)

    (found,) = prove(Layer(name="layer", call=scaled, embed=4), ("rows-of-batch-apart",)).findings
    told = [one.text for one in found.assuming if one.kind == "if"]
    assert len(told) == 2  # for x, and for y, which has other rows
    assert all("largest(" in one and "1e-06" in one for one in told)
