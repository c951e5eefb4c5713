"""A bias that is another one on large numbers: symbols are asked for their class."""

import numpy as np

from attnproof import Encoding, real


class Classed(Encoding):
    """slope·(m − n), and slope·m where numpy is given a position above 10 000."""

    source = ("none",)
    given = {"slope": real()}
    defaults = {"slope": 0.5}

    def bias(self, m, n):
        large = isinstance(m, np.ndarray) and bool((m > 1e4).any())
        return self.slope * (m if large else m - n)
