"""Values in a field that obey the hypotheses of a statement, from values that need not.

They are met in this order.  A given number alone on one side of an equation is replaced by the
other side, in the claim and in every other hypothesis.  Hypotheses about whole numbers and maps
are tried on other small ones.  Then, in every field: a product of two givens that is the
identity (orthonormal columns as a product of reflections, or an inverse); a row of a given alone
on one side; equations that are linear in one given, by elimination; quadratic equations in one
entry of every row.

Every hypothesis is looked at in the end, entry by entry.  One that is not obeyed, or says
something that has no meaning in a field (an order), makes no value wrong: a claim that holds
without it holds with it.  Only nothing that contradicts the claim is then believed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from attnproof.symbolic.claim import Claim, Law
from attnproof.symbolic.statement import Statement

from ..hypotheses_hold import Unsatisfiable, index_values
from ..walk import TooLarge
from .hypothesis import NO_ORDER, NUMBERS, Hypothesis
from .obeying import Obeying
from .residue import NoResidue

if TYPE_CHECKING:
    from .reading import ResidueReading

__all__ = ["Hypotheses"]


@dataclass
class Hypotheses:
    """What a statement takes for granted, and what became of it in the fields of one tower.

    ``unmet`` says of each hypothesis that is not known to be obeyed why; ``solved`` that some
    values are solutions of equations, and not uniform in what they may be; ``partly`` that some
    are obeyed in some of the fields, maybe; ``too_large`` that smaller sizes might do.
    """

    statement: Statement
    angles: frozenset[str] = frozenset()
    unmet: dict[str, str] = field(default_factory=dict)
    solved: bool = False
    partly: bool = False
    too_large: bool = False

    @property
    def all(self) -> list[Hypothesis]:
        """Equations first."""
        equations = [Hypothesis(Claim("=", a, b)) for a, b in self.statement.assume]
        return equations + [Hypothesis(law.claim) for law in self.statement.laws]

    @property
    def names(self) -> frozenset[str]:
        """The givens they speak of."""
        return frozenset[str]().union(*(h.names for h in self.all))

    def told(self) -> str:
        """What is not known to be obeyed, and why."""
        whys = dict.fromkeys(self.unmet.values())
        groups = {why: [k for k, v in self.unmet.items() if v == why] for why in whys}
        return "; ".join(f"{', '.join(what)} ({why})" for why, what in groups.items())

    def without(self) -> str:
        """That the claim held without some of them, in words."""
        return f"; it holds without the hypothesis {' and '.join(self.unmet)}" if self.unmet else ""

    def obeyed(self, read: ResidueReading) -> dict[str, Any]:
        """Values of one level that obey the hypotheses; those that they do not are noted.

        What is not obeyed in the end has no part in the values.
        """
        able = [h for h in self.all if not h.whole and not self._foreign(h)]
        while True:
            obeying = Obeying(read, self.statement.givens)
            values = self._changed(able, obeying)
            whys = {str(h): why for h in able if (why := obeying.broken(h, values))}
            self.solved |= obeying.solved
            self.too_large |= obeying.too_large
            if not whys:
                self.unmet.update(obeying.unsure)
                return values
            self.unmet.update(whys)
            self.partly = True
            able = [h for h in able if str(h) not in whys]

    def _changed(self, able: list[Hypothesis], obeying: Obeying) -> dict[str, Any]:
        """The values as drawn, changed so that these equations hold, if that can be done."""
        values = dict(obeying.read.values)
        equations = [h for h in able if h.claim.relation == "="]
        for h in equations:
            obeying.form(h, values)
        broken = [h for h in equations if obeying.broken(h, values)]
        if broken:
            obeying.solve(broken, equations, values)
        return values

    def breaks_whole(self, values: Mapping[str, Any], sizes: Mapping[str, int]) -> dict[str, str]:
        """The hypotheses about whole numbers that these do not obey, and why."""
        found = {}
        for h in (h for h in self.all if h.whole):
            try:
                every = index_values(Law(h.claim), dict(sizes))
                broken = any(not h.holds({**values, **at}, sizes) for at in every)
                why = "no whole numbers were found that obey it" if broken else ""
            except (NoResidue, TypeError, Unsatisfiable, TooLarge) as error:
                why = str(error)
                self.too_large |= isinstance(error, TooLarge) or getattr(error, "too_large", False)
            if why:
                found[str(h)] = why
        return found

    @property
    def whole_names(self) -> frozenset[str]:
        """The givens that hypotheses about whole numbers speak of."""
        return frozenset[str]().union(*(h.names for h in self.all if h.whole))

    def _foreign(self, h: Hypothesis) -> bool:
        """Whether nothing can be done for a hypothesis here."""
        kinds = {name: self.statement.givens[name].kind for name in h.names}
        why = ""
        if h.claim.relation in (">", ">="):
            why = NO_ORDER
        elif any(kind == "function" for kind in kinds.values()):
            why = "functions that obey a law are not drawn"
        elif turned := sorted(self.angles & {k for k, kind in kinds.items() if kind in NUMBERS}):
            why = f"{turned[0]} is an angle, and those are drawn by themselves"
        elif h.claim.relation == "exists":
            why = "nothing is looked for in a field"
        if why:
            self.unmet[str(h)] = why
        return bool(why)
