"""Compare two programs where a comparison of either has another outcome than with few tokens.

Numbers of the source and their neighbours are run in any case; ``B * n == 602`` names no length.
The comparisons of each program are watched, and the lengths at which an outcome changes are solved
for (:mod:`..prove.branches`), those of channels and heads as well.  What could not be run stands on
the line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import count

import torch

from attnproof.documents.verdict_line import Condition

from ..execution.draw import Draw
from ..prove.branches import Search
from ..prove.call_variants import ALL_WAYS, inputs_for
from ..prove.executed_code import counts_calls
from .inputs import Meeting
from .measure import NumericComparison, batch_axes, compare_at, drawn_or_none, run_in
from .pair import ProgramPair

Lengths = Mapping[str, int]
HEADS, FEATURES = "HG", "DEFCPVd"  # letters of lengths that code often fixes


def compare_where_asked(
    both: ProgramPair,
    programs: Sequence[Meeting],
    draw: Draw,
    found: NumericComparison,
    work: Callable[[Lengths], int],
    most: int,
) -> tuple[Condition, ...]:
    """Compare both at these lengths; return the outcomes that no run could change.

    The first difference is kept in ``found``.  ``work``: what a call at some lengths computes;
    ``most``: what the calls of one search may compute.
    """
    asks: dict[str, None] = {}
    for one in programs:
        call = partial(_Watched(both, one, draw, found, work, most).call, {}, "plain")
        asks |= dict.fromkeys(counts_calls(one.met.ran.codes, one.met.roots, call))
        for own in _groups(both.letters):
            run = _Watched(both, one, draw, found, work, most, in_groups={*HEADS} <= {*own})
            free = [c for c in own if run.is_free(c)]
            if not free:
                continue
            one.met.watch.sides.clear()  # of runs along other axes
            # code may compare only in inference mode, or where gradients are wanted
            search = Search(run, one.met.watch, free, ALL_WAYS, free, in_all=False)
            search.where_outcomes_change()
            if found.counterexample is not None:
                return ()
            asks |= dict.fromkeys(search.length_conditions())
        asks |= dict.fromkeys(one.met.conditions())
    return tuple(Condition(told, "where") for told in asks)


def _groups(letters: Sequence[str]) -> list[list[str]]:
    """Return the letters of channels, of heads, of tokens and rows, and all of them.

    >>> _groups(["B", "n", "E"])
    [['E'], ['B', 'n'], ['B', 'n', 'E']]
    """
    groups = [[c for c in letters if c in some] for some in (FEATURES, HEADS)]
    groups.append([c for c in letters if c not in FEATURES + HEADS])
    found = [own for own in groups if own]
    return found if len(found) < 2 else [*found, list(letters)]


@dataclass
class _Watched:
    """One program of a pair in the form that the search over its comparisons expects.

    ``in_groups``: H stands for the heads of each group, since H heads are a multiple of G.
    """

    both: ProgramPair
    program: Meeting
    draw: Draw
    found: NumericComparison
    work: Callable[[Lengths], int]
    left: int
    in_groups: bool = False
    _seeds: Iterator[int] = field(default_factory=count)

    def is_free(self, letter: str) -> bool:
        """Whether both programs accept another length of this letter."""
        base = self.program.at[letter]
        for n in (base + 1, 2 * base):
            values = drawn_or_none(self.both, self._whole({letter: n}), self.draw)
            with suppress(Exception), torch.no_grad():  # code may raise anything
                for side in ("first", "second") if values else ():
                    self.both.results_of_copies(side, values)
                return bool(values)
        return False

    def call(self, at: Lengths, way: str) -> None:
        """Run this program only, on other numbers each time."""
        draw = Draw(next(self._seeds), self.draw.dtype)
        values = drawn_or_none(self.both, self._whole(at), draw)
        run = partial(run_in, way, self.both, self.program.side)
        with suppress(Exception), torch.no_grad():  # code may raise anything
            self.program.met.watched(run)(values)

    def agrees(self, at: Lengths, way: str) -> bool:
        """Whether both programs agree there; a difference is kept."""
        whole = self._whole(at)
        self.left -= self.work(whole)
        values = drawn_or_none(self.both, whole, self.draw)
        if values and way != "plain":
            values = inputs_for(way, values, batch_axes(self.both))
        return not compare_at(self.both, whole, values, self.draw, self.found, way=way)

    def allowed(self, at: Lengths) -> bool:
        """Whether these are lengths."""
        return min(at.values(), default=1) > 0

    def affordable(self, at: Lengths) -> bool:
        """Whether a call is cheap enough."""
        return self.work(self._whole(at)) <= self.left

    def _whole(self, at: Lengths) -> dict[str, int]:
        base = dict(self.program.at)
        if self.in_groups:
            each, groups = at.get("H", base["H"] // base["G"] or 1), at.get("G", base["G"])
            return {**base, **at, "G": groups, "H": each * groups}
        return {**base, **at}
