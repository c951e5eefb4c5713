"""A bias that is another one as soon as the encoding is made with its parameters."""

from attnproof import Encoding, real


class Made(Encoding):
    """slope·(m − n), and slope·m if a slope was given."""

    source = ("none",)
    given = {"slope": real()}
    defaults = {"slope": 0.5}

    def bias(self, m, n):
        return self.slope * (m if self.parameters else m - n)
