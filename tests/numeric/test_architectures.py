"""The definitions of architectures against loops and against torch's own modules."""

from __future__ import annotations

import numpy as np
import torch

from attnproof.theorems.definitions.sequences import (
    affine_composite,
    affine_state,
    convolution,
    recurrent_cell,
    state_after,
)

RANDOM = np.random.default_rng(0)


def normal(*shape: int) -> torch.Tensor:
    """Random numbers in float64."""
    return torch.from_numpy(RANDOM.normal(size=shape))


def looped(tokens: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    """Each output by itself, places beyond the ends left out."""
    output = np.zeros(len(tokens))
    for t in range(len(tokens)):
        for j, weight in enumerate(kernel):
            if 0 <= t + j - len(kernel) // 2 < len(tokens):
                output[t] += weight * tokens[t + j - len(kernel) // 2]
    return output


def test_convolution_is_the_loop() -> None:
    for n, half in ((1, 0), (6, 1), (5, 4), (40, 3)):
        tokens, kernel = RANDOM.normal(size=n), RANDOM.normal(size=2 * half + 1)
        assert np.allclose(convolution(tokens, kernel), looped(tokens, kernel))


def test_the_loop_reads_another_window_for_an_even_kernel() -> None:
    tokens, kernel = RANDOM.normal(size=6), RANDOM.normal(size=4)
    assert not np.allclose(convolution(tokens, kernel), looped(tokens, kernel))


def test_convolution_is_torchs_and_not_its_mirror_image() -> None:
    tokens, kernel = normal(300), normal(7)
    ours = convolution(tokens, kernel)
    theirs, mirrored = (
        torch.nn.functional.conv1d(tokens[None, None], w[None, None], padding=3)[0, 0]
        for w in (kernel, kernel.flip(0))
    )
    assert torch.allclose(ours, theirs)
    assert not torch.allclose(ours, mirrored)


def test_an_output_reads_its_window_only() -> None:
    tokens = normal(12)
    kernel = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0], dtype=torch.float64)
    slopes = torch.func.jacrev(lambda x: convolution(x, kernel))(tokens)
    place = torch.arange(12)
    near = (place[:, None] - place[None, :]).abs() <= 2
    assert torch.equal(slopes != 0, near)


def test_the_cell_is_torchs() -> None:
    theirs = torch.nn.RNN(3, 4, dtype=torch.float64)
    weights = [torch.nn.Parameter(normal(*p.shape)) for p in theirs.parameters()]
    for name, value in zip(dict(theirs.named_parameters()), weights, strict=True):
        setattr(theirs, name, value)
    to_input, to_state, first_bias, second_bias = (p.detach() for p in weights)
    tokens = normal(20, 3)

    def cell(state: torch.Tensor, token: torch.Tensor) -> torch.Tensor:
        new: torch.Tensor = recurrent_cell(
            state, token, to_state, to_input, first_bias + second_bias
        )
        return new

    last = state_after(20, torch.zeros(4, dtype=torch.float64), cell, tokens)
    assert torch.allclose(last, theirs(tokens)[0][-1])
    assert not torch.allclose(last, theirs(tokens.flip(0))[0][-1])


def test_a_scan_in_halves_is_the_loop() -> None:
    steps, width = 64, 5
    matrices = RANDOM.normal(size=(steps, width, width)) / width
    inputs, start = RANDOM.normal(size=(steps, width)), RANDOM.normal(size=width)
    matrix, vector = matrices.__getitem__, inputs.__getitem__
    composites = [affine_composite(t, 1, width, matrix, vector) for t in range(steps)]
    rounds = 0
    while len(composites) > 1:  # the composites of neighbours, all pairs at once
        pairs = zip(composites[0::2], composites[1::2], strict=True)
        composites = [
            np.column_stack((b[:, :-1] @ a[:, :-1], b[:, :-1] @ a[:, -1] + b[:, -1]))
            for a, b in pairs
        ]
        rounds += 1
    assert rounds == 6
    whole = composites[0]
    last = affine_state(0, steps, start, matrix, vector)
    assert np.allclose(whole[:, :-1] @ start + whole[:, -1], last)
    assert np.allclose(affine_composite(0, steps, width, matrix, vector), whole)
    assert not np.allclose(affine_state(0, steps - 1, start, matrix, vector), last)
