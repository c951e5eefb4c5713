"""A law of a composition follows from laws of its parts, and from nothing less."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pytest

from attnproof.symbolic import composition
from attnproof.symbolic import namespace as xp
from attnproof.symbolic.array import Array
from attnproof.symbolic.composition import Composition, NotComposed, decide_composition
from attnproof.symbolic.decision import ClaimDecision, Decision
from attnproof.symbolic.givens import Given, function, real, sizes
from attnproof.symbolic.kernel import replay
from attnproof.symbolic.prove import Effort, decide
from attnproof.symbolic.statement import Statement
from attnproof.symbolic.terms import Term, make, postorder

n, r, d = sizes("n r d")
GIVENS: dict[str, Given] = {
    "x": real(n, d),
    "y": real(r, d),
    "a": real(d),
    "b": real(d),
    "f": function(1, out=None),
}
x, y, a, b, f = (given.named(name) for name, given in GIVENS.items())
Part = Callable[[Array], Array]
EFFORT = Effort(refuting=False, whole=20.0)


def sides(call: Part, given: Mapping[str, Array]) -> list[tuple[Term, Term]]:
    """The first rows are what they are alone."""
    whole = call(xp.concat((given["x"], given["y"]), axis=0))
    return [(whole[: x.shape[0]].term, call(given["x"]).term)]


def again(outputs: Sequence[Array]) -> dict[str, Array]:
    whole, alone = outputs
    return {"x": alone, "y": whole[x.shape[0] :]}


def cut(value: Array) -> Array:
    return Array(make("named", (value.term,), ("part",), value.axes))


def composed(*parts: Part) -> Composition:
    """The law of parts one after the other, each of what the one before it gave."""
    taken = (xp.concat((x, y), axis=0), x)
    rows, given = [], list(taken)
    for part in parts:
        given = [cut(part(one)) for one in given]
        rows.append(tuple(one.term for one in given))
    return Composition(
        sides, again, {"x": x, "y": y}, tuple(t.term for t in taken), tuple(rows), GIVENS
    )


def decided(whole: Composition, effort: Effort = EFFORT) -> ClaimDecision:
    (found,) = decide_composition(whole, effort).claims
    return found


def weighed(weights: Array) -> Part:
    return lambda t: t + f(t * weights)


def total(t: Array) -> Array:
    return t + xp.sum(t, axis=0)


def test_the_kernel_proves_the_law_of_the_whole() -> None:
    whole = composed(weighed(a), weighed(b), weighed(a))
    found = decided(whole)
    assert found.verdict == "proved", found.why
    assert found.derivation is not None
    proof = replay(found.derivation)
    assert [(proof.left, proof.right)] == list(whole.equations(whole.parts[-1]))
    assert not proof.assumes


def test_parts_that_are_alike_but_for_their_weights_are_shown_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Statement] = []

    def counted(statement: Statement, *, effort: Effort) -> Decision:
        asked.append(statement)
        return decide(statement, effort=effort)

    monkeypatch.setattr(composition, "decide", counted)
    whole = composed(*(weighed(w) for w in (a, b, a + b, a * b)))
    assert decided(whole).verdict == "proved"
    assert len(asked) == 3  # a + b and a · b are of another form


LEAKS: dict[str, tuple[list[Part], str]] = {
    "the first part": ([total, weighed(b)], "the law of a part on its own"),
    "the last part": ([weighed(a), total], "the law of a part on its own"),
    "one between": ([weighed(a), total, weighed(b)], "the law of a part on its own"),
    "what is taken away again": (
        [total, lambda t: t - xp.sum(t, axis=0) / (1 + as_number(t))],
        "the law of a part on its own",
    ),
    "past the cut": (
        [weighed(a), lambda t: t + xp.sum(x, axis=0)],
        "other than through the previous part",
    ),
    "how many rows there are": (
        [weighed(a), lambda t: t * as_number(t)],
        "the law of a part on its own",
    ),
}


def as_number(t: Array) -> Array:
    return Array(t.axes[0])


@pytest.mark.parametrize("name", LEAKS)
def test_where_a_part_breaks_the_law_nothing_is_proved(name: str) -> None:
    parts, why = LEAKS[name]
    found = decided(composed(*parts))
    assert found.verdict == "undecided"
    assert why in found.why
    assert found.derivation is None


RETURNS: dict[str, Callable[[Sequence[Array]], Mapping[str, Array]]] = {
    "other rows": lambda outputs: {"x": outputs[0][r:], "y": outputs[0][:r]},
    "the rows of the input": lambda _: {"x": x, "y": y},
    "twice as much": lambda outputs: {"x": 2 * outputs[1], "y": outputs[0][x.shape[0] :]},
    "the first rows alone": lambda outputs: {"x": outputs[1], "y": 0 * outputs[0][x.shape[0] :]},
}


@pytest.mark.parametrize("name", RETURNS)
def test_what_a_part_gives_must_be_what_the_law_takes(name: str) -> None:
    whole = replace(composed(weighed(a), weighed(b)), next_given=RETURNS[name])
    assert "not shown equal to the next inputs" in decided(whole).why


def test_terms_that_are_not_of_the_calls_of_the_law_are_refused() -> None:
    whole = composed(weighed(a), weighed(b))
    with pytest.raises(NotComposed, match="other calls"):
        decide_composition(replace(whole, arguments=(x.term, x.term)), EFFORT)
    swapped = tuple(tuple(reversed(part)) for part in whole.parts)
    assert decided(replace(whole, parts=swapped)).verdict == "undecided"


def test_conditions_of_all_parts_are_told() -> None:
    plain = composed(weighed(a), weighed(b))
    assert decided(plain).readings == ()
    found = decided(composed(lambda t: t / f(t), lambda t: t / f(t * a)))
    assert found.verdict == "proved"
    assert len(found.readings) == 4  # of x and of y in each part
    assert sum("a[" in told for told in found.readings) == 2


def test_the_time_ends_it() -> None:
    found = decided(composed(weighed(a), weighed(b)), replace(EFFORT, whole=0.0))
    assert found.verdict == "undecided"
    assert "0" in found.why


def test_a_whole_is_not_unfolded() -> None:
    """Twelve parts are some steps more than six, and not a power of them."""
    steps = []
    for count in (6, 12):
        found = decided(composed(*[weighed(a)] * count))
        assert found.verdict == "proved"
        steps.append(sum(link.steps for link in found.links))
    assert steps[1] < 2 * steps[0]


def test_parts_stand_folded_in_the_whole() -> None:
    whole = composed(weighed(a), weighed(b))
    first, last = (parts[0] for parts in whole.parts)
    assert first in set(postorder(last))
