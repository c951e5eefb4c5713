"""Steps and ways of calling in which code is another function: a fault in one shows, or is told."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.execution.draw import Draw
from attnproof.programs.subject import adapted_as
from attnproof.real_code.calls_at_lengths import holds_unless, ways_that_differ
from attnproof.real_code.checking import look
from attnproof.real_code.collecting import Collected
from attnproof.real_code.page_text import how
from attnproof.real_code.records import LawOfCodeRecord
from attnproof.real_code.request import CodeRequest

pytestmark = pytest.mark.usefixtures("longer")
Kept = tuple[Tensor, int, int]
Wrong = Callable[[int, int, int, Tensor], bool]
LINE = "x: B n E -> B n E, _; step: x: B n E, past -> B n E, past"


def never(seen: int, count: int, calls: int, x: Tensor) -> bool:
    del seen, count, calls, x
    return False


def at_two_of_many(seen: int, count: int, calls: int, x: Tensor) -> bool:
    del calls, x
    return count > 1 and seen == 31


def after_many_calls(seen: int, count: int, calls: int, x: Tensor) -> bool:
    del seen, count, x
    return calls > 200


def of_other_layout(seen: int, count: int, calls: int, x: Tensor) -> bool:
    del count, calls
    return seen > 0 and not x.is_contiguous()


COUNTED = "the number of earlier steps, which the state counts, has no effect, as in every run"


def asked(wrong: Wrong) -> LawOfCodeRecord:
    class Sums(nn.Module):
        """The sum of all tokens so far; a wrong step doubles it."""

        def forward(self, x: Tensor, past: Kept | None = None) -> tuple[Tensor, Kept]:
            start: Kept = (x[:, :1] * 0, 0, 0)
            before, seen, calls = start if past is None else past
            out = x.cumsum(1) + before
            kept = out[:, -1:], seen + x.shape[1], calls + 1
            return out * 2 if wrong(seen, x.shape[1], calls, x) else out, kept

    return fed(Sums)


def fed(layer: type[nn.Module]) -> LawOfCodeRecord:
    law = "step-by-step"
    code = adapted_as(layer, LINE, kind="layer")
    ask = CodeRequest(target="a.py::a", kind="layer", methods=("measured",), laws=(law,))
    heard = Collected(ask)
    heard.receive({"event": "adapted", "name": "a", "kind": "layer", "adapted": "", "file": ""})
    look(code, ask, heard.receive)
    return next(row for row in heard.record(0.0).laws if row.law == law)


def test_two_tokens_after_a_number_of_them_are_fed_together() -> None:
    assert asked(at_two_of_many).verdict == "broken"


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (after_many_calls, "`calls > 200` is false, as it was in every run"),
        (of_other_layout, "no call is made with inputs that are not contiguous"),
    ],
)
def test_what_no_step_of_a_law_met_is_named(wrong: Wrong, told: str) -> None:
    row = asked(wrong)
    assert row.verdict == "measured"
    assert told in how(row)
    assert told not in how(asked(never))


def test_a_state_that_counts_the_steps_is_named() -> None:
    class Counts(nn.Module):
        """The sum of all tokens so far, which each hundredth step changes; nothing is compared."""

        def forward(
            self, x: Tensor, past: tuple[Tensor, list[int]] | None = None
        ) -> tuple[Tensor, tuple[Tensor, list[int]]]:
            before, fed = (x[:, :1] * 0, []) if past is None else past
            out = x.cumsum(1) + before
            return out * (1 + len(fed) // 100), (out[:, -1:], [*fed, x.shape[1]])

    class Sums(nn.Module):
        """The sum of all tokens so far."""

        def forward(
            self, x: Tensor, past: tuple[Tensor, int] | None = None
        ) -> tuple[Tensor, tuple[Tensor, int]]:
            before, fed = (x[:, :1] * 0, 0) if past is None else past
            out = x.cumsum(1) + before
            return out, (out[:, -1:], fed + x.shape[1])

    assert COUNTED in how(fed(Counts))
    assert COUNTED not in how(fed(Sums))


def test_a_long_piece_between_others_is_followed_by_a_token() -> None:
    class Ring(nn.Module):
        """The sum of the last 64 tokens, kept by place; 64 or more at once are put as if first."""

        def forward(
            self, x: Tensor, past: tuple[Tensor, int] | None = None
        ) -> tuple[Tensor, tuple[Tensor, int]]:
            b, n, e = x.shape
            kept, seen = (x.new_zeros(b, 64, e), 0) if past is None else past
            before = torch.cat((kept[:, torch.arange(seen, seen + 64) % 64], x), 1).cumsum(1)
            out = before[:, 64:] - before[:, :-64]
            places = torch.arange(seen, seen + n) % 64
            kept = x[:, -64:].roll(n % 64, 1) if n >= 64 else kept.index_copy(1, places, x)
            return out, (kept, seen + n)

    assert fed(Ring).verdict == "broken"


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
