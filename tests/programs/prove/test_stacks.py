"""Stacks of layers: laws are proved layer by layer, and of false stacks none is."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from attnproof.programs.declarations import DeclaredAttention
from attnproof.programs.finding import Finding
from attnproof.programs.prove import proof_search, proofs, prove
from attnproof.programs.subjects import Attention
from attnproof.symbolic import composition
from attnproof.symbolic.prove import decide

EMBED = 4
CAUSAL, FULL = DeclaredAttention(causal=True), DeclaredAttention()
pytestmark = pytest.mark.usefixtures("graphs_alone")
Seen = Callable[[Tensor, Tensor, int], Tensor]  # of the places of queries and keys, and how many


def past(i: Tensor, j: Tensor, _: int) -> Tensor:
    return j <= i


def next_too(i: Tensor, j: Tensor, _: int) -> Tensor:
    return j <= i + 1


def every(i: Tensor, j: Tensor, _: int) -> Tensor:
    return (i >= 0) & (j >= 0)


class RowNorm(nn.Module):
    """A root mean square norm, written out."""

    def __init__(self, width: int = EMBED) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


class Block(nn.Module):
    """A layer with residuals; keys and values may come from elsewhere, and norms after.

    ``bare``: attention alone, which costs half as much to trace and to prove.
    """

    def __init__(
        self,
        seen: Seen | None = past,
        norm: Callable[[int], nn.Module] = nn.LayerNorm,
        *,
        norm_first: bool = True,
        over: int = -1,
        bare: bool = False,
    ) -> None:
        super().__init__()
        self.seen, self.norm_first, self.over, self.bare = seen, norm_first, over, bare
        self.norms = nn.ModuleList((norm(EMBED), norm(EMBED)))
        self.qkv, self.out = nn.Linear(EMBED, 3 * EMBED), nn.Linear(EMBED, EMBED)
        self.mlp = nn.Sequential(nn.Linear(EMBED, 8), nn.GELU(), nn.Linear(8, EMBED))

    def attend(self, x: Tensor, context: Tensor) -> Tensor:
        q: Tensor = self.qkv(x)[..., :EMBED]
        k, v = self.qkv(context)[..., EMBED:].chunk(2, -1)
        n = x.shape[1]
        if self.seen is None:
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.out(y)  # type: ignore[no-any-return]
        place = torch.arange(n)
        seen = self.seen(place[:, None], place[None, :], n)
        scores = (q @ k.mT / EMBED**0.5).masked_fill(~seen, -math.inf)
        return self.out(scores.softmax(self.over) @ v)  # type: ignore[no-any-return]

    def forward(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        if self.bare:
            return x + self.attend(x, x if context is None else context)
        first, second = self.norms
        if self.norm_first:
            y = first(x)
            x = x + self.attend(y, y if context is None else context)
            return x + self.mlp(second(x))  # type: ignore[no-any-return]
        x = first(x + self.attend(x, x if context is None else context))
        return second(x + self.mlp(x))  # type: ignore[no-any-return]


def bare(seen: Seen | None = past, **more: Any) -> Block:
    return Block(seen, bare=True, **more)


Between = Callable[[Tensor, Tensor], Tensor]


class Stack(nn.Module):
    """Layers, and what is done after some of them: of what they gave, and of the first input."""

    def __init__(
        self, *layers: nn.Module, context: Between | None = None, **after: Between
    ) -> None:
        super().__init__()
        self.layers, self.context = nn.ModuleList(layers), context
        self.after = {int(name.removeprefix("layer")): what for name, what in after.items()}

    def forward(self, x: Tensor) -> Tensor:
        y = x
        for k, layer in enumerate(self.layers, 1):
            y = layer(y, self.context(y, x)) if self.context and k > 1 else layer(y)
            y = self.after[k](y, x) if k in self.after else y
        return y


def found_of(module: nn.Module, law: str) -> Finding:
    declared = CAUSAL if law == "causal" else FULL
    subject = Attention(
        name="stack", layer=module.eval(), module=module, embed=EMBED, declared=declared
    )
    found = prove(subject, laws=(law,))
    assert not found.why
    (finding,) = found.findings
    return finding


@pytest.fixture
def in_parts(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each law was proved in parts, though no witness is known, and with time enough."""
    proved: list[bool] = []
    decided = proof_search._in_parts

    def kept(law: Any, graphs: Any, letters: Any, subject: Any, _: float) -> Any:
        found = decided(law, graphs, letters, subject, 40.0)
        proved.append(found is not None)
        return found

    monkeypatch.setattr(proof_search, "_in_parts", kept)
    return proved


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The statements about parts that were looked at, in their order."""
    asked: list[Any] = []

    def counted(statement: Any, **more: Any) -> Any:
        asked.append(statement)
        return decide(statement, **more)

    monkeypatch.setattr(composition, "decide", counted)
    return asked


TRUE: dict[str, dict[str, Callable[[], nn.Module]]] = {
    "causal": {
        "fused": lambda: Stack(Block(None), Block(None)),
        "by hand": lambda: Stack(Block(), Block()),
        "norms after": lambda: Stack(*(Block(norm_first=False) for _ in "ab")),
        "norms by hand": lambda: Stack(*(Block(None, RowNorm) for _ in "ab")),
        "two kinds": lambda: Stack(Block(None), Block(norm=RowNorm), Block(None)),
        "the context of the input": lambda: Stack(Block(), Block(), context=lambda _, x: x),
    },
    "permutation": {
        "equivariant": lambda: Stack(bare(every), bare(every)),
        "encoder": lambda: nn.TransformerEncoder(
            nn.TransformerEncoderLayer(EMBED, 2, 8, batch_first=True), 2, enable_nested_tensor=False
        ),
    },
    "rows-of-batch-apart": {"rows apart": lambda: Stack(Block(), Block())},
}


def of_laws(told: dict[str, dict[str, Callable[[], nn.Module]]]) -> list[tuple[str, str]]:
    return [(law, name) for law, stacks in told.items() for name in stacks]


@pytest.mark.parametrize(("law", "name"), of_laws(TRUE))
def test_stacks_are_proved(law: str, name: str, in_parts: list[bool]) -> None:
    torch.manual_seed(0)
    assert found_of(TRUE[law][name](), law).verdict == "holds"
    assert in_parts == [True]


def test_conditions_of_a_later_layer_are_told(in_parts: list[bool]) -> None:
    def divided(y: Tensor, _: Tensor) -> Tensor:
        return y / y.pow(2).mean(-1, keepdim=True)

    table = torch.ones(64, 64).tril().bool()
    short = bare(lambda i, j, n: table[:n, :n] & (i >= 0) & (j >= 0))
    found = found_of(Stack(bare(), short, layer1=divided), "causal")
    assert found.verdict == "holds"
    assert in_parts[0]  # and what runs beyond the table is another program
    told = [condition.text for condition in found.assuming]
    assert "no denominator is 0" in told
    assert any("n + n′ ≤ 64" in text for text in told)


def test_layers_that_are_alike_are_proved_once(parts: list[Any]) -> None:
    each = []
    for count in (3, 4):
        parts.clear()
        assert found_of(Stack(*(Block(None) for _ in range(count))), "causal").verdict == "holds"
        each.append(len(parts))
    assert each == [3, 3]  # the first, the last, and all between


def test_a_layer_that_differs_is_proved_by_itself(parts: list[Any]) -> None:
    layers = [Block(None), Block(), Block(None), Block(None)]
    assert found_of(Stack(*layers), "causal").verdict == "holds"
    assert len(parts) == 4


def mean_of_tokens(y: Tensor, _: Tensor) -> Tensor:
    return y + y.mean(1, keepdim=True)


def weights_of_tokens(y: Tensor, _: Tensor) -> Tensor:
    return y + y @ y.mean(1)[:, :, None] @ y.mean(1)[:, None, :]


def places(y: Tensor, _: Tensor) -> Tensor:
    return y + torch.arange(y.shape[1])[:, None]


FALSE: dict[str, dict[str, Callable[[], nn.Module]]] = {
    "causal": {
        "layer 2 sees the next token": lambda: Stack(Block(), Block(next_too)),
        "layer 1 sees the next token": lambda: Stack(bare(next_too), bare()),
        "layer 3 of 4 sees all": lambda: Stack(Block(), Block(), Block(every), Block()),
        "the last token is seen": lambda: Stack(
            bare(), bare(lambda i, j, n: (j <= i) | (j == n - 1))
        ),
        "a mean between": lambda: Stack(bare(None), bare(None), layer1=mean_of_tokens),
        "a mean at the end": lambda: Stack(bare(None), bare(None), layer2=mean_of_tokens),
        "a little of the last token": lambda: Stack(
            bare(None), bare(None), layer1=lambda y, _: y + 0.01 * y[:, -1:]
        ),
        "a bypass, reversed": lambda: Stack(
            bare(None), bare(None), layer2=lambda y, x: y + x.flip(1)
        ),
        "a bypass around one layer": lambda: Stack(
            bare(None), bare(None), layer1=lambda y, x: y + x.roll(-1, 1)
        ),
        "a context reversed": lambda: Stack(bare(None), bare(None), context=lambda _, x: x.flip(1)),
        "a context of later tokens": lambda: Stack(bare(None), bare(every), context=lambda _, x: x),
        "tokens rolled": lambda: Stack(bare(None), bare(None), layer1=lambda y, _: y.roll(-1, 1)),
        "turned round and back": lambda: Stack(
            bare(None), bare(None), layer1=lambda y, _: y.flip(1), layer2=lambda y, _: y.flip(1)
        ),
        "how many there are": lambda: Stack(
            bare(None), bare(None), layer1=lambda y, _: y * y.shape[1]
        ),
        "weights over queries": lambda: Stack(bare(None), bare(over=-2)),
        "a norm over tokens": lambda: Stack(
            bare(None), bare(None), layer1=lambda y, _: y / (1 + y.abs().sum(1, keepdim=True))
        ),
        "sums from the end": lambda: Stack(
            bare(None), bare(None), layer1=lambda y, _: y.flip(1).cumsum(1).flip(1)
        ),
        "weights made of tokens": lambda: Stack(bare(None), bare(None), layer1=weights_of_tokens),
        "a gate of the first input": lambda: Stack(
            bare(None), bare(None), layer2=lambda y, x: y * x.sum(1, keepdim=True).sigmoid()
        ),
        "what is taken away again": lambda: Stack(
            bare(None),
            bare(None),
            layer1=lambda y, x: y + x.flip(1),
            layer2=lambda y, x: y - x.flip(1),
        ),
    },
    "permutation": {
        "places between": lambda: Stack(bare(every), bare(every), layer1=places),
        "one layer is causal": lambda: Stack(bare(every), bare()),
    },
    "rows-of-batch-apart": {
        "a mean over rows": lambda: Stack(
            bare(None), bare(None), layer1=lambda y, _: y - y.mean(0)
        ),
        "another row bypasses": lambda: Stack(
            bare(None), bare(None), layer2=lambda y, x: y + x.flip(0)
        ),
    },
}


@pytest.mark.usefixtures("proofs_alone")
@pytest.mark.parametrize(("law", "name"), of_laws(FALSE))
def test_false_stacks_are_broken(
    law: str, name: str, in_parts: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proofs, "WITNESS_SECONDS", 0.02)  # as a whole: see test_attacks
    torch.manual_seed(0)
    assert found_of(FALSE[law][name](), law).verdict == "broken"
    assert in_parts == [False]
