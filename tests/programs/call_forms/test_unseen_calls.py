"""Calls that are guessed of code that takes more than its names say in other libraries."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, Literal

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from attnproof.programs.applicable_laws import not_asked
from attnproof.programs.call_forms.choices import choices
from attnproof.programs.calls.fitting import require_numbers
from attnproof.programs.code import DoesNotFit
from attnproof.programs.identified_mask import is_to_be_read, with_mask
from attnproof.programs.identify import identify
from attnproof.programs.measure.examine import examine
from attnproof.programs.no_adapter import NoAdapter
from attnproof.programs.signatures.signature import SignatureError
from attnproof.programs.subject import adapted_as, subject_of
from tests.programs.signatures.test_call_language import by_documents, by_one_array, of_lengths


def scored(x: Tensor, keys: Tensor, scores: Tensor | float = 0.0) -> Tensor:
    return (x @ keys.mT / 4 + scores).softmax(-1) @ keys


class WindowAttention(nn.Module):
    """Attention over the places of a window, whose offsets index a table of biases."""

    def __init__(self, dim: int, window_size: tuple[int, int], cut: bool = False) -> None:
        super().__init__()
        area = window_size[0] * window_size[1]
        at = torch.arange(area)
        self.cut, self.out = cut, nn.Linear(dim, dim)
        self.table = nn.Parameter(torch.randn(2 * area))
        self.register_buffer("relative_position_index", at[:, None] - at + area)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        index: Any = self.relative_position_index
        bias = self.table[index]
        if mask is not None:
            bias = bias + mask
        out: Tensor = self.out(scored(x, x, bias))
        return out


class AttentionOfRows(nn.Module):
    """Attention that is told of which image its tokens are the places."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.out = nn.Linear(dim, dim)

    def forward(self, x: Tensor, H: int, W: int) -> Tensor:
        assert x.shape[1] == H * W
        out: Tensor = self.out(scored(x, x))
        return out


