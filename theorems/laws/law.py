"""The classes of laws of code: a sentence, and a formula for each call that the law is about.

A law is measured at the inputs given with its formula, or else at those of its call; small inputs
come first, so that witnesses are small.

Some laws of encodings, about their hooks, and laws of code, about the results of a call, state the
same equation.  Both then use the functions at the end, which work for terms, residues, NumPy and
torch.  Each returns the two sides, which should be equal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from types import SimpleNamespace
from typing import Any

from array_api_compat import array_namespace

from attnproof.symbolic.array import Array
from attnproof.symbolic.scalars import is_truth

BEYOND_EXP = math.inf


@dataclass(frozen=True)
class Inputs:
    """Inputs of a formula.

    ``at``: for the name of positions, their offsets from the first position of the code, for
    consecutive tokens or for each row of the batch; for a shift or a step, the number.
    ``units``: the vectors are all unit vectors at each of these positions, so that both sides
    contain every entry of the matrices that the code applies; otherwise vectors are random.
    ``lengths``: the length of each letter, as a number or as another letter of equal length.
    ``scale``: factors of the random vectors, by name; ``BEYOND_EXP`` is large enough that the
    exponential of a product with them overflows the dtype.  In a short dtype it is smaller, so
    that products do not overflow.
    ``window``: the lengths of a window.  ``left``: padding is to the left of the tokens.
    ``named``: lengths come from the code, such as a constant plus one; the code may refuse them.
    ``clustered``: every second token of a layer's input is near a common vector, which fills the
    expert that takes such tokens.
    """

    at: Mapping[str, Any] = field(default_factory=dict)
    units: bool = False
    lengths: Mapping[str, int | str] = field(default_factory=dict)
    scale: Mapping[str, float] = field(default_factory=dict)
    window: tuple[int, ...] = ()
    left: bool = False
    named: bool = False
    clustered: bool = False


def _lengths(letters: str, *rows: Sequence[int | str]) -> tuple[Inputs, ...]:
    return tuple(Inputs(lengths=dict(zip(letters, row, strict=True))) for row in rows)


# For each call, from small to large: all lengths different, then equal, which hides broadcasts.
OF_CALLS: Mapping[str, tuple[Inputs, ...]] = {
    "attend": _lengths(
        "BArnm",
        (1, 1, 3, 3, 2),
        (3, 1, 6, 6, 2),
        (2, 2, "H", "H", 3),
        (5, 5, 5, 5, 5),
        ("H", 1, 4, 4, 1),
        (2, 1, 2, 5, 3),
    ),
    "layer": _lengths("BAnr", (1, 1, 3, 2), (3, 1, 6, 3), (5, 5, 5, 5), (2, 1, "H", 2)),
    "added": _lengths("BAnr", (1, 1, 2, 1), (1, 1, 5, 3), (2, 1, 3, 3), (3, 3, 3, 2), (2, 3, 5, 2)),
    "biased": _lengths("nr", (3, 3), (6, 11), (3, 1), (3, 5), (4, 2), (12, 5), (20, 20)),
    "windowed": tuple(
        Inputs(window=w) for w in ((2, 2), (2, 3), (3, 5), (4, 4), (2, 3, 4), (3, 3, 3))
    ),
    "gridded": tuple(
        Inputs(window=w)
        for w in ((2, 2), (2, 3), (3, 2), (1, 5), (5, 8), (2, 3, 4), (4, 2, 3), (3, 3, 3))
    ),
    "biased_paths": _lengths("nr", (1, 1), (2, 2), (5, 5), (6, 2)),
    "masked": _lengths(
        "nr",
        (1, 1),
        (2, 2),
        (3, 3),
        (6, 6),
        (33, 33),
        (130, 130),
        (260, 260),  # beyond 256, up to which all integers are exact in bfloat16 or fit a byte
        (2060, 2060),  # beyond 2048, up to which all integers are exact in float16
        ("W", "W"),
        (5, 1),
        (5, 2),
        (6, 5),
        (130, 1),
    ),
    "rotate": _lengths("BAnr", (1, 1, 2, 3), (2, 1, 3, 4), (2, 2, 4, 4), ("H", 1, "H", 2)),
}

ATTENTION_INPUTS = _lengths("Brn", (1, 3, 3), (3, 6, 6), (2, 2, 5), (3, 1, 4), (2, "H", "H"))

Sides = tuple[Any, Any]
# Positions beyond most tables, the last in the range of float16; and those to which lengths that
# grow with the position, as in xPos, stay in the range of float32.
FAR, GROWN = (65_503, 65_504), (32_767, 32_768)
VECTORS, TOKENS = "real B H n D", "real B n E"
QUERIES, KEYS = "real B H r D", "real B G n D"
QKV: dict[str, Any] = {"q": QUERIES, "k": KEYS, "v": KEYS}
SQUARE: dict[str, Any] = {
    "q": VECTORS,
    "k": KEYS,
    "v": KEYS,
    "q2": "real B H m D",
    "k2": "real B G m D",
    "v2": "real B G m D",
}


@dataclass(frozen=True)
class Formula:
    """A law as an equation about one call: ``sides`` takes the calls and the given arrays.

    The calls are the program on terms, on residues, or the code itself on tensors.  ``sides``
    returns two arrays that should be equal, or two lists of them; ``names`` describes the two sides
    of each equation in words.

    ``given`` has the kind and axes of each name: ``"real B H n D"``, ``"position B n"``,
    ``"permutation n"``, ``"real"``, ``"shift"`` (one for all), ``"step"`` (a plain number),
    ``"place B n"`` (a position on one axis), ``"truth B r n"`` and ``"hidden B r n"`` (any truth
    values, True for what counts or, respectively, for what does not), ``"keep B n"`` and
    ``"padding B n"`` (truth values, True for what counts; in padding this comes first),
    ``"index r"`` (an index below a length).
    Letters: A and B rows of a batch, H heads, G key heads, n, r and m tokens, c tokens that fill a
    cache, D features of a head, E features of a token, F features of all heads, or of a token of a
    context.

    ``positive``: an array that must be positive in every entry, if an equation of zeros would be
    vacuous.  ``shown``: the equation that a witness violates, if it is not that of the law.
    ``sizes``: further lengths at which the equation reveals faults that it hides at most lengths.
    ``of_sizes``: the sides depend on lengths alone, not on the given values.
    ``inputs``: the inputs at which it is measured, if those of its call are not suitable;
    ``further``: inputs beside these.
    ``unsaid``: what the sentence states and the formula does not, or at these lengths only: a proof
    of the formula is then no proof of the law.
    ``limits``: a restriction under which a proof of the formula is a proof of the law.
    ``others``: further calls that it needs.
    ``floats``: only measured in floating point: it is about rounding, zeros, gradients or training,
    or states too small a part of its law to be used without other formulas.
    ``again``: how the law carries over to a function of the outputs, such as the next layer.  From
    the results of its calls, in their order, and the given arrays it makes the arrays given next,
    such that the law then calls the function on just these outputs; a law without it is not used
    for compositions.
    """

    id: str
    kind: str
    call: str
    given: Mapping[str, str]
    sides: Callable[..., Sides]
    names: Sequence[tuple[str, str]] = ()
    shown: Callable[..., Sides] | None = None
    positive: Callable[..., Any] | None = None
    sizes: Sequence[Mapping[str, int]] = ()
    of_sizes: bool = False
    unsaid: str = ""
    inputs: Sequence[Inputs] = ()
    further: Sequence[Inputs] = ()
    floats: bool = False
    others: Sequence[str] = ()
    again: Callable[..., Mapping[str, Any]] | None = None
    limits: str = ""

    @property
    def rotates(self) -> bool:
        """Whether it is about rotating vectors, for which queries and keys may have own code."""
        return self.call == "rotate"

    def equations(
        self, calls: SimpleNamespace, *, shown: bool = False, **values: Any
    ) -> list[tuple[Any, Any]]:
        """Return the two sides of each equation, also for keys if other code rotates them."""
        sides = self.shown if shown and self.shown is not None else self.sides
        found = [sides(calls, **values)]
        if self.rotates and self.id != "relative" and calls.key is not calls.rotate:
            found.append(sides(key_calls(calls), **values))
        return [pair for both in found for pair in zip(*map(listed, both), strict=True)]


@dataclass(frozen=True)
class Law:
    """A law of code: ``says`` is a sentence, ``about`` the kinds of code it applies to.

    ``group``: structure (theorems about the encoding), declared (the code agrees with its
    declaration), state (earlier calls, other rows and other paths have no influence), precision
    (errors of floating point), masks.
    ``always``: code that violates it is wrong, whatever its purpose.  Other laws are checked if the
    declaration or the abilities of the code make them apply; each finding says so.
    ``formulas``: one for each call it is about; none if it is only measured, by code of its own.
    """

    id: str
    kinds: str
    group: str
    says: str
    always: bool = True
    formulas: list[Formula] = field(default_factory=list, compare=False)

    @property
    def about(self) -> tuple[str, ...]:
        """The kinds of code that the law applies to."""
        return tuple(self.kinds.split())

    def formula(
        self, kind: str, call: str, **options: Any
    ) -> Callable[[Callable[..., Sides]], Callable[..., Sides]]:
        """Return a decorator that adds a formula for this kind of code and this call.

        ``options`` has fields of :class:`Formula`; any other name is that of a given array.
        """
        if kind not in self.about:
            raise ValueError(f"{self.id} is a law of {self.kinds}, not of {kind} code")
        own = {one.name for one in fields(Formula)}
        given = {name: options.pop(name) for name in [*options] if name not in own}
        if strange := [name for name, kind in given.items() if not isinstance(kind, str)]:
            raise TypeError(
                f"wanted what {', '.join(strange)} is in words, such as 'positions n', or a field "
                f"of a formula: {', '.join(sorted(own))}"
            )

        def wrap(sides: Callable[..., Sides]) -> Callable[..., Sides]:
            self.formulas.append(Formula(self.id, kind, call, given, sides, **options))
            return sides

        return wrap


def listed(side: Any) -> list[Any]:
    """Return a list as it is, and anything else as a list of one."""
    return side if isinstance(side, list) else [side]


def key_calls(calls: SimpleNamespace) -> SimpleNamespace:
    """Return the same calls, with keys in place of queries."""
    return SimpleNamespace(**{**vars(calls), "rotate": calls.key, "in_order": calls.key_in_order})


def called(calls: Mapping[str, Any], *, true_means: str = "", **known: Any) -> SimpleNamespace:
    """Return the calls by name, as laws use them, with defaults; keys are rotated like queries.

    ``in_order`` rotates and keeps the order of channels; it is ``rotate`` by default.
    ``visible`` is a mask as numbers, 1 where a key is visible and 0 where it is not, whatever form
    the code gives it.  ``known`` has plain values of the code: ``first``, its first position, or
    ``shared``, whether all rows have the same positions.
    """
    found = SimpleNamespace(**{"first": 0, "causal": False, "shared": False, **known}, **calls)
    if "rotate" in calls:
        found.key = calls.get("key", found.rotate)
        found.in_order = calls.get("in_order", found.rotate)
        found.key_in_order = calls.get("key_in_order", found.key)
    if "masked" in calls:
        found.visible = lambda x, y: _visible(calls["masked"](x, y), true_means)
    return found


def _visible(mask: Any, true_means: str) -> Any:
    xp = array_namespace(mask)
    if not _is_truth(mask):
        return xp.exp(mask)
    seen = xp.where(mask, 1, 0)
    return 1 - seen if true_means == "hidden" else seen


def _is_truth(mask: Any) -> bool:
    return is_truth(mask.term) if isinstance(mask, Array) else "bool" in str(mask.dtype)


Call = Callable[..., Any]


def by_offset(call: Call, *positions: Any, s: Any) -> Sides:
    """call(m + s, n + s, ...) = call(m, n, ...): a common shift of all positions has no effect.

    >>> by_offset(lambda m, n: m - n, 5, 3, s=40)
    (2, 2)
    """
    return call(*(p + s for p in positions)), call(*positions)


def composed(rotate: Call, x: Any, a: Any, b: Any, both: Any) -> Sides:
    """rotate(rotate(x, a), b) = rotate(x, both), where ``both`` is a + b.

    >>> composed(lambda x, p: x + p, 1, 2, 3, 5)
    (6, 6)
    """
    return rotate(rotate(x, a), b), rotate(x, both)


def shifted(rotate: Call, move: Call, x: Any, p: Any, s: Any) -> Sides:
    """rotate(x, p + s) = move(rotate(x, p)): the shift by s does not depend on p.

    >>> shifted(lambda x, p: x + p, lambda y: 2 * y, 1, 2, 3)  # it should add 3
    (6, 6)
    >>> shifted(lambda x, p: x + p, lambda y: 2 * y, 1, 4, 3)
    (8, 10)
    """
    return rotate(x, p + s), move(rotate(x, p))


def linear(rotate: Call, x: Any, y: Any, a: Any) -> Sides:
    """rotate(a·x + y) = a·rotate(x) + rotate(y).

    >>> linear(lambda x: x + 1, 3, 4, 2)  # it adds a number
    (11, 13)
    """
    return rotate(a * x + y), a * rotate(x) + rotate(y)


def permuted(call: Call, inputs: Sequence[Any], sigma: Any, axes: Sequence[int]) -> Sides:
    """call(x[σ], ...) = call(x, ...)[σ], each input permuted along its axis of tokens.

    ``axes`` has this axis for each input; the result has that of the first input.

    >>> import numpy as np
    >>> permuted(lambda x: 2 * x, [np.asarray([1, 2])], [1, 0], [0])
    (array([4, 2]), array([4, 2]))
    """
    moved = [along(x, axis, sigma) for x, axis in zip(inputs, axes, strict=True)]
    return call(*moved), along(call(*inputs), axes[0], sigma)


def unordered(call: Call, inputs: Sequence[Any], sigma: Any, axes: Sequence[int]) -> Sides:
    """call(x[σ], ...) = call(x, ...), each input permuted along its axis.

    >>> import numpy as np
    >>> unordered(lambda x: x.sum(), [np.asarray([1, 2])], [1, 0], [0])
    (np.int64(3), np.int64(3))
    """
    moved = [along(x, axis, sigma) for x, axis in zip(inputs, axes, strict=True)]
    return call(*moved), call(*inputs)


def each_alone(
    call: Callable[..., Any],
    first: Sequence[Any],
    second: Sequence[Any],
    axes: Sequence[int] = (0, 0, 0),
) -> Sides:
    """Two parts joined along an axis, rows of a batch or tokens, give the results of each alone.

    ``axes`` has this axis for each input; the result has that of the first input.
    """
    xp, axis = array_namespace(first[0]), axes[0]
    pairs = zip(first, second, axes, strict=False)
    both = call(*(xp.concat((a, b), axis=k) for a, b, k in pairs))
    before, cut = (slice(None),) * axis, first[0].shape[axis]
    left = [both[(*before, slice(None, cut))], both[(*before, slice(cut, None))]]
    return left, [call(*first), call(*second)]


def along(x: Any, axis: int, index: Any) -> Any:
    """Return ``x[index]`` along one axis."""
    return x[(*[slice(None)] * axis, index)]


def zero_of_each(x: Any) -> Any:
    """Return 0 for each token, as one channel; not by a slice, which would split the channels."""
    return (0 * x[..., 0])[..., None]
