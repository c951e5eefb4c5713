"""Document 001, fifth code block: four points in space, attended to and averaged."""

from __future__ import annotations

from itertools import permutations

import numpy as np

from attnproof.numeric.demonstration import Row, demonstration
from attnproof.theorems.definitions.attention import attention


@demonstration(
    "A point cloud has one representation, whatever the order of its points",
    claims=("T22",),
    remark="The four points are symmetric in the three coordinates, so this example cannot see "
    "coordinates that are mixed up; 2000 random points are added. Of graph attention the page's "
    "block prints sentences only.",
)
def run() -> list[Row]:
    """Attention with Q = K = V = X on the points A, B, C, D, then the mean over the points."""
    points = np.array([[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0], [1.0, 1.0, 1.0]])
    first, second = _mean_pooled(points), _mean_pooled(points[[2, 3, 0, 1]])
    t = 1 / 3**0.5
    e1, e2 = np.exp(t), np.exp(2 * t)
    closed = (e1 / (1 + e1) + 1 + (1 + e2) / (3 + e2)) / 4
    orders = [_mean_pooled(points[list(order)]) for order in permutations(range(4))]
    random = np.random.RandomState(42)
    many = random.randn(2000, 3)
    spread = np.abs(_mean_pooled(many) - _mean_pooled(many[random.permutation(2000)])).max()
    printed = (0.5791, 0.5791, 0.5791)
    return [
        Row("points in the order A, B, C, D", first, printed, digits=4),
        Row("points in the order C, D, A, B", second, printed, digits=4),
        Row("the two are close", bool(np.allclose(first, second)), printed=True),
        Row("¼ [eᵗ/(1+eᵗ) + 1 + (1+e²ᵗ)/(3+e²ᵗ)] at t = 1/√3", closed, 0.5791, digits=4),
        Row("all 24 orders, largest difference", f"{np.ptp(orders, axis=0).max():.1e}"),
        Row("2000 random points in two orders, largest difference", f"{spread:.1e}"),
    ]


def _mean_pooled(points: np.ndarray) -> np.ndarray:
    mean: np.ndarray = attention(points, points, points).mean(axis=0)
    return mean
