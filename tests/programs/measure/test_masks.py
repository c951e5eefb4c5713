"""The probes of masks: what is hidden, what is seen, and what is added."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from attnproof.programs.calls.masks import declared_visibility, mask_visibility
from attnproof.programs.declarations import DeclaredAttention
from attnproof.programs.execution.draw import Draw
from attnproof.programs.identify import identify
from attnproof.programs.measure.examine import examine
from attnproof.programs.prove import prove
from attnproof.programs.subject import adapted_as
from attnproof.programs.subjects import Attention, Mask, Subject
from attnproof.testing import check_attention

from .attention_code import (
    CAUSAL,
    FULL,
    THREE,
    Experts,
    any_layer,
    cached,
    code,
    found,
    in_formats,
    multihead,
    quiet,
    refused,
    sdpa,
    sdpa_causal,
)

LAWS = (
    "causal",
    "past-is-used",
    "window-as-declared",
    "alignment",
    "hidden-keys-do-nothing",
    "mask-adds",
    "true-means-visible",
    "hidden-rows",
    "documents-apart",
)
START = DeclaredAttention(causal=True, alignment="start")
FORTY = DeclaredAttention(causal=True, window=40)


def fused(attend: Callable[..., Tensor], declared: DeclaredAttention, *masks: str) -> Attention:
    return Attention(name="sdpa", attend=attend, heads=4, groups=2, masks=masks, declared=declared)


RIGHT: dict[str, Callable[[], Subject]] = {
    "eager": lambda: code(declared=FULL),
    "one head": lambda: code(heads=1, groups=1, masks=("bool",)),
    "causal": lambda: code(declared=CAUSAL, causal=True),
    "not declared": lambda: code(causal=True, masks=("bool",)),
    "window": lambda: code(declared=THREE, causal=True, window=3, masks=("float",)),
    "long window": lambda: code(declared=FORTY, causal=True, window=40, masks=()),
    "fused": lambda: fused(sdpa, FULL, "bool", "float"),
    "fused and causal": lambda: fused(sdpa_causal, START),
    "finite fill": lambda: code("finfo", FULL, masks=("bool",)),
    "finite fill and causal": lambda: code("finfo", CAUSAL, causal=True, masks=("bool",)),
    "cached": cached,
    "cached with a window": lambda: cached(window=3, declared=THREE),
    "multihead": multihead,
}


@pytest.mark.parametrize(("name", "dtype"), in_formats(RIGHT), ids=str)
def test_correct_code_is_quiet(name: str, dtype: torch.dtype) -> None:
    quiet(RIGHT[name](), dtype, LAWS)


@pytest.mark.parametrize(
    ("law", "wrong"),
    [
        ("causal", code("no-mask", CAUSAL, causal=True)),
        ("causal", cached("training-leaks", dropout=0.3)),
        (
            "causal",
            any_layer(nn.TransformerEncoderLayer(20, 4, 24, batch_first=True), declared=CAUSAL),
        ),
        ("past-is-used", code("forgets-first", CAUSAL, causal=True)),
        ("past-is-used", code(declared=FULL, causal=True)),
        ("past-is-used", fused(sdpa_causal, CAUSAL)),
        ("window-as-declared", code("window-plus-one", FORTY, causal=True, window=40)),
        ("window-as-declared", code("window-needs-mask", THREE, causal=True, window=3)),
        ("window-as-declared", cached("window", THREE, 3)),
        ("alignment", fused(sdpa_causal, CAUSAL)),
        ("alignment", code(declared=START, causal=True)),
        ("hidden-keys-do-nothing", code("small-fill", FULL)),
        ("hidden-keys-do-nothing", multihead(fault="ignored")),
        ("hidden-keys-do-nothing", multihead(fault="inverted")),
        ("mask-adds", code("float-as-bool", FULL)),
        ("true-means-visible", code("inverted", FULL)),
        ("true-means-visible", multihead(fault="inverted")),
        ("hidden-rows", code("nan-rows", FULL)),
        ("hidden-rows", code("finfo", DeclaredAttention(causal=False, hidden_row="zero"))),
        ("documents-apart", cached("one-document")),
    ],
)
def test_a_fault_is_refused(law: str, wrong: Subject) -> None:
    refused(wrong, law)


def test_a_path_that_drops_the_mask_is_refused() -> None:
    right, wrong = code(causal=True), code("no-mask", causal=True)
    assert right.attend is not None
    assert wrong.attend is not None
    both = Attention(
        name="two paths",
        attend=right.attend,
        paths={"weights": wrong.attend},
        heads=4,
        groups=4,
        width=5,
        declared=CAUSAL,
    )
    one = found(both, "causal")
    assert one.verdict == "broken"
    assert "path weights" in one.why


def test_a_leak_that_only_the_gradient_shows_is_refused() -> None:
    class Leak(torch.autograd.Function):
        @staticmethod
        def forward(_ctx: object, x: Tensor) -> Tensor:
            return x.clone()

        @staticmethod
        def backward(_ctx: object, grad: Tensor) -> Tensor:
            return grad + grad.mean(1, keepdim=True)

    inner = cached()
    assert inner.layer is not None
    layer = inner.layer

    def leaking(x: Tensor) -> Tensor:
        return layer(Leak.apply(x))  # type: ignore[no-untyped-call]

    leaks = Attention(name="leak", layer=leaking, embed=20, heads=4, declared=CAUSAL)
    one = found(leaks, "causal")
    assert one.verdict == "broken"
    assert "gradient" in one.why


@pytest.mark.parametrize(("share", "said"), [(0.0, "holds"), (1e-9, "broken")])
def test_what_rounding_leaves_of_a_gradient_that_cancels_is_no_leak(
    share: float, said: str
) -> None:
    """The largest score of a row may be a later key's; that it is subtracted pulls nothing."""

    def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        del mask
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        scores = scores - scores.amax(-1, keepdim=True)
        past = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
        read = torch.softmax(scores.masked_fill(~past, -math.inf), -1) @ v
        return read + share * (v - v.detach()).mean(2, keepdim=True)

    one = found(Attention(name="a", attend=attend, heads=4, width=8, declared=CAUSAL), "causal")
    assert one.verdict == said, one.why


