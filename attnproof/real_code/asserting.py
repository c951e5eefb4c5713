"""Laws of code as assertions in one's own tests.

``check_rotary(code)`` gives the record of what was found; ``assert_rotary(code)`` gives it too,
and fails for the first law that does not hold.  The same for ``attention``, ``bias``,
``additive`` and ``mask``; ``assert_equivariant`` asks any map of tokens whether tokens permuted
give the outputs permuted.

Seed, dtype and device are those of the pytest run (``--attnproof-seed`` and so on) unless they
are given.  The code runs in this process.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from time import perf_counter
from typing import TYPE_CHECKING, Any

from .asked import LEGS, Asked
from .listening import AT_WORK

if TYPE_CHECKING:
    from ..numeric.programs.declared import Declared
    from .records import CodeRecord, LawOfCodeRecord

__all__ = [
    "CodeBreaksLaw", "assert_additive", "assert_attention", "assert_bias", "assert_equivariant",
    "assert_mask", "assert_rotary", "check_additive", "check_attention", "check_bias",
    "check_equivariant", "check_mask", "check_rotary",
]  # fmt: skip

Check = Callable[..., "CodeRecord"]


class CodeBreaksLaw(AssertionError):
    """Code does not obey a law that it was asked to; ``record`` has everything that was found."""

    def __init__(self, text: str, record: CodeRecord) -> None:
        super().__init__(text)
        self.record = record


def check_code(
    kind: str,
    code: Any,
    laws: Iterable[str] = (),
    *,
    declared: str | Declared = "",
    seed: int | None = None,
    dtype: str = "",
    device: str = "",
    name: str = "",
    legs: Iterable[str] = LEGS,
    **how: Any,
) -> CodeRecord:
    """The record of what each law says of code of this kind.

    ``laws`` are ids (``attnproof list --code-laws``); all of the kind, if none is named.
    ``declared`` is what the code is meant to be, such as ``"rope:base=10000,layout=half"``.
    ``legs`` names the ways to look: measured, identity, exact, traced.  ``how`` says how it is
    called, where that is not seen: ``width=64``, ``order="bthd"``, ``axes=2``, and so on.

    Raises ``ValueError`` for a law, leg, device or declaration that there is not, and ``NoAdapter``
    (a ``TypeError``) for what no adapter fits.
    """
    from ..numeric.devices import chosen
    from ..numeric.programs.adapting import adapt
    from ..numeric.programs.declared import parse
    from .checking import look
    from .collecting import Collected

    start, run = perf_counter(), AT_WORK.get()
    told = name or getattr(code, "__qualname__", type(code).__name__)
    asked = Asked(
        target=_target(code, how), kind=kind, declared=_declared(declared), laws=_laws(laws, kind),
        seed=run.seed if seed is None else seed, dtypes=(dtype or run.dtype,),
        device=device or run.device, legs=_legs(legs),
    )  # fmt: skip
    _ = chosen(asked.device)  # an absent device is told before anything is run
    meant = parse(declared) if isinstance(declared, str) and declared else declared or None
    subject = adapt(code, kind=kind, declared=meant, name=told, **how)
    heard = Collected(asked)
    heard.hear({"event": "ready", "torch": _torch()})
    heard.hear({
        "event": "adapted", "name": told, "kind": subject.kind, "adapted": subject.adapted,
        "file": _file(code),
    })  # fmt: skip
    look(subject, asked, heard.hear)
    heard.hear({"event": "ended"})
    record = heard.record(perf_counter() - start)
    if run.heard is not None:
        for law in record.laws:
            run.heard(f"attnproof.{told}.{law.law}", law.verdict)
    return record


def assert_code(
    kind: str, code: Any, laws: Iterable[str] = (), *, undecided: bool = False, **more: Any
) -> CodeRecord:
    """The record, if every law that was asked holds; ``undecided`` lets through what is open.

    Raises :class:`CodeBreaksLaw` (an ``AssertionError``) with the law, the witness, seed, dtype,
    the bound, and a line that shows it again; also where no law was asked, or one that was named
    was not.
    """
    __tracebackhide__ = True  # pytest shows the line of the test
    named = _laws(laws, kind)
    record = check_code(kind, code, named, **more)
    for law in record.broken:
        raise CodeBreaksLaw(_broken(record, law), record)
    if record.raises:
        raise CodeBreaksLaw(f"{record.name} cannot be run: {record.raises}, for every law", record)
    if not record.asked:
        why = "; ".join(f"{leg.leg}: {leg.why}" for leg in record.legs if leg.why)
        why = why or "; ".join(dict.fromkeys(law.why for law in record.laws))
        raise CodeBreaksLaw(f"{record.name}: no law was asked of it: {why}", record)
    for law in record.laws:
        named_only = law.law in named and law.verdict == "not asked"
        if named_only or (law.verdict == "undecided" and not undecided):
            told = f"{record.name}: {law.law} is {law.verdict}: {law.why}"
            more_told = "" if named_only else "\nundecided=True lets through what is open"
            raise CodeBreaksLaw(f"{told}\nagain: {law.again}{more_told}", record)
    return record


def _made(kind: str) -> tuple[Check, Check]:
    def check(code: Any, laws: Iterable[str] = (), **more: Any) -> CodeRecord:
        return check_code(kind, code, laws, **more)

    def assert_(code: Any, laws: Iterable[str] = (), **more: Any) -> CodeRecord:
        __tracebackhide__ = True
        return assert_code(kind, code, laws, **more)

    for made, verb, source in ((check, "check", check_code), (assert_, "assert", assert_code)):
        made.__name__ = made.__qualname__ = f"{verb}_{kind}"
        made.__doc__ = (source.__doc__ or "").replace("code of this kind", f"{kind} code")
    return check, assert_


check_rotary, assert_rotary = _made("rotary")
check_attention, assert_attention = _made("attention")
check_bias, assert_bias = _made("bias")
check_additive, assert_additive = _made("additive")
check_mask, assert_mask = _made("mask")


def check_equivariant(code: Any, laws: Iterable[str] = ("permutation",), **more: Any) -> CodeRecord:
    """Of a map of tokens x (B, T, E) -> (B, T, E'): whether permuted tokens permute the outputs."""
    return check_code("layer", code, laws, **more)


def assert_equivariant(
    code: Any, laws: Iterable[str] = ("permutation",), **more: Any
) -> CodeRecord:  # fmt: skip
    """Fail unless tokens permuted give the outputs permuted."""
    __tracebackhide__ = True
    return assert_code("layer", code, laws, **more)


def _broken(record: CodeRecord, law: LawOfCodeRecord) -> str:
    from .words import broken_lines

    lines = [f"{record.name} breaks a law of {record.kind} code", *broken_lines(law)]
    if len(record.broken) > 1:
        lines.append(f"  broken as well: {', '.join(one.law for one in record.broken[1:])}")
    return "\n".join(lines)


def _laws(laws: Iterable[str], kind: str) -> tuple[str, ...]:
    from ..numeric.programs.laws import laws_of

    named = (laws,) if isinstance(laws, str) else tuple(dict.fromkeys(laws))
    known = [law.id for law in laws_of(kind)]
    for name in named:
        if name not in known:
            raise ValueError(f"wanted a law of {kind} code, got {name!r}; {', '.join(known)}")
    return named


def _legs(legs: Iterable[str]) -> tuple[str, ...]:
    named = (legs,) if isinstance(legs, str) else tuple(legs)
    for name in named:
        if name not in LEGS:
            raise ValueError(f"wanted a way to look, got {name!r}; {', '.join(LEGS)}")
    return tuple(leg for leg in LEGS if leg in named)


def _declared(declared: str | Declared) -> str:
    """What is declared, as it is written on a command line."""
    if isinstance(declared, str):
        return declared
    from dataclasses import fields

    from ..numeric.programs.declared import DECLARED

    word = next(name for name, kind in DECLARED.items() if isinstance(declared, kind))
    parts = []
    for f in fields(declared):
        value = getattr(declared, f.name)
        if value != f.default:
            text = ";".join(map(repr, value)) if isinstance(value, tuple) else str(value)
            parts.append(f"{f.name}={text}")
    return f"{word}:{','.join(parts)}"


def _target(code: Any, how: dict[str, Any]) -> str:
    """What `attnproof check` would be given: FILE::NAME where that is all that it has to know."""
    name = getattr(code, "__qualname__", "")
    file = _file(code)
    named = inspect.isroutine(code) or inspect.isclass(code)
    if name and file and named and not how and "<" not in name:
        return f"{file}::{name}"
    return f"<{', '.join([name or type(code).__qualname__, *map(_set, how.items())])}>"


def _set(pair: tuple[str, Any]) -> str:
    return f"{pair[0]}={pair[1]!r}"


def _file(code: Any) -> str:
    try:
        known = inspect.isroutine(code) or inspect.isclass(code)
        return inspect.getfile(code if known else type(code))
    except (OSError, TypeError):  # built in, or typed into a session
        return ""


def _torch() -> str:
    import torch

    return torch.__version__
