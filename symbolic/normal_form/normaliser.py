"""The normal form: numbers as polynomials in atoms, computed by rules of the kernel.

Nothing here is trusted: every result comes with the derivation that the kernel will replay, so
a mistake costs a proof but cannot make a false one.  From the inside out, entries are unfolded,
products expanded, exponentials and angles split, and conditions turned into indicators.  Sums
are treated in ``sums.py``, conditions in ``conditions.py``, functions in ``functions.py``,
entries in ``entries.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from ..budget import check_time
from ..derivation import Derivation, Reflexive
from ..scalars import entry, mul, num, number_of, power
from ..signs import find_sign
from ..terms import Term, opened
from . import conditions, derived, entries, functions, sums
from .equations import chain, inside, rewrite
from .matching import in_product, leading
from .polynomial import (
    Monomial,
    content,
    divided,
    expand,
    monomial_term,
    positive,
    sign_facts,
    to_term,
)

if TYPE_CHECKING:
    from ..derive import Equation


# Sums, products and powers in the normal form: expanded, sorted and reduced


def arithmetic(norm: Normaliser, t: Term) -> Derivation:
    """Normalise a sum, product or power: expand it over the normal forms of its arguments."""
    first = norm.arguments(t)
    u = first.right
    if u.op == "power" and isinstance(u.data, int) and u.data < 0:
        first = chain(first, _take_content(norm, u))
    return chain(first, norm.settle(first.right))


def _take_content(norm: Normaliser, t: Term) -> Derivation:
    """Derive 1/(c·m·P) = 1/c · 1/m · 1/P, taking common factors out of the inverse of a sum."""
    base = expand(t.args[0])
    if len(base) < 2:
        return Reflexive(t)
    scale, shared = content(base)
    if scale == 1 and not shared:
        return Reflexive(t)
    down = monomial_term(tuple((a, -k) for a, k in shared))
    rest = norm(mul(num(1 / scale), down, t.args[0])).right
    target = mul(num(scale), monomial_term(shared), rest)
    nonzero = tuple(a for a, _ in shared if positive(a))
    return inside(t, [(0, rewrite("ring", t.args[0], target, *nonzero))])


def settle(norm: Normaliser, t: Term) -> Derivation:
    """Expand, sort and reduce a polynomial over atoms in normal form."""
    total = expand(t)
    target = to_term(total)
    step: Derivation = Reflexive(t)
    if target is not t:
        step = rewrite("ring", t, target, *_cancelled(t, target))
    if any(atom.op == "add" for monomial in total for atom, _ in monomial):
        return chain(step, settle(norm, target))  # an inverse of an inverse is multiplied out
    parts = target.args if target.op == "add" else (target,)
    reduced = [(k, reduce(norm, part)) for k, part in enumerate(parts)]
    if all(isinstance(r, Reflexive) for _, r in reduced):
        return step
    inner = inside(target, reduced) if target.op == "add" else reduced[0][1]
    return chain(step, inner, norm(inner.right))


def reduce(norm: Normaliser, t: Term) -> Derivation:
    """Derive one reduction of a monomial: sin², |x|², √x², [c]², division, equations, gates."""
    factors = t.args if t.op == "mul" else (t,)
    for place, factor in enumerate(factors):
        exponent = factor.data if factor.op == "power" else 1
        base = factor.args[0] if factor.op == "power" else factor
        if not isinstance(exponent, int):
            continue
        found = _power_rule(base, exponent)
        if found is not None:
            return _with_square(t, factors, place, *found)
        if base.op == "indicator" and exponent >= 2:
            step = derived.condition_power(factor)
            return inside(t, [(place, step)]) if t.op == "mul" else step
        inverse = factor if exponent == -1 else base
        if inverse.op == "power" and inverse.args[0].op == "add" and inverse.data == -1:
            smaller = divided(t, inverse) if positive(inverse.args[0]) else None
            if smaller is not None:
                return rewrite("ring", t, smaller, inverse.args[0])
    known = in_product(norm, t) if norm.assume else None
    if known is not None:
        return known
    return conditions.reduce_gates(norm, t, factors)


def _power_rule(base: Term, exponent: int) -> tuple[int, Callable[[Term], Derivation]] | None:
    """The part k of an exponent for which baseᵏ is another form, and the step to it, or None."""
    if base.op == "sin" and exponent >= 2:
        return 2, partial(rewrite, "sin² + cos² = 1")
    if base.op == "abs" and exponent >= 2:
        return 2, derived.absolute_square
    if base.op == "sqrt" and abs(exponent) >= 2 and find_sign(base.args[0], sign_facts())[0]:
        return (2, partial(rewrite, "root")) if exponent > 0 else (-2, derived.root_power)
    if _is_inverse_root(base) and exponent >= 2:
        return 2, derived.root_power
    parts = _parts_of_logarithm(base)
    if parts and abs(exponent) >= parts:
        return parts if exponent > 0 else -parts, derived.exponential_power
    return None


def _is_inverse_root(t: Term) -> bool:
    """Whether t is 1/√x with x >= 0."""
    inverse = t.op == "power" and t.data == -1 and t.args[0].op == "sqrt"
    return inverse and find_sign(t.args[0].args[0], sign_facts())[0] > 0


def _parts_of_logarithm(t: Term) -> int:
    """q if t is exp(log(x)/q) with x > 0 and q > 1, else 0."""
    if t.op != "exp" or t.args[0].op != "mul" or len(t.args[0].args) != 2:
        return 0
    literal, log = number_of(t.args[0].args[0]), t.args[0].args[1]
    if literal is None or literal.numerator != 1 or log.op != "log" or not positive(log.args[0]):
        return 0
    return literal.denominator


def _with_square(
    t: Term, factors: tuple[Term, ...], place: int, k: int, rule: Callable[[Term], Derivation]
) -> Derivation:
    base, exponent = factors[place].args[0], factors[place].data
    assert isinstance(exponent, int)
    square = power(base, k)
    rest = [power(base, exponent - k)] if exponent != k else []
    target = mul(*factors[:place], square, *rest, *factors[place + 1 :])
    step = rewrite("ring", t, target)
    if target is square:
        return chain(step, rule(square))
    return chain(step, inside(target, [(place, rule(square))]))


def _cancelled(t: Term, target: Term) -> tuple[Term, ...]:
    """Return the positive atoms with inverses in t or target, which the ring rule may cancel."""
    found: dict[Term, None] = {}

    def visit(x: Term) -> None:
        if x.op in ("add", "mul"):
            for arg in x.args:
                visit(arg)
        elif x.op == "power" and isinstance(x.data, int):
            if x.data < 0:
                for atom, _ in (p for m in expand(x.args[0]) for p in m):
                    found.setdefault(atom)
                if x.args[0].op == "power" and x.args[0].args[0].op == "add":
                    found.setdefault(x.args[0].args[0])
            visit(x.args[0])

    visit(t)
    visit(target)
    return tuple(atom for atom in found if positive(atom))


# The normaliser

Split = tuple[str, Term]

FUNCTIONS = frozenset(["cos", "sin", "exp", "log", "sqrt", "tanh", "abs", "maximum", "sum"])
LEAVES = frozenset(["num", "size", "index", "var", "pi", "minus infinity", "bound"])


class Normaliser:
    """Computes normal forms with their derivations; results are cached in the object.

    ``splits`` says how to split an axis of composite length if the term does not determine it;
    ``assume`` holds equations of arrays, used from left to right.  Options: ``choices`` opens
    maxima as choices; ``turned`` writes [a < b] as 1 − [b <= a] for integers too; ``equals`` writes
    one of [a <= b] and [b <= a] by the other and [a = b]; ``mirrored`` writes one of max(a, b) and
    max(−a, −b) by the other; ``exponentials`` writes tanh by exp; ``rests`` writes j mod k as
    j − k·⌊j/k⌋ for indices too.  ``units`` says into how many parts the angle of a monomial is
    divided; ``together`` keeps the angle of one position in one part, and ``angles`` then collects
    these parts.
    """

    def __init__(
        self,
        splits: dict[Term, Split] | None = None,
        assume: tuple[Equation, ...] = (),
        *,
        choices: bool = False,
        turned: bool = False,
        equals: bool = False,
        mirrored: bool = False,
        exponentials: bool = False,
        rests: bool = False,
        units: dict[Monomial, int] | None = None,
        together: bool = False,
    ) -> None:
        self.splits = splits or {}
        self.assume = assume
        self.choices = choices
        self.turned = turned
        self.equals = equals
        self.mirrored = mirrored
        self.exponentials = exponentials
        self.rests = rests
        self.units = dict(units or {})
        self.together = together
        self.angles: set[frozenset[Monomial]] = set()
        self.known: dict[Term, Derivation] = {}
        self._patterns: list[tuple[Equation, tuple[Term, ...], Term]] | None = None

    def __call__(self, term: Term) -> Derivation:
        """Return the derivation from a term to its normal form."""
        found = self.known.get(term)
        if found is None:
            check_time()
            found = self._compute(term)
            self.known[term] = found
            self.known.setdefault(found.right, Reflexive(found.right))
        return found

    def then(self, first: Derivation) -> Derivation:
        """Continue a derivation to the normal form of its right side."""
        return chain(first, self(first.right))

    def at(self, rule: str, term: Term, *arguments: object) -> Derivation:
        """Apply a rule at the root, and continue to the normal form."""
        return self.then(rewrite(rule, term, *arguments))

    def arguments(self, term: Term) -> Derivation:
        """Normalise all arguments of a term."""
        return inside(term, [(k, self(arg)) for k, arg in enumerate(term.args)])

    def _compute(self, t: Term) -> Derivation:
        if t.shape:
            return entries.array(self, t)
        if t.op in LEAVES:
            return Reflexive(t)
        if not t.finite:
            return conditions.extended(self, t)
        treat = _TREATMENTS.get(t.op)
        found = treat(self, t) if treat is not None else self.arguments(t)
        if self.assume and found.right.op in FUNCTIONS:
            return chain(found, self.hypothesis(found.right))
        return found

    def settle(self, t: Term) -> Derivation:
        """Expand, sort and reduce a polynomial over atoms in normal form."""
        return settle(self, t)

    def settled(self, rule: str, t: Term, *arguments: object) -> Derivation:
        """Apply a rule whose result only has to be sorted and reduced."""
        step = rewrite(rule, t, *arguments)
        return chain(step, self.settle(step.right)) if step.right is not t else step

    def hypothesis(self, t: Term) -> Derivation:
        """Rewrite a number by an equation in ``assume`` if one matches, and continue."""
        step = in_product(self, t) if self.assume else None
        return Reflexive(t) if step is None else self.then(step)

    def patterns(self) -> list[tuple[Equation, tuple[Term, ...], Term]]:
        """Return the assumed equations, each with its indices and the pattern to match."""
        if self._patterns is None:
            self._patterns = []
            for equation in self.assume:
                places = tuple(
                    opened(n, f"h{k}", equation.left) for k, n in enumerate(equation.left.shape)
                )
                pattern = leading(self.plain(entry(equation.left, *places)).right, places)
                self._patterns.append((equation, places, pattern))
        return self._patterns

    def changed(self, **changes: Any) -> Normaliser:
        """Return a normaliser with the same options but for these changes.

        ``units`` and ``together`` are not kept.
        """
        kept: dict[str, Any] = {
            "splits": self.splits,
            "assume": self.assume,
            "choices": self.choices,
            "turned": self.turned,
            "equals": self.equals,
            "mirrored": self.mirrored,
            "exponentials": self.exponentials,
            "rests": self.rests,
        }
        return Normaliser(**(kept | changes))

    @cached_property
    def plain(self) -> Normaliser:
        """The same normaliser without the assumed equations."""
        plain = self.changed(assume=(), units=self.units, together=self.together)
        plain.angles = self.angles
        return plain


_TREATMENTS: dict[str, Callable[[Normaliser, Term], Derivation]] = {
    "add": arithmetic,
    "mul": arithmetic,
    "power": arithmetic,
    "exp": functions.exponential,
    "cos": functions.angle,
    "sin": functions.angle,
    "abs": functions.absolute,
    "log": functions.logarithm,
    "sqrt": functions.root,
    "tanh": functions.hyperbolic,
    "maximum": functions.maximum,
    "floor_divide": functions.division,
    "remainder": functions.division,
    "entry": entries.entry_,
    "iterate": entries.stack,
    "call": entries.call,
    "named": lambda self, t: self.at("definition", t),
    "where": conditions.choice,
    "indicator": conditions.indicator,
    "is in": lambda self, t: inside(t, [(0, self(t.args[0]))]),
    "sum": sums.summation,
}
READ = ("matmul", "reduce", "pick", "permute", "broadcast", "reshape", "gather", "slice", "row")
for _op in READ:
    _TREATMENTS[_op] = lambda self, t: self.at("entry", t)
