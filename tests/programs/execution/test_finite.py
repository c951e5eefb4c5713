"""NaN and infinity at ordinary inputs, and scores beyond a finite fill."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.declarations import DeclaredAttention
from attnproof.programs.execution.draw import Draw
from attnproof.programs.execution.finite import NotFinite, watching
from attnproof.programs.finding import NOT_MEASURED, Finding
from attnproof.programs.identify import identify
from attnproof.programs.measure.base import Outcome, Probe, holds
from attnproof.programs.measure.examine import examine, run_probe
from attnproof.programs.subjects import Additive, Attention, Bias, Layer, Mask, Rotary, Subject
from attnproof.real_code.page_text import exit_code
from attnproof.testing import check_attention, check_rotary

Spoil = Callable[[Tensor, Tensor], Tensor]


def rotated(x: Tensor, p: Tensor) -> Tensor:
    half = x.shape[-1] // 2
    angle = p[:, None, :, None] * 100.0 ** -(torch.arange(half) / half)
    a, b = x[..., :half], x[..., half:]
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    return torch.cat((a * cos - b * sin, a * sin + b * cos), -1)


def rotary(spoil: Spoil) -> Rotary:
    return Rotary(name="f", rotate=lambda x, p: spoil(rotated(x, p), p), width=4)


def attended(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf) if mask.dtype == torch.bool else scores + mask
    return torch.softmax(scores, -1) @ v


def attention(spoil: Callable[[Tensor], Tensor] = lambda x: x) -> Attention:
    return Attention(
        name="f",
        attend=lambda *given: spoil(attended(*given)),
        heads=4,
        groups=4,
        width=5,
        masks=("bool", "float"),
        declared=DeclaredAttention(causal=False),
    )


def at_zero(y: Tensor, p: Tensor) -> Tensor:
    return torch.where(p[:, None, :, None] == 0, math.nan, y)


def in_one_head(y: Tensor, p: Tensor) -> Tensor:
    del p
    spoiled = y.clone()
    spoiled[:, 1] = math.inf - math.inf * (y.shape[1] > 1)
    return spoiled


def at_one_length(y: Tensor, p: Tensor) -> Tensor:
    return y * math.nan if p.shape[1] == 33 else y


def only_in_bfloat16(y: Tensor, p: Tensor) -> Tensor:
    del p
    return y / 0 if y.dtype == torch.bfloat16 else y


PLANTS = {
    "at position 0": (rotary(at_zero), torch.float32),
    "in one head": (rotary(in_one_head), torch.float32),
    "at one length": (rotary(at_one_length), torch.float32),
    "in bfloat16": (rotary(only_in_bfloat16), torch.bfloat16),
    "everywhere": (rotary(lambda y, _: y - y / 0), torch.float32),
}


def of(findings: Sequence[Finding], law: str) -> list[Finding]:
    return [one for one in findings if one.law == law]


@pytest.mark.parametrize("plant", PLANTS)
def test_planted_nan_is_one_finding_and_no_law_is_told_by_it(plant: str) -> None:
    subject, dtype = PLANTS[plant]
    found = examine(subject, (Draw(0, dtype),))
    assert found[0].law == "finite"
    broken = of(found, "finite")
    assert {one.verdict for one in broken} == {"broken"}
    witness: Any = broken[0].witness
    assert witness.inputs["call"] == "rotate"
    assert "NaN" in broken[0].why or "inf" in broken[0].why
    for one in found:
        if one.law == "finite":
            continue
        assert one.verdict != "broken", (one.law, one.why)
        if one.verdict == "undecided":
            assert one.why.startswith(NOT_MEASURED), (one.law, one.why)
        elif one.verdict == "holds":  # of calls that met no NaN
            assert plant != "everywhere", (one.law, one.why)


def test_a_gradient_that_is_nan_is_found_and_is_no_influence() -> None:
    def call(x: Tensor) -> Tensor:
        return x + torch.where(x > 100, (x - x).sqrt() / 0, 0.0)

    layer = Layer(name="f", call=call, embed=4, declared=DeclaredAttention(causal=True))
    found = examine(layer, laws=("finite", "causal"))
    first, *_ = of(found, "finite")
    assert first.verdict == "broken"
    assert "gradient" in first.why
    causal = of(found, "causal")[-1]
    assert causal.verdict == "undecided"
    assert causal.why.startswith(NOT_MEASURED)


def test_a_row_that_sees_nothing_is_no_ordinary_input() -> None:
    watched: Any = watching(attention())
    q = torch.randn(1, 4, 3, 5, generator=torch.Generator().manual_seed(0))
    nothing = torch.zeros(1, 1, 3, 3, dtype=torch.bool)
    assert bool(watched.attend(q, q, q, nothing).isnan().all())
    found = examine(attention(), laws=("finite", "hidden-rows"))
    assert [one.verdict for one in of(found, "finite")] == ["holds"]
    rows = of(found, "hidden-rows")[-1]
    assert rows.verdict in ("broken", "undecided", "not asked")
    assert not rows.why.startswith(NOT_MEASURED)


def padded_mean(x: Tensor, keep: Tensor, *, whole: bool) -> Tensor:
    """A mean of what counts by weights, NaN where nothing does; ``whole``: less that of all."""
    weights = torch.softmax(torch.zeros(x.shape[:2]).masked_fill(~keep, -math.inf), -1)
    mean = (weights.to(x.dtype)[..., None] * x).sum(1, keepdim=True)
    return x + mean - (x.mean(1, keepdim=True) if whole else 0.0)


@pytest.mark.parametrize(("whole", "verdict"), [(True, "broken"), (False, "holds")])
def test_a_row_of_padding_alone_is_no_ordinary_input(*, whole: bool, verdict: str) -> None:
    def both(x: Tensor, keep: Tensor | None = None) -> Tensor:
        every = torch.ones(x.shape[:2], dtype=torch.bool)
        return padded_mean(x, every if keep is None else keep, whole=whole)

    code = Attention(name="f", layer=both, hide=both, embed=8)
    found = examine(code, (Draw(),), ("hidden-keys-do-nothing",))
    assert [(one.law, one.verdict) for one in found] == [("hidden-keys-do-nothing", verdict)]


@pytest.mark.parametrize("of_padding", [True, False])
def test_what_padding_reads_is_nobodys_where_one_function_is_both(*, of_padding: bool) -> None:
    def both(x: Tensor, keep: Tensor | None = None) -> Tensor:
        return x if keep is None else x.masked_fill((keep != of_padding)[..., None], math.nan)

    watched: Any = watching(Attention(name="f", layer=both, hide=both, embed=8))
    x = torch.randn(1, 3, 8, generator=torch.Generator().manual_seed(0))
    keep = torch.tensor([[True, True, False]])
    with nullcontext() if of_padding else pytest.raises(NotFinite, match="gives NaN"):
        watched.hide(x, keep)


def test_what_is_ordinary() -> None:
    none = Layer(name="f", call=lambda x: x * math.nan, embed=4)
    call = watching(none).call
    x = torch.randn(1, 2, 4, generator=torch.Generator().manual_seed(0))
    with pytest.raises(NotFinite, match="call gives NaN"):
        call(x)
    for other in (x * 1e4, torch.ones(1, 2, 4), x * math.inf, x[:, :0]):
        call(other)  # large, constant, infinite or empty: no ordinary inputs


def test_an_infinite_bias_or_mask_hides_and_is_no_fault_and_nan_is() -> None:
    def hides(t: int, s: int) -> Tensor:
        seen = torch.ones(t, s, dtype=torch.bool).tril(s - t)
        return torch.zeros(t, s).masked_fill(~seen, -math.inf)

    right = Mask(name="f", mask=hides, declared=DeclaredAttention(causal=True))
    assert of(examine(right, laws=("finite",)), "finite")[0].verdict == "holds"
    for wrong in (lambda t, s: hides(t, s) * 0, lambda t, s: -hides(t, s)):
        found = examine(replace(right, mask=wrong), laws=("finite", "causal", "past-is-used"))
        assert {one.verdict for one in of(found, "finite")} == {"broken"}
        for law in ("causal", "past-is-used"):
            assert of(found, law)[-1].why.startswith(NOT_MEASURED)
    bias = Bias(name="b", heads=2, bias=lambda t, s: torch.full((2, t, s), math.nan))
    found = examine(bias)
    assert {one.verdict for one in found} <= {"broken", "undecided", "not asked"}
    assert {one.law for one in found if one.verdict == "broken"} == {"finite"}


def test_a_table_that_is_nan_in_one_row() -> None:
    table = torch.randn(64, 6, generator=torch.Generator().manual_seed(0))
    table[2] = math.nan
    code = Additive(name="f", added=lambda x: x + table[: x.shape[1]], width=6, most=64)
    found = examine(code)
    assert {one.law for one in found if one.verdict == "broken"} == {"finite"}
    assert all(one.verdict != "holds" for one in found if "rows" in one.law)


def test_no_law_holds_by_an_error_that_is_no_number() -> None:
    def look(subject: Subject, draw: Draw) -> Outcome:
        del subject, draw
        return holds("it holds", math.nan, 1e-6)

    right = rotary(lambda y, p: y + 0 * p.sum())
    (found,) = run_probe(Probe("norm", "rotary", look), right, Draw())
    assert found.verdict == "undecided"
    assert found.why.startswith(NOT_MEASURED)


def test_the_record_says_it_first_though_another_law_was_asked() -> None:
    record = check_rotary(rotary(at_zero), laws=["sees-positions"], methods=["measured", "exact"])
    assert [law.law for law in record.laws] == ["finite", "sees-positions"]
    first, other = record.laws
    assert first.verdict == "broken"
    assert "finite" in first.again
    assert other.verdict == "undecided"
    assert other.why.startswith(NOT_MEASURED)
    assert exit_code(record) == 1


def test_a_law_that_is_proved_is_not_said_to_hold_of_code_that_gives_nan() -> None:
    def code(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return attended(q, k, v) * (1.0 if v.shape[-2] != 3 else math.nan)

    record = check_attention(code, laws=["order-of-keys"])
    assert record.law("finite").verdict == "broken"
    assert record.law("order-of-keys").verdict == "undecided"


def test_what_gives_nan_is_not_identified() -> None:
    found = identify(rotary(at_zero))
    part: Any = found.part("finite")
    assert part.value is False
    assert "ordinary inputs" in part.evidence
    assert identify(rotary(lambda y, p: y + 0 * p.sum())).part("finite") is None


# scores beyond a finite fill: told with the scores at which hidden keys are read, and no fault


CAUSAL = DeclaredAttention(causal=True)
FULL = DeclaredAttention(causal=False)
FINITE = "hidden by a finite number"
LAWS = ("causal", "hidden-keys-do-nothing")


def late(x: Tensor) -> Tensor:
    return torch.ones(x.shape[-2], x.shape[-2]).triu(1).bool()


def filled(fill: float, *, added: bool = False) -> Callable[..., Tensor]:
    """Attention that hides what is later, and what a mask of truth values hides, by a number."""

    def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        scores = q @ k.mT / q.shape[-1] ** 0.5
        hidden = late(q) if mask is None else ~mask
        if added:
            scores = scores + torch.zeros(hidden.shape).masked_fill(hidden, fill).to(scores)
        else:
            scores = scores.masked_fill(hidden, fill)
        found: Tensor = scores.softmax(-1) @ v
        return found

    return attend


class Block(nn.Module):
    """A causal layer with a residual."""

    def __init__(self, fill: float, *, normed: bool = False) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.attend, self.qkv = filled(fill), nn.Linear(20, 60)
        self.norm = nn.LayerNorm(20) if normed else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        b, t, _ = x.shape
        parts = self.qkv(self.norm(x)).chunk(3, -1)
        heads = (one.view(b, t, 4, 5).transpose(1, 2) for one in parts)
        return x + self.attend(*heads).transpose(1, 2).flatten(2)


def layer(fill: float, *, normed: bool = False) -> Layer:
    block = Block(fill, normed=normed)
    return Layer(name="block", module=block, call=block, embed=20, declared=CAUSAL)


def code(fill: float, law: str = "causal", *, added: bool = False) -> Attention:
    masks = ("bool",) if law != "causal" else ()
    return Attention(
        name="filled",
        attend=filled(fill, added=added),
        heads=4,
        groups=4,
        width=5,
        masks=masks,
        declared=FULL if masks else CAUSAL,
    )


def told(subject: Subject, law: str = "causal") -> str:
    (seen,) = examine(subject, (Draw(),), (law,))
    assert seen.verdict == "holds", seen.why
    return seen.why


ROWS = [
    (law, added, fill, score)
    for law in LAWS
    for added in (False, True)
    for fill, score in ((-1e4, -2e4), (-1e5, -2e6), (-1e9, -2e10), (-1e15, -2e16), (-1e30, -2e31))
    if law == "causal" or not added or fill < -1e4  # numbers of 1e4 in a hidden key show through
]


@pytest.mark.parametrize(("law", "added", "fill", "score"), ROWS)
def test_scores_beyond_the_fill_are_tried(law: str, added: bool, fill: float, score: float) -> None:
    why = told(code(fill, law, added=added), law)
    assert FINITE in why
    assert f"a query whose scores are all {score:g} would read hidden keys" in why


@pytest.mark.parametrize("law", LAWS)
def test_minus_infinity_has_no_scores_beyond_it(law: str) -> None:
    assert "finite number:" not in told(code(-math.inf, law), law)


def test_a_layer_is_asked_with_tokens_that_are_large() -> None:
    for fill in (-1e4, -1e9):
        assert FINITE in told(layer(fill))
        assert "a first token with entries near" in told(layer(fill))
    assert FINITE not in told(layer(-math.inf))
    assert FINITE not in told(layer(-1e4, normed=True))  # no token gets its scores so low


def mask(fill: float) -> Mask:
    def made(queries: int, keys: int) -> Tensor:
        return torch.zeros(queries, keys).masked_fill(
            torch.ones(queries, keys).triu(1 + keys - queries).bool(), fill
        )

    return Mask(name="m", mask=made, declared=CAUSAL)


def test_a_mask_of_numbers_tells_its_fill() -> None:
    assert "hidden by the finite number -10000: a query" in told(mask(-1e4))
    assert "finite number" not in told(mask(-math.inf))
    assert "finite number" not in told(mask(torch.finfo(torch.float32).min))
