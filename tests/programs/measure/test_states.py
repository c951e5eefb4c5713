"""Probes of state on attention, layers, biases and masks: rows apart, calls that forget, paths."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from attnproof.programs.exact import exact
from attnproof.programs.execution.calling import evaluating, fresh, seeded_call
from attnproof.programs.execution.draw import Draw
from attnproof.programs.finding import Finding
from attnproof.programs.measure.base import PROBES
from attnproof.programs.measure.calls import ways_of
from attnproof.programs.measure.dropout import REPEATED
from attnproof.programs.measure.examine import examine
from attnproof.programs.subject import adapted_as
from attnproof.programs.subjects import Attention, Bias, Layer, Mask, Subject
from attnproof.theorems.laws import LAWS

STATE = ("rows-of-batch-apart", "stateless", "no-mutation")


def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    return scaled_dot_product_attention(q, k, v, mask)


def by_hand(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, scale: float = 8**-0.5
) -> Tensor:
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    scores = (q * scale) @ k.mT
    if mask is not None:
        scores = (
            scores.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else scores + mask
        )
    return scores.softmax(-1) @ v


class SelfAttention(nn.Module):
    """Random weights, dropout, and evaluation to switch it off."""

    def __init__(self, embed: int = 16, heads: int = 2) -> None:
        super().__init__()
        self.heads = heads
        self.inward, self.outward = nn.Linear(embed, 3 * embed), nn.Linear(embed, embed)
        self.dropout = nn.Dropout(0.3)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.inward(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        result: Tensor = self.dropout(self.outward(attend(q, k, v).transpose(1, 2).flatten(2)))
        return result


def functions(**fields: Any) -> Attention:
    return Attention(
        name="code", attend=attend, heads=4, groups=2, width=8, masks=("bool", "float"), **fields
    )


def layer(build: Callable[[], nn.Module] = SelfAttention) -> Attention:
    module = build()
    return Attention(
        name="code", layer=module, embed=16, heads=2, module=module, make=lambda: layer(build)
    )


def plain_layer() -> Layer:
    module = nn.Sequential(nn.Linear(6, 9), nn.GELU(), nn.Linear(9, 6))
    return Layer(name="code", call=module, embed=6, module=module, make=plain_layer)


def bias(heads: int = 4) -> Bias:
    def make(queries: int, keys: int) -> Tensor:
        slopes = 2.0 ** -torch.arange(1, heads + 1)
        row = torch.arange(keys - queries, keys)[:, None]
        return -slopes[:, None, None] * (row - torch.arange(keys)).abs()

    return Bias(name="code", heads=heads, bias=make, make=bias)


def mask() -> Mask:
    return Mask(name="code", mask=lambda t, s: torch.ones(t, s).tril(s - t).bool())


RIGHT: dict[str, Callable[[], Subject]] = {
    "functions": lambda: functions(paths={"by hand": by_hand}),
    "a layer with dropout": layer,
    "a layer that is not an attention": plain_layer,
    "bias": bias,
    "mask": mask,
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", RIGHT)
def test_right_code_is_left_alone(name: str, dtype: torch.dtype) -> None:
    subject = RIGHT[name]()
    if subject.module is not None:
        subject.module.to(dtype)
        built, subject = subject, replace(subject, make=None)
        assert built.module is subject.module
    found = examine(subject, [Draw(seed=s, dtype=dtype) for s in range(2)], STATE)
    assert found
    assert [f"{f.law}: {f.why}" for f in found if f.verdict not in ("holds", "not asked")] == []


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16], ids=str)
@pytest.mark.parametrize("name", ["a layer with dropout", "a layer that is not an attention"])
def test_a_module_is_cast_for_the_look_and_is_then_as_it_was(name: str, dtype: torch.dtype) -> None:
    subject: Any = RIGHT[name]()
    before = {k: v.clone() for k, v in subject.module.state_dict().items()}
    found = examine(subject, [Draw(seed=2, dtype=dtype)], STATE)
    assert {f.verdict for f in found if f.law != "paths-agree"} == {"holds"}, found
    after = subject.module.state_dict()
    assert all(torch.equal(after[k], v) and after[k].dtype == v.dtype for k, v in before.items())


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
def test_faults_are_seen_in_every_dtype(dtype: torch.dtype) -> None:
    """AEMatter#3 and mlc-llm#3426: bfloat16 hides what float64 shows."""
    unscaled = functions(paths={"fallback": lambda q, k, v, m: by_hand(q, k, v, m, scale=1.0)})
    for law, subject in (
        ("rows-of-batch-apart", layer(AcrossRows)),
        ("paths-agree", unscaled),
        ("stateless", layer(KeepsLength)),
    ):
        (found,) = examine(subject, [Draw(dtype=dtype)], [law])
        assert found.verdict == "broken", f"{law}: {found.why}"
        assert found.witness is not None
        assert found.witness.inputs["format"] == "float64"


