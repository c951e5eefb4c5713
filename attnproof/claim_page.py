"""``attnproof show`` of a claim: what it says, its verdict, and the statements that decide it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .claim_records import ClaimRecord, DecidingRecord, DemonstrationRecord
from .claims import name_of
from .page import brief
from .records import Results
from .terminal import sign
from .terminal_text import WIDTH, bullets, filled, section

ROLES = {
    "printed": "what is printed", "disproof": "shows that what is printed is false",
    "corrected": "what is right",
}  # fmt: skip


def claim_page(claim: ClaimRecord, results: Results) -> str:
    """The claim, how its verdict is derived, its demonstrations, and its statements in brief."""
    return "\n".join(_lines(claim, results))


def _lines(claim: ClaimRecord, results: Results) -> Iterator[str]:
    document = next(d for d in results.documents if d.id == claim.document)
    yield from filled(f"{claim.id}: {claim.place}", 0)
    yield from filled(f"{document.id}, {document.title} ({claim.kind})", 0)
    yield ""
    expected = "as expected" if claim.verdict == claim.expected else f"expected {claim.expected}"
    if claim.verdict == claim.expected and not claim.ok:
        expected = "the expected verdict, but something speaks against it"
    yield from filled(f"{sign(claim.verdict)} ({expected})", 0)
    yield from (line for why in claim.why for line in filled(f"! {why}", 2, 2))
    yield from section("Claim", [filled(claim.says)])
    yield from section("Why what is printed is no statement", [filled(claim.unstated)])
    mends = f", by another {claim.mends}" if claim.mends else ""
    yield from section(f"What is right{mends}", [filled(claim.correction)])
    yield from section(f"Why it is {claim.verdict}", [filled(claim.reason)])
    yield from section("How it is known", [_deciding(claim.statements)])
    shown = {record.id: record for record in results.demonstrations}
    for name in claim.demonstrations:
        if name in shown:
            yield from _demonstration(shown[name])
    theorems = {record.id: record for record in results.theorems}
    named: dict[tuple[str, bool], list[str]] = {}
    for s in claim.statements:
        named.setdefault((s.id, s.control), []).append(s.conclusion)
    for (name, control), conclusions in named.items():
        if name in theorems:
            shown_part = brief(theorems[name], control=control, conclusions=conclusions)
            yield from ("", "─" * WIDTH, *shown_part)


def _deciding(statements: Sequence[DecidingRecord]) -> Iterator[str]:
    for record in statements:
        line = ", ".join((sign(record.verdict), *record.conditions))
        yield from filled(f"{line}, {ROLES[record.role]}:")
        yield from filled(name_of(record), 4, 2)
        yield from filled(record.known, 6, 2)


def _demonstration(record: DemonstrationRecord) -> Iterator[str]:
    yield from section(f"Demonstration: {record.title}", [filled(record.says)])
    yield from filled(f"{sign(record.outcome)} ({record.id})")
    yield from bullets(record.why)
    for row in record.rows:
        mark = {None: "", True: " (agrees)", False: " (differs)"}[row.agrees]
        yield from filled(f"{row.says}{mark}", 2, 2)
        yield from _value("ours", row.ours)
        if row.printed is not None:
            yield from _value("printed", row.printed)
    yield from filled(record.remark)


def _value(name: str, text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines() or [""]):
        yield from filled(f"{name if not number else '':<8} {line}", 4, 9)
