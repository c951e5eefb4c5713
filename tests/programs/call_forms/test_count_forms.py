"""Biases, masks and additive tables are called by lines that are guessed, or told."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.execution.draw import Draw
from attnproof.programs.measure.examine import examine
from attnproof.programs.no_adapter import NoAdapter
from attnproof.programs.prove import prove
from attnproof.programs.signatures.grammar import parse
from attnproof.programs.signatures.signature import SignatureError
from attnproof.programs.subject import adapted_as, subject_of
from tests.programs.adapting_code import distance
from tests.programs.test_adapting_positions import BIASES, Adds, slopes, table


def alibi(attention_mask: Tensor, num_heads: int, dtype: torch.dtype) -> Tensor:
    """Rows and heads in one axis, as BLOOM has them."""
    rows, length = attention_mask.shape
    made = slopes(num_heads)[None, :, None] * torch.arange(length) * attention_mask[:, None]
    return made.reshape(rows * num_heads, 1, length).to(dtype)


class Buckets(nn.Module):
    """A learned bias whose method makes it, and only where the constructor says so."""

    def __init__(self, n_heads: int, *, has_relative_attention_bias: bool = False) -> None:
        super().__init__()
        self.n_heads, self.has_relative_attention_bias = n_heads, has_relative_attention_bias
        if has_relative_attention_bias:
            self.table = nn.Embedding(65, n_heads)

    def compute_bias(self, query_length: int, key_length: int, past_seen_tokens: int = 0) -> Tensor:
        first = past_seen_tokens
        apart = torch.arange(query_length)[:, None] + first - torch.arange(key_length)
        found: Tensor = self.table(apart.clamp(-32, 32) + 32)
        return found.permute(2, 0, 1)[None]

    def forward(self, hidden_states: Tensor) -> Tensor:
        return hidden_states


class Triangle(nn.Module):
    """A mask of one size, which the constructor is given."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def forward(self) -> Tensor:
        return torch.ones(self.size, self.size).tril()


class Kept(nn.Module):
    """ALiBi added to scores, kept from the longest call so far, and cut from its end or start."""

    def __init__(self, heads: int, *, first: bool = False) -> None:
        super().__init__()
        self.heads, self.first = heads, first
        self.kept = torch.zeros(heads, 0, 0)

    def forward(self, scores: Tensor) -> Tensor:
        i, j = scores.shape[-2:]
        if self.kept.shape[-1] < j or self.kept.shape[-2] < i:
            self.kept = -slopes(self.heads)[:, None, None] * distance(i, j).abs()
        late = self.kept.shape[-1] - j
        kept = self.kept[:, :i] if self.first else self.kept[:, self.kept.shape[-2] - i :]
        return scores + (kept[..., :j] if self.first else kept[..., late:])


class Window(nn.Module):
    """A bias of a window, as Swin has it."""

    def __init__(self, num_heads: int, window_size: tuple[int, int]) -> None:
        super().__init__()
        self.window_size, self.num_heads = window_size, num_heads
        self.table = nn.Parameter(torch.randn(1000, num_heads))

    def forward(self) -> Tensor:
        at = torch.cartesian_prod(*(torch.arange(n) for n in self.window_size))
        off = ((at[:, None] - at[None] + 10) * torch.tensor([31, 1])).sum(-1)
        return self.table[off].permute(2, 0, 1)


def relative_index(sizes: tuple[int, ...]) -> Tensor:
    at = torch.cartesian_prod(*(torch.arange(n) for n in sizes))
    weights = 100 ** torch.arange(len(sizes))
    return ((at[:, None] - at[None] + 9) * weights).sum(-1)


def index_of(rows: int, columns: int) -> Tensor:
    return relative_index((rows, columns))


class Learned(nn.Module):
    """A table that is read at positions, as BART reads it: of the ids only the shape counts."""

    def __init__(self, max_len: int = 64, d_model: int = 16) -> None:
        super().__init__()
        self.weight = nn.Embedding(max_len, d_model)

    def forward(self, input_ids: Tensor) -> Tensor:
        rows, length = input_ids.shape
        found: Tensor = self.weight(torch.arange(length).expand(rows, length))
        return found


class Whole(nn.Module):
    """The whole table, of a size that the constructor is given."""

    def __init__(self, max_len: int, d_model: int) -> None:
        super().__init__()
        self.register_buffer("pe", table(max_len, d_model))

    def forward(self) -> Tensor:
        return self.get_buffer("pe")


def causal_of_words(seq: Tensor) -> Tensor:
    _, length = seq.shape
    return torch.ones(1, length, length).tril().bool()


