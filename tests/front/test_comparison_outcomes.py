"""Each law names the outcomes of comparisons that its own runs met alone."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from types import FunctionType

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.execution.draw import Draw
from attnproof.programs.subject import subject_of
from attnproof.programs.subjects import Additive, Attention, Bias, Layer, Rotary, Subject
from attnproof.real_code.checking import look
from attnproof.real_code.collecting import Collected
from attnproof.real_code.comparison_outcomes import OwnRuns
from attnproof.real_code.longer_inputs import at_longer
from attnproof.real_code.request import CodeRequest
from attnproof.testing import check_bias

pytestmark = pytest.mark.usefixtures("longer")
KEPT: list[int] = []


def conditions(code: Subject, law: str, *, exact: bool = False) -> list[str]:
    """Return the conditions on which a law holds; those on numbers of tokens are left out."""
    heard: list[str] = []
    found = [*at_longer(code, [law], Draw(), heard.append, exact=[law] * exact)]
    assert {one.verdict for one in found} <= {"holds"}
    return [one.text for each in found for one in each.assuming if one.kind == "where"]


def sines(x: Tensor) -> Tensor:
    angle = torch.arange(x.shape[1])[:, None] * torch.tensor([1.0, 0.1]).to(x.dtype)
    return torch.cat((angle.sin(), angle.cos()), -1)


def added_for_few(x: Tensor) -> Tensor:
    return x if x.shape[0] == 4 else x + sines(x)


def added_without_gradients(x: Tensor) -> Tensor:
    return x if torch.is_grad_enabled() and x.shape[1] > 40 else x + sines(x)


def added_if_no_gradient_is_required(x: Tensor) -> Tensor:
    return x.mul_(2) if x.requires_grad else x + sines(x)


def added_by_name(x: Tensor) -> Tensor:
    return x if os.environ.get("FAST") else x + sines(x)


class AddedByClock:
    """Holds what it asks for the time."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock

    def __call__(self, x: Tensor) -> Tensor:
        return x if self.clock() > 1e12 else x + sines(x)


with warnings.catch_warnings():
    warnings.simplefilter("ignore")

    @torch.jit.script
    def scripted(x: Tensor) -> Tensor:
        return x if x.shape[1] > 100000 else 2 * x


def distances(T: int, S: int) -> Tensor:
    return -(torch.arange(S) - torch.arange(S - T, S)[:, None]).abs().double()[None]


def moved_if_square(T: int, S: int) -> Tensor:
    return distances(T, S) if T == S else distances(T, S) - torch.arange(S)


def counted_if_long(T: int, S: int) -> Tensor:
    if S > 100_000:
        KEPT.append(1)
    return distances(T, S) * (1 + len(KEPT))


def doubled_if_long(T: int, S: int) -> Tensor:
    if T > 60:  # more than the calls that are compared, fewer than those between
        KEPT.append(1)
    return distances(T, S) * (1 + len(KEPT))


def angles(x: Tensor, p: Tensor) -> tuple[Tensor, Tensor]:
    half = x.shape[-1] // 2
    angle = p[:, None, :, None].to(x.dtype) * 0.5 ** torch.arange(half).to(x.dtype)
    return angle.cos(), angle.sin()


def rotated(x: Tensor, p: Tensor) -> Tensor:
    (c, s), (a, b) = angles(x, p), x.chunk(2, -1)
    return torch.cat((a * c - b * s, b * c + a * s), -1)


def squared_if_seven_heads(x: Tensor, p: Tensor) -> Tensor:
    return rotated(x, p * p if x.shape[1] == 7 else p)


def squared_if_wide(x: Tensor, p: Tensor) -> Tensor:
    return rotated(x, p * p if x.shape[-1] > 60 else p)


def squared_if_very_wide(x: Tensor, p: Tensor) -> Tensor:
    return rotated(x, p * p if x.shape[-1] > 1_000_000 else p)


