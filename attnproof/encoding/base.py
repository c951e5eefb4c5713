"""A position encoding: what it does to tokens, queries, keys, values and scores.

An encoding is a class.  What it does is written in plain array code, in one method for each place
where it acts.  The same lines run on symbolic arrays, where laws are proved for all sizes, and on
numpy, where the encoding is drawn and measured.

===========================  =======================================================
method                       acts on
===========================  =======================================================
``add(p)``                   the input: the token x at position p becomes x + add(p)
``rotate(x, p)``             queries and keys, both in the same way
``query(q, p)``, ``key(k, p)``   queries and keys, each in its own way
``relate(q, k, m, n)``       the product q·k, before it is divided by √d
``bias(m, n)``               the score, after that
``sees(m, n)``               which keys a query sees (a mask)
``value(v, m, n)``           the value at n, as the query at m reads it
===========================  =======================================================
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from inspect import getattr_static
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, cast

import numpy as np
from array_api_compat import array_namespace

from ..symbolic.array import as_array
from ..symbolic.bodies import Links
from ..symbolic.claim import Law
from ..symbolic.concrete import length_value
from ..symbolic.givens import Given, positions, real, sizes
from ..symbolic.scalars import integer
from ..symbolic.terms import free
from ..theorems.definitions.attention import softmax
from .declarations import misdeclared, unwritten

Found = TypeVar("Found", bound=Callable[..., Any])
(WIDTH,) = sizes("d", "features")
HOOKS = ("add", "rotate", "query", "key", "relate", "bias", "sees", "value", "scores")
REMEMBERED: list[Any] = []  # caches of what was found about classes
FINAL = frozenset([
    "acts", "attention", "code", "declared", "defines", "encode", "encode_query", "hypotheses",
    "id", "mark", "marks", "of_length", "plain", "score", "strengths", "weights", "with_defaults",
])  # fmt: skip


def remembered(find: Found) -> Found:
    """Find something about a class once, until an attribute of it changes (``_Kind``)."""
    once = cache(find)
    REMEMBERED.append(once)
    return cast("Found", once)


class _Kind(type):
    """The class of encodings: what was found about them is forgotten when one of them changes."""

    def __setattr__(cls, name: str, value: object) -> None:
        super().__setattr__(name, value)
        _forget()

    def __delattr__(cls, name: str) -> None:
        super().__delattr__(name)
        _forget()


def _forget() -> None:
    for once in REMEMBERED:
        once.cache_clear()


@remembered
def _used(kind: type[Encoding]) -> frozenset[str]:
    """Return the hooks that an encoding writes, except those that its own ``scores`` do not call.

    What is added to the input always counts: it reaches the values, whatever the scores do.
    """
    own = frozenset(hook for hook in HOOKS if kind.defines(hook))
    if "scores" not in own:
        return own
    called: set[str] = set()

    def listening(hook: str) -> Any:
        def method(self: Encoding, *args: Any) -> Any:
            called.add(hook)
            return getattr(kind, hook)(self, *args)

        return method

    within = own & {"rotate", "query", "key", "relate", "bias"}
    probe = type(kind.__name__, (kind,), {hook: listening(hook) for hook in within})
    r, c = sizes("n_q n_k", "tokens")
    axes = (kind.axes,) * bool(kind.axes)
    Q, K = real(r, kind.width).named("Q"), real(c, kind.width).named("K")
    probe().scores(Q, K, positions(r, *axes).named("u"), positions(c, *axes).named("p"))
    return own - (within - called)


def id_of(name: str) -> str:
    """Return the id of an encoding whose class has this name.

    >>> id_of("RopeLlama3"), id_of("TransformerXL")
    ('rope-llama3', 'transformer-xl')
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", name).lower()


