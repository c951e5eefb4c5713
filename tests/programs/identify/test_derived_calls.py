"""Calls that laws make of code beside its outputs."""

from __future__ import annotations

import torch
from torch import Tensor

from attnproof.programs.reading.derived_calls import reached_tokens


class Reaching:
    """Each output is the sum of the tokens up to it, the first of which counts if it is small."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, x: Tensor) -> Tensor:
        self.calls += 1
        first = x[:, :1] * (x[:, :1].abs() < 0.2)
        return torch.cat((first, x[:, 1:]), 1).cumsum(1)


def test_the_search_ends_once_all_wanted_changes_are_found() -> None:
    x, y = torch.full((1, 4, 1), 1.0), torch.full((1, 4, 1), 1.5)
    past = torch.ones(4, 4).tril().bool()
    calls = {}
    for name, wanted in (("all", None), ("past", past)):
        code = Reaching()
        found = reached_tokens(code)(x, y, None, False, wanted)
        assert torch.equal(found.bool(), past)
        calls[name] = code.calls
    # at the second scale the first token is small enough; no scale shows a later token
    assert calls == {"all": 3 * 5, "past": 2 * 5}


def test_only_keys_that_are_looked_at_are_wanted() -> None:
    code, x, y = Reaching(), torch.full((1, 4, 1), 1.0), torch.full((1, 4, 1), 1.5)
    seen = reached_tokens(code)(x, y, [1, 3], True, torch.ones(4, 4).tril().bool())
    assert code.calls == 3
    assert seen.tolist() == [[0, 0, 0, 0], [0, 1, 0, 0], [0, 1, 0, 0], [0, 1, 0, 1]]
