"""Probes of rotary code: quiet on what is right, and each refuses a planted fault."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from attnproof.numeric.probes.base import PROBES, Draw
from attnproof.numeric.probes.examine import examine
from attnproof.numeric.probes.rotary_angles import cast
from attnproof.numeric.probes.tolerance import ladder_error, rounding_of, sums
from attnproof.numeric.programs.declared import DeclaredRotary
from attnproof.numeric.programs.finding import Finding
from attnproof.numeric.programs.laws import laws_of
from attnproof.numeric.programs.subjects import Rotary
from attnproof.numeric.rotary_precision.survey import one_thread

from .rotary_code import (
    RIGHT,
    InBuffer,
    axial,
    cached,
    code,
    half,
    interleaved,
    interleaved_declared,
    ladder,
    llama,
    llama3,
    partial,
    two_axes,
    yarn,
)

OTHERS = (torch.float64, torch.bfloat16, torch.float16)
FEW = ("half", "complex", "cached", "partial, longer", "yarn", "two axes, halves")
OMEGA = ladder(8)
DRAWN = (
    "linear",
    "every-head-alike",
    "follows-its-ids",
    "sees-positions",
    "rows-of-batch-apart",
    "inputs-stay",
    "turned-once",
    "cache-keeps-its-positions",
    "conversion-keeps-scores",
)


@pytest.fixture(autouse=True, scope="module")
def alone() -> Iterator[None]:
    with one_thread():
        yield


def verdict(law: str, subject: Rotary, draw: Draw = Draw()) -> Finding:  # noqa: B008 (frozen)
    found = examine(subject, [draw], [law])
    assert len(found) == 1
    return found[0]


def faults_of(found: tuple[Finding, ...]) -> list[str]:
    return [f"{f.law}: {f.why}" for f in found if f.verdict not in ("holds", "not asked")]


# Right code


@pytest.mark.parametrize(
    ("name", "dtype"),
    [(n, torch.float32) for n in RIGHT if n != "llama"] + [(n, d) for n in FEW for d in OTHERS],
)
def test_right_code_is_left_alone(name: str, dtype: torch.dtype) -> None:
    assert faults_of(examine(RIGHT[name](), [Draw(seed=1, dtype=dtype)])) == []


def test_llama_of_transformers_breaks_nothing_but_when_cast() -> None:
    """huggingface/transformers#25681: its frequencies are a buffer, which a cast rounds."""
    broken = [f.law for f in examine(llama()) if f.verdict == "broken"]
    assert broken == ["survives-casting"]


@pytest.mark.parametrize("name", ["half", "complex", "two axes", "yarn"])
def test_no_seed_makes_right_code_look_wrong(name: str) -> None:
    """The laws whose inputs are drawn; the others turn unit vectors, the same with every seed."""
    for dtype in (torch.float32, torch.bfloat16):
        draws = [Draw(seed=seed, dtype=dtype) for seed in range(5)]
        assert faults_of(examine(RIGHT[name](), draws, DRAWN)) == []


def test_every_law_of_rotary_code_has_a_probe_and_a_fault() -> None:
    examine(code(half(OMEGA)), laws=["norm"])
    asked = {p.law for p in PROBES if p.kind == "rotary"}
    assert asked == {law.id for law in laws_of("rotary")}
    assert asked <= set(FAULTS)


def test_laws_that_need_more_say_why_they_are_not_asked() -> None:
    found = {f.law: f for f in examine(code(half(OMEGA), declared=None))}
    for law in ("layout-as-declared", "turned-once", "shift-of-cached-keys", "grid-steps",
                "every-axis-matters", "survives-casting", "paths-agree"):  # fmt: skip
        assert found[law].verdict == "not asked"
        assert found[law].why


# Faults


def half_table_on_neighbours(x: Tensor, positions: Tensor) -> Tensor:
    angles = positions[:, None, :, None].float() * OMEGA
    table = torch.cat((angles, angles), -1)
    turned = torch.stack((-x[..., 1::2], x[..., 0::2]), -1).flatten(-2)
    return x * table.cos().to(x.dtype) + turned * table.sin().to(x.dtype)


def with_positions(change: Callable[[Tensor], Tensor]) -> Rotary:
    return code(lambda x, p: half(OMEGA)(x, change(p)))


