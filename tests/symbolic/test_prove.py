"""The prover: what it proves, what it leaves undecided, and what it says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from attnproof.symbolic import (
    Array,
    Claim,
    Statement,
    all_positive,
    boolean,
    chain,
    equal,
    exists,
    frequencies,
    function,
    iterate,
    orthogonal,
    permutation,
    positions,
    positive,
    real,
    sizes,
)
from attnproof.symbolic import namespace as xp
from attnproof.symbolic.derive import split_options
from attnproof.symbolic.divisors import conditions
from attnproof.symbolic.givens import Given
from attnproof.symbolic.normal_form.sums import written_out
from attnproof.symbolic.prove import decide
from attnproof.symbolic.scalars import number_of
from attnproof.theorems.definitions.attention import attention, masked_attention, softmax
from attnproof.theorems.definitions.positions import sine_only, sinusoidal
from attnproof.theorems.definitions.rotary import block_rotation

n, m, ell, d, B = sizes("n m ell d B")
GIVEN: dict[str, Given] = {
    "Q": real(n, ell),
    "K": real(m, ell),
    "V": real(m, d),
    "x": real(n),
    "y": real(n),
    "a": real(),
    "b": real(),
    "p": positive(n),
    "g": orthogonal(n),
    "h": real(n, n),
    "s": permutation(n),
    "t": permutation(n),
    "M": boolean(n, m),
    "f": function(2, out=None, traits=("equivariant",)),
    "u": positions(n),
    "k": positions(),
    "w": frequencies(B),
}
A = {name: given.named(name) for name, given in GIVEN.items()}
Q, K, V, x, y, a, b = (A[name] for name in "QKVxyab")


def verdict(claim: Claim) -> str:
    return decide(Statement(GIVEN, {"": claim}), refuting=False).verdict


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((a + b) ** 2, a * a + 2 * a * b + b * b),
        (A["g"] @ A["g"].mT @ x, x),
        (A["g"].mT @ (A["g"] @ x), x),
        (x[A["s"]] @ y[A["s"]], x @ y),
        ((x[A["s"]] * y[A["t"]])[A["s"]], x[A["s"]][A["s"]] * y[A["t"]][A["s"]]),
        (A["p"] / A["p"], 0 * x + 1),
        ((x / A["p"]) * A["p"], x),
        (softmax(Q @ K.mT) @ V + 0, softmax(Q @ K.mT) @ V),
        (sinusoidal(A["u"] + 0, A["w"]), sinusoidal(A["u"], A["w"])),
    ],
)
def test_true_equations_are_proved(left: Array, right: Array) -> None:
    assert verdict(equal(left, right)) == "proved"


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((a + b) ** 2, a * a + b * b),
        (A["h"] @ A["h"].mT @ x, x),
        (x[A["s"]] @ y[A["t"]], x @ y),
        (x[A["s"]], x),
        (x / x, 0 * x + 1),
        (x[A["s"]][A["t"]], x[A["t"]][A["s"]]),
        (attention(Q, K, V), attention(Q, K, V) * 2),
        (masked_attention(Q, K, V, A["M"]), attention(Q, K, V)),
        (a, b),
        (sinusoidal(A["u"] + A["k"], A["w"]), sinusoidal(A["u"], A["w"])),
    ],
)
def test_false_equations_are_not_proved(left: Array, right: Array) -> None:
    assert verdict(equal(left, right)) == "undecided"


def test_half_of_an_orthogonal_matrix_is_not_orthogonal() -> None:
    (k,) = sizes("k")
    g = orthogonal(2 * k).named("g")
    z = real(2 * k).named("z")
    given = {"g": orthogonal(2 * k), "z": real(2 * k)}
    whole = Statement(given, {"": equal(g.mT @ (g @ z), z)})
    half = Statement(given, {"": equal(g[:k, :].mT @ (g[:k, :] @ z), z)})
    assert decide(whole, refuting=False).verdict == "proved"
    assert decide(half, refuting=False).verdict == "undecided"


def test_a_broken_link_of_a_chain_is_named() -> None:
    claim = chain(
        x[A["s"]] @ y[A["s"]],
        ("a step that is true", y[A["s"]] @ x[A["s"]]),
        ("a step that is false", y @ x[A["s"]]),
        ("false again", x @ y),
    )
    decision = decide(Statement(GIVEN, {"": claim}), refuting=False).claims[0]
    assert [link.proved for link in decision.links] == [True, False, False]
    assert decision.verdict == "undecided"
    assert "the step 'a step that is false'" in decision.why
    assert "left:" in decision.why
    assert "right:" in decision.why


def test_an_assumption_that_is_not_granted_closes_no_proof() -> None:
    claim = equal(x[A["s"]] @ y[A["s"]], x @ y)
    given = {name: real(n) for name in ("x", "y")} | {"s": Given("index map", below=n.term)}
    decision = decide(Statement(given, {"": claim}), refuting=False).claims[0]
    assert decision.verdict == "undecided"
    assert "not granted: injective s; permutation s" in decision.why


def test_assumptions_are_told() -> None:
    decision = decide(Statement(GIVEN, {"": equal(A["g"].mT @ (A["g"] @ x[A["s"]]), x[A["s"]])}))
    assert decision.claims[0].assumptions == ("g is orthogonal",)
    assert decision.claims[0].readings == ()


def test_a_condition_on_the_reading_is_no_assumption() -> None:
    claim = equal(x / y + x / y, 2 * x / y)
    (decision,) = decide(Statement(GIVEN, {"": claim})).claims
    assert decision.verdict == "proved"
    assert decision.assumptions == ()
    assert decision.readings == ("y[i] ≠ 0",)


def test_positive_entries() -> None:
    assert verdict(all_positive(softmax(Q @ K.mT))) == "proved"
    assert verdict(all_positive(x)) == "undecided"
    assert verdict(all_positive(x * x)) == "undecided"
    assert verdict(all_positive(A["p"] * A["p"])) == "proved"


def test_existence_needs_a_witness_that_does_not_look() -> None:
    def shift(M: Array) -> Claim:
        return equal(sinusoidal(A["u"] + A["k"], A["w"]), sinusoidal(A["u"], A["w"]) @ M.mT)

    kind, right = real(2 * B, 2 * B), block_rotation(-A["k"] * A["w"])
    wrong = block_rotation(A["k"] * A["w"])
    free_of = (A["u"],)
    assert verdict(exists(kind, "M", shift, witness=right, free_of=free_of)) == "proved"
    assert verdict(exists(kind, "M", shift, witness=wrong, free_of=free_of)) == "undecided"
    assert verdict(exists(kind, "M", shift, free_of=free_of)) == "undecided"
    looking = exists(kind, "M", shift, witness=right, free_of=(A["u"], A["k"]))
    assert verdict(looking) == "undecided"
    sines = sine_only(A["u"], A["w"])
    peeking = exists(real(n, B), "E", lambda E: equal(sines, E), witness=sines, free_of=(A["u"],))
    assert verdict(peeking) == "undecided"


def test_induction_on_depth() -> None:
    (L,) = sizes("L", "layers")
    X = real(n, ell).named("X")
    given = {**GIVEN, "X": real(n, ell), "P": real(n, ell)}
    P = given["P"].named("P")
    f, s = A["f"], A["s"]

    def stack(start: Array, layer: Callable[[Array, Array], Any]) -> Array:
        made = iterate(L, start, layer)
        assert isinstance(made, Array)
        return made

    def residual(_: Array, Y: Array) -> Any:
        return Y + f(Y)

    def with_table(_: Array, Y: Array) -> Any:
        return Y + f(Y) + P

    good = equal(stack(X[s], residual), stack(X, residual)[s])
    bad = equal(stack(X[s], with_table), stack(X, with_table)[s])
    no_base = equal(stack(X, residual), stack(X, residual)[s])
    for claim, expected in ((good, "proved"), (bad, "undecided"), (no_base, "undecided")):
        assert decide(Statement(given, {"": claim}), refuting=False).verdict == expected


def told(array: Array) -> list[str]:
    return [condition.phrase for condition in conditions(array.term)]


def test_divisors_that_may_vanish_are_listed() -> None:
    assert told(attention(Q, K, V)) == []
    (mask,) = told(masked_attention(Q, K, V, A["M"]))
    assert mask.startswith("some term of Σ_j")
    assert told(x / y) == ["y[i] ≠ 0"]


def test_roots_and_logarithms_are_listed() -> None:
    assert told(x**0.5) == ["x[i] ≥ 0"]
    assert told((x * x) ** 0.5) == []
    xp = x.__array_namespace__()
    assert told(xp.log(x)) == ["x[i] > 0"]
    assert told(xp.log(xp.exp(x))) == []


def test_divisors_inside_a_stack_of_layers_are_listed() -> None:
    (L,) = sizes("L", "layers")
    found = told(iterate(L, x, lambda _, Y: x / Y))
    assert found == ["the state[i] ≠ 0"]


def test_a_statement_that_divides_by_zero_everywhere_is_not_proved() -> None:
    assert verdict(equal(1 / (x - x), 0 * x)) == "undecided"
    assert verdict(equal((x - x) / (x - x), 0 * x)) == "undecided"
    assert verdict(equal(x / y - x / y, 0 * x)) == "proved"


def test_habits_of_other_libraries_are_told_what_to_write() -> None:
    import torch

    with pytest.raises(AttributeError, match=r"xp\.sum"):
        x.sum()
    with pytest.raises(AttributeError, match="no method 'softmax'"):
        x.softmax()
    with pytest.raises(TypeError, match=r"torch\.softmax got a symbolic array"):
        torch.softmax(x, dim=-1)


def test_an_axis_of_one_part_is_not_split_again() -> None:
    given = {"x": real(n * m)}
    x = given["x"].named("x")
    same = equal(xp.reshape(x, (n, 1, m))[:, 0, :] / 2, xp.reshape(x / 2, (n, m)))
    assert decide(Statement(given, {"": same}), refuting=False).verdict == "proved"
    assert list(split_options(xp.reshape(x, (n, 1, m)).term)[0].values()) == [("digits", m.term)]


@pytest.mark.parametrize(("length", "parts"), [(64, []), (63, [("digits", 3)])])
def test_an_axis_is_split_into_digits_that_leave_no_rest(
    length: int, parts: list[tuple[str, int]]
) -> None:
    with written_out(1):
        (split,) = split_options(real(length).named("x")[::3].term)
    assert [(kind, int(number_of(size) or 0)) for kind, size in split.values()] == parts
