"""``assert_rotary`` and the others: a failure names law, witness, seed, and what shows it again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnproof import testing
from attnproof.programs.declarations import DeclaredRotary
from attnproof.real_code.asserting import as_written, target_of
from attnproof.real_code.request import AT_WORK, Run
from attnproof.testing import (
    CodeBreaksLaw,
    assert_attention,
    assert_equivariant,
    assert_mask,
    assert_rotary,
    check_equivariant,
    check_rotary,
)
from tests.front.code_files import Methods, set_methods

KINDS = ("rotary", "attention", "bias", "additive", "mask", "equivariant")


def rope(x: Tensor, position_ids: Tensor) -> Tensor:
    """Half-split, in float64."""
    frequencies = 10000.0 ** (-torch.arange(0, x.shape[-1], 2, dtype=torch.float64) / x.shape[-1])
    a = position_ids[:, None, :, None].to(torch.float64) * frequencies
    u, v = x.to(torch.float64).chunk(2, -1)
    return torch.cat((u * a.cos() - v * a.sin(), v * a.cos() + u * a.sin()), -1).to(x.dtype)


def rope_sign(x: Tensor, position_ids: Tensor) -> Tensor:
    """One sign is wrong."""
    u, v = rope(x, position_ids).chunk(2, -1)
    return torch.cat((u, -v + x.chunk(2, -1)[1]), -1)


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, -1) @ v


class Shifted(nn.Module):
    """A map of tokens that looks at their order."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.eye(8))

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight + x.cumsum(1)


@pytest.fixture
def methods(monkeypatch: pytest.MonkeyPatch) -> Methods:
    return set_methods(monkeypatch)


def test_every_kind_has_a_check_and_an_assertion() -> None:
    for kind in KINDS:
        for verb in ("check", "assert"):
            assert getattr(testing, f"{verb}_{kind}").__name__ == f"{verb}_{kind}"
            assert f"{verb}_{kind}" in testing.__all__


def test_good_code_passes_and_the_record_is_returned() -> None:
    record = assert_rotary(rope, ["norm", "linear"], methods=["measured"])
    assert record.ok
    assert [law.law for law in record.laws] == ["norm", "linear"]
    assert record.file == __file__
    assert record.torch == torch.__version__


def test_a_broken_law_is_told_with_everything() -> None:
    with pytest.raises(CodeBreaksLaw) as broken:
        assert_rotary(rope_sign, ["norm"], methods=["measured"], seed=7)
    told = str(broken.value)
    assert isinstance(broken.value, AssertionError)
    assert broken.value.record.law("norm").verdict == "broken"
    for part in (
        "rope_sign breaks a law of rotary code",
        "✗ norm: rotation multiplies all norms",
        "they differ by",
        "rounding explains",
        "seed 7, float32, cpu",
        f"again: attnproof check {__file__}::rope_sign --as rotary --law norm --seed 7",
    ):
        assert part in told


def test_the_same_check_returns_the_record() -> None:
    record = check_rotary(rope_sign, "norm", methods="measured")
    assert [law.law for law in record.broken] == ["norm"]


def test_code_without_a_name_is_shown_again_by_a_call() -> None:
    with pytest.raises(CodeBreaksLaw) as broken:
        assert_rotary(lambda x, positions: -x * (positions[:, None, :, None] + 1), ["norm"])
    assert "again: attnproof.testing.check_rotary(" in str(broken.value)
    assert "laws=['norm'], seed=0, dtype='float32')" in str(broken.value)


class Sized(Shifted):
    """One that keeps a size under the name of its constructor, and not the other."""

    def __init__(self, embed: int, heads: int = 4) -> None:
        assert embed == 8
        super().__init__()
        self.heads = heads


def test_an_object_is_shown_again_as_the_same_one() -> None:
    """Its class by itself would be other code."""
    with pytest.raises(CodeBreaksLaw) as broken:
        assert_equivariant(Sized(8, heads=2), methods=["measured"], embed=8, strict=True)
    assert (
        "again: attnproof.testing.check_equivariant(<the same Sized with heads=2>, embed=8, "
        "laws=['permutation'], strict=True, seed=0, dtype='float32')"
    ) in str(broken.value)


def test_code_that_no_name_leads_to_is_told_by_its_line() -> None:
    def inner(x: Tensor) -> Tensor:
        return x

    line = inner.__code__.co_firstlineno
    assert target_of(inner, {}) == f"<the same inner of test_asserting.py:{line}>"
    assert target_of(rope, {}) == f"{__file__}::rope"
    assert target_of(rope, {"width": 8}) == "<rope, width=8>"
    assert target_of(rope, {"shift": inner}).startswith("<rope, shift=<the same inner of ")
    assert target_of(rope, {"table": torch.zeros(4, 40)}) == "<rope, table=<the same Tensor>>"


def rope_of_one_thread(x: Tensor, position_ids: Tensor) -> Tensor:
    """What it sees cannot be kept for the test: it is run as a copy."""
    if torch.get_num_threads() > 1:
        raise RuntimeError("there are several threads")
    return rope(x, position_ids)


