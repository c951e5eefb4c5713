"""Laws of traced attention code."""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace

from .laws import TOKENS, Sides, law

__all__ = ["causal_only"]


def _unmasked(subject: Any) -> str:
    declared = subject.declared
    if declared is not None and (declared.causal or declared.window):
        return "the code is declared to mask by position"
    return "the code is meant to look at positions" if subject.positional else ""


def causal_only(subject: Any) -> str:
    """Why a law of causal code is not asked, or ""."""
    if subject.declared is not None and subject.declared.causal:
        return ""
    return "the code is not declared to be causal"


@law("permutation", "attention", "layer", _unmasked, x=TOKENS, sigma="permutation n")
def permutation(f: Any, x: Any, sigma: Any) -> Sides:
    """Tokens permuted before are permuted after."""
    return f.layer(x[:, sigma]), f.layer(x)[:, sigma]


@law("rows-of-batch-apart", "attention", "layer", x=TOKENS, y="real A n E")
def layer_rows_apart(f: Any, x: Any, y: Any) -> Sides:
    """The first rows of a larger batch are what they are alone."""
    xp = array_namespace(x)
    return f.layer(xp.concat((x, y), axis=0))[: x.shape[0]], f.layer(x)


@law("causal", "attention", "layer", causal_only, x=TOKENS, y="real B r E", z="real B r E")
def causal_layer(f: Any, x: Any, y: Any, z: Any) -> Sides:
    """Tokens that come later change nothing of what came before."""
    xp = array_namespace(x)
    n = x.shape[1]
    return (f.layer(xp.concat((x, y), axis=1))[:, :n], f.layer(xp.concat((x, z), axis=1))[:, :n])


@law("order-of-keys", "attention", "attend", _unmasked, q="real B H n D", k="real B G n D",
      v="real B G n D", sigma="permutation n")  # fmt: skip
def order_of_keys(f: Any, q: Any, k: Any, v: Any, sigma: Any) -> Sides:
    """Keys and values permuted together change nothing."""
    return f.attend(q, k[:, :, sigma], v[:, :, sigma]), f.attend(q, k, v)


@law("permutation", "attention", "attend", _unmasked, q="real B H n D", k="real B G n D",
      v="real B G n D", sigma="permutation n")  # fmt: skip
def order_of_queries(f: Any, q: Any, k: Any, v: Any, sigma: Any) -> Sides:
    """Queries permuted before are outputs permuted after."""
    return f.attend(q[:, :, sigma], k, v), f.attend(q, k, v)[:, :, sigma]


@law("rows-sum-to-one", "attention", "attend", q="real B H n D", k="real B G n D", c="real B G D")
def rows_sum_to_one(f: Any, q: Any, k: Any, c: Any) -> Sides:
    """Equal values give that value: the same for other queries and keys, here for q = k = 0."""
    xp = array_namespace(q)
    equal = xp.broadcast_to(c[:, :, None], k.shape)
    return f.attend(q, k, equal), f.attend(0 * q, 0 * k, equal)


@law("causal", "attention", "attend", causal_only, q="real B H n D", k="real B G n D",
      v="real B G n D", q2="real B H r D", k2="real B G r D", v2="real B G r D")  # fmt: skip
def causal_attend(f: Any, q: Any, k: Any, v: Any, q2: Any, k2: Any, v2: Any) -> Sides:
    """Keys and values that come later change nothing of what came before."""
    xp = array_namespace(q)
    n = q.shape[2]
    longer = (xp.concat(pair, axis=2) for pair in ((q, q2), (k, k2), (v, v2)))
    return f.attend(*longer)[:, :, :n], f.attend(q, k, v)


@law("rows-of-batch-apart", "attention", "attend", q="real B H n D", k="real B G n D",
      v="real B G n D", q2="real A H n D", k2="real A G n D", v2="real A G n D")  # fmt: skip
def attend_rows_apart(f: Any, q: Any, k: Any, v: Any, q2: Any, k2: Any, v2: Any) -> Sides:
    """The first rows of a larger batch are what they are alone."""
    xp = array_namespace(q)
    longer = (xp.concat(pair, axis=0) for pair in ((q, q2), (k, k2), (v, v2)))
    return f.attend(*longer)[: q.shape[0]], f.attend(q, k, v)
