"""A mask of queries beside one of keys, or of tokens beside one of their context: each is asked of.

Linear attention (Katharopoulos et al., 2020) multiplies what it makes of queries and of keys by
their masks; attention by a softmax multiplies the two masks, so that they go together.
"""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import elu

from attnproof.programs.exact import exact
from attnproof.programs.measure.examine import examine
from attnproof.programs.signatures.signature import SignatureError
from attnproof.programs.subject import adapted_as

HEADS = "q: B r H D, k: B n H D, v: B n H D"
BOTH = f"{HEADS}, q_mask: B r keep, kv_mask: B n keep -> B r H D"
CROSS = "x: B r E, source: B n E tokens, x_mask: B r keep, source_mask: B n keep -> B r E"
SELF = "x: B n E, source: B n E tokens, x_mask: B n keep, source_mask: B n keep -> B n E"
Mask = Tensor | None


def linear(q: Tensor, k: Tensor, v: Tensor, q_mask: Mask = None, kv_mask: Mask = None) -> Tensor:
    """Linear attention, in which hidden queries and keys are multiplied by 0."""
    q, k = elu(q) + 1, elu(k) + 1
    if q_mask is not None:
        q = q * q_mask[..., None, None]
    if kv_mask is not None:
        k, v = k * kv_mask[..., None, None], v * kv_mask[..., None, None]
    read = torch.einsum("bshd,bshe->bhde", k, v)
    total = torch.einsum("blhd,bhd->blh", q, k.sum(1))
    return torch.einsum("blhd,bhde->blhe", q, read) / (total[..., None] + 1e-6)


def full(q: Tensor, k: Tensor, v: Tensor, q_mask: Mask = None, kv_mask: Mask = None) -> Tensor:
    """Attention by a softmax; it has no mask of keys without one of queries."""
    scores = torch.einsum("blhd,bshd->blsh", q, k) / math.sqrt(q.shape[-1])
    if kv_mask is not None:
        assert q_mask is not None
        seen = q_mask[:, :, None, None] * kv_mask[:, None, :, None]
        scores = scores.masked_fill(~seen, -math.inf)
    return torch.einsum("blsh,bshd->blhd", scores.softmax(2), v)


class Layer(nn.Module):
    """A layer in which tokens read a source, with masks of both, as in LoFTR."""

    def __init__(self, d_model: int = 16, nhead: int = 2, attention: Any = linear) -> None:
        super().__init__()
        self.nhead, self.attention = nhead, attention
        self.q_proj, self.k_proj, self.v_proj = (nn.Linear(d_model, d_model) for _ in range(3))
        self.mlp = nn.Linear(2 * d_model, d_model)

    def forward(
        self, x: Tensor, source: Tensor, x_mask: Mask = None, source_mask: Mask = None
    ) -> Tensor:
        q, k, v = (
            part(of).unflatten(-1, (self.nhead, -1))
            for part, of in ((self.q_proj, x), (self.k_proj, source), (self.v_proj, source))
        )
        message = self.attention(q, k, v, x_mask, source_mask).flatten(2)
        out: Tensor = x + self.mlp(torch.cat((x, message), -1))
        return out


def of_full() -> Layer:
    return Layer(attention=full)


GUESSED: dict[str, tuple[Any, str]] = {
    "each alone": (lambda: linear, f"{HEADS}, kv_mask: B n keep, q_mask: B r keep -> B r H D"),
    "together": (lambda: full, BOTH),
    "of a layer, each alone": (
        Layer,
        "x: B n E, source: B n E tokens, source_mask: B n keep, x_mask: B n keep -> B n E",
    ),
    "of a layer, together": (of_full, SELF),
}


@pytest.mark.parametrize("form", GUESSED)
def test_both_masks_are_guessed(form: str) -> None:
    make, line = GUESSED[form]
    assert adapted_as(make(), kind="attention").line == line


def test_a_mask_that_does_nothing_is_not_guessed_and_one_that_hides_is() -> None:
    def ignores(q: Tensor, k: Tensor, v: Tensor, q_mask: Mask = None) -> Tensor:
        return linear(q, k, v, None if q_mask is None else q_mask | ~q_mask)

    def hides(q: Tensor, k: Tensor, v: Tensor, q_mask: Mask = None) -> Tensor:
        return linear(q, k, v, None if q_mask is None else ~q_mask)

    assert "q_mask" not in adapted_as(ignores, kind="attention").line
    assert adapted_as(hides, kind="attention").line == f"{HEADS}, q_mask: B r hide -> B r H D"


class OfAContext(nn.Module):
    """Tokens that read the mean of a context of other features, of which a mask shows some."""

    def __init__(self, dim: int = 16, context_dim: int = 24) -> None:
        super().__init__()
        self.to_kv = nn.Linear(context_dim, dim)

    def forward(self, x: Tensor, context: Tensor, context_mask: Mask = None) -> Tensor:
        """softmax attention with scores of 0."""
        seen = torch.ones(context.shape[:2]) if context_mask is None else context_mask.to(x.dtype)
        weights = seen / seen.sum(1, keepdim=True)
        found: Tensor = x + weights[:, None] @ self.to_kv(context)
        return found