def test_code_runs_on_one_thread_as_in_a_command() -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        assert_rotary(rope_of_one_thread, ["norm"], methods=["measured"])
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_attention_and_layers() -> None:
    assert_attention(attention, ["order-of-keys"], methods=["measured"])
    assert_equivariant(nn.Linear(8, 8), methods=["measured"])
    with pytest.raises(CodeBreaksLaw, match="permutation"):
        assert_equivariant(Shifted(), methods=["measured", "exact"])
    found = check_equivariant(Shifted(), methods=["measured", "exact"])
    assert found.law("permutation").verdict == "broken"


def test_what_is_undecided_passes_unless_it_is_strict(methods: Methods) -> None:
    methods.measured["*"] = "holds"
    methods.measured["norm"] = "undecided"
    with pytest.raises(CodeBreaksLaw, match=r"norm is undecided: .*\nagain: .* --strict"):
        assert_rotary(rope, ["norm"], strict=True)
    record = assert_rotary(rope, ["norm"])
    assert record.law("norm").verdict == "undecided"
    assert not record.ok
    assert check_rotary(rope, ["norm"], strict=True).strict
    methods.measured["norm"] = "broken"
    with pytest.raises(CodeBreaksLaw, match="breaks a law"):
        assert_rotary(rope, ["norm"])


def test_nothing_asked_is_no_success(methods: Methods) -> None:
    methods.measured["*"] = "not asked"
    with pytest.raises(CodeBreaksLaw, match="no law was checked"):
        assert_rotary(rope)
    methods.measured["linear"] = "holds"
    with pytest.raises(CodeBreaksLaw, match="norm is not asked"):
        assert_rotary(rope, ["linear", "norm"])
    assert_rotary(rope)


def test_code_that_raises_everywhere_fails(methods: Methods) -> None:
    methods.measured["*"] = ValueError("no")
    with pytest.raises(CodeBreaksLaw, match="the code raised ValueError: no"):
        assert_rotary(rope)


def test_seed_dtype_and_device_are_those_of_the_run(methods: Methods) -> None:
    methods.measured["*"] = "holds"
    heard: list[tuple[str, str]] = []
    token = AT_WORK.set(Run(9, "float64", "cpu", lambda *pair: heard.append(pair)))
    try:
        record = check_rotary(rope, ["norm"])
        own = check_rotary(rope, ["norm"], seed=1, dtype="float32", name="mine")
    finally:
        AT_WORK.reset(token)
    assert (record.seed, record.dtypes) == (9, ("float64",))
    assert (own.seed, own.dtypes, own.name) == (1, ("float32",), "mine")
    assert heard == [("attnproof.rope.norm", "measured"), ("attnproof.mine.norm", "measured")]


def test_what_is_declared_is_written_as_on_a_command_line() -> None:
    declared = DeclaredRotary(base=5e5, layout="half", frequencies=(1.0, 0.5))
    assert as_written(declared) == "rope:base=500000.0,layout=half,frequencies=1.0;0.5"
    assert as_written("rope:base=1") == "rope:base=1"


@pytest.mark.parametrize(
    ("call", "error", "told"),
    [
        (
            lambda: assert_rotary(rope, ["nrom"]),
            ValueError,
            "wanted a law of rotary code, got 'nrom'; nearest: norm",
        ),
        (lambda: assert_rotary(rope, "relatve"), ValueError, "'relatve'; nearest: relative"),
        (
            lambda: assert_mask(rope, ["norm"]),
            ValueError,
            "a law of mask code, got 'norm', which is a law of rotary code",
        ),
        (lambda: assert_rotary(rope, methods=["guess"]), ValueError, "got 'guess'; measured"),
        (lambda: assert_rotary(rope, device="tpu"), ValueError, "tpu"),
        (lambda: assert_rotary(rope, declared="rope:bass=1"), ValueError, "got 'bass'"),
        (lambda: assert_rotary(3), TypeError, "no adapter fits"),
        (lambda: assert_rotary(set_methods), TypeError, "no adapter fits"),
    ],
)
def test_bad_input(call: Callable[[], Any], error: type[Exception], told: str) -> None:
    with pytest.raises(error) as raised:
        call()
    assert told in str(raised.value)


def test_a_former_id_of_a_law_is_taken_for_the_present_one_and_said_so() -> None:
    with pytest.warns(DeprecationWarning, match="inputs-stay is now called no-mutation") as told:
        record = assert_rotary(rope, ["inputs-stay"])
    assert [law.law for law in record.asked] == ["no-mutation"]
    assert [warning.filename for warning in told] == [__file__]  # where the old id is written


def test_what_is_declared_is_compared_even_if_other_laws_are_named() -> None:
    wrong = "rope:base=500000,layout=half"
    with pytest.raises(CodeBreaksLaw, match="base=500000, for which frequencies-as-declared was"):
        assert_rotary(rope, ["relative"], declared=wrong, methods=["measured"])
    right = ["relative", "frequencies-as-declared", "layout-as-declared"]
    with pytest.raises(CodeBreaksLaw, match="frequencies-as-declared: "):
        assert_rotary(rope, right, declared=wrong, methods=["measured"])
    right_base = "rope:base=10000,layout=half"
    assert_rotary(rope, right, declared=right_base, methods=["measured", "identity"])


@pytest.mark.parametrize("laws", [[], ["finite"], "finite"])
def test_permutation_is_asked_whatever_else_is(laws: Any) -> None:
    with pytest.raises(CodeBreaksLaw, match="permutation"):
        assert_equivariant(lambda x: x.cumsum(1), laws, call="x: B n D -> B n D")
