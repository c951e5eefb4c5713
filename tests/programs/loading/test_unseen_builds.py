"""Code as libraries have it: how it is built, which of its methods is called, which words count."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

import attnproof
from attnproof.programs.code import NoSetting
from attnproof.programs.declarations import DeclaredAttention
from attnproof.programs.equal.deciding import compare
from attnproof.programs.equal.sides import Operand
from attnproof.programs.identify import identify
from attnproof.programs.measure.examine import examine
from attnproof.programs.no_adapter import NoAdapter
from attnproof.programs.prove import prove
from attnproof.programs.signatures.grammar import parse
from attnproof.programs.signatures.signature import SignatureError
from attnproof.programs.subject import adapted_as, kind_of


class Tables(dict[str, Tensor]):
    """A store that several modules share."""


class Rotation(nn.Module):
    """Rotary code that must be given a store, and has a helper with a rotating name."""

    def __init__(self, width: int, cache: Tables) -> None:
        super().__init__()
        self.width, self.cache = width, cache

    def rotate_half(self, x: Tensor) -> Tensor:
        a, b = x.chunk(2, -1)
        return torch.cat((-b, a), -1)

    def forward(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        rates = 10000.0 ** -(torch.arange(0, self.width, 2) / self.width)
        angles = torch.arange(q.shape[2])[:, None] * rates
        cos, sin = (f(torch.cat((angles, angles), -1)) for f in (torch.cos, torch.sin))
        return q * cos + self.rotate_half(q) * sin, k * cos + self.rotate_half(k) * sin


class Settings:
    """A config that refuses what is chosen for it."""

    def __init__(self, words_or_file: Any, hidden_size: int = 16, heads: int = 2) -> None:
        if not isinstance(words_or_file, int | str):
            raise ValueError("wanted a number of words, or a file")
        self.hidden_size, self.num_attention_heads = hidden_size, heads


class SelfAttention(nn.Module):
    """Attention that is built of a config of which it does not say the class."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.heads = config.num_attention_heads
        self.qkv = nn.Linear(config.hidden_size, 3 * config.hidden_size)

    def forward(self, hidden_states: Tensor) -> Tensor:
        parts = self.qkv(hidden_states).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        q, k, v = parts
        weights = (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1)
        mixed: Tensor = weights @ v
        return mixed.transpose(1, 2).flatten(2)


class LazyAttention(nn.Module):
    """Attention whose weights are as wide as its first input."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.LazyLinear(16) for _ in range(3))

    def forward(self, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        weights = (self.q(queries) @ self.k(keys).mT / 4).softmax(-1)
        mixed: Tensor = weights @ self.v(values)
        return mixed


class MisleadingOrder(nn.Module):
    """Rotary code whose docstring tells another order than it takes."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    def forward(self, x: Tensor) -> Tensor:
        """Rotate ``x`` of shape (seq_len, batch_size, n_heads, d)."""
        rates = 10000.0 ** -(torch.arange(0, self.width, 2) / self.width)
        angles = torch.arange(x.shape[2])[:, None] * rates
        cos, sin = (f(torch.cat((angles, angles), -1)) for f in (torch.cos, torch.sin))
        a, b = x.chunk(2, -1)
        return x * cos + torch.cat((-b, a), -1) * sin


@pytest.mark.parametrize(
    ("code", "line"),
    [
        (Rotation, "q: B H n D, k: B G n D -> q, k"),
        (MisleadingOrder, "x: B H n D -> x"),
        (SelfAttention, "hidden_states: B n E -> B n E"),
        (LazyAttention, "queries: B n E, keys: B n E, values: B n E -> B n E"),
    ],
)
def test_it_is_called_by_its_name(code: type[nn.Module], line: str) -> None:
    assert adapted_as(code).line == line


def test_a_row_of_numbers_for_each_place_is_a_table() -> None:
    assert kind_of(parse("x: B n 1 positions -> B n 16")) == "additive"
    assert kind_of(parse("n = n -> n n")) == "bias"


