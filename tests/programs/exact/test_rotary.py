"""Codes of positions over finite fields: what holds, what breaks, and what is not seen there."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from attnproof.programs.declarations import DeclaredAdditive
from attnproof.programs.exact import exact
from attnproof.programs.measure.examine import examine
from attnproof.programs.prove import prove
from attnproof.programs.subject import adapted_as
from attnproof.programs.subjects import Additive, Attention, Rotary, Subject

from . import exact_code as code
from .exact_asked import ATTENTION, OF_ROTARY, OMEGA, at, not_right, of, rotary, rotated, verdict

ROTARY = ("rotate", "interleaved", "into_halves", "complex_numbers", "written_in", "part")


@pytest.mark.parametrize("name", ROTARY)
def test_rotary_code_of_every_layout_obeys_exactly(name: str) -> None:
    found = of(code.rotary(getattr(code, name)), *OF_ROTARY)
    assert {f.verdict for f in found.values()} == {"holds"}, found


def test_a_table_made_beforehand_is_built_anew_with_positions_followed() -> None:
    assert {f.verdict for f in of(code.kept(), *OF_ROTARY).values()} == {"holds"}
    assert verdict(code.kept(wrong=True), "relative") == "broken"
    assert verdict(code.rotary(code.table), "relative") == "not asked"


def one_more(x: Tensor, positions: Tensor) -> Tensor:
    return code.rotate(x, positions + 1)


def other_uses(fault: str = "") -> Rotary:
    rotate: Callable[[Tensor, Tensor], Tensor] = code.rotate

    def three(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return rotate(q, m), rotate(rotate(k, m) if fault else k, m), v

    def shift(k: Tensor, s: int) -> Tensor:
        moved = torch.full(k.shape[:1] + k.shape[2:3], s)
        if fault:
            return torch.cat([rotate(k, moved)[..., :-1], k[..., -1:]], -1)
        return rotate(k, moved)

    def evict(k: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        places = torch.arange(4)
        at = places.expand(k.shape[0], 4)
        return rotate(k[:, :, 4:], at + (1 if fault else 0)), k[:, :, 4:], places

    def convert(q: Tensor, k: Tensor, heads: int) -> tuple[Tensor, Tensor]:
        def one(w: Tensor) -> Tensor:
            parts = w.view(heads, 2, code.D // 2, -1).transpose(1, 2)
            return parts.reshape(w.shape)

        return one(q), k if fault else one(k)

    return Rotary(
        name="uses",
        rotate=rotate,
        width=code.D,
        heads=code.H,
        all_three=three,
        shift=shift,
        evict=evict,
        convert=convert,
        converts_to=code.rotary(code.interleaved),
        paths={"other": one_more if fault else code.rotate},
    )


@pytest.mark.parametrize(
    "law",
    [
        "rotated-once",
        "shift-of-cached-keys",
        "cache-keeps-its-positions",
        "conversion-keeps-scores",
        "paths-agree",
    ],
)
def test_other_uses_of_rotates_hold_and_break(law: str) -> None:
    assert verdict(other_uses(), law) == "holds"
    assert verdict(other_uses("wrong"), law) == "broken"


def axes(fault: str = "") -> Rotary:
    def rotate(x: Tensor, positions: Tensor) -> Tensor:
        if positions.ndim == 2:
            return code.rotate(x, positions)
        which = torch.tensor([0, 0, 1, 1])
        angles = positions[..., which][:, None].float() * code.FREQUENCIES
        if fault:
            angles = angles.flip(-1)
        angles = torch.cat([angles, angles], -1)
        return x * angles.cos() + code.half(x) * angles.sin()

    return Rotary(name="axes", rotate=rotate, width=code.D, heads=2, axes=2)


def test_equal_coordinates_are_one_axis() -> None:
    assert not_right(axes()) == {}
    assert verdict(axes(), "equal-axes-are-one") == "holds"
    assert verdict(axes("flipped"), "equal-axes-are-one") == "broken"
    assert verdict(axes("flipped"), "relative") == "holds"


def test_biases_of_whole_offsets() -> None:
    assert {f.verdict for f in of(code.bias(), "last-rows", "offset-only").values()} == {"holds"}
    first = code.bias(lambda t, s: code.slopes(t, s, start=True))
    assert verdict(first, "last-rows") == "holds"  # a number for each query, which softmax drops

    def growing(t: int, s: int) -> Tensor:
        return code.slopes(t, s, start=True) * (torch.arange(s)[None] - torch.arange(t)[:, None])

    first = code.bias(growing)
    assert verdict(first, "last-rows") == "broken"
    squared = code.bias(lambda t, s: code.slopes(t, s) * torch.arange(s))
    assert verdict(squared, "offset-only") == "broken"
    assert verdict(code.bias(lambda t, s: torch.rand(4, t, s)), "last-rows") == "not asked"


def sinusoid(fault: bool = False) -> Additive:
    module = code.Sinusoid(fault)
    return Additive(
        name="sinusoid",
        added=module,
        width=code.D,
        module=module,
        make=lambda: sinusoid(fault),
        declared=DeclaredAdditive(),
    )


def test_products_of_a_table_of_sines_are_those_of_offsets() -> None:
    assert verdict(sinusoid(), "products-of-offset") == "holds"
    assert verdict(sinusoid(fault=True), "products-of-offset") == "broken"


# rotary code whose law is false where the fields do not look: `exact` never says it holds


def through(dtype: torch.dtype) -> Rotary:
    return at(lambda p: p.to(dtype).to(torch.int64))


def branch(x: Tensor, p: Tensor) -> Tensor:
    return rotated(x, p * p) if p.max() > 4096 else rotated(x, p)


def branch_of_item(x: Tensor, p: Tensor) -> Tensor:
    return rotated(x, p * p) if int(p[0, 0]) > 4096 else rotated(x, p)


def branch_of_list(x: Tensor, p: Tensor) -> Tensor:
    return rotated(x, p * p) if max(p.flatten().tolist()) > 4096 else rotated(x, p)


def branch_of_numpy(x: Tensor, p: Tensor) -> Tensor:
    return rotated(x, p * p) if p.numpy().max() > 4096 else rotated(x, p)


def written(x: Tensor, p: Tensor) -> Tensor:
    p = p.clone()
    p[p > 100] = 0
    return rotated(x, p)


def _copied(p: Tensor) -> Tensor:
    return torch.zeros(p.shape, dtype=torch.int64).copy_(p)


def _put(p: Tensor) -> Tensor:
    made = torch.zeros(p.shape, dtype=torch.int64)
    made[:] = p
    return made


POSITIONS: dict[str, Callable[[], Rotary]] = {
    "a branch on the largest": lambda: rotary(branch),
    "a branch on a number read out": lambda: rotary(branch_of_item),
    "a branch on a list": lambda: rotary(branch_of_list),
    "a branch on an array": lambda: rotary(branch_of_numpy),
    "a choice": lambda: at(lambda p: torch.where(p > 100, 0, p)),
    "a mask that is written": lambda: rotary(written),
    "a mask that is multiplied": lambda: at(lambda p: p * (p < 100)),
    "a mask that is filled": lambda: at(lambda p: p.masked_fill(p > 100, 0)),
    "an end": lambda: at(lambda p: p.clamp(max=1000)),
    "an end by minimum": lambda: at(lambda p: torch.minimum(p, torch.tensor(1000))),
    "a remainder": lambda: at(lambda p: p % 1024),
    "fmod": lambda: at(lambda p: torch.fmod(p, 1024)),
    "bits": lambda: at(lambda p: p & 1023),
    "a shift of bits": lambda: at(lambda p: p + (p >> 12)),
    "whole quotients": lambda: at(lambda p: p + p // 4096),
    "quotients rounded": lambda: at(lambda p: p + torch.div(p, 4096, rounding_mode="floor").long()),
    "cut to whole numbers": lambda: at(lambda p: p + (p / 4096).long()),
    "cut by type": lambda: at(lambda p: p + (p * 0.0001).type(torch.int64)),
    "floor": lambda: at(lambda p: p + (p / 4096).floor()),
    "round": lambda: at(lambda p: p + (p / 4096).round()),
    "ceil in place": lambda: at(lambda p: p + (p / 4096 - 0.01).ceil_()),
    "absolute values": lambda: at(lambda p: (p - 100).abs()),
    "signs": lambda: at(lambda p: p * torch.sign(p - 4096)),
    "relu": lambda: at(lambda p: torch.relu(p - 4096) + p),
    "truth": lambda: at(lambda p: p * (p // 4096 == 0).bool()),
    "a cumulative maximum": lambda: at(lambda p: p.cummax(-1).values - p.cummax(-1).values + p),
    "sorted": lambda: at(lambda p: p.sort(-1).values + p - p.sort(-1).values),
    "buckets": lambda: at(lambda p: p + torch.bucketize(p, torch.tensor([500, 4000]))),
    "a choice by a root": lambda: at(lambda p: torch.where(p.sqrt() > 20, 0, p)),
    "a choice by a quotient": lambda: at(lambda p: torch.where(40 / (p + 1) < 0.1, 0, p)),
    "copied and cut": lambda: at(lambda p: _copied(p).clamp(max=99)),
    "copied by its places": lambda: at(lambda p: _put(p).clamp(max=99)),
    "heaviside": lambda: at(lambda p: p + torch.heaviside(p - 500.5, torch.tensor(0.0))),
    **{
        f"through {dtype}": (lambda dtype=dtype: through(dtype))  # type: ignore[misc]
        for dtype in (
            torch.uint8,
            torch.int8,
            torch.int16,
            torch.uint16,
            torch.float16,
            torch.bfloat16,
            torch.float8_e4m3fn,
            torch.float8_e5m2,
        )
    },
}


@pytest.mark.parametrize("name", POSITIONS)
def test_what_is_done_to_some_positions_alone_is_not_held(name: str) -> None:
    found = of(POSITIONS[name](), "relative")["relative"]
    assert found.verdict in ("undecided", "not asked", "broken"), found.why


RIGHT_AT: dict[str, Callable[[], Rotary]] = {
    "as they are": lambda: at(lambda p: p),
    "in float32": lambda: at(lambda p: p.float()),
    "in int32": lambda: at(lambda p: p.to(torch.int32)),
    "in float64": lambda: at(lambda p: p.double()),
    "shifted": lambda: at(lambda p: p + 1000),
    "negative": lambda: at(lambda p: -p),
    "backwards": lambda: at(lambda p: 7 - 3 * p),
    "stretched": lambda: at(lambda p: p / 4),
    "stretched by a float": lambda: at(lambda p: p * 0.1),
    "in a format that has them all": lambda: at(lambda p: p.to(torch.int16), most=1000),
    "cloned and written": lambda: at(lambda p: p.clone().add_(1)),
}


@pytest.mark.parametrize("name", RIGHT_AT)
def test_sums_and_products_of_positions_hold_and_are_told(name: str) -> None:
    found = of(RIGHT_AT[name](), "relative")["relative"]
    assert found.verdict == "holds", found.why
    assert "at positions" in found.why
    assert "on the branches taken there" in found.why


def angles_written_into(x: Tensor, p: Tensor) -> Tensor:
    angle = p[:, None, :, None] * OMEGA
    cos = angle.cos()
    angle.add_(p[:, None, :, None] * 0.5)
    sin = angle.sin()
    u, v = x.chunk(2, -1)
    return torch.cat((u * cos - v * sin, u * sin + v * cos), -1)


def test_angles_that_are_written_into_are_others() -> None:
    assert verdict(rotary(angles_written_into), "norm") == "broken"


def test_heads_that_are_exchanged_are_not_alike() -> None:
    assert verdict(rotary(rotated, heads=4), "every-head-alike") == "holds"
    for wrong in (lambda x: x.flip(1), lambda x: x.roll(1, 1), lambda x: x + x.cumsum(1)):
        found = rotary(lambda x, p, wrong=wrong: rotated(wrong(x), p), heads=4)  # type: ignore[misc]
        assert verdict(found, "every-head-alike") == "broken"


def test_large_frequencies_are_no_quarters_of_a_turn() -> None:
    full = torch.tensor(2 * math.pi)
    true = rotary(lambda x, p: rotated(x, p) * torch.cos(full * p)[:, None, :, None])
    assert verdict(true, "norm") == "holds"
    wrong = rotary(lambda x, p: rotated(x, p) * torch.cos(1e7 * p)[:, None, :, None])
    assert verdict(wrong, "norm") in ("broken", "undecided")


# code of transformers, unmodified, over finite fields: used rightly it obeys, used wrongly not


def llama(variant: str = "") -> tuple[Rotary, Attention]:
    from transformers.models.llama import modeling_llama as hf
    from transformers.models.llama.configuration_llama import LlamaConfig

    config = LlamaConfig(hidden_size=32, num_attention_heads=4, num_key_value_heads=2, head_dim=8)
    rotary = hf.LlamaRotaryEmbedding(config)
    module: Any = SimpleNamespace(num_key_value_groups=2, training=False)

    def rotate(x: Tensor, positions: Tensor) -> Tensor:
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
        Rotary(name="llama", rotate=rotate, width=8, heads=4, module=rotary),
        Attention(name="llama", attend=attend, heads=4, groups=2, width=8, masks=("float",)),
    )


def test_llama_of_transformers_obeys_exactly() -> None:
    pytest.importorskip("transformers")
    rotary, attention = llama()
    assert {f.verdict for f in of(rotary, *OF_ROTARY).values()} == {"holds"}
    assert {f.verdict for f in of(attention, *ATTENTION).values()} == {"holds"}


@pytest.mark.parametrize(
    ("variant", "law"),
    [
        ("interleaved table", "relative"),
        ("cosines of the next position", "norm"),
        ("tiled heads", "groups-of-heads"),
        ("a key dropped", "order-of-keys"),
        ("a factor", "rows-sum-to-one"),
    ],
)
def test_llama_of_transformers_used_wrongly_is_refused(variant: str, law: str) -> None:
    pytest.importorskip("transformers")
    rotary, attention = llama(variant)
    kind: Subject = rotary if law in OF_ROTARY[:7] else attention
    assert verdict(kind, law) == "broken"


def row_by_row(x: Tensor, positions: Tensor) -> Tensor:
    """All rows are rotated by the same angles, and each by itself."""
    return x * 1 + _turned(x, positions) - x


def second_row_twice_as_far(x: Tensor, positions: Tensor) -> Tensor:
    """A row alone is the first one, which is rotated as it should be."""
    first = (torch.arange(len(x)) == 0)[:, None, None, None]
    return torch.where(first, _turned(x, positions), _turned(x, 2 * positions))


def _turned(x: Tensor, positions: Tensor) -> Tensor:
    angles = positions[:, None] * OMEGA
    (a, b), cos, sin = x.chunk(2, -1), angles.cos(), angles.sin()
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


@pytest.mark.parametrize(
    ("made", "wanted"), [(row_by_row, "holds"), (second_row_twice_as_far, "broken")]
)
def test_rows_that_share_their_positions_are_rotated_together(
    made: Callable[..., Tensor], wanted: str
) -> None:
    subject = adapted_as(made, "x: B H n D, positions: n -> x", width=2 * len(OMEGA))
    assert verdict(subject, "rows-of-batch-apart") == wanted
    assert [f.verdict for f in examine(subject, laws=["rows-of-batch-apart"])] == [wanted]


@pytest.mark.parametrize("keys", [False, True])
def test_neither_queries_nor_keys_look_at_other_rows(keys: bool) -> None:
    def made(q: Tensor, k: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        turned = [_turned(x, positions) for x in (q, k)]
        turned[keys] = turned[keys].flip(0)
        return turned[0], turned[1]

    told = "q: B H n D, k: B H n D, positions: n -> q, k"
    subject = adapted_as(made, told, width=2 * len(OMEGA))
    assert verdict(subject, "relative") == "broken"
    assert [f.verdict for f in prove(subject, ["relative"]).findings] == ["broken"]


@pytest.mark.parametrize("law", ["composition", "identity-at-zero", "norm"])
def test_vectors_of_another_shape_are_no_fault_of_ours(law: str) -> None:
    def shorter(x: Tensor, positions: Tensor) -> Tensor:
        return rotated(x, positions)[..., :-1]

    rotary = Rotary(name="shorter", rotate=shorter, width=2 * len(OMEGA))
    (found,) = exact(rotary, laws=(law,))
    assert found.verdict == "undecided"
    assert "it should give the same shape" in found.why
