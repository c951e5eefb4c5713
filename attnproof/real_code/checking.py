"""Examine code by every method, each on its own: a failure of one loses no result of the others.

Results are reported as events, plain dictionaries, as soon as they are found, so that another
process can receive them and carry on if this one is killed.

==========  ====================================================================
event       further keys
==========  ====================================================================
adapted     name, kind, adapted (how the code is called), file
begins      method, law (empty if a method examines all laws at once)
found       finding, with the fields of :class:`~attnproof.programs.finding.Finding`
traced      operations, guards, unread, why
card        why (why there is no card; empty if there is one), laws (one or more)
identity    kind, sentence, parts, answers, numbers, remarks
printed     lines, first (what the code printed; sent last by a separate process)
files       files (what the code loaded, with digests; sent by a separate process)
lengthened  laws (which were examined at more tokens)
method      method, why (why it did not finish; empty if it did), seconds, traceback
==========  ====================================================================
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ..programs.declarations import declares, parse
from ..programs.identified_mask import is_to_be_read
from ..programs.subject import adapted_as
from .methods import Methods
from .request import settings_of

if TYPE_CHECKING:
    from ..programs.subjects import Subject
    from .forking import Beside
    from .request import CodeRequest
    from .running import Event, Tell


def adapted(
    thing: Any, asked: CodeRequest, name: str, file: str, tell: Tell, **how: Any
) -> Subject:
    """Return the code as a subject that can be called; ``how``: what the caller said about it.

    Raises ``NoAdapter`` if no form of call fits, ``OtherKind``, ``SignatureError`` if the call that
    was given does not fit, ``NoSetting``, or what the code raises.
    """
    how = {"declared": parse(asked.declared) if asked.declared else None, **how}
    how |= {"settings": settings_of(asked.settings)} if asked.settings else {}
    of = declares(asked.declared) if asked.declared else ()
    kind = asked.kind or (of[0] if len(of) == 1 else None)  # attention: fits several kinds
    subject = adapted_as(thing, asked.call, kind=kind, name=name, **how)
    tell(
        {
            "event": "adapted",
            "name": name,
            "kind": subject.kind,
            "adapted": subject.adapted,
            "file": file,
        }
    )
    return subject


def look(
    subject: Subject,
    asked: CodeRequest,
    tell: Tell,
    thing: Any = None,
    *,
    seconds: float = 0.0,
    fork: Callable[[Callable[[Tell], None]], Beside] | None = None,
    **how: Any,
) -> None:
    """Examine the code by the methods asked for; ``thing`` is the object that was adapted.

    ``seconds``: processor time that a law may take if no other process ends it, 0 for no limit;
    ``fork``: how to run something in a process beside this one; ``how``: what the caller in Python
    said about the code.

    Laws of which no proof is tried are examined first; the others after them, or beside them.  What
    a process that was killed has left is examined method by method.
    """
    at = Methods(subject, asked, tell, thing, how, seconds, is_to_be_read(subject, asked.laws))
    methods = asked.methods
    if "identity" in methods and at.reads:  # all laws are examined with the mask that it reads
        at.tell(at.run("identity"))
        methods = tuple(method for method in methods if method != "identity")
    proved = at.tried() if "traced" in methods and not asked.known else frozenset()
    others = at.here - proved
    first = tuple(one for one in methods if one != "traced" or not proved)
    ways = tuple(one for one in methods if one != "identity") if proved else ()

    def prove(tell: Tell) -> None:
        at.report, at.unasked = tell, False
        for end in _examined(at, ways, proved, at.tell, fork):
            at.tell(end)

    if proved and others:
        at.watch()  # once, not in both processes
    beside = fork(prove) if fork is not None and proved and others else None
    ended = _Ends(at.tell, Counter((*first, *ways)))
    late = _examined(at, first, others, ended, fork)
    if beside is not None:
        for end in _passed_on(at, beside):
            ended(end)
    elif proved:
        late += _examined(at, ways, proved, ended, fork)
    for end in late:  # a method that is told to have failed counts as ended for all laws
        at.tell(end)


@dataclass
class _Ends:
    """Reports the end of a method when it has examined all laws, some ``left`` times."""

    tell: Tell
    left: Counter[str]
    ends: dict[str, list[Event]] = field(default_factory=dict)

    def __call__(self, end: Event) -> None:
        """Report it, or keep it until the other laws are examined too."""
        method = end["method"]
        ends = self.ends.setdefault(method, [])
        ends.append(end)
        self.left[method] -= 1
        if self.left[method] == 0:
            self.tell(_as_one(ends))
        elif self.left[method] < 0:  # laws were examined at more tokens
            self.tell(end)


def _examined(
    at: Methods,
    methods: Sequence[str],
    laws: frozenset[str],
    ended: Tell,
    fork: Callable[[Callable[[Tell], None]], Beside] | None = None,
) -> list[Event]:
    """Examine some laws by each method, then at more tokens; report how the methods ended.

    Returns how the runs of more tokens ended, if they failed.
    """
    at.here = laws
    proving: list[Beside] = []
    if fork is not None and "traced" in methods[1:]:
        proving = _proving(at, fork)
    for method in methods:
        if method == "traced" and proving:
            ended(_as_one([*_passed_on(at, *proving)]))
        else:
            ended(at.run(method))
    return [end for end in (at.run("longer"),) if end["why"]] if at.ran else []


def _proving(at: Methods, fork: Callable[[Callable[[Tell], None]], Beside]) -> list[Beside]:
    """Start the proof in processes beside this one, at most one for each processor."""

    def prove(parts: Sequence[int], tell: Tell) -> None:
        at.report = tell
        tell(at.run("traced", parts=parts))

    every = range(at.parts_of(at.laws("traced")))
    count = min(len(every), len(os.sched_getaffinity(0)))
    if count > 1:
        import_module("torch.export._trace")  # once, not in each of them
    ends = [k * len(every) // count for k in range(count + 1)]
    return [fork(partial(prove, every[i:j])) for i, j in pairwise(ends)]


def _passed_on(at: Methods, *beside: Beside) -> Iterator[Event]:
    """Pass on what processes beside this one report, in turn; yield how their methods ended."""
    for one in beside:
        for event in one.events():
            if event["event"] == "method":
                yield event
            else:
                at.pass_on(event)


def _as_one(ends: Sequence[Event]) -> Event:
    """Return how a method ended, which examined some laws after the others."""
    failed = next((end for end in ends if end["why"]), ends[0])
    why = "; ".join(dict.fromkeys(end["why"] for end in ends if end["why"]))
    return {**failed, "why": why, "seconds": sum(end["seconds"] for end in ends)}
