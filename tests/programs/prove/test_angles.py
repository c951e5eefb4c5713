"""Tables of angles, stored or computed: what is proved of them, and what is any numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.prove import Traced, prove
from attnproof.programs.prove.angles import angles_of
from attnproof.programs.subject import adapted_as


def ladder(width: int = 8, base: float = 10000.0) -> Tensor:
    return base ** (-torch.arange(0, width, 2).float() / width)


def angles(length: int = 64, width: int = 8, base: float = 10000.0) -> Tensor:
    return torch.outer(torch.arange(length).float(), ladder(width, base))


class Stored(nn.Module):
    """Half-split rotation by stored rows; ``spoilt`` changes the tables."""

    cos: Tensor
    sin: Tensor

    def __init__(self, spoilt: str = "") -> None:
        super().__init__()
        cos, sin = angles().cos(), angles().sin()
        if spoilt == "one entry":
            sin[40, 1] += 1e-3
        if spoilt == "a sine of another angle":
            sin[:, 2] = (1.01 * angles()[:, 2]).sin()
        if spoilt == "from a row on":
            cos[32:], sin[32:] = cos[31:-1].clone(), sin[31:-1].clone()
        if spoilt == "squares":
            rotated = torch.outer(torch.arange(64).float() ** 2, ladder())
            cos, sin = rotated.cos(), rotated.sin()
        self.register_buffer("cos", cos)
        self.register_buffer("sin", sin)
        if spoilt == "trained":
            del self.cos
            self.cos = nn.Parameter(cos)

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        cos, sin = self.cos[positions][:, None], self.sin[positions][:, None]
        a, b = x.chunk(2, -1)
        return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


class OneTable(nn.Module):
    """Interleaved rotation by one table of rows [cos | sin]."""

    table: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("table", torch.cat([angles().cos(), angles().sin()], -1))

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        cos, sin = self.table[positions][:, None].chunk(2, -1)
        a, b = x[..., ::2], x[..., 1::2]
        return torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2)


class Twice(nn.Module):
    """Tables as wide as a head, and longer by a factor."""

    cos: Tensor
    sin: Tensor

    def __init__(self) -> None:
        super().__init__()
        rotated = torch.cat([angles(), angles()], -1)
        self.register_buffer("cos", 1.2 * rotated.cos())
        self.register_buffer("sin", 1.2 * rotated.sin())

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        cos = self.cos[positions].unsqueeze(1)
        sin = self.sin[positions].unsqueeze(1)
        a, b = x.chunk(2, -1)
        return x * cos + torch.cat([-b, a], -1) * sin


class Complex(nn.Module):
    """Interleaved rotation by stored e^(i·angle)."""

    def __init__(self, spoilt: float = 0.0) -> None:
        super().__init__()
        rotations = torch.polar(torch.ones(64, 4), angles())
        rotations[40, 1] += spoilt
        self.rotations: Tensor = rotations

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * self.rotations[positions][:, None]).flatten(-2)


def verdicts(made: nn.Module) -> dict[str, str]:
    subject = adapted_as(made, "x: B H n D, positions: B n -> x", name="made")
    found = prove(subject, ["relative", "norm", "composition"])
    return {one.law: one.verdict for one in found.findings}


@pytest.mark.parametrize(
    "made", [Stored, OneTable, Complex], ids=["two tables", "one table", "complex numbers"]
)
def test_laws_are_proved_of_stored_cosines(made: type[nn.Module]) -> None:
    subject = adapted_as(made(), "x: B H n D, positions: B n -> x", name="made")
    found = {one.law: one for one in prove(subject, ["relative", "composition"]).findings}
    assert {one.verdict for one in found.values()} == {"holds"}
    told = [one.text for one in found["relative"].assuming]
    assert "indices stay in 0, .., 63, those of a stored table" in told
    assert any(text.startswith("stored cosines and sines keep their values") for text in told)


def test_tables_with_a_factor_are_read_with_it() -> None:
    assert set(verdicts(Twice()).values()) == {"holds"}  # each law allows one factor


@pytest.mark.parametrize(
    "spoilt", ["one entry", "a sine of another angle", "from a row on", "squares", "trained"]
)
def test_tables_that_are_nearly_such_prove_nothing(spoilt: str) -> None:
    found = verdicts(Stored(spoilt))
    assert "holds" not in (found["relative"], found["composition"])


def test_complex_numbers_that_are_nearly_rotations_prove_nothing() -> None:
    found = verdicts(Complex(spoilt=1e-3))
    assert "holds" not in (found["relative"], found["composition"])


@pytest.mark.parametrize("sine_first", [False, True])
def test_cosines_and_sines_side_by_side_are_read(sine_first: bool) -> None:
    parts = [angles().sin(), angles().cos()]
    stored = torch.stack(parts if sine_first else parts[::-1], -1).flatten(1)

    class Table(nn.Module):
        table: Tensor

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("table", stored)

        def forward(self, x: Tensor, positions: Tensor) -> Tensor:
            rows = self.table[positions][:, None]
            one, other = rows[..., ::2], rows[..., 1::2]
            cos, sin = (other, one) if sine_first else (one, other)
            a, b = x.chunk(2, -1)
            return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)

    assert set(verdicts(Table()).values()) == {"holds"}


def test_every_column_needs_its_sine() -> None:
    rotated = angles()
    assert set(angles_of({"cos": rotated.cos(), "sin": rotated.sin()})) == {"cos", "sin"}
    assert not angles_of({"cos": rotated.cos()})
    assert not angles_of({"cos": rotated.cos(), "sin": (2 * rotated).sin()})
    assert not angles_of({"cos": rotated[:3].cos(), "sin": rotated[:3].sin()})


def test_long_tables_in_float32_are_recognised_with_their_frequencies() -> None:
    rotated = angles(8192, 64, 500000.0)
    found = angles_of({"cos": rotated.cos(), "sin": rotated.sin()})["cos"]
    for seen, wanted in zip(found.frequencies, ladder(64, 500000.0).tolist(), strict=True):
        assert seen == pytest.approx(wanted, rel=1e-5)
    assert 0 < found.error < 1e-2


def test_two_ladders_keep_their_names() -> None:
    near, far = angles(), angles(base=1e6)
    tables = {
        f"{name}_{k}": of(rotated)
        for k, rotated in enumerate((near, far))
        for name, of in (("cos", torch.cos), ("sin", torch.sin))
    }
    found = angles_of(tables)
    assert found["cos_0"].name == found["sin_0"].name != found["cos_1"].name


def test_rounded_to_bfloat16_it_is_no_table_of_cosines() -> None:
    cut = [of(angles()).bfloat16() for of in (torch.cos, torch.sin)]
    assert not angles_of(dict(zip(("cos", "sin"), cut, strict=True)))
    assert not angles_of(dict(zip(("cos", "sin"), map(Tensor.float, cut), strict=True)))


def test_columns_are_taken_as_they_stand() -> None:
    rotated = angles()
    repeated = rotated.repeat_interleave(2, -1)
    several = partial(torch.cat, dim=-1)
    for wide, columns in (
        (several([rotated, rotated]), (0, 1, 2, 3, 0, 1, 2, 3)),
        (repeated, (0, 0, 1, 1, 2, 2, 3, 3)),
        (several([rotated, rotated.flip(-1)]), (0, 1, 2, 3, 3, 2, 1, 0)),
    ):
        assert angles_of({"cos": wide.cos(), "sin": wide.sin()})["sin"].columns == columns


# tables that code computes, or keeps in views, read at ids: what is proved, and what is not


LENGTH, WIDTH = 64, 8
W = 10000.0 ** (-torch.arange(0, WIDTH, 2) / WIDTH)
LINE = "x: B H n D, ids: B n positions -> x"
LAWS = ("relative", "norm", "follows-its-ids", "rows-of-batch-apart")
Angles = Callable[[Tensor], Tensor]


def half(x: Tensor) -> Tensor:
    a, b = x.chunk(2, -1)
    return torch.cat((-b, a), -1)


def computed(angles: Angles, length: int = LENGTH) -> Callable[[Tensor, Tensor], Tensor]:
    """A rotation by the rows of a table that is computed in each call."""

    def rotate(x: Tensor, ids: Tensor) -> Tensor:
        angle = angles(torch.arange(length).float())
        cos, sin = (table[ids][:, None] for table in (angle.cos(), angle.sin()))
        return x * cos + half(x) * sin

    return rotate


def doubled(t: Tensor) -> Tensor:
    angle = torch.outer(t, W)
    return torch.cat((angle, angle), -1)


def multiplied(t: Tensor) -> Tensor:
    return (W.repeat(2)[:, None] @ t[None]).T


def batched(t: Tensor) -> Tensor:
    return (t[None, :, None] * W.repeat(2)).squeeze(0)


def summed(t: Tensor) -> Tensor:
    return (t[:, None, None] * W.repeat(2)[:, None] * torch.tensor([0.25, 0.75])).sum(-1)


def stacked(t: Tensor) -> Tensor:
    return torch.stack((doubled(t), 2 * doubled(t)), 0)[1]


class Kept(nn.Module):
    """Tables with axes of length 1, kept and squeezed, as old models of transformers have them."""

    cos: Tensor
    sin: Tensor

    def __init__(self) -> None:
        super().__init__()
        angle = doubled(torch.arange(LENGTH).float())
        self.register_buffer("cos", angle.cos()[None, None])
        self.register_buffer("sin", angle.sin()[None, None])

    def forward(self, x: Tensor, ids: Tensor) -> Tensor:
        cos, sin = (table.squeeze(1).squeeze(0) for table in (self.cos, self.sin))
        return x * cos[ids].unsqueeze(1) + half(x) * sin[ids].unsqueeze(1)


def asked(
    code: Callable[[Tensor, Tensor], Tensor], laws: tuple[str, ...] = LAWS, seconds: float = 6.0
) -> Traced:
    return prove(adapted_as(code, LINE, name="code"), laws, seconds=seconds)


RIGHT: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "angles twice": computed(doubled),
    "a product of matrices": computed(multiplied),
    "an axis in front": computed(batched),
    "a sum of two": computed(summed),
    "one of two": computed(stacked),
    "kept and squeezed": Kept(),
}


@pytest.mark.parametrize("name", RIGHT)
def test_rows_at_ids_are_the_formula_at_ids(name: str) -> None:
    laws = LAWS if name == "angles twice" else ("relative",)
    found = asked(RIGHT[name], laws)
    assert {f.law: f.verdict for f in found.findings} == dict.fromkeys(laws, "holds"), found.why
    for one in found.findings:
        told = [c.text for c in one.assuming]
        assert any(text.startswith("indices stay in 0, .., 63") for text in told), told


WRONG: dict[str, Angles] = {
    "positions start again": lambda t: doubled(t % 16),
    "positions end": lambda t: doubled(t.clamp(max=20)),
    "squares": lambda t: doubled(t * t / LENGTH),
    "integers of half": lambda t: doubled(t // 2),
    "another base behind": lambda t: torch.where(t[:, None] < 9, 1.0, 0.5) * doubled(t),
    "a step between rows": lambda t: doubled(t + (t >= 5)),
    "relative to their mean, squared": lambda t: doubled(t) * (doubled(t) - doubled(t).mean(0)),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_depends_on_more_than_the_offset_is_not_proved(name: str) -> None:
    code = computed(WRONG[name])
    x = torch.randn(1, 1, 2, WIDTH, generator=torch.Generator().manual_seed(0)).double()
    scores = [
        code(x[:, :, :1], torch.tensor([[p]])) @ code(x[:, :, 1:], torch.tensor([[p + 3]])).mT
        for p in (1, 3, 14, 19, 30)
    ]
    assert max((one - scores[0]).abs().max() for one in scores) > 1e-3  # torch says it is false
    # What is true is proved in far less.
    found = {f.law: f.verdict for f in asked(code, ("relative",), seconds=1.0).findings}
    assert found.get("relative") != "holds", found


UNREAD: dict[str, Angles] = {
    "one behind the other": lambda t: torch.cat((doubled(t[:9]), doubled(t[9:]))),
    "moved round": lambda t: doubled(t).roll(3, 0),
}


@pytest.mark.parametrize("name", UNREAD)
def test_what_does_not_act_row_by_row_is_told(name: str) -> None:
    found = asked(computed(UNREAD[name]))
    assert not found.findings
    assert "is not read" in found.why
