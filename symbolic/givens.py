"""The givens of a statement: sizes, arrays, index maps, functions.

A :class:`Given` describes the values that a name may have; :meth:`Given.named` makes the symbolic
array of that name.  Its kind also determines how the numeric layer draws a value and which
assumptions a proof may use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NoReturn

from .array import Array, as_array, broadcast_shapes, broadcast_to
from .concrete import by_reading, length_value
from .refusals import demand
from .scalars import integer, size
from .terms import Opened, Term, make

NUMBERS = ("real", "angle", "position", "frequency", "positive", "nonnegative")
"""The kinds whose entries are real numbers."""
SIGNED = ("positive", "nonnegative")
TRAITS = {
    "positive": ("positive",),
    "nonnegative": ("nonnegative",),
    "orthogonal": ("orthogonal",),
    "standard": ("standard",),
    "permutation": ("permutation", "injective"),
    "injection": ("injective",),
}
"""The assumptions that each kind allows: none for other kinds."""
OF_FUNCTIONS = ((), ("equivariant",), ("invariant",))
"""The assumptions about a function of which one may be made."""
_GREEK_NAMES = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau "
    "upsilon phi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega"
)
GREEK = dict(zip(_GREEK_NAMES.split(), "αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΠΣΥΦΨΩ", strict=True))
"""The names of Greek letters, and the letters."""


class Size(Array):
    """A symbolic axis length; at least 1."""


def sizes(names: str, role: str = "size") -> tuple[Size, ...]:
    """Return symbolic axis lengths, one for each name, each at least 1.

    The role says what they count (tokens, features, heads, blocks, layers).  Proofs ignore it; the
    numeric layer chooses realistic values by it.

    >>> (n,) = sizes("n", "tokens")
    >>> n
    n
    """
    return tuple(Size(size(name, role)) for name in names.split())


UNNAMED = (
    "a given such as real(n) is not an array until it has a name: it says what a parameter may "
    "be.  Write the line as a function of the parameter, prove(lambda X: equal(X + X, 2 * X), "
    "X=real(n)), or real(n).named('X') for one array of that name"
)


@dataclass(frozen=True)
class Given:
    """One given of a statement: the values that a name may have; not an array until it is named.

    Arithmetic on it raises ``TypeError`` with the remedy.  ``kind`` is real, angle, position,
    positive, nonnegative, natural, frequency, boolean, orthogonal, standard, permutation,
    injection, index map, index, or function; ``shape`` is its axes, ``below`` the range of an
    index, and ``traits`` what may be assumed about it.
    """

    kind: str
    shape: tuple[Term, ...] = ()
    below: Term | None = None
    traits: tuple[str, ...] = ()
    core: tuple[int, ...] = ()
    out: tuple[Term, ...] | None = None
    says: str = ""
    extra: dict[str, Any] = field(default_factory=dict, compare=False)
    NO_ARRAY: ClassVar[str] = UNNAMED
    __array_ufunc__: ClassVar[None] = None  # so that NumPy arrays defer to its operators

    def __post_init__(self) -> None:
        """Set the traits of the kind: a proof may assume no more than a reader is told."""
        if self.kind == "function":
            if self.traits not in OF_FUNCTIONS:
                few = ", ".join(map(repr, OF_FUNCTIONS))
                raise TypeError(f"a function has one of the traits {few}; got {self.traits!r}")
            return
        known = TRAITS.get(self.kind, ())
        if self.traits not in ((), known):
            raise TypeError(f"a {self.kind!r} given has the traits {known}; got {self.traits!r}")
        object.__setattr__(self, "traits", known)

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"no {name!r} here" if name.startswith("_") else f"{name}: {UNNAMED}")

    @property
    def lengths(self) -> tuple[Term, ...]:
        """Its axis lengths, and the range of its indices."""
        below = () if self.below is None else (self.below,)
        return (*self.shape, *below, *(self.out or ()))

    def shape_and_range(self, sizes: Mapping[str, int]) -> tuple[tuple[int, ...], int]:
        """Return the axis lengths at these sizes, and the range of its indices or 0."""
        at = dict(sizes)
        below = 0 if self.below is None else length_value(self.below, at)
        return tuple(length_value(n, at) for n in self.shape), below

    def named(self, name: str | Opened) -> Any:
        """Return the symbolic array (or function) of this kind with a name."""
        if self.kind == "function":
            return Function(str(name), self)
        if self.kind == "index":
            assert self.below is not None
            return Array(make("index", (self.below,), name))
        args = (self.below,) if self.below is not None else ()
        return Array(make("var", args, (name, self.kind), self.shape))

    def moved(self, move: Callable[[Term], Term]) -> Given:
        """Return the given with ``move`` applied to its axis lengths and range."""
        below = None if self.below is None else move(self.below)
        out = None if self.out is None else tuple(map(move, self.out))
        return replace(self, shape=tuple(map(move, self.shape)), below=below, out=out)

    def granted(self, name: str) -> frozenset[tuple[str, Term]]:
        """Return the assumptions that a proof may use about it."""
        if self.kind == "function":
            function = make("function", data=(name, 0, self.traits))
            return frozenset((trait, function) for trait in self.traits)
        term = self.named(name).term
        return frozenset((trait, term) for trait in self.traits)


def _refuse_unnamed(*_: object, **__: object) -> NoReturn:
    raise TypeError(UNNAMED)


_BINARY = ("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor")
_UNARY = ("neg", "pos", "abs", "invert", "lt", "le", "gt", "ge", "getitem", "iter", "float")
for _name in (*_BINARY, *(f"r{_one}" for _one in _BINARY), *_UNARY, "array", "array_namespace"):
    setattr(Given, f"__{_name}__", _refuse_unnamed)


def _shape(lengths: tuple[Any, ...]) -> tuple[Term, ...]:
    return tuple(integer(as_array(n).term) for n in lengths)


def real(*shape: Any, says: str = "") -> Given:
    """Return the given of any real array with these axes; without axes, any real number."""
    return Given("real", _shape(shape), says=says)


def angle(*shape: Any) -> Given:
    """Angles in radians."""
    return Given("angle", _shape(shape), says="angles in radians")


def positions(*shape: Any) -> Given:
    """Positions: any real numbers; the numeric layer draws integers."""
    return Given("position", _shape(shape), says="positions, any real numbers")


def frequencies(*shape: Any) -> Given:
    """Angular frequencies, in radians per position; any real numbers."""
    return Given("frequency", _shape(shape), says="frequencies, in radians per position")


def positive(*shape: Any) -> Given:
    """Positive real numbers."""
    return Given("positive", _shape(shape), says="positive")


def nonnegative(*shape: Any) -> Given:
    """Real numbers that are at least 0."""
    return Given("nonnegative", _shape(shape), says="at least 0")


def natural(says: str = "") -> Given:
    """A natural number: 0, 1, 2, ..."""
    return Given("natural", says=says or "a natural number, from 0 on")


def probability_space(name: str) -> Array:
    """Return the outcomes of a random experiment, as an axis of random arrays.

    ``sum(x, axis=0)`` over such an axis is the expectation of x; every expectation that is
    written is assumed to exist.  Sums over two different spaces are expectations over independent
    experiments.
    """
    return Array(make("space", data=(name, "space")))


def standard(space: Any, n: Any) -> Given:
    """Random numbers z_1, .., z_n with E z_i = 0 and E z_i z_j = [i = j], of shape (outcome, n).

    Independent numbers of mean 0 and variance 1 satisfy this, whatever their distributions.
    """
    if as_array(space).term.op != "space":
        raise TypeError(f"standard wants a probability_space first; got {space!r}")
    says = "random: mean 0, variance 1, uncorrelated"
    return Given("standard", (as_array(space).term, *_shape((n,))), says=says)


def boolean(*shape: Any) -> Given:
    """Truth values, such as a mask that is True where a key may be attended to."""
    return Given("boolean", _shape(shape), says="truth values, True where a key is kept")


def orthogonal(n: Any) -> Given:
    """A square matrix g with gᵀg = g gᵀ = 1."""
    return Given("orthogonal", _shape((n, n)), says="orthogonal")


def permutation(n: Any) -> Given:
    """A permutation σ of the indices below n; row i of ``X[σ]`` is row σ(i) of X."""
    (length,) = _shape((n,))
    says = f"a permutation of the indices below {length!r}"
    return Given("permutation", (length,), length, says=says)


@by_reading
def inverse(sigma: Array) -> Array:
    """Return the inverse of a permutation σ: row σ(i) of ``X[inverse(σ)]`` is row i of X.

    >>> n, m = sizes("n m")
    >>> inverse(index_map(n, m).named("f"))
    Traceback (most recent call last):
    TypeError: inverse wants a given permutation, or the inverse of one; got f
    """
    base = sigma.term.args[0] if sigma.term.op == "inverse" else sigma.term
    if base.op != "var" or base.data[1] != "permutation":
        raise TypeError(f"inverse wants a given permutation, or the inverse of one; got {sigma!r}")
    return Array(make("inverse", (sigma.term,), shape=sigma.axes))


def injection(k: Any, n: Any) -> Given:
    """A list of k different indices below n."""
    (count,), (length,) = _shape((k,)), _shape((n,))
    return Given("injection", (count,), length, says="different indices")


def index_map(n: Any, m: Any) -> Given:
    """A list of n indices below m, repetitions allowed."""
    (count,), (length,) = _shape((n,)), _shape((m,))
    return Given("index map", (count,), length, says="indices, repetitions allowed")


def index_below(n: Any) -> Given:
    """One index below n."""
    (length,) = _shape((n,))
    return Given("index", below=length, says="an index")


def function(
    *core: int, out: tuple[Any, ...] | None = (), traits: tuple[str, ...] = (), says: str = ""
) -> Given:
    """An uninterpreted function, about which nothing is known but its traits.

    It takes one array for each entry of ``core``, reads that many last axes of it, and is applied
    separately over the leading axes.  ``out`` is the shape of one result; None means the shape of
    the axes it reads of its first argument.  ``traits`` may be ("equivariant",), f(X[σ]) = f(X)[σ]
    for every permutation σ of the rows of the first argument, or ("invariant",), f(X[σ]) = f(X).
    """
    for axes in core:
        demand(
            axes,
            int,
            "function wants the number of axes that it reads of each argument: "
            "function(1, 0) of a vector and a number",
        )
    shape = None if out is None else _shape(out)
    return Given("function", traits=traits, core=core, out=shape, says=says)


class Function:
    """An uninterpreted function on arrays."""

    def __init__(self, name: str, given: Given) -> None:
        self.name, self.given = name, given

    def __call__(self, *values: Any) -> Array:
        arrays = [as_array(v) for v in values]
        core = self.given.core
        if len(arrays) != len(core):
            raise TypeError(f"{self.name} wants {len(core)} arrays; got {len(arrays)}")
        for a, axes in zip(arrays, core, strict=True):
            if a.ndim < axes:
                raise TypeError(f"{self.name} reads {axes} axes; {a!r} has {a.ndim}")
        batch = broadcast_shapes(*(a.axes[: a.ndim - k] for a, k in zip(arrays, core, strict=True)))
        parts = tuple(
            broadcast_to(a, (*batch, *a.axes[a.ndim - k :])).term
            for a, k in zip(arrays, core, strict=True)
        )
        first = arrays[0].axes[arrays[0].ndim - core[0] :]
        out = first if self.given.out is None else self.given.out
        data = (self.name, len(batch), self.given.traits)
        return Array(make("call", parts, data, (*batch, *out)))
