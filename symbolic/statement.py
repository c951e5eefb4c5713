"""Statements and theorems: claims about givens, and the functions that declare them.

Importing a theorem file proves nothing.  Its function is run on symbolic arrays when the statement
is first needed, and the resulting statement is what the kernel proves, the refuter attacks, torch
runs, and the report prints.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .array import as_array
from .bodies import Code
from .claim import (
    NO_CONTRADICTION,
    Claim,
    Law,
    claims_made,
    fresh_numbering,
    name_of,
)
from .givens import Given
from .refusals import arrays_only, demand
from .terms import Term, free, is_opened, names

if TYPE_CHECKING:
    from .candidates import Candidate
    from .gate import Misreading

__all__ = ["Claim", "Law", "OutsideAxis", "Statement", "Theorem", "theorem"]


class OutsideAxis(IndexError):
    """Raised for a slice or an index that is not shown to stay inside its axis."""


@dataclass(frozen=True)
class Statement:
    """Givens and conclusions; ``assume`` holds equations of arrays taken as true.

    ``laws`` are the hypotheses other than plain equations of the givens: those for all values of
    further variables, or with another relation.  ``code`` is the code that the statement was made
    from, which the gate runs; a statement made of terms has none.
    """

    givens: Mapping[str, Given]
    claims: Mapping[str, Claim]
    assume: tuple[tuple[Term, Term], ...] = ()
    laws: tuple[Law, ...] = ()
    code: Code | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Refuse bound variables that are used outside of their binders."""
        for term, v in self.unbound():
            if is_opened(v):
                raise TypeError(
                    f"{v!r} is bound elsewhere and free in {term!r}; the variables that for_all, "
                    "exists, rows, iterate and over pass to their bodies are undefined outside them"
                )

    @property
    def hypotheses(self) -> tuple[Claim, ...]:
        """All hypotheses as claims: the equations, then the laws."""
        equations = (Claim("=", left, right) for left, right in self.assume)
        return (*equations, *(law.claim for law in self.laws))

    def unbound(self) -> Iterator[tuple[Term, Term]]:
        """Yield variables that are neither given nor bound, each with a term that contains it."""
        given = {g.named(name).term for name, g in self.givens.items() if g.kind != "function"}
        said = [(told, given) for pair in self.assume for told in pair]
        for claim in (*self.claims.values(), *(law.claim for law in self.laws)):
            bound = {g.named(name).term for name, g in claim.variables}
            bound |= {claim.variable} if claim.variable is not None else set()
            said += [(term, given | bound) for term in claim.terms()]
        for term, known in said:
            for v in sorted(free(term) - known, key=repr):
                if v.op in ("var", "index"):
                    yield term, v

    def example(self, seconds: float) -> Candidate | None:
        """Return exact sizes and values that satisfy all hypotheses, or None if none were found.

        They are searched for until found once.
        """
        from .refute import find_example  # loads ball arithmetic, rarely needed

        found: Candidate | None = vars(self).get("_example")
        if found is None:
            found = find_example(self.givens, self.assume, self.laws, seconds)
            vars(self)["_example"] = found
        return found

    @cached_property
    def misreading(self) -> Misreading | None:
        """The first difference of code and term that the gate found, or None; computed once."""
        from .gate import misreading

        return misreading(self)


Body = Callable[..., Any]
Assume = Callable[..., list[Any]]


