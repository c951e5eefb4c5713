"""Refactorings that are proved equal, each beside neighbours that the same proof must refuse.

The proof is asked for alone, without the calls that would show the difference of a neighbour.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.equal.deciding import Verdict, compare
from attnproof.programs.equal.inputs import lengths_met, meetings
from attnproof.programs.equal.pair import pair_programs
from attnproof.programs.equal.sides import Operand

from .proofs_asked import Code, asked

TOKENS = "x: B n 4 -> B n 4"
ATTENTION = "q: B H r 4, k: B H n 4, v: B H n 4 -> B H r 4"
SHARED = "q: B (G 2) r 4, k: B G n 4, v: B G n 4 -> B (G 2) r 4"
ROTATED = "x: B n 8, positions: B n positions -> B n 8"


@dataclass(frozen=True)
class Refactoring:
    """A program, forms of it that are proved to be the same, and its neighbours."""

    call: str
    code: Code
    same: dict[str, Code]
    other: dict[str, Code]


def halves(x: Tensor) -> tuple[Tensor, Tensor]:
    half = x.shape[-2] // 2
    return x[..., :half, :], x[..., half:, :]


def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return (q @ k.mT / 2).softmax(-1) @ v


def in_groups(groups: tuple[int, int]) -> Code:
    """Attention of heads in groups, each of which has one head of keys."""

    def code(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        own, at = q.view(len(q), *groups, *q.shape[2:]), 1 + groups.index(2)
        return attend(own, k.unsqueeze(at), v.unsqueeze(at)).flatten(1, 2)

    return code


def of_parts(cut: Callable[[Tensor], tuple[Tensor, ...]], skipped: int = 0) -> Code:
    """Attention over parts of the keys; the last part's sum may skip keys."""

    def code(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        (a, b), (u, w) = cut(k), cut(v)
        first, last = (q @ a.mT / 2).exp(), (q @ b.mT / 2).exp()
        sums = first.sum(-1, keepdim=True) + last[..., skipped:].sum(-1, keepdim=True)
        return (first @ u + last @ w) / sums

    return code


def rotated(x: Tensor, positions: Tensor, frequencies: Tensor) -> Tensor:
    angle = positions[..., None] * frequencies
    a, b = x[..., :4], x[..., 4:]
    return torch.cat((a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()), dim=-1)


EVEN = torch.arange(0, 8, 2)


def at(frequencies: Callable[[], Tensor]) -> Code:
    return lambda x, positions: rotated(x, positions, frequencies())


class Stored(nn.Module):
    """Rotation by a stored table of cosines and sines."""

    c: Tensor
    s: Tensor

    def __init__(self, base: float = 10000.0, start: int = 0) -> None:
        super().__init__()
        angle = torch.outer(torch.arange(64.0) + start, base ** (-EVEN / 8))
        self.register_buffer("c", angle.cos(), persistent=False)
        self.register_buffer("s", angle.sin(), persistent=False)

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        c, s = self.c[positions], self.s[positions]
        a, b = x[..., :4], x[..., 4:]
        return torch.cat((a * c - b * s, a * s + b * c), dim=-1)


class StoredFrequencies(nn.Module):
    """Rotation by stored frequencies."""

    def __init__(self, base: float = 10000.0, *, trained: bool = False) -> None:
        super().__init__()
        given = base ** (-EVEN / 8)
        if trained:
            self.f = nn.Parameter(given)
        else:
            self.register_buffer("f", given, persistent=False)

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        return rotated(x, positions, self.f)


def windows(x: Tensor, before: int = 3) -> Tensor:
    return nn.functional.pad(x, (0, 0, before, 0)).unfold(1, 4, 1).sum(-1)


def shifted(x: Tensor, *starts: int) -> Tensor:
    n, padded = x.shape[1], nn.functional.pad(x, (0, 0, 3, 0))
    return torch.stack([padded[:, k : k + n] for k in starts]).sum(0)


def rms(x: Tensor, eps: float = 1e-6) -> Tensor:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)


def by_norm(x: Tensor, eps: float = 1e-6, width: int = 4) -> Tensor:
    norm: Tensor = x.norm(dim=-1, keepdim=True) * width**-0.5
    return x / norm.square().add(eps).sqrt()