NAMED: dict[str, tuple[Subject, str, str]] = {
    "rows": (
        Additive(name="a", added=added_for_few, width=4),
        "neighbours-differ",
        "`x.shape[0] == 4` is false",
    ),
    "gradients": (
        Additive(name="a", added=added_without_gradients, width=4),
        "neighbours-differ",
        "`torch.is_grad_enabled()` is false",
    ),
    "inputs that require gradients": (
        Additive(name="a", added=added_if_no_gradient_is_required, width=4),
        "no-mutation",
        "`x.requires_grad` is false",
    ),
    "sizes out of reach": (
        Rotary(name="r", rotate=squared_if_very_wide, width=4),
        "relative",
        "`x.shape[-1] > 1000000` is false",
    ),
    "environment": (
        Additive(name="a", added=added_by_name, width=4),
        "neighbours-differ",
        "the code reads the same from `os`",
    ),
    "what it holds of the environment": (
        Additive(name="a", added=AddedByClock(time.time), width=4),
        "neighbours-differ",
        "the code reads the same from `time`",
    ),
    "TorchScript": (
        Additive(name="a", added=lambda x: scripted(x) + sines(x), width=4),
        "neighbours-differ",
        "queries by `scripted`, run by TorchScript",
    ),
    "as many queries as keys": (
        Bias(name="b", bias=moved_if_square, heads=1),
        "offset-only",
        "`T == S` is true",
    ),
    "beyond reach": (
        Bias(name="b", bias=counted_if_long, heads=1),
        "stateless",
        "`S > 100000` is false",
    ),
}


@pytest.mark.parametrize("case", NAMED)
def test_the_outcome_that_a_law_met_alone_is_named(case: str) -> None:
    code, law, wanted = NAMED[case]
    assert any(one.startswith(wanted) for one in conditions(code, law))


def test_calls_between_those_that_a_law_compares_count_for_nothing() -> None:
    heard: list[str] = []
    code = Bias(name="b", bias=doubled_if_long, heads=1)
    (found,) = at_longer(code, ["stateless"], Draw(), heard.append, method="exact")
    KEPT.clear()
    assert [one.text for one in found.assuming] == ["`T > 60` is false, as it was in every run"]


def test_the_laws_of_state_are_run_of_many_queries() -> None:
    heard: list[str] = []
    code = Bias(name="b", bias=doubled_if_long, heads=1)
    (found,) = at_longer(code, ["stateless"], Draw(), heard.append)
    KEPT.clear()
    assert found.verdict == "broken"


def counted_if_wide(x: Tensor) -> Tensor:
    return x.flip(0) if x.shape[-1] == 31 else x.cumsum(1)


