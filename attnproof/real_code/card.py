"""The card of rotary code: the laws of encodings, checked on its graph as on an encoding.

What the graph does to a vector at a position is the method ``rotate`` of an encoding (and ``key``,
if keys have a graph of their own).  A law is proved for any parameters and all real positions.  If
it is not proved, a counterexample is sought with the parameters of the code, at lengths that its
graph allows and at positions that the code accepts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from fractions import Fraction
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from ..cards.verdicts import idle, settled
from ..documents.verdict_line import Condition
from ..encoding.base import Encoding
from ..encoding.conformance import read_elsewhere, require_no_state
from ..encoding.law import Answer, EncodingLaw
from ..laws import LAWS
from ..laws.positions import RUN
from ..symbolic import namespace as xp
from ..symbolic.array import Array, as_array
from ..symbolic.budget import OutOfTime, within
from ..symbolic.claim import Law, at_least
from ..symbolic.faults import fault_of
from ..symbolic.prove import Effort
from ..symbolic.refute import refute
from ..symbolic.statement import Statement
from ..symbolic.terms import free

if TYPE_CHECKING:
    from ..programs.prove.traced_rotation import Hook, Hooks

Cell = dict[str, Any]
LIMIT = 10.0  # seconds that one law may take
MAX_ENTRIES = 64  # entries of parameters, at most, for which a witness is sought


def card_of(hooks: Hooks, laws: tuple[EncodingLaw, ...] = LAWS) -> Iterator[Cell]:
    """Yield the verdict on each law of encodings for this graph, as plain data.

    The keys are those of :class:`~attnproof.real_code.records.CardLawRecord`.
    """
    anywhere, where_it_runs = encoding_of(hooks), encoding_of(hooks, whole=hooks.whole)
    for kind in (anywhere, where_it_runs):
        require_no_state(kind())
    for law in laws:
        start = perf_counter()
        hooks.forget()
        try:
            with within(LIMIT):
                told = _told(law, anywhere, where_it_runs, hooks)
        except OutOfTime:
            told = _undecided(f"nothing was known of it after {LIMIT:g} s")
        except Exception as error:  # noqa: BLE001 (one law stops no other)
            fault = fault_of(error)
            told = _undecided(" ".join(str(error).split()) or f"raised {type(error).__name__}")
            if fault is not None:  # one law stops no other
                told |= {
                    "verdict": "internal error",
                    "why": fault.message,
                    "traceback": fault.traceback,
                }
        yield {"law": law.id, "says": law.title, **told, "seconds": perf_counter() - start}


def encoding_of(hooks: Hooks, *, whole: bool = False) -> type[Encoding]:
    """Return a graph as an encoding; ``whole``: only at the positions 0, 1, 2, .."""
    rotate, key = hooks.rotate, hooks.key

    def method(hook: Hook) -> Any:
        def rotated(self: Encoding, x: Any, p: Any) -> Any:
            return hook(x, p, {name: getattr(self, name) for name in hook.givens})

        return rotated

    methods = (
        {"rotate": method(rotate)} if key is None else {"query": method(rotate), "key": method(key)}
    )
    made = (rotate,) if key is None else (rotate, key)
    kind = type(
        "Traced",
        (Encoding,),
        {
            **methods,
            "__doc__": "What traced code does to queries and keys.",
            "title": "traced code",
            "width": rotate.width,
            "axes": rotate.axes,
            "whole": whole and not rotate.axes,
            "given": {name: given for hook in made for name, given in hook.givens.items()},
            "defaults": {name: value for hook in made for name, value in hook.values.items()},
        },
    )
    read_elsewhere(kind)
    return kind


def _told(
    law: EncodingLaw, anywhere: type[Encoding], where_it_runs: type[Encoding], hooks: Hooks
) -> Cell:
    why_not = idle(where_it_runs, law.group) or law.applies(where_it_runs)
    if why_not:
        return {"verdict": "does not apply", "why": why_not, "assuming": []}
    asked = law.statement(anywhere())
    if isinstance(asked, Answer):
        return _answered(asked, where_it_runs, hooks)
    found = settled(law, anywhere(), (), Effort(refuting=False, prove=LIMIT / 2)).found
    if found.verdict == "proved":
        steps = sum(link.steps for claim in found.claims for link in claim.links)
        told = f"{steps} kernel steps"
        return _holding(
            "refuted" if law.some else "proved",
            f"its negation is proved: {told}" if law.some else told,
            hooks,
            tuple(t for claim in found.claims for t in claim.readings),
        )
    if hooks.rounded:
        return _undecided(
            "no proof was found; its stored cosines are rounded and finitely many, so an "
            "exact counterexample need not be one of the code"
        )
    shown = _witness(law, where_it_runs, hooks)
    if shown:
        return {"verdict": "proved" if law.some else "refuted", "why": shown, "assuming": []}
    return _undecided("no proof was found, and no counterexample")


def _answered(found: Answer, kind: type[Encoding], hooks: Hooks) -> Cell:
    """Return the verdict of a law that decides itself: for any parameters, unless it fails."""
    if found.verdict == "proved":
        return _holding("proved", found.how, hooks, found.readings)
    if found.verdict == "refuted" and (not kind.given or found.certified_by == RUN):
        return {"verdict": "refuted", "why": found.how, "assuming": []}
    return _undecided(
        found.how
        if found.verdict == "undecided"
        else "it fails for some parameters; whether for those of the code is not known"
    )


def _holding(verdict: str, why: str, hooks: Hooks, readings: tuple[str, ...]) -> Cell:
    conditions = (*hooks.conditions(), *(Condition(told, "if") for told in readings))
    assuming = [asdict(one) for one in dict.fromkeys(conditions)]
    return {"verdict": verdict, "why": why, "assuming": assuming}


def _undecided(why: str) -> Cell:
    return {"verdict": "undecided", "why": why, "assuming": []}


def _witness(law: EncodingLaw, kind: type[Encoding], hooks: Hooks) -> str:
    """Return a certified counterexample with the parameters of the code; "" if none was found."""

    def stated(**values: Array) -> Statement:
        asked = law.statement(kind(**values), in_a_row=law.places_tokens(kind))
        assert not isinstance(asked, Answer)  # it is not one for free parameters
        return asked

    used = [name for name in kind.given if name in stated().givens]
    if kind.axes or set(used) - set(kind.defaults):
        return ""  # unknown: the positions that the code accepts, or the entries of a table
    if sum(np.size(kind.defaults[name]) for name in used) > MAX_ENTRIES:
        return ""
    values = {name: _exactly(np.asarray(kind.defaults[name])) for name in used}
    asked = stated(**values)
    own = tuple(
        (kind.given[name].named(name).term, value.term)
        for name, value in values.items()
        if name in asked.givens
    )
    sizes = {
        t
        for claim in asked.claims.values()
        for side in claim.terms()
        for t in free(side)
        if t.op == "size"
    }
    rows = dict.fromkeys(("n_q", "n_k"), hooks.least.get("T", 1))
    fewest = {**hooks.least, **rows}
    least = tuple(
        Law(at_least(Array(t), fewest[t.data[0]]))
        for t in sorted(sizes, key=repr)
        if t.data[0] in fewest
    )
    for claim in asked.claims.values():
        found = refute(
            claim,
            asked.givens,
            (*asked.assume, *own),
            (*asked.laws, *least),
            limit_seconds=LIMIT / 4,
        )
        if found is not None and hooks.allows(found.sizes):
            return found.text
    return ""


def _exactly(value: Any) -> Array:
    """Return floats as the fractions that they represent."""
    if not value.ndim:
        return as_array(Fraction(float(value)))
    return xp.stack([_exactly(part) for part in value])