def test_softmax_in_float32_is_no_fault_of_float64() -> None:
    def attend_in_float32(q: Tensor, k: Tensor, v: Tensor, _mask: Tensor | None) -> Tensor:
        return by_hand(q.float(), k.float(), v.float()).to(q.dtype)

    subject = replace(
        functions(),
        attend=attend_in_float32,
        masks=(),
        paths={"fused": lambda q, k, v, _m: attend(q, k, v)},
    )
    for dtype in (torch.float64, torch.float32):
        found = examine(subject, [Draw(seed=s, dtype=dtype) for s in range(2)], STATE)
        assert {f.verdict for f in found} == {"holds"}, found


class AlwaysDrops(SelfAttention):
    """Drops in evaluation as well."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.dropout(super().forward(x), 0.3, True)


def test_what_is_random_in_evaluation_is_undecided_and_says_where_to_look() -> None:
    """pytorch-image-models#1978: rows differ by chance, not because they read each other."""
    (found,) = examine(layer(AlwaysDrops), laws=["rows-of-batch-apart"])
    assert found.verdict == "undecided"
    assert "two equal calls differ" in found.why
    assert "see evaluation-repeats" in found.why
    (found,) = examine(counting_layer(), laws=["rows-of-batch-apart"])
    assert found.verdict == "undecided"
    assert "two equal calls differ" in found.why


class SeldomDrops(SelfAttention):
    """Draws in every call, from the generator of Python or of numpy, and drops one in ninety."""

    draw = staticmethod(random.random)
    calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.draw()
        self.calls += 1
        return super().forward(x) * (self.calls % 90 > 0)


class SeldomDropsByNumpy(SeldomDrops):
    draw = staticmethod(np.random.random)


class SeldomDropsByItsOwn(SeldomDrops):
    """Draws from a generator that it holds, which it is given here."""

    def __init__(self) -> None:
        super().__init__()
        self.draw = random.Random(0).random


class SeldomDropsByItsOwnOfNumpy(SeldomDrops):
    def __init__(self) -> None:
        super().__init__()
        self.own = np.random.default_rng(0)

    def draw(self) -> float:
        return self.own.random()


class SeldomDropsByItsOwnOfTorch(SeldomDrops):
    def __init__(self) -> None:
        super().__init__()
        self.own = torch.Generator().manual_seed(0)

    def draw(self) -> float:
        return float(torch.rand((), generator=self.own))


class SeldomDropsByNoGenerator(SelfAttention):
    """Drops in every fifteenth call, as a clock may have it."""

    calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return super().forward(x) * (self.calls % 15 > 0)


REPEATS = "evaluation-repeats"
SELDOM = [
    SeldomDrops,
    SeldomDropsByNumpy,
    SeldomDropsByItsOwn,
    SeldomDropsByItsOwnOfNumpy,
    SeldomDropsByItsOwnOfTorch,
    SeldomDropsByNoGenerator,
]


class ChangesAtItsTwentieth(nn.Module):
    """Nothing is dropped by any name, so that no dropout explains what differs."""

    calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return x.cumsum(1) * (self.calls != 20)


def test_what_differs_once_is_broken_where_no_dropout_is_set() -> None:
    module = ChangesAtItsTwentieth()
    (found,) = examine(Layer(name="c", call=module, module=module, embed=4), laws=[REPEATS])
    assert found.verdict == "broken"
    assert f"{REPEATED} equal calls" in examine(layer(), laws=[REPEATS])[0].why


@pytest.mark.parametrize("kind", SELDOM)
def test_what_seldom_is_random_is_noticed_whoever_draws(kind: type[nn.Module]) -> None:
    (found,) = examine(layer(kind), laws=[REPEATS])
    assert found.verdict == "broken"


def test_fresh_layers_have_the_weights_of_each_other() -> None:
    subject = layer()
    one, two = fresh(subject), fresh(subject)
    assert one is not None
    assert two is not None
    assert one.module is not two.module
    found = examine(subject, laws=["stateless"])
    assert [f.verdict for f in found] == ["holds"]


