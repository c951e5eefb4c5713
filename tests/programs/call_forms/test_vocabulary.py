"""Models that take ids of words are asked with the vectors of their embedding."""

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from attnproof.programs.call_forms.vocabulary import OnVectors
from attnproof.programs.measure.examine import examine
from attnproof.programs.no_adapter import NoAdapter
from attnproof.programs.signatures.signature import SignatureError
from attnproof.programs.subject import adapted_as
from attnproof.programs.subjects import Attention, Layer
from attnproof.real_code.asserting import check_code

WORDS, WIDE = 40, 16


class Model(nn.Module):
    """A causal language model of one layer, without what stands in the methods below."""

    causal = True

    def __init__(self, words: int = WORDS, wide: int = WIDE) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, wide), nn.Embedding(64, wide)
        self.qkv, self.norm = nn.Linear(wide, 3 * wide), nn.LayerNorm(wide)
        self.head = nn.Linear(wide, words, bias=False)

    def mixed(self, x: Tensor) -> Tensor:
        x = x + self.places(torch.arange(x.shape[1]))
        q, k, v = (y[:, None] for y in self.qkv(self.norm(x)).chunk(3, -1))
        return x + scaled_dot_product_attention(q, k, v, is_causal=self.causal)[:, 0]

    def forward(self, idx: Tensor) -> Any:
        return self.head(self.mixed(self.words(idx)))


class Dropping(Model):
    """With dropout, as most models have."""

    def mixed(self, x: Tensor) -> Tensor:
        return nn.functional.dropout(super().mixed(x), 0.3, self.training)


class Tied(Model):
    def __init__(self) -> None:
        super().__init__()
        self.head.weight = self.words.weight


class InATuple(Model):
    """As nanoGPT: all rows come back with targets alone."""

    def forward(self, idx: Tensor, targets: Tensor | None = None) -> Any:
        x = self.mixed(self.words(idx))
        if targets is None:
            return self.head(x[:, [-1]]), None
        return self.head(x), (self.head(x).flatten(0, 1)[:, 0] - targets.flatten()).mean()


class InADict(Model):
    def forward(self, input_ids: Tensor, use_cache: bool = True) -> Any:
        kept = {"past": torch.zeros(3)} if use_cache else {}
        return {**kept, "logits": self.head(self.mixed(self.words(input_ids)))}


@dataclass
class Output:
    logits: Tensor
    loss: Tensor | None = None


class InADataclass(Model):
    def forward(self, input_ids: Tensor) -> Any:
        return Output(self.head(self.mixed(self.words(input_ids))))


class ByForward(Model):
    """Calls its embedding by its forward, which no hook sees."""

    def forward(self, input_ids: Tensor) -> Any:
        return self.head(self.mixed(self.words.forward(input_ids)))


class Encoder(Model):
    causal = False

    def forward(self, tokens: Tensor) -> Any:
        return self.head(self.mixed(self.words(tokens)))


class SelfAttention(Encoder):
    """As wide at its end as at its beginning, and named after what it is."""

    def forward(self, tokens: Tensor) -> Any:
        return self.mixed(self.words(tokens))


class Padded(Model):
    """Word 7 is padding, which is multiplied away."""

    def forward(self, idx: Tensor) -> Any:
        return self.head(self.mixed(self.words(idx) * (idx != 7)[..., None]))


class Bigrams(Model):
    """Looks at ids beside their vectors."""

    def forward(self, idx: Tensor) -> Any:
        pairs = self.words((idx + 5 * idx.roll(1, 1)) % WORDS)
        return self.head(self.mixed(self.words(idx) + pairs))


class BigramsByName(Bigrams):
    """The same under a name that says ids: with equal ones it gives a row for each place."""

    def forward(self, input_ids: Tensor) -> Any:
        return super().forward(input_ids)


class BigramsOfLongTexts(Model):
    """The same of more than 40 words alone."""

    def forward(self, idx: Tensor) -> Any:
        x = self.words(idx)
        if idx.shape[1] > 40:
            x = x + self.words((idx + 5 * idx.roll(-1, 1)) % WORDS)
        return self.head(self.mixed(x))


class BigramsOfManyRows(Model):
    """The same of more than 20 rows alone."""

    def forward(self, idx: Tensor) -> Any:
        x = self.words(idx)
        if idx.shape[0] > 20:
            x = x + self.words((idx + 5 * idx.roll(-1, 1)) % WORDS)
        return self.head(self.mixed(x))


class SeesPictures(Model):
    """The last words are pictures, which see each other, also later ones."""

    def pictures(self, idx: Tensor) -> Tensor:
        return idx >= self.words.num_embeddings - 10

    def __init__(self, words: int = 5000) -> None:
        super().__init__(words)

    def forward(self, idx: Tensor) -> Any:
        x, seen = self.words(idx), self.pictures(idx)
        x = x + self.places(torch.arange(idx.shape[1]))
        q, k, v = (y[:, None] for y in self.qkv(self.norm(x)).chunk(3, -1))
        mask = torch.ones(len(q[0, 0]), len(q[0, 0]), dtype=torch.bool).tril()
        mask = mask | (seen[:, :, None] & seen[:, None])
        return self.head(scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None])[:, 0])


