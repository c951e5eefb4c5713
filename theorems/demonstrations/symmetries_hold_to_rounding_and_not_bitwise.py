"""Documents 000 and 001 across: the equivariance of attention in float32."""

from __future__ import annotations

import numpy as np

from attnproof.numeric.demonstration import Row, demonstration
from attnproof.theorems.definitions.attention import attention


@demonstration(
    "In floating point the symmetries hold to rounding and not bitwise",
    claims=("X8",),
    remark="How many entries differ, and by how much, depends on the machine's matrix product; "
    "that some differ, and by no more than rounding, does not.",
)
def run() -> list[Row]:
    """Attention on 512 random tokens of width 64 in float32, in two orders."""
    random = np.random.RandomState(42)
    X = random.randn(512, 64).astype(np.float32)
    order = random.permutation(512)
    output, moved = attention(X, X, X)[order], attention(X[order], X[order], X[order])
    gap = float(np.abs(output - moved).max())
    # A dot product of ℓ terms errs by (ℓ+2)u of the norms; weights err by twice that of their
    # score and by a sum over n; so do their products with values; and there are two sides.
    n, width, unit = *X.shape, 2.0**-24
    score = (width + 2) * unit * float((X**2).sum(axis=1).max()) / width**0.5
    bound = 2 * (2 * score + (2 * n + 10) * unit) * float(np.abs(X).max())
    return [
        Row("the difference is within rounding", gap <= bound, printed=True),
        Row("the two are equal bit for bit", bool(np.array_equal(output, moved)), printed=False),
        Row("largest difference", f"{gap:.1e}"),
        Row("bound on its rounding", f"{bound:.1e}"),
        Row("share of entries that differ", f"{100 * np.mean(output != moved):.0f} %"),
    ]
