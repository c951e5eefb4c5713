"""What rotary code is, read off it: layouts, bases, scalings, precision, axes; and its faults."""

from __future__ import annotations

import time
from typing import Any

import pytest
import torch
from torch import Tensor

from attnproof.programs.execution.draw import Draw
from attnproof.programs.finding import simplest
from attnproof.programs.identify import identify
from attnproof.programs.reading.ladders import MeasuredFrequencies, fit
from attnproof.programs.reading.rotations import layout_name
from attnproof.programs.reading.scalings import by_parts, ladder, ntk_base, ramp_of, yarn
from attnproof.programs.subjects import Rotary

from .identified import half, neighbours, part, rotary

BRAIN, HALF = torch.bfloat16, torch.float16


def test_the_sentence_of_the_example() -> None:
    omega = yarn(ladder(500_000, 32), 4, *ramp_of(500_000, 32, 32768, 32, 1))
    start = time.perf_counter()
    found = identify(rotary(64, omega=omega, length=1.1386294361119891, head=128))
    assert found.sentence == (
        "rotary, half-split, width 64 of 128, base 500000, YaRN factor 4, original length 32768, "
        "attention factor 1.139, angles computed in float32, exact to position 262144 at 1e-2"
    )
    right = "rotate_half is right for half-split layout: the table pairs channel i with i + 32 and"
    assert found.answers == (f"{right} so does the rotation",)
    assert time.perf_counter() - start < 10  # 0.1 s alone
    assert len(found.numbers["frequencies"]) == 32
    read, radius = found.numbers["frequencies"], found.numbers["radius"]
    for a, b, r in zip(read, omega.tolist(), radius, strict=True):
        assert abs(a - b) <= r + 1e-6 * b


@pytest.mark.parametrize(
    ("code", "layout"), [(rotary(), "half"), (rotary(swap=neighbours, tiled=False), "interleaved")]
)
def test_both_layouts_are_right(code: Rotary, layout: str) -> None:
    found = identify(code)
    assert part(found, "layout").value == layout
    assert part(found, "base").value == 10_000
    assert part(found, "base").certain
    assert found.answers[0].startswith("rotate_half is right")


@pytest.mark.parametrize(
    ("code", "answer"),
    [
        (
            rotary(swap=neighbours),
            "no: the table is half-split and the rotation pairs neighbours: the relative law fails",
        ),
        (
            rotary(tiled=False),
            (
                "no: the table is interleaved and the rotation pairs channel i with i + 16: the "
                "relative "
                "law fails"
            ),
        ),
        (
            rotary(swap=lambda x: torch.cat(x.chunk(2, -1)[::-1], -1)),
            (
                "no: no minus sign stands before one of the two sines, so that pairs are not "
                "rotated: the "
                "relative law fails"
            ),
        ),
    ],
)
def test_layouts_that_do_not_go_together_are_refused(code: Rotary, answer: str) -> None:
    found = identify(code)
    assert found.answers == (answer,)
    assert found.part("base") is None
    assert "whose pairs are not rotated" in found.sentence


def test_the_other_way_round_is_a_convention() -> None:
    found = identify(rotary(swap=lambda x: -half(x)))
    assert part(found, "sign").value == "transposed"
    assert found.answers[0].startswith("rotate_half is right")
    assert part(identify(rotary()), "sign").value == "textbook"


@pytest.mark.parametrize(
    ("options", "words", "exact"),
    [
        ({"frequencies": BRAIN}, "frequencies rounded to bfloat16", (1, 64)),
        ({"frequencies": HALF}, "frequencies rounded to float16", (16, 128)),
        ({"positions": BRAIN}, "positions rounded to bfloat16", (256, 256)),
        ({"positions": HALF}, "positions rounded to float16", (2048, 2048)),
        (
            {"angles": BRAIN},
            (
                "positions rounded to bfloat16 and frequencies rounded to bfloat16 and "
                "angles rounded to bfloat16"
            ),
            (1, 32),
        ),
        ({}, "angles computed in float32", (1 << 17, 1 << 20)),
        ({"wide": True}, "angles computed in float64", ((1 << 20) - 1, 1 << 20)),
    ],
)
def test_the_precision_of_angles(options: Any, words: str, exact: tuple[int, int]) -> None:
    found = identify(rotary(**options))
    assert part(found, "angles").words == words
    assert exact[0] <= part(found, "exact to").value <= exact[1]
    assert part(found, "base").value == 10_000
    limited = any("compute positions" in answer for answer in found.answers)
    assert limited == ("rounded" in words)


