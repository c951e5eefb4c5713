"""Notes on hidden keys beyond what their laws require: numbers that leak through a mask.

A finite fill hides keys as long as no score comes near it.  So scores beyond it are tried; if keys
that should be hidden are read, the note says so and at which scores: at ordinary ones the law
holds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from time import thread_time

import torch
from torch import Tensor

from ..calls.masks import declared_visibility, mask_visibility
from ..execution.response import differences, gap, place_of_largest, unit_of
from ..reading.calls import REFUSALS
from .base import Outcome, Scene, broken, holds, undecided
from .laws import further_probe

BEYOND = (2e4, 2e6, 2e10, 2e16, 2e31)  # scores; 16 bits hold only the first
SCALES = (1e2, 1e3, 1e4, 1e5, 1e6, 1e8)  # of a token; scores grow with the square
DRAWS = 8  # directions of a token; in about half of them its score with itself is negative
COUNT = 3  # tokens
MANY, FEW = 40, 12  # tokens, each of which is tried as the last that is seen, or the last ENDS
ENDS, SLOW = 4, 0.25  # seconds of the first calls
SCORES = 10_000_000  # that are computed with tokens in the middle as the last that is seen
TWICE = 2.0  # both sides are rounded
READ = 0.5  # of the weight falls on hidden keys
ROUNDED = 16  # units in the last place of an output


@further_probe("hidden-keys-do-nothing", "attention")
def leak_through_fill(scene: Scene) -> Outcome:
    """Note infinities and NaN in hidden keys that leak, and scores beyond a finite fill."""
    one = scene.subject
    if one.attend is None or not one.masks:
        return holds("")
    q, k, v = scene.draw_qkv(1, COUNT)
    seen = torch.ones(1, 1, COUNT, COUNT, dtype=torch.bool, device=q.device)
    seen[..., 1] = False
    numbers = torch.zeros(seen.shape, dtype=q.dtype, device=q.device)
    mask = seen if "bool" in one.masks else numbers.masked_fill(~seen, -math.inf)
    told = _not_finite(scene, (q, k, v, mask), 1)
    if "bool" in one.masks and not one.by_key:
        told += read_through(scene, torch.eye(COUNT, dtype=torch.bool, device=q.device)[None, None])
    return holds(told.removeprefix("; "))


def _not_finite(scene: Scene, given: tuple[Tensor, ...], hidden: int) -> str:
    """Name infinities and NaN that leak: 0 · NaN is NaN in most code, also in torch's own."""
    q, k, v, mask = given
    through = []
    for name, value in (("inf", math.inf), ("NaN", math.nan)):
        for where in ("key", "value"):
            keys, values = k.clone(), v.clone()
            (keys if where == "key" else values)[:, :, hidden] = value
            if not bool(scene.subject.attend(q, keys, values, mask).isfinite().all()):
                through.append(f"{name} in a hidden {where}")
    return f"; {', '.join(through)} leaks" if through else "; nor do inf and NaN"


def read_through(scene: Scene, mask: Tensor | None = None) -> str:
    """Note if hidden keys are read at scores beyond a fill, else return "".

    ``mask``: truth values (1, 1, 3, 3) under which the first query sees only the first key; without
    one, the code itself hides later keys.
    """
    attend = getattr(scene.subject, "attend", None)
    if attend is not None:
        return _by_scores(scene, attend, mask)
    return "" if scene.tokens is None else _by_tokens(scene, scene.tokens)


@further_probe("causal", "attention", "layer", any_length=True)
def of_later_tokens(scene: Scene) -> Outcome:
    """Note if later tokens are hidden by a finite number; undecided if the format hides faults.

    In a short format a fault cannot be told from rounding: if an output moves at all, it is left
    open.
    """
    off = _moved(scene) if scene.low else 0.0
    found = None if scene.low else _behind_each_token(scene)
    if found is not None:
        return found
    if off:
        return undecided(
            f"outputs change by {off:.2g} with later tokens, no more than rounding "
            "explains in this format",
            off,
        )
    return holds(read_through(scene).removeprefix("; "))


