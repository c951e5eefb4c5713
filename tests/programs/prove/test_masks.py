"""Laws of a mask that code is given, proved for every mask; what breaks one is never proved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from attnproof.programs.prove import prove
from attnproof.programs.prove.calls import calls_of
from attnproof.programs.subject import adapted_as
from attnproof.programs.subjects import Attention

HIDDEN, PADDING, ADDS = "hidden-keys-do-nothing", "padding-does-nothing", "mask-adds"
Layered = Callable[..., Tensor]


def heads(x: Tensor) -> Tensor:
    """Two heads (B, 2, n, E/2) of tokens (B, n, E)."""
    return x.view(*x.shape[:2], 2, x.shape[2] // 2).transpose(1, 2)


def mixed(x: Tensor, seen: Tensor, other: Tensor | None = None) -> Tensor:
    """Attention of tokens, each its own key, under truth values (B, ., n, n)."""
    q = heads(x)
    k = q if other is None else heads(other)
    scores = (q @ k.mT).masked_fill(~seen, -torch.inf)
    return (scores.softmax(-1) @ k).transpose(1, 2).flatten(2)


def plain(x: Tensor, keep: Tensor) -> Tensor:
    return mixed(x, keep[:, None, None])


def fused(x: Tensor, keep: Tensor) -> Tensor:
    q = heads(x)
    out = scaled_dot_product_attention(q, q, q, keep[:, None, None])
    return out.transpose(1, 2).flatten(2)


def added(x: Tensor, keep: Tensor) -> Tensor:
    fill = torch.zeros(keep.shape).masked_fill(~keep, torch.finfo(torch.float32).min)
    q = heads(x)
    weights = (q @ q.mT + fill[:, None, None]).softmax(-1)
    return (weights @ q).transpose(1, 2).flatten(2)


def linear(x: Tensor, keep: Tensor) -> Tensor:
    """Attention by exponentials of queries and of keys, without a softmax over pairs."""
    kept = keep[..., None]
    keys = x.exp() * kept
    sums = (x.exp() * keys.sum(1, keepdim=True)).sum(-1, keepdim=True)
    return x.exp() @ (keys.mT @ (x * kept)) / sums


def causal(x: Tensor, keep: Tensor) -> Tensor:
    tril = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
    return mixed(x, tril & keep[:, None, None])


KEPT: dict[str, Layered] = {
    "filled with minus infinity": plain,
    "scaled_dot_product_attention": fused,
    "the least number added": added,
    "causal as well": causal,
}
BROKEN: dict[str, Layered] = {
    "filled with -10": lambda x, keep: (
        ((heads(x) @ heads(x).mT).masked_fill(~keep[:, None, None], -10.0).softmax(-1) @ heads(x))
        .transpose(1, 2)
        .flatten(2)
    ),
    "turned round": lambda x, keep: plain(x, keep.flip(1)),
    "of the row before": lambda x, keep: plain(x, keep.roll(1, 0)),
    "of the first row": lambda x, keep: plain(x, keep[:1].expand(keep.shape)),
    "one place off": lambda x, keep: plain(x, keep.roll(1, 1)),
    "of queries": lambda x, keep: mixed(x, keep[:, None, :, None] | ~keep.any()),
    "of one head": lambda x, keep: mixed(
        x, torch.stack((keep, torch.ones_like(keep)), 1)[:, :, None]
    ),
    "but for its first query": lambda x, keep: mixed(
        x, keep[:, None, None] | (torch.arange(x.shape[1]) == 0)[:, None]
    ),
    "the mean of all tokens": lambda x, keep: plain(x, keep) + x.mean(1, keepdim=True) / 1000,
    "the last token": lambda x, keep: plain(x, keep) + x[:, -1:] / 1000,
    "values before the mask": lambda x, keep: plain(x - x.mean(1, keepdim=True), keep),
    "how many are hidden, times what they are": lambda x, keep: (
        plain(x, keep) + (x * ~keep[..., None]).sum(1, keepdim=True) / 1000
    ),
    "not of many tokens": lambda x, keep: plain(x, keep if x.shape[1] < 90 else keep | True),
    "not where there are five rows": lambda x, keep: plain(
        x, keep if x.shape[0] != 5 else keep | True
    ),
    "masked after the softmax": lambda x, keep: (
        ((heads(x) @ heads(x).mT).softmax(-1) * keep[:, None, None] @ heads(x))
        .transpose(1, 2)
        .flatten(2)
    ),
}


def layer(hide: Layered) -> Attention:
    def shown(x: Tensor) -> Tensor:
        return hide(x, torch.ones(x.shape[:2], dtype=torch.bool))

    return Attention(name="layer", layer=shown, hide=hide, embed=4, heads=2, groups=2, width=2)


def verdicts(subject: Attention, *laws: str) -> dict[str, set[str]]:
    found = prove(subject, laws).findings
    return {law: {one.verdict for one in found if one.law == law} for law in laws}


@pytest.mark.parametrize("name", KEPT)
def test_padding_and_hidden_tokens_do_nothing_for_every_mask(name: str) -> None:
    found = prove(layer(KEPT[name]), [HIDDEN, PADDING]).findings
    assert {(one.law, one.verdict) for one in found} == {(HIDDEN, "holds"), (PADDING, "holds")}
    hidden = {c.text for one in found if one.law == HIDDEN for c in one.assuming}
    assert "the hidden numbers are finite" in hidden
    assert {"every query sees a key", "no denominator is 0"} & hidden


def test_every_law_of_a_layer_that_is_given_a_mask_is_read() -> None:
    """Not those that only floating point tells, some of which speak of the call without a mask."""
    found = prove(layer(plain)).findings
    assert {HIDDEN, PADDING} <= {one.law for one in found if one.verdict == "holds"}
    assert not [one.why for one in found if one.verdict == "internal error"]


def test_what_sums_exponentials_is_proved_where_no_sum_is_0() -> None:
    found = prove(layer(linear), [HIDDEN]).findings
    assert [one.verdict for one in found] == ["holds"]
    assert "no denominator is 0" in {c.text for one in found for c in one.assuming}


@pytest.mark.parametrize("name", BROKEN)
def test_a_mask_that_is_used_otherwise_is_never_proved(name: str) -> None:
    found = verdicts(layer(BROKEN[name]), HIDDEN)
    assert not found[HIDDEN] & {"holds", "internal error"}


def test_what_is_looked_at_before_the_mask_is_no_internal_error_of_padding() -> None:
    found = verdicts(layer(BROKEN["values before the mask"]), PADDING)
    assert "internal error" not in found[PADDING]


def test_where_other_code_runs_it_is_broken_there_alone() -> None:
    (found,) = prove(layer(BROKEN["not of many tokens"]), [HIDDEN]).findings
    assert found.verdict == "broken"
    assert "proved for n ≤ 89" in found.why


class Encodes(nn.Module):
    """A layer of PyTorch that is told which tokens are padding, and takes another mask beside."""

    def __init__(self, dim: int = 8) -> None:
        super().__init__()
        self.attends = nn.MultiheadAttention(dim, 2, batch_first=True)

    def forward(
        self, x: Tensor, key_padding_mask: Tensor | None = None, attn_mask: Tensor | None = None
    ) -> Tensor:
        told = {"key_padding_mask": key_padding_mask, "attn_mask": attn_mask}
        return self.attends(x, x, x, **told)[0]  # type: ignore[no-any-return]


def test_the_line_tells_the_mask_that_is_left_out() -> None:
    line = "x: B n E, key_padding_mask: B n hide -> B n E"
    subject = adapted_as(Encodes(), line, kind="attention")
    assert isinstance(subject, Attention)
    (found,) = prove(subject, [PADDING]).findings
    assert found.verdict == "holds"
    assert "no mask other than key_padding_mask is passed" in {c.text for c in found.assuming}


class InOneAxis(nn.Module):
    """Queries, keys and values of all rows laid in one axis come from one product, as in GPT-2."""

    def __init__(self, dim: int = 8) -> None:
        super().__init__()
        self.joint, self.shift = (
            nn.Parameter(torch.randn(dim, 3 * dim)),
            nn.Parameter(torch.ones(1)),
        )
        self.out = nn.Parameter(torch.randn(dim, dim))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        joint = torch.addmm(self.shift, x.view(-1, x.shape[-1]), self.joint)
        q, k, v = map(heads, torch.split(joint.view(*x.shape[:-1], -1), x.shape[-1], dim=2))
        found = ((q @ k.mT + mask).softmax(-1) @ v).transpose(1, 2).flatten(2)
        return torch.mm(found.view(-1, x.shape[-1]), self.out).view(x.shape)


def test_rows_in_one_axis_that_are_projected_are_told_apart() -> None:
    line = "x: B n E, mask: B 1 1 n add -> B n E"
    found = prove(adapted_as(InOneAxis(), line, kind="attention"), [HIDDEN, PADDING]).findings
    assert {(one.law, one.verdict) for one in found} == {(HIDDEN, "holds"), (PADDING, "holds")}


def test_masks_beside_the_one_that_is_given_are_on_the_line() -> None:
    def attend(
        q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, q_mask: Tensor | None = None
    ) -> Tensor:
        scores = q @ k.mT if mask is None else (q @ k.mT).masked_fill(~mask, -torch.inf)
        out = torch.matmul(scores.softmax(-1), v)
        return out if q_mask is None else out * q_mask[:, None, :, None]

    line = "q: B H r D, k: B H n D, v: B H n D, mask: B 1 r n keep -> B H r D"
    for more, told in (
        ("", "no mask other than mask is passed"),
        (", q_mask: B r keep", "q_mask counts every query"),
    ):
        (found,) = prove(adapted_as(attend, line.replace(" ->", f"{more} ->")), [HIDDEN]).findings
        assert found.verdict == "holds"
        assert told in {c.text for c in found.assuming}


class Counts(nn.Module):
    """A layer that is told how many tokens of each row are no padding."""

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        return plain(x, torch.arange(x.shape[1]) < lengths[:, None])


def test_lengths_of_rows_tell_no_mask_of_which_a_law_could_be_proved() -> None:
    subject = adapted_as(Counts(), "x: B n 4, lengths: B lengths -> B n 4", kind="attention")
    assert isinstance(subject, Attention)
    assert subject.hide is not None
    assert [call.name for call in calls_of(subject)] == ["layer"]


def attention(
    change: Callable[[Tensor, Tensor], Tensor] | None = None, *, form: str = "bool"
) -> Attention:
    """Attention under a mask of truth values, or of numbers; ``change``: of scores by the mask."""

    def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if mask is not None and change is not None:
            scores = change(scores, mask)
        elif mask is not None:
            scores = scores + mask if form == "float" else scores.masked_fill(~mask, -torch.inf)
        return torch.matmul(scores.softmax(-1), v)

    return Attention(
        name="attend", attend=attend, heads=2, groups=2, width=4, masks=(form,), by_key=False
    )


def test_attention_under_a_mask_is_proved_for_every_mask() -> None:
    assert verdicts(attention(), HIDDEN) == {HIDDEN: {"holds"}}
    assert verdicts(attention(form="float"), HIDDEN, ADDS) == {HIDDEN: {"holds"}, ADDS: {"holds"}}


USED: dict[str, Any] = {
    "of another query": lambda s, m: s.masked_fill(~m.roll(1, 2), -torch.inf),
    "of the first query": lambda s, m: s.masked_fill(~m[:, :, :1], -torch.inf),
    "turned round": lambda s, m: s.masked_fill(~m.flip(3), -torch.inf),
    "of another row": lambda s, m: s.masked_fill(~m.roll(1, 0), -torch.inf),
    "filled with -20": lambda s, m: s.masked_fill(~m, -20.0),
    "of all heads but one": lambda s, m: s.masked_fill(
        ~m & (torch.arange(s.shape[1]) > 0)[:, None, None], -torch.inf
    ),
    "times a mean of all scores": lambda s, m: s.masked_fill(~m, -torch.inf) * s.mean().exp(),
}
ADDED: dict[str, Any] = {
    "twice": lambda s, m: s + 2 * m,
    "less its mean over queries": lambda s, m: s + m - m.mean(2, keepdim=True),
    "below a bound": lambda s, m: s + m.clamp(max=3.0),
    "to all heads but one": lambda s, m: s + m * (torch.arange(s.shape[1]) > 0)[:, None, None],
    "of another query": lambda s, m: s + m.roll(1, 2),
}


@pytest.mark.parametrize("name", USED)
def test_a_mask_of_truth_values_that_is_used_otherwise_is_never_proved(name: str) -> None:
    assert not verdicts(attention(USED[name]), HIDDEN)[HIDDEN] & {"holds", "internal error"}


@pytest.mark.parametrize("name", ADDED)
def test_numbers_that_are_not_what_is_added_are_never_proved(name: str) -> None:
    found = verdicts(attention(ADDED[name], form="float"), ADDS)[ADDS]
    assert not found & {"holds", "internal error"}


def test_truth_values_that_code_holds_are_read() -> None:
    def causal_mask(n: int) -> Tensor:
        places = torch.arange(n)
        return torch.where(places <= places[:, None], torch.tensor(True), torch.tensor(False))

    def blind_mask(n: int) -> Tensor:
        places = torch.arange(n)
        return torch.where(places < places[:, None], torch.tensor(True), torch.tensor(False))

    for mask, verdict in ((causal_mask, "holds"), (blind_mask, "broken")):
        (found,) = prove(adapted_as(mask, "n = n -> n n keep"), ("true-means-visible",)).findings
        assert found.verdict == verdict, found.why
