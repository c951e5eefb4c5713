"""A bias that changes after 10 000 calls, counted by a generator."""

from attnproof import Encoding, real

CALLS = (k for k in range(10**9))


class Generated(Encoding):
    """slope·(m − n), and slope·m from the 10 000th call on."""

    source = ("none",)
    given = {"slope": real()}
    defaults = {"slope": 0.5}

    def bias(self, m, n):
        return self.slope * (m if next(CALLS) > 10**4 else m - n)