def test_a_position_that_is_no_number_any_more() -> None:
    found = identify(rotary(positions=HALF))
    assert part(found, "overflow").value == 65536
    assert identify(rotary()).part("overflow") is None


def test_short_tables_leave_precision_and_length_open() -> None:
    few = part(identify(rotary(most=64)), "angles")
    assert not few.certain
    assert "float16" in few.evidence
    assert part(identify(rotary()), "angles").certain
    found = identify(rotary(table=BRAIN))
    assert part(found, "table").words == "cosines and sines rounded to bfloat16"
    assert part(found, "angles").words == "angles computed in float32 or finer"
    assert identify(rotary(), Draw(dtype=BRAIN)).part("base") == part(
        identify(rotary(), Draw(dtype=BRAIN)), "base"
    )
    assert part(identify(rotary(), Draw(dtype=BRAIN)), "base").value == 10_000


@pytest.mark.parametrize("stored", [torch.float32, HALF, BRAIN])
@pytest.mark.parametrize("pairs", [8, 64])
def test_every_scaling_is_told_from_the_others(stored: torch.dtype, pairs: int) -> None:
    pure = ladder(500_000, pairs)
    ladders = {
        "": pure,
        "linear": pure / 8,
        "ntk": ladder(ntk_base(10_000, 8, pairs), pairs),
        "llama3": by_parts(pure, 8, 8192, 1, 4),
        "yarn": yarn(pure, 4, *ramp_of(500_000, pairs, 32768, 32, 1)),
    }
    for name, omega in ladders.items():
        if stored != torch.float32 and name == "ntk":
            continue  # a base that is known to three digits is no evidence of a factor
        used = omega.float().to(stored).double()
        found: Any = fit(MeasuredFrequencies(used, used * 1e-7))
        assert found.scaling == name
        assert found.stored == stored
        factor = {"": None, "yarn": 4}.get(name, 8)
        assert found.values.get("factor") == factor
        assert found.base is not None
        assert found.base == 500_000 or name == "ntk"


def test_a_ladder_of_no_formula_is_said_to_have_none() -> None:
    drawn = torch.rand(16, generator=torch.Generator().manual_seed(0)).double() + 0.1
    assert fit(MeasuredFrequencies(drawn, drawn * 1e-7)) is None
    found = identify(rotary(omega=drawn))
    assert part(found, "base").value is None
    assert not part(found, "base").certain
    assert found.part("exact to") is None
    bent = ladder(10_000, 16)
    bent[5] *= 1.0001
    assert fit(MeasuredFrequencies(bent, bent * 1e-7)) is None
    one = identify(rotary(2))
    assert part(one, "base").value is None
    assert "one frequency 1" in one.sentence
    alike = identify(rotary(8, omega=torch.ones(4, dtype=torch.float64)))
    assert alike.traceback == ""
    assert part(alike, "scaling").words == "all frequencies equal, 1"


def test_a_base_of_another_value_is_not_rounded_to_a_known_one() -> None:
    assert part(identify(rotary(base=10_001)), "base").value == 10_001
    assert simplest(9_999.98, 10_000.03) == 10_000
    with pytest.raises(ValueError, match="wanted an interval"):
        simplest(2.0, 1.0)


def test_lengths() -> None:
    omega = yarn(ladder(10_000, 16), 4, 4, 9)
    twice = identify(rotary(omega=omega, length=1.1386294361119891**2))
    assert "applied twice" in part(twice, "attention factor").words
    assert any("right? no" in a for a in twice.answers)
    assert part(identify(rotary(omega=omega)), "attention factor").words == "no attention factor"
    base = rotary()
    grows = Rotary(
        name="x",
        width=32,
        most=2048,
        rotate=lambda x, p: base.rotate(x, p) * (1.0003**p)[:, None, :, None],
    )
    assert part(identify(grows), "attention factor").value is None


