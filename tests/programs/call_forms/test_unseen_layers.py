"""What layers are handed beside their tokens: tables, lengths and masks, and what is said of it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from attnproof.programs.loading.names import role_of
from attnproof.programs.measure.examine import examine
from attnproof.programs.prove.proving import prove
from attnproof.programs.signatures.signature import SignatureError
from attnproof.programs.subject import adapted_as
from attnproof.programs.subjects import Attention


class RotaryTables(nn.Module):
    """Cosines and sines of a length, with axes of rows and heads in front."""

    inv_freq: Tensor

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.register_buffer("inv_freq", 10000.0 ** -(torch.arange(0, dim, 2) / dim))

    def forward(self, seq_len: int, device: str) -> tuple[Tensor, Tensor]:
        angles = torch.outer(torch.arange(seq_len, device=device), self.inv_freq)
        twice = torch.cat((angles, angles), -1)[None, None]
        return twice.cos(), twice.sin()


def precompute_freqs_cis(dim: int, end: int) -> Tensor:
    angles = torch.outer(torch.arange(end), 500000.0 ** -(torch.arange(0, dim, 2) / dim))
    return torch.polar(torch.ones_like(angles), angles)


def turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat((-b, a), -1) * sin


def apply_rotary(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Vectors (B, H, n, D) by tables with axes of one in front."""
    return turned(x, cos, sin)


