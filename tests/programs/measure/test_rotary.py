"""Probes of rotary code: quiet on what is right; each refuses a planted fault, and says where."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from attnproof.programs.declarations import DeclaredRotary
from attnproof.programs.execution.draw import Draw
from attnproof.programs.execution.tolerance import ladder_error, rounding_of, sums
from attnproof.programs.measure.base import PROBES
from attnproof.programs.measure.examine import examine
from attnproof.programs.measure.rotary_casting import cast
from attnproof.programs.subject import adapted_as
from attnproof.programs.subjects import Rotary
from attnproof.theorems.laws import laws_of
from tests.programs.programs_of_laws import PROGRAMS

from .rotary_code import (
    RIGHT,
    InBuffer,
    code,
    half,
    interleaved,
    interleaved_declared,
    ladder,
    llama,
    llama3,
    partial,
    two_axes,
)
from .rotary_faults import (
    FAULTS,
    OMEGA,
    PARTNERS,
    faults_of,
    half_table_on_neighbours,
    verdict,
    with_positions,
)

OTHERS = (torch.float64, torch.bfloat16, torch.float16)
FEW = ("complex", "cached", "partial, longer", "yarn", "two axes, halves")
DRAWN = (
    "linear",
    "every-head-alike",
    "follows-its-ids",
    "sees-positions",
    "rows-of-batch-apart",
    "no-mutation",
    "rotated-once",
    "cache-keeps-its-positions",
    "conversion-keeps-scores",
)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        *((name, torch.float32) for name in RIGHT if name != "llama"),
        *(("half", dtype) for dtype in OTHERS),
        *((name, torch.bfloat16) for name in FEW),  # which rounds most
    ],
)
def test_right_code_is_left_alone(name: str, dtype: torch.dtype) -> None:
    assert faults_of(examine(RIGHT[name](), [Draw(seed=1, dtype=dtype)])) == []


def test_llama_of_transformers_breaks_nothing_but_when_cast() -> None:
    """huggingface/transformers#25681: its frequencies are a buffer, which a cast rounds."""
    broken = [f.law for f in examine(llama()) if f.verdict == "broken"]
    assert broken == ["survives-casting"]


@pytest.mark.parametrize("name", ["half", "complex", "two axes", "yarn"])
def test_no_seed_makes_right_code_look_wrong(name: str) -> None:
    """The laws whose inputs are drawn; the others rotate unit vectors, the same with every seed."""
    draws = [Draw(seed=seed, dtype=torch.bfloat16) for seed in range(3)]
    assert faults_of(examine(RIGHT[name](), draws, DRAWN)) == []


def test_every_law_of_rotary_code_has_a_probe_and_a_fault() -> None:
    examine(code(half(OMEGA)), laws=["norm"])
    asked = {p.law for p in PROBES if p.kind == "rotary"}
    assert asked == {law.id for law in laws_of("rotary")}
    stated = {one.law for one in PROGRAMS if one.kind == "rotary"}  # of these: test_stated_laws
    assert asked - {"finite"} <= set(FAULTS) | stated  # what gives no numbers: test_finite


@pytest.mark.parametrize("law", FAULTS)
def test_each_law_refuses_a_planted_fault(law: str) -> None:
    found: Any = verdict(law, FAULTS[law]())
    assert found.verdict == "broken", found.why
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


def test_a_fault_of_keys_alone_is_found() -> None:
    subject = code(half(OMEGA), key=half(ladder(8, 20_000.0)))
    assert verdict("relative", subject).verdict == "broken"
    assert verdict("frequencies-as-declared", subject).verdict == "broken"


def test_numbers_that_are_none_are_broken_and_not_quiet() -> None:
    nan = code(lambda x, p: half(OMEGA)(x, p) * float("nan"))
    for law in ("relative", "norm", "linear", "composition", "identity-at-zero"):
        assert verdict(law, nan).verdict == "broken"


def test_a_cast_is_undone() -> None:
    module = InBuffer()
    before = module.omega
    with cast([module], torch.bfloat16):
        assert module.omega.dtype == torch.bfloat16
    assert module.omega is before


class OfComplexTable(torch.nn.Module):
    """A table of complex numbers, which a cast to a shorter format leaves as they are."""

    def __init__(self, omega: Tensor) -> None:
        super().__init__()
        angles = torch.arange(4096)[:, None] * omega
        self.register_buffer("table", torch.polar(torch.ones_like(angles), angles))

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2).contiguous())
        turned = pairs * self.get_buffer("table")[positions][:, None]
        return torch.view_as_real(turned).flatten(-2).type_as(x)


