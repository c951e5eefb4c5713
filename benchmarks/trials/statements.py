"""The statements of the trials, at sizes that take milliseconds.

Each states either that a named definition equals itself, so that only the comparison with float64
is tested, or that it commutes with a permutation.  Implementations and faults replace the
definition by its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch

from attnproof.numeric.distributions import Distribution
from attnproof.numeric.scale import Scale
from attnproof.numeric.task import Task, drawn
from attnproof.symbolic.claim import equal
from attnproof.symbolic.definition import definition
from attnproof.symbolic.givens import Given, frequencies, permutation, positions, real, sizes
from attnproof.symbolic.statement import Statement
from attnproof.theorems.definitions.attention import attention, causal, masked_attention
from attnproof.theorems.definitions.rotary import rotate_half

ROWS = 64
POSITIONS = 4_096
TOKENS = ((256, 192), (1_000, 150), (512, 320), (1_024, 96))
"""Numbers of keys and queries, chosen by seed: above and below the block sizes of kernels."""
LONG = (100_000, 16)
"""Numbers of keys and queries for faults in a single key."""
EVEN = 1.0
"""The spread of tokens there: with a larger spread of scores most keys have no weight."""
GROUPS = {"heads": (4, 2), "blocks": (32,), "size": (56,), "features": (64, 48)}


@definition(r"\operatorname{RotAtt}")
def rotary_attention(
    query: Any, key: Any, value: Any, query_at: Any, key_at: Any, omega: Any
) -> Any:
    r"""Attention with queries and keys rotated by their positions, in the half-split layout.

    Q: (r, 2B), K: (n, 2B), V: (n, d), positions (r,) and (n,), frequencies (B,).

    Su et al. 2021 (RoFormer), eq. 16.
    """
    rotated = rotate_half(query, query_at, omega)
    return attention(rotated, rotate_half(key, key_at, omega), value)


def _stated(givens: Mapping[str, Given], left: Any, right: Any = None) -> Statement:
    values = [given.named(name) for name, given in givens.items()]
    one = left(*values)
    return Statement(givens, {"": equal(one, one if right is None else right(*values))})


@dataclass(frozen=True)
class Trial:
    """A named statement; ``definition``: the definition that implementations replace."""

    name: str
    definition: str
    statement: Statement


def _trials() -> tuple[Trial, ...]:
    r, n = sizes("r n", "tokens")
    width, d = sizes("l d", "features")
    G, R = sizes("G R", "heads")
    (B,) = sizes("B", "blocks")
    plain = {"Q": real(r, width), "K": real(n, width), "V": real(n, d)}
    square = {"Q": real(n, width), "K": real(n, width), "V": real(n, d)}
    grouped = {"Q": real(G, R, r, width), "K": real(G, n, width), "V": real(G, n, d)}
    rotary = {
        "Q": real(r, 2 * B),
        "K": real(n, 2 * B),
        "V": real(n, d),
        "p": positions(r),
        "s": positions(n),
        "omega": frequencies(B),
    }
    return (
        Trial("attention", "attention", _stated(plain, attention)),
        Trial(
            "queries permuted",
            "attention",
            _stated(
                plain | {"tau": permutation(r)},
                lambda Q, K, V, tau: attention(Q[tau], K, V),
                lambda Q, K, V, tau: attention(Q, K, V)[tau],
            ),
        ),
        Trial(
            "keys permuted",
            "attention",
            _stated(
                plain | {"sigma": permutation(n)},
                lambda Q, K, V, sigma: attention(Q, K[sigma], V[sigma]),
                lambda Q, K, V, sigma: attention(Q, K, V),  # noqa: ARG005
            ),
        ),
        Trial(
            "causal attention",
            "masked_attention",
            _stated(square, lambda Q, K, V: masked_attention(Q, K, V, causal(Q))),
        ),
        Trial(
            "grouped keys",
            "attention",
            _stated(grouped, lambda Q, K, V: attention(Q, K[:, None], V[:, None])),
        ),
        Trial(
            "rotary attention",
            "rotary_attention",
            _stated(rotary, rotary_attention),
        ),
    )


TRIALS = {trial.name: trial for trial in _trials()}


def task_of(
    trial: Trial,
    tokens: tuple[int, int],
    distribution: Distribution,
    seed: int,
    device: torch.device,
) -> Task:
    """Return one draw of the statement: numbers of keys and queries, a distribution, a seed.

    >>> from attnproof.numeric.distributions import NORMAL
    >>> task = task_of(TRIALS["attention"], (96, 72), NORMAL, 0, torch.device("cpu"))
    >>> task.sizes["n"], task.sizes["r"]
    (96, 72)
    """
    scale = Scale(
        "trials",
        {"tokens": tokens, **GROUPS},
        positions=POSITIONS,
        rows=ROWS,
        distribution=distribution,
    )
    if tokens == LONG:
        scale = replace(scale, spread=EVEN)
    return drawn(trial.statement, scale, device, seed)
