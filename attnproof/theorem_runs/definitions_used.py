"""What the names in statements stand for: each definition, unfolded by one level."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..documents.evidence import Formula
from ..symbolic.array import Array
from ..symbolic.definition import DEFINITIONS, Definition
from ..symbolic.givens import Given
from ..symbolic.latex import latex, unfolded_latex
from ..symbolic.plain import plain
from ..symbolic.statement import Statement
from ..symbolic.terms import Term, instantiate, make, postorder
from .records import DefinitionRecord


def definitions(statements: Iterable[Statement]) -> tuple[DefinitionRecord, ...]:
    """Return every definition that the statements use, also inside others, in file order.

    Of the ways in which one is applied, the simplest is shown, on matrices if there is one.
    """
    uses: dict[str, set[Term]] = {}
    seen: set[Term] = set()
    for whole in _said(statements):
        if whole in seen:
            continue
        for term in postorder(whole):
            seen.add(term)
            if term.op == "named":
                uses.setdefault(str(term.data[0]), set()).add(term)
    known = [DEFINITIONS[name] for name in uses if name in DEFINITIONS]
    known.sort(key=lambda d: (d.body.__module__, d.line, d.name))
    return tuple(_record(d, uses[d.name]) for d in known)


def named(statements: Iterable[Statement]) -> tuple[str, ...]:
    """Return the names of definitions in statements, except those inside another's formula."""
    return _named(_said(statements))


def _said(statements: Iterable[Statement]) -> Iterator[Term]:
    for one in statements:
        for claim in (*one.claims.values(), *one.hypotheses):
            yield from claim.terms()


def _named(terms: Iterable[Term]) -> tuple[str, ...]:
    found: set[str] = set()
    seen: set[Term] = set()
    left = list(terms)
    while left:
        term = left.pop()
        if term in seen:
            continue
        seen.add(term)
        if term.op == "named":
            found.add(str(term.data[0]))
        left += term.args[1:] if term.op == "named" else term.args
    return tuple(sorted(found & DEFINITIONS.keys()))


def _record(known: Definition[..., object], uses: Iterable[Term]) -> DefinitionRecord:
    uses = list(uses)
    written = {use for use in uses if not use.loose}
    found = written | {_on_names(known, use) for use in written if not _names(use)}
    found = found or {_on_names(known, _closed(use)) for use in uses}
    plainest = [term for term in found if _names(term)] or list(found)
    term = min(
        plainest,
        key=lambda t: (
            abs(t.ndim - 2),
            t not in written,
            -_usual(known, t),
            _size(t),
            latex(t),
            t.key,  # folded terms may print alike
        ),
    )
    first, _, _ = (known.__doc__ or "").strip().partition("\n")
    return DefinitionRecord(
        name=known.name,
        formula=Formula(
            latex=f"{latex(term)} = {unfolded_latex(term)}",
            text=f"{plain(term)} = {plain(term.args[0])}",
        ),
        words=first.strip(),
        uses=_named(term.args[:1]),
    )


def _closed(use: Term) -> Term:
    """Return a use inside a sum or a stack, with new variables for what is bound there."""
    shapes = {p.data: p.shape for p in postorder(use) if p.op == "bound"}
    values = [
        make("var", (), ("xyzuvw"[k % 6], "real"), shapes.get(use.loose - 1 - k, ()))
        for k in range(use.loose)
    ]
    return instantiate(use, *values)


def _names(use: Term) -> bool:
    """Whether it is applied to distinct variables, and to nothing else."""
    args = use.args[1:]
    return len(set(args)) == len(args) and all(arg.op == "var" for arg in args)


def _usual(known: Definition[..., object], use: Term) -> int:
    """Return how many arguments have the usual name: Q for a matrix of queries, a for an angle."""
    from inspect import signature

    words = signature(known.body).parameters
    usual = [_initial(word, arg) for word, arg in zip(words, use.args[1:], strict=False)]
    return sum(
        arg.op == "var" and arg.data[0] == u for arg, u in zip(use.args[1:], usual, strict=False)
    )


def _initial(word: str, arg: Term) -> str:
    return word[0].upper() if arg.ndim > 1 else word[0]


def _size(term: Term) -> int:
    lengths = {part for part in postorder(term) if part.op in ("size", "num")}
    return sum(1 for _ in postorder(term)) + len(lengths)


def _on_names(known: Definition[..., object], use: Term) -> Term:
    """Return the definition applied to variables of the shapes of this use, if that is possible."""
    from inspect import signature

    args = use.args[1:]
    values: list[Array] = []
    taken: set[str] = set()
    for word, arg in zip(signature(known.body).parameters, args, strict=False):
        initial = _initial(word, arg)
        name = word if initial in taken else initial
        taken.add(name)
        kind = "boolean" if arg.op in _TRUTH else "real"
        values.append(Given(kind, arg.shape).named(name))
    try:
        made = known(*values)
    except Exception:  # noqa: BLE001 (it may need more than variables)
        return use
    return made.term if isinstance(made, Array) and made.term.op == "named" else use


_TRUTH = frozenset(("and", "equal", "isin", "less", "less_equal", "not", "or"))
