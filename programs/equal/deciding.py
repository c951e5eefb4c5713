"""Decide whether two programs are the same function, and sort programs into classes of equal ones.

Cheap methods come first.  If two programs differ on some numbers they are different functions, and
nothing else is tried.  Otherwise a proof is attempted: first with every length symbolic, then with
those of features fixed, of heads, of rows.  Without a proof, the verdict names the first steps at
which the programs could not be matched (:mod:`.matching`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, Literal

import torch
from torch import Tensor

from attnproof.documents.verdict_line import Condition
from attnproof.symbolic.faults import Fault, fault_of

from ...numeric.devices import one_thread
from ..code import DoesNotFit
from ..exact import exact
from ..execution.calling import restored_settings
from ..execution.response import CANCELLED
from ..finding import DIFFERS_FROM_GRAPH, Counterexample, Finding
from ..prove import prove
from ..prove.comparison import CHANGES
from ..prove.gate import OVERWRITES
from ..prove.proving import Traced
from ..signatures.signature import SignatureError
from ..subjects import Pair
from .effects import on_copies
from .inputs import BINARY_MASKS, UNRELATED, drawn, table_relations
from .larger_inputs import FEATURES, HEADS, compare_at_longer, input_conditions
from .matching import Divergence, divergence
from .measure import NumericComparison, compare_numerically
from .pair import ProgramPair, pair_programs, worst
from .sides import Operand
from .specification import WrongSpecification, read

# Where programs differ on inputs that no compared call has: a remark, not a difference


def edge_case_remarks(both: ProgramPair) -> list[str]:
    """Describe where the programs differ on inputs that no compared call has.

    These are a query that sees no key, a row of length 0, a position below 0, and −∞ among numbers
    that are added to the scores.
    """
    found = []
    values = drawn(both.inputs, both.lengths, 5)
    for case, kinds, change in EDGE_CASES:
        if any(one.kind in kinds for one in both.inputs):
            given = [
                change(x, one.kind) if one.kind in kinds else x
                for one, x in zip(both.inputs, values, strict=True)
            ]
            found.append(_edge_case_remark(both, given, case))
    return [one for one in found if one]


def _hide_all_keys(x: Tensor, kind: str) -> Tensor:
    x = x.clone()
    x[:1] = int(kind == "hide")
    return x


def _zero_length(x: Tensor, _: str) -> Tensor:
    return torch.cat((torch.zeros_like(x[:1]), x[1:])) if x.ndim else torch.zeros_like(x)


def _negated(x: Tensor, _: str) -> Tensor:
    return -1 - x


def _with_minus_infinity(x: Tensor, _: str) -> Tensor:
    hidden = torch.arange(x.shape[-1]) % 2 == 1 if x.ndim else torch.tensor(False)
    return x.masked_fill(hidden, -torch.inf)


EDGE_CASES: tuple[tuple[str, tuple[str, ...], Callable[[Tensor, str], Tensor]], ...] = (
    ("a query that sees no key", BINARY_MASKS, _hide_all_keys),
    ("a row of length 0", ("lengths",), _zero_length),
    ("positions below 0", ("positions",), _negated),
    ("−∞ among what is added to the scores", ("add",), _with_minus_infinity),
)
"""Each case, the kinds of arrays it concerns, and how these are changed."""


def _edge_case_remark(both: ProgramPair, values: Sequence[Tensor], case: str) -> str:
    """Describe what each program gives at the first row that differs, or return ""."""
    try:
        with torch.no_grad():
            here, there = (both.results_of_copies(side, values)[0] for side in ("first", "second"))
    except Exception:  # noqa: BLE001 (the code may raise anything)
        return ""
    if here.shape != there.shape or torch.allclose(here, there, 1e-3, 1e-3, equal_nan=True):
        return ""
    one, other = _values_word(here[:1]), _values_word(there[:1])
    if one == other:
        return f"for {case}, the two return different {one}"
    return f"for {case}, the first returns {one}, the second {other}"


def _values_word(x: Tensor) -> str:
    if bool(x.isnan().all()):
        return "NaN"
    return "zeros" if not bool(x.any()) else "numbers"


SameVerdict = Literal[
    "proved", "exact", "measured", "undecided", "counterexample", "internal error"
]
PROOF_SECONDS = 20.0
NOT_A_FUNCTION = (
    DIFFERS_FROM_GRAPH,
    CHANGES,
    OVERWRITES,
)  # reasons given for code that is not a function of its inputs


@dataclass(frozen=True)
class Verdict:
    """The verdict, its reason, and its conditions.

    ``parted``: the first steps of the programs that could not be
    shown equal.  ``remarks``: other observations.
    """

    programs: ProgramPair
    verdict: SameVerdict
    why: str
    assuming: tuple[Condition, ...] = ()
    counterexample: Counterexample | None = None
    parted: Divergence | None = None
    comparison: NumericComparison = field(default_factory=NumericComparison)
    operations: int = 0
    remarks: tuple[str, ...] = ()
    seconds: float = 0.0
    traceback: str = ""


@dataclass(frozen=True)
class _Options:
    """A seed, the time limit of a proof in seconds, and a callback for each method."""

    seed: int
    seconds: float
    begin: Callable[[str], None]


def compare(
    first: Operand,
    second: Operand,
    *,
    where: str = "",
    weights: str = "",
    seed: int = 0,
    seconds: float = PROOF_SECONDS,
    begin: Callable[[str], None] = lambda _: None,
) -> Verdict:
    """Decide whether two programs are the same function.

    ``where`` defines arguments of the second program, ``weights`` its parameters; ``seconds``
    limits the search for a proof; ``begin`` is called with the name of each method as it starts.

    Raises :class:`~attnproof.programs.signatures.signature.SignatureError` if the two cannot be
    called on the same arrays.

    >>> made = compare(Operand(lambda x: x * 2, "twice", "x: B n E -> B n E"),
    ...                Operand(lambda x: x + x, "added", "x: B n E -> B n E"))
    >>> made.verdict
    'proved'
    """
    start = perf_counter()
    both = pair_programs(first, second, where, weights)
    with one_thread(), restored_settings():
        begin("run")
        both, comparison = _with_tables(both, seed)
        both, written = on_copies(both)
        found = _decide(both, comparison, _Options(seed, seconds, begin))
    # preferably of float32
    kinds = next(filter(None, reversed(comparison.dtype_remarks.values())), "")
    remarks = [*both.notes, comparison.raises, kinds, comparison.overflows, written]
    if found.verdict != "counterexample":
        remarks += edge_case_remarks(both)
    return replace(
        found, seconds=perf_counter() - start, remarks=tuple(dict.fromkeys(filter(None, remarks)))
    )


def _with_tables(both: ProgramPair, seed: int) -> tuple[ProgramPair, NumericComparison]:
    """Return the pair with the most general tables on which both agree, and what was observed."""
    found: list[tuple[ProgramPair, NumericComparison]] = []
    for table in table_relations(both.shared):
        tried = replace(both, table=table)
        try:
            comparison = compare_numerically(tried, seed)
        except Exception:
            if table is UNRELATED:
                raise
            continue
        if comparison.tried and comparison.counterexample is None:
            return tried, comparison
        if comparison.tried:
            found.append((tried, comparison))
    if not found:
        return both, compare_numerically(both, seed)
    return found[min(1, len(found) - 1)]  # with equal halves, if there are tables of angles


def _decide(both: ProgramPair, comparison: NumericComparison, options: _Options) -> Verdict:
    if comparison.counterexample is not None:
        return _different(both, comparison)
    if not comparison.tried:
        return Verdict(
            both,
            "undecided",
            "no lengths were found at which both programs run",
            comparison=comparison,
        )
    if comparison.unsteady:
        return Verdict(both, "undecided", comparison.unsteady, comparison=comparison)
    options.begin("proof")
    subject = both.subject()
    tried, made = _prove(both, subject, options)
    more: dict[str, Any] = {"comparison": comparison, "operations": tried.operations}
    if made is not None and made.verdict == "internal error":
        return Verdict(both, "internal error", made.why, traceback=made.traceback, **more)
    if made is not None and made.verdict == "broken":
        return Verdict(both, "counterexample", made.why, counterexample=made.witness, **more)
    if made is not None and made.verdict == "holds":
        assumed = dict.fromkeys(told for one in tried.findings for told in one.assuming)
        said = (*_conditions(both, proved=True), *assumed)
        return Verdict(both, "proved", made.why, said, **more)
    why = made.why if made is not None else tried.why
    if any(told in why for told in NOT_A_FUNCTION):
        return Verdict(both, "undecided", why, **more)
    more["parted"] = divergence(both)
    options.begin("longer inputs")
    below = compare_at_longer(both, options.seed, comparison)
    if comparison.counterexample is not None:
        return _different(both, comparison)
    below += input_conditions(both, options.seed, comparison)
    upto, formats = f"lengths up to {comparison.longest}", " and ".join(comparison.formats)
    formats += " in evaluation" * bool(both.modules)
    options.begin("finite fields")
    (field,) = exact(subject, seed=options.seed)
    if field.verdict == "broken":
        return Verdict(both, "counterexample", field.why, counterexample=field.witness, **more)
    if field.verdict == "holds":
        told = f"{field.why}; the same in {formats} at {upto}; not proved: {why}"
        return Verdict(both, "exact", told, (*below, *_conditions(both)), **more)
    rounding = f"up to rounding{CANCELLATION if comparison.cancels else ''}"
    calls = f"the same in {comparison.tried} calls"
    told = f"{calls}, at {upto}, in {formats}, {rounding}; not proved: {why}"
    return Verdict(both, "measured", told, (*below, *_conditions(both)), **more)


CANCELLATION = (
    f", where numbers cancel up to {CANCELLED} times its observed effect, which is not a bound"
)


def _different(both: ProgramPair, comparison: NumericComparison) -> Verdict:
    return Verdict(
        both,
        "counterexample",
        _difference_text(both, comparison),
        counterexample=comparison.counterexample,
        comparison=comparison,
        parted=divergence(both),
    )


def _prove(both: ProgramPair, subject: Pair, options: _Options) -> tuple[Traced, Finding | None]:
    """Trace and prove with as few lengths fixed as lead to a proof; return the best outcome."""
    kept: tuple[Traced, Finding | None] | None = None
    for fixed in fixed_letter_choices(both):
        if kept is not None and kept[1] is not None and not kept[0].free & set(fixed):
            continue  # none of these is symbolic in that trace
        tried = prove(subject, seconds=options.seconds / 2, fixed=(fixed,))
        made = worst(tried.findings) if len(tried.findings) == both.count else None
        if made is not None and made.verdict in ("holds", "broken", "internal error"):
            return tried, made
        if kept is None or kept[1] is None:
            kept = tried, made
    assert kept is not None
    return kept


def fixed_letter_choices(both: ProgramPair) -> Sequence[str]:
    """Return choices of letters to fix: none, features, heads as well, rows as well."""
    letters = [c for one in both.inputs for c in one.letters if c.isalpha()]
    features = "".join(c for c in dict.fromkeys(letters) if c in FEATURES)
    heads = "".join(c for c in dict.fromkeys(letters) if c in HEADS)
    rows = "B" * ("B" in letters)
    return tuple(dict.fromkeys(("", features, features + heads, features + heads + rows)))


def _conditions(both: ProgramPair, *, proved: bool = False) -> tuple[Condition, ...]:
    """Return conditions on what both share besides the arrays: a proof covers any weights."""
    found = [Condition(told, "for") for told in both.equated]
    if both.table is not UNRELATED:
        found.append(Condition(both.table.says, "where"))
    if both.weights:
        which = "whatever they are" if proved else "with their current values"
        found.append(Condition(f"the weights of both are the same, {which}", "where"))
    if any(one.numel() for module in both.modules for one in module.buffers()):
        told = "stored tables that now hold the same numbers always do"
        found.append(Condition(told, "where"))
    if both.first.copies or both.second.copies:
        found.append(Condition("no two inputs share memory", "where"))
    return (*found, *(Condition(told, "where") for told in both.converted))


def _difference_text(both: ProgramPair, comparison: NumericComparison) -> str:
    at = ", ".join(f"{c} = {n}" for c, n in comparison.at.items())
    at += f", {comparison.how}" if comparison.how else ""
    which = f"result {comparison.result + 1} of " if both.count > 1 else ""
    if comparison.error == float("inf") and not comparison.bound:
        return (
            f"{which}the two differ in shape, or one is not finite in {comparison.dtype}, at {at}"
        )
    return (
        f"{which}the two differ by {comparison.error:.3g} in {comparison.dtype} at {at}; rounding "
        f"explains {comparison.bound:.2g}"
    )


EQUAL_VERDICTS = ("proved", "exact", "measured")


@dataclass
class Class:
    """Programs that are the same function: the first, and the others with the verdict for each."""

    first: Operand
    others: list[tuple[Operand, Verdict]] = field(default_factory=list)

    @property
    def members(self) -> list[Operand]:
        """All programs of the class."""
        return [self.first, *(one for one, _ in self.others)]


@dataclass
class Classes:
    """The classes, largest first, and why their first members are not known to be equal.

    ``apart``: two programs, and the verdict, or why they cannot be called on the same arrays, or
    the fault of attnproof because of which they were not compared.
    """

    found: list[Class]
    apart: list[tuple[Operand, Operand, Verdict | str | Fault]]


def classes(
    programs: Sequence[Operand],
    *,
    seed: int = 0,
    seconds: float = PROOF_SECONDS,
    begin: Callable[[str], None] = lambda _: None,
) -> Classes:
    """Sort programs into classes of equal ones.

    If equality is undecided, or the two cannot be called on the same arrays, they are in different
    classes.  Specifications come first and are not compared with each other.

    Raises :class:`WrongSpecification` for what is not a specification.

    >>> line = "x: B n E -> B n E"
    >>> three = [Operand(lambda x: 2 * x, "a", line), Operand(lambda x: x + x, "b", line),
    ...          Operand(lambda x: x * x, "c", line)]
    >>> [[one.name for one in each.members] for each in classes(three).found]
    [['a', 'b'], ['c']]
    """
    found: list[Class] = []
    apart: list[tuple[Operand, Operand, Verdict | str | Fault]] = []
    # A specification adopts the call of the other program, so that it can only be the second.
    specified = [one for one in programs if isinstance(one.thing, str)]
    for one in specified:
        read(one.thing)
    for program in (*specified, *(one for one in programs if one not in specified)):
        begin(program.name)
        for each in () if program in specified else found:
            pair = (program, each.first) if each.first in specified else (each.first, program)
            try:
                verdict = compare(*pair, seed=seed, seconds=seconds)
            except Exception as error:  # noqa: BLE001 (the code may raise anything)
                apart.append((each.first, program, fault_of(error) or error_text(error)))
                continue
            if verdict.verdict in EQUAL_VERDICTS:
                each.others.append((program, verdict))
                break
            apart.append((each.first, program, verdict))
        else:
            found.append(Class(program))
    found.sort(key=lambda each: -len(each.members))
    return Classes(found, apart)


def error_text(error: Exception) -> str:
    """Return why two programs could not be compared; errors of the code are prefixed by type.

    >>> error_text(SignatureError("k is missing")), error_text(KeyError("heads"))
    ('k is missing', "KeyError: 'heads'")
    """
    if isinstance(error, SignatureError | DoesNotFit | WrongSpecification):
        return str(error)
    return f"{type(error).__name__}: {error}"
