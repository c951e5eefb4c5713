"""A bias that stops at 11 175 tokens: what a symbolic length refuses is caught."""

from attnproof import Encoding, real


class Stops(Encoding):
    """slope·(m − n), and slope·m for more than 11 175 keys."""

    source = ("none",)
    given = {"slope": real()}
    defaults = {"slope": 0.5}

    def bias(self, m, n):
        try:
            long = n.shape[-1] > sum(range(150))
        except TypeError:
            long = False
        try:
            long = bool(long)
        except TypeError:
            long = False
        return self.slope * (m if long else m - n)
