"""The probes of attention are quiet on correct code and refuse each planted fault."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.declarations import DeclaredAttention
from attnproof.programs.execution.draw import Draw
from attnproof.programs.execution.response import allowance, gap
from attnproof.programs.measure.examine import examine
from attnproof.programs.subject import adapted_as, subject_of
from attnproof.programs.subjects import Attention, Subject

from .attention_code import (
    CAUSAL,
    FULL,
    Cached,
    any_layer,
    cached,
    code,
    encoder,
    found,
    in_formats,
    multihead,
    quiet,
    refused,
    sdpa,
    split,
)

LAWS = (
    "permutation",
    "order-of-keys",
    "rows-sum-to-one",
    "shift-of-scores",
    "groups-of-heads",
    "heads-apart",
    "translation",
    "scale-as-declared",
)


def fused(groups: int = 2) -> Attention:
    return Attention(
        name="sdpa", attend=sdpa, heads=4, groups=groups, masks=("bool", "float"), declared=FULL
    )


def blocks(*, rescaled: bool = True) -> Attention:
    """A softmax over blocks of 16 keys: fewer do not show that a sum is not rescaled."""

    def attend(q: Tensor, k: Tensor, v: Tensor, _: Any = None) -> Tensor:
        most = torch.full_like(q[..., :1], -math.inf)
        total, out = torch.zeros_like(most), torch.zeros_like(q)
        for keys, values in zip(torch.split(k, 16, -2), torch.split(v, 16, -2), strict=True):
            scores = q @ keys.mT / q.shape[-1] ** 0.5
            now = torch.maximum(most, scores.amax(-1, keepdim=True))
            less, most = (most - now).exp(), now
            weights = (scores - now).exp()
            total = total * (less if rescaled else 1) + weights.sum(-1, keepdim=True)
            out = out * less + weights @ values
        return out / total

    return Attention(name="blocks", attend=attend, heads=4, groups=4, width=5, declared=FULL)


RIGHT: dict[str, Callable[[], Subject]] = {
    "eager": lambda: code(declared=FULL),
    "groups": lambda: code(declared=FULL, groups=2),
    "nothing declared": code,
    "scaled": lambda: code(declared=DeclaredAttention(causal=False, scale=0.3), scale=0.3),
    "fused": fused,
    "causal": lambda: code(declared=CAUSAL, causal=True),
    "multihead": multihead,
    "multihead with weights": lambda: multihead(False),
    "encoder": encoder,
    "split": split,
    "cached": cached,
    "blocks": blocks,
    "any layer": lambda: any_layer(nn.TransformerEncoderLayer(20, 4, 24, batch_first=True)),
}


@pytest.mark.parametrize(("name", "dtype"), in_formats(RIGHT), ids=str)
def test_correct_code_is_quiet(name: str, dtype: torch.dtype) -> None:
    quiet(RIGHT[name](), dtype, LAWS)


@pytest.mark.parametrize(
    ("law", "wrong"),
    [
        ("permutation", split("view")),
        ("permutation", any_layer(split("view").module or nn.Identity(), declared=FULL)),
        ("order-of-keys", code("bent", FULL)),
        ("rows-sum-to-one", code("queries", FULL)),
        ("rows-sum-to-one", split("queries")),
        ("rows-sum-to-one", split("queries", heads=1)),
        ("rows-sum-to-one", blocks(rescaled=False)),
        ("order-of-keys", blocks(rescaled=False)),
        ("shift-of-scores", code("unstable", FULL)),
        ("groups-of-heads", code("tiled", FULL, groups=2)),
        ("groups-of-heads", code("head-of-values", FULL, groups=2)),
        ("heads-apart", code("mixes-heads", FULL)),
        ("translation", cached("absolute")),
        ("scale-as-declared", code("no-scale", FULL)),
        ("scale-as-declared", code("inverse", FULL)),
        ("scale-as-declared", code("embed", FULL)),
        ("scale-as-declared", code(declared=DeclaredAttention(scale=1.0))),
    ],
)
def test_a_fault_is_refused(law: str, wrong: Subject) -> None:
    one = refused(wrong, law)
    assert one.witness.inputs["seed"] == 1, "the inputs that were asked for"
    assert one.sizes


def test_a_mask_or_positions_that_are_not_declared_raise_no_alarm() -> None:
    torch.manual_seed(0)
    hidden = code(causal=True)
    assert found(hidden, "order-of-keys").verdict == "not asked"
    assert "#.... ##... ###.." in found(hidden, "order-of-keys").why
    layer = any_layer(Cached())
    assert found(layer, "permutation").verdict == "undecided"
    assert "a mask that is not declared" in found(layer, "permutation").why
    assert found(any_layer(Cached(), declared=CAUSAL), "permutation").verdict == "not asked"


def test_relative_positions_alone_are_not_called_a_fault() -> None:
    class Rotated(Cached):
        def forward(self, x: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
            every = torch.ones(*x.shape[:2], dtype=torch.bool)
            q = self.rotate(self.q(x).view(*x.shape[:2], 4, 4).transpose(1, 2), every.cumsum(1))
            k, v = self.kv(x).view(*x.shape[:2], 2, 8).transpose(1, 2).chunk(2, -1)
            out = sdpa(q, self.rotate(k, every.cumsum(1)), v)
            output: torch.Tensor = self.out(out.transpose(1, 2).flatten(2))
            return output

    torch.manual_seed(0)
    one = found(any_layer(Rotated(), declared=FULL), "permutation")
    assert one.verdict == "undecided"
    assert "relative" in one.why
    strict = DeclaredAttention(causal=False, positions="none")
    assert found(any_layer(Rotated(), declared=strict), "permutation").verdict == "broken"


def test_a_scale_is_not_compared_where_none_is_declared() -> None:
    one = found(code("no-scale"), "scale-as-declared")
    assert (one.verdict, one.why) == ("not asked", "no scale is declared")


def test_two_calls_in_evaluation_are_found_alike_whatever_was_drawn_before() -> None:
    """pytorch-image-models#1978: the probe starts the generator itself, and gives it back."""
    seen = []
    for seed in (5, 6):
        torch.manual_seed(seed)
        before = torch.random.get_rng_state()
        seen.append(found(code("dropout", FULL), "evaluation-repeats"))
        assert torch.equal(before, torch.random.get_rng_state())
    assert seen[0].verdict == "broken"
    assert seen[0].witness == seen[1].witness
    assert seen[0].sizes == {"B": 1, "n": 2}


