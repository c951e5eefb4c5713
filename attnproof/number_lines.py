"""Measurements on a terminal page: a row each, its policies in columns, what they share below."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from .evidence import MeasuredEvidence, PolicyRecord
from .layout import filled
from .numeric.designs import DESIGNS
from .policy_words import held_back, share

__all__ = ["number_lines"]

POLICIES = ("deterministic", "probabilistic", "residual", "bitwise")
HEAD = "      dtype        error    bound  " + " ".join(POLICIES)
SIGNS = {"held": "✓", "violated": "✗", "non-finite": "✗"}


def number_lines(measured: Iterable[MeasuredEvidence]) -> Iterator[str]:
    """Under each conclusion and set of sizes, for each implementation a row for each dtype.

    The columns of the policies are the share of its limit that each has used up, above 1 a no.
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
    numbers = f"{_short(m.error):>9} {_short(m.tolerance):>8}"
    yield f"    {SIGNS[m.status]} {m.dtype:<8} {numbers}  {columns}".rstrip()
    if m.status != "held":
        at = f" at entry {m.worst}" if m.worst else ""
        yield from filled(f"{m.status}{at}: {m.reason}".removesuffix(": "), 8, 2)
        refusing = [p for p in m.policies if p.status in ("violated", "non-finite")]
        if all(p.policy != "deterministic" for p in refusing):
            for policy in refusing:
                yield from filled(f"{policy.policy}: {policy.told}", 8, 2)
    elif m.designs != ("normal",):
        every = set(m.designs) == set(DESIGNS)
        told = f"all {len(DESIGNS)} of them" if every else ", ".join(m.designs)
        yield from filled(f"inputs: {told}", 8, 2)


def _share(policy: PolicyRecord | None) -> str:
    if policy is None or policy.status == "skipped":
        return "–"
    if policy.policy == "bitwise":
        return "equal" if policy.status == "held" else "differs"
    return f"{share(policy):.2g}"


def _not_applied(measured: Sequence[MeasuredEvidence]) -> Iterator[str]:
    for told, names in held_back(measured).items():
        yield from filled(f"– {', '.join(names)}: {told}", 4, 2)


def _short(value: float | str | None) -> str:
    return f"{value:.2g}" if isinstance(value, float) else str(value)
