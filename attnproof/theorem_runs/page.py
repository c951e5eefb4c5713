"""``attnproof show``: one theorem or one claim as a page of plain text, 80 columns wide."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager

from ..documents.document import WIDTH, bar, bullets, filled, formula, section, sign
from ..documents.evidence import (
    Formula,
    IllTypedEvidence,
    MisreadEvidence,
    ProvedEvidence,
    RefutedEvidence,
)
from ..documents.verdict_line import Condition, verdict_line
from ..errors import FAULT, broken_by, exit_code
from ..numeric.results import MeasuredEvidence
from ..symbolic.decision import Decision
from .catalogue import Broken, Catalogue, Source
from .checking import Options, check
from .claims import name_of
from .evidence_words import (
    derivation,
    derived_line,
    exact_lines,
    number_lines,
    place_of,
    side_lines,
)
from .ledger import Ledger
from .records import (
    BrokenFile,
    ClaimRecord,
    ControlRecord,
    DecidingRecord,
    DemonstrationRecord,
    LinkRecord,
    ProofRecord,
    Results,
    StatementRecord,
    StepRecord,
    TheoremRecord,
)
from .runner import Outcome, run
from .translation import steps

ELSEWHERE = (
    "Where a condition of the verdict fails, 1/0 is taken as 0; nothing useful is said there."
)
RELATIONS = {">=": "≥", "!=": "≠"}
STEPS = 2000  # kernel steps of a link that are shown: derivations share parts


def page(record: TheoremRecord | ProofRecord, steps: Sequence[Sequence[str]] = ()) -> str:
    """Return the statement, the proof, the numbers, and the negative control if there is one.

    ``steps`` holds, for each link of the chain, the lines of its kernel steps.
    """
    return "\n".join(_lines(record, steps))


def brief(
    record: TheoremRecord, *, control: bool = False, conclusions: Collection[str] = ()
) -> Iterator[str]:
    """Yield a statement and how its verdict is known, or its negative control's; no numbers.

    Of several conclusions, those that are named, or all.
    """
    side = _part(record.control if control else record, conclusions)
    yield from filled(f"{record.title}{f'; its negative control: {side.says}' * control}", 0)
    yield f"{record.id} ({record.subject})"
    yield from filled(_line(record, side), 0)
    yield from section("Statement", [filled(record.says * (not control)), formula(side.statement)])
    yield from section("Hypotheses", [formula(h) for h in side.assumed])
    if side.verdict in ("proved", "undecided"):
        yield from section("Proof", [_instances(side), _chain(side.chain, ())])
    yield from _not_proved(side)


def _part(
    side: TheoremRecord | ControlRecord, conclusions: Collection[str]
) -> TheoremRecord | ControlRecord:
    """Return the part of a record about these conclusions."""
    if not conclusions or "" in conclusions:
        return side
    lines = side.statement.text.splitlines()
    kept = [line for line in lines if line.startswith(tuple(f"{c}: " for c in conclusions))]
    return side.model_copy(
        update={
            "statement": Formula(latex="", text="\n".join(kept or lines)),
            "chain": tuple(link for link in side.chain if link.says in conclusions),
            "evidence": tuple(e for e in side.evidence if e.says in conclusions),
        }
    )


def _line(record: StatementRecord, side: StatementRecord | ControlRecord) -> str:
    """Return the verdict on a statement, or on its negative control, with every condition."""
    sizes = ", ".join(size.name for size in record.sizes)
    every = sizes and side.verdict == "proved" and not isinstance(side, ControlRecord)
    ranges = [Condition(f"all {sizes} ≥ 1", "for")] if every else []
    return verdict_line(sign(side.verdict), [*ranges, *side.conditions])


def _lines(record: TheoremRecord | ProofRecord, steps: Sequence[Sequence[str]]) -> Iterator[str]:
    theorem = record if isinstance(record, TheoremRecord) else None
    yield from filled(record.title, 0)
    if theorem is not None:
        yield f"{theorem.id} ({theorem.subject})"
    if record.title:
        yield ""
    told = f" ({_expected(record, 'its numbers or its negative control are not')})"
    told *= record.control is not None
    yield from filled(_line(record, record) + told, 0)
    for line in against_it(record):
        yield from filled(f"! {line}", 2)
    yield from section("Statement", [filled(record.says), formula(record.statement)])
    yield from section("Given", [_givens(record), _sizes(record), *map(formula, record.assumed)])
    if record.verdict not in ("refuted", "misread"):
        yield from section("Proof", [_instances(record), _chain(record.chain, steps)])
        yield from section("Assumptions used", [_assumptions(record)])
    yield from _not_proved(record)
    yield from section("By SymPy", [_derived(record)])
    yield from section("Numbers", [_numbers(record)])
    if record.control is not None:
        title = f"Its negative control: {record.control.says}".removesuffix(": ")
        yield from section(title, [_control(record.control)])
    if theorem is not None:
        yield from section("Sources", [bullets(theorem.sources), _claims(theorem)])


def _expected(record: StatementRecord | ControlRecord | ClaimRecord, against: str = "") -> str:
    """Say whether the verdict is as expected, and what else is not."""
    if record.verdict != record.expected:
        return f"expected {record.expected}"
    wrong = against and not record.ok
    return f"the verdict is as expected, but {against}" if wrong else "as expected"


def _not_proved(side: StatementRecord | ControlRecord) -> Iterator[str]:
    """Yield why a statement is not proved, in a section for each kind of evidence."""
    yield from section("Refuted by", [_witnesses(side)])
    yield from section("Ill-typed", [_ill_typed(side)])
    yield from section("Misread", [_misread(side)])
    yield from section("Undecided", [_undecided(side)])


def against_it(record: TheoremRecord | ProofRecord) -> tuple[str, ...]:
    """Return what speaks against a record; without a control, nothing is expected of it.

    What the page already gives as the reason of the verdict is not repeated.
    """
    if record.control is not None:
        return record.why
    told = [e.why for e in record.evidence if e.kind in ("undecided", "internal error")]
    told += [f"misread: {e.text}" for e in record.evidence if isinstance(e, MisreadEvidence)]
    told.append(f"expected {record.expected}, is {record.verdict}")
    return tuple(line for line in record.why if line not in told)


def _claims(record: TheoremRecord) -> Iterator[str]:
    if record.claims:
        yield from filled(f"- claims {', '.join(record.claims)}", 2, 2)


def _givens(record: StatementRecord) -> Iterator[str]:
    width = max((len(g.name) for g in record.givens), default=0)
    for given in record.givens:
        shape = f" ({', '.join(given.shape)})" if given.shape else ""
        yield from filled(f"{given.name:<{width}}{shape}: {given.says}", 2, width + 2)


def _sizes(record: StatementRecord) -> Iterator[str]:
    if record.sizes:
        told = ", ".join(f"{s.name}" + (f" ({s.role})" * (s.role != "size")) for s in record.sizes)
        yield from filled(f"for every {told} ≥ 1", 2, 2)


def _chain(chain: Sequence[LinkRecord], steps: Sequence[Sequence[str]]) -> Iterator[str]:
    says: str | None = None
    last: Formula | None = None
    for number, link in enumerate(chain):
        if link.says != says and link.says:
            yield from filled(f"{link.says}:")
        yield from filled(link.opens)
        if link.left != last or link.says != says or link.opens:
            yield from filled(link.left.text, 4, 2)
        says, last = link.says, link.right
        relation = RELATIONS.get(link.relation, link.relation)
        yield from filled(f"{relation} {link.right.text}", 2, 4)
        count = f"{link.steps} kernel step{'' if link.steps == 1 else 's'}"
        proved = count if link.proved else f"not proved: {link.why_not}"
        yield from filled(f"[{link.reason + '; ' if link.reason else ''}{proved}]", 8, 1)
        yield from steps[number] if number < len(steps) else ()


def _instances(record: StatementRecord | ControlRecord) -> Iterator[str]:
    for evidence in record.evidence:
        if isinstance(evidence, ProvedEvidence) and evidence.instance is not None:
            yield from filled(f"take {evidence.instance.text}", 2, 4)
        for use in evidence.uses if isinstance(evidence, ProvedEvidence) else ():
            source = f" ({use.source})" if use.source else ""
            says = f" for {evidence.says}" if evidence.says else ""
            yield from filled(f"use{says}: {use.formula.text}{source}", 2, 4)


def _assumptions(record: StatementRecord) -> Iterator[str]:
    proofs = [e for e in record.evidence if isinstance(e, ProvedEvidence)]
    if proofs:
        used = dict.fromkeys(assumption for proof in proofs for assumption in proof.assumptions)
        yield from filled(", ".join(used) or "none")
    if any(proof.readings for proof in proofs):
        yield from filled(ELSEWHERE, 2, 2)


def _witnesses(record: StatementRecord | ControlRecord) -> Iterator[str]:
    for evidence in record.evidence:
        if isinstance(evidence, RefutedEvidence):
            w = evidence.witness
            yield from filled(f"{evidence.says}: {w.text}".removeprefix(": "), 4, 2)
            gap = f"a gap of at least {w.gap}, " if w.gap != "0" else ""
            at = f"at entry {w.place}, " if w.place else ""
            yield from filled(f"{gap}{at}by {w.certified_by}", 4, 2)


def _ill_typed(record: StatementRecord | ControlRecord) -> Iterator[str]:
    for evidence in record.evidence:
        if isinstance(evidence, IllTypedEvidence):
            yield from filled(evidence.error, 4)


def _misread(record: StatementRecord | ControlRecord) -> Iterator[str]:
    """Yield where the code and its term differ: the inputs, one per line, and both values."""
    for e in record.evidence:
        if isinstance(e, MisreadEvidence):
            at = f" at entry {list(e.place)}" * bool(e.place)
            yield from filled(f"{e.says}, {e.part}{at}".removeprefix(", "), 4, 2)
            inputs = {**{name: str(size) for name, size in e.sizes.items()}, **e.values}
            for name, value in inputs.items():
                yield from filled(f"{name} = {value}", 4, 4)
            yield from filled(f"the code on numpy: {e.code}", 4, 4)
            yield from filled(f"its term: {e.term}", 4, 4)


def _undecided(record: StatementRecord | ControlRecord) -> Iterator[str]:
    for evidence in record.evidence:
        if evidence.kind in ("undecided", "internal error"):
            yield from filled(f"{evidence.says}: {evidence.why}".removeprefix(": "), 4, 2)


def _derived(record: StatementRecord | ControlRecord) -> Iterator[str]:
    """Yield what SymPy derived from the code, with its expressions if they are short."""
    found = derivation(record.evidence)
    if found is not None:
        yield from filled(derived_line(found), 2, 2)
        for line in side_lines(found):
            yield from filled(line, 4, 2)


def _numbers(record: StatementRecord | ControlRecord) -> Iterator[str]:
    """Yield what was measured, then what is exact."""
    yield from number_lines(e for e in record.evidence if isinstance(e, MeasuredEvidence))
    for line in exact_lines(record.evidence):
        told = f"{line.says}: {line.text}".removeprefix(": ")
        yield from filled(told + f": {line.why}" * (line.status == "skipped"), 2, 2)


def _control(control: ControlRecord) -> Iterator[str]:
    yield from formula(control.statement)
    for hypothesis in control.assumed:
        yield from filled(f"if {hypothesis.text}", 6, 2)
    verdict = verdict_line(sign(control.verdict), control.conditions)
    yield from filled(f"{verdict} ({_expected(control)})")
    proof = _chain(control.chain, ()) if control.verdict == "proved" else ()
    for part in (
        proof,
        _witnesses(control),
        _misread(control),
        _undecided(control),
        _derived(control),
        _numbers(control),
    ):
        yield from part


def kernel_steps(decision: Decision) -> list[list[str]]:
    """Return the kernel steps of each link of a decision: place, rule, before, after."""
    shown: list[list[str]] = []
    for link in (link for claim in decision.claims for link in claim.links):
        lines = [
            line
            for number, step in enumerate(steps(link, STEPS), 1)
            for line in step_lines(number, step)
        ]
        if link.steps > STEPS:
            lines += filled(f"{link.steps - STEPS} more steps not shown", 10, 4)
        shown.append(lines)
    return shown


def step_lines(number: int, step: StepRecord) -> Iterator[str]:
    """Yield one kernel step: its place, its rule, and the part before and after."""
    yield from filled(f"{number}. {place_of(step)}", 10, 4)
    yield from filled(step.before, 14, 2)
    yield from filled(f"= {step.after}", 12, 4)


ROLES = {
    "printed": "the printed statement",
    "disproof": "disproof of the printed statement",
    "corrected": "the corrected statement",
}


def claim_page(claim: ClaimRecord, results: Results) -> str:
    """Return a claim, how its verdict is derived, its demonstrations, its statements in brief."""
    return "\n".join(_claim_lines(claim, results))


def _claim_lines(claim: ClaimRecord, results: Results) -> Iterator[str]:
    document = next(d for d in results.documents if d.id == claim.document)
    yield from filled(f"{claim.id}: {claim.place}", 0)
    yield from filled(f"{document.id}, {document.title} ({claim.kind})", 0)
    yield ""
    expected = _expected(claim, "something speaks against it")
    yield from filled(f"{sign(claim.verdict)} ({expected})", 0)
    yield from (line for why in claim.why for line in filled(f"! {why}", 2, 2))
    yield from section("Claim", [filled(claim.says)])
    yield from section("Why the printed text is not a statement", [filled(claim.unstated)])
    mends = f" of the {claim.mends}" if claim.mends else ""
    yield from section(f"Correction{mends}", [filled(claim.correction)])
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


def show_theorem(chosen: Catalogue, options: Options, *, steps: bool) -> int:
    """Print the page of one theorem; return the exit code."""
    from ..symbolic.prove import decide

    for broken in chosen.broken:
        return _told(broken.source, broken)
    (entry,) = chosen.entries
    with _bar([entry.id]):
        outcome = check(entry.theorem, entry.source, options)
    if isinstance(outcome, BrokenFile):
        return _told(entry.source, outcome)
    wanted = steps and outcome.verdict != "ill-typed"
    print(page(outcome, kernel_steps(decide(entry.theorem.statement)) if wanted else ()))
    return exit_code([outcome], 0 if outcome.ok else 1)


def show_sides(chosen: Catalogue) -> int:
    """Print both sides of every conclusion as SymPy expressions at small sizes; return the code."""
    from ..symbolic.expressions.array import entry_lines
    from ..symbolic.expressions.deriving import sides
    from ..symbolic.gate import require_read

    for broken in chosen.broken:
        return _told(broken.source, broken)
    (entry,) = chosen.entries
    try:
        statement = entry.theorem.statement
        require_read(statement)
        found = () if statement.code is None else sides(statement, statement.code)
    except Exception as error:  # noqa: BLE001 (whatever it is, it is reported for this file)
        told = broken_by(error, entry.source.path)
        return _told(entry.source, BrokenFile(file=entry.source.label, **told))
    print(entry.theorem.title)
    for side in found:
        print("\n".join([side.says] * bool(side.says) + [f"  {t}" for t in entry_lines(side)]))
    if not found:
        print("SymPy has no expressions for what is given here")
    return 0 if found else 1


def show_claim(catalogue: Catalogue, ledger: Ledger, options: Options) -> int:
    """Print the page of one claim; return the exit code."""
    needed = catalogue.with_ids(ledger.theorems)
    ids = [entry.id for entry in needed.entries]
    coming = [*ids, *ledger.demonstrations, *["numbers"] * len(ids) * options.numeric]
    with _bar(coming) as tell:
        results = run(needed, options, tell=tell, ledger=ledger)
    for claim in results.claims:
        print(claim_page(claim, results))
    for broken in results.broken:
        print(f"attnproof: {broken.file}: {broken.error}", file=sys.stderr)
    return exit_code([results], 0 if results.ok else 1)


@contextmanager
def _bar(names: Sequence[str]) -> Iterator[Callable[[Outcome], None]]:
    """Show a bar while statements are checked and measured; yield the function that advances it."""
    if not sys.stderr.isatty():  # rich would leave an empty line there
        yield lambda _: None
        return
    coming = iter((*names, ""))
    with bar() as shown:
        task = shown.add_task(next(coming), total=len(names))
        yield lambda _: shown.update(task, advance=1, description=next(coming, ""))


def _told(source: Source, broken: Broken | BrokenFile) -> int:
    print(f"attnproof: {source.path}: {broken.error}", file=sys.stderr)
    if broken.traceback:
        print(broken.traceback, file=sys.stderr)
    return FAULT if broken.traceback else 1
