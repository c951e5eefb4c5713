"""Hypotheses that several statements share, and laws of powers that they use."""

from __future__ import annotations

from typing import Any

from attnproof.symbolic.claim import Law, equal, for_all
from attnproof.symbolic.givens import natural

from .powers import power
from .rotary import block_rotation


def nothing() -> list[Any]:
    """No hypothesis: for a negative control that drops those of its theorem."""
    return []


def offset_of_powers(matrix: Any) -> Law:
    """(M^m)ᵀ M^{m+k} = M^k for an orthogonal M, and all natural m and k."""
    return for_all(
        {"m": natural(), "k": natural()},
        lambda m, k: equal(
            power(matrix, m).mT @ power(matrix, m + k), power(matrix, k)
        ).by_induction(m),
    )


def powers_of_blocks(angles: Any) -> Law:
    """M^j has the blocks R(j a_b) if M has the blocks R(a_b), for all natural j."""
    matrix = block_rotation(angles)
    return for_all(
        {"j": natural()},
        lambda j: equal(power(matrix, j), block_rotation(j * angles)).by_induction(j),
    )
