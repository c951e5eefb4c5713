"""Entries of arrays, stacks of layers and values of functions in the normal form.

Also arrays as arguments of functions, which become tables of their entries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..derivation import Derivation, Reflexive
from ..rules.base import Refused
from ..scalars import ZERO, number_of
from ..terms import Opened, Term, bind, instantiate, make
from . import derived
from .equations import chain, inside, opened_index, rewrite, under
from .permutations import strip_word, words_on

if TYPE_CHECKING:
    from .normaliser import Normaliser


def entry_(norm: Normaliser, t: Term) -> Derivation:
    """Normalise an entry: unfold it if the array is computed; other entries are atoms."""
    array = t.args[0]
    first = inside(t, [(k, norm(at)) for k, at in enumerate(t.args) if k])
    u = first.right
    if array.op not in ("var", "inverse", "iterate", "call") or (
        array.op == "call" and array.data[1]
    ):
        try:
            return chain(first, norm.at("entry", u))
        except Refused:
            return first
    if array.op == "call":
        first = chain(first, inside(u, [(0, invariance(norm, norm.arguments(array)))]))
        first = chain(first, equivariance(norm, first.right))
        return chain(first, norm.hypothesis(first.right))
    if array.op == "iterate":
        first = chain(first, inside(u, [(0, stack(norm, array))]))
        layers = first.right.args[0]
        if _has_last(layers.args[0]):
            last = inside(first.right, [(0, rewrite("layer", layers))])
            return norm.then(chain(first, last))
        u = first.right
    if u.args[1].op == "entry":
        try:
            return chain(first, norm.at("permutation", u))
        except Refused:
            pass
    return chain(first, norm.hypothesis(first.right))


def stack(norm: Normaliser, t: Term) -> Derivation:
    """Normalise a stack of layers: unfold the last layer of a number if the depth shows one."""
    first = inside(t, [(0, _depth(norm, t.args[0]))])
    u = first.right
    if not u.shape and _has_last(u.args[0]):
        return chain(first, norm.at("layer", u))
    if u.shape:
        return first
    layer = opened_index(u, u.args[0])
    state = make("var", (), (Opened((u, "•state")), "real"))
    inner = under(u, (layer, state), norm(instantiate(u.args[2], layer, state)))
    first = chain(first, inner)
    return chain(first, norm.hypothesis(first.right))


def _depth(norm: Normaliser, t: Term) -> Derivation:
    """Bring a depth into sorted form, after normalising entries of maps such as σ(σ⁻¹(j))."""
    parts = enumerate(t.args if t.op in ("add", "mul") else ())
    mapped = (
        norm(t)
        if t.op == "entry"
        else inside(t, [(k, norm(part)) for k, part in parts if part.op == "entry"])
    )
    return chain(mapped, derived.sorted_integer(mapped.right))


def equivariance(norm: Normaliser, t: Term) -> Derivation:
    """Derive f(X[σ]) = f(X)[σ] for a function given as equivariant."""
    moved = _unmoved(t.args[0], "equivariant")
    return Reflexive(t) if moved is None else norm.then(rewrite("equivariance", t, *moved))


def invariance(norm: Normaliser, first: Derivation) -> Derivation:
    """Continue to a call of a function given as invariant: f(X[σ]) = f(X)."""
    moved = _unmoved(first.right, "invariant")
    if moved is None:
        return first
    first = chain(first, rewrite("invariance", first.right, *moved))
    return invariance(norm, chain(first, norm.arguments(first.right)))


def _unmoved(f: Term, trait: str) -> tuple[Term, Term] | None:
    """Return σ and the table, if a function with this trait reads its rows moved by σ."""
    if f.op != "call" or trait not in f.data[2] or f.args[0].op != "tabulate":
        return None
    table = f.args[0]
    row = opened_index(table, table.args[0])
    body = instantiate(table.args[1], row)
    words = words_on(body, row)
    if not words or any(not word for word in words):
        return None
    sigma = words[0][-1]
    if sigma.op not in ("var", "inverse") or any(word[-1] is not sigma for word in words):
        return None
    plain_body = strip_word(body, row, sigma)
    return sigma, make("tabulate", (table.args[0], bind(plain_body, row)), shape=table.shape)


def call(norm: Normaliser, t: Term) -> Derivation:
    """Normalise a number that is the value of an uninterpreted function."""
    first = invariance(norm, norm.arguments(t))
    return chain(first, norm.hypothesis(first.right))


def array(norm: Normaliser, t: Term) -> Derivation:
    """Normalise an array, as argument of a function, to the table of its entries."""
    if t.op == "call" and not t.data[1]:
        first = norm.arguments(t)
        return tabled(norm, chain(first, rewrite("tabulate", first.right)))
    first = Reflexive(t) if t.op == "tabulate" else rewrite("tabulate", t)
    return tabled(norm, first)


def tabled(norm: Normaliser, first: Derivation) -> Derivation:
    """Continue a derivation that ends in a table to the normal form of its entries."""
    return chain(first, table(norm, first.right))


def table(norm: Normaliser, t: Term) -> Derivation:
    """Normalise the rows of a table, or any other term."""
    if t.op != "tabulate":
        return norm(t)
    row = opened_index(t, t.args[0])
    return under(t, (row,), table(norm, instantiate(t.args[1], row)))


def _has_last(depth: Term) -> bool:
    """Whether a depth in sorted form is 0 or has a positive constant term."""
    parts = depth.args if depth.op == "add" else (depth,)
    constant = number_of(parts[0])
    return constant is not None and (constant > 0 or depth is ZERO)
