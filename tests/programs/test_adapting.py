"""Code is taken for what it is, at declared sizes, left as it was, or refused and told why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.code import place_of
from attnproof.programs.declarations import DeclaredRotary, parse
from attnproof.programs.execution.calling import restored_settings
from attnproof.programs.execution.running import CodeFault
from attnproof.programs.measure.examine import examine
from attnproof.programs.no_adapter import CALLED, NoAdapter
from attnproof.programs.prove import prove
from attnproof.programs.subject import adapted_as
from attnproof.programs.subjects import KINDS, Layer, Rotary
from attnproof.testing import check_bias, check_rotary
from tests.numeric.one_count_code import alibi

from .adapting_code import half, plain, rotates_as_half


def test_an_instance_is_copied_and_not_used() -> None:
    class Counting(nn.Module):
        calls = 0

        def forward(self, x: Tensor, positions: Tensor) -> Tensor:
            self.calls += 1
            return half(x, positions)

    mine = Counting()
    subject = adapted_as(mine, kind="rotary")
    assert mine.calls == 0
    assert subject.module is not mine
    rotates_as_half(subject)


def test_a_subject_is_returned_with_what_is_declared() -> None:
    mine = Rotary(name="mine", rotate=half, width=8)
    assert adapted_as(mine) is mine
    declared = DeclaredRotary(base=10000.0)
    made = adapted_as(mine, declared=declared, name="theirs")
    assert (made.name, getattr(made, "declared", None)) == ("theirs", declared)
    with pytest.raises(ValueError, match="is rotary code"):
        adapted_as(mine, kind="bias")
    assert adapted_as(lambda: mine) is mine


@pytest.mark.parametrize(
    ("hidden", "kept", "kind"),
    [(-torch.inf, 0.0, "mask"), (torch.finfo(torch.float32).min, 0.0, "mask"),
     (-torch.inf, 0.5, "bias"), (-3.0, 0.0, "bias")],
)  # fmt: skip
def test_what_hides_some_keys_and_adds_nothing_to_others_is_a_mask(
    hidden: float, kept: float, kind: str
) -> None:
    def seen(n: int) -> Tensor:
        ahead = torch.arange(n) > torch.arange(n)[:, None]
        return torch.full((n, n), kept).masked_fill(ahead, hidden)

    assert adapted_as(seen).kind == kind
    assert adapted_as(seen, kind="bias").kind == "bias"


def test_fields_are_set_and_stay_set_when_built_anew() -> None:
    subject: Any = adapted_as(half, kind="rotary", first=-4)
    assert subject.first == subject.make().first == -4
    with pytest.raises(TypeError, match="no colour"):
        adapted_as(half, kind="rotary", colour=1)


LAYERS = (nn.Linear(8, 8), nn.LayerNorm(16), nn.GRU(8, 8, batch_first=True))


@pytest.mark.parametrize("module", LAYERS)
def test_what_is_nothing_else_is_a_layer(module: nn.Module) -> None:
    assert adapted_as(module).kind == "layer"


def test_the_guess_is_said() -> None:
    assert "taken for attention code" in adapted_as(plain).adapted
    assert "taken for" not in adapted_as(plain, kind="attention").adapted


class RopeBlock(nn.Module):
    """A layer that is named after a part of it."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.weight(x)
        return out


def test_code_of_another_shape_than_its_name_says_is_no_layer_unless_it_has_weights() -> None:
    def my_rope(x: Tensor) -> Tensor:
        return torch.cat((x, x), -1)

    def doubled(x: Tensor) -> Tensor:
        return torch.cat((x, x), -1)

    with pytest.raises(NoAdapter, match="its names suggest rotary: if it is a layer, say so"):
        adapted_as(my_rope)
    assert adapted_as(my_rope, kind="layer").kind == adapted_as(doubled).kind == "layer"
    told = adapted_as(RopeBlock()).adapted
    assert "taken for layer code" in told
    assert "and not as rotary code, which its names suggest" in told
    assert "names" not in adapted_as(doubled).adapted


