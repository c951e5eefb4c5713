"""Prove statements: each conclusion is derived, replayed by the kernel, compared with its claim.

``decide`` returns the verdict proved, refuted, undecided or misread for each conclusion, or an
internal error.  Different normal forms do not refute a conclusion: only a certified witness does,
and without one the verdict is undecided.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import inf

from .budget import SHRINKING, Budget, OutOfTime, current_budget, within
from .claim import Claim, Law
from .decision import ClaimDecision, Decision, Witness
from .derivation import Derivation
from .derive import Equation, NotProved, equations, instance, law_of, reason
from .divisors import Condition, conditions, expectations
from .faults import Fault, fault_of
from .gate import Misreading
from .kernel import ANY_REAL, Proof, Refused, close, law, squares
from .proof_methods import Attempt, Premises, compared, difference, equations_of, show
from .ranges import sides_of
from .reading import range_message, show_ranges
from .refusals import demand
from .scalars import is_truth
from .statement import Statement, Theorem
from .terms import Term, free, instantiate, make

Known = Mapping[Term, tuple[Derivation, tuple[Term, ...]]]
SIGNS = {">": "positive", ">=": "nonnegative", "!=": "nonzero"}


def granted(statement: Statement) -> frozenset[tuple[str, Term]]:
    """Return the assumptions that the givens and hypotheses of a statement allow."""
    allowed: set[tuple[str, Term]] = set()
    for name, given in statement.givens.items():
        allowed |= given.granted(name)
    for left, right in statement.assume:
        allowed.add(("equal", law(left, right)))
    for told in statement.laws:
        if told.claim.relation == "=":
            allowed.add(("equal", law_of(told)))
        else:
            allowed |= _sign_of(told)
    return frozenset(allowed)


def ranges_of(
    statement: Statement, claims: Iterable[Claim]
) -> tuple[str, frozenset[tuple[str, Term]]]:
    """Return which reads of claims or hypotheses may leave an axis, or "", and the facts used.

    At sizes where a slice leaves its axis, the term is not what the code computes; such a
    statement is neither proved nor refuted.
    """
    told = [*claims, *(law.claim for law in statement.laws)]
    signs = [
        _sign_of(law)
        for law in statement.laws
        if law.claim.relation in (">", ">=") and not law.claim.variables
    ]
    terms = [t for c in told for t in (c.left, c.right, c.witness) if t is not None]
    terms += [side for pair in statement.assume for side in pair]
    unshown, used, _ = show_ranges(terms, frozenset().union(*signs))
    return "; ".join(map(range_message, unshown)), used


def _sign_of(told: Law) -> frozenset[tuple[str, Term]]:
    """Return a hypothesis about signs as an assumption of the kernel.

    It must not quantify over further variables.  That arrays differ becomes
    Σ (left − right)² > 0.
    """
    claim = told.claim
    if claim.relation not in SIGNS or claim.variables:
        raise TypeError(
            "a hypothesis is an equation, for all values of some variables or of the givens, or "
            f"at_least, greater or differ of the givens; got {claim.relation!r} of {claim.left!r}"
        )
    if claim.relation == "!=" and claim.left.shape:
        left, right = compared(claim)
        if any(length.op == "space" for length in left.shape):
            raise TypeError(
                "random arrays may differ on a set of probability 0 only, which no expectation "
                f"shows; a hypothesis says that {left!r} differs: state it of expectations"
            )
        if not (left.finite and right.finite) or is_truth(left):
            raise TypeError(
                "a hypothesis that two arrays differ wants arrays of finite numbers, not truth "
                f"values or values that may be -inf; got {left!r}"
            )
        return frozenset({("positive", squares(left, right))})
    return frozenset({(SIGNS[claim.relation], difference(claim))})


PROVED_AND_REFUTED = "one conclusion is proved, and a witness refutes it"
BRIEF_SECONDS = 0.1  # seconds for a witness before a second way to a proof is tried


@dataclass(frozen=True)
class Effort:
    """Limits of the searches for a proof and for a witness, in seconds of thread time.

    ``limit`` is for a witness once no proof was found, ``prove`` for a proof; ``shrinking`` is the
    number of guesses for making a witness small.  With ``glance``, that many guesses at a witness
    are made before the proof, and 8 times as many once the proof has taken ``patience`` seconds.
    ``whole`` bounds everything: all conclusions with their proofs and witnesses.
    """

    refuting: bool = True
    limit: float = 5.0
    shrinking: int = SHRINKING
    prove: float = inf
    glance: int = 0
    patience: float = 0.3
    whole: float = inf


def decide(
    statement: Statement | Theorem,
    *,
    refuting: bool = True,
    limit_seconds: float = 5.0,
    effort: Effort | None = None,
) -> Decision:
    """Return the verdict on every conclusion of a statement or theorem, with proofs and witnesses.

    The gate comes first: a statement whose code, run on NumPy, disagrees with its term is misread,
    and nothing about it is proved or refuted.  Then a proof is searched for, and a witness if none
    is found.  If statements are as often false as true, an ``effort`` with a ``glance`` at a few
    inputs before the proof saves the time of proofs that fail.

    Raises the exceptions of building the statement, and ``TypeError`` for any other argument.

    >>> from attnproof import attention, chain, permutation, real, sizes, theorem
    >>> r, n, d = sizes("r n d")
    >>> given = {"Q": real(r, d), "K": real(n, d), "V": real(n, d), "s": permutation(n)}
    >>> @theorem("The order of the pairs does not matter", given=given)
    ... def pairs(Q, K, V, s):
    ...     return chain(attention(Q, K[s], V[s]), ("softmax is a sum", attention(Q, K, V)))
    >>> decide(pairs).verdict
    'proved'
    """
    demand(
        statement,
        (Statement, Theorem),
        "decide wants a statement or a theorem; of a function write attnproof.prove(f, X=real(n))",
    )
    statement = statement.statement if isinstance(statement, Theorem) else statement
    effort = effort or Effort(refuting, limit_seconds)
    if statement.misreading is not None:
        return _misread(statement, statement.misreading)
    known: dict[Term, tuple[Derivation, tuple[Term, ...]]] = {}
    decided: list[ClaimDecision] = []
    whole = Budget(effort.whole, current_budget())
    for says, claim in statement.claims.items():
        try:
            with within(whole):
                found, attempt = _decide(says, claim, statement, known, effort)
        except OutOfTime as late:
            found, attempt = ClaimDecision(says, claim, "undecided", why=str(late)), Attempt()
        except Exception as error:
            fault = fault_of(error)
            if fault is None:
                raise  # an error about the statement
            found, attempt = _internal_error(says, claim, fault), Attempt()
        decided.append(found)
        as_law = _as_lemma(claim)
        if found.verdict == "proved" and attempt.derivation is not None and as_law is not None:
            known[as_law] = (attempt.derivation, _variables(claim))
    return Decision(tuple(decided))


def _misread(statement: Statement, found: Misreading) -> Decision:
    return Decision(
        tuple(
            ClaimDecision(says, claim, "misread", why=found.text, misreading=found)
            for says, claim in statement.claims.items()
        )
    )


def _variables(claim: Claim) -> tuple[Term, ...]:
    return tuple(given.named(name).term for name, given in claim.variables)


def _as_lemma(claim: Claim) -> Term | None:
    """Return the law that later conclusions may use, or None if the claim cannot serve as one."""
    kinds = {given.kind for _, given in claim.variables}
    if claim.relation != "=" or not kinds <= {*ANY_REAL, "natural"}:
        return None
    return law_of(Law(claim))


def _premises(claim: Claim, statement: Statement, known: Known) -> Premises:
    """Return the hypotheses and the facts that the author of the claim cites.

    Raises :class:`NotProved` for a fact that is neither given nor proved before.
    """
    allowed = granted(statement)
    more: list[Equation] = []
    lemmas: dict[Term, tuple[Derivation, tuple[Term, ...]]] = {}
    for told in claim.using:
        at = law_of(told.law)
        if ("equal", at) not in allowed:
            if at not in known:
                raise NotProved(
                    f"a fact that it uses is neither a hypothesis nor an earlier conclusion "
                    f"that was proved: {told.law.claim.left!r} = {told.law.claim.right!r}"
                )
            lemmas[at] = known[at]
        more.append(instance(told))
    facts = frozenset(fact for fact in allowed if fact[0] in SIGNS.values())
    return Premises((*more, *equations(statement.assume)), facts, lemmas)


def _decide(
    says: str, claim: Claim, statement: Statement, known: Known, effort: Effort
) -> tuple[ClaimDecision, Attempt]:
    start = time.perf_counter()
    leaves, _ = ranges_of(statement, [claim])
    if leaves:
        return ClaimDecision(says, claim, "undecided", why=leaves), Attempt()
    attempt: Attempt | None = None
    early = _BriefSearch(claim, statement, effort)
    for guesses, seconds in _turns(claim, effort):
        witness, _ = _find_witness(claim, statement, effort, guesses) if guesses else (None, "")
        if witness is not None:
            took = time.perf_counter() - start
            return ClaimDecision(says, claim, "refuted", witness=witness, seconds=took), Attempt()
        try:
            with within(seconds):
                premises = replace(_premises(claim, statement, known), refuted=early)
                attempt = _by_laws(claim, statement, premises)
        except (Refused, NotProved, RecursionError) as refused:
            attempt = Attempt((), None, reason(refused))
        except OutOfTime as late:
            attempt = Attempt((), None, str(late))
            continue
        break
    assert attempt is not None
    rests, why = None, attempt.why
    if attempt.proof is not None:
        try:
            rests = check_proof(claim, statement, attempt.proof)
        except Refused as refused:
            why = str(refused)
    witness, fault = early.witness, None
    if rests is not None and witness is not None:
        return _internal_error(says, claim, Fault(PROVED_AND_REFUTED, "")), Attempt()
    if rests is None and witness is None and effort.refuting:
        witness, stopped = _find_witness(claim, statement, effort)
        fault = stopped if isinstance(stopped, Fault) else None
        why = "; ".join(filter(None, (why, fault.message if fault is not None else str(stopped))))
    if witness is None and fault is not None:
        return replace(_internal_error(says, claim, fault), links=attempt.links, why=why), Attempt()
    verdict = "proved" if rests is not None else "refuted" if witness is not None else "undecided"
    seconds = time.perf_counter() - start
    if rests is None:
        return ClaimDecision(
            says, claim, verdict, attempt.links, witness=witness, why=why, seconds=seconds
        ), Attempt()
    decided = ClaimDecision(
        says, claim, verdict, attempt.links, *rests, seconds=seconds, derivation=attempt.derivation
    )
    return decided, attempt


def check_proof(
    claim: Claim,
    statement: Statement,
    proof: Proof,
    asked: tuple[Condition, ...] | None = None,
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the assumptions a proof of a conclusion used, and the conditions for reading it.

    ``asked`` holds these conditions if they were already determined part by part.  Raises
    :class:`Refused` if the proof shows something else, uses an assumption that the statement does
    not grant, or is about a statement that is undefined everywhere, such as 1/0.  Every proof is
    checked here before its conclusion is called proved.
    """
    leaves, within_axes = ranges_of(statement, [claim])
    if leaves:
        raise Refused(leaves)
    own = frozenset[tuple[str, Term]]().union(*(g.granted(name) for name, g in claim.variables))
    allowed, claimed = granted(statement) | own, _claimed(claim)
    terms = [t for t in (proof.left, proof.right, *claimed) if isinstance(t, Term)]
    terms += [t for assumed in proof.assumes for t in sides_of(assumed)]
    close(proof, allowed, claimed, show_ranges(terms, allowed)[2])
    _require_arbitrary(claim, proof.assumes - own)
    asked = _conditions(claim, statement) if asked is None else asked
    if any(condition.impossible for condition in asked):
        raise Refused(
            "the statement divides by 0, or takes an undefined root or logarithm, at every input"
        )
    rests = proof.assumes | within_axes
    rests -= {("injective", v) for name, v in rests if name == "permutation"}  # implied
    used = tuple(sorted(map(_assumption_text, rests)))
    return used, (*(condition.phrase for condition in asked), *_expected(claim, statement))


