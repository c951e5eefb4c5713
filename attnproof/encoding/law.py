"""Laws: statements with a hole for an encoding.

A law is a function of an encoding and of the things that it is about.  Its parameters are names of
:mod:`~attnproof.encoding.names`, and it returns a conclusion (or a dict of them), as a theorem
does.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..symbolic.array import as_array
from ..symbolic.budget import seconds_left
from ..symbolic.claim import Claim, Instance
from ..symbolic.claim import Law as Hypothesis
from ..symbolic.givens import Given
from ..symbolic.prove import Effort, decide
from ..symbolic.refusals import arrays_only
from ..symbolic.statement import Statement, equations_and_laws
from ..symbolic.terms import Term, postorder
from .base import Encoding
from .conformance import require_no_state, require_read
from .names import LAW_SIZES, letters, named, require_own_names, size_names

Body = Callable[..., Any]


@dataclass(frozen=True)
class Answer:
    """The result of a law that decides by itself, without a statement for the kernel.

    ``verdict`` is proved, refuted or undecided; ``how`` says why in a line, with the witness if it
    is refuted; ``claimed`` is the question in words; ``certified_by`` says what vouches for the
    answer; ``rules`` counts the rules that were used; ``under`` are the hypotheses that it needs,
    in words, and ``obeyed`` those that the witness of a refutation obeys; ``readings`` are phrases
    that follow "if", the conditions under which the formulas stand for numbers.
    """

    verdict: str
    how: str
    claimed: str
    certified_by: str
    rules: Mapping[str, int] = field(default_factory=dict)
    under: tuple[str, ...] = ()
    obeyed: tuple[str, ...] = ()
    readings: tuple[str, ...] = ()


Applies = Callable[[type[Encoding]], str]


def always(_: type[Encoding]) -> str:
    """Return "": the law applies to every encoding."""
    return ""


@dataclass(eq=False)
class EncodingLaw:
    """A law: what it says, and which encodings it applies to.

    ``some`` says that the law claims a difference for some inputs, and not an equality for all: its
    function states the contrary, so the law is proved by a witness against that statement, and
    refuted by its proof.  ``example`` and ``breaks`` name encodings that obey and break the law,
    and the negative control is a nearby statement that fails for the example; the tests check all
    three.
    """

    id: str
    title: str
    group: str
    body: Body
    example: str
    breaks: str
    some: bool = False
    applies: Applies = always
    given: Mapping[str, Callable[[Encoding], Given]] = field(default_factory=dict)
    control_body: Body | None = None
    control_says: str = ""

    @property
    def words(self) -> str:
        """The docstring of the function."""
        return inspect.getdoc(self.body) or ""

    def negative_control(self, says: str) -> Callable[[Body], Body]:
        """Declare the negative control: a nearby statement that is false for the example."""

        def wrap(body: Body) -> Body:
            self.control_body, self.control_says = body, says
            return body

        return wrap

    def statement(
        self, encoding: Encoding, under: Sequence[str] = (), *, in_a_row: bool = False
    ) -> Statement | Answer:
        """Return what the law claims of this encoding, under the hypotheses of it that are named.

        ``in_a_row``: for consecutive whole positions only.
        """
        return stated(self.body, encoding, self.given, under, in_a_row=in_a_row)

    def places_tokens(self, kind: type[Encoding]) -> bool:
        """Whether it involves many whole positions at once."""
        return kind.whole and not {"u", "p"}.isdisjoint(self.letters)

    @property
    def letters(self) -> tuple[str, ...]:
        """The names that it uses."""
        return tuple(inspect.signature(self.body).parameters)[1:]

    def control(self, encoding: Encoding, under: Sequence[str] = ()) -> Statement | Answer:
        """Return the negative control, applied to this encoding."""
        if self.control_body is None:
            raise TypeError(
                f"the law {self.id} has no negative control; declare one with negative_control"
            )
        return stated(self.control_body, encoding, self.given, under)


def law(
    title: str,
    *,
    group: str,
    example: str,
    breaks: str,
    some: bool = False,
    applies: Applies = always,
    given: Mapping[str, Callable[[Encoding], Given]] | None = None,
) -> Callable[[Body], EncodingLaw]:
    """Declare a law; its id is the name of the function, with hyphens."""

    def wrap(body: Body) -> EncodingLaw:
        name = body.__name__.replace("_", "-")
        return EncodingLaw(
            name, title, group, body, example, breaks, some, applies, dict(given or {})
        )

    return wrap


def stated(
    body: Body,
    encoding: Encoding,
    given: Mapping[str, Callable[[Encoding], Given]],
    under: Sequence[str] = (),
    *,
    in_a_row: bool = False,
) -> Statement | Answer:
    """Return the statement that a law's function makes about an encoding.

    Raises :class:`~attnproof.symbolic.gate.Misread` if the encoding's code is not what its terms
    say.
    """
    require_own_names(encoding)
    require_no_state(encoding)
    require_read(type(encoding))
    names = list(inspect.signature(body).parameters)[1:]
    given_, values = dict(encoding.declared()), {}
    for name in names:
        own, value = named(name, encoding, given, in_a_row)
        clash = set(own) & set(given_)
        if clash:
            raise TypeError(
                f"{type(encoding).__name__} has a parameter {min(clash)!r}, which is the name of "
                "something that laws speak of; call it by another name"
            )
        given_.update(own)
        values[name] = value
    with arrays_only(type(encoding).__name__):
        result = body(encoding, **values)
    if isinstance(result, Answer):
        return result
    claims = dict(result) if isinstance(result, Mapping) else {"": result}
    claims = {k: v.claim if isinstance(v, Hypothesis) else v for k, v in claims.items()}
    assumed = list(claims.pop("assume", ()))
    for name in under:
        assumed += _supposed(encoding, name, values)
    equations, laws = equations_and_laws(assumed)
    shown = _facts(encoding, names, given_, equations, laws)
    claims = {k: v.with_facts(*v.using, *shown.values()) for k, v in claims.items()}
    claims = {says: _general(fact).claim for says, fact in shown.items()} | claims
    used = _names([*claims.values(), *(told.claim for told in laws)], equations)
    kept = {name: g for name, g in given_.items() if name in used}
    for name in sorted(size_names(_sides(claims.values(), equations)) & set(given_)):
        raise TypeError(
            f"{type(encoding).__name__}: {name} is the name of a given and of a length; call one "
            "of them by another name"
        )
    return Statement(kept, claims, tuple(equations), tuple(laws))


def _supposed(encoding: Encoding, name: str, values: Mapping[str, Any]) -> list[Any]:
    """Return what a hypothesis of the encoding says about the parameters and the names it takes."""
    taken = letters(encoding, name)
    if not set(taken) <= set(values):
        raise TypeError(
            f"{type(encoding).__name__}.{name} uses {', '.join(taken)}, which this law does not "
            f"have"
        )
    said: list[Any] = getattr(encoding, name)(**{letter: values[letter] for letter in taken})
    for one in said:
        claim = one.claim if isinstance(one, Hypothesis) else one
        if isinstance(claim, Claim):
            said_of = _names([claim], []) - {own for own, _ in claim.variables}
        else:
            left, right = claim
            pair = (as_array(left).term, as_array(right).term)
            said_of = _names([], [pair]) | (size_names(pair) & LAW_SIZES)
        sides = _sides([claim] if isinstance(claim, Claim) else [], [])
        strange = sorted(
            (said_of - set(encoding.declared()) - set(taken)) | (size_names(sides) & LAW_SIZES)
        )
        if strange:
            raise TypeError(
                f"{type(encoding).__name__}.{name} uses {strange[0]}; a hypothesis may only "
                "use the parameters and the names that it takes"
            )
    return said


def _facts(
    encoding: Encoding,
    names: list[str],
    given: Mapping[str, Given],
    equations: list[tuple[Term, Term]],
    laws: list[Hypothesis],
) -> dict[str, Hypothesis | Instance]:
    """Return the facts of the encoding that use only these names and are proved.

    They precede what a law claims.  A fact that is not proved is left out, so that it cannot refute
    the law.
    """
    told = {
        says: fact
        for says, fact in encoding.facts().items()
        if _free_in(fact) - set(encoding.declared()) <= set(names)
    }
    if not told:
        return {}
    claims = {says: _general(fact).claim for says, fact in told.items()}
    effort = Effort(refuting=False, whole=seconds_left() / 2)  # the law itself has the other half
    found = decide(Statement(given, claims, tuple(equations), tuple(laws)), effort=effort)
    return {one.says: told[one.says] for one in found.claims if one.verdict == "proved"}


def _general(fact: Hypothesis | Instance) -> Hypothesis:
    """Return the law of which a fact is an instance; for a law, the law itself."""
    return fact.law if isinstance(fact, Instance) else fact


def _free_in(fact: Hypothesis | Instance) -> set[str]:
    """Return the names that a fact uses; a law at given values uses only those in the values."""
    if isinstance(fact, Instance):
        parts = {part for value in fact.values for part in postorder(value)}
        return {str(t.data[0]) for t in parts if t.op in ("var", "call") and t.data}
    return {name for name, _ in fact.claim.variables}


def _names(claims: list[Claim], equations: list[tuple[Term, Term]]) -> set[str]:
    """Return every name that occurs in the claims and the equations."""
    parts = {part for term in _sides(claims, equations) for part in postorder(term)}
    return {
        str(t.data if t.op == "index" else t.data[0])
        for t in parts
        if t.op in ("var", "call", "index") and t.data
    }


def _sides(claims: Iterable[Claim], equations: list[tuple[Term, Term]]) -> list[Term]:
    """Return every term of the claims and the equations."""
    terms = [side for pair in equations for side in pair]
    return [*terms, *(term for claim in claims for term in claim.terms())]
