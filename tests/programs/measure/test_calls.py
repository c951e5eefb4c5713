"""Probes of calls that follow each other: steps, padding, dropout, casts; code outside torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.declarations import DeclaredAttention, DeclaredRotary
from attnproof.programs.execution.draw import Draw
from attnproof.programs.finding import Finding
from attnproof.programs.identify import identify
from attnproof.programs.measure.examine import examine
from attnproof.programs.subject import adapted_as
from attnproof.programs.subjects import Attention, Rotary, Subject

from .attention_code import (
    FULL,
    THREE,
    any_layer,
    cached,
    code,
    encoder,
    found,
    in_formats,
    multihead,
    quiet,
    refused,
)
from .rotary_code import half, ladder

LAWS = ("step-by-step", "padding-does-nothing", "evaluation-repeats", "training-returns")


RIGHT: dict[str, Callable[[], Subject]] = {
    "cached": cached,
    "cached with a window": lambda: cached(window=3, declared=THREE),
    "cached with dropout": lambda: cached(dropout=0.3),
    "multihead": lambda: multihead(dropout=0.3),
    "multihead with weights": lambda: multihead(False, dropout=0.3),
    "encoder": encoder,
    "function": lambda: code(declared=FULL),
}


@pytest.mark.parametrize(("name", "dtype"), in_formats(RIGHT), ids=str)
def test_correct_code_is_quiet(name: str, dtype: torch.dtype) -> None:
    quiet(RIGHT[name](), dtype, LAWS)


@pytest.mark.parametrize(
    ("law", "wrong"),
    [
        ("step-by-step", cached("no-offset")),
        ("step-by-step", cached("start")),
        ("step-by-step", cached("square")),
        ("step-by-step", cached("no-mask")),
        ("step-by-step", cached("whole-cache")),
        ("padding-does-nothing", cached("shared-positions")),
        ("padding-does-nothing", cached("sees-padding")),
        ("padding-does-nothing", multihead(fault="ignored")),
        ("evaluation-repeats", code("dropout", FULL)),
        ("evaluation-repeats", cached("always-drops", dropout=0.3)),
        ("evaluation-repeats", cached("always-drops")),
        ("training-returns", cached("dropout-lost", dropout=0.3)),
    ],
)
def test_a_fault_is_refused(law: str, wrong: Subject) -> None:
    refused(wrong, law)


def test_a_fault_of_training_is_refused_in_any_layer() -> None:
    lost = cached("dropout-lost", dropout=0.3).module
    drops = cached("always-drops", dropout=0.3).module
    assert lost is not None
    assert drops is not None
    assert found(any_layer(lost), "training-returns").verdict == "broken"
    assert found(any_layer(drops), "evaluation-repeats").verdict == "broken"


class Alternates(nn.Module):
    """Every other call is off by so much, as if a kernel summed in another order."""

    def __init__(self, off: float) -> None:
        super().__init__()
        self.off, self.calls = off, 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return x * (1 + self.off * (self.calls % 2))


@pytest.mark.parametrize(("off", "verdict"), [(2.0**-23, "holds"), (1e-4, "broken")])
def test_rounding_is_no_other_result_of_an_equal_call(off: float, verdict: str) -> None:
    assert found(any_layer(Alternates(off)), "evaluation-repeats").verdict == verdict


class Chooses(nn.Module):
    """Its path is chosen by its dropout when it is built; the fast one is for none."""

    def __init__(self, embed_dim: int = 20, dropout: float = 0.0, fault: bool = False) -> None:
        super().__init__()
        self.dropout, self.plain = dropout, dropout == 0.0 or fault
        self.both = nn.Linear(embed_dim, 2 * embed_dim)

    def forward(self, x: Tensor) -> Tensor:
        k, v = self.both(x).chunk(2, -1)
        if self.plain:
            return nn.functional.scaled_dot_product_attention(x, k, v, dropout_p=self.dropout)
        weights = nn.functional.dropout((x @ k.mT).softmax(-1), self.dropout, self.training)
        return torch.matmul(weights, v)


def test_dropout_by_which_code_was_built_is_no_fault_where_it_is_set_later() -> None:
    law = "evaluation-repeats"
    assert found(adapted_as(Chooses, name="Attention"), law).verdict == "holds"
    assert found(any_layer(Chooses(dropout=0.2)), law).verdict == "holds"
    one = found(any_layer(Chooses()), law)  # of which no other can be built
    assert one.verdict == "undecided"
    assert "which may decide how it is built" in one.why
    assert found(any_layer(Chooses(dropout=0.2, fault=True)), law).verdict == "broken"


def test_what_is_seldom_dropped_is_seen() -> None:
    class Drops(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return nn.functional.dropout(x, 0.0002)

    assert found(any_layer(Drops()), "evaluation-repeats").verdict == "broken"


def test_one_token_at_a_time_does_not_see_a_mask_that_prefill_lacks() -> None:
    one = found(cached("no-mask"), "step-by-step")
    assert one.witness is not None
    assert one.sizes["n"] == 2  # two tokens fed together


def test_a_chunk_that_is_refused_is_a_fault_with_its_message() -> None:
    one = found(cached("square"), "step-by-step")
    assert "fed in pieces, a later piece raised RuntimeError" in one.why


def test_one_shift_for_all_tokens_of_a_row_is_no_fault() -> None:
    """Left padding that shifts queries and keys alike leaves relative positions as they are."""
    inner = cached()
    step = inner.step
    assert step is not None

    def far(x: torch.Tensor, state: object, pads: torch.Tensor) -> tuple[torch.Tensor, object]:
        assert inner.padded_step is not None
        return inner.padded_step(x, state, pads)

    one = Attention(
        name="far",
        module=inner.module,
        step=step,
        padded_step=far,
        embed=20,
        layer=inner.layer,
        heads=4,
        groups=2,
        declared=inner.declared,
    )
    assert found(one, "padding-does-nothing").verdict == "holds"


def test_without_a_cache_or_dropout_nothing_is_asked() -> None:
    assert found(code(declared=FULL), "step-by-step").verdict == "not asked"
    assert found(code(declared=FULL), "training-returns").verdict == "not asked"


class Remembers(nn.Module):
    """Adds to its tokens the mean of those of the call before, of any instance and in any mode."""

    before: ClassVar[list[Tensor]] = []

    def forward(self, x: Tensor) -> Tensor:
        out = nn.functional.scaled_dot_product_attention(x, x, x) + sum(self.before[-1:])
        self.before.append(x.detach().mean((0, 1)))
        return out


def test_what_depends_on_earlier_calls_is_not_called_random() -> None:
    one = any_layer(Remembers())
    assert found(one, "evaluation-repeats").verdict == "broken"
    assert found(one, "training-returns").verdict == "not asked"
    trained = found(one, "training-is-evaluation")
    assert (trained.verdict, trained.why) == (
        "not asked",
        "a call in training depends on earlier calls: see stateless",
    )
    (told,) = identify(one).parts
    assert (told.name, told.words) == ("earlier calls", "a result that depends on earlier calls")


def test_tokens_that_see_later_ones_are_not_asked_to_be_fed_in_pieces() -> None:
    """An encoder's attention may take a cache, for decoders that share its code."""

    def step(x: Tensor, past: Tensor | None) -> tuple[Tensor, Tensor]:
        seen = x if past is None else torch.cat((past, x), 1)
        return (x @ seen.mT).softmax(-1) @ seen, seen

    both_ways = Attention(
        name="both ways", layer=lambda x: step(x, None)[0], step=step, embed=4, heads=1
    )
    (found,) = examine(both_ways, laws=("step-by-step",))
    assert found.verdict == "not asked"
    causal = replace(both_ways, declared=DeclaredAttention(causal=True))
    (found,) = examine(causal, laws=("step-by-step",))
    assert found.verdict == "broken"


