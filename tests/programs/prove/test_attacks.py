"""Code for which a law is false somewhere the trace does not look: nothing is proved of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.declarations import DeclaredAttention
from attnproof.programs.prove import Traced, prove
from attnproof.programs.prove.comparison import CHANGES
from attnproof.programs.subjects import Attention, Layer, Rotary, Subject

CAUSAL = DeclaredAttention(causal=True)
SECONDS = 2.0
LONG = 60.0  # more than is needed: what is given up is not seen to be refused


def rotated(x: Tensor, p: Tensor) -> Tensor:
    """A rotary embedding as it should be."""
    angle = p[:, None, :, None] * 10000.0 ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1])
    u, v = x.chunk(2, -1)
    return torch.cat((u * angle.cos() - v * angle.sin(), u * angle.sin() + v * angle.cos()), -1)


def rotary(rotate: Callable[..., Tensor], **more: Any) -> Rotary:
    return Rotary(name="r", rotate=rotate, **({"width": 4} | more))


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
    "positions that end": (
        lambda: rotary(lambda x, p: rotated(x, p.clamp(max=1000)), width=2),
        "relative",
    ),
    "positions modulo 1024": (
        lambda: rotary(lambda x, p: rotated(x, p % 1024), width=2),
        "relative",
    ),
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
        "B·n ≤ 400",
    ),
    "a table of 64 rows": (
        lambda: causal(first_rows_of(torch.randn(64, 4))),
        "causal",
        "n + n′ ≤ 64",
    ),
    "a table of 64 columns, looked at as rows with an axis in front": (
        lambda: causal(first_rows_of_view(torch.randn(4, 64))),
        "causal",
        "n + n′ ≤ 64",
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


class DrawsItself(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.own = torch.Generator().manual_seed(0)

    def forward(self, x: Tensor) -> Tensor:
        return x + torch.rand(x.shape[-1], generator=self.own)


def test_a_graph_that_takes_a_generator_is_not_read() -> None:
    module = DrawsItself()
    made = prove(Layer(name="d", call=module, module=module, embed=4), ("permutation",))
    assert not made.findings
    assert "an object, of class Generator" in made.why