class Encoding(metaclass=_Kind):
    """A position encoding; subclass it and write the methods where it acts.

    ``given`` declares the parameters, which become attributes of an instance.  An instance made
    without them stands for every value: ``Rope()`` has any frequencies.  ``defaults`` holds numbers
    for plots and measurements.  ``width`` is the number of features of a query or key, ``axes`` the
    number of coordinates of a position (0: a position is a number), and ``whole`` says that it is
    defined for the positions 0, 1, 2, .. only.  ``length`` names the parameter that is the number
    of tokens, if it depends on that, and ``together`` says that the score of a query and a key
    depends on the other tokens too.

    >>> from attnproof import positions
    >>> class Nearer(Encoding):
    ...     source = ("Press, Smith and Lewis 2022, section 3",)
    ...     given = {"slope": real()}
    ...     def bias(self, m, n):
    ...         return self.slope * (n - m)
    >>> Nearer().bias(*(positions().named(name) for name in "mn"))
    slope·(n - m)
    """

    title: ClassVar[str] = ""
    source: ClassVar[tuple[str, ...]] = ()
    width: ClassVar[Any] = WIDTH
    axes: ClassVar[int] = 0
    whole: ClassVar[bool] = False
    length: ClassVar[str] = ""
    together: ClassVar[bool] = False
    reach: ClassVar[int] = 0  # number of positions with the defaults; 0: unlimited
    given: ClassVar[Mapping[str, Given]] = {}
    defaults: ClassVar[Mapping[str, Any]] = {}
    fixed: ClassVar[frozenset[str]] = (
        frozenset()
    )  # parameters with numbers, where a card gives some
    obeys: ClassVar[tuple[str, ...]] = ()  # laws its author claims, for attnproof.testing

    def __init_subclass__(cls) -> None:
        """Refuse a class that overrides what laws examine, or declares what none examines."""
        super().__init_subclass__()
        if cls.whole and cls.axes:
            raise TypeError(f"{cls.__name__}: whole positions are numbers, with axes = 0")
        own = sorted(n for n in FINAL if getattr_static(cls, n) is not vars(Encoding)[n])
        if own:
            raise TypeError(
                f"{cls.__name__}.{own[0]} is derived from the hooks of an encoding, and laws use "
                f"it; "
                f"write {', '.join(HOOKS[:-1])} or {HOOKS[-1]} instead"
            )
        wrong = misdeclared(cls, Encoding, HOOKS)
        if wrong:
            raise TypeError(wrong)

    def __init__(self, **parameters: Any) -> None:
        declared = self.declared()
        unknown = sorted(set(parameters) - set(declared))
        if unknown:
            told = ", ".join(declared) or "none"
            raise TypeError(
                f"{type(self).__name__} has the parameters {told}, and no {unknown[0]!r}"
            )
        for name, given in declared.items():
            setattr(self, name, parameters[name] if name in parameters else given.named(name))
        self.parameters = dict(parameters)

    if TYPE_CHECKING:  # the parameters: what `given` declares

        def __getattr__(self, name: str) -> Any: ...

    @classmethod
    def with_defaults(cls, width: int = 64) -> Self:
        """Return the encoding with its default numbers, for numpy.

        ``width`` is the number of features if the defaults leave it open.
        """
        numbers, lengths = _default_numbers(cls, width)
        made = cls(**numbers)
        made.width = length_value(integer(as_array(cls.width).term), lengths)  # type: ignore[misc]
        return made

    @classmethod
    def declared(cls) -> dict[str, Given]:
        """Return the parameters; an encoding that adds to the input also has A = W_Q W_Kᵀ."""
        A = real(cls.width, cls.width, says="W_Q W_Kᵀ, any real numbers")
        projections = {"A": A} if cls.defines("add") else {}
        return {**cls.given, **projections}

    @classmethod
    def defines(cls, *methods: str) -> bool:
        """Whether it writes one of these methods."""
        return any(getattr(cls, name) is not getattr(Encoding, name) for name in methods)

    @classmethod
    def acts(cls, *hooks: str) -> bool:
        """Whether it acts in one of these hooks, or in any if none is named.

        A hook that its own ``scores`` do not call has no effect on them.
        """
        used = _used(cls)
        return bool(used.intersection(hooks) if hooks else used)

    @classmethod
    def id(cls) -> str:
        """Return its name in commands and tables: that of the class, in lower case with hyphens."""
        return id_of(cls.__name__)

    @classmethod
    def hypotheses(cls) -> dict[str, str]:
        """Return the methods that are hypotheses, with their words, in the order of the class."""
        classes = reversed(cls.__mro__)
        named = [n for c in classes for n in vars(c) if hasattr(getattr(c, n), "says")]
        return {name: getattr(cls, name).says for name in dict.fromkeys(named)}

    # What it does: a subclass may write any of these.

    def add(self, p: Any) -> Any:
        """What is added to the token at p: positions (..) -> (.., d)."""
        raise NotImplementedError(unwritten(self, Encoding, "add"))

    def rotate(self, x: Any, p: Any) -> Any:
        """Return a query or key x: (.., d) as it is encoded at positions p: (..)."""
        del p
        return x

    def query(self, q: Any, p: Any) -> Any:
        """Return a query as it is encoded; by default as ``rotate`` does it."""
        return self.rotate(q, p)

    def key(self, k: Any, p: Any) -> Any:
        """Return a key as it is encoded; by default as ``rotate`` does it."""
        return self.rotate(k, p)

    def relate(self, q: Any, k: Any, m: Any, n: Any) -> Any:
        """What is added to q·k: q (r, 1, d), k (1, c, d), m (r, 1), n (1, c) -> (r, c)."""
        raise NotImplementedError(unwritten(self, Encoding, "relate"))

    def bias(self, m: Any, n: Any) -> Any:
        """What is added to the score of a query at m: (r, 1) with a key at n: (1, c) -> (r, c)."""
        raise NotImplementedError(unwritten(self, Encoding, "bias"))

    def sees(self, m: Any, n: Any) -> Any:
        """Whether a query at m: (r, 1) sees a key at n: (1, c) -> (r, c)."""
        raise NotImplementedError(unwritten(self, Encoding, "sees"))

    def value(self, v: Any, m: Any, n: Any) -> Any:
        """Return the value v: (1, c, e) at n: (1, c), as the query at m: (r, 1) reads it."""
        del m, n
        return v

    # What it claims about itself.

    def envelope(self, q: Any, k: Any, m: Any, n: Any) -> Any:
        """Return a number that the score of q: (d,) at m and k: (d,) at n never exceeds.

        By default this is the score without positions.
        """
        del m, n
        return self.plain(q, k)

    # Advice to the prover, which is not trusted.

    def shift(self, s: Any) -> Any:
        """The matrix (d, d) that takes ``add(p)`` to ``add(p + s)`` for every p, if one exists."""
        raise NotImplementedError(unwritten(self, Encoding, "shift"))

    def moved(self, k: Any, s: Any) -> Any:
        """Return the encoded key at p, moved to p + s without knowing p, if that is possible."""
        moved = self.key(k, s)
        return moved + self.add(s) - self.add(0 * s) if self.defines("add") else moved

    def bound(self) -> Any:
        """A bound on the size of everything that it computes from positions; see ``bounds``."""
        raise NotImplementedError(unwritten(self, Encoding, "bound"))

    def beyond(self, C: Any) -> Any:
        """A position at which something that it computes exceeds the natural number C in size."""
        raise NotImplementedError(unwritten(self, Encoding, "beyond"))

    def apart(self, i: Any, j: Any) -> Any:
        """``tell`` of the codes of two natural numbers, in a form that is visibly not 0.

        If positions are vectors, this and ``tell`` may take one more argument: the number of the
        coordinate that has these values.
        """
        raise NotImplementedError(unwritten(self, Encoding, "apart"))

    def tell(self, here: Any, there: Any) -> Any:
        """Return a number made of two codes: 0 if they are equal, visibly not 0 if they differ."""
        return here[0] - there[0]

    def fall(self, x: Any, o: Any, step: Any) -> Any:
        """score(x, x, m, m − o) − score(x, x, m, m − o − step) in a form that is visibly >= 0.

        Query and key have the same content x.  The numbers o and step are at least 0; if positions
        are vectors, they are nonnegative multiples of one vector.
        """
        raise NotImplementedError(unwritten(self, Encoding, "fall"))

    def margin(self, q: Any, k: Any, m: Any, n: Any) -> Any:
        """``envelope`` minus the score, of one query and one key, in a form visibly >= 0."""
        raise NotImplementedError(unwritten(self, Encoding, "margin"))

    def facts(self) -> dict[str, Law]:
        """Return equations that laws may use, in their letters, once they are proved.

        Each is a law (``for_all``), or a law at given values (``for_all(..).at(..)``).
        """
        return {}

    # What follows from it.

    def encode(self, x: Any, p: Any) -> Any:
        """Return a key at p as it is cached: (.., d), (..) -> (.., d)."""
        return self.key(x + self.add(p) if self.defines("add") else x, p)

    def encode_query(self, x: Any, p: Any) -> Any:
        """Return a query at p as it meets the keys."""
        return self.query(x + self.add(p) if self.defines("add") else x, p)

    def code(self, p: Any) -> Any:
        """Return what it computes from one position p, as numbers that may tell p from others.

        That is what is added to the input; otherwise a key of ones, encoded, or a query if keys are
        not encoded; otherwise what is added to q·k for a query at p, each unit vector and 0, and
        the key 0 at 0; otherwise the bias of a query at p and a key at 0, and of a query at 0 and a
        key at p.
        """
        xp = array_namespace(p)
        one, zero = p[None], (0 * p)[None]
        if self.acts("add"):
            return self.add(one)[0]
        if self.acts("rotate", "key"):
            return self.key(xp.ones((1, self.width)), one)[0]
        if self.acts("query"):
            return self.query(xp.ones((1, self.width)), one)[0]
        if self.acts("relate"):
            Q = xp.concat((xp.eye(self.width), xp.zeros((1, self.width))))
            m = xp.broadcast_to(one, (self.width + 1, *p.shape))
            K = xp.zeros((1, self.width))
            return self.relate(Q[:, None], K[None], m[:, None], zero[None])[:, 0]
        if self.acts("bias"):
            pairs = ((one, zero), (zero, one))
            return xp.stack([self.bias(m[:, None], n[None])[0, 0] for m, n in pairs])
        return xp.zeros((1,))

    def scores(self, Q: Any, K: Any, m: Any, n: Any) -> Any:
        """Return the scores of queries Q: (r, d) at m: (r,) with keys K: (c, d) at n: (c,): (r, c).

        (q_m·k_n + relate) / √d + bias, without the mask.
        """
        q, k = self.encode_query(Q, m), self.encode(K, n)
        product = (q @ self.A if self.defines("add") else q) @ k.mT
        if self.defines("relate"):
            product = product + self.relate(Q[:, None], K[None], m[:, None], n[None])
        score = product / Q.shape[-1] ** 0.5
        return score + self.bias(m[:, None], n[None]) if self.defines("bias") else score

    def marks(self, Q: Any, K: Any, m: Any, n: Any) -> Any:
        """Return the scores; with a mask, exp of the scores, and 0 where a key is hidden."""
        alike = self.strengths if self.defines("sees") else self.scores
        return alike(Q, K, m, n)

    def strengths(self, Q: Any, K: Any, m: Any, n: Any) -> Any:
        """Return exp of the scores, 0 where the mask hides a key."""
        xp = array_namespace(Q)
        strength = xp.exp(self.scores(Q, K, m, n))
        if not self.defines("sees"):
            return strength
        return xp.where(self.sees(m[:, None], n[None]), strength, 0 * strength)

    def weights(self, Q: Any, K: Any, m: Any, n: Any) -> Any:
        """Return the softmax of the scores over the keys that are seen."""
        xp = array_namespace(Q)
        scores = self.scores(Q, K, m, n)
        if self.defines("sees"):
            scores = xp.where(self.sees(m[:, None], n[None]), scores, -xp.inf)
        return softmax(scores)

    def attention(self, Q: Any, K: Any, V: Any, m: Any, n: Any) -> Any:
        """Return what the queries read: (r, e).

        What is added to the input reaches the values too.
        """
        xp = array_namespace(Q)
        weights = self.weights(Q, K, m, n)
        values = V + self.add(n) if self.defines("add") else V
        if not self.defines("value"):
            return weights @ values
        return xp.sum(weights[:, :, None] * self.value(values[None], m[:, None], n[None]), axis=1)

    def score(self, q: Any, k: Any, m: Any, n: Any) -> Any:
        """Return the score of one query with one key."""
        return self.scores(q[None], k[None], m[None], n[None])[0, 0]

    def plain(self, q: Any, k: Any) -> Any:
        """Return the score without positions, q·k / √d: (.., d), (.., d) -> (..)."""
        query = q @ self.A if self.defines("add") else q
        return array_namespace(q).sum(query * k, axis=-1) / q.shape[-1] ** 0.5

    def of_length(self, length: Any) -> Self:
        """Return the same encoding for another number of tokens, if it depends on that."""
        known, name = {n: getattr(self, n) for n in self.declared()}, type(self).length
        return type(self)(**{**known, name: length}) if name else self

    def mark(self, q: Any, k: Any, m: Any, n: Any) -> Any:
        """Return the score of one query with one key; with a mask, exp of it, or 0 if hidden."""
        return self.marks(q[None], k[None], m[None], n[None])[0, 0]


