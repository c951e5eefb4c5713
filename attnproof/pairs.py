"""Whether a token, and the score of a pair, are their own: the same among any other tokens.

A law about a pair says nothing of scores that look at other tokens too, nor a law about one token
of code that does something else with rows of tokens.  So each is asked only where the kernel proves
that they do not: for any number of tokens, with any contents and positions.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any

from .encoding import Encoding
from .encoding_law import Answer, stated
from .law_names import c, r
from .symbolic.budget import spend
from .symbolic.claim import Claim, equal
from .symbolic.givens import Given, index_below
from .symbolic.prove import decide
from .symbolic.statement import Statement
from .theorems.laws.equations import by_offset

TOGETHER = "the score of a query with a key depends on the other tokens: a pair has none of its own"
OPEN = "it is not proved that the score of a query with a key is the same among other tokens"
OPEN_ROWS = "it is not proved that a token becomes what it does alone among other tokens"
MOVED = "; what is proved of all tokens together: all scores stay when all positions move alike"


def of_pairs(kind: type[Encoding]) -> str:
    """Why a law about the score of one query with one key cannot be asked, if so."""
    if kind.together:
        return TOGETHER
    return "" if alone(kind) else OPEN  # type: ignore[arg-type]  # classes hash by identity


@cache
def alone(kind: type[Encoding]) -> bool:
    """Whether the score of a pair is proved to be what it is among any other tokens."""
    return _proved(stated(_among_others, kind(), ANYWHERE))


def _proved(asked: Statement | Answer) -> bool:
    """Whether it is proved; that no time was left says nothing, and is not kept."""
    assert not isinstance(asked, Answer)
    if decide(asked, refuting=False).verdict == "proved":
        return True
    spend()
    return False


def _among_others(e: Encoding, Q: Any, K: Any, u: Any, p: Any, row: Any, column: Any) -> Claim:
    one = e.mark(Q[row], K[column], u[row], p[column])
    return equal(e.marks(Q, K, u, p)[row, column], one)


def of_tokens(kind: type[Encoding]) -> str:
    """Why a law about what becomes of one token cannot be asked, if so."""
    return "" if _by_itself(kind) else OPEN_ROWS  # type: ignore[arg-type]


@cache
def _by_itself(kind: type[Encoding]) -> bool:
    """Whether a token is proved to become among any others what it becomes alone."""
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
    """One of many tokens is as a row of one, and that as one that is not a row."""
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
    """The number of a query."""
    del e
    return index_below(r)


def any_column(e: Encoding) -> Given:
    """The number of a key."""
    del e
    return index_below(c)


ANYWHERE = {"row": any_row, "column": any_column}


def of_pairs_by_offset(kind: type[Encoding]) -> str:
    """The same of the law about offsets, with what is proved of all tokens together."""
    why = of_pairs(kind)
    if why and moves_together(kind):  # type: ignore[arg-type]  # classes hash by identity
        return why + MOVED
    return why


@cache
def moves_together(kind: type[Encoding]) -> bool:
    """Whether all scores are proved to stay when all positions move alike."""
    return _proved(stated(_all_moved, kind(), {}))


def _all_moved(e: Encoding, Q: Any, K: Any, u: Any, p: Any, s: Any) -> Claim:
    return equal(*by_offset(partial(e.marks, Q, K), u, p, s=s))