class LearnedBias(nn.Module):
    """A weight for each head and offset, drawn by the constructor."""

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(heads, 199))

    def forward(self, r: int, n: int) -> Tensor:
        offsets = torch.arange(n) - torch.arange(n - r, n)[:, None]
        return self.weight[:, offsets.clamp(-99, 99) + 99]


@pytest.mark.parametrize(
    ("code", "line"),
    [
        (LearnedBias, "r = r, n = n -> H r n; built with heads = H"),
        (SelfAttention, "x: B n E -> B n E; built with embed = E"),
    ],
)
def test_code_built_at_the_sizes_of_a_line_has_the_weights_of_a_fresh_one(
    code: type[nn.Module], line: str
) -> None:
    (found,) = examine(adapted_as(code, line), laws=["stateless"])
    assert found.verdict == "holds", found.why


def test_state_laws_have_probes_for_all_kinds() -> None:
    examine(mask(), laws=["no-mutation"])
    for law in ("stateless", "no-mutation"):
        (about,) = (known.about for known in LAWS if known.id == law)
        assert {p.kind for p in PROBES if p.law == law} == set(about)


class AcrossRows(SelfAttention):
    """Takes the batch for the sequence."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.transpose(0, 1)).transpose(0, 1)


class KeepsLength(SelfAttention):
    """A table of positions that is made once, and cut where it is too long."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        if self.kept is None or len(self.kept) < x.shape[1]:
            self.kept = torch.linspace(0, 1, x.shape[1], dtype=x.dtype)[:, None]
        return super().forward(x + self.kept[: x.shape[1]])


def first_row_for_one_token(q: Tensor, k: Tensor, v: Tensor, _mask: Tensor | None) -> Tensor:
    result = attend(q, k, v)
    if q.shape[2] == 1:
        result[1:] = 0
    return result


