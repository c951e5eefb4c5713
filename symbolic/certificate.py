"""Certificates: a proved statement and its derivations as plain data, which the kernel replays.

A certificate contains the statement (givens, hypotheses, conclusions) and, for each conclusion,
the derivation that the kernel followed: every application of a rule with its arguments, the steps
to the signs that it needs, and the term before and after.  A derivation is a tree, in which a rule
applied to a part of a term is below that of the term.  Nothing in a certificate need be trusted:
the assumptions that the statement grants are computed from the statement, and every step is applied
again.

A certificate is about terms.  It does not show that the terms agree with anyone's code: the gate
compared them with the code before anything was called proved.  A definition is printed by its
name, while its meaning is part of the term, so a certificate of unknown origin should be replayed
``of`` the intended statement.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, get_args

from .claim import Claim, Instance, Law, Link
from .decision import ClaimDecision, Decision, Step
from .derivation import Derivation, SignStep
from .givens import Given
from .kernel import Refused, replay
from .prove import check_proof
from .statement import Statement, Theorem, meaning, require_names
from .steps import flatten
from .terms import Opened, Term, make
from .well_formedness import formed

FORMAT = "attnproof certificate 4"
PROOFS: tuple[type, ...] = get_args(Derivation)
STEP_KINDS = {kind.__name__: kind for kind in (*PROOFS, SignStep)}
RECORDS = {kind.__name__: kind for kind in (Given, Claim, Law, Instance, Link)}
OMITTED_FIELDS = {"Given": ("extra",)}  # how values are drawn, which proofs ignore
Plain = Any  # JSON data: numbers, text, lists, dictionaries


@dataclass(frozen=True)
class Certificate:
    """A proof that can be stored, sent and replayed.

    >>> from attnproof import equal, prove, real, sizes
    >>> (n,) = sizes("n")
    >>> text = prove(lambda X: equal(X + X, 2 * X), X=real(n)).certificate().to_json()
    >>> Certificate.read(text).replay().verdict
    'proved'
    """

    statement: Statement
    derivations: Mapping[str, Derivation]

    @classmethod
    def of(cls, statement: Statement, decision: Decision) -> Certificate:
        """Return the certificate of a decision; raise ``TypeError`` if it is not "proved"."""
        found = {one.says: one.derivation for one in decision.claims if one.derivation is not None}
        if decision.verdict != "proved" or len(found) < len(decision.claims):
            raise TypeError(
                f"only a proof has a certificate, and this verdict is {decision.verdict!r}"
            )
        return cls(statement, found)

    def replay(self, of: Statement | Theorem | None = None) -> Decision:
        """Replay all derivations; return the verdict with the assumptions and conditions of each.

        ``of`` is the statement or theorem that it should prove.  Raises
        :class:`~attnproof.symbolic.kernel.Refused` at the first invalid step, for a proof of
        anything but the statement of the certificate and ``of``, and for one that rests on
        assumptions that the statement does not grant.
        """
        if of is not None:
            wanted = of.statement if isinstance(of, Theorem) else of
            if meaning(wanted) != meaning(self.statement):
                raise Refused("certificate: it belongs to another statement")
        if not self.statement.claims or self.derivations.keys() != self.statement.claims.keys():
            raise Refused("certificate: it needs exactly one derivation for each conclusion")
        return Decision(tuple(self._replayed(says) for says in self.statement.claims))

    def _replayed(self, says: str) -> ClaimDecision:
        claim, derivation = self.statement.claims[says], self.derivations[says]
        try:
            rests = check_proof(claim, self.statement, replay(derivation))
        except Exception as error:  # a malformed derivation may raise anything
            raise Refused(f"certificate: {f'{says}: ' * bool(says)}{_text(error)}") from error
        return ClaimDecision(says, claim, "proved", (), *rests, derivation=derivation)

    def steps(self) -> Iterator[dict[str, Plain]]:
        """Yield the kernel's steps in order, each as :func:`plain_step`, with its conclusion."""
        for says, derivation in self.derivations.items():
            yield from ({"says": says, **plain_step(step)} for step in flatten(derivation))

    def plain(self) -> dict[str, Plain]:
        """Return the certificate as plain data for JSON; each term and step occurs once."""
        writer = _Writer()
        stated = {
            "format": FORMAT,
            "statement": {
                "givens": [[name, writer(given)] for name, given in self.statement.givens.items()],
                "claims": [[says, writer(claim)] for says, claim in self.statement.claims.items()],
                "assume": writer(self.statement.assume),
                "laws": writer(self.statement.laws),
            },
            "proofs": [[says, writer(one)] for says, one in self.derivations.items()],
        }
        return {**stated, "terms": writer.terms, "steps": writer.steps}

    def to_json(self) -> str:
        """Return the certificate as JSON text."""
        return json.dumps(self.plain(), ensure_ascii=False) + "\n"

    @classmethod
    def read(cls, source: str | Mapping[str, Plain]) -> Certificate:
        """Return a certificate from its text or plain data; only :meth:`replay` checks the proof.

        Raises ``Refused`` for data that does not have the form of a certificate.
        """
        try:
            data = json.loads(source) if isinstance(source, str) else source
            return cls._read(data)
        except Exception as error:  # malformed data may raise anything
            raise Refused(f"certificate: it cannot be read: {_text(error)}") from error

    @classmethod
    def _read(cls, data: Mapping[str, Plain]) -> Certificate:
        if data["format"] != FORMAT:
            raise ValueError(f"wanted {FORMAT!r}, got {data['format']!r}")
        reader = _Reader(data["terms"], data["steps"])
        stated = data["statement"]
        statement = Statement(
            _unique((_name(name), reader.read(Given, given)) for name, given in stated["givens"]),
            _unique((_name(says), reader.read(Claim, claim)) for says, claim in stated["claims"]),
            tuple((_term(a), _term(b)) for a, b in reader(stated["assume"])),
            tuple(_checked(Law, law) for law in reader(stated["laws"])),
        )
        _require_stated(statement)
        proofs = _unique(
            (_name(says), reader.read(PROOFS, proof)) for says, proof in data["proofs"]
        )
        return cls(statement, proofs)


