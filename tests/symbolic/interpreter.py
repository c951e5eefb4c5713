"""A small interpreter of terms, written from what the operations mean.

It shares with the checker only the terms themselves: no rule, no table of meanings.  A
:class:`World` draws a value for every size, array, map, index and function as it meets it;
real numbers are multiples of 1/4, so that sums that cancel give exactly 0, where 1/0 is 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from attnproof.symbolic.terms import Term

Env = tuple[Any, ...]
BINDERS = {"sum": 1, "tabulate": 1, "iterate": 2}
OUTCOMES = 8


class Undefined(Exception):
    """The term has no value in this world: an empty range, or no number."""


def close_to(a: Any, b: Any) -> bool:
    """Whether two values are equal up to rounding."""
    x, y = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    return x.shape == y.shape and bool(np.allclose(x, y, rtol=1e-7, atol=1e-8))


class World:
    """Values for everything named, drawn by a seed when first asked for."""

    def __init__(self, seed: int, largest: int = 3, **sizes: int) -> None:
        self.random = np.random.default_rng(seed)
        self.largest = largest
        self.sizes: dict[str, int] = dict(sizes)
        self.drawn: dict[Term, Any] = {}
        self.known: dict[tuple[Term, Env], Any] = {}

    def __call__(self, t: Term, env: Env = ()) -> Any:
        """The value of a term: a number, a truth value, or a numpy array of them."""
        if t.op in ("var", "index"):
            if t not in self.drawn:
                self.drawn[t] = self.draw(t)
            return self.drawn[t]
        if t.op == "bound":
            return env[len(env) - 1 - t.data]
        place = (t, env[len(env) - t.loose :] if t.loose else ())
        if any(isinstance(x, np.ndarray) for x in place[1]):
            return self.compute(t, env)
        if place not in self.known:
            self.known[place] = self.compute(t, env)
        return self.known[place]

    def length(self, t: Term) -> int:
        """The value of an axis length; a probability space has finitely many outcomes here."""
        if t.op == "space":
            return OUTCOMES
        value = self(t)
        if value != int(value) or value < 0:
            raise Undefined(f"an axis of length {value}")
        return int(value)

    def shape(self, t: Term) -> tuple[int, ...]:
        return tuple(self.length(n) for n in t.shape)

    def draw(self, t: Term) -> Any:
        """A value for a variable, by its kind."""
        if t.op == "index":
            length = t.args[0]
            count = self.length(length) if length.op == "space" else math.ceil(self(length))
            if count < 1:
                raise Undefined("an index of an empty axis")
            return int(self.random.integers(count))
        kind, shape = t.data[1], self.shape(t)
        if kind == "natural":
            return int(self.random.integers(4))
        if kind == "standard":
            return _standard(self.random, *shape)
        if kind in ("permutation", "injection", "index map"):
            (count,), below = shape, self.length(t.args[0])
            if below == 0 or (kind != "index map" and count > below):
                raise Undefined(f"no {kind} of {count} indices below {below}")
            return self.random.choice(below, count, replace=kind == "index map")
        if kind == "boolean":
            return self.random.integers(2, size=shape).astype(bool)
        if kind == "orthogonal":
            return np.linalg.qr(self.random.normal(size=shape))[0]
        least = {"positive": 1, "nonnegative": 0}.get(kind, -8)
        quarters = self.random.integers(least, 9, size=shape) / 4
        return quarters if shape else float(quarters)

    def compute(self, t: Term, env: Env) -> Any:
        if t.op in BINDERS:
            return self.binder(t, env)
        if t.op == "where":
            c, a, b = (self(arg, env) for arg in t.args)
            return np.where(c, a, b)[()]
        method = _OPS.get(t.op)
        if method is None:
            return getattr(self, "op_" + t.op.replace(" ", "_"))(t, env)
        with np.errstate(all="ignore"):
            result = method(*(self(arg, env) for arg in t.args))
        numbers = np.asarray(result)
        if numbers.dtype.kind == "f" and (np.isnan(numbers) | (numbers == math.inf)).any():
            raise Undefined(f"no number: {t!r}")
        return result

    def binder(self, t: Term, env: Env) -> Any:
        body = t.args[-1]
        if t.op == "iterate":
            state = self(t.args[1], env)
            for layer in range(max(0, math.ceil(self(t.args[0], env)))):
                state = self(body, (*env, layer, state))
            return state
        count = self.length(t.args[0])
        if t.op == "sum":
            total = sum((self(body, (*env, i)) for i in range(count)), 0.0)
            return total / OUTCOMES if t.args[0].op == "space" else total
        if t.op == "tabulate":
            rows = [self(body, (*env, i)) for i in range(count)]
            return np.array(rows).reshape((count, *self.shape(body)))
        raise AssertionError(t.op)

    # leaves and integers

    def op_num(self, t: Term, _: Env) -> Any:
        return int(t.data) if t.data.denominator == 1 else float(t.data)

    def op_size(self, t: Term, _: Env) -> int:
        name = t.data[0]
        if name not in self.sizes:
            self.sizes[name] = int(self.random.integers(1, self.largest + 1))
        return self.sizes[name]

    def op_space(self, _: Term, __: Env) -> int:
        return 1

    def op_pi(self, _: Term, __: Env) -> float:
        return math.pi

    def op_minus_infinity(self, _: Term, __: Env) -> float:
        return -math.inf

    def op_power(self, t: Term, env: Env) -> Any:
        base = np.asarray(self(t.args[0], env), dtype=float)
        if t.data >= 0:
            return (base**t.data)[()]
        with np.errstate(divide="ignore"):
            return np.where(base == 0, 0.0, 1 / base**-t.data)[()]

    def op_entry(self, t: Term, env: Env) -> Any:
        array, *at = t.args
        places = [self(i, env) for i in at]
        values = self(array, env)
        if any(p != int(p) or not 0 <= p < n for p, n in zip(places, values.shape, strict=True)):
            raise Undefined(f"out of range: {t!r}")
        return values[tuple(int(p) for p in places)].item()

    # arrays, by numpy

    def op_named(self, t: Term, env: Env) -> Any:
        return self(t.args[0], env)

    def op_broadcast(self, t: Term, env: Env) -> Any:
        return np.broadcast_to(self(t.args[0], env), self.shape(t))

    def op_permute(self, t: Term, env: Env) -> Any:
        return np.transpose(self(t.args[0], env), t.data)

    def op_new_axis(self, t: Term, env: Env) -> Any:
        return np.expand_dims(self(t.args[0], env), t.data)

    def op_pick(self, t: Term, env: Env) -> Any:
        return self.taken(self(t.args[0], env), self(t.args[1], env), t.data)

    def taken(self, values: Any, at: Any, axis: Any) -> Any:
        """The slices of an array at these places, each of which must be on the axis."""
        places = np.asarray(at)
        whole = places.astype(int)
        if ((places != whole) | (whole < 0) | (whole >= values.shape[axis])).any():
            raise Undefined(f"out of range: {places}")
        return np.take(values, whole, axis=axis)

    def op_slice(self, t: Term, env: Env) -> Any:
        axis, step = t.data
        start, count = self.length(t.args[1]), self.length(t.shape[axis])
        at = [start + step * k for k in range(count)]
        return self.taken(self(t.args[0], env), at, axis) if count else np.empty(self.shape(t))

    def op_gather(self, t: Term, env: Env) -> Any:
        return self.taken(self(t.args[0], env), self(t.args[1], env), t.data)

    def op_concat(self, t: Term, env: Env) -> Any:
        return np.concatenate([self(arg, env) for arg in t.args], axis=t.data)

    def op_stack(self, t: Term, env: Env) -> Any:
        return np.stack([self(arg, env) for arg in t.args], axis=t.data)

    def op_reshape(self, t: Term, env: Env) -> Any:
        return np.reshape(self(t.args[0], env), self.shape(t))

    def op_reduce(self, t: Term, env: Env) -> Any:
        summed = np.sum(self(t.args[0], env), axis=t.data)
        return summed / OUTCOMES if t.args[0].shape[t.data].op == "space" else summed

    def op_matmul(self, t: Term, env: Env) -> Any:
        product = np.matmul(self(t.args[0], env), self(t.args[1], env))
        return product / OUTCOMES if t.args[0].shape[-1].op == "space" else product

    def op_eye(self, t: Term, _: Env) -> Any:
        return np.eye(self.length(t.args[0]))

    def op_arange(self, t: Term, _: Env) -> Any:
        return np.arange(self.length(t.args[0]))

    def op_row(self, t: Term, env: Env) -> Any:
        values = self(t.args[0], env)
        for at in t.args[1:]:
            values = self.taken(values, self(at, env), 0)
        return values

    def op_call(self, t: Term, env: Env) -> Any:
        """A fixed function of its arguments; one with a trait treats the rows alike."""
        name, batch, traits = t.data
        args = [np.asarray(self(arg, env), dtype=float) for arg in t.args]
        result = np.empty(self.shape(t))
        for at in product(*(range(n) for n in result.shape[:batch])):
            result[at] = _function(name, [arg[at] for arg in args], result.shape[batch:], traits)
        return result if t.shape else result.item()


def _standard(random: np.random.Generator, outcomes: int, count: int) -> Any:
    """Random numbers of mean 0 and variance 1, uncorrelated: exactly, over these outcomes."""
    if count >= outcomes:
        raise Undefined(f"{count} uncorrelated numbers of {outcomes} outcomes")
    columns = np.column_stack([np.ones(outcomes), random.normal(size=(outcomes, count))])
    return np.linalg.qr(columns)[0][:, 1:] * math.sqrt(outcomes)


def _function(name: str, args: list[Any], shape: tuple[int, ...], traits: tuple[str, ...]) -> Any:
    seed = np.random.default_rng(list(name.encode()))
    if "equivariant" in traits:
        rows, rest = args[0], sum(float(x.sum()) for x in args[1:])
        pair = seed.normal(size=2)
        return np.cos(pair[0] * rows + pair[1] * np.sin(rows).sum(axis=0) + rest)
    if "invariant" in traits:
        weights = seed.normal(size=args[0].shape[1:])
        weighted = [math.sin(float((row * weights).sum())) for row in args[0]]
        rest = sum(float(x.sum()) for x in args[1:])
        return np.cos(math.fsum(weighted) + rest + seed.normal(size=shape))
    total = sum(float((x * seed.normal(size=x.shape)).sum()) for x in args)
    return np.sin(total + seed.normal(size=shape))


_OPS: dict[str, Callable[..., Any]] = {
    "add": lambda *parts: sum(parts[1:], parts[0]),
    "mul": lambda *parts: math.prod(parts[1:], start=parts[0]),
    "exp": np.exp,
    "log": np.log,
    "cos": np.cos,
    "sin": np.sin,
    "tanh": np.tanh,
    "sqrt": np.sqrt,
    "abs": np.abs,
    "maximum": np.maximum,
    "indicator": lambda c: np.where(c, 1, 0)[()],
    "equal": lambda a, b: a == b,
    "less": lambda a, b: a < b,
    "less_equal": lambda a, b: a <= b,
    "and": np.logical_and,
    "or": np.logical_or,
    "not": np.logical_not,
    "floor_divide": np.floor_divide,
    "remainder": np.mod,
    "is in": lambda a, values: bool((values == a).any()),
    "isin": np.isin,
    "inverse": np.argsort,
}
