"""The normal form: numbers as polynomials in atoms, each step a rule of the kernel.

Nothing here is trusted: every result comes with the derivation that the kernel will replay, so
a mistake costs a proof and never makes a false one.  Inside out: entries are unfolded, sums of
products expanded, exponentials and angles split, conditions turned into indicators; sums are
treated in ``sums.py`` and conditions in ``conditions.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from ..derivation import Derivation, Reflexive
from ..rules import Refused, sign
from ..scalars import MINUS_INFINITY, ONE, entry, index, mul, num, power, unary
from ..terms import Term, bind, instantiate, make
from . import conditions, sums
from .equations import chain, inside, reverse, rewrite, under
from .nests import opened_index
from .polynomial import Monomial, content, divided, expand, monomial_term, positive, to_term
from .words import strip_word, words_on

__all__ = ["Normaliser", "Split"]

Split = tuple[str, Term]

LEAVES = frozenset(["num", "size", "index", "var", "pi", "minus infinity", "bound"])


class Normaliser:
    """Normal forms with their derivations; results are kept for the life of the object.

    ``splits`` says how an axis of a composite length is to be taken apart where nothing else
    decides it, ``assume`` holds equations of arrays read from left to right.
    """

    def __init__(
        self, splits: dict[Term, Split] | None = None, assume: tuple[tuple[Term, Term], ...] = ()
    ) -> None:
        self.splits = splits or {}
        self.assume = assume
        self.known: dict[Term, Derivation] = {}

    def __call__(self, term: Term) -> Derivation:
        """The derivation of term = its normal form."""
        found = self.known.get(term)
        if found is None:
            found = self._compute(term)
            self.known[term] = found
            self.known.setdefault(found.right, Reflexive(found.right))
        return found

    def then(self, first: Derivation) -> Derivation:
        """An equation, continued to the normal form of its right side."""
        return chain(first, self(first.right))

    def at(self, rule: str, term: Term, *arguments: object) -> Derivation:
        """A rule at the root, continued to the normal form."""
        return self.then(rewrite(rule, term, *arguments))

    def arguments(self, term: Term) -> Derivation:
        """All arguments of a term in normal form."""
        return inside(term, [(k, self(arg)) for k, arg in enumerate(term.args)])

    def _compute(self, t: Term) -> Derivation:
        if t.shape:
            return self.array(t)
        if t.op in LEAVES:
            return Reflexive(t)
        if not t.finite:
            return conditions.extended(self, t)
        treat = _TREATMENTS.get(t.op)
        if treat is not None:
            return treat(self, t)
        return self.arguments(t)

    # arithmetic

    def arithmetic(self, t: Term) -> Derivation:
        """Sums, products and powers: expand over the normal forms of the parts."""
        first = self.arguments(t)
        u = first.right
        if u.op == "power" and isinstance(u.data, int) and u.data < 0:
            first = chain(first, self._take_content(u))
        return chain(first, self.settle(first.right))

    def _take_content(self, t: Term) -> Derivation:
        """1/(c·m·P) as 1/c · 1/m · 1/P, so that what all terms share leaves the inverse."""
        base = expand(t.args[0])
        if len(base) < 2:
            return Reflexive(t)
        scale, shared = content(base)
        if scale == 1 and not shared:
            return Reflexive(t)
        down = monomial_term(tuple((a, -k) for a, k in shared))
        rest = self(mul(num(1 / scale), down, t.args[0])).right
        target = mul(num(scale), monomial_term(shared), rest)
        nonzero = tuple(a for a, _ in shared if positive(a))
        return inside(t, [(0, rewrite("ring", t.args[0], target, *nonzero))])

    def settle(self, t: Term) -> Derivation:
        """A polynomial over atoms in normal form, expanded, sorted and reduced."""
        total = expand(t)
        target = to_term(total)
        step: Derivation = Reflexive(t)
        if target is not t:
            step = rewrite("ring", t, target, *_cancelled(t, target))
        parts = target.args if target.op == "add" else (target,)
        reduced = [(k, self.reduce(part)) for k, part in enumerate(parts)]
        if all(isinstance(r, Reflexive) for _, r in reduced):
            return step
        inner = inside(target, reduced) if target.op == "add" else reduced[0][1]
        return chain(step, inner, self(inner.right))

    def reduce(self, t: Term) -> Derivation:
        """One reduction of a monomial: sin², [c]², √x², equal indices, ordered |x|."""
        factors = t.args if t.op == "mul" else (t,)
        for place, factor in enumerate(factors):
            exponent = factor.data if factor.op == "power" else 1
            base = factor.args[0] if factor.op == "power" else factor
            if not isinstance(exponent, int):
                continue
            if base.op == "sin" and exponent >= 2:
                return self._with_square(t, factors, place, base, 2, "sin² + cos² = 1")
            if base.op == "sqrt" and abs(exponent) >= 2 and positive(base.args[0]):
                return self._with_square(t, factors, place, base, 2 if exponent > 0 else -2, "root")
            if base.op == "indicator" and exponent >= 2:
                step = rewrite("indicator power", factor)
                return inside(t, [(place, step)]) if t.op == "mul" else step
            inverse = factor if exponent == -1 else base
            if inverse.op == "power" and inverse.args[0].op == "add" and inverse.data == -1:
                smaller = divided(t, inverse) if positive(inverse.args[0]) else None
                if smaller is not None:
                    return rewrite("ring", t, smaller, inverse.args[0])
        return conditions.reduce_gates(t, factors)

    def _with_square(
        self, t: Term, factors: tuple[Term, ...], place: int, base: Term, k: int, rule: str
    ) -> Derivation:
        exponent = factors[place].data
        assert isinstance(exponent, int)
        square = power(base, k)
        rest = [power(base, exponent - k)] if exponent != k else []
        target = mul(*factors[:place], square, *rest, *factors[place + 1 :])
        step = rewrite("ring", t, target)
        if target is square:
            return chain(step, rewrite(rule, square))
        return chain(step, inside(target, [(place, rewrite(rule, square))]))

    # functions

    def exponential(self, t: Term) -> Derivation:
        """exp of a sum as a product of exponentials of single terms."""
        if not t.args[0].finite:
            return conditions.exponential(self, t)
        first = inside(t, [(0, self(t.args[0]))])
        u = first.right
        exponent = expand(u.args[0])
        if not exponent:
            return chain(first, rewrite("exp", u, ONE))
        factors = []
        for monomial, c in exponent.items():
            unit = unary("exp", monomial_term(monomial, Fraction(1, c.denominator)))
            factors.append(power(unit, c.numerator))
        target = mul(*factors)
        return chain(first, self.settled("exp", u, target))

    def settled(self, rule: str, t: Term, *arguments: object) -> Derivation:
        """A rule whose result only has to be sorted."""
        step = rewrite(rule, t, *arguments)
        return chain(step, self.settle(step.right)) if step.right is not t else step

    def angle(self, t: Term) -> Derivation:
        """Cosine and sine of a sum, down to single terms with a positive unit coefficient."""
        first = inside(t, [(0, self(t.args[0]))])
        u = first.right
        terms = list(expand(u.args[0]).items())
        if not terms:
            return chain(first, rewrite("zero angle", u))
        monomial, c = terms[0]
        if len(terms) == 1 and c.numerator == 1:
            return first
        if len(terms) == 1 and c < 0:
            return chain(first, self.at("parity", u, monomial_term(monomial, -c)))
        unit = Fraction(1 if c > 0 else -1, c.denominator)
        a = monomial_term(monomial, unit if len(terms) == 1 else c)
        b = to_term(dict([(monomial, c - unit)] if len(terms) == 1 else terms[1:]))
        return chain(first, self.at("angle addition", u, a, b))

    def absolute(self, t: Term) -> Derivation:
        first = inside(t, [(0, self(t.args[0]))])
        u = first.right
        x = u.args[0]
        if sign(x)[0]:
            return chain(first, rewrite("absolute value", u, x))
        opposite = self(mul(num(-1), x)).right
        if opposite.key < x.key:
            first = chain(first, rewrite("absolute value", u, unary("abs", opposite)))
        return first

    def maximum(self, t: Term) -> Derivation:
        first = self.arguments(t)
        u = first.right

        def leaves(x: Term) -> list[Term]:
            return [y for arg in x.args for y in leaves(arg)] if x.op == "maximum" else [x]

        different = sorted(set(leaves(u)) - {MINUS_INFINITY}, key=lambda x: x.key)
        target = different[0]
        for x in different[1:]:
            target = make("maximum", (target, x))
        return first if target is u else chain(first, rewrite("maximum", u, target))

    def division(self, t: Term) -> Derivation:
        first = self.arguments(t)
        try:
            return chain(first, self.at("divide", first.right))
        except Refused:
            return first

    # entries

    def entry(self, t: Term) -> Derivation:
        """An entry of a computed array is unfolded; others are atoms."""
        array = t.args[0]
        first = inside(t, [(k, self(at)) for k, at in enumerate(t.args) if k])
        u = first.right
        if array.op not in ("var", "inverse", "iterate", "call") or (
            array.op == "call" and array.data[1]
        ):
            try:
                return chain(first, self.at("entry", u))
            except Refused:
                return first
        if array.op == "call":
            first = chain(first, inside(u, [(0, self(array))]))
            return chain(first, self._equivariance(first.right))
        if u.args[1].op == "entry":
            try:
                return chain(first, self.at("permutation", u))
            except Refused:
                pass
        return chain(first, self._hypothesis(first.right))

    def _hypothesis(self, t: Term) -> Derivation:
        if not self.assume:
            return Reflexive(t)
        plain = Normaliser(self.splits)
        for left, right in self.assume:
            places = [index(f"h{k}", n) for k, n in enumerate(left.shape)]
            matched = conditions.match(plain(entry(left, *places)).right, t, places)
            if matched is None:
                continue
            whole = entry(left, *matched)
            back = reverse(plain(whole))
            if back.left is t:
                return self.then(chain(back, rewrite("hypothesis", whole, left, right)))
        return Reflexive(t)

    def _equivariance(self, t: Term) -> Derivation:
        """f(X[σ]) as f(X)[σ] for a function given as equivariant."""
        f = t.args[0]
        traits = f.data[2] if f.op == "call" else ()
        if "equivariant" not in traits or f.args[0].op != "tabulate":
            return Reflexive(t)
        table = f.args[0]
        row = opened_index(table, table.args[0])
        body = instantiate(table.args[1], row)
        words = words_on(body, row)
        if not words or any(not word for word in words):
            return Reflexive(t)
        sigma = words[0][-1]
        if sigma.op != "var" or any(word[-1] is not sigma for word in words):
            return Reflexive(t)
        plain_body = strip_word(body, row, sigma)
        moved = make("tabulate", (table.args[0], bind(plain_body, row)), shape=table.shape)
        return self.then(rewrite("equivariance", t, sigma, moved))

    # arrays, which occur as arguments of uninterpreted functions

    def array(self, t: Term) -> Derivation:
        if t.op == "call" and not t.data[1]:
            return self.arguments(t)
        first = Reflexive(t) if t.op == "tabulate" else rewrite("tabulate", t)
        return chain(first, self._table(first.right))

    def _table(self, t: Term) -> Derivation:
        if t.op != "tabulate":
            return self(t)
        row = opened_index(t, t.args[0])
        return under(t, (row,), self._table(instantiate(t.args[1], row)))


def _cancelled(t: Term, target: Term) -> tuple[Term, ...]:
    """Positive atoms that occur in both t and 1/t, for the ring rule's side condition."""
    found: dict[Term, None] = {}

    def visit(x: Term) -> None:
        if x.op in ("add", "mul"):
            for arg in x.args:
                visit(arg)
        elif x.op == "power" and isinstance(x.data, int):
            if x.data < 0:
                for atom, _ in (p for m in _safe_expand(x.args[0]) for p in m):
                    found.setdefault(atom)
            visit(x.args[0])

    visit(t)
    visit(target)
    return tuple(atom for atom in found if positive(atom))


def _safe_expand(t: Term) -> list[Monomial]:
    return list(expand(t))


_TREATMENTS: dict[str, Callable[[Normaliser, Term], Derivation]] = {
    "add": Normaliser.arithmetic,
    "mul": Normaliser.arithmetic,
    "power": Normaliser.arithmetic,
    "exp": Normaliser.exponential,
    "cos": Normaliser.angle,
    "sin": Normaliser.angle,
    "abs": Normaliser.absolute,
    "maximum": Normaliser.maximum,
    "floor_divide": Normaliser.division,
    "remainder": Normaliser.division,
    "entry": Normaliser.entry,
    "named": lambda self, t: self.at("definition", t),
    "where": lambda self, t: self.at("where", t),
    "indicator": conditions.indicator,
    "is in": lambda self, t: inside(t, [(0, self(t.args[0]))]),
    "sum": sums.summation,
}
for _op in (
    "matmul",
    "reduce",
    "pick",
    "permute",
    "broadcast",
    "reshape",
    "gather",
    "slice",
    "row",
):
    _TREATMENTS[_op] = lambda self, t: self.at("entry", t)
