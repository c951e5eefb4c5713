"""``prove``: a function is a statement, and goes the way that every theorem goes."""

# ruff: noqa: ARG005, RUF034 (code is written here as nobody should write it)

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import attnproof
from attnproof import (
    Array,
    AxisMismatch,
    Certificate,
    at_least,
    attention,
    chain,
    equal,
    greater,
    index_below,
    masked_attention,
    permutation,
    positive,
    real,
    sizes,
    theorem,
)
from attnproof.answers.proving import Result
from attnproof.symbolic.comparison import NotRun
from attnproof.symbolic.kernel import Refused
from attnproof.theorem_runs.records import ProofRecord
from tests.cases import each
from tests.front.outputs import balanced, conforms

prove: Any = attnproof.prove  # called as no type checker would let it be
r, n, m, d = sizes("r n m d")
QKV = {"Q": real(r, d), "K": real(n, d), "V": real(n, d)}


def pairs() -> Result:
    """Three lines of a notebook."""
    found: Result = prove(
        lambda Q, K, V, s: equal(attention(Q, K[s], V[s]), attention(Q, K, V)),
        **QKV,
        s=permutation(n),
    )
    return found


@pytest.fixture(scope="module")
def proof() -> Result:
    return pairs()


def in_a_session(text: str) -> Any:
    """A function whose source is nowhere to be read, as one that was typed into a session."""
    table: dict[str, Any] = {"Array": Array, "equal": equal, "n": n}
    exec(compile(text, "<stdin>", "exec"), table)
    return table["body"]


def test_three_lines_are_proved_and_show_themselves(proof: Result) -> None:
    assert proof.verdict == "proved"
    assert str(proof).splitlines()[0] == "✓ proved, for all r, d, n ≥ 1"
    assert repr(proof) == str(proof)
    assert "kernel steps" in str(proof)
    assert "control" not in str(proof)
    assert "expected" not in str(proof)
    assert proof.conditions == []
    assert proof.counterexample is None
    assert proof.latex() == r"\operatorname{Att}(Q, s K, s V) = \operatorname{Att}(Q, K, V)"
    assert ProofRecord.model_validate_json(proof.to_json()) == proof.record
    conforms(proof.to_json(), "--proof")
    with pytest.raises(TypeError, match="neither true nor false: ask for its verdict"):
        bool(proof)


def test_its_page_in_a_notebook_is_whole_and_fetches_nothing(proof: Result) -> None:
    html = proof._repr_html_()
    balanced(html)
    for part in ("✓", "proved", "<math", "kernel step", "Assumed: s is a permutation", "SymPy"):
        assert part in html
    assert "shown as LaTeX source" not in html
    assert "<html" not in html


def test_its_steps_are_those_that_the_kernel_replayed(proof: Result) -> None:
    steps = proof.steps()
    assert len(steps) == sum(e.steps for e in proof.record.evidence if e.kind == "proved") > 50
    assert steps[0].rule == "entry"
    assert str(steps[:1]).splitlines()[0] == "1. entry at the whole"
    told = json.loads(steps.to_json())
    assert {"rule", "arguments", "path", "before", "after"} == told[0].keys()
    chained = prove(lambda x: chain(x + x, ("", 2 * x), ("", x * 2)), x=real(n))
    assert [a["after"] for a in told if a["path"] == []]
    assert len(chained.steps()) == sum(link.steps for link in chained.record.chain)


def test_sympy_has_both_sides_of_what_was_proved_and_of_nothing_else() -> None:
    body = in_a_session("factor = 2\ndef body(X): return equal(X * factor, X + X)")
    found = prove(body, X=real(n))
    assert found.verdict == "proved"
    (sides,) = found.sympy()
    assert str(sides.left[0]) == str(sides.right[0]) == "2*X_0"
    body.__globals__["factor"] = 3
    with pytest.raises(RuntimeError, match="has changed since it was proved; ask prove again"):
        found.sympy()
    assert prove(body, X=real(n)).verdict == "refuted"


