"""Two programs as a pair: how each is called, and the arrays that both are given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from array_api_compat import array_namespace
from torch import Tensor, nn

from attnproof.theorems.laws import Formula

from ..adapting import resolved
from ..calls.roles import as_described
from ..code import Code, DoesNotFit, NoSetting, Options
from ..execution.running import fault_in, in_a_line, seeded
from ..finding import Finding
from ..loading.building import code_under_test, in_float32, run_uncompiled
from ..loading.names import parameters
from ..loading.program import Program
from ..loading.reach import UNCOMPILED
from ..no_adapter import NoAdapter
from ..prove.reached_arrays import modules_in
from ..signatures.grammar import parse
from ..signatures.signature import Signature, SignatureError
from ..subject import adapted_as
from ..subjects import Pair, Subject
from .expressions import Expression, expressions, itself, joined
from .inputs import UNRELATED, Table, drawn, lengths_for, with_angles, with_tables
from .sides import (
    Operand,
    Shared,
    Side,
    axes_of,
    common_letters,
    in_axes_of_first,
    length_arguments,
    letters_in,
    match_arguments,
    shared_of,
    with_letters,
)
from .specification import read, specified

LAW = "same-function"
INPUT_KINDS = {
    "positions": "position",
    "ids": "position",
    "documents": "position",
    "index": "position",
    "lengths": "position",
    "keep": "truth",
    "hide": "hidden",
}


@dataclass(frozen=True)
class ProgramPair:
    """Two programs, their shared arrays, and lengths at which both can be called.

    ``table``: how cosines and sines are related.  ``weights``: parameters that both have.
    ``equated``: letters of the first line that are one letter of the second, as "n = r", and those
    that only one program receives, as "H = 4".
    ``converted``: what each program stores that was converted, as clauses.
    """

    first: Side
    second: Side
    shared: tuple[Shared, ...]
    lengths: Mapping[str, int]
    table: Table = UNRELATED
    weights: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    equated: tuple[str, ...] = ()
    converted: tuple[str, ...] = ()

    @cached_property
    def inputs(self) -> tuple[Shared, ...]:
        """The arrays that are drawn, with angles in place of tables computed from them."""
        return with_angles(self.shared, self.table)

    @property
    def count(self) -> int:
        """The number of results that are compared."""
        return min(len(self.first.results), len(self.second.results))

    @property
    def letters(self) -> list[str]:
        """The letters of the lengths that inputs have."""
        return [c for c in self.lengths if any(c in one.letters for one in self.inputs)]

    @property
    def names(self) -> tuple[str, str]:
        """What the programs are called where both are named."""
        one, other = self.first.program.name, self.second.program.name
        return ("the first", "the second") if one == other else (one, other)

    @property
    def modules(self) -> tuple[nn.Module, ...]:
        """The modules of both programs, starting with those whose weights are used."""
        own = [self.second.source, self.first.source, self.first.module, self.second.module]
        for side in (self.first, self.second):
            own += modules_in(side.program.call)
        return tuple(dict.fromkeys(one for one in own if one is not None))

    def side(self, name: str) -> Side:
        """Return the first or the second program."""
        return self.first if name == "first" else self.second

    def results(self, side: str, values: Sequence[Tensor]) -> list[Tensor]:
        """Return the results of one program, in the axes of the first program; True becomes 1."""
        given = with_tables(self.shared, self.table, values)
        own = self.side(side)
        found = [_number(x) for x in own.run(given)[: self.count]]
        if own is self.first:
            return found
        return [in_axes_of_first(self.first, self.second, k, x) for k, x in enumerate(found)]

    def results_of_copies(self, side: str, values: Sequence[Tensor]) -> list[Tensor]:
        """Return the results on copies, since a program may write into its inputs."""
        return self.results(side, [x.clone() for x in values])

    def formats(self, side: str, values: Sequence[Tensor]) -> list[torch.dtype]:
        """Return the dtype of each result as the program returns it, on copies."""
        own = self.side(side)
        given = with_tables(self.shared, self.table, [x.clone() for x in values])
        return [x.dtype for x in own.run(given)[: self.count]]

    def result(self, side: str, k: int) -> Callable[..., Tensor]:
        """Return one result of one program as a function of the given arrays."""
        return lambda *values: self.results(side, values)[k]

    def tokens_of(self, k: int) -> int | None:
        """The axis of a result along which its queries lie, or its tokens; None if it has none."""
        letters = [letters_in((axis,)) for axis in axes_of(self.first, k)]
        return next((letters.index((c,)) for c in "rn" if (c,) in letters), None)

    def _hide_keys(self) -> list[bool]:
        """Return for each result whether it contains −∞."""
        with torch.no_grad():
            found = self.results("first", drawn(self.inputs, self.lengths, 0))
        return [bool(x.isneginf().any()) if x.is_floating_point() else False for x in found]

    def subject(self) -> Pair:
        """Return the pair as a subject of a law."""
        given = {
            one.name: " ".join((INPUT_KINDS.get(one.kind, "real"), *one.letters))
            for one in self.inputs
        }
        calls = {
            f"{side}_{k}": self.result(side, k)
            for k in range(self.count)
            for side in ("first", "second")
        }
        return Pair(
            name=f"{self.first.program.name} and {self.second.program.name}",
            calls=calls,
            inputs=drawn(self.inputs, self.lengths, 0),
            letters=tuple(" ".join(one.letters) for one in self.inputs),
            formulas=tuple(
                _formula(k, given, hides=hides) for k, hides in enumerate(self._hide_keys())
            ),
            module=nn.ModuleList(self.modules) if self.modules else None,
            adapted="compared",
            source=self.first.place,
            sources=(self.first.program.call, self.second.program.call),
        )


def _number(x: Tensor) -> Tensor:
    """Return truth values as 0 and 1."""
    return x.float() if x.dtype == torch.bool else x


def _formula(k: int, given: Mapping[str, str], *, hides: bool) -> Formula:
    """State that the k-th results are equal; their exponentials, if they hide keys by −∞."""

    def sides(calls: Any, **values: Any) -> tuple[Any, Any]:
        found = (getattr(calls, f"{side}_{k}")(*values.values()) for side in ("first", "second"))
        return tuple(array_namespace(x).exp(x) if hides else x for x in found)

    return Formula(
        LAW,
        "pair",
        f"first_{k}",
        given,
        sides,
        (("the first", "the second"),),
        others=(f"second_{k}",),
    )


@dataclass(frozen=True)
class _ReadProgram:
    """A program with its call line, and known lengths."""

    code: Code
    signature: Signature
    known: Mapping[str, int]
    guessed: bool


def pair_programs(
    first: Operand, second: Operand, where: str = "", weights: str = ""
) -> ProgramPair:
    """Return two programs on the same arrays, with lengths at which both run.

    Raises :class:`WrongSpecification`, :class:`SignatureError`, :class:`DoesNotFit`, or what the
    code raises.
    """
    maps = expressions(weights) if weights else {}
    left: tuple[str, ...] = ()
    with torch.random.fork_rng(devices=[]):
        seeded(0)  # classes draw the same weights in every run
        if isinstance(second.thing, str):
            read(second.thing)  # report errors in it before errors in the call
            one = _read(first)
            second, known_weights = specified(second.thing, one.signature, one.code.module)
            maps, other = {**known_weights, **maps}, _read(second)
            left = _unused_weights(one.code.module, maps, second.name)
        else:
            one, other = _read_both(first, second)
    shared = shared_of(one.signature)
    known = {**other.known, **one.known}
    alone, fixed = length_arguments(shared, (one.signature, other.signature), known)
    if not shared and not alone:
        raise SignatureError(f"{first.name} takes no input: there is nothing to compare it on")
    made = _argument_expressions(where, [one.name for one in shared])
    own = {a.name for a in other.signature.arguments}
    told = {**made, **{name: how for name, how in maps.items() if name in own}}
    matching = match_arguments(
        shared, other.signature, {**made, **dict.fromkeys(told, "")}, second.name
    )
    matching = {**matching, **made}
    for name in set(maps) & own:
        matching.pop(name, None)
    shared += alone
    here = _side(one, shared, {a.name: a.name for a in one.signature.arrays}, known)
    there = _side(other, shared, matching, known)
    here, there, names = _weighted(here, there, maps)
    same = common_letters(shared, (here, there))
    shared = with_letters(shared, same)
    here, there = replace(here, shared=shared), replace(there, shared=shared)
    notes = (*_result_count_note(one, other), *left)
    converted = dict.fromkeys(
        clause.replace(" it ", f" {told.code.name} ", 1)
        for told in (one, other)
        for clause in filter(None, told.code.converted.split("; "))
    )
    both = ProgramPair(
        here, there, shared, {}, weights=names, notes=notes, converted=tuple(converted)
    )
    equated = (f"{c} = {d}" for c, d in same.items() if c != d)
    both = replace(both, equated=(*equated, *(f"{c} = {known[c]}" for c in fixed)))
    return _with_lengths(both, {same.get(c, c): n for c, n in known.items()})


def _read_both(first: Operand, second: Operand) -> tuple[_ReadProgram, _ReadProgram]:
    """Return both programs with their lines: a missing line is guessed, or taken from the other."""
    try:
        one = _read(first)
    except (SignatureError, DoesNotFit):
        other = _read(second)
        if not _has_parameters(first, str(other.signature)):
            raise
        return _read(replace(first, call=str(other.signature))), other
    try:
        return one, _read(second)
    except (SignatureError, DoesNotFit):
        if second.call or not _has_parameters(second, str(one.signature)):
            raise
        return one, _read(replace(second, call=str(one.signature)))


def _read(told: Operand) -> _ReadProgram:
    """Return a program with its line, as given or guessed."""
    call = told.call
    if isinstance(told.thing, Program) and not call:
        call = str(told.thing.signature)
    known: dict[str, int] = {}
    subject: Subject | None = None
    thing = told.thing.call if isinstance(told.thing, Program) else told.thing
    settings: dict[str, Any] = {"settings": dict(told.settings)} if told.settings else {}
    try:
        subject = adapted_as(thing, call, name=told.name, **settings)
    except NoSetting as error:
        raise SignatureError(str(error)) from None
    except NoAdapter:
        if not call:
            raise SignatureError(
                f"the call of {told.name} cannot be guessed from its names; write it in axes, "
                "such as --call 'q: B H r D, k: B H n D, v: B H n D -> B H r D'"
            ) from None
    except Exception:  # of no known kind, but perhaps callable by its line
        if not call:
            raise
    line = call or (subject.line if subject is not None else "")
    if not line:
        raise SignatureError(f"wanted the call of {told.name} as --call 'x: B n E -> B n E'")
    signature = parse(line)
    if signature.then is not None:
        raise SignatureError(
            f"{told.name}: a second call after the first cannot be compared yet; write a "
            "function that makes both calls"
        )
    thing, built = resolved(thing, subject.kind if subject else "", dict(told.settings))
    code = code_under_test(thing, told.name, Options(settings=built))
    code = _as_adapted(code, subject.conditions if subject is not None else ())
    code = as_described(code, signature)
    for letter, name in (("D", "width"), ("E", "embed"), ("H", "heads"), ("G", "groups")):
        size = getattr(subject, name, 0) or 0
        if size and letter in signature.letters:
            known[letter] = size
    return _ReadProgram(code, replace(signature, step=None), known, guessed=not told.call)


def _as_adapted(code: Code, conditions: Sequence[str]) -> Code:
    """Return the code as it was run when its call was guessed: in float32, or uncompiled."""
    wide = in_float32(code)
    if wide and {*wide.converted.split("; ")} <= {*conditions}:
        code = wide
    if UNCOMPILED in conditions and UNCOMPILED not in code.converted:
        code = run_uncompiled(code)  # it makes the tables
    return code


def _has_parameters(told: Operand, line: str) -> bool:
    """Whether code has parameters with the names in a line."""
    thing = told.thing
    with suppress(Exception):
        known = {one.name for one in parameters(getattr(thing, "forward", thing))}
        return {one.name for one in parse(line).arguments} <= known
    return False


def _argument_expressions(where: str, known: Sequence[str]) -> dict[str, Any]:
    """Return expressions for arguments of the second program in arrays of the first."""
    found: dict[str, Any] = {}
    for part in filter(None, (p.strip() for p in where.split(";"))):
        both = joined(part, known)
        if both is not None:
            found |= {name: (parts, both[1]) for name, parts in both[0].items()}
        else:
            found |= expressions(part)
    return found


def _side(
    read: _ReadProgram,
    shared: tuple[Shared, ...],
    made: Mapping[str, Any],
    known: Mapping[str, int],
) -> Side:
    code, signature = read.code, read.signature
    lengths = lengths_for(shared, known)
    missing = [c for one in signature.built for c in one.lengths if c not in lengths]
    if missing:
        raise SignatureError(
            f"{read.code.name} is built with {missing[0]}, which is not an axis of any array; "
            "write a number for it"
        )
    sized = {one.name: one.at(lengths) for one in signature.built if one.lengths}
    if sized:
        code = as_described(code.again(**sized), replace(signature, built=()))
    program = Program(code.call, signature, code.name)
    back = tuple(name for name, _ in signature.named_results)
    return Side(program, code.module, str(signature), code.place, shared, made, known, back)


def _weighted(
    first: Side, second: Side, maps: Mapping[str, Expression]
) -> tuple[Side, Side, tuple[str, ...]]:
    """Return both sides with one set of weights: the first's, or the second's if so defined."""
    own, theirs = _parameters(first), _parameters(second)
    if not maps:
        if first.module is None or second.module is None:
            return first, second, ()
        maps = _weights_by_name(own, theirs)
    names = {name for how in maps.values() for name in how.names}
    if names <= set(own):
        return first, replace(second, weights=dict(maps), source=first.module), tuple(maps)
    if names <= set(theirs):
        return replace(first, weights=dict(maps), source=second.module), second, tuple(maps)
    wrong = sorted(names - set(own))
    raise SignatureError(
        f"--weights names {', '.join(wrong)}, which is not a weight of {first.program.name}; "
        f"it has {', '.join(own) or 'none'}"
    )


def _parameters(side: Side) -> dict[str, Tensor]:
    return {} if side.module is None else dict(side.module.named_parameters())


def _weights_by_name(
    one: Mapping[str, Tensor], other: Mapping[str, Tensor]
) -> dict[str, Expression]:
    """Map each parameter of the second program to the one of the same name in the first.

    Raises :class:`SignatureError` if there is none.
    """
    alone = [name for name in other if name not in one]
    if alone:
        left = [f"{name} {tuple(one[name].shape)}" for name in one if name not in other]
        told = ", ".join(f"{name} {tuple(other[name].shape)}" for name in alone)
        raise SignatureError(
            f"the second program has weights that the first lacks: {told}; unmatched in "
            f"the first: {', '.join(left) or 'none'}; write --weights '{alone[0]} = ..'"
        )
    return {name: itself(name) for name in other}


def _unused_weights(
    module: nn.Module | None, maps: Mapping[str, Expression], name: str
) -> tuple[str, ...]:
    """Remark on the weights of a module that a specification does not use."""
    used = {name for how in maps.values() for name in how.names}
    left = [] if module is None else [n for n, _ in module.named_parameters() if n not in used]
    return (f"{name} uses none of {', '.join(left)}",) if left and maps else ()


def _result_count_note(one: _ReadProgram, other: _ReadProgram) -> tuple[str, ...]:
    own, theirs = (len(read.signature.array_results) for read in (one, other))
    if own == theirs:
        return ()
    if not (one.guessed or other.guessed):
        raise SignatureError(
            f"wanted the same number of results from both programs, got {own} and {theirs}; "
            "write _ for results to ignore"
        )
    fewer = min(own, theirs)
    which = "only the first is" if fewer == 1 else f"the first {fewer} are"
    return (f"of {own} and {theirs} results, {which} compared",)


def _with_lengths(both: ProgramPair, known: Mapping[str, int]) -> ProgramPair:
    """Return the pair at lengths at which both programs run.  Raises what they raise."""
    base = lengths_for(both.shared, known)
    first: Exception | None = None
    for change in ({}, {"G": base.get("H", 0)}, dict.fromkeys("rm", base.get("n", 0))):
        lengths = {c: change.get(c) or n for c, n in base.items()}
        tried = replace(
            both,
            lengths=lengths,
            first=replace(both.first, lengths={**both.first.lengths, **lengths}),
            second=replace(both.second, lengths={**both.second.lengths, **lengths}),
        )
        try:
            with torch.no_grad():
                values = drawn(tried.inputs, lengths, 0)
                for side in ("first", "second"):
                    shapes(tried, side, values)
        except Exception as error:  # noqa: BLE001 (the code may raise anything)
            first = first or error
            continue
        return tried
    assert first is not None
    raise first


def shapes(both: ProgramPair, side: str, values: Sequence[Tensor]) -> list[tuple[int, ...]]:
    """Return the shapes of the results; ``SignatureError``, with the call, if the code raises."""
    told = both.side(side)
    try:
        return [tuple(x.shape) for x in both.results(side, values)]
    except SignatureError:
        raise
    except Exception as error:
        whole = Subject(name=told.program.name, source=told.place, adapted="by its call line")
        if fault_in(whole, error) is not None:
            raise
        given = ", ".join(
            f"{one.name} {tuple(x.shape)}" for one, x in zip(both.inputs, values, strict=True)
        )
        raise SignatureError(
            f"{told.program.name}, called as {told.line} with {given}, raised {in_a_line(error)}"
        ) from None


def worst(findings: Sequence[Finding]) -> Finding:
    """Return the finding that speaks most against the two programs being equal."""
    order = ("internal error", "broken", "undecided", "not asked", "holds")
    return min(findings, key=lambda one: order.index(one.verdict))
