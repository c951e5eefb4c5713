"""Document 001, fourth code block: a convolution, and attention, at repeated tokens."""

from __future__ import annotations

import numpy as np

from attnproof.numeric.demonstration import Row, demonstration
from attnproof.theorems.definitions.attention import self_attention
from attnproof.theorems.definitions.sequences import convolution


@demonstration(
    "A convolution separates equal tokens only where their windows differ",
    claims=("T18c", "T19"),
    remark="The page prints the outputs at the two A's alone. The two B's have equal windows and "
    "get equal outputs; the C's, like the A's, are told apart by the border. Of attention the "
    "block prints sentences only; its rows are ours.",
)
def run() -> list[Row]:
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