def partly_if_wide(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    a, b = x.chunk(2, -1)
    cos, sin = cos[:, : a.shape[-1]], sin[:, : a.shape[-1]]
    out = torch.cat((a * cos - b * sin, b * cos + a * sin), -1)
    return x + out if x.shape[-1] > 60 else out


BROKEN: dict[str, tuple[Subject, str, str]] = {
    "features of a table of pairs": (
        subject_of(partly_if_wide, "x: B H n D, cos: n D/2, sin: n D/2 -> x"),
        "relative",
        "D = 62",
    ),
    "features of a table of channels": (
        subject_of(partly_if_wide, "x: B H n D, cos: n D, sin: n D -> x"),
        "relative",
        "D = 62",
    ),
    "heads": (Rotary(name="r", rotate=squared_if_seven_heads, width=4), "relative", "H = 7"),
    "features": (Rotary(name="r", rotate=squared_if_wide, width=4), "relative", "D = 62"),
    "of tokens of attention": (
        Attention(name="a", layer=counted_if_wide, embed=4, width=4),
        "rows-of-batch-apart",
        "E = 31",
    ),
    "of tokens": (Layer(name="l", call=counted_if_wide, embed=4), "rows-of-batch-apart", "E = 31"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_sizes_that_a_function_takes_as_they_come_are_varied(case: str) -> None:
    code, law, at = BROKEN[case]
    heard: list[str] = []
    (found,) = at_longer(code, [law], Draw(), heard.append)
    assert found.verdict == "broken"
    assert at in found.why


class Reading(nn.Module):
    """Reads itself, or a context of which it compares the length."""

    def forward(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        if context is not None:
            x = x + context.mean(1, keepdim=True) * (2 if context.shape[1] > 100_000 else 1)
        return x.cumsum(1)


def test_a_comparison_that_a_law_does_not_reach_is_no_condition() -> None:
    module = Reading()

    def layer(x: Tensor) -> Tensor:
        found: Tensor = module(x)
        return found

    def reading(x: Tensor, context: Tensor, keep: Tensor) -> Tensor:
        del keep
        found: Tensor = module(x, context)
        return found

    code = Attention(name="r", layer=layer, module=module, embed=4, reading=reading, context=4)
    wanted = "`context.shape[1] > 100000` is false, as it was in every run"
    assert conditions(code, "rows-of-batch-apart", exact=True) == []
    assert conditions(code, "no-mutation") == [wanted]


def by_helper(T: int, S: int) -> Tensor:
    return helper(T, S) if S > 40 else distances(T, S)


def helper(T: int, S: int) -> Tensor:
    return distances(T, S) - (torch.arange(S) if S % 64 == 9 else 0)


def test_a_function_that_only_many_tokens_lead_to_is_watched() -> None:
    heard: list[str] = []
    code = Bias(name="b", bias=by_helper, heads=1)
    (found,) = at_longer(code, ["offset-only"], Draw(), heard.append)
    assert found.verdict == "broken"


def made() -> Bias:
    return Bias(name="b", bias=by_helper, heads=1)


def test_instances_that_code_builds_are_heard_too() -> None:
    code = replace(made(), make=made)
    own = OwnRuns.watched(code)
    assert own is not None
    heard, met = own.hearing(code)
    assert heard.make is not None
    fresh = heard.make().bias
    assert fresh is not None
    fresh(3, 4)
    assert {one for some in met.values() for one in some} == {((4.0,), (40.0,), False)}


class Penalty:
    """Makes a function for each instance."""

    def __init__(self) -> None:
        def penalty(S: int) -> Tensor | int:
            return torch.arange(S) if S > 40 else 0

        self.penalty = penalty

    def __call__(self, T: int, S: int) -> Tensor:
        return distances(T, S) - self.penalty(S)


@lru_cache
def kept_penalty() -> Callable[[int], Tensor | int]:
    def penalty(S: int) -> Tensor | int:
        return torch.arange(S) if S > 100_000 else 0

    return penalty


def by_kept_penalty(T: int, S: int) -> Tensor:
    return distances(T, S) - kept_penalty()(S)


def test_functions_that_a_factory_keeps_are_watched() -> None:
    code = Bias(name="b", bias=by_kept_penalty, heads=1)
    wanted = ["`S > 100000` is false, as it was in every run"]
    assert conditions(code, "offset-only", exact=True) == wanted


def penalized() -> Bias:
    return Bias(name="b", bias=Penalty(), heads=1)


def test_functions_of_each_instance_are_watched() -> None:
    code = replace(penalized(), make=penalized)
    own = OwnRuns.watched(code)
    assert own is not None
    heard, met = own.hearing(code)
    assert heard.make is not None
    fresh = heard.make().bias
    assert fresh is not None
    fresh(3, 4)
    assert {one for some in met.values() for one in some} == {((4.0,), (40.0,), False)}


def late_penalty(S: int) -> Tensor | int:
    return torch.arange(S) if S > 100_000 else 0


LATE = late_penalty.__code__


def by_function_made_anew(T: int, S: int) -> Tensor:
    penalty: Tensor | int = FunctionType(LATE, globals())(S)
    return distances(T, S) - penalty


def test_functions_that_run_unwatched_are_a_condition() -> None:
    code = Bias(name="b", bias=by_function_made_anew, heads=1)
    wanted = "`late_penalty`, which ran unwatched, acts as in every run"
    assert wanted in conditions(code, "offset-only", exact=True)


def endless(x: Tensor) -> Tensor:
    while x.shape[:2] == (5, 5):  # it is watched with as many first
        pass
    return x.flip(0)


def test_code_that_does_not_end_where_it_is_watched_keeps_its_findings() -> None:
    laws = ("rows-of-batch-apart", "no-mutation")
    asked = CodeRequest(target="a.py::endless", kind="layer", methods=("measured",), laws=laws)
    heard = Collected(asked)
    heard.receive({"event": "adapted", "name": "a", "kind": "layer", "adapted": "", "file": ""})
    look(Layer(name="l", call=endless, embed=4), asked, heard.receive, seconds=1.0)
    assert [one.verdict for one in heard.record(0.0).laws] == ["broken", "measured"]


def of_one_row(x: Tensor) -> Tensor:
    return x @ torch.ones(3, 4) if x.shape[0] > 1 else x.cumsum(1)


def test_an_error_of_torch_in_a_run_that_is_heard_is_the_codes() -> None:
    asked = CodeRequest(
        target="a.py::f", kind="layer", methods=("measured",), laws=("no-mutation",)
    )
    heard = Collected(asked)
    heard.receive({"event": "adapted", "name": "a", "kind": "layer", "adapted": "", "file": ""})
    look(Layer(name="l", call=of_one_row, embed=4), asked, heard.receive)
    (found,) = heard.record(0.0).laws
    assert found.verdict == "undecided"
    assert found.why.startswith("the code raised RuntimeError: mat1 and mat2")


def test_a_layer_that_compares_nothing_has_no_condition() -> None:
    plain: Callable[[Tensor], Tensor] = lambda x: x.cumsum(1)  # noqa: E731
    assert conditions(Layer(name="l", call=plain, embed=4), "rows-of-batch-apart") == []


class Made:
    """What each call makes sets its own ``unread``, which calls read of nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.set()

    def set(self) -> None:
        self.unread = True


class Switched(nn.Module):
    """A method that no call runs sets what calls read; of the other value calls read nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.fast = self.unread = False

    def enable(self) -> None:
        self.fast = self.unread = True

    def forward(self, x: Tensor) -> Tensor:
        Made()
        return x.cumsum(0) if self.fast else 2 * x


@pytest.mark.parametrize("exact", [False, True])
def test_a_setting_that_runs_read_is_a_condition(exact: bool) -> None:
    made = Switched()
    code = Layer(name="l", call=made, embed=4, module=made)
    found = conditions(code, "rows-of-batch-apart", exact=exact)
    assert found == ["the attribute fast keeps its value, False"]


class KeptTable(nn.Module):
    """What it keeps of one length it makes anew for another; nothing else sets it."""

    def __init__(self) -> None:
        super().__init__()
        self.length = 0
        self.kept = torch.empty(0)

    def keep(self, x: Tensor) -> Tensor:
        if x.shape[1] != self.length:
            self.length = x.shape[1]
            self.kept = torch.arange(self.length).to(x.dtype)[:, None]
        return self.kept

    def forward(self, x: Tensor) -> Tensor:
        return x + self.keep(x)


def test_what_runs_of_other_lengths_set_is_no_condition() -> None:
    made = KeptTable()
    made(torch.randn(2, 5, 4))
    code = Layer(name="l", call=made, embed=4, module=made)
    told = conditions(code, "rows-of-batch-apart")
    assert not any("keeps" in one for one in told), told


def biased_by(heads: int, T: int) -> Tensor:
    return torch.arange(heads)[:, None, None] * distances(T, T)


def biased_by_four(T: int) -> Tensor:
    return biased_by(4, T)


@pytest.mark.parametrize(("code", "told"), [(biased_by, ["H = 4"]), (biased_by_four, [])])
def test_a_number_that_code_receives_is_a_condition_of_its_runs(
    code: Callable[..., Tensor], told: list[str]
) -> None:
    found = check_bias(code, ["offset-only"], methods=["measured"])
    assert found.law("offset-only").verdict == "measured"
    assert [one.text for one in found.law("offset-only").assuming if one.kind == "for"] == told
