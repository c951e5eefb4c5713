"""Lengths at which code may behave differently: those that it compares, and the numbers it meets.

Code that compares its lengths (``if n > 1000``) may take another path with more tokens than laws
are run with.  Its comparisons are watched, and the lengths are those where one turns out
differently (:mod:`attnproof.programs.prove.branches`); more tokens, or rows, than the largest
number that the code meets (:mod:`attnproof.programs.prove.compared_numbers`), and exactly as many
as the first of these; and as many tokens as a stored square table has rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ..documents.verdict_line import Condition
from ..programs.calls.counts import has_constant_diagonals
from ..programs.execution.calling import evaluating, restored_settings
from ..programs.execution.draw import normal
from ..programs.execution.response import Entries
from ..programs.prove.branches import Search
from ..programs.prove.comparison_monitor import ComparedSides, ComparisonMonitor
from ..programs.prove.executed_code import counts_calls, counts_steps
from ..programs.subjects import Additive, Attention, Bias, Layer, Mask, Rotary, Subject
from .calls_at_lengths import NUMBERS, SHORT, Call, sizes_of, takes
from .comparison_outcomes import SOME, OwnRuns

Lengths = Mapping[str, int]
MAX_VALUES = 4_500_000  # values that one call computes, in about a tenth of a second
APPENDED = 8  # tokens that laws may append, for which a table needs rows
# All code is run beyond these: the end of bytes and of exact integers in bfloat16; some rows.
ALWAYS = {"n": 256, "B": 32}
MIDDLE = 130  # tokens that are cheap, if more are too expensive for a law
CHEAP_VALUES = MAX_VALUES // 3  # values that every law can afford; the limit for many rows
LARGE_CALL = 180_000  # entries that a call of few tokens computes if it takes longer than most
EXACT_VALUES = MAX_VALUES // 3  # values computed at the numbers themselves, for each law
TOKENS_PER_ROW = 5  # tokens per row, if there are many rows
TOKENS = 4  # vectors computed from each token
WIDTH = 8  # features of a head that cost nothing more
FEWER = 3  # queries than keys
REFUSALS = 8  # at most so many numbers are dropped because the code rejects them


def square_tables(subject: Subject) -> Iterator[tuple[str, Tensor]]:
    """Yield the name and value of each stored table with as many rows as columns."""
    for name, x in subject.module.named_buffers() if subject.module is not None else ():
        if x.dim() > 1 and x.shape[-1] == x.shape[-2]:
            yield name, x


@dataclass(frozen=True)
class Longer:
    """Lengths at which code may take another path.

    ``alike``: no comparison leads there, and each row of every stored square table is the previous
    row shifted by one place.  ``few``: they are run although they are few.  ``exactly``: only the
    number of tokens may matter there, which code meets as a number of its own.
    """

    at: Lengths
    alike: bool = False
    few: bool = False
    exactly: bool = False


@dataclass(frozen=True)
class Places:
    """Where code may take another path: lengths to run, conditions out of reach, and its numbers.

    ``asked``: comparisons that have, or may have, another outcome at other lengths.  ``numbers``:
    for each axis, the numbers in the source and in operations that may be so many tokens or rows,
    except those that the code is known to reject.  ``own``: the code whose comparisons are watched,
    if it has a call.  ``of_steps``: conditions on how often code is called in steps.  ``scale``:
    how many times as long as most a call takes.
    """

    longer: Sequence[Longer] = ()
    where: Sequence[str] = ()
    asked: frozenset[tuple[int, int]] = frozenset()
    numbers: Mapping[str, Sequence[int]] = field(default_factory=dict)
    own: OwnRuns | None = None
    of_steps: Sequence[str] = ()
    scale: int = 1

    def below(self, reached: Lengths) -> list[Condition]:
        """Return the conditions that lengths stay below the numbers that were not run."""
        least = {
            c: min((n for n in ns if n >= reached[c]), default=0) for c, ns in self.numbers.items()
        }
        return [Condition(f"{c} ≤ {n - 1}", "for") for c, n in least.items() if n]


def _parameters(subject: Subject) -> Iterator[Tensor]:
    yield from subject.module.parameters() if subject.module is not None else ()


def _tables_alike(subject: Subject) -> bool:
    return all(has_constant_diagonals(x) for _, x in square_tables(subject))


def lengths_of(subject: Subject, own: OwnRuns | None = None) -> Places:
    """Return where comparisons turn out differently, what no run could reach, and the numbers.

    ``own``: the code, if it is watched already.
    """
    own = own or OwnRuns.watched(subject)
    if own is None:
        return Places()
    # state that the code sets in these runs must not reach others
    with restored_settings(), evaluating(subject), torch.no_grad():
        return _lengths_of(subject, own)


def _lengths_of(subject: Subject, own: OwnRuns) -> Places:
    met, call, letters = own.numbers, own.call, own.letters
    watch = met.watch
    scale = _scale(call)
    alone = _Alone(subject, met.watched(call), scale)
    heard = _Alone(subject, met.ran.recording(call), scale)
    sizes, known = {n for one in _parameters(subject) for n in one.shape} - met.passed, -1
    while len(met.ran.codes) > known:  # more tokens may lead to other code
        known = len(met.ran.codes)
        met.instrument()
        search = Search(alone, watch, letters, ("plain",))
        search.where_outcomes_change()
        changes = dict(_cheapest_changes(watch, alone, heard.code))
        found = [*(one for some in changes.values() for one in some), *_of_tables(subject)]
        asked = sorted(n for n in met.numbers() if n in NUMBERS)
        named = _Named(heard, asked, _tables_alike(subject), sizes)
        found += [one for letter in letters if letter in "Bn" for one in named.along(letter)]
    counted = [*counts_calls(met.ran.codes, met.roots, partial(takes, call, {"B": 2, "n": 5}))]
    ends = (subject.only_length - 1, subject.only_length)  # laws may append a token
    found += [Longer({"n": n}) for n in ends if n > 0 and takes(call, {"B": 1, "n": n})]
    kept: dict[tuple[tuple[str, int], ...], Longer] = {}
    for one in (one for one in found if one.few or max(one.at.values()) >= SHORT):
        at = _of_law(subject, one.at)
        key = tuple(sorted(at.items()))
        before = kept.get(key, replace(one, at=at))
        kept[key] = replace(before, alike=before.alike and one.alike)
    longer = sorted(kept.values(), key=lambda one: work(subject, one.at))
    exactly = (n for n in met.numbers() if n in asked and n >= SHORT and n not in sizes)
    longer += _cheap(subject, exactly, {one.at["n"] for one in longer if one.at.get("B", 1) == 1})
    other = {one.place[:2] for one in search.untested_lengths()} | changes.keys()
    told = [*met.conditions(), *counted]
    steps = [*_of_steps(subject)]
    return Places(longer, told, frozenset(other), named.left, own, steps, scale)


def _scale(call: Call) -> int:
    """Return how many times as long as most a call takes.

    A model of many layers, or of many random features, makes as many more values in a call.
    """
    made = Entries()
    with suppress(Exception), made:  # the code may take no call of so many tokens
        call(SOME)
    return max(1, made.count // LARGE_CALL)


def _of_steps(subject: Subject) -> Iterator[str]:
    if isinstance(subject, Attention | Layer) and subject.step is not None:
        with suppress(Exception):  # the code may take no further tokens
            yield from counts_steps(subject.step, normal(2, 5, subject.embed, seed=5))


def _cheap(subject: Subject, numbers: Iterable[int], known: Collection[int]) -> Iterator[Longer]:
    """Yield as many tokens as the first of these numbers, while that is cheap.

    Code may ask for one number in ways that no comparison shows: by a hash, or in a text.
    """
    left = EXACT_VALUES
    for at in (_of_law(subject, {"n": n}) for n in numbers if n not in known):
        left -= work(subject, at)
        if left < 0:
            return
        yield Longer(at, alike=True, exactly=True)


@dataclass
class _Alone:
    """Code that runs by itself, in the form that the search over its comparisons expects."""

    subject: Subject
    code: Call
    scale: int = 1

    def call(self, at: Lengths, way: str) -> None:
        """Run it."""
        del way
        takes(self.code, at)

    def agrees(self, at: Lengths, way: str) -> bool:
        """Return True: there is nothing to compare the code with."""
        del at, way
        return True

    def allowed(self, at: Lengths) -> bool:
        """Whether these are valid lengths."""
        return min(at.values(), default=1) > 0

    def affordable(self, at: Lengths) -> bool:
        """Whether a call is cheap enough."""
        return work(self.subject, at) <= MAX_VALUES


def work(subject: Any, at: Lengths) -> int:
    """Return roughly how many values a call computes: those of its scores, or of its tokens."""
    rows, keys = at.get("B", 1), at.get("n", 1)
    rows = rows**2 if "bounds" in subject.line else rows  # rows are packed into one axis
    heads = int(getattr(subject, "heads", 1))
    if isinstance(subject, Rotary):
        width = 2 * at["P"] if "P" in at else subject.width
        return rows * at.get("H", heads) * keys * width
    if isinstance(subject, Additive):
        return rows * keys * at.get("E", subject.width)
    heads = at.get("H", heads) * at.get("D", WIDTH) // WIDTH
    layer = isinstance(subject, Layer) or getattr(subject, "attend", None) is None
    queries = keys if layer and not isinstance(subject, Bias | Mask) else at.get("r", keys)
    made = TOKENS * at.get("E", int(getattr(subject, "embed", 0)))  # per token
    return rows * keys * (heads * queries + made)


def _cheapest_changes(
    watch: ComparisonMonitor, alone: _Alone, heard: Call
) -> Iterator[tuple[tuple[int, int], list[Longer]]]:
    """Yield each comparison, and the cheapest lengths at which it turns out as not for few.

    ``heard``: the code, of which what it runs is recorded; lengths at which it raises are skipped.
    """
    met: dict[tuple[int, int], list[ComparedSides]] = {}
    for (site, entry, _), some in watch.sides.items():
        met.setdefault((site, entry), []).extend(some)
    for place, some in met.items():
        few = {one.answer for one in some if max(one.at.values()) < SHORT}
        first: dict[bool, Lengths] = {}
        for one in sorted(some, key=lambda one: work(alone.subject, one.at)):
            first.setdefault(one.answer, one.at)
        if len(first) < 2:
            continue
        if len(few) == 1:
            (answer,) = few
            at = _fewest(watch, alone, place, first[not answer], not answer)
            square = {**at, "r": at["n"]} if "r" in at else at
            taken = any(takes(heard, one) for one in (at, square, first[not answer]))
            found = [Longer(at, few=True)] * taken
        else:  # laws are run with some of few lengths, not with all
            found = [Longer(at, few=bool(few)) for at in first.values() if takes(heard, at)]
        if found:
            yield place, found


def _fewest(
    watch: ComparisonMonitor, alone: _Alone, place: tuple[int, int], first: Lengths, answer: bool
) -> Lengths:
    """Return lengths like the first with this answer, of which some are few."""
    at, own = dict(first), sizes_of(alone.subject)
    usual = {"B": 1, "n": SOME["n"] if own else 2, "r": SOME["n"] if own else 2, **own}
    for letter in at:
        fewer = {**at, letter: usual[letter]}
        with watch.run(fewer, "plain"):
            alone.call(fewer, "plain")
        again = (one for k in watch.sides if k[:2] == place for one in watch.sides[k])
        if any(one.at == fewer and one.answer == answer for one in again):
            at = fewer
    return {c: n for c, n in at.items() if own.get(c) != n}


def _of_tables(subject: Subject) -> Iterator[Longer]:
    """Yield as many tokens as a square table has rows, and fewer, so that laws may append some."""
    for more in (0, APPENDED):
        ends = [x.shape[-1] - more for _, x in square_tables(subject)]
        fits = [n for n in ends if n >= SHORT and work(subject, {"n": n}) <= MAX_VALUES]
        if fits:
            yield Longer({"n": max(fits)}, alike=_tables_alike(subject))


@dataclass
class _Named:
    """Lengths beyond the numbers in some code; ``left``: the numbers it is not known to reject.

    ``sizes``: numbers that are run like the others, but taken to be widths of parameters and not
    left.
    """

    alone: _Alone
    numbers: Sequence[int]
    alike: bool
    sizes: Collection[int] = ()
    left: dict[str, list[int]] = field(default_factory=dict)

    def along(self, letter: str) -> Iterator[Longer]:
        """Yield lengths beyond the largest number the code accepts, and cheap ones if needed."""
        left = self.left[letter] = [n for n in self.numbers if n not in self.sizes]
        no: set[int] = set()
        numbers = sorted({*self.numbers, ALWAYS[letter]})
        enough = False
        for bound in (numbers[-1], MIDDLE):
            if enough:
                break
            for n in reversed([n for n in numbers if n <= bound and n not in no]):
                tried = [at for at in self._beyond(letter, n) if self._affordable(letter, at)]
                at = next((at for at in tried if takes(self.alone.code, at)), None)
                if at is not None:
                    yield Longer(at, alike=self.alike)
                    if at[letter] == n:  # it rejects more, and a law may need more
                        no.add(n)
                        if letter == "n" and n - APPENDED >= SHORT:
                            fewer = {**at, letter: n - APPENDED, "m": APPENDED}
                            yield Longer(fewer, alike=self.alike)
                    enough = at[letter] > n and work(self.alone.subject, at) <= CHEAP_VALUES
                    break
                if tried and len(no) < REFUSALS:
                    no.add(n)
        left[:] = [n for n in left if n not in no]

    def _affordable(self, letter: str, at: Lengths) -> bool:
        made = self.alone.scale * work(self.alone.subject, at)
        return made <= (CHEAP_VALUES if letter == "B" else MAX_VALUES)

    @staticmethod
    def _beyond(letter: str, number: int) -> Iterator[Lengths]:
        """Yield lengths beyond a number: a cached step gets fewer of them, and tables end."""
        for many in (number + 3, number + 1, 2 * number, number):
            yield {"n": TOKENS_PER_ROW, letter: many}


def _of_law(subject: Subject, at: Lengths) -> Lengths:
    """Return the lengths of all letters that laws use."""
    if isinstance(subject, Bias | Mask):
        queries = at.get("r", at["n"] if isinstance(subject, Mask) else 2)
        # with as many keys as queries, masks that are aligned otherwise are alike
        return {"n": at["n"] if at["n"] >= queries else queries + FEWER, "r": queries}
    if isinstance(subject, Additive):
        return {"B": 1, **at}
    if isinstance(subject, Rotary):  # the last of all tokens are a law's queries
        last = min(3, at["n"])
        return {"B": 1, "r": last, "m": max(1, at["n"] - last), **at}
    whole = isinstance(subject, Attention) and subject.attend is not None
    behind = at.get("m", 1)  # tokens that a law appends
    return {"B": 1, "r": at["n"] if whole else behind, "m": at["n"], **at}
