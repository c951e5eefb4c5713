"""Givens, laws and certificates with the names by which bound indices are opened and printed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

import attnproof
from attnproof import (
    Certificate,
    Claim,
    Law,
    Statement,
    at_least,
    differ,
    equal,
    exists,
    for_all,
    function,
    greater,
    index_below,
    iterate,
    natural,
    real,
    rows,
    sizes,
)
from attnproof.symbolic import namespace as xp
from attnproof.symbolic.givens import Given
from attnproof.symbolic.kernel import Refused
from attnproof.symbolic.prove import decide
from attnproof.symbolic.terms import Opened, make
from tests.cases import each

prove: Any = attnproof.prove
(n,) = sizes("n")
NAMES = (
    "i0", "i1", "i0a", "i0b", "i0h", "i0l", "j0", "j1", "k0", "t0", "t0_0", "t", "a", "b", "any0",
    "any1", "state", "state#0", "square#0", "y", "y0", "Y", "h0", "r0", "r0y", "the stack", "at#0",
    "row#0", "layer#0", "•1", "•2", "•state", "•state0", "»0", "?", "!", "j₀", "\uff4a0",
    "\U0001d4570", "j0\u200b",
)  # fmt: skip


def verdict(claim: Claim | Law, *told: Claim | Law, givens: Mapping[str, Given]) -> str:
    """The verdict on one conclusion under hypotheses."""
    one, *laws = [x if isinstance(x, Law) else Law(x) for x in (claim, *told)]
    plain = [x.claim for x in laws if x.claim.relation == "=" and not x.claim.variables]
    assume = tuple((x.left, x.left if x.right is None else x.right) for x in plain)
    laws = [x for x in laws if x.claim not in plain]
    statement = Statement(givens, {"": one.claim}, assume, tuple(laws))
    return decide(statement, refuting=False).verdict


@pytest.mark.parametrize("name", NAMES)
def test_what_is_told_of_an_index_is_told_of_no_bound_one(name: str) -> None:
    """From X > 0, X = Y and i >= 1 at one index i nothing follows at all of them."""
    givens = {"X": real(n), "Z": real(n), name: index_below(n)}
    X, Z, one = (given.named(called) for called, given in givens.items())
    positive, same, later = greater(X[one], 0), equal(X[one], Z[one]), at_least(one, 1)
    for told, claim in (
        (positive, greater(X, 0 * X)),
        (positive, greater(xp.sum(X, axis=0), 0)),
        (positive, equal(rows(n, lambda j: X[j] / X[j]), rows(n, lambda _: xp.asarray(1)))),
        (same, equal(X, Z)),
        (same, equal(xp.sum(X, axis=0), xp.sum(Z, axis=0))),
        (later, equal(xp.sum(rows(n, lambda j: 0 * X[j - 1]), axis=0), 0)),
        (later, equal(rows(n, lambda j: X[j - 1]), rows(n, lambda j: X[j - 1]))),
        (later, at_least(xp.arange(n), 1 + 0 * xp.arange(n))),
    ):
        assert verdict(claim, told, givens=givens) == "undecided", claim
    for told, claim in (
        (positive, greater(2 * X[one], 0)),
        (same, equal(Z[one], X[one])),
        (later, equal(2 * X[one - 1], X[one - 1] + X[one - 1])),
        (later, equal(X + X[one], X[one] + X)),
        (later, equal(xp.sum(X * X[one], axis=0), X[one] * xp.sum(X, axis=0))),
        (later, equal(X * (Z[one] * X[one]) * Z, Z[one] * Z * X[one] * X)),
        (later, greater(xp.exp(X) + X[one] ** 2, 0 * X)),
    ):
        assert verdict(claim, told, givens=givens) == "proved", claim


@each(NAMES)
def test_what_is_told_of_a_number_is_told_of_no_state(name: str) -> None:
    givens = {"m": natural(), name: real()}
    m, one = (given.named(called) for called, given in givens.items())
    layers = iterate(m, one, lambda t, s: s * (one - t))
    for told, claim in (
        (differ(one, 1), greater(iterate(m, xp.asarray(2), lambda _, s: (s - 1) ** 2), 0)),
        (equal(one, m), equal(layers, iterate(m, one, lambda _, s: s * 0))),
        (equal(one, 0), equal(iterate(m, xp.asarray(1), lambda t, s: s + t), 1)),
    ):
        assert verdict(claim, told, givens=givens) == "undecided", claim
    turned = equal(layers, iterate(m, one, lambda t, s: (one - t) * s))
    assert verdict(turned, givens=givens) == "proved"


@each(NAMES)
def test_what_is_told_of_a_given_is_told_of_no_variable_of_its_name(name: str) -> None:
    givens = {"X": real(n), "f": function(0), name: natural()}
    X, f, one = (given.named(called) for called, given in givens.items())
    inside, zero = at_least(n - 1 - one, 0), equal(f(one), 0)
    read = for_all({name: natural()}, lambda **m: equal(X[m[name]], 0))
    every = for_all({name: natural()}, lambda **m: equal(f(m[name]), 0))
    assert verdict(equal(X[0], 0).with_facts(read.at()), inside, read, givens=givens) == "undecided"
    assert verdict(every, zero, givens=givens) == "undecided"
    at_one = zero.with_facts(every.at(**{name: one}))
    assert verdict(at_one, every, givens=givens) == "proved"
    some = exists(real(), name, lambda z: equal(z, one + 1), witness=one + 1)
    none = exists(real(), name, lambda z: equal(z, z + 1), witness=one)
    assert verdict(some, givens=givens) == "proved"
    assert verdict(none, givens=givens) == "undecided"


# certificates edited by hand


def certificate() -> dict[str, Any]:
    """Of two sums of one row, at an index that is given."""
    found = prove(
        lambda X, i: equal(xp.sum(X * X[i], axis=0), X[i] * xp.sum(X, axis=0)),
        X=real(n),
        i=index_below(n),
    )
    told: dict[str, Any] = json.loads(found.certificate().to_json())
    return told


def smuggled(told: Any, op: str, old: Any, new: Any) -> Any:
    """The certificate with other data in every term of that kind."""
    changed = json.loads(json.dumps(told))
    places = [term for term in changed["terms"] if term[0] == op and term[2] == old]
    assert places
    for term in places:
        term[2] = new
    return changed


def test_a_certificate_holds_what_is_open_in_its_steps_and_replays() -> None:
    told = certificate()
    opened = [term for term in told["terms"] if isinstance(term[2], dict) and "opened" in term[2]]
    assert opened
    assert Certificate.read(told).replay().verdict == "proved"
    assert told["format"] == "attnproof certificate 4"
    with pytest.raises(Refused, match="wanted 'attnproof certificate 4'"):
        Certificate.read({**told, "format": "attnproof certificate 2"})


def test_no_statement_of_a_certificate_speaks_of_what_is_open() -> None:
    told = certificate()
    opened = [t[2] for t in told["terms"] if isinstance(t[2], dict) and "opened" in t[2]]
    for data in (*opened, {"opened": ["i"]}):
        with pytest.raises(Refused, match=r"bound elsewhere|place|list index"):
            Certificate.read(smuggled(told, "index", "i", data)).replay()


def test_an_index_that_is_given_is_none_of_the_steps() -> None:
    """What is open in the steps, as what is given: no case is about every entry."""
    told = certificate()
    for term in list(told["terms"]):
        if isinstance(term[2], dict) and "opened" in term[2]:
            with pytest.raises(Refused):
                Certificate.read(smuggled(told, "index", term[2], "i")).replay()


def test_what_exists_is_not_open() -> None:
    found = prove(
        lambda x: exists(real(), "z", lambda z: equal(z, x + 1), witness=x + 1), x=real()
    ).certificate()
    told = json.loads(found.to_json())
    assert Certificate.read(told).replay().verdict == "proved"
    with pytest.raises(Refused, match="mentions an open index"):
        Certificate.read(smuggled(told, "var", ["z", "real"], [{"opened": ["z"]}, "real"])).replay()


def test_no_hypothesis_is_about_what_is_open() -> None:
    """X_j > 0 for the j of a case, as a hypothesis of the statement, would be X > 0."""
    found = prove(
        lambda X, i: greater(X[i], 0),
        X=real(n),
        i=index_below(n),
        assume=lambda X, i: [greater(X[i], 0)],
    )
    told = json.loads(found.certificate().to_json())
    with pytest.raises(Refused, match="bound elsewhere"):
        Certificate.read(smuggled(told, "index", "i", {"opened": ["i0"]})).replay()


def test_a_name_is_a_text() -> None:
    told = certificate()
    for name in ({"opened": ["i"]}, ["i"], None):
        changed = json.loads(json.dumps(told))
        changed["statement"]["givens"][1][0] = name
        with pytest.raises(Refused, match="cannot be read"):
            Certificate.read(changed)


def test_nothing_that_is_open_is_equal_to_a_name() -> None:
    for name in NAMES:
        opened = make("index", (n.term,), Opened((name,)))
        assert repr(opened) == name
        assert opened is not index_below(n).named(name).term
