"""Attention with any score function, and scores that decrease with the distance.

The functions of the distance apply entrywise to arrays of any shape.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from array_api_compat import array_namespace

from attnproof.symbolic.definition import definition

from .attention import softmax


def score_table(score: Callable[..., Any], query: Any, key: Any) -> Any:
    """The scores α(q_j, k_i) of all pairs: (.., r, ℓ), (.., n, ℓ) -> (.., r, n).

    Ganev, Definition 2.6.
    """
    return score(query[..., :, None, :], key[..., None, :, :])


def kernel_attention(score: Callable[..., Any], query: Any, key: Any, value: Any) -> Any:
    """softmax(α(Q, K)) V for Q: (.., r, ℓ), K: (.., n, ℓ), V: (.., n, d) and any α.

    Ganev, Definition 2.6.
    """
    return softmax(score_table(score, query, key)) @ value


@definition(r"\operatorname{dist}^{2}")
def squared_distances(query: Any, key: Any) -> Any:
    """‖q_j − k_i‖²: (r, ℓ), (n, ℓ) -> (r, n)."""
    xp = array_namespace(query)
    return xp.sum((query[:, None, :] - key[None, :, :]) ** 2, axis=-1)


@definition(r"\operatorname{dist}")
def distances(query: Any, key: Any) -> Any:
    """‖q_j − k_i‖: (r, ℓ), (n, ℓ) -> (r, n)."""
    xp = array_namespace(query)
    return xp.sqrt(squared_distances(query, key))


@definition(r"\operatorname{tri}")
def triangular(distance: Any) -> Any:
    """max(0, 1 − t) at distance t.  Ganev, section 2.7, where it is called Epanechnikov."""
    xp = array_namespace(distance)
    return xp.maximum(1 - distance, xp.zeros(()))


@definition(r"\operatorname{Epa}")
def epanechnikov(distance: Any) -> Any:
    """max(0, 1 − t²) at distance t, up to the factor that makes it a density.

    Epanechnikov 1969.
    """
    xp = array_namespace(distance)
    return xp.maximum(1 - distance**2, xp.zeros(()))


@definition(r"\operatorname{box}")
def box_car(distance: Any) -> Any:
    """1 at distance t <= 1 and 0 farther away.  Ganev, section 2.7."""
    xp = array_namespace(distance)
    return xp.astype(distance <= 1, distance.dtype)


def falling(distance: Any) -> dict[str, Any]:
    """The four scores of Ganev, section 2.7, as functions of the distance, by name."""
    return {
        "minus the distance": -distance,
        "minus half its square": -(distance**2) / 2,
        "triangular": triangular(distance),
        "box car": box_car(distance),
    }


@definition(r"\nu")
def half_norms(key: Any) -> Any:
    """‖k_i‖²/2: (n, ℓ) -> (n,)."""
    xp = array_namespace(key)
    return xp.sum(key**2, axis=-1) / 2


@definition(r"w_{\mathrm{dist}}")
def weights_by_distance(query: Any, key: Any) -> Any:
    """softmax over the keys of −‖q_j − k_i‖²/2: (r, ℓ), (n, ℓ) -> (r, n)."""
    return softmax(-squared_distances(query, key) / 2)


def centred(key: Any, axis: int) -> Any:
    """The entries minus their mean along an axis: (n, ℓ) -> (n, ℓ)."""
    xp = array_namespace(key)
    return key - xp.mean(key, axis=axis, keepdims=True)


@definition(r"\operatorname{BN}")
def batch_norm(key: Any) -> Any:
    """Each feature minus its mean over the keys, divided by its standard deviation: (n, ℓ).

    Ioffe and Szegedy 2015, without the epsilon under the root and the learned scale.
    """
    xp = array_namespace(key)
    moved = centred(key, 0)
    return moved / xp.sqrt(xp.mean(moved**2, axis=0, keepdims=True))


@definition(r"\operatorname{LN}")
def layer_norm(key: Any) -> Any:
    """Each key minus its mean over the features, divided by its standard deviation: (n, ℓ).

    Ba, Kiros and Hinton 2016, without the epsilon under the root and the learned scale.
    """
    xp = array_namespace(key)
    moved = centred(key, 1)
    return moved / xp.sqrt(xp.mean(moved**2, axis=1, keepdims=True))
