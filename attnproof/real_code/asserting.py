"""Assertions, for your own tests, that code obeys its laws.

``check_rotary(code)`` returns the record of all findings.  ``assert_rotary(code)`` returns it too,
and fails for the first law that is broken.  The same functions exist for ``attention``, ``bias``,
``additive`` and ``mask``; ``assert_equivariant`` asks of any map of tokens whether permuting the
tokens permutes the outputs.

Seed, dtype and device default to those of the pytest run (``--attnproof-seed`` and so on).  The
code runs in this process; settings of torch that it changes are restored afterwards.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from ..errors import internal_errors, require_known
from .loading import file_of
from .request import AT_WORK, LIMIT, METHODS, SAME, code_request

if TYPE_CHECKING:
    import torch

    from ..programs.declarations import Declared
    from .records import CodeRecord, LawOfCodeRecord


Check = Callable[..., "CodeRecord"]


class CodeBreaksLaw(AssertionError):
    """Code does not obey a law that it was checked for; ``record`` has all that was found."""

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
    dtype: str | torch.dtype = "",
    device: str | torch.device = "",
    name: str = "",
    methods: Iterable[str] = METHODS,
    call: str = "",
    strict: bool = False,
    card: bool = False,
    limit: float = LIMIT,
    **how: Any,
) -> CodeRecord:
    """Check the laws of code of this kind, and return the record of each law.

    An empty kind is inferred from the signature.  ``laws`` are ids, by default all of the kind
    (``attnproof list --code-laws``).  ``declared`` is what the code is meant to be, such as
    ``"rope:base=10000,layout=half"``.  ``methods`` selects from measured, identity, exact and
    traced.  ``call`` is the signature in axis letters, ``"q: B H n D, k: B H n D -> q, k"``
    (:mod:`attnproof.programs.signatures.signature`).  If ``strict``, an undecided law does not
    pass.  ``card`` checks the laws of encodings on its graph too.  Each method may spend ``limit``
    seconds of processor time on a law, in the main thread
    (:func:`~attnproof.programs.execution.running.limited`).
    ``how`` passes what cannot be inferred: ``width=64``, ``axes=2``, and so on.

    Raises ``ValueError`` for an unknown law, method, dtype or device, or an invalid seed,
    declaration or call, and ``NoAdapter`` (a ``TypeError``) if no adapter fits.
    """
    import torch

    from ..numeric.devices import chosen
    from ..programs.declarations import parse, require_sound
    from ..programs.execution.calling import restored_settings
    from .checking import adapted, look
    from .collecting import Collected

    __tracebackhide__ = True  # pytest shows the line of the test
    start, run = perf_counter(), AT_WORK.get()
    told = name or getattr(code, "__qualname__", type(code).__name__)
    asked = code_request(
        target_of(code, {**how, **({"call": call} if call else {})}),
        kind=kind,
        declared=as_written(declared),
        laws=known_laws(laws, kind),
        seed=seed,
        dtypes=(dtype,),
        device=device,
        methods=methods,
        call=call,
        strict=strict,
        card=card,
        limit=limit,
    )
    _ = chosen(asked.device)  # an absent device is reported before anything is run
    meant = parse(declared) if isinstance(declared, str) and declared else declared or None
    if meant is not None:
        require_sound(meant)
    collected = Collected(asked)
    with restored_settings():
        torch.set_num_threads(1)  # as in a command: small arrays, sums in one order
        collected.receive({"event": "ready", "torch": torch.__version__})
        hear = collected.receive
        subject = adapted(code, asked, told, file_of(code), hear, declared=meant, **how)
        look(subject, asked, hear, code, seconds=limit, **how)
    collected.receive({"event": "ended"})
    record = collected.record(perf_counter() - start)
    if run.report is not None:
        for law in record.laws:
            line = law.why if law.verdict == "proved" else law.verdict
            run.report(f"attnproof.{told}.{law.law}", line)
    return record


def assert_code(
    kind: str, code: Any, laws: Iterable[str] = (), *, strict: bool = False, **more: Any
) -> CodeRecord:
    """Return the record if no law is broken and no declaration unchecked.

    Undecided laws pass, unless ``strict``.  What is declared is compared only if the laws that
    compare it are asked: if ``laws`` leaves one of them out, this fails too.

    Raises :class:`CodeBreaksLaw` (an ``AssertionError``) with the law, the witness, seed, dtype,
    the bound, and a line that reproduces it; also if no law was asked, if a law that was named was
    not, or if the code cannot be run.
    """
    from .page_text import left_uncompared

    __tracebackhide__ = True  # pytest shows the line of the test
    named = known_laws(laws, kind)
    record = check_code(kind, code, named, strict=strict, **more)
    for law in record.broken:
        raise CodeBreaksLaw(_broken(record, law), record)
    for told in internal_errors(record):
        raise CodeBreaksLaw(f"{record.name}: {told}", record)
    if record.raises:
        raise CodeBreaksLaw(f"{record.name} cannot be run: {record.raises}, for every law", record)
    if not record.asked:
        why = "; ".join(f"{method.method}: {method.why}" for method in record.methods if method.why)
        why = why or "; ".join(dict.fromkeys(law.why for law in record.laws))
        raise CodeBreaksLaw(f"{record.name}: no law was checked: {why}", record)
    for law in record.laws:
        named_only = law.law in named and law.verdict == "not asked"
        open_ = law.verdict == "unchecked" or (law.verdict == "undecided" and strict)
        if named_only or open_:
            told = f"{record.name}: {law.law} is {law.verdict}: {law.why}"
            raise CodeBreaksLaw(f"{told}\nagain: {law.again}", record)
    if told := left_uncompared(record):
        raise CodeBreaksLaw(f"{record.name}: {told}; name every such law, or none", record)
    return record


def _made(kind: str) -> tuple[Check, Check]:
    def check(code: Any, laws: Iterable[str] = (), **more: Any) -> CodeRecord:
        __tracebackhide__ = True
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
    """Check whether a map x (B, T, E) -> (B, T, E') permutes its outputs with its tokens."""
    return check_code("layer", code, laws, **more)


def assert_equivariant(
    code: Any, laws: Iterable[str] = ("permutation",), **more: Any
) -> CodeRecord:
    """Fail unless permuting the tokens permutes the outputs; further laws may be named."""
    __tracebackhide__ = True
    named = (laws,) if isinstance(laws, str) else laws
    return assert_code("layer", code, dict.fromkeys(("permutation", *named)), **more)


def _broken(record: CodeRecord, law: LawOfCodeRecord) -> str:
    from .page_text import broken_lines

    lines = [f"{record.name} breaks a law of {record.kind} code", *broken_lines(law)]
    if len(record.broken) > 1:
        lines.append(f"  also broken: {', '.join(one.law for one in record.broken[1:])}")
    return "\n".join(lines)


SHORT = 60  # longest argument, in characters, that is shown as source text


def known_laws(laws: Iterable[str], kind: str) -> tuple[str, ...]:
    """Return the ids of laws of this kind of code ("": of any), each once.  Raises ``ValueError``.

    A former id is replaced by the current one, with a ``DeprecationWarning``.

    >>> known_laws("relatve", "rotary")
    Traceback (most recent call last):
    attnproof.errors.UsageError: wanted a law of rotary code, got 'relatve'; nearest: relative
    """
    from ..theorems.laws import LAWS as CODE_LAWS
    from ..theorems.laws import laws_of, renamed

    __tracebackhide__ = True
    named, notes = renamed((laws,) if isinstance(laws, str) else laws)
    for note in notes:  # at the line that calls into this module
        outside = next(k for k, frame in enumerate(inspect.stack(0)) if frame.filename != __file__)
        warnings.warn(note, DeprecationWarning, stacklevel=outside + 1)
    known = [law.id for law in (laws_of(kind) if kind else CODE_LAWS)]
    about = {law.id: law.about for law in CODE_LAWS}
    for name in named:
        if name in about and name not in known:
            whose = " and ".join(about[name])
            raise ValueError(
                f"wanted a law of {kind} code, got {name!r}, which is a law of "
                f"{whose} code; known: {', '.join(known)}"
            )
    require_known(named, known, f"a law of {kind} code", "`attnproof list --code-laws`")
    return named


def as_written(declared: str | Declared) -> str:
    """Return a declaration as it is written on the command line."""
    if isinstance(declared, str):
        return declared
    from dataclasses import fields

    from ..programs.declarations import DECLARED

    word = next(name for name, kind in DECLARED.items() if isinstance(declared, kind))
    parts = []
    for f in fields(declared):
        value = getattr(declared, f.name)
        if value != f.default:
            text = ";".join(map(repr, value)) if isinstance(value, tuple) else str(value)
            parts.append(f"{f.name}={text}")
    return f"{word}:{','.join(parts)}"


def target_of(code: Any, how: dict[str, Any]) -> str:
    """Return what ``attnproof check`` would be given: FILE::NAME if nothing else is needed.

    Otherwise return the arguments of a call, with code in angle brackets.  The lines that made an
    object are not known here, so it is described as the same object, with those of its sizes that
    it stores under the names of its constructor's parameters.
    """
    name = getattr(code, "__qualname__", "")
    module = sys.modules.get(str(getattr(code, "__module__", "")))
    file = getattr(module, "__file__", None)
    there = bool(name and file and _at(module, name) is code)
    if there and not how:
        return f"{file}::{name}"
    given = "".join(f", {key}={_shown(value)}" for key, value in how.items())
    return f"<{name}{given}>" if there else f"{SAME}{_object(code)}>{given}"


def _at(module: object, name: str) -> Any:
    """Return what a module has under a name such as ``Rope.rotate``; None if nothing."""
    for part in name.split("."):
        module = getattr(module, part, None)
    return module


def _object(code: Any) -> str:
    """Describe an object by its class and sizes, or by its name and the line that defines it."""
    name = getattr(code, "__qualname__", "")
    if name:
        place = getattr(getattr(code, "__func__", code), "__code__", None)
        at = f" of {Path(place.co_filename).name}:{place.co_firstlineno}" if place else ""
        return f"{name.rpartition('<locals>.')[2].strip('<>')}{at}"
    sizes = [f"{size}={value!r}" for size, value in _sizes(code)]
    return type(code).__qualname__.rpartition("<locals>.")[2] + (
        f" with {', '.join(sizes)}" if sizes else ""
    )


def _sizes(code: Any) -> list[tuple[str, Any]]:
    """Return the numbers stored under names of constructor parameters, except defaults."""
    try:
        wanted = inspect.signature(type(code)).parameters.values()
    except (TypeError, ValueError):  # built in
        return []
    kept = vars(code) if hasattr(code, "__dict__") else {}
    found = ((one.name, kept.get(one.name), one.default) for one in wanted)
    return [
        (name, value)
        for name, value, usual in found
        if isinstance(value, int | float) and value != usual
    ]


def _shown(value: Any) -> str:
    """Return an argument as source text if possible; otherwise describe it as the same object."""
    told = repr(value)
    short = len(told) <= SHORT or isinstance(value, str)
    plain = short and told.isprintable() and "<" not in told
    return told if plain else f"{SAME}{_object(value)}>"
