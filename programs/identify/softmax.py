"""What weights are that need not add up to one, and what scores are that no shift is asked of.

With a sink b beside the keys a weight is e_j / (Z + b), Z the sum of all e_j: what is missing from
one, over the weight of key j, is b/e_j, whatever the other keys are.  In sigmoid attention and its
kin a weight is a function of its own query and key.  Neither is a fault by itself, and nobody can
tell from outside whether it was meant; a sum over another axis, or a factor, is neither.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from ..draw import Draw
from ..influence import told_matrix
from ..response import allowance, gap
from ..subjects import Attention
from .weights import KEYS, drawn, read_weights, scale_alone

DECLARE = "declare attention:causal=false,positions=none to have it asked"
STEPS = (-1.0, 0.0, 1.0)  # from a query: what is linear in it has no second difference
CURVED = 1e-3  # of a logarithm; a kernel that is no exponential is off by far more
OTHER = ("its weights are no softmax: their ratios are no exponentials of what is linear in the "
         "query, and it is not declared to be attention")  # fmt: skip
OWN = ("each weight is a function of its own query and key alone, as in sigmoid attention, where "
       "nothing makes them add up to 1; if that is not meant, the softmax is missing")  # fmt: skip
SINK = ("a sink, a number that is no key's, stands in each denominator; if that is not meant, "
        "something is counted that should not be")  # fmt: skip
COUNTED = ("each denominator counts a whole number of keys more than there are, of score 0, as in "
           "a softmax with a 1 added, or where padding is counted")  # fmt: skip


def no_softmax(one: Attention, draw: Draw) -> str:
    """Why nobody can say that the weights of a query should add up to 1; "" where they should.

    A sink is a choice that nothing declares.  Weights apart are one where nothing is declared; code
    that is declared to be attention is held to a softmax.  A key that is counted and is not there
    is a fault.
    """
    why = weights_are(one, draw)
    if not why and one.declared is None:
        try:  # in float64 small numbers that a denominator has beside are seen
            return _other_kernel(one, replace(draw, dtype=torch.float64))
        except Exception:  # noqa: BLE001 (code with weights of its own takes one dtype)
            return _other_kernel(one, draw)
    return "" if why == COUNTED or (why == OWN and one.declared is not None) else why


def _other_kernel(one: Attention, draw: Draw) -> str:
    """Whether weights come of another kernel than exp, and need not add up to 1; "" where not.

    The logarithm of the ratio of two weights of one query is linear in the query under a softmax,
    whatever is added to the scores by place.  What other queries change is a sum over them.  Of
    another kernel that is normalised nothing is said: it is asked as a softmax is.
    """
    attend, width = one.attend, one.width or 5
    if attend is None:
        return ""
    q, k = drawn(one, draw, KEYS, KEYS, 61)
    alone = q.clone()
    alone[:, :, :-1] = draw.normal(1, one.heads, KEYS - 1, width, salt=63)
    step = draw.normal(1, one.heads, KEYS, width, salt=64)
    ways = (q, alone, -q.abs(), *(q + t * step for t in STEPS))
    seen = [allowance(lambda q: read_weights(attend, q, k), way, draw=draw) for way in ways]
    off = max(way() for way in seen)
    plain, beside, other, *scaled = (way.output[0, :, -1].double().cpu() for way in seen)
    if float((beside - plain).abs().max()) > off:
        return ""
    if all(float((w.sum(-1) - 1).abs().max()) <= KEYS * off for w in (plain, other)):
        return ""
    shown = (torch.stack(scaled).abs() > off).all(0)  # (H, S)
    logs = [torch.where(shown, w, 1.0).log() for w in scaled]  # NaN of a negative weight
    low, here, high = (each[:, :, None] - each[:, None] for each in logs)
    gaps = (low + high - 2 * here)[shown[:, :, None] & shown[:, None]]
    exponential = bool(gaps.abs().max() <= CURVED) and int(shown.sum(-1).max()) > 1
    return "" if exponential else OTHER


def weights_are(one: Attention, draw: Draw) -> str:
    """What weights are that do not add up to 1: with a sink, or apart; "" for neither.

    Looked at in the last query, which sees every key under a causal mask.
    """
    attend, width = one.attend, one.width or 5
    if attend is None:
        return ""
    q, k = drawn(one, draw, KEYS, KEYS, 51)
    other = k.clone()
    other[:, :, 0] = draw.normal(1, one.groups, width, salt=53)
    alone = q.clone()
    alone[:, :, :-1] = draw.normal(1, one.heads, KEYS - 1, width, salt=60)
    ways = ((q, k), (q, other), (alone, k))
    found = [allowance(lambda q, k: read_weights(attend, q, k), *way, draw=draw) for way in ways]
    off = sum(seen() for seen in found)
    w, u, same = (seen.output[0, :, -1].double().cpu() for seen in found)  # (H, S)
    left, left_there = 1 - w.sum(-1, keepdim=True), 1 - u.sum(-1, keepdim=True)
    if not bool((w.isfinite() & u.isfinite()).all()) or float(left.abs().max()) <= KEYS * off:
        return ""
    if not bool((w >= 0).all()) or float((same - w).abs().max()) > off:
        return ""  # what is asked by other queries is no part of either
    rest, rest_there = w[:, 1:], u[:, 1:]
    if float((rest - rest_there).abs().max()) <= off < float((w - u)[:, 0].abs().max()):
        return OWN
    if not bool((rest > 0).all() and (left > 0).all() and (left_there > 0).all()):
        return ""
    here, there = left / rest, left_there / rest_there
    doubt = _quotient(left, rest, off) + _quotient(left_there, rest_there, off)
    if not bool(((here - there).abs() <= doubt).all()):
        return ""
    # a query that is 0 has scores of 0: there the sink is so many keys
    nothing = torch.zeros_like(q)
    seen = allowance(lambda k: read_weights(attend, nothing, k), k, draw=draw)
    w = seen.output[0, :, -1].double().cpu()
    left, last = 1 - w.sum(-1, keepdim=True), w[:, -1:]
    count, near = left / last, (left / last).mean().round()
    whole = bool(((count - near).abs() <= _quotient(left, last, seen())).all())
    return COUNTED if whole and float(near) >= 1 else SINK


def _quotient(over: Tensor, under: Tensor, off: float) -> Tensor:
    """How far a quotient is off of a sum of keys that is, and of one weight."""
    return over / under * (KEYS * off / over.abs() + off / under.abs())


def no_multiple(one: Attention, draw: Draw) -> str:
    """Why one vector added to all keys adds no common number to all scores; "" where it does.

    Scores are s q·k and what is added by place.  What is bent (a soft cap), normalised, turned by
    its position, or a number of the key's own is not of that kind.
    """
    attend = one.attend
    if attend is None:
        return ""
    q = draw.normal(1, one.heads, KEYS, one.width or 5, salt=54)
    keys = [draw.normal(1, one.groups, KEYS, one.width or 5, salt=s) for s in (55, 56)]
    nothing = torch.zeros_like(q)
    at_zero = [allowance(lambda k: read_weights(attend, nothing, k), k, draw=draw) for k in keys]
    apart = (at_zero[0].output.double() - at_zero[1].output.double()).abs().max()
    if not float(apart) <= at_zero[0]() + at_zero[1]():
        return "a number of each key's own is part of its score"
    found = scale_alone(one, draw)
    if found is None or not found.linear:
        return "the scores are not a multiple of q·k"
    return ""


def _ordered(one: Attention, q: Tensor, k: Tensor, v: Tensor, draw: Draw) -> bool:
    """Whether keys and values that are permuted together give something else."""
    attend, order = one.attend, draw.permutation(k.shape[2])
    assert attend is not None  # who calls has seen it
    seen = allowance(lambda q, k, v: attend(q, k, v, None), q, k, v, draw=draw)
    return gap(attend(q, k[:, :, order], v[:, :, order], None), seen.output) > seen()


def no_order(one: Attention, draw: Draw, keys: int = KEYS) -> str:
    """Why the keys may have an order: they have one, and nothing declares that they have none."""
    declared = one.declared
    if one.attend is None or (declared is not None and declared.causal is False):
        return ""
    (q, k), (_, v) = drawn(one, draw, keys, keys, 57), drawn(one, draw, keys, keys, 58)
    # sums of products of either sign, which linear attention divides by, may be next to 0
    if not (_ordered(one, q, k, v, draw) or _ordered(one, q.abs(), k.abs(), v, draw)):
        return ""
    shown = told_matrix(read_weights(one.attend, torch.zeros_like(q), k)[0, 0] > 0)
    return (f"keys have an order, and nothing is declared (keys seen: {' '.join(shown)}): a mask, "
            f"or positions, may be meant; {DECLARE}")  # fmt: skip
