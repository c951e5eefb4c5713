"""RoPE with another base: NTK-aware scaling."""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace

from attnproof import positive
from attnproof.encodings.rope import Rope


class RopeNtk(Rope):
    """Pair b rotates by p ω_b s^{−b/(B−1)}, s > 0: the first as before, the last s times slower.

    With ω_b = base^{−b/B} that is RoPE with the base multiplied by s^{d/(d−2)}, d = 2B >= 4.
    """

    title = "RoPE, NTK-aware"
    source = ("Peng et al. 2023, YaRN, Definition 1 (section 3.1)", "bloc97 2023, NTK-aware RoPE")
    given = {**Rope.given, "factor": positive()}
    defaults = {**Rope.defaults, "factor": 4.0}

    def frequencies(self) -> Any:
        xp = array_namespace(self.omega)
        count = self.omega.shape[0]
        return self.omega * xp.exp(-xp.arange(count) / (count - 1) * xp.log(self.factor))
