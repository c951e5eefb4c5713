"""Layers, biases and recurrences against a specification: what is one, and what is not."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from attnproof.programs.equal.deciding import Verdict, compare
from attnproof.programs.equal.matching import divergence
from attnproof.programs.equal.measure import compare_numerically
from attnproof.programs.equal.pair import pair_programs
from attnproof.programs.equal.sides import Operand
from attnproof.programs.equal.specification import WrongSpecification, read
from attnproof.programs.signatures.signature import SignatureError

SAME = ("proved", "exact", "measured")
TABLE = "table: 32 H, r = r, n = n -> H r n"


def against(code: Callable[..., Tensor], line: str, text: str) -> Verdict:
    return compare(Operand(code, "code", line), Operand(text, text), seconds=4.0)


def differ(code: Callable[..., Tensor], line: str, text: str) -> bool:
    """Whether running alone shows a difference."""
    looked = compare_numerically(pair_programs(Operand(code, "code", line), Operand(text, text)))
    assert looked.tried
    return looked.counterexample is not None


# T5, as its code has it: the logarithm of 0 is −inf, which is not read


def bucket(away: Tensor, *, both: bool, buckets: int = 32, distance: int = 128) -> Tensor:
    found = torch.zeros_like(away)
    if both:
        buckets //= 2
        found = (away > 0).long() * buckets
        away = away.abs()
    else:
        away = -torch.minimum(away, torch.zeros_like(away))
    exact = buckets // 2
    far = torch.log(away.float() / exact) / math.log(distance / exact) * (buckets - exact)
    last = torch.minimum(exact + far.long(), torch.full_like(away, buckets - 1))
    return found + torch.where(away < exact, away, last)


def offsets(r: int, n: int, first: int = 0) -> Tensor:
    return torch.arange(n)[None, :] - (torch.arange(r)[:, None] + first)


def learned(table: Tensor, r: int, n: int) -> Tensor:
    return table[bucket(offsets(r, n), both=True)].permute(2, 0, 1)


def of_the_past(table: Tensor, r: int, n: int) -> Tensor:
    return functional.embedding(bucket(offsets(r, n, n - r), both=False), table).permute(2, 0, 1)


def other_sign(table: Tensor, r: int, n: int) -> Tensor:
    return table[bucket(-offsets(r, n), both=True)].permute(2, 0, 1)


def nearer(table: Tensor, r: int, n: int) -> Tensor:
    return table[bucket(offsets(r, n), both=True, distance=64)].permute(2, 0, 1)


def test_t5s_buckets_are_known() -> None:
    assert against(learned, TABLE, "bias:name=t5,bidirectional,alignment=start").verdict == "exact"
    assert not differ(learned, TABLE, "bias:buckets=32,distance=128,bidirectional,alignment=start")
    assert not differ(of_the_past, TABLE, "bias:name=t5")


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (learned, "bias:name=t5,bidirectional"),  # the last query at the last key
        (learned, "bias:name=t5,alignment=start"),  # one direction
        (learned, "bias:name=t5,bidirectional,alignment=start,distance=64"),
        (other_sign, "bias:name=t5,bidirectional,alignment=start"),
        (nearer, "bias:name=t5,bidirectional,alignment=start"),
        (of_the_past, "bias:name=t5,alignment=start"),
        (of_the_past, "bias:name=t5,bidirectional"),
    ],
)
@pytest.mark.usefixtures("every_length")
def test_other_buckets_are_not(code: Callable[..., Tensor], text: str) -> None:
    assert differ(code, TABLE, text)


def with_bias(q: Tensor, k: Tensor, v: Tensor, table: Tensor) -> Tensor:
    scores = q @ k.mT + learned(table, q.shape[-2], k.shape[-2])
    return torch.softmax(scores, -1) @ v


def test_t5s_attention_divides_nothing() -> None:
    line = "q: B H r 8, k: B H n 8, v: B H n 8, table: 32 H -> B H r 8"
    text = "attention:buckets=32,bidirectional,alignment=start"
    assert not differ(with_bias, line, f"{text},scale=1")
    assert differ(with_bias, line, text)
    assert differ(with_bias, line, "attention:buckets=32,alignment=start,scale=1")


class T5(nn.Module):
    """ProgramPair heads of 8 channels."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(16, 16, bias=False) for _ in range(4))
        self.relative_attention_bias = nn.Embedding(32, 2)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (one(x).unflatten(-1, (2, 8)).transpose(1, 2) for one in (self.q, self.k, self.v))
        made = with_bias(q, k, v, self.relative_attention_bias.weight)
        found: Tensor = self.o(made.transpose(1, 2).flatten(2))
        return found


def test_the_table_of_a_layer_is_found_by_its_name() -> None:
    text = "attention:heads=2,scale=1,buckets=32,bidirectional"
    line = "x: B n 16 -> B n 16"
    both = pair_programs(Operand(T5(), "T5", line), Operand(text, text))
    assert "table" in both.weights
    assert both.notes == ()
    looked = compare_numerically(both)
    assert looked.tried
    assert looked.counterexample is None