def with_angles(change: Callable[[Tensor], Tensor]) -> Rotary:
    def turn(x: Tensor, positions: Tensor) -> Tensor:
        angles = change(positions[:, None, :, None].float() * OMEGA)
        a, b = x.chunk(2, -1)
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)

    return code(turn)


def of_the_head(x: Tensor, _positions: Tensor) -> Tensor:
    heads = torch.arange(x.shape[1])[None]
    return half(OMEGA)(x.transpose(1, 2), heads).transpose(1, 2)


def first_row_alone(x: Tensor, positions: Tensor) -> Tensor:
    turned = half(OMEGA)(x, positions)
    if x.shape[2] == 1:
        turned[1:] = 0
    return turned


def in_place(x: Tensor, positions: Tensor) -> Tensor:
    return x.copy_(half(OMEGA)(x, positions))


class ByLength(nn.Module):
    """Keeps its positions under the length of the text."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[int, Tensor] = {}

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        kept = self.kept.setdefault(positions.shape[1], positions[:1])
        return half(OMEGA)(x, kept.expand(positions.shape))


def by_length() -> Rotary:
    module = ByLength()
    return code(module, module=module, make=by_length)


def in_buffer() -> Rotary:
    module = InBuffer()
    return code(module, module=module, make=in_buffer)


def other_path() -> Rotary:
    return code(half(OMEGA), paths={"fused": lambda x, p: half(OMEGA)(x, -p)})


def whole_head_shift(keys: Tensor, s: int) -> Tensor:
    return half(OMEGA)(keys, torch.full((keys.shape[0], keys.shape[2]), s))


def shifted_with(shift: Callable[[Tensor, int], Tensor]) -> Rotary:
    declared = DeclaredRotary(base=10_000.0, layout="half", width=4)
    return code(partial(half(ladder(4)), 4), declared=declared, shift=shift)


def partial_shift(keys: Tensor, s: int) -> Tensor:
    return partial(half(ladder(4)), 4)(keys, torch.full((keys.shape[0], keys.shape[2]), s))


def values_twice(q: Tensor, k: Tensor, v: Tensor, p: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    turn = half(OMEGA)
    return turn(q, p), turn(k, p), turn(turn(v, p), p)


def kept_with(offset: int) -> Rotary:
    """The last four keys, said to be at 0..3; the newest is turned ``offset`` further."""

    def evict(raw: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        own = raw[:, :, -4:]
        count = own.shape[2]
        at = torch.arange(count)
        turned_at = at.clone()
        turned_at[-1] += offset * (raw.shape[2] > 4)
        return half(OMEGA)(own, turned_at[None].expand(len(own), count)), own, at

    return code(half(OMEGA), evict=evict)


def permuted(weight: Tensor, heads: int) -> Tensor:
    return weight.reshape(heads, 2, -1, weight.shape[1]).transpose(1, 2).reshape(weight.shape)


def converted(keys_too: bool) -> Rotary:
    return code(
        half(OMEGA), converts_to=code(interleaved(OMEGA), declared=interleaved_declared()),
        convert=lambda q, k, h: (permuted(q, h), permuted(k, h) if keys_too else k),
    )  # fmt: skip


def blind_axis() -> Rotary:
    one = interleaved(ladder(8))
    return replace(two_axes(), turn=axial((one, lambda x, p: one(x, torch.zeros_like(p)))))


def one_ladder(one_layout: str) -> Rotary:
    """Positions (B, T) and (B, T, 2); the layout of the first may be another."""
    many = interleaved(OMEGA)
    one = interleaved(OMEGA) if one_layout == "interleaved" else half(OMEGA)

    def turn(x: Tensor, positions: Tensor) -> Tensor:
        if positions.dim() == 2:
            return one(x, positions)
        first, second = many(x, positions[..., 0]), many(x, positions[..., 1])
        return torch.cat((first[..., :4], second[..., 4:]), -1)

    declared = DeclaredRotary(base=10_000.0, layout="interleaved")
    return code(turn, axes=2, declared=declared)


def grid_of(swapped: bool) -> Rotary:
    def grid(rows: int, columns: int) -> Tensor:
        sizes = (columns, rows) if swapped else (rows, columns)
        x, y = torch.meshgrid(torch.arange(sizes[0]), torch.arange(sizes[1]), indexing="xy")
        return torch.stack((y, x), -1).flatten(0, 1)

    return replace(two_axes(), grid=grid)


def fixed_base(base: float = 10_000.0) -> Rotary:
    declared = DeclaredRotary(base=base, layout="half", width=8)
    return code(half(OMEGA), make=fixed_base, declared=declared)


def odd(last: Callable[[Tensor], Tensor]) -> Rotary:
    def turn(x: Tensor, positions: Tensor) -> Tensor:
        return torch.cat((half(ladder(4))(x[..., :4], positions), last(x[..., 4:])), -1)

    return code(turn, 5, declared=None)


FAULTS: dict[str, Callable[[], Rotary]] = {
    "relative": lambda: code(half_table_on_neighbours, declared=interleaved_declared()),
    "norm": lambda: code(half_table_on_neighbours, declared=interleaved_declared()),
    "composition": lambda: with_positions(lambda p: p.square()),
    "linear": lambda: code(lambda x, p: half(OMEGA)(x / (1 + x.abs()), p)),
    "identity-at-zero": lambda: with_positions(lambda p: p + 1),
    "every-head-alike": lambda: code(of_the_head),
    "sees-positions": lambda: code(of_the_head),
    "follows-its-ids": lambda: with_positions(lambda p: torch.arange(p.shape[1]).expand(p.shape)),
    "every-axis-matters": blind_axis,
    "equal-axes-are-one": lambda: one_ladder("half"),
    "grid-steps": lambda: grid_of(swapped=False),
    "turned-once": lambda: code(half(OMEGA), all_three=values_twice, values_turn=True),
    "shift-of-cached-keys": lambda: shifted_with(whole_head_shift),
    "cache-keeps-its-positions": lambda: kept_with(1),
    "conversion-keeps-scores": lambda: converted(keys_too=False),
    "layout-as-declared": lambda: code(half(OMEGA), declared=interleaved_declared()),
    "width-as-declared": lambda: code(
        half(OMEGA), declared=DeclaredRotary(base=10_000.0, layout="half", width=4)
    ),
    "frequencies-as-declared": lambda: code(half(ladder(8, 10_001.0))),
    "length-as-declared": lambda: yarn(length=(0.1 * math.log(16) + 1) ** 2),
    "follows-its-arguments": fixed_base,
    "odd-widths": lambda: odd(torch.zeros_like),
    "neighbours-differ": lambda: with_positions(lambda p: p.to(torch.bfloat16)),
    "angles-are-exact": lambda: with_angles(lambda a: a.half().float()),
    "survives-casting": in_buffer,
    "rows-of-batch-apart": lambda: code(first_row_alone),
    "calls-forget": by_length,
    "paths-agree": other_path,
    "inputs-stay": lambda: code(in_place),
}
PARTNERS: dict[str, Callable[[], Rotary]] = {
    "equal-axes-are-one": lambda: one_ladder("interleaved"),
    "grid-steps": lambda: grid_of(swapped=True),
    "shift-of-cached-keys": lambda: shifted_with(partial_shift),
    "cache-keeps-its-positions": lambda: kept_with(0),
    "conversion-keeps-scores": lambda: converted(keys_too=True),
    "odd-widths": lambda: odd(torch.clone),
    "follows-its-arguments": cached,
    "survives-casting": cached,
    "paths-agree": lambda: code(half(OMEGA), paths={"again": half(OMEGA)}),
}


@pytest.mark.parametrize("law", FAULTS)
def test_each_law_refuses_a_planted_fault(law: str) -> None:
    found = verdict(law, FAULTS[law]())
    assert found.verdict == "broken", found.why
    assert found.witness is not None
    assert found.why
    json.dumps([dict(found.witness.inputs), found.witness.here, found.witness.there])
    if law in PARTNERS:
        assert verdict(law, PARTNERS[law]()).verdict == "holds"


@pytest.mark.parametrize(
    "law", ["relative", "norm", "layout-as-declared", "frequencies-as-declared"]
)
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=str)
def test_faults_are_seen_in_other_dtypes(law: str, dtype: torch.dtype) -> None:
    subject = FAULTS[law]()
    if law == "frequencies-as-declared":
        subject = code(half(ladder(8, 20_000.0)))
    assert verdict(law, subject, Draw(dtype=dtype)).verdict == "broken"


def test_wrong_frequencies_keep_the_relative_law() -> None:
    """Why what is declared is compared: a wrong base is a valid encoding."""
    wrong = code(half(ladder(8, 500_000.0)))
    laws = ("relative", "norm", "composition", "layout-as-declared", "length-as-declared")
    assert faults_of(examine(wrong, laws=laws)) == []
    assert "base 500000" in verdict("frequencies-as-declared", wrong).why


def test_frequencies_rounded_to_bfloat16_are_found_without_a_cast() -> None:
    rounded = code(half(OMEGA.bfloat16().float()))
    assert verdict("relative", rounded).verdict == "holds"
    assert verdict("angles-are-exact", rounded).verdict == "holds"
    assert verdict("frequencies-as-declared", rounded).verdict == "broken"


def test_a_scaling_that_is_not_used_is_named() -> None:
    assert "without the scaling" in verdict("frequencies-as-declared", llama3(scaled=False)).why


@pytest.mark.parametrize(
    ("change", "place"),
    [(lambda p: p.to(torch.bfloat16), 256), (lambda p: p.half(), 2048),
     (lambda p: p.half() / 4, 2048)],
)  # fmt: skip
def test_positions_in_short_dtypes_collide_where_they_should(
    change: Callable[[Tensor], Tensor], place: int
) -> None:
    found = verdict("neighbours-differ", with_positions(change))
    assert found.witness is not None
    assert found.witness.inputs["at"] == place


def test_positions_that_take_the_dtype_of_the_data_are_found_on_float32_draws() -> None:
    """keras-team/keras-hub#1494: only data in bfloat16 shows it."""
    subject = code(lambda x, p: half(OMEGA)(x, p.to(x.dtype)))
    found = verdict("neighbours-differ", subject)
    assert found.verdict == "broken"
    assert "bfloat16" in found.why
    assert verdict("angles-are-exact", subject).verdict == "broken"


