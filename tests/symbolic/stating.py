"""Small statements for tests: what is given, what is assumed, what is claimed, and the verdict."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from attnproof.symbolic.decision import Decision
from attnproof.symbolic.givens import Given
from attnproof.symbolic.prove import decide
from attnproof.symbolic.statement import theorem


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
