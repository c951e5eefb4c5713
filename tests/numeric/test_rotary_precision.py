"""Rotary encoding in short formats: the tables, the bounds, and what two checks refuse."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from attnproof.numeric.devices import one_thread
from attnproof.numeric.rotary_precision import bound as bounds
from attnproof.numeric.rotary_precision.bound import (
    FORMATS,
    FORMULA_ERROR,
    Format,
    declared,
    float32_formula,
    format_named,
    tf32,
)
from attnproof.numeric.rotary_precision.extraction import (
    Rotate,
    by_table,
    frequencies_of,
    places,
    rotated_units,
    wrapped,
)
from attnproof.theorems.definitions.rotary import rotate
from benchmarks.precision import limits as scores
from benchmarks.precision.limits import (
    BASES,
    SHIFTS,
    Pairs,
    breaks,
    collision,
    drift,
    errors,
    grid,
    rotated,
)
from benchmarks.precision.survey import Compared, checked, compare, half_split, layout_of, relative

BRAIN, HALF, SINGLE = torch.bfloat16, torch.float16, torch.float32
GOOD = ("float32", "float32, float64 angles", "float16", "bfloat16")
# Root mean squares at s = 0, 1e3, 1e4, 1e5, 1e6 for base 1e4, from the trials that came before.
TRIALS = {
    "float32": (9.0e-6, 1.8e-5, 8.5e-5, 8.0e-4, 7.5e-3),
    "float32, float64 angles": (5.7e-8, 6.2e-8, 6.0e-8, 6.0e-8, 5.8e-8),
    "float32, tf32 operands": (3.0e-4, 3.1e-4, 2.9e-4, 9.0e-4, 7.3e-3),
    "float16": (4.8e-4, 4.8e-4, 4.8e-4, 9.2e-4, 7.2e-3),
    "bfloat16": (3.7e-3, 3.9e-3, 3.8e-3, 3.9e-3, 8.0e-3),
    "bfloat16, frequencies too": (3.3e-2, 3.2e-2, 3.5e-2, 3.3e-2, 3.8e-2),
    "bfloat16 throughout": (0.48, 0.64, 0.85, 1.0, 1.0),
    "float16 throughout": (0.069, 0.23, 0.60, math.nan, math.nan),
}


@pytest.fixture(autouse=True, scope="module")
def alone() -> Iterator[None]:
    """Small arrays: one thread is quicker than several that wait for each other."""
    with one_thread():
        yield


@pytest.fixture(scope="module")
def pairs() -> Pairs:
    return Pairs.drawn()


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_the_table_of_the_trials_comes_out_again(form: Format, pairs: Pairs) -> None:
    for shift, known in zip(SHIFTS, TRIALS[form.name], strict=True):
        found = errors(pairs, form, 1e4, shift)
        assert found.violations == 0
        if math.isnan(known):
            assert math.isnan(found.rms)
            assert found.checked == 0
        else:
            assert known / 1.35 < found.rms < known * 1.35
            assert found.checked == 2 * len(pairs.m)


def test_the_bound_is_one_and_is_not_far(pairs: Pairs, monkeypatch: pytest.MonkeyPatch) -> None:
    form = format_named("float32")
    assert 0.1 < errors(pairs, form, 1e4, 1e6).share <= 1
    wrong = Format("float32", SINGLE, positions=BRAIN)
    monkeypatch.setattr(scores, "bound_of", lambda _, omega: bounds.bound_of(form, omega))
    found = errors(pairs, wrong, 1e4, 1e3)
    assert found.violations > 0.7 * found.checked
    assert errors(pairs, form, 1e4, 1e3).violations == 0


def test_the_formula_of_frequencies_is_within_what_is_said_of_it() -> None:
    for base in BASES:
        omega = declared(base, 64)
        off = ((float32_formula(base, 64).double() - omega) / omega).abs().max()
        assert 0.5 * FORMULA_ERROR < float(off) <= FORMULA_ERROR


def test_cosines_are_within_what_the_bound_takes_them_for() -> None:
    x = torch.rand(200_000, generator=torch.Generator().manual_seed(0)) * 2e6 - 1e6
    for function in (torch.cos, torch.sin):
        off = (function(x).double() - function(x.double())).abs().max()
        assert float(off) <= bounds.FUNCTION * 2.0**-24


def test_tf32_keeps_ten_bits() -> None:
    x = torch.randn(5000, generator=torch.Generator().manual_seed(0)) * 3
    kept = tf32(x)
    mantissa, _ = torch.frexp(kept.double())
    assert bool((mantissa * 2**11 == (mantissa * 2**11).round()).all())
    assert float(((kept - x) / x).abs().max()) <= 2.0**-11
    assert bool(((kept - x) != 0).any())


def test_positions_fall_together_where_dtypes_end() -> None:
    assert collision(BRAIN, 70_000).first == 257
    half = collision(HALF, 70_000)
    assert (half.first, half.infinite) == (2049, 65_520)
    single = collision(SINGLE, 70_000)
    assert (single.first, single.infinite) == (None, None)
    last = torch.tensor([16_777_216, 16_777_217]).to(SINGLE)
    assert last[0] == last[1]


def test_every_position_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    module = "benchmarks.precision.limits.CHUNK"
    for chunk in (2, 7, 256, 257):
        monkeypatch.setattr(module, chunk)
        assert collision(BRAIN, 300).first == 257


def test_breaks_and_drifts(pairs: Pairs) -> None:
    found = breaks(pairs, format_named("float32"), 1e4, furthest=1 << 22)
    assert found.rms is not None
    assert found.largest is not None
    assert 10**5 < found.largest < 10**6 < found.rms < 4 * 10**6
    never = breaks(pairs, format_named("float32, float64 angles"), 1e4, furthest=1 << 12)
    assert (never.rms, never.largest) == (None, None)
    assert list(grid(8)) == [1, 2, 3, 4, 6, 8]
    assert 50 < drift(BRAIN, 5e5).at < 90
    assert 400 < drift(HALF, 1e4).at < 620
    assert drift(HALF, 1e6).subnormal > 0


@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_the_identity_is_blind_and_the_comparison_is_not(name: str, pairs: Pairs) -> None:
    found = {one.code: one for one in checked(pairs, format_named(name))}
    right = found.pop("as declared")
    assert (right.identity, right.comparison, right.why) == ("held", "held", "")
    assert len(found) == 7
    assert {one.comparison for one in found.values()} == {"refused"}
    seen = {code for code, one in found.items() if one.identity == "refused"}
    assert seen == {"positions in bfloat16"}
    assert "rotates twice as far" in found["angles doubled"].why
    assert "the other way" in found["rotated the other way"].why
    assert "the layout of the code is half" in found["the other layout"].why
    assert "the layout" not in found["base 10001"].why


def rotating(layout: str, form: Format, used: Tensor) -> Rotate:
    by = rotated if layout == "interleaved" else half_split
    return lambda x, p: by(x, p, form, used)


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize("layout", ["interleaved", "half"])
def test_right_code_is_not_refused_in_any_format(name: str, layout: str) -> None:
    form = format_named(name)
    for base in BASES:
        omega = declared(base, 32)
        code = rotating(layout, form, form.rounded_frequencies(base, 32))
        found = compare(code, omega, layout, form=form)
        assert (found.status, found.why) == ("held", "")
        assert bool(((found.frequencies - omega).abs() <= found.radius).all())
        assert float(found.radius.max()) < 3e-6
        assert layout_of(code, 32, form=form) == layout


def test_the_frequencies_that_are_read_are_those_used() -> None:
    used = declared(77_777, 16) * (1 + 0.01 * torch.arange(16) % 3)
    found = rotated_units(
        lambda x, p: rotate(x, p.double(), used),
        places(1 << 14),
        16,
        "interleaved",
        dtype=torch.float64,
    )
    omega, off = frequencies_of(found, torch.full_like(found.angles, 1e-12))
    assert float(off.max()) < 1e-15
    assert bool(((omega - used).abs() <= off + 1e-16).all())
    with pytest.raises(ValueError, match="from position 1 on"):
        frequencies_of(rotated_units(lambda x, _: x, torch.tensor([0, 2]), 4, "half"), off)
    assert float(wrapped(torch.tensor(3 * math.pi - 0.5))) == pytest.approx(math.pi - 0.5)


def plain(x: Tensor, p: Tensor, omega: Tensor) -> Tensor:
    found: Tensor = rotate(x, p, omega.float())
    return found


def compared(omega: Tensor, rotate: object, **options: object) -> Compared:
    return compare(rotate, omega, "interleaved", **options)  # type: ignore[arg-type]


def test_what_else_is_refused() -> None:
    omega = declared(1e4, 8)
    longer = compared(omega, lambda x, p: 1.01 * plain(x, p, omega))
    assert "are not rotated into each other" in longer.why
    allowed = compared(omega, lambda x, p: 1.01 * plain(x, p, omega), scale=1.01)
    assert allowed.status == "held"
    nothing = compared(omega, lambda x, p: plain(x, p, omega) * math.nan)
    assert "NaN or infinity" in nothing.why
    partly = compared(
        omega, lambda x, p: torch.cat((plain(x[:, :16], p, omega), x[:, 16:]), 1), width=20
    )
    assert partly.status == "held"
    moved = compared(
        omega, lambda x, p: torch.cat((plain(x[:, :16], p, omega), 0 * x[:, 16:]), 1), width=20
    )
    assert "from 16 on are of no pair" in moved.why
    with pytest.raises(ValueError, match="as many of the same width"):
        compared(omega, lambda x, _: x[:, :4])
    with pytest.raises(ValueError, match="the width is 4"):
        compared(omega, lambda x, _: x, width=4)
    with pytest.raises(ValueError, match="layout 'quarter'"):
        compare(lambda x, _: x, omega, "quarter")
    with pytest.raises(TypeError, match="look at that"):
        bool(allowed)


def test_the_code_of_transformers() -> None:
    llama = pytest.importorskip("transformers.models.llama.modeling_llama")
    config = pytest.importorskip("transformers.models.llama.configuration_llama")
    table = llama.LlamaRotaryEmbedding(
        config.LlamaConfig(
            hidden_size=64, head_dim=64, num_attention_heads=1, max_position_embeddings=1 << 17
        )
    )

    def cos_sin(p: Tensor) -> tuple[Tensor, Tensor]:
        cos, sin = table(torch.zeros(1), p[None])
        return cos[0], sin[0]

    def code(x: Tensor, p: Tensor) -> Tensor:
        cos, sin = table(x, p[None])
        rotated_, _ = llama.apply_rotary_pos_emb(x[None, None], x[None, None], cos, sin)
        found: Tensor = rotated_[0, 0]
        return found

    omega = declared(10_000, 32)
    for made in (code, by_table(cos_sin, "half")):
        assert compare(made, omega, "half").status == "held"
        assert compare(made, declared(10_001, 32), "half").status == "refused"
    assert "the layout of the code is half" in compare(code, omega, "interleaved").why
    table.inv_freq = table.inv_freq.to(BRAIN).float()
    assert compare(code, omega, "half").status == "refused"
    same = relative(code, omega, Pairs.drawn(64, 32), 10_000, layout="half")
    assert same.status == "held"
