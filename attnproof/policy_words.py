"""What policies say of measurements, in words: the nearest to its limit, and each of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .evidence import MeasuredEvidence, PolicyRecord

__all__ = ["held_back", "nearest", "not_applied", "policy_lines", "share"]


def share(policy: PolicyRecord) -> float:
    """How much of its limit a policy has used up; above 1 it says no."""
    if policy.ratio is None:
        return -1.0
    return float("inf") if isinstance(policy.ratio, str) else policy.ratio


def nearest(m: MeasuredEvidence) -> str:
    """The policy that is nearest to its limit, with the share of it: residual 0.36.

    Empty where only the deterministic one was applied, whose error and bound are told anyway.

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
    """For each policy that was applied, where it is nearest to its limit.

    A line says of how many of the measurements it spoke; :func:`not_applied` says why of no more.
    """
    every: dict[str, list[tuple[MeasuredEvidence, PolicyRecord]]] = {}
    for m in measured:
        for policy in m.policies:
            every.setdefault(policy.policy, []).append((m, policy))
    lines = (_line(name, found) for name, found in every.items())
    return [line for line in lines if line]


def held_back(measured: Iterable[MeasuredEvidence]) -> dict[str, list[str]]:
    """Why policies were not applied: each reason once, with the policies it holds back."""
    whose: dict[str, list[str]] = {}
    for policy in (p for m in measured for p in m.policies if p.status == "skipped"):
        names = whose.setdefault(policy.told, [])
        if policy.policy not in names:
            names.append(policy.policy)
    return whose


def not_applied(evidence: Iterable[object]) -> str:
    """The same of all measurements of a statement in one line; empty if there is nothing to say."""
    reasons: dict[str, list[str]] = {}
    for told, names in held_back(e for e in evidence if isinstance(e, MeasuredEvidence)).items():
        reasons.setdefault(", ".join(names), []).append(told)
    parts = [f"{names} ({'; '.join(told)})" for names, told in reasons.items()]
    return f"Not applied to all measurements: {'; '.join(parts)}." if parts else ""


def _line(name: str, found: Sequence[tuple[MeasuredEvidence, PolicyRecord]]) -> str:
    applied = [(m, p) for m, p in found if p.status != "skipped"]
    if not applied:
        return ""
    m, most = max(applied, key=lambda pair: share(pair[1]))
    told = f"{name}: {len(applied)} of {len(found)}; nearest to its limit in {m.implementation}, "
    told += f"{m.dtype}: {share(most):.2g}"
    return told + (f" ({most.told})" if most.told else "")
