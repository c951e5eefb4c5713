"""What SymPy derived of a statement, in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .evidence import DerivedEvidence, Evidence, SidesRecord

__all__ = ["derivation", "derived_line", "side_lines", "sides_latex"]


def derivation(evidence: Iterable[Evidence]) -> DerivedEvidence | None:
    """The derivation among the evidence, if SymPy was asked."""
    return next((e for e in evidence if isinstance(e, DerivedEvidence)), None)


def derived_line(e: DerivedEvidence) -> str:
    """One line: at which sizes, in how many cases; or why not.

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


def sides_latex(side: SidesRecord) -> str:
    """Both sides of a conclusion in LaTeX, as SymPy writes them."""
    relation = {">=": r"\ge", "!=": r"\ne"}.get(side.relation, side.relation)
    return f"{side.left.latex} {relation} {side.right.latex}"


def side_lines(e: DerivedEvidence) -> Iterator[str]:
    """Both sides of the conclusions that are short enough to read."""
    for side in e.sides:
        told = f"{side.left.text} {side.relation} {side.right.text}"
        yield f"{side.says}: {told}".removeprefix(": ")