LINES: dict[str, tuple[str, Any, str]] = {
    "lengths of queries and keys": ("bias", BIASES["f(T, S)"], "T = r, S = n -> H r n"),
    "heads and a length": ("bias", BIASES["f(heads, T)"], "heads = H, n = n -> H n n"),
    "one head": ("bias", BIASES["f(T), one head"], "seq_len = n -> n n"),
    "heads last": (
        "bias",
        BIASES["f(q_len, kv_len, heads), heads last"],
        "q_len = r, kv_len = n, num_heads = H -> r n H",
    ),
    "a row for all queries": ("bias", BIASES["a row for all queries"], "heads = H, n = n -> H 1 n"),
    "a mask to count": (
        "bias",
        alibi,
        ("attention_mask: B n keep, num_heads = H, dtype = torch.float32 -> (B H) 1 n"),
    ),
    "a method": (
        "bias",
        Buckets,
        (
            "query_length = r, key_length = n, past_seen_tokens = (n - r) -> 1 H r n; "
            "method compute_bias; built with has_relative_attention_bias = True"
        ),
    ),
    "a window": ("bias", Window, "-> H (h w) (h w); built with window_size = (h, w)"),
    "an index": ("bias", relative_index, "sizes = (h, w) -> (h w) (h w) index"),
    "an index of two sizes": ("bias", index_of, "rows = h, columns = w -> (h w) (h w) index"),
    "a mask": ("mask", lambda T, S: distance(T, S) <= 0, "T = r, S = n -> r n keep"),
    "a mask that hides": (
        "mask",
        lambda q_len, kv_len: distance(q_len, kv_len) > 0,
        "q_len = r, kv_len = n -> r n hide",
    ),
    "a mask to add": (
        "mask",
        lambda n: torch.zeros(n, n).masked_fill(distance(n, n) > 0, -torch.inf),
        "n = n -> n n add",
    ),
    "a mask of tokens": (
        "mask",
        lambda x: torch.ones(x.shape[1], x.shape[1]).tril(),
        "x: B n E -> n n keep",
    ),
    "a mask of words": ("mask", causal_of_words, "seq: B n ids -> 1 n n keep"),
    "no arguments": ("mask", Triangle, "-> n n keep; built with size = n"),
    "a table of a length": ("additive", table, "length = n, width = E -> n E"),
    "a table of positions": (
        "additive",
        lambda positions, d_model: table(len(positions), d_model),
        "positions: n, d_model = E -> n E",
    ),
    "a dimension": (
        "additive",
        lambda num_positions, dimension: 2 * table(num_positions, dimension),
        "num_positions = n, dimension = E -> n E",
    ),
    "as many features as it has": (
        "additive",
        lambda max_len, width=48: table(max_len, width)[None],
        "max_len = n -> 1 n E",
    ),
    "times and features": (
        "additive",
        lambda t, dim: table(64, dim)[t.long()],
        "t: n coordinates, dim = E -> n E",
    ),
    "ids": ("additive", Learned, "input_ids: B n ids -> B n E"),
    "a whole table": ("additive", Whole, "-> n E; built with max_len = n"),
    "tokens before rows": ("additive", Adds, "x: n B E -> n B E"),
}


def seen(subject: Any) -> Tensor:
    """What the subject gives, in its own axes."""
    if subject.kind == "bias":
        found = subject.bias or subject.window
        made: Tensor = found(3, 7) if found else subject.index((2, 3))
        return made
    if subject.kind == "mask":
        return torch.as_tensor(subject.mask(3, 7)).double()
    x = torch.randn(2, 5, subject.width, generator=torch.Generator().manual_seed(0))
    return torch.as_tensor(subject.added(x))


@pytest.mark.parametrize("form", LINES)
def test_the_line_that_is_guessed_is_a_call_that_can_be_told(form: str) -> None:
    kind, code, line = LINES[form]
    torch.manual_seed(0)
    guessed: Any = adapted_as(code, kind=kind)
    assert guessed.line == line == str(parse(line))
    assert f"called as --call '{line}'" in guessed.adapted
    torch.manual_seed(0)  # the weights of what is built
    told: Any = subject_of(code, line, "" if form != "tokens before rows" else kind)
    assert told.kind == guessed.kind == kind
    same = ("heads", "causal", "true_means", "most", "scale", "learned", "width")
    assert [getattr(told, f, 0) for f in same] == [getattr(guessed, f, 0) for f in same]
    if not isinstance(code, type):
        assert torch.equal(seen(told), seen(guessed))
    assert seen(told).shape == seen(guessed).shape
    assert seen(guessed.make()).shape == seen(guessed).shape


