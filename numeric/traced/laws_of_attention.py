"""Laws of traced attention code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from array_api_compat import array_namespace

from ..probes.attention_weights import no_order, no_softmax
from ..probes.base import Draw
from .laws import TOKENS, Sides, each_alone, law

__all__ = ["causal_only"]


def _unmasked(subject: Any) -> str:
    declared = subject.declared
    if declared is not None and (declared.causal or declared.window):
        return "the code is declared to mask by position"
    said = declared is not None and declared.positions not in (None, "none")
    return "the code is meant to look at positions" if subject.positional or said else ""


def _ordered(subject: Any) -> str:
    return _unmasked(subject) or _as_run(no_order, subject)


def _no_softmax(subject: Any) -> str:
    return _as_run(no_softmax, subject)


def _as_run(why_not: Callable[[Any, Draw], str], subject: Any) -> str:
    """What a run of the code says against asking, "" where it cannot be run so."""
    try:
        return why_not(subject, Draw())
    except Exception:  # noqa: BLE001 (the code may raise anything)
        return ""


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
    """The rows of a batch are what those before and those after any cut are alone."""
    return each_alone(f.layer, [x], [y])


@law("causal", "attention", "layer", causal_only, x=TOKENS, y="real B r E")
def causal_layer(f: Any, x: Any, y: Any) -> Sides:
    """Tokens that come later change nothing of what came before."""
    xp = array_namespace(x)
    n = x.shape[1]
    return f.layer(xp.concat((x, y), axis=1))[:, :n], f.layer(x)


QUERIES, KEYS = "real B H r D", "real B G n D"


@law("order-of-keys", "attention", "attend", _ordered, q=QUERIES, k=KEYS, v=KEYS,
     sigma="permutation n")  # fmt: skip
def order_of_keys(f: Any, q: Any, k: Any, v: Any, sigma: Any) -> Sides:
    """Keys and values permuted together change nothing."""
    return f.attend(q, k[:, :, sigma], v[:, :, sigma]), f.attend(q, k, v)


@law("permutation", "attention", "attend", _unmasked, q="real B H n D", k=KEYS, v=KEYS,
     sigma="permutation n")  # fmt: skip
def order_of_tokens(f: Any, q: Any, k: Any, v: Any, sigma: Any) -> Sides:
    """Queries, keys and values permuted together before are outputs permuted after."""
    return f.attend(*(a[:, :, sigma] for a in (q, k, v))), f.attend(q, k, v)[:, :, sigma]


@law("rows-sum-to-one", "attention", "attend", _no_softmax, q=QUERIES, k=KEYS, c="real B D")
def rows_sum_to_one(f: Any, q: Any, k: Any, c: Any) -> Sides:
    """Equal values give that value, here one for all heads."""
    xp = array_namespace(q)
    one = c[:, None, None]
    return f.attend(q, k, xp.broadcast_to(one, k.shape)), xp.broadcast_to(one, q.shape)


@law("causal", "attention", "attend", causal_only, q="real B H n D", k=KEYS, v=KEYS,
     q2="real B H m D", k2="real B G m D", v2="real B G m D")  # fmt: skip
def causal_attend(f: Any, q: Any, k: Any, v: Any, q2: Any, k2: Any, v2: Any) -> Sides:
    """Keys and values that come later change nothing of what came before."""
    xp = array_namespace(q)
    n = q.shape[2]
    longer = (xp.concat(pair, axis=2) for pair in ((q, q2), (k, k2), (v, v2)))
    return f.attend(*longer)[:, :, :n], f.attend(q, k, v)


@law("rows-of-batch-apart", "attention", "attend", q=QUERIES, k=KEYS, v=KEYS,
     q2="real A H r D", k2="real A G n D", v2="real A G n D")  # fmt: skip
def attend_rows_apart(f: Any, q: Any, k: Any, v: Any, q2: Any, k2: Any, v2: Any) -> Sides:
    """The rows of a batch are what those before and those after any cut are alone."""
    return each_alone(f.attend, [q, k, v], [q2, k2, v2])
