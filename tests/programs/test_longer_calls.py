"""What the length of a call does: outputs, leaks in longer ones, masks, and short formats."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attnproof.programs.declarations import DeclaredAttention
from attnproof.programs.draw import Draw
from attnproof.programs.exact import exact
from attnproof.programs.finding import Finding
from attnproof.programs.measure.examine import examine
from attnproof.programs.prove import prove
from attnproof.programs.subjects import Attention, Mask, Subject

CAUSAL = DeclaredAttention(causal=True)


class Heads(nn.Module):
    """Causal attention of two heads; a fault may be planted in what goes in, or comes out."""

    def __init__(self, fault: str = "") -> None:
        super().__init__()
        torch.manual_seed(4)
        self.parts, self.fault = nn.Linear(8, 24), fault

    def forward(self, x: Tensor) -> Tensor:
        if self.fault == "bfloat16":
            x = x.bfloat16()
            later = torch.cat((x[:, 1:], torch.zeros_like(x[:, :1])), 1)
            x = x + later.detach() / 64
        rows, tokens, _ = x.shape
        q, k, v = (
            part.reshape(rows, tokens, 2, 4).transpose(1, 2) for part in self.parts(x).chunk(3, -1)
        )
        late = torch.ones(tokens, tokens).triu(1).bool()
        if self.fault == "long" and tokens > 64:
            late[:, -1] = False
        weights = (q @ k.mT / 2).masked_fill(late, -torch.inf).softmax(-1)
        out: Tensor = (weights @ v).transpose(1, 2).flatten(2)
        return out / tokens if self.fault == "length" else out


def layer(fault: str = "") -> Attention:
    module = Heads(fault).eval()
    module = module.bfloat16() if fault == "bfloat16" else module
    return Attention(name="heads", layer=module, module=module, embed=8, heads=2, declared=CAUSAL)


def causal(one: Subject, dtype: torch.dtype = torch.float32) -> Finding:
    (seen,) = examine(one, (Draw(0, dtype),), ("causal",))
    return seen


def test_causal_code_is_causal_at_every_length() -> None:
    assert causal(layer()).verdict == "holds"
    assert [one.verdict for one in exact(layer(), ("causal",))] == ["holds"]
    assert [one.verdict for one in prove(layer(), laws=["causal"]).findings] == ["holds"]


def test_a_scale_by_the_length_is_seen_in_each_method() -> None:
    seen = causal(layer("length"))
    assert seen.verdict == "broken"
    assert "with no tokens after them" in seen.why
    assert [one.verdict for one in exact(layer("length"), ("causal",))] == ["broken"]
    assert [one.verdict for one in prove(layer("length"), laws=["causal"]).findings] == ["broken"]


def test_a_leak_of_longer_calls_is_seen() -> None:
    seen = causal(layer("long"))
    assert seen.verdict == "broken"
    assert seen.sizes["n"] + seen.sizes["r"] > 64


def test_what_rounding_may_explain_in_a_short_format_is_not_held() -> None:
    """The leak has no gradient, and is less than a layer in bfloat16 may be off."""
    seen = causal(layer("bfloat16"), torch.bfloat16)
    assert seen.verdict == "undecided"
    assert seen.error
    assert 0 < seen.error < 1
    honest = layer()
    assert honest.module is not None
    honest.module.bfloat16()
    assert causal(honest, torch.bfloat16).verdict == "holds"


def mask(short: bool = False) -> Mask:
    def made(queries: int, keys: int) -> Tensor:
        seen = torch.ones(queries, keys).tril(keys - queries).bool()
        if short and keys > 8:
            seen[-1, 0] = False
        return seen

    return Mask(name="m", mask=made, declared=CAUSAL)


def test_masks_of_more_keys_are_looked_at() -> None:
    for law in ("causal", "past-is-used"):
        assert [one.verdict for one in examine(mask(), laws=(law,))] == ["holds"]
    (seen,) = examine(mask(short=True), laws=("past-is-used",))
    assert seen.verdict == "broken"
    assert "does not see key" in seen.why


def test_a_mask_of_few_keys_alone_is_no_fault() -> None:
    def made(queries: int, keys: int) -> Tensor:
        if keys > 16:
            raise ValueError("16 keys at most")
        return torch.ones(queries, keys).tril(keys - queries).bool()

    small = Mask(name="m", mask=made, declared=CAUSAL)
    assert [one.verdict for one in examine(small, laws=("past-is-used",))] == ["holds"]


def test_other_queries_of_a_window_are_told_as_such() -> None:
    def made(size: int) -> Tensor:
        apart = torch.arange(size)[:, None] - torch.arange(size)
        seen = (apart >= 0) & (apart < 3)
        seen[0] = True
        return seen

    said = DeclaredAttention(causal=True, window=3)
    one = Mask(name="m", mask=lambda t, s: made(s)[s - t :], declared=said)
    (seen,) = examine(one, laws=("window-as-declared",))
    assert seen.verdict == "broken"
    assert "query 0 sees key" in seen.why
