r"""LaTeX of numbers, truth values and expectations, and of elementwise operations.

``z[ω, a]`` is printed as z_a, as usual in probability.  If two outcomes of the same space occur
together, the second one is printed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..scalars import add, integer, mul, num, number_of
from ..terms import Term, free, instantiate, make, postorder
from .general_entries import constant, core, names_of, opened, scalar
from .printer import (
    ATOM,
    FACTOR,
    LOOSE,
    SUM,
    TIGHT,
    BasePrinter,
    Piece,
    bracket,
    joined,
    name_latex,
    number,
    wrap,
)

# LaTeX of numbers and elementwise operations: sums, products, functions

_FUNCTIONS = {"cos": r"\cos", "sin": r"\sin", "log": r"\log", "tanh": r"\tanh"}


class NumberPrinter(BasePrinter):
    """Prints names and numbers, and arithmetic."""

    def op_num(self, t: Term) -> Piece:
        value = number_of(t)
        assert value is not None
        return number(value)

    def op_var(self, t: Term) -> Piece:
        return Piece(name_latex(t.data[0]))

    op_size = op_var

    def op_index(self, t: Term) -> Piece:
        return Piece(name_latex(str(t.data)))

    def op_pi(self, _: Term) -> Piece:
        return Piece(r"\pi")

    def op_minus_infinity(self, _: Term) -> Piece:
        return Piece(r"-\infty", SUM, minus=True)

    def op_arange(self, t: Term) -> Piece:
        end = self(integer(add(t.args[0], num(-1))))
        return Piece(rf"(0, 1, \dots, {end})")

    def op_cut(self, _: Term) -> Piece:
        return Piece(r"\langle\text{cut}\rangle")

    def op_eye(self, t: Term) -> Piece:
        return Piece(rf"I_{{{self(t.args[0])}}}", TIGHT)

    def op_inverse(self, t: Term) -> Piece:
        return Piece(rf"{self(t.args[0], ATOM)}^{{-1}}", TIGHT)

    # arithmetic

    def op_add(self, t: Term) -> Piece:
        text, minus = "", False
        args = [*t.args[1:], t.args[0]] if _counted(t) else list(t.args)
        args = [a for a in args if self.strict or number_of(core(a)) != 0] or [t.args[0]]
        if len(args) == 1:
            return self.piece(args[0])
        matrix = sum(n.op != "space" for n in t.shape) > 1 and not all(map(constant, args))
        for place, arg in enumerate(args):
            part = self.repeated(arg) if matrix and constant(arg) else self.piece(arg)
            shown = wrap(part, SUM, last=place == len(args) - 1)
            if core(arg).op == "remainder":  # x + (y mod 3) is not (x + y) mod 3
                shown = bracket(part.text)
            if not text:
                text, minus = shown, shown.startswith("-")
            elif shown.startswith("-"):
                text += f" - {shown[1:]}"
            else:
                text += f" + {shown}"
        return Piece(text, SUM, minus)

    def repeated(self, t: Term) -> Piece:
        """Return an array with equal entries: c 1, with the shape of the ones."""
        value, lengths = core(t), [n for n in t.shape if n.op != "space"]
        part = self.piece(value)
        if number_of(value) == 0 or not lengths:
            return part
        ones = rf"1_{{{r' x '.join(self(n, SUM) for n in lengths)}}}".replace(" x ", r" \times ")
        if number_of(value) in (1, -1):
            minus = number_of(value) == -1
            return Piece(f"-{ones}" if minus else ones, SUM if minus else ATOM, minus)
        return Piece(joined([wrap(part, FACTOR, last=False), ones]), FACTOR, part.minus)

    def op_mul(self, t: Term) -> Piece:
        coefficient, above, below = num(1).data, list[Term](), list[Term]()
        assert not isinstance(coefficient, int)
        for arg in _factors(t):
            value = number_of(arg)
            if value is not None:
                coefficient *= value
            elif arg.op == "power" and arg.data < 0:
                below.append(_power(arg.args[0], -arg.data))
            else:
                above.append(arg)
        return self.quotient(coefficient, above if self.strict else _squared(above), below)

    def quotient(self, coefficient: Any, above: list[Term], below: list[Term]) -> Piece:
        """Return a fraction of products, with the sign in front and as few brackets as possible."""
        sign, size = ("-" if coefficient < 0 else ""), abs(coefficient)
        arrays = [a for a in above if not scalar(a)]
        above = [a for a in above if scalar(a)] + arrays if len(arrays) < len(above) else above
        whole = [str(size.numerator)] * (size.numerator != 1)
        alone = len(above) + len(whole) == 1
        parts = [self.piece(a) for a in above]
        level = SUM if alone and (below or size.denominator != 1) else FACTOR
        if len(arrays) > 1:  # (X Y) ⊙ Z is not X (Y ⊙ Z)
            parts[-len(arrays) :] = [Piece(wrap(p, TIGHT)) for p in parts[-len(arrays) :]]
        parts = [*map(_argument_closed, parts, parts[1:]), *parts[-1:]]
        factors = [wrap(p, level, last=k == len(parts) - 1) for k, p in enumerate(parts)]
        dots = [a.op == "matmul" and not a.ndim for a in above]
        if len(dots) > 1 and (sum(dots) > 1 or not dots[-1]):  # (p·p)(q·q), not p (p·q) q
            for k, p in enumerate(parts):
                factors[k] = bracket(p.text) if dots[k] else factors[k]
        if len(arrays) > 1:
            scalars, rest = factors[: -len(arrays)], factors[-len(arrays) :]
            factors = [*scalars, r" \odot ".join(rest)]
        under = [str(size.denominator)] * (size.denominator != 1)
        under += [self(b, FACTOR if len(below) + len(under) > 1 else LOOSE) for b in below]
        if not under:
            text = joined(whole + factors) or "1"
            opens = any(p.open for p in parts)
            looser = sign or len(arrays) > 1
            return Piece(sign + text, SUM if looser else FACTOR, bool(sign), opens)
        top = joined(whole + factors)
        if any(p.open for p in parts) or len(top) > 70 or r"\begin" in top:
            spread = [wrap(p, FACTOR, last=k == len(parts) - 1) for k, p in enumerate(parts)]
            text = joined([rf"\frac{{{joined(whole) or 1}}}{{{joined(under)}}}", *spread])
            return Piece(sign + text, SUM if sign else FACTOR, bool(sign), True)
        text = rf"{sign}\frac{{{top or 1}}}{{{joined(under)}}}"
        return Piece(text, SUM if sign else TIGHT, bool(sign))

    def op_power(self, t: Term) -> Piece:
        exponent: Any = t.data
        if exponent < 0:
            return self.quotient(num(1).data, [], [_power(core(t.args[0]), -exponent)])
        base = core(t.args[0])
        if base.op in ("cos", "sin"):
            return Piece(rf"{_FUNCTIONS[base.op]}^{{{exponent}}}{self.argument(base)}", TIGHT)
        return Piece(rf"{self(base, ATOM)}^{{{exponent}}}", TIGHT)

    def argument(self, t: Term) -> str:
        """Return the argument of cos, sin, log or tanh, in brackets unless it is one symbol."""
        inner = self.piece(t.args[0])
        plain = inner.level == ATOM and "(" not in inner.text
        return (" " if plain else "") + (inner.text if plain else bracket(inner.text))

    def op_cos(self, t: Term) -> Piece:
        return Piece(_FUNCTIONS[t.op] + self.argument(t), TIGHT)

    op_sin = op_log = op_tanh = op_cos

    def op_exp(self, t: Term) -> Piece:
        inner = self(t.args[0])
        if len(inner) > 40 or any(mark in inner for mark in (r"\frac", r"\sum", r"\begin")):
            return Piece(r"\exp" + bracket(inner))
        return Piece(rf"e^{{{inner}}}", TIGHT)

    def op_sqrt(self, t: Term) -> Piece:
        return Piece(rf"\sqrt{{{self(t.args[0])}}}", TIGHT)

    def op_abs(self, t: Term) -> Piece:
        return Piece(rf"\left|{self(t.args[0])}\right|")

    def op_maximum(self, t: Term) -> Piece:
        return self.applied(r"\max", t.args)

    def op_floor_divide(self, t: Term) -> Piece:
        a, b = t.args
        return Piece(rf"\left\lfloor {self(mul(a, make('power', (b,), -1)))} \right\rfloor")

    def op_remainder(self, t: Term) -> Piece:
        dividend = self(t.args[0], FACTOR, last=False)
        return Piece(rf"{dividend} \bmod {self(t.args[1], FACTOR)}", SUM)


_BARE = re.compile(r"(?P<function>\\(?:cos|sin|log|tanh)(?:\^\{\d+\})?) (?P<argument>.*)")


def _argument_closed(factor: Piece, after: Piece) -> Piece:
    """Return a factor, its argument in brackets if the next factor would be read as part of it."""
    bare = _BARE.fullmatch(factor.text)
    if bare is None or after.text.startswith(tuple(_FUNCTIONS.values())):
        return factor
    return Piece(f"{bare['function']}({bare['argument']})", factor.level)


def _factors(t: Term) -> Iterator[Term]:
    """Yield the factors of a product, with nested products of numbers flattened."""
    for arg in (core(a) for a in t.args):
        if arg.op == "mul" and not arg.ndim:
            yield from _factors(arg)
        else:
            yield arg


def _squared(factors: list[Term]) -> list[Term]:
    """Return the factors with equal numbers joined to powers."""
    found: list[Term] = []
    for factor in factors:
        times = factors.count(factor)
        if factor.ndim or times == 1:
            found.append(factor)
        elif _power(factor, times) not in found:
            found.append(_power(factor, times))
    return found


def _counted(t: Term) -> bool:
    """Whether a sum is a number plus counts or indices, printed as 2b + 1 and not 1 + 2b."""
    rest = [a for arg in t.args[1:] for a in (arg.args if arg.op == "mul" else (arg,))]
    return t.args[0].op == "num" and all(_counts(a) for a in rest)


def _counts(t: Term) -> bool:
    return t.op in ("num", "index", "size") or (t.op == "var" and t.data[1] == "natural")


def _power(base: Term, exponent: int) -> Term:
    return base if exponent == 1 else make("power", (base,), exponent, base.shape)


# LaTeX of truth values: comparisons, connectives, indicators, cases

_RELATIONS = {"equal": "=", "less": "<", "less_equal": r"\le"}
_NEGATED = {"equal": r"\ne", "less": r"\ge", "less_equal": ">"}


class TruthPrinter(NumberPrinter):
    """Prints conditions, indicators and choices."""

    def op_equal(self, t: Term) -> Piece:
        left, right = (self(a, SUM) for a in t.args)
        return Piece(f"{left} {_RELATIONS[t.op]} {right}", LOOSE)

    op_less = op_less_equal = op_equal

    def op_not(self, t: Term) -> Piece:
        inner = t.args[0]
        if inner.op in _NEGATED:
            left, right = (self(a, SUM) for a in inner.args)
            return Piece(f"{left} {_NEGATED[inner.op]} {right}", LOOSE)
        return Piece(rf"\lnot {self(inner, ATOM)}", FACTOR)

    def op_and(self, t: Term) -> Piece:
        return Piece(r" \land ".join(self(a, SUM) for a in t.args), LOOSE)

    def op_or(self, t: Term) -> Piece:
        return Piece(r" \lor ".join(self(a, SUM) for a in t.args), LOOSE)

    def op_isin(self, t: Term) -> Piece:
        index, places = self(t.args[0], SUM), self(t.args[1], ATOM)
        return Piece(rf"{index} \in \operatorname{{im}}\,{places}", LOOSE)

    op_is_in = op_isin

    def op_indicator(self, t: Term) -> Piece:
        return Piece(rf"\left[{self(t.args[0])}\right]")

    def op_where(self, t: Term) -> Piece:
        rows, rest = list[str](), t
        while rest.op == "where":
            rows.append(rf"{self(rest.args[1])} & \text{{if }} {self(rest.args[0])}")
            rest = core(rest.args[2])
        rows.append(rf"{self(rest)} & \text{{otherwise}}")
        return Piece(r"\begin{cases}" + r" \\ ".join(rows) + r"\end{cases}", LOOSE)


# LaTeX of random arrays: an axis of outcomes is not printed, a sum over it is E[..]

OUTCOME = "the outcome"


class ExpectationPrinter(TruthPrinter):
    """Prints expectations, and random arrays without their outcomes."""

    def fresh(self, length: Term, taken: Iterable[Term]) -> Term:
        """Return an unused index; the first outcome of a space is not printed."""
        if length.op != "space":
            return super().fresh(length, taken)
        around = {*taken, *self.avoid}
        used = names_of(around) - {OUTCOME}
        if any(v.op == "index" and v.data == OUTCOME and v.args == (length,) for v in around):
            used.add(OUTCOME)
        names = (OUTCOME, "omega", *(f"omega{k}" for k in range(1, 99)))
        return make("index", (length,), next(name for name in names if name not in used))

    def subscripts(self, at: Sequence[Term | None], whole: str = ":") -> str:
        """Return indices without unprinted outcomes."""
        return super().subscripts([i for i in at if not _is_unprinted(i)], whole)

    def listed(self, at: Iterable[Term]) -> str:
        """Return indices with commas between them, without unprinted outcomes."""
        return super().listed(i for i in at if not _is_unprinted(i))

    def subscripted(self, array: Term, at: Sequence[Term | None]) -> Piece:
        """Return an array with indices, without unprinted outcomes."""
        whole = [n.op == "space" for n in array.shape]
        seen = [
            i
            for i, hid in zip(at, whole, strict=False)
            if not (_is_unprinted(i) or (hid and not i))
        ]
        return super().subscripted(array, seen)

    def op_space(self, t: Term) -> Piece:
        """The name of a probability space."""
        return Piece(name_latex(t.data[0]))

    def expectation(self, body: Term, outcome: Term) -> Piece:
        """Return E[body]; directly nested expectations over different spaces become one."""
        outcomes, around = [outcome], self._around()
        while (inner := self._inner(body, outcomes)) is not None:
            outcomes.append(inner[0])
            body = inner[1]
        with self.within(outcomes):
            text = self(body)
        return self._expected(text, body, outcomes, around)

    def mean_array(self, array: Term, space: Term) -> Piece:
        """Return E[array] for an array with an axis of outcomes."""
        outcome = make("index", (space,), OUTCOME)
        return self._expected(self(array), array, [outcome], self._around())

    def _expected(self, text: str, body: Term, outcomes: list[Term], around: bool) -> Piece:
        """Return E[text]; the spaces are named if another one occurs inside or around it."""
        spaces = [k.args[0] for k in outcomes]
        parts = {n for p in postorder(body) for n in (p, *p.shape)}
        others = any(p.op == "space" and p not in spaces for p in parts)
        names = ", ".join(self(k.args[0] if _is_unprinted(k) else k) for k in outcomes)
        sign = rf"\mathbb{{E}}_{{{names}}}" if around or others else r"\mathbb{E}"
        return Piece(rf"{sign}\left[{text}\right]", TIGHT)

    def _around(self) -> bool:
        return any(v.op == "index" and v.args[0].op == "space" for v in self.avoid)

    def _inner(self, body: Term, outcomes: list[Term]) -> tuple[Term, Term] | None:
        """Return outcome and body if the body is an expectation over another space, else None."""
        t = core(body)
        if t.op == "sum":
            length, inside = t.args
        elif t.op == "reduce" and not t.ndim:
            length, inside = t.args[0].shape[0], t.args[0]
        else:
            return None
        if length.op != "space" or length in [k.args[0] for k in outcomes]:
            return None
        k = self.fresh(length, free(t).union(outcomes))
        return k, instantiate(inside, k) if t.op == "sum" else opened(inside, (k,))


def _is_unprinted(at: Term | None) -> bool:
    return at is not None and at.op == "index" and at.data == OUTCOME