def test_what_a_specification_has_no_use_for_is_a_remark() -> None:
    plain = "attention:heads=2,scale=1"
    both = pair_programs(Operand(T5(), "T5", "x: B n 16 -> B n 16"), Operand(plain, plain))
    assert both.notes == (f"{plain} uses none of relative_attention_bias.weight",)
    assert compare_numerically(both).counterexample is not None


# ALiBi


def slopes(heads: int) -> Tensor:
    return torch.tensor([2.0 ** (-8 * k / heads) for k in range(1, heads + 1)])


def linear(heads: int, r: int, n: int) -> Tensor:
    return slopes(heads)[:, None, None] * offsets(r, n, n - r)


def of_both_sides(heads: int, r: int, n: int) -> Tensor:
    return -slopes(heads)[:, None, None] * offsets(r, n, n - r).abs()


HEADS = "heads = 4, r = r, n = n -> 4 r n"


def test_alibi_is_proved_and_its_other_side_is_another() -> None:
    assert against(linear, HEADS, "bias:name=alibi").verdict == "proved"
    assert not differ(of_both_sides, HEADS, "bias:name=alibi,bidirectional")
    assert differ(linear, HEADS, "bias:name=alibi,bidirectional")
    assert differ(of_both_sides, HEADS, "bias:name=alibi")
    assert differ(linear, HEADS, "bias:name=alibi,alignment=start")
    assert differ(linear, HEADS, "bias:slopes=0.5;0.25;0.125;0.0625")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("bias:name=kerple", "name=alibi or name=t5"),
        ("bias:name=t5", "table of learned numbers"),
        ("bias:bukets=32", "nearest: buckets"),
        ("attention:buckets=-1", "above 0"),
    ],
)
def test_what_is_no_bias_is_refused(text: str, told: str) -> None:
    with pytest.raises((WrongSpecification, SignatureError), match=told):
        compare(Operand(linear, "linear", HEADS), Operand(text, text))


def test_a_wrong_specification_is_told_before_what_is_wrong_with_the_call() -> None:
    for line in ("", "x: B n E -> B n"):
        with pytest.raises(WrongSpecification, match="nope"):
            compare(Operand(linear, "linear", line), Operand("attention:nope", "attention:nope"))


def test_buckets_want_a_table() -> None:
    line = "q: B H r 8, k: B H n 8, v: B H n 8 -> B H r 8"
    with pytest.raises(SignatureError, match="no table of them"):
        against(functional.scaled_dot_product_attention, line, "attention:buckets=32")


# the delta rule


def written(q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor, *, late: bool) -> Tensor:
    """As libraries have it, tokens first: the state is decayed, then read, then written."""
    q, k, v, g, beta = (x.transpose(1, 2) for x in (q, k, v, g, beta))
    state = q.new_zeros(*q.shape[:2], q.shape[-1], v.shape[-1])
    found = []
    for i in range(q.shape[2]):
        before = state
        state = state * g[:, :, i].exp()[..., None, None]
        seen = before if late else state
        told = (v[:, :, i] - (seen * k[:, :, i, :, None]).sum(-2)) * beta[:, :, i, None]
        state = state + k[:, :, i, :, None] * told[:, :, None]
        found.append((state * q[:, :, i, :, None]).sum(-2))
    return torch.stack(found, 1)


def gated(q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor) -> Tensor:
    return written(q, k, v, g, beta, late=False)


def late(q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor) -> Tensor:
    return written(q, k, v, g, beta, late=True)


def halved(q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor) -> Tensor:
    return written(q / 2, k, v, g, beta, late=False)


GATED = "q: B 3 H 4, k: B 3 H 4, v: B 3 H 2, g: B 3 H, beta: B 3 H -> B 3 H 2"


def test_the_gated_delta_rule_is_known_in_any_order_of_its_gates() -> None:
    assert against(gated, GATED, "delta:").verdict in SAME
    assert not differ(halved, GATED, "delta:scale=0.5")


def test_its_neighbours_are_not_it() -> None:
    assert differ(late, GATED, "delta:")
    assert differ(halved, GATED, "delta:")
    assert differ(gated, GATED, "delta:scale=0.5")
    line = GATED.replace(", g: B 3 H, beta: B 3 H", ", beta: B 3 H, g: B 3 H")
    swapped = line.replace("beta", "gate").replace(", g:", ", beta:")
    assert differ(lambda q, k, v, gate, beta: gated(q, k, v, beta, gate), swapped, "delta:")


def test_what_grows_past_the_format_is_a_remark() -> None:
    """Where one is inf and the other NaN, of large inputs, nothing is said of the functions."""

    def divided(x: Tensor) -> Tensor:
        return (10 * x).exp() * (10 * x).exp() / (10 * x).exp()

    def plain(x: Tensor) -> Tensor:
        return (10 * x).exp()

    line = "x: B n -> B n"
    looked = compare_numerically(
        pair_programs(Operand(divided, "divided", line), Operand(plain, "plain", line))
    )
    assert looked.counterexample is None
    assert "for large inputs, divided returns non-finite values in float32" in looked.overflows
    other = compare_numerically(
        pair_programs(Operand(divided, "divided", line), Operand(lambda x: 1 / x, "other", line))
    )
    assert other.counterexample is not None


