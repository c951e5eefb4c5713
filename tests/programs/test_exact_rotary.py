"""Codes of positions over finite fields: what holds, and a planted fault for every law."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from attnproof.programs.declarations import DeclaredAdditive
from attnproof.programs.subjects import Additive, Rotary
from tests.programs import exact_code as code
from tests.programs.exact_asked import OF_ROTARY, not_right, of, verdict

ROTARY = ("rotate", "interleaved", "into_halves", "complex_numbers", "written_in", "part")


@pytest.mark.parametrize("name", ROTARY)
def test_rotary_code_of_every_layout_obeys_exactly(name: str) -> None:
    found = of(code.rotary(getattr(code, name)), *OF_ROTARY)
    assert {f.verdict for f in found.values()} == {"holds"}, found


def test_a_table_made_beforehand_is_built_anew_with_positions_followed() -> None:
    assert {f.verdict for f in of(code.kept(), *OF_ROTARY).values()} == {"holds"}
    assert verdict(code.kept(wrong=True), "relative") == "broken"
    assert verdict(code.rotary(code.table), "relative") == "not asked"


FAULTS = [
    ("relative", "mixed_layouts"),
    ("relative", "own_frequency"),
    ("relative", "longer"),
    ("norm", "mixed_layouts"),
    ("norm", "longer"),
    ("composition", "own_frequency"),
    ("composition", "reversed_later"),
    ("linear", "same_sign"),
    ("linear", "affine"),
    ("identity-at-zero", "one_more"),
    ("every-head-alike", "by_heads"),
    ("follows-its-ids", "ignores_ids"),
    ("follows-its-ids", "first_row"),
    ("rows-of-batch-apart", "first_row"),
]


@pytest.mark.parametrize(("law", "name"), FAULTS)
def test_a_fault_planted_in_rotary_code_is_seen(law: str, name: str) -> None:
    found = of(code.rotary(getattr(code, name)), law)[law]
    assert found.verdict == "broken"
    assert found.witness is not None
    assert found.witness.difference > 100 * found.witness.allowed


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
        paths={"other": code.one_more if fault else code.rotate},
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
