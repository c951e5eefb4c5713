"""How a verdict is known, in words: what SymPy derived, finite fields gave, and policies said."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Literal, NamedTuple

from ..documents.document import SIGNS, filled, short
from ..documents.evidence import DerivedEvidence, Evidence, SidesRecord
from ..numeric.distributions import DISTRIBUTIONS
from ..numeric.results import ExactEvidence, MeasuredEvidence, PolicyRecord
from .records import StepRecord


def derivation(evidence: Iterable[Evidence]) -> DerivedEvidence | None:
    """Return the derivation among the evidence; None if SymPy was not asked."""
    return next((e for e in evidence if isinstance(e, DerivedEvidence)), None)


def derived_line(e: DerivedEvidence) -> str:
    """Return one line: at which sizes and in how many cases SymPy derived it; or why not.

    >>> derived_line(DerivedEvidence(
    ...     status="derived", why="", sizes=({"n": 2}, {"n": 3}), cases=8, all_cases=8,
    ...     natural=False, seconds=0.1,
    ... ))
    'derived by SymPy at n = 2; n = 3, in all 8 cases'
    """
    if e.status != "derived":
        told = "refused by SymPy" if e.status == "refused" else "not derived by SymPy"
        return f"{told}: {e.why}"
    places = (", ".join(f"{name} = {n}" for name, n in sizes.items()) for sizes in e.sizes)
    parts = [f"at {'; '.join(places)}"] if any(e.sizes) else []
    if e.all_cases > len(e.sizes) and e.cases:
        of = f"all {e.cases}" if e.cases == e.all_cases else f"{e.cases} of {e.all_cases}"
        parts.append(f"in {of} cases")
    parts += ["natural numbers from 0 to 3"] * e.natural
    return f"derived by SymPy {', '.join(parts)}".rstrip()


def place_of(step: StepRecord) -> str:
    """Return the rule of a kernel step, and where it was applied.

    >>> place_of(StepRecord(rule="ring", at="1.0", inside=("j",), before="a", after="a"))
    'ring at 1.0, inside j'
    """
    inside = f", inside {', '.join(step.inside)}" if step.inside else ""
    back = ", read backwards" if step.backwards else ""
    return f"{step.rule} at {step.at or 'the whole'}{inside}{back}"


def sides_latex(side: SidesRecord) -> str:
    """Return both sides of a conclusion in LaTeX, as SymPy writes them."""
    relation = {">=": r"\ge", "!=": r"\ne"}.get(side.relation, side.relation)
    return f"{side.left.latex} {relation} {side.right.latex}"


def side_lines(e: DerivedEvidence) -> Iterator[str]:
    """Yield both sides of the conclusions that are short enough to read."""
    for side in e.sides:
        told = f"{side.left.text} {side.relation} {side.right.text}"
        yield f"{side.says}: {told}".removeprefix(": ")


Outcome = Literal["held", "violated", "skipped"]


class ExactLine(NamedTuple):
    """One conclusion: its outcome over all towers of fields, and what was compared."""

    says: str
    status: Outcome
    text: str
    why: str


def exact_lines(evidence: Iterable[Evidence]) -> list[ExactLine]:
    """Return one line for each conclusion; violated in any tower is violated."""
    found = (e for e in evidence if isinstance(e, ExactEvidence))
    return [
        _exact_line(says, list(checks)) for says, checks in groupby(found, key=lambda e: e.says)
    ]


def _exact_line(says: str, checks: list[ExactEvidence]) -> ExactLine:
    done = [check for check in checks if check.status != "skipped"]
    if not done:
        return ExactLine(says, "skipped", "not read in finite fields", checks[0].reason)
    status: Outcome = "violated" if any(e.status == "violated" for e in done) else "held"
    first = next((e for e in done if e.status == status), done[0])
    primes = "; ".join(" | ".join(map(str, e.primes)) for e in done)
    sizes = [f"{name} = {value}" for name, value in first.sizes.items()]
    told = [*sizes, f"{first.compared} entries"]
    told += [f"{first.undefined} undefined"] * bool(first.undefined)
    told += [f"first at {first.worst}"] * bool(status == "violated" and first.worst)
    told += [f"error {first.error} each"] * bool(status == "held" and first.error)
    towers = f"{len(done)} tower{'s' * (len(done) != 1)} of fields"
    return ExactLine(
        says,
        status,
        f"exact in {towers} (p = {primes}): {status}, {', '.join(told)}",
        first.argument if status == "held" else "",
    )


def share(policy: PolicyRecord) -> float:
    """Return the share of its limit that a policy has used up; above 1 it is violated."""
    if policy.ratio is None:
        return -1.0
    return float("inf") if isinstance(policy.ratio, str) else policy.ratio


def nearest(m: MeasuredEvidence) -> str:
    """Return the policy that is nearest to its limit, with its share: residual 0.36.

    Empty if only the deterministic one was applied, whose error and bound are shown anyway.

    >>> nearest(MeasuredEvidence(
    ...     says="", implementation="eager", device="cpu", dtype="float32", sizes={}, seed=0,
    ...     sampled="", error=0.1, tolerance=1.0, worst=(), seconds=0.0, status="held", reason="",
    ...     policies=(
    ...         PolicyRecord(policy="deterministic", status="held", ratio=0.1, told="entry ()"),
    ...         PolicyRecord(policy="residual", status="held", ratio=0.364, told="|z| = 2.55"),
    ...     ),
    ... ))
    'residual 0.36'
    """
    applied = [p for p in m.policies if p.status != "skipped" and p.policy != "bitwise"]
    broken = [p for p in m.policies if p.policy == "bitwise" and p.status == "violated"]
    if broken:
        return "bitwise: differs"
    if len(applied) < 2:
        return ""
    most = max(applied, key=share)
    return f"{most.policy} {share(most):.2g}"


def policy_lines(measured: Iterable[MeasuredEvidence]) -> list[str]:
    """Return, for each policy that was applied, where it is nearest to its limit.

    A line says to how many of the measurements it was applied; :func:`not_applied` says why not to
    more.
    """
    every: dict[str, list[tuple[MeasuredEvidence, PolicyRecord]]] = {}
    for m in measured:
        for policy in m.policies:
            every.setdefault(policy.policy, []).append((m, policy))
    lines = (_policy_line(name, found) for name, found in every.items())
    return [line for line in lines if line]


def reasons_not_applied(measured: Iterable[MeasuredEvidence]) -> dict[str, list[str]]:
    """Return why policies were not applied: each reason, with the policies that it excludes."""
    whose: dict[str, list[str]] = {}
    for policy in (p for m in measured for p in m.policies if p.status == "skipped"):
        names = whose.setdefault(policy.told, [])
        if policy.policy not in names:
            names.append(policy.policy)
    return whose


def not_applied(evidence: Iterable[object]) -> str:
    """Return the same for all measurements of a statement, in one line; empty if none."""
    reasons: dict[str, list[str]] = {}
    for told, names in reasons_not_applied(
        e for e in evidence if isinstance(e, MeasuredEvidence)
    ).items():
        reasons.setdefault(", ".join(names), []).append(told)
    parts = [f"{names} ({'; '.join(told)})" for names, told in reasons.items()]
    return f"Not applied to all measurements: {'; '.join(parts)}." if parts else ""


def _policy_line(name: str, found: Sequence[tuple[MeasuredEvidence, PolicyRecord]]) -> str:
    applied = [(m, p) for m, p in found if p.status != "skipped"]
    if not applied:
        return ""
    m, most = max(applied, key=lambda pair: share(pair[1]))
    told = f"{name}: {len(applied)} of {len(found)}; nearest to its limit in {m.implementation}, "
    told += f"{m.dtype}: {share(most):.2g}"
    return told + (f" ({most.told})" if most.told else "")


POLICIES = ("deterministic", "probabilistic", "residual", "bitwise")
HEAD = "      dtype        error    bound  " + " ".join(POLICIES)


def number_lines(measured: Iterable[MeasuredEvidence]) -> Iterator[str]:
    """Yield, for each conclusion and set of sizes, a row per implementation and dtype.

    The columns of the policies are the share of its limit that each has used up, above 1 a
    violation.
    """
    every = list(measured)
    headed = False
    for (says, where), group in groupby(every, _where):
        yield from filled(f"{says}: {where}".removeprefix(": "), 2, 2)
        rows = list(group)
        if not headed and any(m.policies for m in rows if m.status != "skipped"):
            headed = True
            yield HEAD
        for name, of_name in groupby(rows, lambda m: m.implementation):
            yield f"    {name}"
            for m in of_name:
                yield from _row(m)
    yield from _not_applied(every)


def _where(m: MeasuredEvidence) -> tuple[str, str]:
    sizes = ", ".join(f"{name} = {value}" for name, value in m.sizes.items())
    return m.says, f"{sizes}; {m.sampled or 'nothing read'}; on {m.device}"


def _row(m: MeasuredEvidence) -> Iterator[str]:
    if m.status == "skipped":
        yield from filled(f"{m.dtype}: skipped, {m.reason}", 6, 2)
        return
    found: dict[str, PolicyRecord] = {policy.policy: policy for policy in m.policies}
    columns = " ".join(f"{_share(found.get(name)):>{len(name)}}" for name in POLICIES)
    numbers = f"{short(m.error):>9} {short(m.tolerance):>8}"
    yield f"    {SIGNS[m.status]} {m.dtype:<8} {numbers}  {columns}".rstrip()
    if m.status != "held":
        at = f" at entry {m.worst}" if m.worst else ""
        yield from filled(f"{m.status}{at}: {m.reason}".removesuffix(": "), 8, 2)
        refusing = [p for p in m.policies if p.status in ("violated", "non-finite")]
        if all(p.policy != "deterministic" for p in refusing):
            for policy in refusing:
                yield from filled(f"{policy.policy}: {policy.told}", 8, 2)
    elif m.distributions != ("normal",):
        every = set(m.distributions) == set(DISTRIBUTIONS)
        told = f"all {len(DISTRIBUTIONS)} of them" if every else ", ".join(m.distributions)
        yield from filled(f"inputs: {told}", 8, 2)


def _share(policy: PolicyRecord | None) -> str:
    if policy is None or policy.status == "skipped":
        return "–"
    if policy.policy == "bitwise":
        return "equal" if policy.status == "held" else "differs"
    return f"{share(policy):.2g}"


def _not_applied(measured: Sequence[MeasuredEvidence]) -> Iterator[str]:
    for told, names in reasons_not_applied(measured).items():
        yield from filled(f"– {', '.join(names)}: {told}", 4, 2)