def _by_laws(claim: Claim, statement: Statement, premises: Premises) -> Attempt:
    """Show the claim as its author advises; without advice, also with each law of the statement."""
    attempt = show(claim, premises)
    if attempt.proof is not None or claim.using or not statement.laws:
        return attempt
    more = equations_of(statement.laws, claim)
    if not more:
        return attempt
    again = show(claim, replace(premises, equations=(*premises.equations, *more)))
    return again if again.proof is not None else attempt


def _internal_error(says: str, claim: Claim, fault: Fault) -> ClaimDecision:
    """Return the verdict "internal error" on a conclusion during which attnproof failed."""
    return ClaimDecision(says, claim, "internal error", why=fault.message, fault=fault)


def _turns(claim: Claim, effort: Effort) -> list[tuple[int, float]]:
    """Return, for each turn, the number of guesses at a witness and the time for a proof after it.

    For an existence there are no guesses: refuting it takes long, checking a named array does not.
    """
    if not effort.glance or claim.relation == "exists":
        return [(0, effort.prove)]
    return [(effort.glance, effort.patience), (8 * effort.glance, effort.prove)]


def _require_arbitrary(claim: Claim, assumed: frozenset[tuple[str, Term]]) -> None:
    """Refuse a proof that assumed something about a variable it must hold for all values of."""
    variables = set(_variables(claim))
    for _, term in assumed:
        if free(term) & variables:
            raise Refused(f"for all: the proof makes an assumption about a variable: {term!r}")


