"""Ways of calling in which code is another function: the lines of measured laws name each."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from attnproof.programs.execution.draw import Draw
from attnproof.programs.subject import adapted_as
from attnproof.real_code.calls_at_lengths import holds_unless, ways_that_differ

HEADS = "q: B H r D, k: B H n D, v: B H n D, mask: B 1 r n"
Changes = Callable[[Tensor, Tensor, Tensor], bool]


def told(kind: str, changes: Changes) -> list[str]:
    """What the line says of code that doubles, or inverts, its mask in some calls."""

    def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        changed = changes(k, v, mask)
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        if kind == "add":
            return (scores + (2 * mask if changed else mask)).softmax(-1) @ v
        hidden = mask if changed else ~mask
        return scores.masked_fill(hidden, -1e4).softmax(-1) @ v

    subject = adapted_as(attend, f"{HEADS} {kind} -> B H r D", kind="attention")
    ways = ways_that_differ(subject, Draw())
    found = [one.assuming for one in holds_unless(ways, ("permutation",), Draw())]
    return [one.text for conditions in found for one in conditions]


CASES: dict[str, tuple[Changes, list[str]]] = {
    "not contiguous": (
        lambda *given: not given[2].is_contiguous(),
        ["with inputs that are not contiguous"],
    ),
    "one row of a batch": (
        lambda *given: given[2].stride(0) == 0 and given[2].shape[0] > 1,
        ["with one row repeated without copies"],
    ),
    "one row of queries": (
        lambda *given: given[2].stride(2) == 0 and given[2].shape[2] > 1,
        ["with an input that is expanded along its axis before the last"],
    ),
    "gradients are enabled": (
        lambda *_: torch.is_grad_enabled(),
        ["with gradients enabled"],
    ),
    "keys are values": (
        lambda *given: given[0] is given[1],
        [
            "with one parameter, which is not contiguous, for all inputs of its shape",
            "with one array for all inputs of its shape but the first",
        ],
    ),
    "none": (lambda *_: False, []),
}


@pytest.mark.parametrize("kind", ["add", "keep"])
@pytest.mark.parametrize("case", CASES)
def test_each_way_in_which_a_mask_is_read_otherwise_is_named(kind: str, case: str) -> None:
    changes, named = CASES[case]
    ways = {f"no call is made {way}, which gives other results" for way in named}
    found = told(kind, changes)
    assert ways <= set(found)
    assert bool(ways) == bool(found)


def test_a_way_that_is_a_case_of_another_is_not_named() -> None:
    found = told("keep", CASES["not contiguous"][0])
    assert len(found) == 1
    assert len(told("keep", CASES["gradients are enabled"][0])) == 1
