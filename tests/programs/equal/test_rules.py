"""Two ways to write one function, each proved the same; and a neighbour of each that is not."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from attnproof.programs.prove import prove
from attnproof.programs.subjects import Layer

from .proofs_asked import Code, asked

# functions of numbers

EACH = "x: B n -> B n"
ROWS = "x: B n E -> B n E"


def largest_first(x: Tensor) -> Tensor:
    e = (x - x.amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)


NUMBERS: dict[str, tuple[Code, Code, Code, str]] = {
    "sigmoid by exp(−x)": (
        torch.sigmoid,
        lambda x: 1 / (1 + torch.exp(-x)),
        lambda x: 1 / (1 + torch.exp(x)),
        EACH,
    ),
    "sigmoid by exp x": (
        torch.sigmoid,
        lambda x: x.exp() / (1 + x.exp()),
        lambda x: x.exp() / (2 + x.exp()),
        EACH,
    ),
    "silu": (functional.silu, lambda x: x / (1 + (-x).exp()), lambda x: x / (1 + x.exp()), EACH),
    "log of a sigmoid": (
        functional.logsigmoid,
        lambda x: torch.sigmoid(x).log(),
        lambda x: torch.sigmoid(-x).log(),
        EACH,
    ),
    "softmax by logsumexp": (
        lambda x: torch.softmax(x, -1),
        lambda x: torch.exp(x - torch.logsumexp(x, -1, keepdim=True)),
        lambda x: torch.exp(x - torch.logsumexp(x, -2, keepdim=True)),
        ROWS,
    ),
    "softmax by log_softmax": (
        lambda x: torch.softmax(x, -1),
        lambda x: torch.log_softmax(x, -1).exp(),
        lambda x: torch.log_softmax(2 * x, -1).exp(),
        ROWS,
    ),
    "softmax less its largest": (
        lambda x: torch.softmax(x, -1),
        largest_first,
        lambda x: largest_first(x) * x.sigmoid(),
        ROWS,
    ),
    "logcumsumexp": (
        lambda x: torch.logcumsumexp(x, -1),
        lambda x: x.exp().cumsum(-1).log(),
        lambda x: x.exp().cumsum(-2).log(),
        ROWS,
    ),
    "logaddexp": (
        lambda x: torch.logaddexp(x, 2 * x),
        lambda x: x + torch.log1p(x.exp()),
        lambda x: x + torch.log1p((-x).exp()),
        EACH,
    ),
}


# attention in two parts of its keys

PARTS = "q: B H r 4, k1: B H n 4, v1: B H n 4, k2: B H m 4, v2: B H m 4 -> B H r 4"
OF_KEYS = "q: B H r 4, k1: B H n 4, k2: B H m 4 -> B H r"


def scores(q: Tensor, k: Tensor) -> Tensor:
    return q @ k.transpose(-1, -2) / 2


def part(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    s = scores(q, k)
    lse = torch.logsumexp(s, -1, keepdim=True)
    return torch.exp(s - lse) @ v, lse


def whole(q: Tensor, k1: Tensor, v1: Tensor, k2: Tensor, v2: Tensor) -> Tensor:
    s = scores(q, torch.cat((k1, k2), 2))
    return torch.softmax(s, -1) @ torch.cat((v1, v2), 2)


def added(q: Tensor, k1: Tensor, v1: Tensor, k2: Tensor, v2: Tensor) -> Tensor:
    (o1, l1), (o2, l2) = part(q, k1, v1), part(q, k2, v2)
    both = torch.logaddexp(l1, l2)
    return o1 * torch.exp(l1 - both) + o2 * torch.exp(l2 - both)


def added_wrongly(q: Tensor, k1: Tensor, v1: Tensor, k2: Tensor, v2: Tensor) -> Tensor:
    (o1, l1), (o2, l2) = part(q, k1, v1), part(q, k2, v2)
    both = torch.logaddexp(l1, l1)
    return o1 * torch.exp(l1 - both) + o2 * torch.exp(l2 - both)


def by_sigmoid(q: Tensor, k1: Tensor, v1: Tensor, k2: Tensor, v2: Tensor) -> Tensor:
    (o1, l1), (o2, l2) = part(q, k1, v1), part(q, k2, v2)
    return o1 - torch.sigmoid(l2 - l1) * (o1 - o2)


def by_sigmoid_turned(q: Tensor, k1: Tensor, v1: Tensor, k2: Tensor, v2: Tensor) -> Tensor:
    (o1, l1), (o2, l2) = part(q, k1, v1), part(q, k2, v2)
    return o1 - torch.sigmoid(l1 - l2) * (o1 - o2)


def lse_of_all(q: Tensor, k1: Tensor, k2: Tensor) -> Tensor:
    return torch.logsumexp(scores(q, torch.cat((k1, k2), 2)), -1)


def lse_of_two(q: Tensor, k1: Tensor, k2: Tensor) -> Tensor:
    l1, l2 = (torch.logsumexp(scores(q, k), -1) for k in (k1, k2))
    return l1 - functional.logsigmoid(l1 - l2)


def lse_of_two_rotated(q: Tensor, k1: Tensor, k2: Tensor) -> Tensor:
    l1, l2 = (torch.logsumexp(scores(q, k), -1) for k in (k1, k2))
    return l1 - functional.logsigmoid(l2 - l1)


MERGED: dict[str, tuple[Code, Code, Code, str]] = {
    "by logaddexp": (added, whole, added_wrongly, PARTS),
    "by a sigmoid": (by_sigmoid, whole, by_sigmoid_turned, PARTS),
    "their logarithms, by the log of a sigmoid": (
        lse_of_two,
        lse_of_all,
        lse_of_two_rotated,
        OF_KEYS,
    ),
}


# a cache, and documents in one row

CACHED = "x: B n 5, y: B m 5, wq: 5 4, wk: 5 4, wv: 5 4 -> B m 4"
PACKED = "x: B n 5, y: B m 5, wq: 5 4, wk: 5 4, wv: 5 4 -> B (n + m) 4"


def at_last(x: Tensor, y: Tensor, wq: Tensor, wk: Tensor, wv: Tensor) -> Tensor:
    z = torch.cat((x, y), 1)
    n = z.shape[1]
    s = scores(z @ wq, z @ wk).masked_fill(~torch.ones(n, n, dtype=torch.bool).tril(), -math.inf)
    return (torch.softmax(s, -1) @ (z @ wv))[:, x.shape[1] :]


def stepped(behind: int) -> Code:
    def step(x: Tensor, y: Tensor, wq: Tensor, wk: Tensor, wv: Tensor) -> Tensor:
        k, v = (torch.cat((x @ w, y @ w), 1) for w in (wk, wv))
        i = torch.arange(y.shape[1])[:, None] + x.shape[1] - behind
        hidden = torch.arange(k.shape[1])[None] > i
        return torch.softmax(scores(y @ wq, k).masked_fill(hidden, -math.inf), -1) @ v

    return step


def packed(late: int) -> Code:
    def row(x: Tensor, y: Tensor, wq: Tensor, wk: Tensor, wv: Tensor) -> Tensor:
        z = torch.cat((x, y), 1)
        second = torch.arange(z.shape[1]) >= x.shape[1] + late
        s = scores(z @ wq, z @ wk).masked_fill(second[:, None] != second[None], -math.inf)
        return torch.softmax(s, -1) @ (z @ wv)

    return row


def apart(x: Tensor, y: Tensor, wq: Tensor, wk: Tensor, wv: Tensor) -> Tensor:
    return torch.cat([torch.softmax(scores(z @ wq, z @ wk), -1) @ (z @ wv) for z in (x, y)], 1)


ROWS_OF_TOKENS: dict[str, tuple[Code, Code, Code, str]] = {
    "a cache": (at_last, stepped(0), stepped(1), CACHED),
    "documents in one row": (packed(0), apart, packed(1), PACKED),
}


# masks

MASKED = "q: B H r 4, k: B H n 4, v: B H n 4, keep: r n keep -> B H r 4"
PLAIN = "q: B H r 4, k: B H n 4, v: B H n 4 -> B H r 4"


def filled(q: Tensor, k: Tensor, v: Tensor, keep: Tensor) -> Tensor:
    return torch.softmax(scores(q, k).masked_fill(~keep, -math.inf), -1) @ v


def filled_where_kept(q: Tensor, k: Tensor, v: Tensor, keep: Tensor) -> Tensor:
    return torch.softmax(scores(q, k).masked_fill(keep, -math.inf), -1) @ v


def chosen(q: Tensor, k: Tensor, v: Tensor, keep: Tensor) -> Tensor:
    return torch.softmax(torch.where(keep, scores(q, k), torch.tensor(-math.inf)), -1) @ v


def given(q: Tensor, k: Tensor, v: Tensor, keep: Tensor) -> Tensor:
    return functional.scaled_dot_product_attention(q, k, v, attn_mask=keep, scale=0.5)


def biased(q: Tensor, k: Tensor, v: Tensor, keep: Tensor) -> Tensor:
    return torch.softmax(scores(q, k) + torch.where(keep, 0.0, -math.inf), -1) @ v


def times(q: Tensor, k: Tensor, v: Tensor, keep: Tensor) -> Tensor:
    e = scores(q, k).exp() * keep
    return (e @ v) / e.sum(-1, keepdim=True)


def after_softmax(q: Tensor, k: Tensor, v: Tensor, keep: Tensor) -> Tensor:
    return (torch.softmax(scores(q, k), -1) * keep) @ v


WINDOW = 3


def places(s: Tensor) -> tuple[Tensor, Tensor]:
    return torch.arange(s.shape[-2])[:, None], torch.arange(s.shape[-1])[None]


def ones(s: Tensor) -> Tensor:
    return torch.ones(s.shape[-2:], dtype=torch.bool)


def seeing(mask: Callable[[Tensor], Tensor]) -> Code:
    def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        s = scores(q, k)
        return torch.softmax(s.masked_fill(~mask(s), -math.inf), -1) @ v

    return attention


def between(s: Tensor, width: int = WINDOW) -> Tensor:
    i, j = places(s)
    return (i >= j) & ((i - j) < width)


def not_outside(s: Tensor) -> Tensor:
    i, j = places(s)
    return ~((j > i) | (j <= i - WINDOW))


def by_choice(s: Tensor) -> Tensor:
    i, j = places(s)
    return torch.where(j > i, False, j > i - WINDOW)


def less_than_next(s: Tensor) -> Tensor:
    i, j = places(s)
    return j < i + 1


def difference(s: Tensor) -> Tensor:
    plain = torch.ones(s.shape[-2:])
    return (plain.tril() - plain.tril(-WINDOW)).bool()


MASKS: dict[str, tuple[Code, Code]] = {
    "chosen": (filled, chosen),
    "given": (filled, given),
    "added": (filled, biased),
    "multiplied": (filled, times),
}
CAUSAL: dict[str, Callable[[Tensor], Tensor]] = {
    "j < i + 1": less_than_next,
    "not above": lambda s: ~ones(s).triu(1),
    "above is 0": lambda s: torch.ones(s.shape[-2:]).triu(1) == 0,
}
WINDOWS: dict[str, Callable[[Tensor], Tensor]] = {
    "tril and not tril": lambda s: ones(s).tril() & ~ones(s).tril(-WINDOW),
    "triu of tril": lambda s: ones(s).tril().triu(1 - WINDOW),
    "not outside": not_outside,
    "by a choice": by_choice,
    "a difference": difference,
}


# small matrices that the code holds

SIGNS = torch.tensor([[1.0, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]])
HADAMARD, BROKEN = SIGNS / 2, SIGNS / 2
BROKEN[3, 3] = -0.5
ROOTS = torch.tensor([[1.0, 1.0], [1.0, -1.0]]) / math.sqrt(2)
KEYS = "q: B H r {0}, k: B H n {0} -> B H r n"


def rotated_by(matrix: Tensor) -> Code:
    return lambda q, k: (q @ matrix) @ (k @ matrix).transpose(-1, -2)


def written_down(q: Tensor, k: Tensor) -> Tensor:
    matrix = torch.tensor([[1.0, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]]) / 2
    return rotated_by(matrix)(q, k)


def product(q: Tensor, k: Tensor) -> Tensor:
    return q @ k.transpose(-1, -2)


def fast(x: Tensor) -> Tensor:
    a, b, c, d = x.unbind(-1)
    return torch.stack((a + b + c + d, a - b + c - d, a + b - c - d, a - b - c + d), -1) / 2


MATRICES: dict[str, tuple[Code, Code, Code, str]] = {
    "Hadamard's": (rotated_by(HADAMARD), product, rotated_by(BROKEN), KEYS.format(4)),
    "Hadamard's, written down": (written_down, product, rotated_by(BROKEN), KEYS.format(4)),
    "of 1/√2": (rotated_by(ROOTS), product, rotated_by(ROOTS * 2), KEYS.format(2)),
    "fast": (lambda x: x @ HADAMARD, fast, lambda x: x @ BROKEN, "x: B n 4 -> B n 4"),
}
FORMS = {**NUMBERS, **MERGED, **ROWS_OF_TOKENS, **MATRICES}


@pytest.mark.parametrize("name", FORMS)
def test_two_forms_of_one_function_are_proved_one(name: str) -> None:
    first, second, _, line = FORMS[name]
    assert asked(first, second, line).verdict == "holds"


@pytest.mark.parametrize("name", FORMS)
def test_a_neighbour_is_not_proved(name: str) -> None:
    first, second, wrong, line = FORMS[name]
    right = second if name in MERGED or name in MATRICES else first
    if name == "documents in one row":
        right = second
    assert asked(right, wrong, line).verdict == "broken"


@pytest.mark.parametrize("name", MASKS)
def test_a_mask_is_proved_one_in_each_form(name: str) -> None:
    found = asked(*MASKS[name], MASKED)
    assert found.verdict == "holds"
    assert "no denominator is 0" in [c.text for c in found.assuming]


@pytest.mark.parametrize("wrong", [filled_where_kept, after_softmax])
def test_another_mask_is_not_proved(wrong: Code) -> None:
    assert asked(filled, wrong, MASKED).verdict == "broken"


@pytest.mark.parametrize("name", CAUSAL)
def test_a_causal_mask_is_proved_one_in_each_form(name: str) -> None:
    assert asked(seeing(lambda s: ones(s).tril()), seeing(CAUSAL[name]), PLAIN).verdict == "holds"


@pytest.mark.parametrize("name", WINDOWS)
def test_a_window_is_proved_one_in_each_form(name: str) -> None:
    assert asked(seeing(between), seeing(WINDOWS[name]), PLAIN).verdict == "holds"


@pytest.mark.parametrize(
    "form",
    [
        lambda s: between(s, WINDOW + 1),
        lambda s: between(s, WINDOW - 1),
        lambda s: ones(s).tril(),
        lambda s: ones(s).tril() & ~ones(s).tril(1 - WINDOW),
        lambda s: ones(s).tril(1).triu(1 - WINDOW),
    ],
)
def test_another_window_is_not_proved(form: Callable[[Tensor], Tensor]) -> None:
    assert asked(seeing(between), seeing(form), PLAIN).verdict == "broken"


def test_a_matrix_that_the_code_holds_is_told_with_its_numbers() -> None:
    found = asked(rotated_by(ROOTS), product, KEYS.format(2))
    told = [c.text for c in found.assuming]
    assert "0.7071067690849304 is 1/√2" in told
    numbers = "[[0.707107, 0.707107], [0.707107, -0.707107]]"
    assert f"a tensor (2, 2) that the code holds keeps its value, {numbers}" in told
    written = asked(written_down, product, KEYS.format(4))
    assert not [c.text for c in written.assuming if "keeps its value" in c.text]


class _Rotated(nn.Module):
    """Rotated by a matrix that is a parameter, or a buffer that is loaded, or one that is not."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        if kind == "parameter":
            self.matrix = nn.Parameter(HADAMARD.clone())
        else:
            self.register_buffer("matrix", HADAMARD.clone(), persistent=kind == "loaded")

    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        return rotated_by(self.matrix)(q, k)