def test_whose_positions_are_followed() -> None:
    base = rotary()
    running = Rotary(
        name="x",
        width=32,
        rotate=lambda x, p: base.rotate(x, torch.arange(x.shape[2]).expand_as(p)),
    )
    found = identify(running)
    assert part(found, "position ids").value == "index"
    assert part(found, "base").value == 10_000
    first = Rotary(name="x", width=32, rotate=lambda x, p: base.rotate(x, p[:1].expand_as(p)))
    assert part(identify(first), "position ids").value == "first row"
    assert part(identify(base), "position ids").value == "own"

    def of_heads(x: Tensor, p: Tensor) -> Tensor:
        place = torch.arange(x.shape[1]).expand(p.shape[0], -1)
        return base.rotate(x.transpose(1, 2), place).transpose(1, 2)

    by_head = Rotary(name="x", width=32, heads=3, rotate=of_heads)
    assert identify(by_head).sentence == "rotary, which does not look at positions"


def _two_axes(which: tuple[int, ...], own: bool) -> Rotary:
    omega = torch.cat([ladder(10_000, 8).float()] * 2) if own else ladder(10_000, 16).float()

    def rotate(x: Tensor, p: Tensor) -> Tensor:
        a = p.float()[..., list(which)] * omega
        a = torch.cat((a, a), -1)
        return x * a.cos()[:, None] + half(x) * a.sin()[:, None]

    return Rotary(name="x", rotate=rotate, width=32, axes=2)


def test_axes() -> None:
    found = identify(_two_axes((0,) * 8 + (1,) * 8, own=True))
    assert part(found, "axes").words == "2 axes with 8, 8 pairs, each axis a ladder of its own"
    assert part(found, "base").value == 10_000
    dealt = identify(_two_axes((0, 1) * 8, own=False))
    assert part(dealt, "axes").words == "2 axes dealt in turn to 8, 8 pairs"
    assert "of which 1 without effect" in identify(_two_axes((0,) * 16, own=False)).sentence


def test_keys_values_and_channels_that_are_treated_otherwise() -> None:
    base = rotary()
    keys = Rotary(name="x", rotate=base.rotate, key=lambda x, _: x, width=32)
    assert part(identify(keys), "keys").value == "other"
    same = Rotary(name="x", rotate=base.rotate, key=base.rotate, width=32)
    assert part(identify(same), "keys").value == "alike"
    every = Rotary(
        name="x",
        rotate=base.rotate,
        width=32,
        all_three=lambda q, k, v, p: (base.rotate(q, p), base.rotate(k, p), base.rotate(v, p)),
    )
    assert part(identify(every), "values").value == "rotated"
    four = rotary(4)
    odd = Rotary(
        name="x",
        width=5,
        rotate=lambda x, p: torch.cat((four.rotate(x[..., :4], p), 0 * x[..., 4:]), -1),
    )
    assert "the channels that do not rotate dropped" in identify(odd).sentence
    assert identify(rotary(4, head=5)).part("other channels") is None


def test_results_in_another_order() -> None:
    """As DeepSeek-V3 does it: neighbours are rotated and come out half the width apart."""
    base = rotary(swap=neighbours, tiled=False)

    def rotate(x: Tensor, p: Tensor) -> Tensor:
        y = base.rotate(x, p)
        return torch.cat((y[..., ::2], y[..., 1::2]), -1)

    found = identify(Rotary(name="x", rotate=rotate, width=32))
    assert part(found, "layout").value == "interleaved"
    assert part(found, "order of results").words == "its results in half-split order"
    assert found.answers[0].startswith("rotate_half is right")
    assert identify(base).part("order of results") is None


def test_what_is_no_rotation_is_said_not_to_be_one() -> None:
    mixing = torch.randn(32, 32, generator=torch.Generator().manual_seed(0))
    mixed = Rotary(name="x", width=32, rotate=lambda x, p: rotary().rotate(x @ mixing, p))
    assert identify(mixed).sentence == "rotary, which mixes more than two channels"
    raises = Rotary(name="x", width=32, rotate=lambda x, _: x[..., :3])
    found = identify(raises)
    assert found.sentence == "rotary, which could not be read"
    assert "(2, 2, 3, 32) as (B, H, n, D) and gave (2, 2, 3, 3)" in found.parts[0].evidence
    assert layout_name([(0, 3), (1, 2)]) == "of the pairs (0, 3), (1, 2)"
