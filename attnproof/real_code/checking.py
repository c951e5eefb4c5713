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
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ..programs.as_read import is_to_be_read
from ..programs.declarations import declares, parse
from ..programs.subject import adapted_as
from ..programs.subjects import provable
from .methods import Event, Methods, Tell
from .request import settings_of

if TYPE_CHECKING:
    from ..programs.subjects import Subject
    from .forking import Beside
    from .request import CodeRequest


def adapted(thing: Any, asked: CodeRequest, name: str, file: str, tell: Tell) -> Subject:
    """Return the code as a subject that can be called.

    Raises ``NoAdapter`` if no form of call fits, ``OtherKind``, ``SignatureError`` if the call that
    was given does not fit, ``NoSetting``, or what the code raises.
    """
    declared = parse(asked.declared) if asked.declared else None
    of = declares(asked.declared) if asked.declared else ()
    kind = asked.kind or (of[0] if len(of) == 1 else None)  # attention: fits several kinds
    subject = adapted_as(
        thing,
        asked.call,
        kind=kind,
        declared=declared,
        name=name,
        **({"settings": settings_of(asked.settings)} if asked.settings else {}),
    )
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
    prover: Callable[[Callable[[Tell], None]], Beside] | None = None,
    **how: Any,
) -> None:
    """Examine the code by the methods asked for; ``thing`` is the object that was adapted.

    ``seconds``: processor time that a law may take if no other process ends it, 0 for no limit;
    ``prover``: how to prove in processes beside this one, which runs the other methods meanwhile;
    ``how``: what the caller in Python said about the code.

    Laws of which no proof is tried are examined to the end before the proofs are waited for.
    """
    order, reads = asked.methods, is_to_be_read(subject, asked.laws)
    if "identity" in order and reads:
        order = ("identity", *(method for method in order if method != "identity"))
    at = Methods(subject, asked, tell, thing, how, seconds, reads)
    before = order[: order.index("traced")] if "traced" in order else ()
    # What reads the mask with which the code is proved comes before the fork.
    beside = [method for method in before if not (method == "identity" and reads)]
    proving: list[Beside] = []
    done: dict[str, Event] = {}
    for method in order:
        if prover is not None and method in beside[:1]:
            proving = _proving(at, prover)
        if method == "traced" and not asked.known:
            done = _without_proof(at, order)
        if method not in done or not done[method]["why"]:
            end = _proved(at, proving) if method == "traced" and proving else at.run(method)
            spent = done[method]["seconds"] if method in done else 0.0
            at.tell({**end, "seconds": end["seconds"] + spent})
    if at.ran:
        _lengthen(at)


def _without_proof(at: Methods, order: Sequence[str]) -> dict[str, Event]:
    """Examine the laws of which no proof is tried to the end; return how exact arithmetic ended."""
    done: dict[str, Event] = {}
    at.later = frozenset(formula.id for formula in provable(at.subject))
    if "exact" in order:
        done["exact"] = at.run("exact")
        if done["exact"]["why"]:
            at.tell(done["exact"])
    if at.ran:
        _lengthen(at)
    at.later = frozenset()
    return done


def _lengthen(at: Methods) -> None:
    """Examine laws at more tokens; only a failure is reported."""
    end = at.run("longer")
    if end["why"]:
        at.tell(end)


def _proving(at: Methods, prover: Callable[[Callable[[Tell], None]], Beside]) -> list[Beside]:
    """Start the proof in processes beside this one, at most one for each processor."""

    def prove(parts: Sequence[int], tell: Tell) -> None:
        at.report = tell
        tell(at.run("traced", parts=parts))

    every = range(at.parts_of(at.laws("traced")))
    count = min(len(every), len(os.sched_getaffinity(0)))
    if count > 1:
        import_module("torch.export._trace")  # once, not in each of them
    ends = [k * len(every) // count for k in range(count + 1)]
    return [prover(partial(prove, every[i:j])) for i, j in pairwise(ends)]


def _proved(at: Methods, proving: Sequence[Beside]) -> Event:
    """Pass on what the processes of a proof report, in turn, until one does not finish."""
    end: Event = {}
    seconds = 0.0
    for one in proving:
        for event in one.events():
            if event["event"] == "method":
                end = event
            else:
                at.pass_on(event)
        seconds += end["seconds"]
        if end["why"]:
            break
    return {**end, "seconds": seconds}