def plain_step(step: Step) -> dict[str, Plain]:
    """Return a step as text: rule, arguments, path, before, after.

    ``path`` has the argument numbers from the root of ``before`` to the part that is rewritten.
    """
    return {
        "rule": step.rule,
        "arguments": [repr(one) for one in step.arguments],
        "path": list(step.path),
        "before": repr(step.before),
        "after": repr(step.after),
    }


class _Writer:
    """Writes values as plain data; terms and derivations as their positions in a list."""

    def __init__(self) -> None:
        self.terms: list[Plain] = []
        self.steps: list[Plain] = []
        self.places: dict[int, int] = {}  # by identity: the statement and its proofs stay alive

    def __call__(self, value: object) -> Plain:
        kind = type(value).__name__
        if value is None or type(value) in (str, int):
            return value
        if isinstance(value, Term):
            return {"term": self._position(value, self.terms, lambda: self._node(value))}
        if isinstance(value, tuple):
            return [self(part) for part in value]
        if isinstance(value, frozenset):
            return {"set": sorted(map(self, value), key=repr)}
        if isinstance(value, Opened):
            return {"opened": self(value.of)}
        if isinstance(value, Fraction):
            return {"fraction": str(value)}
        if kind in STEP_KINDS:
            return {"step": self._position(value, self.steps, lambda: self._fields(value))}
        if kind in RECORDS:
            return self._fields(value)
        raise TypeError(f"a certificate cannot contain a {kind}: {value!r}")

    def _position(self, value: object, written: list[Plain], write: Callable[[], Plain]) -> int:
        if id(value) not in self.places:
            data = write()  # adds its parts to the list first
            self.places[id(value)] = len(written)
            written.append(data)
        return self.places[id(value)]

    def _node(self, term: Term) -> Plain:
        return [term.op, self(term.args), self(term.data), self(term.shape)]

    def _fields(self, value: Any) -> Plain:
        kind = type(value).__name__
        names = [f.name for f in fields(value) if f.name not in OMITTED_FIELDS.get(kind, ())]
        return {kind: {name: self(getattr(value, name)) for name in names}}