def _find_witness(
    claim: Claim, statement: Statement, effort: Effort, guesses: int | None = None
) -> tuple[Witness | None, str | Fault]:
    """Return a certified witness or None, and why the search stopped, if it failed."""
    from .refute import refute

    given = statement.givens
    try:
        found = refute(
            claim,
            given,
            statement.assume,
            statement.laws,
            limit_seconds=effort.limit,
            shrinking=effort.shrinking,
            guesses=guesses,
        )
    except OutOfTime as late:
        return None, str(late)
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        fault = fault_of(error, (), (ArithmeticError, LookupError, TypeError, ValueError))
        told = f"the search for a witness stopped with {type(error).__name__}: {error}"
        return None, told if fault is None else fault
    return found, ""


@dataclass
class _BriefSearch:
    """A brief search for a witness, made once, when the first way to a proof has failed."""

    claim: Claim
    statement: Statement
    effort: Effort
    searched: bool = False
    witness: Witness | None = None

    def __call__(self) -> bool:
        if self.effort.refuting and not self.searched:
            self.searched = True
            brief = replace(self.effort, limit=min(BRIEF_SECONDS, self.effort.limit))
            self.witness, _ = _find_witness(self.claim, self.statement, brief)
        return self.witness is not None


def _claimed(claim: Claim) -> tuple[object, ...]:
    """Return what a proof of the claim must show, in the form that the kernel's ``close`` takes."""
    if claim.relation == "exists":
        return ("exists", *compared(claim), claim.variable, claim.free_of, claim.inner)
    return (claim.relation, *compared(claim))


