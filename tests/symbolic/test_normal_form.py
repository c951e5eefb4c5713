"""The normal form does not look at names, nor at the order of sums and products."""

from __future__ import annotations

import dataclasses
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnproof.symbolic import Statement
from attnproof.symbolic.claim import Claim, Instance, Law, Link
from attnproof.symbolic.givens import Given
from attnproof.symbolic.normal_form.functions import MAX_EXPONENT
from attnproof.symbolic.normal_form.normaliser import Normaliser
from attnproof.symbolic.normal_form.polynomial import expand
from attnproof.symbolic.prove import decide
from attnproof.symbolic.scalars import ONE, add, entry, index, integer, mul, num, power, unary
from attnproof.symbolic.terms import Term, is_opened, make, substitute
from tests.symbolic.interpreter import Undefined, World, close_to
from tests.symbolic.spread import CATALOGUE, part
from tests.symbolic.vocabulary import (
    TWO,
    A,
    X,
    Y,
    a,
    b,
    chosen,
    i,
    inverse,
    j,
    k,
    n,
    q,
    s,
    same,
    total,
    up_to,
)

LEFT_OUT = {
    "block-rotations-compose-and-are-orthogonal": "slow",
    "multi-head-attention-is-equivariant": "slow",
    "mean-pooling-after-self-attention-is-invariant": "slow",
    "one-causal-layer-reads-a-prefix-as-a-bag": "slow",
    "rotary-attention-is-equivariant-when-tokens-carry-their-positions": "slow",
    "scores-of-the-distance-fall-as-it-grows": "a maximum is a choice where the orders are alike",
}


def has_advice(t: Statement) -> bool:
    """Whether it has laws or advice, which the prover applies to terms as they are written."""
    return bool(t.laws) or any(c.using or c.on or c.apart for c in t.claims.values())


class Renaming:
    """Other names for everything named, and another order of sums, products and equations."""

    def __init__(self, seed: int, shuffled: bool = True) -> None:
        self.random = random.Random(seed)
        self.names: dict[str, str] = {}
        self.shuffled = shuffled

    def name(self, old: str) -> str:
        if old not in self.names:
            letters = self.random.sample("abcdefghijklmnopqrstuvwxyzαβγδ", 5)
            self.names[old] = "".join(letters)
        return self.names[old]

    def length(self, t: Term) -> Term:
        """A renamed length in its sorted form, as givens have it."""
        return integer(self.renamed(t, keep=True))

    def renamed(self, t: Term, keep: bool = False) -> Term:
        shape = tuple(map(self.length, t.shape))
        if t.op in ("var", "index"):
            args, data = tuple(map(self.length, t.args)), t.data
            if is_opened(t):
                return make(t.op, args, data, shape)
            data = self.name(data) if t.op == "index" else (self.name(data[0]), data[1])
            return make(t.op, args, data, shape)
        if t.op == "size":
            return make("size", data=(self.name(t.data[0]), t.data[1]))
        args = tuple(
            self.length(x)
            if k == 0 and t.op in ("sum", "tabulate", "eye", "arange")
            else self.renamed(x, keep)
            for k, x in enumerate(t.args)
        )
        data = (self.name(t.data[0]), *t.data[1:]) if t.op == "call" else t.data
        if t.op in ("add", "mul", "maximum", "equal") and self.shuffled and not keep:
            args = tuple(self.random.sample(args, len(args)))
        return make(t.op, args, data, shape)

    def statement(self, old: Statement) -> Statement:
        givens = {self.name(name): self.given(g) for name, g in old.givens.items()}
        assume = tuple((self.renamed(x, True), self.renamed(y, True)) for x, y in old.assume)
        laws = tuple(Law(self.claim(law.claim)) for law in old.laws)
        claims = {says: self.claim(c) for says, c in old.claims.items()}
        return Statement(givens, claims, assume, laws)

    def given(self, old: Given) -> Given:
        return dataclasses.replace(
            old,
            shape=tuple(map(self.length, old.shape)),
            below=None if old.below is None else self.length(old.below),
            out=None if old.out is None else tuple(map(self.length, old.out)),
        )

    def claim(self, old: Claim) -> Claim:
        def new(t: Term | None) -> Term | None:
            return None if t is None else self.renamed(t)

        links = tuple(Link(link.reason, self.renamed(link.term)) for link in old.links)
        return Claim(
            old.relation,
            self.renamed(old.left),
            links[-1].term if old.compared == "=" else new(old.right),
            links,
            new(old.variable),
            new(old.witness),
            tuple(map(self.renamed, old.free_of)),
            old.says,
            tuple((self.name(name), self.given(g)) for name, g in old.variables),
            new(old.apart),
            old.by,
            new(old.on),
            tuple(map(self.instance, old.using)),
            old.inner,
        )

    def instance(self, old: Instance) -> Instance:
        values, indices = (tuple(map(self.renamed, ts)) for ts in (old.values, old.indices))
        return Instance(Law(self.claim(old.law.claim)), values, indices)


@pytest.mark.parametrize("name", part(1, LEFT_OUT))
def test_the_verdict_does_not_depend_on_names_or_order(name: str) -> None:
    theorem = CATALOGUE[name]
    statements = theorem.statement, theorem.control
    renaming = Renaming(len(name), shuffled=not any(map(has_advice, statements)))
    found = [decide(renaming.statement(t), refuting=False).verdict for t in statements]
    both = ["proved", "undecided"] if theorem.expected == "proved" else ["undecided", "proved"]
    assert found == both, renaming.names