def scaled_in_place(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    return by_hand(q.mul_(8**-0.5), k, v, mask, scale=1.0)


def filled_in_place(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    if mask is not None and mask.dtype == torch.bool:
        k.masked_fill_(~mask[:, :, 0, :, None], 0)
    return by_hand(q, k, v, mask)


def mask_in_place(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    if mask is not None and mask.dtype != torch.bool:
        mask.clamp_(min=-1e4)
    return by_hand(q, k, v, mask)


def kept_bias() -> Bias:
    kept: list[Tensor] = []

    def make(queries: int, keys: int) -> Tensor:
        if not kept or kept[0].shape[1] < queries or kept[0].shape[2] < keys:
            kept[:] = [bias().bias(queries, keys)]  # type: ignore[misc]
        return kept[0][:, :queries, :keys]

    return Bias(name="code", heads=4, bias=make, make=kept_bias)


def growing_mask() -> Mask:
    longest = [0]

    def make(queries: int, keys: int) -> Tensor:
        longest[0] = max(longest[0], keys)
        return torch.ones(queries, keys).tril(longest[0] - queries).bool()

    return Mask(name="code", mask=make, make=growing_mask)


def counting_layer() -> Layer:
    calls = [0]

    def call(x: Tensor) -> Tensor:
        calls[0] += 1
        return x + calls[0]

    return Layer(name="code", call=call, embed=4, make=counting_layer)


class InTraining(SelfAttention):
    """Another scale in training."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x * (2.0 if self.training else 1.0))


class Noisy(SelfAttention):
    """Noise in training, and what it keeps of a batch."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x + torch.randn_like(x) * self.training)


FAULTS: list[tuple[str, Callable[[], Subject]]] = [
    ("rows-of-batch-apart", lambda: layer(AcrossRows)),
    ("rows-of-batch-apart", lambda: replace(functions(), attend=first_row_for_one_token)),
    ("rows-of-batch-apart", lambda: Layer(name="c", call=lambda x: x - x.mean(0), embed=4)),
    ("stateless", lambda: layer(KeepsLength)),
    ("stateless", kept_bias),
    ("stateless", growing_mask),
    ("stateless", counting_layer),
    ("training-is-evaluation", lambda: layer(InTraining)),
    ("no-mutation", lambda: replace(functions(), attend=scaled_in_place)),
    ("no-mutation", lambda: Layer(name="c", call=lambda x: x.mul_(2), embed=4)),
    ("no-mutation", lambda: replace(functions(), attend=filled_in_place)),
    ("no-mutation", lambda: replace(functions(), attend=mask_in_place)),
    (
        "paths-agree",
        lambda: functions(paths={"fallback": lambda q, k, v, m: by_hand(q, k, v, m, scale=1.0)}),
    ),
    (
        "paths-agree",
        lambda: functions(
            paths={
                "fused": lambda q, k, v, m: by_hand(
                    q, k, v, m if m is None or m.dtype == torch.bool else m != 0
                )
            }
        ),
    ),
    ("paths-agree", lambda: replace(bias(), paths={"other": lambda t, s: torch.zeros(4, t, s)})),
]


@pytest.mark.parametrize(("law", "make"), FAULTS)
def test_each_law_refuses_a_planted_fault(law: str, make: Callable[[], Subject]) -> None:
    found: tuple[Finding, ...] = examine(make(), laws=[law])
    assert [f.verdict for f in found] == ["broken"], found[0].why
    assert found[0].witness is not None
    assert found[0].why


def five_in_place(x: Tensor) -> Tensor:
    """Code of five tokens, which is given a longer copy of what is drawn."""
    if x.shape[1] != 5:
        raise ValueError("wanted five tokens")
    return x.mul_(2).cumsum(1)


def turned_in_place(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    u, v = x.chunk(2, -1)
    return torch.cat((u * cos - v * sin, v * cos + u * sin.neg_().neg()), -1)


def conjugated_in_place(x: Tensor, freqs: Tensor) -> Tensor:
    z = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
    out: Tensor = torch.view_as_real(z * freqs).flatten(-2)
    freqs.conj_physical_()
    return out


def reshaped_in_place(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    u, v = x.chunk(2, -1)
    return torch.cat((u * cos - v * sin, v * cos + u * sin.unsqueeze_(0)), -1)


@pytest.mark.parametrize(
    ("code", "line", "name"),
    [
        (conjugated_in_place, "x: B H n D, freqs: n D/2 cis -> x", "freqs"),
        (reshaped_in_place, "x: B H n D, cos: n D/2, sin: n D/2 -> x", "sin"),
        (five_in_place, "x: B 5 E -> B 5 E", "x"),
        (turned_in_place, "x: B H n D, cos: n D/2, sin: n D/2 -> x", "sin"),
    ],
)
def test_an_input_that_is_copied_for_the_call_is_watched_where_the_code_receives_it(
    code: Callable[..., Tensor], line: str, name: str
) -> None:
    kind = "layer" if name == "x" else "rotary"
    (found,) = examine(adapted_as(code, line, kind=kind), laws=["no-mutation"])
    assert (found.verdict, found.why) == ("broken", f"{name} is changed by the call")


def test_training_is_evaluation_only_where_nothing_is_drawn() -> None:
    (right,) = examine(layer(), laws=["training-is-evaluation"])
    assert right.verdict == "holds", right.why
    (drawn,) = examine(layer(Noisy), laws=["training-is-evaluation"])
    assert (drawn.verdict, drawn.why) == ("not asked", "training is random even without dropout")


def test_one_token_in_equal_rows_is_the_witness_of_a_path_for_one_token() -> None:
    """ml-explore/mlx#3949: of two equal rows of one token the second reads zeros."""
    (found,) = examine(
        replace(functions(), attend=first_row_for_one_token), laws=["rows-of-batch-apart"]
    )
    assert found.sizes["B"] == found.sizes["A"] == found.sizes["n"] == 1  # one token in two rows
    assert "last rows" in found.why


def test_a_call_is_given_back_its_random_state_and_its_training() -> None:
    subject: Any = layer()
    subject.module.train()
    torch.manual_seed(3)
    before = torch.random.get_rng_state()
    with evaluating(subject):
        seeded_call(ways_of(subject)[0].call, torch.zeros(1, 2, 16))
    assert torch.equal(before, torch.random.get_rng_state())
    assert all(part.training for part in subject.module.modules())


def test_code_that_writes_into_its_inputs_breaks_that_law_alone() -> None:
    def layer(x: Tensor, mask: Tensor) -> Tensor:
        x *= 2.0
        scores = (x @ x.transpose(1, 2)).masked_fill(~mask[:, None], -torch.inf)
        return torch.softmax(scores, -1) @ x

    def leaking(x: Tensor, mask: Tensor) -> Tensor:
        return layer(x, mask) + x.mean(1, keepdim=True)

    def found(code: object, law: str) -> set[str]:
        subject = adapted_as(code, "x: B n E, mask: B n keep -> B n E", kind="attention")
        both = (*examine(subject, laws=[law]), *exact(subject, [law]))
        return {one.verdict for one in both} - {"not asked"}

    assert found(layer, "no-mutation") == {"broken"}
    assert found(layer, "hidden-keys-do-nothing") == {"holds"}
    assert found(layer, "padding-does-nothing") == {"holds"}
    assert "broken" in found(leaking, "hidden-keys-do-nothing")
