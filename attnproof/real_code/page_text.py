"""Text for the page of a check: counts of verdicts, where code was stopped, what breaks and how."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any, get_args

from ..documents import document
from ..documents.verdict_line import Condition, clauses, verdict_line
from ..errors import FAULT, internal_errors
from ..programs import identified_mask
from ..programs.declarations import compared_by
from ..programs.finding import DIFFERS_FROM_GRAPH
from .records import (
    CardRecord,
    CodeRecord,
    FindingRecord,
    LawOfCodeRecord,
    LawVerdict,
    PartRecord,
    SeenRecord,
    TracedRecord,
)

if TYPE_CHECKING:
    from .collecting import Collected
    from .running import Stopped

SIGNS = {**document.SIGNS, "measured": "✓"}  # a verdict that encoding cards do not have
NOT_GIVEN = "no code was given that does this"
MATRIX = re.compile(r" \([#. ]+\)")  # which token reaches which; it is in the record
LONG = 160  # characters of a value that are shown; the record has it in full


def exit_code(record: CodeRecord, *, identifying: bool = False) -> int:
    """Return the exit code of a check, or with ``identifying`` of an identification.

    2: the code cannot be run or was stopped, no law was asked, or attnproof itself failed.
    Otherwise 1: a law is broken.  Otherwise 2: a named law could not be asked.  Otherwise 1: a
    declaration is unchecked, a law was not reached, or the record is ``strict`` and a law is
    undecided.  Otherwise 0.  With ``identifying``, 1 says that the code was run and not identified.
    """
    if any(True for _ in internal_errors(record)):
        return FAULT
    if record.why or record.stopped:
        return 2
    if identifying:
        return 2 if record.identity is None else int(record.identity.kind == "unknown")
    if not record.asked or record.raises:
        return 2
    if record.broken:
        return 1
    if record.unasked:
        return 2
    return int(bool(record.unchecked or record.unfinished or (record.strict and record.undecided)))


def how(law: LawOfCodeRecord, noted: Collection[Condition] = (), note: str = "") -> str:
    """Return how a verdict is known: for a proof its whole line, for others their first clause.

    Conditions ``noted`` elsewhere are replaced by the ``note`` if the law has all of them.
    """
    apart = bool(noted) and set(noted) <= set(law.assuming)
    limits = clauses(one for one in law.assuming if not (apart and one in noted))
    told = note if apart else ""
    if law.verdict == "proved":
        rest = law.why.removeprefix(verdict_line("proved", law.assuming))
        return ", ".join(filter(None, (told, *limits))) + rest or law.why
    method = {"exact": "exact", "measured": "measured"}.get(law.verdict, "")
    good = [one for one in law.findings if one.method == method and one.verdict == "holds"]
    if not good:
        return law.why
    open_ = [one for one in law.findings if one.verdict == "undecided" and one.method != "traced"]
    doubt = f"; undecided {open_[0].numbers}: {open_[0].why}" if open_ else ""
    doubt += "".join(f"; not proved: {why}" for why in unlike(law.findings)[:1])
    first = " ".join(filter(None, (told, good[0].why.partition("; ")[0] or "holds")))
    return first + "".join(f", {clause}" for clause in limits) + doubt


def unlike(findings: Iterable[FindingRecord]) -> list[str]:
    """Return where the code was seen to differ from its graph, so that nothing is proved of it."""
    return [
        one.why for one in findings if one.verdict == "undecided" and DIFFERS_FROM_GRAPH in one.why
    ]


def without_proof(traced: TracedRecord, findings: Iterable[FindingRecord], *, proved: bool) -> str:
    """Return why nothing was proved, or which calls were not read; "" if all were and one was."""
    if proved:
        return f"some calls were not read: {traced.why}" if traced.why else ""
    open_ = (
        f"{one.law}: {one.why}"
        for one in findings
        if (one.method, one.verdict) == ("traced", "undecided")
        and DIFFERS_FROM_GRAPH not in one.why
    )
    why = traced.why or next(open_, "")
    return f"nothing was proved about it: {why}" if why else ""


def card_lines(card: CardRecord, *, verbose: bool = False) -> Iterator[str]:
    """Yield the laws of encodings; those proved under the same conditions share a line.

    ``verbose``: also those that do not apply, each with its reason.
    """
    if card.why:
        yield f"it has no card: {card.why}"
        return
    yield "card, the laws of encodings on its graph:"
    proved: dict[str, list[str]] = {}
    others: list[str] = []
    for law in card.laws:
        conditions = clauses(law.assuming)
        line = " ".join([law.verdict, ", ".join(conditions)]).strip()
        if law.verdict == "proved":
            proved.setdefault(line, []).append(law.law)
        elif verbose or law.verdict != "does not apply":
            others.append(f"  {line}: {law.law}: {law.why}")
    yield from (f"  {told}: {', '.join(laws)}" for told, laws in proved.items())
    yield from others


def counted(record: CodeRecord) -> str:
    """Return how many laws have each verdict."""
    parts = document.tally((law.verdict for law in record.laws), get_args(LawVerdict))
    one = len(record.laws) == 1
    lost = f" ({len(record.unfinished)} not reached)" if record.unfinished else ""
    return f"{len(record.laws)} law{'' if one else 's'}: {parts}{lost}"


def outcome_text(record: CodeRecord) -> str:
    """Explain the exit code if nothing is broken but not every law holds; else return ""."""
    if record.why or record.stopped or record.broken or record.ok or not record.laws:
        return ""
    if told := next(internal_errors(record), ""):
        return f"{told}; the exit code is 2"
    if not record.asked:
        failed = [f"{method.method}: {method.why}" for method in record.methods if method.why]
        told = f" ({'; '.join(failed)})" if failed else ""
        return f"no law was checked, so nothing is known about it{told}"
    if record.raises:
        return f"it cannot be run: {record.raises}, for every law"
    if record.unasked:
        return f"{', '.join(law.law for law in record.unasked)}: named, but could not be checked"
    said: list[str] = []
    if record.unchecked:
        whose = ", ".join(law.law for law in record.unchecked)
        said.append(f"{whose}: declared, and not checked: the exit code is 1")
    if record.undecided:
        are = "are" if len(record.undecided) > 1 else "is"
        open_ = f"{', '.join(law.law for law in record.undecided)} {are} undecided"
        if record.strict:
            said.append(f"{open_}, which --strict does not accept: the exit code is 1")
        elif record.unchecked:
            said.append(open_)
        else:
            said.append(
                f"nothing is broken, and {open_}: neither known to hold nor to fail; the "
                "exit code is 0, and 1 with --strict"
            )
    return "; ".join(said)


def printed_text(record: CodeRecord) -> str:
    """Say once that the code printed something, which is not a fault."""
    if not record.printed:
        return ""
    lines = f"{record.printed} line{'s' * (record.printed > 1)}"
    return f"it printed {lines} while it was checked; the first: {record.first_printed}"


def unchecked_lines(record: CodeRecord, *, verbose: bool = True) -> Iterator[str]:
    """Yield the laws not reached and, if ``verbose``, those not asked, grouped by reason."""
    whose: dict[str, list[str]] = {}
    for law in record.laws:
        if verbose and law.verdict == "not asked":
            why = NOT_GIVEN if law.why.startswith("no code was given that") else law.why
            whose.setdefault(MATRIX.sub("", why), []).append(law.law)
    for why, laws in whose.items():
        yield f"– {', '.join(laws)}: {why}"
    if record.unfinished:
        yield f"? not reached: {', '.join(record.unfinished)}"


def left_uncompared(record: CodeRecord) -> str:
    """Say what is declared and compared by none of the laws that were named."""
    left: dict[str, list[str]] = {}
    for declared, by in compared_by(record.declared, record.kind).items():
        if record.named and by.law not in record.named:
            left.setdefault(by.law, []).append(declared)
    told = "; ".join(
        f"{', '.join(each)}, for which {law} was not asked" for law, each in left.items()
    )
    return f"declared, and not checked: {told}" if told else ""


WAITS = {"rotary": ("frequencies-as-declared",), "additive": ("frequencies-as-declared",)}
"""Laws that are checked only if something is declared, for kinds of code other than masks."""


def declaring(record: CodeRecord) -> str:
    """Say what may be declared of code without a declaration: what it was identified as."""
    if record.declared or record.identity is None:
        return ""
    laws = {law.law: law.verdict for law in record.laws}
    has_mask = record.kind in identified_mask.KINDS
    waits = WAITS.get(record.kind, identified_mask.LAWS if has_mask else ())
    asked = [law for law in waits if laws.get(law, "not asked") != "not asked"]
    if has_mask and not identified_mask.mask_as_read(record.kind, record.identity.parts):
        asked = []  # only by name
    if not laws.keys() & set(waits) or (asked and not has_mask):
        return ""
    told = identified_mask.declared_as_read(record.kind, record.identity.parts)
    if not asked:
        meant = f"if this is what it is meant to be, --declare {told} checks it against that"
        return f"nothing was declared: {meant}" if told else ""
    were = "was" if len(asked) == 1 else "were"
    holds = f"; --declare {told} holds it to that mask" if told else ""  # else no simple rule
    return (
        f"nothing was declared: {', '.join(asked)} {were} checked against the mask that was "
        f"identified{holds}"
    )


def part_text(part: PartRecord) -> str:
    """Return the words of a part of an identity, or its value if it has none.

    >>> from attnproof.real_code.records import PartRecord
    >>> values = {"family": "none"}, 0.99999999, False, "float32"
    >>> [part_text(PartRecord(name="", value=v, words="", evidence="", certain=True))
    ...  for v in values]
    ['none', '1', 'no', 'float32']
    """
    value = part.value
    if part.words or isinstance(value, str):
        return part.words or str(value)
    if isinstance(value, bool) or value is None:
        return "none" if value is None else "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(
            _value(v) if k == "family" else f"{k} {_value(v)}" for k, v in value.items()
        )
    return _value(value)


def broken_lines(law: LawOfCodeRecord) -> Iterator[str]:
    """Yield the lines of a broken law: what it says, what was seen, the witness, how to repeat."""
    yield f"✗ {law.law}: {law.says}"
    yield f"  {law.why}"
    seen = law.shown
    if seen is not None and seen.witness is not None:
        yield from (f"  {line}" for line in witness_lines(seen.witness))
    if seen is not None:
        sizes = "".join(f", {name} = {size}" for name, size in seen.sizes.items())
        yield f"  seed {seen.seed}, {seen.dtype}, {seen.device}{sizes}"
    yield f"  again: {law.again}"


def witness_lines(seen: SeenRecord) -> Iterator[str]:
    """Yield the lines of a witness: inputs, both sides, their difference and its rounding bound."""
    if seen.inputs:
        yield "with " + ", ".join(f"{name} = {_value(v)}" for name, v in seen.inputs.items())
    for side in (seen.here, seen.there):
        yield f"{side.words}: {_value(side.value)}"
    yield _difference(seen)


def _difference(seen: SeenRecord) -> str:
    """Say how far apart the two sides of a witness are; for some laws they should differ."""
    known = ", bounded in ball arithmetic" if seen.certified else ""
    far, allowed = seen.difference, seen.allowed
    if isinstance(far, float) and isinstance(allowed, float) and far <= allowed:
        less = f" to {document.short(far)}, which rounding explains" if far else ""
        return f"they are the same{less}, and should differ{known}"
    if isinstance(seen.here.value, bool) and isinstance(seen.there.value, bool):
        return f"they should be the same{known}"
    if not isinstance(far, float):
        return f"their difference is not a finite number{known}"
    explained = f", rounding explains {document.short(allowed)}" if allowed else ", and should not"
    return f"they differ by {document.short(far)}{explained}{known}"


def stop_text(collected: Collected, stopped: Stopped) -> str:
    """Return a paragraph on where and why the code was stopped, and how to reproduce it."""
    method, law = collected.at
    target = collected.asked.target
    if law:
        doing = f"while the law {law} was being checked ({_method(method)})"
    elif method:
        doing = f"while it was being examined as a whole ({_method(method)})"
    else:
        doing = f"while {collected.does or 'starting'}"
    told = [f"{target} was stopped {doing}: {stopped.why}" + _at(stopped.line) + "."]
    known = len({one.law for one in collected.findings} - {law})
    told.append(f"Earlier results are kept ({known} law{'s' * (known != 1)}).")
    if "not ended" in stopped.why:
        told.append("--limit SECONDS gives it more time.")
    again = f"\nagain: {collected.asked.again(law)}" if law else ""
    return " ".join(told) + again


def _at(line: str) -> str:
    return f", at {line}" if line else ""


def _method(method: str) -> str:
    return {
        "measured": "by running it",
        "exact": "in finite fields",
        "traced": "by tracing it",
        "identity": "to identify it",
    }[method]


def _value(value: Any) -> str:
    """Format a plain value on one line, with few digits; a sparse array by its nonzero entries."""
    told = _sparse(value) or json.dumps(_rounded(value), ensure_ascii=False).replace('"', "")
    return told if len(told) <= LONG else told[:LONG] + " … (in full in the record)"


SHOWN_IN_FULL = 8  # entries that are always shown in full


def _sparse(value: Any) -> str:
    """Describe an array that is nearly all zeros by its shape and nonzero entries; else return "".

    >>> _sparse([[0.0] * 6, [0.0, 2.0, 0.0, 0.0, 0.0, 0.0]])
    'zeros (2, 6) except [1, 1] = 2'
    """
    if isinstance(value, dict) and set(value) == {"shape", "entries"}:
        shape = value["shape"]
        found = {f"[{place.replace(',', ', ')}]": x for place, x in value["entries"].items()}
    else:
        shape, numbers = [], value
        while isinstance(numbers, list) and numbers:
            shape.append(len(numbers))
            numbers = numbers[0]
        if math.prod(shape) <= SHOWN_IN_FULL or not isinstance(numbers, int | float):
            return ""
        found = dict(_others(value, ()))
    if 3 * len(found) > math.prod(shape):
        return ""
    told = ", ".join(f"{place} = {_rounded(x):g}" for place, x in found.items())
    return f"zeros ({', '.join(map(str, shape))}){' except ' * bool(told)}{told}"


def _others(value: Any, place: tuple[int, ...]) -> Iterator[tuple[str, float]]:
    """Yield the index and value of each entry that is not a plain zero, such as −0."""
    if isinstance(value, list):
        for k, part in enumerate(value):
            yield from _others(part, (*place, k))
    elif value or math.copysign(1, value) < 0:
        yield str(list(place)), value


def _rounded(value: Any) -> Any:
    if isinstance(value, list):
        return [_rounded(v) for v in value]
    if isinstance(value, dict):
        return {name: _rounded(v) for name, v in value.items()}
    if isinstance(value, float):
        near = float(f"{value:.6g}")
        return int(near) if near.is_integer() and abs(near) < 1e6 and near != value else near
    return value
