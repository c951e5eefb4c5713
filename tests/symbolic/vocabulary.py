"""Terms that the tests of the kernel and its rules are written with."""

from __future__ import annotations

from attnproof.symbolic.rules.base import Assumption
from attnproof.symbolic.scalars import ONE, ZERO, add, index, integer, mul, num, size, unary
from attnproof.symbolic.terms import Opened, Term, bind, free, make, opened

n, m, p, L = (size(name) for name in "nmpL")
i, j, k = index("i", n), index("j", n), index("k", m)
TWO, THREE, HALF = num(2), num(3), make("num", data=num(1).data / 2)


def var(name: str, *shape: Term, kind: str = "real", below: Term | None = None) -> Term:
    """An array of a kind; a map of indices holds indices below ``below``."""
    return make("var", () if below is None else (below,), (name, kind), shape)


a, b, c = var("a"), var("b"), var("c")
q = var("q", kind="positive")
X, Y = var("X", n), var("Y", n)
A = var("A", n, n)
P = var("P", n, kind="positive")
g = var("g", n, n, kind="orthogonal")
s = var("s", n, kind="permutation", below=n)
f = var("f", n, kind="index map", below=n)
e = var("e", m, kind="injection", below=n)
inverse = make("inverse", (s,), shape=(n,))
u, v = (var(name, kind="natural") for name in "uv")
D = var("D", n, kind="nonnegative")
PI = make("pi")
space, other_space = (make("space", data=(name, "space")) for name in ("Ω", "Ψ"))
outcome, elsewhere = index("w", space), index("w", other_space)
z, Z = var("z", space, n, kind="standard"), var("Z", other_space, n, kind="standard")
R, S = var("R", space), var("S", space)


def bound(variable: Term) -> Term:
    """What a binder binds, while it is open: a variable under a name that no given has."""
    if variable.op == "index":
        return opened(variable.args[0], variable.data)
    return make("var", (), (Opened((variable.data[0],)), variable.data[1]), variable.shape)


def case(left: Term, right: Term = ZERO, part: str = "", length: Term | None = None) -> Term:
    """The index of a case of two arrays, or of a part of their first axis."""
    return opened(left.shape[0] if length is None else length, f"i0{part}", left, right)


def minus(x: Term) -> Term:
    """−x."""
    return mul(num(-1), x)


def holds(t: Term) -> Term:
    """The indicator of a condition."""
    return unary("indicator", t)


def same(x: Term, y: Term) -> Term:
    """[x = y]."""
    return holds(make("equal", (x, y)))


def up_to(x: Term, y: Term) -> Term:
    """[x <= y]."""
    return holds(make("less_equal", (x, y)))


def under_(x: Term, y: Term) -> Term:
    """[x < y]."""
    return holds(make("less", (x, y)))


def chosen(condition: Term, x: Term, y: Term) -> Term:
    """x where the condition holds, else y."""
    return make("where", (condition, x, y))


def total(variable: Term, body: Term) -> Term:
    """The sum of body over the index."""
    return make("sum", (variable.args[0], bind(body, variable)))


def table(variable: Term, body: Term) -> Term:
    """The array of body over the index."""
    shape = (variable.args[0], *body.shape)
    return make("tabulate", (variable.args[0], bind(body, variable)), shape=shape)


def stack(start: Term, layer: Term, state: Term, body: Term) -> Term:
    """start, then body once for each layer."""
    return make("iterate", (layer.args[0], start, bind(body, layer, state)), shape=start.shape)


def spread(x: Term, *shape: Term) -> Term:
    """The number x in every place."""
    return make("broadcast", (x,), shape=shape)


def less_one(length: Term) -> Term:
    """length − 1, in its sorted form."""
    return integer(add(length, minus(ONE)))


def granted_by_kind(*terms: Term) -> frozenset[Assumption]:
    """What holds of the variables in the terms, by their kinds."""
    traits = {
        "positive": ("positive",),
        "nonnegative": ("nonnegative",),
        "standard": ("standard",),
        "orthogonal": ("orthogonal",),
        "permutation": ("permutation", "injective"),
        "injection": ("injective",),
    }
    variables = frozenset[Term]().union(*map(free, terms))
    named = [v for v in variables if v.op == "var"]
    return frozenset((trait, v) for v in named for trait in traits.get(v.data[1], ()))