class _Reader:
    """Reads what :class:`_Writer` wrote; refuses a position that is not filled yet."""

    def __init__(self, terms: list[Plain], steps: list[Plain]) -> None:
        self.terms: list[Term] = []
        self.steps: list[Any] = []
        for op, args, data, shape in terms:
            parts = tuple(map(_term, self(args))), self(data), tuple(map(_term, self(shape)))
            self.terms.append(make(_name(op), *parts))
        for step in steps:
            self.steps.append(self._record(step, STEP_KINDS))

    def __call__(self, data: Plain) -> Any:
        if data is None or type(data) in (str, int):
            return data
        if isinstance(data, list):
            return tuple(map(self, data))
        match data:
            case {"term": place}:
                return self.terms[_place(place)]
            case {"step": place}:
                return self.steps[_place(place)]
            case {"set": parts}:
                return frozenset(map(self, parts))
            case {"opened": parts}:
                return Opened(self(parts))
            case {"fraction": text}:
                return Fraction(_name(text))
        return self._record(data, RECORDS)

    def read(self, kind: type | tuple[type, ...], data: Plain) -> Any:
        return _checked(kind, self(data))

    def _record(self, data: Plain, kinds: Mapping[str, type]) -> Any:
        ((kind, values),) = data.items()
        return kinds[kind](**{name: self(value) for name, value in values.items()})


def _require_stated(statement: Statement) -> None:
    """Refuse ill-formed terms, ambiguous names, and variables that are not given.

    The kernel checks the terms of the proof; this checks the rest of the statement.
    """
    laws = [law.claim for law in statement.laws]
    for claim in (*statement.claims.values(), *laws):
        for term in claim.terms():
            formed(term)
        names = [name for name, _ in claim.variables]
        if len(set(names)) < len(names):
            raise ValueError(f"one name for two variables: {', '.join(names)}")
    for term in (side for pair in statement.assume for side in pair):
        formed(term)
    bound = [pair for claim in (*statement.claims.values(), *laws) for pair in claim.variables]
    for name, given in (*statement.givens.items(), *bound):
        if not name.rstrip("′").isidentifier():
            raise ValueError(f"{name!r} is not a name")
        for term in (
            *given.lengths,
            *([] if given.kind == "function" else [given.named(name).term]),
        ):
            formed(term)
    require_names("certificate", statement.givens, statement.claims.values())
    for term, v in statement.unbound():
        raise ValueError(f"{v!r} is not given, and {term!r} contains it")


def _text(error: Exception) -> str:
    """Return the message of an error, even if it contains ill-formed terms that have no text."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 (a term without its arguments fails to print in any way)
        text = str(error.args[0])
    return text if isinstance(error, Refused) else f"{type(error).__name__}: {text}"


def _unique(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return the pairs as a dictionary, refusing a name that occurs twice."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"{name!r} occurs twice")
        found[name] = value
    return found


def _checked(kind: type | tuple[type, ...], value: object) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"wanted {kind}, got {type(value).__name__}")
    return value


def _term(value: object) -> Term:
    term: Term = _checked(Term, value)
    return term


def _name(value: object) -> str:
    name: str = _checked(str, value)
    return name


def _place(value: object) -> int:
    """Return a list position, which must not be negative."""
    if type(value) is not int or value < 0:
        raise ValueError(f"wanted a position, got {value!r}")
    return value
