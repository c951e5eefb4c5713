"""Laws of attention code and of layers: attend(q, k, v), layer(x) and call(x) on tokens x."""

from __future__ import annotations

from functools import partial
from typing import Any

from array_api_compat import array_namespace

from .law import (
    ATTENTION_INPUTS,
    BEYOND_EXP,
    KEYS,
    OF_CALLS,
    QKV,
    QUERIES,
    SQUARE,
    TOKENS,
    Inputs,
    Law,
    Sides,
    by_offset,
    permuted,
    unordered,
)

PERMUTATION = Law(
    "permutation",
    "attention layer",
    "structure",
    "permuting the tokens permutes the outputs",
    always=False,
)
_law = partial(Law, kinds="attention", group="structure")
ORDER_OF_KEYS = _law(
    "order-of-keys", says="permuting keys and values together does not change the output"
)
SUM_TO_ONE = _law(
    "rows-sum-to-one",
    says="equal values give that value as output: the weights of every query sum to 1",
)
SHIFT_OF_SCORES = _law(
    "shift-of-scores",
    says="adding a number to all scores of a query changes nothing, and large scores give no NaN",
)
QUERIES_APART = _law(
    "queries-apart",
    says="the output of a query depends neither on the other queries nor on their number",
)
GROUPS = _law(
    "groups-of-heads",
    says="with fewer key heads than query heads, the query heads of a group share one key head",
)
HEADS_APART = _law("heads-apart", says="a head reads only its own queries, keys and values")
TRANSLATION = _law(
    "translation",
    says="the same tokens at later positions give the same output, if the layer is relative",
)
SHOWN = _law(
    "weights-as-shown",
    says="the returned weights are those that multiply the values, in every head",
)
SCALE = Law(
    "scale-as-declared",
    "attention",
    "declared",
    "the logarithm of the ratio of two weights is the scale times the difference of their scores",
)

PERMUTED = (("tokens permuted", "the outputs permuted"),)


def _plain(_: Any, outputs: Any, **__: Any) -> dict[str, Any]:
    """Permuted outputs are permuted tokens of the next layer."""
    return {"x": outputs}


@PERMUTATION.formula("layer", "call", names=PERMUTED, again=_plain, x=TOKENS, sigma="permutation n")
def call_permutation(f: Any, x: Any, sigma: Any) -> Sides:
    """Permuted tokens give permuted outputs."""
    return permuted(f.call, [x], sigma, [1])


@PERMUTATION.formula(
    "attention", "layer", names=PERMUTED, again=_plain, x=TOKENS, sigma="permutation n"
)
def layer_permutation(f: Any, x: Any, sigma: Any) -> Sides:
    """Permuted tokens give permuted outputs."""
    return permuted(f.layer, [x], sigma, [1])


@PERMUTATION.formula(
    "attention", "attend", names=PERMUTED, q="real B H n D", k=KEYS, v=KEYS, sigma="permutation n"
)
def attend_permutation(f: Any, q: Any, k: Any, v: Any, sigma: Any) -> Sides:
    """Queries, keys and values permuted together give permuted outputs."""
    return permuted(f.attend, [q, k, v], sigma, [2, 2, 2])


@ORDER_OF_KEYS.formula(
    "attention",
    "attend",
    names=(("keys and values permuted", "as they are"),),
    **QKV,
    sigma="permutation n",
)
def order_of_keys(f: Any, q: Any, k: Any, v: Any, sigma: Any) -> Sides:
    """Permuting keys and values together does not change the output."""
    return unordered(partial(f.attend, q), [k, v], sigma, [2, 2])


EQUAL_VALUES = (("the output for equal values", "that value"),)
NO_MORE_QUERIES = "real B H n D"
"""As many queries as keys: a mask aligned at the end hides all keys from the first of more."""


