"""Conditions under which a statement has its usual meaning: divisors, roots, logarithms, depths.

The kernel's functions are total: 1/0 is 0, roots and logarithms are defined for all numbers, and a
stack of -1 layers is its start.  A proof is the usual theorem wherever no divisor of the statement
is 0, no root is of a negative number, no logarithm of a number that is not positive, and no stack
has a negative depth.  Conditions that the kernel shows (for a sum of exponentials, √ℓ) are not
mentioned; the others are listed, those inside sums, tables and stacks of layers included.

The search proposes a form of a number; its sign is read off the equation that the kernel replayed,
which may rest on granted assumptions only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache

from .budget import check_time
from .derivation import Derivation, Reflexive
from .derive import axis_cover, split_options
from .kernel import places, replay
from .meaning import ELEMENTWISE
from .normal_form.equations import chain, inside, opened_index, rewrite, under
from .normal_form.normaliser import READ, Normaliser, Split
from .ranges import direct_parts, parts
from .rules.base import Assumption, Refused
from .scalars import ZERO, always_less, entry, index, is_truth, num, number_of, subtract
from .signs import nonzero, sign
from .terms import BINDERS, Opened, Term, free, instantiate, is_opened, make, substitute

# Numbers with their arrays unfolded and nothing expanded, which is the form their author wrote.
# Signs are read off such a form; a normal form would have multiplied out the squares.

ATOMS = ("var", "inverse", "iterate", "call")


def opened(t: Term, keep: frozenset[Term] = frozenset()) -> Derivation:
    """Return the derivation from t to t with every entry of a computed array unfolded.

    Entries of the arrays in ``keep`` are not unfolded, since facts about them are known.
    """
    return _Opening(keep)(t)


@dataclass
class _Opening:
    """One unfolding; a shared part is unfolded once."""

    keep: frozenset[Term]
    known: dict[Term, Derivation] = field(default_factory=dict)

    def __call__(self, t: Term) -> Derivation:
        found = self.known.get(t)
        if found is None:
            check_time()
            found = self.known[t] = self._opened(t)
        return found

    def _opened(self, t: Term) -> Derivation:
        if t in self.keep or (t.op == "entry" and t.args[0] in self.keep):
            return Reflexive(t)
        if t.op == "named":
            step = rewrite("definition", t)
            return chain(step, self(step.right))
        if t.op in READ or (t.op == "entry" and t.args[0].op not in ATOMS):
            try:
                step = rewrite("entry", t)
            except Refused:
                return Reflexive(t)
            return chain(step, self(step.right))
        if t.op == "sum":
            j = opened_index(t, t.args[0])
            return under(t, (j,), self(instantiate(t.args[1], j)))
        if t.op in (*BINDERS, "entry", "call"):
            return Reflexive(t)
        return inside(t, [(k, self(arg)) for k, arg in enumerate(t.args)])


# Conditions on divisors, roots, logarithms and depths

LEAST_SIGN = {"at least 0": 1, "greater than 0": 2}
RELATIONS = {"not 0": "≠ 0", "at least 0": "≥ 0", "greater than 0": "> 0"}
BY_KIND = {("injective", "permutation"), ("injective", "injection")}
Facts = frozenset[Assumption]


@dataclass(frozen=True)
class Condition:
    """A number, in normal form, and the property it needs for the statement's usual meaning."""

    value: Term
    wanted: str

    @property
    def impossible(self) -> bool:
        """Whether the number is a literal without the property."""
        value = number_of(self.value)
        if value is None:
            return False
        return (
            value == 0
            if self.wanted == "not 0"
            else value < 0 or (value == 0 and self.wanted == "greater than 0")
        )

    @property
    def phrase(self) -> str:
        """The condition as a phrase that follows "if"."""
        shown = _lettered(self.value)
        if self.wanted == "not 0" and self.value.op == "sum" and sign(self.value)[0] == 1:
            return f"some term of {shown!r} {RELATIONS[self.wanted]}"
        return f"{shown!r} {RELATIONS[self.wanted]}"


def _lettered(t: Term) -> Term:
    """Return a term with opened indices named by unused letters, and states as "the state"."""
    for state in (v for v in free(t) if v.op == "var" and is_opened(v)):
        t = substitute(t, state, make("var", (), ("the state", state.data[1]), state.shape))
    taken = {str(v.data if v.op == "index" else v.data[0]) for v in free(t)}
    letters = (letter for letter in "ihgrsuvwxyz" if letter not in taken)
    for old in sorted((v for v in free(t) if is_opened(v)), key=lambda v: str(v.data)):
        t = substitute(t, old, index(next(letters), old.args[0]))
    return _in_order(t)


