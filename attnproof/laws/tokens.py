"""Laws about encoded tokens: what one query or key becomes at one position.

If an encoding acts elsewhere and leaves tokens as they are (a bias alone, a mask, or what is added
to q·k), they would be laws of the identity, and are not asked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from operator import matmul
from typing import Any

from array_api_compat import array_namespace

from ..encoding.applicability import of_tokens
from ..encoding.base import Encoding
from ..encoding.law import law
from ..symbolic.array import as_array
from ..symbolic.claim import Claim, equal, exists
from ..symbolic.givens import Given, real
from ..symbolic.terms import free
from ..theorems.laws.law import Sides, composed, shifted

Encode = Callable[[Any, Any], Any]


def both(e: Encoding, claim: Callable[[Encode], Claim]) -> dict[str, Claim]:
    """Return a claim for queries and one for keys; only one if both are encoded in the same way."""
    if not e.defines("query", "key", "encode", "encode_query"):
        return {"": claim(e.encode)}
    return {"queries": claim(e.encode_query), "keys": claim(e.encode)}


def origin(e: Encoding) -> Any:
    """Return position 0."""
    zero = as_array(0)
    return array_namespace(zero).zeros((e.axes,)) if e.axes else zero


def units(e: Encoding, s: Any) -> tuple[Any, Any]:
    """Return the unit vectors as rows, and the shift s for each of them."""
    xp = array_namespace(s)
    return xp.eye(e.width), xp.broadcast_to(s, (e.width, *s.shape))


def shifting_matrix(e: Encoding, s: Any, *, of_queries: bool = False) -> Any:
    """Return the matrix that the encoding names; else that of x ↦ moved(x, s), without ``add``."""
    if e.defines("shift"):
        return e.shift(s)
    if e.defines("add"):
        return None
    return (e.query if of_queries else e.moved)(*units(e, s)).mT


def some_matrix(
    e: Encoding, x: Any, a: Any, sides: Callable[[Any], Sides], rows: Any, witness: Any
) -> Claim:
    """State that some matrix W, the same for all a and x, makes both sides equal."""
    claim = exists(real(rows, e.width), "W_s", lambda W: equal(*sides(W)), witness=witness)
    used = free(claim.left) | (free(claim.right) if claim.right is not None else frozenset())
    within = tuple(v.term for v in (x, a) if v.term in used)
    return replace(claim, free_of=within)


def encodes(kind: type[Encoding]) -> str:
    """Return why nothing moves with the position; "" if something does."""
    acts = kind.acts("add", "rotate", "query", "key")
    none = "it computes nothing from a single position: there is nothing to shift"
    return of_tokens(kind) if acts else none


def encodes_keys(kind: type[Encoding]) -> str:
    """Return why no key moves, so that the law would be about the identity; "" if keys move."""
    idle = kind.acts("query") and not kind.acts("add", "rotate", "key")
    return "it does not change keys" if idle else of_tokens(kind)


law_of_tokens = partial(law, group="encoded tokens", applies=of_tokens)


@law_of_tokens(
    "A shift of the position is a linear map of its code",
    example="rope",
    breaks="index",
    applies=encodes,
)
def linear_shift(e: Encoding, x: Any, a: Any, s: Any) -> dict[str, Claim]:
    """For each shift s there is a matrix W with encode(x, p + s) = W encode(x, p) for all x and p.

    W depends only on s; queries and keys each have a W of their own.  If positions are added, x is
    0: add(p + s) = W add(p).  Vaswani et al. 2017, section 3.5.
    """
    token = 0 * x if e.defines("add") else x

    def by_matrix(encode: Encode, W: Any) -> Claim:
        return some_matrix(
            e, x, a, lambda W: shifted(encode, partial(matmul, W), token, a, s), e.width, W
        )

    keys = by_matrix(e.encode, shifting_matrix(e, s))
    if not e.defines("query", "key"):
        return {"": keys}
    return {
        "queries": by_matrix(e.encode_query, shifting_matrix(e, s, of_queries=True)),
        "keys": keys,
    }


@linear_shift.negative_control("the matrix is that of the opposite shift")
def shifted_back(e: Encoding, x: Any, a: Any, s: Any) -> Claim:
    token = 0 * x if e.defines("add") else x
    return equal(*shifted(e.encode, partial(matmul, shifting_matrix(e, -s)), token, a, s))


@law_of_tokens(
    "Encoding at a and then at b equals encoding at a + b", example="rope", breaks="sinusoidal"
)
def composes(e: Encoding, x: Any, a: Any, b: Any) -> dict[str, Claim]:
    """encode(encode(x, a), b) = encode(x, a + b), for queries and for keys."""
    return both(e, lambda encode: equal(*composed(encode, x, a, b, a + b)))


@composes.negative_control("the two positions are the same")
def at_one_position(e: Encoding, x: Any, a: Any) -> dict[str, Claim]:
    return both(e, lambda encode: equal(*composed(encode, x, a, a, a)))


@law_of_tokens("Position 0 does not change tokens", example="rope", breaks="sinusoidal")
def identity_at_zero(e: Encoding, x: Any) -> dict[str, Claim]:
    """encode(x, 0) = x, for queries and for keys."""
    return both(e, lambda encode: equal(encode(x, origin(e)), x))


@identity_at_zero.negative_control("every position does")
def at_any_position(e: Encoding, x: Any, a: Any) -> dict[str, Claim]:
    return both(e, lambda encode: equal(encode(x, a), x))


@law_of_tokens("Norms of tokens are preserved", example="rope", breaks="sinusoidal")
def keeps_norms(e: Encoding, x: Any, a: Any) -> dict[str, Claim]:
    """‖encode(x, a)‖² = ‖x‖², for queries and for keys."""
    return both(e, lambda encode: equal(_dot(encode(x, a), encode(x, a)), _dot(x, x)))


@keeps_norms.negative_control("the sum of the features is preserved")
def keeps_sums(e: Encoding, x: Any, a: Any) -> dict[str, Claim]:
    return both(e, lambda encode: equal(_sum(encode(x, a)), _sum(x)))


@law_of_tokens("Products at the same position are preserved", example="rope", breaks="sinusoidal")
def keeps_dot_products(e: Encoding, x: Any, y: Any, a: Any) -> Claim:
    """encode(q, a)·encode(k, a) = q·k for a query q and a key k at one position a."""
    return equal(_dot(e.encode_query(x, a), e.encode(y, a)), _dot(x, y))


@keeps_dot_products.negative_control("the key is at another position")
def elsewhere(e: Encoding, x: Any, y: Any, a: Any, b: Any) -> Claim:
    return equal(_dot(e.encode_query(x, a), e.encode(y, b)), _dot(x, y))


def square(e: Encoding) -> Given:
    """Return any matrix from features to features."""
    return real(e.width, e.width)


@law_of_tokens(
    "Encoding commutes with every linear map", example="nope", breaks="rope", given={"W_K": square}
)
def commutes_with_projections(e: Encoding, x: Any, a: Any, W_K: Any) -> dict[str, Claim]:
    """encode(x W, a) = encode(x, a) W for every matrix W, for queries and for keys.

    W may have low rank.  A projection of compressed keys can then be moved to the other side of the
    score: q·encode(c W, a) = (q Wᵀ)·encode(c, a).  If the law fails, compressed keys need a
    separate part for positions: DeepSeek-AI 2024 (DeepSeek-V2), section 2.1.3.
    """
    return both(e, lambda encode: equal(encode(x @ W_K, a), encode(x, a) @ W_K))


@commutes_with_projections.negative_control("the map acts twice on one side")
def mapped_twice(e: Encoding, x: Any, a: Any, W_K: Any) -> dict[str, Claim]:
    return both(e, lambda encode: equal(encode(x @ W_K, a), encode(x, a) @ W_K @ W_K))


@law_of_tokens(
    "A cached key can be shifted without knowing its position",
    example="rope",
    breaks="sinusoidal",
    applies=encodes_keys,
)
def key_can_be_moved(e: Encoding, x: Any, a: Any, s: Any) -> Claim:
    """For each shift s an affine map takes the key at a to that at a + s, for every key x and a.

    encode(x, a + s) = encode(x, a) W + w, with W and w depending on s alone; they are the first d
    rows and the last row of the array that is sought.
    """
    xp = array_namespace(x)
    rows, shifts = units(e, s)
    still = e.moved(xp.zeros((e.width,)), s)
    witness = xp.concat((e.moved(rows, shifts) - still, still[None]), axis=0)
    d = e.width
    return some_matrix(
        e,
        x,
        a,
        lambda W: shifted(e.encode, lambda key: key @ W[:d] + W[d], x, a, s),
        d + 1,
        witness,
    )


@key_can_be_moved.negative_control("by the map that moves it back")
def moved_back(e: Encoding, x: Any, a: Any, s: Any) -> Claim:
    return equal(*shifted(e.encode, lambda key: e.moved(key, -s), x, a, s))


def _sum(x: Any) -> Any:
    return array_namespace(x).sum(x, axis=-1)


def _dot(x: Any, y: Any) -> Any:
    return _sum(x * y)
