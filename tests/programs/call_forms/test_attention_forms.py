"""The call of attention and layers is guessed as a line that can be passed back."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.declarations import DeclaredAttention
from attnproof.programs.exact import exact
from attnproof.programs.identify import identify
from attnproof.programs.measure.examine import examine
from attnproof.programs.no_adapter import NoAdapter
from attnproof.programs.signatures.grammar import parse
from attnproof.programs.signatures.signature import SignatureError
from attnproof.programs.subject import adapted_as, subject_of
from attnproof.programs.subjects import Attention, Subject
from tests.programs.adapting_code import plain

from . import attention_calls as code

sdpa = nn.functional.scaled_dot_product_attention
THREE = "q: B H r D, k: B H n D, v: B H n D"
ONE = "q: B H n D, k: B H n D, v: B H n D"
Make = Callable[[], Any]
LINES: dict[str, tuple[Make, str]] = {
    "heads": (lambda: plain, f"{THREE}, mask: B 1 r n keep or add -> B H r D"),
    "torch": (
        lambda: sdpa,
        (
            "query: B H r D, key: B G n D, value: B G n D, enable_gqa = True, "
            "attn_mask: B 1 r n keep or add -> B H r D"
        ),
    ),
    "a mask of keys": (lambda: code.by_key, f"{THREE}, key_padding_mask: B n hide -> B H r D"),
    "one length, causal": (lambda: code.causal, f"{ONE}, pad_mask: B 1 n n keep -> B H n D"),
    "one length, groups": (
        lambda: code.causal_grouped,
        "q: B H n D, k: B G n D, v: B G n D -> B H n D",
    ),
    "the same, True hides": (
        lambda: code.causal_hides,
        f"{ONE}, pad_mask: B 1 n n hide -> B H n D",
    ),
    "a mask that must be given, and weights first": (
        lambda: code.masked,
        f"{THREE}, mask: B 1 r n hide -> weights: B H r n, B H r D",
    ),
    "a scale": (lambda: code.scaled, f"{THREE}, scale: scale -> B H r D"),
    "heads in one axis": (
        lambda: code.flattened,
        "q: B r (H D), k: B n (H D), v: B n (H D), num_heads = H -> B r (H D)",
    ),
    "tokens": (code.SelfAttention, "x: B n E, attention_mask: B n ones -> B n E"),
    "tokens before rows": (
        code.multihead,
        "query: n B E, key: n B E, value: n B E, key_padding_mask: B n hide or add -> n B E, _",
    ),
    "a cache that is given back": (
        code.GivesBack,
        "x: B n E -> B n E, _; step: x: B n E, cache -> B n E, cache",
    ),
    "a cache that is written to": (
        code.WritesInPlace,
        "x: B n E -> B n E; step: x: B n E, cache = {} -> B n E",
    ),
    "a cache of a class of the file": (
        code.WritesToObject,
        "x: B n E -> B n E; step: x: B n E, cache = Kept() -> B n E",
    ),
    "a cache of its own": (
        code.Keeps,
        "x: B n E -> B n E; step: x: B n E, start_pos = p -> B n E",
    ),
    "a context": (code.Cross, "x: B n E, context: B n E tokens -> B n E"),
    "an object with a field": (code.Model, "x: B n E -> {last_hidden_state: B n E}"),
}


def fields(subject: Subject) -> dict[str, Any]:
    names = ("kind", "line", "heads", "groups", "width", "embed", "masks", "by_key", "true_hides",
             "dropout", "given", "declared")  # fmt: skip
    calls = ("hide", "step", "weights", "attend", "layer")
    held = {name: getattr(subject, name, None) for name in names}
    return held | {name: getattr(subject, name, None) is not None for name in calls}


def output(subject: Subject) -> Tensor:
    assert isinstance(subject, Attention)
    generator = torch.Generator().manual_seed(3)
    if subject.layer is not None:
        return subject.layer(torch.randn(2, 5, subject.embed, generator=generator))
    assert subject.attend is not None
    q, k = (torch.randn(2, n, 5, 8, generator=generator) for n in (subject.heads, subject.groups))
    return subject.attend(q, k, k.flip(-1))


@pytest.mark.parametrize("form", LINES)
def test_the_line_that_is_guessed_gives_the_same_when_it_is_told(form: str) -> None:
    make, line = LINES[form]
    guessed: Any = adapted_as(make(), kind="attention")
    assert guessed.line == line == str(parse(line))
    assert f"called as --call '{line}'" in guessed.adapted
    told = subject_of(make(), line, "attention")
    assert fields(told) == fields(guessed)
    assert torch.equal(output(told), output(guessed))
    assert torch.equal(output(guessed.make()), output(guessed))


@pytest.mark.parametrize(
    ("attend", "verdict"), [(code.causal_grouped, "holds"), (code.causal_tiled, "broken")]
)
def test_groups_of_one_length_are_asked(attend: Callable[..., Tensor], verdict: str) -> None:
    (found,) = examine(adapted_as(attend, kind="attention"), laws=["groups-of-heads"])
    assert found.verdict == verdict


MASKED = (
    "heads",
    "a mask of keys",
    "one length, causal",
    "the same, True hides",
    "a mask that must be given, and weights first",
)
LAWS = ("hidden-keys-do-nothing", "mask-adds", "hidden-rows")


@pytest.mark.parametrize("form", MASKED)
def test_what_a_mask_means_is_seen_where_rows_are_causal_too(form: str) -> None:
    make, line = LINES[form]
    causal = DeclaredAttention(causal=True) if "pad_mask" in line else None
    found = {one.law: one for one in examine(adapted_as(make(), declared=causal), laws=LAWS)}
    assert found["hidden-keys-do-nothing"].verdict == "holds", found
    other = line.replace(" hide", " keep") if "hide" in line else line.replace("keep", "hide")
    other = other.replace(" or add", "")
    wrong = adapted_as(make(), other, kind="attention", declared=causal)
    told = {one.law: one for one in examine(wrong, laws=LAWS)}
    # read the other way a mask may hide every key of a row, which then has no number
    shown = [told[law].verdict for law in ("hidden-keys-do-nothing", "finite") if law in told]
    assert "broken" in shown, other


def test_a_mask_of_keys_that_leaks_is_seen() -> None:
    def leaks(q: Tensor, k: Tensor, v: Tensor, kv_mask: Tensor | None = None) -> Tensor:
        scores = q @ k.mT
        kept = 1.0 if kv_mask is None else kv_mask[:, None, None]
        return (scores * kept).softmax(-1) @ v

    subject = adapted_as(leaks)
    assert subject.line.endswith("kv_mask: B n keep -> B H r D")
    (found,) = examine(subject, laws=["hidden-keys-do-nothing"])
    assert found.verdict == "broken"


class CausalWithPadding(nn.Module):
    """Attention layer of one head, causal, in which a query may see no key at all."""

    def __init__(self, embed: int = 16, *, leaks: bool = False) -> None:
        super().__init__()
        self.inward, self.leaks = nn.Linear(embed, 3 * embed), leaks

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        q, k, v = self.inward(x).chunk(3, -1)
        seen = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()[None]
        seen = seen if mask is None else seen & mask[:, None, :]
        weights = (q @ k.mT).masked_fill(~seen, -math.inf).softmax(-1)
        first = x[:, :1] if mask is None else weights[:, :1] @ v  # NaN where it is padding
        out: Tensor = weights @ v + (0.0 * first if self.leaks else 0.0)
        return out


@pytest.mark.parametrize("leaks", [False, True])
def test_what_padding_itself_becomes_is_nobodys_and_what_it_does_to_others_is_told(
    *, leaks: bool
) -> None:
    """Padding before the tokens sees no key, and is NaN; others are where they read that."""
    line = "x: B n E, mask: B n keep -> B n E"
    layer = adapted_as(CausalWithPadding(leaks=leaks), line, kind="attention", embed=16)
    found = {one.verdict for one in examine(layer, laws=["hidden-keys-do-nothing"])}
    assert ("broken" in found) is leaks
    assert ("padding before the tokens becomes NaN" in identify(layer).sentence) is not leaks


def test_padding_that_stays_a_number_is_not_told_of() -> None:
    layer = adapted_as(
        nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval(),
        "src: B n E, src_key_padding_mask: B n hide -> B n E",
    )
    assert "NaN" not in identify(layer).sentence


def test_a_mask_whose_meaning_is_not_seen_is_not_told_as_none() -> None:
    def on_queries(q: Tensor, k: Tensor, v: Tensor, q_mask: Tensor | None = None) -> Tensor:
        out = plain(q, k, v)
        return out if q_mask is None else out * q_mask[:, None, :, None]

    subject = adapted_as(on_queries)
    assert subject.given == {"no mask": "q_mask"}
    (found,) = examine(subject, laws=["hidden-keys-do-nothing"])
    assert found.verdict == "not asked"
    assert "the meaning of q_mask is not known" in found.why
    line = "q: r B H D, k: n B H D, v: n B H D -> r B H D"
    without = examine(adapted_as(code.first_tokens, line), laws=["hidden-keys-do-nothing"])
    assert "the code takes no mask" in without[0].why


def test_an_order_of_axes_is_told_by_a_line_and_not_by_a_word() -> None:
    with pytest.raises(TypeError, match=r"attention code has no order; it has .*; options are"):
        adapted_as(plain, order="tbhd")


def test_what_is_declared_causal_is_called_so() -> None:
    subject = adapted_as(code.may_be_causal, declared=DeclaredAttention(causal=True))
    assert subject.line == f"{THREE}, is_causal = True -> B H r D"
    assert {one.verdict for one in examine(subject, laws=["causal", "alignment"])} == {"holds"}
    assert "is_causal" not in adapted_as(code.may_be_causal).line


STEPS = {
    "given back": (code.GivesBack, LINES["a cache that is given back"][1]),
    "written in place": (code.WritesInPlace, LINES["a cache that is written to"][1]),
    "its own": (code.Keeps, "x: B n E, start_pos = p -> x; step: x: B n E, start_pos = p -> x"),
    "on a line of its own": (code.GivesBack, "x: B n E -> x, _\nstep: x: B n E, cache -> x, cache"),
}


@pytest.mark.parametrize("form", STEPS)
def test_code_is_fed_in_steps_as_it_is_told(form: str) -> None:
    made, line = STEPS[form]
    subject: Any = subject_of(made, line, "attention")
    x = torch.randn(2, 6, subject.embed, generator=torch.Generator().manual_seed(1))
    one, state = subject.step(x[:, :2], None)
    two, _ = subject.step(x[:, 2:], state)
    again, _ = subject.step(x[:, 2:], state)
    assert torch.equal(two, again), "a state can be used twice"
    torch.testing.assert_close(torch.cat((one, two), 1), subject.layer(x))
    (found,) = examine(subject, laws=["step-by-step"])
    assert found.verdict == "holds"


def test_a_row_that_sees_nothing_is_finite_where_softmax_is_taken_in_float32() -> None:
    class Rounded(code.Projected):
        """Attention that adds its mask, and takes the softmax in float32."""

        def forward(self, x: Tensor, attention_mask: Tensor) -> Any:
            q, k, v = self.project(x).chunk(3, -1)
            return (q @ k.mT + attention_mask[:, 0]).softmax(-1, torch.float32).to(v) @ v

    line = "x: B n E, attention_mask: B 1 n n add -> x"
    subject: Any = subject_of(Rounded(), line, "attention")
    subject.module.double()
    x, keep = torch.randn(1, 4, 12, dtype=torch.float64), torch.ones(1, 4, dtype=torch.bool)
    keep[:, :2] = False
    assert torch.isfinite(subject.hide(x, keep)).all()


def test_steps_that_forget_are_found() -> None:
    line = LINES["a cache that is given back"][1]
    (found,) = examine(subject_of(code.Forgets, line), laws=["step-by-step"])
    assert found.verdict == "broken"


@pytest.mark.parametrize(
    ("made", "line"),
    [
        (code.first_tokens, "q: r B H D, k: n B H D, v: n B H D -> r B H D"),
        (code.OfImages, "x: B E h w -> x"),
        (code.Cross, "x: B n E, context: B m E tokens -> x"),
        (
            sdpa,
            THREE.replace("q:", "query:").replace("k:", "key:").replace("v:", "value:")
            + ", scale = 0.25, is_causal = True -> B H r D",
        ),
    ],
)
def test_what_is_told_and_not_guessed(made: Any, line: str) -> None:
    found = subject_of(made, line, "attention")
    assert found.line == str(parse(line))
    out = output(found)
    assert torch.isfinite(out).all()
    assert torch.equal(out, output(found))


REFUSED: dict[str, tuple[Any, str, str]] = {
    "a state before the step": (
        code.GivesBack,
        "x: B n E, cache -> x, _",
        "is written after step:",
    ),
    "a step without a state": (
        code.by_key,
        "q: B n E, k: B n E, v: B n E -> q; step: q: B n E, k: B n E, v: B n E -> q",
        "is not a module with state of its own",
    ),
    "an object of no such name": (
        code.GivesBack,
        "x: B n E -> x, _; step: x: B n E, cache = NoCache() -> x, _",
        r"wanted NoCache\(\) in the file of",
    ),
    "a step that raises": (
        code.GivesBack,
        "x: B n E -> x, _; step: x: B n E, cache = {} -> x, _",
        "called as step",
    ),
    "a mask without keys": (
        code.by_key,
        f"{THREE}, key_padding_mask: B H hide -> B H r D",
        "with an axis of keys n",
    ),
    "a mask that says nothing": (
        plain,
        f"{THREE}, mask: B 1 r n -> B H r D",
        "what True means in mask: keep or hide",
    ),
    "two kinds that are one": (
        plain,
        f"{THREE}, mask: B 1 r n keep or keep -> B H r D",
        "wanted two kinds",
    ),
    "queries of no length": (
        plain,
        "q: B H D, k: B H n D, v: B H n D -> q",
        "wanted queries of length r",
    ),
    "an array that is nothing": (code.scaled, f"{THREE}, scale: H r -> B H r D", "what scale is"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_call_that_does_not_fit_is_told(name: str) -> None:
    made, line, why = REFUSED[name]
    with pytest.raises(SignatureError, match=why):
        subject_of(made, line, "attention")


class Pixels(nn.Module):
    """A layer of images, which holds a smaller width as well as that of its tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.head_dim = 8
        self.mix = nn.Conv2d(16, 16, 1)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.mix(x)
        return found