def _in_order(t: Term) -> Term:
    """Return a term with its summands in their order, which other letters change."""
    args = tuple(map(_in_order, t.args))
    if t.op == "add":
        args = tuple(sorted(args, key=lambda part: part.key))
    return _of_args(t, args)


def conditions(*terms: Term, facts: Facts = frozenset()) -> tuple[Condition, ...]:
    """Return the conditions of the terms that the kernel does not show from ``facts``.

    ``facts`` are hypotheses, as assumptions of the kernel.
    """
    asked: dict[tuple[Term, str], set[Guards]] = {}
    for part, guards in _guarded_parts(terms):
        one = _requirement(part)
        if one is not None:
            own = guards if one[0].shape == part.shape else UNGUARDED
            asked.setdefault(one, set()).add(own)
    found: dict[Condition, None] = {}
    for array, wanted in sorted(asked, key=lambda pair: (pair[0].key, pair[1])):
        each = asked[array, wanted]
        for guards in [UNGUARDED] if UNGUARDED in each else each:
            for value in _unsettled(array, wanted, facts, guards):
                found.setdefault(Condition(value, wanted))
    return tuple(found)


Guards = frozenset[tuple[Term, bool]]  # truth values, entry by entry, and which of them are met
UNGUARDED: Guards = frozenset()
MAX_GUARDS = 3  # choices inside one another


def _guarded_parts(terms: Iterable[Term]) -> Iterator[tuple[Term, Guards]]:
    """Yield every subterm with the choices under which its entries are read.

    An entry of ``where(c, x, y)`` reads x only where c holds, and y only elsewhere.
    """
    stack = [(term, UNGUARDED) for term in terms]
    seen = set(stack)
    while stack:
        t, guards = stack.pop()
        yield t, guards
        if t.op == "where" and len(guards) < MAX_GUARDS:
            holds, x, y = t.args
            inner = [(holds, guards), (x, guards | {(holds, True)}), (y, guards | {(holds, False)})]
        else:
            own = guards if _is_entrywise(t) else UNGUARDED
            inner = [(part, own) for part in direct_parts(t)]
        stack.extend(one for one in inner if one not in seen)
        seen.update(inner)


def _requirement(part: Term) -> tuple[Term, str] | None:
    """Return the argument that an operation has a condition on, and the condition."""
    if part.op == "power" and part.data < 0:
        return part.args[0], "not 0"
    if part.op == "sqrt":
        return part.args[0], "at least 0"
    if part.op == "log":
        return part.args[0], "greater than 0"
    if part.op in ("floor_divide", "remainder"):
        return part.args[1], "not 0"
    return (part.args[0], "at least 0") if part.op == "iterate" else None


def _is_entrywise(t: Term) -> bool:
    """Whether each entry is read off the entries of the arguments at the same place."""
    if t.op == "call":  # of functions of numbers: all axes are those of a batch
        return all(part.ndim == t.data[1] for part in (t, *t.args))
    return t.op in ELEMENTWISE


def expectations(*terms: Term) -> bool:
    """Whether the terms contain an expectation: a sum over a probability space."""
    return any(
        (p.op == "sum" and p.args[0].op == "space")
        or (p.op == "reduce" and p.args[0].shape[p.data].op == "space")
        or (p.op == "matmul" and p.args[0].shape[-1].op == "space")
        for term in terms
        for p in parts(term)
    )


def settled(array: Term, wanted: str, facts: Facts = frozenset()) -> bool:
    """Whether every entry is shown to be "not 0", "at least 0" or "greater than 0"."""
    return not any(True for _ in _unsettled(array, wanted, facts))


def _unsettled(
    array: Term, wanted: str, facts: Facts, guards: Guards = UNGUARDED
) -> Iterator[Term]:
    """Yield the entries of which that is not shown, in normal form, one at a time."""
    general = with_any_exponents(array)
    if general is array or any(True for _ in _unsettled_entries(general, wanted, facts)):
        yield from _unsettled_entries(array, wanted, facts, guards)


@cache
def with_any_exponents(t: Term) -> Term:
    """Return the term with arbitrary numbers for finite exponents of exp.

    A property shown of this term holds for the original exponents too, and is found faster, since
    exponentials are positive whatever their exponents.  Where an exponent may be −∞, as in masks,
    only its finite parts are replaced.
    """
    if t.op in (*BINDERS, "named") or not t.args:
        return t
    free_of = _any_numbers if t.op == "exp" else with_any_exponents
    return _of_args(t, tuple(map(free_of, t.args)))