def test_nan_of_small_inputs_is_a_difference() -> None:
    line = "x: B n -> B n"

    def rooted(x: Tensor) -> Tensor:
        return x.sqrt().nan_to_num(nan=0.0)

    looked = compare_numerically(
        pair_programs(Operand(torch.sqrt, "sqrt", line), Operand(rooted, "rooted", line))
    )
    assert looked.counterexample is not None


# where two programs part


def test_what_parts_two_programs_is_no_array_of_written_numbers_and_no_moved_input() -> None:
    def first(q: Tensor, k: Tensor) -> Tensor:
        keys = k.transpose(1, 2)
        place = torch.arange(k.shape[1])
        return q @ keys - place

    def second(q: Tensor, k: Tensor) -> Tensor:
        return torch.einsum("bid,bjd->bij", q, k) * 0.5 - torch.arange(k.shape[1])

    line = "q: B n E, k: B n E -> B n n"
    found: Any = divergence(
        pair_programs(Operand(first, "first", line), Operand(second, "second", line))
    )
    assert str(found.second).startswith("mul at")
    assert found.first.operation == "sub"


def test_what_a_specification_does_is_looked_at_too() -> None:
    found: Any = divergence(
        pair_programs(Operand(of_both_sides, "b", HEADS), Operand("bias:name=alibi", "alibi"))
    )
    assert found.first.operation == "neg"  # of the slopes


@pytest.mark.parametrize("text", ["attention:alignment=middle", "bias:name=t5,alignment=left"])
def test_an_alignment_is_at_the_end_or_at_the_start(text: str) -> None:
    with pytest.raises(WrongSpecification, match="alignment is one of end, start"):
        read(text)


# layers against a specification: half tables, and frequencies that are scaled


TABLES = "x: B n 16, cos: n 4 cos, sin: n 4 sin -> B n 16"


class Layer(nn.Module):
    """ProgramPair heads of 8 channels, rotated by tables of 4 columns."""

    def __init__(self) -> None:
        super().__init__()
        self.q_proj = nn.Linear(16, 16, bias=False)
        self.k_proj = nn.Linear(16, 16, bias=False)
        self.v_proj = nn.Linear(16, 16, bias=False)
        self.o_proj = nn.Linear(16, 16, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        q, k, v = (
            made(x).unflatten(-1, (2, 8)).transpose(1, 2)
            for made in (self.q_proj, self.k_proj, self.v_proj)
        )
        q, k = self.rotated(q, cos, sin), self.rotated(k, cos, sin)
        made = torch.nn.functional.scaled_dot_product_attention(q, k, v)
        found: Tensor = self.o_proj(made.transpose(1, 2).flatten(2))
        return found

    def rotated(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """In halves."""
        a, b = x.chunk(2, -1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class Interleaved(Layer):
    """The other layout."""

    def rotated(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack((a * cos - b * sin, b * cos + a * sin), -1).flatten(-2)


class Longer(Layer):
    """Makes its own tables: positions are divided by 4."""

    def forward(self, x: Tensor) -> Tensor:  # type: ignore[override]
        omega = 10000.0 ** -(torch.arange(0, 8, 2, dtype=torch.float64) / 8) / 4
        angles = torch.arange(x.shape[1])[:, None] * omega.float()
        return super().forward(x, angles.cos(), angles.sin())


@pytest.mark.parametrize(
    ("layer", "layout", "verdict"),
    [
        (Layer, "half", "proved"),
        (Layer, "interleaved", "counterexample"),
        (Interleaved, "half", "counterexample"),
    ],
)
def test_a_layer_may_have_tables_of_half_a_head(
    layer: type[Layer], layout: str, verdict: str
) -> None:
    torch.manual_seed(0)
    text = f"attention:heads=2,rope={layout}"
    found = compare(Operand(layer(), "layer", TABLES), Operand(text, text), seconds=60.0)
    assert found.verdict == verdict, found.why


@pytest.mark.parametrize(
    ("scaling", "same"),
    [("scaling=linear,factor=4", True), ("scaling=ntk,factor=4", False), ("base=10000", False)],
)
def test_the_frequencies_of_a_layer_are_scaled_as_specified(scaling: str, same: bool) -> None:
    torch.manual_seed(0)
    text = f"attention:heads=2,rope=half,{scaling}"
    both = pair_programs(Operand(Longer(), "layer", "x: B n 16 -> B n 16"), Operand(text, text))
    assert (compare_numerically(both).counterexample is None) == same


def test_a_scaling_of_no_name_is_refused() -> None:
    text = "attention:heads=2,rope=half,scaling=longer"
    with pytest.raises(WrongSpecification, match="scaling is one of linear, ntk"):
        pair_programs(Operand(Longer(), "layer", "x: B n 16 -> B n 16"), Operand(text, text))