def test_an_index_of_three_sizes_is_asked_for_where_the_sizes_are_one_argument() -> None:
    tupled: Any = adapted_as(relative_index, kind="bias")
    assert tupled.index((2, 2, 2)).shape == (8, 8)
    apart: Any = adapted_as(index_of, kind="bias")
    with pytest.raises(SignatureError, match="wanted a window of two axes"):
        apart.index((2, 2, 2))


REFUSED: dict[str, tuple[str, Any]] = {
    "keys before queries": ("bias", lambda q_len, k_len: distance(q_len, k_len).mT * 1.0),
    "whole numbers": ("bias", distance),
    "a row for each query, and no keys": ("bias", lambda T, S: torch.zeros(T, S)[:, :1]),
    "an axis that is none": ("bias", lambda q_len, k_len: torch.zeros(q_len, k_len + 1)),
    "a square of other lengths": ("bias", lambda T, S: torch.zeros(T, S)[:1] + torch.zeros(S, S)),
    "a mask of keys before queries": ("mask", lambda T, S: (distance(T, S) > 0).mT),
    "a mask of no keys": ("mask", lambda n: torch.ones(n, 1)),
    "a product": ("additive", lambda x: x * table(x.shape[1], x.shape[2])),
    "nothing that is added": ("additive", lambda x: x + 0),
    "a table of another length": ("additive", lambda length, width: table(length + 1, width)),
}


