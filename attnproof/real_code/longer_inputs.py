"""Check unproved laws again at lengths where the code takes another path.

Laws are run with few tokens.  Code that compares its lengths (``if n > 1000``) may behave
differently with more.  Its comparisons are watched, and the laws are run where one turns out
differently (:mod:`attnproof.programs.prove.branches`); with more tokens, or rows, than the largest
number that the code meets (:mod:`attnproof.programs.prove.met_numbers`), and exactly as many as the
first of these; and with as many tokens as a stored square table has rows.  The verdict line states
what would be too much work, and which keys and entries of a stored mask were not examined.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ..documents.verdict_line import Condition
from ..programs.as_read import LAWS as OF_MASKS
from ..programs.calls.counts import has_constant_diagonals
from ..programs.execution.calling import evaluating, restored_settings
from ..programs.execution.draw import Draw
from ..programs.finding import AT_OTHER_LENGTHS, Finding
from ..programs.measure.examine import examine
from ..programs.prove.branches import OpenComparison, Search
from ..programs.prove.executed_code import counts_calls
from ..programs.prove.met_numbers import MetNumbers
from ..programs.prove.watch import FEW, HINTS, ComparedSides, Watch
from ..programs.subjects import Additive, Attention, Bias, Layer, Mask, Rotary, Subject
from ..theorems.laws import laws_of
from ..theorems.laws.masks import looked_at
from .every_call import NUMBERS, SHORT, Call, call_of, calls_of

Lengths = Mapping[str, int]
MAX_VALUES = 4_500_000  # values that one call computes, in about a tenth of a second
MAX_WORK = 64_000_000  # the same for all laws together
CALL_VALUES = 10_000  # values that are computed in the time of a call of few tokens
SIDES = 2  # calls of the code per law; each key that it examines takes one more
# Laws of state are no formulas; calls of the code, in calls of the lengths at which they are run.
OF_STATE = {"no-mutation": 4, "evaluation-repeats": 25, "stateless": 80}
# Products of all pairs of tokens, each with its bound, that a law makes of a table.
OF_PAIRS = {"products-of-offset": 12}
APPENDED = 8  # tokens that laws may append, for which a table needs rows
MASK_VALUES = 2  # distinct values of a mask: visible and hidden
# All code is run beyond these: the end of bytes and of exact integers in bfloat16; some rows.
ALWAYS = {"n": 256, "B": 32}
MIDDLE = 130  # tokens that are cheap, if more are too expensive for a law
CHEAP_VALUES = MAX_VALUES // 3  # values that every law can afford; the limit for many rows
EXACT_VALUES = MAX_VALUES // 3  # values computed at the numbers themselves, for each law
TOKENS_PER_ROW = 5  # tokens per row, if there are many rows
TOKENS = 4  # vectors computed from each token
REFUSALS = 8  # at most so many numbers are dropped because the code rejects them


@dataclass(frozen=True)
class Longer:
    """Lengths at which code takes another path, and the comparison that leads there.

    ``asks``: the outcome of that comparison in all other runs, as a condition; "" if the lengths
    come from a number in the source or from the rows of a table.  ``alike``: no comparison leads
    there, and each row of every stored square table is the previous row shifted by one place.
    """

    at: Lengths
    asks: str = ""
    alike: bool = False


@dataclass(frozen=True)
class Places:
    """Where code may take another path: lengths to run, conditions out of reach, and its numbers.

    ``numbers``: for each axis, the numbers in the source and in operations that may be so many
    tokens or rows, except those that the code is known to reject.
    """

    longer: Sequence[Longer] = ()
    where: Sequence[str] = ()
    numbers: Mapping[str, Sequence[int]] = field(default_factory=dict)

    def below(self, reached: Lengths) -> list[Condition]:
        """Return the conditions that lengths stay below the numbers that were not run."""
        least = {
            c: min((n for n in ns if n >= reached[c]), default=0) for c, ns in self.numbers.items()
        }
        return [Condition(f"{c} ≤ {n - 1}", "for") for c, n in least.items() if n]


def at_longer(
    subject: Subject,
    laws: Collection[str],
    draw: Draw,
    begin: Callable[[str], None],
    method: str = "measured",
    exact: Collection[str] = (),
    known: Places | None = None,
) -> Iterator[Finding]:
    """Yield findings at more tokens on laws that hold for few; none if no length is compared.

    ``begin`` is called with each law that is run.  With a ``method`` other than "measured" none is
    run, and the findings state what the code compares.  ``exact``: laws that hold over finite
    fields; their findings state below which of the code's numbers they were run.  ``known``: what
    :func:`lengths_of` returned.
    """
    known = lengths_of(subject) if known is None else known
    formulas = {law.id: law.formulas for law in laws_of(subject.kind)}
    stored = [*_irregular(subject)]
    left, beside = MAX_WORK, set[str]()
    for law in sorted(laws, key=OF_STATE.__contains__):
        own = any(one.kind == subject.kind for one in formulas.get(law, ()))
        own |= law in OF_STATE and not isinstance(subject, Bias | Mask)
        missed, keys = [*known.where, *(stored if law in OF_MASKS else ())], [""]
        reached = dict.fromkeys("Bn", SHORT)
        for one in known.longer:
            cost, made = _cost(subject, law, one.at), None
            if own and cost <= left and method == "measured":
                begin(law)
                left -= cost
                with restored_settings():
                    found = examine(replace(subject, run_at=(one.at,)), (draw,), (law,))
                asked = {each.law: each for each in found if each.verdict != "not asked"}
                made = asked.pop(law, None)
                others = [each for name, each in asked.items() if name not in beside]
                yield from (_longer(each, one) for each in others if each.verdict == "broken")
                beside.update(asked)
                if made is not None and made.verdict != "holds":
                    yield _longer(made, one)
                    break
            if made is None and one.asks:
                missed.append(one.asks)
            elif made is not None:
                reached = {c: max(n, _tokens(subject, one.at, c)) for c, n in reached.items()}
                if not one.alike:  # for the most tokens, which come last
                    keys = [_not_examined(subject, law, one.at)]
        else:
            missed += filter(None, keys)
            assuming = [Condition(asks, "where") for asks in dict.fromkeys(missed)]
            if law in exact:
                assuming += known.below(reached)
            if assuming:
                why = "it holds at lengths at which the comparisons in the code have these outcomes"
                yield Finding(law, method, "holds", why, dtype=draw.format, assuming=(*assuming,))


def affords_all(subject: Subject, laws: Collection[str], known: Places) -> bool:
    """Whether all these laws can be run at all lengths, so that their order does not matter."""
    return sum(_cost(subject, law, one.at) for law in laws for one in known.longer) <= MAX_WORK


def _longer(found: Finding, longer: Longer) -> Finding:
    """Return the finding, prefixed with the lengths at which it was made."""
    at = ", ".join(f"{c} = {n}" for c, n in longer.at.items() if c in "Brn")
    return replace(found, why=f"{AT_OTHER_LENGTHS} ({at}): {found.why}")


def _tokens(subject: Subject, at: Lengths, letter: str) -> int:
    """Return the number of rows or tokens; in a mask the queries follow the other keys."""
    behind = at.get("r", 0) if letter == "n" and isinstance(subject, Bias | Mask) else 0
    return at.get(letter, 1) + behind


def _keys(subject: Subject, law: str, at: Lengths) -> list[int]:
    """Return the keys that a law examines one by one."""
    each = law == "past-is-used" and not isinstance(subject, Mask)
    return looked_at(at["n"]) if each else []


def _cost(subject: Subject, law: str, at: Lengths) -> int:
    """Return roughly how many values a law computes."""
    whole = work(subject, at) * (OF_STATE.get(law, SIDES) + len(_keys(subject, law, at)))
    whole += OF_PAIRS.get(law, 0) * at["n"] ** 2
    counts = isinstance(subject, Rotary) and subject.counts and subject.running is None
    if law == "composition" and counts:
        # Sums of positions do not follow one another: each token may take a call of its own.
        whole += SIDES * CALL_VALUES * at["n"]
    return whole


def _not_examined(subject: Subject, law: str, at: Lengths) -> str:
    """Return the condition that the keys not examined behave like the others; "" if not needed."""
    few, many = len(_keys(subject, law, at)), at["n"]
    told = (
        f"the {many - few} of {many} keys that were not examined are treated like the other {few}"
    )
    return told if 0 < few < many else ""


def _irregular(subject: Subject) -> Iterator[str]:
    """Yield, for each stored mask whose rows differ, a condition on the entries not examined."""
    for name, x in _square(subject):
        if (
            x.shape[-1] > SHORT
            and not has_constant_diagonals(x)
            and len(torch.unique(x)) == MASK_VALUES
        ):
            yield (
                f"the entries of the stored mask {name}, {x.shape[-1]} by {x.shape[-1]}, that "
                "were not examined follow the pattern of the others"
            )


def _square(subject: Subject) -> Iterator[tuple[str, Tensor]]:
    """Yield the name and value of each stored table with as many rows as columns."""
    for name, x in subject.module.named_buffers() if subject.module is not None else ():
        if x.dim() > 1 and x.shape[-1] == x.shape[-2]:
            yield name, x


def _parameters(subject: Subject) -> Iterator[Tensor]:
    yield from subject.module.parameters() if subject.module is not None else ()


def _tables_alike(subject: Subject) -> bool:
    return all(has_constant_diagonals(x) for _, x in _square(subject))


def lengths_of(subject: Subject) -> Places:
    """Return where comparisons turn out differently, what no run could reach, and the numbers."""
    with restored_settings():  # state that the code sets in these runs must not reach others
        return _lengths_of(subject)


def _lengths_of(subject: Subject) -> Places:
    call = call_of(subject)
    if call is None:
        return Places()
    roots = [one for one in (*calls_of(subject), subject.module) if one is not None]
    met = MetNumbers(roots)
    watch = met.watch
    with evaluating(subject), torch.no_grad():
        scores = isinstance(subject, Bias | Mask)
        letters = ["n"] if scores else ["B", "n"]
        scores |= isinstance(subject, Attention) and subject.attend is not None
        if scores and _takes(met.ran.recording(call), {"B": 2, "n": 5, "r": 3}):
            letters.append("r")
        met.run(call, [dict.fromkeys(letters, n) for n in FEW])
        alone = _Alone(subject, met.watched(call))
        search = Search(alone, watch, letters, ("plain",))
        search.where_outcomes_change()
        found = [*_cheapest_changes(watch, alone), *_of_tables(subject)]
        sizes = {n for one in _parameters(subject) for n in one.shape} - met.passed
        heard, known = _Alone(subject, met.ran.recording(call)), -1
        while len(met.ran.codes) > known:  # more tokens may lead to other code
            known = len(met.ran.codes)
            asked = sorted(n for n in met.numbers() if n in NUMBERS)
            named = _Named(heard, asked, _tables_alike(subject), sizes)
            beyond = [one for letter in letters if letter in "Bn" for one in named.along(letter)]
        found += beyond
        counted = [*counts_calls(met.ran.codes, roots, partial(_takes, call, {"B": 2, "n": 5}))]
        ends = (subject.only_length - 1, subject.only_length)  # laws may append a token
        found += [Longer({"n": n}) for n in ends if n > 0 and _takes(call, {"B": 1, "n": n})]
    kept = {
        tuple(sorted(one.at.items())): replace(one, at=_of_law(subject, one.at))
        for one in found
        if max(one.at.values()) >= SHORT
    }
    longer = sorted(kept.values(), key=lambda one: work(subject, one.at))
    exactly = (n for n in met.numbers() if n in asked and n >= SHORT)
    longer += _cheap(subject, exactly, {one.at["n"] for one in longer if one.at.get("B", 1) == 1})
    told = [*search.length_conditions(), *met.conditions(), *counted]
    return Places(longer, told, named.left)


def _cheap(subject: Subject, numbers: Iterable[int], known: Collection[int]) -> Iterator[Longer]:
    """Yield as many tokens as the first of these numbers, while that is cheap.

    Code may ask for one number in ways that no comparison shows: by a hash, or in a text.
    """
    left = EXACT_VALUES
    for at in (_of_law(subject, {"n": n}) for n in numbers if n not in known):
        left -= work(subject, at)
        if left < 0:
            return
        yield Longer(at, alike=True)


@dataclass
class _Alone:
    """Code that runs by itself, in the form that the search over its comparisons expects."""

    subject: Subject
    code: Call

    def call(self, at: Lengths, way: str) -> None:
        """Run it."""
        del way
        _takes(self.code, at)

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


def _takes(call: Call, at: Lengths) -> bool:
    with suppress(Exception):  # code may raise anything
        call(at)
        return True
    return False


def work(subject: Any, at: Lengths) -> int:
    """Return roughly how many values a call computes: those of its scores, or of its tokens."""
    rows, keys = at.get("B", 1), at.get("n", 1)
    rows = rows**2 if "bounds" in subject.line else rows  # rows are packed into one axis
    heads = int(getattr(subject, "heads", 1))
    if isinstance(subject, Rotary | Additive):
        return rows * heads * keys * subject.width
    layer = isinstance(subject, Layer) or getattr(subject, "attend", None) is None
    queries = keys if layer and not isinstance(subject, Bias | Mask) else at.get("r", keys)
    made = TOKENS * int(getattr(subject, "embed", 0))  # per token
    return rows * keys * (heads * queries + made)


def _cheapest_changes(watch: Watch, alone: _Alone) -> Iterator[Longer]:
    """Yield the cheapest lengths at which each comparison turns out as it does not for few."""
    met: dict[tuple[int, int], list[ComparedSides]] = {}
    for (site, entry, _), some in watch.sides.items():
        met.setdefault((site, entry), []).extend(some)
    for (site, entry), some in met.items():  # lengths at which the code raises are skipped
        few = {one.answer for one in some if max(one.at.values()) < SHORT}
        others = [one.at for one in some if one.answer not in few]
        if len(few) == 1 and others:
            first = min(others, key=lambda one: work(alone.subject, one))
            at = dict(first)
            (answer,) = few
            for letter in at:
                fewer = {**at, letter: 1 if letter == "B" else 2}
                with watch.run(fewer, "plain"):
                    alone.call(fewer, "plain")
                again = (
                    one for k in watch.sides if k[:2] == (site, entry) for one in watch.sides[k]
                )
                if any(one.at == fewer and one.answer != answer for one in again):
                    at = fewer
            square = {**at, "r": at["n"]} if "r" in at else at
            if not any(_takes(alone.code, one) for one in (at, square, first)):
                continue
            told = OpenComparison((site, entry, 0), watch.sites[site], (), answer)
            yield Longer(at, "" if told.site.sign in HINTS else told.condition)


def _of_tables(subject: Subject) -> Iterator[Longer]:
    """Yield as many tokens as a square table has rows, and fewer, so that laws may append some."""
    for more in (0, APPENDED):
        ends = [x.shape[-1] - more for _, x in _square(subject)]
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
                at = next((at for at in tried if _takes(self.alone.code, at)), None)
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
        return work(self.alone.subject, at) <= (CHEAP_VALUES if letter == "B" else MAX_VALUES)

    @staticmethod
    def _beyond(letter: str, number: int) -> Iterator[Lengths]:
        """Yield lengths beyond a number: a cached step gets fewer of them, and tables end."""
        for many in (number + 3, number + 1, 2 * number, number):
            yield {"n": TOKENS_PER_ROW, letter: many}


def _of_law(subject: Subject, at: Lengths) -> Lengths:
    """Return the lengths as a law takes them: for a mask, n keys before r queries."""
    if isinstance(subject, Bias | Mask):
        queries = min(at.get("r", 2), at["n"] - 1)
        return {"n": at["n"] - queries, "r": queries}
    if isinstance(subject, Rotary | Additive):
        return {"B": 1, **at}
    whole = isinstance(subject, Attention) and subject.attend is not None
    behind = at.get("m", 1)  # tokens that a law appends
    return {"B": 1, "r": at["n"] if whole else behind, "m": at["n"], **at}