def test_what_says_nothing_of_a_single_token_is_undecided() -> None:
    """A token that sees no key by itself reads zeros: its values are not seen."""

    class OthersAlone(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (x.sum(1, keepdim=True) - x) / max(1, x.shape[1] - 1)

    one = Attention(name="others", layer=OthersAlone(), embed=6, declared=FULL)
    seen = found(one, "rows-sum-to-one")
    assert seen.verdict == "undecided"
    assert "does not depend on the token" in seen.why


def test_sums_of_weights_are_seen_in_few_tokens() -> None:
    """The code takes fewer tokens than they have features."""

    class Fixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.hidden = torch.ones(9, 9).triu(1).bool()
            self.qkv = nn.Linear(12, 36)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            n = x.shape[1]
            q, k, v = self.qkv(x).chunk(3, -1)
            scores = (q @ k.mT / 12**0.5).masked_fill(self.hidden[:n, :n], -math.inf)
            out: torch.Tensor = scores.softmax(-1) @ v
            return out

    one = Attention(name="fixed", layer=Fixed(), embed=12, declared=CAUSAL)
    seen = found(one, "rows-sum-to-one")
    assert seen.verdict == "holds", seen.why
    assert seen.sizes["n"] <= 9


class MixedHeads(nn.Module):
    """Talking heads: the weights of the heads are mixed behind the softmax, if at all."""

    def __init__(self, mixing: Tensor, *, named: bool = True, embed: int = 12) -> None:
        super().__init__()
        self.mixing, self.heads = mixing, mixing.shape[0]
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.add_module("qkv" if named else "first", nn.Linear(embed, 3 * embed))
            self.out = nn.Linear(embed, embed)
        self.named = named

    def forward(self, x: Tensor) -> Tensor:
        joint = self.get_submodule("qkv" if self.named else "first")
        q, k, v = joint(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)
        mixed = torch.einsum("bhrn,hg->bgrn", weights, self.mixing.to(x.dtype))
        out: Tensor = self.out((mixed @ v).transpose(1, 2).flatten(2))
        return out


class InFours(MixedHeads):
    """It takes a token alone, or fours of tokens."""

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] > 1 and x.shape[1] % 4:
            raise ValueError(f"wanted fours of tokens, got {x.shape[1]}")
        return super().forward(x)


@pytest.mark.parametrize(
    ("module", "assumed"),
    [
        (MixedHeads(torch.eye(2)), []),
        (MixedHeads(torch.tensor([[0.5, 0.25], [0.5, 0.75]])), []),
        (
            MixedHeads(torch.tensor([[0.5, 0.25], [0.5, 1.75]])),
            ["the weight of a token alone is 1"],
        ),
        (MixedHeads(torch.eye(2), named=False), ["the weight of a token alone is 1"]),
        (InFours(torch.eye(2), embed=22), ["the weight of a token alone is 1"]),
    ],
    ids=["one head each", "sums of 1", "sums of 1 and 2", "values not found", "fours of tokens"],
)
def test_sums_that_are_a_factor_of_the_values_are_a_condition(
    module: MixedHeads, assumed: list[str]
) -> None:
    embed = module.out.in_features
    one = Attention(name="mixed", layer=module, module=module, embed=embed, heads=2, declared=FULL)
    seen = found(one, "rows-sum-to-one")
    assert seen.verdict == "holds", seen.why
    assert [condition.text for condition in seen.assuming] == assumed