def test_an_angle_in_float16_is_found_where_it_is_first_off() -> None:
    found = verdict("angles-are-exact", FAULTS["angles-are-exact"]())
    assert found.witness is not None
    assert found.witness.difference > 2 * found.witness.allowed


def test_a_fault_of_keys_alone_is_found() -> None:
    subject = code(half(OMEGA), key=half(ladder(8, 20_000.0)))
    assert verdict("relative", subject).verdict == "broken"
    assert verdict("frequencies-as-declared", subject).verdict == "broken"


def test_a_witness_is_small_and_its_numbers_are_those_of_the_code() -> None:
    found = verdict("relative", FAULTS["relative"]())
    assert found.witness is not None
    assert found.sizes["B"] == found.sizes["T"] == 1
    seen = found.witness.inputs
    scores = []
    for by in ([seen["query at"], seen["key at"]], seen["moved to"]):
        q, k = (
            half_table_on_neighbours(torch.tensor(v).float().view(1, 1, 1, 8), torch.tensor([[p]]))
            for v, p in zip((seen["query"], seen["key"]), (int(x) for x in by), strict=True)
        )
        scores.append(float((q * k).sum()))
    assert scores == pytest.approx([found.witness.here[1], found.witness.there[1]], abs=1e-6)


def test_numbers_that_are_none_are_broken_and_not_quiet() -> None:
    nan = code(lambda x, p: half(OMEGA)(x, p) * float("nan"))
    for law in ("relative", "norm", "linear", "composition", "identity-at-zero"):
        assert verdict(law, nan).verdict == "broken"