def test_code_that_is_built_again_keeps_its_width() -> None:
    told: Any = adapted_as(Pixels, "x: B E 1 n -> B E 1 n", kind="attention")
    assert told.embed == 16
    (seen,) = exact(told, ("permutation",))
    assert seen.verdict == "holds"


class Padded(nn.Module):
    """Attention that must be told which keys are padding."""

    def __init__(self, causal: bool = False, low: float = -1e9, keeps: bool = False) -> None:
        super().__init__()
        self.causal, self.low, self.keeps = causal, low, keeps
        self.q, self.v = nn.Linear(16, 16), nn.Linear(16, 16)

    def forward(self, x: Tensor, key_padding_mask: Tensor) -> Tensor:
        scores = self.q(x) @ x.mT / 4
        if self.causal:
            scores = scores.masked_fill(torch.ones(scores.shape[-2:]).triu(1).bool(), -torch.inf)
        hidden = ~key_padding_mask if self.keeps else key_padding_mask
        found: Tensor = scores.masked_fill(hidden[:, None], self.low).softmax(-1) @ self.v(x)
        return found


class Unread(Padded):
    """The same, which does not look at what it is told."""

    def forward(self, x: Tensor, key_padding_mask: Tensor) -> Tensor:
        return super().forward(x, key_padding_mask & self.keeps | self.keeps)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("low", [-1e9, -torch.inf])
@pytest.mark.parametrize("keeps", [True, False])
def test_what_a_mask_means_is_seen_where_it_must_be_given(
    causal: bool, low: float, keeps: bool
) -> None:
    settings = {"causal": causal, "low": low, "keeps": keeps}
    told = adapted_as(Padded, kind="attention", settings=settings)
    word = "keep" if keeps else "hide"
    assert told.line == f"x: B n E, key_padding_mask: B n {word} -> B n E"
    with pytest.raises(NoAdapter, match="whose meaning is not known"):
        adapted_as(Unread, kind="attention", settings=settings)
