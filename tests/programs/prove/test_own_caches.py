"""Attention that writes keys and values into arrays of its own: called, fed in steps, proved."""

from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.equal.deciding import compare
from attnproof.programs.equal.sides import Operand
from attnproof.programs.execution.calling import arranged
from attnproof.programs.execution.state import LARGE, copied, copy_of, large_copies
from attnproof.programs.measure.examine import examine
from attnproof.programs.prove import prove
from attnproof.programs.prove.exporting import read, traced
from attnproof.programs.prove.program import Program
from attnproof.programs.subject import adapted_as
from attnproof.symbolic.array import Array
from attnproof.symbolic.givens import real
from attnproof.symbolic.scalars import size

ROWS, HIDDEN, STEPS = "rows-of-batch-apart", "hidden-keys-do-nothing", "step-by-step"
WHOLE = "x: B n E, start_pos = p, mask: B 1 n n add -> B n E"
LINE = f"{WHOLE}; step: x: B n E, start_pos = p, mask: B 1 n (n + p) add -> B n E"


class Caching(nn.Module):
    """Two heads of 4 channels, with room for 4 rows of 32 tokens."""

    cache_k: Tensor
    cache_v: Tensor

    def __init__(self, dim: int = 8) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.cache_k, self.cache_v = torch.zeros(2, 4, 32, 2, dim // 2)
        self.cache_k, self.cache_v = self.cache_k.clone(), self.cache_v.clone()
        self.prepare()

    def prepare(self) -> None:
        """What else is built."""

    def read(self, k: Tensor, v: Tensor, past: int) -> tuple[Tensor, Tensor]:
        """Write keys and values (B, n, H, D), and read them with the earlier ones."""
        rows, end = k.shape[0], past + k.shape[1]
        self.cache_k = self.cache_k.to(k)
        self.cache_k[:rows, past:end] = k
        self.cache_v[:rows, past:end] = v
        return self.cache_k[:rows, :end], self.cache_v[:rows, :end]

    def forward(self, x: Tensor, start_pos: int, mask: Tensor | None) -> Tensor:
        q, k, v = self.qkv(x).view(*x.shape[:2], 3, 2, -1).unbind(2)
        q, k, v = (t.transpose(1, 2) for t in (q, *self.read(k, v, start_pos)))
        scores = q @ k.mT / 2.0
        scores = scores if mask is None else scores + mask
        found: Tensor = self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
        return found


class Buffers(Caching):
    """The same in buffers."""

    def prepare(self) -> None:
        for name in ("cache_k", "cache_v"):
            value = vars(self).pop(name)
            self.register_buffer(name, value, persistent=False)


class Summing(Caching):
    """Sums of what is kept, which are traced in a fraction of the time of attention."""

    def forward(self, x: Tensor, start_pos: int, mask: Tensor | None) -> Tensor:  # noqa: ARG002
        k = x.view(*x.shape[:2], 2, -1)
        keys, values = self.read(k, 2 * k, start_pos)
        return x + (keys.sum(1) + values.sum(1)).flatten(1)[:, None]


class Past(Summing):
    """It reads a place behind its last token, which a longer call has written."""

    def read(self, k: Tensor, v: Tensor, past: int) -> tuple[Tensor, Tensor]:
        keys, values = super().read(k, v, past)
        end = past + k.shape[1]
        return keys, values + self.cache_v[: k.shape[0], end : end + 1].sum()


class FirstRow(Summing):
    """The keys of the first row are those of all rows."""

    def read(self, k: Tensor, v: Tensor, past: int) -> tuple[Tensor, Tensor]:
        return super().read(k[:1].expand_as(k), v, past)


class Averages(Summing, Buffers):
    """A mean over all calls is added."""

    mean: Tensor

    def prepare(self) -> None:
        super().prepare()
        self.register_buffer("mean", torch.zeros(()))

    def read(self, k: Tensor, v: Tensor, past: int) -> tuple[Tensor, Tensor]:
        self.mean.mul_(0.9).add_(0.1 * v.mean())
        keys, values = super().read(k, v, past)
        return keys, values + self.mean


class Overwrites(Caching):
    """A later chunk is written over the first token."""

    def read(self, k: Tensor, v: Tensor, past: int) -> tuple[Tensor, Tensor]:
        keys, values = super().read(k, v, past)
        if past:
            self.cache_v[: k.shape[0], 0] = v[:, 0]
        return keys, values


class Forgets(Caching):
    """Chunks after the first are not written: their places hold what other calls left."""

    def read(self, k: Tensor, v: Tensor, past: int) -> tuple[Tensor, Tensor]:
        if not past:
            return super().read(k, v, past)
        rows, end = k.shape[0], past + k.shape[1]
        return self.cache_k[:rows, :end], self.cache_v[:rows, :end]


class InList(Summing):
    """The caches are in a list."""

    def prepare(self) -> None:
        self.caches = [vars(self).pop(name) for name in ("cache_k", "cache_v")]

    def read(self, k: Tensor, v: Tensor, past: int) -> tuple[Tensor, Tensor]:
        rows, end = k.shape[0], past + k.shape[1]
        for cache, new in zip(self.caches, (k, v), strict=True):
            cache[:rows, past:end] = new
        return self.caches[0][:rows, :end], self.caches[1][:rows, :end]


class InObject(Summing):
    """The caches are in an object."""

    def prepare(self) -> None:
        self.held = SimpleNamespace(k=vars(self).pop("cache_k"), v=vars(self).pop("cache_v"))

    def read(self, k: Tensor, v: Tensor, past: int) -> tuple[Tensor, Tensor]:
        rows, end = k.shape[0], past + k.shape[1]
        self.held.k[:rows, past:end] = k
        self.held.v[:rows, past:end] = v
        return self.held.k[:rows, :end], self.held.v[:rows, :end]


class Bare(Caching):
    """Its weights are its own: it has no parts."""

    def __init__(self) -> None:
        nn.Module.__init__(self)
        drawn = torch.randn(4, 8, 8, generator=torch.Generator().manual_seed(1))
        self.weights = nn.Parameter(drawn / 3)
        self.cache_k, self.cache_v = torch.zeros(4, 32, 2, 4), torch.zeros(4, 32, 2, 4)

    def forward(self, x: Tensor, start_pos: int, mask: Tensor | None) -> Tensor:
        q, k, v = ((x @ w).view(*x.shape[:2], 2, -1) for w in self.weights[:3])
        q, k, v = (t.transpose(1, 2) for t in (q, *self.read(k, v, start_pos)))
        y = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return y.transpose(1, 2).flatten(2) @ self.weights[3]


class BareWithout(Bare):
    """It keeps nothing, though it is told where its tokens start."""

    def read(self, k: Tensor, v: Tensor, past: int) -> tuple[Tensor, Tensor]:  # noqa: ARG002
        return k, v


class TwoNames(Summing):
    """It writes to an array under one name, and reads it under another."""

    def prepare(self) -> None:
        self.same = self.cache_k

    def read(self, k: Tensor, v: Tensor, past: int) -> tuple[Tensor, Tensor]:
        rows, end = k.shape[0], past + k.shape[1]
        self.cache_k[:rows, past:end] = k
        return self.same[:rows, :end], v


class Counts(Summing, Buffers):
    """Its calls are counted in whole numbers."""

    calls: Tensor

    def prepare(self) -> None:
        super().prepare()
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))

    def read(self, k: Tensor, v: Tensor, past: int) -> tuple[Tensor, Tensor]:
        self.calls += 1
        keys, values = super().read(k, v, past)
        return keys, values * (1 + self.calls // 1000)


class Replaces(Summing, Buffers):
    """It reads the mean of what the last call left, and leaves an array of another shape."""

    def read(self, k: Tensor, v: Tensor, past: int) -> tuple[Tensor, Tensor]:  # noqa: ARG002
        before, self.cache_v = self.cache_v, v.clone()
        return k, v + before.mean()


class Views(Caching):
    """It writes to arrays under names, and reads them as views under other names, in a list."""

    def prepare(self) -> None:
        self.views = [self.cache_k[:, :], self.cache_v[:, :]]

    def read(self, k: Tensor, v: Tensor, past: int) -> tuple[Tensor, Tensor]:
        super().read(k, v, past)
        rows, end = k.shape[0], past + k.shape[1]
        return self.views[0][:rows, :end], self.views[1][:rows, :end]


class Large(Views):
    """The same, with room for 4,111 tokens."""

    def prepare(self) -> None:
        self.cache_k, self.cache_v = torch.zeros(2, 4, 4111, 2, 4).unbind()
        super().prepare()


def adapted(made: Any, line: str = LINE) -> Any:
    return adapted_as(made, line, kind="attention")


@pytest.mark.parametrize("made", [Caching, Buffers])
def test_steps_through_its_own_cache_are_guessed(made: type[Caching]) -> None:
    guessed: Any = adapted_as(made, kind="attention")
    assert guessed.line == LINE
    x = torch.randn(2, 6, guessed.embed, generator=torch.Generator().manual_seed(1))
    one, state = guessed.step(x[:, :2], None)
    two, _ = guessed.step(x[:, 2:], state)
    torch.testing.assert_close(torch.cat((one, two), 1), guessed.layer(x))
    found = {one.law: one.verdict for one in examine(guessed)}
    assert {found[law] for law in (STEPS, "stateless", ROWS, HIDDEN)} == {"holds"}
    assert set(found.values()) <= {"holds", "not asked"}


def test_laws_are_proved_whatever_the_cache_holds() -> None:
    module = Caching()
    before = module.cache_k
    found = {one.law: one for one in prove(adapted(module), ["causal", ROWS, HIDDEN]).findings}
    assert {law: one.verdict for law, one in found.items()} == dict.fromkeys(found, "holds")
    assert set(found) == {"causal", ROWS, HIDDEN}
    told = {condition.text for one in found.values() for condition in one.assuming}
    assert {"start_pos is 0", "B ≤ 4", "n ≤ 32"} <= told, told
    assert not any("finite" in text and "earlier" in text for text in told), told
    assert vars(module)["cache_k"] is before  # tracing leaves attributes as they are
    assert not dict(module.named_buffers())


class SummingBuffers(Summing, Buffers):
    """Sums of what is kept in buffers."""


@pytest.mark.usefixtures("lengths_of_one")
def test_one_row_and_one_token_are_covered() -> None:
    (found,) = prove(adapted(SummingBuffers), [ROWS]).findings
    assert found.verdict == "holds"
    told = {one.text for one in found.assuming}
    assert {"start_pos is 0", "B′ + B ≤ 4", "n ≤ 32"} <= told, told
    assert not [one.text for one in found.assuming if one.kind == "for" and "≥" in one.text]


@pytest.mark.parametrize("made", [Past, FirstRow, Averages, Replaces])
def test_what_earlier_calls_left_is_never_proved_harmless(made: type[Caching]) -> None:
    traced = prove(adapted(made, WHOLE), [ROWS])
    assert not {one.verdict for one in traced.findings} & {"holds"}, traced


@pytest.mark.parametrize(
    ("made", "law"),
    [
        (Past, "stateless"),
        (FirstRow, ROWS),
        (Averages, "stateless"),
        (Overwrites, STEPS),
        (Forgets, STEPS),
    ],
)
def test_a_fault_of_the_cache_is_measured(made: type[Caching], law: str) -> None:
    (found,) = examine(adapted(made), laws=[law])
    assert found.verdict == "broken"


@pytest.mark.parametrize(("made", "stepped"), [(Bare, True), (BareWithout, False)])
def test_a_module_without_parts_is_fed_in_steps(made: type[Caching], stepped: bool) -> None:
    assert ("step: " in adapted_as(made, kind="attention").line) is stepped


@pytest.mark.parametrize("made", [Views, Large])
def test_arrays_that_share_memory_share_it_in_steps(made: type[Caching]) -> None:
    (found,) = examine(adapted(made), laws=[STEPS])
    assert found.verdict == "holds"


@pytest.mark.parametrize("made", [Caching, Large])
def test_a_step_leaves_what_it_was_given_as_it_was(made: type[Caching]) -> None:
    subject = adapted(made)
    x = torch.randn(2, 9, subject.embed, generator=torch.Generator().manual_seed(3))
    _, state = subject.step(x[:, :4], None)
    one, _ = subject.step(x[:, 4:], state)
    subject.step(-x[:, 2:], state)
    subject.layer(3 * x)
    assert torch.equal(subject.step(x[:, 4:], state)[0], one)


def test_steps_are_taken_in_the_format_and_the_mode_of_the_module() -> None:
    subject = adapted(Buffers)
    x = torch.randn(2, 9, subject.embed, generator=torch.Generator().manual_seed(3)).double()
    with arranged(subject, torch.float64, train=True):
        one, state = subject.step(x[:, :4], None)
        two, (held, _) = subject.step(x[:, 4:], state)
        torch.testing.assert_close(torch.cat((one, two), 1), subject.layer(x), rtol=0, atol=1e-12)
        assert held[0].training


@pytest.mark.parametrize("size", [LARGE - 1, LARGE, LARGE + 4095, 2 * LARGE + 17])
def test_a_copy_of_memory_is_the_same_and_apart(size: int) -> None:
    x = torch.zeros(size, dtype=torch.uint8)
    places = torch.tensor([0, 4095, 4096, 70_003, size - 4097, size - 2])
    x[places] = torch.arange(1, 7, dtype=torch.uint8)
    own = torch.empty(0, dtype=torch.uint8).set_(copy_of(x.untyped_storage()))
    assert torch.equal(own, x)
    assert own.data_ptr() % 64 == 0
    own[3:9] = 1
    assert x.sum() == 21


def test_gradients_flow_through_a_copy() -> None:
    x = torch.zeros(LARGE, requires_grad=True)
    (slope,) = torch.autograd.grad(copied(x * 2, {}).sum(), [x])
    assert bool((slope == 2).all())


def test_copies_of_a_module_share_memory_where_it_does() -> None:
    module = Large()
    twin = copy.deepcopy(module, large_copies(module))
    twin.cache_k[0, 5] = 1.0
    assert torch.equal(twin.views[0], twin.cache_k)
    assert not module.views[0].any()


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (TwoNames, "the code writes to same, which shares memory with cache_k"),
        (Counts, "the code writes to calls: its result depends on earlier calls"),
        (Views, "the code writes to cache_k, which shares memory with views[0]"),
        (
            InList,
            "wanted a buffer or an attribute of a module, got caches[0], which the code writes",
        ),
        (InObject, "attribute of a module, got an array elsewhere, which the code writes to"),
    ],
)
def test_the_reason_names_what_is_written(made: type[Caching], why: str) -> None:
    traced = prove(adapted(made, WHOLE), [ROWS])
    assert why in traced.why
    assert not {one.verdict for one in traced.findings} & {"holds"}, traced


