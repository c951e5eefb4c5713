"""Probes of tables of positions: quiet on what is right, and each refuses a planted fault."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.declarations import DeclaredAdditive
from attnproof.programs.execution.draw import Draw
from attnproof.programs.finding import Finding
from attnproof.programs.measure.base import PROBES
from attnproof.programs.measure.examine import examine
from attnproof.programs.subjects import Additive
from attnproof.theorems.laws import laws_of

DTYPES = (torch.float32, torch.bfloat16)
WIDTH = 8


def ladder(width: int = WIDTH, base: float = 10_000.0) -> Tensor:
    return torch.exp(torch.arange(0, width, 2).float() * (-math.log(base) / width))


def sinusoids(count: int, omega: Tensor, layout: str = "interleaved", first: int = 0) -> Tensor:
    angles = torch.arange(first, first + count)[:, None] * omega
    pair = angles.sin(), angles.cos()
    return torch.stack(pair, -1).flatten(-2) if layout == "interleaved" else torch.cat(pair, -1)


def code(table: Callable[[int], Tensor], width: int = WIDTH, **fields: object) -> Additive:
    """The subject of a table: T -> (T, D)."""
    declared = fields.pop("declared", DeclaredAdditive())
    scale = float(fields.get("scale", 1.0))  # type: ignore[arg-type]
    return Additive(
        name="code",
        width=width,
        declared=declared,  # type: ignore[arg-type]
        added=lambda x: scale * x + table(x.shape[1]).to(x.dtype),
        **fields,  # type: ignore[arg-type]
    )


class WithDropout(nn.Module):
    """A table in a buffer, and dropout after the sum."""

    kept: Tensor

    def __init__(self, most: int = 300) -> None:
        super().__init__()
        self.dropout = nn.Dropout(0.3)
        self.register_buffer("kept", sinusoids(most, ladder()))

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.dropout(x + self.kept[: x.shape[1]].to(x.dtype))
        return result


def with_dropout() -> Additive:
    module = WithDropout()
    return Additive(
        name="code",
        added=module,
        width=WIDTH,
        most=300,
        module=module,
        make=with_dropout,
        declared=DeclaredAdditive(),
    )


def tensor2tensor(count: int) -> Tensor:
    pairs = WIDTH // 2
    return sinusoids(count, 10_000.0 ** -(torch.arange(pairs) / (pairs - 1)), "half")


def odd(count: int) -> Tensor:
    return sinusoids(count, 10_000.0 ** -(torch.arange(0, 7, 2) / 7))[:, :7]


RIGHT: dict[str, Callable[[], Additive]] = {
    "interleaved": lambda: code(lambda t: sinusoids(t, ladder())),
    "half": lambda: code(lambda t: sinusoids(t, ladder(), "half")),
    "cosine first": lambda: code(
        lambda t: sinusoids(t, ladder()).reshape(t, -1, 2).flip(-1).flatten(-2)
    ),
    "positions from 1": lambda: code(lambda t: sinusoids(t, ladder(), first=1)),
    "tokens times the root of D": lambda: code(
        lambda t: sinusoids(t, ladder()), scale=math.sqrt(8)
    ),
    "a tenth of it": lambda: code(lambda t: 0.1 * sinusoids(t, ladder())),
    "wide": lambda: code(lambda t: sinusoids(t, ladder(128)), 128),
    "odd": lambda: code(odd, 7),
    "with dropout": with_dropout,
    "another ladder": lambda: code(tensor2tensor, declared=None),
    "as listed": lambda: code(
        tensor2tensor,
        declared=DeclaredAdditive(frequencies=tuple(10_000.0 ** -(i / 3) for i in range(4))),
    ),
    "short": lambda: code(lambda t: sinusoids(20, ladder())[torch.arange(t)], most=20),
}


def verdict(law: str, subject: Additive, draw: Draw = Draw()) -> Finding:  # noqa: B008 (frozen)
    found = examine(subject, [draw], [law])
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", RIGHT)
def test_right_code_is_left_alone(name: str, dtype: torch.dtype) -> None:
    found = examine(RIGHT[name](), [Draw(dtype=dtype)])
    assert [f"{f.law}: {f.why}" for f in found if f.verdict not in ("holds", "not asked")] == []


def test_every_law_of_tables_has_a_probe_and_a_fault() -> None:
    examine(RIGHT["half"](), laws=["sees-positions"])
    asked = {p.law for p in PROBES if p.kind == "additive"}
    assert asked == {law.id for law in laws_of("additive")}
    assert asked - {"finite"} <= set(FAULTS)  # what gives no numbers: test_finite


def of_the_batch(x: Tensor) -> Tensor:
    return x + sinusoids(len(x), ladder())[:, None].to(x.dtype)


def column_in_exponent(count: int) -> Tensor:
    column = torch.arange(WIDTH)
    angles = torch.arange(count)[:, None] / 10_000.0 ** (2 * column / WIDTH)
    return torch.where(column % 2 == 0, angles.sin(), angles.cos())


def swapped(count: int) -> Tensor:
    return sinusoids(count, math.e ** -(1e-4 ** (torch.arange(0, WIDTH, 2) / WIDTH)))


def bfloat16_positions(count: int) -> Tensor:
    angles = torch.arange(count).to(torch.bfloat16).float()[:, None] * ladder()
    return torch.stack((angles.sin(), angles.cos()), -1).flatten(-2)


def kept_table() -> Additive:
    tables: list[Tensor] = []

    def added(x: Tensor) -> Tensor:
        if not tables or tables[0].shape[0] < x.shape[1]:
            tables[:] = [sinusoids(x.shape[1], ladder())]
        return x + tables[0][-x.shape[1] :].to(x.dtype)  # the last rows of what is kept

    return Additive(name="code", added=added, width=WIDTH, make=kept_table)


def in_place(x: Tensor) -> Tensor:
    return x.add_(sinusoids(x.shape[1], ladder()).to(x.dtype))


def plain(added: Callable[[Tensor], Tensor]) -> Additive:
    return Additive(name="code", added=added, width=WIDTH, declared=DeclaredAdditive())


FAULTS: dict[str, Callable[[], Additive]] = {
    "sees-positions": lambda: plain(of_the_batch),
    "frequencies-as-declared": lambda: code(swapped),
    "neighbours-differ": lambda: code(bfloat16_positions),
    "linear-shift": lambda: code(column_in_exponent),
    "products-of-offset": lambda: code(column_in_exponent),
    "rows-of-batch-apart": lambda: plain(of_the_batch),
    "stateless": kept_table,
    "no-mutation": lambda: plain(in_place),
}


def whole_turns(count: int) -> Tensor:
    """Every frequency is a multiple of an eighth of a turn, so that row 8 is row 0."""
    return sinusoids(count, 2 * math.pi / 8 * torch.arange(1, 5))


def test_rows_that_come_again_far_apart_break_one_law() -> None:
    found = {one.law: one for one in examine(code(whole_turns, declared=None), [Draw()])}
    broken = [law for law, one in found.items() if one.verdict == "broken"]
    assert broken == ["sees-positions"]
    assert found["sees-positions"].why == "positions 0 and 8 have the same row"
    assert (
        verdict("sees-positions", code(whole_turns), Draw(dtype=torch.bfloat16)).verdict == "holds"
    )


def test_no_row_of_a_narrow_table_comes_again_for_being_near_whole_turns() -> None:
    for width in (2, 4):
        table = partial(lambda w, t: sinusoids(t, ladder(w)), width)
        assert verdict("sees-positions", code(table, width)).verdict == "holds"


class Shortened(nn.Module):
    """Adds rows of a table, of which the call shortens those that are longer than 1."""

    def __init__(self, most: float | None = 1.0) -> None:
        super().__init__()
        self.table = nn.Embedding(64, WIDTH, max_norm=most)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = x + self.table(torch.arange(x.shape[1]))
        return out


def shortened(most: float | None) -> Additive:
    torch.manual_seed(0)
    module = Shortened(most)
    return Additive(
        name="code",
        added=module,
        width=WIDTH,
        most=64,
        module=module,
        learned=True,
        make=lambda: shortened(most),
    )


def test_a_call_that_writes_to_its_weights_breaks_one_law() -> None:
    found = {one.law: one for one in examine(shortened(1.0), [Draw()])}
    broken = [law for law, one in found.items() if one.verdict == "broken"]
    assert broken == ["no-mutation"]
    assert "changes its weights: table.weight" in found["no-mutation"].why
    assert verdict("no-mutation", shortened(None)).verdict == "holds"


@pytest.mark.parametrize("law", FAULTS)
def test_each_law_refuses_a_planted_fault(law: str) -> None:
    found: Any = verdict(law, FAULTS[law]())
    assert found.verdict == "broken", found.why
    assert found.witness.here != found.witness.there


def test_swapped_base_and_exponent_keep_the_shift() -> None:
    """ivanvovk/WaveGrad#12: another ladder is still an encoding, and only the declared one says."""
    found = examine(code(swapped), laws=["linear-shift", "products-of-offset"])
    assert [f.verdict for f in found] == ["holds", "holds"]


