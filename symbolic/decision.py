"""What the symbolic side found out about a statement, as plain data for records and reports."""

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
    """One application of a kernel rule: where, which, to what, giving what.

    ``path`` counts arguments from the root of ``before`` (the whole term) down to the rewritten
    part; ``part`` and ``becomes`` are that part before and after, ``around`` what it stands in.
    Indices that the path passes are open as ``opened``.  ``signs`` are the steps to the signs that
    the rule asks for.
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
        """The whole term that the rule is applied in."""
        return self.around(self.part)

    @property
    def after(self) -> Term:
        """The whole term that comes of it."""
        return self.around(self.becomes)


@dataclass(frozen=True)
class LinkProof:
    """One link of a chain, left = right, with its reason and its kernel steps.

    ``meeting`` holds, for each index pattern, the normal form in which both sides meet.
    ``steps`` is the number of kernel steps and ``rules`` how often each rule was used;
    ``derivation`` is the whole of it (``symbolic.steps.flatten`` lists its steps).
    """

    reason: str
    left: Term
    right: Term
    derivation: Derivation | None
    steps: int
    rules: dict[str, int]
    seconds: float
    proved: bool
    why_not: str = ""
    meeting: tuple[tuple[tuple[Term, ...], Term], ...] = ()


@dataclass(frozen=True)
class Witness:
    """Concrete small inputs for which a claim fails, with a certified gap.

    ``sizes`` and ``values`` are exact (ints, Fractions, nested lists of them); ``left`` and
    ``right`` are the two sides at ``place`` as short decimals, ``gap`` a number that
    |left - right| is at least, and ``text`` one line a person reads.
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
    """proved, refuted, misread or undecided, for one conclusion; or an internal error.

    One conclusion or hypothesis that is misread leaves nothing of its statement to decide: all are
    misread, and ``misreading`` says where.

    ``readings`` are conditions under which a proved conclusion means what it says: that a
    divisor is not 0, a root not of a negative number.  ``fault`` is what code of ours raised
    before anything was decided.  ``derivation`` is that of a proof, the one the kernel replayed.
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
    """misread or refuted if a conclusion is, proved if all are; else an error, or undecided."""

    claims: tuple[ClaimDecision, ...] = field(default_factory=tuple)

    @property
    def verdict(self) -> str:
        """The verdict on the whole statement."""
        verdicts = [claim.verdict for claim in self.claims]
        for word in ("misread", "refuted", "internal error"):
            if word in verdicts:
                return word
        return "proved" if verdicts and set(verdicts) == {"proved"} else "undecided"