class Attends(nn.Module):
    """Attention of two heads on tokens of 16 features."""

    def __init__(self, dim: int = 16, heads: int = 2) -> None:
        super().__init__()
        self.heads, self.head_dim = heads, dim // heads
        self.qkv = nn.Linear(dim, 3 * dim)

    def split(self, x: Tensor) -> tuple[Tensor, ...]:
        found = self.qkv(x).unflatten(-1, (3, self.heads, -1))
        return found.permute(2, 0, 3, 1, 4).unbind(0)  # type: ignore[no-any-return]

    def joined(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        out = scaled_dot_product_attention(q, k, v, is_causal=True)
        return out.transpose(1, 2).flatten(2)


class OfTwoTables(Attends):
    """Wants its tables in a tuple, by a name that says so and is not usual."""

    def forward(self, hidden_states: Tensor, rope_cos_sin: tuple[Tensor, Tensor]) -> Tensor:
        q, k, v = self.split(hidden_states)
        return self.joined(turned(q, *rope_cos_sin), turned(k, *rope_cos_sin), v)


def turned_behind(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate (B, H, n, D) by tables that broadcast against (B, n, H, D / 2)."""
    first, second = x.transpose(1, 2).chunk(2, -1)
    both = (first * cos + second * sin, second * cos - first * sin)
    return torch.cat(both, -1).transpose(1, 2)


class OfHalfTables(Attends):
    """Heads stand behind the tokens, beside tables with a number for each pair; and a cache."""

    def forward(self, x: Tensor, cos_sin: tuple[Tensor, Tensor], kv_cache: Any) -> Tensor:
        q, k, v = self.split(x)
        cos, sin = cos_sin
        q, k = turned_behind(q, cos, sin), turned_behind(k, cos, sin)
        if kv_cache is not None:
            k, v = kv_cache.insert(k, v)
        return self.joined(q, k, v)


class OfAPart(Attends):
    """Rotates the last four channels of a head, of which the names of latent attention tell."""

    def __init__(self) -> None:
        super().__init__()
        self.qk_rope_dim = 4

    def turn(self, x: Tensor, freqs_cis: Tensor) -> Tensor:
        first = self.head_dim - self.qk_rope_dim
        plain, rest = x[..., :first], x[..., first:]
        pairs = torch.view_as_complex(rest.reshape(*rest.shape[:-1], -1, 2).contiguous())
        return torch.cat((plain, torch.view_as_real(pairs * freqs_cis).flatten(-2)), -1)

    def forward(self, x: Tensor, freqs_cis: Tensor) -> Tensor:
        q, k, v = self.split(x)
        return self.joined(self.turn(q, freqs_cis), self.turn(k, freqs_cis), v)


MADE = {
    OfTwoTables: (
        "hidden_states: B n E, rope_cos_sin = (cos: 1 1 n D, sin: 1 1 n D) -> B n E; cos, sin "
        'from RotaryTables(seq_len = m, device = "cpu" -> 1 1 m D, 1 1 m D)'
    ),
    OfHalfTables: (
        "x: B n E, kv_cache = None, cos_sin = (cos: 1 n 1 D/2, sin: 1 n 1 D/2) -> B n E"
    ),
    OfAPart: (
        "x: B n E, freqs_cis: n D/2 cis -> B n E; freqs_cis from "
        "precompute_freqs_cis(dim = D, end = m -> m D/2)"
    ),
}


@pytest.mark.parametrize("code", MADE)
def test_the_tables_of_a_layer_are_those_that_its_file_makes(code: type[nn.Module]) -> None:
    assert adapted_as(code).line == MADE[code]


def test_one_table_is_no_two_of_them() -> None:
    assert role_of("rope_cos_sin") == "pair"
    assert role_of("cos_sin_loss") == ""
    told = "hidden_states: B n E, rope_cos_sin: n D -> B n E"
    with pytest.raises(SignatureError):
        adapted_as(OfTwoTables, told)


def test_rows_that_are_read_at_positions_may_stand_behind_axes_of_one() -> None:
    """They are made by the file, and were not read where a reshape takes those axes away."""
    line = (
        "x: B H n D, cos: 1 1 n D, sin: 1 1 n D -> x; cos, sin from "
        'RotaryTables(seq_len = m, device = "cpu" -> 1 1 m D, 1 1 m D)'
    )
    found = prove(adapted_as(apply_rotary, line), ("relative",))
    assert [one.verdict for one in found.findings] == ["holds"]


class OfKeysFirst(Attends):
    """Its first map is of a head, and it fails with any tokens."""

    def __init__(self, dim: int, dim_head: int = 8) -> None:
        super().__init__(dim)
        self.by_head = nn.Linear(dim_head, 1)
        self.to_qkv = self._modules.pop("qkv")

    def forward(self, x: Tensor) -> Tensor:
        raise ValueError(f"there is no such cache for {x.shape[-1]} features")


def test_a_refusal_tells_what_happened_with_the_features_it_was_built_for() -> None:
    with pytest.raises(SignatureError, match="there is no such cache for 16 features"):
        adapted_as(OfKeysFirst, "x: B n E -> B n E")
    with pytest.raises(SignatureError, match="there is no such cache for 24 features"):
        adapted_as(OfKeysFirst, "x: B n E -> B n E", settings={"dim": 24})


class PaddedByLengths(Attends):
    """Attention that makes its mask of the number of tokens in each row."""

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        q, k, v = self.split(x)
        keep = torch.arange(x.shape[1]) < lengths[:, None, None, None]
        return scaled_dot_product_attention(q, k, v, keep).transpose(1, 2).flatten(2)


@pytest.mark.parametrize("kind", ["attention", "layer"])
def test_a_proof_of_rows_that_are_full_says_so(kind: str) -> None:
    """Of rows that are shorter it does not hold: a token that is hidden comes to be seen."""
    found = prove(adapted_as(PaddedByLengths, kind=kind), ("permutation",))
    (one,) = found.findings
    assert one.verdict == "holds"
    assert "lengths says that no row is padded" in [told.text for told in one.assuming]
    code, x = PaddedByLengths().eval(), torch.randn(1, 3, 16)
    swapped, short = torch.tensor([0, 2, 1]), torch.tensor([2])
    assert not torch.allclose(code(x, short)[:, swapped], code(x[:, swapped], short))


class ReadsHidden(Attends):
    """Tokens read a context whose mask is required, and one another where it hides a key."""

    def forward(self, x: Tensor, context: Tensor, context_mask: Tensor) -> Tensor:
        (q, _, _), (_, k, v) = self.split(x), self.split(context)
        q = torch.where(context_mask.all(), q, q.cumsum(2))
        out = scaled_dot_product_attention(q, k, v, context_mask[:, None, None])
        return out.transpose(1, 2).flatten(2)


def test_a_mask_of_a_context_that_is_given_is_not_said_to_be_left_out() -> None:
    line = "x: B r E, context: B n E, context_mask: B n keep -> B r E"
    (one,) = prove(adapted_as(ReadsHidden, line), ("permutation",)).findings
    assert one.verdict == "holds"
    said = [told.text for told in one.assuming]
    assert "context_mask shows every key" in said
    assert "no mask is given" not in said


class ReadsHiddenOfTwo(ReadsHidden):
    """The same, which takes a mask of its own tokens as well."""

    def forward(
        self, x: Tensor, context: Tensor, context_mask: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        out = super().forward(x, context, context_mask)
        return out if mask is None else out.cumsum(1)


@pytest.mark.parametrize("kind", ["attention", "layer"])
def test_of_two_masks_each_is_told(kind: str) -> None:
    line = "x: B r E, context: B n E, context_mask: B n keep, mask: B r keep -> B r E"
    (one,) = prove(adapted_as(ReadsHiddenOfTwo, line, kind=kind), ("permutation",)).findings
    assert one.verdict == "holds"
    said = [told.text for told in one.assuming]
    assert {"context_mask shows every key", "nothing is given for mask"} <= {*said}
    assert "no mask is given" not in said


class Summing(nn.Module):
    """No attention: adds the mean, or a sum that has an order where it is given a mask."""

    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(16, 16)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        y: Tensor = self.out(x)
        return y + (y.mean(1, keepdim=True) if mask is None else y.cumsum(1))


class SummingSeen(Summing):
    """The same where a key is hidden, of a mask that is required."""

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:  # type: ignore[override]
        y = self.out(x)
        return torch.where(mask.all(), y + y.mean(1, keepdim=True), y.cumsum(1))


@pytest.mark.parametrize(
    ("code", "said"), [(Summing, "no mask is given"), (SummingSeen, "mask shows every key")]
)
def test_a_proof_of_a_layer_says_what_mask_it_is_of(code: type[nn.Module], said: str) -> None:
    line = "x: B n E, mask: B n keep -> B n E"
    (one,) = prove(adapted_as(code, line, kind="layer"), ("permutation",)).findings
    assert one.verdict == "holds"
    assert said in [told.text for told in one.assuming]


class Modulated(nn.Module):
    """A sum over tokens, shifted by a vector that is to be the same for all of them."""

    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(16, 16)

    def forward(self, x: Tensor, emb: Tensor) -> Tensor:
        y: Tensor = self.out(x)
        return y + y.mean(1, keepdim=True) + emb


class Reading(Modulated):
    """Tokens that each read the mean of a context."""

    def forward(self, x: Tensor, context: Tensor) -> Tensor:
        y: Tensor = self.out(x)
        return y + context.mean(1, keepdim=True)


@pytest.mark.parametrize(
    ("code", "line", "said"),
    [
        (
            Modulated,
            "x: B n E, emb: B n E constant -> B n E",
            "emb is made here, the same for all tokens",
        ),
        (
            Reading,
            "x: B r E, context: B n E tokens -> B r E",
            "keys and values come from a context that is drawn here",
        ),
    ],
)
def test_what_is_made_for_a_layer_stands_on_the_line_of_its_proof(
    code: type[nn.Module], line: str, said: str
) -> None:
    (one,) = prove(adapted_as(code, line, kind="layer"), ("permutation",)).findings
    assert one.verdict == "holds"
    assert said in [told.text for told in one.assuming]


class Needs(nn.Module):
    """Attention that raises without its mask; a quarter of its heads are heads of keys."""

    def __init__(self, dim: int, n_head: int) -> None:
        super().__init__()
        self.heads, self.groups = n_head, n_head // 4
        self.each = self.heads // self.groups
        self.q, self.kv = nn.Linear(dim, dim), nn.Linear(dim, 2 * dim // self.each)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        q = self.q(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        kv = self.kv(x).unflatten(-1, (2 * self.groups, -1)).transpose(1, 2)
        k, v = kv.repeat_interleave(self.each, 1).chunk(2, 1)
        assert isinstance(mask, Tensor)
        scores = (q @ k.mT).masked_fill(~mask[:, None, None], -torch.inf)
        mixed: Tensor = scores.softmax(-1) @ v
        return mixed.transpose(1, 2).flatten(2)


def test_a_mask_without_which_all_calls_raise_is_given() -> None:
    code = adapted_as(Needs, name="Attention")
    assert code.line == "x: B n E, mask: B n keep -> B n E"
    assert code.given == {"full mask": "mask shows every key"}
    (found,) = prove(code, ("permutation",)).findings
    assert "mask shows every key" in [one.text for one in found.assuming]


def test_heads_are_more_where_few_have_no_heads_of_keys() -> None:
    code = adapted_as(Needs, name="Attention")
    assert isinstance(code, Attention)
    assert code.module is not None
    assert code.module.heads == 4


class Gated(nn.Module):
    """Attention whose mask is added, and whose scores are multiplied by what all tokens are."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.inward, self.gate = nn.Linear(dim, 3 * dim), nn.Linear(dim, 1)

    def forward(self, x: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        q, k, v = self.inward(x).chunk(3, -1)
        scores = q @ k.mT * self.gate(x.mean(1, keepdim=True)).sigmoid()
        if attention_mask is not None:
            scores = scores + attention_mask
        mixed: Tensor = scores.softmax(-1) @ v
        return mixed


def test_a_mask_through_which_something_comes_is_added_where_less_comes_through_so() -> None:
    code = adapted_as(Gated, name="Attention")
    assert code.line.endswith("attention_mask: B 1 n add -> B n E")
    (found,) = examine(code, laws=("hidden-keys-do-nothing",))
    assert found.verdict == "broken"


class KeysFirst(nn.Module):
    """Attention whose keys and values stand before what reads them."""

    def __init__(self, kv_dim: int, q_dim: int) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(w, q_dim) for w in (q_dim, kv_dim, kv_dim))

    def forward(self, inputs_kv: Tensor, inputs_q: Tensor) -> Tensor:
        mixed: Tensor = (self.q(inputs_q) @ self.k(inputs_kv).mT).softmax(-1) @ self.v(inputs_kv)
        return mixed


def test_what_is_read_may_stand_before_what_reads() -> None:
    code = adapted_as(KeysFirst, name="Attention")
    assert code.line == "inputs_q: B n E tokens, inputs_kv: B n E tokens -> B n E"


class Flat(nn.Module):
    """A layer of which the rows are laid in one axis by ``view``, as those of GPT-2 are."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(dim, 3 * dim) / dim**0.5)

    def forward(self, x: Tensor) -> Tensor:
        flat = x.view(-1, x.size(-1)) @ self.weight
        q, k, v = flat.view(*x.shape[:2], -1).chunk(3, -1)
        return torch.matmul((q @ k.mT).softmax(-1), v)


def test_what_refuses_parts_of_other_arrays_is_given_tokens_of_its_own() -> None:
    code = adapted_as(Flat, name="Attention")
    assert code.line == "x: B n E -> B n E"


class FlatSteps(nn.Module):
    """The same with a cache that is given back."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.flat = Flat(dim)

    def forward(self, x: Tensor, past: Tensor | None = None) -> tuple[Tensor, Tensor]:
        both = x if past is None else torch.cat((past, x), 1)
        assert x.view(-1, x.size(-1)).shape[1] == both.shape[2]
        seen = torch.ones(x.shape[1], both.shape[1], dtype=torch.bool)
        q, k, v = (both @ self.flat.weight).chunk(3, -1)
        scores = q[:, -x.shape[1] :] @ k.mT
        hidden = ~seen.tril(both.shape[1] - x.shape[1])
        return torch.matmul(scores.masked_fill(hidden, -torch.inf).softmax(-1), v), both


def test_its_steps_are_parts_of_its_own_as_well() -> None:
    line = "x: B n E -> B n E, _; step: x: B n E, past -> B n E, past"
    code = adapted_as(FlatSteps, line, name="Attention", kind="attention")
    assert isinstance(code, Attention)
    assert code.step is not None
    (found,) = examine(code, laws=("step-by-step",))
    assert found.verdict == "holds"


class Latents(Attends):
    """Latents that read other tokens, and themselves too if ``own``."""

    def __init__(self, dim: int = 16, heads: int = 2, *, own: bool = False) -> None:
        super().__init__(dim, heads)
        self.own = own

    def forward(self, x: Tensor, latents: Tensor) -> Tensor:
        read = torch.cat((x, latents), 1) if self.own else x
        q, (_, k, v) = self.split(latents)[0], self.split(read)
        return scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)


class OfLatents(Attends):
    """Queries that read latents, which stand first."""

    def forward(self, latents: Tensor, queries: Tensor) -> Tensor:
        q, (_, k, v) = self.split(queries)[0], self.split(latents)
        return scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)


