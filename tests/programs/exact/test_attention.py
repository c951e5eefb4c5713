"""Attention and layers over finite fields, as people write them: what holds, and what does not."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from attnproof.programs.declarations import DeclaredAttention
from attnproof.programs.exact import exact
from attnproof.programs.measure.examine import examine
from attnproof.programs.subject import adapted_as
from attnproof.programs.subjects import Additive, Attention, Layer

from . import exact_attention_code as code
from .exact_asked import ATTENTION, not_right, of, verdict
from .exact_code import D, rotate


@pytest.mark.parametrize("name", ["plain", "by_hand", "fused"])
def test_attention_however_it_is_written_obeys_exactly(name: str) -> None:
    found = of(code.attention(getattr(code, name)), *ATTENTION)
    assert {f.verdict for f in found.values()} == {"holds"}, found


def test_causal_attention_is_causal_and_ends_at_the_last_key() -> None:
    right = code.attention(code.causal, declared=code.CAUSAL, masks=("bool",))
    assert not_right(right) == {}
    found = of(right, "causal", "alignment")
    assert {f.verdict for f in found.values()} == {"holds"}
    wrong = code.attention(code.plain, declared=code.CAUSAL)
    assert verdict(wrong, "causal") == "broken"
    assert verdict(code.attention(code.top_left, declared=code.CAUSAL), "alignment") == "broken"


def test_the_law_of_permutations_is_not_held_against_who_did_not_promise_it() -> None:
    wrong = code.attention(code.by_key)
    (asked,) = exact(wrong, ("permutation",), named=False)
    assert asked.verdict == "not asked"
    promised = code.with_(wrong, declared=DeclaredAttention(causal=False))
    (asked,) = exact(promised, ("permutation",), named=False)
    assert asked.verdict == "broken"


def test_an_order_of_keys_that_nobody_denied_is_no_fault() -> None:
    one = code.attention(code.causal)
    (asked,) = exact(one, ("order-of-keys",), named=False)
    assert asked.verdict == "not asked"
    assert "a mask, or positions, may be meant" in asked.why
    (named,) = exact(one, ("order-of-keys",))
    assert named.verdict == "broken"


def test_steps_with_a_cache_are_the_whole_pass() -> None:
    assert verdict(code.cached(), "step-by-step") == "holds"
    assert verdict(code.cached(), "causal") == "holds"
    assert verdict(code.cached("place"), "step-by-step") == "broken"
    assert verdict(code.cached("mask"), "step-by-step") == "broken"


class OfImages(nn.Module):
    """Attention over all places of a square image; ``placed``: its rows have positions."""

    def __init__(self, *, placed: bool) -> None:
        super().__init__()
        self.placed, self.qkv = placed, nn.Linear(16, 48)

    def forward(self, x: Tensor) -> Tensor:
        _, h, w, _ = x.shape
        if h > 1 and h != w:
            raise ValueError("wanted a square")
        x = x + self.placed * torch.arange(h)[:, None, None]
        q, k, v = self.qkv(x.flatten(1, 2)).chunk(3, -1)
        found: Tensor = functional.scaled_dot_product_attention(q, k, v)
        return found.reshape(x.shape)


def test_an_image_has_several_rows() -> None:
    made = (
        adapted_as(OfImages(placed=placed), "x: B h w E -> B h w E", kind="attention")
        for placed in (False, True)
    )
    assert [verdict(one, "permutation") for one in made] == ["holds", "broken"]


def test_documents_in_one_row_are_apart() -> None:
    assert verdict(code.documents(), "documents-apart") == "holds"
    assert verdict(code.documents("together"), "documents-apart") == "broken"


def moved(fault: bool = False) -> Attention:
    module = nn.Linear(D, D)

    def layer(x: Tensor, place: int = 0) -> Tensor:
        ids = torch.arange(place, place + x.shape[1]).expand(x.shape[:2])
        q = rotate(module(x)[:, None], ids)
        k = rotate(x[:, None], torch.arange(x.shape[1])[None] if fault else ids)
        return functional.scaled_dot_product_attention(q, k, x[:, None])[:, 0]

    return Attention(name="moved", layer=layer, whole_layer=layer, module=module, embed=D)


def test_a_relative_layer_does_not_see_where_it_starts() -> None:
    assert verdict(moved(), "translation") == "holds"
    assert verdict(moved(fault=True), "translation") == "broken"


def padded(fault: bool = False) -> Attention:
    def hide(x: Tensor, keep: Tensor) -> Tensor:
        weights = torch.softmax((x @ x.mT).masked_fill(~keep[:, None, :], -1e9), -1)
        return (weights @ x) + (x.mean(1, keepdim=True) if fault else 0)

    def path(x: Tensor) -> Tensor:
        return torch.softmax(x @ x.mT, -1) @ x

    return Attention(
        name="padded",
        layer=lambda x: hide(x, torch.ones(x.shape[:2]).bool()),
        hide=hide,
        embed=6,
        paths={"other": path},
    )


def test_tokens_of_the_padding_do_nothing() -> None:
    assert verdict(padded(), "hidden-keys-do-nothing") == "holds"
    assert verdict(padded(), "paths-agree") == "holds"
    assert verdict(padded(fault=True), "hidden-keys-do-nothing") == "broken"
    assert verdict(padded(fault=True), "paths-agree") == "broken"


@pytest.mark.parametrize(
    "fault",
    ["", "heads by view alone", "causal", "a token of the past", "norm over tokens and causal"],
)
def test_a_layer_of_a_decoder_without_positions(fault: str) -> None:
    module = code.Block(fault)
    layer = Layer(name="block", call=module, module=module, embed=12)
    assert verdict(layer, "permutation") == ("broken" if fault else "holds")
    assert verdict(layer, "causal") == ("holds" if fault == "causal" else "broken")
    assert verdict(layer, "rows-of-batch-apart") == "holds"
    assert module.training


def test_rows_of_a_layer_are_apart() -> None:
    mixed = Layer(name="mixed", call=lambda x: x - x.mean(0), embed=4)
    assert verdict(mixed, "rows-of-batch-apart") == "broken"
    added = Additive(name="rows", added=lambda x: x + x[:1], width=4)
    assert verdict(added, "rows-of-batch-apart") == "broken"


def test_two_layers_take_a_tower_of_three_fields() -> None:
    module = nn.Sequential(code.Block(), code.Block())
    found = of(Layer(name="two", call=module, embed=12), "permutation")["permutation"]
    assert found.verdict == "not asked"
    assert found.why == "it draws random numbers (torch.bernoulli): check it in evaluation mode"
    module.eval()
    two = Layer(name="two", call=module, module=module, embed=12)
    assert verdict(two, "permutation") == "holds"


def test_modules_of_torch_run_as_they_are() -> None:
    attention = nn.MultiheadAttention(16, 4, batch_first=True)

    def call(x: Tensor) -> Tensor:
        found: Tensor = attention(x, x, x, need_weights=False)[0]
        return found

    layer = Layer(name="attention", call=call, module=attention, embed=16)
    assert verdict(layer, "permutation") == "holds"
    encoder = nn.TransformerEncoderLayer(16, 4, dim_feedforward=20, batch_first=True)
    layer = Layer(name="encoder", call=encoder, module=encoder, embed=16)
    assert verdict(layer, "permutation") == "holds"
    sequence_first = nn.MultiheadAttention(16, 4)
    wrong = Layer(
        name="wrong", call=lambda x: sequence_first(x, x, x)[0], module=sequence_first, embed=16
    )
    assert verdict(wrong, "rows-of-batch-apart") == "broken"


class _Slots(nn.Module):
    """Causal attention whose keys and values stand in buffers, which a call writes by position."""

    keys: Tensor
    values: Tensor

    def __init__(self, embed: int = 8) -> None:
        super().__init__()
        self.project = nn.Linear(embed, 3 * embed)
        for name in ("keys", "values"):
            self.register_buffer(name, torch.zeros(8, 64, embed), persistent=False)

    def forward(self, x: Tensor, input_pos: Tensor) -> Tensor:
        q, k, v = self.project(x).chunk(3, -1)
        rows = len(x)
        self.keys[:rows, input_pos], self.values[:rows, input_pos] = k, v
        seen = torch.arange(64) <= input_pos[:, None]
        return functional.scaled_dot_product_attention(
            q, self.keys[:rows], self.values[:rows], attn_mask=seen
        )


def test_buffers_can_be_cast_and_set_back_after_a_law_was_run_exactly() -> None:
    code = adapted_as(_Slots, name="Slots")
    exact(code, ("step-by-step",))
    (found,) = examine(code, laws=("stateless",))
    assert found.verdict == "holds", found.why
