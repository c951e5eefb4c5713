"""Prove a statement: normal forms of both sides at every entry, replayed by the kernel.

``decide`` returns proved, refuted or undecided for each conclusion.  A statement whose normal
forms differ is not refuted by that: only a certified witness refutes, and without one the
verdict is undecided.
"""

from __future__ import annotations

import time
from collections import Counter

from .decision import ClaimDecision, Decision, LinkProof
from .derivation import Derivation, Witness
from .derive import Meeting, NotProved, axis_cover, derive, places, split_options
from .divisors import Condition, conditions
from .kernel import Proof, Refused, close, proof_of_sign, replay
from .normal_form.equations import chain
from .normal_form.normaliser import Normaliser
from .scalars import ZERO, entry
from .statement import Claim, Statement
from .steps import rule_counts
from .terms import Term, make, substitute

__all__ = ["decide", "granted"]


def granted(statement: Statement) -> frozenset[tuple[str, Term]]:
    """The assumptions that the givens and hypotheses of a statement allow."""
    allowed: set[tuple[str, Term]] = set()
    for name, given in statement.givens.items():
        allowed |= given.granted(name)
    for left, right in statement.assume:
        allowed.add(("equal", make("assumed equal", (left, right))))
    return frozenset(allowed)


def decide(statement: Statement, *, refuting: bool = True, limit_seconds: float = 5.0) -> Decision:
    """The verdict on every conclusion of a statement, with proofs and witnesses."""
    return Decision(
        tuple(
            _decide(says, claim, statement, refuting, limit_seconds)
            for says, claim in statement.claims.items()
        )
    )


def _decide(
    says: str, claim: Claim, statement: Statement, refuting: bool, limit: float
) -> ClaimDecision:
    start = time.perf_counter()
    links, proof, why = _prove(claim, statement)
    if proof is not None:
        try:
            close(proof, granted(statement), _claimed(claim))
        except Refused as refused:
            proof, why = None, str(refused)
    asked = _conditions(claim) if proof is not None else ()
    if any(condition.impossible for condition in asked):
        proof, why = None, "the statement divides by 0, or takes the logarithm of 0, everywhere"
    witness = None
    if proof is None and refuting:
        from .refute import refute

        witness = refute(claim, statement.givens, statement.assume, limit_seconds=limit)
    verdict = "proved" if proof is not None else "refuted" if witness is not None else "undecided"
    seconds = time.perf_counter() - start
    if proof is None:
        return ClaimDecision(says, claim, verdict, links, witness=witness, why=why, seconds=seconds)
    used = tuple(sorted(map(_told, proof.assumes)))
    readings = tuple(condition.told for condition in asked)
    return ClaimDecision(says, claim, verdict, links, used, readings, seconds=seconds)


def _claimed(claim: Claim) -> tuple[object, ...]:
    """What a proof of the claim must show, as the kernel's ``close`` reads it."""
    if claim.relation == "exists":
        return ("exists", claim.left, claim.right, claim.variable, claim.free_of)
    return (claim.relation, claim.left, ZERO if claim.right is None else claim.right)


def _conditions(claim: Claim) -> tuple[Condition, ...]:
    """What a reader must take for granted about divisors, roots and logarithms."""
    return conditions(*(t for t in (claim.left, claim.right, claim.witness) if t is not None))


def _told(assumption: tuple[str, Term]) -> str:
    name, term = assumption
    if name == "equal":
        return f"{term.args[0]!r} = {term.args[1]!r}"
    shown = term.data[0] if term.op == "function" else repr(term)
    return f"{shown} is {'a ' if name == 'permutation' else ''}{name}"


def _prove(claim: Claim, statement: Statement) -> tuple[tuple[LinkProof, ...], Proof | None, str]:
    if claim.relation == ">":
        return _positive(claim, statement)
    if claim.relation == "exists":
        if claim.witness is None or claim.variable is None or claim.right is None:
            return (), None, "no witness is named, and the prover does not search for one"
        filled = [substitute(t, claim.variable, claim.witness) for t in (claim.left, claim.right)]
        whole, links, why = _linked(filled[0], [("", filled[1])], statement)
        if whole is None:
            return links, None, why
        shown = Witness(
            claim.variable, claim.witness, claim.free_of, (claim.left, claim.right), whole
        )
        return links, *_replayed(shown)
    whole, links, why = _linked(claim.left, [(k.reason, k.term) for k in claim.links], statement)
    return (links, *_replayed(whole)) if whole is not None else (links, None, why)


def _replayed(derivation: Derivation) -> tuple[Proof | None, str]:
    try:
        return replay(derivation), ""
    except Refused as refused:
        return None, f"the kernel refused the derivation: {refused}"


def _linked(
    first: Term, steps: list[tuple[str, Term]], statement: Statement
) -> tuple[Derivation | None, tuple[LinkProof, ...], str]:
    links: list[LinkProof] = []
    parts: list[Derivation] = []
    why = ""
    left = first
    for reason, right in steps:
        start = time.perf_counter()
        meeting: list[Meeting] = []
        try:
            part = derive(left, right, statement.assume, meeting)
        except (NotProved, Refused) as failed:
            told = str(failed)
            where = f"the step '{reason}': " if reason else ""
            why = why or where + told
            took = time.perf_counter() - start
            links.append(LinkProof(reason, left, right, None, 0, {}, took, False, told))
        else:
            took = time.perf_counter() - start
            counts = rule_counts(part)
            total = sum(counts.values())
            links.append(
                LinkProof(
                    reason, left, right, part, total, dict(counts), took, True, "", tuple(meeting)
                )
            )
            parts.append(part)
        left = right
    if why:
        return None, tuple(links), why
    return chain(*parts), tuple(links), ""


def _positive(
    claim: Claim, statement: Statement
) -> tuple[tuple[LinkProof, ...], Proof | None, str]:
    start = time.perf_counter()
    options = split_options(claim.left)
    for splits in options:
        norm = Normaliser(splits, statement.assume)
        cover = tuple(axis_cover(n, splits) for n in claim.left.shape)
        parts = tuple(norm(entry(claim.left, *place)) for place in places(claim.left, cover))
        try:
            proof = proof_of_sign(claim.left, cover, parts)
        except Refused as refused:
            why = str(refused)
            continue
        if proof.relation != ">":
            why = "the entries are >= 0, and > 0 is not certain from their form"
            continue
        counts = sum((rule_counts(part) for part in parts), Counter[str]())
        took = time.perf_counter() - start
        reason = "every factor of the entry is positive"
        link = LinkProof(
            reason, claim.left, ZERO, parts[0], sum(counts.values()), dict(counts), took, True
        )
        return (link,), proof, ""
    return (), None, why
