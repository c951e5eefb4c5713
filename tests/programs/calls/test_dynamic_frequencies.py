"""Rotary code whose frequencies depend on the length of a call: laws of short and of long calls."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.execution.draw import Draw
from attnproof.programs.execution.rotary_matrices import in_long_calls, steady_length
from attnproof.programs.identify import identify
from attnproof.programs.measure.examine import examine
from attnproof.programs.prove import prove
from attnproof.programs.subject import adapted_as
from attnproof.programs.subjects import Rotary

WIDTH, SHORT = 8, 24
LAWS = ("relative", "composition", "neighbours-differ", "angles-are-exact", "sees-positions")
Long = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


def rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat((-b, a), -1) * sin


class Dynamic(nn.Module):
    """Dynamic NTK of factor 2: in calls of more than 24 positions, the base grows with them."""

    def __init__(self, base: float = 10_000.0) -> None:
        super().__init__()
        self.base = base

    def tables(self, at: Tensor, n: int) -> tuple[Tensor, Tensor]:
        base = self.base
        if n > SHORT:
            base = base * (2 * n / SHORT - 1) ** (WIDTH / (WIDTH - 2))
        angles = at[..., None].float() / base ** (torch.arange(0, WIDTH, 2) / WIDTH)
        both = self.paired(angles) if n > SHORT else torch.cat((angles, angles), -1)
        return both.cos(), both.sin()

    def paired(self, angles: Tensor) -> Tensor:
        return torch.cat((angles, angles), -1)

    def forward(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        n = q.shape[-2]
        tables = self.tables(torch.arange(n), n)
        return rotated(q, *tables), rotated(k, *tables)


class AtPositions(Dynamic):
    def forward(self, q: Tensor, k: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        at = positions[:, None]
        tables = self.tables(at, int(at.max()) + 1)
        return rotated(q, *tables), rotated(k, *tables)


class OtherPairs(Dynamic):
    """In long calls the table has interleaved pairs, and the rotation halves."""

    def paired(self, angles: Tensor) -> Tensor:
        return torch.stack((angles, angles), -1).flatten(-2)


class Clamped(AtPositions):
    """In long calls positions end at 150."""

    def tables(self, at: Tensor, n: int) -> tuple[Tensor, Tensor]:
        return super().tables(at.clamp(max=150), n)


class Kept(AtPositions):
    """The frequencies of a call of 20 positions or more are those of the longest one before."""

    longest = 0

    def tables(self, at: Tensor, n: int) -> tuple[Tensor, Tensor]:
        self.longest = n if n < 20 else max(n, self.longest)
        return super().tables(at, self.longest)


class Forever(AtPositions):
    """The frequencies are those of the longest call before."""

    longest = 0

    def tables(self, at: Tensor, n: int) -> tuple[Tensor, Tensor]:
        self.longest = max(n, self.longest)
        return super().tables(at, self.longest)


class Always(Dynamic):
    """The base grows with every token."""

    def tables(self, at: Tensor, n: int) -> tuple[Tensor, Tensor]:
        angles = at[..., None].float() / (self.base * n) ** (torch.arange(0, WIDTH, 2) / WIDTH)
        both = torch.cat((angles, angles), -1)
        return both.cos(), both.sin()


class OfAnotherBase(Always):
    """It takes a power of the base it is built with."""

    def __init__(self, base: float = 10_000.0) -> None:
        super().__init__(base**1.1)


class ByRatio(AtPositions):
    """Positions are divided by the largest, so that already short calls differ."""

    def tables(self, at: Tensor, n: int) -> tuple[Tensor, Tensor]:
        return super().tables(at * 16 / n, 1)


def subject(code: type[Dynamic]) -> Rotary:
    line = "q: B H n D, k: B H n D"
    more = ", positions: B n" if issubclass(code, AtPositions) else ""
    found = adapted_as(code, f"{line}{more} -> q, k", kind="rotary", width=WIDTH, most=600)
    assert isinstance(found, Rotary)
    return found


def verdicts(code: type[Dynamic]) -> dict[str, tuple[str, str]]:
    found = examine(subject(code), (Draw(),), (*LAWS, "follows-its-arguments", "stateless"))
    return {one.law: (one.verdict, one.why) for one in found}


@pytest.mark.parametrize("code", [Dynamic, AtPositions])
def test_dynamic_ntk_obeys_the_laws_in_short_and_in_long_calls(code: type[Dynamic]) -> None:
    found = verdicts(code)
    assert {verdict for verdict, _ in found.values()} == {"holds"}
    assert all("in calls with position" in found[law][1] for law in LAWS)
    own = subject(code)
    assert own.most == SHORT < own.longest
    assert f"calls of more than {SHORT} positions have other frequencies" in own.adapted


@pytest.mark.parametrize(
    ("code", "laws"),
    [
        (OtherPairs, {"relative", "composition"}),
        (Clamped, {"relative", "composition", "neighbours-differ", "angles-are-exact"}),
    ],
)
def test_a_fault_in_long_calls_is_found(code: type[Dynamic], laws: set[str]) -> None:
    broken = {law: why for law, (verdict, why) in verdicts(code).items() if verdict == "broken"}
    assert set(broken) == laws
    assert all(why.startswith("in calls with position") for why in broken.values())


def test_frequencies_that_a_long_call_leaves_behind_are_found() -> None:
    assert verdicts(Forever)["stateless"][0] == "broken"


def test_positions_relative_to_the_length_are_no_dynamic_frequencies() -> None:
    assert subject(ByRatio).longest == 0
    assert verdicts(ByRatio)["relative"][0] == "broken"


def test_code_that_depends_on_every_token_is_called_with_one_number_of_them() -> None:
    own = subject(Always)
    assert own.most == 512
    assert "its results depend on the number of tokens: called with 512" in own.adapted
    found = examine(own, (Draw(),), ("relative", "norm", "follows-its-arguments"))
    assert {one.verdict for one in found} == {"holds"}
    assert "each of which it takes 512 times" in found[-1].why
    (other,) = examine(subject(OfAnotherBase), (Draw(),), ("follows-its-arguments",))
    assert other.verdict == "broken"


def test_short_calls_are_proved_and_long_ones_are_not() -> None:
    found = {one.law: one for one in prove(subject(Dynamic)).findings}
    relative = found["relative"]
    assert relative.verdict == "holds"
    told = [one.text for one in relative.assuming]
    assert f"n + n′ ≤ {SHORT}" in told
    assert any("for which it is not proved" in one for one in told)
    assert found["norm"].verdict == "holds"


@pytest.mark.parametrize("code", [Dynamic, AtPositions, Kept])
def test_the_rule_is_read_off_calls_of_every_length(code: type[Dynamic]) -> None:
    told = f"base 10000, dynamic NTK factor 2, original length {SHORT}"
    assert told in identify(subject(code)).sentence


def test_a_steady_length_is_the_longest_of_calls_that_agree() -> None:
    def of(calls: Callable[[Tensor, Tensor], Tensor], most: int = 4096) -> int:
        return steady_length(Rotary(name="", rotate=calls, width=2, most=most), Draw())

    def plain(x: Tensor, at: Tensor, omega: float = 0.5) -> Tensor:
        angles = at[:, None, :, None] * omega
        return rotated(x, angles.cos(), angles.sin())

    def by_length(x: Tensor, at: Tensor) -> Tensor:
        return plain(x, at, 0.5 if at.max() < 100 else 0.4)

    assert of(plain) == 0
    assert of(by_length) == 100
    assert of(by_length, 100) == 0
    long = in_long_calls(Rotary(name="", rotate=by_length, width=2, most=100, longest=4096))
    x, at = torch.ones(1, 1, 3, 2), torch.arange(3)[None]
    assert torch.equal(long.rotate(x, at), plain(x, at, 0.4))
    assert not torch.equal(by_length(x, at), plain(x, at, 0.4))