class AddsLast(nn.Module):
    """It adds the first token of the last call."""

    last: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("last", torch.zeros(3))

    def forward(self, x: Tensor) -> Tensor:
        found = x + self.last
        self.last.copy_(x[0])
        return found


def test_each_call_may_find_other_numbers_in_what_is_written() -> None:
    graph = read(traced(AddsLast(), (torch.randn(5, 3),), ((True, False),)))
    program, x = Program(graph, "layer", "program"), real(Array(size("n", "tokens")), 3).named("x")
    one, other = (program(x, named={}) for _ in range(2))
    assert graph.state == {"last"}
    assert set(program.notes.states.values()) == {"last"}
    assert one.term is not other.term


def test_lengths_that_a_graph_does_not_take_are_told_by_their_axis() -> None:
    graph = read(traced(AddsLast(), (torch.randn(5, 3),), ((True, False),)))
    program = Program(graph, "layer", "program")
    with pytest.raises(ValueError, match="with 3 in axis 2 of input 1, where the law has 2"):
        program(real(Array(size("n", "tokens")), 2).named("x"), named={})


class NoWeight(AddsLast):
    """What the last call left has weight 0."""

    def forward(self, x: Tensor) -> Tensor:
        found = x.softmax(1) + 0.0 * self.last
        self.last.copy_(x[0, 0])
        return found


def test_numbers_that_earlier_calls_left_must_be_finite() -> None:
    made = adapted_as(NoWeight(), "x: B n 3 -> B n 3", kind="layer")
    (found,) = prove(made, [ROWS]).findings
    assert found.verdict == "holds", found
    assert "what earlier calls left in last is finite" in {one.text for one in found.assuming}


def test_of_two_programs_what_they_leave_is_not_compared() -> None:
    class Leaves(Bare):
        def read(self, k: Tensor, v: Tensor, past: int) -> tuple[Tensor, Tensor]:
            super().read(k + 1, v, past)
            return k, v

    line = "x: B n E, start_pos = 0, mask = None -> B n E"
    found = compare(Operand(Bare(), "one", line), Operand(Leaves(), "other", line))
    assert found.verdict == "proved", found
    left = "what the code leaves in cache_k and cache_v for later calls is not compared"
    assert left in {one.text for one in found.assuming}