REFACTORINGS = {
    "halves of a length": Refactoring(
        TOKENS,
        lambda x: x * 1,
        {
            "slices": lambda x: torch.cat(halves(x), 1),
            "sizes": lambda x: torch.cat(
                x.split([x.shape[1] // 2, x.shape[1] - x.shape[1] // 2], 1), 1
            ),
            "one more": lambda x: torch.cat(x.split(x.shape[1] // 2 + 1, 1), 1),
            "rounded up": lambda x: torch.cat(x.split((x.shape[1] + 1) // 2, 1), 1),
            "chunks": lambda x: torch.cat(x.chunk(2, 1), 1),
            "parts of a literal length": lambda x: torch.cat(x.split(1024, 1), 1),
        },
        {
            "exchanged": lambda x: torch.cat(halves(x)[::-1], 1),
            "chunks exchanged": lambda x: torch.cat(x.chunk(2, 1)[::-1], 1),
            "first half twice": lambda x: torch.cat((x.chunk(2, 1)[0], halves(x)[0]), 1),
            "one half alone": lambda x: torch.cat((halves(x)[0], halves(x)[1] * 2), 1),
        },
    ),
    "halves of a length, exchanged": Refactoring(
        TOKENS,
        lambda x: torch.cat(halves(x)[::-1], 1),
        {"rolled": lambda x: x.roll(-(x.shape[1] // 2), 1)},
        {
            "rolled the other way": lambda x: x.roll(x.shape[1] // 2, 1),
            "rolled by the larger half": lambda x: x.roll(-((x.shape[1] + 1) // 2), 1),
        },
    ),
    "halves of the keys": Refactoring(
        ATTENTION,
        attend,
        {"slices": of_parts(halves)},
        {"a key too few in the sum": of_parts(halves, 1)},
    ),
    "heads that share keys": Refactoring(
        SHARED,
        lambda q, k, v: attend(q, k.repeat_interleave(2, 1), v.repeat_interleave(2, 1)),
        {"axes of their own": in_groups((-1, 2))},
        {
            "the other order": in_groups((2, -1)),
            "values in another order": lambda q, k, v: attend(
                q, k.repeat_interleave(2, 1), v.repeat(1, 2, 1, 1)
            ),
        },
    ),
    "a rest": Refactoring(
        TOKENS,
        lambda x: x * (x.shape[1] % 4),
        {"what is left": lambda x: x * (x.shape[1] - x.shape[1] // 4 * 4)},
        {
            "of another number": lambda x: x * (x.shape[1] % 3),
            "one less": lambda x: x * (x.shape[1] - x.shape[1] // 4 * 4 - 1),
        },
    ),
    "blocks rounded up": Refactoring(
        TOKENS,
        lambda x: x * ((x.shape[1] + 3) // 4),
        {"of the negative": lambda x: x * -(-x.shape[1] // 4)},
        {
            "one more than rounded down": lambda x: x * (x.shape[1] // 4 + 1),
            "off by one": lambda x: x * ((x.shape[1] + 2) // 4),
        },
    ),
    "windows": Refactoring(
        TOKENS,
        windows,
        {"shifts": lambda x: shifted(x, 0, 1, 2, 3)},
        {"a shift twice": lambda x: shifted(x, 0, 1, 1, 3), "three": lambda x: shifted(x, 1, 2, 3)},
    ),
    "frequencies": Refactoring(
        ROTATED,
        at(lambda: 10000.0 ** (-EVEN / 8)),
        {
            "exponentials": at(lambda: torch.exp(EVEN * (-math.log(10000.0) / 8))),
            "exponentials to base 2": at(lambda: torch.exp2(-EVEN / 8 * math.log2(10000.0))),
            "powers of the root": at(lambda: 100.0 ** (-torch.arange(4) / 2)),
            "written numbers": at(lambda: torch.tensor([1.0, 0.1, 0.01, 0.001])),
            "stored": StoredFrequencies(),
            "stored angles": Stored(),
        },
        {
            "another base": at(lambda: torch.exp(EVEN * (-math.log(10001.0) / 8))),
            "another width": at(lambda: torch.exp(EVEN * (-math.log(10000.0) / 6))),
            "one further": at(lambda: torch.exp((EVEN + 1) * (-math.log(10000.0) / 8))),
            "inverse": at(lambda: torch.exp(EVEN * (math.log(10000.0) / 8)) / 1000),
            "exchanged numbers": at(lambda: torch.tensor([1.0, 0.1, 0.001, 0.01])),
            "a number moved": at(lambda: torch.tensor([1.0, 0.1, 0.01, 0.0010001])),
            "stored to another base": StoredFrequencies(10010.0),
            "trained": StoredFrequencies(trained=True),
            "stored angles to another base": Stored(10010.0),
            "stored angles, one further": Stored(start=1),
        },
    ),
    "norms": Refactoring(
        TOKENS,
        rms,
        {
            "by the norm": by_norm,
            "a power": lambda x: x * (x.pow(2).mean(-1, keepdim=True) + 1e-6) ** -0.5,
        },
        {
            "another constant": lambda x: rms(x, 1.00001e-6),
            "another width": lambda x: by_norm(x, width=3),
            "another power": lambda x: x * (x.pow(2).mean(-1, keepdim=True) + 1e-6) ** -0.25,
        },
    ),
}
SAME = [(name, own) for name, one in REFACTORINGS.items() for own in one.same]
OTHER = [(name, own) for name, one in REFACTORINGS.items() for own in one.other]


@pytest.mark.parametrize(("name", "form"), SAME)
def test_a_refactoring_is_proved(name: str, form: str) -> None:
    one = REFACTORINGS[name]
    told = asked(one.code, one.same[form], one.call)
    assert told.verdict == "holds", told.why


@pytest.mark.parametrize(("name", "neighbour"), OTHER)
def test_a_neighbour_of_a_refactoring_is_not(name: str, neighbour: str) -> None:
    one = REFACTORINGS[name]
    assert asked(one.code, one.other[neighbour], one.call).verdict in ("undecided", "broken")


def test_what_is_proved_of_halves_says_from_which_length_on() -> None:
    one = REFACTORINGS["halves of a length"]
    told = [c.text for c in asked(one.code, one.same["slices"], one.call).assuming]
    assert any(text.endswith("n ≥ 2") for text in told)
    assert not any("⌊" in text for text in told)


def test_what_stored_frequencies_are_stands_on_the_line() -> None:
    one = REFACTORINGS["frequencies"]
    told = [c.text for c in asked(one.code, one.same["stored"], one.call).assuming]
    assert "f is 10000^(−i/4) up to rounding, and keeps its values" in told


def compared(one: Code, other: Code, call: str) -> Verdict:
    return compare(Operand(one, "one", call), Operand(other, "other", call), seconds=2.0)


def largest_kept(count: int) -> Code:
    def code(x: Tensor) -> Tensor:
        least = x.sort(-1, descending=True).values[..., count - 1 : count]
        return torch.where(x >= least, x, 0)

    return code


def test_a_number_that_is_selected_is_not_rounded() -> None:
    """Three numbers are kept for two: a threshold that is moved away from its own number."""

    def top(x: Tensor) -> Tensor:
        return x.masked_fill(x < x.topk(2, -1).values[..., -1:], 0)

    assert compared(top, largest_kept(2), "x: B n 6 -> B n 6").verdict == "measured"
    assert compared(top, largest_kept(3), "x: B n 6 -> B n 6").verdict == "counterexample"


def test_a_base_is_not_a_length() -> None:
    def by_float(x: Tensor) -> Tensor:
        return x.sort(-1).values * 1e5 ** (-torch.arange(4) / 4)

    def by_whole_number(x: Tensor) -> Tensor:
        return x.sort(-1).values * 100000 ** (-torch.arange(4) / 4)

    def up_to(x: Tensor) -> Tensor:
        return by_float(x) if x.shape[1] < 1e5 else x

    def lengths(code: Code) -> list[int]:
        pair = pair_programs(*(Operand(code, "code", TOKENS),) * 2)
        return lengths_met(pair, meetings(pair, "Bn"))

    assert 100_000 not in lengths(by_float)
    assert 100_000 in lengths(by_whole_number)
    assert 100_000 in lengths(up_to), "a float that is compared may be a length"


def test_of_a_decimal_nothing_is_said() -> None:
    tenth = torch.tensor([0.1, 0.3, 0.05, 0.7], dtype=torch.float64)
    for code, same in (
        (lambda x: x * 0.3, lambda x: x * 0.1 * 3),
        (lambda x: x * tenth, lambda x: x * 0.1 * torch.tensor([1.0, 3.0, 0.5, 7.0])),
        (nn.functional.leaky_relu, lambda x: torch.maximum(x, x * 0.01)),
    ):
        found = asked(code, same, TOKENS)
        assert found.verdict == "holds", found.why
        assert not [c.text for c in found.assuming if "√" in c.text or "log" in c.text]
    assert asked(lambda x: x * 0.1, lambda x: x * 0.10001, TOKENS).verdict == "broken"
