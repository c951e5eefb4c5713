"""Programs that are not their graph, and laws whose words say more than an equation of zeros."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import deepcopy
from itertools import combinations, product
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.declarations import DeclaredAttention
from attnproof.programs.finding import Finding
from attnproof.programs.loading.source_numbers import numbers_in, numbers_of, related_numbers
from attnproof.programs.prove import prove
from attnproof.programs.prove.calls import calls_of
from attnproof.programs.prove.conditions import BY_VALUE, ON_CPU
from attnproof.programs.prove.gate import OVERWRITES
from attnproof.programs.prove.lengths import small as small_lengths
from attnproof.programs.prove.paired_runs import (
    POOL,
    POOL_STRIDE,
    PairedRun,
    _equal_up_to_rounding,
    _pool,
)
from attnproof.programs.subject import adapted_as
from attnproof.programs.subjects import Attention, Bias, Layer, Rotary
from tests.numeric.false_programs import (
    ROTARY,
    UNLIKE,
    WRAPPING,
    clipped,
    rectified,
    rotated,
    scored_and_returned,
)

SECONDS = 3.0
CAUSAL = DeclaredAttention(causal=True)


def of_layer(call: object, *laws: str) -> list[Finding]:
    module = call if isinstance(call, nn.Module) else None
    subject = Layer(name="l", call=call, embed=4, module=module)  # type: ignore[arg-type]
    return list(prove(subject, laws, seconds=SECONDS).findings)


def texts(finding: Finding) -> list[str]:
    return [condition.text for condition in finding.assuming]


@pytest.mark.usefixtures("lengths_of_one", "fewer_lengths")
@pytest.mark.parametrize("name", UNLIKE)
def test_code_that_does_other_than_its_graph_is_not_proved(name: str) -> None:
    found = of_layer(deepcopy(UNLIKE[name]), "permutation", "rows-of-batch-apart")
    assert not any(one.verdict == "holds" for one in found), found


def test_of_many_lengths_all_pairs_of_few_come_before_there_are_too_many() -> None:
    letters = list("BHrnD")
    every = [tuple(one.values()) for one in small_lengths(letters)]
    assert len(every) == len(set(every))
    assert {*product((1, 2, 3), repeat=5)} <= {*every}
    first = every[:60]
    assert {(n,) * 5 for n in (1, 2, 3)} <= {*first}
    for one, other in combinations(range(5), 2):
        assert {(sizes[one], sizes[other]) for sizes in first} >= {*product((1, 2, 3), repeat=2)}


@pytest.mark.usefixtures("fewer_lengths")
def test_where_the_law_fails_it_is_broken_there() -> None:
    (finding,) = of_layer(UNLIKE["is_int"], "permutation")
    assert finding.verdict == "broken"
    assert finding.sizes["n"] == 601
    assert "n = 601" in finding.why


def by_signed_sums(factor: float) -> Attention:
    """Weights that are no exponentials: where they cancel, a last bit changes the first digits."""

    def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        del mask
        total = torch.einsum("...nd,...d->...n", q, k.sum(-2))[..., None]
        n: object = q.shape[2]  # while it is traced, it is none
        return (factor if isinstance(n, int) and n > 6 else 1) * (q @ (k.mT @ v)) / total

    return Attention(name="a", attend=attend, heads=2, groups=2, width=4)


@pytest.mark.usefixtures("fewer_lengths")
@pytest.mark.parametrize(("factor", "verdict"), [(1.0, "holds"), (1.0001, "undecided")])
def test_what_last_bits_of_inputs_change_is_rounding(factor: float, verdict: str) -> None:
    (finding,) = prove(by_signed_sums(factor), ("order-of-keys",), seconds=SECONDS).findings
    assert finding.verdict == verdict, finding.why
    assert ("differs from its graph" in finding.why) == (verdict == "undecided")


@pytest.mark.parametrize(("factor", "is_rounding"), [(1.001, True), (1.1, False), (-1.0, False)])
def test_a_twentieth_of_an_entry_at_most_is_taken_for_rounding(
    factor: float, is_rounding: bool
) -> None:
    given = torch.linspace(1, 2, 40), 0.999 * torch.linspace(1, 2, 40)
    graphs: list[tuple[Callable[[Tensor, Tensor], Tensor], bool]] = [
        (lambda x, y: 1 / (x - y), is_rounding),  # of terms a thousand times as large
        (lambda x, _: (1e9 * x).sin(), is_rounding),  # of which no digit is left
        (lambda x, y: x + y, False),
    ]
    for graph, explains in graphs:
        run: Any = SimpleNamespace(graph_results=lambda at, graph=graph: (graph(*at),))
        want = graph(*given)
        assert PairedRun._is_rounding(run, given, (factor * want,), (want,)) == explains


class OfOneShapeIntoABuffer(nn.Module):
    """Its graph takes a single shape, and each result overwrites the one before."""

    def __init__(self) -> None:
        super().__init__()
        self.given: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        if self.given is None or self.given.shape != x.shape:
            self.given = torch.empty_like(x)
        self.given.copy_((x - x.mean(1, keepdim=True)).detach())
        return self.given


def test_results_of_one_shape_that_are_overwritten_are_not_proved() -> None:
    assert not of_layer(OfOneShapeIntoABuffer(), "permutation")


def reversed_where_not_compiled(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    """Of two keys the order does not matter even then."""
    del mask
    if not torch.compiler.is_compiling() and q.shape[2] == 77:
        v = v.flip(2)
    return (q @ k.mT).softmax(-1) @ v


@pytest.mark.usefixtures("fewer_lengths")
def test_other_lengths_vary_where_the_code_differs_from_its_graph() -> None:
    code = Attention(name="a", attend=reversed_where_not_compiled, heads=2, groups=2, width=4)
    (finding,) = prove(code, ("order-of-keys",), seconds=SECONDS).findings
    assert finding.verdict == "broken"
    assert "r = 77, n = 2 the code differs" in finding.why


@pytest.mark.parametrize("name", ROTARY)
def test_what_the_words_of_a_law_say_is_what_is_proved(name: str) -> None:
    rotate, law = ROTARY[name]
    (finding,) = prove(Rotary(name="r", rotate=rotate, width=4), (law,), seconds=SECONDS).findings
    assert finding.verdict in ("broken", "undecided")


def test_lengths_that_all_become_greater_by_one_number_are_kept() -> None:
    def longer(x: Tensor, p: Tensor) -> Tensor:
        return 1.25 * rotated(x, p)

    subject = Rotary(name="r", rotate=longer, width=4)
    found = prove(subject, ("norm", "composition"), seconds=SECONDS).findings
    assert {one.law: one.verdict for one in found} == {"norm": "holds", "composition": "holds"}


@pytest.mark.parametrize("name", WRAPPING)
def test_whole_numbers_that_wrap_round_are_a_condition(name: str) -> None:
    subject = Rotary(name="r", rotate=WRAPPING[name], width=4)
    found = prove(subject, ("relative", "linear"), seconds=SECONDS).findings
    holds = [one for one in found if one.verdict == "holds"]
    assert bool(holds) == (name != "a shift of bits")  # of which nothing is read
    assert all(any("overflow" in told for told in texts(one)) for one in holds)


def test_that_whole_numbers_wrap_round_is_told_only_where_there_are_some() -> None:
    plain = prove(Rotary(name="r", rotate=rotated, width=4), ("linear",), seconds=SECONDS)
    assert not any("overflow" in told for told in texts(plain.findings[0]))


@pytest.mark.parametrize("code", [rectified, clipped])
def test_a_low_number_that_is_no_mask_is_that_number(code: object) -> None:
    (finding,) = of_layer(code, "permutation")
    assert finding.verdict != "holds"


def test_a_fill_that_is_summed_too_is_that_number() -> None:
    subject = Attention(name="a", layer=scored_and_returned, embed=4, declared=CAUSAL)
    for finding in prove(subject, ("causal",), seconds=SECONDS).findings:
        assert not any("read as −∞" in told for told in texts(finding))


@pytest.mark.parametrize("fill", [-1e4, -1e9, torch.finfo(torch.float32).min])
def test_a_finite_fill_hides_for_scores_that_stay_near_zero(fill: float) -> None:
    def attend(x: Tensor) -> Tensor:
        later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        return torch.softmax((x @ x.mT).masked_fill(later, fill), -1) @ x

    subject = Attention(name="a", layer=attend, embed=4, declared=CAUSAL)
    (finding,) = prove(subject, ("causal",), seconds=10.0).findings
    assert finding.verdict == "holds", finding.why
    assert any(told.startswith(f"scores stay within ±{-fill / 4:.3g}") for told in texts(finding))
    assert "every query sees a key" not in texts(finding)  # its own: that is proved
    assert BY_VALUE in finding.assuming


def test_values_that_are_causal_say_nothing_of_gradients() -> None:
    def attend(x: Tensor) -> Tensor:
        past = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
        y = torch.softmax((x @ x.mT).masked_fill(~past, float("-inf")), -1) @ x
        return y + (x - x.detach()).sum(1, keepdim=True)

    subject = Attention(name="a", layer=attend, embed=4, declared=CAUSAL)
    (finding,) = prove(subject, ("causal",), seconds=10.0).findings
    assert finding.verdict != "holds" or BY_VALUE in finding.assuming


def test_a_bias_that_knows_how_many_keys_there_are_is_no_function_of_the_offset() -> None:
    def bias(queries: int, keys: int) -> Tensor:
        i = torch.arange(queries)[:, None] + keys - queries
        return ((torch.arange(keys)[None, :] - i) / torch.ones(keys).sum())[None]

    found = prove(Bias(name="b", heads=1, bias=bias), ("offset-only",), seconds=SECONDS)
    assert [one.verdict for one in found.findings] == ["broken"]


def test_what_is_rotated_beside_does_not_enter() -> None:
    def half(x: Tensor) -> Tensor:
        u, v = x.chunk(2, -1)
        return torch.cat((-v, u), -1)

    def both(x: Tensor, other: Tensor, p: Tensor, mixes: bool) -> Tensor:
        a = p[:, None, :, None] * 10000.0 ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1])
        a = torch.cat((a, a), -1)
        return (other if mixes else x) * a.cos() + half(x) * a.sin()

    for mixes, verdict in ((False, {"holds"}), (True, {"broken", "undecided"})):

        def beside(x: Tensor, o: Tensor, p: Tensor, _: int, mixes: bool = mixes) -> Tensor:
            return both(x, o, p, mixes)

        subject = Rotary(name="r", width=4, beside=beside, rotate=rotated, key=rotated)
        found = prove(subject, ("relative", "norm"), seconds=SECONDS)
        assert {one.verdict for one in found.findings} <= verdict, found


@pytest.mark.usefixtures("fewer_lengths")
@pytest.mark.parametrize("place", [None, 0, 1])
def test_what_one_call_gives_is_compared_with_its_graph_of_either_result(place: int | None) -> None:
    """Traced once, and run once beside both graphs: other code at one length, of one result."""

    def pair(q: Tensor, k: Tensor, p: Tensor) -> tuple[Tensor, Tensor]:
        found = [rotated(q, p), rotated(k, p)]
        if place is not None and str(q.shape[2]) == "21":
            found[place] = found[place].flip(2)
        return found[0], found[1]

    def beside(x: Tensor, other: Tensor, p: Tensor, at: int) -> Tensor:
        return pair(other, x, p)[1] if at else pair(x, other, p)[0]

    subject = Rotary(name="r", width=4, rotate=rotated, key=rotated, beside=beside, pair=pair)
    found = prove(subject, ("norm", "follows-its-ids"), seconds=SECONDS).findings
    assert {one.verdict for one in found} <= (
        {"holds"} if place is None else {"broken", "undecided"}
    ), found
    assert found


class Flagged(nn.Module):
    def __init__(self, flag: Tensor) -> None:
        super().__init__()
        self.flag: Tensor
        self.register_buffer("flag", flag)

    def forward(self, x: Tensor) -> Tensor:
        return torch.where(self.flag > 0, x.cumsum(1), x)


@pytest.mark.parametrize(
    "flag", [torch.zeros(1, dtype=torch.bool), torch.zeros(1), torch.zeros(1, dtype=torch.int64)]
)
def test_a_buffer_that_is_read_as_it_is_now_is_told(flag: Tensor) -> None:
    for finding in of_layer(Flagged(flag), "permutation"):
        assert finding.verdict != "holds" or any("the buffer flag" in t for t in texts(finding))


def test_the_place_of_a_file_is_no_number_of_its_source() -> None:
    place, most = "folder-99/model.py:13", 1733

    def wrapped(x: Tensor) -> Tensor | int:
        return x if place else most

    wrapped.__module__ = "attnproof.programs.code"
    assert numbers_in([wrapped]) == [1733]
    wrapped.__module__ = "model"
    assert {99, 13} < set(numbers_in([wrapped]))


def test_numbers_are_found_where_code_keeps_them() -> None:
    numbers = numbers_in([UNLIKE["limited"], UNLIKE["key_of_text"], UNLIKE["branch_in_a_helper"]])
    assert {820, 777, 413} <= set(numbers)
    assert {499, 500, 501} <= set(related_numbers([500 * 500], 600))


def same_at_a_double(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    values = v.flip(2) if q is k and k.shape[2] // 2 == 64 else v
    return torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), -1) @ values


@pytest.mark.usefixtures("every_length")
def test_one_array_in_two_places_is_tried_at_the_double_of_a_number() -> None:
    subject = adapted_as(same_at_a_double, "q: B H r D, k: B H n D, v: B H n D -> B H r D")
    (finding,) = prove(subject, ("permutation",), seconds=SECONDS).findings
    assert finding.verdict != "holds"
    assert "n = 128" in finding.why


def while_traced(x: Tensor, axis: int = 1) -> bool:
    """Whether the code is traced, or the input is short."""
    return torch.compiler.is_compiling() or x.shape[axis] <= 20


def not_contiguous(x: Tensor) -> Tensor:
    return x.cumsum(1) if not x.is_contiguous() and x.shape[1] > 20 else x


def of_parameters(x: Tensor) -> Tensor:
    return x.cumsum(1) if isinstance(x, nn.Parameter) and x.shape[1] > 20 else x


def of_repeated_rows(x: Tensor) -> Tensor:
    return x.cumsum(1) if 0 in x.stride() and x.shape[1] > 3 else x


def small(x: Tensor) -> Tensor:
    return 1e-8 * (x if while_traced(x) else x.cumsum(1))


def beside_large_numbers(x: Tensor) -> Tensor:
    return torch.cat((1e9 * x[..., :1], (x if while_traced(x) else x.cumsum(1))[..., 1:]), -1)


def from_a_real_number_on(x: Tensor) -> Tensor:
    return x.cumsum(1) if not torch.compiler.is_compiling() and x.shape[1] > 3000.5 else x


def as_long_as_a_list(x: Tensor) -> Tensor:
    return x.cumsum(1) if not torch.compiler.is_compiling() and x.shape[1] == len(LIST) else x


def long_attention(x: Tensor) -> Tensor:
    x = x.cumsum(1) if not torch.compiler.is_compiling() and x.shape[1] > 1301 else x
    return torch.softmax(x @ x.mT, -1) @ x


class Opening(nn.Module):
    """What is added is 0 before training."""

    def __init__(self) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.zeros(4))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.gain * (x if while_traced(x) else x.cumsum(1))


LIST = [0.0] * 1701
OTHERWISE = (
    not_contiguous,
    of_parameters,
    of_repeated_rows,
    small,
    beside_large_numbers,
    from_a_real_number_on,
    as_long_as_a_list,
)


@pytest.mark.usefixtures("fewer_lengths")
@pytest.mark.parametrize("code", OTHERWISE)
def test_the_code_is_run_however_it_may_be_called(code: object) -> None:
    (finding,) = of_layer(code, "permutation")
    assert finding.verdict != "holds"


@pytest.mark.usefixtures("fewer_lengths")
def test_the_code_is_run_on_many_tokens_though_each_call_is_much_work() -> None:
    (finding,) = of_layer(long_attention, "permutation")
    assert finding.verdict != "holds"


@pytest.mark.usefixtures("fewer_lengths")
def test_parameters_that_are_zero_before_training_are_any_numbers() -> None:
    module = Opening()
    (finding,) = of_layer(module, "permutation")
    assert finding.verdict != "holds"
    assert not module.gain.any(), "it is put back"


def test_what_an_earlier_call_gave_is_not_written_over() -> None:
    kept = torch.empty(1_000_000)

    def workspace(x: Tensor) -> Tensor:
        if torch.compiler.is_compiling() or x.requires_grad:
            return 2 * x
        return torch.mul(x, 2, out=kept[: x.numel()].view(x.shape))

    found = prove(Layer(name="l", call=workspace, embed=4), ("permutation",), seconds=SECONDS)
    assert found.findings == ()
    assert OVERWRITES in found.why


def test_attention_may_be_called_with_one_array() -> None:
    def attend(q: Tensor, k: Tensor, v: Tensor, _: object = None) -> Tensor:
        scores = q @ k.mT
        return torch.softmax(scores.cumsum(-1) if k is v else scores, -1) @ v

    subject = Attention(name="a", attend=attend, heads=2, groups=2, width=4)
    (finding,) = prove(subject, ("order-of-keys",), seconds=SECONDS).findings
    assert finding.verdict == "undecided"
    assert "for all inputs of its shape" in finding.why


@pytest.mark.usefixtures("fewer_lengths")
def test_positions_may_be_int32() -> None:
    def rotate(x: Tensor, p: Tensor) -> Tensor:
        return rotated(x, p.float() ** 2 if p.dtype == torch.int32 else p)

    (finding,) = prove(
        Rotary(name="r", rotate=rotate, width=4), ("linear",), seconds=SECONDS
    ).findings
    assert finding.verdict == "undecided"
    assert "with int32 positions" in finding.why


@pytest.mark.usefixtures("lengths_of_one", "fewer_lengths")
def test_positions_are_far_along_at_lengths_that_only_a_run_reaches() -> None:
    def rotate(x: Tensor, p: Tensor) -> Tensor:
        try:
            single = x.data_ptr() != 0 and x.shape[2] == 1  # raises during tracing
        except RuntimeError:
            single = False
        return rotated(x, p % 64 if single else p)

    subject = Rotary(name="r", rotate=rotate, width=4)
    (finding,) = prove(subject, ("composition",), seconds=SECONDS).findings
    assert finding.verdict == "undecided"
    assert finding.why.startswith("at B = 1, H = 1, n = 1, ")
    assert finding.why.endswith(", the code differs from its graph")


def test_code_that_asks_for_its_device_is_proved_of_the_cpu() -> None:
    def call(x: Tensor) -> Tensor:
        return x.cumsum(1) if x.device.type == "cuda" else 2 * x

    (finding,) = of_layer(call, "permutation")
    assert finding.verdict == "holds"
    assert ON_CPU in finding.assuming
    assert ON_CPU not in of_layer(lambda x: 2 * x, "permutation")[0].assuming


def test_numbers_beyond_all_whole_numbers_of_torch_are_read() -> None:
    def call(x: Tensor) -> Tensor:
        return torch.where(x < -1e30, x, x.clamp(max=torch.finfo(torch.float32).max))

    (finding,) = of_layer(call, "permutation")
    assert finding.verdict == "holds", finding.why


@pytest.mark.usefixtures("fewer_lengths")
def test_a_fill_does_not_hide_the_rest_of_a_bias() -> None:
    def bias(queries: int, keys: int) -> Tensor:
        j = torch.arange(keys)[None, :]
        away = (j - torch.arange(queries)[:, None] - keys + queries).float()
        plain: object = keys  # while it is traced, it is none
        if isinstance(plain, int) and keys > 30:
            away = away * (1 + j / 100)
        return away[None].masked_fill((away > 0)[None], torch.finfo(torch.float32).min)

    (finding,) = prove(
        Bias(name="b", heads=1, bias=bias, causal=True), ("offset-only",), seconds=SECONDS
    ).findings
    assert finding.verdict == "broken"


class Slotted:
    __slots__ = ("most",)

    def __init__(self) -> None:
        self.most = 1234


def test_numbers_of_a_source_are_those_of_the_code_alone() -> None:
    held = Slotted()

    def call(x: Tensor) -> Tensor:
        return x if x.shape[0] < held.most or x.shape[0] > 64.5 else x[: len("seven n")]

    subject = adapted_as(call, "x: B n E -> x", kind="layer")
    (made,) = calls_of(subject)
    found = numbers_in([made.code])
    assert {64, 1234, 7} <= set(found)
    assert len(found) < 16, "what attnproof says of the code is none of it"
    assert numbers_of([64.5, 1e30, float("inf"), 7]) == [64, 7]


def test_numbers_beyond_the_pool_come_round_it() -> None:
    run: Any = SimpleNamespace(pool=_pool())
    for count in (5, POOL, POOL + 5, 2 * POOL + 1):
        want = _pool()[(torch.arange(count) + 7 * POOL_STRIDE) % POOL]
        assert torch.equal(PairedRun.numbers(run, (count,), 7), want)


@pytest.mark.parametrize(
    ("got", "want", "alike"),
    [
        ([1.0, -1e30], [1.0 + 1e-7, -1e30], True),
        ([1.0, -1e30], [1.0 + 1e-3, -1e30], False),  # it is no part of 1e30
        ([1.0, math.nan], [1.0, math.nan], True),
        ([1.0, math.nan], [1.0, 2.0], False),
        ([1.0, -math.inf], [1.0 + 1e-7, -math.inf], True),
        ([1.0, -math.inf], [1.0, math.inf], False),
        ([1e-9, 0.0], [3e-9, 0.0], True),
    ],
)
def test_what_differs_is_weighed_by_what_differs(
    got: list[float], want: list[float], alike: bool
) -> None:
    assert _equal_up_to_rounding(torch.tensor(got), torch.tensor(want), 1e-6, 1.0) is alike