def test_the_mask_of_a_context_of_other_features_is_guessed_and_asked_of() -> None:
    found = adapted_as(OfAContext, kind="attention")
    assert found.line == "x: B r E tokens, context: B n 24 tokens, context_mask: B n keep -> B r E"
    asked = {one.law: one for one in examine(found, laws=LAWS)}
    assert "its mask is that of a context" in asked.pop("true-means-visible").why
    assert {one.verdict for one in asked.values()} == {"holds"}


LAWS = ("hidden-keys-do-nothing", "true-means-visible", "padding-does-nothing", "stateless")
KEPT: dict[str, tuple[Any, str]] = {
    "linear": (lambda: linear, BOTH),
    "full": (lambda: full, BOTH),
    "linear, True hides": (
        lambda: (
            lambda q, k, v, q_mask=None, kv_mask=None: linear(
                q, k, v, *(None if one is None else ~one for one in (q_mask, kv_mask))
            )
        ),
        BOTH.replace("keep", "hide"),
    ),
    "a layer": (Layer, CROSS),
    "a layer of one length": (Layer, SELF),
    "a layer with a softmax": (of_full, CROSS),
    "a layer with a softmax, of one length": (of_full, SELF),
}


@pytest.mark.parametrize("case", KEPT)
def test_right_code_is_not_accused(case: str) -> None:
    make, line = KEPT[case]
    subject = adapted_as(make(), line, kind="attention")
    asked = {one.law: one.verdict for one in examine(subject, laws=LAWS)}
    assert set(asked.values()) <= {"holds", "not asked"}, asked
    assert asked["hidden-keys-do-nothing"] == "holds"
    assert asked["true-means-visible" if line == BOTH else "stateless"] == "holds"
    assert "broken" not in {one.verdict for one in exact(subject, LAWS)}


def inverted(mask: Mask) -> Mask:
    return None if mask is None else ~mask


FAULTS: dict[str, tuple[Any, str]] = {
    "the mask of queries is ignored": (lambda two: (None, two[1]), "true-means-visible"),
    "the mask of queries is inverted": (
        lambda two: (inverted(two[0]), two[1]),
        "true-means-visible",
    ),
    "the mask of keys is ignored": (lambda two: (two[0], None), "hidden-keys-do-nothing"),
    "the mask of keys is inverted": (
        lambda two: (two[0], inverted(two[1])),
        "hidden-keys-do-nothing",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("kind", ["keep", "hide"])
def test_the_law_of_the_mask_that_is_wrong_is_broken(fault: str, kind: str) -> None:
    masks, law = FAULTS[fault]

    def wrong(q: Tensor, k: Tensor, v: Tensor, q_mask: Mask = None, kv_mask: Mask = None) -> Tensor:
        if kind == "hide":
            q_mask, kv_mask = inverted(q_mask), inverted(kv_mask)
        return linear(q, k, v, *masks((q_mask, kv_mask)))

    subject = adapted_as(wrong, BOTH.replace("keep", kind), kind="attention")
    assert {one.law for one in examine(subject, laws=[law]) if one.verdict == "broken"} == {law}
    if law == "hidden-keys-do-nothing":  # of queries it is measured alone
        assert [one.verdict for one in exact(subject, [law])] == ["broken"]


OF_LAYERS: dict[str, tuple[Any, str]] = {
    "the mask of tokens is inverted": (
        lambda two: (inverted(two[0]), two[1]),
        "padding-does-nothing",
    ),
    "the mask of a source is ignored": (lambda two: (two[0], None), "hidden-keys-do-nothing"),
    "the mask of a source is inverted": (
        lambda two: (two[0], inverted(two[1])),
        "hidden-keys-do-nothing",
    ),
}


@pytest.mark.parametrize("fault", OF_LAYERS)
def test_the_same_of_a_layer_that_reads_a_source(fault: str) -> None:
    masks, law = OF_LAYERS[fault]

    class Wrong(Layer):
        def forward(
            self, x: Tensor, source: Tensor, x_mask: Mask = None, source_mask: Mask = None
        ) -> Tensor:
            return super().forward(x, source, *masks((x_mask, source_mask)))

    subject = adapted_as(Wrong, CROSS, kind="attention")
    assert [one.verdict for one in examine(subject, laws=[law])] == ["broken"]
    assert [one.verdict for one in exact(subject, [law])] == ["broken"]


def test_a_source_that_is_divided_by_its_padding_as_well_is_seen() -> None:
    class OverAll(OfAContext):
        def forward(self, x: Tensor, context: Tensor, context_mask: Mask = None) -> Tensor:
            seen = torch.ones(context.shape[:2]) if context_mask is None else context_mask.to(x)
            found: Tensor = x + (seen[:, None] / context.shape[1]) @ self.to_kv(context)
            return found

    line = "x: B r E, context: B n 24 tokens, context_mask: B n keep -> B r E"
    laws = {one.law: one.verdict for one in examine(adapted_as(OverAll, line), laws=LAWS)}
    assert laws["padding-does-nothing"] == "broken"
    assert laws["hidden-keys-do-nothing"] == "holds"


def test_a_mask_of_queries_says_what_true_means() -> None:
    with pytest.raises(SignatureError, match="wanted what q_mask is: write one of keep, hide"):
        adapted_as(linear, f"{HEADS}, q_mask: B r -> B r H D", kind="attention")
