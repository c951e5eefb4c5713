"""Document 000, the commutative law of addition: what it needs besides, in float32."""

from __future__ import annotations

import numpy as np

from attnproof.numeric.demonstration import Row, demonstration


@demonstration(
    "Floating addition commutes and is not associative",
    claims=("B3",),
    remark="The document prints no numbers here; what stands beside ours is exact.",
)
def run() -> list[Row]:
    """Three numbers summed in two orders, and pairs of random numbers in both orders."""
    a, b = np.float32(1e8), np.float32(1)
    x, y, z = np.random.RandomState(42).randn(3, 4096).astype(np.float32)
    return [
        Row("(10⁸ + (−10⁸)) + 1 in float32", float((a + -a) + b), 1.0, digits=0),
        Row("(−10⁸ + 1) + 10⁸ in float32", float((-a + b) + a), 0.0, digits=0),
        Row("x + y is y + x, 4096 pairs", bool(np.array_equal(x + y, y + x)), printed=True),
        Row(
            "(x + y) + z is (y + z) + x, 4096 triples",
            bool(np.array_equal((x + y) + z, (y + z) + x)),
            printed=False,
        ),
        Row("share of triples whose sums differ", f"{np.mean((x + y) + z != (y + z) + x):.0%}"),
    ]