MAY_CONTAIN_INFINITY = ("where", "add", "broadcast", "permute", "reshape")


@cache
def _any_numbers(t: Term) -> Term:
    if is_truth(t) or t.loose or not t.args:
        return t
    if t.finite:
        return make("var", (), (Opened((t, "any")), "real"), t.shape)
    return _of_args(t, tuple(map(_any_numbers, t.args))) if t.op in MAY_CONTAIN_INFINITY else t


def _of_args(t: Term, args: tuple[Term, ...]) -> Term:
    return t if args == t.args else make(t.op, args, t.data, t.shape)


def _unsettled_entries(
    array: Term, wanted: str, facts: Facts, guards: Guards = UNGUARDED
) -> Iterator[Term]:
    splits, at = _cases(array)
    norm = Normaliser(splits, together=True)
    for place in at:
        written = value = entry(array, *place)
        if _settled(written, wanted, facts):
            continue
        if _settled(_replayed(opened(written), facts), wanted, facts):
            continue
        try:
            value = _replayed(norm(written), facts)
        except Refused:
            value = written
        if _settled(value, wanted, facts):
            continue
        met = facts | {fact for choice in guards for fact in _facts_of(choice, place, norm, facts)}
        if met == facts or not any(_settled(one, wanted, met) for one in (written, value)):
            yield value


def _facts_of(
    choice: tuple[Term, bool], place: tuple[Term, ...], norm: Normaliser, facts: Facts
) -> Facts:
    """Return what is known of numbers where a truth value has this outcome, at one place."""
    holds, outcome = choice
    written = entry(holds, *place)
    forms = [written, _replayed(opened(written), facts)]
    with suppress(Refused):
        forms.append(_replayed(norm(written), facts))
    return frozenset().union(*(_compared(form, outcome=outcome) for form in forms))


def _compared(t: Term, *, outcome: bool) -> Facts:
    """Return what a comparison, or several, say of the difference of its sides."""
    if t.op == "not":
        return _compared(t.args[0], outcome=not outcome)
    if t.op == ("and" if outcome else "or"):
        return frozenset().union(*(_compared(part, outcome=outcome) for part in t.args))
    if t.op in ("less", "less_equal"):
        low, high = t.args if outcome else t.args[::-1]
        strict = (t.op == "less") == outcome
        return frozenset({("positive" if strict else "nonnegative", subtract(high, low))})
    if t.op == "equal" and not outcome:
        return frozenset({("nonzero", subtract(*t.args))})
    return frozenset()


def _cases(array: Term) -> tuple[dict[Term, Split], list[tuple[Term, ...]]]:
    """Return how axes are split, and the places of all entries; whole if a part may be empty."""
    splits = split_options(array)[0]
    try:
        return splits, places(tuple(axis_cover(n, splits) for n in array.shape), array)
    except Refused:
        return {}, places(tuple(axis_cover(n, {}) for n in array.shape), array)


def _replayed(way: Derivation, facts: Facts) -> Term:
    """Return the end of a derivation if the kernel accepts it; otherwise its start."""
    try:
        proof = replay(way)
    except Refused:
        return way.left
    good = proof.relation == "=" and proof.left is way.left and free(proof.right) <= free(way.left)
    return proof.right if good and _granted(proof.assumes, facts) else way.left


def _granted(assumed: Facts, facts: Facts) -> bool:
    """Whether all assumptions are hypotheses or follow from the kinds of variables."""
    return all(
        (name, term) in facts
        or (term.op == "var" and (name == term.data[1] or (name, term.data[1]) in BY_KIND))
        for name, term in assumed
    )


def _settled(number: Term, wanted: str, facts: Facts) -> bool:
    if number.op == "where":
        holds, x, y = number.args
        chosen = holds.op == "less" and number_of(holds.args[0]) == 0 and holds.args[1] is x
        if (chosen or _settled(x, wanted, facts)) and _settled(y, wanted, facts):
            return True
    if always_less(num(-1) if wanted == "at least 0" else ZERO, number):
        return True
    if wanted == "not 0":
        certain, used = nonzero(number, facts)
    else:
        found, used = sign(number, facts)
        certain = found >= LEAST_SIGN[wanted]
    return certain and _granted(used, facts)
