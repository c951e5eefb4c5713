"""What one line of the language says of code that takes more than tokens, or in other axes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.applicable_laws import not_asked
from attnproof.programs.calls.spelling import in_letters
from attnproof.programs.declarations import DeclaredAttention
from attnproof.programs.loading.names import parameters
from attnproof.programs.loading.program import Program
from attnproof.programs.measure.examine import examine
from attnproof.programs.no_adapter import NoAdapter
from attnproof.programs.signatures.grammar import parse
from attnproof.programs.signatures.signature import Axis, Same, SignatureError
from attnproof.programs.subject import adapted_as, subject_of
from tests.programs.calls.test_calls import angles_of, halves, neighbours

WIDTH = 8


def table(n: int, width: int = WIDTH) -> Tensor:
    return torch.cat(2 * (angles_of(torch.arange(n), width),), -1)


def by_one_array(x: Tensor, sinu_pos: Tensor) -> Tensor:
    sin, cos = sinu_pos.chunk(2, -1)
    return x * torch.cat((cos, cos), -1) + halves(x) * torch.cat((sin, sin), -1)


def by_pair(freqs: Tensor, t: Tensor) -> Tensor:
    return neighbours(t, freqs[0], freqs[1])


def with_scale(x: Tensor, freqs: Tensor, scale: Tensor) -> Tensor:
    return (x * freqs.cos() + halves(x) * freqs.sin()) * scale[..., None, None]


class OfLength(nn.Module):
    """Angles of one length and width, kept after the first call, and a scale beside them."""

    def __init__(self, dim: int, width: int) -> None:
        super().__init__()
        self.dim, self.width = dim, width
        self.kept: Tensor | None = None

    def forward(self) -> tuple[Tensor, Tensor]:
        if self.kept is None:
            self.kept = table(self.width, self.dim)
        return self.kept, torch.ones(1)


def rotated(t: Tensor, pos: Tensor) -> Tensor:
    return t * pos.cos() + halves(t) * pos.sin()


class OfGrid(nn.Module):
    """Cosines and sines of the places of a grid, half of the channels for each side."""

    def forward(self, h: int, w: int) -> tuple[Tensor, Tensor]:
        rows, columns = (table(n, WIDTH // 2)[:, : WIDTH // 4] for n in (h, w))
        found = torch.cat((rows[:, None].expand(h, w, -1), columns.expand(h, w, -1)), -1)
        return found.reshape(h * w, -1).cos(), found.reshape(h * w, -1).sin()


def by_pairs(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    u, v = x.chunk(2, -1)
    return torch.cat((u * cos - v * sin, u * sin + v * cos), -1)


def in_groups(x: Tensor, seq_id: Tensor) -> Tensor:
    assert x.ndim == 5
    assert x.shape[1] in (1, 2)
    return rotated(x, torch.cat(2 * (angles_of(seq_id, x.shape[-1]),), -1))


OF_LENGTH = (
    "-> pos: n D, _; then rotated(t: B H n D, pos: n D angles -> t); built with dim = D, width = n"
)
OF_GRID = (
    "h = h, w = w -> cos: (h w) D/2, sin: (h w) D/2; "
    "then by_pairs(x: B H (h w) D, cos: (h w) D/2, sin: (h w) D/2 -> x)"
)


@pytest.mark.parametrize(
    ("code", "call"),
    [
        (by_one_array, "x: B H n D, sinu_pos: n D -> x"),
        (by_one_array, "x: B H n D, sinu_pos: 1 n D sin_cos -> x"),
        (by_pair, "freqs: 2 n D, t: B H n D -> t"),
        (with_scale, "x: B H n D, freqs: n D angles, scale: 1 -> x"),
        (in_groups, "x: B G H n D, seq_id: B 1 1 n positions -> x"),
        (in_groups, "x: B 2 2 n 16, seq_id: B 1 1 n positions -> x"),
        (OfLength, OF_LENGTH),
        (OfGrid, OF_GRID),
    ],
)
def test_tables_in_any_form_rotate_by_offsets(code: Any, call: str) -> None:
    found: Any = subject_of(code, call)
    heads = 4 if code is in_groups else 2
    q, k = torch.randn(2, 1, heads, 1, found.width, generator=torch.Generator().manual_seed(0))

    def score(i: int, j: int) -> Any:
        at = torch.tensor([[[i, 2]]]), torch.tensor([[[j, 1]]])
        first, second = at if found.axes else (at[0][..., 0], at[1][..., 0])
        return (found.rotate(q, first) * found.rotate_key(k, second)).sum(-1)

    assert torch.allclose(score(5, 2), score(9, 6), atol=1e-4)
    assert not torch.allclose(score(5, 2), score(9, 2), atol=1e-3)
    start = torch.zeros(1, 1, *([2] if found.axes else []), dtype=torch.long)
    assert torch.allclose(found.rotate(q, start), q, atol=1e-6)


def test_sines_where_cosines_are_wanted_do_not_start_as_they_are() -> None:
    found: Any = subject_of(by_one_array, "x: B H n D, sinu_pos: n D cos_sin -> x")
    x = torch.randn(1, 2, 1, found.width)
    assert not torch.allclose(found.rotate(x, torch.zeros(1, 1, dtype=torch.long)), x, atol=1e-2)


def test_what_an_array_beside_vectors_is_must_be_said() -> None:
    def code(x: Tensor, at: Tensor, more: Tensor) -> Tensor:
        return rotated(x, at[:, None] * more)

    with pytest.raises(SignatureError, match="wanted what more is"):
        subject_of(code, "x: B H n D, at: n positions, more: n D -> x", "rotary")


class Windows(nn.Module):
    """Attention in windows of 9, which a mask of windows (W, 9, 9) is added to."""

    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(16, 16)
        self.bias = nn.Parameter(torch.randn(9, 9))

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        assert x.shape[1] == 9
        scores = x @ x.mT / 4 + self.bias
        if mask is not None:
            scores = (scores.reshape(-1, *mask.shape) + mask).flatten(0, 1)
        out: Tensor = self.out(scores.softmax(-1) @ x)
        return out


def test_tokens_of_one_number_stand_first_of_these() -> None:
    code = Windows()
    told: Any = subject_of(code, "x: B 9 E, mask = None -> B 9 E", "attention")
    windows: Any = subject_of(code, "x: (B W) 9 E, mask: W 9 9 add -> (B W) 9 E", "attention")
    x = torch.randn(2, 5, 16)
    with torch.no_grad():
        out = told.layer(x)
        assert out.shape == x.shape
        assert torch.allclose(windows.layer(x.repeat(1, 1, 6)), out.repeat(1, 1, 6), atol=1e-5)
        assert windows.embed == 6 * 16
        assert "padded with zeros to 9" in told.adapted
        with pytest.raises(SignatureError, match="at most 9 tokens"):
            told.layer(torch.randn(1, 10, 16))


class OfPairs(nn.Module):
    """Attention of which scores have a bias by pairs."""

    def __init__(self) -> None:
        super().__init__()
        self.by = nn.Linear(4, 1)

    def forward(self, s: Tensor, z: Tensor, mask: Tensor) -> Tensor:
        scores: Tensor = s @ s.mT + self.by(z)[..., 0]
        return scores.masked_fill(mask[:, None] == 0, -1e6).softmax(-1) @ s


def test_pairs_beside_tokens_are_the_same_for_each() -> None:
    found: Any = subject_of(OfPairs, "s: B n E, z: B n n 4, mask: B n ones -> B n E")
    x, order = torch.randn(1, 5, 16), torch.tensor([3, 1, 4, 0, 2])
    with torch.no_grad():
        assert torch.allclose(found.layer(x)[:, order], found.layer(x[:, order]), atol=1e-5)
    with pytest.raises(SignatureError, match="wanted what z is"):
        subject_of(OfPairs, "s: B n E, z: B n 4, mask: B n ones -> B n E")


class HandsOn(nn.Module):
    """A layer that takes a context."""

    def forward(self, x: Tensor, context: Tensor | None = None, mask: Any = None) -> Tensor:
        context = x if context is None else context
        scores = x @ context.mT
        if mask is not None:
            scores = scores.masked_fill(~mask[:, None], -1e9)
        return scores.softmax(-1) @ context


class Alone(HandsOn):
    """The same, which hands on all that it is given."""

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        return super().forward(*args, **kwargs)


def test_what_a_method_hands_on_is_what_the_class_above_takes() -> None:
    found: Any = subject_of(Alone(), "x: B n E, mask: B n keep -> B n E", embed=16)
    x = torch.randn(1, 3, 16)
    hidden = found.hide(x, torch.tensor([[True, True, False]]))[:, :2]
    assert torch.allclose(hidden, found.layer(x[:, :2]), atol=1e-6)
    across = subject_of(Alone(), "x: B r E, context: B n E -> B r E", "attention", embed=16)
    assert across.given["context"]
    with pytest.raises(SignatureError, match="argument 'more'"):
        subject_of(Alone(), "x: B n E, more = 1 -> B n E")


class Apart(HandsOn):
    """What takes more than it says, and does not hand it on."""

    def forward(self, query: Tensor, *args: Any, **kwargs: Any) -> Tensor:  # type: ignore[override]
        assert not args
        assert not kwargs
        return (query @ query.mT).softmax(-1) @ query


def test_what_is_not_handed_on_is_no_parameter() -> None:
    assert [one.name for one in parameters(Apart())] == ["query"]
    assert [one.name for one in parameters(Alone())] == ["x", "context", "mask"]


def by_documents(sample_id: Tensor, time_id: Tensor) -> Tensor:
    same = sample_id[:, :, None] == sample_id[:, None]
    return same & (time_id[:, :, None] >= time_id[:, None])


def slopes(query_id: Tensor, kv_id: Tensor) -> Tensor:
    off = kv_id[:, None, None, None] - query_id[:, None, None, :, None]
    return off * torch.tensor([0.5, 0.25, 0.125, 0.0625]).view(2, 2, 1, 1)


def of_lengths(lengths: Tensor, max_len: int) -> Tensor:
    return torch.arange(max_len) < lengths[:, None]


def of_windows(dims: tuple[int, int]) -> Tensor:
    at = torch.arange(dims[0] * dims[1])
    return torch.where(at[:, None] // 2 == at // 2, 0.0, -100.0)[None].expand(3, 4, 4)


def test_ids_are_of_one_document_and_positions_run() -> None:
    found: Any = subject_of(
        by_documents, "sample_id: B n ids, time_id: B n positions -> B n n keep"
    )
    assert torch.equal(found.mask(4, 4), torch.ones(4, 4).tril().bool())
    assert torch.equal(found.mask(2, 4), torch.ones(4, 4).tril().bool()[2:])


def test_biases_of_heads_on_two_axes_are_of_all_heads() -> None:
    call = "query_id: B r positions, kv_id: B n positions -> B G H r n"
    for one in (call, call.replace("G H", "2 2")):
        found: Any = subject_of(slopes, one)
        assert found.heads == 4
        assert torch.equal(found.bias(1, 3)[1, 0], torch.tensor([-0.5, -0.25, 0.0]))


def test_rows_of_full_length_show_all() -> None:
    found: Any = subject_of(of_lengths, "lengths: B lengths, max_len = n -> B n keep")
    assert bool(found.mask(2, 5).all())


def test_a_mask_of_one_number_of_tokens_is_read_as_far_as_it_goes() -> None:
    found: Any = subject_of(of_windows, "dims = (2, 2) -> 3 4 4 add")
    assert found.mask(3, 3).tolist() == [[0.0, 0.0, -100.0], [0.0, 0.0, -100.0], [-100, -100, 0]]
    with pytest.raises(SignatureError, match="at most 4 keys"):
        found.mask(5, 5)


def test_two_axes_of_heads_are_written_as_they_are_read() -> None:
    assert str(parse("q: B G H n D -> q")) == "q: B G H n D -> q"
    call, sizes = in_letters(parse("x: B 3 n 16 -> x"))
    assert str(call) == "x: B H n D -> x"
    assert sizes == {"heads": 3, "width": 16}
    call, sizes = in_letters(parse("x: B n 3 16 -> x"))
    assert (str(call), sizes) == ("x: B n H D -> x", {"heads": 3, "width": 16})
    told = parse("x: B n (2 n) E -> x")
    assert in_letters(told) == (told, {})


class Rotating:
    """It cannot be called, and has a method that can."""

    def __init__(self, dim: int) -> None:
        self.dim = dim

    def rotated(self, q: Tensor, positions: Tensor) -> Tensor:
        angles = positions[:, None, :, None] * 0.5 ** torch.arange(self.dim // 2)
        left, right = q.chunk(2, -1)
        cos, sin = angles.cos(), angles.sin()
        return torch.cat((left * cos - right * sin, right * cos + left * sin), -1)


def test_a_method_of_what_cannot_be_called_is_told_by_its_name() -> None:
    line = "q: B H n D, positions: B n -> q"
    told = adapted_as(Rotating, f"{line}; method rotated; built with dim = D")
    assert told.kind == "rotary"
    with pytest.raises(SignatureError, match="wanted method NAME"):
        adapted_as(Rotating, f"{line}; built with dim = D")
    with pytest.raises(NoAdapter, match="it has dim, rotated"):
        adapted_as(Rotating)


def test_a_number_is_that_of_features_in_a_table_that_is_made_of_positions() -> None:
    call, sizes = in_letters(parse("times: B n positions -> B n 8"))
    assert (str(call), sizes) == ("times: B n positions -> B n E", {"embed": 8})
    call, sizes = in_letters(parse("times: B n positions -> B n 2"))
    assert (str(call), sizes) == ("times: B n positions -> B n E", {"embed": 2})
    for line in ("times: B n positions -> B n 1", "times: B n positions -> B n E", "m = n -> n 8"):
        assert in_letters(parse(line)) == (parse(line), {})


def test_the_one_array_with_features_is_tokens_whatever_it_is_called() -> None:
    (sessions,) = in_letters(parse("sessions: B n E -> B n E"))[0].arrays
    assert sessions.kind == "tokens"
    for line in ("a: B n E, b: B n E -> B n E", "x: B n E, sessions: B n E -> B n E"):
        assert in_letters(parse(line))[0] == parse(line)


def by_matrices(q: Tensor, k: Tensor, v: Tensor, pe: Tensor) -> Tensor:
    """Attention of vectors that matrices of 2 by 2 rotate; heads and features come back as one."""

    def turned(x: Tensor) -> Tensor:
        pairs = x.reshape(*x.shape[:-1], -1, 1, 2)
        return (pe[..., 0] * pairs[..., 0] + pe[..., 1] * pairs[..., 1]).flatten(-2)

    found = nn.functional.scaled_dot_product_attention(turned(q), turned(k), v)
    return found.transpose(1, 2).flatten(2)


def by_matrices_of_all(q: Tensor, k: Tensor, v: Tensor, pe: Tensor) -> Tensor:
    """The same, which rotates values as well."""
    pairs = v.reshape(*v.shape[:-1], -1, 1, 2)
    turned = (pe[..., 0] * pairs[..., 0] + pe[..., 1] * pairs[..., 1]).flatten(-2)
    return by_matrices(q, k, turned, pe)


def by_cosines(q: Tensor, k: Tensor, v: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    scores = (q * cos + halves(q) * sin) @ (k * cos + halves(k) * sin).mT
    return scores.softmax(-1) @ v


def by_neighbours(q: Tensor, k: Tensor, v: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    return (neighbours(q, cos, sin) @ neighbours(k, cos, sin).mT).softmax(-1) @ v


def by_tuples(q: Tensor, k: Tensor, v: Tensor, tables: Any) -> Tensor:
    """The same as by_cosines: a number that is added to all scores of a head changes nothing."""
    (cos, sin), shift = tables
    scores = (q * cos + halves(q) * sin) @ (k * cos + halves(k) * sin).mT
    found: Tensor = (scores + shift[:, None, None]).softmax(-1) @ v
    return found


def by_positions(q: Tensor, k: Tensor, v: Tensor, positions: Tensor) -> Tensor:
    angles = torch.cat(2 * (angles_of(positions, q.shape[-1]),), -1)[:, None]
    return by_cosines(q, k, v, angles.cos(), angles.sin())


def with_sinks(Q: Tensor, K: Tensor, V: Tensor, S: Tensor, sm_scale: float) -> Tensor:
    """Causal attention of grouped heads, each with a score that no key has."""
    n, groups, many, _ = Q.shape
    scores = torch.einsum("qhmd,khd->hmqk", Q, K) * sm_scale
    scores = scores + torch.full((n, n), -torch.inf).triu(1)
    sinks = S.reshape(groups, many, 1, 1).expand(-1, -1, n, -1)
    weights = torch.cat((scores, sinks), -1).softmax(-1)[..., :-1]
    return torch.einsum("hmqk,khd->qhmd", weights, V).flatten(1)


def with_sinks_of_tokens(Q: Tensor, K: Tensor, V: Tensor, S: Tensor, sm_scale: float) -> Tensor:
    """The same, whose sink is the score of the next key."""
    later = torch.einsum("qhmd,qhd->qhm", Q, K.roll(-1, 0)).mean(0)
    return with_sinks(Q, K, V, S + later, sm_scale)


QKV = "q: B H n D, k: B H n D, v: B H n D"
MATRICES = f"{QKV}, pe: 1 1 n D/2 2 2 matrices -> B n (H D)"
SINKS = "Q: n G H D, K: n G D, V: n G D, S: G H constant, sm_scale: scale -> n (H D)"


@pytest.mark.parametrize(
    ("code", "line", "condition"),
    [
        (by_matrices, MATRICES, "table of each pair, base 10000, made here"),
        (by_cosines, f"{QKV}, cos: n D, sin: n D -> B H n D", "halves alike"),
        (by_neighbours, f"{QKV}, cos: n D, sin: n D -> B H n D", "neighbours alike"),
        (
            by_tuples,
            f"{QKV}, tables = ((cos: n D, sin: n D), shift: H constant) -> B H n D",
            "halves alike",
        ),
        (by_positions, f"{QKV}, positions: B n -> B H n D", "positions count from 0"),
    ],
)
def test_attention_is_given_what_rotates_queries_and_keys(
    code: Any, line: str, condition: str
) -> None:
    found: Any = adapted_as(code, line)
    assert condition in " ".join(found.conditions)
    assert not_asked("order-of-keys", found)
    q, k, v = (torch.randn(2, 4, 5, 8) for _ in range(3))
    angles = torch.arange(5)[:, None] * 10000.0 ** (-torch.arange(0, 8, 2) / 8)
    if code in (by_matrices, by_neighbours):
        cos, sin = (f(angles).repeat_interleave(2, -1) for f in (torch.cos, torch.sin))
        turned = [neighbours(x, cos, sin) for x in (q, k)]
    else:
        cos, sin = (f(torch.cat((angles, angles), -1)) for f in (torch.cos, torch.sin))
        turned = [x * cos + halves(x) * sin for x in (q, k)]
    scale = 8**-0.5 if code is by_matrices else 1.0
    told = nn.functional.scaled_dot_product_attention(turned[0], turned[1], v, scale=scale)
    assert torch.allclose(found.attend(q, k, v), told, atol=1e-5)


def test_what_is_wrong_with_attention_that_is_given_tables_is_seen() -> None:
    code: Any
    for code, verdict in ((by_matrices, "holds"), (by_matrices_of_all, "broken")):
        found = adapted_as(code, MATRICES, declared=DeclaredAttention())
        assert [one.verdict for one in examine(found, laws=("rows-sum-to-one",))] == [verdict]
    for code, verdict in ((with_sinks, "holds"), (with_sinks_of_tokens, "broken")):
        found = adapted_as(code, SINKS, declared=DeclaredAttention(causal=True))
        assert "S is the same for each row, token and pair" in found.conditions
        assert [one.verdict for one in examine(found, laws=("causal",))] == [verdict]


@pytest.mark.parametrize(
    ("code", "line", "wanted"),
    [
        (by_matrices, MATRICES.replace("D/2 2 2 matrices", "D"), "wanted what pe is"),
        (by_matrices, MATRICES.replace("q: B H n D", "q: B H r D"), "one length n for queries"),
        (with_sinks, SINKS.replace(" constant", ""), "wanted what S is: write one of .*constant"),
    ],
)
def test_a_line_that_does_not_say_what_attention_is_given_is_refused(
    code: Any, line: str, wanted: str
) -> None:
    with pytest.raises(SignatureError, match=wanted):
        adapted_as(code, line, kind="attention")


class OfItself(nn.Module):
    """Attention that wants one array three times; ``later``: how many later tokens each sees."""

    def __init__(self, embed_dim: int = 16, later: int = 0) -> None:
        super().__init__()
        self.later, self.in_proj = later, nn.Linear(embed_dim, 3 * embed_dim)

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, None]:
        assert key is query, "specialized implementation"
        assert value is key, "specialized implementation"
        q, k, v = self.in_proj(query).chunk(3, -1)
        seen = torch.ones(q.shape[1], q.shape[1], dtype=torch.bool).tril(self.later)
        return nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=seen), None


@pytest.mark.parametrize("line", ["key = query, value = query", "key = query, value = key"])
def test_an_array_is_given_in_several_places(line: str) -> None:
    line = f"query: B n E, {line} -> B n E, _"
    for later, verdict in ((0, "holds"), (1, "broken")):
        settings = {"later": later}
        found = adapted_as(
            OfItself, line, declared=DeclaredAttention(causal=True), settings=settings
        )
        assert found.line == line.replace("value = key", "value = query")
        assert {"key is query", "value is query"} <= {*found.conditions}
        assert [one.verdict for one in examine(found, laws=("causal",))] == [verdict]


def test_what_is_given_again_must_be_an_array_before_it() -> None:
    with pytest.raises(SignatureError, match="specialized implementation"):
        adapted_as(OfItself, "query: B n E, key: B n E, value: B n E -> B n E, _")
    for line in ("query: B n E, key = quary", "key = query, query: B n E", "query = query"):
        with pytest.raises(SignatureError, match="or the name of an array before it, got 'qu"):
            parse(f"{line} -> B n E")


def test_a_length_is_no_array_that_is_given_again() -> None:
    same, length, both = (
        parse(f"{line} -> B n E").arguments[1].value
        for line in ("q: B n E, k = q", "x: B n E, k = n", "n: B n E, k = n")
    )
    assert same == Same("q")
    assert isinstance(length, Axis)
    assert isinstance(both, Axis)


def test_a_mask_that_is_left_out_is_left_out_in_both_places() -> None:
    def attend(q: Tensor, mask: Tensor | None = None, other: Tensor | None = None) -> Tensor:
        assert mask is other
        scores = q @ q.mT
        return (scores if mask is None else scores.masked_fill(~mask[:, None], -torch.inf)).softmax(
            -1
        ) @ q

    program = Program(attend, "q: B n E, mask: B n keep, other = mask -> B n E")
    x, keep = torch.randn(2, 3, 4), torch.tensor([[True, True, False]]).expand(2, -1)
    (plain,) = program.run({"q": x}, {}).values()
    (hidden,) = program.run({"q": x, "mask": keep}, {}).values()
    assert torch.equal(plain, attend(x))
    assert torch.equal(hidden, attend(x, keep, keep))
