"""Operations that act on each entry separately."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import partial, reduce
from math import inf, isinf
from typing import Any

from attnproof.symbolic import namespace as xp
from attnproof.symbolic.array import Array, as_array
from attnproof.symbolic.scalars import is_truth
from attnproof.symbolic.terms import Term

from .reading import (
    LOW,
    Unread,
    as_power,
    assume,
    bound,
    constant,
    entrywise,
    notes,
    numeric,
    opaque,
)

# a − b·⌊a/b⌋
entrywise("aten.remainder.Scalar", "aten.remainder.Tensor")(lambda a, b: numeric(a) % numeric(b))


def _unary(name: str, rule: Callable[[Array], Array]) -> None:
    def reading(x: Any) -> Array:
        return rule(numeric(x))

    entrywise(name)(reading)


def sigmoid(x: Any) -> Array:
    """1/(1 + exp(−x))."""
    return 1 / (1 + xp.exp(-numeric(x)))


def logarithm(x: Array) -> Array:
    """log x, of a power mᵏ of whole numbers as k·log m."""
    base, times = as_power(x)
    return as_array(xp.log(base) * times) if times > 1 else xp.log(x)


_UNARY: dict[str, Callable[[Array], Array]] = {
    "exp2": lambda x: xp.exp(x * xp.log(as_array(2))),
    "expm1": xp.expm1,
    "log": logarithm,
    "log1p": xp.log1p,
    "log2": lambda x: logarithm(x) / xp.log(as_array(2)),
    "tan": xp.tan,
    "tanh": xp.tanh,
    "sqrt": xp.sqrt,
    "rsqrt": lambda x: 1 / xp.sqrt(x),
    "square": lambda x: x**2,
    "abs": xp.abs,
    "sign": xp.sign,
    "relu": lambda x: xp.maximum(x, 0),
    "sigmoid": sigmoid,
    "log_sigmoid": lambda x: -xp.log(1 + xp.exp(-x)),
    "silu": lambda x: x * sigmoid(x),
    **{
        name: partial(opaque, name)
        for name in ("floor", "ceil", "round", "trunc", "erf", "softplus", "mish", "hardswish")
    },
}
for _name, _rule in _UNARY.items():
    _unary(f"aten.{_name}.default", _rule)


@entrywise("aten.elu.default")
def elu(x: Any, alpha: Any = 1, scale: Any = 1, inner: Any = 1) -> Array:
    """scale·x where x > 0, scale·alpha·(exp(inner·x) − 1) elsewhere."""
    a = numeric(x)
    below = numeric(alpha) * xp.expm1(a * numeric(inner))
    return xp.where(a > 0, a, below) * numeric(scale)


@entrywise("aten.leaky_relu.default")
def leaky_relu(x: Any, slope: Any = 0.01) -> Array:
    """x where x > 0, slope·x elsewhere."""
    a = numeric(x)
    return xp.where(a > 0, a, a * numeric(slope))


@entrywise("aten.hardtanh.default")
def hardtanh(x: Any, least: Any = -1, most: Any = 1) -> Array:
    """x clipped to two bounds."""
    return clamp(x, least, most)


@entrywise("aten.gelu.default")
def gelu(x: Any, *, approximate: str = "none") -> Array:
    """x·(1 + erf(x/√2))/2, or the form with tanh."""
    a = numeric(x)
    if approximate == "tanh":
        inner = constant(math.sqrt(2 / math.pi)) * (a + constant(0.044715) * a**3)
        return a * (1 + xp.tanh(inner)) / 2
    return a * (1 + opaque("erf", a / xp.sqrt(as_array(2)))) / 2


@entrywise("aten.maximum.default", "aten.clamp_min.default", "aten.clamp_min.Tensor")
def largest(x: Any, y: Any) -> Array:
    """The maximum; of a number and its negative, the absolute value."""
    a, b = bound(x), bound(y)
    return xp.abs(a) if _opposite(a, b) else xp.maximum(a, b)


@entrywise("aten.minimum.default", "aten.clamp_max.default")
def least_of(x: Any, y: Any) -> Array:
    """The minimum; of a number and its negative, minus the absolute value."""
    a, b = bound(x), bound(y)
    return -xp.abs(a) if _opposite(a, b) else xp.minimum(a, b)


def _opposite(a: Array, b: Array) -> bool:
    """Whether one of two arrays is the negative of the other, by its form."""
    return (-a).term is b.term or (-b).term is a.term


@entrywise("aten.clamp.default", "aten.clamp.Tensor")
def clamp(x: Any, least: Any = None, most: Any = None) -> Array:
    """x clipped to the bounds."""
    return xp.clip(
        numeric(x),
        min=None if least is None else bound(least),
        max=None if most is None else bound(most),
    )


def _side(value: Any) -> Array:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return bound(value) if number else constant(value)


def _is_low(value: Any) -> bool:
    return isinstance(value, int | float) and value <= LOW


def _compared(name: str, rule: Callable[[Array, Array], Any]) -> None:
    def reading(a: Any, b: Any) -> Array:
        if isinstance(b, float) and isinf(b):
            return _beside_infinity(rule, constant(a), b)
        x, y = _side(a), _side(b)
        if is_truth(x.term) != is_truth(y.term):
            x, y = numeric(x), numeric(y)
        if not (x.term.finite and y.term.finite) and (_is_low(a) or _is_low(b)):
            raise Unread(FILLED)
        if x.term is y.term:  # a NaN does not equal itself
            assume(NO_NAN, "if")
        return as_array(rule(x, y))

    entrywise(f"aten.{name}.Tensor", f"aten.{name}.Scalar")(reading)


NO_NAN = "nothing that is tested for NaN is NaN"
FILLED = "a mask compared with the number that it is filled with"


def _beside_infinity(rule: Callable[[Any, Any], Any], x: Array, infinity: float) -> Array:
    """Compare an array with −∞ or +∞: its numbers lie between them, or are −∞ where masked.

    This is assumed as a condition, which overflow or division by 0 would violate.
    """
    if not x.term.finite and notes().filled:
        raise Unread(FILLED)
    assume("what is compared with infinity is infinite only where a mask makes it so", "if")
    held = _hidden(x.term)
    hidden = xp.broadcast_to(constant(held) if isinstance(held, bool) else held, x.axes)
    at_hidden, at_numbers = rule(-1, 1 if infinity > 0 else -1), rule(0, infinity)
    if at_hidden == at_numbers:
        return xp.broadcast_to(constant(at_numbers), x.axes)
    return hidden if at_hidden else ~hidden


def _hidden(t: Term) -> Array | bool:
    """Return where an array is −∞, from the parts of choices and sums."""
    if t.finite:
        return False
    if t.op == "minus infinity":
        return True
    if t.op not in ("where", "add", "broadcast"):
        raise Unread(f"−∞ in a {t.op!r} compared with infinity")
    parts = [_hidden(arg) for arg in t.args if not is_truth(arg)]
    if t.op == "broadcast":
        held = parts[0]
        return held if isinstance(held, bool) else xp.broadcast_to(held, t.shape)
    ways: list[tuple[Array | bool, Array | None]] = [(part, None) for part in parts]
    if t.op == "where":
        chosen = Array(t.args[0])
        ways = [(parts[0], chosen), (parts[1], ~chosen)]
    seen = [_both(held, way) for held, way in ways if held is not False]
    if any(one is True for one in seen):
        return True
    return as_array(reduce(operator.or_, seen))


def _both(held: Array | bool, way: Array | None) -> Array | bool:
    if way is None:
        return held
    return way if held is True else way & held


@entrywise("aten.isinf.default")
def infinite(x: Any) -> Array:
    """Whether an entry is −∞; +∞ does not occur."""
    return _beside_infinity(operator.eq, constant(x), -inf)


@entrywise("aten.isnan.default")
def undefined(x: Any) -> Array:
    """False: NaN does not occur, which is a condition."""
    assume(NO_NAN, "if")
    return xp.broadcast_to(constant(False), constant(x).axes)


for _name, _relation in {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}.items():
    _compared(_name, _relation)


def _truth(x: Any) -> Array:
    made = constant(x)
    return made if is_truth(made.term) else ~(made == as_array(0))


def _bit(x: Any) -> Array:
    made = constant(x)
    if not is_truth(made.term):
        raise Unread("whole numbers bit by bit")
    return made


def _connected(rule: Callable[[Array, Array], Array], logical: str, *bitwise: str) -> None:
    """Register a connective: logical on numbers and truth values, bitwise on truth values only."""
    entrywise(logical)(lambda a, b: rule(_truth(a), _truth(b)))
    entrywise(*bitwise)(lambda a, b: rule(_bit(a), _bit(b)))


_connected(
    lambda a, b: a & b,
    "aten.logical_and.default",
    "aten.bitwise_and.Tensor",
    "aten.bitwise_and.Scalar",
    "aten.__and__.Tensor",
    "aten.__and__.Scalar",
)
_connected(
    lambda a, b: a | b,
    "aten.logical_or.default",
    "aten.bitwise_or.Tensor",
    "aten.bitwise_or.Scalar",
    "aten.__or__.Tensor",
    "aten.__or__.Scalar",
)
_connected(
    lambda a, b: (a & ~b) | (b & ~a),
    "aten.logical_xor.default",
    "aten.bitwise_xor.Tensor",
    "aten.__xor__.Tensor",
)
entrywise("aten.logical_not.default")(lambda x: ~_truth(x))
entrywise("aten.bitwise_not.default")(lambda x: ~_bit(x))