class AddedLatents(Attends):
    """Latents that are added to tokens, one to each."""

    def forward(self, x: Tensor, latents: Tensor) -> Tensor:
        q, k, v = self.split(x + latents)
        return scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)


@pytest.mark.parametrize(
    ("code", "line"),
    [
        (Latents, "x: B n E tokens, latents: B r E tokens -> B r E"),
        (lambda: Latents(own=True), "x: B n E tokens, latents: B r E tokens -> B r E"),
        (OfLatents, "queries: B r E, latents: B n E tokens -> B r E"),
        (AddedLatents, "x: B n E, latents: B n E tokens -> B n E"),
    ],
)
def test_latents_are_as_many_as_they_like(code: Any, line: str) -> None:
    made = code() if not isinstance(code, type) else code
    found = adapted_as(made, kind="attention")
    assert found.line.replace(" tokens", "") == line.replace(" tokens", "")


class SetAttention(nn.Module):
    """Widths of queries, keys and values by capital letters, as in Set Transformer."""

    def __init__(self, dim_Q: int, dim_K: int, dim_V: int) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(n, dim_V) for n in (dim_Q, dim_K, dim_K))

    def forward(self, Q: Tensor, K: Tensor) -> Tensor:
        return self.q(Q) + (self.q(Q) @ self.k(K).mT).softmax(-1) @ self.v(K)  # type: ignore[no-any-return]


