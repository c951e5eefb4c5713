"""Laws that no proof has, asked once more at lengths at which the code does something else.

Laws are run of few tokens.  Code that asks for its lengths (``if n > 1000``) may do something else
for more of them: its comparisons are watched, and the laws are run where one turns out otherwise
(:mod:`attnproof.programs.prove.branches`), at one more token than the largest number of its source,
and at as many as a square table has that it keeps.  What is too much work is told in the line of
the verdict, and so is what of many keys, and of the entries of a stored mask, was not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from ..programs.as_read import LAWS as OF_MASKS
from ..programs.calling import evaluating
from ..programs.draw import Draw
from ..programs.finding import LONGER, Finding
from ..programs.measure.examine import examine
from ..programs.prove.branches import Open, Search
from ..programs.prove.executed import Executed, functions_of
from ..programs.prove.watching import LEADS, Met, Watch, marked
from ..programs.source_numbers import functions_in, is_own
from ..programs.subjects import Additive, Attention, Bias, Layer, Mask, Rotary, Subject
from ..theorems.laws import laws_of
from ..theorems.laws.masks import looked_at
from ..verdict_line import Condition

Lengths = Mapping[str, int]
Call = Callable[[Lengths], Any]
MOST = 4_500_000  # numbers that one call makes, in about a tenth of a second
WORK = 64_000_000  # those of all laws together
SIDES = 2  # a law calls the code for each, and where it looks at keys for each of these as well
SHORT = 7  # tokens that laws are run of anyway
LATER = 8  # tokens that laws put behind others, which a table has rows for
TWO = 2  # numbers that a mask is made of: shown and hidden
NUMBERS = range(130, 2101)  # of the source, that may be a number of tokens


@dataclass(frozen=True)
class Longer:
    """Lengths at which code does something else, and what it asks there, as it was in other runs.

    ``asks``: "" where the lengths are a number of the source, or the rows of a table.  ``alike``:
    that is one in which every row shows what the row before it does, one place further on.
    """

    at: Lengths
    asks: str = ""
    alike: bool = False


def at_longer(
    subject: Subject,
    laws: Collection[str],
    draw: Draw,
    begin: Callable[[str], None],
    method: str = "measured",
) -> Iterator[Finding]:
    """What laws are of more tokens that hold of few; nothing of code that asks for no length.

    ``begin`` hears which law is run.  Of another ``method`` than "measured" none is: lines say what
    the code asks.
    """
    longer, where = lengths_of(subject)
    formulas = {law.id: law.formulas for law in laws_of(subject.kind)}
    stored = [*_irregular(subject)]
    left = WORK
    for law in laws:
        own = any(one.kind == subject.kind for one in formulas.get(law, ()))
        missed, keys = [*where, *(stored if law in OF_MASKS else ())], [""]
        for one in longer:
            cost, made = _cost(subject, law, one.at), None
            if own and cost <= left and method == "measured":
                begin(law)
                left -= cost
                found = examine(replace(subject, run_at=(one.at,)), (draw,), (law,))
                made = next((each for each in found if each.verdict != "not asked"), None)
                if made is not None and made.verdict != "holds":
                    at = ", ".join(f"{letter} = {n}" for letter, n in one.at.items())
                    yield replace(made, why=f"{LONGER} ({at}): {made.why}")
                    break
            if made is None and one.asks:
                missed.append(one.asks)
            elif made is not None and not one.alike:
                keys = [_not_looked_at(subject, law, one.at)]  # of the most tokens, which come last
        else:
            missed += filter(None, keys)
            if missed:
                assuming = tuple(Condition(asks, "where") for asks in dict.fromkeys(missed))
                why = "it holds at lengths for which the code gives these answers"
                yield Finding(law, method, "holds", why, dtype=draw.format, assuming=assuming)


def _keys(subject: Subject, law: str, at: Lengths) -> list[int]:
    """The keys that a law looks at one by one."""
    each = law == "past-is-used" and not isinstance(subject, Mask)
    return looked_at(at["n"]) if each else []


def _cost(subject: Subject, law: str, at: Lengths) -> int:
    """About how many numbers a law makes."""
    return work(subject, at) * (SIDES + len(_keys(subject, law, at)))


def _not_looked_at(subject: Subject, law: str, at: Lengths) -> str:
    """That keys are seen which a law did not look at; "" where it did at all."""
    few, many = len(_keys(subject, law, at)), at["n"]
    told = (
        f"the {many - few} of {many} keys that were not looked at are seen as the other {few} are"
    )
    return told if 0 < few < many else ""


def _irregular(subject: Subject) -> Iterator[str]:
    """That a stored mask is everywhere as it is where it was looked at, if its rows differ."""
    for name, x in _square(subject):
        if x.shape[-1] > SHORT and not _rows_alike(x) and len(torch.unique(x)) == TWO:
            yield (
                f"the entries of the stored mask {name}, {x.shape[-1]} by {x.shape[-1]}, that "
                "were not looked at are as the others"
            )


def _square(subject: Subject) -> Iterator[tuple[str, Tensor]]:
    """The stored tables with as many rows as columns."""
    for name, x in subject.module.named_buffers() if subject.module is not None else ():
        if x.dim() > 1 and x.shape[-1] == x.shape[-2]:
            yield name, x


def _rows_alike(x: Tensor) -> bool:
    """Whether each row of a table is the one before it, one place further on."""
    return torch.equal(x[..., 1:, 1:], x[..., :-1, :-1])


def lengths_of(subject: Subject) -> tuple[list[Longer], list[str]]:
    """Where comparisons turn out otherwise, and what of them no run could reach."""
    call = _call_of(subject)
    if call is None:
        return [], []
    ran, watch = Executed(is_own), Watch()
    with evaluating(subject), torch.no_grad():
        _takes(ran.of(call), {"B": 2, "n": 5, "r": 5})
        letters = ["n"] if isinstance(subject, Bias | Mask) else ["B", "n"]
        if not isinstance(subject, Rotary | Additive | Layer) and _takes(
            call, {"B": 2, "n": 5, "r": 3}
        ):
            letters.append("r")
        roots = [one for one in (*_calls(subject), subject.module) if one is not None]
        marked(functions_of(ran.codes, functions_in(roots)), watch)
        alone = _Alone(subject, call)
        search = Search(alone, watch, letters, ("plain",))
        search.where_comparisons_turn()
        found = [*_turned(watch, alone)]
        found += _named(ran, subject, max((max(one.at.values()) for one in found), default=0))
    kept = {
        tuple(sorted(one.at.items())): replace(one, at=_of_law(subject, one.at))
        for one in found
        if max(one.at.values()) >= SHORT
    }
    return sorted(kept.values(), key=lambda one: work(subject, one.at)), search.of_lengths()


@dataclass
class _Alone:
    """Some code that is run by itself, as a search for its comparisons wants it."""

    subject: Subject
    code: Call

    def call(self, at: Lengths, way: str) -> None:
        """Run it."""
        del way
        _takes(self.code, at)

    def look(self, at: Lengths, way: str) -> bool:
        """There is nothing that it is compared with."""
        del at, way
        return True

    def allowed(self, at: Lengths) -> bool:
        """Whether these are lengths."""
        return min(at.values(), default=1) > 0

    def affordable(self, at: Lengths) -> bool:
        """Whether a call is little enough work."""
        return work(self.subject, at) <= MOST


def _takes(call: Call, at: Lengths) -> bool:
    with suppress(Exception):  # code may raise anything
        call(at)
        return True
    return False


def work(subject: Any, at: Lengths) -> int:
    """About how many numbers a call makes: those of its scores, or of its tokens."""
    rows, keys = at.get("B", 1), at.get("n", 1)
    heads = int(getattr(subject, "heads", 1))
    if isinstance(subject, Rotary | Additive):
        return rows * heads * keys * subject.width
    return rows * heads * keys * at.get("r", keys)


def _turned(watch: Watch, alone: _Alone) -> Iterator[Longer]:
    """Of each comparison the cheapest lengths at which it turned out as it does not of few."""
    met: dict[tuple[int, int], list[Met]] = {}
    for (site, entry, _), some in watch.met.items():
        met.setdefault((site, entry), []).extend(some)
    for (site, entry), some in met.items():  # where code raises there is nothing to hold
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
                again = (one for k in watch.met if k[:2] == (site, entry) for one in watch.met[k])
                if any(one.at == fewer and one.answer != answer for one in again):
                    at = fewer
            square = {**at, "r": at["n"]} if "r" in at else at
            if not any(_takes(alone.code, one) for one in (at, square, first)):
                continue
            told = Open((site, entry, 0), watch.sites[site], (), answer)
            yield Longer(at, "" if told.site.sign in LEADS else told.told)


def _named(ran: Executed, subject: Subject, least: int) -> Iterator[Longer]:
    """One more than the largest number of the code that ran, and the rows of a square table."""
    numbers = [n for code in ran.codes for n in code.co_consts if type(n) is int and n in NUMBERS]
    tables = [x for _, x in _square(subject)]
    tables_end = [x.shape[-1] for x in tables if x.shape[-1] in NUMBERS]
    alike = all(map(_rows_alike, tables))
    tried = (
        ([n + 1 for n in numbers if n > least], False),
        (tables_end, alike),
        ([n - LATER for n in tables_end], alike),
    )
    for many, regular in tried:
        fits = [n for n in many if least < n and work(subject, {"n": n}) <= MOST]
        if fits:
            yield Longer({"n": max(fits)}, alike=regular)


def _of_law(subject: Subject, at: Lengths) -> Lengths:
    """The lengths as a law is given them: of a mask n are the keys before r queries."""
    if isinstance(subject, Bias | Mask):
        queries = min(at.get("r", 2), at["n"] - 1)
        return {"n": at["n"] - queries, "r": queries}
    if isinstance(subject, Rotary | Additive):
        return {"B": 1, **at}
    whole = isinstance(subject, Attention) and subject.attend is not None
    return {"B": 1, "r": at["n"] if whole else 1, **at}


def _calls(subject: Any) -> tuple[Any, ...]:
    """The calls of some code of which the first is run."""
    names = ("attend", "layer", "call", "rotate", "added", "bias", "mask")
    return tuple(one for name in names if callable(one := getattr(subject, name, None)))


def _call_of(subject: Any) -> Call | None:
    """The code on arrays of these lengths; None where it has no such call."""
    if not (calls := _calls(subject)):
        return None
    code, module = calls[0], subject.module
    parts = [] if module is None else [*module.parameters(), *module.buffers()]
    dtype = next((x.dtype for x in parts if x.is_floating_point()), torch.float32)

    generator = torch.Generator().manual_seed(0)

    def drawn(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=dtype)

    def call(at: Lengths) -> Any:
        B, n = at.get("B", 1), at["n"]
        r = at.get("r", n)
        match subject:
            case Attention(attend=None) | Layer():
                return code(drawn(B, n, subject.embed))
            case Attention():
                H, G, D = subject.heads, subject.groups, subject.width
                return code(drawn(B, H, r, D), drawn(B, G, n, D), drawn(B, G, n, D), None)
            case Rotary():
                places = torch.arange(subject.first, subject.first + n)
                axes = [subject.axes] * bool(subject.axes)
                at_all = places.view(1, n, *[1] * len(axes)).expand(B, n, *axes)
                whole = at_all if subject.whole else at_all.to(dtype)
                return code(drawn(B, subject.heads, n, subject.width), whole)
            case Additive():
                return code(drawn(B, n, subject.width))
            case _:
                return code(r, n)

    return call