class Shifted(MixedHeads):
    """Half of each token is the one before, of which the first token has none."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward((x + nn.functional.pad(x, (0, 0, 1, -1))) / 2)


def test_values_that_see_other_tokens_say_nothing_of_sums_of_weights() -> None:
    module = Shifted(torch.eye(4), embed=32)
    one = Attention(name="shifted", layer=module, module=module, embed=32, declared=FULL)
    seen = found(one, "rows-sum-to-one")
    assert seen.verdict == "not asked"
    assert "depends on other tokens" in seen.why


@pytest.mark.parametrize(
    ("law", "subject", "words"),
    [
        (
            "groups-of-heads",
            code("tiled", FULL, groups=2),
            "heads of a group and the same, other keys and values in the other groups differ",
        ),
        (
            "shift-of-scores",
            code("unstable", FULL),
            "the output with one vector added to all keys has NaN in batch row 0, head 0, token 0",
        ),
        (
            "rows-sum-to-one",
            code("queries", FULL),
            "the output for equal values and that value differ by",
        ),
        (
            "scale-as-declared",
            code("no-scale", FULL),
            "weights have the ratios of a scale of 1, and 0.447214 is declared",
        ),
    ],
)
def test_what_is_wrong_is_a_plain_sentence(law: str, subject: Attention, words: str) -> None:
    assert words in found(subject, law).why


def test_a_dropout_in_evaluation_is_no_other_fault() -> None:
    one = found(code("dropout", FULL), "order-of-keys")
    assert one.verdict == "undecided"
    assert "evaluation-repeats" in one.why


def test_the_module_is_left_as_it_was() -> None:
    subject = cached(dropout=0.2)
    module: Any = subject.module
    module.train()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    state = torch.random.get_rng_state()
    examine(subject, [Draw()])
    after = module.state_dict()
    assert all(torch.equal(value, after[name]) for name, value in before.items())
    assert all(value.dtype == after[name].dtype for name, value in before.items())
    assert module.training
    assert module.dropout == 0.2
    assert torch.equal(state, torch.random.get_rng_state())


def test_what_is_allowed_grows_with_the_format_and_the_scores() -> None:
    def attend(x: torch.Tensor) -> torch.Tensor:
        return (x @ x.mT).softmax(-1) @ x

    x = Draw().normal(6, 5)
    fine = allowance(attend, x.double(), draw=Draw())()
    single = allowance(attend, x, draw=Draw())()
    half = allowance(attend, x.bfloat16(), draw=Draw())()
    assert fine < 1e-6 * single
    assert single < 0.1 * half
    through = allowance(lambda x: attend(x.float()).double(), x.double(), draw=Draw())()
    assert through == pytest.approx(single, rel=1)
    exact = attend(x.double())
    assert 0 < gap(attend(x), exact) < single
    assert gap(attend(x.bfloat16()), exact) < half


def test_less_is_allowed_where_no_inputs_are_moved_and_one_call_made() -> None:
    calls = []

    def call(x: Tensor) -> Tensor:
        calls.append(x)
        return (x @ x.mT).softmax(-1)

    x = Draw().normal(4, 4)
    still = allowance(call, x, draw=Draw(), moved=0)
    assert len(calls) == 1
    assert 0 < still() < allowance(call, x, draw=Draw())()


def test_results_of_other_shapes_or_not_numbers_are_infinitely_far() -> None:
    one = torch.ones(2)
    assert gap(one, torch.ones(3)) == gap(one, one * torch.nan) == torch.inf
    assert gap(one * torch.inf, one * torch.inf) == 0


def under_a_mask_in_float32(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """Attention whose mask is a number of float32, which torch reads as float64 beside float64."""
    added = torch.where(mask, 0.0, -math.inf)
    return nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=added)


def test_a_mask_in_float32_is_no_fault_beside_float64() -> None:
    line = "q: B H r D, k: B H n D, v: B H n D, mask: B 1 r n keep -> B H r D"
    subject = subject_of(under_a_mask_in_float32, line, "attention")
    laws = ["finite", "shift-of-scores", "hidden-keys-do-nothing", "order-of-keys"]
    seen = examine(subject, laws=laws)
    assert {one.law: one.verdict for one in seen} == dict.fromkeys(laws, "holds")


class DropsMany(nn.Module):
    """Attention that drops in evaluation too, with many tokens."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = dropout

    def forward(self, x: Tensor) -> Tensor:
        weights = (x @ x.mT).softmax(-1)
        drops = self.training or x.shape[1] > 40
        return nn.functional.dropout(weights, self.dropout, drops) @ x


@pytest.mark.parametrize(("tokens", "verdict"), [(30, "holds"), (50, "broken")])
def test_code_built_with_dropout_is_run_at_given_lengths_too(tokens: int, verdict: str) -> None:
    code = adapted_as(DropsMany, "x: B n (4) -> B n (4)", name="drops")
    (seen,) = examine(replace(code, run_at=({"B": 1, "n": tokens},)), laws=("evaluation-repeats",))
    assert seen.verdict == verdict
