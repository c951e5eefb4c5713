"""Whether two programs are one function: run, proved, asked in finite fields, measured.

From cheap to dear.  Two programs that differ on some numbers are not one function, and nothing else
is asked.  What agrees is proved if it can be: with every length free first, then with those of
features fixed, of heads, of rows.  What is not proved says at which two steps of the programs it
stopped (:mod:`.matching`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, Literal

from attnproof.verdict_line import Condition

from ...numeric.devices import one_thread
from ..exact import exact
from ..finding import UNLIKE, Finding, Seen
from ..prove import prove
from ..prove.comparison import CHANGES
from ..prove.gate import OVERWRITES
from ..prove.proving import Traced
from ..response import CANCELLED
from ..settings import given_back
from ..subjects import Pair
from .inputs import ANY, tables_for
from .matching import Parted, parted
from .measure import Looked, at_hidden_rows, look
from .pair import Two, two, worst
from .sides import Told

SameVerdict = Literal[
    "proved", "exact", "measured", "undecided", "counterexample", "internal error"
]
SECONDS = 20.0
NO_FUNCTION = (
    UNLIKE,
    CHANGES,
    OVERWRITES,
)  # what is said of code that is no function of its inputs
FEATURES = "DEFCPVd"  # letters of lengths that code often fixes


@dataclass(frozen=True)
class Verdict:
    """What was found, why, and under which conditions.

    ``seen``: the counterexample.  ``parted``: the first two steps of the programs that could not be
    shown to be the same.  ``remarks``: what was seen beside the question.
    """

    two: Two
    verdict: SameVerdict
    why: str
    assuming: tuple[Condition, ...] = ()
    seen: Seen | None = None
    parted: Parted | None = None
    looked: Looked = field(default_factory=Looked)
    operations: int = 0
    remarks: tuple[str, ...] = ()
    seconds: float = 0.0
    traceback: str = ""


@dataclass(frozen=True)
class _How:
    """A seed, how many seconds a proof is looked for, and who hears of each method."""

    seed: int
    seconds: float
    begin: Callable[[str], None]


def compare(
    first: Told,
    second: Told,
    *,
    where: str = "",
    weights: str = "",
    seed: int = 0,
    seconds: float = SECONDS,
    begin: Callable[[str], None] = lambda _: None,
) -> Verdict:
    """Whether two programs are one function.

    ``where`` says what stands for arguments of the second, ``weights`` for its parameters;
    ``seconds`` is how long a proof is looked for; ``begin`` hears of each method that is begun.

    Raises :class:`~attnproof.programs.signature.SignatureError` where the two cannot be called on
    the same arrays.

    >>> made = compare(Told(lambda x: x * 2, "twice", "x: B n E -> B n E"),
    ...                Told(lambda x: x + x, "added", "x: B n E -> B n E"))
    >>> made.verdict
    'proved'
    """
    start = perf_counter()
    both = two(first, second, where, weights)
    with one_thread(), given_back():
        begin("run")
        both, looked = _with_tables(both, seed)
        found = _found(both, looked, _How(seed, seconds, begin))
    remarks = [*both.notes, looked.raises, looked.overflows]
    if found.verdict != "counterexample":
        remarks.append(at_hidden_rows(both))
    return replace(
        found, seconds=perf_counter() - start, remarks=tuple(dict.fromkeys(filter(None, remarks)))
    )


def _with_tables(both: Two, seed: int) -> tuple[Two, Looked]:
    """The pair with the most general tables of which both give the same, and what was seen."""
    found: list[tuple[Two, Looked]] = []
    for table in tables_for(both.shared):
        tried = replace(both, table=table)
        try:
            looked = look(tried, seed)
        except Exception:
            if table is ANY:
                raise
            continue
        if looked.tried and looked.seen is None:
            return tried, looked
        if looked.tried:
            found.append((tried, looked))
    if not found:
        return both, look(both, seed)
    return found[min(1, len(found) - 1)]  # halves alike, where there are tables of angles


def _found(both: Two, looked: Looked, how: _How) -> Verdict:
    if looked.seen is not None:
        return Verdict(
            both,
            "counterexample",
            _differ(both, looked),
            seen=looked.seen,
            looked=looked,
            parted=parted(both),
        )
    if not looked.tried:
        return Verdict(
            both, "undecided", "there are no lengths at which both could be run", looked=looked
        )
    if looked.unsteady:
        return Verdict(both, "undecided", looked.unsteady, looked=looked)
    how.begin("proof")
    subject = both.subject()
    tried, made = _proof(both, subject, how)
    more: dict[str, Any] = {"looked": looked, "operations": tried.operations}
    if made is not None and made.verdict == "internal error":
        return Verdict(both, "internal error", made.why, traceback=made.traceback, **more)
    if made is not None and made.verdict == "broken":
        return Verdict(both, "counterexample", made.why, seen=made.witness, **more)
    if made is not None and made.verdict == "holds":
        said = (*_conditions(both, proved=True), *_all(tried))
        return Verdict(both, "proved", made.why, said, **more)
    why = made.why if made is not None else tried.why
    if any(told in why for told in NO_FUNCTION):
        return Verdict(both, "undecided", why, **more)
    more["parted"] = parted(both)
    how.begin("finite fields")
    (field,) = exact(subject, seed=how.seed)
    if field.verdict == "broken":
        return Verdict(both, "counterexample", field.why, seen=field.witness, **more)
    if field.verdict == "holds":
        told = f"{field.why}; not proved: {why}"
        return Verdict(both, "exact", told, _conditions(both), **more)
    formats = " and ".join(looked.formats)
    rounding = f"up to rounding{CANCELS if looked.cancels else ''}"
    told = f"the same in {looked.tried} calls, in {formats}, {rounding}; not proved: {why}"
    return Verdict(both, "measured", told, _conditions(both), **more)


SEEN = "times what rounding was seen to do, which is no bound"
CANCELS = f", where numbers cancel up to {CANCELLED} {SEEN}"


def _proof(both: Two, subject: Pair, how: _How) -> tuple[Traced, Finding | None]:
    """What tracing and proving came to, with as few lengths fixed as lead to a proof."""
    kept: tuple[Traced, Finding | None] | None = None
    for fixed in ways(both):
        if kept is not None and kept[1] is not None and not kept[0].free & set(fixed):
            continue  # none of these is symbolic as it is
        tried = prove(subject, seconds=how.seconds / 2, fixed=(fixed,))
        made = worst(tried.findings) if len(tried.findings) == both.count else None
        if made is not None and made.verdict in ("holds", "broken", "internal error"):
            return tried, made
        if kept is None or kept[1] is None:
            kept = tried, made
    assert kept is not None
    return kept


def ways(both: Two) -> Sequence[str]:
    """Letters whose lengths are fixed: none, those of features, of heads as well, of rows."""
    letters = [c for one in both.given for c in one.letters if c.isalpha()]
    features = "".join(c for c in dict.fromkeys(letters) if c in FEATURES)
    heads = "".join(c for c in dict.fromkeys(letters) if c in "HG")
    rows = "B" * ("B" in letters)
    return tuple(dict.fromkeys(("", features, features + heads, features + heads + rows)))


def _conditions(both: Two, *, proved: bool = False) -> tuple[Condition, ...]:
    """What is the same of both beside the arrays: a proof is of all weights, a call of its own."""
    found = []
    if both.table is not ANY:
        found.append(Condition(both.table.says, "where"))
    if both.weights:
        which = "whatever they are" if proved else "and as they are now"
        found.append(Condition(f"the weights of both are the same, {which}", "where"))
    if any(one.numel() for module in both.modules for one in module.buffers()):
        told = "stored tables that hold the same numbers now are the same"
        found.append(Condition(told, "where"))
    return tuple(found)


def _all(traced: Traced) -> tuple[Condition, ...]:
    return tuple(dict.fromkeys(c for one in traced.findings for c in one.assuming))


def _differ(both: Two, looked: Looked) -> str:
    at = ", ".join(f"{c} = {n}" for c, n in looked.at.items())
    at += f", {looked.how}" if looked.how else ""
    which = f"result {looked.result + 1} of " if both.count > 1 else ""
    if looked.error == float("inf") and not looked.bound:
        return (
            f"{which}the two give different shapes, or one is not finite in {looked.dtype}, at {at}"
        )
    return (
        f"{which}the two differ by {looked.error:.3g} in {looked.dtype} at {at}; rounding "
        f"explains {looked.bound:.2g}"
    )
