"""Encodings and laws as records: what they say, and what an encoding does, as formulas.

The formulas are computed: the methods of the encoding are run on symbols, and what comes out is
printed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import translate
from .card_records import EncodingRecord, LawRecord
from .evidence import Formula
from .faults import broken_by
from .registry import place_words

if TYPE_CHECKING:
    from .encoding import Encoding
    from .encoding_law import EncodingLaw

PACKAGE = Path(__file__).resolve().parent


def law_record(law: EncodingLaw) -> LawRecord:
    """What a law says."""
    return LawRecord(id=law.id, title=law.title, group=law.group, says=law.words, some=law.some)


def encoding_record(kind: type[Encoding]) -> EncodingRecord:
    """What an encoding says of itself, and what it does.

    Raises what its own code raises when it is made.
    """
    from .symbolic.statement import Statement

    made = kind()
    declared = kind.declared().items()
    open_ = {name: given for name, given in declared if name not in made.parameters}
    return EncodingRecord(
        id=kind.id(),
        title=kind.title or kind.__name__,
        says=inspect.cleandoc(kind.__doc__ or ""),
        sources=tuple(kind.source),
        file=file_of(kind),
        acts=place_words(kind),
        formulas=tuple(_formulas(made)),
        parameters=translate.givens(Statement(open_, {})),
        hypotheses=tuple(kind.hypotheses().values()),
    )


def source_of(kind: type[Encoding]) -> Path:
    """The file in which a class is written; empty if it was typed into a session."""
    try:
        return Path(inspect.getfile(kind)).resolve()
    except (OSError, TypeError):
        return Path()


def file_of(kind: type[Encoding]) -> str:
    """The file of an encoding, of the package by its path in there; empty if there is none."""
    path = source_of(kind)
    if not path.name:
        return ""
    within = path.is_relative_to(PACKAGE)
    return f"{PACKAGE.name}/{path.relative_to(PACKAGE).as_posix()}" if within else str(path)


def _formulas(made: Encoding) -> Iterator[Formula]:
    """What each of its methods makes of symbols, in the order in which they act."""
    from .symbolic.givens import natural, positions, real, sizes

    axes = (made.axes,) * bool(made.axes)
    one = natural("a position") if made.whole else positions(*axes)
    m, n, p = (one.named(name) for name in "mnp")
    x, q, k = (real(made.width).named(name) for name in "xqk")
    s = real().named("s")
    v = real(*sizes("d_v", "features")).named("v")
    places: list[tuple[str, str, Callable[[], Any]]] = []
    if made.defines("add"):
        places.append(("the token at p", "x ->", lambda: x + made.add(p)))
    if made.defines("turn") and not made.defines("query", "key"):
        places.append(("a query or key at p", "x ->", lambda: made.turn(x, p)))
    else:
        if made.defines("query", "turn"):
            places.append(("a query at m", "q ->", lambda: made.query(q, m)))
        if made.defines("key", "turn"):
            places.append(("a key at n", "k ->", lambda: made.key(k, n)))
    if made.defines("relate"):
        places.append(("the product", "q·k +", lambda: _number(made.relate, (q, k, m, n))))
    if made.defines("scores"):
        whole = "the score of a query at m with a key at n"
        places.append((whole, "", lambda: made.score(q, k, m, n)))
    elif made.defines("bias"):
        places.append(("the score", "s ->", lambda: s + _number(made.bias, (m, n))))
    if made.defines("sees"):
        places.append(("a query at m sees a key at n if", "", lambda: _number(made.sees, (m, n))))
    if made.defines("value"):
        pair = m[None, None], n[None, None]
        read = "a value at n, as a query at m reads it"
        places.append((read, "v ->", lambda: made.value(v[None, None], *pair)[0, 0]))
    for what, before, compute in places:
        yield _told(what, before, compute, made)


def _number(act: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """What a method makes of one query and one key: a number; it may insist on a row of each."""
    from .symbolic.array import as_array

    try:
        found = as_array(act(*arguments))
    except (IndexError, TypeError, ValueError):
        found = None
    if found is None or found.shape:
        found = as_array(act(*(a[None, None] for a in arguments)))
        found = found[(0,) * len(found.shape)]
    return found


ARROWS = {"->": r"\mapsto", "·": r"\cdot "}


def _told(what: str, before: str, compute: Callable[[], Any], made: Encoding) -> Formula:
    """The formula of one method: a definition by its name and written out.

    Where the method fails, the text says so; the cells that need it will as well.
    """
    from .symbolic.array import as_array
    from .symbolic.latex import unfolded_latex
    from .symbolic.plain import plain

    words = what if what.endswith(" if") else f"{what}:"
    try:
        term = as_array(compute()).term
        latex, text = translate.formula(term).latex, plain(term)
        if term.op == "named":
            latex, text = f"{latex} = {unfolded_latex(term)}", f"{text} = {plain(term.args[0])}"
    except (Exception, SystemExit) as error:  # noqa: BLE001 (one method stops no other)
        told = broken_by(error, source_of(type(made)))["error"]
        return Formula(latex="", text=f"{words} raises {told}")
    head = before
    for sign, becomes in ARROWS.items():
        head = head.replace(sign, becomes)
    text = text.replace("[None]", "")  # a new axis, which says nothing of one position
    return Formula(
        latex=rf"\text{{{words} }} {head} {latex}",
        text=" ".join(f"{words} {before} {text}".split()),
    )
