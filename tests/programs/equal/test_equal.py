"""Two programs are one function, or they are not: calls, weights, masks, tables, specifications."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from attnproof.programs.equal.deciding import Verdict, compare
from attnproof.programs.equal.expressions import expressions, joined
from attnproof.programs.equal.measure import compare_numerically
from attnproof.programs.equal.pair import pair_programs
from attnproof.programs.equal.sides import Operand
from attnproof.programs.equal.specification import WrongSpecification
from attnproof.programs.signatures.signature import SignatureError

QKV = "q: B H r D, k: B H n D, v: B H n D -> B H r D"


def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention as it is written."""
    return torch.softmax(q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5, -1) @ v


def fused(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Torch's attention."""
    return functional.scaled_dot_product_attention(q, k, v)


def tokens_first(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Torch's attention on (B, n, H, D)."""
    return fused(*(x.transpose(1, 2) for x in (q, k, v))).transpose(1, 2)


def scaled_twice(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """A fault: 1/D for 1/√D."""
    return torch.softmax(q @ k.transpose(-1, -2) / q.shape[-1], -1) @ v


def equal(first: object, second: object, line: str = QKV, other: str = "", **more: Any) -> Verdict:
    """What is found of two functions."""
    return compare(Operand(first, "first", line), Operand(second, "second", other or line), **more)


def test_attention_is_torchs_attention_for_all_lengths() -> None:
    found = equal(attend, fused)
    assert found.verdict == "proved"
    assert not [c.text for c in found.assuming if c.kind == "for"]


def test_another_scale_has_a_counterexample_and_a_place() -> None:
    found: Any = equal(attend, scaled_twice)
    assert found.verdict == "counterexample"
    assert found.counterexample.difference > found.counterexample.allowed
    assert "q.shape[-1], -1" in found.parted.second.text


def test_letters_say_in_which_order_axes_come() -> None:
    line = "q: B r H D, k: B n H D, v: B n H D -> B r H D"
    assert equal(attend, tokens_first, QKV, line).verdict == "proved"
    found = equal(attend, tokens_first, QKV, QKV)  # told that it has heads first, which it has not
    assert found.verdict == "counterexample"


def test_masks_of_either_polarity_are_turned_into_each_other() -> None:
    def keeps(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        return functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    def hides(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        return torch.softmax(scores.masked_fill(mask, -torch.inf), -1) @ v

    def line(kind: str) -> str:
        return QKV.replace(" ->", f", mask: B 1 r n {kind} ->")

    assert equal(keeps, hides, line("keep"), line("hide")).verdict in ("proved", "exact")
    assert equal(keeps, hides, line("keep"), line("keep")).verdict == "counterexample"


def test_a_mask_to_add_has_the_format_of_the_queries() -> None:
    """Torch's kernels read a mask of float32 beside queries of float64 as other numbers."""

    def masked(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        return functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    keep, add = (QKV.replace(" ->", f", mask: B 1 r n {kind} ->") for kind in ("keep", "add"))
    looked = compare_numerically(
        pair_programs(Operand(masked, "keep", keep), Operand(masked, "add", add))
    )
    assert looked.counterexample is None


def test_what_a_hidden_row_reads_is_a_remark() -> None:
    def zeros(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        scores = (q @ k.transpose(-1, -2)).masked_fill(~mask, -torch.inf)
        return torch.softmax(scores, -1).nan_to_num(0.0) @ v

    def nans(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        scores = (q @ k.transpose(-1, -2)).masked_fill(~mask, -torch.inf)
        return torch.softmax(scores, -1) @ v

    found = equal(zeros, nans, QKV.replace(" ->", ", mask: B 1 r n keep ->"))
    assert found.verdict in ("proved", "exact", "measured")
    assert any("sees no key, the first returns zeros" in one for one in found.remarks)


def test_shards_are_joined_along_a_letter() -> None:
    def part(q: Tensor, k: Tensor, v: Tensor, base: float) -> tuple[Tensor, Tensor]:
        scores = q @ k.transpose(-1, -2)
        sums = torch.exp(scores).sum(-1, keepdim=True)
        return torch.exp(scores) @ v / sums, torch.log(sums) / base

    def ring(q: Tensor, k1: Tensor, v1: Tensor, k2: Tensor, v2: Tensor) -> Tensor:
        (a, s), (b, t) = part(q, k1, v1, 1.0), part(q, k2, v2, 1.0)
        return a - torch.sigmoid(t - s) * (a - b)

    def base_two(q: Tensor, k1: Tensor, v1: Tensor, k2: Tensor, v2: Tensor) -> Tensor:
        (a, s), (b, t) = part(q, k1, v1, 0.6931471805599453), part(q, k2, v2, 0.6931471805599453)
        return a - torch.sigmoid(t - s) * (a - b)

    def whole(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return torch.softmax(q @ k.transpose(-1, -2), -1) @ v

    line = "q: B H r 4, k1: B H n 4, v1: B H n 4, k2: B H m 4, v2: B H m 4 -> B H r 4"
    plain = "q: B H r 4, k: B H n 4, v: B H n 4 -> B H r 4"
    where = "k, v: joined of 2 shards along n"
    with pytest.raises(SignatureError, match="k2"):
        equal(ring, whole, line, plain, where="k, v: joined of 3 shards along n")
    found = equal(
        base_two,
        whole,
        line,
        plain,
        where="k: joined of k1, k2 along n; v: joined of v1, v2 along n",
    )
    assert found.verdict == "counterexample"
    assert equal(ring, whole, line, plain, where=where).verdict in ("proved", "exact")


class Separate(nn.Module):
    """Projections of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(8, 8, bias=False) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        """Self-attention with one head."""
        return fused(self.q(x), self.k(x), self.v(x))


class Fused(nn.Module):
    """All three in one, queries first."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(8, 24, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Self-attention with one head."""
        return fused(*self.qkv(x).chunk(3, -1))


TOKENS = "x: B n E -> B n E"


def test_modules_of_one_class_are_compared_with_the_same_weights() -> None:
    found = equal(Separate, Separate, TOKENS)
    assert found.verdict == "proved"
    assert any("weights of both are the same" in c.text for c in found.assuming)


def test_classes_draw_the_same_weights_in_every_run() -> None:
    def weights(seed: int) -> Tensor:
        before = torch.manual_seed(seed).get_state()
        both = pair_programs(Operand(nn.Linear, "one"), Operand(nn.Linear, "other"))
        assert torch.equal(torch.get_rng_state(), before)
        return next(both.modules[0].parameters())

    assert torch.equal(weights(1), weights(2))


def test_weights_of_other_names_are_asked_for_and_told() -> None:
    with pytest.raises(SignatureError, match=r"qkv\.weight.*--weights"):
        equal(Separate, Fused, TOKENS)
    right = "qkv.weight = cat(q.weight, k.weight, v.weight)"
    assert equal(Separate, Fused, TOKENS, weights=right).verdict in ("proved", "exact")
    wrong = "qkv.weight = cat(k.weight, q.weight, v.weight)"
    assert equal(Separate, Fused, TOKENS, weights=wrong).verdict == "counterexample"
    with pytest.raises(SignatureError, match=r"w\.weight, which is not a weight"):
        equal(Separate, Fused, TOKENS, weights="qkv.weight = w.weight")


def test_a_functions_arguments_may_be_weights_of_the_other() -> None:
    def plain(x: Tensor, wq: Tensor, wk: Tensor, wv: Tensor) -> Tensor:
        return attend(x @ wq.T, x @ wk.T, x @ wv.T)

    told = "wq = q.weight, wk = k.weight, wv = v.weight"
    assert equal(Separate, plain, TOKENS, weights=told).verdict == "proved"
    told = "wq = q.weight, wk = k.weight, wv = v.weight.T"
    assert equal(Separate, plain, TOKENS, weights=told).verdict == "counterexample"


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Half-split rotation that reads both halves of its tables."""
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


def rotate_by_halves(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """The same with the first half of its tables alone."""
    first, second = x.chunk(2, -1)
    c, s = cos[..., :2], sin[..., :2]
    return torch.cat((first * c - second * s, second * c + first * s), -1)


def test_tables_of_angles_are_told_where_arbitrary_ones_differ() -> None:
    line = "x: B H n 4, cos: n 4, sin: n 4 -> x"
    assert not equal(rotate, rotate, line).programs.table.says
    found = equal(rotate, rotate_by_halves, line)
    assert found.verdict == "proved"
    assert any("equal in both halves" in c.text for c in found.assuming)


def test_a_branch_on_a_length_is_found() -> None:
    def long(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return fused(q, k, v) if k.shape[2] <= 129 else fused(q, k[:, :, 1:], v[:, :, 1:])

    assert equal(attend, long).verdict in ("counterexample", "undecided")


# Attention, and twice as much where a call is made in one way, or of such numbers.
ELSEWHERE: dict[str, tuple[Callable[..., bool], str]] = {
    "not contiguous": (lambda q, *_: not q.is_contiguous(), "not contiguous"),
    "of another stride": (lambda q, *_: q.stride(-1) != 1, "not contiguous"),
    "wants gradients": (lambda q, *_: q.requires_grad, "with inputs that require gradients"),
    "gradients enabled": (lambda *_: torch.is_grad_enabled(), "with inputs that require gradients"),
    "inference": (lambda *_: torch.is_inference_mode_enabled(), "in inference mode"),
    "one array": (lambda q, k, _: q is k, "with one parameter"),
    "one place": (lambda q, k, _: q.data_ptr() == k.data_ptr(), "with one parameter"),
    "a subclass": (lambda q, *_: type(q) not in (Tensor, nn.Parameter), "of a subclass"),
    "zeros": (lambda q, *_: not bool(q.any()), ""),
    "minus zeros": (lambda q, *_: bool((q.signbit() & (q == 0)).any()), ""),
    "large": (lambda *given: bool(given[2].abs().max() > 50), ""),
    "many more queries than keys": (lambda q, k, _: q.shape[2] > 3 * k.shape[2] + 40, "r = 62"),
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_what_differs_by_how_it_is_called_has_a_counterexample(name: str) -> None:
    asks, told = ELSEWHERE[name]

    def elsewhere(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return attend(q, k, v) * (2 if asks(q, k, v) else 1)

    found = equal(attend, elsewhere)
    assert found.verdict == "counterexample"
    assert told in found.why


@pytest.mark.parametrize("rate", [0.1, 0.001])
def test_what_draws_random_numbers_is_no_function(rate: float) -> None:
    found = equal(attend, lambda q, k, v: functional.dropout(attend(q, k, v), rate))
    assert found.verdict in ("undecided", "counterexample")


@pytest.mark.usefixtures("every_length")
def test_heads_that_the_source_names_are_tried() -> None:
    def grouped(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return functional.scaled_dot_product_attention(q, k, v, enable_gqa=True)

    def tiled(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return grouped(q, k, v) * (2 if q.shape[1] // k.shape[1] == 24 else 1)

    found = equal(grouped, tiled, "q: B H r D, k: B G n D, v: B G n D -> B H r D")
    assert found.verdict == "counterexample"
    assert "H = 24" in found.why


@pytest.mark.parametrize("hidden", [-1e4, -1e9])
def test_a_mask_of_finite_numbers_is_one_where_scores_are_no_larger(hidden: float) -> None:
    def added(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        return functional.scaled_dot_product_attention(q, k, v, (1 - mask.to(q.dtype)) * hidden)

    def keeps(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        return functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    found = equal(keeps, added, QKV.replace(" ->", ", mask: B 1 r n keep ->"))
    assert found.verdict in ("proved", "exact", "measured")


class Scaled(nn.Module):
    """What is added begins as nothing: its scale is 0 before training."""

    def __init__(self, added: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.linear, self.scale, self.added = nn.Linear(6, 6), nn.Parameter(torch.zeros(6)), added

    def forward(self, x: Tensor) -> Tensor:
        """Scaled, and added."""
        return x + self.scale * self.added(self.linear(x))


class Unless(nn.Linear):
    """Twice as much where the bias is 0."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """The same elsewhere."""
        return super().forward(input) * (1 if self.bias.any() else 2)


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        (Scaled(torch.relu), Scaled(torch.erf), "with other weights"),
        (nn.Linear(6, 6), Unless(6, 6), "with weights that are 0"),
    ],
    ids=["a scale of 0", "a bias of 0"],
)
def test_weights_that_hide_a_difference_are_others_too(
    first: nn.Module, second: nn.Module, told: str
) -> None:
    before = {name: p.clone() for name, p in first.named_parameters()}
    found = equal(first, second, "x: B n 6 -> B n 6")
    assert found.verdict == "counterexample"
    assert told in found.why
    assert all(torch.equal(p, before[name]) for name, p in first.named_parameters())


def test_what_is_not_finite_of_zeros_alone_is_a_remark() -> None:
    """0/0 of one program and 0 of the other, of zeros: they are one elsewhere."""
    line = "x: B n -> B n"

    def divided(x: Tensor) -> Tensor:
        return x * x / x

    looked = compare_numerically(
        pair_programs(Operand(divided, "divided", line), Operand(lambda x: x, "plain", line))
    )
    assert looked.counterexample is None
    assert "for inputs that are 0, divided returns non-finite values" in looked.overflows


def test_what_overflows_alone_is_no_counterexample() -> None:
    def plain(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        weights = torch.exp(q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5)
        return weights @ v / weights.sum(-1, keepdim=True)

    found = equal(fused, plain)
    assert found.verdict == "proved"
    assert any("returns non-finite values in" in one for one in found.remarks)


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("attention:", "proved"),
        ("attention:scale=0.5", "counterexample"),
        ("attention:causal", "counterexample"),
        ("linear:", "counterexample"),
    ],
)
def test_a_specification_stands_for_the_second(text: str, verdict: str) -> None:
    found = compare(Operand(fused, "fused", QKV), Operand(text, text))
    assert found.verdict == verdict


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("attention:casual", "nearest: causal"),
        ("attention:rope=both", "wanted a layout"),
        ("delta:", "takes beta"),
    ],
)
def test_a_wrong_specification_is_refused(text: str, told: str) -> None:
    with pytest.raises((WrongSpecification, SignatureError), match=told):
        compare(Operand(fused, "fused", QKV), Operand(text, text))


def test_expressions_are_read() -> None:
    x = torch.arange(6.0).reshape(2, 3)
    for text, wanted in (
        ("a.T", x.T),
        ("a[1:]", x[1:]),
        ("-a * 2", -x * 2),
        ("a[[1, 0]]", x[[1, 0]]),
        ("cat(a, a, dim=1)", torch.cat((x, x), 1)),
        ("a[..., 0]", x[..., 0]),
    ):
        made = expressions(f"w = {text}")["w"]
        assert torch.equal(made.evaluate({"a": x}), wanted)


@pytest.mark.parametrize("text", ["w", "w = ", "w = open('x')", "w = a.b(c)", "w = 3", "w = a; b"])
def test_what_is_no_expression_is_refused(text: str) -> None:
    known = dict.fromkeys(("a", "a.b", "b", "c", "open", "x"), torch.ones(1))
    with pytest.raises(SignatureError, match="wanted"):
        _ = [made.evaluate(known) for made in expressions(text).values()]


def test_shards_are_found_by_their_names() -> None:
    assert joined("K: joined of 2 shards along n", ["K_0", "K_1"]) == ({"K": ("K_0", "K_1")}, "n")
    assert joined("k = cat(a, b)", ["a", "b"]) is None


class Tables(nn.Module):
    """A linear map by a stored table, which no gradient moves."""

    table: Tensor

    def __init__(self, seed: int) -> None:
        super().__init__()
        drawn = torch.randn(8, 8, generator=torch.Generator().manual_seed(seed))
        self.register_buffer("table", drawn)

    def forward(self, x: Tensor) -> Tensor:
        """The map."""
        return functional.linear(x, self.table)


def test_tables_of_one_name_that_differ_are_two_tables() -> None:
    one, other = Tables(1), Tables(2)
    assert equal(one, other, TOKENS).verdict == "counterexample"
    assert equal(one, Tables(1), TOKENS).verdict == "proved"


def test_maps_of_two_weights_are_two_functions() -> None:
    def twice(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
        return functional.linear(torch.tanh(functional.linear(x, a)), b)

    def rotated(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
        return functional.linear(torch.tanh(functional.linear(x, b)), a)

    line = "x: B n 4, a: 4 4, b: 4 4 -> B n 4"
    assert equal(twice, twice, line).verdict == "proved"
    assert equal(twice, rotated, line).verdict == "counterexample"


def rotated_at(x: Tensor, positions: Tensor) -> Tensor:
    """Llama 3.1's rotation, with its frequencies by parts."""
    omega = 500000.0 ** -(torch.arange(0, 8, 2, dtype=torch.float64) / 8)
    rotates = 8192 * omega / (2 * torch.pi)
    kept = ((rotates - 1) / 3).clamp(0, 1)
    omega = (omega * (kept + (1 - kept) / 8)).float()
    angles = positions[:, None, :, None] * omega
    first, second = x.chunk(2, -1)
    c, s = angles.cos(), angles.sin()
    return torch.cat((first * c - second * s, second * c + first * s), -1)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("rope:base=500000,layout=half,scaling=llama3,factor=8,original=8192", True),
        ("rope:base=500000,layout=half", False),
        ("rope:base=10000,scaling=linear,factor=8", False),
    ],
)
def test_a_rotation_is_specified_as_it_is_declared(text: str, same: bool) -> None:
    line = "x: B H n 8, positions: B n positions -> x"
    found = compare(Operand(rotated_at, "rotated_at", line), Operand(text, text), seconds=4.0)
    assert (found.verdict in ("proved", "exact", "measured")) == same
    assert same or found.verdict == "counterexample"


def test_tables_of_another_format_than_the_weights_are_left_as_they_were() -> None:
    one = Tables(1)
    one.register_buffer("fine", torch.tensor([1 / 3], dtype=torch.float64))
    one.weight = nn.Parameter(torch.ones(1, dtype=torch.bfloat16))
    both = pair_programs(Operand(one, "one", TOKENS), Operand(one, "other", TOKENS))
    before = {name: x.clone() for module in both.modules for name, x in module.state_dict().items()}
    compare_numerically(both)
    after = {name: x for module in both.modules for name, x in module.state_dict().items()}
    assert all(x.dtype == after[name].dtype for name, x in before.items())
    assert all(torch.equal(x, after[name]) for name, x in before.items())


def test_arrays_of_other_axes_are_told_and_no_fault_of_ours() -> None:
    with pytest.raises(SignatureError, match="take arrays of different axes"):
        equal(attend, attend, other="q: B n E, k: B n E, v: B n E -> B n E")


def test_formats_of_results_that_differ_are_a_remark() -> None:
    """As functions of numbers they are one; what takes their results may ask."""

    def told(x: Tensor) -> Tensor:
        return x > 0

    def counted(x: Tensor) -> Tensor:
        return (x > 0).float()

    def of_its_kind(x: Tensor) -> Tensor:
        return (x > 0).to(x.dtype)

    line = "x: B n 4 -> B n 4"
    found = equal(told, counted, line)
    assert found.verdict == "proved"
    assert found.remarks == ("for float32 inputs first returns bool, second float32",)
    of_wider = ("for float64 inputs first returns float32, second float64",)
    assert equal(counted, of_its_kind, line).remarks == of_wider
    assert not equal(told, told, line).remarks


def test_two_compiled_programs_say_once_that_they_run_uncompiled() -> None:
    one = torch.compile(attend, backend="eager")
    other = torch.compile(lambda q, k, v: attend(2 * q, k / 2, v), backend="eager")
    found = equal(one, other)
    assert found.verdict == "proved"
    assert [c.text for c in found.assuming].count("torch.compile is switched off") == 1


@torch.compile(backend="eager")
def compiled_tables(dim: int, end: int) -> tuple[Tensor, Tensor]:
    angles = torch.arange(end)[:, None] * 100.0 ** -torch.arange(0, 1, 2 / dim)
    return angles.cos(), angles.sin()


def rotated_by_tables(q: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    a, b = q.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


def test_tables_that_a_compiled_function_makes_are_a_condition() -> None:
    made = "cos, sin from compiled_tables(dim = D, end = m -> m D/2, m D/2)"
    line = f"q: B H n D, cos: n D/2, sin: n D/2 -> q; {made}"
    found = equal(rotated_by_tables, rotated_by_tables, line)
    assert "torch.compile is switched off" in [c.text for c in found.assuming]
