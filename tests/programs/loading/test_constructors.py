"""What constructors are given where nobody says, and where a line says it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from pydantic import BaseModel
from torch import Tensor, nn

from attnproof.programs.call_forms.choices import choices
from attnproof.programs.code import DoesNotFit
from attnproof.programs.execution.draw import Draw
from attnproof.programs.loading import pretrained
from attnproof.programs.loading.source_numbers import numbers_in
from attnproof.programs.measure.examine import examine
from attnproof.programs.no_adapter import NoAdapter
from attnproof.programs.prove import prove
from attnproof.programs.signatures.signature import SignatureError
from attnproof.programs.subject import adapted_as
from attnproof.programs.subjects import Subject


class Stack(nn.Module):
    """As vision transformers are written: how deep, and how wide between, has no default."""

    def __init__(self, dim: int, depth: int, heads: int, mlp_dim: int, dropout: float) -> None:
        super().__init__()
        self.depth, self.between, self.dropout = depth, mlp_dim, dropout
        self.parts = nn.ModuleList(
            nn.MultiheadAttention(dim, heads, batch_first=True) for _ in range(depth)
        )
        self.wider, self.back = nn.Linear(dim, mlp_dim), nn.Linear(mlp_dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        for attention in self.parts:
            x = x + attention(x, x, x)[0]
        found: Tensor = x + self.back(self.wider(x).relu())
        return found


class Wide(nn.Module):
    """Heads of a default width that a narrow token does not hold."""

    def __init__(self, dim: int, dim_head: int = 32) -> None:
        super().__init__()
        if dim % dim_head:
            raise ValueError("dimension should be divisible by dimension per head")
        self.qkv = nn.Linear(dim, 3 * dim)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)
        found: Tensor = torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, -1) @ v
        return found


class Windowed(nn.Module):
    """Sides as a list, and a number of which its name says nothing."""

    def __init__(self, input_size: int, window_size: list[int], rotates: int) -> None:
        super().__init__()
        if window_size[0] != window_size[1] or rotates != 8:
            raise ValueError("wanted eight rotates")
        self.attention = nn.MultiheadAttention(input_size, 2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.attention(x, x, x)[0]
        return found


class Coloured(nn.Module):
    def __init__(self, colour) -> None:  # type: ignore[no-untyped-def]
        super().__init__()
        self.colour = colour + "ed"

    def forward(self, x: Tensor) -> Tensor:
        return x


class Scaling(BaseModel):
    factors: list[float]


class Checked(BaseModel):
    """A config of which another library refuses what does not fit, in no line of this file."""

    hidden_size: int
    num_heads: int
    scaling: Scaling


class OfChecked(nn.Module):
    """Attention of such a config."""

    def __init__(self, config: Checked) -> None:
        super().__init__()
        self.scale = config.scaling.factors[0]
        self.attention = nn.MultiheadAttention(
            config.hidden_size, config.num_heads, batch_first=True
        )

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.scale * self.attention(x, x, x)[0]
        return found


@dataclass
class NotSmall:
    """A config that refuses the small sizes that are chosen for it."""

    hidden_size: int = 96
    num_heads: int = 6

    def __post_init__(self) -> None:
        if self.hidden_size < 96:
            raise ValueError("wanted 96 features or more")


class OfNotSmall(nn.Module):
    def __init__(self, config: NotSmall) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(
            config.hidden_size, config.num_heads, batch_first=True
        )

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.attention(x, x, x)[0]
        return found


class Divided(nn.MultiheadAttention):
    """What torch refuses in a constructor that this class has not of its own."""


class OpenConfig:
    """A config that holds what it is given, and declares little of it."""

    def __init__(self, vocab_size: int, **others: Any) -> None:
        self.vocab_size = vocab_size
        self.__dict__.update(others)


class OfOpen(nn.Module):
    def __init__(self, config) -> None:  # type: ignore[no-untyped-def]
        super().__init__()
        self.attention = nn.MultiheadAttention(config.n_attn, config.n_head, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.attention(x, x, x)[0]
        return found


class OfOpenRates(OfOpen):
    def __init__(self, config) -> None:  # type: ignore[no-untyped-def]
        super().__init__(config)
        self.rate = config.rates[0]


@pytest.mark.parametrize("thing", [Stack, Wide, Windowed, OfNotSmall, OfOpen])
def test_a_class_is_built_by_names_types_and_what_it_takes(thing: type[nn.Module]) -> None:
    assert adapted_as(thing, "").kind == "attention"


def test_what_was_guessed_is_told_and_what_is_told_is_kept() -> None:
    found = adapted_as(Stack, "x: B n E -> B n E", kind="attention")
    assert "built as with --set depth=2 mlp_dim=32" in found.adapted
    told: Any = adapted_as(Stack, "x: B n E -> B n E", kind="attention", settings={"depth": 3})
    assert told.module.depth == 3
    assert "built as with --set mlp_dim=32" in told.adapted
    with pytest.raises(NoAdapter, match="wanted eight rotates"):
        adapted_as(Windowed, "", settings={"rotates": 3})


class Deeper(nn.Module):
    """What is different from layer to layer: the index of the layer may have a default."""

    def __init__(self, layer_idx: int = 3) -> None:
        super().__init__()
        self.layer_idx = layer_idx
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = 0.5**self.layer_idx * self.attention(x, x, x)[0]
        return found


class DeeperIfTold(Deeper):
    def __init__(self, layer_idx: int | None = None) -> None:
        assert layer_idx is not None
        super().__init__(layer_idx)


@pytest.mark.parametrize(("thing", "index"), [(Deeper, 3), (DeeperIfTold, 0)])
def test_the_index_of_a_layer_is_chosen_only_where_the_code_has_none(
    thing: type[Deeper], index: int
) -> None:
    found = adapted_as(thing, "x: B n E -> B n E", kind="attention")
    assert found.module is not None
    assert found.module.layer_idx == index


def test_a_parameter_that_says_nothing_is_refused_by_name() -> None:
    with pytest.raises(NoAdapter, match="'colour', and its name does not say what that is"):
        adapted_as(Coloured, "")


def test_a_field_that_a_config_lacks_is_to_be_set() -> None:
    with pytest.raises(NoAdapter) as refused:
        adapted_as(OfOpenRates, settings={"config.n_attn": 16, "config.n_head": 2})
    assert "has no attribute 'rates'; give --set config.rates=.." in refused.value.on_command_line
    given = {"config.n_attn": 16, "config.n_head": 2, "config.rates": [1.0]}
    assert adapted_as(OfOpenRates, settings=given).kind == "attention"


@pytest.mark.parametrize("line", ["", "x: B n E -> B n E"])
def test_what_another_library_raises_of_a_config_is_a_refusal(line: str) -> None:
    told = r"Checked raised ValidationError.*scaling.*--set config.FIELD=VALUE"
    with pytest.raises(NoAdapter, match=told):
        adapted_as(OfChecked, line, kind="attention")
    whole = {"config.scaling.factors": [2.0]}
    assert adapted_as(OfChecked, line, kind="attention", settings=whole).kind == "attention"
    with pytest.raises(NoAdapter, match=r"Divided raised AssertionError: .*divisible"):
        adapted_as(Divided, line, kind="attention", settings={"num_heads": 3})


def test_numbers_of_code_are_read_past_what_cannot_be_read() -> None:
    assert 41 in numbers_in([BaseModel, Checked, {"rows": 41}])


# what a line says a class is built with is what --set says: the code is built once, and proved


class Rope(nn.Module):
    """Rotary code of one width, with a fault where it is built so."""

    def __init__(self, head_dim: int = 32, late: bool = False) -> None:
        super().__init__()
        self.head_dim, self.late = head_dim, late
        speeds = 100.0 ** -(torch.arange(0, head_dim, 2) / head_dim)
        self.speeds: Tensor
        self.register_buffer("speeds", speeds)

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        assert x.shape[-1] == self.head_dim
        at = positions * positions if self.late else positions
        angle = at[:, None, :, None] * self.speeds
        u, v = x.chunk(2, -1)
        return torch.cat((u * angle.cos() - v * angle.sin(), u * angle.sin() + v * angle.cos()), -1)


class Sines(nn.Module):
    """A table that is added."""

    def __init__(self, dim: int = 48) -> None:
        super().__init__()
        speeds = 100.0 ** -(torch.arange(0, dim, 2) / dim)
        angle = torch.arange(64)[:, None] * speeds
        self.table: Tensor
        self.register_buffer("table", torch.cat((angle.sin(), angle.cos()), -1))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.table[: x.shape[1]]


class Scores(nn.Module):
    """Attention on heads that is built with their width, and does not read it off."""

    def __init__(self, dim: int = 32) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        assert q.shape[-1] == self.dim
        out: Tensor = (q @ k.mT / self.dim**0.5).softmax(-1) @ v
        return out


class Mixes(nn.Module):
    """A layer with projections of its own."""

    def __init__(self, size_of_tokens: int = 24) -> None:
        super().__init__()
        self.out = nn.Linear(size_of_tokens, size_of_tokens)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.out((x @ x.mT / 4).softmax(-1) @ x)
        return out


def _verdict(subject: Subject, law: str) -> str:
    (found,) = [one for one in prove(subject, (law,)).findings if one.law == law]
    return found.verdict


CALLS: dict[str, tuple[Any, str, str, str]] = {
    "rotary": (Rope, "x: B H n D, positions: B n -> x", "head_dim = D", "relative"),
    "a table": (Sines, "x: B n E -> B n E", "dim = E", "rows-of-batch-apart"),
    "heads": (Scores, "q: B H r D, k: B H n D, v: B H n D -> B H r D", "dim = D", "permutation"),
    "a layer": (Mixes, "x: B n E -> B n E", "size_of_tokens = E", "permutation"),
}


@pytest.mark.parametrize(("code", "line", "built", "law"), CALLS.values(), ids=CALLS)
def test_what_a_line_builds_is_proved_as_what_a_setting_builds(
    code: Any, line: str, built: str, law: str
) -> None:
    name = built.partition(" ")[0]
    told = adapted_as(code, f"{line}; built with {built}")
    module: Any = told.module
    width = {"D": "width", "E": "embed"}[built[-1]]
    size = getattr(told, width, 0) or getattr(told, "width", 0)
    if name in vars(module):
        assert getattr(module, name) == size
    assert "built as with" not in told.adapted
    assert _verdict(told, law) == "holds"
    assert _verdict(adapted_as(code, line, settings={name: size}), law) == "holds"


def test_what_a_line_builds_with_a_fault_is_not_proved() -> None:
    line = "x: B H n D, positions: B n -> x; built with head_dim = D"
    assert _verdict(adapted_as(Rope, line, settings={"late": True}), "relative") != "holds"


def test_heads_that_a_line_tells_are_those_that_it_is_built_with() -> None:
    line = "q: B H r 12, k: B H n 12, v: B H n 12 -> B H r 12; built with dim = 12"
    subject: Any = adapted_as(Scores, line)
    assert subject.width == 12
    with pytest.raises(SignatureError, match="it raised AssertionError"):
        adapted_as(Scores, line.replace("dim = 12", "dim = 13"))


class WideInALine(Rope):
    """It has one frequency at a width of 8, and those of its base at others."""

    def __init__(self, head_dim: int, base: float = 100.0) -> None:
        super().__init__(head_dim)
        self.speeds = base ** -(torch.arange(0, head_dim, 2) // 8 * 8 / head_dim)


def test_a_width_that_was_chosen_here_is_named_where_another_keeps_the_law() -> None:
    line = "x: B H n D, positions: B n -> x; built with head_dim = D"
    subject = adapted_as(WideInALine, line)
    law = ("follows-its-arguments",)
    (seen,) = examine(subject, (Draw(),), law)
    assert seen.verdict == "broken"
    wider = [one for one in choices(subject) if "head_dim=16" in one.words]
    (other,) = examine(wider[0].make(), (Draw(),), law)
    assert other.verdict == "holds"


@dataclass
class Kernel:
    """What a layer reads when it is called."""

    scale: float = 0.5


@dataclass
class Other:
    """A config that would do as well."""

    scale: float = 2.0


class ReadsIt(nn.Module):
    """Its config may be left out where it is built, and not where it is called."""

    def __init__(
        self, embed_dim: int, num_heads: int, config: Kernel | Other | None = None
    ) -> None:
        super().__init__()
        self.heads, self.config = num_heads, config
        self.both = nn.Linear(embed_dim, 2 * embed_dim)

    def forward(self, hidden_states: Tensor) -> Tensor:
        assert self.config is not None
        q, v = (x.unflatten(-1, (self.heads, -1)) for x in self.both(hidden_states).chunk(2, -1))
        scores = self.config.scale * torch.einsum("bnhd,bmhd->bhnm", q, q)
        return torch.einsum("bhnm,bmhd->bnhd", scores.softmax(-1), v).flatten(2)


def test_a_config_that_may_be_left_out_is_given() -> None:
    code: Any = adapted_as(ReadsIt, name="Attention")
    assert code.line == "hidden_states: B n E -> B n E"
    assert code.module.config == Kernel()


class Never:
    """Nothing that could be built here."""

    def __init__(self, unheard: object) -> None:
        raise ValueError(unheard)


class Refuses(ReadsIt):
    """What is given for its config is refused, and none is needed."""

    def __init__(self, embed_dim: int, num_heads: int, config: Kernel | None = None) -> None:
        if config is not None:
            raise ValueError("give sizes or a config")
        super().__init__(embed_dim, num_heads, Kernel())


class Unbuilt(ReadsIt):
    def __init__(self, embed_dim: int, num_heads: int, config: Never | None = None) -> None:
        assert config is None
        super().__init__(embed_dim, num_heads, Kernel())


@pytest.mark.parametrize("cls", [Refuses, Unbuilt])
def test_a_config_that_cannot_be_given_is_left_out(cls: type[nn.Module]) -> None:
    code: Any = adapted_as(cls, name="Attention")
    assert code.line == "hidden_states: B n E -> B n E"


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("bart", "BartAttention"),  # sizes, and a config of one class or None
        ("clip", "CLIPAttention"),  # a config of one of two classes
        ("trocr", "TrOCRAttention"),  # a config, and sizes that are needed as well
        ("gpt2", "GPT2Attention"),  # its projection lays rows in one axis
    ],
)
def test_attention_of_models_is_called_by_its_name(module: str, name: str) -> None:
    file = pytest.importorskip(f"transformers.models.{module}.modeling_{module}")
    subject: Any = adapted_as(getattr(file, name))
    assert subject.kind == "attention"
    assert subject.line.startswith("hidden_states: B n E")


def test_no_config_of_full_size_is_built() -> None:
    falcon = pytest.importorskip("transformers.models.falcon.modeling_falcon")
    small = pretrained.small_config(falcon.FalconConfig, falcon.FalconAttention)
    assert small.hidden_size == pretrained.SMALL["hidden_size"]  # its head_dim is computed
    told = {"hidden_size": 4544, "num_attention_heads": 71, "num_hidden_layers": 32}
    with pytest.raises(DoesNotFit, match="million parameters; give small ones, such as --set"):
        pretrained.small_config(
            type("FullConfig", (falcon.FalconConfig,), {"__init__": _only(falcon, told)}),
            falcon.FalconModel,
        )


def _only(falcon: Any, told: dict[str, Any]) -> Any:
    """A constructor of configs that takes no sizes."""

    def made(self: Any) -> None:
        falcon.FalconConfig.__init__(self, **told)

    return made


def test_a_setting_of_a_config_may_have_another_name_than_the_small_sizes() -> None:
    bloom = pytest.importorskip("transformers.models.bloom.modeling_bloom")
    for name in ("n_layer", "num_hidden_layers"):
        small = pretrained.small_config(bloom.BloomConfig, bloom.BloomModel, {name: 1})
        assert (small.n_layer, small.num_hidden_layers, small.n_head) == (1, 1, 4)


def test_a_config_that_lists_its_layers_keeps_their_number() -> None:
    neo = pytest.importorskip("transformers.models.gpt_neo.modeling_gpt_neo")
    small = pretrained.small_config(neo.GPTNeoConfig, neo.GPTNeoAttention)
    assert (small.hidden_size, small.num_heads) == (32, 4)
    assert len(small.attention_layers) == small.num_layers > pretrained.SMALL["num_layers"]
