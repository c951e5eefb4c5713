"""Whether what an encoding computes from positions is bounded over all positions.

It is proved by a bound: the numbers that are added stay between −C and C, and encoded tokens are at
most C times as long as they were, for all positions.  C is ``bound()`` of the encoding, or a small
number; no position may occur in it.

It is refuted by one choice of the parameters for which no bound holds: the kernel proves, for every
natural number C, that at some position the square exceeds C²; or, for what depends on many tokens,
that it grows in equal steps with their number.  All of these are statements for the kernel.  A
bound that fails refutes only itself, so no witness is sought against it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

from array_api_compat import array_namespace

from ..symbolic.array import Array, AxisMismatch, as_array
from ..symbolic.claim import Claim, at_least, equal, greater
from ..symbolic.continuity import bounded
from ..symbolic.decision import Decision
from ..symbolic.givens import NUMBERS, Given, natural
from ..symbolic.prove import Effort, decide
from ..symbolic.refute import refute
from ..symbolic.scalars import always_less, num
from ..symbolic.terms import Term, free
from .applicability import alone
from .base import Encoding
from .law import Answer, Body, stated
from .names import LAW_SIZES, c, most, named, r, size_names
from .names import e as value_width

EFFORT = Effort(refuting=False, prove=2.0)
ONE_TOKEN = (1, 0, -1)  # the value of every feature, if many tokens are equal
SMALL = (1, 2)  # bounds that are tried if none is given
Made = tuple[str, Any, Any]
FORMED = "by its form"
OF_CONTENTS = (
    "what is added to q·k",
    "the scores",
    "the values that are read",
    "what is added, all together",
    "keys, all together",
    "queries, all together",
)


def made(
    e: Encoding, a: Any, b: Any, x: Any, y: Any, u: Any, p: Any, Q: Any, K: Any, V: Any
) -> Iterator[Made]:
    """Yield what it computes from positions: words, numbers, and the token they are relative to.

    What is added and biases are absolute: their token is None.  What depends on queries, keys and
    values in other ways must be bounded for each of them.  A pair stands for all if it is proved
    that other tokens do not matter.  Otherwise everything is taken as a whole, as are custom
    scores: the bound then holds for any number of tokens.
    """
    if not alone(type(e)):
        yield OF_CONTENTS[1], e.scores(Q, K, u, p), None
        if e.acts("add"):
            yield OF_CONTENTS[3], e.add(p), None
        if e.acts("rotate", "key"):
            yield OF_CONTENTS[4], e.encode(K, p), None
        if e.acts("query"):
            yield OF_CONTENTS[5], e.encode_query(Q, u), None
    else:
        yield from _of_pairs(e, a[None], b[None], x, y, u, p, Q, K)
    if e.acts("value"):
        yield OF_CONTENTS[2], e.value(V[None], u[:, None], p[None]), None


def _of_pairs(
    e: Encoding, m: Any, n: Any, x: Any, y: Any, u: Any, p: Any, Q: Any, K: Any
) -> Iterator[Made]:
    q, k = x[None], y[None]
    if e.acts("add"):
        yield "what is added", e.add(m)[0], None
    if e.acts("rotate", "key"):
        yield "keys", e.key(q, m)[0], x
    if e.acts("query"):
        yield "queries", e.query(q, m)[0], x
    if e.acts("bias") and not e.acts("scores"):
        yield "the bias", e.bias(m[:, None], n[None])[0, 0], None
    if e.acts("relate") and not e.acts("scores"):
        related = e.relate(q[:, None], k[None], m[:, None], n[None])
        yield OF_CONTENTS[0], related[0, 0], None
    if e.acts("scores"):
        yield OF_CONTENTS[1], e.scores(Q, K, u, p), None


def within(
    e: Encoding, numbers: Any, token: Any, C: Any, together: bool = False
) -> dict[str, Claim]:
    """State that the numbers are at most C in size, or the encoded token at most C times as long.

    With ``together`` the squares of the numbers add up to at most C², which is stronger.
    """
    parts = free(as_array(C).term)
    own = {str(t.data[0]) for t in parts if t.op in ("var", "index", "call")}
    strange = own - set(e.declared()) | size_names([as_array(C).term]) & LAW_SIZES
    if strange:
        raise TypeError(
            f"a bound depends on the parameters alone; that of {type(e).__name__} has "
            f"{', '.join(sorted(strange))}"
        )
    if token is not None:
        return {"": at_least(C**2 * _squares(token), _squares(numbers))}
    if together:
        return {"": at_least(C**2, _squares(numbers))}
    return {"from above": at_least(C, numbers), "from below": at_least(numbers, -C)}


def proved_bound(e: Encoding, under: Sequence[str] = ()) -> tuple[list[str], Counter[str]] | None:
    """Return bounds of all it computes, in words, and the kernel steps that prove them; or None."""
    bounds = [e.bound()] if e.defines("bound") else list(SMALL)
    told: list[str] = []
    used: Counter[str] = Counter()
    every, formed = _symbolic(e), by_form(e)
    for k, (says, numbers, token) in enumerate(every):
        if k in formed and says in OF_CONTENTS:
            told.append(f"{says}: {FORMED}")
            continue
        several = token is None and as_array(numbers).ndim > 0
        ways = (False, True) if e.defines("bound") and several else (False,)
        for C, together in product(map(as_array, bounds), ways):

            def said(e: Encoding, every: list[Made]) -> dict[str, Claim]:
                _, numbers, token = every[k]  # noqa: B023
                return within(e, numbers, token, C, together)  # noqa: B023

            asked = stated(_of_made(said), e, {}, under)
            assert not isinstance(asked, Answer)
            found = decide(asked, effort=EFFORT)
            if found.verdict == "proved":
                used += rules_of(found)
                told.append(f"{says}: {C!r}")
                break
        else:
            if k not in formed:
                return None
            told.append(f"{says}: {FORMED}")
    return told, used


def numbers_made(e: Encoding) -> list[Term]:
    """Return everything that has to be bounded, at any positions, as terms."""
    return [as_array(numbers).term for _, numbers, _ in _symbolic(e)]


def _symbolic(e: Encoding) -> list[Made]:
    found: list[Made] = []

    def said(_: Encoding, every: list[Made]) -> Answer:
        found.extend(every)
        return Answer("undecided", "", "", "")

    stated(_of_made(said), e, {})
    return found


def _of_made(say: Callable[[Encoding, list[Made]], Any]) -> Body:
    """Return the function of a law about everything that an encoding computes."""

    def body(
        e: Encoding, a: Any, b: Any, x: Any, y: Any, u: Any, p: Any, Q: Any, K: Any, V: Any
    ) -> Any:
        return say(e, list(made(e, a, b, x, y, u, p, Q, K, V)))

    return body


def by_form(e: Encoding) -> set[int]:
    """Return the indices of what is bounded by its form: sums and products of bounded numbers."""
    places, contents = (
        frozenset(named(name, e, {})[1].term for name in names) for names in ("abup", "QKV")
    )
    variables = places | {r.term, c.term, most.term}
    return {
        k
        for k, (_, numbers, token) in enumerate(_symbolic(e))
        if token is None and bounded(numbers.term, variables, contents)
    }


def exceeded(e: Encoding) -> tuple[str, Counter[str]] | None:
    """Return what exceeds every bound, with an instance, and the kernel steps for it; or None.

    ``e`` may have values for some parameters: one choice of them is enough.
    """
    every = _symbolic(e)
    places = product(range(len(every)), (False, True), _far(e, natural().named("C")))
    for k, rotated, far in places:
        says, _, token = every[k]
        if not rotated or token is None:

            def body(e: Encoding, C: Any) -> Claim:
                return greater(*_sizes(e, C, far, k, rotated))  # noqa: B023

            given = {"C": lambda _: natural("any bound")}
            asked = stated(body, e, given)
            assert not isinstance(asked, Answer)
            found = decide(asked, effort=EFFORT)
            if found.verdict != "proved":
                continue
            size, limit = _sizes(e, natural().named("C"), far, k, rotated)
            witness = refute(at_least(limit, size), asked.givens, limit_seconds=0.5)
            if witness is not None:
                what = says if token is None else f"{says} of ones"
                told = f"{what} at position {far!r}: more than C for every C"
                return f"{told}; {parameters_text(e)}{witness.text}", rules_of(found)
    return None


def _sizes(e: Encoding, C: Any, far: Any, k: int, rotated: bool) -> tuple[Any, Any]:
    """Return the square of the k-th computed quantity at that position, and the square of C."""
    zero = as_array(0)
    xp = array_namespace(zero)
    if e.axes:
        far, zero = (xp.broadcast_to(v, (e.axes,)) for v in (far, zero))
    m, n = (zero, far) if rotated else (far, zero)
    one, ones = xp.ones((e.width,)), xp.ones((1, e.width))
    values = xp.ones((1, e.width if e.defines("add") else value_width))
    every = list(made(e, m, n, one, one, m[None], n[None], ones, ones, values))
    _, numbers, token = every[k]
    return xp.sum(numbers**2), C**2 * (1 if token is None else xp.sum(token**2))


def grown(e: Encoding) -> tuple[str, Counter[str]] | None:
    """Return what grows without end with the number of tokens, and the kernel steps; or None.

    For c equal tokens it is f(1) + (c − 1) (f(2) − f(1)) for every c, which the kernel proves; and
    f(2) is not f(1), which ball arithmetic shows.  So it exceeds every C.
    """
    if alone(type(e)):
        return None
    tokens, told = as_array(c), [says for says, _, token in _symbolic(e) if token is None]
    for k, entry, content, spread in product(range(len(told)), (0, -1), ONE_TOKEN, (False, True)):
        try:
            ends = [_of_many(e, count, k, entry, content, spread) for count in (1, 2)]
            step = ends[1] - ends[0]

            def body(e: Encoding) -> Claim:
                number = _of_many(e, tokens, k, entry, content, spread)  # noqa: B023
                return equal(number, ends[0] + (tokens - 1) * step)  # noqa: B023

            asked = stated(body, e, {})
        except (AxisMismatch, IndexError, TypeError):
            continue  # it is not defined for such tokens
        assert not isinstance(asked, Answer)
        witness = refute(equal(step, 0), asked.givens, limit_seconds=0.5)
        found = decide(asked, effort=EFFORT) if witness is not None else None
        if witness is not None and found is not None and found.verdict == "proved":
            where = f"{tokens!r} tokens at position 1{' after one at 0' * spread}"
            alike = f"each {content} in all features" if content else "zeros"
            grows = f"{told[k]} with {where}, {alike}: equal steps with each more, so more than C"
            step_told = f"{parameters_text(e)}the step: {witness.text}"
            return f"{grows} for every C; {step_told}", rules_of(found)
    return None


def _of_many(e: Encoding, count: Any, k: int, entry: int, content: int, spread: bool) -> Array:
    """Return an entry of the k-th quantity computed from so many equal tokens, with one query.

    ``entry`` is that of the first or the last token.  All are at position 1, as is the query; with
    ``spread``, one more token precedes them at 0.
    """
    one = as_array(1)
    xp = array_namespace(one)
    axes = (e.axes,) * bool(e.axes)
    p = xp.broadcast_to(one, (count, *axes))
    if spread:
        p, count = xp.concat([0 * p[:1], p]), count + 1
    width = e.width if e.defines("add") else value_width
    Q, K, V = (
        content * xp.ones(shape) for shape in ((1, e.width), (count, e.width), (count, width))
    )
    m, token = p[-1:], xp.ones((e.width,))
    every = made(e, p[0], p[0], token, token, m, p, Q, K, V)
    numbers = as_array([one for _, one, token in every if token is None][k])
    for length in numbers.shape:
        of_tokens = as_array(length).term is as_array(count).term
        numbers = numbers[entry if of_tokens else 0]
    return numbers


def parameters_text(e: Encoding) -> str:
    """Return the parameters that it was given, in words."""
    own = {name: v for name, v in e.parameters.items() if name in type(e).given}
    told = {name: getattr(v, "told", "") or repr(v) for name, v in own.items()}
    return "".join(f"{name} = {v}, " for name, v in told.items())


def simple(kind: type[Encoding], *, floored: bool = False) -> Encoding:
    """Return the encoding whose numbers are 1 and whose functions of a number return that number.

    ``floored``: they return the largest whole number that is not above it.
    """
    values: dict[str, Any] = {}
    one = as_array(1)
    xp = array_namespace(one)
    for name, given in kind.declared().items():
        if given.kind in NUMBERS:
            values[name] = xp.ones(given.shape) if given.shape else one
        elif given.kind == "natural":
            values[name] = one
        elif given.kind == "function" and given.core == (0,) and given.out is not None:
            values[name] = _same(given, floored)
    return kind(**values)


def _same(given: Given, floored: bool) -> Any:
    """Return the function with f(t) = t, or ⌊t⌋, in every entry."""
    shape = given.out or ()

    def function(t: Any) -> Any:
        t = as_array(t) // 1 if floored else as_array(t)
        return t[(..., *(None,) * len(shape))] * array_namespace(t).ones(shape) if shape else t

    function.told = "t ↦ ⌊t⌋" if floored else "t ↦ t"  # type: ignore[attr-defined]
    return function


def rules_of(found: Decision) -> Counter[str]:
    """Return how often the kernel used each rule."""
    links = [link for claim in found.claims for link in claim.links]
    return sum((Counter(link.rules) for link in links), Counter())


def _far(e: Encoding, C: Array) -> Iterator[Any]:
    """Yield positions at which something may exceed C: the author's only, if there is one."""
    if e.defines("beyond"):
        far = as_array(e.beyond(C))
        if e.whole and not always_less(num(-1), far.term):
            raise TypeError(f"beyond(C) is a natural number where positions are; it is {far!r}")
        yield far
        return
    xp = array_namespace(C)
    yield C + 1
    if not e.whole:
        yield xp.log(C + 1)
        yield -xp.log(C + 1)
        yield xp.exp(C + 1) - 1


def _squares(x: Any) -> Any:
    """Return the sum of the squares along the last axis."""
    return array_namespace(x).sum(x**2, axis=-1)
