"""Lengths that code turns into tensors are compared by torch: these comparisons are solved as well.

No graph is made of the code here, and each fault lies at one number of tokens, or far from 0.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.equal import deciding
from attnproof.programs.equal.deciding import Verdict, compare
from attnproof.programs.equal.sides import Operand
from attnproof.programs.prove import Traced
from attnproof.real_code.equal_records import line_of
from attnproof.real_code.page_text import how

from .test_longer import Attend, asked, scores

pytestmark = pytest.mark.usefixtures("longer")
CALL = "q: B H r D, k: B H n D, v: B H n D -> B H r D"
TABLE = (torch.arange(400) == 57).float()


@pytest.fixture(autouse=True)
def unproved(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proof of two programs is looked for: none would be found."""
    monkeypatch.setattr(deciding, "prove", lambda *_, **__: Traced(why="a branch on data"))


def number() -> int:
    """Return 57, which stands nowhere in the code that compares a length with it."""
    return math.isqrt(90_000) % 81


def attention(opened: Callable[[Tensor, Tensor], Any]) -> Attend:
    """Return causal attention that hides nothing where ``opened`` is true of queries and keys."""

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        r, n = q.shape[-2], k.shape[-2]
        hidden = torch.ones(r, n).triu(n - r + 1) * (1 - 1 * opened(q, k))
        return scores(q, k).masked_fill(hidden > 0, -math.inf).softmax(-1) @ v

    return attend


def tokens(k: Tensor) -> Tensor:
    return torch.tensor(k.shape[-2])


def held(n: int) -> bool:
    wanted = math.isqrt(90_000) % 81
    return operator.eq(n, wanted) is True


def held_in_a_tuple(n: int) -> bool:
    wanted = (math.isqrt(90_000) % 81, 2)
    return (n, 2).__eq__(wanted) is True


def held_as_a_list(n: int) -> bool:
    wanted = [0] * (math.isqrt(90_000) % 81)
    return [0].__mul__(n).__eq__(wanted) is True


