"""ALiBi by place: the distance is counted in memory, whatever the positions say."""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace

from attnproof import Encoding, real


class AlibiByPlace(Encoding):
    """−slope |i − j| is added to the score of row i of the queries with row j of the keys.

    Code that numbers the rows itself does this.  It is ALiBi where token i stands at position i,
    and something else where rows are packed, padded on the left, or read from a cache.
    """

    title = "ALiBi, by place"
    source = ("the code of Press, Smith and Lewis 2022, which numbers the keys with arange",)
    together = True
    given = {"slope": real()}
    defaults = {"slope": 2.0**-4}

    def scores(self, Q: Any, K: Any, m: Any, n: Any) -> Any:
        del m, n
        xp = array_namespace(Q)
        distance = xp.abs(xp.arange(Q.shape[0])[:, None] - xp.arange(K.shape[0])[None])
        return Q @ K.mT / Q.shape[-1] ** 0.5 - self.slope * distance
