"""What is proved "if x ≠ 0" is no proof where x is 0 whatever is given."""

from __future__ import annotations

import torch
from torch import Tensor

from attnproof.programs.finding import Finding
from attnproof.programs.prove import prove
from attnproof.programs.subject import adapted_as


def linear(queries: int, keys: int) -> Tensor:
    far = torch.arange(keys)[None] - torch.arange(keys - queries, keys)[:, None]
    return -(2.0 ** -torch.arange(1, 5))[:, None, None] * far.abs()


def divided(queries: int, keys: int) -> Tensor:
    """Infinite where a query meets its own key."""
    far = torch.arange(keys)[None] - torch.arange(keys - queries, keys)[:, None]
    return -(2.0 ** -torch.arange(1, 5))[:, None, None] / far.abs()


def logarithmic(queries: int, keys: int) -> Tensor:
    """The logarithm of a distance, and 0 where there is none."""
    far = (torch.arange(keys)[None] - torch.arange(keys - queries, keys)[:, None]).abs()
    made = torch.where(far > 0, torch.log(1.0 * far), 0.0)
    return -(2.0 ** -torch.arange(1, 5))[:, None, None] * made


def normed(x: Tensor) -> Tensor:
    return x / x.square().sum(-1, keepdim=True).sqrt()


def found(code: object, line: str, kind: str, law: str) -> Finding:
    return next(f for f in prove(adapted_as(code, line, kind=kind), laws=[law]).findings)


BIAS = "queries = r, keys = n -> 4 r n"


def test_a_bias_that_divides_by_0_is_not_proved() -> None:
    assert found(linear, BIAS, "bias", "offset-only").verdict == "holds"
    seen = found(divided, BIAS, "bias", "offset-only")
    assert seen.verdict == "undecided"
    assert "which is not so everywhere: there the code gives NaN" in seen.why


def test_a_divisor_that_only_some_inputs_make_0_is_a_condition() -> None:
    seen = found(normed, "x: B n E -> B n E", "layer", "permutation")
    assert seen.verdict == "holds"


def test_a_logarithm_that_is_not_taken_where_it_is_none_is_proved() -> None:
    seen = found(logarithmic, BIAS, "bias", "offset-only")
    assert seen.verdict in ("holds", "undecided")
    assert "gives NaN" not in seen.why