def test_a_complex_table_survives_what_a_table_of_angles_does_not() -> None:
    kept = OfComplexTable(OMEGA.float())
    assert verdict("survives-casting", code(kept, 8, module=kept)).verdict == "holds"
    rounded = InBuffer()
    assert verdict("survives-casting", code(rounded, 8, module=rounded)).verdict == "broken"


class Directions(torch.nn.Module):
    """Each of two heads rotates by coordinates along directions of its own, some of them fast.

    ``twisted``: angles are not linear in positions; ``flat``: the second coordinate is not used.
    """

    def __init__(self, *, twisted: bool = False, flat: bool = False) -> None:
        super().__init__()
        self.twisted = twisted
        speed = torch.tensor([1.0, 30.0, 900.0, 9000.0])[:, None]
        turns = torch.tensor([[1.0, 0.9], [0.4, -1.0]])[:, None] * torch.tensor([1.0, not flat])
        self.register_buffer("omega", speed * turns * torch.tensor([1.0, -1.0]))

    def forward(self, x: Tensor, pos: Tensor) -> Tensor:
        angles = torch.einsum("hfa,bna->bhnf", self.get_buffer("omega"), pos.float())
        angles = angles + self.twisted * angles.cos()
        u, w = x.chunk(2, -1)
        return torch.cat(
            (u * angles.cos() - w * angles.sin(), u * angles.sin() + w * angles.cos()), -1
        )


def test_fast_pairs_of_several_axes_and_heads_are_as_exact_as_they_can_be() -> None:
    line = "x: B 2 n 8, pos: B n 2 coordinates -> x"
    found: dict[str, Any] = {
        name: adapted_as(Directions(**{name: True} if name else {}), line)
        for name in ("", "twisted", "flat")
    }
    assert found[""].most == 1 << 20
    for law in ("relative", "composition", "every-axis-matters", "angles-are-exact"):
        assert verdict(law, found[""]).verdict == "holds", law
    assert verdict("relative", found["twisted"]).verdict == "broken"
    assert verdict("every-axis-matters", found["flat"]).verdict == "broken"
    short = dataclasses.replace(found[""], most=1)
    assert verdict("every-axis-matters", short).verdict == "undecided"


def test_bounds_grow_with_the_dtype_the_position_and_the_terms() -> None:
    short, long = rounding_of(torch.bfloat16), rounding_of(torch.float64)
    assert short.score(1, 1, 5, 3) > rounding_of(torch.float32).score(1, 1, 5, 3)
    assert long.rotating < 1e-5  # the angles are float32 all the same
    assert short.vector(1.0, 1.0, 10_000) > short.vector(1.0, 1.0, 1)
    assert sums(100, torch.float32, 1.0) > sums(10, torch.float32, 1.0) > 0
    assert float(ladder_error(torch.tensor([1e-4]), 2**-24)) < 1e-8


# what probes of rotary code say: where a fault first shows, and what was not asked


def test_laws_that_need_more_say_why_they_are_not_asked() -> None:
    found = {f.law: f for f in examine(code(half(OMEGA), declared=None))}
    for law in (
        "layout-as-declared",
        "rotated-once",
        "shift-of-cached-keys",
        "grid-steps",
        "every-axis-matters",
        "survives-casting",
        "paths-agree",
    ):
        assert found[law].verdict == "not asked"
        assert found[law].why


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


@pytest.mark.parametrize("table", [torch.bfloat16, torch.float16])
def test_a_table_that_is_kept_short_is_read_as_exactly_as_it_is(table: torch.dtype) -> None:
    """nanochat's cosines and sines are bfloat16, whatever is rotated; its angles are float32."""

    def tables(change: Callable[[Tensor], Tensor], omega: Tensor = OMEGA) -> Rotary:
        def rotate(x: Tensor, positions: Tensor) -> Tensor:
            angles = change(positions[:, None, :, None].float() * omega)
            cos, sin = angles.cos().to(table), angles.sin().to(table)
            a, b = x.chunk(2, -1)
            return torch.cat((a * cos - b * sin, b * cos + a * sin), -1).to(x.dtype)

        return code(rotate)

    right, short = tables(lambda a: a), tables(lambda a: a.to(table).float())
    for law in ("angles-are-exact", "frequencies-as-declared"):
        assert verdict(law, right).verdict == "holds", law
    assert verdict("angles-are-exact", short).verdict == "broken"
    other = tables(lambda a: a, OMEGA * torch.tensor([1.0, 1.0, 0.98, 1.0]))
    assert verdict("frequencies-as-declared", other).verdict == "broken"


