"""Code run unmodified over finite fields: what holds, and a planted fault for every law."""

from __future__ import annotations

import copy
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from attnproof.numeric.duck import exact
from attnproof.numeric.duck.lab import LAWS
from attnproof.numeric.programs.declared import DeclaredAdditive, DeclaredAttention
from attnproof.numeric.programs.finding import Finding
from attnproof.numeric.programs.subjects import Additive, Attention, Layer, Rotary, Subject
from tests.numeric import duck_code as code


def of(subject: Subject, *laws: str) -> dict[str, Finding]:
    return {f.law: f for f in exact(subject, laws)}


def verdict(subject: Subject, law: str) -> str:
    return of(subject, law)[law].verdict


def not_right(subject: Subject) -> dict[str, str]:
    """The laws that do not hold, of those that were asked."""
    return {k: f.verdict for k, f in of(subject).items() if f.verdict not in ("holds", "not asked")}


ROTARY = ("turn", "interleaved", "into_halves", "complex_numbers", "written_in", "part")
TURNS = ("relative", "norm", "composition", "linear", "identity-at-zero", "every-head-alike",
         "follows-its-ids", "rows-of-batch-apart")  # fmt: skip


@pytest.mark.parametrize("name", ROTARY)
def test_rotary_code_of_every_layout_obeys_exactly(name: str) -> None:
    found = of(code.rotary(getattr(code, name)), *TURNS)
    assert {f.verdict for f in found.values()} == {"holds"}, found


def test_a_table_made_beforehand_is_built_anew_with_positions_followed() -> None:
    assert {f.verdict for f in of(code.kept(), *TURNS).values()} == {"holds"}
    assert verdict(code.kept(wrong=True), "relative") == "broken"
    assert verdict(code.rotary(code.table), "relative") == "not asked"


FAULTS = [
    ("relative", "mixed_layouts"), ("relative", "own_frequency"), ("relative", "longer"),
    ("norm", "mixed_layouts"), ("norm", "longer"), ("composition", "own_frequency"),
    ("composition", "reversed_later"),
    ("linear", "same_sign"), ("linear", "affine"), ("identity-at-zero", "one_more"),
    ("every-head-alike", "by_heads"), ("follows-its-ids", "ignores_ids"),
    ("follows-its-ids", "first_row"), ("rows-of-batch-apart", "first_row"),
]  # fmt: skip


@pytest.mark.parametrize(("law", "name"), FAULTS)
def test_a_fault_planted_in_rotary_code_is_seen(law: str, name: str) -> None:
    found = of(code.rotary(getattr(code, name)), law)[law]
    assert found.verdict == "broken"
    assert found.witness is not None
    assert found.witness.difference > 100 * found.witness.allowed


