"""Code that gives NaN or infinity where its term has a number: 0 times NaN is NaN, and 0 in a term.

What is proved of such code says on its line where it is; what nothing excludes is not proved.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from attnproof.programs.declarations import DeclaredAttention
from attnproof.programs.finding import Finding
from attnproof.programs.prove import program, prove
from attnproof.programs.subjects import Attention

Code = Callable[[Tensor], Tensor]
WIDTH = 4
NOWHERE = "the code gives no NaN"


def beside(f: Code) -> Code:
    """x + 0·Σ_n f(x): the identity, but where f gives NaN or infinity of any token."""
    return lambda x: x + 0 * f(x).sum(1, keepdim=True)


def norm(epsilon: float) -> Code:
    return lambda x: functional.layer_norm(x, (WIDTH,), eps=epsilon)


def root_norm(epsilon: float) -> Code:
    return lambda x: functional.rms_norm(x, (WIDTH,), eps=epsilon)


def of_hidden(f: Code) -> Code:
    """f of numbers that are −∞ where they are above 5."""
    return lambda x: f(x.masked_fill(x > 5, -math.inf))


def causal(f: Code) -> Finding:
    code = Attention(name="l", layer=f, embed=WIDTH, declared=DeclaredAttention(causal=True))
    (found,) = prove(code, ("causal",)).findings or (Finding("causal", "traced", "undecided", ""),)
    return found


def spoilt(f: Code) -> bool:
    """Whether a later token turns what came before into NaN."""
    x = torch.randn(1, 3, WIDTH, generator=torch.Generator().manual_seed(0))
    for later in (0.0, 7.0):
        y = x.clone()
        y[:, 2] = later
        if bool(f(y)[:, :2].isnan().any()):
            return True
    return False


@pytest.mark.parametrize("f", [norm(0.0), root_norm(0.0), norm(1e-60)])
def test_a_norm_that_may_divide_by_zero_says_so(f: Code) -> None:
    code = beside(f)
    assert spoilt(code)
    found = causal(code)
    assert found.verdict != "holds" or "no denominator is 0" in [c.text for c in found.assuming]


@pytest.mark.parametrize("f", [norm(1e-5), root_norm(1e-6)])
def test_a_norm_with_an_epsilon_needs_no_such_condition(f: Code) -> None:
    code = beside(f)
    assert not spoilt(code)
    found = causal(code)
    assert found.verdict == "holds"
    assert {c.kind for c in found.assuming} == {"for", "where"}


NO_NUMBER: dict[str, Code] = {
    "silu": functional.silu,
    "mish": functional.mish,
    "hardswish": functional.hardswish,
    "leaky_relu": functional.leaky_relu,
    "floor": torch.floor,
    "round": torch.round,
    "linear": lambda x: functional.linear(x, torch.ones(WIDTH, WIDTH)),
    "layer_norm": norm(1e-5),
    "softplus": lambda x: functional.softplus(x, -1.0),
}


@pytest.mark.parametrize("name", NO_NUMBER)
def test_a_function_of_which_nothing_is_known_takes_no_infinity(name: str) -> None:
    code = beside(of_hidden(NO_NUMBER[name]))
    assert spoilt(code)
    assert causal(code).verdict != "holds"


@pytest.mark.parametrize("f", [torch.relu, torch.sigmoid, torch.tanh, functional.softplus])
def test_a_function_that_gives_a_number_of_infinity_is_read(f: Code) -> None:
    code = beside(of_hidden(f))
    assert not spoilt(code)
    assert causal(code).verdict == "holds"


def test_what_gives_nan_and_nothing_excludes_is_a_condition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The code is run of zeros and of few tokens, whatever its reading says."""
    monkeypatch.setattr(program, "SMALLEST_NORMAL", 0.0)
    found = causal(beside(norm(0.0)))
    assert found.verdict == "holds"
    assert f"{NOWHERE} (it does for zeros)" in [c.text for c in found.assuming]
    right = causal(beside(norm(1e-5)))
    assert not any(c.text.startswith(NOWHERE) for c in right.assuming)


def test_it_is_said_beside_conditions_that_may_speak_of_another_place() -> None:
    """That one denominator is not 0 says nothing of what else gives NaN."""
    found = causal(lambda x: x / x.norm(dim=-1, keepdim=True))
    assert found.verdict == "holds"
    told = [c.text for c in found.assuming]
    assert any(one.endswith("≠ 0") for one in told)
    assert f"{NOWHERE} (it does for zeros)" in told


def quotient(scale: float) -> Code:
    """A softmax without its maximum: ∞/∞ or 0/0 where float32 has no such exponentials."""

    def f(x: Tensor) -> Tensor:
        large = (scale * x.square()).exp()
        return large / large.sum(-1, keepdim=True)

    return f


@pytest.mark.parametrize("scale", [6.0, -8.0])
def test_nan_of_numbers_out_of_range_is_rounding_and_no_condition(scale: float) -> None:
    x = torch.full((1, 2, WIDTH), 4.0)
    code = quotient(scale)
    assert bool(code(x).isnan().all())
    found = causal(code)
    assert found.verdict == "holds"
    assert not any(c.text.startswith(NOWHERE) for c in found.assuming)


@pytest.mark.parametrize("relation", [torch.eq, torch.ne, torch.ge, torch.isnan])
def test_what_is_compared_with_itself_is_tested_for_nan(relation: Callable[..., Tensor]) -> None:
    def sums(x: Tensor) -> Tensor:
        own = relation(x) if relation is torch.isnan else relation(x, x)
        none = own if relation in (torch.isnan, torch.ne) else ~own
        return torch.where(none, x.sum(1, keepdim=True), x)

    found = causal(sums)
    assert found.verdict == "holds", found.why
    assert "nothing that is tested for NaN is NaN" in [one.text for one in found.assuming]