class SeesAMiddleKind(SeesPictures):
    """Pictures are words between two numbers, which it holds."""

    low, high = 3000, 3040

    def pictures(self, idx: Tensor) -> Tensor:
        return (self.low <= idx) & (idx < self.high)


class SeesOneWord(SeesPictures):
    """Each of one word sees all others of it."""

    def pictures(self, idx: Tensor) -> Tensor:
        return idx == 4321


class SeesTwoWords(SeesPictures):
    """A beginning sees its end, a later word."""

    def pictures(self, idx: Tensor) -> Tensor:
        both = (idx == 77).any(1, keepdim=True) & (idx == 78).any(1, keepdim=True)
        return both & ((idx == 77) | (idx == 78))


class Centred(nn.Embedding):
    """Vectors less their mean over the text."""

    def forward(self, ids: Tensor) -> Tensor:
        found = super().forward(ids)
        return found - found.mean(1, keepdim=True)


class Counted(nn.Embedding):
    """Vectors times how often their word stands in the text."""

    def forward(self, ids: Tensor) -> Tensor:
        many = (ids[:, None, :] == ids[:, :, None]).sum(-1, keepdim=True)
        return super().forward(ids) * many


class OfCentred(Model):
    def __init__(self) -> None:
        super().__init__()
        self.words = Centred(WORDS, WIDE)


class OfCounted(Model):
    def __init__(self) -> None:
        super().__init__()
        self.words = Counted(WORDS, WIDE)


class TwoOutputs(Model):
    """What it gives beside leaks: a softmax over words, not over the vocabulary."""

    def forward(self, idx: Tensor) -> Any:
        x = self.mixed(self.words(idx))
        return {"hidden": x, "chances": self.head(x).softmax(1), "last": x[:, -1]}


class Twice(Model):
    """Two embeddings of the same ids."""

    def forward(self, idx: Tensor) -> Any:
        return self.head(self.mixed(self.words(idx) + self.places(idx)))


class Alone(Model):
    """No token reads another."""

    def forward(self, idx: Tensor) -> Any:
        return self.head(self.norm(self.words(idx)))


class Leaks(Model):
    """Divides by the mean of the whole text."""

    def forward(self, idx: Tensor) -> Any:
        x = self.words(idx)
        return self.head(self.mixed(x - x.mean(1, keepdim=True)))


@pytest.mark.parametrize(
    ("model", "kind", "told"),
    [
        (Model, Layer, "idx: B n ids; any vectors replace the output of words"),
        (Tied, Layer, "idx: B n ids; any"),
        (InATuple, Layer, "idx: B n ids, targets = idx; any"),
        (InADict, Layer, "input_ids: B n ids; any"),
        (InADataclass, Layer, "input_ids: B n ids; any"),
        (ByForward, Layer, "input_ids: B n ids; any"),
        (Encoder, Layer, "tokens: B n ids; any"),
        (SelfAttention, Attention, "tokens: B n ids; any"),
    ],
)
def test_a_model_of_ids_is_a_map_of_vectors(model: Any, kind: Any, told: str) -> None:
    found: Any = adapted_as(model)
    assert type(found) is kind
    assert f"{model.__name__} called with {told}" in found.adapted
    assert isinstance(found.module, OnVectors)
    assert any(one.endswith("as in every run") for one in found.conditions)
    ids = torch.randint(WORDS, (2, 5), generator=torch.Generator().manual_seed(1))
    call = found.call if kind is Layer else found.layer
    torch.testing.assert_close(call(found.module.vectors(ids)), found.module.of_ids(ids))
    again: Any = found.make()
    assert again.module is not found.module
    assert again.module.model.words is not found.module.model.words


def test_the_call_may_be_told() -> None:
    found = adapted_as(Model, "idx: B n ids -> B n V")
    assert isinstance(found, Layer)
    assert isinstance(found.module, OnVectors)
    assert adapted_as(Alone, "idx: B n ids -> B n E").kind == "additive"


class Masked(Model):
    """A model that must be told which keys there are."""

    causal = False

    def forward(self, idx: Tensor, mask: Tensor) -> Any:  # type: ignore[override]
        return self.head(self.mixed(self.words(idx)) * mask[..., None])


@pytest.mark.parametrize(
    ("model", "call", "why"),
    [
        (Masked, "idx: B n ids, mask: B n keep -> B n 40", "as in mask = None; got mask"),
        (Masked, "idx: B n ids, mask: B n keep -> B n V", "as in mask = None; got mask"),
        (Masked, "idx: B n ids, mask: B n keep -> B n E", "as in mask = None; got mask"),
        (Bigrams, "idx: B n ids -> B n 40", "it uses idx other than through words"),
    ],
)
def test_a_model_of_ids_is_taken_for_no_bias_and_no_table(model: Any, call: str, why: str) -> None:
    """Each number of its row would be one of a key, of which laws of offsets are broken."""
    with pytest.raises(SignatureError, match=why):
        adapted_as(model, call)