def leaking_at(query: int) -> Callable[..., Tensor]:
    """One query sees the key behind it, and no other does; none, if it is the last."""
    whole = torch.ones(200, 200, dtype=torch.bool).tril()
    whole[query, (query + 1) % 200] = True

    def attend(q: Tensor, k: Tensor, v: Tensor, _mask: Tensor | None = None) -> Tensor:
        seen = whole[: q.shape[2], : k.shape[2]]
        return scaled_dot_product_attention(q, k, v, attn_mask=seen)

    return attend


def of_nine(x: Tensor) -> Tensor:
    """Of exactly nine tokens, the seventh sees the last."""
    if x.shape[1] != 9:
        raise ValueError("wanted nine tokens")
    places = torch.arange(9)
    return x.cumsum(1) + (places == 6)[:, None] * x[:, 8:]


def test_a_single_token_that_sees_a_later_one_is_noticed() -> None:
    for query, verdict in ((-1, "holds"), (17, "broken"), (38, "broken")):
        attend = leaking_at(query)
        code = Attention(name="a", attend=attend, declared=DeclaredAttention(causal=True))
        (found,) = examine(code, laws=["causal"])
        assert found.verdict == verdict
    assert "token 38 changes with those behind token 38" in found.why
    fixed = adapted_as(of_nine, "x: B 9 E -> B 9 E", kind="attention")
    fixed = replace(fixed, declared=DeclaredAttention(causal=True))  # type: ignore[call-arg]
    (found,) = examine(fixed, laws=["causal"])
    assert "of 9 tokens, token 6 changes" in found.why
    named = check_attention(of_nine, ["causal"], call="x: B 9 E -> B 9 E")
    assert named.law("causal").verdict == "broken"


