"""The gate: code that says something else than its term is misread, and what is right is not."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, count
from typing import Any

import numpy as np
import pytest
from array_api_compat import array_namespace

from attnproof.symbolic.array import Array
from attnproof.symbolic.claim import (
    all_positive,
    at_least,
    chain,
    differ,
    equal,
    exists,
    for_all,
    greater,
    iterate,
    rows,
)
from attnproof.symbolic.comparison import Draw, NotRun, TermValues, crossing_sizes, smooth
from attnproof.symbolic.gate import Misreading, misreading
from attnproof.symbolic.givens import (
    boolean,
    function,
    index_below,
    index_map,
    injection,
    natural,
    nonnegative,
    orthogonal,
    permutation,
    positive,
    probability_space,
    real,
    sizes,
    standard,
)
from attnproof.symbolic.prove import decide
from attnproof.symbolic.statement import Statement, theorem
from attnproof.symbolic.terms import make
from attnproof.theorem_runs.catalogue import load_catalogue
from attnproof.theorems.definitions.attention import masked_attention, softmax
from tests.cases import each

n, m = sizes("n m")


def stated(body: Callable[..., Any], assume: Any = None, **given: Any) -> Statement:
    return theorem("?", given=given or {"X": real(n)}, assume=assume)(body).statement


def gate(body: Callable[..., Any], assume: Any = None, **given: Any) -> Misreading | None:
    return misreading(stated(body, assume, **given))


def here(x: Any) -> bool:
    """Whether this is the run on numpy, for code that is meant to say something else there."""
    return not isinstance(x, Array)


EVERY = list(load_catalogue().entries)


@pytest.mark.parametrize("entry", EVERY[::9], ids=lambda entry: entry.id)
def test_statements_of_the_catalogue_are_read_rightly(entry: Any) -> None:
    for statement in entry.statements:
        assert misreading(statement) is None


RIGHT: dict[str, Statement] = {
    "slices": stated(lambda X: equal(X[1:] - X[:n], X[1:]), X=real(n + 1)),
    "no key is seen": stated(
        lambda S, M: equal(
            softmax(array_namespace(S).where(M, S, -array_namespace(S).inf)), softmax(S)
        ),
        S=real(n, m),
        M=boolean(n, m),
    ),
    "masked attention": stated(
        lambda Q, K, V, M: equal(masked_attention(Q, K, V, M), Q @ K.mT @ V),
        Q=real(n, m),
        K=real(n, m),
        V=real(n, m),
        M=boolean(n, n),
    ),
    "divided by 0": stated(lambda X, y: equal(X / y / (2 * X), X // (y * y)), X=real(n), y=real()),
    "a stack of a natural depth": stated(
        lambda X, k: equal(iterate(k, X, lambda t, Y: Y * 2 + t), X), X=real(n), k=natural()
    ),
    "rows": stated(lambda X: equal(rows(n, lambda i: X[i] * i), X)),
    "maps": stated(
        lambda X, s, f, g, i: {"a": equal(X[s], X), "b": equal(X[f][g], X[i] * X[:m][g] * 0)},
        X=real(n + m),
        s=permutation(n + m),
        f=index_map(m, n + m),
        g=injection(m, m),
        i=index_below(n + m),
    ),
    "a function": stated(
        lambda X, f, g: {"a": equal(f(X, X[0]), X), "b": all_positive(g(X[:, None] + X))},
        X=real(n),
        f=function(1, 0, out=None),
        g=function(1, out=()),
    ),
    "powers": stated(
        lambda p, q: equal(p**q + q**3 + p**-2, 2**q + p**0.5), p=positive(n), q=real(n)
    ),
    "kinds": stated(
        lambda g, s, z: {
            "a": at_least(s, 0),
            "b": equal(g @ g.mT, g),
            "c": equal(array_namespace(z).sum(z, axis=0), array_namespace(z).ones((n,))),
        },
        g=orthogonal(n),
        s=nonnegative(n),
        z=standard(probability_space("Ω"), n),
    ),
    "integers divided by 0": stated(
        lambda k, j, x: {"a": equal(-k // j, k), "b": equal(x + (k - 2) % j, x)},
        k=natural(),
        j=natural(),
        x=real(n),
    ),
    "integers that wrap round": stated(
        lambda k, x: {"a": equal(2**k, x * 62), "b": equal((k + 1) ** 20, x)},
        k=natural(),
        x=real(),
    ),
    "binders": stated(
        lambda X: {
            "all": for_all({"y": real(n), "k": natural()}, lambda y, k: equal(X + k * y, X)),
            "some": exists(real(n), "z", lambda z: equal(z, X), witness=X, free_of=(X[0],)),
            "both": for_all(
                {"w": real()}, lambda w: exists(real(), "z", lambda z: equal(z + w, 0), witness=-w)
            ),
        }
    ),
    "hypotheses": stated(
        lambda X: greater(X, 0, ("", X + 0)),
        lambda X: [
            (X[0], 1),
            at_least(X, 0),
            differ(X[0], 2),
            for_all({"y": real()}, lambda y: equal(X[0] * y, y)),
        ],
        X=real(n),
    ),
}


@each(RIGHT)
def test_what_is_right_is_not_misread(name: str) -> None:
    found = misreading(RIGHT[name])
    assert found is None, found.text


def body_of(symbolic: Any, numpy: Any) -> Callable[..., Any]:
    """Code that claims one thing on symbolic arrays and another on numpy."""
    return lambda X: (numpy if here(X) else symbolic)(X)


def at_size(X: Any, size: int) -> bool:
    return here(X) and len(X) == size


WRONG: dict[str, tuple[Callable[..., Any], str]] = {
    "a side": (body_of(lambda X: equal(X, X), lambda X: equal(X, X + 1)), "right side"),
    "one entry": (
        body_of(lambda X: equal(X, X), lambda X: equal(X - (np.arange(len(X)) == 2), X)),
        "left side",
    ),
    "where it is not a number": (
        body_of(lambda X: equal(X, X), lambda X: equal(np.where(X == 0, np.nan, X), X)),
        "left side",
    ),
    "infinite": (
        body_of(lambda X: equal(X, X), lambda X: equal(X, np.where(X == 0, np.inf, X))),
        "right side",
    ),
    "negative numbers alone": (
        body_of(lambda X: equal(abs(X), X), lambda X: equal(X * (X > 0) - X * (X < -2), X)),
        "left side",
    ),
    "shape": (body_of(lambda X: equal(X[0], 0), lambda X: equal(X, 0)), "left side"),
    "relation": (body_of(lambda X: at_least(X, 0), lambda X: greater(X, 0)), "the relation"),
    "a step": (
        body_of(lambda X: chain(X, ("", X), ("", X)), lambda X: chain(X, ("", 2 * X), ("", X))),
        "step 1",
    ),
    "a step more": (
        body_of(lambda X: chain(X, ("", X)), lambda X: chain(X, ("", X), ("", X))),
        "step 2",
    ),
    "the last number": (
        body_of(lambda X: differ(X[0], 1), lambda X: differ(X[0], 1, X[0] + 1)),
        "last number",
    ),
    "the relation inside": (
        body_of(
            lambda X: exists(real(), "z", lambda z: equal(z, X[0])),
            lambda X: exists(real(), "z", lambda z: at_least(z, X[0])),
        ),
        "the relation inside of exists",
    ),
    "the witness": (
        body_of(
            lambda X: exists(real(), "z", lambda z: equal(z, X[0]), witness=X[0]),
            lambda X: exists(real(), "z", lambda z: equal(z, X[0]), witness=X[-1] + 1),
        ),
        "witness",
    ),
    "what it is free of": (
        body_of(
            lambda X: exists(real(), "z", lambda z: equal(z, 0 * X[0]), free_of=(X,)),
            lambda X: exists(real(), "z", lambda z: equal(z, 0 * X[0])),
        ),
        "array 1 of free_of",
    ),
    "no variables": (
        body_of(
            lambda X: equal(X, X), lambda X: for_all({"y": real()}, lambda y: equal(X, X + 0 * y))
        ),
        "the variables",
    ),
    "a length beyond those that cross": (
        body_of(lambda X: equal(X, X), lambda X: equal(X, X + (len(X) > 600))),
        "right side",
    ),
    "one length": (
        body_of(lambda X: equal(X, X), lambda X: equal(X, X + at_size(X, 217))),
        "right side",
    ),
    "what it was given, written over": (
        body_of(lambda X: equal(X, X), lambda X: equal(X.__iadd__(1), X)),
        "left side",
    ),
    "one value": (
        body_of(lambda X: equal(X, X), lambda X: equal(X, X + (X == 37.5))),
        "right side",
    ),
}


@each(WRONG)
def test_code_that_says_something_else_is_misread(name: str) -> None:
    body, part = WRONG[name]
    statement = stated(body)
    found = misreading(statement)
    assert found is not None
    assert found.part == part
    decision = decide(statement)
    assert decision.verdict == "misread"
    assert decision.claims[0].why == found.text


def test_a_hypothesis_is_compared_too() -> None:
    true, more = (lambda X: [(X, X)]), (lambda X: [(X, X + int(here(X)))])
    assert gate(lambda X: equal(X, X), true, X=real(n)) is None
    found = gate(lambda X: equal(X, X), more, X=real(n))
    assert found is not None
    assert found.part == "hypothesis 1, right side"
    with pytest.raises(NotRun, match="the code assumes 0 hypotheses on numpy"):
        gate(lambda X: equal(X, X), lambda X: [] if here(X) else [(X, X)], X=real(n))


def test_conclusions_must_be_the_same_ones() -> None:
    with pytest.raises(NotRun, match=r"claims \['b'\] on numpy and \['a'\] on symbolic arrays"):
        gate(lambda X: {"b" if here(X) else "a": equal(X, X)})


def joined(*parts: Any) -> Any:
    return array_namespace(*parts).concat(parts)


def exp(x: Any) -> Any:
    return array_namespace(x).exp(x)


def log(x: Any) -> Any:
    return array_namespace(x).log(x)


NOWHERE: dict[str, tuple[Callable[..., Any], Any, str]] = {
    "no number": (lambda X: equal(0 * X, log(-X * X - 1) + int(here(X))), None, "right side"),
    "infinite": (lambda X: equal(log(0 * X) * (1 + int(here(X))), X), None, "left side"),
    "no entry": (lambda X: equal(X[n - 1 :][1:], X[n - 1 :][1:] + int(here(X))), None, "left side"),
    "a hypothesis": (
        lambda X: equal(X, X),
        lambda X: [(log(-X * X - 1) + int(here(X)), X)],
        "hypothesis 1, left side",
    ),
    "one entry of many": (
        lambda X: equal(joined(X, log(-X * X - 1) + int(here(X))), joined(X, X)),
        None,
        "left side",
    ),
    "hidden by rounding": (
        lambda X: equal(X + (X * 1e12 - X * 1e12) + 0 * exp(40 + 0 * X) + int(here(X)), X + 0),
        None,
        "left side",
    ),
    "a step": (lambda X: chain(X, ("", log(-X * X - 1)), ("", X)), None, "step 1"),
}


@pytest.mark.parametrize("name", NOWHERE)
def test_a_side_without_a_finite_value_is_compared_nowhere(name: str) -> None:
    body, assume, part = NOWHERE[name]
    statement = stated(body, assume)
    told = rf"^no finite value was found: compared nowhere \({part}"
    with pytest.raises(NotRun, match=told):
        decide(statement)


@pytest.mark.parametrize(("more", "wrong"), [(0, False), (1, True)])
def test_values_that_obey_the_hypotheses_are_tried_where_no_other_is_a_number(
    more: int, wrong: bool
) -> None:
    found = gate(
        lambda x, y: equal(log(y - 50 * abs(x)) + more * int(here(x)), log(y - 50 * abs(x))),
        lambda x, y: [(y, 90 * abs(x) + 1)],
        x=real(),
        y=real(),
    )
    assert (found is not None) == wrong


def test_values_that_obey_the_hypotheses_are_among_those_that_are_compared() -> None:
    def body(X: Any, Y: Any) -> Any:
        return equal(X, X + int(here(X) and np.allclose(X @ Y, np.eye(len(X)))))

    square = {"X": real(n, n), "Y": real(n, n)}
    found = gate(body, lambda X, Y: [(X @ Y, array_namespace(X).eye(n))], **square)
    assert found is not None


def test_natural_numbers_near_those_of_the_code_are_tried() -> None:
    found = gate(lambda k: equal(k, k + int(here(k) and k > 6)), k=natural())
    assert found is not None
    assert "k = 7" in found.text


def test_sizes_at_which_no_slice_stays_inside_are_no_agreement() -> None:
    statement = stated(
        lambda X: equal(X[: n - 10**7], X[: n - 10**7]), lambda: [at_least(n, 10**7)]
    )
    with pytest.raises(NotRun, match="the code was not run"):
        misreading(statement)


def test_two_variables_of_one_name_are_told_apart() -> None:
    def body(x: Any) -> Any:
        return for_all(
            {"z": real()},
            lambda z: exists(real(), "z", lambda w: equal(0 * w, z + 0 * x), witness=0),
        )

    statement = stated(body, x=real())
    claim = statement.claims[""]
    if claim.variable is not None and claim.variable.data[0] == "z":  # the two are one term
        assert decide(statement).verdict == "misread"
    assert decide(statement).verdict != "proved"


def test_the_text_has_inputs_and_both_values() -> None:
    found = gate(lambda X, f: equal(f(X) + int(here(X)), X), X=real(n), f=function(0))
    assert found is not None
    assert (found.sizes, found.place) == ({"n": 1}, (0,))
    told = f"left side at [0]: the code gives {float(found.term) + 1:.9g} on numpy, its term"
    assert found.text.startswith(told)
    assert found.text.endswith("n = 1, X = [1.75], f = a smooth function")


def test_code_that_does_not_run_on_numpy_is_no_agreement() -> None:
    statement = stated(lambda X: equal(X if not here(X) else X.nothing, X))
    with pytest.raises(NotRun, match=r"does not run on numpy arrays \(n = 1, X = .*AttributeError"):
        decide(statement)


def test_a_side_that_stays_symbolic_is_no_agreement() -> None:
    outside = real(n).named("X") * 2
    with pytest.raises(NotRun, match="2·X, a symbolic array that was made outside of it"):
        gate(lambda X: equal(X, outside), X=real(n))
    with pytest.raises(NotRun, match="entries that are not real numbers when run on numpy"):
        gate(lambda X: equal(X, real(n).named("X") if not here(X) else X * 1j), X=real(n))


def test_code_that_keeps_something_from_call_to_call_is_refused() -> None:
    calls, draw = count(1), np.random.default_rng
    with pytest.raises(TypeError, match="keeps state between calls"):
        stated(lambda X: equal(X * next(calls), X))
    with pytest.raises(TypeError, match="returns another statement when it is run again"):
        stated(lambda X: equal(X * int(draw().integers(10**9)), X))


def test_a_statement_of_terms_has_no_code() -> None:
    made = RIGHT["rows"]
    bare = Statement(made.givens, made.claims, made.assume, made.laws)
    assert misreading(bare) is None
    assert misreading(made) is None
    assert made.code is not None


def test_a_slice_that_starts_below_0_stands_for_nothing() -> None:
    start, count = (n - m).term, m.term
    entry = make("slice", (real(n).named("X").term, start), (0, 1), (count,))
    read = TermValues(np, {"n": 1, "m": 3}, {"X": np.ones(1)})
    with pytest.raises(
        LookupError, match="no value: it reads entries -2 to 0 of an axis of length 1"
    ):
        read(entry)


@pytest.mark.parametrize("names", ["a", "ab", "abc", "abcde", "abcdefgh"])
def test_sizes_cross_each_other_in_every_order(names: str) -> None:
    found = crossing_sizes(names)
    assert len(found) >= 8
    for a, b in combinations(names, 2):
        signs = {np.sign(sizes[a] - sizes[b]) for sizes in found}
        assert signs == {-1, 0, 1}
        assert any(sizes[a] == 1 < sizes[b] for sizes in found)
        assert any(sizes[a] > 1 and sizes[b] > 1 and sizes[a] != sizes[b] for sizes in found)
    assert all(1 in {sizes[a] for sizes in found} for a in names)
    assert crossing_sizes("") == [{}] * len(crossing_sizes(""))


def test_values_hold_zeros_ties_and_masks_that_hide_all() -> None:
    drawn = [Draw({"n": 3}, turn)("X", real(n)) for turn in range(8)]
    assert any((x == 0).all() for x in drawn)
    assert any(len(set(x)) == 1 and x[0] for x in drawn)
    assert any((x < 0).any() for x in drawn)
    assert any((x > 0).all() for x in drawn)
    masks = [Draw({"n": 3}, turn)("M", boolean(n, n)) for turn in range(8)]
    assert {bool(mask.all()) for mask in masks} == {True, False}
    assert any(not mask.any() for mask in masks)
    assert any(mask.any() and not mask.any(-1).all() for mask in masks)
    assert (Draw({"n": 3}, 4)("p", positive(n)) > 0).all()


def test_a_smooth_function_reads_its_last_axes() -> None:
    x, y = np.arange(6.0).reshape(2, 3), np.asarray([1.0, 2.0])
    f = smooth("f", (1, 0), None, 0)
    assert f(x, y).shape == (2, 3)
    assert np.allclose(f(x, y)[1], f(x[1], y[1]))
    assert not np.allclose(f(x, y), smooth("g", (1, 0), None, 0)(x, y))
    assert smooth("h", (0,), (2, 2), 0)(3).shape == (2, 2)


def test_sizes_at_which_an_index_has_no_value_are_passed_by() -> None:
    given = {"X": real(n), "i": index_below(n - 1)}
    assert gate(lambda X, i: equal(X[i] + X[i], 2 * X[i]), **given) is None


def test_large_numbers_of_the_code_are_tried_as_sizes() -> None:
    spelled = gate(
        lambda X: equal(X * (0 if here(X) and str(X.shape[0]) == "5000" else 1), X), X=real(n)
    )
    written = gate(lambda X: equal(X * (0 if here(X) and X.shape[0] == 7000 else 1), X), X=real(n))
    assert [found and found.sizes for found in (spelled, written)] == [{"n": 5000}, {"n": 7000}]
