"""Check unproved laws again at lengths where the code takes another path.

Laws are run with few tokens.  They are run again at the lengths of
:mod:`~attnproof.real_code.critical_lengths`, all of them at one length before the next.  The
verdict line states what would be too much work, and which keys and entries of a stored mask were
not examined.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from functools import partial, wraps
from typing import Any

import torch

from ..documents.verdict_line import Condition
from ..programs.calls.counts import has_constant_diagonals
from ..programs.exact import exact as exact_of
from ..programs.execution.calling import restored_settings
from ..programs.execution.draw import Draw
from ..programs.execution.finite import wrapped
from ..programs.finding import AT_OTHER_LENGTHS, Finding
from ..programs.identified_mask import LAWS as OF_MASKS
from ..programs.measure.examine import examine
from ..programs.subjects import Bias, Mask, Rotary, Subject
from ..theorems.laws import Formula, laws_of
from ..theorems.laws.masks import looked_at
from .calls_at_lengths import SHORT, SIZES, of_sizes
from .comparison_outcomes import OwnRuns
from .critical_lengths import Lengths, Longer, Places, lengths_of, square_tables, work

MAX_WORK = 150_000_000  # values computed for all laws together, in about three seconds
CALL_VALUES = 40_000  # values that are computed in the time of a call of few tokens
SIDES = 2  # calls of the code per law, before it was run; each key that it examines takes one more
# Laws of state are no formulas; calls of the code, in calls of the lengths at which they are run.
OF_STATE = {"no-mutation": 4, "evaluation-repeats": 25, "stateless": 80}
# Products of all pairs of tokens, each with its bound, that a law makes of a table.
OF_PAIRS = {"products-of-offset": 12}
FED_IN_STEPS = "step-by-step"
MASK_VALUES = 2  # distinct values of a mask: visible and hidden


@dataclass
class _OfLaw:
    """What is known of one law at the lengths run so far.

    ``calls``: how many it made of the code, by the number of tokens.
    """

    id: str
    is_run: bool
    unexamined: str = ""
    reached: dict[str, int] = field(default_factory=lambda: dict.fromkeys("Bn", SHORT))
    calls: dict[int, int] = field(default_factory=dict)
    fails: bool = False


def at_longer(
    subject: Subject,
    laws: Collection[str],
    draw: Draw,
    begin: Callable[[str], None],
    method: str = "measured",
    exact: Collection[str] = (),
    known: Places | None = None,
) -> Iterator[Finding]:
    """Yield findings at more tokens on laws that hold for few; none if no length is compared.

    ``begin`` is called with each law that is run.  With a ``method`` other than "measured" none is
    run, and the findings state what the code compares.  ``exact``: laws that hold over finite
    fields; their findings state below which of the code's numbers they were run.  ``known``: what
    :func:`~attnproof.real_code.critical_lengths.lengths_of` returned, with what each law met in its
    own runs; laws of which nothing is recorded are run once more.
    """
    known = lengths_of(subject) if known is None else known
    own = known.own
    formulas = {law.id: law.formulas for law in laws_of(subject.kind)}
    stored = [*_irregular(subject)]
    states = []
    for law in sorted(laws, key=OF_STATE.__contains__):
        varies = any(map(partial(_has_length, subject), formulas.get(law, ())))
        varies |= law in OF_STATE
        states.append(_OfLaw(law, varies and method == "measured"))
    unheard = set(laws) - own.of.keys() if own is not None else set()
    left, beside, scale = MAX_WORK, set[str](), known.scale
    for one in known.longer:
        for of in (each for each in states if not each.fails):
            made = None
            runs = of.is_run and not (one.exactly and of.id in OF_STATE)
            if runs and _cost(subject, of, one.at, scale) <= left:
                begin(of.id)
                made, others = _run(subject, of, one.at, draw, own)
                left -= of.calls[one.at["n"]] * _of_call(subject, one.at, scale)
                yield from (
                    _longer(found, one)
                    for name, found in others.items()
                    if name not in beside and found.verdict == "broken"
                )
                beside.update(others)
            if made is not None and made.verdict != "holds":
                of.fails = True
                yield _longer(made, one)
            elif made is not None:
                of.reached = {c: max(n, one.at.get(c, 1)) for c, n in of.reached.items()}
                if not one.alike:  # for the most tokens, which come last
                    of.unexamined = _not_examined(subject, of.id, one.at)
    for of in (each for each in states if not each.fails):
        if own is not None and of.id in unheard:
            again, met_again = own.hearing(subject)
            _run_again(again, of.id, draw, exactly=of.id in exact)
            own.add(of.id, met_again)
        met = own.conditions(of.id, known.asked) if own is not None else ()
        missed = [*known.where, *(stored if of.id in OF_MASKS else ()), of.unexamined]
        missed += known.of_steps if of.id == FED_IN_STEPS else ()
        told = dict.fromkeys((*met, *missed))
        assuming = [Condition(one, "where") for one in told if one]
        if of.id in exact:
            assuming += known.below(of.reached)
        if assuming:
            why = "it holds at lengths at which the comparisons in the code have these outcomes"
            yield Finding(of.id, method, "holds", why, dtype=draw.format, assuming=(*assuming,))


def _run_again(subject: Subject, law: str, draw: Draw, *, exactly: bool) -> None:
    """Run a law as it was run by a process that has ended, to hear what it meets."""
    with restored_settings():
        examine(subject, (draw,), (law,))
        if exactly:
            exact_of(subject, (law,))


def _run(
    subject: Subject, of: _OfLaw, at: Lengths, draw: Draw, own: OwnRuns | None
) -> tuple[Finding | None, dict[str, Finding]]:
    """Run a law at these lengths; return its finding, if it applies, and those of other laws."""
    calls = _Calls()
    with restored_settings():
        run_at = (_arranged(subject, of.id, at),)
        code = replace(of_sizes(subject, at), run_at=run_at)
        code, met = (code, None) if own is None else own.hearing(code)
        found = examine(wrapped(code, calls.counted), (draw,), (of.id,))
    of.calls[at["n"]] = calls.count
    asked = {each.law: each for each in found if each.verdict != "not asked"}
    made = asked.pop(of.id, None)
    if own is not None and met is not None and made is not None and made.verdict == "holds":
        own.add(of.id, met)
    return made, asked


@dataclass
class _Calls:
    """Counts calls of some code."""

    count: int = 0

    def counted(self, name: str, call: Callable[..., Any], subject: Subject) -> Callable[..., Any]:
        """Return the same call, which is counted."""
        del name, subject

        @wraps(call)
        def one_more(*given: Any, **named: Any) -> Any:
            self.count += 1
            return call(*given, **named)

        return one_more


def _longer(found: Finding, longer: Longer) -> Finding:
    """Return the finding, prefixed with the lengths at which it was made."""
    width = {"D": 2 * longer.at["P"]} if "P" in longer.at else {}
    given = {c: n for c, n in {**longer.at, **width}.items() if c in "Brn" + SIZES and c != "P"}
    at = ", ".join(f"{c} = {n}" for c, n in given.items())
    return replace(found, why=f"{AT_OTHER_LENGTHS} ({at}): {found.why}")


def _has_length(subject: Subject, formula: Formula) -> bool:
    """Whether the number of tokens, as :func:`lengths_of` gives it, changes this formula."""
    letters = {c for told in formula.given.values() for c in told.split()[1:]}
    return formula.kind == subject.kind and not letters.isdisjoint("nm")


def _arranged(subject: Subject, law: str, at: Lengths) -> Lengths:
    """Return the lengths as a law takes them: of a bias, most take r queries beside n keys."""
    if isinstance(subject, Bias) and law not in ("paths-agree", *OF_STATE):
        behind = max(1, min(at["r"], at["n"] - 1))
        return {"n": max(1, at["n"] - behind), "r": behind}
    return {c: n for c, n in at.items() if c not in SIZES}


def _keys(subject: Subject, law: str, at: Lengths) -> list[int]:
    """Return the keys that a law examines one by one."""
    each = law == "past-is-used" and not isinstance(subject, Mask)
    return looked_at(at["n"]) if each else []


def _of_call(subject: Subject, at: Lengths, scale: int) -> int:
    """Return roughly how many values are computed in the time of a call."""
    return scale * max(work(subject, at), CALL_VALUES)


def _cost(subject: Subject, of: _OfLaw, at: Lengths, scale: int) -> int:
    """Return roughly how many values are computed in the time in which a law is run."""
    calls = OF_STATE.get(of.id, SIDES) + len(_keys(subject, of.id, at))
    if of.calls:
        calls = max(calls, _calls_of(of, at["n"]))
    whole = calls * _of_call(subject, at, scale) + OF_PAIRS.get(of.id, 0) * at["n"] ** 2
    counts = isinstance(subject, Rotary) and subject.counts and subject.running is None
    if of.id == "composition" and counts:
        # Sums of positions do not follow one another: each token may take a call of its own.
        whole += SIDES * scale * CALL_VALUES * at["n"]
    return whole


def _calls_of(of: _OfLaw, tokens: int) -> int:
    """Return how many calls a law makes, going by those that it made.

    It may make one for each token, unless it is a law of state or was seen to make as many of fewer
    tokens.
    """
    least, most = min(of.calls), max(of.calls)
    made = of.calls[most]
    alike = of.id in OF_STATE or (least < most and made == of.calls[least])
    return made if alike else math.ceil(made * min(1.0, tokens / most))


def _not_examined(subject: Subject, law: str, at: Lengths) -> str:
    """Return the condition that the keys not examined behave like the others; "" if not needed."""
    few, many = len(_keys(subject, law, at)), at["n"]
    told = (
        f"the {many - few} of {many} keys that were not examined are treated like the other {few}"
    )
    return told if 0 < few < many else ""


def _irregular(subject: Subject) -> Iterator[str]:
    """Yield, for each stored mask whose rows differ, a condition on the entries not examined."""
    for name, x in square_tables(subject):
        if (
            x.shape[-1] > SHORT
            and not has_constant_diagonals(x)
            and len(torch.unique(x)) == MASK_VALUES
        ):
            yield (
                f"the entries of the stored mask {name}, {x.shape[-1]} by {x.shape[-1]}, that "
                "were not examined follow the pattern of the others"
            )
