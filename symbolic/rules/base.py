"""What every rule of the kernel uses: refusals, assumptions, arguments and comparisons."""

from __future__ import annotations

from contextlib import ContextDecorator

from ..terms import Term

Assumption = tuple[str, Term]
Result = tuple[Term, frozenset[Assumption]]
Facts = frozenset[Assumption]
NOTHING: Facts = frozenset()


class Refused(Exception):
    """Raised when the kernel rejects a step; the message names the rule and the failed condition.

    Its terms are printed only when the message is read, since a search meets many refusals.
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
    """Return the argument of a term at a place; negative places are refused."""
    need(type(place) is int and 0 <= place < len(t.args), "no such argument", t)
    assert isinstance(place, int)
    return t.args[place]


def compared(t: Term, *ops: str) -> tuple[str, Term, Term]:
    """Return the operation and the sides of a comparison [a = b], [a < b] or [a <= b].

    Any other term, and a comparison with an operation not listed, is refused.
    """
    need(t.op == "indicator" and t.args[0].op in ops, "not a comparison of that kind", t)
    a, b = t.args[0].args
    return t.args[0].op, a, b


class Refusing(ContextDecorator):
    """A context in which refusals are attributed to a rule, unless an inner one named its own."""

    def __init__(self, rule: str) -> None:
        self.rule = rule

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if isinstance(error, Refused):
            error.rule = error.rule or self.rule