def _default_numbers(kind: type[Encoding], width: int) -> tuple[dict[str, Any], dict[str, int]]:
    """Return the default numbers of the parameters, and those of all lengths in them."""
    numbers = dict(kind.defaults)
    lengths = {}
    for name, value in numbers.items():
        axes, shape = kind.given[name].shape, np.shape(value)
        if kind.given[name].kind == "function" and kind.given[name].core == (0,):
            axes, shape = kind.given[name].out or (), np.shape(value(np.asarray(0)))
        for axis, length in zip(axes, shape, strict=False):
            if axis.op == "size":
                lengths[axis.data[0]] = length
    term = integer(as_array(kind.width).term)
    open_ = {t.data[0] for t in free(term) if t.op == "size"} - set(lengths)
    for name in open_:  # at most one: d, or B of a width 2 B, or N of a width 2 B + N
        one, two = (length_value(term, {**lengths, name: n}) for n in (1, 2))
        lengths[name] = max(1, 1 + (width - one) // (two - one))
    if kind.defines("add"):
        numbers.setdefault("A", np.eye(length_value(term, lengths)))
    return numbers, lengths


def in_numbers(kind: type[Encoding], width: int = 64) -> Encoding:
    """Return the encoding with its default numbers, with numbers for the lengths in its code too.

    Its class is not ``kind``, so laws are not asked of it: they would be about these lengths.
    """
    _, lengths = _default_numbers(kind, width)
    links = Links(kind)
    if links.sizes - set(lengths):
        return kind.with_defaults(width)
    linked = links.at(lengths, np)(kind)
    features = length_value(integer(as_array(kind.width).term), lengths)
    known = cast("type[Encoding]", _Kind(kind.__name__, (linked,), {"width": features}))
    return known.with_defaults()
