"""``attnproof show``: one theorem as a page of plain text, 80 columns wide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from textwrap import fill, wrap
from typing import TYPE_CHECKING

from .records import (
    Formula,
    LinkRecord,
    MeasuredEvidence,
    ProvedEvidence,
    RefutedEvidence,
    TheoremRecord,
    TwinRecord,
)  # fmt: skip
from .terminal import sign

if TYPE_CHECKING:
    from .symbolic.decision import Decision

__all__ = ["kernel_steps", "page"]

WIDTH, NAME = 80, 36


def page(record: TheoremRecord, steps: Sequence[Sequence[str]] = ()) -> str:
    """The statement, the proof, the numbers and the twin.

    ``steps`` holds, for each link of the chain, the lines of its kernel steps.
    """
    return "\n".join(_lines(record, steps))


def _lines(record: TheoremRecord, steps: Sequence[Sequence[str]]) -> Iterator[str]:
    yield from _filled(record.title, 0)
    yield f"{record.id} ({record.subject})"
    yield ""
    expected = "as expected" if record.verdict == record.expected else f"expected {record.expected}"
    if record.verdict == record.expected and not record.ok:
        expected = "the expected verdict, but its numbers or its twin are not"
    sizes = ", ".join(size.name for size in record.sizes)
    for_all = f", for all {sizes} ≥ 1" if sizes and record.verdict == "proved" else ""
    yield from _filled(f"{sign(record.verdict)}{for_all} ({expected})", 0)
    for line in record.why:
        yield from _filled(f"! {line}", 2)
    yield from _section("Statement", [_filled(record.says), _formula(record.statement)])
    yield from _section("Given", [_givens(record), _sizes(record), *map(_formula, record.assumed)])
    if record.verdict != "refuted":
        yield from _section("Proof", [_instances(record), _chain(record.chain, steps)])
        yield from _section("Assumptions used", [_assumptions(record)])
    yield from _section("Refuted by", [_witnesses(record)])
    yield from _section("Undecided", [_undecided(record)])
    yield from _section("Numbers", [_numbers(record)])
    yield from _section(f"Its twin: {record.twin.says}", [_twin(record.twin)])
    yield from _section("Sources", [_bullets(record.sources), _claims(record)])


def _section(title: str, parts: Sequence[Iterator[str]]) -> Iterator[str]:
    lines = [line for part in parts for line in part]
    if lines:
        yield from ("", *wrap(title, WIDTH), *lines)


def _filled(text: str, indent: int = 2, hang: int = 0) -> Iterator[str]:
    first, rest = " " * indent, " " * (indent + hang)
    for paragraph in text.split("\n\n"):
        if paragraph.strip():
            yield fill(
                " ".join(paragraph.split()), WIDTH, initial_indent=first, subsequent_indent=rest,
                break_on_hyphens=False,
            )  # fmt: skip


def _formula(formula: Formula) -> Iterator[str]:
    for line in formula.text.splitlines():
        yield from _filled(line, 4, 4)


def _bullets(texts: Sequence[str]) -> Iterator[str]:
    for text in texts:
        yield from _filled(f"- {text}", 2, 2)


def _claims(record: TheoremRecord) -> Iterator[str]:
    if record.claims:
        yield from _filled(f"- claims {', '.join(record.claims)}", 2, 2)


def _givens(record: TheoremRecord) -> Iterator[str]:
    width = max((len(g.name) for g in record.givens), default=0)
    for given in record.givens:
        shape = f" ({', '.join(given.shape)})" if given.shape else ""
        yield from _filled(f"{given.name:<{width}}{shape}: {given.says}", 2, width + 2)


def _sizes(record: TheoremRecord) -> Iterator[str]:
    if record.sizes:
        told = ", ".join(f"{s.name}" + (f" ({s.role})" * (s.role != "size")) for s in record.sizes)
        yield from _filled(f"for every {told} from 1 on", 2, 2)


def _chain(chain: Sequence[LinkRecord], steps: Sequence[Sequence[str]]) -> Iterator[str]:
    says: str | None = None
    last: Formula | None = None
    for number, link in enumerate(chain):
        if link.says != says and link.says:
            yield from _filled(f"{link.says}:")
        if link.left != last or link.says != says:
            yield from _filled(link.left.text, 4, 2)
        says, last = link.says, link.right
        yield from _filled(f"{link.relation} {link.right.text}", 2, 4)
        count = f"{link.steps} kernel step{'' if link.steps == 1 else 's'}"
        proved = count if link.proved else f"not proved: {link.why_not}"
        yield from _filled(f"[{link.reason + '; ' if link.reason else ''}{proved}]", 8, 1)
        yield from steps[number] if number < len(steps) else ()


def _instances(record: TheoremRecord) -> Iterator[str]:
    for evidence in record.evidence:
        if isinstance(evidence, ProvedEvidence) and evidence.instance is not None:
            yield from _filled(f"take {evidence.instance.text}", 2, 4)


def _assumptions(record: TheoremRecord) -> Iterator[str]:
    proofs = [e for e in record.evidence if isinstance(e, ProvedEvidence)]
    if proofs:
        used = dict.fromkeys(assumption for proof in proofs for assumption in proof.assumptions)
        yield from _filled(", ".join(used) or "none")
    for reading in dict.fromkeys(reading for proof in proofs for reading in proof.readings):
        yield from _filled(f"Reading: {reading}", 2, 2)


def _witnesses(record: TheoremRecord | TwinRecord) -> Iterator[str]:
    for evidence in record.evidence:
        if isinstance(evidence, RefutedEvidence):
            w = evidence.witness
            yield from _filled(f"{evidence.says}: {w.text}".removeprefix(": "), 4, 2)
            at = f", at entry {w.place}" if w.place else ""
            yield from _filled(f"a gap of at least {w.gap}{at}, by {w.certified_by}", 4, 2)


def _undecided(record: TheoremRecord | TwinRecord) -> Iterator[str]:
    for evidence in record.evidence:
        if evidence.kind == "undecided":
            yield from _filled(f"{evidence.says}: {evidence.why}".removeprefix(": "), 4, 2)


def _numbers(record: TheoremRecord | TwinRecord) -> Iterator[str]:
    """Under each set of sizes, one line for each implementation and dtype."""
    measured = (e for e in record.evidence if isinstance(e, MeasuredEvidence))
    for (says, where), rows in groupby(measured, _where):
        yield from _filled(f"{says}: {where}".removeprefix(": "), 2, 2)
        for m in rows:
            if m.status == "skipped":
                told = f"{m.implementation}, {m.dtype}: skipped, {m.reason}"
                yield from _filled(told, 4, 4)
                continue
            if len(m.implementation) > NAME:
                yield from _filled(m.implementation, 4, 2)
            name = m.implementation if len(m.implementation) <= NAME else ""
            numbers = f"{_short(m.error):>10} {_short(m.tolerance):>8}"
            yield f"    {name:<{NAME}} {m.dtype:<8} {numbers} {m.status}"


def _where(m: MeasuredEvidence) -> tuple[str, str]:
    sizes = ", ".join(f"{name} = {value}" for name, value in m.sizes.items())
    return m.says, f"{sizes}; {m.sampled or 'nothing read'}; error and its bound on {m.device}"


def _short(value: float | str | None) -> str:
    return f"{value:.2g}" if isinstance(value, float) else str(value)


def _twin(twin: TwinRecord) -> Iterator[str]:
    yield from _formula(twin.statement)
    expected = "as expected" if twin.verdict == twin.expected else f"expected {twin.expected}"
    yield from _filled(f"{sign(twin.verdict)} ({expected})")
    for part in (_chain(twin.chain, ()) if twin.verdict == "proved" else (), _witnesses(twin),
                 _undecided(twin), _numbers(twin)):  # fmt: skip
        yield from part


def kernel_steps(decision: Decision) -> list[list[str]]:
    """For each link of a decision, its kernel steps: place, rule, before, after."""
    from .symbolic.steps import flatten

    shown: list[list[str]] = []
    for link in (link for claim in decision.claims for link in claim.links):
        lines: list[str] = []
        for number, step in enumerate(flatten(link.derivation) if link.derivation else (), 1):
            place = ".".join(map(str, step.path)) or "the whole"
            opened = f", inside {', '.join(step.opened)}" if step.opened else ""
            back = ", read backwards" if step.reverse else ""
            lines += _filled(f"{number}. {step.rule} at {place}{opened}{back}", 10, 4)
            lines += _filled(f"{step.part!r}", 14, 2)
            lines += _filled(f"= {step.becomes!r}", 12, 4)
        shown.append(lines)
    return shown
