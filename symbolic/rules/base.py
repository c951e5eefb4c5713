"""What every rule needs: refusal, assumptions."""

from __future__ import annotations

from contextlib import ContextDecorator

from ..terms import Term

Assumption = tuple[str, Term]
Result = tuple[Term, frozenset[Assumption]]
Facts = frozenset[Assumption]
NOTHING: Facts = frozenset()


class Refused(Exception):
    """The kernel does not accept a step; the text names the rule and what was missing.

    The terms that it names are written out when it is read: a search meets many refusals.
    """

    rule = ""

    def __str__(self) -> str:
        why = f"{self.rule}: {self.args[0]}" if self.rule else str(self.args[0])
        return "; ".join([why, *map(repr, self.args[1:])])


def need(condition: object, why: str, *terms: Term) -> None:
    """Refuse a step unless its side condition holds."""
    if not condition:
        raise Refused(why, *terms)


def argument(t: Term, place: object) -> Term:
    """The argument of a term at a place, which is not counted from the end."""
    need(type(place) is int and 0 <= place < len(t.args), "no such argument", t)
    assert isinstance(place, int)
    return t.args[place]


def compared(t: Term, *ops: str) -> tuple[str, Term, Term]:
    """The operation and the sides of [a = b], [a < b] or [a <= b], if it is one of these."""
    need(t.op == "indicator" and t.args[0].op in ops, "not a comparison of that kind", t)
    a, b = t.args[0].args
    return t.args[0].op, a, b


class Refusing(ContextDecorator):
    """What is refused inside is refused by this rule, unless one within it did."""

    def __init__(self, rule: str) -> None:
        self.rule = rule

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if isinstance(error, Refused):
            error.rule = error.rule or self.rule
