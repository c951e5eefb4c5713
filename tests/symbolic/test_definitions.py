"""Every definition of theorems/definitions, on symbols and on numpy at sizes that cross."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
from array_api_compat import array_namespace

from attnproof.symbolic.array import Array
from attnproof.symbolic.bodies import Code
from attnproof.symbolic.claim import equal
from attnproof.symbolic.definition import DEFINITIONS, Definition
from attnproof.symbolic.gate import Misreading, misreading
from attnproof.symbolic.givens import Given, boolean, function, natural, permutation, real, sizes
from attnproof.symbolic.latex import latex
from attnproof.symbolic.statement import Statement
from attnproof.theorem_runs.definitions_used import definitions as definitions_of
from attnproof.theorems import definitions
from attnproof.theorems.definitions.references import attend, rotated
from attnproof.theorems.definitions.rotary import rotate, rotate_half
from tests.symbolic.stating import Said, verdict

n, m, p, d, e, H, B, T = sizes("n m p d e H B T")
Call = tuple[Any, ...]  # a given, or a length, for each argument

ROWS = (real(n, d), real(m, d))
HEADS = (real(H, p, d), real(H, p, d), real(H, p, e))
PAIRS = (real(n, 2), real(n, 2))
ROTARY = (real(n, 2 * B), real(n), real(B))
STEPS = (function(0, out=(d, d)), function(0, out=(d,)))

CALLS: dict[str, tuple[Call, ...]] = {
    "affine_composite": ((natural(), natural(), d, *STEPS),),
    "affine_state": ((natural(), natural(), real(d), *STEPS),),
    "alibi": ((real(n), real(m), real(H)),),
    "at_offset": ((real(2 * T + 1), real(n)), (real(2 * T + 1, d), real(n, m))),
    "attend": ((real(B, H, n, d), real(B, H, m, d), real(B, H, m, e)),),
    "attention": ((*ROWS, real(m, e)), (real(H, n, d), real(H, m, d), real(H, m, e))),
    "batch_norm": ((real(n, d),),),
    "biased_attention": ((*ROWS, real(m, e), real(n, m)),),
    "block_rotation": ((real(B),),),
    "box_car": ((real(n, m),), (real(),)),
    "capped": ((real(n), real()),),
    "column_self_attention": ((real(d, n), real(p, d), real(p, d), real(e, d)),),
    "column_softmax": ((real(n, m),),),
    "conjugate": (PAIRS[:1],),
    "convolution": ((real(n), real(2 * T + 1)),),
    "distances": (ROWS,),
    "epanechnikov": ((real(n, m),), (real(),)),
    "geometric_sum": ((real(d, d), natural(), natural()),),
    "half_norms": ((real(n, d),),),
    "interpolated": ((real(T), real(n)), (real(n, T), real(n))),
    "last_of_each_pair": ((real(B),),),
    "latent_attention": ((real(1, H, n, d), real(1, m, p), real(H, p, d), real(H, p, e)),),
    "layer_norm": ((real(n, d),),),
    "learned_query_attention": ((real(d, n), real(p, d), real(p, m), real(e, d)),),
    "linear_attention": ((real(B, H, n, d), real(B, H, n, d), real(B, H, n, e)),),
    "looked_up": ((real(T), real(n)), (real(T, d), real(n, m))),
    "masked_attention": ((*ROWS, real(m, e), boolean(n, m)),),
    "modulus": (PAIRS[:1],),
    "multi_head": ((real(n, p), *HEADS, real(H, e, d)),),
    "normed": ((real(n, d), real(d)),),
    "permutation_matrix": ((permutation(n),),),
    "polar": ((real(n), real(n)),),
    "product": (PAIRS,),
    "real_power": ((real(n), real(n)), (real(), real(n))),
    "rotate": (ROTARY, (real(H, n, 2 * B), real(n), real(B))),
    "rotate_half": (ROTARY, (real(H, n, 2 * B), real(n), real(B))),
    "rotate_halves": ((real(n, 2 * B), real(n, B)),),
    "rotate_pairs": ((real(n, 2 * B), real(n, B)),),
    "rotated": ((real(H, n, 2 * B), real(n, B), real(n, B)),),
    "rotation": ((real(n),), (real(),)),
    "self_attention": ((real(n, p), real(p, d), real(p, d), real(p, e)),),
    "sigmoid": ((real(n),),),
    "sine_only": ((real(n), real(B)),),
    "sinusoidal": ((real(n), real(B)),),
    "softmax": ((real(n, m),), (real(m),)),
    "squared_distances": (ROWS,),
    "sum_of_heads": ((real(n, p), real(m, p), real(m, d), *HEADS[:2], real(H, d, e)),),
    "to_half_split": ((real(n, 2 * B), real(B)),),
    "triangular": ((real(n, m),), (real(),)),
    "unit": ((real(n),),),
    "weights_by_distance": (ROWS,),
}


def found() -> Iterator[Definition[..., Any]]:
    """The definitions of every module of the folder, each once."""
    seen: dict[int, Definition[..., Any]] = {}
    for one in pkgutil.walk_packages(definitions.__path__, f"{definitions.__name__}."):
        for thing in vars(import_module(one.name)).values():
            if isinstance(thing, Definition):
                seen[id(thing)] = thing
    yield from sorted(seen.values(), key=lambda one: one.name)


EVERY = list(found())


def read(one: Definition[..., Any], call: Call) -> Misreading | None:
    """What the gate says of a definition applied to arguments of these kinds."""
    givens = {f"x{k}": part for k, part in enumerate(call) if isinstance(part, Given)}
    lengths = {f"x{k}": part for k, part in enumerate(call) if not isinstance(part, Given)}

    def body(**values: Any) -> Any:
        arguments = {**values, **lengths}
        value = one(*(arguments[f"x{k}"] for k in range(len(call))))
        return equal(value, value)

    said = body(**{name: given.named(name) for name, given in givens.items()})
    return misreading(Statement(givens, {"": said}, code=Code(body, arguments=tuple(givens))))


def test_every_definition_is_called() -> None:
    assert [one.name for one in EVERY] == list(CALLS)
    assert all(DEFINITIONS[one.name] is one for one in EVERY)  # no two of one name


def test_options_are_part_of_the_name_and_arrays_among_them_are_arguments() -> None:
    Q, K = real(1, 1, n, d).named("Q"), real(1, 1, n, d).named("K")
    s = real(1).named("s")
    plain, causal = attend(Q, K, K), attend(Q, K, K, causal=True)
    assert (plain.term.data, causal.term.data) == (("attend",), ("attend[causal]",))
    assert plain.term is attend(Q, K, K, causal=False, scale=None).term
    assert attend(Q, K, K, window=2).term.data == ("attend[window = 2]",)
    assert attend(Q, key=K, value=K, sink=s).term.args[1:] == (Q.term, K.term, K.term, s.term)
    assert latex(attend(Q, K, K, sink=s, causal=True).term) == (
        r"\operatorname{attend}_{\text{causal, sink}}(Q, K, K, s)"
    )
    X, cos = real(n, 2 * B).named("X"), real(n, B).named("C")
    assert latex(rotated(X, cos, cos, layout="interleaved").term).startswith(
        r"\operatorname{rotated}_{\text{interleaved}}("
    )
    assert DEFINITIONS["attend[causal]"].line == DEFINITIONS["attend"].line
    (one,) = (x for x in definitions_of([claimed(causal)]) if x.name == "attend[causal]")
    assert one.formula.text.startswith("attend[causal](Q, K, V) = ")


def claimed(value: Any) -> Statement:
    """That a value is itself."""
    return Statement({}, {"": equal(value, value)})


@pytest.mark.parametrize("one", EVERY, ids=lambda one: one.name)
def test_its_term_is_what_its_code_gives(one: Definition[..., Any]) -> None:
    for call in CALLS[one.name]:
        wrong = read(one, call)
        assert wrong is None, wrong.text


def by_rows(scores: Any) -> Any:
    """Columns where softmax says rows, on numpy alone."""
    return softmax_of(scores, -1 if isinstance(scores, Array) else 0)


def softmax_of(scores: Any, axis: int) -> Any:
    xp = array_namespace(scores)
    weights = xp.exp(scores)
    return weights / xp.sum(weights, axis=axis, keepdims=True)


def past_the_first(x: Any) -> Any:
    """Something else at one number, and at no other."""
    return x if isinstance(x, Array) else x + (x == 0)


@pytest.mark.parametrize(
    ("body", "call"),
    [(by_rows, (real(n, m),)), (past_the_first, (real(n),)), (past_the_first, (real(),))],
)
def test_a_definition_that_says_something_else_on_numpy_is_refused(body: Any, call: Call) -> None:
    wrong = read(Definition("wrong", "w", body), call)
    assert wrong is not None
    assert wrong.part == "left side"
    assert wrong.code != wrong.term


@pytest.mark.parametrize("turned", [rotate, rotate_half])
def test_a_position_may_be_a_plain_number(turned: Any) -> None:
    given = {"x": real(2 * B), "w": real(B)}
    assert verdict(Said(given, lambda x, w: equal(turned(x, 0, w), x))) == "proved"
    assert verdict(Said(given, lambda x, w: equal(turned(x, 1, w), x))) == "undecided"
