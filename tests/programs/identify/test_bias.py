"""What a bias is, or what is added to tokens: slopes, buckets, windows, sines; faults are told."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

from attnproof.programs.identify import identify
from attnproof.programs.reading.offsets import by_offset, heads_of, offsets_in, shared_entries
from attnproof.programs.subjects import Additive, Bias
from attnproof.theorems.definitions.positions import published_slopes
from attnproof.theorems.definitions.references import t5_bucket

from .identified import part


def lines(slopes: list[float], kind: str = "both", dtype: torch.dtype = torch.float32) -> Bias:
    """ALiBi of any slopes: falling to both sides, counted from the key alone, or hidden after."""
    m = torch.tensor(slopes)[:, None, None]

    def bias(T: int, S: int) -> Tensor:
        start = 0 if kind == "start" else S - T
        t, s = torch.arange(T)[:, None] + start, torch.arange(S)[None, :]
        if kind == "keys":
            return (m * s).expand(-1, T, S).to(dtype)
        made = -m * (t - s).abs()
        return (made.masked_fill(s > t, -torch.inf) if kind == "hidden" else made).to(dtype)

    return Bias(name="lines", heads=len(slopes), bias=bias, causal=kind == "keys")


@pytest.mark.parametrize("heads", [1, 4, 6, 12, 40])
@pytest.mark.parametrize("kind", ["both", "keys", "hidden"])
def test_published_slopes(heads: int, kind: str) -> None:
    found = identify(lines(published_slopes(heads), kind))
    assert part(found, "slopes").words == f"ALiBi, slopes as published for {heads} heads"
    assert found.answers[0].startswith("are my slopes the published ones? yes")
    assert len(found.numbers["slopes"]) == heads
    own = "up to a number for each query" in found.sentence
    assert own == (kind == "keys")


def test_published_slopes_are_those_of_transformers() -> None:
    from transformers.models.bloom.modeling_bloom import build_alibi_tensor

    for heads in (4, 6, 12, 40):
        made = build_alibi_tensor(torch.ones(1, 2), heads, torch.float32)
        got = made.reshape(heads, 2)[:, 1].tolist()
        assert got == pytest.approx(published_slopes(heads), rel=1e-6)
    with pytest.raises(ValueError, match="at least one head"):
        published_slopes(0)


def test_other_slopes_are_told() -> None:
    series = [2 ** (-8 * (h + 1) / 12) for h in range(12)]
    found = identify(lines(series))
    assert "one geometric series from 0.629961 by 0.629961" in found.sentence
    assert found.answers[0].startswith("are my slopes the published ones? no")
    found = identify(lines(sorted(published_slopes(6))))
    assert "as published for 6 heads in another order" in found.sentence
    assert "not as published" in identify(lines([0.3, 0.1, 0.7])).sentence
    found = identify(lines([m * 1.001 for m in published_slopes(8)]))
    assert "not as published" in found.sentence
    found = identify(lines([m * 1.001 for m in published_slopes(8)], dtype=torch.bfloat16))
    assert "as published for 8 heads" in found.sentence  # within what bfloat16 keeps


def test_where_few_queries_stand() -> None:
    slopes = published_slopes(4)
    assert part(identify(lines(slopes)), "alignment").value == "end"
    found = identify(lines(slopes, "start"))
    assert part(found, "alignment").value == "start"
    assert "queries aligned at the start" in found.sentence


def test_more_than_the_offset() -> None:
    table = torch.randn(2, 64, 64, generator=torch.Generator().manual_seed(0))
    found = identify(Bias(name="x", heads=2, bias=lambda T, S: table[:, :T, :S]))
    assert "which depends on more than the offset" in found.sentence
    by = torch.randn(2, 2000, generator=torch.Generator().manual_seed(0))
    any_offset = Bias(
        name="x",
        heads=2,
        bias=lambda T, S: by[:, torch.arange(S) - torch.arange(S - T, S)[:, None] + 1000],
    )
    found = identify(any_offset)
    assert "a function of the offset with 600 values before the query" in found.sentence
    assert not part(found, "function").certain
    clipped = Bias(
        name="x",
        heads=2,
        bias=lambda T, S: by[
            :, (torch.arange(S) - torch.arange(S - T, S)[:, None]).clamp(-9, 9) + 9
        ],
    )
    assert "one beyond distance 9" in identify(clipped).sentence
    zero = Bias(name="x", heads=2, bias=lambda T, S: torch.zeros(2, T, S))
    assert "nothing can be read" in identify(zero).sentence
    with pytest.raises(ValueError, match=r"\(heads, 3, 4\); got \(2, 5, 4\)"):
        heads_of(torch.zeros(2, 5, 4), 3, 4)


@pytest.mark.parametrize(("sign", "falls"), [(-1, True), (1, False)])
def test_a_smooth_bias_has_not_one_value(sign: int, falls: bool) -> None:
    def bias(T: int, S: int) -> Tensor:
        d = (torch.arange(S - T, S)[:, None] - torch.arange(S)[None, :]).float()
        past = sign * (0.01 * d + 0.5 * (d / 600) ** 2)  # a step is less than 600 keys are rounded
        return torch.where(d < 0, 0.1 * d, past).expand(2, T, S)

    found = identify(Bias(name="x", heads=2, bias=bias))
    assert "a smooth function of the offset" in found.sentence
    assert " values before the query" not in found.sentence
    assert ("falling with the distance" in found.sentence) is falls


def _buckets(buckets: int, distance: int, both: bool) -> Bias:
    table = torch.randn(buckets, 3, generator=torch.Generator().manual_seed(1))

    def bias(T: int, S: int) -> Tensor:
        offset = torch.arange(S)[None, :] - torch.arange(S - T, S)[:, None]
        return table[t5_bucket(offset, buckets, distance, both=both)].permute(2, 0, 1)

    return Bias(name="t5", heads=3, bias=bias)


@pytest.mark.parametrize(
    ("buckets", "distance", "both"),
    [(32, 128, True), (32, 128, False), (16, 64, True), (64, 256, True), (8, 20, False)],
)
def test_buckets_of_t5(buckets: int, distance: int, both: bool) -> None:
    one = part(identify(_buckets(buckets, distance, both)), "buckets")
    sides = "both directions" if both else "one direction"
    assert one.value["buckets"] == buckets
    assert one.value["bidirectional"] == both
    assert one.words.startswith(f"T5 buckets: {buckets}, {sides}, distance ")
    fits = one.evidence.rpartition("distances from ")[2].split(" give")[0]
    ends = [int(n) for n in fits.split(" to ")] if " to " in fits else [one.value["distance"]] * 2
    assert ends[0] <= distance <= ends[1]
    assert one.certain == (ends[0] == ends[1])


@pytest.mark.parametrize("decoder", [False, True])
def test_the_bias_of_t5_in_transformers(decoder: bool) -> None:
    from transformers import T5Config
    from transformers.models.t5.modeling_t5 import T5Attention

    config = T5Config(is_decoder=decoder, num_heads=6, d_model=48, d_kv=8)
    made = T5Attention(config, has_relative_attention_bias=True, layer_idx=0)
    drawn = torch.Generator().manual_seed(0)
    torch.nn.init.normal_(made.relative_attention_bias.weight, generator=drawn)
    compute: Any = made.compute_bias
    bias = Bias(name="t5", heads=6, bias=lambda T, S: compute(T, S, past_seen_tokens=S - T)[0])
    sides = "one direction" if decoder else "both directions"
    assert f"T5 buckets: 32, {sides}, distance 128" in identify(bias).sentence


def test_buckets_that_start_elsewhere_are_not_t5s() -> None:
    table = torch.randn(64, 3, generator=torch.Generator().manual_seed(1))

    def bias(T: int, S: int) -> Tensor:
        offset = torch.arange(S)[None, :] - torch.arange(S - T, S)[:, None]
        return table[(offset.abs() // 50).clamp(max=60)].permute(2, 0, 1)

    found = identify(Bias(name="x", heads=3, bias=bias))
    assert found.part("buckets") is None
    assert not part(found, "function").certain


def _index(sizes: tuple[int, ...], wrong: bool = False) -> Tensor:
    place = torch.tensor(list(product(*(range(n) for n in sizes))))
    offset = place[:, None] - place[None]
    made = torch.zeros(offset.shape[:2], dtype=torch.int64)
    for axis, n in enumerate(sizes):
        made = made * ((2 * n - 1) - wrong * 2) + offset[..., axis] + n - 1
    return made


def test_windows() -> None:
    found = identify(Bias(name="x", heads=3, index=_index))
    assert "a place of its own for each offset of 3 × 5, query minus key" in found.sentence
    found = identify(Bias(name="x", heads=3, index=lambda sizes: _index(sizes, wrong=True)))
    assert "45 offsets of 3 × 5 share" in found.sentence
    number, count = offsets_in((3, 5))
    assert shared_entries(number, (3, 5)) == (count, None)
    with pytest.raises(ValueError, match=r"got \(4, 4\)"):
        shared_entries(torch.zeros(4, 4), (3, 5))
    table = torch.randn(3, 200, generator=torch.Generator().manual_seed(0))
    found = identify(Bias(name="x", heads=3, window=lambda r, c: table[:, _index((r, c))]))
    assert "a table by the offset in two axes, 3 heads" in found.sentence
    noise = torch.randn(3, 15, 15, generator=torch.Generator().manual_seed(0))
    found = identify(Bias(name="x", heads=3, window=lambda *_: noise))
    assert "depends on more than the offset" in found.sentence


def test_the_window_of_swin_in_transformers() -> None:
    from transformers import SwinConfig
    from transformers.models.swin.modeling_swin import SwinRelativePositionBias

    made = SwinRelativePositionBias.__new__(SwinRelativePositionBias)
    del SwinConfig

    def index(sizes: tuple[int, ...]) -> Tensor:
        if len(sizes) != 2:
            raise ValueError("two axes")
        object.__setattr__(made, "window_size", sizes)
        found = made._create_relative_position_index()
        assert isinstance(found, Tensor)
        return found

    found = identify(Bias(name="swin", heads=3, index=index))
    assert "an index with a place of its own for each offset of 3 × 5, query minus key" in (
        found.sentence
    )
    assert not part(found, "index of 3 axes").certain


def test_a_query_that_does_not_see_itself() -> None:
    hidden = torch.zeros(1, 4, 4).masked_fill(torch.eye(4).bool(), -torch.inf)
    with pytest.raises(ValueError, match="does not see its own key"):
        by_offset(hidden, torch.float32)


def _sines(
    layout: str = "interleaved",
    base: float = 1e4,
    scale: float = 1.0,
    over: int = 8,
    sine_only: bool = False,
    times: float | tuple[float, ...] = 1.0,
    start: float = 0,
) -> Additive:
    def added(x: Tensor) -> Tensor:
        T, D = x.shape[1:]
        w = base ** (-torch.arange(D // 2).float() / over)
        a = (torch.arange(T) + start).float()[:, None] * w
        c = a.sin() if sine_only else a.cos()
        both = (
            torch.stack((a.sin(), c), -1).flatten(1)
            if layout == "interleaved"
            else (torch.cat((a.sin(), c) if layout == "concatenated" else (c, a.sin()), -1))
        )
        return x * scale + both * torch.tensor(times)

    return Additive(name="sines", added=added, width=16)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (_sines(), "additive, sinusoidal, interleaved, sin first, base 10000"),
        (_sines("concatenated"), "additive, sinusoidal, concatenated, sin first, base 10000"),
        (_sines("cosines"), "additive, sinusoidal, concatenated, cos first, base 10000"),
        (
            _sines(scale=4.0),
            "additive, sinusoidal, interleaved, sin first, base 10000, tokens times √16",
        ),
        (_sines(base=1.0001), "additive, sinusoidal, interleaved, sin first, base 1.0001"),
        (
            _sines("concatenated", over=7),
            (
                "additive, sinusoidal, concatenated, sin first, base 10000, exponents b/7, to the "
                "end of "
                "the ladder"
            ),
        ),
        (
            _sines("concatenated", over=7, start=2),
            (
                "additive, sinusoidal, concatenated, from position 2, base 10000, exponents b/7, "
                "to the end "
                "of the ladder"
            ),
        ),
        (
            _sines(start=0.5),
            "additive, sinusoidal, interleaved, from another position than 0, base 10000",
        ),
        (
            _sines(times=0.25),
            (
                "additive, sinusoidal, interleaved, sin first, base 10000, sines and cosines times "
                "0.25"
            ),
        ),
        (
            _sines(times=8**-0.5),
            "additive, sinusoidal, interleaved, sin first, base 10000, rows of length 1",
        ),
        (_sines(times=(1.0, 1.0) * 7 + (2.0, 2.0)), "additive, a table of no known formula"),
        (_sines(times=(1.0, 2.0) * 8), "additive, a table of no known formula"),
        (_sines(sine_only=True), "additive, a table of no known formula"),
    ],
)
def test_tables_that_are_added(code: Additive, words: str) -> None:
    assert identify(code).sentence == words


def test_each_column_with_a_frequency_of_its_own_is_no_sinusoid() -> None:
    def added(x: Tensor) -> Tensor:
        j = torch.arange(x.shape[-1])
        a = torch.arange(x.shape[1]).float()[:, None] * 1e4 ** (-2 * j / x.shape[-1])
        return x + torch.where(j % 2 == 0, a.sin(), a.cos())

    found = identify(Additive(name="x", added=added, width=16))
    assert found.answers[0].startswith("is it the sinusoidal encoding? no")
    assert identify(_sines()).answers == ()


def test_learned_tables_and_none() -> None:
    table = torch.randn(64, 16, generator=torch.Generator().manual_seed(0))
    learned = Additive(
        name="x", added=lambda x: x + table[: x.shape[1]], width=16, most=64, learned=True
    )
    assert identify(learned).sentence == "additive, a learned table"
    batch = Additive(name="x", added=lambda x: x + table[: x.shape[0], None], width=16)
    assert "without positions" in identify(batch).sentence
