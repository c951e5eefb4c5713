"""Document 001, blocks 4 and 6: what distinguishes two equal tokens."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from attnproof.numeric.demonstration import Row, demonstration
from attnproof.theorems.definitions.attention import self_attention
from attnproof.theorems.definitions.sequences import convolution, recurrent_cell, state_after


# Document 001, fourth code block, first part: a recurrent cell at repeated tokens
@demonstration(
    "A recurrent cell has different states at two equal tokens",
    claims=("T35",),
    remark="The page's code sets no seed here, so it prints different numbers in every run. The "
    "numbers beside ours are printed with seed 42 set just before the block, and after running "
    "the third block in the same session.",
)
def a_recurrent_cell_at_two_equal_tokens() -> list[Row]:
    """The states at the first and the fourth of the tokens 1, 2, 3, 1, 2, 3; width 2, no bias."""
    seeded = np.random.RandomState(42)
    after_third_block = np.random.RandomState(42)
    for _ in range(3):
        after_third_block.randn(3, 2)
    states, later = _states(seeded), _states(after_third_block)
    starts = 2000
    differ = sum(_differ(*_states(np.random.RandomState(seed), (0, 3))) for seed in range(starts))
    return [
        Row("seed 42, state 0", states[0], (-0.0234, -0.0234), digits=4),
        Row("seed 42, state 3", states[3], (-0.0259, -0.0404), digits=4),
        Row("after the third block, state 0", later[0], (0.0068, -0.1415), digits=4),
        Row("after the third block, state 3", later[3], (0.0573, -0.1247), digits=4),
        Row("the states differ", _differ(states[0], states[3]), printed=True),
        Row(f"seeds below {starts} for which they differ", differ),
    ]


def _states(random: np.random.RandomState, places: Iterable[int] = range(6)) -> np.ndarray:
    """The states at some of the six tokens, with weights drawn in the order of the page."""
    to_state, to_input = random.randn(2, 2) * 0.1, random.randn(2, 1) * 0.1
    tokens = np.array([1.0, 2.0, 3.0, 1.0, 2.0, 3.0])[:, None]

    def cell(state: np.ndarray, token: np.ndarray) -> np.ndarray:
        new: np.ndarray = recurrent_cell(state, token, to_state, to_input, np.zeros(2))
        return new

    return np.stack([state_after(t + 1, np.zeros(2), cell, tokens) for t in places])


def _differ(first: np.ndarray, fourth: np.ndarray) -> bool:
    return not np.allclose(first, fourth)


# Document 001, fourth code block: a convolution, and attention, at repeated tokens
@demonstration(
    "A convolution separates equal tokens only where their windows differ",
    claims=("T18c", "T19"),
    remark="The page prints the outputs at the two A's only. The two B's have equal windows and "
    "equal outputs; the C's, like the A's, are distinguished by the border. About attention the "
    "block prints only sentences; its rows are ours.",
)
def a_short_convolution_at_equal_tokens() -> list[Row]:
    """Tokens A, B, C, A, B, C = 1, 2, 3, 1, 2, 3 and the kernel 0.2, 0.6, 0.2, zero padded."""
    tokens = np.array([1.0, 2.0, 3.0, 1.0, 2.0, 3.0])
    output = convolution(tokens, np.array([0.2, 0.6, 0.2]))
    random = np.random.RandomState(42)
    attended = self_attention(tokens[:, None], *(random.randn(1, 2) for _ in range(3)))
    return [
        Row("output at the first A", output[0], 1.0, digits=4),
        Row("output at the second A", output[3], 1.6, digits=4),
        Row("the A's are told apart", not np.isclose(output[0], output[3]), printed=True),
        Row("the whole output", output.round(4)),
        Row("the B's are told apart", not np.isclose(output[1], output[4])),
        Row("the C's are told apart", not np.isclose(output[2], output[5])),
        Row("self-attention tells none apart", bool(np.allclose(attended[:3], attended[3:]))),
    ]


# Document 001, sixth code block: one token at two positions, with and without their vectors
@demonstration("Position vectors break the tie of two equal tokens", claims=("T25", "T24b"))
def positions_break_the_tie_of_equal_tokens() -> list[Row]:
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
