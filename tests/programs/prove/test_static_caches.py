"""Attention over all places of a cache under a mask: proved whatever earlier calls left in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.declarations import DeclaredAttention
from attnproof.programs.prove import prove
from attnproof.programs.prove.calls import Call, symbolic
from attnproof.programs.prove.comparison import wrong_reading
from attnproof.programs.prove.exporting import read, traced
from attnproof.programs.prove.operations import READINGS, Notes, Unread, noted
from attnproof.programs.prove.program import Program
from attnproof.programs.prove.statements import bound_letters, graphs_of
from attnproof.programs.subjects import Attention
from attnproof.symbolic import namespace as xp
from attnproof.symbolic.array import Array, as_array
from attnproof.symbolic.givens import positions, real
from attnproof.symbolic.scalars import num, size
from attnproof.symbolic.terms import free

ROWS = "rows-of-batch-apart"
LEFT = {f"what earlier calls left in {name} is finite" for name in ("k_cache", "v_cache")}


class Static(nn.Module):
    """Two heads of 4 channels, with room for 4 rows of 16 tokens, in buffers."""

    k_cache: Tensor
    v_cache: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8)
        for name in ("k_cache", "v_cache"):
            self.register_buffer(name, torch.zeros(4, 2, 16, 4), persistent=False)

    def update(self, at: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Write keys and values (B, H, n, D) at these places, and read all places."""
        rows = k.shape[0]
        self.k_cache[:rows, :, at] = k
        self.v_cache[:rows, :, at] = v
        return self.k_cache[:rows], self.v_cache[:rows]

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        return nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    def forward(self, x: Tensor, mask: Tensor, input_pos: Tensor) -> Tensor:
        q, k, v = self.qkv(x).view(*x.shape[:2], 3, 2, -1).permute(2, 0, 3, 1, 4)
        y = self.attend(q, *self.update(input_pos, k, v), mask)
        found: Tensor = self.out(y.transpose(1, 2).flatten(2))
        return found


