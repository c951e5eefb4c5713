"""Encodings of which a law was once called proved; a line above each says what misled."""

import numpy as np
from array_api_compat import array_namespace

from attnproof import Encoding, nonnegative, real, sizes

(h,) = sizes("h", "slopes")


# A bias of several slopes; the loop over them runs once on symbols, h times on numbers.
class Loop(Encoding):
    """The bias is the product over all slopes of -w·|m − n|: with two slopes it rises."""

    source = ("none",)
    given = {"w": nonnegative(h)}
    defaults = {"w": [1.0, 1.0]}

    def bias(self, m, n):
        bias = 1
        for w in self.w:
            bias = -bias * w * abs(m - n)
        return bias


# Distances in buckets of four: the cut to whole numbers is read as the identity.
class Bucket(Encoding):
    """−slope·int(|m − n|/4): it jumps at every multiple of four."""

    source = ("none",)
    given = {"slope": real()}
    defaults = {"slope": 0.5}

    def bias(self, m, n):
        xp = array_namespace(m)
        return -self.slope * xp.astype(abs(m - n) / 4, int)


# The first slope is of the offset, the others of the query's position alone.
class Absolute(Encoding):
    """w_0·(m − n) + Σ_{k>0} w_k·m·n: not relative as soon as there are two slopes."""

    source = ("none",)
    given = {"w": real(h)}
    defaults = {"w": [0.5, 0.25]}

    def bias(self, m, n):
        return sum(w * ((m - n) if k == 0 else m * n) for k, w in enumerate(self.w))


# A bias that stops at 11 175 tokens: what a symbolic length refuses is caught.
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


# A bias that changes after 10 000 calls.
CALLS: list[int] = []


class Counted(Encoding):
    """slope·(m − n), and slope·m from the 10 000th call on."""

    source = ("none",)
    given = {"slope": real()}
    defaults = {"slope": 0.5}

    def bias(self, m, n):
        CALLS.append(1)
        return self.slope * (m if len(CALLS) > 10**4 else m - n)


# A bias that is another one on large numbers: symbols are asked for their class.
class Classed(Encoding):
    """slope·(m − n), and slope·m where numpy is given a position above 10 000."""

    source = ("none",)
    given = {"slope": real()}
    defaults = {"slope": 0.5}

    def bias(self, m, n):
        large = isinstance(m, np.ndarray) and bool((m > 1e4).any())
        return self.slope * (m if large else m - n)


# A bias that is another one as soon as the encoding is made with its parameters.
class Made(Encoding):
    """slope·(m − n), and slope·m if a slope was given."""

    source = ("none",)
    given = {"slope": real()}
    defaults = {"slope": 0.5}

    def bias(self, m, n):
        return self.slope * (m if self.parameters else m - n)


# A bias that is another one where positions are integers.
class Typed(Encoding):
    """slope·(m − n) of real numbers, and slope·m of integers."""

    source = ("none",)
    given = {"slope": real()}
    defaults = {"slope": 0.5}

    def bias(self, m, n):
        return self.slope * (m - n if m.dtype == array_namespace(m).float64 else m)


# A bias that changes after 10 000 calls, counted by a generator.
NUMBERS = (k for k in range(10**9))


class Generated(Encoding):
    """slope·(m − n), and slope·m from the 10 000th call on."""

    source = ("none",)
    given = {"slope": real()}
    defaults = {"slope": 0.5}

    def bias(self, m, n):
        return self.slope * (m if next(NUMBERS) > 10**4 else m - n)
