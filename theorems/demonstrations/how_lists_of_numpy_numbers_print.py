"""Document 001, code blocks 1 and 4: lists of numpy's numbers, printed."""

from __future__ import annotations

import numpy as np

from attnproof.numeric.demonstration import Row, demonstration


@demonstration(
    "Lists of numpy's numbers print bare under numpy 1 only",
    claims=("T29",),
    remark="The page prints list(perm) and list(seq). Since numpy 2 the numbers in a list show "
    "their type; numpy's own legacy mode writes them as numpy 1 did.",
)
def run() -> list[Row]:
    """The permutation of block 1 and the sequence of block 4, in both manners of printing."""
    order, sequence = np.array([2, 0, 3, 1]), np.array([1.0, 2.0, 3.0, 1.0, 2.0, 3.0])
    with np.printoptions(legacy="1.25"):
        old = f"{list(order)}", f"{list(sequence)}"
    with np.printoptions(legacy=False):
        new = f"{list(order)}", f"{list(sequence)}"
    return [
        Row("the permutation as numpy 1 prints it", old[0], "[2, 0, 3, 1]"),
        Row("the sequence as numpy 1 prints it", old[1], "[1.0, 2.0, 3.0, 1.0, 2.0, 3.0]"),
        Row("the permutation as numpy 2 prints it", new[0]),
        Row("the sequence as numpy 2 prints it", new[1]),
    ]
