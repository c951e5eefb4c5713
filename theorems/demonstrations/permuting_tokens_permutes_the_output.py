"""Document 001, first code block: attention then permutation, permutation then attention."""

from __future__ import annotations

import numpy as np

from attnproof.numeric.demonstration import Row, demonstration
from attnproof.theorems.definitions.attention import self_attention


@demonstration("Permuting tokens permutes the output of self-attention", claims=("T5",))
def run() -> list[Row]:
    """Four tokens of width 8, heads of width 4, seed 42, rows gathered in the order 2, 0, 3, 1."""
    random = np.random.RandomState(42)
    X = random.randn(4, 8)
    to_query, to_key, to_value = (random.randn(8, 4) for _ in range(3))
    order = np.array([2, 0, 3, 1])
    output = self_attention(X, to_query, to_key, to_value)
    moved = self_attention(X[order], to_query, to_key, to_value)
    printed = np.array([
        [-0.266, 1.247, -1.711, -0.260],
        [-1.326, 2.649, -4.731, 0.253],
        [-1.782, 0.425, 0.940, 0.866],
        [2.312, 0.294, -0.452, -2.815],
    ])  # fmt: skip
    return [
        Row("attention", output, printed, digits=3),
        Row("attention, then the permutation", output[order], printed[order], digits=3),
        Row("the permutation, then attention", moved, printed[order], digits=3),
        Row("the two are close", bool(np.allclose(output[order], moved)), printed=True),
        Row("largest difference of the two", f"{np.abs(output[order] - moved).max():.1e}"),
    ]
