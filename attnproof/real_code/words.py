"""Words for a person: how many laws hold, where code was stopped, what breaks and with what."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any, get_args

from .. import document
from ..errors import FAULT, internal_errors
from ..programs import as_read
from ..programs.finding import UNLIKE
from ..verdict_line import Condition, clauses, verdict_line
from .records import (
    CardRecord,
    CodeRecord,
    FindingRecord,
    LawOfCodeRecord,
    LawVerdict,
    PartRecord,
    SeenRecord,
)

if TYPE_CHECKING:
    from .collecting import Collected
    from .running import Stopped

SIGNS = {**document.SIGNS, "measured": "✓"}  # of a law that no encoding card has
NOT_GIVEN = "no code was given that does this"
MATRIX = re.compile(r" \([#. ]+\)")  # which token reaches which; the record has it
LONG = 160  # characters of a value that is shown; the record has all of it


def exit_code(record: CodeRecord, *, identifying: bool = False) -> int:
    """1: a law is broken, or a declaration unchecked.  2: no law was asked, or it was not run.

    0: neither.  What is undecided does not pass where the record is ``strict``: then it is 1.  An
    error of attnproof itself is 2.
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
    """How the verdict of a law is known: of a proof its whole line, of others a first clause.

    Conditions that are ``noted`` elsewhere, if the law has all of them, are told by the ``note``.
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
    doubt = f"; undecided in {open_[0].dtype}: {open_[0].why}" if open_ else ""
    doubt += "".join(f"; not proved: {why}" for why in unlike(law.findings)[:1])
    first = " ".join(filter(None, (told, good[0].why.partition("; ")[0] or "holds")))
    return first + "".join(f", {clause}" for clause in limits) + doubt


def unlike(findings: Iterable[FindingRecord]) -> list[str]:
    """Where the code was seen to differ from its graph, of which then nothing is proved."""
    return [one.why for one in findings if one.verdict == "undecided" and UNLIKE in one.why]


def card_lines(card: CardRecord, *, verbose: bool = False) -> Iterator[str]:
    """The laws of encodings: what is proved under one condition stands in one line.

    ``verbose``: those as well that do not apply, each with its reason.
    """
    if card.why:
        yield f"it has no card: {card.why}"
        return
    yield "its card, the laws of encodings asked of its graph:"
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
    """How many laws have which verdict."""
    parts = document.tally((law.verdict for law in record.laws), get_args(LawVerdict))
    one = len(record.laws) == 1
    lost = f" ({len(record.unfinished)} not reached)" if record.unfinished else ""
    return f"{len(record.laws)} law{'' if one else 's'}: {parts}{lost}"


def outcome_told(record: CodeRecord) -> str:
    """What the exit code says, where nothing is broken and not every law holds."""
    if record.why or record.stopped or record.broken or record.ok or not record.laws:
        return ""
    if told := next(internal_errors(record), ""):
        return f"{told}; the exit code is 2"
    if not record.asked:
        failed = [f"{method.method}: {method.why}" for method in record.methods if method.why]
        told = f" ({'; '.join(failed)})" if failed else ""
        return f"no law was asked of it, so nothing is known about it{told}"
    if record.raises:
        return f"it cannot be run: {record.raises}, for every law"
    if record.unasked:
        return f"{', '.join(law.law for law in record.unasked)}: named, and could not be asked"
    said: list[str] = []
    if record.unchecked:
        whose = ", ".join(law.law for law in record.unchecked)
        said.append(f"{whose}: declared, and not checked: the exit code is 1")
    if record.undecided:
        are = "are" if len(record.undecided) > 1 else "is"
        open_ = f"{', '.join(law.law for law in record.undecided)} {are} undecided"
        if record.strict:
            said.append(f"{open_}, and under --strict that does not pass: the exit code is 1")
        elif record.unchecked:
            said.append(open_)
        else:
            said.append(
                f"nothing is broken, and {open_}: neither known to hold nor to fail; the "
                "exit code is 0, and 1 with --strict"
            )
    return "; ".join(said)


def printed_told(record: CodeRecord) -> str:
    """What the code printed, told once; it is not a fault."""
    if not record.printed:
        return ""
    lines = f"{record.printed} line{'s' * (record.printed > 1)}"
    return f"it printed {lines} while it was checked, the first: {record.first_printed}"


def set_aside(record: CodeRecord, *, verbose: bool = True) -> Iterator[str]:
    """The laws that were not reached; ``verbose``: those not asked, of one reason together."""
    whose: dict[str, list[str]] = {}
    for law in record.laws:
        if verbose and law.verdict == "not asked":
            why = NOT_GIVEN if law.why.startswith("no code was given that") else law.why
            whose.setdefault(MATRIX.sub("", why), []).append(law.law)
    for why, laws in whose.items():
        yield f"– {', '.join(laws)}: {why}"
    if record.unfinished:
        yield f"? not reached: {', '.join(record.unfinished)}"


WAITS = {"rotary": ("frequencies-as-declared",), "additive": ("frequencies-as-declared",)}
"""The law that is asked of each kind of code only where something is declared, beside masks."""


def declaring(record: CodeRecord) -> str:
    """What may be declared of code of which nothing is: what it was read to be."""
    if record.declared or record.identity is None:
        return ""
    laws = {law.law: law.verdict for law in record.laws}
    waits = WAITS.get(record.kind, as_read.LAWS if record.kind in as_read.KINDS else ())
    asked = [law for law in waits if laws.get(law, "not asked") != "not asked"]
    if record.kind in as_read.KINDS and not as_read.mask_as_read(
        record.kind, record.identity.parts
    ):
        asked = []  # by name alone
    if not laws.keys() & set(waits) or (asked and record.kind not in as_read.KINDS):
        return ""
    told = as_read.declared_as_read(record.kind, record.identity.parts)
    if not asked:
        meant = f"if this is what it is meant to be, --declare {told} checks it against that"
        return f"nothing was declared: {meant}" if told else ""
    were = "was" if len(asked) == 1 else "were"
    holds = f"; --declare {told} holds it to that mask" if told else ""  # else of no simple rule
    return (
        f"nothing was declared: {', '.join(asked)} {were} checked against the mask that was "
        f"identified{holds}"
    )


def part_told(part: PartRecord) -> str:
    """A part of an identity: its words, or its value where it has none.

    >>> from attnproof.real_code.records import PartRecord
    >>> values = {"family": "none"}, 0.99999999, False, "float32"
    >>> [part_told(PartRecord(name="", value=v, words="", evidence="", certain=True))
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
    """A broken law in full: what it says, what was seen, the witness, and how to see it again."""
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
    """A witness: inputs, the two sides, their difference beside what rounding explains."""
    if seen.inputs:
        yield "with " + ", ".join(f"{name} = {_value(v)}" for name, v in seen.inputs.items())
    for side in (seen.here, seen.there):
        yield f"{side.words}: {_value(side.value)}"
    yield _difference(seen)


def _difference(seen: SeenRecord) -> str:
    """How far the two sides of a witness are apart: of some laws they should be."""
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


def stopped_told(heard: Collected, stopped: Stopped) -> str:
    """One paragraph: where the code was stopped, why, what is kept; then what shows it again."""
    method, law = heard.at
    target = heard.asked.target
    if law:
        doing = f"while the law {law} was being checked ({_method(method)})"
    elif method:
        doing = f"while it was being examined as a whole ({_method(method)})"
    else:
        doing = f"while {heard.does or 'starting'}"
    told = [f"{target} was stopped {doing}: {stopped.why}" + _at(stopped.line) + "."]
    known = len({one.law for one in heard.findings} - {law})
    told.append(f"What was found before is kept ({known} law{'s' * (known != 1)}).")
    if "not ended" in stopped.why:
        told.append("--limit SECONDS gives it more time.")
    again = f"\nagain: {heard.asked.again(law)}" if law else ""
    return " ".join(told) + again


def _at(line: str) -> str:
    return f", at {line}" if line else ""


def _method(method: str) -> str:
    return {
        "measured": "by running it",
        "exact": "in finite fields",
        "traced": "by tracing it",
        "identity": "to tell what it is",
    }[method]


def _value(value: Any) -> str:
    """A plain value in a line, its numbers in few digits; of many zeros the others alone."""
    told = _sparse(value) or json.dumps(_rounded(value), ensure_ascii=False).replace('"', "")
    return told if len(told) <= LONG else told[:LONG] + " … (the record has it whole)"


MANY = 8  # numbers that are shown whatever they are


def _sparse(value: Any) -> str:
    """An array that is nearly all zeros, by its shape and its other entries; else "".

    >>> _sparse([[0.0] * 6, [0.0, 2.0, 0.0, 0.0, 0.0, 0.0]])
    'zeros (2, 6) but [1, 1] = 2'
    """
    if isinstance(value, dict) and set(value) == {"shape", "entries"}:
        shape = value["shape"]
        found = {f"[{place.replace(',', ', ')}]": x for place, x in value["entries"].items()}
    else:
        shape, numbers = [], value
        while isinstance(numbers, list) and numbers:
            shape.append(len(numbers))
            numbers = numbers[0]
        if math.prod(shape) <= MANY or not isinstance(numbers, int | float):
            return ""
        found = dict(_others(value, ()))
    if 3 * len(found) > math.prod(shape):
        return ""
    told = ", ".join(f"{place} = {_rounded(x):g}" for place, x in found.items())
    return f"zeros ({', '.join(map(str, shape))}){' but ' * bool(told)}{told}"


def _others(value: Any, place: tuple[int, ...]) -> Iterator[tuple[str, float]]:
    """The entries that are not zero, by their places."""
    if isinstance(value, list):
        for k, part in enumerate(value):
            yield from _others(part, (*place, k))
    elif value:
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
