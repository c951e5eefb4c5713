"""Which encodings a law applies to, and under which hypotheses.

A law about a pair says nothing about scores that depend on other tokens too, and a law about one
token nothing about code that treats rows of tokens differently.  So each is asked only if the
kernel proves that they do not: for any number of tokens, with any contents and positions.

Under a hypothesis that nothing obeys, everything is true.  So each hypothesis that is tried has a
certified instance: small exact parameters for which it holds.  If it is about positions, as in
"positions below 2^d", there are positions that obey it together with the assumptions of the law
itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial, wraps
from inspect import signature
from itertools import combinations
from typing import Any

from ..symbolic.budget import check_time
from ..symbolic.claim import Claim, equal
from ..symbolic.givens import Given, index_below
from ..symbolic.prove import decide
from ..symbolic.ranges import Range
from ..symbolic.reading import range_message, show_ranges
from ..symbolic.refute import find_example
from ..symbolic.statement import Statement
from ..symbolic.terms import free
from ..theorems.laws.law import by_offset
from .base import Encoding, remembered
from .law import Answer, EncodingLaw, stated
from .names import c, letters, r

TOGETHER = (
    "the score of a query with a key depends on the other tokens, so a pair alone has no score"
)
OPEN = "it is not proved that the score of a query with a key is independent of other tokens"
OPEN_ROWS = "it is not proved that the encoding of a token is independent of other tokens"
MOVED = (
    "; proved for all tokens together: the scores are unchanged when all positions are shifted "
    "equally"
)


def of_pairs(kind: type[Encoding]) -> str:
    """Return why a law about the score of one query with one key does not apply; "" if it does."""
    if kind.together:
        return TOGETHER
    if alone(kind):
        return ""
    outside = _reads_outside(kind)
    return f"{OPEN}: {range_message(outside[0])}" if outside else OPEN


@remembered
def alone(kind: type[Encoding]) -> bool:
    """Whether the score of a pair is proved to be the same among any other tokens.

    Of tables that may be too short it is asked for the lengths that a hypothesis names: code that
    reads outside of a table has no scores, and no law is decided of it without such a hypothesis.
    """
    if _proved(stated(_among_others, kind(), ANYWHERE)):
        return True
    if not _reads_outside(kind):
        return False
    made = kind()
    of_lengths = {name for name in made.hypotheses() if _is_about_lengths(made, name)}
    every = (under for under in ways(made) if of_lengths.issuperset(under))
    return any(_proved(stated(_among_others, made, ANYWHERE, under)) for under in every)


def _reads_outside(kind: type[Encoding]) -> tuple[Range, ...]:
    """Return what its scores may read outside of a table, if no hypothesis of its own is met."""
    asked = stated(_among_others, kind(), ANYWHERE)
    assert not isinstance(asked, Answer)
    return show_ranges(t for claim in asked.claims.values() for t in claim.terms())[0]


def _is_about_lengths(made: Encoding, name: str) -> bool:
    """Whether a hypothesis is about lengths alone."""
    return not letters(made, name) and all(
        isinstance(one, Claim) and all(v.op == "size" for t in one.terms() for v in free(t))
        for one in getattr(made, name)()
    )


def _proved(asked: Statement | Answer) -> bool:
    """Whether it is proved; raises if time has run out, so that this is not cached as an answer."""
    assert not isinstance(asked, Answer)
    if decide(asked, refuting=False).verdict == "proved":
        return True
    check_time()
    return False


def _among_others(e: Encoding, Q: Any, K: Any, u: Any, p: Any, row: Any, column: Any) -> Claim:
    one = e.mark(Q[row], K[column], u[row], p[column])
    return equal(e.marks(Q, K, u, p)[row, column], one)


def of_tokens(kind: type[Encoding]) -> str:
    """Return why a law about what becomes of one token does not apply; "" if it does."""
    return "" if _by_itself(kind) else OPEN_ROWS


@remembered
def _by_itself(kind: type[Encoding]) -> bool:
    """Whether a token is proved to become the same among any others as it does alone."""
    if not kind.acts("add", "rotate", "query", "key"):
        return True
    return _proved(stated(_rows, kind(), ANYWHERE))


def _rows(
    e: Encoding,
    Q: Any,
    K: Any,
    u: Any,
    p: Any,
    row: Any,
    column: Any,
    x: Any,
    y: Any,
    a: Any,
    b: Any,
) -> dict[str, Claim]:
    """State that one of many tokens is encoded like a row of one, and that like a single token."""
    query, key = Q[row][None], K[column][None]
    return {
        "a query among others": equal(
            e.encode_query(Q, u)[row], e.encode_query(query, u[row][None])[0]
        ),
        "a key among others": equal(e.encode(K, p)[column], e.encode(key, p[column][None])[0]),
        "a row of one query": equal(e.encode_query(x[None], a[None])[0], e.encode_query(x, a)),
        "a row of one key": equal(e.encode(y[None], b[None])[0], e.encode(y, b)),
    }


def any_row(e: Encoding) -> Given:
    """Return the index of any query."""
    del e
    return index_below(r)


def any_column(e: Encoding) -> Given:
    """Return the index of any key."""
    del e
    return index_below(c)


ANYWHERE = {"row": any_row, "column": any_column}


def of_pairs_by_offset(kind: type[Encoding]) -> str:
    """Like ``of_pairs``, for the law of offsets; adds what is proved of all tokens together."""
    why = of_pairs(kind)
    if why and moves_together(kind):
        return why + MOVED
    return why


@remembered
def moves_together(kind: type[Encoding]) -> bool:
    """Whether all scores are proved to stay the same if all positions move by the same shift."""
    return _proved(stated(_all_moved, kind(), {}))


def _all_moved(e: Encoding, Q: Any, K: Any, u: Any, p: Any, s: Any) -> Claim:
    return equal(*by_offset(partial(e.marks, Q, K), u, p, s=s))


LIMIT = 1.0  # seconds for finding an instance


def ways(encoding: Encoding, law: EncodingLaw | None = None) -> Iterator[tuple[str, ...]]:
    """Yield the sets of hypotheses that can hold: one each in class order, then two, then more.

    Those about positions are included if the law has the same letters.
    """
    spoken = set() if law is None else set(list(signature(law.body).parameters)[1:])
    names = tuple(n for n in encoding.hypotheses() if set(letters(encoding, n)) <= spoken)
    for count in range(1, len(names) + 1):
        for under in combinations(names, count):
            check_time()
            if obeyed(encoding, under, law):
                yield under


def most_of(tried: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return the sets that are not part of another: as many hypotheses as can hold together.

    >>> most_of([("a",), ("b",), ("a", "b"), ("c",)])
    [('a', 'b'), ('c',)]
    """
    return [one for one in tried if not any(set(one) < set(other) for other in tried)]