@pytest.mark.parametrize("kind", ["parameter", "loaded"])
def test_what_may_be_trained_or_loaded_is_any_matrix(kind: str) -> None:
    assert asked(_Rotated(kind), product, KEYS.format(4)).verdict == "undecided"


def test_a_buffer_that_is_not_loaded_is_told() -> None:
    found = asked(_Rotated("made"), product, KEYS.format(4))
    assert found.verdict == "holds"
    assert any("the buffer matrix keeps its value" in c.text for c in found.assuming)


def test_any_matrix_is_enough_where_its_numbers_do_not_matter() -> None:
    def grouped(q: Tensor, k: Tensor) -> Tensor:
        return (q @ (HADAMARD @ HADAMARD.transpose(-1, -2))) @ k.transpose(-1, -2)

    found = asked(rotated_by(HADAMARD), grouped, KEYS.format(4))
    assert found.verdict == "holds"
    assert not [c.text for c in found.assuming if "keeps its value" in c.text]


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16])
def test_what_is_converted_to_integers_must_fit(dtype: torch.dtype) -> None:
    finding = asked(lambda x: x.to(dtype).float(), torch.trunc, EACH)
    assert finding.verdict == "holds", finding.why
    told = str(dtype).removeprefix("torch.")
    assert f"numbers that are converted to {told} fit in it" in [c.text for c in finding.assuming]
    whole = asked(torch.trunc, lambda x: x.sign() * x.abs().trunc(), EACH)
    assert "converted" not in "".join(c.text for c in whole.assuming)


def test_a_conversion_in_one_program_is_no_truncation() -> None:
    """Without a second program nothing is assumed, and 1e20 has no integer."""

    def rest(x: Tensor) -> Tensor:
        return x.trunc() - x.long().float() + x

    subject = Layer(name="l", call=lambda x: rest(x) + (rest(x) - x) * x.sum(0), embed=4)
    (finding,) = prove(subject, ("rows-of-batch-apart",)).findings
    assert finding.verdict != "holds"
