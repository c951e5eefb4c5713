"""Proofs about traced programs: real code is proved, and its false neighbours are refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.fx import config
from torch.nn import functional

from attnproof.programs.declarations import DeclaredAttention
from attnproof.programs.measure.examine import examine
from attnproof.programs.prove import Traced, proof_search, prove
from attnproof.programs.prove.exporting import read, traced
from attnproof.programs.subject import adapted_as
from attnproof.programs.subjects import Additive, Attention, Bias, Layer, Mask, Rotary, Subject
from attnproof.symbolic.decision import Decision
from attnproof.symbolic.prove import Effort, decide
from attnproof.symbolic.statement import Statement
from tests.bugs.corpus import all_bugs
from tests.numeric import traced_code as code

P02 = next(one for one in all_bugs() if one.id == "P02")  # frames, rows and columns
CAUSAL = DeclaredAttention(causal=True)
ROTATING = {
    "relative",
    "norm",
    "composition",
    "linear",
    "identity-at-zero",
    "every-head-alike",
    "follows-its-ids",
    "rows-of-batch-apart",
}


def verdicts(found: Traced) -> dict[str, str]:
    return {finding.law: finding.verdict for finding in found.findings}


def rotary(name: str) -> Rotary:
    return Rotary(name=name, rotate=getattr(code, name), width=code.WIDTH)


# Where memory is written to, and where too much would have to be traced at one head, all is not.
AT_LEAST = {"written_in_place": ("B, H, n ≥ 2",)}


@pytest.mark.parametrize("name", code.ROTARY)
def test_rotary_code_is_proved_in_every_form(name: str) -> None:
    found = prove(rotary(name))
    assert not found.why
    assert verdicts(found) == dict.fromkeys(ROTATING, "holds")


@pytest.mark.usefixtures("lengths_of_one")
@pytest.mark.parametrize("name", ["half", *AT_LEAST])
def test_what_is_fixed_is_a_condition(name: str) -> None:
    found = prove(rotary(name), ["norm"])
    assert verdicts(found) == {"norm": "holds"}
    assert set(found.guards) == {"D = 16", *AT_LEAST.get(name, ())}


def test_positions_of_two_axes() -> None:
    found = prove(replace(rotary("two_axes"), axes=2))
    assert verdicts(found) == dict.fromkeys(ROTATING, "holds")


def test_positions_of_three_axes_with_a_block_of_channels_each() -> None:
    laws = ("relative", "linear")
    assert verdicts(prove(P02.correct(), laws)) == dict.fromkeys(laws, "holds")
    assert verdicts(prove(P02.mutant(), laws)) == {"relative": "broken", "linear": "holds"}


def dealt(x: Tensor, p: Tensor, cosines: list[int], sines: list[int]) -> Tensor:
    """Neighbours rotated at the coordinate that a list deals out to their pair."""
    waves = 10000.0 ** (-torch.arange(4) / 4)
    angles = p[..., cosines] * waves
    other = angles if sines == cosines else p[..., sines] * waves
    cos, sin = angles.cos()[:, None], other.sin()[:, None]
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * cos - b * sin, b * cos + a * sin), -1).flatten(-2)


def test_coordinates_that_a_list_deals_out_to_pairs() -> None:
    def of(cosines: list[int], sines: list[int]) -> dict[str, str]:
        def rotate(x: Tensor, p: Tensor) -> Tensor:
            return dealt(x, p, cosines, sines)

        laws = ("relative", "norm", "linear")
        return verdicts(prove(Rotary(name="dealt", rotate=rotate, width=8, axes=3), laws))

    assert of([0, 0, 1, 2], [0, 0, 1, 2]) == dict.fromkeys(("relative", "norm", "linear"), "holds")
    wrong = of([0, 0, 1, 2], [0, 1, 1, 2])
    assert wrong["linear"] == "holds"
    assert "holds" not in (wrong["norm"], wrong["relative"])


def test_the_rotary_code_of_transformers() -> None:
    llama = pytest.importorskip("transformers.models.llama.modeling_llama")
    from transformers import LlamaConfig

    table = llama.LlamaRotaryEmbedding(LlamaConfig(hidden_size=64, num_attention_heads=4))

    def rotate(x: Tensor, p: Tensor) -> Tensor:
        found: Tensor = llama.apply_rotary_pos_emb(x, x, *table(x, p))[0]
        return found

    found = prove(Rotary(name="llama", rotate=rotate, width=16, module=table))
    assert verdicts(found) == dict.fromkeys(ROTATING, "holds")


def test_code_that_counts_its_own_positions() -> None:
    subject = Rotary(
        name="running", rotate=lambda x, _: code.running(x), running=code.running, width=code.WIDTH
    )
    assert set(verdicts(prove(subject)).values()) == {"holds"}


@pytest.mark.parametrize("name", ["mixed_layouts", "absolute_in_the_score"])
def test_false_neighbours_of_rotary_code_are_refused_with_a_witness(name: str) -> None:
    found = prove(rotary(name), laws=("relative", "norm", "linear"))
    assert verdicts(found) == {"relative": "broken", "norm": "broken", "linear": "holds"}
    witness: Any = next(f.witness for f in found.findings if f.law == "relative")
    assert witness.difference > 100 * witness.allowed


def test_a_stored_table_is_any_numbers_but_for_cosines() -> None:
    """Of other numbers that were computed before only what any obey is proved."""
    found = {f.law: f for f in prove(rotary("stored_table")).findings}
    assert found["relative"].verdict == "holds"
    table = torch.rand(64, 16)
    scaled = replace(rotary("stored_table"), rotate=lambda x, p: x * table[p][:, None])
    found = {f.law: f for f in prove(scaled, ("linear", "follows-its-ids", "relative")).findings}
    assert found["linear"].verdict == found["follows-its-ids"].verdict == "holds"
    assert found["relative"].verdict != "holds"


def test_keys_rotated_by_code_that_is_not_read_prove_nothing() -> None:
    def key(x: Tensor, p: Tensor) -> Tensor:
        return code.half(x, p) + torch.rand(())

    found = prove(replace(rotary("half"), key=key), laws=("relative", "norm"))
    assert not found.findings
    assert "aten.rand" in found.why


def layer(module: nn.Module, **more: object) -> Attention:
    module.eval()
    return Attention(name="layer", layer=module, module=module, embed=16, **more)  # type: ignore[arg-type]


LAYERS: dict[str, Callable[[], nn.Module]] = {
    "fused": code.Heads,
    "by hand": lambda: code.Heads(by_hand=True),
    "grouped": lambda: code.Heads(groups=2),
    "grouped by hand": lambda: code.Heads(groups=2, by_hand=True),
    "gated block": code.Gated,
    "encoder": lambda: nn.TransformerEncoderLayer(16, 4, 32, batch_first=True),
    "encoder, norms first": lambda: nn.TransformerEncoderLayer(
        16, 4, 32, batch_first=True, norm_first=True, activation="gelu"
    ),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_are_proved_equivariant_for_all_lengths_and_weights(name: str) -> None:
    found = prove(layer(LAYERS[name]()), laws=("permutation", "rows-of-batch-apart"))
    assert not found.why
    assert verdicts(found) == {"permutation": "holds", "rows-of-batch-apart": "holds"}


@pytest.mark.parametrize("weights", [False, True])
def test_torch_multihead_attention(weights: bool) -> None:
    module = nn.MultiheadAttention(16, 4, batch_first=True).eval()

    def attend(x: Tensor) -> Tensor:
        found: Tensor = module(x, x, x, need_weights=weights)[0]
        return found

    subject = Attention(name="torch", layer=attend, module=module, embed=16)
    assert verdicts(prove(subject, ("permutation",))) == {"permutation": "holds"}


@pytest.mark.parametrize("by_hand", [False, True])
def test_a_causal_layer_is_causal_and_no_longer_equivariant(by_hand: bool) -> None:
    module = code.Heads(causal=True, by_hand=by_hand)
    told = prove(layer(module, declared=CAUSAL))
    assert verdicts(told) == {
        "permutation": "not asked",
        "rows-of-batch-apart": "holds",
        "causal": "holds",
    }
    if by_hand:
        proof = next(f for f in told.findings if f.law == "causal")
        assert any("≤ 64" in condition.text for condition in proof.assuming)
    assert verdicts(prove(layer(module), laws=("permutation",))) == {"permutation": "broken"}


def test_a_layer_that_sees_the_future_is_refused() -> None:
    found = prove(layer(code.Heads(), declared=CAUSAL), laws=("causal",))
    assert verdicts(found) == {"causal": "broken"}


def attention(**more: object) -> Attention:
    return Attention(name="attend", heads=4, groups=4, width=8, **more)  # type: ignore[arg-type]


def fused(
    q: Tensor, k: Tensor, v: Tensor, _: object, *, is_causal: bool = False, enable_gqa: bool = False
) -> Tensor:
    return functional.scaled_dot_product_attention(
        q, k, v, is_causal=is_causal, enable_gqa=enable_gqa
    )


def test_attention_on_queries_keys_and_values() -> None:
    found = prove(attention(attend=fused))
    assert {f.law for f in found.findings if f.verdict == "holds"} == {
        "order-of-keys",
        "permutation",
        "queries-apart",
        "rows-sum-to-one",
        "rows-of-batch-apart",
    }
    causal = prove(
        attention(attend=lambda q, k, v, m: fused(q, k, v, m, is_causal=True), declared=CAUSAL)
    )
    assert verdicts(causal)["causal"] == "holds"
    grouped = replace(
        attention(attend=lambda q, k, v, m: fused(q, k, v, m, enable_gqa=True)), groups=2
    )
    assert verdicts(prove(grouped, ("rows-sum-to-one",))) == {"rows-sum-to-one": "holds"}


def test_softmax_over_queries_is_refused() -> None:
    def attend(q: Tensor, k: Tensor, v: Tensor, _: object) -> Tensor:
        return (q @ k.mT).softmax(-2) @ v

    found = prove(attention(attend=attend), ("rows-sum-to-one",))
    assert verdicts(found) == {"rows-sum-to-one": "broken"}


CASES: list[tuple[Subject, dict[str, str]]] = [
    (Bias(name="alibi", heads=8, bias=code.alibi), {"offset-only": "holds", "last-rows": "holds"}),
    (
        Bias(name="alibi of no cache", heads=8, bias=code.alibi_from_the_start),
        {"offset-only": "holds", "last-rows": "broken"},
    ),
    (
        Mask(name="causal", mask=code.window_of_queries, declared=CAUSAL),
        {
            "causal": "holds",
            "past-is-used": "holds",
            "alignment": "holds",
            "true-means-visible": "holds",
            "window-as-declared": "not asked",
        },
    ),
    (
        Mask(name="causal from the start", mask=code.from_the_start, declared=CAUSAL),
        {
            "causal": "broken",
            "past-is-used": "broken",
            "alignment": "broken",
            "true-means-visible": "holds",
            "window-as-declared": "not asked",
        },
    ),
    (
        Additive(name="computed", added=code.Added(stored=False), width=16),
        {"products-of-offset": "holds", "rows-of-batch-apart": "holds"},
    ),
    (
        Additive(name="stored", added=code.Added(stored=True), width=16),
        {"products-of-offset": "holds", "rows-of-batch-apart": "holds"},
    ),
    (
        Layer(name="mean of the row before", call=lambda x: x + x.roll(1, 1), embed=16),
        {"permutation": "broken", "rows-of-batch-apart": "holds", "causal": "not asked"},
    ),
    (
        Layer(name="mean over the batch", call=lambda x: x - x.mean(0, keepdim=True), embed=16),
        {"permutation": "holds", "rows-of-batch-apart": "broken", "causal": "not asked"},
    ),
]


@pytest.mark.parametrize(("subject", "wanted"), CASES, ids=[s.name for s, _ in CASES])
def test_biases_masks_tables_and_layers(subject: Subject, wanted: dict[str, str]) -> None:
    assert verdicts(prove(subject)) == wanted


def test_the_buckets_of_t5() -> None:
    t5 = pytest.importorskip("transformers.models.t5.modeling_t5")
    from transformers import T5Config

    module = t5.T5Attention(T5Config(), has_relative_attention_bias=True)
    subject = Bias(
        name="t5", heads=8, bias=lambda t, s: module.compute_bias(t, s)[0], module=module
    )
    assert verdicts(prove(subject, ("offset-only",))) == {"offset-only": "holds"}


def test_an_unknown_operation_is_named() -> None:
    found = prove(Layer(name="places", call=lambda x: x.argmax(1), embed=16))
    assert found.unread == ("aten.argmax.default",)
    assert "aten.argmax.default" in found.why
    assert not found.findings


def test_code_that_cannot_be_exported_says_why() -> None:
    def call(x: Tensor) -> Tensor:
        return x if float(x.sum()) > 0 else -x

    found = prove(Layer(name="branches on data", call=call, embed=16))
    assert "torch.export refuses" in found.why
    assert not found.findings


def test_no_lines_of_code_are_noted_for_operations() -> None:
    before = config.do_not_emit_stack_traces
    graph = read(traced(torch.relu, [torch.ones(2, 3)], [[True, False]]))
    assert graph.operations
    assert not any(node.meta.get("stack_trace") for node in graph.nodes)
    assert config.do_not_emit_stack_traces == before


def test_a_linear_map_whose_weight_is_an_input_is_not_folded() -> None:
    """As a function of its row alone it would be equivariant; it looks at the first token."""

    def call(x: Tensor) -> Tensor:
        return functional.linear(x, x[0, 0, :, None] * torch.ones(16))

    first = Layer(name="weight from the first token", call=call, embed=16)
    assert verdicts(prove(first, ("permutation",))) == {"permutation": "broken"}


def test_activations_of_other_settings_are_other_functions() -> None:
    def slopes(other: float) -> Layer:
        def call(x: Tensor) -> Tensor:
            return x.cumsum(1) * (functional.leaky_relu(x, 0.5) - functional.leaky_relu(x, other))

        return Layer(name="two slopes", call=call, embed=16)

    found = prove(slopes(0.25), laws=("permutation",))
    assert verdicts(found) == {"permutation": "broken"}, found.why
    found = prove(slopes(0.5), laws=("permutation",))
    assert verdicts(found) == {"permutation": "holds"}, found.why


@pytest.mark.parametrize(("law", "waits"), [("permutation", False), ("rows-of-batch-apart", True)])
def test_no_proof_is_waited_for_where_small_inputs_break_a_law(
    law: str, waits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    efforts: list[float] = []

    def undecided(statement: Statement, effort: Effort) -> Decision:
        efforts.append(effort.whole)
        return decide(statement, effort=Effort(refuting=False, whole=0.0))

    monkeypatch.setattr(proof_search, "decide", undecided)
    later = Layer(name="adds what came before", call=lambda x: x.cumsum(1), embed=16)
    found = prove(later, [law], seconds=50.0)
    assert verdicts(found) == {law: "undecided" if waits else "broken"}
    assert efforts
    assert all((effort > 1.0) is waits for effort in efforts)


def rotated(x: Tensor, y: Tensor | None = None, offset: Any = 0, *, eager: bool = False) -> Any:
    """Rotate neighbours by positions from offset on; ``eager``: not while it is traced."""
    if eager and torch.compiler.is_exporting():
        raise TypeError("wanted to run")
    if y is not None:
        return rotated(x, offset=offset), rotated(y, offset=offset)
    at = torch.arange(x.shape[2]) + offset
    angles = (at[:, None] * 100.0 ** (-torch.arange(4) / 4)).repeat_interleave(2, -1)
    turned = torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)
    return x * angles.cos() + turned * angles.sin()


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (
            "x: B H n 8, y: B H n 8, offset = p -> x, y",
            "`rotate` has no graph: the code is given the position of the first token",
        ),
        ("x: B H n 8, eager = True -> x", "torch.export refuses `running`: TypeError: wanted to"),
    ],
)
def test_what_attnproof_cannot_do_in_one_call_is_not_said_of_torch(line: str, why: str) -> None:
    found = prove(adapted_as(rotated, line, kind="rotary"))
    assert found.why.startswith(why)
    assert "holds" not in verdicts(found).values()


def late(x: Tensor, at: Tensor) -> Tensor:
    """Rotate neighbours by positions from that of the first token on; from 4 on, double them."""
    first = at[:, None, None, None]
    angles = first + torch.arange(x.shape[2])[:, None].expand(-1, x.shape[-1])
    turned = torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)
    return torch.where(first < 4, x * angles.cos() + turned * angles.sin(), 2 * x)


@pytest.mark.parametrize(
    ("code", "line"),
    [(rotated, "x: B H n 8, offset = p -> x"), (late, "x: B H n 8, at: B positions -> x")],
)
def test_code_given_its_first_position_is_proved_from_0(code: Any, line: str) -> None:
    subject = adapted_as(code, line, kind="rotary")
    found = prove(subject, ["relative", "norm"])
    assert verdicts(found) == {"relative": "holds", "norm": "holds"}
    for one in found.findings:
        assert "the first token is at position 0" in [told.text for told in one.assuming]
    broken = {one.law for one in examine(subject, laws=["norm"]) if one.verdict == "broken"}
    assert broken == ({"norm"} if code is late else set())


def test_an_empty_list_is_left_out_of_a_concatenation() -> None:
    def continued(x: Tensor) -> Tensor:
        return torch.cat((torch.tensor([]), x), 1) - x.mean(1, keepdim=True)

    def beside_one(x: Tensor) -> Tensor:
        return torch.cat((x[:, :1], x[:, 1:] * 2, torch.tensor([])), 1)

    found = prove(Layer(name="continued", call=continued, embed=16), ["permutation"])
    assert verdicts(found) == {"permutation": "holds"}
    found = prove(Layer(name="beside_one", call=beside_one, embed=16), ["permutation"])
    assert verdicts(found) == {"permutation": "broken"}