@SUM_TO_ONE.formula(
    "attention", "attend", names=EQUAL_VALUES, q=NO_MORE_QUERIES, k=KEYS, c="real B D"
)
@SUM_TO_ONE.formula(
    "attention",
    "attend",
    names=EQUAL_VALUES,
    sizes=({"r": 5, "n": 5},),
    q=QUERIES,
    k=KEYS,
    c="real B D",
)
def rows_sum_to_one(f: Any, q: Any, k: Any, c: Any) -> Sides:
    """Equal values give that value, here the same for all heads."""
    xp = array_namespace(q)
    one = c[:, None, None]
    return f.attend(q, k, xp.broadcast_to(one, k.shape)), xp.broadcast_to(one, q.shape)


@SHIFT_OF_SCORES.formula(
    "attention",
    "attend",
    names=(("the output with one vector added to all keys", "the output as it was"),),
    sizes=({"r": 5, "n": 5},),
    unsaid="large scores give no NaN",
    **QKV,
    c="real B G D",
    inputs=(
        *OF_CALLS["attend"],
        *(Inputs(lengths={"B": 3, "r": 6, "n": 6}, scale={"c": c}) for c in (10.0, BEYOND_EXP)),
    ),
)
def shift_of_scores(f: Any, q: Any, k: Any, v: Any, c: Any) -> Sides:
    """A vector c added to all keys adds q·c to all scores of q, and does not change the output."""
    return f.attend(q, k + c[:, :, None], v), f.attend(q, k, v)


LARGE = tuple(
    Inputs(lengths={"B": b, "r": n, "n": n}, scale={name: BEYOND_EXP})
    for b, n in ((1, 3), (3, 6))
    for name in ("q", "k")
)


@SHIFT_OF_SCORES.formula(
    "attention",
    "attend",
    floats=True,
    inputs=LARGE,
    **QKV,
    names=(("the output at large scores, times 0,", "0"),),
    unsaid="a number added to all scores",
)
def large_scores(f: Any, q: Any, k: Any, v: Any) -> Sides:
    """Scores whose exponentials overflow or underflow give finite outputs."""
    return 0 * f.attend(q, k, v), 0 * q


@QUERIES_APART.formula(
    "attention",
    "attend",
    q3="real B H m D",
    q4="real B H n D",
    **SQUARE,
    names=(
        ("the first queries", "the same, beside others"),
        ("the last queries", "the same, beside others"),
    ),
    inputs=(
        *(
            Inputs(lengths={"B": b, "n": n, "m": m})
            for b, n, m in ((1, 2, 1), (3, 3, 3), (2, 1, 4))
        ),
        *(
            Inputs(lengths={"B": 2, "n": 3, "m": 3}, scale={name: BEYOND_EXP})
            for name in ("q3", "q4")
        ),
    ),
    unsaid="the number of other queries",
)
def other_queries(
    f: Any, q: Any, k: Any, v: Any, q2: Any, k2: Any, v2: Any, q3: Any, q4: Any
) -> Sides:
    """The outputs of the first queries do not depend on the last ones, and vice versa."""
    xp, n = array_namespace(q), q.shape[2]
    keys, values = xp.concat((k, k2), axis=2), xp.concat((v, v2), axis=2)
    plain, last, first = (
        f.attend(xp.concat(pair, axis=2), keys, values) for pair in ((q, q2), (q, q3), (q4, q2))
    )
    return [last[:, :, :n], first[:, :, n:]], [plain[:, :, :n], plain[:, :, n:]]


@QUERIES_APART.formula(
    "attention",
    "attend",
    sizes=({"r": 2, "n": 5, "m": 3},),
    **QKV,
    q2="real B H m D",
    names=(("the first queries", "the same alone"), ("the last queries", "the same alone")),
)
def queries_alone(f: Any, q: Any, k: Any, v: Any, q2: Any) -> Sides:
    """If queries have no positions, some queries alone give their outputs among others."""
    whole, r = f.attend(array_namespace(q).concat((q, q2), axis=2), k, v), q.shape[2]
    return [whole[:, :, :r], whole[:, :, r:]], [f.attend(q, k, v), f.attend(q2, k, v)]