def other_uses(fault: str = "") -> Rotary:
    turn: Callable[[Tensor, Tensor], Tensor] = code.turn

    def three(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return turn(q, m), turn(turn(k, m) if fault else k, m), v

    def shift(k: Tensor, s: int) -> Tensor:
        moved = torch.full(k.shape[:1] + k.shape[2:3], s)
        if fault:
            return torch.cat([turn(k, moved)[..., :-1], k[..., -1:]], -1)
        return turn(k, moved)

    def evict(k: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        places = torch.arange(4)
        at = places.expand(k.shape[0], 4)
        return turn(k[:, :, 4:], at + (1 if fault else 0)), k[:, :, 4:], places

    def convert(q: Tensor, k: Tensor, heads: int) -> tuple[Tensor, Tensor]:
        def one(w: Tensor) -> Tensor:
            parts = w.view(heads, 2, code.D // 2, -1).transpose(1, 2)
            return parts.reshape(w.shape)

        return one(q), k if fault else one(k)

    return Rotary(
        name="uses", turn=turn, width=code.D, heads=code.H, all_three=three, shift=shift,
        evict=evict, convert=convert, converts_to=code.rotary(code.interleaved),
        paths={"other": code.one_more if fault else code.turn},
    )  # fmt: skip


@pytest.mark.parametrize("law", ["turned-once", "shift-of-cached-keys", "cache-keeps-its-positions",
                                 "conversion-keeps-scores", "paths-agree"])  # fmt: skip
def test_other_uses_of_turns_hold_and_break(law: str) -> None:
    assert verdict(other_uses(), law) == "holds"
    assert verdict(other_uses("wrong"), law) == "broken"


def axes(fault: str = "") -> Rotary:
    def turn(x: Tensor, positions: Tensor) -> Tensor:
        if positions.ndim == 2:
            return code.turn(x, positions)
        which = torch.tensor([0, 0, 1, 1])
        angles = positions[..., which][:, None].float() * code.FREQUENCIES
        if fault:
            angles = angles.flip(-1)
        angles = torch.cat([angles, angles], -1)
        return x * angles.cos() + code.half(x) * angles.sin()

    return Rotary(name="axes", turn=turn, width=code.D, heads=2, axes=2)


def test_equal_coordinates_are_one_axis() -> None:
    assert not_right(axes()) == {}
    assert verdict(axes(), "equal-axes-are-one") == "holds"
    assert verdict(axes("flipped"), "equal-axes-are-one") == "broken"
    assert verdict(axes("flipped"), "relative") == "holds"


ATTENTION = ("order-of-keys", "rows-sum-to-one", "shift-of-scores", "groups-of-heads",
             "heads-apart", "rows-of-batch-apart", "hidden-keys-do-nothing",
             "permutation")  # fmt: skip


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


@pytest.mark.parametrize(("law", "name"), [
    ("order-of-keys", "by_key"), ("rows-sum-to-one", "over_queries"),
    ("rows-sum-to-one", "one_denominator"), ("shift-of-scores", "one_denominator"),
    ("groups-of-heads", "tiled"), ("heads-apart", "heads_mixed"),
    ("rows-of-batch-apart", "rows_mixed"), ("hidden-keys-do-nothing", "small_mask"),
    ("permutation", "by_key"),
])  # fmt: skip
def test_a_fault_planted_in_attention_is_seen(law: str, name: str) -> None:
    assert verdict(code.attention(getattr(code, name)), law) == "broken"


def test_the_law_of_permutations_is_not_held_against_who_did_not_promise_it() -> None:
    wrong = code.attention(code.by_key)
    assert {f.law: f.verdict for f in exact(wrong)}["permutation"] == "not asked"
    promised = code.with_(wrong, declared=DeclaredAttention(causal=False))
    assert {f.law: f.verdict for f in exact(promised)}["permutation"] == "broken"


def test_steps_with_a_cache_are_the_whole_pass() -> None:
    assert verdict(code.cached(), "step-by-step") == "holds"
    assert verdict(code.cached(), "causal") == "holds"
    assert verdict(code.cached("place"), "step-by-step") == "broken"
    assert verdict(code.cached("mask"), "step-by-step") == "broken"


def test_documents_in_one_row_are_apart() -> None:
    assert verdict(code.documents(), "documents-apart") == "holds"
    assert verdict(code.documents("together"), "documents-apart") == "broken"


def moved(fault: bool = False) -> Attention:
    module = nn.Linear(code.D, code.D)

    def layer(x: Tensor, place: int = 0) -> Tensor:
        ids = torch.arange(place, place + x.shape[1]).expand(x.shape[:2])
        q = code.turn(module(x)[:, None], ids)
        k = code.turn(x[:, None], torch.arange(x.shape[1])[None] if fault else ids)
        return functional.scaled_dot_product_attention(q, k, x[:, None])[:, 0]

    return Attention(name="moved", layer=layer, whole_layer=layer, module=module, embed=code.D)


def test_a_relative_layer_does_not_see_where_it_starts() -> None:
    assert verdict(moved(), "translation") == "holds"
    assert verdict(moved(fault=True), "translation") == "broken"


def padded(fault: bool = False) -> Attention:
    def hide(x: Tensor, keep: Tensor) -> Tensor:
        weights = torch.softmax((x @ x.mT).masked_fill(~keep[:, None, :], -1e9), -1)
        return (weights @ x) + (x.mean(1, keepdim=True) if fault else 0)

    def path(x: Tensor) -> Tensor:
        return torch.softmax(x @ x.mT, -1) @ x

    return Attention(name="padded", layer=lambda x: hide(x, torch.ones(x.shape[:2]).bool()),
                     hide=hide, embed=6, paths={"other": path})  # fmt: skip


def test_tokens_of_the_padding_do_nothing() -> None:
    assert verdict(padded(), "hidden-keys-do-nothing") == "holds"
    assert verdict(padded(), "paths-agree") == "holds"
    assert verdict(padded(fault=True), "hidden-keys-do-nothing") == "broken"
    assert verdict(padded(fault=True), "paths-agree") == "broken"


@pytest.mark.parametrize("fault", ["", "heads by view alone", "causal", "a token of the past",
                                   "norm over tokens and causal"])  # fmt: skip
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
    assert found.why == "it draws random numbers (torch.bernoulli): ask it in evaluation"
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
    wrong = Layer(name="wrong", call=lambda x: sequence_first(x, x, x)[0], module=sequence_first,
                  embed=16)  # fmt: skip
    assert verdict(wrong, "rows-of-batch-apart") == "broken"


def test_biases_of_whole_offsets() -> None:
    assert {f.verdict for f in of(code.bias(), "last-rows", "offset-only").values()} == {"holds"}
    first = code.bias(lambda t, s: code.slopes(t, s, start=True))
    assert verdict(first, "last-rows") == "broken"
    squared = code.bias(lambda t, s: code.slopes(t, s) * torch.arange(s))
    assert verdict(squared, "offset-only") == "broken"
    assert verdict(code.bias(lambda t, s: torch.rand(4, t, s)), "last-rows") == "not asked"


def sinusoid(fault: bool = False) -> Additive:
    module = code.Sinusoid(fault)
    return Additive(name="sinusoid", added=module, width=code.D, module=module,
                    make=lambda: sinusoid(fault), declared=DeclaredAdditive())  # fmt: skip


def test_products_of_a_table_of_sines_are_those_of_offsets() -> None:
    assert verdict(sinusoid(), "products-of-offset") == "holds"
    assert verdict(sinusoid(fault=True), "products-of-offset") == "broken"


# what has no meaning in a field, and what must not be said


def test_an_operation_without_meaning_is_named() -> None:
    sort = Layer(name="sort", call=lambda x: x.sort(1).values, embed=4)
    found = of(sort, "permutation")["permutation"]
    assert found.verdict == "not asked"
    assert found.why == "torch.sort has no meaning in a finite field"
    choose = Layer(name="choose", call=lambda x: x if x.sum() > 0 else -x, embed=4)
    why = of(choose, "permutation")["permutation"].why
    assert why == "torch.gt has no meaning in a finite field"
    read = Layer(name="read", call=lambda x: x * float(x[0, 0, 0]), embed=4)
    why = of(read, "permutation")["permutation"].why
    assert why == "reading a number out of a tensor has no meaning in a finite field"


def test_what_the_field_does_not_know_is_not_called_broken() -> None:
    def norm(x: Tensor) -> Tensor:  # the square of a root, which the field does not know
        square = x.pow(2).sum(-1, keepdim=True)
        return x * torch.rsqrt(square).pow(2) * square

    def path(x: Tensor) -> Tensor:
        return x * 1

    both = Attention(name="roots", layer=norm, paths={"plain": path}, embed=4)
    found = of(both, "paths-agree")["paths-agree"]
    assert found.verdict == "undecided"
    assert "does not know all relations" in found.why


def test_whole_numbers_may_be_read_out_of_a_tensor() -> None:
    def call(x: Tensor) -> Tensor:
        order = torch.arange(x.shape[1]).tolist()
        return torch.stack([x[:, i] for i in order], 1) * int(torch.arange(3).max())

    assert verdict(Layer(name="lists", call=call, embed=4), "permutation") == "holds"
    listed = Layer(name="listed", call=lambda x: torch.tensor(x.tolist()), embed=4)
    why = of(listed, "permutation")["permutation"].why
    assert why == "reading numbers out of a tensor has no meaning in a finite field"


def test_code_that_asks_for_contiguous_tensors_gets_them() -> None:
    def call(x: Tensor) -> Tensor:
        return x.view(-1, x.shape[-1]).view(x.shape)

    layer = Layer(name="view", call=call, embed=4)
    assert verdict(layer, "rows-of-batch-apart") == "holds"


def test_what_raises_is_undecided_and_told() -> None:
    def call(x: Tensor) -> Tensor:
        raise RuntimeError(f"no such thing as {x.ndim} axes")

    found = of(Layer(name="raises", call=call, embed=4), "permutation")["permutation"]
    assert found.verdict == "undecided"
    assert "no such thing" in found.why


def test_a_refusal_that_the_code_hides_in_another_error_is_still_told() -> None:
    def call(x: Tensor) -> Tensor:
        try:
            return x.sort(1).values
        except Exception:  # noqa: BLE001
            raise ValueError("something went wrong") from None

    found = of(Layer(name="hides", call=call, embed=4), "permutation")["permutation"]
    assert found.why == "torch.sort has no meaning in a finite field"


def test_nothing_stays_behind_in_the_module() -> None:
    class Caching(nn.Module):
        cos: Any = None

        def forward(self, x: Tensor, positions: Tensor) -> Tensor:
            if self.cos is None:
                angles = torch.arange(64)[:, None] * code.FREQUENCIES
                self.cos, self.sin = (torch.cat([t, t], -1) for t in (angles.cos(), angles.sin()))
            cos, sin = self.cos[positions][:, None], self.sin[positions][:, None]
            found: Tensor = x * cos + code.half(x) * sin
            return found

    module = Caching()
    x, at = torch.randn(1, 2, 3, code.D), torch.arange(3)[None]
    assert verdict(code.rotary(module, module=module, most=63), "relative") == "holds"
    assert module.cos is None
    assert type(module(x, at)) is Tensor


def test_copies_carry_what_was_carried() -> None:
    def call(x: Tensor) -> Tensor:
        found: Tensor = x - copy.deepcopy(x)
        return found

    same = Attention(name="copy", layer=call, paths={"none": lambda x: x * 0}, embed=4)
    assert verdict(same, "paths-agree") == "holds"


def test_what_stays_behind_elsewhere_is_numbers() -> None:
    seen: list[Tensor] = []

    def call(x: Tensor) -> Tensor:
        seen.append(x)
        return x + (seen[0] * 0).sum()

    assert verdict(Layer(name="keeps", call=call, embed=4), "permutation") in ("holds", "undecided")
    assert type(seen[0] + 1) is Tensor
    assert torch.isfinite(seen[0] + 1).all()


def test_the_chance_of_a_false_law_is_told_where_it_is_known() -> None:
    assert "Schwartz–Zippel" in of(code.rotary(), "norm")["norm"].why
    assert "no bound is known" in of(code.attention(), "order-of-keys")["order-of-keys"].why
    assert "no bound is known" in of(code.rotary(code.written_in), "norm")["norm"].why


def test_findings_come_in_the_order_of_laws_and_are_told() -> None:
    heard: list[Finding] = []
    found = exact(code.rotary(), ["norm", "relative", "grid-steps"], tell=heard.append)
    assert [f.law for f in found] == ["relative", "norm", "grid-steps"]
    assert list(found) == heard
    assert found[2].verdict == "not asked"
    assert {f.leg for f in found} == {"exact"}
    assert exact(code.rotary(), ["norm"], seed=3)[0].seed == 3


def test_every_law_is_known_by_its_name() -> None:
    from attnproof.numeric.programs.laws import laws_of

    for law, kind in LAWS:
        assert law in {known.id for known in laws_of(kind)}


# transformers, unmodified


def llama(variant: str = "") -> tuple[Rotary, Attention]:
    from transformers.models.llama import modeling_llama as hf
    from transformers.models.llama.configuration_llama import LlamaConfig

    config = LlamaConfig(hidden_size=32, num_attention_heads=4, num_key_value_heads=2, head_dim=8)
    rotary = hf.LlamaRotaryEmbedding(config)
    module: Any = SimpleNamespace(num_key_value_groups=2, training=False)

    def turn(x: Tensor, positions: Tensor) -> Tensor:
        cos, sin = rotary(x, positions)
        if variant == "interleaved table":
            cos, sin = (t[..., :4].repeat_interleave(2, -1) for t in (cos, sin))
        if variant == "cosines of the next position":
            cos = rotary(x, positions + 1)[0]
        found: Tensor = hf.apply_rotary_pos_emb(x, x, cos, sin)[0]
        return found

    def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        if variant == "tiled heads":
            k, v = k[:, [0, 1, 0, 1]], v[:, [0, 1, 0, 1]]
            groups: Any = SimpleNamespace(num_key_value_groups=1, training=False)
            found: Tensor = hf.eager_attention_forward(groups, q, k, v, mask, 8**-0.5)[0]
            return found.transpose(1, 2)
        if variant == "a key dropped":
            k, v = k[:, :, :-1], v[:, :, :-1]
            mask = None if mask is None else mask[..., :-1]
        found = hf.eager_attention_forward(module, q, k, v, mask, 8**-0.5)[0].transpose(1, 2)
        return found * 1.001 if variant == "a factor" else found

    return (
        Rotary(name="llama", turn=turn, width=8, heads=4, module=rotary),
        Attention(name="llama", attend=attend, heads=4, groups=2, width=8, masks=("float",)),
    )


def test_llama_of_transformers_obeys_exactly() -> None:
    pytest.importorskip("transformers")
    rotary, attention = llama()
    assert {f.verdict for f in of(rotary, *TURNS).values()} == {"holds"}
    assert {f.verdict for f in of(attention, *ATTENTION).values()} == {"holds"}


@pytest.mark.parametrize(("variant", "law"), [
    ("interleaved table", "relative"), ("cosines of the next position", "norm"),
    ("tiled heads", "groups-of-heads"), ("a key dropped", "order-of-keys"),
    ("a factor", "rows-sum-to-one"),
])  # fmt: skip
def test_llama_of_transformers_used_wrongly_is_refused(variant: str, law: str) -> None:
    pytest.importorskip("transformers")
    rotary, attention = llama(variant)
    kind: Subject = rotary if law in TURNS[:7] else attention
    assert verdict(kind, law) == "broken"