def test_code_that_raises_is_undecided_with_its_words() -> None:
    def refuse(_x: Tensor, _p: Tensor) -> Tensor:
        raise RuntimeError("no such kernel")

    found = verdict("norm", code(refuse))
    assert found.verdict == "undecided"
    assert "no such kernel" in found.why


def test_positions_that_raise_shorten_what_is_asked() -> None:
    table = torch.zeros(50)
    found = verdict("relative", with_positions(lambda p: p + table[p].long()))
    assert found.verdict == "holds"
    assert "IndexError" in found.why


def test_a_cast_is_undone() -> None:
    module = InBuffer()
    before = module.omega
    with cast(module, torch.bfloat16):
        assert module.omega.dtype == torch.bfloat16
    assert module.omega is before


def reordered(order: Tensor, later: Tensor | None = None) -> Rotary:
    """Neighbours turned, then the channels in another order; in ``later`` at positions from 1."""

    def turn(x: Tensor, positions: Tensor) -> Tensor:
        turned = interleaved(OMEGA)(x, positions)
        if later is None:
            return turned[..., order]
        first = (positions == 0)[:, None, :, None]
        return torch.where(first, turned[..., order], turned[..., later])

    return code(turn, declared=interleaved_declared())


HALVES = torch.tensor([0, 2, 4, 6, 1, 3, 5, 7])