class AttentionOfChannels(AttentionOfRows):
    """The same of features before tokens."""

    def forward(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return super().forward(x.mT, 1, x.shape[2]).mT


class CrossAttention(AttentionOfRows):
    """Attention over a context, which has a default that does not work."""

    def forward(self, x: Tensor, more: Any = None, latents: Any = None) -> Tensor:
        out: Tensor = self.out(scored(x, latents, 0.0 if more is None else more))
        return out


class ModulatedAttention(AttentionOfRows):
    """Attention that is multiplied by what is known of each row."""

    def forward(self, x: Tensor, temb: Tensor) -> Tensor:  # type: ignore[override]
        return super().forward(x, 1, x.shape[1]) * temb[:, None]


class AttentionOfColumns(AttentionOfRows):
    """Attention over the first axis, which neither its names nor its source say."""

    def forward(self, x: Tensor) -> Tensor:  # type: ignore[override]
        given = x.movedim(0, 1)
        return super().forward(given, 1, given.shape[1]).movedim(1, 0)


class RotationOfOneWidth(nn.Module):
    """A rotation that is built with its width, and takes no other."""

    def __init__(self, embedding_dims: int) -> None:
        super().__init__()
        self.embedding_dims = embedding_dims

    def forward(self, inputs: Tensor, position: Tensor) -> Tensor:
        if inputs.shape[-1] != self.embedding_dims:
            raise ValueError("the width is another")
        w = 1e4 ** (-torch.arange(0, self.embedding_dims, 2) / self.embedding_dims)
        angle = position[..., None, None] * w
        u, v = inputs.chunk(2, -1)
        cos, sin = angle.cos(), angle.sin()
        return torch.cat((u * cos - v * sin, v * cos + u * sin), -1)


def sinusoids_of_grid(d_model: int, height: int, width: int) -> Tensor:
    at = torch.arange(d_model // 4)[:, None, None] + torch.zeros(height, width)
    y, x = at + torch.arange(height)[:, None], at + torch.arange(width)
    return torch.cat((x.sin(), x.cos(), y.sin(), y.cos()))[None]


class Kind(Enum):
    PLAIN = 1
    OTHER = 2


class ChosenAttention(AttentionOfRows):
    """Attention whose constructor wants one of some words."""

    def __init__(self, in_feat: int, mode: str, kind: Any, side: Literal["left", "right"]) -> None:
        super().__init__(in_feat)
        if mode == "none" or mode in ("some", "all"):
            self.mode = mode
        else:
            raise ValueError(mode)
        if kind == Kind.PLAIN:
            self.kind = kind
        assert side == "left"

    def forward(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return super().forward(x, 1, x.shape[1])


@pytest.mark.parametrize(
    ("code", "line"),
    [
        (WindowAttention, "x: B 16 E -> B 16 E"),
        (AttentionOfRows, "x: B n E, H = 1, W = n -> B n E"),
        (AttentionOfChannels, "x: B E n -> B E n"),
        (AttentionOfColumns, "x: n B E -> n B E"),
        (CrossAttention, "x: B r E, latents: B n E tokens -> B r E"),
        (ModulatedAttention, "x: B n E, temb: B E constant -> B n E"),
        (ChosenAttention, "x: B n E -> B n E"),
    ],
)
def test_layers_are_called_with_what_they_want(code: Any, line: str) -> None:
    torch.manual_seed(0)
    found = adapted_as(code)
    assert found.kind == "attention"
    assert found.line.replace(" tokens", "") == line.replace(" tokens", "")
    assert subject_of(code, found.line, "attention").line == found.line


def sequence_mask(lengths: Tensor, max_len: int) -> Tensor:
    return of_lengths(lengths, max_len)


def padding_mask(input_lengths: Tensor) -> Tensor:
    return torch.arange(int(input_lengths.max())) >= input_lengths[:, None]


def packed_mask(sample_id: Tensor, time_id: Tensor) -> Tensor:
    return by_documents(sample_id, time_id)


def linear_bias(qk_dots: Tensor) -> Tensor:
    i, j = qk_dots.shape[-2:]
    off = torch.arange(j) - torch.arange(j - i, j)[:, None]
    return qk_dots - off.abs() * 0.5 ** torch.arange(1, qk_dots.shape[1] + 1).view(-1, 1, 1)


def apply_rotary(x: Tensor, sinu_pos: Tensor) -> Tensor:
    return by_one_array(x, sinu_pos)


@pytest.mark.parametrize(
    ("code", "line"),
    [
        (sequence_mask, "lengths: B lengths, max_len = n -> B n keep"),
        (padding_mask, "input_lengths: B lengths -> B n hide"),
        (packed_mask, "sample_id: B n ids, time_id: B n positions -> B n n keep"),
        (linear_bias, "qk_dots: B H r n -> B H r n"),
    ],
)
def test_functions_are_given_arrays_of_what_they_are_called(code: Any, line: str) -> None:
    assert adapted_as(code).line == line


def test_sines_before_cosines_are_seen() -> None:
    found = adapted_as(apply_rotary)
    assert found.kind == "rotary"
    assert "sinu_pos: n D sin_cos" in found.line


def cut_mask(size: int, cut: int) -> Tensor:
    at = torch.arange(size)
    return (at[:, None] >= cut) | (at < cut)


def test_a_number_that_no_name_explains_is_not_taken_for_heads() -> None:
    with pytest.raises(NoAdapter):
        adapted_as(cut_mask)
    assert adapted_as(cut_mask, "size = n, cut = 3 -> n n keep").kind == "mask"


def chunk_mask(size: int, chunk_size: int) -> Tensor:
    at = torch.arange(size) // chunk_size
    return at[:, None] >= at


class SinusoidalEmbeddings(nn.Module):
    """Angles of positions, whose name speaks of a table."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        ladder = 10000.0 ** (-torch.arange(0, 16, 2) / 16)
        found = torch.arange(x.shape[-2])[:, None] * torch.cat((ladder, ladder))
        return found, torch.ones(1)


class RotaryEmbeddingMixed(nn.Module):
    """What is named rotary, has weights, and rotates nothing."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(dim))

    def forward(self, x: Tensor) -> Tensor:
        return (x * self.scale).softmax(-1)


class CastAttention(nn.Module):
    """Attention that takes a mask for truth values, whatever it is."""

    def __init__(self, dim: int, added: bool = False) -> None:
        super().__init__()
        self.added, self.out = added, nn.Linear(dim, dim)

    def forward(self, x: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        hidden: Tensor | float = 0.0
        if padding_mask is not None:
            numbers = self.added and padding_mask.is_floating_point()
            truth = torch.zeros(padding_mask.shape).masked_fill(padding_mask.bool(), -1e30)
            hidden = (padding_mask if numbers else truth)[:, None]
        out: Tensor = self.out(scored(x, x, hidden))
        return out


def test_chunks_are_counted_in_tokens() -> None:
    assert adapted_as(chunk_mask).line == "size = n, chunk_size = 3 -> n n keep"


def test_angles_are_no_table_that_is_added() -> None:
    with pytest.raises(NoAdapter, match="position times frequency"):
        adapted_as(SinusoidalEmbeddings)


def test_what_is_named_a_rotary_embedding_is_no_attention() -> None:
    with pytest.raises(NoAdapter, match="suggests a rotary embedding"):
        adapted_as(RotaryEmbeddingMixed)


@pytest.mark.parametrize(("added", "kinds"), [(False, "hide"), (True, "hide or add")])
def test_numbers_that_are_cast_to_truth_values_are_not_added(added: bool, kinds: str) -> None:
    torch.manual_seed(0)
    found = adapted_as(CastAttention, settings={"added": added})
    assert found.line == f"x: B n E, padding_mask: B n {kinds} -> B n E"


def test_a_rotation_is_built_with_the_width_of_what_it_rotates() -> None:
    line = "inputs: B n H D, position: B n positions -> inputs; built with embedding_dims = D"
    told = subject_of(RotationOfOneWidth, line, "rotary")
    assert told.line == line
    assert adapted_as(RotationOfOneWidth).line == line.partition(" positions")[0] + " -> inputs"
    with pytest.raises(ValueError, match="the width is another"):  # of the width it was built with
        subject_of(RotationOfOneWidth(6), line.partition(";")[0], "rotary", width=8)


def test_features_are_no_heads() -> None:
    found = adapted_as(sinusoids_of_grid)
    assert found.kind == "additive"
    assert "H" not in found.line


class VectorsOfOffsets(nn.Module):
    """A vector, or with heads a number for each, of the offset of query and key."""

    def __init__(self, embedding_size: int) -> None:
        super().__init__()
        self.rows = nn.Parameter(torch.randn(129, embedding_size))

    def forward(self, qlen: int, klen: int) -> Tensor:
        offsets = torch.arange(klen) - torch.arange(klen - qlen, klen)[:, None]
        return self.rows[offsets.clamp(-64, 64) + 64]


class NumbersOfOffsets(VectorsOfOffsets):
    def __init__(self, num_heads: int) -> None:
        super().__init__(num_heads)


def test_features_of_offsets_are_no_biases_of_heads() -> None:
    with pytest.raises(NoAdapter, match="features for each offset, not heads"):
        adapted_as(VectorsOfOffsets)
    assert adapted_as(NumbersOfOffsets).line == "qlen = r, klen = n -> r n H"


def attend_suffixed(q_BLHD: Tensor, k_BLHD: Tensor, v_BLHD: Tensor) -> Tensor:
    q, k, v = (x.transpose(1, 2) for x in (q_BLHD, k_BLHD, v_BLHD))
    return functional.scaled_dot_product_attention(q, k, v).transpose(1, 2)


def test_names_that_say_their_axes_are_read_without_them() -> None:
    assert adapted_as(attend_suffixed).line == (
        "q_BLHD: B r H D, k_BLHD: B n H D, v_BLHD: B n H D -> B r H D"
    )


def test_numbers_that_are_told_to_be_added_hide_nothing_where_they_are_0() -> None:
    def made(query_pad: Tensor, key_pad: Tensor) -> Tensor:
        return torch.where(query_pad[..., None] | key_pad[:, None], -1e9, 0.0)

    added = "query_pad: B r hide, key_pad: B n hide -> B r n add"
    assert "nothing visible" not in identify(subject_of(made, added, "mask")).sentence
    kept = added.replace("add", "ones")
    assert "nothing visible" in identify(subject_of(made, kept, "mask")).sentence


class Fed(AttentionOfRows):
    """Attention over all tokens, which keeps a cache although its tokens see later ones."""

    def forward(  # type: ignore[override]
        self, x: Tensor, past_key_value: Tensor | None = None, use_cache: bool = False
    ) -> Any:
        keys = x if past_key_value is None else torch.cat((past_key_value, x), 1)
        out: Tensor = self.out(scored(x, keys))
        return (out, keys) if use_cache else out


def test_in_pieces_is_not_asked_of_what_sees_ahead_in_whatever_format_it_is_looked_at() -> None:
    step = "; step: x: B n E, past_key_value, use_cache = True -> B n E, past_key_value"
    fed = subject_of(Fed, f"x: B n E -> B n E{step}", "attention")
    (found,) = examine(fed, laws=("step-by-step",))
    assert found.verdict == "not asked"
    assert "see later ones" in found.why


def test_queries_that_no_name_tells_are_no_tokens() -> None:
    """A product with 3 axes would run too, over features."""

    def my_attention(first: Tensor, second: Tensor, third: Tensor) -> Tensor:
        return attend_suffixed(first, second, third)

    assert adapted_as(my_attention).line == (
        "first: B r H D query, second: B n H D key, third: B n H D value -> B r H D"
    )


def turned(x: Tensor, positions: Tensor, denom_dim: int) -> Tensor:
    """Vectors x (B, n, H, D), which a number turns that nobody explains."""
    speeds = 10000.0 ** (-2.0 * torch.arange(x.shape[-1] // 2) / denom_dim)
    angle = (positions[:, None] * speeds)[None, :, None]
    u, v = x.chunk(2, -1)
    return torch.cat((u * angle.cos() - v * angle.sin(), u * angle.sin() + v * angle.cos()), -1)


def shrunk_attention(x: Tensor, shrink: int) -> Tensor:
    return (x @ x.mT / shrink).softmax(-1) @ x


def of_axis_attention(x: Tensor, axis: int, other: int) -> Tensor:
    return (x @ x.transpose(axis, other)).softmax(-1) @ x


def at_attention(x: Tensor, pos: int) -> Tensor:
    return (x @ x.mT).softmax(-1) @ x + pos


def test_a_number_of_channels_that_no_name_explains_is_a_guess_that_is_told() -> None:
    told = adapted_as(turned, kind="rotary")
    assert told.line == "x: B n H D, positions: n, denom_dim = D -> x"
    assert "with denom_dim = D, which is a guess" in told.adapted
    assert any("denom_dim" in one for one in told.conditions)
    others = [one.words for one in choices(told, lambda line: adapted_as(turned, line))]
    assert [one for one in others if "holds with denom_dim = 16: say which is meant" in one]
    line = "x: B n H D, positions: n, denom_dim = 64 -> x"
    assert "which is a guess" not in adapted_as(turned, line).adapted


@pytest.mark.parametrize(
    ("code", "name"), [(shrunk_attention, "shrink"), (of_axis_attention, "axis")]
)
def test_a_number_that_no_name_explains_is_asked_for_and_is_no_array(
    code: Callable[..., Tensor], name: str
) -> None:
    with pytest.raises(NoAdapter) as refused:
        adapted_as(code)
    told = refused.value.on_command_line
    assert f"it needs '{name}', a whole number" in told
    assert f"{name} = ?" in told
    line = f"x: B n E, {name} = 1{', other = 2' * (name == 'axis')} -> B n E"
    assert adapted_as(code, line, kind="attention").line == line


def test_a_position_that_is_a_number_is_that_of_the_first_token() -> None:
    assert adapted_as(at_attention).line == "x: B n E, pos = p -> B n E"


def test_no_form_hands_an_array_to_a_number() -> None:
    require_numbers("x: B n E, dim = 1 -> x", frozenset({"dim"}))
    with pytest.raises(DoesNotFit, match="dim is annotated as a number"):
        require_numbers("x: B n E, dim: B n E tokens", frozenset({"dim"}))


class GivenRotations(nn.Module):
    """Causal attention that is given cosines and sines."""

    def __init__(self, dim: int = 8) -> None:
        super().__init__()
        self.qkv = nn.Linear(dim, 3 * dim)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)
        q, k = (a * cos + torch.cat((-a[..., 4:], a[..., :4]), -1) * sin for a in (q, k))
        return functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def test_the_mask_of_a_layer_that_is_given_rotations_is_read() -> None:
    made = adapted_as(GivenRotations, "x: B n E, cos: n D, sin: n D -> B n E", kind="attention")
    assert not_asked("causal", made) == "no causal mask is declared"
    assert is_to_be_read(made)
    read = with_mask(made, "attention:causal=true")
    assert (not_asked("causal", read), not_asked("past-is-used", read)) == ("", "")


class Masked(AttentionOfRows):
    """Attention of a mask that is the same for all rows."""

    def forward(  # type: ignore[override]
        self, x: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        scores = x @ x.mT if mask is None else x @ x.mT + mask
        return scores.softmax(-1) @ x


def test_why_no_other_mask_is_given_is_not_that_none_is_taken() -> None:
    made = adapted_as(Masked, "x: B n E, mask: n n add -> B n E", kind="attention")
    for law in ("hidden-keys-do-nothing", "mask-adds", "true-means-visible", "hidden-rows"):
        why = not_asked(law, made)
        assert why == "it is given a causal mask made here, one for all rows, and no other"
    assert not_asked("causal", made) == ""


def test_tables_that_are_returned_for_what_is_rotated_are_refused_by_their_shape() -> None:
    def tables(x: Tensor, seq_len: int) -> tuple[Tensor, Tensor]:
        return (torch.ones(1, 1, seq_len, x.shape[-1]),) * 2

    with pytest.raises(SignatureError, match=r"wanted a result for each row and token"):
        subject_of(tables, "x: B H n D, seq_len = n -> cos: 1 1 n D, sin: 1 1 n D", "rotary")


def test_the_example_of_a_class_builds_it_before_it_is_called() -> None:
    class Unfit(nn.Module):
        def forward(self, first: Any, second: Any) -> Any:
            raise RuntimeError(f"{first} and {second}")

    with pytest.raises(NoAdapter, match=r"made = Unfit\(\.\.\)  # with all") as caught:
        adapted_as(Unfit, kind="attention")
    assert "attend=lambda q, k, v, mask: made(q, k, v)" in str(caught.value)


def test_a_function_is_rebuilt_with_another_value_of_what_its_call_names() -> None:
    def turned(x: Tensor, positions: Tensor, theta: float = 100.0) -> Tensor:
        angle = positions[:, None, :, None] * theta ** (-torch.arange(0, 8, 2) / 8)
        a, b = x.chunk(2, -1)
        return torch.cat((a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()), -1)

    made = adapted_as(turned, "x: B H n D, positions: B n, theta = 10000 -> x", kind="rotary")
    (found,) = examine(made, laws=["follows-its-arguments"])
    assert found.verdict == "holds", found