class Copies(Static):
    """As in transformers: index_copy_, heads repeated, a mask that is added."""

    def update(self, at: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        rows = k.shape[0]
        self.k_cache[:rows].index_copy_(2, at, k)
        self.v_cache[:rows].index_copy_(2, at, v)
        return self.k_cache[:rows], self.v_cache[:rows]

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        k, v = (t[:, :, None].expand(-1, -1, 1, -1, -1).flatten(1, 2) for t in (k, v))
        scores = q @ k.transpose(2, 3) * 0.5
        scores = scores + torch.zeros(mask.shape).masked_fill(~mask, torch.finfo(q.dtype).min)
        return torch.softmax(scores, -1, dtype=torch.float32).to(q.dtype) @ v


class Assigns(Static):
    """As in Llama: a slice is assigned; all places are read, and scores are masked in place."""

    def update(self, at: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:  # noqa: ARG002
        rows, end = k.shape[0], k.shape[2]
        self.k_cache[:rows, :, 0:end] = k
        self.v_cache[:rows, :, 0:end] = v
        return self.k_cache[:rows], self.v_cache[:rows]

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        scores = (q @ k.mT / 2).masked_fill(~mask, -torch.inf)
        return scores.softmax(-1).type_as(q) @ v


class ShowsNext(Static):
    """The place behind that of a query is seen as well."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        return super().attend(q, k, v, mask | mask.roll(1, -1))


class ShowsAll(Static):
    """The places that were not written are seen."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        return super().attend(q, k, v, torch.ones_like(mask))


class ShowsLast(Static):
    """The last place is seen, whatever it holds."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        return super().attend(q, k, v, mask | (torch.arange(16) == 15))


class Behind(Static):
    """Keys and values are written one place too far, so that a stale one is read in their place."""

    def update(self, at: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        return super().update(at + 1, k, v)


class KeysBehind(Static):
    """Only the keys are."""

    def update(self, at: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        rows = k.shape[0]
        self.k_cache[:rows, :, at + 1] = k
        self.v_cache[:rows, :, at] = v
        return self.k_cache[:rows], self.v_cache[:rows]


class Before(Static):
    """The values are read before they are written."""

    def update(self, at: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        rows, stale = k.shape[0], self.v_cache[: k.shape[0]].clone()
        keys, _ = super().update(at, k, v)
        return keys[:rows], stale


class Adds(Static):
    """What is behind the mask is added to the values."""

    def update(self, at: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        keys, values = super().update(at, k, v)
        return keys, values + self.v_cache[: k.shape[0], :, 15:]


class FirstRow(Static):
    """The values of the first row are those of all."""

    def update(self, at: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        keys, values = super().update(at, k, v)
        return keys, values[:1].expand_as(keys)


class LastRows(Static):
    """The last rows of the cache are read in place of those that were written."""

    def update(self, at: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        keys, _ = super().update(at, k, v)
        return keys, self.v_cache[4 - k.shape[0] :]


def called(module: Static) -> Callable[[Tensor], Tensor]:
    """The call at the first places, under a causal mask of all places."""

    def layer(x: Tensor) -> Tensor:
        at = torch.arange(x.shape[1])
        found: Tensor = module(x, torch.arange(16) <= at[:, None], at)
        return found

    return layer


def proved(made: type[Static]) -> dict[str, Any]:
    """The findings on two laws."""
    module = made()
    subject = Attention(
        name="static",
        layer=called(module),
        module=module,
        heads=2,
        embed=8,
        declared=DeclaredAttention(causal=True),
    )
    found = prove(subject, ["causal", ROWS])
    return {one.law: one for one in found.findings}


@pytest.mark.parametrize("made", [Static, Copies, Assigns])
def test_places_that_no_query_sees_do_nothing(made: type[Static]) -> None:
    found = proved(made)
    assert {law: one.verdict for law, one in found.items()} == {"causal": "holds", ROWS: "holds"}
    told = {condition.text for condition in found[ROWS].assuming}
    assert {*LEFT, "n ≤ 16", "B′ + B ≤ 4"} <= told, told


def term_of(code: Any, shape: tuple[int, ...], *lengths: bool) -> tuple[Program, Array]:
    """The term of the code at symbolic lengths, and the program that gave it."""
    graph = read(traced(code, (torch.randn(shape),), (lengths,)))
    program = Program(graph, "layer", "folded")
    axes = (size(k) if free else num(n) for k, n, free in zip("Bne", shape, lengths, strict=True))
    x = real(*map(Array, axes)).named("x")
    named = {name: given.named(name) for name, given in graph.tables.items()}
    found: Array = program(x, named=named)
    return program, found


def leaks(made: type[Static]) -> set[str]:
    """The caches of which the term of the code has what earlier calls left."""
    program, found = term_of(called(made()), (3, 5, 8), True, True, False)
    names = {v.data[0] for v in free(found.term) if v.op == "var"}
    return {table for name, table in program.notes.states.items() if name in names}


@pytest.mark.parametrize("made", [Static, Copies, Assigns, FirstRow])
def test_what_is_hidden_is_not_in_the_term(made: type[Static]) -> None:
    assert leaks(made) == set()


@pytest.mark.parametrize(
    ("made", "what"),
    [
        (ShowsNext, "kv"),
        (ShowsAll, "kv"),
        (ShowsLast, "kv"),
        (Behind, "kv"),
        (KeysBehind, "k"),
        (Before, "v"),
        (Adds, "v"),
        (LastRows, "v"),
    ],
)
def test_what_is_read_stays_in_the_term(made: type[Static], what: str) -> None:
    assert {f"{one}_cache" for one in what} <= leaks(made)


@pytest.mark.parametrize("made", [ShowsNext, KeysBehind, FirstRow])
def test_a_fault_is_not_proved(made: type[Static]) -> None:
    assert ROWS not in {law for law, one in proved(made).items() if one.verdict == "holds"}


class From(nn.Module):
    """Tokens are written from a place on; each one reads the mean of the places up to its own."""

    kept: Tensor

    def __init__(self, first: int) -> None:
        super().__init__()
        self.first = first
        self.register_buffer("kept", torch.zeros(4, 9, 2))

    def places(self, x: Tensor) -> Tensor:
        return torch.arange(x.shape[1]) + self.first

    def forward(self, x: Tensor) -> Tensor:
        rows, at = x.shape[0], self.places(x)
        self.kept[:rows, at] = x
        scores = torch.zeros(x.shape[1], 9).masked_fill(torch.arange(9) > at[:, None], -torch.inf)
        found: Tensor = scores.softmax(-1) @ self.kept[:rows]
        return found


class Aliased(From):
    """It adds a number of earlier calls, which a trace takes for a constant."""

    def __init__(self, first: int) -> None:
        super().__init__(first)
        self.alias = self.kept.numpy()

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = super().forward(x) + float(self.alias[0, 8, 0])
        return found


def compared(first: int, made: type[From] = From) -> str:
    """What is wrong with the term at random numbers of earlier calls, beside the code itself."""
    code = made(first)
    call = Call("call", code, (torch.randn(3, 5, 2),), ("B n E",), (code,))
    graphs = graphs_of([(call, read(traced(code, call.inputs, symbolic(call))))])
    before = code.kept.clone()
    told = wrong_reading(graphs[0], bound_letters(graphs))
    assert torch.equal(code.kept, before)
    return told


@pytest.mark.parametrize("first", [0, 1, 4])
def test_the_term_is_compared_with_the_code_over_what_earlier_calls_left(first: int) -> None:
    assert compared(first) == ""


def test_what_earlier_calls_left_is_not_zero_in_the_comparison() -> None:
    assert "differ by" in compared(0, Aliased)


@pytest.mark.parametrize("first", [1, 4])
def test_a_write_that_is_read_one_place_off_is_noticed(
    first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = READINGS["aten.index_put.default"]

    def off(x: Any, at: Any, *rest: Any) -> Any:
        return read(x, [*at[:-1], at[-1] - 1], *rest)

    monkeypatch.setitem(READINGS, "aten.index_put.default", off)
    assert "differ by" in compared(first)


P = positions(as_array(size("n"))).named("p")
N = xp.arange(as_array(size("n")))


@pytest.mark.parametrize(
    ("where", "why"),
    [
        (P, "not known to follow one another"),
        (N * 2, "not known to follow one another"),
        (N // 2, "not known to follow one another"),
        (P[0] + N, "not known to follow one another"),
        (N - 1, "a write at -1.."),
        (xp.arange(as_array(3)) + 7, "a write at 7.."),
        (N[None, :] + 0, "not one row of indices"),
        (N > 1, "not one row of indices"),
    ],
)
def test_other_places_are_refused(where: Any, why: str) -> None:
    x = real(9, 2).named("x")
    with noted(Notes()), pytest.raises(Unread, match=why):
        READINGS["aten.index_put.default"](x, [where], as_array(0))
    with noted(Notes()), pytest.raises(Unread, match=why):
        READINGS["aten.index_copy.default"](x, 0, where, as_array(0))


def test_writes_that_add_up_are_refused() -> None:
    x = real(9, 2).named("x")
    for given in ([[N], as_array(0), True], [[N, N], as_array(0)]):
        with noted(Notes()), pytest.raises(Unread, match="adds up"):
            READINGS["aten.index_put.default"](x, *given)
