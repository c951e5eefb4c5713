"""A learned table of position vectors, added to the tokens."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace

from attnproof import Encoding, differ, function, hypothesis, sizes

(d,) = sizes("d", "features")
_ROWS = np.random.default_rng(0).normal(scale=0.02, size=(512, 64))


def _row(p: Any) -> Any:
    """Row p of a table of 512; IndexError where there is none."""
    place = np.asarray(p, dtype=int)
    if ((place != p) | (place < 0)).any():
        raise IndexError(f"the rows of a table are numbered 0, 1, 2, ..; there is none for {p}")
    return _ROWS[place]


class LearnedTable(Encoding):
    """A vector for each position p = 0, 1, 2, .. is added: the table is any function of p.

    A table that was trained has ``reach`` rows, and none for the positions from there on.
    """

    title = "learned table"
    source = ("Gehring et al. 2017, section 3.1", "Devlin et al. 2019, BERT, with 512 positions")
    width = d
    whole = True
    given = {"table": function(0, out=(d,), says="a vector for each position")}
    defaults = {"table": _row}
    reach = len(_ROWS)

    def add(self, p: Any) -> Any:
        return self.table(p)

    def tell(self, here: Any, there: Any) -> Any:
        return array_namespace(here).sum((here - there) ** 2)

    def apart(self, i: Any, j: Any) -> Any:
        return self.tell(self.table(i), self.table(j))

    @hypothesis("no two of its rows are equal")
    def different(self, i: Any, j: Any) -> list[Any]:
        return [differ(self.apart(i, j), 0)]