COUNTED = "state that the code keeps between calls has no effect, as in every run"
OPENED: dict[str, Callable[[Tensor, Tensor], Any]] = {
    # squares: 57 is not what is met otherwise, nor made of it
    "equal": lambda _, k: (tokens(k) ** 2 == 3249).long(),
    "not unequal": lambda _, k: (~torch.ne(tokens(k) ** 2, 3249)).long(),
    "filled": lambda _, k: torch.full((), k.shape[-2]).square().eq(3249).long(),
    "the last position": lambda _, k: (torch.arange(k.shape[-2]).max() ** 2 == 3136).long(),
    "a count": lambda _, k: (torch.ones(k.shape[-2]).sum() ** 2 == 3249).long(),
    "of each row": lambda q, k: (
        (q.new_full((len(q), 1, 1, 1), k.shape[-2]).long() ** 2 == 3249) * 1
    ),
    "near": lambda _, k: (1 - (tokens(k) ** 2 - 3249).abs()).clamp(min=0),
    "among": lambda _, k: torch.isin(tokens(k) ** 2, torch.tensor([5000, 3249])).long(),
    "bits": lambda _, k: ((tokens(k) ** 2 ^ 3249) == 0).long(),
    "a table": lambda _, k: TABLE[tokens(k).clamp(max=399)],
    # no comparison of the source, nor of torch: the number is one that a function returns
    "an operator": lambda _, k: operator.eq(k.shape[-2], number()),
    "a method": lambda _, k: k.shape[-2].__eq__(number()) is True,
    "quotient and remainder": lambda _, k: divmod(k.shape[-2], 19) == (number() // 19, 0),
    "lists": lambda _, k: [0] * k.shape[-2] == [0] * number(),
    "a local": lambda _, k: held(k.shape[-2]),
    "a tuple": lambda _, k: held_in_a_tuple(k.shape[-2]),
    "the length of a list": lambda _, k: held_as_a_list(k.shape[-2]),
    "the bits of a number": lambda _, k: (k.shape[-2] ^ number()).bit_length() == 0,
}


@pytest.mark.parametrize("form", OPENED)
def test_a_mask_that_one_number_of_tokens_opens_is_not_causal(form: str) -> None:
    row = asked(attention(OPENED[form]), "causal", causal=True, methods=("measured",))
    assert row.verdict == "broken"
    assert "n = 57" in row.why


def test_correct_code_with_lengths_in_tensors_needs_no_condition() -> None:
    def never(q: Tensor, k: Tensor) -> Tensor:
        return ((tokens(k) < 0) | (2 * tokens(k) < tokens(k) - len(q))).long()

    row = asked(attention(never), "causal", causal=True)
    assert (row.verdict, row.assuming) == ("exact", ())


def test_a_number_of_tokens_in_a_tensor_that_is_too_large_to_be_run_is_told() -> None:
    row = asked(attention(lambda _, k: (tokens(k) == 100_001).long()), "causal", causal=True)
    assert row.verdict == "exact"
    told = [str(one.text) for one in row.assuming]
    assert told == ["`tokens(k) == 100_001` is false, as it was in every run"]


def caught(n: int) -> bool:
    try:
        return [True][math.isqrt(90_000) + 1 - n]
    except IndexError:
        return False


# Numbers that no function returns or holds, unlike that of number().
one_of_two, other_of_two = lambda n: n == math.isqrt(90_000) + 1, lambda n: n < 0
TOLD: dict[str, tuple[Callable[[int], bool], str]] = {
    "bits": (lambda n: n.bit_count() == 9, "`n.bit_count() == 9` is false"),
    "a hash": (lambda n: hash((n, 3)) == hash((math.isqrt(90_000) + 1, 3)), "`hash((n, 3)) == "),
    "an error": (caught, "`except IndexError` catches something"),
    "two lambdas of one line": (one_of_two, "`<lambda>`, whose source was not found"),
}


@pytest.mark.parametrize("form", TOLD)
def test_what_no_length_is_solved_for_stands_on_the_line(form: str) -> None:
    opened, told = TOLD[form]
    row = asked(attention(lambda _, k: opened(k.shape[-2])), "causal", causal=True)
    assert row.verdict == "exact"
    assert any(str(one.text).startswith(told) for one in row.assuming)
    assert told in how(row)


def test_programs_that_count_their_calls_are_the_same_as_long_as_that_has_no_effect() -> None:
    calls: list[int] = []

    def counted(_: Tensor, k: Tensor) -> int:
        calls.append(len(k))
        return len(calls) > 10**6

    found = compared(counted)
    assert COUNTED in [str(one.text) for one in found.assuming]
    assert f"where {COUNTED}" in line_of(found).partition("; not proved: ")[0]


class Counting(nn.Module):
    """Attention that a count of its calls would change, which is kept in a buffer."""

    calls: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        self.calls.add_(1)
        return attention(lambda *_: int(self.calls > 10**6))(q, k, v)


def test_code_that_counts_its_calls_obeys_as_long_as_that_has_no_effect() -> None:
    calls = itertools.count()
    by_iterator = attention(lambda *_: next(calls) > 10**6)
    for code in (by_iterator, Counting()):
        row = asked(code, "causal", causal=True)
        assert row.verdict == "exact"
        assert COUNTED in [str(one.text) for one in row.assuming]
        assert COUNTED in how(row)


def compared(opened: Callable[[Tensor, Tensor], Any]) -> Verdict:
    one, other = (Operand(attention(each), "a", CALL) for each in (lambda *_: 0, opened))
    return compare(one, other)


DIFFERENT: dict[str, tuple[Callable[[Tensor, Tensor], Any], Callable[[dict[str, int]], bool]]] = {
    "channels": (lambda q, _: q.shape[-1] > 10**2, lambda at: at["D"] == 101),
    "heads": (lambda q, _: q.shape[1] == math.comb(11, 2), lambda at: at["H"] == 55),
    "a difference": (
        lambda q, k: k.shape[-2] - q.shape[-2] == number(),
        lambda at: at["n"] - at["r"] == number(),
    ),
    "a table": (OPENED["a table"], lambda at: at["n"] == number()),
    "gradients": (
        lambda q, k: k.requires_grad and q.shape[-2] == 1 + number(),
        lambda at: at["r"] == 1 + number(),
    ),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_programs_that_differ_where_a_comparison_of_one_turns_out_differently(name: str) -> None:
    opened, there = DIFFERENT[name]
    found = compared(opened)
    assert found.verdict == "counterexample"
    assert there(found.comparison.at)


def test_what_no_run_of_two_programs_could_change_stands_on_the_line() -> None:
    found = compared(lambda q, k: k.shape[-2] * len(q) == 2**40)
    assert found.verdict in ("exact", "measured")
    told = [str(one.text) for one in found.assuming]
    assert "`k.shape[-2] * len(q) == 2 ** 40` is false, as it was in every run" in told
