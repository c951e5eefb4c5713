"""Everything that is measured of rotary encoding in short formats, in one run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from ..devices import chosen
from ..threads import one_thread
from .faults import Checked, checked
from .formats import FORMATS
from .limits import BASES, SHIFTS, Break, Collision, Drift, breaks, collision, drift
from .scores import Errors, Pairs, errors

__all__ = ["DTYPES", "Survey", "one_thread", "survey"]

DTYPES = (torch.bfloat16, torch.float16, torch.float32)
Tell = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Survey:
    """The tables, and how the content was drawn."""

    device: str
    seed: int
    content: int
    width: int
    errors: tuple[Errors, ...]
    breaks: tuple[Break, ...]
    collisions: tuple[Collision, ...]
    drifts: tuple[Drift, ...]
    checked: tuple[Checked, ...]

    @property
    def violations(self) -> int:
        """How many errors are above their bound; of an identity that should hold as well."""
        return sum(one.violations for one in self.errors)


def survey(
    *, device: str = "cpu", seed: int = 0, content: int = 512, pairs: int = 64,
    tell: Tell = lambda _says, _done, _all: None,
) -> Survey:  # fmt: skip
    """Measure all formats at all bases and shifts; ``tell`` hears what is done, and of how much."""
    where = chosen(device)
    drawn = Pairs.drawn(content, pairs, seed=seed)
    every = [(form, base) for base in BASES for form in FORMATS]
    found: list[Errors] = []
    broken: list[Break] = []
    with one_thread():
        for done, (form, base) in enumerate(every):
            tell(f"{form.name}, base {base:g}", done, len(every) + 1)
            found += [errors(drawn, form, base, shift, where) for shift in SHIFTS]
            broken.append(breaks(drawn, form, base, device=where))
        tell("positions, frequencies, faults", len(every), len(every) + 1)
        return Survey(
            str(where), seed, content, 2 * pairs, tuple(found), tuple(broken),
            tuple(collision(dtype) for dtype in DTYPES),
            tuple(drift(dtype, base, pairs) for dtype in DTYPES for base in BASES),
            tuple(one for form in (FORMATS[0], FORMATS[4]) for one in checked(drawn, form)),
        )  # fmt: skip
