"""Every method that reads a law holds it of a program that keeps it, and refuses those that do not.

The programs stand beside the laws; each breaks one clause of the sentence.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from attnproof.programs.declarations import DeclaredAttention
from attnproof.programs.exact import exact
from attnproof.programs.finding import Finding
from attnproof.programs.measure.examine import examine
from attnproof.programs.prove import prove
from attnproof.programs.subjects import Additive, Attention, Bias, Layer, Mask, Rotary, Subject
from attnproof.theorems.laws import FORMER, LAWS
from tests.programs.programs_of_attention_laws import PROGRAMS_OF_ATTENTION
from tests.programs.programs_of_laws import PROGRAMS, Programs
from tests.programs.small_programs import not_one_by_one

EVERY = (*PROGRAMS, *PROGRAMS_OF_ATTENTION)
PROVED = {law.id for law in LAWS for one in law.formulas if not (one.unsaid or one.floats)}
FULL = DeclaredAttention(causal=False, positions="none")
CAUSAL = DeclaredAttention(causal=True)
PLAIN = ("rotate", "attend", "call")  # of which every law has been proved and met in fields
LARGE = ("shift-of-scores", "hidden-keys-do-nothing")  # the programs take no maximum of scores
OF_THE_PAST = ("causal", "past-is-used", "alignment", "step-by-step")
MEASURED = ("past-is-used", "window-as-declared", "mask-adds", "true-means-visible", "hidden-rows")
READ_OFF = {
    "shown": "attend",
    "attend_added": "attend",
    "attend_keeping": "attend",
    "attend_masked": "attend",
    "attend_blinded": "attend",
    "reached": "layer",
}
PROOF = 2.0  # seconds: those of the right programs are found in less
# What the fields do not say, or not of these programs.
NOT_IN_FIELDS = ("past-is-used", "window-as-declared", "hidden-rows", "products-of-offset")
OF_A_LENGTH = "however many there are"
UNPROVED = ("alignment", "groups-of-heads", "hidden-keys-do-nothing", *MEASURED)


def declared_of(law: str) -> DeclaredAttention:
    """What is declared of attention code and layers of which this law is asked."""
    if law == "window-as-declared":
        return DeclaredAttention(causal=True, window=3)
    if law == "hidden-rows":
        return DeclaredAttention(causal=False, positions="none", hidden_row="zero")
    return CAUSAL if law in OF_THE_PAST else FULL


def subject(one: Programs, program: Callable[..., Any]) -> Subject:
    """A program as the code it stands for."""
    declared = declared_of(one.law)
    fields = {one.call: program, **one.beside}
    if one.kind == "layer":
        return Layer(name="program", embed=6, declared=declared, **fields)
    if one.kind == "additive":
        return Additive(name="program", width=4, **fields)
    if one.kind == "mask":
        declared = DeclaredAttention(causal=True, window=declared.window)
        return Mask(
            name="program",
            declared=declared,
            mask=lambda t, s: program(torch.zeros(t), torch.zeros(s)),
        )
    if one.kind == "bias":

        def of_lengths(made: Callable[..., Any]) -> Callable[[int, int], Any]:
            return lambda t, s: made(torch.zeros(t), torch.zeros(s))

        other = fields.get("biased_paths")
        return Bias(
            name="program",
            heads=2,
            bias=of_lengths(fields["biased"]),
            paths={} if other is None else {"other": of_lengths(other)},
        )
    for paths in ("attended_paths", "rotated_paths"):
        if paths in fields:
            fields["paths"] = {"other": fields.pop(paths)}
    if one.kind == "rotary":
        other = fields.pop("converts_to", None)
        if other is not None:
            fields["converts_to"] = Rotary(name="other", rotate=other, width=4, heads=3)
        return Rotary(name="program", width=4, heads=3, **fields)
    if "attend" in fields:
        takes, found = bool(fields.get("masks")), fields["attend"]
        fields["attend"] = found if takes else lambda q, k, v, _mask=None: found(q, k, v)
        if "paths" in fields and not takes:
            path = fields["paths"]["other"]
            fields["paths"] = {"other": lambda q, k, v, _mask=None: path(q, k, v)}
    sizes = {"heads": 3, "groups": 3, "width": 4, "embed": 6}
    return Attention(name="program", declared=declared, **{**sizes, **fields})


def mutants() -> Iterator[Any]:
    for one in EVERY:
        for clause, program in one.breaks.items():
            yield pytest.param(one, program, id=f"{one.kind} {one.law}: {clause}")


KEPT = [pytest.param(one, id=f"{one.kind} {one.law}") for one in EVERY]


def ids(found: Any) -> set[str]:
    return {f.verdict for f in found}


def code_of(one: Programs) -> tuple[Any, ...]:
    """The code that keeps a law, and what is declared of it."""
    return one.kind, one.call, one.keeps, one.beside, declared_of(one.law)


@cache
def proved_of(first: int) -> tuple[Finding, ...]:
    """What is proved of code that keeps laws: it is traced once for all that it keeps."""
    one = EVERY[first]
    laws = [other.law for other in EVERY if code_of(other) == code_of(one)]
    return prove(subject(one, one.keeps), laws, seconds=PROOF).findings


def proved(one: Programs) -> set[str]:
    """The verdicts on a law of the code that keeps it."""
    first = next(k for k, other in enumerate(EVERY) if code_of(other) == code_of(one))
    return ids(found for found in proved_of(first) if found.law == one.law)


@pytest.mark.usefixtures("graphs_alone")
@pytest.mark.parametrize("one", KEPT)
def test_a_program_that_keeps_a_law_is_proved_and_exact_or_at_least_not_accused(
    one: Programs,
) -> None:
    right = subject(one, one.keeps)
    met = exact(right, [one.law])[0].verdict
    if one.call in PLAIN and one.law not in UNPROVED:
        assert met == "holds"
        assert proved(one) == ({"holds"} if one.law in PROVED else set())
    else:
        assert met != "broken"
        assert proved(one) <= {"holds", "not asked", "undecided"}
    if one.law not in LARGE:
        assert ids(examine(right, laws=[one.law])) <= {"holds", "not asked"}


@pytest.mark.parametrize(("one", "program"), list(mutants()))
def test_a_program_that_breaks_one_clause_is_refused(
    one: Programs, program: Callable[..., Any], request: pytest.FixtureRequest
) -> None:
    if program is not not_one_by_one:  # that one query is alone no graph shows
        request.getfixturevalue("graphs_alone")
    found: Any
    seen: Any
    wrong = subject(one, program)
    (found,) = exact(wrong, [one.law])
    unasked = one.kind == "mask" or one.call == "counting" or one.law in NOT_IN_FIELDS
    assert found.verdict == ("not asked" if unasked else "broken"), found.why
    assert unasked or found.witness.difference > 10 * found.witness.allowed
    assert "holds" not in ids(prove(wrong, [one.law], seconds=PROOF).findings)
    (seen,) = examine(wrong, laws=[one.law])
    if one.kind == "additive" and program is one.breaks.get(OF_A_LENGTH):
        assert seen.verdict == "not asked"  # nobody declares what such a table is
        return
    assert seen.verdict == "broken", seen.why
    assert seen.witness.difference > seen.witness.allowed
    json.dumps([dict(seen.witness.inputs), seen.witness.here, seen.witness.there])


def test_the_documentation_lists_the_laws_that_have_no_formula() -> None:
    text = (Path(__file__).parents[2] / "docs/code.md").read_text(encoding="utf-8")
    _, _, rest = text.partition("are stated only where they are measured:\n\n")
    table, _, _ = rest.partition("\n\n")
    listed = [name for row in table.splitlines() for name in re.findall("`(.*?)`", row)]
    assert sorted(listed) == sorted(law.id for law in LAWS if not law.formulas)


def test_programs_are_of_laws_that_are_there() -> None:
    known = {(f.id, f.kind, READ_OFF.get(f.call, f.call)) for law in LAWS for f in law.formulas}
    assert {(one.law, one.kind, one.call) for one in EVERY} <= known


def test_a_former_id_is_that_of_no_law_and_stands_for_one() -> None:
    known = {law.id for law in LAWS}
    assert set(FORMER.values()) <= known
    assert not known & set(FORMER)


def test_what_a_formula_does_not_have_is_refused_where_it_is_told() -> None:
    law = next(one for one in LAWS if one.about == ("rotary",))
    with pytest.raises(TypeError, match="wanted what shwon is in words, such as 'positions n', or"):
        law.formula("rotary", "rotate", x="B H n D", shwon=lambda x: (x, x))
    with pytest.raises(ValueError, match="not of mask code"):
        law.formula("mask", "rotate")
