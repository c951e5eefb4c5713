"""What comparisons in some code turn out to be in the runs of one law.

A law makes calls of its own, and may meet one outcome only: as many queries as keys, never a single
token, gradients switched off.  If the code is known to have the other outcome elsewhere, the law
says nothing of it, and its verdict names the outcome that it met.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, TypeVar

import torch

from ..programs.execution.calling import evaluating, restored_settings
from ..programs.execution.finite import wrapped
from ..programs.prove.met_numbers import MetNumbers
from ..programs.prove.open_comparisons import OpenComparison
from ..programs.prove.watch import FEW, HINTS, Met
from ..programs.subjects import Attention, Bias, Mask, Subject
from .every_call import Call, Lengths, call_of, calls_of, sizes_of, takes

S = TypeVar("S", bound=Subject)
UNHEARD = ("module", "make", "as_before")  # they run no call
SOME = {"B": 2, "n": 5, "r": 3}


@dataclass
class OwnRuns:
    """Code whose comparisons are watched, and what they met in the runs of each law.

    ``letters``: the lengths that its call may vary.
    """

    call: Call
    numbers: MetNumbers
    letters: list[str]
    of: dict[str, Met] = field(default_factory=dict)

    @classmethod
    def watched(cls, subject: Subject) -> OwnRuns | None:
        """Run the code with few tokens, so that later runs can be watched; None if it has no call.

        Code is run with and without gradients, since it may compare only in one of these.
        """
        call = call_of(subject)
        if call is None:
            return None
        roots = [one for one in (*calls_of(subject), subject.module) if one is not None]
        numbers = MetNumbers(roots)
        scores = isinstance(subject, Bias | Mask)
        letters = ["n"] if scores else ["B", "n"]
        scores |= isinstance(subject, Attention) and subject.attend is not None

        def twice(at: Lengths) -> None:
            with torch.no_grad():
                call(at)
            with torch.enable_grad():
                call(at)

        # state that the code sets in these runs must not reach others
        with restored_settings(), evaluating(subject), torch.no_grad():
            if scores and takes(numbers.ran.recording(call), SOME):
                letters.append("r")
            sizes = sizes_of(subject)
            letters += [c for c in sizes if all(takes(call, {**SOME, c: n}) for n in FEW)]
            numbers.run(twice, [dict.fromkeys(letters, n) for n in FEW])
        return cls(call, numbers, letters)

    def hearing(self, subject: S) -> tuple[S, Met]:
        """Return the same code, and what its comparisons will have met when it was called."""
        met: Met = {}
        watch = self.numbers.watch

        def heard(name: str, call: Callable[..., Any], _: Subject) -> Callable[..., Any]:
            del name
            watched = watch.heard(self.numbers.watched(call), met)

            @wraps(call)
            def run(*given: Any, **named: Any) -> Any:
                result = watched(*given, **named)
                return wrapped(result, heard, UNHEARD) if isinstance(result, Subject) else result

            return run

        return wrapped(subject, heard, UNHEARD), met

    def add(self, law: str, met: Met) -> None:
        """Add what was met in runs by which a law holds."""
        known = self.of.setdefault(law, {})
        for place, some in met.items():
            known.setdefault(place, set()).update(some)

    def conditions(self, law: str, asked: Collection[tuple[int, int]]) -> Iterator[str]:
        """Yield the outcomes that the law met alone, of comparisons that may have another.

        ``asked``: those that are known to; of others, which nothing but the law met, those whose
        sides changed.  Of values in tensors, which inputs are drawn for, only queries count.
        """
        sites, sides = self.numbers.watch.sites, self.numbers.watch.sides
        known = {place[:2] for place in sides}
        for place, some in self.of.get(law, {}).items():
            answers = {answer for *_, answer in some}
            other = place in asked or (place not in known and len(some) > 1)
            numbers = sites[place[0]].sign == "asks" or any(left for left, *_ in some)
            if len(answers) == 1 and other and numbers and sites[place[0]].sign not in HINTS:
                yield OpenComparison((*place, 0), sites[place[0]], (), answers.pop()).condition
