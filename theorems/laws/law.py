"""What a law of code is: its words, and a formula for each call that it is about.

A law is measured at the inputs that stand beside its formula, or else at those of its call; small
ones come first, so that a witness is small.

Where a law of encodings, of what hooks say, and a law of code, of what a call gives, are one, both
read the equations at the end: of plain functions, written for terms, residues, numpy and torch
alike.  Each function gives the two sides, which should be equal.
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

    ``at``: for a name of positions their offsets from the first position that the code has, of the
    tokens in turn, or of each row of the batch; for a shift or a step the number.
    ``units``: vectors are all unit vectors at each of these positions, so that both sides show
    every entry of the matrices that the code applies; else vectors are drawn.
    ``lengths``: of letters, as numbers or as another letter whose length they have.
    ``scale``: what drawn vectors are multiplied by, by name; ``BEYOND_EXP`` is so much that the
    exponential of a product with them is beyond all numbers of the format.  Of a short format it
    is less, where products would overflow.
    ``window``: the lengths of a window.  ``left``: padding stands at the left of the tokens.
    ``named``: a length is one that the code names, and one more; it may take no more.
    """

    at: Mapping[str, Any] = field(default_factory=dict)
    units: bool = False
    lengths: Mapping[str, int | str] = field(default_factory=dict)
    scale: Mapping[str, float] = field(default_factory=dict)
    window: tuple[int, ...] = ()
    left: bool = False
    named: bool = False


def _lengths(letters: str, *rows: Sequence[int | str]) -> tuple[Inputs, ...]:
    return tuple(Inputs(lengths=dict(zip(letters, row, strict=True))) for row in rows)


# Of each call, from small to large: all different, then equal where a broadcast would not be seen.
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
        (260, 260),  # past 256, where whole numbers in bfloat16 end, and those of a byte
        (2060, 2060),  # past 2048, where those in float16 end
        ("W", "W"),
        (5, 1),
        (5, 2),
        (6, 5),
        (130, 1),
    ),
    "rotate": _lengths("BAnr", (1, 1, 2, 3), (2, 1, 3, 4), (2, 2, 4, 4), ("H", 1, "H", 2)),
}

SOME = _lengths("Brn", (1, 3, 3), (3, 6, 6), (2, 2, 5), (3, 1, 4), (2, "H", "H"))

