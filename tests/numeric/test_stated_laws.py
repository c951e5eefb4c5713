"""Every method that reads a law holds it of a program that keeps it, and refuses those that do not.

The programs stand beside the laws; each breaks one clause of the sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from attnproof.numeric.duck import exact
from attnproof.numeric.programs.declared import DeclaredAttention
from attnproof.numeric.programs.subjects import Attention, Layer, Rotary, Subject
from attnproof.numeric.traced.proofs import prove
from attnproof.theorems.laws import LAWS
from attnproof.theorems.laws.programs import PROGRAMS, Programs

PROVED = {law.id for law in LAWS for one in law.formulas if not one.unsaid}
FULL = DeclaredAttention(causal=False, positions="none")
CAUSAL = DeclaredAttention(causal=True)


def subject(one: Programs, program: Callable[..., Any]) -> Subject:
    """A program as the code it stands for."""
    declared = CAUSAL if one.law == "causal" else FULL
    if one.kind == "rotary":
        return Rotary(name="program", turn=program, width=4, heads=3)
    if one.kind == "layer":
        return Layer(name="program", call=program, embed=6, declared=declared)

    def attend(q: Any, k: Any, v: Any, _mask: Any = None) -> Any:
        return program(q, k, v)

    return Attention(name="program", attend=attend, heads=3, groups=3, width=4, declared=declared)


def mutants() -> Iterator[Any]:
    for one in PROGRAMS:
        for clause, program in one.breaks.items():
            yield pytest.param(one, program, id=f"{one.kind} {one.law}: {clause}")


KEPT = [pytest.param(one, id=f"{one.kind} {one.law}") for one in PROGRAMS]


@pytest.mark.parametrize("one", KEPT)
def test_a_program_that_keeps_a_law_is_not_accused(one: Programs) -> None:
    right = subject(one, one.keeps)
    assert exact(right, [one.law])[0].verdict == "holds"
    proved = prove(right, [one.law]).findings
    assert {f.verdict for f in proved} == ({"holds"} if one.law in PROVED else set())


@pytest.mark.parametrize(("one", "program"), list(mutants()))
def test_a_program_that_breaks_one_clause_is_refused(
    one: Programs, program: Callable[..., Any]
) -> None:
    wrong = subject(one, program)
    (found,) = exact(wrong, [one.law])
    assert found.verdict == "broken" or "nothing that says" in found.why, found.why
    assert "holds" not in {f.verdict for f in prove(wrong, [one.law]).findings}


def test_programs_are_of_laws_that_are_there() -> None:
    known = {(f.id, f.kind, f.call) for law in LAWS for f in law.formulas}
    assert {(one.law, one.kind, one.call) for one in PROGRAMS} <= known