@dataclass(eq=False)
class Theorem:
    """A statement with its title, sources and negative control; built on first access."""

    title: str
    given: Mapping[str, Given]
    body: Body
    sources: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    expected: str = "proved"
    assume: Assume | None = None
    control_body: Body | None = None
    control_assume: Assume | None = None
    control_given: Mapping[str, Given] = field(default_factory=dict)
    control_says: str = ""

    @property
    def path(self) -> Path:
        """The file that declares it."""
        return Path(inspect.getfile(self.body))

    @property
    def place(self) -> str:
        """Its file and function, as named in errors; a function named "statement" is left out."""
        name = self.body.__name__
        return self.path.name + f", {name}" * (name != "statement")

    @property
    def words(self) -> str:
        """The statement in words: the docstring of the function."""
        return inspect.getdoc(self.body) or ""

    @cached_property
    def statement(self) -> Statement:
        """The statement on symbolic arrays."""
        return self._checked(self.body, self.given, self.assume)

    @cached_property
    def control(self) -> Statement:
        """The negative control: a nearby statement with the opposite verdict."""
        if self.control_body is None:
            raise TypeError(
                f"{self.place} has no negative control; add a function under "
                f"@{self.body.__name__}.negative_control"
                "('what is changed') that returns a nearby statement with the opposite verdict"
            )
        assume = self.assume if self.control_assume is None else self.control_assume
        return self._checked(self.control_body, {**self.given, **self.control_given}, assume)

    def _checked(self, body: Body, given: Mapping[str, Given], assume: Assume | None) -> Statement:
        """Return the statement; its code is run twice and must give the same statement."""
        with fresh_numbering():
            built = self._build(body, given, assume)
        with fresh_numbering():
            again = self._build(body, given, assume)
        if meaning(built) != meaning(again):
            raise TypeError(
                f"{self.place}: {body.__name__} returns another statement when it is run again; "
                "it keeps state between calls, or draws random numbers: compute everything anew"
            )
        return built

    def _build(self, body: Body, given: Mapping[str, Given], assume: Assume | None) -> Statement:
        wanted = self._parameters(body, body.__name__, given)
        _require_one_length(self.place, [n for g in given.values() for n in g.lengths])
        values = {name: g.named(name) for name, g in given.items()}
        with arrays_only(f"{self.place}: {body.__name__}", body), claims_made() as made:
            result = body(**{name: values[name] for name in wanted})
        claims = dict(result) if isinstance(result, Mapping) else {"": result}
        if not claims:
            raise TypeError(f"{self.place}: {body.__name__} claims nothing; it returned {{}}")
        claims = {says: c.claim if isinstance(c, Law) else c for says, c in claims.items()}
        for says, claim in claims.items():
            demand(
                says, str, f"{self.place}: a conclusion of {body.__name__} wants a text as its key"
            )
            if not isinstance(claim, Claim):
                raise TypeError(
                    f"{self.place}: {body.__name__} returned {type(claim).__name__}"
                    f"{f' as {says!r}' if says else ''}; return equal(..), chain(..), "
                    "all_positive(..), exists(..), at_least(..), differ(..), for_all(..), or a "
                    "dict of them"
                )
            if claim.compared == "!=" and claim.apart is None:
                raise TypeError(f"{self.place}: {NO_CONTRADICTION}")
        for lost in _dropped(made, claims.values()):
            raise TypeError(
                f"{self.place}: {body.__name__} makes a claim of "
                f"{' and '.join(map(repr, lost.sides))}, and does not return it; return a dict of "
                "all claims, each with words of its own"
            )
        used: set[str] = set(wanted)
        listed: Any = ()
        if assume is not None:
            names = [] if assume is list else self._parameters(assume, "`assume`", given)
            used |= set(names)
            with arrays_only(f"{self.place}: `assume`", assume):
                listed = assume(**{name: values[name] for name in names})
        equations, laws = equations_and_laws(self._hypotheses(listed))
        require_names(self.place, given, claims.values())
        for term, v in Statement({}, claims, tuple(equations), tuple(laws)).unbound():
            name = str(v.data if v.op == "index" else v.data[0])
            if name not in given or given[name].named(name).term is not v:
                raise TypeError(
                    f"{self.place}: {v!r} is not given, and {body.__name__} uses it in {term!r}; "
                    "name it in `given` and take it as a parameter"
                )
            used.add(name)
        kept = {k: g for k, g in given.items() if k in used}
        code = Code(body, None if assume is list else assume)
        statement = Statement(kept, claims, tuple(equations), tuple(laws), code)
        self._check_ranges(statement)
        return statement

    def _parameters(self, code: Body, called: str, given: Mapping[str, Given]) -> list[str]:
        """Return the parameters of a function; raise ``TypeError`` if one is not given."""
        wanted = list(inspect.signature(code).parameters)
        missing = [name for name in wanted if name not in given]
        if missing:
            raise TypeError(
                f"{self.place}: {called} asks for {', '.join(missing)}, which `given` does not "
                f"name; it names {', '.join(given) or 'nothing'}"
            )
        return wanted

    def _hypotheses(self, listed: Any) -> Iterator[Any]:
        demand(listed, (list, tuple), f"{self.place}: `assume` must return a list of hypotheses")
        for taken in listed:
            demand(taken, _is_hypothesis, f"{self.place}: {HYPOTHESIS}")
            yield taken

    def _check_ranges(self, statement: Statement) -> None:
        """Refuse a slice or an index that is not shown to stay inside its axis."""
        from .prove import ranges_of  # loads the rules; declaring should be quick

        leaves, _ = ranges_of(statement, statement.claims.values())
        if leaves:
            raise OutsideAxis(f"{self.place}: {leaves}")

    def negative_control(
        self, says: str, /, assume: Assume | Given | None = None, **given: Given
    ) -> Callable[[Body], Body]:
        """Declare the negative control: a nearby statement with the opposite verdict.

        Givens that it does not name are those of the theorem, and so are the hypotheses unless it
        has ``assume``.  A given may itself be called ``assume``.
        """
        if isinstance(assume, Given):
            given = {"assume": assume, **given}
            assume = None

        def wrap(body: Body) -> Body:
            self.control_body, self.control_says, self.control_given = body, says, given
            self.control_assume = assume
            return body

        return wrap


