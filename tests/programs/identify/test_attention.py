"""What attention code and masks are, read off them; faults that are planted are told."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn
from torch.nn.attention.flex_attention import flex_attention
from torch.nn.functional import scaled_dot_product_attention

from attnproof.programs.execution.draw import Draw
from attnproof.programs.identify import identify
from attnproof.programs.identify.masks import pattern
from attnproof.programs.reading.weights import no_softmax
from attnproof.programs.subjects import Attention, Mask, Rotary
from attnproof.theorems.definitions.positions import published_slopes
from tests.cases import each
from tests.programs.measure.attention_code import Experts

from .identified import attention, part, rotary


def test_plain_attention_in_a_sentence() -> None:
    found = identify(attention(causal="end"))
    assert found.sentence == (
        "attention, scale 1/√D = 0.353553, causal, aligned at the end, 4 heads on 2 groups, each "
        "repeated, True means visible, a query that sees nothing reads NaN (all False), NaN (−inf)"
        ", the mean of all values (the least number)"
    )
    assert found.answers == ()


@pytest.mark.parametrize(
    ("scale", "words"),
    [
        (None, "1/√D = 0.353553"),
        (1.0, "1"),
        (1 / 8, "1/D = 0.125"),
        (8**0.5, "√D = 2.82843"),
        (32**-0.5, "1/√E, E the width of all heads = 0.176777"),
        (0.123, "0.123"),
    ],
)
def test_the_scale(scale: float | None, words: str) -> None:
    one = part(identify(attention(scale=scale)), "scale")
    assert one.words == f"scale {words}"
    assert abs(one.value - (8**-0.5 if scale is None else scale)) < 1e-5


def test_scores_that_are_no_multiple_of_the_product_are_said_to_be_none() -> None:
    plain = attention(groups=4)
    assert plain.attend is not None
    inner = plain.attend
    bent = Attention(
        name="x",
        heads=4,
        groups=4,
        width=8,
        attend=lambda q, k, v, _=None: torch.softmax((q @ k.mT) ** 2, -1) @ v,
    )
    assert part(identify(bent), "scale").value is None
    assert not part(identify(bent), "scale").certain
    assert identify(bent).part("soft cap") is None
    rotated = rotary(8)
    places = torch.arange

    def relative(q: Tensor, k: Tensor, v: Tensor, m: Tensor | None = None) -> Tensor:
        at = [places(x.shape[2]).expand(x.shape[0], -1) for x in (q, k)]
        return inner(rotated.rotate(q, at[0]), rotated.rotate(k, at[1]), v, m)

    found = identify(Attention(name="x", attend=relative, heads=4, groups=4, width=8))
    assert part(found, "positions").value is True
    assert identify(plain).part("positions") is None


@pytest.mark.parametrize("cap", [20.0, 50.0])
def test_a_soft_cap(cap: float) -> None:
    def attend(q: Tensor, k: Tensor, v: Tensor, _: Tensor | None = None) -> Tensor:
        return torch.softmax(cap * torch.tanh(q @ k.mT * 8**-0.5 / cap), -1) @ v

    found = identify(Attention(name="x", heads=4, groups=4, width=8, attend=attend))
    assert part(found, "soft cap").value == cap
    assert part(found, "scale").words == "scale 1/√D = 0.353553"
    assert identify(attention()).part("soft cap") is None


def test_masks_and_alignments() -> None:
    assert part(identify(attention()), "mask").words == "no mask"
    found = identify(attention(causal="start"))
    assert part(found, "alignment").value == "start"
    assert any("no: the causal mask is aligned at the start" in a for a in found.answers)
    found = identify(attention(causal="end", window=7))
    assert part(found, "mask").words == "causal, a window of 7 keys"
    assert part(found, "mask").value["window"] == 7
    assert part(found, "mask").value["counts"][-1] == 7
    assert part(found, "alignment").value == "end"


def test_tiled_heads_are_told() -> None:
    found = identify(attention(tile=True))
    assert part(found, "grouping").value == [0, 1, 0, 1]
    assert any("they are tiled" in a for a in found.answers)
    found = identify(attention())
    assert part(found, "grouping").value == [0, 0, 1, 1]
    assert found.answers == ()


def test_softmax_over_queries_is_told() -> None:
    found = identify(attention(axis=-2))
    assert part(found, "softmax").value == "queries"
    assert any(a.startswith("is it softmax over keys? no") for a in found.answers)
    assert part(found, "scale").value is None
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        draw = Draw(dtype=dtype)
        assert part(identify(attention(axis=-2), draw), "softmax").value == "queries"
        assert part(identify(attention(), draw), "softmax").value == "keys"
        assert part(identify(attention(), draw), "scale").words == "scale 1/√D = 0.353553"


def test_dropout_in_evaluation_is_told() -> None:
    found = identify(attention(dropout=0.3))
    assert part(found, "dropout in evaluation").value is True
    assert found.part("scale") is None
    assert part(identify(attention()), "dropout in evaluation").value is False


def test_rows_that_see_nothing() -> None:
    least = torch.finfo(torch.float32).min
    read = part(identify(attention(fill=least)), "hidden rows").value
    assert read["all False"] == "the mean of all values"
    assert read["−inf"] == "NaN"

    def fused(q: Tensor, k: Tensor, v: Tensor, m: Tensor | None = None) -> Tensor:
        return scaled_dot_product_attention(q, k, v, m, is_causal=m is None, enable_gqa=True)

    found = identify(
        Attention(name="x", attend=fused, heads=4, groups=2, width=8, masks=("bool", "float"))
    )
    assert part(found, "hidden rows").value["all False"] == "zeros"
    assert part(found, "alignment").value == "start"
    assert part(found, "scale").words == "scale 1/√D = 0.353553"


def test_what_a_mask_says() -> None:
    plain = attention()
    assert plain.attend is not None
    inner = plain.attend

    def code(change: str) -> Attention:
        def attend(q: Tensor, k: Tensor, v: Tensor, m: Tensor | None = None) -> Tensor:
            if m is None:
                return inner(q, k, v, m)
            if m.dtype == torch.bool:
                return inner(q, k, v, ~m if change == "inverted" else m)
            return inner(q, k, v, {"inverted": m, "scaled": m / 2, "truth": m == 0}[change])

        return Attention(
            name="x", attend=attend, heads=4, groups=2, width=8, masks=("bool", "float")
        )

    assert part(identify(plain), "polarity").value == "visible"
    assert part(identify(attention(fill=-1e-9)), "polarity").value == "none"
    assert part(identify(plain), "numbers").value == 1.0
    assert part(identify(code("inverted")), "polarity").value == "hidden"
    assert abs(part(identify(code("scaled")), "numbers").value - 0.5) < 1e-4
    assert "NaN" in identify(code("truth")).sentence  # it hides all where no number is 0


def test_slopes_inside_attention() -> None:
    slopes = torch.tensor(published_slopes(4))
    found = identify(attention(causal="end", slopes=slopes))
    assert part(found, "bias").words == "ALiBi, slopes as published for 4 heads"
    assert part(found, "scale").words == "scale 1/√D = 0.353553"
    found = identify(attention(causal="end", slopes=slopes * 1.01))
    assert "not as published" in part(found, "bias").words
    assert identify(attention(causal="end")).part("bias") is None


def test_layers_that_take_tokens_only() -> None:
    made = torch.nn.MultiheadAttention(16, 4, dropout=0.5, batch_first=True)

    def causal(x: Tensor) -> Tensor:
        hide = torch.ones(x.shape[1], x.shape[1]).triu(1).bool()
        found: Tensor = made(x, x, x, attn_mask=hide)[0]
        return found

    def plain(x: Tensor) -> Tensor:
        found: Tensor = made(x, x, x)[0]
        return found

    found = identify(Attention(name="x", layer=plain, embed=16, heads=4, module=made))
    assert found.sentence == (
        "attention, scale not known, no mask, positions not seen at these weights"
    )
    assert made.training
    found = identify(Attention(name="x", layer=causal, embed=16, heads=4, module=made))
    assert part(found, "mask").words == "causal"
    found = identify(Attention(name="x", layer=causal, embed=16, heads=4))  # stays in training
    assert found.sentence == "attention, random in evaluation (dropout stays on)"
    place = torch.randn(64, 16, generator=torch.Generator().manual_seed(0))
    made.eval()
    found = identify(
        Attention(name="x", embed=16, heads=4, layer=lambda x: plain(x + place[: x.shape[1]]))
    )
    assert part(found, "positions of tokens").value is True


@pytest.mark.filterwarnings("ignore:flex_attention called without")
def test_a_layer_of_flex_attention_is_read() -> None:
    made = nn.Linear(16, 16)

    def layer(x: Tensor) -> Tensor:
        heads = made(x).unflatten(-1, (2, 8)).transpose(1, 2)
        out = flex_attention(heads, heads, heads)
        assert isinstance(out, Tensor)
        return out.transpose(1, 2).flatten(2)

    found = identify(Attention(name="x", layer=layer, embed=16, heads=2, module=made))
    assert part(found, "mask").words == "no mask"


@pytest.mark.parametrize(
    ("leak", "words"), [(0.0, "causal"), (1e-6, "no mask"), (1e-9, "no mask"), (1e-12, "no mask")]
)
def test_rounding_is_no_influence_and_a_small_leak_is(leak: float, words: str) -> None:
    def layer(x: Tensor) -> Tensor:
        total = x.sum(1, keepdim=True)
        return (x.cumsum(1) + total) - total + leak * total

    found = identify(Attention(name="x", embed=8, heads=1, layer=layer))
    assert part(found, "mask").words == words


def test_what_only_float32_computes_keeps_the_influences_that_were_seen() -> None:
    def layer(x: Tensor) -> Tensor:
        assert x.dtype == torch.float32
        total = x.sum(1, keepdim=True)
        return (x.cumsum(1) + total) - total

    found = identify(Attention(name="x", embed=8, heads=1, layer=layer))
    assert part(found, "mask").value["ahead"]


@pytest.mark.parametrize(("leak", "words"), [(0.0, "causal"), (1e-7, "no mask")])
def test_a_product_of_grouped_rows_is_run_in_float64(leak: float, words: str) -> None:
    made = Experts(leak)
    found = identify(Attention(name="x", embed=32, heads=1, layer=made, module=made))
    assert part(found, "mask").words == words


@each(
    [
        ("causal", lambda t, s: s <= t),
        ("no mask", lambda t, s: s <= s + t),
        ("causal, a window of 3 keys", lambda t, s: (s <= t) & (s > t - 3)),
        ("a window of 2 before and 1 after", lambda t, s: (s <= t + 1) & (s >= t - 2)),
        ("blocks of 4 keys", lambda t, s: s // 4 == t // 4),
        ("causal within blocks of 4 keys", lambda t, s: (s // 4 == t // 4) & (s <= t)),
        ("blocks of 3 keys and all before them", lambda t, s: s // 3 <= t // 3),
        (
            "blocks of 2 keys and 4 before them",
            lambda t, s: (s // 2 <= t // 2) & (s // 2 >= t // 2 - 2),
        ),
        (
            "blocks of 2 keys and 1 before and 1 behind them",
            lambda t, s: (s >= t // 2 * 2 - 1) & (s <= t // 2 * 2 + 2),
        ),
        ("an irregular mask", lambda t, s: (s // 3 <= t // 3) & (s != 1)),
        ("an irregular mask", lambda t, s: (s // 2 <= t // 2) & (s // 2 > t // 2 - 4)),
        ("causal after a prefix of 3 keys visible to all queries", lambda t, s: (s <= t) | (s < 3)),
        (
            "causal, a window of 3 keys and the first 2",
            lambda t, s: (s <= t) & ((s > t - 3) | (s < 2)),
        ),
        ("a query sees itself and later keys only (causal the other way)", lambda t, s: s >= t),
        ("a query sees later keys only (the inverse of a causal mask)", lambda t, s: s > t),
        ("causal, without the query's own key", lambda t, s: s < t),
        ("an irregular mask", lambda t, s: (s * 7 + t * 3) % 5 < 2),
        ("nothing visible", lambda t, s: s < t - 99),
    ]
)
def test_rules_of_masks(words: str, rule: object) -> None:
    t, s = torch.arange(12)[:, None], torch.arange(12)[None, :]
    assert callable(rule)
    assert pattern(rule(t, s)).words == words


def test_masks_as_they_are_made() -> None:
    def causal(T: int, S: int) -> Tensor:
        return torch.ones(T, S).tril(S - T).bool()

    def least(T: int, S: int) -> Tensor:
        return torch.zeros(1, 1, T, S).masked_fill(~causal(T, S), torch.finfo(torch.float32).min)

    assert identify(Mask(name="m", mask=causal)).sentence == (
        "mask, causal, aligned at the end, True means visible, bool"
    )
    hiding = Mask(name="m", mask=lambda T, S: ~causal(T, S), true_means="hidden")
    assert identify(hiding).sentence == (
        "mask, causal, aligned at the end, True means hidden, bool"
    )
    wrong = identify(Mask(name="m", mask=lambda T, S: ~causal(T, S)))
    assert wrong.answers[0].startswith("is the mask causal? no")
    assert identify(Mask(name="m", mask=least)).sentence == (
        "mask, causal, aligned at the end, -3.40282e+38 added to what is hidden, float32"
    )
    start = identify(Mask(name="m", mask=lambda T, S: torch.ones(T, S).tril().bool()))
    assert part(start, "alignment").value == "start"
    infinite = Mask(name="m", mask=lambda T, S: torch.where(causal(T, S), 0.0, -math.inf))
    assert part(identify(infinite), "polarity").value == "−inf added to what is hidden"


def test_other_kinds_say_what_they_are() -> None:
    assert identify(Rotary(name="x", rotate=lambda x, _: x, width=4)).kind == "rotary"


def test_code_that_gives_one_row_nothing_has_no_weights_to_tell_of() -> None:
    """Of a batch of one, a mean over the batch leaves nothing: no number was looked at."""
    plain = attention(groups=4)
    assert plain.attend is not None
    inner = plain.attend

    def centred(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        out = inner(q, k, v, mask)
        return out - out.mean(0, keepdim=True)

    one = Attention(name="x", heads=4, groups=4, width=8, attend=centred)
    assert no_softmax(one, Draw()) == ""


class Sharp(nn.Module):
    """Causal attention, whose weights of many tokens are too small to be seen."""

    def __init__(self, times: float, *, window: int = 99) -> None:
        super().__init__()
        self.times, self.window = times, window
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.qkv = nn.Linear(8, 24)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)
        places = torch.arange(x.shape[1])
        before = places[:, None] - places
        hidden = (before < 0) | (before >= self.window)
        out: Tensor = (q @ k.mT * self.times).masked_fill(hidden, -math.inf).softmax(-1) @ v
        return out


@pytest.mark.parametrize(
    ("layer", "words"),
    [(Sharp(1.0), "causal"), (Sharp(15.0), "causal"), (Sharp(80.0), "causal"),
     (Sharp(1.0, window=3), "causal, a window of 3 keys"),
     (Sharp(15.0, window=3), "causal, a window of 3 keys")],
)  # fmt: skip
def test_weights_that_are_too_small_to_be_seen_are_no_mask(layer: nn.Module, words: str) -> None:
    found = identify(Attention(name="sharp", layer=layer, module=layer, embed=8))
    assert part(found, "mask").words == words