class Fixed(nn.Module):
    """A table whose name says nothing, cut to as many tokens as there are."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(64, 16))

    def forward(self, x: Tensor) -> Tensor:
        return self.table[None, : x.shape[1]]


def test_rows_of_features_are_a_table_and_no_bias() -> None:
    assert adapted_as(Fixed).kind == "additive"
    with pytest.raises(NoAdapter, match="no adapter fits Fixed"):
        adapted_as(Fixed, kind="bias")


@pytest.mark.parametrize("case", REFUSED)
def test_code_that_is_nearly_of_a_form_is_not_taken_for_it(case: str) -> None:
    kind, code = REFUSED[case]
    with pytest.raises(NoAdapter):
        adapted_as(code, kind=kind)


def test_two_orders_of_lengths_that_do_not_mean_the_same_are_both_shown() -> None:
    def weighs(a: int, b: int) -> Tensor:
        """Of two lengths it is one thing, and of heads and a length another."""
        square = torch.zeros(a, b) if a != 4 else torch.zeros(a, b, b)
        return square + distance(b, b)[-1]

    with pytest.raises(SignatureError, match="differ in meaning"):
        adapted_as(weighs, kind="bias")


def test_a_told_bias_of_another_shape_is_told() -> None:
    with pytest.raises(SignatureError, match="got"):
        subject_of(BIASES["f(T, S)"], "T = r, S = n -> r n")
    with pytest.raises(SignatureError, match="got none"):
        subject_of(Buckets, "query_length = r, key_length = n -> 1 H r n; method bias")


@pytest.mark.parametrize(("first", "verdict"), [(True, "broken"), (False, "holds")])
def test_code_that_is_built_with_a_length_keeps_what_it_kept(*, first: bool, verdict: str) -> None:
    line = f"scores: B H r n -> B H r n; built with heads = H, first = {first}"
    kept = subject_of(Kept, line)
    (found,) = examine(kept, laws=["stateless"])
    assert found.verdict == verdict, found.why


def packed(segment_ids: Tensor) -> Tensor:
    """True where two tokens are of one document."""
    return segment_ids[:, :, None] == segment_ids[:, None, :]


def test_what_arrays_hold_that_we_choose_is_a_condition() -> None:
    subject = adapted_as(packed, "segment_ids: B n ids -> B n n keep", kind="mask")
    assert subject.given["values"] == "all of segment_ids are equal"
    assert "all of segment_ids are equal" in subject.adapted
    (found,) = prove(subject, laws=["true-means-visible"]).findings
    assert found.verdict == "holds"
    assert "all of segment_ids are equal" in [one.text for one in found.assuming]


def test_tables_of_tokens_alone_have_no_such_condition() -> None:
    subject = adapted_as(
        lambda x: x + torch.arange(x.shape[1])[:, None], "x: B n E -> B n E", kind="additive"
    )
    assert "values" not in subject.given


def of_rows_and_heads(lengths: Tensor, heads: int, max_length: int) -> Tensor:
    """True where a row is padded, again for each head, in one axis of rows and heads."""
    hidden = torch.arange(max_length)[None] >= lengths[:, None]
    return hidden.repeat_interleave(heads, 0).unsqueeze(1)


def of_each_head(lengths: Tensor, heads: int, max_length: int) -> Tensor:
    """Another for each head, which is not a mask of all."""
    ends = (lengths[:, None] - torch.arange(heads)).reshape(-1, 1)
    return (torch.arange(max_length)[None] >= ends).unsqueeze(1)


def rotates(dim: int, end: int) -> Tensor:
    angles = torch.outer(torch.arange(end).float(), 0.5 ** torch.arange(dim // 2))
    return torch.polar(torch.ones_like(angles), angles).repeat(1, 2)


def test_a_mask_may_stand_in_rows_and_heads() -> None:
    line = "lengths: B lengths, heads = H, max_length = n -> (B H) 1 n hide"
    assert adapted_as(of_rows_and_heads, kind="mask").line == line
    told: Any = adapted_as(of_rows_and_heads, line, kind="mask")
    assert told.true_means == "hidden"
    with pytest.raises(SignatureError, match="wanted one mask for all heads"):
        adapted_as(of_each_head, line, kind="mask")


class OfPatches(nn.Module):
    """A learned table with one row more than it says, as of patches behind a prefix."""

    def __init__(self, max_patches: int) -> None:
        super().__init__()
        self.rows = nn.Embedding(max_patches + 1, 16)

    def forward(self, seq: Tensor) -> Tensor:
        out: Tensor = seq + self.rows(torch.arange(seq.shape[1]))
        return out


def test_rows_of_a_batch_are_not_taken_for_tokens_where_a_table_is_short() -> None:
    """With fewer rows than the tokens that are tried, the axis of rows alone fitted it."""
    found: Any = adapted_as(OfPatches)
    assert examine(found, laws=("rows-of-batch-apart",))[0].verdict == "holds"
    for kind in (None, "additive", "layer"):
        with pytest.raises(NoAdapter):
            adapted_as(OfPatches(2), kind=kind)


def test_complex_numbers_are_no_table_that_is_added() -> None:
    with pytest.raises(NoAdapter, match="complex numbers, not a table that is added"):
        adapted_as(rotates, kind="additive")
    for back in ("n D cis", "n D", "n D cos"):
        with pytest.raises(SignatureError, match=r"not a table that is added; .*then NAME\(x"):
            adapted_as(rotates, f"dim = D, end = n -> {back}")


@pytest.mark.parametrize("code", [lambda t: t[..., None] == t[..., None, :], of_rows_and_heads])
def test_no_fault_of_ours_is_told_of_what_makes_a_mask(code: Any) -> None:
    for kind in ("rotary", "additive"):
        with pytest.raises(NoAdapter) as refused:
            adapted_as(code, kind=kind)
        assert "a fault of attnproof" not in str(refused.value)


class KeptByKeys:
    """A bias that is kept by the number of keys alone."""

    def __init__(self) -> None:
        self.kept: dict[int, Tensor] = {}

    def __call__(self, heads: int, q_len: int, k_len: int) -> Tensor:
        if k_len not in self.kept:
            far = torch.arange(k_len)[None] - torch.arange(k_len - q_len, k_len)[:, None]
            self.kept[k_len] = far[None] * 0.5 ** torch.arange(1, heads + 1)[:, None, None]
        return self.kept[k_len]


def test_a_bias_kept_by_its_keys_alone_does_not_forget() -> None:
    subject = adapted_as(KeptByKeys(), "heads = H, q_len = r, k_len = n -> H r n", kind="bias")
    (found,) = examine(subject, (Draw(0),), ("stateless",))
    assert found.verdict == "broken"
    assert "as many keys" in found.why


def alibi_of(heads: int, n: int) -> Tensor:
    """ALiBi; a number of heads that is no power of 2 gets a bias of other than offsets."""
    at = torch.arange(n)
    apart = at[:, None] * at if heads & (heads - 1) else (at[:, None] - at).abs()
    return -slopes(heads)[:, None, None] * apart


def heads_apart(x: Tensor, heads: int) -> Tensor:
    """Attention of each head to itself; the rows of more than 4 heads are mixed."""
    split = x.view(*x.shape[:2], heads, -1).transpose(1, 2)
    split = split + split.mean(0) if heads > 4 else split
    weights = torch.softmax(split @ split.mT, -1)
    found: Tensor = weights @ split
    return found.transpose(1, 2).flatten(2)


@pytest.mark.parametrize(
    ("law", "kind", "code", "line"),
    [
        ("offset-only", "bias", alibi_of, "heads = H, n = n -> H n n"),
        ("rows-of-batch-apart", "attention", heads_apart, "x: B n E, heads = H -> B n E"),
    ],
)
def test_a_number_of_heads_that_is_received_is_a_condition(
    law: str, kind: Any, code: Any, line: str
) -> None:
    (found,) = prove(adapted_as(code, line, kind=kind), (law,)).findings
    assert found.verdict == "holds"
    assert [c.kind for c in found.assuming if c.text == "H = 4"] == ["for"]
