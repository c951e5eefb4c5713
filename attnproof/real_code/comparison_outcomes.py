"""What comparisons in some code turn out to be in the runs of one law.

A law makes calls of its own, and may meet one outcome only: as many queries as keys, never a single
token, gradients switched off.  If the code is known to have the other outcome elsewhere, the law
says nothing of it, and its verdict names the outcome that it met.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from ..programs.execution.calling import evaluating, is_judged, restored_settings
from ..programs.execution.finite import wrapped
from ..programs.prove.compared_numbers import MetNumbers
from ..programs.prove.comparison_monitor import FEW, HINTS, UNWATCHED, ComparedSides, Met
from ..programs.prove.instrumentation import instrument_unwatched
from ..programs.subjects import Attention, Bias, Mask, Subject
from .calls_at_lengths import Call, Lengths, call_of, sizes_of, takes

S = TypeVar("S", bound=Subject)
UNHEARD = ("module", "make", "as_before")  # they run no call
# Calls of one kind, with a state, in which unwatched code is looked for: that doubles their time.
MAX_NOTED = 8
MAX_SHOWN = 1024  # whole numbers of one input that are compared one by one
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
    # Calls heard once, by their inputs; each is kept, so that no other has its id.
    calls: dict[Any, tuple[Any, Met]] = field(default_factory=dict, repr=False)

    @classmethod
    def watched(cls, subject: Subject) -> OwnRuns | None:
        """Run the code with few tokens, so that later runs can be watched; None if it has no call.

        Code is run with and without gradients, since it may compare only in one of these.
        """
        call = call_of(subject)
        if call is None:
            return None
        numbers = MetNumbers(_parts(subject))
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
        fresh: dict[int, Subject] = {}  # instances that the law builds

        def heard(name: str, call: Callable[..., Any], owner: Subject) -> Callable[..., Any]:
            del name
            if owner is not subject and id(owner) not in fresh:
                fresh[id(owner)] = owner
                self.numbers.instrument(*_parts(owner))
            times = 0

            @wraps(call)
            def run(*given: Any, **named: Any) -> Any:
                nonlocal times
                if watch.is_running or not is_judged():
                    return call(*given, **named)
                key = _like(subject, given) if owner is subject and not named else None
                if key is not None and (id(call), key) in self.calls:
                    _add(met, self.calls[id(call), key][1])
                    return call(*given)
                here: Met = {}
                times += key is None
                notes = key is not None or times <= MAX_NOTED
                with watch.hearing(here, notes=notes):
                    result = self.numbers.watched(call)(*given, **named)
                _add(met, here)
                if not self.is_whole(here):
                    instrument_unwatched(watch)
                elif key is not None:
                    self.calls[id(call), key] = call, here
                return wrapped(result, heard, UNHEARD) if isinstance(result, Subject) else result

            return run

        return wrapped(subject, heard, UNHEARD), met

    def is_whole(self, met: Met) -> bool:
        """Whether all that ran was watched; if not, functions were found meanwhile."""
        return all(self.numbers.watch.sites[site].sign != UNWATCHED for site, _ in met)

    def add(self, law: str, met: Met) -> None:
        """Add what was met in runs by which a law holds."""
        _add(self.of.setdefault(law, {}), met)

    def conditions(self, law: str, asked: Collection[tuple[int, int]]) -> Iterator[str]:
        """Yield the outcomes that the law met alone, of comparisons that may have another.

        ``asked``: those that are known to; of others, whose sides changed for nothing but the law,
        all.  Of values in tensors, which inputs are drawn for, only queries count.
        """
        sites, sides = self.numbers.watch.sites, self.numbers.watch.sides
        known = {place[:2] for place, some in sides.items() if _changes(some)}
        for place, some in self.of.get(law, {}).items():
            answers = {answer for *_, answer in some}
            other = place in asked or (place not in known and len(some) > 1)
            numbers = sites[place[0]].sign == "asks" or any(left for left, *_ in some)
            site = sites[place[0]]
            alone = len(answers) == 1 and other and numbers and site.sign not in HINTS
            if alone or site.sign == UNWATCHED:
                yield site.condition(answer=answers.pop())


def _parts(subject: Subject) -> list[Any]:
    """Return every call of some code, and its module: what holds the functions that may run."""
    parts: list[Any] = [] if subject.module is None else [subject.module]

    def kept(name: str, call: Callable[..., Any], owner: Subject) -> Callable[..., Any]:
        del name, owner
        parts.append(call)
        return call

    wrapped(subject, kept, UNHEARD)
    return parts


def _changes(some: Sequence[ComparedSides]) -> bool:
    """Whether the sides of a comparison changed with the lengths."""
    return len({(one.left, one.right) for one in some}) > 1


def _add(known: Met, met: Met) -> None:
    for place, some in met.items():
        known.setdefault(place, set()).update(some)


def _like(subject: Subject, given: Sequence[Any]) -> Any:
    """Return what comparisons of lengths in a call may depend on; None if it is not only this.

    That is the lengths and formats of numbers, and whole numbers and truth values themselves.  A
    state that is handed on may hold anything.
    """
    module = subject.module
    parts: list[Any] = [torch.is_grad_enabled(), module is not None and module.training]
    for x in given:
        if type(x) in (Tensor, nn.Parameter):
            shown = x.is_floating_point() or x.is_complex()
            if not shown and x.numel() > MAX_SHOWN:
                return None
            numbers = () if shown else tuple(x.flatten().tolist())
            parts.append((*x.shape, x.dtype, x.requires_grad, numbers))
        elif x is None or isinstance(x, int | float | str):
            parts.append(x)
        else:
            return None
    return tuple(parts)
