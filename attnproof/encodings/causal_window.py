"""A causal window: a query sees the last keys alone, and nothing else tells positions apart."""

from __future__ import annotations

from typing import Any

from attnproof import Encoding, real


class CausalWindow(Encoding):
    """A query at m sees the keys at n with n <= m and m − n < w, for any window w."""

    title = "no positions, causal window"
    source = (
        "Jiang et al. 2023, Mistral 7B, section 2",
        "Beltagy, Peters and Cohan 2020, Longformer, section 3.1, half of the window on each side",
    )
    given = {"w": real()}
    defaults = {"w": 16.0}

    def sees(self, m: Any, n: Any) -> Any:
        return (n <= m) & (m - n < self.w)
