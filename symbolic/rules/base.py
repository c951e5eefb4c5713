"""What every rule needs: refusal, assumptions."""

from __future__ import annotations

from ..terms import Term

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