def sines_of_places(places: Tensor, width: int) -> Tensor:
    """Sines of two coordinates, (n, B, width)."""
    rates = 100.0 ** -(torch.arange(width // 4) / (width // 4))
    angles = places[..., None] * rates
    return torch.cat((angles.sin(), angles.cos()), -1).flatten(-2)


def test_coordinates_of_a_table_are_given_on_an_axis_that_is_a_number() -> None:
    made = adapted_as(sines_of_places, "places: n B 2 coordinates, width = E -> n B E")
    assert made.kind == "additive"


class PositionEmbedding(nn.Module):
    """A learned table, the width of which has the name of no other library."""

    def __init__(self, max_sequence_length: int, embedding_dimension: int) -> None:
        super().__init__()
        self.rows = nn.Parameter(torch.randn(max_sequence_length, embedding_dimension))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.rows[: x.shape[1]]


def test_a_dimension_is_a_width() -> None:
    assert getattr(adapted_as(PositionEmbedding), "width", 0) == 16


class KeptInTheLastFormat(nn.Module):
    """A table that is kept in the format of the last call; ``whole``: in whole numbers always."""

    whole = False

    def __init__(self, d_model: int) -> None:
        super().__init__()
        angles = torch.arange(500.0)[:, None] * 10000.0 ** -(torch.arange(0, d_model, 2) / d_model)
        self.pe = torch.stack((angles.sin(), angles.cos()), -1).flatten(-2)

    def forward(self, x: Tensor) -> Tensor:
        self.pe = self.pe.to(torch.int64 if self.whole else x.dtype)
        return x + self.pe[: x.shape[1]].to(x.dtype)


class InWholeNumbers(KeptInTheLastFormat):
    whole = True


def test_what_a_wrong_call_leaves_behind_is_no_part_of_the_right_one() -> None:
    def seen(code: type[nn.Module]) -> set[str]:
        made = adapted_as(code, kind="additive")
        return {one.verdict for one in examine(made, laws=("sees-positions",))}

    assert seen(KeptInTheLastFormat) == {"holds"}  # of ids it was a table of whole numbers
    assert seen(InWholeNumbers) == {"broken"}


class ReadsAnother(nn.Module):
    """Attention with projections that are handed to it; ``changes``: what it is given."""

    changes = False

    def __init__(self, embed_dim: int, q_proj: nn.Module, k_proj: nn.Module) -> None:
        super().__init__()
        self.q_proj, self.k_proj, self.width = q_proj, k_proj, embed_dim

    def forward(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        if y is None:
            raise ValueError("wanted y")
        q, k = self.q_proj(x), self.k_proj(y)
        q.mul_(self.width**-0.5)
        if self.changes:
            x += 1
        mixed: Tensor = (q @ k.mT).softmax(-1) @ k
        return mixed


class ChangesItsInput(ReadsAnother):
    changes = True


class CrossAttentionLayer(ReadsAnother):
    """Without what it attends to it does nothing."""

    def forward(self, x: Tensor, encoder_input: Tensor | None = None) -> Tensor:
        return x if encoder_input is None else x + super().forward(x, encoder_input)


def test_modules_that_it_is_handed_keep_what_they_are_given() -> None:
    for code, verdict in ((ReadsAnother, "holds"), (ChangesItsInput, "broken")):
        made = adapted_as(code)
        assert made.line == "x: B n E, y: B n E -> B n E"
        assert [one.verdict for one in examine(made, laws=("no-mutation",))] == [verdict]


def test_a_layer_that_does_nothing_alone_is_given_what_it_attends_to() -> None:
    made = adapted_as(CrossAttentionLayer)
    assert made.line == "x: B r E tokens, encoder_input: B n E tokens -> B r E"
    assert "the context alone" in identify(made).sentence
    alone = adapted_as(CrossAttentionLayer, "x: B n E -> B n E", kind="attention")
    assert "each token by itself" in identify(alone).sentence


class TransformerXL(nn.Module):
    """Sines of positions that are handed over, at a width that is called ``demb``."""

    rates: Tensor

    def __init__(self, demb: int) -> None:
        super().__init__()
        self.register_buffer("rates", 10000.0 ** -(torch.arange(0, demb, 2) / demb))

    def forward(self, pos_seq: Tensor) -> Tensor:
        angles = torch.outer(pos_seq, self.rates)
        return torch.cat((angles.sin(), angles.cos()), -1)[:, None]


def test_positions_in_a_sequence_are_positions() -> None:
    assert adapted_as(TransformerXL, name="PositionalEmbedding").line == "pos_seq: n -> n 1 E"


class Compared(nn.Module):
    """Attention that says when it is equal to another, and has no hash."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Compared)

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return scaled_dot_product_attention(q, k, v)


class Holds(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.part = Compared()

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        found: Tensor = self.part(q, k, v)
        return found


@pytest.mark.parametrize("code", [Compared, Holds])
def test_a_module_without_a_hash_is_said_to_have_none(code: Any) -> None:
    with pytest.raises(NoAdapter, match="needs a __hash__"):
        adapted_as(code)


class Causal(nn.Module):
    """A residual layer of causal attention."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads, self.qkv = heads, nn.Linear(dim, 3 * dim)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        out = scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + out.transpose(1, 2).flatten(2)


def LanguageModel(*, dim: int, num_tokens: int, depth: int, heads: int = 2) -> Any:
    """A language model, which a function builds of its settings."""
    net = nn.Sequential(
        nn.Embedding(num_tokens, dim),
        *[Causal(dim, heads) for _ in range(depth)],
        nn.Linear(dim, num_tokens, bias=False),
    )
    net[-1].weight = net[0].weight
    return net


def small_model(dim: int = 16, **more: Any) -> nn.Module:
    """The same, of which the annotation says what it is."""
    made = LanguageModel
    return made(dim=dim, num_tokens=40, depth=1, **more)  # type: ignore[no-any-return]


def normalised(x: Tensor, dim: int = 16) -> Tensor:
    """Builds a module as well, and returns what that gives."""
    return nn.LayerNorm(dim)(x + x.mean(1, keepdim=True))  # type: ignore[no-any-return]


@pytest.mark.parametrize("line", ["", "input: B n ids -> B n 50"])
def test_a_function_of_settings_is_called_as_what_it_builds(line: str) -> None:
    found = adapted_as(LanguageModel, line, declared=DeclaredAttention(causal=True))
    assert "input: B n ids" in found.adapted
    (causal,) = examine(found, laws=("causal",))
    assert causal.verdict == "holds"
    wide = adapted_as(small_model, settings={"dim": 24})
    assert vars(wide)["embed"] == 24
    with pytest.raises(NoSetting, match="built with dim; got the setting 'width'"):
        adapted_as(LanguageModelOfWidth, settings={"width": 8})


def LanguageModelOfWidth(dim: int) -> nn.Module:
    """Takes no other setting."""
    return LanguageModel(dim=dim, num_tokens=40, depth=1)  # type: ignore[no-any-return]


def test_a_function_of_arrays_is_called_itself_whatever_it_builds() -> None:
    assert adapted_as(normalised).line == "x: B n E -> B n E"
    with pytest.raises(NoSetting, match="normalised is not a class"):
        adapted_as(normalised, settings={"dim": 16})


class CausalInBfloat16(Causal):
    """The same, of weights in bfloat16 and a scale in float32."""

    later = 0

    def __init__(self, dim: int = 16, heads: int = 2) -> None:
        super().__init__(dim, heads)
        self.qkv = nn.Linear(dim, 3 * dim, dtype=torch.bfloat16)
        self.scale = nn.Parameter(torch.ones(dim))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv((x * self.scale).to(x.dtype)).chunk(3, -1)
        seen = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril(self.later)
        return x + scaled_dot_product_attention(q, k, v, attn_mask=seen)


class OneTooLate(CausalInBfloat16):
    later = 1


class CastsItself(CausalInBfloat16):
    """The same, which casts what it is given and what it returns."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.to(torch.bfloat16)).to(x.dtype)


IN_FLOAT32 = "what it stores in bfloat16 is converted to float32"


@pytest.mark.parametrize("line", ["", "x: B n E -> B n E"])
def test_weights_of_another_format_are_converted_and_every_verdict_says_so(line: str) -> None:
    def seen(code: type[nn.Module]) -> Any:
        return adapted_as(code, line, kind="attention", declared=DeclaredAttention(causal=True))

    found = seen(CausalInBfloat16)
    assert IN_FLOAT32 in found.adapted
    (proved,) = prove(found, ("causal",)).findings
    assert proved.verdict == "holds"
    assert IN_FLOAT32 in [one.text for one in proved.assuming]
    assert [one.verdict for one in examine(seen(OneTooLate), laws=("causal",))] == ["broken"]


class MixesRowsInBfloat16(CausalInBfloat16):
    """It takes another path with weights in the format in which it is used."""

    def forward(self, x: Tensor) -> Tensor:
        mixed = self.qkv.weight.dtype is torch.bfloat16
        return super().forward(x - x.mean(0, keepdim=True) if mixed else x)


def test_code_is_run_in_the_format_in_which_it_is_used_too() -> None:
    for code, verdicts in (
        (CausalInBfloat16, {"proved", "measured"}),
        (MixesRowsInBfloat16, {"broken", "measured"}),
    ):
        laws = ["rows-of-batch-apart", "evaluation-repeats"]
        found = attnproof.check(code(), "layer", laws, call="x: B n E -> B n E")
        assert {one.verdict for one in found.laws} == verdicts
        assert IN_FLOAT32 in found.law("evaluation-repeats").why


def test_an_object_of_another_format_and_code_that_casts_stay_as_they_are() -> None:
    held = CausalInBfloat16()
    assert IN_FLOAT32 in adapted_as(held).adapted
    assert held.qkv.weight.dtype is torch.bfloat16
    assert "converted" not in adapted_as(CastsItself).adapted


def test_a_model_of_another_format_is_converted_too() -> None:
    def model(late: type[Causal]) -> nn.Module:
        embedding = nn.Embedding(40, 16, dtype=torch.bfloat16)
        return nn.Sequential(embedding, late(16, 2), nn.Linear(16, 40, dtype=torch.bfloat16))

    for late, verdict in ((CausalInBfloat16, "holds"), (OneTooLate, "broken")):
        found = adapted_as(model(late), declared=DeclaredAttention(causal=True))
        assert IN_FLOAT32 in found.adapted
        assert [one.verdict for one in examine(found, laws=("causal",))] == [verdict]


@pytest.mark.parametrize("code", [CausalInBfloat16, CastsItself])
def test_what_else_is_wrong_with_weights_of_another_format_is_said(code: type[nn.Module]) -> None:
    class Refuses(code):  # type: ignore[misc,valid-type]
        def forward(self, x: Tensor) -> Tensor:
            raise ValueError(f"wanted more than {len(super().forward(x))} rows")

    with pytest.raises(SignatureError, match="wanted more than 2 rows"):
        adapted_as(Refuses, "x: B n E -> B n E", kind="attention")


def test_two_programs_are_compared_in_one_format() -> None:
    class InFloat32(CausalInBfloat16):
        def __init__(self) -> None:
            super().__init__()
            self.float()

    first, same, late = (
        Operand(code, name)
        for code, name in ((CausalInBfloat16, "f"), (InFloat32, "g"), (OneTooLate, "h"))
    )
    equal = compare(first, same)
    assert equal.verdict == "proved"
    assert IN_FLOAT32.replace("it", "f", 1) in [one.text for one in equal.assuming]
    assert compare(first, late).verdict == "counterexample"
