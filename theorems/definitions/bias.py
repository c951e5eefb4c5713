"""Biases that are added to the scores."""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace

from attnproof.symbolic.definition import definition

__all__ = ["alibi"]


@definition(r"\operatorname{ALiBi}")
def alibi(query_positions: Any, key_positions: Any, slopes: Any) -> Any:
    r"""−m_h |u_i − v_j| for positions u: (r,), v: (n,), slopes m: (H,) -> (H, r, n).

    Press, Smith and Lewis 2022, section 3 (there with j <= i only).
    """
    xp = array_namespace(query_positions)
    offset = query_positions[:, None] - key_positions[None, :]
    return -slopes[:, None, None] * xp.abs(offset)
