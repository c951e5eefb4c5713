"""Attention in unusual style: no alarm where none is due, and no word that is not true."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from attnproof.programs.declarations import DeclaredAttention
from attnproof.programs.exact import exact
from attnproof.programs.execution.draw import Draw
from attnproof.programs.identify import identify
from attnproof.programs.measure.examine import examine
from attnproof.programs.prove import prove
from attnproof.programs.subjects import Attention

FULL = DeclaredAttention(causal=False)
CAUSAL = DeclaredAttention(causal=True)
SUM, SHIFT, ORDER = "rows-sum-to-one", "shift-of-scores", "order-of-keys"


def code(
    attend: Callable[..., Tensor], *, groups: int = 4, width: int = 8, **more: Any
) -> Attention:
    return Attention(
        name="a",
        attend=lambda q, k, v, mask=None: attend(q, k, v, mask),
        heads=4,
        groups=groups,
        width=width,
        **more,
    )


def measured(one: Attention, law: str) -> tuple[str, str]:
    (seen,) = examine(one, (Draw(),), (law,))
    return seen.verdict, seen.why


def in_fields(one: Attention, law: str) -> str:
    (seen,) = exact(one, (law,))
    return seen.verdict


def scores(q: Tensor, k: Tensor) -> Tensor:
    return q @ k.mT / math.sqrt(q.shape[-1])


def plain(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    return (scores(q, k) + (0 if mask is None else mask)).softmax(-1) @ v


def tiled(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    often = q.shape[1] // k.shape[1]
    return plain(q, k.repeat(1, often, 1, 1), v.repeat(1, often, 1, 1), mask)


def sink(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    """A learned number of each head in its denominators."""
    own = torch.tensor([0.3, -1.0, 2.0, 0.1], dtype=q.dtype)[:, None, None]
    s = scores(q, k) + (0 if mask is None else mask)
    beside = own.expand(*s.shape[:-1], 1)
    return torch.cat((s, beside), -1).softmax(-1)[..., :-1] @ v


def one_more(q: Tensor, k: Tensor, v: Tensor, _mask: Tensor | None) -> Tensor:
    weights = scores(q, k).exp()
    return weights / (1 + weights.sum(-1, keepdim=True)) @ v


def sigmoid(q: Tensor, k: Tensor, v: Tensor, _mask: Tensor | None) -> Tensor:
    return scores(q, k).sigmoid() @ v


def over_queries(q: Tensor, k: Tensor, v: Tensor, _mask: Tensor | None) -> Tensor:
    return scores(q, k).softmax(-2) @ v


def test_weights_of_tiled_heads_add_up_to_one() -> None:
    one = code(tiled, groups=2)
    assert measured(one, SUM)[0] == in_fields(one, SUM) == "holds"
    assert in_fields(code(over_queries), SUM) == "broken"


def test_a_sink_is_no_fault_and_is_told() -> None:
    for declared in (None, FULL):
        verdict, why = measured(code(sink, declared=declared), SUM)
        assert verdict == "not asked"
        assert "a sink" in why
        assert in_fields(code(sink, declared=declared), SUM) == "not asked"
        assert in_fields(code(sink, declared=declared), SHIFT) == "not asked"
    assert measured(code(sink, masks=("float",)), "mask-adds")[0] == "holds"
    (seen,) = prove(code(sink), laws=[SUM]).findings or (None,)
    assert seen is None or seen.verdict == "not asked"


def test_a_key_that_is_counted_and_is_not_there_is_a_fault() -> None:
    verdict, why = measured(code(one_more), SUM)
    assert verdict == "broken"
    assert "a whole number of keys more" in why


def test_sigmoid_attention_is_told_where_nothing_is_declared() -> None:
    verdict, why = measured(code(sigmoid), SUM)
    assert verdict == "not asked"
    assert "sigmoid" in why
    assert measured(code(sigmoid, declared=FULL), SUM)[0] == "broken"
    assert measured(code(over_queries), SUM)[0] == "broken"


def capped(q: Tensor, k: Tensor, v: Tensor, _mask: Tensor | None) -> Tensor:
    return (30 * (scores(q, k) / 30).tanh()).softmax(-1) @ v


def normed(q: Tensor, k: Tensor, v: Tensor, _mask: Tensor | None) -> Tensor:
    q, k = (functional.normalize(x, dim=-1) for x in (q, k))
    return (10 * q @ k.mT).softmax(-1) @ v


def distances(q: Tensor, k: Tensor, v: Tensor, _mask: Tensor | None) -> Tensor:
    """Scores −|q − k|²/2: q·k less a number of the query's and one of the key's own."""
    return (q @ k.mT - (k * k).sum(-1)[:, :, None] / 2).softmax(-1) @ v


def feature(q: Tensor, k: Tensor, v: Tensor, _mask: Tensor | None) -> Tensor:
    a, b = functional.elu(q) + 1, functional.elu(k) + 1
    return a @ (b.mT @ v) / (a @ b.sum(-2, keepdim=True).mT)


@pytest.mark.parametrize("attend", [capped, normed, distances, feature])
def test_no_shift_is_asked_of_scores_that_are_no_products(attend: Callable[..., Tensor]) -> None:
    assert in_fields(code(attend), SHIFT) == "not asked"
    assert measured(code(attend), SHIFT)[0] == "holds"


def test_a_shift_is_asked_of_products() -> None:
    for groups, attend in ((4, plain), (2, tiled)):
        assert in_fields(code(attend, groups=groups), SHIFT) == "holds"


def windowed(q: Tensor, k: Tensor, v: Tensor, _mask: Tensor | None) -> Tensor:
    t, s = q.shape[2], k.shape[2]
    behind = torch.arange(t)[:, None] + s - t - torch.arange(s)
    return scores(q, k).masked_fill((behind < 0) | (behind > 3), -torch.inf).softmax(-1) @ v


def test_keys_have_an_order_where_nothing_is_declared() -> None:
    one = code(windowed)
    assert measured(one, ORDER)[0] == "not asked"
    (made,) = exact(one, (ORDER,), named=False)
    assert made.verdict == "not asked"
    assert [f.verdict for f in prove(one, laws=[ORDER]).findings] == ["not asked"]
    said = code(windowed, declared=FULL)
    (made,) = exact(said, (ORDER,), named=False)
    assert made.verdict == "broken"


def test_declared_positions_give_keys_an_order() -> None:
    def slope(q: Tensor, k: Tensor, v: Tensor, _mask: Tensor | None) -> Tensor:
        apart = torch.arange(q.shape[2])[:, None] - torch.arange(k.shape[2])
        return (scores(q, k) - apart.abs()).softmax(-1) @ v

    said = DeclaredAttention(causal=False, positions="relative")
    assert in_fields(code(slope, declared=said), ORDER) == "not asked"


def test_heads_of_width_one_are_asked() -> None:
    for width in (1, 3):
        one = code(plain, width=width, declared=FULL)
        assert measured(one, SHIFT)[0] == measured(one, "scale-as-declared")[0] == "holds"


def test_one_maximum_for_all_queries_is_a_fault() -> None:
    def over_all(q: Tensor, k: Tensor, v: Tensor, _mask: Tensor | None) -> Tensor:
        s = scores(q, k)
        weights = (s - s.max()).exp()
        return weights / weights.sum(-1, keepdim=True) @ v

    assert measured(code(over_all), SHIFT)[0] == "broken"
    assert measured(code(plain), SHIFT)[0] == "holds"


def filled(fill: float) -> Callable[..., Tensor]:
    def attend(q: Tensor, k: Tensor, v: Tensor, _mask: Tensor | None) -> Tensor:
        late = torch.ones(q.shape[2], k.shape[2]).triu(1 + k.shape[2] - q.shape[2]).bool()
        return scores(q, k).masked_fill(late, fill).softmax(-1) @ v

    return attend


def test_a_mask_of_minus_ten_thousand_is_told_in_each_method() -> None:
    one, hides = code(filled(-1e4), declared=CAUSAL), code(filled(-math.inf), declared=CAUSAL)
    verdict, why = measured(one, "causal")
    assert verdict == "holds"
    assert "hidden by a finite number" in why
    assert "finite" not in measured(hides, "causal")[1]
    (seen,), (other,) = exact(one, ("causal",)), exact(hides, ("causal",))
    assert seen.verdict == other.verdict == "holds"
    assert "-10000 taken for −inf" in seen.why
    assert "taken for" not in other.why
    assert measured(code(filled(-100.0), declared=CAUSAL), "causal")[0] == "broken"


def said_of(attend: Callable[..., Tensor], **more: Any) -> str:
    return identify(code(attend, **more)).sentence


def test_what_is_said_is_true() -> None:
    def short(q: Tensor, k: Tensor, v: Tensor, _mask: Tensor | None) -> Tensor:
        return plain(q.bfloat16(), k.bfloat16(), v.bfloat16(), None).to(q.dtype)

    def largest(q: Tensor, k: Tensor, v: Tensor, _mask: Tensor | None) -> Tensor:
        s = scores(q, k)
        return s.masked_fill(s < s.topk(3, -1).values[..., -1:], -torch.inf).softmax(-1) @ v

    def squared(q: Tensor, k: Tensor, v: Tensor, _mask: Tensor | None) -> Tensor:
        return scores(q, k).relu() ** 2 @ v / k.shape[2]

    assert "scale 1/√D = 0.353553" in said_of(short)
    assert "add up" not in said_of(short)
    assert "keys that are visible depending on their content" in said_of(largest)
    assert "a term that depends on the key alone" in said_of(distances)
    assert "bias" not in said_of(distances)
    assert "could not be read" not in said_of(squared)
    assert "slopes" not in said_of(filled(-20.0))
    assert "part" not in said_of(plain)


def test_weights_of_a_layer_without_a_projection_are_no_alarm() -> None:
    def soft(x: Tensor) -> Tensor:
        out: Tensor = torch.softmax(x @ x.mT / 8**0.5, -1) @ x
        return out

    verdict, why = measured(Attention(name="a", layer=soft, embed=8), SUM)
    assert verdict == "undecided"
    assert "a multiple of it" in why
    rotated = torch.linalg.qr(Draw().normal(8, 8, salt=77))[0]

    def unnormalised(x: Tensor) -> Tensor:
        out: Tensor = torch.sigmoid(x @ x.mT / 8**0.5) @ (x @ rotated.to(x))
        return out

    assert measured(Attention(name="a", layer=unnormalised, embed=8), SUM)[0] != "holds"


def kernel(of: Callable[[Tensor], Tensor]) -> Callable[..., Tensor]:
    """Attention whose weights are products of a function of the query and one of the key."""

    def attend(q: Tensor, k: Tensor, v: Tensor, _: Tensor | None) -> Tensor:
        w = of(q) @ of(k).mT
        return w @ v / w.sum(-1, keepdim=True).clamp(min=1e-6)

    return attend


def above(x: Tensor) -> Tensor:
    return functional.elu(x) + 1


def of_features(q: Tensor, k: Tensor, v: Tensor, _: Tensor | None) -> Tensor:
    """A softmax over the features of queries, and one over the keys, features apart."""
    return (q.softmax(-1) / math.sqrt(q.shape[-1])) @ (k.softmax(-2).mT @ v)


@pytest.mark.parametrize("attend", [kernel(torch.relu), of_features])
def test_weights_of_another_kernel_are_no_softmax(attend: Callable[..., Tensor]) -> None:
    verdict, why = measured(code(attend), SUM)
    assert (verdict, "not a softmax" in why) == ("not asked", True)
    assert in_fields(code(attend), SUM) == "not asked"
    assert measured(code(attend, declared=FULL), SUM)[0] == "broken"


def test_another_kernel_that_is_normalised_is_asked() -> None:
    assert measured(code(kernel(above)), SUM)[0] == "holds"


@pytest.mark.parametrize("factor", [2.0, 1.001])
def test_a_softmax_with_a_factor_is_asked(factor: float) -> None:
    def more(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        return factor * plain(q, k, v, mask)

    assert measured(code(more), SUM)[0] == "broken"


def hiding_features(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, *, seen: bool = True
) -> Tensor:
    """Linear attention with a softmax over tokens for each feature of the keys."""
    if mask is not None:
        own = mask[:, :, :1].mT == seen
        k, v = k.masked_fill(~own, -1e4), v.masked_fill(~own, 0.0)
    return q.softmax(-1) @ (k.softmax(-2).mT @ v)


def gated(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, *, seen: bool = True) -> Tensor:
    """Sigmoid attention."""
    weights = scores(q, k).sigmoid()
    return (weights if mask is None else weights.masked_fill(mask != seen, 0.0)) @ v


@pytest.mark.parametrize("attend", [hiding_features, gated])
def test_a_mask_of_weights_that_are_no_softmax_is_judged_by_what_it_hides(
    attend: Callable[..., Tensor],
) -> None:
    right = code(attend, masks=("bool",), by_key=True)
    assert measured(right, "true-means-visible")[0] == "holds"
    inverted = code(partial(attend, seen=False), masks=("bool",), by_key=True)
    assert measured(inverted, "true-means-visible")[0] == "broken"
