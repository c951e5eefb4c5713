"""What is not the array API is refused in a sentence that says what to write; arrays as objects."""

from __future__ import annotations

import copy
import functools
import math
import pickle
from typing import Any

import numpy as np
import pytest
import torch
from array_api_compat import array_namespace

from attnproof.symbolic import AxisMismatch, boolean, index_below, natural, permutation, real, sizes
from attnproof.symbolic import namespace as xp
from tests.cases import each

n, m = sizes("n m")
GIVEN = {
    "X": real(n, m),
    "Y": real(n, m),
    "x": real(n),
    "y": real(m),
    "a": real(),
    "T": real(n, m, 2),
    "M": boolean(n, m),
    "s": permutation(n),
    "F": real(n, 4),
    "P": real(2 * m),
}
SYMBOLS: dict[str, Any] = {name: given.named(name) for name, given in GIVEN.items()} | {
    "n": n,
    "m": m,
    "xp": xp,
}


REFUSED = [
    ("list(X)", "rows"),
    ("[row for row in X]", "iterate"),
    ("sum(x)", "xp.sum"),
    ("sum(X)", "xp.sum"),
    ("len(X)", r"x\.shape\[0\]"),
    ("a in X", "xp.isin"),
    ("{5000: 0}.get(n, 1)", "xp.where"),
    ("n in {5000}", "x == a"),
    ("{X.size} & {5000}", "x == a"),
    ("functools.cache(abs)(a)", "functools.cache"),
    ("list(reversed(x))", "rows"),
    ("(lambda p, q: p)(*x)", "x\\[0\\]"),
    ("1 if a > 0 else 0", "xp.where"),
    ("bool(X)", "xp.where"),
    ("0 < a < 1", r"\(a < b\) & \(b < c\)"),
    ("max(a, a + 1)", "xp.maximum"),
    ("not a", "&"),
    ("float(a)", "xp.sqrt"),
    ("int(a)", "xp.floor"),
    ("complex(a)", "xp.floor"),
    ("range(n)", "rows"),
    ("[1, 2][n]", "rows"),
    ("round(a)", "xp.floor"),
    ("math.sqrt(a)", "xp.sqrt"),
    ("math.floor(a)", "xp"),
    ("math.exp(a)", "xp.sqrt"),
    ("divmod(a, 2)", "x // y"),
    ("a << 1", "2 \\*\\* k"),
    ("np.dot(X, Y)", "a @ b"),
    ("np.sum(X)", "xp.sum"),
    ("np.asarray(X)", "xp.stack"),
    ("np.array([a, a])", "xp.stack"),
    ("np.array([x, x], dtype=object)", "xp.stack"),
    ("np.exp(X)", "xp.exp"),
    ("np.einsum('ij,kj->ik', X, Y)", "a @ b"),
    ("np.linalg.norm(X)", "xp.sqrt"),
    ("np.linalg.inv(X)", "inverse"),
    ("np.ones(3) * x", "rows"),
    ("x * np.ones(3)", "xp.stack"),
    ("x + torch.ones(3)", "xp.stack"),
    ("torch.ones(3) * x", "xp.stack"),
    ("torch.dot(x, x)", "a @ b"),
    ("np.ones((3, 3)) @ X", "xp.matmul"),
    ("np.matmul(X, Y)", "xp.matmul"),
    ("np.multiply(X, Y)", r"x \* y|xp.mul"),
    ("np.add.reduce(X)", "xp.add"),
    ("np.full(3, a)", "xp"),
    ("np.zeros(n)", "integer"),
    ("np.eye(n)", "rows"),
    ("np.vectorize(abs)(X)", "xp"),
    ("np.where(M, X, Y)", "xp.where"),
    ("np.stack((X, Y))", "xp.stack"),
    ("np.linspace(0, a, 5)", "xp"),
    ("np.arange(n)", "xp|rows"),
    ("np.ndim(X)", "symbolic"),
    ("np.float64(a)", "xp = array_namespace"),
    ("torch.tensor(X)", "xp = array_namespace"),
    ("torch.tensor([a])", "x.shape|xp"),
    ("X == None", "NoneType"),
    ("X == 'a'", "str"),
    ("X + [1, 2]", "xp.stack"),
    ("X * True", "write 1"),
    ("X + float('nan')", "NaN"),
    ("X + xp.inf", "-xp.inf"),
    ("xp.minimum(X, -xp.inf)", "-xp.inf"),
    ("M + 1", "astype"),
    ("M * M", "astype"),
    ("-M", "astype"),
    ("M ** 2", "astype"),
    ("abs(M)", "astype"),
    ("M < M", "astype"),
    ("X & Y", "compare"),
    ("~X", "compare"),
    ("M == X", "astype"),
    ("xp.exp(M)", "astype"),
    ("xp.where(X, X, Y)", "compare"),
    ("xp.where(M, M, X)", "numbers"),
    ("xp.maximum(M, 0)", "astype"),
    ("xp.sum(M)", "astype"),
    ("xp.mean(M, axis=0)", "astype"),
    ("xp.logical_and(X, M)", "compare"),
    ("x ** x", "positive by its form"),
    ("X ** 0.3", "positive by its form"),
    ("T.T", "mT"),
    ("x.T", "mT"),
    ("X.sum()", "xp.sum"),
    ("X.foo", "have abs"),
    ("X.max()", "xp.maximum"),
    ("xp.max(X)", "at_least"),
    ("xp.min(X)", "at_least"),
    ("xp.argmax(X)", "permutation"),
    ("xp.sort(x)", "permutation"),
    ("xp.cumulative_sum(x)", "xp.where"),
    ("xp.einsum('i,i', x, x)", "@"),
    ("xp.var(X)", "xp.mean"),
    ("xp.any(M)", "astype"),
    ("xp.prod(x)", "iterate"),
    ("xp.linalg.inv(X)", "inverse"),
    ("xp.flip(x)", "rows"),
    ("xp.roll(x, 1)", "concat"),
    ("xp.nonsense", "have abs"),
    ("xp.sum(X, axes=0)", "axes"),
    ("xp.sum(X, axis=2)", "no axis 2"),
    ("xp.sum(X, axis=-3)", "no axis -3"),
    ("xp.sum(X, axis=0.0)", "integer, not float"),
    ("xp.sum(X, axis=True)", "integer, not bool"),
    ("xp.sum(X, axis=(0, 0))", "twice"),
    ("xp.sum(X, 0)", "positional"),
    ("xp.mean(X, axis=5)", "no axis"),
    ("xp.sum(X, keepdims=2)", "keepdims"),
    ("xp.eye(n, p=1)", "'p'"),
    ("xp.eye(n, k=0.5)", "integer"),
    ("xp.eye(n, k=1.0)", "integer"),
    ("xp.eye(2.0)", "axis length"),
    ("xp.arange(n, end=3)", "'end'"),
    ("xp.arange(0, n, 0.5)", "integer"),
    ("xp.arange(0, n, 2)", "not known"),
    ("xp.arange(0, 1, 0)", "other than 0"),
    ("xp.arange(a)", "integer"),
    ("xp.arange(-3)", "length"),
    ("xp.zeros(-1)", "length"),
    ("xp.zeros(a)", "mask"),
    ("xp.zeros(n, device='cuda')", "no device"),
    ("xp.zeros(n, dtype='complex64')", "not a dtype"),
    ("xp.zeros(n, dtype=np.float16)", "not a dtype"),
    ("xp.zeros(n, order='F')", "order"),
    ("xp.astype(a, int)", "xp.floor"),
    ("xp.astype(X, np.int32)", "xp.floor"),
    ("xp.astype(X, 'int64')", "xp.floor"),
    ("xp.astype(X, torch.int64)", "xp.floor"),
    ("xp.astype(X, torch.long)", "xp.floor"),
    ("xp.astype(X, np.dtype('int64'))", "xp.floor"),
    ("xp.astype(X, xp.int64)", "xp.floor"),
    ("xp.astype(X, xp.float32)", "rounded"),
    ("xp.astype(X, torch.float32)", "rounded"),
    ("xp.astype(X, np.dtype('float32'))", "rounded"),
    ("xp.sum(X, dtype=np.float32)", "rounded"),
    ("xp.full(n, 0.1, dtype=xp.float32)", "rounded"),
    ("xp.astype(X, np.uint8)", "not a dtype"),
    ("xp.astype(X, complex)", "not a dtype"),
    ("xp.astype(M, None)", "not a dtype"),
    ("xp.astype(X, torch.bfloat16)", "not a dtype"),
    ("xp.astype(X)", "dtype"),
    ("xp.stack((X, x))", "one shape"),
    ("xp.stack((x, a))", "one shape"),
    ("xp.stack(())", "at least one array"),
    ("xp.stack(X)", "tuple"),
    ("xp.concat(X)", "tuple"),
    ("xp.concat(())", "at least one array"),
    ("xp.concat((X, x))", "equal other"),
    ("xp.concat((X, Y), axis=2)", "no axis"),
    ("xp.concat((M, X))", "astype"),
    ("xp.stack((X, Y), axis=3)", "no axis"),
    ("xp.permute_dims(T, (0, 0, 1))", "twice"),
    ("xp.permute_dims(T, (0, 1))", "each of the 3"),
    ("xp.moveaxis(T, (0, 1), 0)", "as many"),
    ("xp.moveaxis(T, 3, 0)", "no axis 3"),
    ("xp.squeeze(X, axis=0)", "not 1"),
    ("xp.squeeze(X)", "axis"),
    ("xp.expand_dims(X, axis=3)", "no axis 3"),
    ("xp.expand_dims(X, axis=-4)", "no axis -4"),
    ("xp.broadcast_to(x, (n, m))", "same size"),
    ("xp.broadcast_to(X, (n,))", "same size"),
    ("xp.reshape(X, (n, n))", "products"),
    ("xp.reshape(X, (-1, -1))", "at most"),
    ("xp.reshape(X, (3, -1))", "length for -1"),
    ("xp.clip(X, lo=0)", "lo"),
    ("xp.isin(X, [1, 2])", "xp.stack"),
    ("X[0.5]", "integer"),
    ("X[True]", "not a number"),
    ("X[a]", "integer"),
    ("X['a']", "number"),
    ("X[M]", "xp.where"),
    ("X[[0, 1]]", "xp.stack"),
    ("X[np.array([0, 1])]", "number"),
    ("X[..., ...]", "ellipsis"),
    ("X[0, 0, 0]", "3 indices"),
    ("X[::-1]", "rows"),
    ("X[::0]", "positive"),
    ("X[::0.5]", "positive"),
    ("X[::2]", "2 times"),
    ("X[s, s]", "pairs"),
    ("T[0, :, xp.arange(2)]", "separated in one index"),
    ("F[:, 5:]", "leaves"),
    ("F[:, :5]", "leaves"),
    ("F[:, 4]", "leaves"),
    ("F[:, -5]", "leaves"),
    ("X[:n + 5]", "leaves"),
    ("X[:a]", "mask"),
    ("X[0.5:]", "mask"),
    ("X[n:0]", "leaves"),
    ("X[: i + 1]", "mask"),
    ("X[i:]", "mask"),
    ("X[: k]", "mask"),
    ("X[s[:, None]]", "reshape"),
    ("X @ 2", "axes"),
    ("X @ Y", "transpose"),
    ("X.mT @ x[:-1]", "size"),
    ("a.mT", "two axes"),
    ("x.mT", "two axes"),
    ("X.__setitem__(0, 1)", "xp.where"),
    ("X.__setattr__('term', 1)", "changed"),
    ("x @ [1, 2]", "xp.stack"),
]