HYPOTHESIS = (
    "a hypothesis is a pair of equal arrays, a claim such as at_least(x, 0), or a law (for_all)"
)


def _is_hypothesis(taken: Any) -> bool:
    return isinstance(taken, Claim | Law) or (isinstance(taken, tuple) and len(taken) == 2)


def equations_and_laws(assumed: Iterable[Any]) -> tuple[list[tuple[Term, Term]], list[Law]]:
    """Return the hypotheses that equate two arrays, as pairs of terms, and all others as laws."""
    equations: list[tuple[Term, Term]] = []
    laws: list[Law] = []
    for taken in assumed:
        claim = taken.claim if isinstance(taken, Law) else taken
        if not isinstance(claim, Claim):
            left, right = claim
            equations.append((as_array(left).term, as_array(right).term))
        elif claim.relation == "=" and not claim.variables and claim.right is not None:
            equations.append((claim.left, claim.right))
        else:
            laws.append(taken if isinstance(taken, Law) else Law(claim))
    return equations, laws


def require_names(place: str, given: Mapping[str, Given], claims: Iterable[Claim]) -> None:
    """Refuse one name for two things, which a reader or an evaluator would confuse."""
    names = dict(given)
    lengths = [n for g in given.values() for n in g.lengths]
    for claim in claims:
        lengths += [claim.left, *([claim.right] if claim.right is not None else [])]
        if claim.variable is not None and name_of(claim.variable) in given:
            raise TypeError(
                f"{place}: {name_of(claim.variable)} is the name of a given and of the array that "
                "exists; rename one of them"
            )
        for name, own in claim.variables:
            other = names.setdefault(name, own)
            if (own.kind, own.lengths) != (other.kind, other.lengths):
                raise TypeError(
                    f"{place}: a conclusion quantifies over {name}, which is already the name of "
                    "something else; rename one of them"
                )
    for called in _require_one_length(place, lengths):
        if called in names:
            raise TypeError(
                f"{place}: {called} is the name of a given and of a length; rename one of them"
            )


def _dropped(made: Iterable[Claim], returned: Iterable[Claim]) -> Iterator[Claim]:
    """Yield the claims that were made, and are part of no claim that was returned.

    A claim that mentions a bound variable is part of the claim of its binder.
    """
    kept = list(returned)
    kept += [fact.law.claim for claim in kept for fact in claim.using]
    said = {(claim.compared, claim.left, claim.right) for claim in kept}
    for claim in made:
        within = any(is_opened(v) for v in names(*claim.sides))
        if not within and (claim.compared, claim.left, claim.right) not in said:
            yield claim


def _require_one_length(place: str, terms: Iterable[Term]) -> dict[str, Term]:
    """Return the lengths in these terms by name; refuse two lengths that are printed alike."""
    found: dict[str, Term] = {}
    for length in (v for t in terms for v in free(t) if v.op in ("size", "space")):
        name, role = length.data
        other = found.setdefault(name, length)
        if other is not length:
            first, second = sorted((other.data[1], role))
            raise TypeError(
                f"{place}: two lengths are called {name}, one of the role {first!r} and one of "
                f"{second!r}; make it once, ({name},) = sizes({name!r}, {first!r}), or rename one"
            )
    return found


def meaning(statement: Statement) -> object:
    """Return what a statement says, without the facts it is to be shown with, for comparison."""
    claims = (*statement.claims.values(), *(law.claim for law in statement.laws))
    said = tuple(replace(claim, using=()) for claim in claims)
    return dict(statement.givens), statement.assume, tuple(statement.claims), said


def theorem(
    title: str,
    *,
    given: Mapping[str, Given],
    sources: tuple[str, ...] = (),
    claims: tuple[str, ...] = (),
    expected: str = "proved",
    assume: Assume | None = None,
) -> Callable[[Body], Theorem]:
    """Declare a theorem; the function's parameters are names from ``given``.

    ``expected`` is "proved", "refuted" for a common statement that is false, or "ill-typed" for
    one whose shapes do not fit.  ``assume`` returns the hypotheses: pairs of equal arrays, claims,
    and laws (``for_all``).
    """
    demand(given, Mapping, "`given` wants a mapping from parameter names: given={'X': real(n)}")
    for name, kind in given.items():
        demand(kind, Given, f"given[{name!r}] wants a given for {name}, such as real(n)")
    demand(sources, tuple, "`sources` wants a tuple of texts: sources=('Vaswani et al. 2017',)")
    if assume is not None:
        demand(assume, callable, "`assume` wants a function that returns a list of hypotheses")

    def wrap(body: Body) -> Theorem:
        return Theorem(title, given, body, sources, claims, expected, assume)

    return wrap