def test_a_fixed_order_of_the_channels_is_no_fault_and_is_told() -> None:
    """DeepSeek-V3 turns neighbours and gives the halves: queries and keys alike, so scores stay."""
    found = {f.law: f for f in examine(reordered(HALVES))}
    assert faults_of(tuple(found.values())) == []
    for law in ("identity-at-zero", "composition", "layout-as-declared"):
        assert "in another order, the same at every position" in found[law].why
    assert "another order" not in verdict("identity-at-zero", code(half(OMEGA))).why


def test_an_order_that_changes_with_the_position_or_the_head_is_a_fault() -> None:
    assert verdict("composition", reordered(HALVES, HALVES.flip(0))).verdict == "broken"

    def by_head(x: Tensor, positions: Tensor) -> Tensor:
        turned = interleaved(OMEGA)(x, positions)
        return torch.cat((turned[:, :1], turned[:, 1:, :, HALVES]), 1)

    assert verdict("identity-at-zero", code(by_head)).verdict == "broken"


def with_argument(base: float = 10_000.0, used: bool = True) -> Rotary:
    """Nothing is declared of it, and 10000 is the base that it has."""
    omega = ladder(8, base if used else 10_000.0)
    return code(half(omega), declared=None, make=lambda base: with_argument(base, used))


def test_a_base_that_it_has_already_is_not_held_against_it() -> None:
    found = verdict("follows-its-arguments", with_argument())
    assert found.verdict == "holds", found.why
    assert "10000" not in found.why.replace("500000", "").replace("40000", "")
    wrong = verdict("follows-its-arguments", with_argument(used=False))
    assert wrong.verdict == "broken"
    one_pair = code(half(ladder(2)), 2, make=lambda base: code(half(ladder(2, base)), 2))
    assert verdict("follows-its-arguments", one_pair).verdict == "not asked"


def test_a_factor_that_it_has_already_is_not_held_against_it() -> None:
    def scaled(factor: float = 8.0) -> Rotary:
        declared = DeclaredRotary(layout="half", width=8, scaling="linear", factor=4.0)
        return code(half(OMEGA / factor), declared=declared, make=scaled)

    assert verdict("follows-its-arguments", scaled()).verdict == "holds"


def test_laws_whose_sides_should_differ_hold_without_an_error() -> None:
    for law in ("sees-positions", "neighbours-differ", "every-axis-matters"):
        found = verdict(law, two_axes())
        assert found.verdict == "holds"
        assert found.error is found.bound is None
        assert "at least" in found.why


def test_witnesses_are_at_the_first_position_that_shows_them() -> None:
    found = verdict("width-as-declared", FAULTS["width-as-declared"]())
    assert found.witness is not None
    assert found.witness.inputs["at"] == 1
    found = verdict("equal-axes-are-one", FAULTS["equal-axes-are-one"]())
    assert found.witness is not None
    assert found.witness.inputs["at"] == 1
    few = code(partial(half(ladder(4)), 4), declared=DeclaredRotary(width=8))
    found = verdict("width-as-declared", few)
    assert found.witness is not None
    assert (found.witness.here[1], found.witness.there[1]) == (4, 8)


def test_bounds_grow_with_the_dtype_the_position_and_the_terms() -> None:
    short, long = rounding_of(torch.bfloat16), rounding_of(torch.float64)
    assert short.score(1, 1, 5, 3) > rounding_of(torch.float32).score(1, 1, 5, 3)
    assert long.turning < 1e-5  # the angles are float32 all the same
    assert short.vector(1.0, 1.0, 10_000) > short.vector(1.0, 1.0, 1)
    assert sums(100, torch.float32, 1.0) > sums(10, torch.float32, 1.0) > 0
    assert float(ladder_error(torch.tensor([1e-4]), 2**-24)) < 1e-8