def _behind_each_token(scene: Scene) -> Outcome | None:
    """Return a broken outcome if an output changes with the tokens behind it, for many tokens."""
    one = scene.subject
    asked = tuple(at["n"] for at in one.run_at if "n" in at)
    only = (one.only_length,) if one.only_length else ()
    for many in only or asked or (MANY, FEW):
        call, given, others, axis = _two_inputs(scene, 1, many)
        before = thread_time()
        try:
            whole = scene.allow(call, *given)
        except REFUSALS:  # it may not take so many
            continue
        tried = 0 if thread_time() - before > SLOW else MANY
        if asked:
            tried = SCORES // (int(getattr(one, "heads", 1)) * many**2)
        middle = range(1, many, -(-many // tried)) if tried else ()
        for n in sorted({*middle, *range(max(1, many - ENDS), many)}):
            moved = call(*_others_from(n, given, others, axis))
            there, here = (x.narrow(axis, 0, n) for x in (whole.output, moved))
            off = differences(here.double(), there.double())
            place = place_of_largest(off)
            if float(off[place]) > TWICE * whole():
                seen = f"token {place[axis]} changes with those behind token {n - 1}"
                return broken(
                    f"of {many} tokens, {seen}",
                    {"n": many, "place": list(place)},
                    ("with other tokens there", float(here[place])),
                    ("before", float(there[place])),
                    float(off[place]),
                    TWICE * whole(),
                    B=1,
                    n=many,
                )
        return None
    return None


def _two_inputs(
    scene: Scene, rows: int, many: int
) -> tuple[Callable[..., Tensor], tuple[Tensor, ...], tuple[Tensor, ...], int]:
    """Return the main call, on tokens if it takes any, two inputs, and the axis of their tokens."""
    one, draw = scene.subject, scene.draw
    if scene.tokens is not None:
        x, y = ((draw.normal(rows, many, one.embed, salt=salt),) for salt in (1, 2))
        return scene.tokens, x, y, 1
    given, others = (scene.draw_qkv(rows, many, salt=salt) for salt in (0, 50))
    return lambda q, k, v: one.attend(q, k, v, None), given, others, 2


def _others_from(
    n: int, given: tuple[Tensor, ...], others: tuple[Tensor, ...], axis: int
) -> list[Tensor]:
    """Return inputs whose tokens from n on are those of the others."""
    pairs = zip(given, others, strict=True)
    rest = given[0].shape[axis] - n
    return [torch.cat((x.narrow(axis, 0, n), y.narrow(axis, n, rest)), axis) for x, y in pairs]


def _moved(scene: Scene) -> float:
    """Return how much a change of later tokens changes the first outputs."""
    call, given, others, axis = _two_inputs(scene, 2, 2 * COUNT)
    both = (call(*given), call(*_others_from(COUNT, given, others, axis)))
    here, there = (x.narrow(axis, 0, COUNT) for x in both)
    return gap(here, there)


@further_probe("causal", "mask")
def fill_of_mask(scene: Scene) -> Outcome:
    """Note if an added mask hides by a number that scores may come near."""
    made = scene.subject.mask(2, 2)
    least = float(made.double().min()) if made.is_floating_point() else 0.0
    told = (
        f"keys are hidden by the finite number {least:g}: a query whose scores are all below it "
        "reads hidden keys"
    )
    return holds(told if -BEYOND[-1] < least < 0 else "")


@further_probe("true-means-visible", "mask")
def fill_too_small(scene: Scene) -> Outcome:
    """Return a broken outcome if a number meant to hide has an exponential above 0."""
    code, n = scene.subject, 6
    made = code.mask(n, n)
    shown = mask_visibility(code, n, n) & ~declared_visibility(scene.declared, n, n)
    if not made.is_floating_point() or not bool(shown.any()):
        return holds("")
    i, j = (int(x) for x in shown.nonzero()[0])
    value = float(made.reshape(-1, n, n)[0, i, j])
    why = f"{value:g} is added where key {j} is to be hidden of query {i}: its exponential is not 0"
    return broken(
        why,
        {"tokens": n, "query": i, "key": j},
        ("the added number", value),
        ("a number that hides", "-inf"),
        math.inf,
        n=n,
    )


def _by_scores(scene: Scene, attend: Callable[..., Tensor], mask: Tensor | None) -> str:
    for low in BEYOND:
        q, k, v = (torch.zeros_like(x) for x in scene.draw_qkv(1, COUNT))
        far = low * math.sqrt(q.shape[-1])
        if far > torch.finfo(q.dtype).max:
            break
        q[..., 0], k[:, :, 0, 0], v[:, :, 1:] = 1.0, -far, 1.0
        try:
            first = attend(q, k, v, mask)[:, :, 0]
        except Exception:  # noqa: BLE001 (code may refuse such scores)
            return ""
        if float(first.double().abs().nan_to_num().max()) > READ:
            return (
                f"; keys are hidden by a finite number: a query whose scores are all {-low:g} "
                "would read hidden keys"
            )
    return ""


def _by_tokens(scene: Scene, call: Callable[[Tensor], Tensor]) -> str:
    """Return the same note for a layer, with a huge first token whose own score is very low."""
    width = scene.subject.embed
    later = [scene.draw.normal(1, COUNT - 1, width, salt=700 + n) for n in range(2)]
    for scale in SCALES:
        if scale**2 > torch.finfo(later[0].dtype).max / width:
            break
        first = scale * scene.draw.normal(DRAWS, 1, width, salt=710)
        try:
            rows = [torch.cat((first, one.expand(DRAWS, -1, -1)), 1) for one in later]
            one, other = (call(x)[:, 0].double() for x in rows)
        except Exception:  # noqa: BLE001 (code may refuse such tokens)
            return ""
        # the first row is computed from the same numbers twice, so its rounding is the same
        bound = ROUNDED * unit_of(first.dtype) * one.nan_to_num().abs().amax(-1) + 1e-6
        if bool(((one - other).abs().nan_to_num().amax(-1) > bound).any()):
            return (
                "; keys are hidden by a finite number: a first token with entries near "
                f"{scale:g} would read later tokens"
            )
    return ""
