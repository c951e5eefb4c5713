"""Document 001, fourth code block, first part: a recurrent cell at repeated tokens."""

from __future__ import annotations

import numpy as np

from attnproof.numeric.demonstration import Row, demonstration
from attnproof.theorems.definitions.sequences import recurrent_cell, state_after


@demonstration(
    "A recurrent cell has different states at two equal tokens",
    claims=("T35",),
    remark="The page's code sets no seed here, so it prints other numbers at every run. The ones "
    "beside ours are what it prints after seed 42 set just before the block, and after the third "
    "block run in the same session.",
)
def run() -> list[Row]:
    """The states at the first and the fourth of the tokens 1, 2, 3, 1, 2, 3; width 2, no bias."""
    seeded = np.random.RandomState(42)
    after_third_block = np.random.RandomState(42)
    for _ in range(3):
        after_third_block.randn(3, 2)
    states, later = _states(seeded), _states(after_third_block)
    starts = 2000
    differ = sum(_differ(_states(np.random.RandomState(seed))) for seed in range(starts))
    return [
        Row("seed 42, state 0", states[0], (-0.0234, -0.0234), digits=4),
        Row("seed 42, state 3", states[3], (-0.0259, -0.0404), digits=4),
        Row("after the third block, state 0", later[0], (0.0068, -0.1415), digits=4),
        Row("after the third block, state 3", later[3], (0.0573, -0.1247), digits=4),
        Row("the states differ", _differ(states), printed=True),
        Row(f"seeds below {starts} for which they differ", differ),
    ]


def _states(random: np.random.RandomState) -> np.ndarray:
    """The six states, of weights drawn in the page's order."""
    to_state, to_input = random.randn(2, 2) * 0.1, random.randn(2, 1) * 0.1
    tokens = np.array([1.0, 2.0, 3.0, 1.0, 2.0, 3.0])[:, None]

    def cell(state: np.ndarray, token: np.ndarray) -> np.ndarray:
        new: np.ndarray = recurrent_cell(state, token, to_state, to_input, np.zeros(2))
        return new

    return np.stack([state_after(t + 1, np.zeros(2), cell, tokens) for t in range(6)])


def _differ(states: np.ndarray) -> bool:
    return not np.allclose(states[0], states[3])
