"""Document 001, sixth code block: one token at two positions, with and without their vectors."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from attnproof.numeric.demonstration import Row, demonstration


@demonstration("Position vectors break the tie of two equal tokens", claims=("T25", "T24b"))
def run() -> list[Row]:
    """One token at positions 0 and 3; queries and keys are half the token, scores not scaled."""
    token = _exact(10, 5, 3, 2)
    vector_0, vector_3 = _exact(0, 0, 10, 0), _exact(3, 3, 7, 6)
    at_0, at_3 = token + vector_0, token + vector_3
    without = bool(np.array_equal(at_0 - vector_0, at_3 - vector_3))
    half = Fraction(1, 2)
    scores = {
        "without positions, 0 to 0": (half * token @ (half * token), 0.3450),
        "without positions, 0 to 3": (half * token @ (half * token), 0.3450),
        "with positions, 0 to 0": (half * at_0 @ (half * at_0), 0.7450),
        "with positions, 0 to 3": (half * at_0 @ (half * at_3), 0.7900),
    }
    collision = at_0 - vector_3
    return [
        Row("token at position 0", at_0, (1.0, 0.5, 1.3, 0.2), digits=1),
        Row("token at position 3", at_3, (1.3, 0.8, 1.0, 0.8), digits=1),
        Row("the tokens without positions are equal", without, printed=True),
        Row("with positions they are equal", bool(np.array_equal(at_0, at_3)), printed=False),
        *(Row(says, ours, printed, digits=4) for says, (ours, printed) in scores.items()),
        Row("the scores, exactly", ", ".join(str(ours) for ours, _ in scores.values())),
        Row(
            "another token that gives the first vector at position 3",
            ", ".join(str(x) for x in collision),
        ),
    ]


def _exact(*tenths: int) -> np.ndarray:
    """The vector of these tenths, as fractions."""
    return np.array([Fraction(t, 10) for t in tenths], dtype=object)