def test_a_large_number_that_is_subtracted_of_all_scores_rounds_them() -> None:
    """Grounding DINO subtracts the largest of all scores: other queries only round."""

    def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        del mask
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        return torch.softmax(scores - scores.max(), -1) @ v

    def mixed(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        return attend(q, k, v, mask) + 1e-6 * q.mean(2, keepdim=True)

    for code_, said in ((attend, "holds"), (mixed, "broken")):
        own = Attention(name="a", attend=code_, heads=4, width=8, declared=FULL)
        one = found(own, "queries-apart")
        assert one.verdict == said, one.why


def test_which_convention_a_hidden_row_follows_is_told_of_what_it_is() -> None:
    assert "sees nothing reads zeros" in identify(code(declared=FULL)).sentence
    full = code("finfo", FULL, masks=("bool",))
    assert "sees nothing reads the mean of all values" in identify(full).sentence
    allowed = DeclaredAttention(causal=False, hidden_row="nan")
    assert found(code("nan-rows", allowed, masks=("bool",)), "hidden-rows").verdict == "holds"


def test_numbers_alone_are_what_the_caller_adds() -> None:
    """A row of −inf is nothing that the code said: it is asked of truth values, or declared."""
    assert found(code("nan-rows", FULL, masks=("float",)), "hidden-rows").verdict == "not asked"
    zero = DeclaredAttention(causal=False, hidden_row="zero")
    for masks, declared in ((("float",), zero), (("bool",), FULL), (("bool", "float"), FULL)):
        one = found(code("nan-rows", declared, masks=masks), "hidden-rows")
        assert one.verdict == "broken", (masks, one.why)

    good, plain = code().attend, code("nan-rows").attend

    def eager(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Any:
        told: Any = good if mask is not None and mask.dtype == torch.bool else plain
        return told(q, k, v, mask)

    both = Attention(
        name="a", attend=eager, heads=4, width=8, masks=("bool", "float"), declared=FULL
    )
    assert found(both, "hidden-rows").verdict == "holds"


def test_alignment_is_a_convention_where_nothing_is_declared() -> None:
    one = found(Attention(name="sdpa", attend=sdpa_causal, heads=4, groups=4), "alignment")
    assert one.verdict == "not asked"
    assert one.why == "no causal mask is declared"


def test_a_witness_has_no_query_before_all_keys() -> None:
    """Such a query sees no key by declaration, which nobody meant."""
    one = found(code("no-mask", CAUSAL, causal=True), "alignment")
    assert one.sizes["r"] <= one.sizes["n"]


def test_nan_in_hidden_values_is_told() -> None:
    one = found(code(declared=FULL), "hidden-keys-do-nothing")
    assert "NaN in a hidden value leaks" in one.why


def square(t: int, s: int) -> Tensor:
    return torch.ones(t, s, dtype=torch.bool).tril(s - t)


def numbers(fill: float) -> Callable[[int, int], Tensor]:
    return lambda t, s: torch.zeros(t, s).masked_fill(~square(t, s), fill)[None, None]


def narrow(kind: torch.dtype) -> Mask:
    """Tokens are compared by numbers of a format in which those of late ones are rounded."""

    def made(t: int, s: int) -> Tensor:
        i = torch.arange(s).to(kind)
        return i[None] <= i[s - t :, None]

    return Mask(name=str(kind), mask=made, declared=CAUSAL)


@pytest.mark.parametrize(
    "right",
    [
        Mask(name="bool", mask=square, declared=CAUSAL),
        Mask(name="hides", mask=lambda t, s: ~square(t, s), true_means="hidden", declared=CAUSAL),
        Mask(name="-inf", mask=numbers(-torch.inf), declared=CAUSAL),
        Mask(name="-1e4", mask=numbers(-1e4), declared=CAUSAL),
        Mask(
            name="start",
            mask=lambda t, s: torch.ones(t, s, dtype=torch.bool).tril(),
            declared=START,
        ),
        Mask(name="start, undeclared", mask=lambda t, s: torch.ones(t, s, dtype=torch.bool).tril()),
        Mask(name="window", mask=lambda t, s: declared_visibility(THREE, t, s), declared=THREE),
        Mask(
            name="square only",
            mask=lambda t, s: square(t, s) if t == s else square(t, t)[:, 0],
            declared=CAUSAL,
        ),
    ],
    ids=lambda one: one.name,
)
def test_correct_masks_are_quiet(right: Mask) -> None:
    for one in examine(right, laws=LAWS):
        assert one.verdict in ("holds", "not asked"), (one.law, one.why)


@pytest.mark.parametrize(
    ("law", "wrong"),
    [
        *(("causal", narrow(kind)) for kind in (torch.uint8, torch.bfloat16, torch.float16)),
        ("causal", Mask(name="tiny", mask=numbers(-1e-9), declared=CAUSAL)),
        ("true-means-visible", Mask(name="tiny", mask=numbers(-1e-9), declared=CAUSAL)),
        (
            "true-means-visible",
            Mask(name="nan", mask=lambda t, s: square(t, s) / 0.0, declared=CAUSAL),
        ),
        (
            "alignment",
            Mask(
                name="start",
                mask=lambda t, s: (
                    square(t, t + s)[:, t:][:, :s]
                    if t == s
                    else torch.ones(t, s, dtype=torch.bool).tril()
                ),
                declared=CAUSAL,
            ),
        ),
    ],
)
def test_a_wrong_mask_is_refused(law: str, wrong: Mask) -> None:
    one = found(wrong, law)
    assert one.verdict == "broken", one.why


def test_a_mask_of_another_shape_is_named() -> None:
    with pytest.raises(ValueError, match=r"wanted a mask \(.., 2, 3\), got \(2, 2\)"):
        mask_visibility(Mask(name="square", mask=lambda t, _s: square(t, t)), 2, 3)


def test_what_is_visible_by_declaration() -> None:
    assert declared_visibility(DeclaredAttention(causal=True, window=2), 2, 4).int().tolist() == [
        [0, 1, 1, 0],
        [0, 0, 1, 1],
    ]
    assert declared_visibility(START, 1, 3).int().tolist() == [[1, 0, 0]]
    assert declared_visibility(DeclaredAttention(), 2, 2).all()


class Padded(nn.Module):
    """A layer that hides padding by a number."""

    def __init__(self, least: float) -> None:
        super().__init__()
        self.least, self.out = least, nn.Linear(16, 16)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        scores = (x @ x.mT / 4).masked_fill(~mask[:, None], self.least)
        out: Tensor = self.out(scores.softmax(-1) @ x)
        return out


@pytest.mark.parametrize(
    ("least", "row", "verdict"),
    [
        (-math.inf, "zero", "broken"),
        (-1e30, "zero", "holds"),
        (-1e30, "mean", "holds"),
        (-math.inf, "any", "not asked"),
        (-math.inf, "nan", "not asked"),
    ],
)
def test_a_row_of_padding_alone_is_asked_about_where_it_is_declared(
    least: float, row: str, verdict: str
) -> None:
    declared = DeclaredAttention(hidden_row=row)
    layer = Padded(least)
    subject = adapted_as(
        layer, "x: B n E, mask: B n keep -> B n E", declared=declared, kind="attention"
    )
    found = {one.verdict for one in examine(subject, (Draw(),), ("hidden-rows",))}
    assert found == {verdict}


# masks that know no batch are those of all rows of a call


def of_few_rows(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """It heeds its mask in batches of one row or two."""
    found = q @ k.mT / math.sqrt(q.shape[-1])
    if mask is not None and len(q) < 3:
        found = found.masked_fill(~mask, -math.inf)
    return found.softmax(-1) @ v


class RowsOfTokens(nn.Module):
    """The same of tokens, with a mask of keys that all rows have; ``few``: in small batches."""

    def __init__(self, few: int = 3) -> None:
        super().__init__()
        self.few, self.out = few, nn.Linear(16, 16)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        found = x @ x.mT / 4
        if mask is not None and len(x) < self.few:
            found = found.masked_fill(~mask, -1e9)
        out: Tensor = self.out(found.softmax(-1) @ x)
        return out


OF_ALL_ROWS: dict[str, tuple[Any, Any, str]] = {
    "heads": (
        lambda q, k, v, mask=None: of_few_rows(q[None], k[None], v[None], mask)[0],
        of_few_rows,
        "q: B H r D, k: B H n D, v: B H n D, mask: r n keep -> B H r D",
    ),
    "tokens": (lambda: RowsOfTokens(99), RowsOfTokens, "x: B n E, mask: 1 n keep -> B n E"),
}


@pytest.mark.parametrize("name", OF_ALL_ROWS)
def test_a_mask_without_rows_is_asked_of_whole_batches(name: str) -> None:
    right, wrong, line = OF_ALL_ROWS[name]
    (held,) = examine(adapted_as(right, line, kind="attention"), laws=["hidden-keys-do-nothing"])
    assert held.verdict == "holds"
    subject = adapted_as(wrong, line, kind="attention")
    (seen,) = examine(subject, laws=["hidden-keys-do-nothing"])
    assert seen.verdict == "broken"
    found = prove(subject, ["hidden-keys-do-nothing"]).findings
    assert "holds" not in {one.verdict for one in found}


@pytest.mark.parametrize(("cap", "verdict"), [(None, "holds"), (30, "broken"), (50, "broken")])
def test_a_key_with_a_faint_weight_is_not_hidden(cap: int | None, verdict: str) -> None:
    def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        scores = q @ k.repeat_interleave(2, 1).mT
        scores = scores if mask is None else scores + mask
        capped = scores if cap is None else cap * (scores / cap).tanh()
        return capped.softmax(-1) @ v.repeat_interleave(2, 1)

    for dtype in (torch.float32, torch.float64):
        kept = examine(
            fused(attend, FULL, "float"), (Draw(dtype=dtype),), ["hidden-keys-do-nothing"]
        )
        assert [one.verdict for one in kept] == [verdict]


def test_a_mask_that_is_heeded_by_few_heads_alone_is_refused() -> None:
    def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        few = None if mask is None or q.shape[1] > 4 else mask
        return sdpa(q, k, v, few)

    for law in ("hidden-keys-do-nothing", "true-means-visible"):
        (seen,) = examine(fused(attend, FULL, "bool"), laws=[law])
        assert seen.verdict == "broken"


def test_a_leak_hidden_by_float32_is_found_in_experts_whose_product_has_no_float64() -> None:
    def of(leak: float) -> Attention:
        made = Experts(leak)
        return Attention(name="x", embed=32, heads=1, layer=made, module=made, declared=CAUSAL)

    assert found(of(0.0), "causal").verdict == "holds"
    refused(of(1e-9), "causal")


def shows_from(shown: int) -> Attention:
    """Causal attention to 60 tokens that shows every token from one on."""

    def hide(x: Tensor, counts: Tensor) -> Tensor:
        place = torch.arange(x.shape[1])
        seen = (counts[:, None] | (place >= shown)) & (place <= place[:, None])
        seen = seen | (place == place[:, None])
        return scaled_dot_product_attention(x, x, x, attn_mask=seen)

    def layer(x: Tensor) -> Tensor:
        return hide(x, torch.ones(x.shape[:2], dtype=torch.bool))

    at = ({"B": 1, "n": 60},)
    return Attention(name="one", layer=layer, hide=hide, embed=8, run_at=at)


@pytest.mark.parametrize(("shown", "verdict"), [(64, "holds"), (40, "broken")])
def test_many_hidden_tokens_are_hidden_from_the_few_that_count(shown: int, verdict: str) -> None:
    (found,) = examine(shows_from(shown), laws=("hidden-keys-do-nothing",))
    assert found.verdict == verdict, found.why


def test_a_fault_is_shown_as_it_was_found_if_shrinking_takes_too_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (small,) = examine(shows_from(40), laws=("hidden-keys-do-nothing",))
    monkeypatch.setattr("attnproof.programs.measure.sides.MAX_SECONDS", -1.0)
    (large,) = examine(shows_from(40), laws=("hidden-keys-do-nothing",))
    assert small.verdict == large.verdict == "broken"
    assert small.sizes["n"] < large.sizes["n"] == 60
