"""Arrays of whole numbers that are known: made of ranges and literal numbers alone."""

from __future__ import annotations

import torch
from torch import Tensor

from attnproof.symbolic.array import Array
from attnproof.symbolic.scalars import is_truth, number_of
from attnproof.symbolic.terms import postorder

from ....numeric.torch_reading import TorchReading

__all__ = ["entries_of"]

NAMED = ("var", "index", "size", "space", "call", "inverse")


def entries_of(array: Array) -> Tensor | None:
    """All entries of such an array, or None for any other; they are exact below 2⁵³."""
    # A length is an argument or stands in a shape; neither may have a name.
    parts = {part for t in postorder(array.term) for part in (t, *t.shape)} | {*array.axes}
    if is_truth(array.term) or any(part.op in NAMED for part in parts):
        return None
    reading = TorchReading({}, {}, torch.float64, torch.device("cpu"))
    shape = tuple(int(number_of(n) or 0) for n in array.axes)
    found = torch.as_tensor(reading(array.term), dtype=torch.float64).expand(shape)
    whole = found.long()
    return whole if bool((whole == found).all()) else None