CASES: dict[str, tuple[Callable[..., Any], dict[str, Any], str]] = {
    "several": (lambda x: {"sum": equal(x + x, 2 * x), "square": at_least(x * x, 0)}, {}, "proved"),
    "one of two": (lambda x: {"sum": equal(x + x, 2 * x), "no": equal(x, 2 * x)}, {}, "refuted"),
    "false": (lambda x: equal((x + 1) ** 2, x**2 + 1), {}, "refuted"),
    "no hypothesis": (lambda x: greater(x, 0), {}, "refuted"),
    "hypothesis": (lambda x: greater(x, 0), {"assume": lambda x: [greater(x, 1)]}, "proved"),
    "positive": (lambda x: greater(x, 0), {"x": positive()}, "proved"),
    "a divisor": (lambda x, y: equal(x / y, x * (1 / y)), {"y": real()}, "proved"),
    "asks what a symbol is": (
        lambda x: equal(x + 1 if isinstance(x, Array) else x, x + 1),
        {},
        "misread",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_verdict_is_that_of_any_theorem(name: str) -> None:
    body, options, verdict = CASES[name]
    found = prove(body, **{"x": real(), **options})
    assert found.verdict == verdict
    assert (found.counterexample is not None) == (verdict == "refuted")
    assert found.record.ok == (verdict == "proved")
    balanced(found._repr_html_())
    assert (
        str(found)
        .splitlines()[0]
        .startswith(f"{'✓✗≠'[('proved', 'refuted', 'misread').index(verdict)]} {verdict}")
    )
    if verdict != "proved":
        with pytest.raises(
            TypeError, match=f"only a proof has a certificate, and this verdict is {verdict!r}"
        ):
            found.certificate()


def test_conditions_stand_in_the_line_of_the_verdict() -> None:
    found = prove(*CASES["a divisor"][:1], x=real(), y=real())
    assert found.conditions == ["if y ≠ 0"]
    assert str(found).splitlines()[0] == "✓ proved, if y ≠ 0"
    assert "if y ≠ 0" in found._repr_html_()
    under = prove(lambda x: greater(x, 0), x=real(), assume=lambda x: [greater(x, 1)])
    assert under.conditions == ["if x > 1"]


kept: list[Any] = []
outside = real(n).named("X")


def counts(x: Any) -> Any:
    kept.append(1)
    return equal(x, x)


def random_each_time(x: Any) -> Any:
    return equal(x * random.random(), x * random.random())


def random_anew(x: Any) -> Any:
    return equal(x * random.Random().random(), x)  # seeded by the system


def captured() -> Any:
    """A number that is changed by the body, in a closure."""
    table = {"calls": 0}

    def body(x: Any) -> Any:
        table["calls"] += 1
        return equal(x if table["calls"] < 9 else x + 1, x)

    return body


def catches(x: Any) -> Any:
    try:
        return equal(float(x), x + 1)
    except TypeError:
        return equal(x, x)


REFUSED: dict[str, tuple[Any, dict[str, Any], type[Exception], str]] = {
    "counts its calls": (counts, {}, TypeError, "keeps state between calls"),
    "counts in a closure": (captured(), {}, TypeError, "keeps state between calls"),
    "draws at random": (random_each_time, {}, TypeError, "draws random numbers"),
    "draws anew": (random_anew, {}, TypeError, "another statement when it is run again"),
    "catches a refusal": (catches, {}, TypeError, "__float__ of a symbolic array"),
    "asks for a class": (
        lambda x: equal(x if isinstance(x, float) else x, x),
        {},
        TypeError,
        "asks for the class",
    ),
    "branches": (lambda x: equal(x, x) if x > 0 else equal(x, 2 * x), {}, TypeError, "truth value"),
    "numpy": (lambda x: equal(np.abs(x), x), {}, TypeError, "numpy.absolute got"),
    "an array of numpy": (lambda x: equal(x + np.ones(3), x), {}, TypeError, "got ndarray"),
    "a symbol of outside": (lambda X: equal(outside, X), {"X": real(n)}, NotRun, "made outside"),
    "a symbol that is not given": (
        lambda x: equal(outside, x + outside),
        {},
        TypeError,
        "not given",
    ),
    "shapes": (lambda K, L: equal(K, 2 * L), {"K": real(n), "L": real(m)}, AxisMismatch, "shape"),
    "no claim": (lambda x: x == x, {}, TypeError, "return equal(..)"),
    "nothing": (lambda x: None, {}, TypeError, "return equal(..)"),
    "a default": (lambda x, y=2: equal(x * y, y * x), {}, TypeError, "asks for y"),
    "a name too many": (lambda x: equal(x, x), {"y": real()}, TypeError, "nothing asks for y"),
    "a misspelt option": (lambda x: equal(x, x), {"asume": list}, TypeError, "asume=.. says what"),
    "no given": (lambda x: equal(x, x), {"x": 3}, TypeError, "x=.. says what x may be"),
    "twice": (lambda x: equal(x, x), {"given": {"x": real()}}, TypeError, "is given twice"),
    "no function": (3, {}, TypeError, "prove wants a function of what is given"),
    "a claim": (equal(outside, outside), {}, TypeError, "prove wants a function of what is given"),
    "no time": (lambda x: equal(x, x), {"limit": 0}, TypeError, "a number of seconds"),
    "no hypotheses": (lambda x: equal(x, x), {"assume": [1]}, TypeError, "a function that returns"),
    "no control": (lambda x: equal(x, x), {"control": 1}, TypeError, "`control` is a function"),
}


@each(REFUSED)
def test_what_is_no_statement_is_refused(name: str) -> None:
    body, options, error, says = REFUSED[name]
    given = {} if {"X", "K"} & options.keys() else {"x": real()}
    with pytest.raises(error) as caught:
        prove(body, **{**given, **options})
    assert says in str(caught.value)


def test_a_parameter_may_be_called_as_an_option_is() -> None:
    names = ("given", "assume", "control", "limit", "numeric", "body", "self", "theorem")
    text = f"lambda {', '.join(names)}: equal({' * '.join(names)}, {' * '.join(reversed(names))})"
    body = eval(text, {"equal": equal})
    found = prove(body, **dict.fromkeys(names, real()))
    assert found.verdict == "proved"
    assert [given.name for given in found.record.givens] == list(names)

    @theorem("t", given={"assume": real(), "says": real()})
    def commutes(assume: Any, says: Any) -> Any:
        return equal(assume * says, says * assume)

    @commutes.negative_control("a sign", assume=positive(), says=positive())
    def sign(assume: Any, says: Any) -> Any:
        return equal(assume * says, -says * assume)

    assert prove(commutes).record.ok
    both = prove(
        lambda limit: greater(limit, 0),
        given={"limit": real()},
        assume=lambda limit: [greater(limit, 1)],
        limit=5.0,
    )
    assert both.conditions == ["if limit > 1"]


def test_a_function_without_source_passes_the_same_gate() -> None:
    assert (
        prove(in_a_session("body = lambda X: equal(X + X, 2 * X)"), X=real(n)).verdict == "proved"
    )
    text = "body = lambda X: equal(X[0] + 1 if isinstance(X, Array) else X[0], X[0] + 1)"
    assert prove(in_a_session(text), X=real(n)).verdict == "misread"


def test_a_control_is_decided_too_and_must_be_refused() -> None:
    def body(Q: Any, K: Any, V: Any, c: Any) -> Any:
        """A factor of every value comes out."""
        return equal(attention(Q, K, V * c), attention(Q, K, V) * c)

    def keys(Q: Any, K: Any, V: Any, c: Any) -> Any:
        return equal(attention(Q, K * c, V), attention(Q, K, V) * c)

    good = prove(body, **QKV, c=real(), control=("the factor is on the keys", keys))
    assert good.record.ok
    assert good.record.control is not None
    assert good.record.control.verdict == "refuted"
    assert "A factor of every value comes out." in str(good)
    assert "Its negative control: the factor is on the keys" in str(good)
    assert "the factor is on the keys" in good._repr_html_()
    bad = prove(body, **QKV, c=real(), control=body)
    assert bad.verdict == "proved"
    assert not bad.record.ok
    assert "! its negative control: expected refuted, is proved" in str(bad)
    balanced(bad._repr_html_())


def test_a_theorem_is_taken_as_it_stands() -> None:
    @theorem("Addition commutes", given={"x": real(n), "y": real(n)})
    def commutes(x: Any, y: Any) -> Any:
        """The order does not matter."""
        return equal(x + y, y + x)

    assert prove(commutes).record.title == "Addition commutes"
    with pytest.raises(TypeError, match="a theorem has its givens"):
        prove(commutes, x=real())


def test_numbers_are_measured_where_they_are_asked_for() -> None:
    found = prove(lambda x: equal(x + x, 2 * x), x=real(n), numeric=True)
    assert "Numbers" in str(found)
    assert found.record.ok


# Certificates: a proof as plain data


def test_a_certificate_replays_to_the_same(proof: Result) -> None:
    certificate = proof.certificate()
    again = Certificate.read(certificate.to_json())
    assert again.replay(proof.statement).verdict == "proved"
    assert list(again.steps()) == list(certificate.steps())
    assert len(list(again.steps())) == len(proof.steps())
    under = prove(
        lambda x, y: equal(x / y, x * (1 / y)), x=real(), y=real(), assume=lambda x: [greater(x, 1)]
    )
    (told,) = Certificate.read(under.certificate().plain()).replay().claims
    assert told.readings == under.decision.claims[0].readings == ("y ≠ 0",)


def test_a_certificate_is_of_its_own_statement(proof: Result) -> None:
    other = prove(lambda x: equal(x + x, 2 * x), x=real(n))
    with pytest.raises(Refused, match="it belongs to another statement"):
        other.certificate().replay(proof.statement)


def places(told: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in plain data."""
    parts: Any = (
        told.items()
        if isinstance(told, dict)
        else enumerate(told if isinstance(told, list) else ())
    )
    found = [path]
    for key, value in parts:
        found += places(value, (*path, key))
    return found


def changed(told: Any, path: tuple[Any, ...], new: Any) -> Any:
    """A copy of plain data that has something else in one place."""
    if not path:
        return new
    copy = dict(told) if isinstance(told, dict) else list(told)
    copy[path[0]] = changed(told[path[0]], path[1:], new)
    return copy


TAMPERED: dict[str, Callable[[dict[str, Any]], Any]] = {
    "another format": lambda told: {**told, "format": "1"},
    "no proof": lambda told: {**told, "proofs": []},
    "nothing claimed": lambda told: {**told, "proofs": [], "statement": EMPTY},
    "the steps are gone": lambda told: {**told, "steps": []},
    "the steps turned": lambda told: {**told, "steps": told["steps"][::-1]},
    "the terms turned": lambda told: {**told, "terms": told["terms"][::-1]},
    "a proof twice": lambda told: {**told, "proofs": told["proofs"] * 2},
    "a place that is not there": lambda told: changed(told, ("proofs", 0, 1, "step"), 10**6),
    "a place from behind": lambda told: changed(told, ("proofs", 0, 1, "step"), -1),
    "a part of the proof": lambda told: changed(told, ("proofs", 0, 1, "step"), 0),
    "a term for a proof": lambda told: changed(told, ("proofs", 0, 1), {"term": 0}),
    "no JSON": lambda told: "{",
    "a list": lambda told: [],
}
EMPTY: dict[str, list[Any]] = {"givens": [], "claims": [], "assume": [], "laws": []}


@pytest.mark.parametrize("name", TAMPERED)
def test_a_certificate_that_was_changed_does_not_replay(proof: Result, name: str) -> None:
    told = TAMPERED[name](json.loads(proof.certificate().to_json()))
    with pytest.raises(Refused, match="certificate"):
        Certificate.read(told).replay()


def test_a_claim_that_was_changed_does_not_replay(proof: Result) -> None:
    told = proof.certificate().plain()
    claim = told["statement"]["claims"][0][1]["Claim"]
    for other in ({"left": claim["right"]}, {"relation": ">"}, {"right": {"term": 0}}):
        new = changed(told, ("statement", "claims", 0, 1, "Claim"), {**claim, **other})
        with pytest.raises(Refused):
            Certificate.read(new).replay()


def test_what_a_certificate_speaks_of_is_given_and_has_one_name() -> None:
    told = (
        prove(lambda x: attnproof.for_all({"y": real()}, lambda y: equal(x + y, y + x)), x=real())
        .certificate()
        .plain()
    )
    claim = ("statement", "claims", 0, 1, "Claim")
    variables = told["statement"]["claims"][0][1]["Claim"]["variables"]
    assert Certificate.read(told).replay().verdict == "proved"
    for place, value, says in (
        ((*claim, "variables"), [], "y is not given"),
        ((*claim, "variables"), variables * 2, "one name for two variables"),
        (("statement", "givens"), [], "x is not given"),
        (("statement", "givens", 0, 0), "x = 0, y", "is not a name"),
        (("statement", "givens"), told["statement"]["givens"] * 2, "occurs twice"),
    ):
        with pytest.raises(Refused, match=says):
            Certificate.read(changed(told, place, value))


def test_a_hypothesis_that_is_dropped_is_missed() -> None:
    found = prove(lambda x: greater(x, 0), x=real(), assume=lambda x: [greater(x, 1)])
    told = found.certificate().plain()
    assert Certificate.read(told).replay().verdict == "proved"
    with pytest.raises(Refused, match="assumptions that were not granted"):
        Certificate.read(changed(told, ("statement", "laws"), [])).replay()
    given = prove(lambda x: greater(x, 0), x=positive()).certificate().plain()
    for name, value in (("traits", []), ("kind", "real")):
        new = changed(given, ("statement", "givens", 0, 1, "Given", name), value)
        if name == "kind":
            with pytest.raises(Refused):
                Certificate.read(new).replay()
        else:  # what a kind grants is no part of what is told
            assert Certificate.read(new).replay().verdict == "proved"


def test_single_changes_prove_nothing_else(proof: Result) -> None:
    """Whatever is changed in one place: refused, or the same statement is proved all the same."""
    told = json.loads(proof.certificate().to_json())
    draw = random.Random(0)
    refused = 0
    for path in draw.sample(places(told), 150):
        value = told
        for key in path:
            value = value[key]
        new: Any = (
            value + 1 if isinstance(value, int) else draw.choice([None, 0, "", [], {}, [value]])
        )
        try:
            again = Certificate.read(changed(told, path, new)).replay(proof.statement)
        except Refused:
            refused += 1
        else:
            assert again.verdict == "proved"
    assert refused > 120


def test_a_masked_statement_goes_the_whole_way() -> None:
    found = prove(
        lambda Q, K, V, M, s: equal(
            masked_attention(Q, K[s], V[s], M[:, s]), masked_attention(Q, K, V, M)
        ),
        **QKV,
        M=attnproof.boolean(r, n),
        s=permutation(n),
    )
    assert found.verdict == "proved"
    assert found.certificate().replay(found.statement).verdict == "proved"


def test_an_index_may_be_called_as_one_of_ours() -> None:
    for name in ("i0", "j", "x0", "m0"):
        body = eval(
            f"lambda X, {name}: equal(X[{name}] + X[{name}], 2 * X[{name}])", {"equal": equal}
        )
        assert prove(body, X=real(n), **{name: index_below(n)}).verdict == "proved"
