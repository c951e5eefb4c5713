"""Documents 000 and 001: how numbers round, and how numpy prints them."""

from __future__ import annotations

import numpy as np

from attnproof.numeric.demonstration import Row, demonstration
from attnproof.theorems.definitions.attention import attention


# Document 000, the commutative law of addition: what it needs besides, in float32
@demonstration(
    "Floating addition commutes and is not associative",
    claims=("B3",),
    remark="The document prints no numbers here; the numbers beside ours are exact.",
)
def floating_addition_is_not_associative() -> list[Row]:
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


# Documents 000 and 001 across: the equivariance of attention in float32
@demonstration(
    "In floating point the symmetries hold to rounding and not bitwise",
    claims=("X8",),
    remark="How many entries differ, and by how much, depends on the machine's matrix product; "
    "that some differ, and by no more than rounding, does not.",
)
def symmetries_hold_to_rounding_and_not_bitwise() -> list[Row]:
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


# Document 001, code blocks 1 and 4: lists of numpy's numbers, printed
@demonstration(
    "Lists of numpy's numbers print bare under numpy 1 only",
    claims=("T29",),
    remark="The page prints list(perm) and list(seq). Since numpy 2 the numbers in a list show "
    "their type; numpy's own legacy mode writes them as numpy 1 did.",
)
def how_lists_of_numpy_numbers_print() -> list[Row]:
    """The permutation of block 1 and the sequence of block 4, in both print formats."""
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