# what counts in a cast: of the module that works, however it is called, and not of its data


LAW = "survives-casting"


def _found(code: Subject) -> Finding:
    (found,) = examine(code, laws=(LAW,))
    return found


def _rotated(x: Tensor, angles: Tensor) -> Tensor:
    a, b = x.chunk(2, -1)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class ByMethod(nn.Module):
    """Rotates by a method alone; ``keeps`` the longest table of angles that it has made."""

    omega: Tensor
    buffer, keeps = True, True

    def __init__(self, dim: int = 8) -> None:
        super().__init__()
        if self.buffer:
            self.register_buffer("omega", ladder(dim))
        else:  # no cast reaches it
            self.omega = ladder(dim)
        self.angles: Tensor | None = None

    def rotated(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        n = q.shape[-2]
        if self.angles is None or len(self.angles) < n or not self.keeps:
            self.angles = torch.arange(n).float()[:, None] * self.omega
        return _rotated(q, self.angles[:n]), _rotated(k, self.angles[:n])


class Exact(ByMethod):
    buffer = False


class Anew(ByMethod):
    keeps = False


@pytest.mark.parametrize("built", ["", "; built with dim = D"])
@pytest.mark.parametrize(
    ("code", "verdict"), [(ByMethod, "broken"), (Anew, "broken"), (Exact, "holds")]
)
def test_a_cast_reaches_a_module_that_is_called_by_a_method(
    code: type[ByMethod], verdict: str, built: str
) -> None:
    """It was looked for where ``forward`` is called, and this law held of it."""
    line = f"q: B H n D, k: B G n D -> q, k; method rotated{built}"
    assert _found(adapted_as(code, line, kind="rotary")).verdict == verdict


def test_where_no_module_is_seen_at_work_nothing_is_said_to_hold() -> None:
    class Other(nn.Module):
        """Named as the module of the code, and not what works."""

    code = Rotary(name="code", rotate=half(ladder(8)), width=8, module=Other())
    found = _found(code)
    assert found.verdict == "undecided"
    assert "could not be identified" in found.why


class OfData(nn.Module):
    """Angles in the format of the data, of frequencies that a cast reaches, or of none."""

    omega: Tensor
    buffer = False

    def __init__(self, dim: int = 8) -> None:
        super().__init__()
        if self.buffer:
            self.register_buffer("omega", ladder(dim))

    def forward(self, x: Tensor) -> Tensor:
        omega = self.omega.float() if self.buffer else ladder(x.shape[-1])
        return _rotated(x, (torch.arange(x.shape[-2])[:, None] * omega).to(x.dtype))


class OfBoth(OfData):
    buffer = True


@pytest.mark.parametrize(("code", "verdict"), [(OfData, "holds"), (OfBoth, "broken")])
def test_what_the_format_of_the_data_does_is_no_fault_of_a_cast(
    code: type[OfData], verdict: str
) -> None:
    """It is one of angles: those of a module without a single number were called changed."""
    subject = adapted_as(code, "x: B H n D -> x", kind="rotary")
    assert _found(subject).verdict == verdict
    (angles,) = examine(subject, laws=("angles-are-exact",))
    assert angles.verdict == "broken"


# code that leaves torch, and code whose base is not known: no alarm, and its faults are seen


def in_numpy(over: int = -1) -> Attention:
    """Attention that torch does not see: its numbers go through NumPy."""

    def attend(q: Tensor, k: Tensor, v: Tensor, mask: None = None) -> Tensor:
        assert mask is None
        a, b, c = (x.double().numpy() for x in (q, k, v))
        scores = a @ b.swapaxes(-1, -2) / a.shape[-1] ** 0.5
        weights = np.exp(scores - scores.max(over, keepdims=True))
        weights = weights / weights.sum(over, keepdims=True)
        return torch.from_numpy(weights @ c).to(q.dtype)

    return Attention(name="in NumPy", attend=attend, heads=2, groups=2, width=8)


def verdicts(code: Any, *laws: str) -> dict[str, str]:
    return {one.law: one.verdict for one in examine(code, (Draw(),), laws)}


def test_what_numpy_rounds_is_allowed() -> None:
    found = verdicts(in_numpy(), "rows-sum-to-one", "shift-of-scores", "rows-of-batch-apart")
    assert set(found.values()) == {"holds"}, found


def test_a_fault_in_numpy_is_seen() -> None:
    assert verdicts(in_numpy(over=-2), "rows-sum-to-one") == {"rows-sum-to-one": "broken"}


def rotating(base: float = 10000.0, *, heard: bool = True) -> Rotary:
    """Rotary code of which no base is declared; unless ``heard``, it takes one and drops it."""
    used = base if heard else 10000.0

    def rotate(x: Tensor, positions: Tensor) -> Tensor:
        pairs = torch.arange(4, dtype=torch.float32) / 4
        angle = positions[:, None, :, None] * used**-pairs
        a, b = x.float()[..., 0::2], x.float()[..., 1::2]
        out = (a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos())
        return torch.stack(out, -1).flatten(-2).to(x.dtype)

    return Rotary(
        name="rotating",
        rotate=rotate,
        width=8,
        make=lambda base=base: rotating(base, heard=heard),
        declared=DeclaredRotary(layout="interleaved"),
    )


def test_the_usual_base_is_no_news_where_none_is_declared() -> None:
    law = "follows-its-arguments"
    assert verdicts(rotating(), law) == {law: "holds"}
    assert verdicts(rotating(heard=False), law) == {law: "broken"}
