"""Two programs that part on inputs which no ordinary call has; beside each, one that does not."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.equal.deciding import EQUAL_VERDICTS, compare, edge_case_remarks
from attnproof.programs.equal.inputs import (
    HALVES,
    drawn,
    lengths_met,
    meetings,
    table_relations,
    with_tables,
)
from attnproof.programs.equal.larger_inputs import compare_at_longer, larger_inputs_condition
from attnproof.programs.equal.measure import NumericComparison, compare_numerically
from attnproof.programs.equal.pair import ProgramPair, pair_programs
from attnproof.programs.equal.sides import Operand

Code = Callable[..., Tensor]
MASKED = "q: B H r 4, k: B H n 4, v: B H n 4, mask: B 1 r n keep -> B H r 4"
PADDED = "q: B H n 4, k: B H n 4, v: B H n 4, mask: B n keep -> B H n 4"
ADDED = "q: B H r 4, k: B H n 4, v: B H n 4, mask: B 1 r n add -> B H r 4"
PLACED = "x: B n 4, positions: B n positions -> B n 4"
COUNTED = "x: B n 4, lengths: B lengths -> B 4"
TOKENS = "x: B n 4 -> B n 4"


def both(first: Code, second: Code, line: str) -> ProgramPair:
    return pair_programs(Operand(first, "first", line), Operand(second, "second", line))


def looked(first: Code, second: Code, line: str) -> NumericComparison:
    return compare_numerically(both(first, second, line))


def attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    scores = (q @ k.mT / 2).masked_fill(~mask, -torch.inf)
    return torch.softmax(scores, -1) @ v


def sees_first(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """The first key is seen by all, whatever the mask says."""
    return attention(q, k, v, mask | (torch.arange(k.shape[-2]) == 0))


def by_weights(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    weights = torch.exp(q @ k.mT / 2) * mask
    return weights @ v / weights.sum(-1, keepdim=True)


def test_a_mask_hides_the_first_key_too() -> None:
    assert looked(attention, sees_first, MASKED).how == "with the first key hidden"
    assert looked(attention, by_weights, MASKED).counterexample is None


def causal(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    n = k.shape[-2]
    return attention(q, k, v, mask[:, None, None] & torch.ones(n, n, dtype=torch.bool).tril())


def causal_zeros(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    return causal(q, k, v, mask).nan_to_num()


def causal_sees_first(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    return causal(q, k, v, mask | (torch.arange(k.shape[-2]) == 0))


def test_rows_padded_on_the_left_are_compared_where_they_see_a_key() -> None:
    assert looked(causal, causal_zeros, PADDED).counterexample is None
    assert looked(causal, causal_sees_first, PADDED).counterexample is not None


def placed(x: Tensor, positions: Tensor) -> Tensor:
    return torch.erf(x * positions[..., None])


def placed_from(x: Tensor, positions: Tensor) -> Tensor:
    """Positions are counted from the first one."""
    return torch.erf(x * (positions[..., :1] + torch.arange(x.shape[1]))[..., None])


def placed_byte(x: Tensor, positions: Tensor) -> Tensor:
    return placed(x, positions.to(torch.int8))


def placed_long(x: Tensor, positions: Tensor) -> Tensor:
    return placed(x, positions.to(torch.int32))


def counted_byte(x: Tensor) -> Tensor:
    return x * torch.arange(x.shape[1]).to(torch.uint8)[:, None]


def counted(x: Tensor) -> Tensor:
    return x * torch.arange(x.shape[1])[:, None]


@pytest.mark.usefixtures("every_length")
def test_positions_have_gaps_and_whole_numbers_wrap_round() -> None:
    assert looked(placed, placed_from, PLACED).counterexample is not None
    assert looked(placed, placed_byte, PLACED).counterexample is not None
    assert looked(placed, placed_long, PLACED).counterexample is None
    assert looked(counted, counted_byte, TOKENS).counterexample is not None


def remembers(x: Tensor, ids: Tensor) -> Tensor:
    return x * (ids % 16)[..., None]


def masked_ids(x: Tensor, ids: Tensor) -> Tensor:
    return x * (ids & 15)[..., None]


def all_ids(x: Tensor, ids: Tensor) -> Tensor:
    return x * ids[..., None]


def test_ids_are_as_large_as_numbers_of_the_source() -> None:
    line = "x: B n 4, ids: B n ids -> B n 4"
    assert looked(remembers, all_ids, line).counterexample is not None
    assert looked(remembers, masked_ids, line).counterexample is None


# A program, one that parts from it at a number that stands in its source, and the second again.
NUMBERS: dict[str, tuple[Code, Code, Code]] = {
    "one that is passed": (
        lambda x: x * 1,
        lambda x: x.clamp(-500, 500),
        lambda x: torch.minimum(torch.maximum(x, x.new_tensor(-500)), x.new_tensor(500)),
    ),
    "a small norm": (
        lambda x: torch.nn.functional.normalize(x, dim=-1),
        lambda x: x / x.norm(dim=-1, keepdim=True).clamp(min=1e-8),
        lambda x: x / torch.maximum(x.square().sum(-1, True).sqrt(), x.new_tensor(1e-8)),
    ),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_of_the_source_are_inputs(name: str) -> None:
    plain, code, again = NUMBERS[name]
    assert looked(plain, code, TOKENS).counterexample is not None
    assert looked(code, again, TOKENS).counterexample is None


def rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    return x * cos + torch.cat((-x[..., 2:], x[..., :2]), -1) * sin


def test_sines_are_of_the_angles_of_their_cosines() -> None:
    """Queries with the sines of the keys are others: a table of one is none of the other."""

    def each(q: Tensor, cos_q: Tensor, sin_q: Tensor, cos_k: Tensor, sin_k: Tensor) -> Tensor:
        return rotated(q, cos_q, sin_q) + cos_k * sin_k

    def mixed(q: Tensor, cos_q: Tensor, sin_q: Tensor, cos_k: Tensor, sin_k: Tensor) -> Tensor:
        return rotated(q, cos_q, sin_k) + cos_k * sin_q

    def halved(q: Tensor, cos_q: Tensor, sin_q: Tensor, cos_k: Tensor, sin_k: Tensor) -> Tensor:
        first, second = sin_q[..., :2], sin_k[..., :2]
        return each(q, cos_q, first.repeat(1, 2), cos_k, second.repeat(1, 2))

    tables = "cos_q: n 4 cos, sin_q: n 4 sin, cos_k: n 4 cos, sin_k: n 4 sin"
    line = f"q: B n 4, {tables} -> B n 4"
    assert (
        compare(Operand(each, "each", line), Operand(mixed, "mixed", line)).verdict
        == "counterexample"
    )
    found = compare(Operand(each, "each", line), Operand(halved, "halved", line))
    assert found.verdict == "proved"
    assert found.programs.table is HALVES
    assert [one.name for one in found.programs.inputs] == [
        "q",
        "angles_of_cos_q",
        "angles_of_cos_k",
    ]


def test_a_table_without_its_other_half_is_of_any_numbers() -> None:
    def of(x: Tensor, cos: Tensor, sin: Tensor, more: Tensor) -> Tensor:
        return rotated(x, cos, sin) * more

    line = "x: B n 4, cos: n 4, sin: n 4, more: n 4 cos -> B n 4"
    pair = both(of, of, line)
    assert len(table_relations(pair.shared)) == 1
    whole = both(rotated, rotated, "x: B n 4, sin: n 4, cos: n 4 -> B n 4")
    given = drawn(replace(whole, table=HALVES).inputs, whole.lengths, 0)
    _, cosines, sines = with_tables(whole.shared, HALVES, given)
    assert torch.allclose(cosines**2 + sines**2, torch.ones(()))


def test_complex_results_are_compared_whole() -> None:
    def turns(x: Tensor) -> Tensor:
        return torch.polar(torch.ones_like(x), torch.erf(x))

    assert looked(turns, lambda x: turns(x).conj(), TOKENS).counterexample is not None
    assert looked(turns, lambda x: turns(-x).conj(), TOKENS).counterexample is None


def test_complex_inputs_are_no_fault_of_ours() -> None:
    def turned(q: Tensor, freqs: Tensor) -> Tensor:
        pairs = torch.view_as_complex(q.reshape(*q.shape[:-1], 2, 2))
        return torch.view_as_real(pairs * freqs).flatten(-2)

    def undone(q: Tensor, freqs: Tensor) -> Tensor:
        return turned(q, freqs.conj())

    line = "q: B n 4, freqs: n 2 cis -> B n 4"
    for other, wanted in ((turned, True), (undone, False)):
        found = compare(Operand(turned, "turned", line), Operand(other, "other", line), seconds=4)
        assert found.verdict != "internal error"
        assert (found.verdict != "counterexample") == wanted


class Mixing(nn.Module):
    """A matrix that is 1 at the start, so that it is its own transpose."""

    def __init__(self, *, transposed: bool) -> None:
        super().__init__()
        self.weight, self.transposed = nn.Parameter(torch.eye(4)), transposed

    def forward(self, x: Tensor) -> Tensor:
        return torch.erf(x @ (self.weight.mT if self.transposed else self.weight))


def test_weights_are_others_than_at_the_start() -> None:
    found = looked(Mixing(transposed=False), Mixing(transposed=True), TOKENS)
    assert found.how == "with other weights"
    assert looked(Mixing(transposed=True), Mixing(transposed=True), TOKENS).counterexample is None


def mean(x: Tensor, lengths: Tensor) -> Tensor:
    keep = torch.arange(x.shape[1]) < lengths[:, None]
    return (x * keep[..., None]).sum(1) / lengths[:, None]


def mean_or_0(x: Tensor, lengths: Tensor) -> Tensor:
    return mean(x, lengths).nan_to_num()


def added(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    return torch.softmax(q @ k.mT / 2 + mask, -1) @ v


def added_less_its_mean(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    return added(q, k, v, mask - mask.mean(-1, keepdim=True))


EDGE_CASES: dict[str, tuple[Code, Code, str]] = {
    "for a row of length 0, the first returns NaN": (mean, mean_or_0, COUNTED),
    "for positions below 0, the two return different numbers": (
        placed,
        lambda x, positions: placed(x, positions.abs()),
        PLACED,
    ),
    "for −∞ among what is added to the scores, the first returns numbers": (
        added,
        added_less_its_mean,
        ADDED,
    ),
}


@pytest.mark.parametrize("told", EDGE_CASES)
def test_what_no_call_has_is_a_remark(told: str) -> None:
    first, second, line = EDGE_CASES[told]
    pair = both(first, second, line)
    assert compare_numerically(pair).counterexample is None
    assert [one for one in edge_case_remarks(pair) if one.startswith(told)]
    assert not edge_case_remarks(both(first, first, line))


@pytest.mark.usefixtures("every_length")
def test_what_is_not_proved_says_at_which_lengths_it_was_run() -> None:
    def sorted_twice(x: Tensor) -> Tensor:
        return x.sort(1).values.sort(1).values

    found = compare(
        Operand(sorted_twice, "twice", TOKENS), Operand(lambda x: x.sort(1).values, "once", TOKENS)
    )
    assert found.verdict in ("measured", "exact")
    assert "at lengths up to 70" in found.why


def test_lengths_that_one_line_has_as_one_are_told() -> None:
    """Causal from the start and at the end are one function of as many queries as keys alone."""

    def causal_at(*, offset: bool) -> Code:
        def attend(q: Tensor, k: Tensor) -> Tensor:
            r, n = q.shape[1], k.shape[1]
            return (q @ k.mT).tril(n - r if offset else 0)

        return attend

    line, square = "q: B r 4, k: B n 4 -> B r n", "q: B n 4, k: B n 4 -> B n n"
    first, second = causal_at(offset=True), causal_at(offset=False)
    found = compare(Operand(first, "first", line), Operand(second, "second", square))
    assert found.verdict == "proved"
    assert [c.kind for c in found.assuming if c.text in ("n = r", "r = n")] == ["for"]
    found = compare(Operand(first, "first", line), Operand(second, "second", line))
    assert found.verdict == "counterexample"


def alibi_with(second: Callable[[int], bool]) -> Code:
    """ALiBi; the numbers of heads for which ``second`` holds have slopes of twice the size."""

    def biases(heads: int, n: int) -> Tensor:
        slopes = 2.0 ** (-8.0 / heads * torch.arange(1, heads + 1))
        at = torch.arange(n)
        return (2 if second(heads) else 1) * slopes[:, None, None] * (at - at[:, None])

    return biases


class OfFour(nn.Module):
    """The same with 4 heads, which it does not receive."""

    heads = 4

    def forward(self, n: int) -> Tensor:
        return alibi_with(lambda _: False)(4, n)


def test_weights_may_have_names_that_cannot_be_written() -> None:
    made = [nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(2)]
    first, second = (Operand(one, "made", TOKENS) for one in made)
    assert compare(first, second).verdict == "proved"
    other = Operand(nn.Sequential(nn.Linear(4, 4), nn.Sigmoid()), "other", TOKENS)
    assert compare(first, other).verdict == "counterexample"


@pytest.mark.usefixtures("every_length")
def test_a_number_of_heads_that_programs_receive_is_free() -> None:
    line = "heads = H, n = n -> H n n"
    plain = Operand(alibi_with(lambda _: False), "plain", line)
    for second in (lambda h: h == 3, lambda h: h == 12):
        other = Operand(alibi_with(second), "other", line)
        assert compare(plain, other).verdict == "counterexample"
    assert compare(plain, replace(plain, name="again")).verdict == "proved"
    found = compare(plain, Operand(OfFour(), "of four", "n = n -> H n n"))
    assert found.verdict in EQUAL_VERDICTS
    assert [c.kind for c in found.assuming if c.text == "H = 4"] == ["for"]


def times(count: Callable[[int], Tensor]) -> Code:
    """Each token times a number of its own."""
    return lambda x: torch.erf(x * count(x.shape[1])[:, None] / 4096)


def sums_of(blocks: int) -> Code:
    """The sums of blocks of 512 tokens; ``blocks`` are added, and any further ones forgotten."""

    def summed(x: Tensor) -> Tensor:
        parts = torch.split(x, 512, 1)[:blocks]
        return torch.sin(sum((part.sum(1) for part in parts), torch.zeros(())))

    return summed


def sums_without_a_full_third(x: Tensor) -> Tensor:
    """The sums of blocks of 512 tokens, of which a full third one is forgotten."""
    parts = [one for k, one in enumerate(torch.split(x, 512, 1)) if k != 2 or one.shape[1] < 512]
    return torch.sin(sum((part.sum(1) for part in parts), torch.zeros(())))


def whole_sum(x: Tensor) -> Tensor:
    return torch.sin(x.sum(1))


CHANNELS = "x: B n 4 -> B 4"
# A program, and one that parts from it where a number of its source is passed.
FAR: dict[str, tuple[Code, Code, str]] = {
    "a table ends": (times(torch.arange), times(lambda n: torch.arange(n).clamp(max=4095)), TOKENS),
    "a table begins again": (times(torch.arange), times(lambda n: torch.arange(n) % 65536), TOKENS),
    "tokens are cut": (whole_sum, lambda x: whole_sum(x[:, -8192:]), CHANNELS),
    "the third block": (whole_sum, sums_of(2), CHANNELS),
    "a full third block": (whole_sum, sums_without_a_full_third, CHANNELS),
    "a long row": (whole_sum, lambda x: whole_sum(x) * (1 + (x.shape[1] == 2048)), CHANNELS),
    "rows longer than a number": (
        mean,
        lambda x, lengths: mean(x, lengths.clamp(max=1024)),
        COUNTED,
    ),
    "many rows": (
        whole_sum,
        lambda x: whole_sum(x) * (1 + (torch.arange(len(x)) >= 1000))[:, None],
        CHANNELS,
    ),
}


ENTRIES = "x" * 1801


class Paged(nn.Module):
    """Each token gets the place at which its page of 23 says that it is."""

    def __init__(self, pages: list[int]) -> None:
        super().__init__()
        self.size = 23
        self.pages: Tensor
        self.register_buffer("pages", torch.tensor(pages))

    def forward(self, x: Tensor) -> Tensor:
        place = torch.arange(x.shape[1])
        page = self.pages[(place // self.size).clamp(max=len(self.pages) - 1)]
        return torch.erf(x * (page * self.size + place % self.size)[:, None] * 1e-3)


def rows_up_to(most: Callable[[], int]) -> Code:
    return lambda x: whole_sum(x) * (1 + (x.shape[1] > most()))


def places_of_a_list(x: Tensor, most: int | None = None) -> Tensor:
    """The list of places is cut, and no array is."""
    return torch.erf(x * torch.tensor([*range(x.shape[1])][:most][-1]) * 1e-3)


# The same, where the program computes the number.
FAR |= {
    "a computed number of tokens": (whole_sum, rows_up_to(lambda: int(math.exp(6.7))), CHANNELS),
    "part of the length of a text": (whole_sum, rows_up_to(lambda: len(ENTRIES) // 3), CHANNELS),
    "a cut by a computed number": (
        whole_sum,
        lambda x: whole_sum(x[:, -math.factorial(6) :]),
        CHANNELS,
    ),
    "a list is cut": (places_of_a_list, lambda x: places_of_a_list(x, math.factorial(6)), TOKENS),
    "a square": (
        whole_sum,
        lambda x: whole_sum(x) * (1 + (x.shape[1] ** 2 > math.factorial(9))),
        CHANNELS,
    ),
    "pages": (Paged([*range(70)]).forward, Paged([*range(60), 59, *range(61, 70)]).forward, TOKENS),
}


def test_a_length_is_no_number_of_the_code() -> None:
    def code(x: Tensor) -> Tensor:
        n = x.shape[1]
        return whole_sum(x[:, : 2 * n][:, n - math.factorial(6) :] * 10000.0 ** torch.rand(n, 1))

    pair = both(code, code, CHANNELS)
    assert math.factorial(6) in lengths_met(pair, meetings(pair, "Bn"))
    assert max(lengths_met(pair, meetings(pair, "Bn"))) == math.factorial(6)


@pytest.mark.usefixtures("every_length")
@pytest.mark.parametrize("name", FAR)
def test_what_is_not_proved_is_run_beyond_the_numbers_of_the_source(name: str) -> None:
    first, second, line = FAR[name]
    for one, differs in ((first, True), (second, False)):
        pair = both(one, second, line)
        found = NumericComparison(formats=("float64",))
        told = [one.text for one in compare_at_longer(pair, 0, found)]
        assert (found.counterexample is not None) == differs
        # of a square it is not known that no length is meant
        assert told == ["B, n ≤ 362879"] * (name == "a square" and not differs)


def ranked(x: Tensor) -> Tensor:
    """No term is read for this; it takes n² numbers, and none of its tokens is far away."""
    return (x @ x.mT)[..., :100_000].sort(-1).values


@pytest.mark.usefixtures("every_length")
def test_numbers_that_are_too_much_work_stand_on_the_line() -> None:
    found = compare(Operand(ranked, "first", "x: B n 4 -> B n n"), Operand(ranked, "second", ""))
    assert found.verdict == "measured"
    assert [c.phrase for c in found.assuming if c.kind == "for"] == ["n ≤ 99999"]
    few = compare(Operand(ranked, "first", "x: B 5 4 -> B 5 5"), Operand(ranked, "second", ""))
    assert not [c.phrase for c in few.assuming if "n" in c.phrase and c.kind == "for"]


def filled(fill: float) -> Code:
    def code(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        return torch.softmax((q @ k.mT / 2).masked_fill(~mask, fill), -1) @ v

    return code


def test_a_number_stands_for_infinity_only_where_an_exponential_is_taken() -> None:
    def clamped(x: Tensor) -> Tensor:
        return x.clamp(-10_000, 10_000)

    assert looked(clamped, lambda x: x * 1, TOKENS).counterexample is not None
    assert looked(clamped, lambda x: -(-x).clamp(-10_000, 10_000), TOKENS).counterexample is None


def test_inputs_as_large_as_a_fill_are_a_condition() -> None:
    for fill, told in ((-10_000.0, 1), (-torch.inf, 0)):
        pair = both(filled(-torch.inf), filled(fill), MASKED)
        found = NumericComparison(formats=("float64",))
        conditions = larger_inputs_condition(pair, 0, found)
        assert [c.text[:30] for c in conditions] == ["inputs stay far below 10000, w"] * told


def test_the_program_that_keeps_state_is_named() -> None:
    kept = [0.0]

    def counts(x: Tensor) -> Tensor:
        kept[0] += 1e-3
        return x + kept[0]

    first, second = Operand(lambda x: x * 1, "plain", TOKENS), Operand(counts, "counts", TOKENS)
    for pair in ((first, second), (second, first)):
        found = compare(*pair)
        assert found.verdict == "undecided"
        assert found.why.startswith("two equal calls of counts differ by")