@each(REFUSED)
def test_what_is_not_the_array_api_is_refused_in_a_sentence(line: str, says: str) -> None:
    names = {"np": np, "math": math, "torch": torch, "functools": functools}
    more = {"i": index_below(n).named("i"), "k": natural().named("k")}
    with pytest.raises((TypeError, ValueError, IndexError, AttributeError), match=says):
        eval(line, names, SYMBOLS | more)


def test_an_array_is_copied_and_kept_and_never_changed() -> None:
    X = SYMBOLS["X"]
    for same in (copy.copy(X), copy.deepcopy(X), pickle.loads(pickle.dumps(X))):
        assert same.term is X.term
    assert type(pickle.loads(pickle.dumps(n))) is type(n)
    before = X
    X += 1
    assert X.term is (before + 1).term
    with pytest.raises(TypeError, match=r"xp\.where"):
        X[0] = 1
    with pytest.raises(AttributeError, match="cannot be changed"):
        X.term = before.term
    with pytest.raises(AttributeError, match="cannot be changed"):
        n.note = 1
    assert array_namespace(X) is xp


def test_a_dtype_says_what_a_term_holds_by_its_form() -> None:
    dtypes = {
        "X": "float64",
        "M": "bool",
        "s": "int64",
        "xp.arange(n)": "int64",
        "X > 0": "bool",
        "xp.floor(X)": "int64",
        "n": "int64",
        "s / 2": "float64",
        "s * 2 - n": "int64",
        "xp.astype(M, float)": "int64",
        "X[s]": "float64",
        "xp.eye(n)": "int64",
    }
    for line, name in dtypes.items():
        dtype = eval(line, {}, SYMBOLS).dtype
        assert dtype is getattr(xp, name), line
        assert xp.astype(SYMBOLS["M"], dtype).dtype.name in ("int64", "bool")
    with pytest.raises(AxisMismatch, match="one shape"):
        xp.stack((SYMBOLS["X"], SYMBOLS["x"]))
