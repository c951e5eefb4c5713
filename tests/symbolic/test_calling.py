"""A public function that is called wrongly says what it wants; it is not a fault of attnproof."""

# ruff: noqa: ARG005 (hypotheses take givens, whether they look at them or not)

from __future__ import annotations

import pickle
from collections.abc import Callable
from copy import copy
from functools import partial
from typing import Any

import numpy as np
import pytest

from attnproof.symbolic import claim, givens, prove, statement
from attnproof.symbolic.claim import Claim
from attnproof.symbolic.faults import fault_of
from attnproof.symbolic.givens import natural, real, sizes
from attnproof.symbolic.statement import Theorem
from attnproof.theorems.definitions import attention as attentions
from tests.cases import each

(n,) = sizes("n")
X = real(n).named("X")
wrongly: Any = claim  # called as no type checker would let it be
equal, chain, iterate = wrongly.equal, wrongly.chain, wrongly.iterate
function: Any = givens.function
build: Any = statement.theorem
attention: Any = attentions.attention
deciding: Any = prove.decide
unnamed: Any = real(n)
POSITIVE = ("positive",)


def stated(assume: Any = None, returns: Any = None) -> object:
    """The statement of a theorem whose hypotheses or conclusions are these."""

    def body(X: Any) -> Any:
        return equal(X, X) if returns is None else returns

    return Theorem("t", {"X": real(n)}, body, assume=assume).statement


NO_TRAITS: list[Any] = [("equivarant",), ("equivariant", "even"), "equivariant"]
CALLS: list[tuple[str, Callable[..., Any]]] = [
    ("equal(left, right): too many", lambda: equal(X, X, X)),
    ("attention(query, key, value): missing", lambda: attention(X)),
    ("a chain has steps", lambda: chain(X)),
    ("a pair (reason, next)", lambda: chain(X, X)),
    ("a pair (reason, next)", lambda: chain(X, ("r", X, X))),
    ("a pair (reason, next)", lambda: chain(X, (X, "r"))),
    ("function of one index", lambda: wrongly.rows(n, X)),
    ("takes 0 positional", lambda: wrongly.rows(n, lambda: X)),
    ("iterate(depth, start, f)", lambda: iterate(lambda t, s: s, X, n)),
    ("whole number of layers", lambda: iterate(2.5, X, lambda t, s: s)),
    ("such as real(n), and its name", lambda: wrongly.exists(3, "z", lambda z: equal(z, X))),
    ("takes 0 positional", lambda: wrongly.exists(real(n), "z", lambda: equal(X, X))),
    ("variables by name", lambda: wrongly.for_all(["m"], lambda m: equal(m, m))),
    ("what m may be", lambda: wrongly.for_all({"m": 3}, lambda m: equal(m, m))),
    ("keyword argument 'm'", lambda: wrongly.for_all({"m": natural()}, lambda k: equal(k, k))),
    ("natural number, such as m", lambda: equal(X, X).by_induction("m")),
    ("takes laws", lambda: equal(X, X).with_facts(3)),
    ("the number of axes", lambda: function((), ())),
    ("given['X'] wants a given for X", lambda: build("t", given={"X": 3})),
    ("a tuple of texts", lambda: build("t", given={}, sources="me")),
    ("a function that returns a list", lambda: build("t", given={}, assume=[])),
    ("`assume` asks for Y", lambda: stated(assume=lambda Y: [])),
    ("`assume` must return a list", lambda: stated(assume=lambda X: None)),
    ("a hypothesis is a pair", lambda: stated(assume=lambda X: [1])),
    ("claims nothing", lambda: stated(returns={})),
    ("wants a text as its key", lambda: stated(returns={1: equal(X, X)})),
    ("until it has a name", lambda: unnamed + unnamed),
    ("until it has a name", lambda: 2 * unnamed),
    ("until it has a name", lambda: X + unnamed),
    ("until it has a name", lambda: np.ones(3) @ unnamed),
    ("until it has a name", lambda: -unnamed),
    ("until it has a name", lambda: unnamed < 1),
    ("until it has a name", lambda: unnamed[0]),
    ("until it has a name", lambda: list(unnamed)),
    ("until it has a name", lambda: equal(unnamed, unnamed)),
    ("until it has a name", lambda: attentions.softmax(unnamed)),
    (
        "a 'real' given has the traits (); got ('positive',)",
        lambda: givens.Given("real", traits=POSITIVE),
    ),
    *(
        (f"the traits (), ('equivariant',), ('invariant',); got {traits!r}", call)
        for traits in NO_TRAITS
        for call in [partial(givens.function, 1, traits=traits)]
    ),
    ("write attnproof.prove(f, X=real(n))", lambda: deciding(lambda X: equal(X, X))),
]


@each(CALLS)
def test_a_wrong_call_is_its_authors_and_says_what_is_wanted(
    says: str, call: Callable[..., Any]
) -> None:
    with pytest.raises(TypeError) as caught:
        call()
    assert says in str(caught.value)
    assert fault_of(caught.value) is None


def test_a_given_has_the_attributes_of_no_array() -> None:
    with pytest.raises(AttributeError, match=r"mT: a given .* is not an array until it has"):
        _ = unnamed.mT
    assert not hasattr(unnamed, "__array_interface__")
    assert copy(unnamed) == unnamed == pickle.loads(pickle.dumps(unnamed))


def test_what_is_right_goes_through() -> None:
    assert isinstance(chain(X, ("", X)), Claim)
    assert stated(assume=lambda X: [(X, X)]) is not None
    theorem = Theorem("t", {"X": real(n)}, lambda X: equal(X + X, 2 * X))
    assert prove.decide(theorem).verdict == prove.decide(theorem.statement).verdict == "proved"
