"""Small statements for tests: what is given, what is assumed, what is claimed, and the verdict."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from attnproof.symbolic.covers import Cover
from attnproof.symbolic.decision import Decision
from attnproof.symbolic.derivation import Derivation
from attnproof.symbolic.givens import Given
from attnproof.symbolic.kernel import Proof, Refused, replay
from attnproof.symbolic.latex import latex, membership
from attnproof.symbolic.proof_methods import signed
from attnproof.symbolic.prove import decide
from attnproof.symbolic.rules import applied
from attnproof.symbolic.rules.base import Assumption
from attnproof.symbolic.rules.inequalities import known_after
from attnproof.symbolic.signs import SearchedSigns
from attnproof.symbolic.statement import theorem
from attnproof.symbolic.terms import Term, free
from attnproof.symbolic.well_formedness import formed


@dataclass(frozen=True)
class Said:
    """A statement: ``claim`` and ``assume`` take the givens by their names."""

    given: Mapping[str, Given]
    claim: Callable[..., Any]
    assume: Callable[..., list[Any]] | None = None


def verdict(said: Said) -> str:
    """proved or undecided; nothing is refuted here, for only the kernel is asked."""
    return decided(said).verdict


def because(said: Said) -> str:
    """Why what is claimed is not proved."""
    return "; ".join(claim.why for claim in decided(said).claims if claim.why)


def decided(said: Said) -> Decision:
    stated = theorem("a test", given=said.given, assume=said.assume)(said.claim)
    terms = replace(stated.statement, code=None)  # what the kernel says of terms, and no more
    return decide(terms, refuting=False)


def taken(rule: str, t: Term, arguments: tuple[Any, ...]) -> tuple[Term, frozenset[Assumption]]:
    """What a rule gives, with the signs that are found where it asks for them."""
    asked = SearchedSigns(frozenset())
    _, used = applied(rule, t, arguments, asked)
    return applied(rule, t, arguments, known_after(asked.steps(used), over=free(t)))


def means_something(t: Term) -> bool:
    """Whether the kernel would read it at all: a length that changes leaves a shape behind."""
    try:
        return formed(t) is t
    except Refused:
        return False


def proof_of_sign(
    array: Term,
    cover: Cover,
    parts: tuple[Derivation, ...],
    facts: frozenset[Assumption] = frozenset(),
) -> Proof:
    """The proof that every entry is > 0 (or >= 0), by what is found of the forms of the parts."""
    return replay(signed(array, cover, parts, facts))


def memberships(givens: Mapping[str, Given]) -> dict[str, str]:
    """What each given may be, as a page shows it."""
    ranges = {name: "" if g.below is None else latex(g.below) for name, g in givens.items()}
    return {
        name: membership(name, g.kind, [latex(n) for n in g.shape], ranges[name])
        for name, g in givens.items()
    }
