"""What every rule needs: refusal, assumptions, fresh indices."""

from __future__ import annotations

from itertools import count

from ..scalars import index
from ..terms import Term, free

Assumption = tuple[str, Term]
Result = tuple[Term, frozenset[Assumption]]
Facts = frozenset[Assumption]
NOTHING: Facts = frozenset()


class Refused(Exception):
    """The kernel does not accept a step; the text names the rule and what was missing.

    The terms that it names are written out when it is read: a search meets many refusals.
    """

    def __str__(self) -> str:
        return "; ".join([str(self.args[0]), *map(repr, self.args[1:])])


def need(condition: object, rule: str, why: str, *terms: Term) -> None:
    """Refuse a step unless its side condition holds."""
    if not condition:
        raise Refused(f"{rule}: {why}", *terms)


def fresh(length: Term, *avoid: Term) -> Term:
    """An index variable of an axis that occurs in none of the terms."""
    taken = {variable.data for term in avoid for variable in free(term)}
    name = next(n for k in count() if (n := f"j{k}") not in taken)
    return index(name, length)
