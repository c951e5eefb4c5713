"""Laws of code as assertions in one's own tests.

``check_rotary(code)`` gives the record of what was found; ``assert_rotary(code)`` gives it too,
and fails for the first law that is broken.  The same for ``attention``, ``bias``,
``additive`` and ``mask``; ``assert_equivariant`` asks any map of tokens whether tokens permuted
give the outputs permuted.

Seed, dtype and device are those of the pytest run (``--attnproof-seed`` and so on) unless they
are given.  The code runs in this process; what it sets of torch is set back afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import perf_counter
from typing import TYPE_CHECKING, Any

from ..faults import internal_errors
from .asked import LEGS, Asked
from .given import as_written, file_of, known_dtype, known_laws, known_legs, known_seed, target_of
from .listening import AT_WORK

if TYPE_CHECKING:
    import torch

    from ..programs.declared import Declared
    from .records import CodeRecord, LawOfCodeRecord

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
    dtype: str | torch.dtype = "",
    device: str | torch.device = "",
    name: str = "",
    legs: Iterable[str] = LEGS,
    call: str = "",
    strict: bool = False,
    **how: Any,
) -> CodeRecord:
    """The record of what each law says of code of this kind.

    ``laws`` are ids (``attnproof list --code-laws``); all of the kind, if none is named.
    ``declared`` is what the code is meant to be, such as ``"rope:base=10000,layout=half"``.
    ``legs`` names the ways to look: measured, identity, exact, traced.  ``call`` says how it is
    called, in axis letters: ``"q: B H n D, k: B H n D -> q, k"``
    (:mod:`attnproof.programs.signature`).  ``strict``: what is undecided does not pass.
    ``how`` says what is not seen otherwise: ``width=64``, ``axes=2``, and so on.

    Raises ``ValueError`` for a law, leg, seed, dtype, device, declaration or call that there is
    not, and ``NoAdapter`` (a ``TypeError``) for what no adapter fits.
    """
    import torch

    from ..numeric.devices import chosen
    from ..programs.declared import parse, require_sound
    from ..programs.settings import given_back
    from ..programs.subject import adapted_as
    from .checking import look
    from .collecting import Collected

    __tracebackhide__ = True  # pytest shows the line of the test
    start, run = perf_counter(), AT_WORK.get()
    told = name or getattr(code, "__qualname__", type(code).__name__)
    asked = Asked(
        target=target_of(code, {**how, **({"call": call} if call else {})}), kind=kind,
        declared=as_written(declared),
        laws=known_laws(laws, kind), seed=run.seed if seed is None else known_seed(seed),
        dtypes=(known_dtype(dtype or run.dtype),), device=str(device or run.device),
        legs=known_legs(legs), call=call, strict=strict,
    )  # fmt: skip
    _ = chosen(asked.device)  # an absent device is told before anything is run
    meant = parse(declared) if isinstance(declared, str) and declared else declared or None
    if meant is not None:
        require_sound(meant)
    heard = Collected(asked)
    with given_back():
        torch.set_num_threads(1)  # as where a command runs it: small arrays, sums in one order
        subject = adapted_as(code, call, kind=kind, declared=meant, name=told, **how)
        heard.hear({"event": "ready", "torch": torch.__version__})
        heard.hear({
            "event": "adapted", "name": told, "kind": subject.kind, "adapted": subject.adapted,
            "file": file_of(code),
        })  # fmt: skip
        look(subject, asked, heard.hear, code)
    heard.hear({"event": "ended"})
    record = heard.record(perf_counter() - start)
    if run.heard is not None:
        for law in record.laws:
            line = law.why if law.verdict == "proved" else law.verdict
            run.heard(f"attnproof.{told}.{law.law}", line)
    return record


def assert_code(
    kind: str, code: Any, laws: Iterable[str] = (), *, strict: bool = False, **more: Any
) -> CodeRecord:
    """The record, if no law is broken and no declaration unchecked.

    What is undecided is neither, and passes; ``strict`` refuses it.

    Raises :class:`CodeBreaksLaw` (an ``AssertionError``) with the law, the witness, seed, dtype,
    the bound, and a line that shows it again; also where no law was asked, or one that was named
    was not.
    """
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
        why = "; ".join(f"{leg.leg}: {leg.why}" for leg in record.legs if leg.why)
        why = why or "; ".join(dict.fromkeys(law.why for law in record.laws))
        raise CodeBreaksLaw(f"{record.name}: no law was asked of it: {why}", record)
    for law in record.laws:
        named_only = law.law in named and law.verdict == "not asked"
        open_ = law.verdict == "unchecked" or (law.verdict == "undecided" and strict)
        if named_only or open_:
            told = f"{record.name}: {law.law} is {law.verdict}: {law.why}"
            raise CodeBreaksLaw(f"{told}\nagain: {law.again}", record)
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
