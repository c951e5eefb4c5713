"""Search for a proof of a law, reading the graphs in one way after another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from attnproof.symbolic.composition import NotComposed, decide_composition
from attnproof.symbolic.decision import Decision
from attnproof.symbolic.normal_form.sums import DEFAULT_LONGEST, written_out
from attnproof.symbolic.prove import Effort, decide, ranges_of
from attnproof.theorems.laws import Formula

from ..subjects import Subject
from .least_lengths import Bounds, bounds_of, from_least, quotients_of, upper_bounds
from .operations import Unread
from .program import Way
from .statements import Axes, Graph, composed, forget, stated

# How programs are read, up to which literal length sums are written out (pairs of channels have 2),
# and which share of the time that may take.
WAYS: tuple[tuple[Way, int, float], ...] = (("folded", 1, 0.4), ("program", 2, 0.6))
IN_PARTS_SHARE = 0.5  # share of time for a program in parts, before it is tried as a whole
VALUED_SHARE = 0.6  # share for pairs: sums over axes of small stored tables are written out too


@dataclass(frozen=True)
class Decided:
    """A decision; ``bounds``: lengths that its statement writes in terms of others.

    ``in_parts``: each part of the graph was decided separately.
    """

    decision: Decision
    bounds: Bounds = field(default_factory=dict)
    in_parts: bool = False


def decided(
    law: Formula, graphs: Mapping[str, Graph], letters: Axes, subject: Subject, seconds: float
) -> Decided:
    """Return the decision of the first way of reading that gives a proof, or of the last."""
    in_parts = _in_parts(law, graphs, letters, subject, seconds)
    if in_parts is not None:
        return Decided(in_parts, in_parts=True)
    own: Axes = letters
    bounds: Bounds = {}
    for way, longest, part in (*WAYS, *_valued(graphs, subject)):
        statement = stated(law, graphs, own, subject, way=way)
        short = not bounds and ranges_of(statement, statement.claims.values())[0]
        if short and subject.kind == "pair":  # its graphs are called with these letters only
            bounds = bounds_of(letters, graphs.values())
            longer = from_least(bounds)
            own = {letter: longer(length) for letter, length in letters.items()}
            known = {(longer(a), b): part for a, b, part in quotients_of(graphs.values())}
            forget(graphs)
            for program in (one for graph in graphs.values() for one in graph.programs):
                program.notes.quotients |= known
            statement = stated(law, graphs, own, subject, way=way)
        if short:
            statement = replace(statement, laws=upper_bounds(graphs.values()))
        effort = Effort(refuting=False, whole=part * seconds)
        with written_out(longest):
            decided = decide(statement, effort=effort)
        if decided.verdict == "proved":
            break
    return Decided(decided, bounds)


def _in_parts(
    law: Formula, graphs: Mapping[str, Graph], letters: Axes, subject: Subject, seconds: float
) -> Decision | None:
    """Return a proof of the law for each part of a program that can be cut, else None.

    Such a proof covers the whole; if there is none, the whole is tried next.
    """
    if len(graphs) != 1:
        return None
    (graph,) = graphs.values()
    effort = Effort(refuting=False, whole=IN_PARTS_SHARE * seconds)
    try:
        with written_out(1):
            whole = composed(law, graph, letters, subject)
            decided = None if whole is None else decide_composition(whole, effort)
    except (NotComposed, Unread):
        decided = None
    if decided is None or decided.verdict != "proved":
        forget(graphs)  # what was met in parts does not concern the whole
        return None
    return decided


def _valued(graphs: Mapping[str, Graph], subject: Subject) -> list[tuple[Way, int, float]]:
    """Return the way of reading small stored tables of a pair as their numbers, if there are any.

    A proof for arbitrary numbers says more and is tried before.
    """
    if subject.kind != "pair":
        return []
    small = [
        n
        for g in graphs.values()
        for name in g.exported.small
        for n in g.exported.values[name].shape
    ]
    return [("valued", min(max(small), DEFAULT_LONGEST), VALUED_SHARE)] if small else []
