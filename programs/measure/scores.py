"""Scores and weights of attention and layers: their scale, and whether weights add up to 1."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import torch
from torch import Tensor

from attnproof.documents.verdict_line import Condition

from ..execution.response import gap
from ..reading.calls import REFUSALS
from ..reading.projections import (
    ProjectedRun,
    projected,
    projections_of,
    setting_projections,
)
from ..reading.weights import scale_alone
from .base import Outcome, Scene, broken, compare, holds, in_formats, not_asked, probe, undecided
from .inputs import other_heads
from .laws import for_layers

LARGE = 1e4


@for_layers("shift-of-scores")
def large_in_a_layer(scene: Scene) -> Outcome:
    """Check that large scores inside a layer give finite results, if they can be set."""
    inner = projected(scene.subject)
    if inner is None:
        return not_asked("the code takes tokens: nothing can be added to its scores")
    inside = replace(scene, subject=inner)
    most = torch.finfo(scene.draw.dtype).max
    large = LARGE * math.log(most) / math.log(torch.finfo(torch.float32).max)  # an exponent's range
    large = min(large, math.sqrt(most) / 16)  # products stay finite
    for name in "qk":
        given = dict(zip("qkv", inside.draw_qkv(1, 3, 80), strict=True))
        given[name] = large * given[name]
        assert inner.attend is not None  # set by projected()
        found = inner.attend(*given.values(), None)
        bad = (~found.isfinite()).nonzero().tolist()
        if bad:
            words = ("queries", "keys")[name == "k"]
            return broken(
                f"large scores give {float(found[tuple(bad[0])])} inside the layer",
                {"B": 1, "n": 3, "seed": scene.draw.seed, f"{words} times": large},
                ("what attention gives inside the layer", str(float(found[tuple(bad[0])]))),
                ("wanted there", "a finite number"),
                math.inf,
            )
    return not_asked(
        "the code takes tokens: nothing can be added to its scores; large ones give finite numbers"
    )


@probe("scale-as-declared", "attention")
@in_formats
def scale_as_declared(scene: Scene) -> Outcome:
    """Compare the identified scale with the declared one, at every number of heads allowed."""
    one = scene.subject
    if one.attend is None:
        one = projected(one) if scene.declared.scale is not None else None
        if one is None:
            return not_asked("the code takes tokens: its scores cannot be set")
    seen, d = not_asked(""), one.width or 5
    own = (one.heads, scene.declared.groups or one.groups)
    for h, g in dict.fromkeys((own, *other_heads(one))):
        try:
            read = scale_alone(replace(one, heads=h, groups=g), scene.draw, scene.floor)
        except REFUSALS:
            if (h, g) == own:
                raise
            continue  # the code refuses so many heads
        if read is None:
            return undecided("one of two keys has no weight, so that no scale can be read")
        if not read.linear:
            return undecided("the scores are not a scale times q·k: no scale can be read")
        wanted = scene.declared.scale or 1 / math.sqrt(d)
        words = (
            f"weights have the ratios of a scale of {round(read.value, 6):.6g}, and "
            f"{wanted:.6g} is declared"
        )
        seen = compare(
            torch.tensor([read.value], dtype=torch.float64),
            wanted,
            read.radius,
            lambda _, words=words: (words, {"seed": scene.draw.seed}, "the identified scale"),
            f"the weights have the ratios of scale {wanted:.6g}",
            there="the declared scale",
            H=h,
            G=g,
            D=d,
        )
        if seen.witness is not None:
            break
    return seen


# with two free directions a random vector is this near to a span once in 1e8
NEAR, FAR = 1e-4, 1e-2
ALONE = Condition("the weight of a token alone is 1", "where")
FEWEST = 8  # least tokens of a call; fewer would take too many calls


@for_layers("rows-sum-to-one")
def on_a_line(scene: Scene) -> Outcome:
    """Check that weights add up to one: outputs for tokens on a line keep to the line's directions.

    Tokens x + a_j d lie on a line.  If values V_h x + c_h are linear in a token, and weights add up
    to one, every head h gives V_h x + c_h + m V_h d with some mean m of the a_j, whatever positions
    and masks do, so that ::

        f(x + a_i d) − f(x alone)  lies in the span of V_1 d .. V_H d, and of d with a residual

    Sums s_h other than one add (s_h − 1) (V_h x + c_h).  With two lines of the same d, through x
    and through y, the span then contains V (x − y) = f(x alone) − f(y alone), which it otherwise
    does not (except by chance, which two free directions exclude).

    Sums that are the same for all tokens, for a token alone too, cannot be told from a factor of
    the values.  The verdict says so, unless equal values can be set inside the layer.
    """
    one, call = scene.subject, scene.tokens
    assert call is not None  # code on queries, keys and values is checked by the formula
    x, y, d = (scene.draw.normal(1, 1, one.embed, salt=n) for n in (1, 2, 3))

    def alone(a: Tensor) -> Tensor:
        return call(a[..., :1] * x + a[..., 1:2] * y + a[..., 2:] * d)

    places = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.5, 0.5, 0.0), (1.0, 0.0, 1.0), (1.0, 0.0, -1.0))
    ends = [scene.allow(alone, torch.tensor([[place]]).to(x)) for place in places]
    first, second, middle, more, less = (end.output for end in ends)
    allowed = sum(end() for end in ends)
    bent = max(gap(first + second, 2 * middle), gap(more + less, 2 * first))
    if bent > 2 * allowed:
        return not_asked(
            "the output for a single token is not linear in it: its values cannot be read"
        )
    target = (first - second).double().flatten()
    if float(target.norm()) <= 2 * allowed * math.sqrt(target.numel()):
        return undecided(
            "the output for a single token does not depend on the token: its values cannot be read"
        )
    rows, off = [d.double().flatten(), (x - y).double().flatten()], allowed
    at = next(iter(one.run_at), None)
    batch, many = (1, 0) if at is None else (at.get("B", 1), at["n"])
    many = many or _most(lambda n: call(x.expand(-1, n, -1)), one.embed + 2)
    _, _, passed = torch.linalg.svd(torch.stack(rows), full_matrices=False)
    if _outside(target, passed) <= FAR:  # in the span whatever the weights are
        return undecided(
            "the output for a single token is a multiple of it: its values "
            "cannot be told from a residual"
        )
    for base, through in ((first, x), (second, y)):
        for turn in range(2 * -(-(one.embed + 2) // (batch * many))):
            a = 2 * scene.draw.normal(batch, many, 1, salt=10 + turn)
            if turn == 0:  # the others are as large
                seen = scene.allow(lambda a, x=through: call(x + a * d), a)
                off = max(off, seen() + allowed)
            output = call(through + a * d) if turn else seen.output
            rows += list((output - base).double().flatten(0, 1))
    span = torch.stack(rows)
    _, values, directions = torch.linalg.svd(span, full_matrices=False)
    # changing every entry by `off` moves a singular value by at most the Frobenius norm of this
    bound = off * math.sqrt(span.numel())
    free = one.embed - int((values > bound).sum())
    if free < 2:
        return undecided("the outputs span every direction: they do not show sums of weights")
    if _outside(target, directions[values > bound]) > FAR:
        why = "tokens on a line gave outputs along it: the weights add up to one"
        return _unless_factors_differ(scene, holds(why, B=batch, n=many, E=one.embed))
    if _values_see_others(scene):
        return not_asked(
            "the value of a token depends on other tokens, so equal tokens differ in it"
        )
    sure = values > bound / NEAR
    near = NEAR + bound / float(target.norm())
    rest = _outside(target, directions[sure])
    if rest > near or near > 2 * NEAR:
        return undecided("rounding hides the directions of the outputs", rest, near)
    why = "tokens on a line gave outputs off it: the weights do not add up to one"
    return broken(
        why,
        {"B": batch, "n": many, "E": one.embed, "seed": scene.draw.seed},
        ("share of f(x) − f(y), for x and y alone, outside the directions of the outputs", rest),
        ("the least such share where weights add up to one", FAR),
        FAR - rest,
        near,
        B=batch,
        n=many,
        E=one.embed,
    )


def _unless_factors_differ(scene: Scene, found: Outcome) -> Outcome:
    """Return the outcome with its condition, or undecided if sums differ from query to query."""
    low, high = _factors_inside(scene)
    if low < high:
        return undecided(
            f"inside the layer equal values give {low:.4g} to {high:.4g} times themselves, "
            "other factors for other queries"
        )
    return replace(found, assuming=() if _keeps_equal_values(scene) else (ALONE,))


def _values_see_others(scene: Scene) -> bool:
    """Whether the values of a layer, if they are found, depend on tokens other than their own."""
    one = scene.subject
    parts = projections_of(one.module)
    if parts is None or one.layer is None:
        return False
    x = scene.draw.normal(1, 3, one.embed, salt=5)
    found = []
    for tokens in (x, torch.cat((x[:, :1], -x[:, 1:2], x[:, 2:]), 1)):
        run = ProjectedRun({})
        with suppress(*REFUSALS), torch.no_grad(), setting_projections(one.module, parts, run):
            one.layer(tokens)
        found.append(run.made.get("v", run.made.get("qkv")))
    before, after = found
    if before is None or after is None or before.shape[:2] != x.shape[:2]:
        return False
    return not torch.allclose(before[:, ::2], after[:, ::2])


def _keeps_equal_values(scene: Scene) -> bool:
    """Whether values inside the layer can be set, and give their own value if they are equal."""
    try:
        inner = projected(scene.subject)
        if inner is None or inner.attend is None:
            return False
        attend = inner.attend
        q, k, v = replace(scene, subject=inner).draw_qkv(1, 3, 82)
        equal = v[:, :, :1].expand_as(v)
        seen = scene.allow(lambda v: attend(q, k, v, None), equal)
        wanted = equal.repeat_interleave(inner.heads // inner.groups, 1)
        return gap(seen.output, wanted) <= seen()
    except REFUSALS:  # it may take no three tokens
        return False


def _factors_inside(scene: Scene) -> tuple[float, float]:
    """Return the least and greatest of the factors that equal values get inside a layer.

    Equal numbers where the factors are, within rounding, the same for all queries of a head, or
    where values cannot be set inside.
    """
    try:
        inner = projected(scene.subject)
        if inner is None or inner.attend is None:
            return 1.0, 1.0
        attend = inner.attend
        q, k, _ = replace(scene, subject=inner).draw_qkv(1, 3, 83)
        seen = scene.allow(lambda v: attend(q, k, v, None), torch.ones_like(k))
        found = seen.output
        apart = (found.amax(2) - found.amin(2)).max()
        if bool(found.isfinite().all()) and float(apart) > 2 * seen():
            return float(found.min()), float(found.max())
    except REFUSALS:  # it may take no three tokens
        pass
    return 1.0, 1.0


def _most(call: Callable[[int], object], many: int) -> int:
    """Return the number of tokens, halved until the code takes it or few are left."""
    while many > FEWEST:
        try:
            call(many)
        except REFUSALS:
            many = -(-many // 2)
        else:
            break
    return many


def _outside(target: Tensor, basis: Tensor) -> float:
    """Return the share of a vector outside the span of an orthonormal basis (n, E)."""
    return float((target - basis.T @ (basis @ target)).norm() / target.norm())