def test_the_ladder_of_tensor2tensor_is_named() -> None:
    assert "D/2 − 1" in verdict("frequencies-as-declared", code(tensor2tensor)).why


def test_a_slightly_wrong_base_is_found() -> None:
    wrong = code(lambda t: sinusoids(t, ladder(base=10_100.0)))
    assert verdict("frequencies-as-declared", wrong).verdict == "broken"


def test_the_declared_layout_is_compared() -> None:
    subject = replace(RIGHT["half"](), declared=DeclaredAdditive(layout="interleaved"))
    assert verdict("frequencies-as-declared", subject).verdict == "broken"


def test_a_learned_table_is_asked_only_what_it_can_answer() -> None:
    table = torch.zeros(64, WIDTH)
    subject = code(lambda t: table[:t], learned=True, most=64)
    found = {f.law: f.verdict for f in examine(subject)}
    assert found["sees-positions"] == "undecided"
    assert found["linear-shift"] == found["frequencies-as-declared"] == "not asked"


def test_rounding_is_what_hides_no_fault_of_one_row() -> None:
    """One wrong entry in row 9 breaks the products, at that row."""

    def table(count: int) -> Tensor:
        made = sinusoids(count, ladder())
        made[9, 0] += 1e-3
        return made

    found = verdict("products-of-offset", code(table))
    assert found.witness is not None
    assert 10 <= found.sizes["n"] + found.sizes["r"] <= 11  # hardly more rows than have it


