"""What implementations share, what their calls were given, and ratios that agree with verdicts."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch

from attnproof.numeric import attention_bound, torch_reading
from attnproof.numeric.arithmetic import Arithmetic
from attnproof.numeric.attention_bound import AttentionBound
from attnproof.numeric.check import measure
from attnproof.numeric.implementations import Implementation, implementations_named
from attnproof.numeric.implementations.eager import SOFTMAX_BOUND
from attnproof.numeric.implementations.llama_rotary import _bound
from attnproof.numeric.implementations.scaled_dot_product import pairs
from attnproof.numeric.measurement import miss_probability, of_definition, rows_of, worst
from attnproof.numeric.policies.weights import with_spread
from attnproof.numeric.profile import FULL_BLOCK, profile_of
from attnproof.numeric.results import as_float
from attnproof.numeric.row_selection import Replacement, Rows, never
from attnproof.numeric.run import Calls, run
from attnproof.numeric.sample import draw
from attnproof.numeric.scale import scale_named
from attnproof.numeric.task import drawn
from attnproof.numeric.torch_reading import FEWEST, BoundReading
from attnproof.symbolic.claim import equal
from attnproof.symbolic.terms import free
from attnproof.theorems.definitions.attention import attention, softmax
from attnproof.theorems.definitions.rotary import rotate_half
from tests.numeric.statements import CPU, PAIRS, ROTARY, attend, planted, stated

AXES = (-2, None, None)
PROFILE = profile_of(torch.float32, CPU)
AT = (Rows(torch.tensor([0, 7, 39])), None)


def turned(X: Any, p: Any, omega: Any) -> Any:
    rotated = rotate_half(X, p, omega)
    return attention(rotated, rotated, X)


ATTENDED = stated(
    ROTARY.givens, lambda X, p, s, omega: equal(turned(X, p + s, omega), turned(X, p, omega))
)


def reading(plain: Any = None, statement: Any = ROTARY, **replaced: Replacement) -> Any:
    sizes = dict.fromkeys(sizes_in(ROTARY), 6) | {"n": 60}
    sample = draw(statement, sizes, scale_named("small"), 0)
    numbers = Arithmetic(PROFILE, spreads=True)
    bounds = {name: with_spread(bound) for name, bound in {**SOFTMAX_BOUND, **replaced}.items()}
    return BoundReading(sizes, sample.with_radii(numbers, CPU), numbers, bounds, plain)


def sizes_in(statement: Any) -> list[str]:
    lengths = [n for given in statement.givens.values() for n in given.shape]
    return sorted({str(v.data[0]) for n in lengths for v in free(n) if v.op == "size"})


@pytest.mark.parametrize("name", ["rotate_half", "attention"])
def test_only_what_no_replaced_definition_has_a_part_in_is_shared(name: str) -> None:
    other = {name: Replacement(lambda *of: _bound(*of) * 2, (-2, -1, None), never)}
    side = ROTARY.claims[""].left
    plain = reading()
    plain.read(side, AT)
    one, alone = reading(plain, **other), reading(**other)
    found, wanted = one.read(side, AT), alone.read(side, AT)
    assert torch.allclose(found.value, wanted.value, rtol=0, atol=1e-12)
    assert torch.allclose(found.smallest_radius(), wanted.smallest_radius(), rtol=1e-6)
    assert one.is_plain(side) == (name != "rotate_half")
    assert torch.equal(plain.read(side, AT).value, found.value) == (name != "rotate_half")


def attention_of(name: str) -> dict[str, Replacement]:
    return {"attention": Replacement(AttentionBound(kernel=name), AXES, never, pairs)}


def test_what_implementations_have_in_common_is_computed_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rotated, scored = [], []
    cos, rises = Arithmetic.cos, attention_bound.rises_of

    def counted(of: Arithmetic, x: Any) -> Any:
        rotated.append(x)
        return cos(of, x)

    def counted_rises(scores: torch.Tensor) -> torch.Tensor:
        scored.append(scores)
        return rises(scores)

    monkeypatch.setattr(Arithmetic, "cos", counted)
    monkeypatch.setattr(attention_bound, "rises_of", counted_rises)
    sides, plain = ATTENDED.claims[""].sides, reading(None, ATTENDED)
    first, again, alone = (
        reading(plain, ATTENDED, **attention_of("flash")),
        reading(plain, ATTENDED, **attention_of("math")),
        reading(None, ATTENDED, **attention_of("math")),
    )
    for side in sides:
        first.read(side, AT)
    before = len(rotated), len(scored)
    found = [again.read(side, AT) for side in sides]
    assert before == (len(rotated), len(scored))
    assert min(before) > 0
    wanted = [alone.read(side, AT) for side in sides]
    assert (len(rotated), len(scored)) == (2 * before[0], 2 * before[1])
    for ours, theirs in zip(found, wanted, strict=True):
        assert torch.equal(ours.value, theirs.value)
        assert torch.equal(ours.smallest_radius(), theirs.smallest_radius())


@pytest.mark.parametrize("replaced", [{}, attention_of("flash")])
def test_rows_in_pieces_have_the_bounds_of_rows_at_once(
    replaced: dict[str, Replacement], monkeypatch: pytest.MonkeyPatch
) -> None:
    side, where = ATTENDED.claims[""].left, (Rows(torch.arange(48)), None)
    whole = reading(None, ATTENDED, **replaced)
    (wanted,) = (whole.read(side, at) for at in whole.pieces(side, where))
    monkeypatch.setattr(torch_reading, "CACHED", 1)
    cut = reading(None, ATTENDED, **replaced)
    assert [len(rows.places) for rows, _ in cut.pieces(side, where) if rows] == [FEWEST] * 3
    found = cut.read(side, where)
    assert torch.allclose(found.value, wanted.value, rtol=0, atol=1e-12)
    for ours, theirs in (
        (found.error(), wanted.error()),
        (found.smallest_radius(), wanted.smallest_radius()),
    ):
        assert torch.allclose(ours, theirs, rtol=1e-6)


def test_pieces_of_the_whole_are_not_kept() -> None:
    plain = reading(None, ATTENDED)
    one = reading(plain, ATTENDED, **attention_of("flash"))
    one.entries = plain.entries = 200
    one(ATTENDED.claims[""].left)
    assert one.partly == {"attention"}
    assert not plain.known_rows
    assert not plain.composed


def test_one_dtype_is_held_at_a_time_and_one_head_beside_the_first() -> None:
    task: Any = drawn(ROTARY, scale_named("small"), CPU, 0)
    side = ROTARY.claims[""].left
    where = task.rows(side, 0, 64)
    held = []
    for dtype, head in (
        (torch.float64, 0),
        (torch.float64, 1),
        (torch.float64, 2),
        (torch.half, 1),
    ):
        task.bound(side, where, head, profile_of(dtype, CPU), attention_of("flash"))
        held.append({(profile.dtype, head) for head, profile, *_ in task.readings})
    float64, half = torch.float64, torch.half
    assert held[:2] == [{(float64, 0)}, {(float64, 0), (float64, 1)}]
    assert held[2:] == [{(float64, 0), (float64, 2)}, {(half, 1)}]


def test_code_that_writes_to_its_inputs_spoils_no_other() -> None:
    task: Any = drawn(ROTARY, scale_named("small"), CPU, 0)
    first, again = (task.values(0, torch.float32)["X"] for _ in range(2))
    assert again is first
    before = first.clone()
    first[0] += 1
    assert torch.equal(task.values(0, torch.float32)["X"], before)
    assert not torch.equal(first, before)


def kernel(*queries: int) -> Any:
    bound = AttentionBound(kernel="flash")
    calls = Calls(
        Implementation(
            "flash",
            {"attention": Replacement(attend, AXES)},
            {"attention": Replacement(bound, AXES, never)},
        )
    )
    for many in queries:
        calls.replaced["attention"].compute(*(torch.ones(n, 8) for n in (many, 4, 4)))
    return calls.bounded().bounds["attention"].compute


def test_a_bound_for_whole_blocks_is_only_for_calls_of_whole_blocks() -> None:
    assert kernel(64, 4096).queries == kernel(FULL_BLOCK).queries == FULL_BLOCK
    assert kernel(64, 8).queries == kernel(33).queries == kernel().queries == 0
    terms = [PROFILE.attention_terms(4096, "flash", many) for many in (0, FULL_BLOCK)]
    assert terms[1] < terms[0]


def biased(size: float) -> Any:
    return planted(lambda q, k, v: attend(q, k, v) * (1 + size))


def test_ratios_agree_with_verdicts_in_float64() -> None:
    """What a reference may be off is in the ratio as it is in the verdict."""
    seen = set()
    for power in range(40, 53):
        (m,) = measure(
            PAIRS,
            scale="small",
            distributions=["normal"],
            dtypes=["float64"],
            implementations=[biased(2.0**-power)],
        )
        seen.add(m.policies[0].status)
        assert (as_float(m.policies[0].ratio) <= 1) == (m.policies[0].status == "held"), m
    assert seen == {"held", "violated"}


def test_a_side_may_be_off_by_what_its_reference_is() -> None:
    numbers = Arithmetic(profile_of(torch.float64, CPU))
    bound = numbers.rounded(torch.ones(1).double(), None, 2.0**-53)
    own = torch.full((1,), 2.0**-50, dtype=torch.float64)
    computed = bound.value + 4 * 2.0**-53
    for radius, fits in ((None, False), (own, True)):
        error, tolerance, _ = worst(computed, bound.value, of_definition(bound, radius))
        assert (error <= tolerance) == fits


def test_rows_are_in_the_heads_that_all_policies_see() -> None:
    rows = [rows_of(head, 8, 64) for head in range(8)]
    assert rows[:2] == [FULL_BLOCK, FULL_BLOCK]
    assert rows_of(0, 1, 64) == 64
    assert sum(count - 2 for count in rows) > 64
    assert math.prod(map(miss_probability, rows)) < miss_probability(64)


DEFINED = stated(
    PAIRS.givens,
    lambda Q, K, V, **_: equal(attention(Q, K, V), softmax(Q @ K.mT / Q.shape[-1] ** 0.5) @ V),
)


def test_a_side_that_no_kernel_computes_is_read_once_for_all_of_them() -> None:
    task = drawn(DEFINED, replace(scale_named("small"), rows=4), CPU, 0)
    (claim,) = DEFINED.claims.values()
    left, right = claim.sides
    where = task.rows(left, 0, 4)
    kernels = implementations_named(
        ["scaled_dot_product_attention (math)", "torch.nn.MultiheadAttention"], CPU
    )

    def bound(side: Any, code: Any) -> Any:
        return task.bound(side, where, 0, PROFILE, code, spread=True)

    for kernel in kernels:
        assert bound(right, kernel.bounds) is bound(right, {})
        assert bound(left, kernel.bounds) is not bound(left, {})
        run(task, "", claim, kernel, torch.float32)
        ((_, _, side, _),) = task.computed
        assert side is right
    task.forget_rows()
    run(task, "", claim, Implementation("eager"), torch.float32)
    assert not task.computed
