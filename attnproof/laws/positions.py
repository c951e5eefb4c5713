"""Laws about positions: what an encoding computes from one of them, wherever it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from ..encoding.applicability import most_of, obeys, of_pairs, of_tokens, ways
from ..encoding.base import HOOKS, Encoding, in_numbers
from ..encoding.bounds import (
    FORMED,
    exceeded,
    grown,
    numbers_made,
    parameters_text,
    proved_bound,
    simple,
)
from ..encoding.law import Answer, law, stated
from ..encoding.names import c, e, most, r
from ..encoding.separation import REST, codes_differ, placed
from ..symbolic.array import AxisMismatch, as_array
from ..symbolic.claim import Claim, differ, equal
from ..symbolic.continuity import Discontinuous, whole_valued
from ..symbolic.continuity import bounded as within_bounds
from ..symbolic.continuity import continuous as walked
from ..symbolic.divisors import Condition, conditions
from ..symbolic.givens import index_map, positions, real
from ..symbolic.kernel import Refused
from ..symbolic.reading import range_message, show_ranges
from ..symbolic.refute import refute
from ..symbolic.signs import sign
from ..symbolic.terms import Term, free
from ..symbolic.well_formedness import formed
from ..theorems.laws.law import by_offset
from .scores import if_seen

ARITHMETIC = "the kernel"
BY_FORM = "the form of the terms (symbolic/continuity.py)"
FAR = 10**4
FARTHER = 10**6  # tried for tables only; code that takes a step per position is slow there
UNKNOWN = "; whether it is bounded without the hypothesis is open"
RUN = "running it with its default numbers"
NO_NUMBERS = "it computes no numbers: it acts only on which keys are visible"
MAKE_NUMBERS = tuple(hook for hook in HOOKS if hook != "sees")
WHOLE = "it is declared only for the positions 0, 1, 2, .."


def has_a_code(kind: type[Encoding]) -> str:
    """Return why a single position has no code, if only pairs of positions count; else "".

    A code that is read off one query and one key is that of the position only if it is the same
    among any other tokens.
    """
    if kind.acts("add", "rotate", "query", "key") or not kind.acts():
        return of_tokens(kind)
    if kind.acts("bias", "relate"):
        return of_pairs(kind)
    return "it acts on pairs of positions; a single position has no code"


law_of_positions = partial(law, group="positions")


@law_of_positions(
    "Different natural positions have different codes",
    example="plane-rotation",
    breaks="nope",
    applies=has_a_code,
    given=REST,
)
def unique(enc: Encoding, i: Any, j: Any, others: Any, rest: Any) -> dict[str, Any]:
    """code(a) ≠ code(b) for all natural numbers a ≠ b, however large.

    The code is what is added; or a key of ones, rotated, or a query of ones if keys are not; or
    what is added to the score of a query there and a key at 0.  Positions with several coordinates
    have different natural numbers in one of them, and anything in the others.  An encoding whose
    codes repeat may name the positions that it distinguishes, by a hypothesis about i and j.
    """
    claims: dict[str, Any] = {"assume": [differ(i, j)]}
    for k in range(max(enc.axes, 1)):
        here, there = (placed(enc, v, k, w) for v, w in ((i, others), (j, rest)))
        claims[f"in coordinate {k}" if enc.axes else ""] = codes_differ(enc, here, there, i, j, k)
    return claims


@unique.negative_control("for equal positions too")
def also_itself(enc: Encoding, i: Any) -> Claim:
    here = placed(enc, i, 0, i)
    own = enc.code(here)
    return codes_differ(enc, here, here, i, i) if own.ndim else differ(own, own)


def makes_numbers_for_ever(kind: type[Encoding]) -> str:
    """Return why it computes no numbers at unlimited positions; "" if it does."""
    if kind.reach:
        ends = f"its positions are limited (to {kind.reach}, with its defaults)"
        return f"{ends}: finitely many numbers are bounded"
    return NO_NUMBERS if kind.acts("sees") and not kind.acts(*MAKE_NUMBERS) else ""


@law_of_positions(
    "What is computed from a position is bounded",
    example="rope",
    breaks="index",
    applies=makes_numbers_for_ever,
)
def bounded(enc: Encoding) -> Answer:
    """There is a number C with |number| <= C for all positions, or ‖token at p‖ <= C ‖token‖.

    This applies to added vectors, to queries and keys, to what is added to the scores, and, for
    each query and key, to what depends on both in other ways.  What depends on many tokens has one
    C for any number of them, with contents between any two fixed numbers: a bound that grows with
    the sequence does not count.
    """
    claimed = "one number bounds what it computes, for all positions and any number of tokens"
    tried = list(supposed(enc))
    for under in ((), *tried):
        if found := proved_bound(enc, under):
            told, rules = found
            readings, outside = meant(enc, numbers_made(enc))
            if outside:
                return Answer("undecided", outside, claimed, "")
            words = said(enc, under)
            shown = f"bounds for all positions: {', '.join(told)}"
            how = shown if told else "it computes no numbers"
            if under:
                one = simple(type(enc))
                beyond = exceeded(one) or grown(one)
                how += f"; without it: {beyond[0]}" if beyond else UNKNOWN
            read_off = any(part.endswith(FORMED) for part in told)
            by = "; ".join([ARITHMETIC] * bool(rules) + [BY_FORM] * (read_off or not rules))
            return Answer("proved", how, claimed, by, rules, words, readings=readings)
    one = simple(type(enc))
    if beyond := exceeded(one) or grown(one):
        how, rules = beyond
        by = f"{ARITHMETIC}, for every C; an instance by ball arithmetic"
        return under_hypotheses(Answer("refuted", how, claimed, by, rules), enc, one, tried)
    how = "neither a bound nor a proof that none exists was found"
    return Answer("undecided", how, claimed, "", {}, said(enc, most_of(tried)[0]) if tried else ())


def said(enc: Encoding, under: Sequence[str]) -> tuple[str, ...]:
    """Return hypotheses in words."""
    return tuple(enc.hypotheses()[name] for name in under)


def under_hypotheses(
    refuted: Answer, enc: Encoding, one: Encoding, tried: Sequence[tuple[str, ...]]
) -> Answer:
    """Return a refutation by the values of ``one``; undecided under hypotheses that they break."""
    most = most_of(tried)
    broken = next((under for under in most if not obeys(one, under)), None)
    if broken is None:
        return replace(refuted, obeyed=said(enc, most[0]) if most else ())
    how = f"no proof was found under it; without it: {refuted.how}"
    return Answer("undecided", how, refuted.claimed, "", {}, said(enc, broken))


@bounded.negative_control("by 0")
def bounded_by_zero(enc: Encoding, x: Any, a: Any) -> Claim:
    return equal(0 * enc.encode(x, a), enc.encode(x, a))


def supposed(enc: Encoding) -> Iterator[tuple[str, ...]]:
    """Yield the sets of hypotheses that it declares; they may be about the positions a, b."""
    yield from ways(enc, law("two positions", group="", example="", breaks="")(_anywhere))


def _anywhere(enc: Encoding, a: Any, b: Any) -> Claim:
    """Suppose nothing about the positions a and b."""
    del enc
    return equal(a - a, b - b)


def on_real_positions(kind: type[Encoding]) -> str:
    """Return why nothing is asked between whole positions; "" if it is asked.

    That the author calls positions whole refutes nothing; an error at position 1/2 does.
    """
    if kind.acts("sees") and not kind.acts(*MAKE_NUMBERS):
        return NO_NUMBERS
    return WHOLE if kind.whole and at_half(kind) is None else ""


def at_half(kind: type[Encoding]) -> str | None:
    """Return what the encoding with its defaults raises at position 1/2; None if nothing."""
    if set(kind.given) - set(kind.defaults):
        return None
    try:
        in_numbers(kind).code(np.asarray(0.5))
    except (LookupError, ValueError) as error:
        return f"at position 1/2: {type(error).__name__}: {error}"
    return None


@law_of_positions(
    "It is continuous in the positions",
    example="rope",
    breaks="learned-table",
    applies=on_real_positions,
)
def continuous(enc: Encoding) -> Answer:
    """encode(x, p), the scores and the values are continuous functions of real positions.

    This is stated for any number of tokens, jointly in all positions.  The scores are taken without
    a mask: whether that hides keys suddenly is a separate question.
    """
    claimed = "scores, encoded tokens and values are continuous in real positions"
    if enc.whole:
        return Answer("refuted", str(at_half(type(enc))), claimed, RUN)
    return walked_over(enc, claimed, terms, steps)


def has_a_mask(kind: type[Encoding]) -> str:
    """Return why there is no mask that may be continuous; "" if there is one."""
    if kind.acts() and not kind.acts("sees"):
        return "it has no mask: every key is visible"
    return WHOLE if kind.whole else ""


@law_of_positions(
    "Masking is continuous in the positions",
    example="nope",
    breaks="nope-causal",
    applies=has_a_mask,
)
def mask_continuous(enc: Encoding) -> Answer:
    """exp(score), and 0 where the key is hidden, is a continuous function of real positions.

    A mask may be continuous in this sense if each key fades before it is hidden.
    """
    return walked_over(enc, "exp(score), 0 where a key is hidden, is continuous", strengths, edges)


@mask_continuous.negative_control("every key is hidden")
def all_hidden(e: Encoding, x: Any, y: Any, a: Any, b: Any) -> Claim:
    return equal(e.strengths(x[None], y[None], a[None], b[None])[0, 0], 0)


def walked_over(
    enc: Encoding,
    claimed: str,
    every: Callable[..., Iterator[Term]],
    whole_numbers: Callable[..., Iterator[tuple[str, Any]]],
) -> Answer:
    """Return whether every term is continuous, by its form; or a number that jumps."""
    places = tuple(
        positions(n, *(enc.axes,) * bool(enc.axes)).named(name) for name, n in (("u", r), ("p", c))
    )
    variables = frozenset(place.term for place in places)
    rules: Counter[str] = Counter()
    found = list(every(enc, *places))
    try:
        for term in found:
            rules += walked(term, variables, facts_of(enc))
    except Discontinuous as stopped:
        jumps = jump(enc, claimed, whole_numbers)
        return jumps or Answer("undecided", str(stopped), claimed, "")
    readings, outside = meant(enc, found)
    if outside:
        return Answer("undecided", outside, claimed, "")
    how = f"composed of continuous operations, {sum(rules.values())} of them"
    by = "the form of the terms (symbolic/continuity.py)"
    return Answer("proved", how, claimed, by, rules, readings=readings)


def terms(enc: Encoding, m: Any, n: Any) -> Iterator[Term]:
    """Yield all that depends on the positions m of queries and n of keys, except the mask."""
    Q, K = real(r, enc.width).named("Q"), real(c, enc.width).named("K")
    V = real(c, enc.width if enc.defines("add") else e).named("V")
    yield enc.scores(Q, K, m, n).term
    yield enc.encode(K, n).term
    yield enc.encode_query(Q, m).term
    if enc.defines("value"):
        yield enc.value(V[None], m[:, None], n[None]).term


def strengths(enc: Encoding, m: Any, n: Any) -> Iterator[Term]:
    """Yield exp of the scores, 0 where a key is hidden."""
    Q, K = real(r, enc.width).named("Q"), real(c, enc.width).named("K")
    yield enc.strengths(Q, K, m, n).term


def facts_of(enc: Encoding) -> frozenset[Any]:
    """Return what the kinds of its parameters say about their signs."""
    facts = [fact for name, given in enc.declared().items() for fact in given.granted(name)]
    return frozenset(fact for fact in facts if fact[0] in ("positive", "nonnegative"))


def meant(enc: Encoding, found: Iterable[Term]) -> tuple[tuple[str, ...], str]:
    """Return when terms stand for numbers, as phrases that follow "if"; and what reads outside.

    A divisor that is 0, or a root of a negative number, leaves no number; a slice that leaves its
    axis, for some lengths, is a different one on arrays.  The second is "" if every slice stays
    inside.
    """
    every = list(found)
    unshown, *_ = show_ranges(every, facts_of(enc))
    asked = conditions(*every, facts=facts_of(enc))
    return tuple(one.phrase for one in asked), range_message(unshown[0]) if unshown else ""


def jump(
    enc: Encoding, claimed: str, whole_numbers: Callable[..., Iterator[tuple[str, Any]]]
) -> Answer | None:
    """Return an answer with a number that is always an integer and takes two values, so it jumps.

    Functions about which nothing is known are t ↦ t, or else t ↦ ⌊t⌋.
    """
    tried = list(supposed(enc))
    for one in (simple(type(enc)), simple(type(enc), floored=True)):
        m, n = (positions(*(enc.axes,) * bool(enc.axes)).named(name) for name in "ab")
        for says, number in whole_numbers(one, m, n):
            if not whole_valued(number.term):
                continue

            def same(one: Encoding, a: Any, b: Any) -> Claim:
                """State that the number is everywhere what it is at the positions 0 and 0."""
                here, there = (dict(whole_numbers(one, *at)) for at in ((a, b), (0 * a, 0 * b)))
                return equal(here[says], there[says])  # noqa: B023

            asked = stated(same, one, {})
            assert not isinstance(asked, Answer)
            found = refute(asked.claims[""], asked.givens, limit_seconds=0.5)
            if found is not None:
                how = (
                    f"{says} is an integer everywhere and not constant: "
                    f"{parameters_text(one)}{found.text}"
                )
                by = "ball arithmetic; by the intermediate value theorem such a number jumps"
                return under_hypotheses(Answer("refuted", how, claimed, by), enc, one, tried)
    return None


def steps(enc: Encoding, m: Any, n: Any) -> Iterator[tuple[str, Any]]:
    """Yield numbers that may be integers, and jump only where the effect of the encoding jumps.

    The bias if it alone acts on the scores; what is added if nothing else acts on the token.
    """
    if enc.acts("bias") and not enc.acts("scores", "relate", "rotate", "query", "key", "add"):
        yield "the bias", enc.bias(m[None, None], n[None, None])[0, 0]
    if enc.acts("add") and not enc.acts("rotate", "key"):
        yield "what is added", enc.add(m[None])[0]


def edges(enc: Encoding, m: Any, n: Any) -> Iterator[tuple[str, Any]]:
    """Yield whether a key is seen, if the strength at the edge of the mask is certainly not 0."""
    if enc.defines("sees") and _smooth(enc):
        yield "whether a query sees a key (1 or 0)", if_seen(enc, m, n, 1, 0)


def _smooth(enc: Encoding) -> bool:
    """Whether the scores without the mask are continuous, or bounded, by their form.

    Then exp of them stays away from 0 wherever the mask begins to hide a key.
    """
    Q, K = real(r, enc.width).named("Q"), real(c, enc.width).named("K")
    axes = (enc.axes,) * bool(enc.axes)
    m, n = positions(r, *axes).named("u"), positions(c, *axes).named("p")
    scores, places = enc.scores(Q, K, m, n).term, frozenset((m.term, n.term))
    try:
        walked(scores, places, facts_of(enc))
    except Discontinuous:
        return within_bounds(scores, places)
    return True


@continuous.negative_control("constant")
def constant(enc: Encoding, Q: Any, K: Any, u: Any, p: Any, s: Any) -> Claim:
    return equal(*by_offset(partial(enc.marks, Q, K, u), p, s=s))


@law_of_positions("It is defined at every natural position", example="rope", breaks="learned-table")
def defined_beyond(enc: Encoding) -> Answer:
    """encode(x, p), scores and values exist at all natural numbers, also beyond training.

    The formulas are well formed for any natural positions, and no divisor, root or logarithm in
    them needs a condition; an encoding that names its ``reach`` is run there, with its default
    numbers.
    """
    claimed = "every natural number is a position"
    ended = ends(type(enc), enc.reach)
    if ended is not None:
        return Answer(*ended, claimed, RUN)
    try:
        asked, readings = open_conditions(enc)
    except (AxisMismatch, LookupError, Refused, TypeError) as error:
        return Answer("undecided", f"{type(error).__name__}: {error}", claimed, "")
    if asked:
        return Answer("undecided", f"it is not certain that {asked[0]}", claimed, "")
    how = "it is defined at any natural positions, without further conditions"
    by = "the form of the terms (symbolic/well_formedness.py)"
    return Answer("proved", how, claimed, by, readings=readings)


def ends(kind: type[Encoding], reach: int) -> tuple[str, str] | None:
    """Return verdict and reason, if with its defaults it lacks position ``reach``, or a far one."""
    if kind.axes or set(kind.given) - set(kind.defaults):
        return None
    made = in_numbers(kind)
    with np.errstate(all="ignore"):
        return _ended(made, reach)


def _ended(made: Encoding, reach: int) -> tuple[str, str] | None:
    try:
        made.code(np.asarray(float(max(reach, 1) - 1)))
    except LookupError as error:
        return "undecided", f"it is not defined even at position {max(reach, 1) - 1}: {error}"
    looked_up = any(given.kind == "function" for given in made.given.values())
    places = (reach, FAR, *[FARTHER] * looked_up)
    for far in dict.fromkeys(places):
        try:
            made.code(np.asarray(float(far)))
        except LookupError as error:
            return "refuted", f"at position {far}: {type(error).__name__}: {error}"
    return None


def open_conditions(enc: Encoding) -> tuple[Sequence[str], tuple[str, ...]]:
    """Return what would have to hold for natural positions, in words; and the other conditions."""
    count = (max(enc.axes, 1),)
    own = {
        name: [index_map(length, most).named(f"{name}_{k}") for k in range(*count)]
        for name, length in (("u", r), ("p", c))
    }
    xp = array_namespace(own["u"][0])
    at = [xp.stack(v, axis=-1) if enc.axes else v[0] for v in own.values()]
    places = {one.term for v in own.values() for one in v}
    every = (*terms(enc, *at), *strengths(enc, *at))
    for term in every:
        formed(term)
    asked = conditions(*every, facts=facts_of(enc))
    found = [one.phrase for one in asked if free(one.value) & places or never(one)]
    _, outside = meant(enc, every)
    rest = tuple(one.phrase for one in asked if one.phrase not in found)
    return [*found, *[outside] * bool(outside)], rest


def never(one: Condition) -> bool:
    """Whether a condition certainly fails, whatever the parameters."""
    if one.impossible:
        return True
    return one.wanted != "not 0" and sign((0 - as_array(one.value)).term)[0] == 2


defined_beyond.negative_control("the same at every position")(constant)
