"""A bias that is another one where positions are integers."""

from array_api_compat import array_namespace

from attnproof import Encoding, real


class Typed(Encoding):
    """slope·(m − n) of real numbers, and slope·m of integers."""

    source = ("none",)
    given = {"slope": real()}
    defaults = {"slope": 0.5}

    def bias(self, m, n):
        return self.slope * (m - n if m.dtype == array_namespace(m).float64 else m)
