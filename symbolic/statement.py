"""Statements and theorems: what is claimed, and the file that claims it.

A theorem file declares; nothing is proved when it is imported.  Its function is run on symbolic
arrays when somebody asks for the statement, and the one statement that results is what the
kernel proves, the refuter attacks, torch runs, and the report prints.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any

from .array import Array, as_array
from .givens import Given
from .terms import Term, bind, make

__all__ = [
    "Claim",
    "Link",
    "Statement",
    "Theorem",
    "all_positive",
    "chain",
    "equal",
    "exists",
    "iterate",
    "theorem",
]


@dataclass(frozen=True)
class Link:
    """One step of a textbook chain: the next term and the reason for it."""

    reason: str
    term: Term


@dataclass(frozen=True)
class Claim:
    """One conclusion.

    ``relation`` is "=", ">" (every entry positive), or "exists": some array ``variable``, which
    does not depend on ``free_of``, makes left = right; ``witness`` is the one the author names.
    """

    relation: str
    left: Term
    right: Term | None = None
    links: tuple[Link, ...] = ()
    variable: Term | None = None
    witness: Term | None = None
    free_of: tuple[Term, ...] = ()
    says: str = ""


def equal(left: Any, right: Any) -> Claim:
    """left = right, entry by entry."""
    return chain(left, ("", right))


def chain(first: Any, *steps: tuple[str, Any]) -> Claim:
    """first = ... = last, each step with its reason."""
    a = as_array(first)
    links: list[Link] = []
    for reason, value in steps:
        b = as_array(value)
        if b.axes != a.axes:
            raise TypeError(
                f"a step of a chain changes the shape from {a.shape} to {b.shape}"
                + (f" (at '{reason}')" if reason else "")
            )
        links.append(Link(reason, b.term))
    return Claim("=", a.term, links[-1].term, tuple(links))


def all_positive(array: Any) -> Claim:
    """Every entry is greater than zero."""
    return Claim(">", as_array(array).term)


def exists(
    variable: Given, name: str, body: Callable[[Array], Claim], *, witness: Any = None,
    free_of: tuple[Array, ...] = (),
) -> Claim:  # fmt: skip
    """Some array of that kind, not depending on ``free_of``, satisfies the equation."""
    unknown = variable.named(name)
    claim = body(unknown)
    value = None if witness is None else as_array(witness).term
    return Claim(
        "exists", claim.left, claim.right, claim.links, unknown.term, value,
        tuple(a.term for a in free_of),
    )  # fmt: skip


@dataclass(frozen=True)
class Statement:
    """Givens and conclusions; ``assume`` holds equations of arrays taken as true."""

    givens: Mapping[str, Given]
    claims: Mapping[str, Claim]
    assume: tuple[tuple[Term, Term], ...] = ()


Body = Callable[..., Any]


@dataclass(eq=False)
class Theorem:
    """A statement with its title, sources and twin.  ``statement`` builds when asked."""

    title: str
    given: Mapping[str, Given]
    body: Body
    sources: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    expected: str = "proved"
    assume: Callable[..., list[tuple[Any, Any]]] | None = None
    twin_body: Body | None = None
    twin_given: Mapping[str, Given] = field(default_factory=dict)
    twin_says: str = ""

    @property
    def path(self) -> Path:
        """The file it stands in."""
        return Path(inspect.getfile(self.body))

    @property
    def id(self) -> str:
        """The file's name, with hyphens."""
        return self.path.stem.replace("_", "-")

    @property
    def subject(self) -> str:
        """The folder of the file."""
        return self.path.parent.name

    @property
    def words(self) -> str:
        """The statement in words: the docstring of the function."""
        return inspect.getdoc(self.body) or ""

    @cached_property
    def statement(self) -> Statement:
        """The statement on symbolic arrays."""
        return self._build(self.body, self.given)

    @cached_property
    def twin(self) -> Statement:
        """The nearby statement with the opposite verdict."""
        if self.twin_body is None:
            raise TypeError(
                f"{self.path.name} has no twin; add a function under @{self.body.__name__}.twin_of"
                "('what is changed') that returns a nearby statement with the opposite verdict"
            )
        return self._build(self.twin_body, {**self.given, **self.twin_given})

    def _build(self, body: Body, given: Mapping[str, Given]) -> Statement:
        wanted = list(inspect.signature(body).parameters)
        missing = [name for name in wanted if name not in given]
        if missing:
            raise TypeError(
                f"{self.path.name}: {body.__name__} asks for {', '.join(missing)}, which `given` "
                f"does not name; it names {', '.join(given)}"
            )
        values = {name: g.named(name) for name, g in given.items()}
        result = body(**{name: values[name] for name in wanted})
        claims = dict(result) if isinstance(result, Mapping) else {"": result}
        for says, claim in claims.items():
            if not isinstance(claim, Claim):
                raise TypeError(
                    f"{self.path.name}: {body.__name__} returned {type(claim).__name__}"
                    f"{f' as {says!r}' if says else ''}; return equal(..), chain(..), "
                    "all_positive(..), exists(..), or a dict of them"
                )
        used, pairs = set(wanted), []
        if self.assume is not None:
            names = list(inspect.signature(self.assume).parameters)
            pairs = self.assume(**{name: values[name] for name in names})
            used |= set(names)
        assumed = tuple((as_array(a).term, as_array(b).term) for a, b in pairs)
        return Statement({k: g for k, g in given.items() if k in used}, claims, assumed)

    def twin_of(self, says: str, **given: Given) -> Callable[[Body], Body]:
        """Declare the twin: a nearby statement with the opposite verdict."""

        def wrap(body: Body) -> Body:
            self.twin_body, self.twin_says, self.twin_given = body, says, given
            return body

        return wrap


_stacks = count()


def iterate(depth: Any, start: Any, layer: Callable[[Any, Any], Any]) -> Any:
    """start, then ``layer(t, state)`` for t = 0, 1, ..., depth - 1; any natural depth.

    A symbolic depth gives one term, about which the kernel reasons by induction.
    """
    if not isinstance(depth, Array):
        for t in range(depth):
            start = layer(t, start)
        return start
    a = as_array(start)
    number = next(_stacks)  # no name that anybody else has; binding makes it vanish
    at = make("index", (depth.term,), f"layer#{number}")
    state = make("var", (), (f"state#{number}", "real"), a.axes)
    body = as_array(layer(Array(at), Array(state))).term
    if body.shape != a.axes:
        raise TypeError(f"a layer takes shape {a.axes} to {body.shape}; it must keep the shape")
    return Array(make("iterate", (depth.term, a.term, bind(body, at, state)), shape=a.axes))


def theorem(
    title: str,
    *,
    given: Mapping[str, Given],
    sources: tuple[str, ...] = (),
    claims: tuple[str, ...] = (),
    expected: str = "proved",
    assume: Callable[..., list[tuple[Any, Any]]] | None = None,
) -> Callable[[Body], Theorem]:
    """Declare a theorem; the function's parameters are names from ``given``.

    ``expected`` is "proved", or "refuted" for a statement that people make and that is false.
    """

    def wrap(body: Body) -> Theorem:
        return Theorem(title, given, body, sources, claims, expected, assume)

    return wrap
