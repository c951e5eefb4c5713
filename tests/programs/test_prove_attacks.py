"""Code for which a law is false somewhere the trace does not look: nothing is proved of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import sympy
import torch
from torch import Tensor, nn
from torch.utils._sympy.functions import ToFloat
from torch.utils._sympy.value_ranges import ValueRanges

from attnproof.programs.declarations import DeclaredAttention
from attnproof.programs.prove import Traced, prove
from attnproof.programs.prove.comparison import CHANGES
from attnproof.programs.prove.exporting import _length, read, traced
from attnproof.programs.prove.guards import conditions_of, printed_conditions, satisfiable
from attnproof.programs.prove.reached_arrays import NotTraced
from attnproof.programs.subject import adapted_as
from attnproof.programs.subjects import Attention, Layer, Rotary, Subject
from attnproof.symbolic.array import Array
from attnproof.symbolic.scalars import add, size
from benchmarks.false_programs import outside

CAUSAL = DeclaredAttention(causal=True)
SECONDS = 2.0
LONG = 60.0  # more than is needed: what is given up is not seen to be refused


def rotated(x: Tensor, p: Tensor) -> Tensor:
    """A rotary embedding as it should be."""
    angle = p[:, None, :, None] * 10000.0 ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1])
    u, v = x.chunk(2, -1)
    return torch.cat((u * angle.cos() - v * angle.sin(), u * angle.sin() + v * angle.cos()), -1)


def rotary(rotate: Callable[..., Tensor], **more: Any) -> Rotary:
    return Rotary(name="r", rotate=rotate, width=4, **more)


def layer(call: Callable[..., Tensor], **more: Any) -> Layer:
    return Layer(name="l", call=call, embed=4, **more)


def causal(call: Callable[..., Tensor]) -> Attention:
    return Attention(name="a", layer=call, embed=4, declared=CAUSAL)


def masked(visible: Callable[[Tensor, Tensor], Tensor], fill: float) -> Attention:
    """Attention by hand; ``visible`` is a function of the places of queries and keys."""

    def attend(q: Tensor, k: Tensor, v: Tensor, _: Tensor | None = None) -> Tensor:
        i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])[None, :]
        scores = (q @ k.mT).masked_fill(~visible(i, j), fill)
        return torch.softmax(scores, -1) @ v

    return Attention(name="a", attend=attend, heads=2, groups=2, width=4, declared=CAUSAL)


class TwoNames(nn.Module):
    """Two parameters, ``a.b`` and ``a_b``, that are equal before training."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Module()
        self.a.b = nn.Parameter(torch.ones(4))
        self.a_b = nn.Parameter(torch.ones(4))

    def forward(self, x: Tensor, p: Tensor) -> Tensor:
        return rotated(x, p) + p[:, None, :, None] * (self.a.b - self.a_b)  # type: ignore[operator]


class Speed(nn.Module):
    """A rotary embedding whose speed is trained."""

    def __init__(self) -> None:
        super().__init__()
        self.speed = nn.Parameter(torch.ones(()))

    def forward(self, x: Tensor, p: Tensor) -> Tensor:
        return rotated(x, p * self.speed)


class Statistics(nn.Module):
    """A norm over the batch that keeps its mean and variance, in evaluation too."""

    def __init__(self) -> None:
        super().__init__()
        self.mean: Tensor
        self.variance: Tensor
        self.register_buffer("mean", torch.zeros(5))
        self.register_buffer("variance", torch.ones(5))

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.batch_norm(x, self.mean, self.variance, training=True)


