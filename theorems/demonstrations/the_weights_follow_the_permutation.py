"""Document 001, second code block: the four steps of the equivariance proof in numbers."""

from __future__ import annotations

import numpy as np

from attnproof.numeric.demonstration import Row, demonstration
from attnproof.theorems.definitions.attention import softmax


@demonstration("Every step of the equivariance proof, and the weights it moves", claims=("T12",))
def run() -> list[Row]:
    """The data of the first block; P has the rows of the identity in the order 2, 0, 3, 1."""
    random = np.random.RandomState(42)
    X = random.randn(4, 8)
    to_query, to_key, to_value = (random.randn(8, 4) for _ in range(3))
    order = np.array([2, 0, 3, 1])
    P = np.eye(4)[order]
    Q, K, V = X @ to_query, X @ to_key, X @ to_value
    Q_moved, K_moved, V_moved = (P @ X @ W for W in (to_query, to_key, to_value))
    S, S_moved = Q @ K.mT, Q_moved @ K_moved.mT
    A, A_moved = softmax(S / 4**0.5), softmax(S_moved / 4**0.5)
    steps = {
        "step 1, queries: Q′ = P Q": (Q_moved, P @ Q),
        "step 2, scores: S′ = P S Pᵀ": (S_moved, P @ S @ P.T),
        "step 3, weights: A′ = P A Pᵀ": (A_moved, P @ A @ P.T),
        "step 4, output: O′ = P O": (A_moved @ V_moved, P @ (A @ V)),
    }
    checks = {says: bool(np.allclose(*sides)) for says, sides in steps.items()}
    words = ["The", "cat", "sat", "mat"]
    sat, cat = order.tolist().index(2), order.tolist().index(1)
    weights = np.array([
        [0.112, 0.004, 0.456, 0.428],
        [0.025, 0.616, 0.000, 0.359],
        [0.000, 0.148, 0.851, 0.001],
        [0.994, 0.000, 0.000, 0.006],
    ])  # fmt: skip
    moved_weights = np.array([
        [0.851, 0.000, 0.001, 0.148],
        [0.456, 0.112, 0.428, 0.004],
        [0.000, 0.994, 0.006, 0.000],
        [0.000, 0.025, 0.359, 0.616],
    ])  # fmt: skip
    return [
        *(Row(says, held, printed=True) for says, held in checks.items()),
        Row("all steps", all(checks.values()), printed=True),
        Row("weights A", A, weights, digits=3),
        Row("weights A′ after the permutation", A_moved, moved_weights, digits=3),
        Row("P A Pᵀ", P @ A @ P.T, moved_weights, digits=3),
        Row("weight of cat for sat, before", A[2, 1], 0.148, digits=3),
        Row("the words after", ", ".join(words[i] for i in order), "sat, The, mat, cat"),
        Row("new places of sat and cat", (sat, cat), (0, 3)),
        Row("weight of cat for sat, after", A_moved[sat, cat], 0.148, digits=3),
    ]