@GROUPS.formula(
    "attention",
    "attend",
    names=(("heads of a group", "the same, other keys and values in the other groups"),),
    sizes=({"r": 5, "n": 5},),
    unsaid="all heads of a group use its keys in the same way",
    **QKV,
    k2=KEYS,
    v2=KEYS,
)
def groups_of_heads(f: Any, q: Any, k: Any, v: Any, k2: Any, v2: Any) -> Sides:
    """The H/G heads of each group use its keys and values, and no others.

    For a single group this is vacuous.
    """
    if f.groups < 2:
        return [], []
    found, often = f.attend(q, k, v), f.heads // f.groups
    left, right = [], []
    for group in range(f.groups):
        heads = slice(group * often, (group + 1) * often)
        left.append(found[:, heads])
        right.append(f.attend(q, _one_of(k, k2, group), _one_of(v, v2, group))[:, heads])
    return left, right


def _one_of(own: Any, others: Any, place: int) -> Any:
    """Return one head of ``own`` in its place among those of ``others``."""
    parts = (others[:, :place], own[:, place : place + 1], others[:, place + 1 :])
    return array_namespace(own).concat(parts, axis=1)


@HEADS_APART.formula(
    "attention",
    "attend",
    names=(("a head", "the same head, with all other heads changed"),),
    sizes=({"r": 5, "n": 5},),
    unsaid="other numbers of heads",
    **QKV,
    q2=QUERIES,
    k2=KEYS,
    v2=KEYS,
)
def heads_apart(f: Any, q: Any, k: Any, v: Any, q2: Any, k2: Any, v2: Any) -> Sides:
    """Each head is independent of the queries of others, and of keys and values not its own.

    Keys and values are changed only if each head has its own.  For a single head this is vacuous.
    """
    if f.heads < 2:
        return [], []
    found = f.attend(q, k, v)
    left, right = [], []
    for head in range(f.heads):
        keys = [_one_of(k, k2, head), _one_of(v, v2, head)] if f.groups == f.heads else [k, v]
        left.append(found[:, head : head + 1])
        right.append(f.attend(_one_of(q, q2, head), *keys)[:, head : head + 1])
    return left, right


@SHOWN.formula(
    "attention",
    "weights",
    sizes=({"r": 5, "n": 5},),
    **QKV,
    names=(("values times the weights that are returned", "the output"),),
    inputs=ATTENTION_INPUTS,
)
def weights_as_shown(f: Any, q: Any, k: Any, v: Any) -> Sides:
    """Σ_j w_ij v_j = attend(q, k, v)_i, each head with the values of its group."""
    xp, weights = array_namespace(q), f.weights(q, k)
    heads, groups = q.shape[1], v.shape[1]
    read = [weights[:, head] @ v[:, head * groups // heads] for head in range(heads)]
    return xp.stack(read, axis=1), f.attend(q, k, v)


@TRANSLATION.formula(
    "attention",
    "whole_layer",
    names=(("from place 0", "from a later place"),),
    x=TOKENS,
    s="step",
    inputs=tuple(
        Inputs(at={"s": s}, lengths={"B": b, "n": n})
        for b, n in ((1, 3), (3, 6), (5, 5))
        for s in (1, 3, 17, 100)
    ),
)
def translation(f: Any, x: Any, s: Any) -> Sides:
    """layer(x from place 0) = layer(x from place s)."""
    later, first = by_offset(partial(f.whole_layer, x), 0, s=s)
    return first, later


LAWS = (
    PERMUTATION,
    ORDER_OF_KEYS,
    SUM_TO_ONE,
    SHIFT_OF_SCORES,
    QUERIES_APART,
    GROUPS,
    HEADS_APART,
    TRANSLATION,
    SHOWN,
    SCALE,
)
