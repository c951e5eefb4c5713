"""Whether the weights of a layer add up to one, seen from outside.

Tokens x + a_j d lie on a line.  Where values V_h x + c_h are linear in a token, and weights add up
to one, every head h gives V_h x + c_h + m V_h d with some mean m of the a_j, whatever positions and
masks do, so that ::

    f(x + a_i d) − f(x alone)  lies in the span of V_1 d .. V_H d, and of d with a residual

Sums s_h other than one add (s_h − 1) (V_h x + c_h).  With two lines of the same d, through x and
through y, the span then holds V (x − y) = f(x alone) − f(y alone), which it does not hold otherwise
(but for chance, where it leaves two directions free).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ..finding import Seen
from ..response import gap
from .base import Outcome, broken, held, not_asked, undecided
from .laws import instead
from .scene import Scene

__all__: list[str] = []

# in two free directions a random vector is as near as this to a span once in 1e8
NEAR, FAR = 1e-4, 1e-2


@instead("rows-sum-to-one")
def on_a_line(scene: Scene) -> Outcome:
    """Weights add up to one: outputs for tokens on a line keep to the directions of that line."""
    one, call = scene.subject, scene.tokens
    assert call is not None  # code on queries, keys and values is looked at by the formula
    x, y, d = (scene.draw.normal(1, 1, one.embed, salt=n) for n in (1, 2, 3))

    def alone(a: Tensor) -> Tensor:
        return call(a[..., :1] * x + a[..., 1:2] * y + a[..., 2:] * d)

    places = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.5, 0.5, 0.0), (1.0, 0.0, 1.0), (1.0, 0.0, -1.0))
    ends = [scene.allow(alone, torch.tensor([[place]]).to(x)) for place in places]
    first, second, middle, more, less = (end.output for end in ends)
    allowed = sum(end() for end in ends)
    bent = max(gap(first + second, 2 * middle), gap(more + less, 2 * first))
    if bent > 2 * allowed:
        return not_asked("what the layer makes of one token is not linear: its values are not seen")
    target = (first - second).double().flatten()
    if float(target.norm()) <= 2 * allowed * math.sqrt(target.numel()):
        return undecided("what the layer makes of one token alone does not depend on the token: "
                         "its values are not seen")  # fmt: skip
    rows, off, many = [d.double().flatten(), (x - y).double().flatten()], allowed, one.embed + 2
    _, _, passed = torch.linalg.svd(torch.stack(rows), full_matrices=False)
    if _outside(target, passed) <= FAR:  # it is in the span whatever the weights are
        return undecided("what the layer makes of one token is a multiple of it: its values are "
                         "not told from a residual")  # fmt: skip
    for turn in range(2):
        for base, through in ((first, x), (second, y)):
            a = 2 * scene.draw.normal(1, many, 1, salt=10 + turn)
            seen = scene.allow(lambda a, x=through: call(x + a * d), a)
            rows += list((seen.output - base).double()[0])
            off = max(off, seen() + allowed)
    span = torch.stack(rows)
    _, values, directions = torch.linalg.svd(span, full_matrices=False)
    # a change of every entry by `off` moves a singular value by its Frobenius norm at most
    bound = off * math.sqrt(span.numel())
    free = one.embed - int((values > bound).sum())
    if free < 2:
        return undecided("the outputs span every direction: sums of weights are not seen in them")
    if _outside(target, directions[values > bound]) > FAR:
        return held("tokens on a line gave outputs along it: the weights add up to one",
                    B=1, T=many, E=one.embed)  # fmt: skip
    sure = values > bound / NEAR
    near = NEAR + bound / float(target.norm())
    rest = _outside(target, directions[sure])
    if rest > near or near > 2 * NEAR:
        return undecided("rounding hides the directions of the outputs", rest, near)
    witness = Seen(
        {"B": 1, "T": many, "E": one.embed, "seed": scene.draw.seed},
        ("share of f(x) − f(y), for x and y alone, outside the directions of the outputs", rest),
        ("the least such share where weights add up to one", FAR), FAR - rest, near,
    )  # fmt: skip
    why = "tokens on a line gave outputs off it: the weights do not add up to one"
    return broken(why, witness, B=1, T=many, E=one.embed)


def _outside(target: Tensor, basis: Tensor) -> float:
    """The share of a vector that an orthonormal basis (n, E) does not reach."""
    return float((target - basis.T @ (basis @ target)).norm() / target.norm())
