"""The names and sizes that laws use, and what each of them stands for.

===========  =====================================================================
name         is
===========  =====================================================================
Q, K, V      r queries (r, d), c keys (c, d), their values (c, e)
x, y         a query or a key (d,)
u, p         the positions of the queries (r,) and of the keys (c,)
a, b, s      a position, another position, a shift
i, j         natural numbers
sigma        a permutation of the c keys
===========  =====================================================================

If an encoding has whole positions only, u and p are any whole numbers, in any order, and a, b and s
natural numbers.  With ``in_a_row``, u and p are the numbers u_0 + i and p_0 + j: more can be proved
of these, but it says less.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from inspect import signature
from typing import Any

from ..symbolic.array import as_array
from ..symbolic.givens import Given, index_map, natural, permutation, positions, real, sizes
from ..symbolic.namespace import arange
from ..symbolic.terms import Term, free
from .base import Encoding

r, c = sizes("n_q n_k", "tokens")
(e,) = sizes("d_v", "features")
(most,) = sizes("n_p", "positions")
LAW_SIZES = frozenset(["n_q", "n_k", "d_v", "n_p"])

# Reserved for laws; `A` belongs to every encoding that adds to the input.
NAMES = frozenset([
    "Q", "K", "V", "W_s", "W_K", "C", "x", "y", "u", "u_0", "p", "p_0", "a", "b", "s", "i", "j",
    "sigma", "others", "rest", "row", "column", "other", "near", "further",
])  # fmt: skip


def require_own_names(encoding: Encoding) -> None:
    """Refuse a parameter that is named like a letter of the laws, or one of its own sizes."""
    declared = encoding.declared()
    taken = sorted((set(encoding.given) & NAMES) | (set(declared) & set(_own_sizes(encoding))))
    if taken:
        raise TypeError(
            f"{type(encoding).__name__} has a parameter {taken[0]!r}, which is the name of "
            f"something that laws speak of; choose a name other than {', '.join(sorted(NAMES))}"
        )


def _own_sizes(encoding: Encoding) -> set[str]:
    """Return the names of the sizes in its parameters and its width."""
    lengths = [n for given in encoding.declared().values() for n in given.lengths]
    lengths.append(as_array(type(encoding).width).term)
    return size_names(lengths)


def letters(encoding: Encoding, hypothesis: str) -> tuple[str, ...]:
    """Return the names of laws that a hypothesis of the encoding uses: its method's parameters."""
    return tuple(signature(getattr(encoding, hypothesis)).parameters)


def size_names(terms: Iterable[Term]) -> set[str]:
    """Return the names of the sizes that occur in these terms."""
    return {str(t.data[0]) for n in terms for t in free(n) if t.op == "size"}


def named(
    name: str,
    encoding: Encoding,
    given: Mapping[str, Callable[[Encoding], Given]],
    in_a_row: bool = False,
) -> tuple[dict[str, Given], Any]:
    """Return the givens behind a name of the table, and its value."""
    if name in given:
        own = given[name](encoding)
        return {name: own}, own.named(name)
    width, whole, axes = encoding.width, encoding.whole, (encoding.axes,) * bool(encoding.axes)
    if whole and name in ("u", "p"):
        length = r if name == "u" else c
        if not in_a_row:
            anywhere = index_map(length, most)
            return {name: anywhere}, anywhere.named(name)
        start, first = f"{name}_0", natural("the first position")
        return {start: first}, first.named(start) + arange(length)
    one = natural("a position") if whole else positions(*axes)
    values = width if encoding.defines("add") else e
    table = {
        "Q": real(r, width),
        "K": real(c, width),
        "V": real(c, values),
        "x": real(width),
        "y": real(width),
        "u": positions(r, *axes),
        "p": positions(c, *axes),
        "a": one,
        "b": one,
        "s": one,
        "i": natural(),
        "j": natural(),
        "sigma": permutation(c),
    }
    if name not in table:
        raise TypeError(f"a law speaks of {', '.join(table)}, or of its own `given`; not {name!r}")
    return {name: table[name]}, table[name].named(name)