def test_what_the_frequencies_are_instead_is_named() -> None:
    declared = DeclaredRotary(base=10_000.0, layout="half", width=8)
    over_head = 10_000.0 ** (-torch.arange(0, 8, 2) / 20)
    linear, own = over_head / 2, ladder(8, 10_000.0**0.4)  # the frequencies of over_head
    for omega in (over_head, own):
        why = verdict(
            "frequencies-as-declared", code(partial(half(omega), 8), 20, declared=declared)
        )
        assert "base 10000, exponents counted over the whole head, b/10" in why.why
    scaled = verdict(
        "frequencies-as-declared", code(partial(half(linear), 8), 20, declared=declared)
    )
    assert "base 10000, positions divided by 2, exponents" in scaled.why


def test_a_scaling_that_is_not_used_is_named() -> None:
    assert "without the scaling" in verdict("frequencies-as-declared", llama3(scaled=False)).why


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda p: p.to(torch.bfloat16), 256),
        (lambda p: p.half(), 2048),
        (lambda p: p.half() / 4, 2048),
    ],
)
def test_positions_in_short_dtypes_collide_where_they_should(
    change: Callable[[Tensor], Tensor], place: int
) -> None:
    found: Any = verdict("neighbours-differ", with_positions(change))
    assert found.witness.inputs["at"] == place


def test_positions_that_take_the_dtype_of_the_data_are_found_on_float32_draws() -> None:
    """keras-team/keras-hub#1494: only data in bfloat16 shows it."""
    subject = code(lambda x, p: half(OMEGA)(x, p.to(x.dtype)))
    found = verdict("neighbours-differ", subject)
    assert found.verdict == "broken"
    assert "bfloat16" in found.why
    assert verdict("angles-are-exact", subject).verdict == "broken"


def test_an_angle_in_float16_is_found_where_it_is_first_off() -> None:
    found: Any = verdict("angles-are-exact", FAULTS["angles-are-exact"]())
    assert found.witness.difference > 2 * found.witness.allowed


def test_a_witness_is_small_and_its_numbers_are_those_of_the_code() -> None:
    found: Any = verdict("relative", FAULTS["relative"]())
    assert found.sizes["B"] == found.sizes["r"] == found.sizes["n"] == 1
    seen = found.witness.inputs
    scores = []
    for by in ([seen["m"] + seen["s"], seen["p"] + seen["s"]], [seen["m"], seen["p"]]):
        q, k = (
            half_table_on_neighbours(torch.tensor(v).float().view(1, 1, 1, 8), torch.tensor([[p]]))
            for v, p in zip((seen["q"], seen["k"]), (int(x) for x in by), strict=True)
        )
        scores.append(float((q * k).sum()))
    assert scores == pytest.approx([found.witness.here[1], found.witness.there[1]], abs=1e-6)


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


def reordered(order: Tensor, later: Tensor | None = None) -> Rotary:
    """Neighbours rotated, then the channels in another order; in ``later`` at positions from 1."""

    def rotate(x: Tensor, positions: Tensor) -> Tensor:
        rotated = interleaved(OMEGA)(x, positions)
        if later is None:
            return rotated[..., order]
        first = (positions == 0)[:, None, :, None]
        return torch.where(first, rotated[..., order], rotated[..., later])

    return code(rotate, declared=interleaved_declared())


HALVES = torch.tensor([0, 2, 4, 6, 1, 3, 5, 7])


def test_a_fixed_order_of_the_channels_is_no_fault_and_is_told() -> None:
    """DeepSeek-V3 rotates neighbours, gives halves: queries and keys alike, so scores stay."""
    found = {f.law: f for f in examine(reordered(HALVES))}
    assert faults_of(tuple(found.values())) == []
    for law in ("identity-at-zero", "composition", "layout-as-declared"):
        assert "in another order, the same at every position" in found[law].why
    assert "another order" not in verdict("identity-at-zero", code(half(OMEGA))).why


def test_an_order_that_changes_with_the_position_or_the_head_is_a_fault() -> None:
    assert verdict("composition", reordered(HALVES, HALVES.flip(0))).verdict == "broken"

    def by_head(x: Tensor, positions: Tensor) -> Tensor:
        rotated = interleaved(OMEGA)(x, positions)
        return torch.cat((rotated[:, :1], rotated[:, 1:, :, HALVES]), 1)

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
    assert found.witness.inputs["p"] == 1
    few = code(partial(half(ladder(4)), 4), declared=DeclaredRotary(width=8))
    found = verdict("width-as-declared", few)
    assert found.witness is not None
    assert (found.witness.here[1], found.witness.there[1]) == (4, 8)


