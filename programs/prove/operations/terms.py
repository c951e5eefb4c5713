"""The primitives of the table of operations (:mod:`...aten`) on terms, and its rows as readings."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

from attnproof.symbolic import namespace as xp
from attnproof.symbolic.array import Array, as_array
from attnproof.symbolic.divisors import settled, with_any_exponents
from attnproof.symbolic.normal_form.sums import written_out
from attnproof.symbolic.scalars import ONE, ZERO, is_truth, number_of
from attnproof.symbolic.terms import Term, free
from attnproof.theorems.definitions.attention import softmax as row_softmax

from .creation import offsets
from .lookups import leading
from .pieces import concatenated, each_repeated
from .reading import (
    Pair,
    Unread,
    as_power,
    assume,
    bound,
    constant,
    length_of,
    notes,
    numeric,
    whole,
)
from .reading import alike as of_one_kind

# primitives that keep their names
Refused, alike, number, pair = Unread, of_one_kind, numeric, Pair
cos, exp, log, sin, sqrt = xp.cos, xp.exp, xp.log, xp.sin, xp.sqrt
mean, moveaxis, stack, sum, where = xp.mean, xp.moveaxis, xp.stack, xp.sum, xp.where  # noqa: A001


MAX_FACTORS = 64  # of a product that is written out


def literal(value: Any) -> Any:
    """Return a known number as a Python number; None for other terms."""
    if not isinstance(value, Array):
        return value
    known = number_of(value.term)
    return None if known is None else float(known)


def add(a: Any, b: Any) -> Array:
    """a + b; for truth values, a or b."""
    if isinstance(a, Pair) or isinstance(b, Pair):
        raise Refused("a sum of complex numbers")
    return constant(a) | constant(b) if _are_truth(a, b) else numeric(a) + numeric(b)


def multiply(a: Any, b: Any) -> Any:
    """a·b; −∞ times truth values is −∞ where they hold and 0 elsewhere, as masks are made."""
    if isinstance(a, Pair) or isinstance(b, Pair):
        return _complex_product(a, b)
    if _are_truth(a, b):
        return constant(a) & constant(b)
    for one, other in ((a, b), (b, a)):
        if one == float("-inf") if isinstance(one, float) else notes().infinite:
            continue  # −∞ times 0 is NaN; below, the fill is finite
        if not isinstance(other, Array):
            continue
        gate = constant(other)
        if not (is_truth(gate.term) or gate.term.op == "indicator"):
            continue  # other factors multiply the number itself
        x = constant(one)
        if not x.term.finite:
            return where(gate if is_truth(gate.term) else Array(gate.term.args[0]), x, 0)
    return bound(a) * bound(b)


def _are_truth(*values: Any) -> bool:
    return all(isinstance(x, bool) or (isinstance(x, Array) and is_truth(x.term)) for x in values)


def _complex_product(a: Any, b: Any) -> Pair:
    if isinstance(a, Pair) and isinstance(b, Pair):
        return Pair(
            a.real * b.real - a.imaginary * b.imaginary, a.real * b.imaginary + a.imaginary * b.real
        )
    both, other = (a, numeric(b)) if isinstance(a, Pair) else (b, numeric(a))
    return Pair(both.real * other, both.imaginary * other)


def whole_quotient(a: Any, b: Any, rounding: str) -> Array:
    """⌊a/b⌋."""
    if rounding != "floor":
        raise Refused(f"division with rounding_mode={rounding!r}")
    return numeric(a) // numeric(b)


def power(a: Any, b: Any) -> Array:
    """A root, or any power of a number that is seen to be positive, as 1 − 2⁻ʰ⁻⁵ is."""
    if literal(b) in (0.5, -0.5):
        return as_array(numeric(a) ** literal(b))
    base, times = as_power(numeric(a))  # 10000 ** x is 10 ** (4·x)
    exponent = numeric(b) * times if times > 1 else numeric(b)
    try:
        return as_array(base**exponent)
    except TypeError as error:
        if base.term.finite and exponent.term.finite and _positive(base.term):
            return as_array(exp(exponent * log(base)))
        raise Refused(f"a power: {error}") from None


def is_complex(x: Any) -> bool:
    """Whether a value is a pair."""
    return isinstance(x, Pair)


def parts(x: Any) -> tuple[Array, Array]:
    """Return the real and the imaginary part."""
    if not isinstance(x, Pair):
        raise Refused("real numbers where complex ones are wanted")
    return x.real, x.imaginary


def axes(x: Array, told: Any) -> tuple[int, ...]:
    """Return the given axes, counted from the front; all axes if none are given."""
    if told is None or (isinstance(told, Sequence) and not told):
        return tuple(range(x.ndim))
    return tuple(sorted({k % x.ndim for k in ([told] if isinstance(told, int) else told)}))


def count(x: Array, over: tuple[int, ...]) -> Array:
    """Return the number of entries along an axis."""
    if len(over) != 1:
        raise Refused("a variance over several axes")
    return as_array(x.axes[over[0]])


def entries(x: Array, axis: int) -> list[Array]:
    """Return the parts of an array at each place of an axis, at most ``MAX_FACTORS``."""
    place = axis % x.ndim
    many = whole(as_array(x.axes[place]), "a product along an axis of a length")
    if not 0 < many <= MAX_FACTORS:
        raise Refused(f"a product of {many} numbers, more than {MAX_FACTORS} or none")
    last = moveaxis(x, place, x.ndim - 1)
    return [last[..., k] for k in range(many)]


def cumulative_sum(x: Array, axis: int) -> Array:
    """Σ of the entries up to each place of an axis."""
    place = axis % x.ndim
    last = moveaxis(x, place, x.ndim - 1)
    steps = xp.arange(as_array(x.axes[place]))
    gate = xp.astype(steps[None, :] <= steps[:, None], float)
    return moveaxis(sum(last[..., None, :] * gate, axis=-1), x.ndim - 1, place)


def sees_a_key(scores: Array, axis: int = -1) -> bool:
    """Whether every row is certain to have a score that is not −∞."""
    if scores.term.finite:
        return True
    total = as_array(xp.sum(xp.exp(scores), axis=axis)).term
    return _positive(with_any_exponents(total))  # the value of a finite score does not matter


@lru_cache(maxsize=256)
def _positive(numbers: Term) -> bool:
    return settled(numbers, "greater than 0")


def softmax(x: Any, axis: int, *, every_row_sees: bool = False) -> Array:
    """exp(x_j) / Σ_k exp(x_k); 0 in rows that are all −∞, unless such rows are assumed away."""
    a = constant(x)
    place, last = axis % a.ndim, a.ndim - 1
    shown = _shown(a) if place == last else None
    if shown is not None:
        notes().unseen |= _names_in(a)
        weights = softmax(shown, -1, every_row_sees=every_row_sees)
        rest = length_of(as_array(a.axes[-1]) - as_array(shown.axes[-1]))
        hidden = xp.broadcast_to(as_array(0), (*a.axes[:-1], rest))
        return as_array(concatenated([weights, hidden], -1))
    if every_row_sees and not sees_a_key(a, axis):
        assume("every query sees a key", "if")
    if place == last:
        return as_array(row_softmax(a))
    return moveaxis(as_array(row_softmax(moveaxis(a, place, last))), last, place)


def _shown(scores: Array) -> Array | None:
    """Return the scores of the first keys if all behind a write have the score −∞ in every row."""
    if scores.term.finite:
        return None
    weights = Array(with_any_exponents(xp.exp(scores).term))
    for end, length in notes().ends.items():
        if length is scores.axes[-1]:
            behind = -weights[..., Array(end) :]
            with suppress(Unread, RecursionError), written_out(1):
                if settled(behind.term, "at least 0"):  # exponentials that are 0
                    return leading(scores, scores.ndim - 1, Array(end))
    return None


def _names_in(a: Array) -> set[str]:
    return {v.data[0] for v in free(a.term) if v.op == "var"}


def _without_zeros(x: Array, y: Array) -> tuple[Array, Array]:
    """Return the factors of a product without the weights 0 of keys that no query sees."""
    t = x.term
    if t.op != "concat" or t.data != x.ndim - 1 or len(t.args) != 2:
        return x, y
    first, rest = map(Array, t.args)
    zero = rest.term.op == "broadcast" and rest.term.args[0] is ZERO
    if zero and first.axes[-1] in notes().ends:
        with suppress(Unread):
            shown = leading(y, max(y.ndim - 2, 0), Array(first.axes[-1]))
            notes().unseen |= _names_in(y)
            return first, shown
    return x, y


def matmul(x: Array, y: Array) -> Array:
    """A·B; axes before the last two are broadcast."""
    x, y = _without_zeros(x, y)
    if x.ndim == 1 < y.ndim:
        return matmul(x[None], y)[..., 0, :]
    if y.ndim == 1 and x.ndim > 2:
        return matmul(x, y[:, None])[..., 0]
    return x @ y


def longer_than_one(x: Array, over: Sequence[int]) -> bool:
    """Whether one of these axes has a length other than 1."""
    return any(x.axes[k] is not ONE for k in over)


def of_heads(query: Array, x: Array) -> Array:
    """Return keys or values with each head repeated for the query heads that share it."""
    heads, groups = (as_array(a.axes[-3]) for a in (query, x))
    times = whole(heads, "a number of heads") // whole(groups, "a number of key heads")
    return as_array(each_repeated(x, times, -3))


def over_root_of_width(scores: Array, query: Array) -> Array:
    """Return scores divided by √D."""
    return as_array(scores / as_array(query.axes[-1]) ** 0.5)


def not_after(scores: Array) -> Array:
    """Whether the key does not come after the query."""
    return xp.broadcast_to(offsets(scores) <= 0, scores.axes)


def masked(scores: Array, mask: Any) -> Array:
    """Return scores under a mask of visible keys, or with a mask that is added."""
    told = constant(mask)
    if not is_truth(told.term) and notes().filled and not sees_a_key(told):
        assume("every query sees a key", "if")
    return where(told, scores, -xp.inf) if is_truth(told.term) else scores + told