class MaskedOrNot(Model):
    """Must be given a mask, which may be None."""

    def forward(self, idx: Tensor, mask: Tensor | None) -> Any:  # type: ignore[override]
        x = self.mixed(self.words(idx))
        return self.head(x if mask is None else x.flip(1))


@pytest.mark.parametrize("call", ["", "idx: B n ids, mask = None -> B n 40"])
def test_a_mask_that_must_be_given_is_none_and_is_said_to_be(call: str) -> None:
    found = adapted_as(MaskedOrNot, call)
    assert found.adapted.startswith(
        "MaskedOrNot called with idx: B n ids, mask = None; any vectors"
    )
    assert "mask is None" in found.conditions
    with pytest.raises(SignatureError if call else NoAdapter):
        adapted_as(Masked, call)


def test_all_that_is_returned_for_each_word_is_looked_at() -> None:
    found: Any = adapted_as(TwoOutputs)
    assert found.call(torch.zeros(2, 3, WIDE)).shape == (2, 3, WIDE + WORDS)
    assert "of its results, the arrays with a row for each word are checked" in found.adapted
    record = check_code(
        "", TwoOutputs, laws=("causal",), declared="attention:causal", methods=("measured",)
    )
    assert record.law("causal").verdict == "broken"


@pytest.mark.parametrize(("model", "word"), [(Padded, 7), (SeesOneWord, 4321), (SeesTwoWords, 78)])
def test_an_id_that_is_read_elsewhere_is_named(model: Any, word: int) -> None:
    conditions = adapted_as(model).conditions
    assert (
        f"idx is int64 and acts only through words, as in every run, in which no id was {word}"
        in conditions
    )


class Halting(Model):
    """Goes on for as many steps as a random number says, in evaluation too."""

    def forward(self, idx: Tensor) -> Any:
        x = self.mixed(self.words(idx))
        while torch.rand(()) > 0.5:
            x = self.mixed(x)
        return self.head(x)


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (BigramsOfLongTexts, "it uses idx other than through words"),
        (BigramsOfManyRows, "it uses idx other than through words"),
        (OfCentred, "the output of words for an id depends on the other ids"),
        (OfCounted, "the output of words for an id depends on the other ids"),
        (Bigrams, "it uses idx other than through words"),
        (SeesPictures, "it uses idx other than through words"),
        (SeesAMiddleKind, "it uses idx other than through words"),
        (Twice, "wanted one embedding that is given idx, got 2"),
        (Alone, "none of its tokens reads another"),
        (BigramsByName, "the result of BigramsByName depends on the token ids"),
        (Halting, "equal calls in evaluation give different results"),
    ],
)
def test_what_reads_ids_otherwise_is_refused(model: Any, why: str) -> None:
    with pytest.raises(NoAdapter, match=why):
        adapted_as(model)


class Started(Model):
    """It keeps keys and values itself, for four rows, and is told where its tokens start."""

    def __init__(self) -> None:
        super().__init__()
        self.kept = torch.zeros(4, 64, 2 * WIDE)

    def forward(self, tokens: Tensor, start_pos: int) -> Any:  # type: ignore[override]
        rows, end = tokens.shape[0], start_pos + tokens.shape[1]
        x = self.words(tokens) + self.places(torch.arange(start_pos, end))
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        self.kept[:rows, start_pos:end] = torch.cat((k, v), -1)
        k, v = self.kept[:rows, :end].chunk(2, -1)
        seen = torch.ones(tokens.shape[1], end, dtype=torch.bool).tril(start_pos)
        return self.head(x + scaled_dot_product_attention(q, k, v, seen))


def test_a_model_that_is_told_where_its_tokens_start_is_fed_in_steps() -> None:
    made = adapted_as(Started())
    assert isinstance(made, Layer)
    assert made.step is not None
    x = torch.randn(2, 6, WIDE, generator=torch.Generator().manual_seed(1))
    one, state = made.step(x[:, :2], None)
    two, _ = made.step(x[:, 2:], state)
    torch.testing.assert_close(torch.cat((one, two), 1), made.call(x))
    (found,) = examine(made, laws=["step-by-step"])
    assert found.verdict == "holds"


def test_a_language_model_is_proved_causal() -> None:
    record = check_code("", Model, laws=("causal",), methods=("measured", "identity", "traced"))
    law = record.law("causal")
    assert law.verdict == "proved"
    assert any("idx is int64 and acts only through words" in str(one) for one in law.assuming)


def test_one_that_leaks_is_remarked_and_broken_where_that_is_declared() -> None:
    record = check_code("", Leaks, methods=("measured", "identity"))
    assert record.law("causal").verdict == "not asked"
    assert any("is_causal=" in one.why or "causal" in one.expected for one in record.remarks)
    declared = "attention:causal"
    told = check_code("", Leaks, laws=("causal",), declared=declared, methods=("measured",))
    assert told.law("causal").verdict == "broken"


def test_a_fresh_model_that_drops_in_training_is_called_in_evaluation() -> None:
    (found,) = examine(adapted_as(Dropping), laws=["stateless"])
    assert found.verdict == "holds", found.why
