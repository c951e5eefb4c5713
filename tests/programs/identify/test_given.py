"""What code is handed is not told as its own, nor more of positions than was seen."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.declarations import DeclaredRotary
from attnproof.programs.identify import identify
from attnproof.programs.measure.examine import examine
from attnproof.programs.subject import adapted_as
from attnproof.programs.subjects import Attention, Mask


def apply_rotary_emb(x: Tensor, freqs_cis: Tensor) -> Tensor:
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * freqs_cis).flatten(-2).type_as(x)


OF_ANGLES = (
    "frequencies-as-declared",
    "length-as-declared",
    "angles-are-exact",
    "neighbours-differ",
    "survives-casting",
    "follows-its-arguments",
    "width-as-declared",
)


def test_no_law_of_angles_is_asked_of_code_that_is_given_them() -> None:
    code = adapted_as(apply_rotary_emb, declared=DeclaredRotary(base=500000.0))
    found = {one.law: one for one in examine(code, laws=[*OF_ANGLES, "relative", "norm"])}
    assert {found[law].verdict for law in OF_ANGLES} == {"not asked"}
    assert "given its angles" in found["frequencies-as-declared"].why
    assert found["relative"].verdict == found["norm"].verdict == "holds"


def test_no_base_nor_precision_is_read_off_angles_that_were_given() -> None:
    found = identify(adapted_as(apply_rotary_emb))
    assert found.part("base") is None
    assert found.part("exact to") is None
    assert not found.numbers
    assert found.sentence == "rotary, interleaved, which is given its angles"


class Wanting(nn.Module):
    """Attention that hides what the mask hides, and nothing where it is given none."""

    is_causal = True

    def __init__(self, own: bool = False) -> None:
        super().__init__()
        self.project, self.own = nn.Linear(8, 24), own

    def forward(self, hidden_states: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        q, k, v = self.project(hidden_states).chunk(3, -1)
        attention = q @ k.mT / 8**0.5
        if attention_mask is not None:
            attention = attention + attention_mask
        elif self.own:
            later = torch.ones(q.shape[1], q.shape[1]).triu(1).bool()
            attention = attention.masked_fill(later, -torch.inf)
        out: Tensor = attention.softmax(-1) @ v
        return out


def test_a_mask_that_is_left_out_is_told() -> None:
    words = identify(adapted_as(Wanting())).sentence
    assert "no mask of its own (it takes attention_mask, and was given none)" in words
    words = identify(adapted_as(Wanting(own=True))).sentence
    assert "causal where it is given no attention_mask" in words


@pytest.mark.parametrize("kernel", ["eager", "sdpa"])
def test_a_mask_that_is_handed_in_is_told(kernel: str) -> None:
    llama = pytest.importorskip("transformers.models.llama.modeling_llama")
    config = llama.LlamaConfig(
        hidden_size=32,
        num_attention_heads=4,
        num_key_value_heads=2,
        num_hidden_layers=1,
        vocab_size=40,
        intermediate_size=48,
        attn_implementation=kernel,
    )
    code: Any = adapted_as(llama.LlamaAttention(config, layer_idx=0))
    mask: Any = identify(code).part("mask")
    if kernel == "eager":
        assert mask.words == "causal, by the mask it is given"
        assert not mask.certain
    else:
        assert mask.words == "causal where it is given no attention_mask"
        assert code.given == {"no mask": "attention_mask"}
    assert {one.verdict for one in examine(code, laws=["causal", "step-by-step"])} == {"holds"}


class Rotating(nn.Module):
    """A layer of small weights, whose queries and keys are rotated by position (or are not)."""

    def __init__(self, rotates: bool, layers: int = 1) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.project = nn.ModuleList([nn.Linear(8, 24, bias=False) for _ in range(layers)])
        self.rotates = rotates
        for one in self.parameters():
            one.data *= 0.01

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        angle = torch.arange(n, dtype=x.dtype)[:, None] * torch.tensor([1, 0.1, 0.01, 0.001])
        for project in self.project:
            q, k, v = project(x).chunk(3, -1)
            if self.rotates:
                q, k = (_rotated(one, angle) for one in (q, k))
            scores = (q @ k.mT).masked_fill(torch.ones(n, n).triu(1).bool(), -torch.inf)
            x = x + scores.softmax(-1) @ v
        return x


def _rotated(x: Tensor, angle: Tensor) -> Tensor:
    a, b = x.chunk(2, -1)
    cos, sin = angle.cos(), angle.sin()
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


@pytest.mark.parametrize(
    ("rotates", "layers", "words"),
    [
        (True, 1, "looks at positions"),
        (False, 1, "positions not seen at these weights"),
        (False, 3, "looks at the order of tokens"),
    ],
)
def test_small_weights_do_not_hide_positions(rotates: bool, layers: int, words: str) -> None:
    module = Rotating(rotates, layers)
    before = [one.clone() for one in module.parameters()]
    found = identify(Attention(name="t", layer=module, module=module, embed=8))
    part: Any = found.part("positions of tokens")
    assert part.words == words
    assert all(torch.equal(a, b) for a, b in zip(before, module.parameters(), strict=True))


def test_without_positions_is_said_where_nothing_changes_at_all() -> None:
    for layer, words in (
        (lambda x: x + x.amax(1, keepdim=True), "without positions"),
        (lambda x: x * 2, "positions not seen"),  # no token reads another
    ):
        part: Any = identify(Attention(name="m", layer=layer, embed=8)).part("positions of tokens")
        assert part.words == words


@pytest.mark.parametrize("missing", [5, 100, 159])
def test_a_gap_is_no_window(missing: int) -> None:
    def gap(T: int, S: int) -> Tensor:
        offset = torch.arange(S - T, S)[:, None] - torch.arange(S)
        return (offset >= 0) & (offset != missing)

    part: Any = identify(Mask(name="gap", mask=gap)).part("mask")
    assert part.value["rule"] == "irregular"
    assert not part.certain


@pytest.mark.parametrize("window", [4, 100, 159])
def test_a_window_is_read_as_one(window: int) -> None:
    def make(T: int, S: int) -> Tensor:
        offset = torch.arange(S - T, S)[:, None] - torch.arange(S)
        return (offset >= 0) & (offset < window)

    assert f"causal, a window of {window} keys" in identify(Mask(name="w", mask=make)).sentence


def test_a_gap_in_attention_is_no_window() -> None:
    def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        assert mask is None
        offset = torch.arange(q.shape[2])[:, None] - torch.arange(k.shape[2])
        hidden = (offset < 0) | (offset == 159)
        return (q @ k.mT).masked_fill(hidden, -torch.inf).softmax(-1) @ v

    found = identify(Attention(name="gap", attend=attend, heads=2, groups=2, width=8))
    part: Any = found.part("mask")
    assert part.value["rule"] == "irregular"


def test_positions_that_float32_hides_are_seen_in_float64() -> None:
    place = torch.randn(64, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)

    def layer(x: Tensor) -> Tensor:
        x = x + (1e-8 * place[: x.shape[1]]).to(x.dtype)
        return (x @ x.mT / 8**0.5).softmax(-1) @ x

    part: Any = identify(Attention(name="p", layer=layer, embed=8)).part("positions of tokens")
    assert part.words == "looks at positions"


# what is said of positions is not more than was seen


def half_turns(x: Tensor, pos: Tensor) -> Tensor:
    """Neighbours rotated by π and π/2 times a coordinate: the same at whole ones four apart."""
    rates = math.pi * torch.tensor([1.0, 0.5])
    angles = (pos[..., None] * rates).flatten(-2).repeat_interleave(2, -1)
    a, b = x.reshape(*x.shape[:-1], -1, 2).unbind(-1)
    return x * angles.cos() + torch.stack((-b, a), -1).flatten(-2) * angles.sin()


def test_whole_turns_between_whole_coordinates_are_not_taken_for_none() -> None:
    subject = adapted_as(half_turns, "x: B H n D, pos: n 2 coordinates -> x")
    assert "does not look at positions" not in str(identify(subject))


class LooksAhead(nn.Module):
    """Attention to later tokens alone, by their offset: the last one reads itself."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)
        i = torch.arange(x.shape[1])
        away = (i[None] - i[:, None]).float()
        scores = q @ k.mT / 4 + away.clamp(min=0).sqrt()
        weights = scores.masked_fill(away < 0, -math.inf).softmax(-1)
        mixed: Tensor = weights @ v
        return mixed


def test_an_output_that_reads_no_other_token_says_nothing_of_their_order() -> None:
    torch.manual_seed(0)
    told = str(identify(adapted_as(LooksAhead(), "x: B n E -> B n E", kind="attention")))
    assert "without positions" not in told
