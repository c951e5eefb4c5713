"""One line on numpy and on symbols: the same numbers."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from array_api_compat import numpy as xnp

from attnproof.symbolic.evaluate import Evaluator
from attnproof.symbolic.reading import open_ranges
from attnproof.symbolic.reading import range_message as open_range
from tests.cases import each
from tests.symbolic.test_array_api import GIVEN, SYMBOLS


def concrete(rows: int, columns: int) -> dict[str, Any]:
    """Numbers with zeros, ties and negatives, halves and wholes."""
    random = np.random.default_rng(rows * 10 + columns)
    lengths = {"n": rows, "m": columns}
    values: dict[str, Any] = {"xp": xnp, **lengths}
    for name, given in GIVEN.items():
        shape = Evaluator(np, lengths, {}).lengths(given.named(name).term)
        if given.kind == "boolean":
            values[name] = random.integers(0, 2, shape) == 1
        elif given.kind == "permutation":
            values[name] = random.permutation(rows)
        else:
            values[name] = random.integers(-4, 5, shape) / 2
    return values


SAME = [
    "+X",
    "-X",
    "abs(X)",
    "X.T",
    "X.mT @ X",
    "X ** 2.0",
    "X ** 0",
    "(X * X) ** 0.5",
    "(X * X) ** 0.25",
    "abs(X) ** 0.75",
    "X * n**-0.25",
    "2 ** x",
    "(X * X + 1) ** 1.5",
    "(X * X + 1) ** -0.5",
    "X // 2",
    "X % 2",
    "X % -1.5",
    "X // -1.5",
    "7 // (X * X + 1)",
    "7 % (X * X + 1)",
    "1 - X",
    "1 / (X * X + 1)",
    "np.float64(2) * X",
    "np.float32(0.1) * X",
    "np.int64(3) + X",
    "np.float64(2) < X",
    "X < np.float64(2)",
    "np.float64(2) ** x",
    "(X > 0) & (X < 2)",
    "(X > 0) | M",
    "(X > 0) ^ M",
    "M == (X > 0)",
    "M != (X > 0)",
    "X != Y",
    "T @ xp.ones((2,))",
    "x @ xp.permute_dims(T, (2, 0, 1))",
    "T @ T.mT",
    "x @ X",
    "X @ y",
    "x @ x",
    "X[-1]",
    "X[:, -1]",
    "X[0]",
    "X[:, 0]",
    "X[..., 0]",
    "X[None, ..., 0]",
    "X[:-1]",
    "X[1:]",
    "X[:n]",
    "X[0:n]",
    "F[:, :-3]",
    "F[:, 1:-1]",
    "F[:, -3:]",
    "F[:, ::2]",
    "F[:, 1::2]",
    "F[:, ::3]",
    "F[:, 1:4:2]",
    "P[: 2 * m // 2]",
    "P[m:]",
    "P[::2]",
    "P[1::2]",
    "P[xp.arange(2 * m) // 2]",
    "y[xp.arange(2 * m) // 2]",
    "y[xp.arange(2 * m) % m]",
    "X[:, xp.arange(2 * m) // 2]",
    "X[s]",
    "X[s][:, 0]",
    "X[s, 0]",
    "X[0, :]",
    "X[s[s]]",
    "X[xp.arange(n)]",
    "X[n - 1 - xp.arange(n)]",
    "F[:, 3 - xp.arange(4)]",
    "T[:, :, -1]",
    "T[..., 1:]",
    "T[0, ..., 1]",
    "x[s[0]]",
    "xp.eye(n)",
    "xp.eye(n, m)",
    "xp.eye(n, k=1)",
    "xp.eye(n, m, k=-2)",
    "xp.eye(3, k=-1) @ xp.ones(3)",
    "xp.arange(n)",
    "xp.arange(2, 5)",
    "xp.arange(5, 2, -1)",
    "xp.arange(0, 7, 3)",
    "xp.arange(1, n + 1)",
    "xp.arange(n, n + m)",
    "xp.arange(0, 2 * m, 2)",
    "xp.arange(m, 0, -1)",
    "xp.zeros((n, 2))",
    "xp.ones(n)",
    "xp.full((2, m), 3)",
    "xp.zeros_like(X)",
    "xp.ones_like(X)",
    "xp.full_like(X, 2)",
    "xp.ones_like(M)",
    "xp.zeros(n, dtype=X.dtype)",
    "xp.sum(X)",
    "xp.sum(X, axis=-1)",
    "xp.sum(X, axis=(0, 1))",
    "xp.sum(T, axis=(0, -1))",
    "xp.sum(X, keepdims=True)",
    "xp.sum(T, axis=(2, 0), keepdims=True)",
    "xp.mean(X)",
    "xp.mean(T, axis=(0, 2))",
    "xp.mean(T, axis=-2, keepdims=True)",
    "xp.sum(X, axis=())",
    "xp.concat((X, Y))",
    "xp.concat((X, Y), axis=-1)",
    "xp.concat((X,))",
    "xp.concat((X, x), axis=None)",
    "xp.concat([M, ~M])",
    "xp.stack((X, Y), axis=-1)",
    "xp.stack((X, Y), axis=1)",
    "xp.stack((X,))",
    "xp.squeeze(X[None], axis=0)",
    "xp.squeeze(X[None, :, None], axis=(0, 2))",
    "xp.expand_dims(X, axis=-1)",
    "xp.expand_dims(X, axis=1)",
    "xp.permute_dims(T, (2, 0, 1))",
    "xp.permute_dims(T, (-1, 0, 1))",
    "xp.moveaxis(T, 0, -1)",
    "xp.moveaxis(T, (0, 1), (-1, 0))",
    "xp.moveaxis(T, (2, 0), (0, 1))",
    "xp.matrix_transpose(T)",
    "xp.matmul(X, X.mT)",
    "xp.reshape(X, (n * m,))",
    "xp.reshape(X, (-1,))",
    "xp.reshape(T, (n, -1))",
    "xp.reshape(T, (-1, 2))",
    "xp.reshape(P, (m, 2))",
    "xp.reshape(P, (2, m))",
    "xp.reshape(P, (2, -1))",
    "X.reshape(m, n)",
    "X.reshape((m * n,))",
    "X.reshape(-1)",
    "xp.astype(M, X.dtype) + 1",
    "xp.astype(X, xp.float64)",
    "xp.astype(xp.arange(n), xp.int64)",
    "xp.astype(X, xp.bool)",
    "xp.astype(M, xp.int64)",
    "xp.astype(M, xp.bool)",
    "xp.astype(M, int) * 2",
    "xp.astype(xp.floor(X), int)",
    "xp.astype(X // 1, xp.int64)",
    "xp.where(M, X, Y)",
    "xp.where(M, X, 0)",
    "xp.where(M, X > 0, Y > 0)",
    "xp.where(X > 0, X, -xp.inf)",
    "xp.maximum(X, 0 * X)",
    "xp.minimum(X, Y)",
    "xp.clip(X, -1, 1)",
    "xp.clip(X, 1, -1)",
    "xp.clip(X, min=0)",
    "xp.clip(X, max=0)",
    "xp.clip(X, Y, Y + 1)",
    "xp.sign(X)",
    "xp.floor(X)",
    "xp.ceil(X)",
    "xp.square(X)",
    "xp.exp(X)",
    "xp.log(X * X + 1)",
    "xp.pow(X * X + 1, Y)",
    "xp.floor_divide(X, Y * Y + 1)",
    "xp.remainder(X, Y * Y + 1)",
    "xp.remainder(X, -1 - Y * Y)",
    "xp.isin(xp.arange(n), s[:1])",
    "xp.isin(X, x)",
    "xp.isin(X, x, invert=True)",
    "xp.tril(X)",
    "xp.triu(X, k=1)",
    "xp.tril(X, k=-1)",
    "xp.tril(M)",
    "xp.add(X, Y)",
    "xp.subtract(X, Y)",
    "xp.multiply(X, Y)",
    "xp.divide(X, Y * Y + 1)",
    "xp.negative(X)",
    "xp.less(X, Y)",
    "xp.greater_equal(X, Y)",
    "xp.not_equal(X, Y)",
    "xp.logical_and(M, X > 0)",
    "xp.logical_xor(M, X > 0)",
    "xp.logical_not(M)",
    "xp.broadcast_to(x[:, None], (n, m))",
    "xp.broadcast_to(y, (3, n, m))",
    "xp.sum(X[1:])",
    "xp.sum(F[:, 4:])",
    "F[:, 4:]",
    "xp.sum(X, axis=0) / n",
    "X / m ** 0.5",
    "(n * m) // m",
    "(2 * m) // 2",
    "(2 * m + 1) % 2",
    "X.size + 0 * a",
    "X.shape[0] * a",
    "xp.asarray([[1, 2], [3, 4]]) @ xp.ones(2)",
    "xp.asarray(X)",
    "xp.e * a",
    "X[xp.newaxis]",
    "xp.astype(x[:, None] > x, float)",
    "x[:, None] * y",
]
SIZES = [(3, 3), (3, 4), (4, 3), (5, 3)]


@each(SAME)
def test_a_line_has_the_numbers_that_numpy_gives_it(line: str) -> None:
    term = eval(line, {"np": np}, SYMBOLS).term
    for rows, columns in SIZES:
        values = concrete(rows, columns)
        wanted = np.asarray(eval(line, {"np": np}, values))
        found = np.asarray(Evaluator(np, {"n": rows, "m": columns}, values)(term))
        assert found.shape == wanted.shape
        assert np.allclose(found.astype(float), wanted.astype(float), atol=1e-12)


def test_a_slice_that_numpy_would_clip_has_a_range_that_its_form_does_not_show() -> None:
    """What is not certain is no line for all sizes; the ranges tell what would make it one."""
    lines = {
        "X[-3:]": r"at_least\(n, 3\)",
        "X[:-3]": r"at_least\(n, 3\)",
        "X[5]": r"at_least\(n, 6\)",
        "X[n - m:]": r"at_least\(n, m\)",
        "X[-m:]": r"at_least\(n, m\)",
        "X[:m]": r"at_least\(n, m\)",
        "X[m:]": r"at_least\(n, m\)",
        "X[m]": r"at_least\(n, m \+ 1\)",
        "x[xp.arange(m)]": "existing positions",
        "xp.zeros(n - m)": r"at_least\(n, m\)",
        "xp.arange(m, n)": r"at_least\(n, m\)",
    }
    values = concrete(9, 2)
    for line, told in lines.items():
        term = eval(line, {}, SYMBOLS).term
        found = open_ranges(term)
        assert any(re.search(told, open_range(one)) for one in found), line
        wanted = np.asarray(eval(line, {}, values))
        assert np.allclose(Evaluator(np, {"n": 9, "m": 2}, values)(term), wanted)


def test_what_numpy_reads_inside_has_no_open_range() -> None:
    for line in SAME:
        assert not open_ranges(eval(line, {"np": np}, SYMBOLS).term), line