@pytest.mark.parametrize("name", ["i0", "j0", "k0", "t", "•1", "»0", "t0_0", "?"])
def test_a_given_with_a_name_of_the_search_proves_nothing_false(name: str) -> None:
    theorem = CATALOGUE["equal-tokens-get-equal-outputs"]
    for old, names, expected in (
        (theorem.control, {"a": name, **{x: x for x in "Xbn"}}, "undecided"),
        (theorem.statement, {"n": name, "X": name + "X", "a": "a", "b": "b"}, "proved"),
    ):
        renaming = Renaming(0, shuffled=False)
        renaming.names = names
        assert decide(renaming.statement(old), refuting=False).verdict == expected


# single terms


C = make("less_equal", (j, i))
row = index("r", n)
atoms = st.sampled_from(
    [
        a,
        b,
        q,
        TWO,
        num(-1),
        entry(X, i),
        entry(Y, entry(s, i)),
        unary("exp", add(a, b)),
        unary("cos", add(a, mul(TWO, b))),
        unary("sin", mul(num(-1), a)),
        chosen(C, a, b),
        total(k, mul(k, a)),
        total(row, mul(entry(X, row), entry(Y, row))),
        same(i, j),
        total(row, mul(same(row, i), entry(A, row, j))),
        up_to(i, j),
        unary("abs", add(i, mul(num(-1), j))),
        total(row, entry(X, entry(inverse, row))),
        power(q, -1),
        total(row, total(j, mul(entry(A, row, j), entry(A, j, row)))),
    ]
)


def larger(inner: st.SearchStrategy[Term]) -> st.SearchStrategy[Term]:
    several = st.lists(inner, min_size=2, max_size=3)
    sums, products = several.map(lambda x: add(*x)), several.map(lambda x: mul(*x))
    summed = inner.map(lambda x: total(row, mul(x, entry(X, row))))
    return sums | products | summed


numbers = st.recursive(atoms, larger, max_leaves=4)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(numbers, st.integers(0, 1000))
def test_a_normal_form_has_the_value_of_its_term(t: Term, seed: int) -> None:
    normal = Normaliser()(t)
    assert normal.left is t
    assert Normaliser()(normal.right).right is normal.right
    world = World(seed)
    try:
        assert close_to(world(t), world(normal.right))
    except Undefined:
        pytest.fail(f"a finite term without a value: {t!r}")


@settings(max_examples=40, deadline=None, derandomize=True)
@given(numbers, st.integers(0, 1000))
def test_another_order_has_the_same_normal_form(t: Term, seed: int) -> None:
    shuffle = Renaming(seed)
    shuffle.names = {name: name for name in ("n", "m", *"XYAabqsijkr")}
    assert Normaliser()(shuffle.renamed(t)).right is Normaliser()(t).right


@settings(max_examples=30, deadline=None, derandomize=True)
@given(numbers, st.integers(0, 1000))
def test_names_may_be_changed_before_or_after(t: Term, seed: int) -> None:
    """Equal terms stay equal and different ones different when everything is renamed."""
    renaming = Renaming(seed)
    same_ = Normaliser()(add(t, ONE)).right
    for other, equal in ((add(ONE, t), True), (add(t, TWO), False)):
        renamed = [Normaliser()(renaming.renamed(x)).right for x in (add(t, ONE), other)]
        assert (renamed[0] is renamed[1]) is equal is (Normaliser()(other).right is same_)


def test_two_different_terms_keep_different_normal_forms() -> None:
    pairs = [
        (entry(X, i), entry(X, j)),
        (entry(X, entry(s, i)), entry(X, entry(inverse, i))),
        (total(row, mul(entry(X, row), row)), total(row, entry(X, row))),
        (
            total(row, total(j, mul(entry(A, row, j), entry(A, j, row)))),
            total(row, total(j, power(entry(A, row, j), 2))),
        ),
        (power(add(a, b), -1), add(power(a, -1), power(b, -1))),
        (mul(a, power(a, -1)), ONE),
        (up_to(i, j), up_to(j, i)),
        (unary("abs", a), a),
    ]
    for x, y in pairs:
        assert Normaliser()(x).right is not Normaliser()(y).right
    assert substitute(pairs[0][0], i, j) is pairs[0][1]


@pytest.mark.parametrize("fill", [-(10**4), -(10**9), -(2**127)])
def test_a_number_for_minus_infinity_is_not_multiplied_out(fill: int) -> None:
    """exp(−10⁹·x) as so many factors took all of the time of a proof."""
    x = mul(num(fill), a)
    found = Normaliser()(unary("exp", x)).right
    assert found is (unary("exp", x) if fill < -MAX_EXPONENT else power(unary("exp", a), fill))
    assert expand(power(unary("exp", a), fill)) == {((unary("exp", a), fill),): 1}
    assert expand(power(mul(num(-1), a), -fill - 1)) == {((a, -fill - 1),): -1}


def test_a_sum_that_may_be_0_is_not_moved_back_and_forth() -> None:
    """Σ_i Σ_j A[i,j]/Σ_j A[i,j] was taken apart and put together again without end."""
    whole = total(j, entry(A, row, j))
    once = Normaliser()(total(row, mul(whole, power(whole, -1)))).right
    assert Normaliser()(once).right is once
    positive_ = total(j, unary("exp", entry(A, row, j)))
    assert Normaliser()(total(row, mul(positive_, power(positive_, -1)))).right is n


@pytest.mark.parametrize(
    "x", [add(num(-1), unary("exp", num(-1))), add(a, power(unary("exp", b), -1))]
)
def test_an_inverse_of_an_inverse_is_multiplied_out(x: Term) -> None:
    once = Normaliser()(power(power(x, -1), -1)).right
    assert once is Normaliser()(x).right
    assert Normaliser()(once).right is once
