"""Convolutions, and recurrences that read one token per step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from array_api_compat import array_namespace

from attnproof.symbolic.claim import iterate
from attnproof.symbolic.definition import definition


def windowed(sequence: Callable[[Any], Any], kernel: Any, place: Any) -> Any:
    r"""Σ_k w_k x(t + k), k = −K, .., K, for a kernel: (2K+1,) and a sequence x on all numbers t.

    This is the convention of machine learning, which does not flip the kernel.
    """
    xp = array_namespace(kernel)
    width = kernel.shape[0]
    offsets = xp.arange(width, device=kernel.device) - (width - 1) / 2
    return xp.sum(sequence(place[..., None] + offsets) * kernel, axis=-1)


@definition(r"\operatorname{conv}")
def convolution(tokens: Any, kernel: Any) -> Any:
    r"""y_t = Σ_k w_k x_{t+k}, where x is 0 beyond its ends: (n,), (2K+1,) -> (n,).

    Without padding, x_{t+k} is read as Σ_s [s = t + k] x_s.  LeCun et al. 1998, section II.
    """
    xp = array_namespace(tokens, kernel)
    places = xp.arange(tokens.shape[0], device=tokens.device)

    def padded(place: Any) -> Any:
        return xp.sum(xp.astype(place[..., None] == places, tokens.dtype) * tokens, axis=-1)

    return windowed(padded, kernel, places)


def recurrent_cell(state: Any, token: Any, to_state: Any, to_input: Any, bias: Any) -> Any:
    r"""tanh(W_h h + W_x x + b) for h, b: (d,), x: (p,), W_h: (d, d), W_x: (d, p).

    Elman 1990; document 001, the step of its recurrent cell.
    """
    xp = array_namespace(state)
    return xp.tanh(to_state @ state + to_input @ token + bias)


def state_after(steps: Any, start: Any, cell: Any, tokens: Any) -> Any:
    """h_m of h_t = cell(h_{t−1}, x_t), from h_0 = start, reading tokens[0], .., tokens[m−1]."""
    return iterate(steps, start, lambda t, state: cell(state, tokens[t]))


@definition(r"\operatorname{State}")
def affine_state(first: Any, steps: Any, start: Any, matrix: Any, vector: Any) -> Any:
    r"""h after steps h ↦ A_t h + b_t, t = first, .., first + steps − 1, from h: (d,).

    ``matrix`` and ``vector`` give A_t: (d, d) and b_t: (d,).
    """
    return iterate(steps, start, lambda t, h: matrix(first + t) @ h + vector(first + t))


@definition(r"\operatorname{Composite}")
def affine_composite(first: Any, steps: Any, width: Any, matrix: Any, vector: Any) -> Any:
    r"""[A | b] of the single step h ↦ A h + b that equals those of ``affine_state``: (d, d + 1).

    It is [1 | 0] for no steps; each step maps [A | b] to A_t [A | b] + [0 | b_t].  Blelloch 1990,
    section 1.4.1.
    """
    xp = array_namespace(vector(first))
    identity_step = xp.concat((xp.eye(width), xp.zeros((width, 1))), axis=1)

    def step(t: Any, composite: Any) -> Any:
        added = xp.concat((xp.zeros((width, width)), vector(first + t)[:, None]), axis=1)
        return matrix(first + t) @ composite + added

    return iterate(steps, identity_step, step)
