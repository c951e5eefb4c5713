"""Rotary code, biases and tables in unusual style: no alarm, and what is said of them is true."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from attnproof.programs.declarations import DeclaredRotary
from attnproof.programs.exact import exact
from attnproof.programs.execution.draw import Draw
from attnproof.programs.finding import Finding
from attnproof.programs.identify import identify
from attnproof.programs.measure.examine import examine
from attnproof.programs.no_adapter import NoAdapter
from attnproof.programs.signatures.signature import SignatureError
from attnproof.programs.subject import adapted_as
from attnproof.programs.subjects import Additive, Rotary, Subject

Rotate = Callable[[Tensor, Tensor], Tensor]
LADDER = 10000.0 ** (-torch.arange(4) / 4)


def found(code: Rotary, *laws: str) -> dict[str, Finding]:
    return {one.law: one for one in examine(code, (Draw(),), laws)}


def verdicts(code: Rotary, *laws: str) -> dict[str, str]:
    return {law: one.verdict for law, one in found(code, *laws).items()}


def rotated(x: Tensor, angle: Tensor, size: Tensor | float = 1.0) -> Tensor:
    """Neighbours rotated by angles (B, T, D/2)."""
    a, b, angle = x[..., 0::2], x[..., 1::2], angle[:, None]
    out = (a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos())
    return torch.stack([size * part for part in out], -1).flatten(-2).to(x.dtype)


def at(omega: Tensor) -> Rotate:
    return lambda x, positions: rotated(x, positions.float()[..., None] * omega)


def tabled(omega: Tensor, rows: int = 4096) -> Rotate:
    """The same from a table of whole positions."""
    table = torch.arange(rows).float()[:, None] * omega
    return lambda x, positions: rotated(x, table[positions])


PIXELS = torch.linspace(1, 128, 4) * math.pi
ODD = torch.tensor([1.0, 4.1, 17.3, 33.3])


def test_pixel_frequencies_raise_no_alarm() -> None:
    laws = ("relative", "composition", "angles-are-exact", "norm", "neighbours-differ")
    for omega in (PIXELS, ODD):
        code = Rotary(name="pixels", rotate=at(omega), width=8)
        assert set(verdicts(code, *laws).values()) == {"holds"}


def test_pixel_frequencies_are_read_between_whole_positions() -> None:
    said = identify(Rotary(name="pixels", rotate=at(PIXELS), width=8)).sentence
    assert "evenly spaced from 3.14159 to 402.12" in said, said
    assert "the other" not in said, said


def test_fast_pairs_on_whole_positions_alone_are_undecided() -> None:
    code = Rotary(name="table", rotate=tabled(ODD), width=8, most=4096)
    seen = found(code, "relative", "composition")
    assert {one.verdict for one in seen.values()} == {"undecided"}
    assert "half a turn" in seen["relative"].why
    said = identify(code).sentence
    assert "known up to whole turns a position" in said, said


def test_a_fault_on_whole_positions_alone_is_seen() -> None:
    rounded = tabled(LADDER)

    def rotate(x: Tensor, positions: Tensor) -> Tensor:
        return rounded(x, positions.bfloat16().long())

    code = Rotary(name="rounded", rotate=rotate, width=8, most=4096)
    assert set(verdicts(code, "relative", "composition").values()) == {"broken"}


def test_code_that_wants_contiguous_tensors_is_given_them() -> None:
    def rotate(x: Tensor, positions: Tensor) -> Tensor:
        assert x.is_contiguous()
        assert positions.is_contiguous()
        return at(LADDER)(x, positions)

    code = Rotary(name="picky", rotate=rotate, width=8)
    assert verdicts(code, "follows-its-ids") == {"follows-its-ids": "holds"}


def test_code_that_computes_in_bfloat16_is_judged_by_that() -> None:
    def rotate(x: Tensor, positions: Tensor) -> Tensor:
        angle = (positions.float()[..., None] * LADDER)[:, None]
        a, b, c, s = (t.bfloat16() for t in (x[..., :4], x[..., 4:], angle.cos(), angle.sin()))
        return torch.cat((a * c - b * s, a * s + b * c), -1).to(x.dtype)

    laws = ("relative", "norm", "composition", "linear", "identity-at-zero")
    assert set(verdicts(Rotary(name="short", rotate=rotate, width=8), *laws).values()) == {"holds"}

    def far(x: Tensor, positions: Tensor) -> Tensor:
        return rotate(x, positions.bfloat16())

    assert verdicts(Rotary(name="far", rotate=far, width=8), "relative") == {"relative": "broken"}


def test_lengths_that_fall_to_nothing_are_no_equal_angles() -> None:
    decay = (torch.arange(0, 8, 2) / 8 + 0.4) / 1.4

    def rotate(x: Tensor, positions: Tensor, sign: float = 1.0) -> Tensor:
        place = positions.float()[..., None]
        return rotated(x, place * LADDER, (decay ** (sign * place / 512))[:, None])

    code = Rotary(name="xpos", rotate=rotate, key=lambda x, p: rotate(x, p, -1.0), width=8)
    laws = ("composition", "neighbours-differ")
    assert set(verdicts(code, *laws).values()) == {"holds"}


def half(x: Tensor, positions: Tensor) -> Tensor:
    """Pairs of a half-split head of 16 channels of which the last four stand still."""
    omega = torch.cat((LADDER, torch.zeros(4)))
    angle = (positions.float()[..., None] * omega)[:, None]
    a, b = x.chunk(2, -1)
    return torch.cat((a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()), -1)


def test_pairs_of_a_half_split_head_are_read_where_only_some_rotate() -> None:
    code = Rotary(name="half", rotate=half, width=16)
    assert verdicts(code, "angles-are-exact") == {"angles-are-exact": "holds"}

    def short(x: Tensor, positions: Tensor) -> Tensor:
        return half(x, positions.bfloat16())

    wrong = Rotary(name="short", rotate=short, width=16)
    assert verdicts(wrong, "angles-are-exact") == {"angles-are-exact": "broken"}


def test_keys_become_as_long_as_declared_too() -> None:
    def longer(x: Tensor, positions: Tensor) -> Tensor:
        return 1.1 * at(LADDER)(x, positions)

    said = DeclaredRotary(base=10000.0, length=1.1)
    right = Rotary(name="both", rotate=longer, key=longer, width=8, declared=said)
    wrong = Rotary(name="queries", rotate=longer, key=at(LADDER), width=8, declared=said)
    assert verdicts(right, "length-as-declared") == {"length-as-declared": "holds"}
    assert verdicts(wrong, "length-as-declared") == {"length-as-declared": "broken"}


def test_angles_that_stop_growing_are_said_to() -> None:
    def rotate(x: Tensor, positions: Tensor) -> Tensor:
        return at(LADDER)(x, positions.clamp(max=2047))

    said = identify(Rotary(name="clamped", rotate=rotate, width=8)).sentence
    assert "angles that are not multiples of the position" in said, said


def test_a_ladder_of_ntk_is_as_exact_as_it_is() -> None:
    omega = 10000.0 ** (-torch.arange(4) / 3)  # or, in the words of NTK, a factor of 10
    said = identify(Rotary(name="end", rotate=at(omega), width=8)).sentence
    assert "angles computed in float32" in said, said
    assert "to the end of the ladder" in said, said


# biases and tables of positions in unusual style, and what is said of them


def verdicts_of(one: Subject, *laws: str) -> set[str]:
    return {seen.verdict for seen in examine(one, laws=laws)}


def slopes(heads: int) -> Callable[[int, int], Tensor]:
    """ALiBi of so many heads, which the call is not told."""

    def alibi_bias(q_len: int, k_len: int) -> Tensor:
        apart = torch.arange(q_len)[:, None] + k_len - q_len - torch.arange(k_len)
        return -apart.abs() * (2.0 ** -torch.arange(1.0, heads + 1))[:, None, None]

    return alibi_bias


def test_as_many_heads_as_keys_are_no_heads_behind_the_keys() -> None:
    for heads in (3, 6, 20):
        one = adapted_as(slopes(heads), kind="bias")
        assert verdicts_of(one, "offset-only", "last-rows") == {"holds"}
        assert f"{heads} heads" in identify(one).sentence


class Buckets(nn.Module):
    """A table of offsets, with the place of the first query beside the counts, as T5 has it."""

    def __init__(self, *, heard: bool = True) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.table, self.heard = nn.Embedding(64, 4), heard

    def forward(self, query_length: int, key_length: int, past_seen_tokens: int = 0) -> Tensor:
        first = past_seen_tokens if self.heard else 0
        apart = torch.arange(query_length)[:, None] + first - torch.arange(key_length)
        rows: Tensor = self.table(apart.clamp(-31, 31) + 31)
        return rows.permute(2, 0, 1)[None]


def test_few_queries_are_placed_where_the_code_must_be_told() -> None:
    one = adapted_as(Buckets(), kind="bias")
    assert verdicts_of(one, "last-rows") == {"holds"}
    assert "past_seen_tokens = (n - r)" in one.line
    assert verdicts_of(adapted_as(Buckets(heard=False), kind="bias"), "last-rows") == {"broken"}


def convert_to_additive_mask(attention_mask: Tensor, dtype: torch.dtype) -> Tensor:
    """Numbers to add, 0 where a key is shown: of a mask that shows all, zeros alone."""
    return (attention_mask.to(dtype) - 1)[:, None, None] * torch.finfo(dtype).max


def test_what_adds_nothing_under_the_mask_that_it_is_handed_is_refused() -> None:
    """Every law of a bias held of its zeros."""
    with pytest.raises(NoAdapter) as refused:
        adapted_as(convert_to_additive_mask)
    assert "where attention_mask shows every key" in refused.value.tried["bias"]
    line = "attention_mask: B n keep, dtype = torch.float32 -> B 1 1 n"
    with pytest.raises(SignatureError, match="0 everywhere") as told:
        adapted_as(convert_to_additive_mask, line, kind="bias")
    written = str(told.value).partition("--call '")[2].rstrip("'")

    def attend(q: Tensor, k: Tensor, v: Tensor, attention_mask: Tensor) -> Tensor:
        added = convert_to_additive_mask(attention_mask, q.dtype)
        return scaled_dot_product_attention(q, k, v, added)

    def hides_nothing(q: Tensor, k: Tensor, v: Tensor, attention_mask: Tensor) -> Tensor:
        return attend(q, k, v, attention_mask | True)

    laws = "true-means-visible", "hidden-keys-do-nothing"
    assert verdicts_of(adapted_as(attend, written), *laws) == {"holds"}
    assert verdicts_of(adapted_as(hides_nothing, written), *laws) == {"broken"}


def test_a_mask_that_is_called_as_a_bias_and_is_zero_is_none() -> None:
    def all_seen_mask(length: int) -> Tensor:
        return torch.zeros(1, 1, 1, length)

    with pytest.raises(NoAdapter) as refused:
        adapted_as(all_seen_mask)
    assert "adds nothing" in refused.value.tried["bias"]


def waves(omega: Tensor, width: int) -> Additive:
    def added(x: Tensor) -> Tensor:
        angle = torch.arange(x.shape[1]).float()[:, None] * omega
        return x + torch.stack((angle.sin(), angle.cos()), -1).flatten(-2)[:, :width].to(x.dtype)

    return Additive(name="waves", added=added, width=width, most=4096)


def test_the_base_of_an_odd_width_is_read() -> None:
    omega = 10000.0 ** (-torch.arange(0, 15, 2) / 15)
    said = identify(waves(omega, 15)).sentence
    assert "base 10000, exponents counted over the whole width, b/7.5" in said, said
    made = {seen.law: seen.verdict for seen in exact(waves(omega, 15))}
    assert made["products-of-offset"] == "not asked"


def test_fast_waves_are_undecided_and_other_faults_are_seen() -> None:
    fast = waves(math.pi * 1.7 ** torch.arange(6), 12)
    assert verdicts_of(fast, "linear-shift") == {"undecided"}
    assert "known up to whole turns a position" in identify(fast).sentence
    slow = 10000.0 ** (-torch.arange(6) / 6)
    assert verdicts_of(waves(slow, 12), "linear-shift", "products-of-offset") == {"holds"}

    def two(x: Tensor) -> Tensor:
        at = torch.arange(x.shape[1]).float()[:, None]
        pair = ((at * slow).sin(), (at * slow * 1.01).cos())
        return x + torch.stack(pair, -1).flatten(-2).to(x.dtype)

    wrong = Additive(name="two", added=two, width=12, most=4096)
    assert verdicts_of(wrong, "linear-shift", "products-of-offset") == {"broken"}


class Growing(nn.Module):
    """A table that is made when it is first asked for: as built it has no rows and no channels."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: Tensor
        self.register_buffer("rows", torch.zeros(0, 0))

    def get(self, length: int, width: int) -> Tensor:
        angles = torch.arange(length)[:, None] * 100.0 ** (-torch.arange(0, width, 2) / width)
        self.rows = torch.stack((angles.sin(), angles.cos()), -1).flatten(-2)
        return self.rows


def test_an_empty_buffer_tells_no_width() -> None:
    subject = adapted_as(Growing, "length = n, width = E -> n E; method get")
    assert isinstance(subject, Additive)
    assert subject.width > 0
    (seen,) = examine(subject, (Draw(),), ("sees-positions",))
    assert seen.verdict == "holds"