class PairAttention(nn.Module):
    """Numbers of channels and heads as AlphaFold names them."""

    def __init__(self, c_q: int, c_k: int, c_v: int, c_hidden: int, no_heads: int) -> None:
        super().__init__()
        self.heads, wide = no_heads, c_hidden * no_heads
        self.q, self.k, self.v = (nn.Linear(n, wide) for n in (c_q, c_k, c_v))
        self.out = nn.Linear(wide, c_q)

    def forward(self, q_x: Tensor, kv_x: Tensor) -> Tensor:
        each = ((self.q, q_x), (self.k, kv_x), (self.v, kv_x))
        q, k, v = (f(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for f, x in each)
        found: Tensor = self.out(scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return found


class DecayingAttention(nn.Module):
    """Retention, which forgets by a factor that has no default."""

    def __init__(self, hidden_size: int, gamma) -> None:  # type: ignore[no-untyped-def]
        super().__init__()
        self.gamma, self.qkv = gamma, nn.Linear(hidden_size, 3 * hidden_size)

    def forward(self, x: Tensor) -> Tensor:
        (q, k, v), at = self.qkv(x).chunk(3, -1), torch.arange(x.shape[1])
        apart = at[:, None] - at
        seen: Tensor = (q @ k.mT * self.gamma**apart * (apart >= 0)) @ v
        return seen


class OffsetsAttention(nn.Module):
    """Keys made of encodings of the offsets, tokens first, as in Transformer-XL."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.qkv, self.of_offsets = nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)

    def forward(self, w: Tensor, r: Tensor) -> Tensor:
        q, k, v = self.qkv(w).chunk(3, -1)
        added = torch.einsum("ibd,jd->ijb", q, self.of_offsets(r.flatten(0, 1)))
        padded = torch.cat((torch.zeros_like(added[:, :1]), added), 1)
        shifted = padded.view(added.shape[1] + 1, *added.shape[::2])[1:].view_as(added)
        scores = torch.einsum("ibd,jbd->ijb", q, k) + shifted
        return torch.einsum("ijb,jbd->ibd", scores.softmax(1), v)


@pytest.mark.parametrize(
    ("code", "line"),
    [
        (SetAttention, "Q: B n E, K: B n E -> B n E"),
        (PairAttention, "q_x: B n E, kv_x: B n E -> B n E"),
        (DecayingAttention, "x: B n E -> B n E"),
        (OffsetsAttention, "w: n B E, r: n 1 E offsets -> n B E"),
    ],
)
def test_names_of_papers_are_understood(code: Any, line: str) -> None:
    torch.manual_seed(0)
    found = adapted_as(code)
    assert found.kind == "attention"
    assert found.line.replace(" tokens", "") == line
