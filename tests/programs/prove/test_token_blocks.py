"""Code in blocks of tokens: laws are proved for whole blocks, also where tokens part within one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from attnproof.programs.declarations import DeclaredAttention
from attnproof.programs.finding import Finding
from attnproof.programs.prove import prove
from attnproof.programs.prove.conditions import Conditions
from attnproof.programs.prove.running import MOST_IN_BLOCK, whole_variants
from attnproof.programs.subject import adapted_as
from attnproof.programs.subjects import provable
from attnproof.symbolic.scalars import num, size

CALL = "x: B (4 n) E -> B (4 n) E"
CAUSAL = DeclaredAttention(causal=True)
WHOLE = "whole blocks of 4 tokens"


class Windows(nn.Module):
    """Attention in windows of tokens, each of which sees ``seen`` of its window."""

    def __init__(
        self, seen: Callable[[Tensor], Tensor] = torch.tril, dim: int = 8, *, of: int = 4
    ) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.seen, self.of = seen, of

    def forward(self, x: Tensor) -> Tensor:
        rows, n, width = x.shape
        q, k, v = (t.view(rows, n // self.of, self.of, width) for t in self.qkv(x).chunk(3, -1))
        scores = q @ k.mT / width**0.5
        ones = torch.ones(self.of, self.of, dtype=torch.bool)
        scores = scores.masked_fill(~self.seen(ones), -torch.inf)
        found: Tensor = self.out((scores.softmax(-1) @ v).reshape(rows, n, width))
        return self.further(found)

    def further(self, x: Tensor) -> Tensor:
        return x


def every(ones: Tensor) -> Tensor:
    return ones


def next_too(ones: Tensor) -> Tensor:
    return ones.tril(1)


def last_too_early(ones: Tensor) -> Tensor:
    """The token before the last one of a window sees it; all else is causal."""
    before = len(ones) - 1
    return ones.tril().logical_or(functional.pad(ones.new_ones(1, 1), (before, 0, before - 1, 1)))


class FromFar(Windows):
    """The rows of a batch meet from 68 tokens on."""

    def further(self, x: Tensor) -> Tensor:
        return x + x.mean(0, keepdim=True) if x.shape[1] >= 68 else x


class Unseen(nn.Module):
    """A sum over blocks of 2 by 2 tokens.

    The rows of a batch meet at 12,000 tokens alone, which no graph and no comparison shows.
    """

    def __init__(self) -> None:
        super().__init__()
        self.map = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        rows, n, width = x.shape
        times = len({n} & {12_000}) if type(n) is int else 0
        parts = x.view(rows, -1, 2, 2, width)
        blocks = self.map(parts.sum((2, 3), keepdim=True))
        found: Tensor = blocks.expand(parts.shape).reshape(x.shape)
        return found + times * found.mean(0, keepdim=True)


class Fourth(nn.Module):
    """The mean of each block, taken at its first token; rows meet if ``mixed``."""

    def __init__(self, *, mixed: bool = False) -> None:
        super().__init__()
        self.mixed, self.map = mixed, nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        blocks = x.view(x.shape[0], -1, 4, 8).mean(2)
        blocks = blocks.flip(0) if self.mixed else blocks
        found: Tensor = x + self.map(blocks).repeat_interleave(4, 1)
        return found


class Doubled(nn.Module):
    """A pair of tokens is mapped as one; twice, of pairs that begin elsewhere, if ``shifted``."""

    def __init__(self, *, shifted: bool = False) -> None:
        super().__init__()
        self.map, self.shifted = nn.Linear(16, 16), shifted

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.map(x.reshape(x.shape[0], -1, 16)).reshape(x.shape)
        return found.reshape(-1, 2, 8).roll(int(self.shifted), 0).reshape(x.shape)


class Lanes(nn.Module):
    """A token of each pair reads the other one: the second reads the first, or ``ahead``."""

    def __init__(self, *, ahead: bool = False) -> None:
        super().__init__()
        self.map, self.ahead = nn.Linear(8, 8), ahead

    def forward(self, x: Tensor) -> Tensor:
        y, behind = x.clone(), int(not self.ahead)
        y[:, behind::2] = self.map(x[:, 1 - behind :: 2])
        return y


class Pooled(Fourth):
    """The same mean by an operation that is not read."""

    def forward(self, x: Tensor) -> Tensor:
        blocks = functional.avg_pool1d(x.mT, 4).mT
        found: Tensor = x + self.map(blocks).repeat_interleave(4, 1)
        return found


def found_of(
    code: nn.Module, law: str, call: str = CALL, declared: DeclaredAttention | None = None
) -> Finding:
    subject = adapted_as(code.eval(), call, kind="attention", declared=declared, embed=8)
    (found,) = [one for one in prove(subject, (law,)).findings if one.law == law]
    return found


def lengths(found: Finding) -> list[str]:
    return [one.text for one in found.assuming if one.kind == "for"]


def test_windows_are_causal_wherever_the_later_tokens_begin() -> None:
    found = found_of(Windows(), "causal", declared=CAUSAL)
    assert found.verdict == "holds", found.why
    assert lengths(found) == ["E = 8", WHOLE]
    assert not any("repeated" in one.text for one in found.assuming)


@pytest.mark.parametrize("seen", [next_too, last_too_early])
def test_later_tokens_of_the_same_window_are_later_tokens(
    seen: Callable[[Tensor], Tensor],
) -> None:
    call = CALL.replace("4", "3")
    assert found_of(Windows(seen, of=3), "causal", call, CAUSAL).verdict == "broken"


def test_the_rows_of_a_batch_are_apart() -> None:
    for code, call in (
        (Windows(every), CALL),
        (Fourth(), CALL),
        (Doubled(), CALL.replace("4", "2")),
    ):
        found = found_of(code, "rows-of-batch-apart", call)
        assert found.verdict == "holds", (code, found.why)
        assert lengths(found) == ["E = 8", WHOLE.replace("4", call[6])]
    for code in (Fourth(mixed=True), Doubled(shifted=True)):
        assert found_of(code, "rows-of-batch-apart").verdict == "broken"


def test_operations_that_are_not_read_are_named() -> None:
    pooled = Pooled().eval()
    subject = adapted_as(pooled, CALL, kind="attention", declared=CAUSAL, embed=8)
    found = prove(subject, ("causal", "rows-of-batch-apart"))
    assert not found.findings
    assert "aten.avg_pool2d.default" in found.why


def test_every_second_token_is_read_and_written() -> None:
    for code, verdict in ((Lanes(), "holds"), (Lanes(ahead=True), "broken")):
        found = found_of(code, "causal", CALL.replace("4", "2"), CAUSAL)
        assert found.verdict == verdict, found.why


def test_branches_on_the_number_of_tokens_are_told_in_tokens() -> None:
    found = found_of(FromFar(), "rows-of-batch-apart")
    assert found.verdict == "broken"
    assert f"proved for n/4 ≤ 16, E = 8 and {WHOLE}; elsewhere, as at B = 3, n/4 = 17" in found.why


LETTERED = {
    "n + r ≤ 16": "n/4 + n′/4 ≤ 16",
    "4·n + 4·r mod 24 ≠ 12": "n + n′ mod 24 ≠ 12",
    "14·n ≤ 5 - 4·n": "14·n/4 ≤ 5 - n",
    "(750//n) ≠ 7": "(750//(n/4)) ≠ 7",
    "B·n^2 ≤ 4·n^2": "B·(n/4)^2 ≤ 4·(n/4)^2",
    "2.4·n ≤ 2^n": "2.4·n/4 ≤ 2^(n/4)",
    "B mod n ≠ 1": "B mod (n/4) ≠ 1",
}


@pytest.mark.parametrize("told", LETTERED)
def test_conditions_on_blocks_are_told_in_tokens(told: str) -> None:
    subject = adapted_as(Fourth(), CALL, kind="attention", embed=8)
    assert Conditions(subject, {"B": size("B"), "n": size("n")}).lettered(told) == LETTERED[told]


@pytest.mark.usefixtures("every_length")
def test_code_is_run_at_the_numbers_of_tokens_that_it_names() -> None:
    found = found_of(Unseen(), "rows-of-batch-apart")
    assert found.verdict == "broken"
    assert "n/4 = 3000 the code differs from its graph" in found.why


def test_tokens_part_within_a_block_in_every_case() -> None:
    subject = adapted_as(Windows(), CALL, kind="attention", embed=8)
    letters = {"B": size("B"), "n": size("n"), "E": num(8)}
    changed, left_out = [
        law for law in provable(subject) if law.call == "layer" and law.id == "causal"
    ]
    cases = [(one.given["x"], one.given["y"]) for one in whole_variants(changed, letters, subject)]
    assert [(x.split()[2], y.split()[2]) for x, y in cases] == [
        *(("n", "r"), ("n+1", "r-1"), ("n+2", "r-2"), ("n+3", "r-3")),
        *(("1", "r-1"), ("2", "r-2"), ("3", "r-3")),
    ]
    assert [one.given for one in whole_variants(left_out, letters, subject)] == [left_out.given]


def test_no_proof_is_tried_in_many_cases() -> None:
    many = str(2 * MOST_IN_BLOCK)
    found = found_of(Fourth(), "causal", CALL.replace("4", many), CAUSAL)
    assert (found.verdict, found.why) == (
        "undecided",
        f"no proof is tried for each place in a block of {many} tokens",
    )


def test_the_number_of_tokens_of_a_block_is_that_of_the_call() -> None:
    for axis, length in (("(4 n)", 4), ("(8 n)", 8), ("12", 1)):
        call = CALL.replace("(4 n)", axis)
        assert adapted_as(Fourth(), call, kind="attention", embed=8).multiple_of == length