def obeys(made: Encoding, under: Sequence[str]) -> bool:
    """Whether the parameters of an encoding are proved to obey these hypotheses.

    A hypothesis about positions is not obeyed by parameters alone.
    """
    if any(letters(made, name) for name in under):
        return False

    def said(encoding: Encoding) -> dict[str, Any]:
        every = [one for name in under for one in getattr(encoding, name)()]
        return {
            str(k): equal(*one) if isinstance(one, tuple) else one for k, one in enumerate(every)
        } or {"": equal(0, 0)}

    asked = stated(said, made, {})
    return not isinstance(asked, Answer) and decide(asked, refuting=False).verdict == "proved"


def obeyed(encoding: Encoding, under: tuple[str, ...], law: EncodingLaw | None = None) -> bool:
    """Whether parameters are known that obey these hypotheses, certified like a witness."""
    if law is not None and any(letters(encoding, name) for name in under):
        return _has_instance(stated(_nothing_of(law), encoding, law.given, under))
    if encoding.parameters:
        return _obeyed(encoding, under)
    return _of_kind(type(encoding), under)


@remembered
def _of_kind(kind: type[Encoding], under: tuple[str, ...]) -> bool:
    return _obeyed(kind(), under)


def _obeyed(encoding: Encoding, under: tuple[str, ...]) -> bool:
    return _has_instance(stated(_false, encoding, {}, under))


def _has_instance(asked: Statement | Answer) -> bool:
    """Whether certified values were found that obey what is assumed."""
    if isinstance(asked, Answer):
        return False
    return find_example(asked.givens, asked.assume, asked.laws, LIMIT) is not None


def _false(encoding: Encoding) -> Claim:
    """Return the claim 0 = 1."""
    del encoding
    return equal(0, 1)


def _nothing_of(law: EncodingLaw) -> Any:
    """Return the law's function with 0 = 1 as its claim, so that only its assumptions remain."""

    @wraps(law.body)
    def body(encoding: Encoding, **values: Any) -> Any:
        said = law.body(encoding, **values)
        if isinstance(said, Answer):
            return said
        supposed = said.get("assume", ()) if isinstance(said, dict) else ()
        return {"assume": supposed, "": _false(encoding)}

    return body