class OneWay(torch.autograd.Function):
    """The identity, as a kernel that has no backward pass."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:  # noqa: ARG004
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        raise NotImplementedError("only forward")


def test_that_no_gradient_passes_is_told() -> None:
    def blocked(x: Tensor) -> Tensor:
        with torch.no_grad():
            return x + torch.arange(x.shape[1])[:, None].sin()

    def without_backward(x: Tensor) -> Tensor:
        kept: Tensor = OneWay.apply(x)  # type: ignore[no-untyped-call]
        return kept + torch.arange(x.shape[1])[:, None].sin()

    for added, told in (
        (blocked, "no gradient reaches its inputs; finite numbers in"),
        (without_backward, "its gradient was not computed: NotImplementedError: only forward;"),
        (lambda x: x + torch.arange(x.shape[1])[:, None].sin(), "finite numbers and gradients"),
    ):
        (seen,) = examine(Additive(name="a", added=added, width=4), laws=("finite",))
        assert seen.verdict == "holds"
        assert told in seen.why


def of_times(wrong: float = 0.0) -> Additive:
    """A thousand radians a position, as of times in seconds; ``wrong``: added to one angle."""

    def table(count: int) -> Tensor:
        angles = 1000.0 * torch.arange(count)[:, None] * ladder(2 * WIDTH)
        angles[1:, 1] += wrong
        return torch.cat((angles.sin(), angles.cos()), -1)

    return code(table, 2 * WIDTH, declared=None)


def test_angles_of_many_rotates_are_rounded_more_than_rows_show() -> None:
    seen = {one.law: one for one in examine(of_times(), (Draw(),), ("products-of-offset",))}
    assert seen["products-of-offset"].verdict == "undecided"
    assert "half a turn" in seen["products-of-offset"].why
    broken = examine(of_times(0.1), (Draw(),), ("products-of-offset",))
    assert [one.verdict for one in broken] == ["broken"]


def test_rows_that_are_others_in_a_longer_table_are_of_no_position() -> None:
    def normalized(count: int) -> Tensor:
        table = sinusoids(count, ladder())
        return (table - table.mean()) / table.std()

    def shifted(count: int) -> Tensor:
        table = sinusoids(count, ladder())
        return table + torch.arange(count)[:, None] ** 2 / 100

    laws = ("linear-shift", "products-of-offset")
    found = examine(code(normalized, declared=None), (Draw(),), laws)
    assert {one.verdict for one in found} == {"not asked"}
    assert verdict("products-of-offset", code(shifted, declared=None)).verdict == "broken"
    assert verdict("products-of-offset", code(normalized)).verdict == "broken"  # as is declared
