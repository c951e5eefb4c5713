"""A bias that changes after 10 000 calls."""

from attnproof import Encoding, real

CALLS: list[int] = []


class Counted(Encoding):
    """slope·(m − n), and slope·m from the 10 000th call on."""

    source = ("none",)
    given = {"slope": real()}
    defaults = {"slope": 0.5}

    def bias(self, m, n):
        CALLS.append(1)
        return self.slope * (m if len(CALLS) > 10**4 else m - n)
