"""YaRN: NTK-by-parts, and scores at another temperature."""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from attnproof import positive, real
from attnproof.encodings.rope import Rope
from attnproof.encodings.rope_by_parts import RopeByParts


class Yarn(RopeByParts):
    """Frequencies by parts, and the scores divided by a temperature t > 0.

    The paper's fit to Llama is √(1/t) = 0.1 ln s + 1.
    """

    title = "YaRN"
    source = ("Peng et al. 2023, YaRN, Definition 3 and eq. 21 and 22",)
    given = {**RopeByParts.given, "temperature": positive()}
    defaults = {**RopeByParts.defaults, "temperature": (0.1 * log(16) + 1) ** -2}

    def scores(self, Q: Any, K: Any, m: Any, n: Any) -> Any:
        return super().scores(Q, K, m, n) / self.temperature


class YarnByIndex(Yarn):
    """YaRN as its code has it: γ falls linearly in the index b of the pair, not in its angle.

    γ_b = (last − b) / ramp, cut off at 0 and 1, ramp > 0: 1 below the index last − ramp, 0 above
    last.  The code takes ⌊·⌋ and ⌈·⌉ of the indices at which a pair rotates 32 times and once.
    """

    title = "YaRN, ramp by index"
    source = ("Peng et al. 2023, the authors' code; transformers, _compute_yarn_parameters",)
    given = {
        **Rope.given,
        "factor": positive(),
        "temperature": positive(),
        "last": real(says="an index of a pair"),
        "ramp": positive(),
    }
    defaults = {
        "omega": 10_000.0 ** (-np.arange(64) / 64),
        "factor": 16.0,
        "temperature": Yarn.defaults["temperature"],
        "last": 46.0,
        "ramp": 26.0,
    }

    def kept(self, omega: Any) -> Any:
        xp = array_namespace(omega)
        b = xp.arange(omega.shape[0])
        return xp.clip((self.last - b) / self.ramp, 0, 1)
