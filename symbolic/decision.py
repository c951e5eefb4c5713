"""The verdict on a statement with its proofs and witnesses, as plain data for records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from .derivation import Derivation, SignStep
from .faults import Fault
from .statement import Claim
from .terms import Term

if TYPE_CHECKING:
    from .gate import Misreading


@dataclass(frozen=True)
class Step:
    """One application of a kernel rule: the place, the rule, and the term before and after.

    ``path`` has the argument numbers from the root of ``before`` (the whole term) down to the
    rewritten part; ``part`` and ``becomes`` are that part before and after, and ``around`` puts it
    into the whole term.  ``opened`` are the bound variables opened along the path.  ``signs`` are
    the steps to the signs that the rule needs.
    """

    path: tuple[int, ...]
    opened: tuple[Term, ...]
    rule: str
    arguments: tuple[object, ...]
    part: Term
    becomes: Term
    around: Callable[[Term], Term] = field(repr=False, compare=False)
    reverse: bool = False
    signs: tuple[SignStep, ...] = ()

    @property
    def before(self) -> Term:
        """The whole term before the step."""
        return self.around(self.part)

    @property
    def after(self) -> Term:
        """The whole term after the step."""
        return self.around(self.becomes)


@dataclass(frozen=True)
class LinkProof:
    """One link of a chain, left = right, with its reason and its kernel steps.

    ``meeting`` holds, for each index pattern, the common normal form of both sides, and ``rules``
    the number of uses of each rule; ``symbolic.steps.flatten`` lists the steps of ``derivation``.
    """

    reason: str
    left: Term
    right: Term
    derivation: Derivation | None
    rules: dict[str, int]
    seconds: float
    why_not: str = ""
    meeting: tuple[tuple[tuple[Term, ...], Term], ...] = ()

    @property
    def steps(self) -> int:
        """The number of kernel steps."""
        return sum(self.rules.values())

    @property
    def proved(self) -> bool:
        """Whether it is derived."""
        return self.derivation is not None


@dataclass(frozen=True)
class Witness:
    """Small concrete inputs for which a claim fails, with a certified gap.

    ``sizes`` and ``values`` are exact (ints, Fractions, nested lists of them); ``left`` and
    ``right`` are the two sides at ``place`` as short decimals, ``gap`` is a lower bound of
    |left - right|, and ``text`` is one line for the user.
    """

    sizes: dict[str, int]
    values: dict[str, Any]
    place: tuple[int, ...]
    left: str
    right: str
    gap: Fraction
    text: str
    certified_by: str = "ball arithmetic (Arb)"


@dataclass(frozen=True)
class ClaimDecision:
    """The verdict on one conclusion: proved, refuted, misread, undecided or internal error.

    If one conclusion or hypothesis is misread, all conclusions of the statement are, and
    ``misreading`` says where.

    ``readings`` are conditions under which a proved conclusion has its usual meaning: that a
    divisor is not 0, a root not of a negative number.  ``fault`` is an error of attnproof that
    prevented a verdict.  ``derivation`` is that of the proof, as the kernel replayed it.
    """

    says: str
    claim: Claim
    verdict: str
    links: tuple[LinkProof, ...] = ()
    assumptions: tuple[str, ...] = ()
    readings: tuple[str, ...] = ()
    witness: Witness | None = None
    why: str = ""
    misreading: Misreading | None = None
    seconds: float = 0.0
    fault: Fault | None = None
    derivation: Derivation | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Decision:
    """The verdicts on all conclusions of a statement.

    The statement is misread, refuted or an internal error if one conclusion is, in this order;
    else proved if all are; else undecided.
    """

    claims: tuple[ClaimDecision, ...] = field(default_factory=tuple)

    @property
    def verdict(self) -> str:
        """The verdict on the statement: proved only if all conclusions are."""
        verdicts = [claim.verdict for claim in self.claims]
        for word in ("misread", "refuted", "internal error"):
            if word in verdicts:
                return word
        return "proved" if verdicts and set(verdicts) == {"proved"} else "undecided"