def over_the_head(power: float, base: float = 10_000.0) -> Rotary:
    """8 of 16 channels rotate, at frequencies base^(−2i/16 · power)."""
    omega = ladder(16, base**power)[:4]

    def rotate(x: Tensor, positions: Tensor) -> Tensor:
        return torch.cat((half(omega)(x[..., :8], positions), x[..., 8:]), -1)

    return code(rotate, 16, declared=None, make=lambda base: over_the_head(power, base))


def test_exponents_may_be_counted_over_the_whole_head_and_not_as_one_likes() -> None:
    assert verdict("follows-its-arguments", over_the_head(1.0)).verdict == "holds"
    assert verdict("follows-its-arguments", over_the_head(2.0)).verdict == "holds"  # over the part
    assert verdict("follows-its-arguments", over_the_head(3.0)).verdict == "broken"


def test_a_cache_from_which_nothing_goes_shows_nothing() -> None:
    def all_kept(raw: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        at = torch.arange(raw.shape[2])
        return half(OMEGA)(raw, at[None].expand(len(raw), -1)), raw, at

    seen = verdict("cache-keeps-its-positions", code(half(OMEGA), evict=all_kept))
    assert seen.verdict in ("undecided", "not asked")
    assert "300 keys fit into the cache" in seen.why


def of_rows(change: Callable[[Tensor], Tensor], first: int = 0) -> Callable[..., Tensor]:
    """Rotates by a stored table of angles, changed."""
    angles = change(torch.arange(600)[:, None] * ladder(8).double())
    cos, sin = angles.cos().float(), angles.sin().float()

    def rotate(x: Tensor, at: Tensor) -> Tensor:
        c, s = (one[at - first][:, None] for one in (cos, sin))
        u, w = x.chunk(2, -1)
        return torch.cat([u * c - w * s, w * c + u * s], -1)

    return rotate


def row_off(angles: Tensor) -> Tensor:
    angles[437] += 0.5
    return angles


def test_one_wrong_row_of_a_table_is_found() -> None:
    right, wrong = of_rows(lambda angles: angles), of_rows(row_off)
    held = verdict("angles-are-exact", code(right))
    assert held.verdict == "holds"
    assert held.why.endswith("at every position up to 599")
    for subject in (code(wrong), code(right, key=wrong), code(of_rows(row_off, 1), first=1)):
        found = verdict("angles-are-exact", subject)
        assert found.verdict == "broken"
        assert found.witness is not None
        assert found.witness.inputs["at"] == 437 + subject.first


FAR_ONLY: dict[str, Callable[[Tensor], Tensor]] = {
    "relative": lambda out: out + out.flip(0),
    "norm": lambda out: 2 * out,
    "composition": lambda out: 2 * out,
    "linear": lambda out: out + 1,
    "every-head-alike": lambda out: out * torch.arange(1, out.shape[1] + 1)[:, None, None],
    "follows-its-ids": lambda out: out * torch.arange(1, out.shape[2] + 1)[:, None],
    "rows-of-batch-apart": lambda out: out + out.flip(0),
}


@pytest.mark.parametrize("law", FAR_ONLY)
def test_a_fault_at_far_positions_alone_is_found(law: str) -> None:
    def rotate(x: Tensor, at: Tensor) -> Tensor:
        out = half(ladder(8))(x, at)
        return FAR_ONLY[law](out) if int(at.max()) > 30_000 else out

    assert verdict(law, code(rotate)).verdict == "broken"


def test_frequencies_that_hang_on_the_longest_position_are_no_wrong_row() -> None:
    def rotate(x: Tensor, at: Tensor) -> Tensor:
        slow = 1.0 if int(at.max()) < 70_000 and at.shape[1] < 5_000 else 0.5
        return half(slow * ladder(8))(x, at)

    assert verdict("angles-are-exact", code(rotate)).verdict == "holds"


@pytest.mark.parametrize("power", [0, 32])
def test_vectors_that_overflow_are_not_said_to_have_the_same_angles(power: int) -> None:
    def longer(x: Tensor, positions: Tensor) -> Tensor:
        return half(OMEGA)(x, positions) * 2.0 ** (power * positions.max() / 65536).to(x.dtype)

    found = verdict("neighbours-differ", code(longer))
    assert found.verdict == "holds"
    assert found.why.endswith("float16" if power == 0 else "bfloat16")
