"""No position encoding, and masks alone: which keys a query sees."""

from __future__ import annotations

from typing import Any

from attnproof import Encoding, real


class Nope(Encoding):
    """Positions are not used: the score of q and k is q·k / √d wherever they are.

    Without a mask, attention then treats its keys as a multiset and does not depend on their order.
    """

    title = "NoPE"
    source = ("Kazemnejad et al. 2023, NoPE", "Haviv et al. 2022")


class NopeCausal(Encoding):
    """A query at m sees the keys at n <= m; positions have no other effect."""

    title = "NoPE, causal"
    source = ("Kazemnejad et al. 2023, NoPE", "Haviv et al. 2022")

    def sees(self, m: Any, n: Any) -> Any:
        return n <= m


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