def test_code_that_fits_nothing_is_told_what_was_tried_and_what_to_write() -> None:
    def odd(colour: str, shade: str) -> str:
        return colour + shade

    with pytest.raises(NoAdapter) as caught:
        adapted_as(odd)
    assert set(caught.value.tried) == {"rotary", "attention", "bias", "additive", "mask", "layer"}
    text = str(caught.value)
    assert "test_adapting.py" in text
    assert "'shade'" in text
    assert "def subject():" in text


def test_a_class_that_wants_what_no_name_says_is_told() -> None:
    class Wants(nn.Module):
        def __init__(self, colour: str) -> None:  # noqa: ARG002
            super().__init__()

        def forward(self, x: Tensor) -> Tensor:
            return x

    with pytest.raises(NoAdapter, match="'colour'"):
        adapted_as(Wants)
    assert adapted_as(Wants, settings={"colour": "red"}).kind == "layer"


def test_what_cannot_be_called_is_told() -> None:
    with pytest.raises(NoAdapter, match="cannot be called"):
        adapted_as(3)
    with pytest.raises(ValueError, match="kind is one of"):
        adapted_as(plain, kind="colour")


def test_code_that_prints_is_not_heard(capfd: pytest.CaptureFixture[str]) -> None:
    def talks(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        print("hello")
        return plain(q, k, v)

    adapted_as(talks)
    assert capfd.readouterr() == ("", "")


def test_the_random_state_is_as_it_was() -> None:
    before = torch.random.get_rng_state()
    adapted_as(lambda x: x + torch.randn_like(x), kind="layer")
    assert torch.equal(before, torch.random.get_rng_state())


def test_code_that_does_not_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attnproof.programs.adapting.SECONDS", 0.2)

    def forever(x: Tensor) -> Tensor:
        while True:
            x = x + 1

    with pytest.raises(CodeFault, match="did not finish"):
        adapted_as(forever)


# declared sizes reach code that takes any; and what is advised where no adapter fits


HALF = "rope:base=10000,layout=half,width="
NAMES = ["layout-as-declared", "width-as-declared", "frequencies-as-declared"]


def rope(x: Tensor, positions: Tensor) -> Tensor:
    half = x.shape[-1] // 2
    angles = positions[:, None].float() * 10000.0 ** (-torch.arange(half) / half)
    a, b = x[..., :half], x[..., half:]
    cos, sin = angles.cos(), angles.sin()
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


def sixteen(x: Tensor, positions: Tensor) -> Tensor:
    return torch.cat((rope(x[..., :16], positions), x[..., 16:]), -1)


def quarter(x: Tensor, positions: Tensor) -> Tensor:
    part = x.shape[-1] // 4
    return torch.cat((rope(x[..., :part], positions), x[..., part:]), -1)


class Rope(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        if x.shape[-1] != self.dim:
            raise ValueError(f"heads of {self.dim} channels were wanted")
        return rope(x, positions)


class Alibi(nn.Module):
    def __init__(self, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads

    def forward(self, length: int) -> Tensor:
        return alibi(self.num_heads, length)


@pytest.mark.parametrize(
    ("made", "declared"),
    [(rope, 64), (sixteen, 16), (quarter, 16), (Rope, 64)],
    ids=["function", "part", "quarter", "class"],
)
def test_code_that_takes_any_width_is_called_with_the_declared_one(
    made: Any, declared: int
) -> None:
    record = check_rotary(made, NAMES, declared=f"{HALF}{declared}", methods=["measured"])
    assert [law.verdict for law in record.laws] == ["measured"] * 3


def test_code_that_rotates_another_width_is_broken_and_raises_nothing() -> None:
    record = check_rotary(Rope(8), NAMES[1:2], declared=f"{HALF}64", methods=["measured"])
    assert record.law(NAMES[1]).verdict == "broken"
    assert record.law(NAMES[1]).why == "8 channels rotate, and 64 are declared"
    few = check_rotary(sixteen, NAMES[1:2], declared=f"{HALF}64", methods=["measured"])
    assert few.law(NAMES[1]).why == "16 channels rotate, and 64 are declared"
    other = check_rotary(rope, NAMES[1:2], declared=f"{HALF}64", methods=["measured"], width=8)
    assert other.law(NAMES[1]).verdict == "undecided"
    assert "was called with 8 channels" in other.law(NAMES[1]).why


def test_which_code_takes_any_width() -> None:
    wide = {
        made: adapted_as(made, kind="rotary", width=width)
        for made, width in ((rope, 0), (sixteen, 32), (quarter, 0), (Rope, 0))
    }
    assert {m.__name__: s.any_width for m, s in wide.items() if isinstance(s, Rotary)} == {
        "rope": True,
        "sixteen": False,
        "quarter": False,
        "Rope": False,
    }
    told: Any = check_rotary(rope, methods=["identity"])
    assert "any width (called with 8)" in told.identity.sentence


@pytest.mark.parametrize("made", [alibi, Alibi])
@pytest.mark.parametrize("declared", ["name=alibi,heads=8", "slopes=0.5;0.25;0.125"])
def test_declared_heads_reach_functions_and_constructors(
    made: Callable[..., Any], declared: str
) -> None:
    subject: Any = adapted_as(made, declared=parse(f"bias:{declared}"))
    assert subject.heads == (8 if "heads" in declared else 3)


def test_another_number_of_heads_than_declared_is_broken() -> None:
    record = check_bias(
        Alibi(4), ["slopes-as-declared"], declared="bias:name=alibi,heads=8", methods=["measured"]
    )
    assert "another number of heads" in record.law("slopes-as-declared").why
    table = check_bias(
        lambda length: alibi(4, length),
        ["buckets-as-declared"],
        declared="bias:name=t5,heads=8",
        methods=["measured"],
    )
    assert table.law("buckets-as-declared").why == (
        "the bias has another number of heads than is declared"
    )


def test_code_of_no_telling_name_is_told_to_be_called_so() -> None:
    def twist(x: Tensor, positions: Tensor) -> Tensor:
        return rope(x, positions)

    told = "taken for rotary code: it can be called as such code"
    assert adapted_as(twist).adapted.endswith(told)


def strange_mask(colour: int, shade: int) -> int:
    if not isinstance(colour, int):
        raise TypeError("a colour is a number")
    return colour + shade


def test_what_is_advised_is_of_the_kind_and_of_the_way_it_was_asked() -> None:
    with pytest.raises(NoAdapter) as refused:
        adapted_as(strange_mask)
    python, command = str(refused.value), refused.value.on_command_line
    assert "kind=.." in python
    assert "--as" not in python
    assert "--as rotary|attention|bias|additive|mask|layer" in command
    assert not any(word in command for word in ("kind=", "settings={", "arguments={"))
    for text in (python, command):
        assert "mask=lambda queries, keys: strange_mask(queries, keys)" in text
        assert "Rotary" not in text


@pytest.mark.parametrize("kind", CALLED)
def test_every_example_is_code_that_runs(kind: str) -> None:
    with pytest.raises(NoAdapter) as refused:
        adapted_as(strange_mask, kind=kind)
    example = refused.value.on_command_line.partition("FILE.py::subject:\n")[2]
    names: dict[str, Any] = {"strange_mask": strange_mask}
    exec(example, names)
    assert isinstance(names["subject"](), KINDS[kind])


class Attention(nn.Module):
    """It has the name of a class of ours."""

    def forward(self, x: Tensor, colour: Tensor) -> Tensor:
        raise TypeError(x, colour)


def test_an_example_takes_no_class_of_the_code_for_one_of_ours() -> None:
    with pytest.raises(NoAdapter) as refused:
        adapted_as(Attention)
    names: dict[str, Any] = {"Attention": Attention}
    exec(refused.value.on_command_line.partition("FILE.py::subject:\n")[2].replace("..", ""), names)
    assert isinstance(names["subject"]().module, Attention)


def test_code_in_a_wrapper_is_where_it_is_written() -> None:
    @torch.no_grad()
    def wrapped(colour: Tensor) -> Tensor:
        return colour

    line = wrapped.__wrapped__.__code__.co_firstlineno  # type: ignore[attr-defined]
    assert place_of(wrapped) == f"{__file__}:{line}"


def test_a_class_that_cannot_be_built_is_to_be_built_in_the_file() -> None:
    class Wants(nn.Module):
        def __init__(self, colour: str) -> None:  # noqa: ARG002
            super().__init__()

    with pytest.raises(NoAdapter) as refused:
        adapted_as(Wants)
    assert "return Wants(..)" in refused.value.on_command_line
    assert "settings" not in refused.value.on_command_line


@torch.compile(backend="eager")
def compiled(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)
    return torch.matmul(weights, v)


class OfCompiled(nn.Module):
    """Attention with one head, by a compiled function."""

    def __init__(self, embed_dim: int = 16) -> None:
        super().__init__()
        self.qkv = nn.Linear(embed_dim, 3 * embed_dim)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = compiled(*self.qkv(x).chunk(3, -1))
        return found


class OfCompiledMethod(OfCompiled):
    @torch.compile(backend="eager")
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x)


def in_place() -> nn.Module:
    module = nn.MultiheadAttention(16, 4, batch_first=True)
    module.compile(backend="eager")
    return module


OF_COMPILED: dict[str, Callable[[], Any]] = {
    "a function": lambda: compiled,
    "a class that calls one": lambda: OfCompiled,
    "a method": lambda: OfCompiledMethod,
    "a module": lambda: torch.compile(OfCompiled(), backend="eager"),
    "a module that is compiled in place": in_place,
    "a subject": lambda: Layer(
        name="l", call=torch.compile(OfCompiled(), backend="eager"), embed=16
    ),
}


@pytest.mark.parametrize("name", OF_COMPILED)
def test_compiled_code_is_run_as_it_is_written_and_the_line_says_so(name: str) -> None:
    torch._dynamo.utils.counters.clear()
    code = adapted_as(OF_COMPILED[name]())
    with restored_settings():
        (measured,) = examine(code, laws=("rows-of-batch-apart",))
    (proved,) = prove(code, ("rows-of-batch-apart",)).findings
    assert {measured.verdict, proved.verdict} == {"holds"}
    assert code.converted == "torch.compile is switched off"
    assert code.converted in [one.text for one in proved.assuming]
    assert not torch._dynamo.utils.counters["frames"]


@torch.compile(backend="eager")
def compiled_tables(dim: int, end: int) -> tuple[Tensor, Tensor]:
    angles = torch.arange(end)[:, None] * 100.0 ** -torch.arange(0, 1, 2 / dim)
    return angles.cos(), angles.sin()


class CompiledTables(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim
        self.made = torch.compile(lambda angles: (angles.cos(), angles.sin()), backend="eager")

    def forward(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        ladder = 100.0 ** -torch.arange(0, 1, 2 / self.dim)
        found: tuple[Tensor, Tensor] = self.made(positions[:, None] * ladder)
        return found


def rotated_by_tables(q: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    a, b = q.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


@pytest.mark.parametrize(
    "maker",
    [
        "compiled_tables(dim = D, end = m -> m D/2, m D/2)",
        "CompiledTables(positions: n -> n D/2, n D/2)",
    ],
)
def test_a_compiled_maker_of_tables_is_run_as_it_is_written_and_the_line_says_so(
    maker: str,
) -> None:
    line = f"q: B H n D, cos: n D/2, sin: n D/2 -> q; cos, sin from {maker}"
    code = adapted_as(rotated_by_tables, line)
    assert code.converted == "torch.compile is switched off"
    assert code.converted in code.conditions
    handed = adapted_as(
        compiled_tables, f"dim = D, end = m -> cos: m D/2, sin: m D/2; then {APPLIED}"
    )
    assert handed.converted == "torch.compile is switched off"


APPLIED = "rotated_by_tables(q: B H n D, cos: n D/2, sin: n D/2 -> q)"


def test_what_is_not_compiled_carries_no_such_condition() -> None:
    held = torch.compiler.disable(lambda x: x)  # type: ignore[no-untyped-call]
    for code in adapted_as(nn.MultiheadAttention(16, 4)), adapted_as(held, "x: B n E -> B n E"):
        assert not code.converted
