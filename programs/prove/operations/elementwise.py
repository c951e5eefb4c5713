"""Operations that act on every entry by itself."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from attnproof.symbolic import namespace as xp
from attnproof.symbolic.array import Array, as_array
from attnproof.symbolic.scalars import is_truth, number_of

from .reading import LOW, Pair, Unread, bound, constant, notes, numeric, opaque, reads

__all__ = ["add", "multiply", "sigmoid"]


@reads("aten.add.Tensor", "aten.add.Scalar")
def add(a: Any, b: Any, *, alpha: Any = 1) -> Any:
    """a + alpha·b; of truth values, whether one holds."""
    if isinstance(a, Pair) or isinstance(b, Pair):
        raise Unread("a sum of complex numbers")
    if _are_truth(a, b):
        return constant(a) | constant(b)
    return numeric(a) + (numeric(b) if alpha == 1 else numeric(b) * numeric(alpha))


@reads("aten.sub.Tensor", "aten.sub.Scalar")
def subtract(a: Any, b: Any, *, alpha: Any = 1) -> Array:
    """a − alpha·b."""
    return numeric(a) - (numeric(b) if alpha == 1 else numeric(b) * numeric(alpha))


@reads("aten.rsub.Scalar", "aten.rsub.Tensor")
def subtract_from(a: Any, b: Any, alpha: Any = 1) -> Array:
    """b − alpha·a."""
    return subtract(b, a, alpha=alpha)


@reads("aten.mul.Tensor", "aten.mul.Scalar")
def multiply(a: Any, b: Any) -> Any:
    """a·b; −∞ times truth values is −∞ where they hold and 0 elsewhere, as masks are made."""
    if isinstance(a, Pair) or isinstance(b, Pair):
        return _complex_product(a, b)
    if _are_truth(a, b):
        return constant(a) & constant(b)
    for one, other in ((a, b), (b, a)):
        if one == float("-inf") if isinstance(one, float) else notes().infinite:
            continue  # −∞ times 0 is no number; a finite fill is meant below
        if not isinstance(other, Array):
            continue
        gate = constant(other)
        if not (is_truth(gate.term) or gate.term.op == "indicator"):
            continue  # what is no gate multiplies the number that it is
        x = constant(one)
        if not x.term.finite and is_truth(gate.term):
            return xp.where(gate, x, 0)
        if not x.term.finite and gate.term.op == "indicator":
            return xp.where(Array(gate.term.args[0]), x, 0)
    return bound(a) * bound(b)


def _are_truth(*values: Any) -> bool:
    return all(isinstance(x, bool) or (isinstance(x, Array) and is_truth(x.term)) for x in values)


def _complex_product(a: Any, b: Any) -> Pair:
    if isinstance(a, Pair) and isinstance(b, Pair):
        return Pair(a.real * b.real - a.imaginary * b.imaginary,
                    a.real * b.imaginary + a.imaginary * b.real)  # fmt: skip
    pair, other = (a, numeric(b)) if isinstance(a, Pair) else (b, numeric(a))
    return Pair(pair.real * other, pair.imaginary * other)


@reads("aten.div.Tensor", "aten.div.Scalar", "aten.div.Tensor_mode", "aten.div.Scalar_mode")
def divide(a: Any, b: Any, *, rounding_mode: str | None = None) -> Array:
    """a/b, or ⌊a/b⌋."""
    if rounding_mode == "floor":
        return numeric(a) // numeric(b)
    if rounding_mode is not None:
        raise Unread(f"division with rounding_mode={rounding_mode!r}")
    return numeric(a) / numeric(b)


@reads("aten.floor_divide.default")
def floor_divide(a: Any, b: Any) -> Array:
    """⌊a/b⌋."""
    return numeric(a) // numeric(b)


@reads("aten.remainder.Scalar", "aten.remainder.Tensor")
def remainder(a: Any, b: Any) -> Array:
    """a − b·⌊a/b⌋."""
    return numeric(a) % numeric(b)


@reads("aten.pow.Tensor_Scalar", "aten.pow.Scalar", "aten.pow.Tensor_Tensor")
def power(a: Any, b: Any) -> Array:
    """a to the power b: integers, ±1/2, or any power of a number that is positive by its form."""
    exponent = number_of(b.term) if isinstance(b, Array) else None
    plain = float(exponent) if exponent is not None else b
    if isinstance(plain, int | float) and float(plain).is_integer():
        return numeric(a) ** int(plain)
    if isinstance(plain, float) and plain in (0.5, -0.5):
        return as_array(numeric(a) ** plain)
    try:
        return as_array(numeric(a) ** numeric(b))
    except TypeError as error:
        raise Unread(f"a power: {error}") from None


def _unary(name: str, rule: Callable[[Array], Array]) -> None:
    def reading(x: Any) -> Array:
        return rule(numeric(x))

    reads(name)(reading)


def sigmoid(x: Any) -> Array:
    """1/(1 + exp(−x))."""
    return 1 / (1 + xp.exp(-numeric(x)))


for _name, _rule in {
    "neg": lambda x: -x,
    "exp": xp.exp,
    "exp2": lambda x: xp.exp(x * xp.log(as_array(2))),
    "expm1": xp.expm1,
    "log": xp.log,
    "log1p": xp.log1p,
    "log2": lambda x: xp.log(x) / xp.log(as_array(2)),
    "cos": xp.cos,
    "sin": xp.sin,
    "tan": xp.tan,
    "tanh": xp.tanh,
    "sqrt": xp.sqrt,
    "rsqrt": lambda x: 1 / xp.sqrt(x),
    "reciprocal": lambda x: 1 / x,
    "square": lambda x: x**2,
    "abs": xp.abs,
    "sign": xp.sign,
    "floor": lambda x: opaque("floor", x),
    "ceil": lambda x: opaque("ceil", x),
    "round": lambda x: opaque("round", x),
    "trunc": lambda x: opaque("trunc", x),
    "relu": lambda x: xp.maximum(x, 0),
    "sigmoid": sigmoid,
    "silu": lambda x: x * sigmoid(x),
    "erf": lambda x: opaque("erf", x),
    "softplus": lambda x: opaque("softplus", x),
    "mish": lambda x: opaque("mish", x),
    "hardswish": lambda x: opaque("hardswish", x),
}.items():
    _unary(f"aten.{_name}.default", _rule)


@reads("aten.elu.default")
def elu(x: Any, alpha: Any = 1, scale: Any = 1, inner: Any = 1) -> Array:
    """scale·x where x > 0, scale·alpha·(exp(inner·x) − 1) elsewhere."""
    a = numeric(x)
    below = numeric(alpha) * xp.expm1(a * numeric(inner))
    return xp.where(a > 0, a, below) * numeric(scale)


@reads("aten.leaky_relu.default")
def leaky_relu(x: Any, slope: Any = 0.01) -> Array:
    """x where x > 0, slope·x elsewhere."""
    a = numeric(x)
    return xp.where(a > 0, a, a * numeric(slope))


@reads("aten.hardtanh.default")
def hardtanh(x: Any, least: Any = -1, most: Any = 1) -> Array:
    """x between two bounds."""
    return clamp(x, least, most)


@reads("aten.gelu.default")
def gelu(x: Any, *, approximate: str = "none") -> Array:
    """x·(1 + erf(x/√2))/2, or the form with tanh."""
    a = numeric(x)
    if approximate == "tanh":
        inner = constant(math.sqrt(2 / math.pi)) * (a + constant(0.044715) * a**3)
        return a * (1 + xp.tanh(inner)) / 2
    return a * (1 + opaque("erf", a / xp.sqrt(as_array(2)))) / 2


@reads("aten.maximum.default", "aten.clamp_min.default", "aten.clamp_min.Tensor")
def maximum(a: Any, b: Any) -> Array:
    """The larger."""
    return xp.maximum(bound(a), bound(b))


@reads("aten.minimum.default", "aten.clamp_max.default")
def minimum(a: Any, b: Any) -> Array:
    """The smaller."""
    return xp.minimum(bound(a), bound(b))


@reads("aten.clamp.default", "aten.clamp.Tensor")
def clamp(x: Any, least: Any = None, most: Any = None) -> Array:
    """x, or the bound that it passes."""
    return xp.clip(numeric(x), min=None if least is None else bound(least),
                   max=None if most is None else bound(most))  # fmt: skip


@reads("aten.where.self", "aten.where.ScalarOther", "aten.where.ScalarSelf", "aten.where.Scalar")
def where(condition: Any, a: Any, b: Any) -> Array:
    """a where the condition holds, b elsewhere."""
    x, y = constant(a), constant(b)
    if is_truth(x.term) != is_truth(y.term):
        x, y = numeric(x), numeric(y)
    return xp.where(condition, x, y)


@reads("aten.masked_fill.Scalar", "aten.masked_fill.Tensor")
def masked_fill(x: Any, condition: Any, value: Any) -> Array:
    """The value where the condition holds, x elsewhere."""
    return where(condition, value, x)


def _side(value: Any) -> Array:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return bound(value) if number else constant(value)


def _is_low(value: Any) -> bool:
    return isinstance(value, int | float) and value <= LOW


def _compared(name: str, rule: Callable[[Array, Array], Any]) -> None:
    def reading(a: Any, b: Any) -> Array:
        x, y = _side(a), _side(b)
        if is_truth(x.term) != is_truth(y.term):
            x, y = numeric(x), numeric(y)
        if not (x.term.finite and y.term.finite) and (_is_low(a) or _is_low(b)):
            raise Unread("a mask compared with the number that it is filled with")
        return as_array(rule(x, y))

    reads(f"aten.{name}.Tensor", f"aten.{name}.Scalar")(reading)


for _name, _relation in {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
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


@reads("aten.logical_and.default")
def both(a: Any, b: Any) -> Array:
    """Whether both hold; of numbers, whether both are not 0."""
    return _truth(a) & _truth(b)


@reads("aten.bitwise_and.Tensor", "aten.bitwise_and.Scalar",
       "aten.__and__.Tensor", "aten.__and__.Scalar")  # fmt: skip
def both_bits(a: Any, b: Any) -> Array:
    """Whether both truth values hold."""
    return _bit(a) & _bit(b)


@reads("aten.logical_or.default")
def either(a: Any, b: Any) -> Array:
    """Whether one holds; of numbers, whether one is not 0."""
    return _truth(a) | _truth(b)


@reads("aten.bitwise_or.Tensor", "aten.bitwise_or.Scalar",
       "aten.__or__.Tensor", "aten.__or__.Scalar")  # fmt: skip
def either_bit(a: Any, b: Any) -> Array:
    """Whether one of two truth values holds."""
    return _bit(a) | _bit(b)


@reads("aten.logical_xor.default")
def one_of_two(a: Any, b: Any) -> Array:
    """Whether one holds and the other does not."""
    x, y = _truth(a), _truth(b)
    return (x & ~y) | (y & ~x)


@reads("aten.bitwise_xor.Tensor", "aten.__xor__.Tensor")
def one_bit_of_two(a: Any, b: Any) -> Array:
    """Whether one of two truth values holds and the other does not."""
    return one_of_two(_bit(a), _bit(b))


@reads("aten.logical_not.default")
def negated(x: Any) -> Array:
    """Whether it does not hold; of a number, whether it is 0."""
    return ~_truth(x)


@reads("aten.bitwise_not.default")
def negated_bit(x: Any) -> Array:
    """Whether a truth value does not hold."""
    return ~_bit(x)