def _conditions(claim: Claim, statement: Statement) -> tuple[Condition, ...]:
    """Return the conditions on divisors, roots, logarithms and depths that a reader must accept.

    They come from everything that is written: the sides, the author's steps, the witness and the
    hypotheses.
    """
    return conditions(*_written_terms(claim, statement), facts=granted(statement))


def _expected(claim: Claim, statement: Statement) -> tuple[str, ...]:
    written = _written_terms(claim, statement)
    return ("every expectation in the statement exists",) if expectations(*written) else ()


def _written_terms(claim: Claim, statement: Statement) -> tuple[Term, ...]:
    told = [*claim.at_witness().terms(), *(t for pair in statement.assume for t in pair)]
    told += [t for law in statement.laws for t in law.claim.terms()]
    if claim.witness is not None:
        told.append(claim.witness)
    return tuple(told)


def _assumption_text(assumption: tuple[str, Term]) -> str:
    name, term = assumption
    if name == "equal":
        left, right = _law_sides(term)
        every = " for all values of its variables" if term.data else ""
        return f"{left!r} = {right!r}{every}"
    if name in ("nonnegative", "positive", "nonzero") and term.op not in ("var", "function"):
        sign = {"nonnegative": ">= 0", "positive": "> 0", "nonzero": "is not 0"}[name]
        return f"{term!r} {sign}"
    attempt = term.data[0] if term.op == "function" else repr(term)
    return f"{attempt} is {'a ' if name == 'permutation' else ''}{name}"


def _law_sides(term: Term) -> tuple[Term, Term]:
    """Return the two sides of an assumed law, with its variables named x0, m1, and so on."""
    if not term.data:
        return term.args[0], term.args[1]
    kinds = term.data
    names = [
        make("var", (), (f"x{k}" if kind != "natural" else f"m{k}", kind), shape)
        for k, (kind, shape) in enumerate(kinds)
    ]
    return instantiate(term.args[0], *names), instantiate(term.args[1], *names)