class Counts(nn.Module):
    """A module that counts its calls, and multiplies by the count."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: Tensor
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return x * self.calls


def unwritten(x: Tensor) -> Tensor:
    made = torch.empty_like(x)
    made[..., :2] = x[..., :2]
    return made


def minus_infinity_times_truth(q: Tensor, k: Tensor, v: Tensor, _: Any = None) -> Tensor:
    later = torch.arange(k.shape[2])[None, :] > torch.arange(q.shape[2])[:, None]
    return torch.softmax(q @ k.mT + later * float("-inf"), -1) @ v


def aliased(x: Tensor, p: Tensor) -> Tensor:
    copy = x.clone()
    view = copy
    view[..., 0] = 7
    return rotated(copy, p)


def keys_of_own() -> Rotary:
    query, key = Speed(), Speed()
    return rotary(query, key=key)


FALSE: dict[str, tuple[Callable[[], Subject], str]] = {
    "the row before the first one is the last one": (
        lambda: layer(lambda x: x[torch.arange(x.shape[0]) - 1]),
        "rows-of-batch-apart",
    ),
    "the token before the first one is the last one": (
        lambda: causal(lambda x: x[:, torch.arange(x.shape[1]) - 1]),
        "causal",
    ),
    "a fill that exp does not make 0": (lambda: masked(lambda i, j: j <= i, -30.0), "causal"),
    "a mask that ends": (lambda: masked(lambda i, j: (j <= i) | (j >= 30), -math.inf), "causal"),
    "-inf times False": (
        lambda: Attention(
            name="a", attend=minus_infinity_times_truth, heads=2, groups=2, width=4, declared=CAUSAL
        ),
        "causal",
    ),
    "a little of the last token": (lambda: causal(lambda x: x + 1e-9 * x[:, -1:]), "causal"),
    "positions that end": (lambda: rotary(lambda x, p: rotated(x, p.clamp(max=1000))), "relative"),
    "positions that start again": (
        lambda: rotary(lambda x, p: rotated(x, torch.where(p > 1000, 0, p))),
        "relative",
    ),
    "positions modulo 1024": (lambda: rotary(lambda x, p: rotated(x, p % 1024)), "relative"),
    "positions of the first row": (
        lambda: rotary(lambda x, p: rotated(x, p[:1] + 0 * p)),
        "relative",
    ),
    "a query that sees no key, whatever is given": (
        lambda: masked(lambda i, j: j < i, -1e9),
        "causal",
    ),
    "positions in pairs": (lambda: rotary(lambda x, p: rotated(x, p // 2 * 2)), "relative"),
    "positions cut to whole numbers": (
        lambda: rotary(lambda x, p: rotated(x, (p / 2).long())),
        "relative",
    ),
    "a bound below all inputs that are tried": (
        lambda: rotary(lambda x, p: rotated(x.clamp(min=-1e5), p)),
        "linear",
    ),
    "a condition that all inputs meet that are tried": (
        lambda: rotary(lambda x, p: rotated(torch.where(x > -1e5, x, 0.0), p)),
        "linear",
    ),
    "a turn by nearly a full circle": (
        lambda: rotary(lambda x, p: rotated(x, p) * torch.cos(2 * math.pi * p)[:, None, :, None]),
        "norm",
    ),
    "parameters of one name that are equal before training": (lambda: rotary(TwoNames()), "linear"),
    "parameters of two modules that are equal before training": (keys_of_own, "relative"),
    "a write through another name": (lambda: rotary(aliased), "linear"),
    "memory that was not written to": (lambda: layer(unwritten), "permutation"),
}
# By what stands there, or is no number, no law is reached.
NOT_READ = ("memory that was not written to", "-inf times False")


@pytest.mark.usefixtures("lengths_of_one")
@pytest.mark.parametrize("name", FALSE)
def test_what_is_false_somewhere_is_not_proved(name: str) -> None:
    make, law = FALSE[name]
    found = prove(make(), (law,), seconds=LONG)
    if found.why and name in NOT_READ:
        reasons = ("the term and the code", "returns no finite number", CHANGES)
        assert any(why in found.why for why in reasons)
        assert found.findings == ()
        return
    assert found.why == ""
    (finding,) = found.findings
    assert (finding.law, finding.verdict) in ((law, "broken"), (law, "undecided"))
    assert "seconds" not in finding.why, "it was given up, and not refused"


REFUSED: dict[str, tuple[Callable[[], Subject], str]] = {
    "a buffer that counts calls": (lambda: layer(Counts()), CHANGES),
    "statistics of the batches before": (lambda: layer(Statistics()), "batch_norm"),
    "dropout": (lambda: layer(lambda x: nn.functional.dropout(x, 0.5)), "dropout"),
    "random numbers": (lambda: layer(lambda x: x * torch.rand(1)), "aten.rand"),
    "positions in 8 bits": (
        lambda: rotary(lambda x, p: rotated(x, p.to(torch.int8))),
        "wrap around",
    ),
    "positions bit by bit": (lambda: rotary(lambda x, p: rotated(x, p & 1023)), "bit by bit"),
    "a branch on the values": (lambda: layer(lambda x: x if x.sum() > 0 else -x), "torch.export"),
    "other code while it is exported": (
        lambda: layer(lambda x: x if torch.compiler.is_exporting() else x.flip(1)),
        "differ",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_term_stands_for_is_refused_and_told(name: str) -> None:
    make, why = REFUSED[name]
    found = prove(make(), seconds=SECONDS)
    assert found.findings == ()
    assert why in found.why


def only(found: Traced, law: str) -> tuple[str, ...]:
    """What a proof assumes."""
    (finding,) = (f for f in found.findings if f.law == law)
    assert finding.verdict == "holds", finding.why
    return tuple(condition.text for condition in finding.assuming)


def first_rows_of(table: Tensor) -> Callable[[Tensor], Tensor]:
    return lambda x: x + table[: x.shape[1]]


def first_rows_of_view(table: Tensor) -> Callable[[Tensor], Tensor]:
    return lambda x: x + table.mT[None, : x.shape[1]]


def rows_at(table: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
    return lambda x, p: x * table[p][:, None]


def counts(places: Tensor, axis: int) -> Tensor:
    return torch.ones_like(places, dtype=torch.bfloat16).cumsum(axis)


TOLD: dict[str, tuple[Callable[[], Subject], str, str]] = {
    "a branch on a product": (
        lambda: layer(lambda x: 3 * x if x.shape[1] * x.shape[0] > 400 else 2 * x),
        "permutation",
        "B·T ≤ 400",
    ),
    "a table of 64 rows": (
        lambda: causal(first_rows_of(torch.randn(64, 4))),
        "causal",
        "T + T′ ≤ 64",
    ),
    "a table of 64 columns, looked at as rows with an axis in front": (
        lambda: causal(first_rows_of_view(torch.randn(4, 64))),
        "causal",
        "T + T′ ≤ 64",
    ),
    "rows of a table at positions": (
        lambda: rotary(rows_at(torch.randn(64, 4))),
        "linear",
        "below 64, the length of a stored table",
    ),
    "positions in bfloat16": (
        lambda: rotary(lambda x, p: rotated(x, p.to(torch.bfloat16).float())),
        "relative",
        "bfloat16",
    ),
    "counts in bfloat16, which end at 256": (
        lambda: masked(lambda i, j: counts(j, 1) <= counts(i, 0), -math.inf),
        "causal",
        "what is computed in bfloat16 is read without its rounding",
    ),
    "a fill by a large number": (lambda: masked(lambda i, j: j <= i, -1e9), "causal", "-1e+09"),
    "queries that see nothing": (
        lambda: masked(lambda i, j: (j <= i) & (i < 30), -math.inf),
        "causal",
        "every query sees a key",
    ),
    "a root of what may be negative": (
        lambda: layer(lambda x: torch.sqrt(x + 100) ** 2),
        "permutation",
        "≥ 0",
    ),
}


@pytest.mark.parametrize("name", TOLD)
def test_what_a_proof_assumes_is_told(name: str) -> None:
    make, law, words = TOLD[name]
    assert any(words in line for line in only(prove(make(), (law,), seconds=SECONDS), law))


SEEING: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "the first key": lambda i, j: j <= i,
    "keys from the first on": lambda i, j: (j <= i) & (j >= 0),
}
BLIND: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "not its own": lambda i, j: j < i,
    "not the first": lambda i, j: (j <= i) & (j > 0),
    "of late queries alone": lambda i, j: j <= i - 2,
    "of early queries alone": lambda i, j: (j <= i) & (i < 7),
}


@pytest.mark.parametrize("name", [*SEEING, *BLIND])
def test_only_where_each_query_certainly_sees_a_key_it_is_no_condition(name: str) -> None:
    visible = {**SEEING, **BLIND}[name]
    found = prove(masked(visible, -math.inf), ("rows-sum-to-one",), seconds=SECONDS).findings
    told = [c.text for one in found if one.verdict == "holds" for c in one.assuming]
    proved = any(one.verdict == "holds" for one in found)
    assert proved == (name in SEEING)
    assert not any("query" in text or "denominator" in text for text in told)


def zeroed(weights: Callable[[Tensor, Tensor], Tensor], fill: float = -math.inf) -> Attention:
    """Attention under a causal mask, with the weights that scores and what is seen give."""

    def attend(q: Tensor, k: Tensor, v: Tensor, _: Tensor | None = None) -> Tensor:
        seen = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril()
        scores = (q @ k.mT).masked_fill(~seen, fill)
        return weights(scores, seen) @ v

    return Attention(name="a", attend=attend, heads=2, groups=2, width=4, declared=CAUSAL)


def blind_rows(scores: Tensor, _: Tensor) -> Tensor:
    blind = (scores == -math.inf).all(-1, keepdim=True)
    return scores.softmax(-1).masked_fill(blind, 0.0)


ZEROED: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "scores that are −∞": blind_rows,
    "scores above −∞": lambda s, _: s.softmax(-1) * (s > -math.inf).any(-1, keepdim=True),
    "infinite scores": lambda s, _: s.softmax(-1).masked_fill(s.isinf(), 0.0),
    "what a mask shows": lambda s, seen: s.softmax(-1) * seen.any(-1, keepdim=True),
    "NaN": lambda s, _: s.softmax(-1).nan_to_num(0.0),
}


@pytest.mark.parametrize("name", ZEROED)
def test_rows_that_see_no_key_may_be_looked_for(name: str) -> None:
    told = only(prove(zeroed(ZEROED[name]), ("causal",), seconds=SECONDS), "causal")
    assert any("NaN" in line for line in told) == (name == "NaN")
    assert any("infinite only" in line for line in told) == ("shows" not in name)
    whole = zeroed(
        lambda s, seen: ZEROED[name](s, seen) + (s > -math.inf).float().mean(-2, keepdim=True)
    )
    (wrong,) = prove(whole, ("causal",), seconds=SECONDS).findings
    assert wrong.verdict != "holds"


def test_a_mask_is_not_compared_with_infinity_where_it_is_filled_with_a_number() -> None:
    def weights(s: Tensor, seen: Tensor) -> Tensor:
        return s.masked_fill(~seen, -1e9).softmax(-1) * (s > -math.inf)

    assert "filled with" in prove(zeroed(weights), ("causal",), seconds=SECONDS).why
    found = prove(zeroed(blind_rows, -1e9), ("causal",), seconds=SECONDS).findings
    assert all(one.verdict != "holds" for one in found)


def zero(t: Tensor) -> Tensor:
    m = t.amax(-1, keepdim=True)
    return (m - m) != 0


# Where all scores of a row are low, each is true in the code: then it reads later tokens.
BLINDED: dict[str, Callable[[Tensor], Tensor]] = {
    "the largest score": lambda t: t.amax(-1, keepdim=True) == -math.inf,
    "the largest score less itself": zero,
    "a logarithm": lambda t: t.logsumexp(-1, keepdim=True) == -math.inf,
    "an inverse": lambda t: (1 / t.exp().sum(-1, keepdim=True)).isinf(),
    "an absolute value": lambda t: (t.abs() == math.inf).all(-1, keepdim=True),
    "a negative": lambda t: (-t == math.inf).all(-1, keepdim=True),
}


@pytest.mark.parametrize("name", BLINDED)
def test_what_is_infinite_without_a_mask_is_excluded_by_a_condition(name: str) -> None:
    def attend(q: Tensor, k: Tensor, v: Tensor, _: Tensor | None = None) -> Tensor:
        s = q @ k.mT
        later = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).triu(1)
        t = s.masked_fill(later | (s < -1e5), -math.inf)
        e = t.exp()
        return torch.where(
            BLINDED[name](t), v.mean(2, keepdim=True), e / (e.sum(-1, keepdim=True) + 1) @ v
        )

    subject = Attention(name="a", attend=attend, heads=2, groups=2, width=4, declared=CAUSAL)
    for one in prove(subject, ("causal",), seconds=SECONDS).findings:
        told = [c.text for c in one.assuming]
        excluded = any("infinite only" in text or "sees a key" in text for text in told)
        assert one.verdict != "holds" or excluded, told


ENDS = torch.where(torch.arange(64) == 61, -math.inf, 0.0)
LEAKS: dict[str, Callable[[Tensor], Tensor]] = {
    "no axis": lambda x: (x < -1e5).any().float() - (x < -1e5).any(dim=()).float(),
    "a stored infinity": lambda x: (ENDS[: x.shape[1], None] == -math.inf).float(),
    "a stored infinity times 0": lambda x: (ENDS[: x.shape[1], None] * 0 != 0).float(),
}


@pytest.mark.parametrize("name", LEAKS)
def test_a_leak_at_few_entries_is_not_proved_away(name: str) -> None:
    code = layer(lambda x: 2 * x + LEAKS[name](x) * x.mean((0, 1), keepdim=True))
    for one in prove(code, ("causal", "rows-of-batch-apart"), seconds=SECONDS).findings:
        assert one.verdict != "holds", one.assuming


def test_a_square_of_integers_in_a_condition_is_no_internal_error() -> None:
    for hides in (
        lambda i, j: ((i - j) ** 2 <= 9) & (j <= i),
        lambda i, j: (j <= i) & (i * i < 99),
    ):
        prove(masked(hides, -math.inf), ("rows-sum-to-one", "causal"), seconds=SECONDS)


BEYOND: dict[str, tuple[Callable[[], Subject], str, str]] = {
    "a remainder": (
        lambda: layer(lambda x: x.cumsum(1) if x.shape[1] % 7 == 0 else 2 * x),
        "permutation",
        "T mod 7 ≠ 0",
    ),
    "a difference": (
        lambda: layer(lambda x: x.cumsum(1) if x.shape[1] == x.shape[0] + 20 else 2 * x),
        "permutation",
        "T ≠ B + 20",
    ),
    "a length, met by the longer input": (
        lambda: causal(lambda x: x.flip(1) if x.shape[1] > 40 else 2 * x),
        "causal",
        "T + T′ ≤ 40",
    ),
}


@pytest.mark.parametrize("name", BEYOND)
def test_a_law_that_is_broken_beyond_a_branch_is_broken(name: str) -> None:
    make, law, words = BEYOND[name]
    (found,) = prove(make(), (law,), seconds=SECONDS).findings
    assert found.verdict == "broken"
    assert found.why.startswith("proved for")
    assert words in found.why
    assert "other code runs, and breaks it" in found.why


def both_rotated(branch: Callable[[Tensor, Tensor], bool]) -> Callable[..., tuple[Tensor, Tensor]]:
    """Queries and keys are rotated in one call; where a branch on lengths is taken no key is."""

    def rotate(q: Tensor, k: Tensor, p: Tensor) -> tuple[Tensor, Tensor]:
        return rotated(q, p), k + 1 if branch(q, k) else rotated(k, p)

    return rotate


BOTH = "q: B H n D, k: B G n D, p: B n positions -> q, k"
OF_BOTH: dict[str, tuple[Callable[[Tensor, Tensor], bool], str]] = {
    "fewer key heads than query heads": (lambda q, k: q.shape[1] != k.shape[1], "differ"),
    "a long call": (lambda q, _: q.shape[2] > 40, "elsewhere, as at"),
    "many key heads": (lambda _, k: k.shape[1] > 21, "elsewhere, as at"),
}


@pytest.mark.parametrize("name", OF_BOTH)
def test_what_rotates_queries_and_keys_is_asked_on_every_side_of_a_branch(name: str) -> None:
    branch, why = OF_BOTH[name]
    (found,) = prove(adapted_as(both_rotated(branch), BOTH), ("linear",), seconds=SECONDS).findings
    assert found.verdict == "broken"
    assert why in found.why


def test_heads_are_told_by_the_letters_of_what_is_rotated() -> None:
    """One graph is of queries and of keys: a law of keys calls their heads H, and the others G."""

    def code(q: Tensor, k: Tensor, p: Tensor) -> tuple[Tensor, Tensor]:
        unseen = str(k.shape[1]) == "23"  # of which no condition is kept
        return rotated(q, p), 2 * k if unseen else rotated(k, p)

    (found,) = prove(adapted_as(code, BOTH), ("linear",), seconds=SECONDS).findings
    assert found.verdict == "undecided"
    assert "H = 1, T = 1, G = 23 and B = 1, G = 1, T = 1, H = 23" in found.why


def test_both_sides_of_a_branch_on_the_heads_of_keys_are_proved() -> None:
    def code(q: Tensor, k: Tensor, p: Tensor) -> tuple[Tensor, Tensor]:
        return rotated(q, p), 2 * rotated(k, p) if k.shape[1] > 21 else rotated(k, p)

    told = only(prove(adapted_as(code, BOTH), ("linear",), seconds=SECONDS), "linear")
    assert {"G ≤ 21", "H ≤ 21"} <= set(told)
    assert sum("for which it is proved" in one for one in told) == 2


def test_beyond_a_branch_on_heads_of_keys_their_own_code_is_traced() -> None:
    """Both results are of one trace, of as many heads of each as the call of either has."""
    code = adapted_as(both_rotated(lambda _, k: k.shape[1] > 21), BOTH)
    found = prove(code, ("relative", "every-head-alike"), seconds=SECONDS)
    one, other = sorted(found.findings, key=lambda finding: finding.law)
    assert other.verdict == "broken", other.why
    assert one.verdict == "holds", one.why
    assert "for which it is not proved" not in "; ".join(told.text for told in one.assuming)


def test_lengths_that_are_equal_wherever_both_are_rotated_are_told() -> None:
    code = both_rotated(lambda q, k: q.shape[2] != k.shape[2])
    subject = adapted_as(code, BOTH.replace("H n", "H r").replace("G", "H"))
    assert "as many queries as keys" in only(prove(subject, ("linear",)), "linear")
    proved = only(prove(adapted_as(both_rotated(lambda _, __: False), BOTH), ("linear",)), "linear")
    assert not any("G" in one for one in proved), "for any number of key heads"


def test_the_code_without_the_fault_is_proved() -> None:
    found = prove(rotary(rotated), ("relative", "norm", "linear"), seconds=SECONDS)
    assert [f.verdict for f in found.findings] == ["holds"] * 3
    speed = Speed()
    both = rotary(speed, key=speed)
    only(prove(both, ("relative",), seconds=SECONDS), "relative")
    only(prove(masked(lambda i, j: j <= i, -math.inf), ("causal",), seconds=SECONDS), "causal")


def test_names_of_parameters_may_be_those_of_laws_and_constants() -> None:
    class Named(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.sigma = nn.Parameter(torch.randn(4))
            self.c0_1 = nn.Parameter(torch.tensor(0.3))

        def forward(self, x: Tensor, p: Tensor) -> Tensor:
            return rotated(x * 0.1 * self.c0_1, p) * self.sigma

    only(prove(rotary(Named()), ("every-head-alike",), seconds=SECONDS), "every-head-alike")


def test_conditions_are_told_of_the_lengths_that_a_law_uses() -> None:
    def branches(x: Tensor) -> Tensor:
        return x.flip(1) if x.shape[1] % 2 == 0 else 2 * x

    graph = read(traced(branches, (torch.randn(3, 5, 4),), ((True, True, False),)))
    ((_, tokens, _),) = graph.shapes
    conditions = conditions_of(graph.program)
    assert graph.conditions == conditions
    n, r = size("n"), size("r")
    alone, longer = (((str(tokens), length),) for length in (n, add(n, r)))
    assert printed_conditions(conditions, (alone,)) == ("n mod 2 ≠ 0",)
    assert printed_conditions(conditions, (((str(tokens), Array(n).term),),)) == ("n mod 2 ≠ 0",)
    assert satisfiable([(conditions, {}, (alone, longer))])
    other = ((str(tokens), r),)
    assert not satisfiable([(conditions, {}, (alone, other, longer))]), "odd + odd is not odd"
    assert not satisfiable([((sympy.false,), {}, (alone,))])


def test_lengths_that_depend_on_each_other_are_no_lengths() -> None:
    def padded(x: Tensor) -> Tensor:
        return x.flip(1) if x.shape[1] == x.shape[0] + 2 else 2 * x

    with pytest.raises(NotTraced, match="depend on one another"):
        read(traced(padded, (torch.randn(3, 5, 4),), ((True, True, False),)))
    with pytest.raises(NotTraced, match="depend on one another"):
        _length(sympy.Symbol("s0") + 2)
    assert _length(sympy.Symbol("s0")) == "s0"


def test_a_condition_that_is_turned_round_is_told_once() -> None:
    heads, groups = sympy.symbols("s0 s1", integer=True)
    bound = [(("s0", size("H", "heads")), ("s1", size("G", "heads")))]
    both = [sympy.Ne(heads, groups), sympy.Ne(groups, heads), heads < groups, groups > heads]
    assert printed_conditions(both, bound) == ("H ≠ G", "H < G")
    assert printed_conditions([heads < groups, groups < heads], bound) == ("H < G", "G < H")


def test_what_follows_from_another_condition_is_left_out() -> None:
    tokens, keys = sympy.symbols("s0 s1", integer=True, positive=True)
    bound = [(("s0", size("n")), ("s1", size("r")))]
    assert printed_conditions([tokens > 1000, tokens >= 1001, -2 * tokens < -90], bound) == (
        "n ≥ 1001",
    )
    assert printed_conditions([2 * tokens <= 64, tokens < 33, tokens < 32], bound) == ("n ≤ 31",)
    assert printed_conditions([tokens + keys <= 64, 3 * tokens < 192], bound) == ("n + r ≤ 64",)
    ranges = {"s0": ValueRanges(1001, 2000)}
    assert printed_conditions([tokens > 1000, tokens < 2001], bound, ranges) == ()
    assert printed_conditions([tokens > 1001, tokens < 2000], bound, ranges) == (
        "n ≥ 1002",
        "n ≤ 1999",
    )
    assert printed_conditions([tokens > keys], bound, ranges) == ("n > r",)


def test_a_length_beside_a_number_that_is_none_is_told_as_one_writes_it() -> None:
    tokens = sympy.Symbol("s0", integer=True, positive=True)
    bound = [(("s0", size("n")),)]
    half = ToFloat(tokens) <= sympy.Float(31.5)
    assert printed_conditions([half, tokens < 100], bound) == ("n ≤ 31.5", "n ≤ 99")
    assert not outside("n ≤ 31.5", {"n": 31})
    assert outside("n ≤ 31.5", {"n": 33})