Sides = tuple[Any, Any]
VECTORS, TOKENS = "real B H n D", "real B n E"
QUERIES, KEYS = "real B H r D", "real B G n D"
THREE: dict[str, Any] = {"q": QUERIES, "k": KEYS, "v": KEYS}
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
    """A law as an equation of one call: ``sides`` of the calls and of what is given.

    The calls are the program on terms, on residues, or the code itself on tensors.  ``sides``
    gives two arrays that should be equal, or two lists of them; ``names`` says in words what the
    two sides of each equation are.

    ``given`` has for each name the kind and the axes: ``"real B H n D"``, ``"position B n"``,
    ``"permutation n"``, ``"real"``, ``"shift"`` (one for all), ``"step"`` (a plain number),
    ``"place B n"`` (a position of one axis), ``"truth B r n"`` and ``"hidden B r n"`` (any truth
    values, True for what counts, or for what does not), ``"keep B n"`` and ``"padding B n"`` (truth
    values, True for what counts; of padding it comes first), ``"index r"`` (one of so many places).
    Letters: A and B rows of a batch, H heads, G key heads, n, r and m tokens, c tokens that fill a
    cache, D features of a head, E features of a token, F those of all heads, or of a token of a
    context.

    ``positive``: an array whose entries are all above 0, where an equation of zeros would say
    nothing.  ``shown``: what a witness breaks, where that is another thing than the law.
    ``sizes``: other lengths at which the equation shows faults that it hides at most lengths.
    ``of_sizes``: the sides are made of lengths alone, whatever is given.
    ``inputs``: those at which it is measured, where the ones of its call do not do.
    ``unsaid``: what the sentence says and the formula does not, or says at these lengths alone: no
    proof of the formula is one of the law.
    ``limits``: a clause under which a proof of the formula is one of the law, as far as it says it.
    ``others``: further calls that it is about, without which it says nothing.
    ``floats``: no other method reads it: it speaks of what floating point leaves, of what is 0, of
    gradients or training, or of so little of its law that only beside others it says something.
    ``again``: how the law passes on to what is called on the outputs, as the layer after a layer.
    Of what its calls gave, in their order, and of what is given it makes what is given next, such
    that the law then takes just these outputs; a law without it says nothing of a composition.
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
    floats: bool = False
    others: Sequence[str] = ()
    again: Callable[..., Mapping[str, Any]] | None = None
    limits: str = ""

    @property
    def rotates(self) -> bool:
        """Whether it speaks of queries and of keys, which may be rotated by code of their own."""
        return self.call == "rotate"

    def equations(self, calls: SimpleNamespace, *, shown: bool = False, **values: Any) -> Sides:
        """Its two sides, or two lists of them: of keys too where other code rotates them."""
        sides = self.shown if shown and self.shown is not None else self.sides
        found = [sides(calls, **values)]
        if self.rotates and self.id != "relative" and calls.key is not calls.rotate:
            found.append(sides(of_keys(calls), **values))
        if len(found) == 1:
            return found[0]
        left, right = ([part for both in found for part in _listed(both[side])] for side in (0, 1))
        return left, right


@dataclass(frozen=True)
class Law:
    """A law of code: ``says`` is a sentence, ``about`` the kinds of code it is asked of.

    ``group``: structure (theorems of the encoding), declared (it is what it is said to be), state
    (nothing an earlier call, another row or another path did matters), precision (what floating
    point leaves of it), masks.
    ``always``: code that breaks it is wrong whatever it is meant to be.  The others are asked where
    the declaration or what the code can do makes them apply; each finding says.
    ``formulas``: one for each call it is about; none where it is measured only.
    """

    id: str
    kinds: str
    group: str
    says: str
    always: bool = True
    formulas: list[Formula] = field(default_factory=list, compare=False)

    @property
    def about(self) -> tuple[str, ...]:
        """The kinds of code it is asked of."""
        return tuple(self.kinds.split())

    def of(
        self, kind: str, call: str, **told: Any
    ) -> Callable[[Callable[..., Sides]], Callable[..., Sides]]:
        """Add a formula: the kind of code, the call, and what is given beside it.

        ``told`` are the fields of a :class:`Formula`, and by any other name what is given.
        """
        if kind not in self.about:
            raise ValueError(f"{self.id} is a law of {self.kinds}, not of {kind} code")
        own = {one.name for one in fields(Formula)}
        given = {name: told.pop(name) for name in [*told] if name not in own}
        if strange := [name for name, kind in given.items() if not isinstance(kind, str)]:
            raise TypeError(
                f"wanted what {', '.join(strange)} is in words, such as 'positions n', or a field "
                f"of a formula: {', '.join(sorted(own))}"
            )

        def wrap(sides: Callable[..., Sides]) -> Callable[..., Sides]:
            self.formulas.append(Formula(self.id, kind, call, given, sides, **told))
            return sides

        return wrap


def _listed(side: Any) -> list[Any]:
    return side if isinstance(side, list) else [side]


def of_keys(calls: SimpleNamespace) -> SimpleNamespace:
    """The same calls, with keys in the place of queries."""
    return SimpleNamespace(**{**vars(calls), "rotate": calls.key, "in_order": calls.key_in_order})


def called(calls: Mapping[str, Any], *, true_means: str = "", **known: Any) -> SimpleNamespace:
    """The calls by name, as laws use them: keys rotated as queries where there is no other code.

    ``in_order`` rotates with the channels in the order in which they went in: it is ``rotate``,
    where nothing else is given.  ``visible`` is a mask as 1 where a key is seen and 0 where not,
    whatever the code makes of it.  ``known`` are plain numbers of the code, as ``first``, its first
    position, and ``shared``: positions are (1, T), those of all rows, or the same in each row.
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
    """call(m + s, n + s, ...) = call(m, n, ...): where all positions are moved alike, nothing is.

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
    """rotate(x, p + s) = move(rotate(x, p)): what moves it on by s need not know where it was.

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

    ``axes`` has that axis of each input; of the result it is that of the first.

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
    """Two parts put together along an axis give what each gives: rows of a batch, or tokens.

    ``axes`` has the axis of each input; of the result it is that of the first.
    """
    xp, axis = array_namespace(first[0]), axes[0]
    pairs = zip(first, second, axes, strict=False)
    both = call(*(xp.concat((a, b), axis=k) for a, b, k in pairs))
    before, cut = (slice(None),) * axis, first[0].shape[axis]
    left = [both[(*before, slice(None, cut))], both[(*before, slice(cut, None))]]
    return left, [call(*first), call(*second)]


def along(x: Any, axis: int, index: Any) -> Any:
    """``x[index]`` along one axis."""
    return x[(*[slice(None)] * axis, index)]


def zero_of_each(x: Any) -> Any:
    """0 for each token, for channels of any number; no slice, as at one its channels are cut."""
    return (0 * x[..., 0])[..., None]
