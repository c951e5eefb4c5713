"""Terms as one line of plain text, for error messages and for derivations in a terminal."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from math import prod

from .claim import Claim, Instance
from .givens import Given
from .latex.arrays import power_base
from .latex.statements import at_values, shortened
from .scalars import add, integer, mul, num, number_of, subtract
from .terms import BINDERS, Term, free, instantiate, make

_INFIX = {"equal": " = ", "less": " < ", "less_equal": " ≤ ", "and": " and ", "or": " or "}
_LETTERS = "jkabcuvwxyz"


@lru_cache(1 << 14)  # the end of one step of a proof is the start of the next
def plain(t: Term) -> str:
    """Return a term as one line, cut if longer than a page; bound indices get unused letters.

    >>> from attnproof.symbolic.scalars import add, num, size
    >>> plain(add(size("n"), num(1)))
    'n + 1'
    """
    return _text(_openable(shortened(t)), 0)


def _openable(t: Term) -> Term:
    """Return a term with its loose bound indices replaced by placeholders."""
    if not t.loose:
        return t
    return instantiate(t, *(make("var", (), (f"_{k}", "real"), ()) for k in range(t.loose)))


def _letter(taken: frozenset[Term], letters: str = _LETTERS) -> str:
    used = {str(v.data if v.op == "index" else v.data[0]) for v in taken}
    return next(
        x for k in range(99) for c in letters if (x := c + ("" if not k else str(k))) not in used
    )


@lru_cache(1 << 14)  # steps of a proof share most of their parts
def _text(t: Term, level: int) -> str:
    """Return the text of a term, in parentheses from level 1 for sums, 2 also for products."""
    if t.op in _FORMS:
        return _FORMS[t.op](t, level)
    if t.op in BINDERS:
        return _binder(t, level)
    if t.op in _INFIX:
        text = _INFIX[t.op].join(_text(a, 2 if a.op in _INFIX else 1) for a in t.args)
        return f"({text})" if level > 1 else text
    name = t.data[0] if t.op in ("call", "named") else t.op
    args = t.args[1:] if t.op == "named" else t.args
    shown = _whole if t.op in ("call", "named") else _text
    texts = [shown(a, 0) for a in args]
    if len(texts) == 1 and args[0].op == "tabulate" and texts[0].startswith("("):
        return f"{name}{texts[0]}"
    return f"{name}({', '.join(texts)})" if args else str(name)


def _sum(t: Term, level: int) -> str:
    counted = t.args[0].op == "num" and all(map(_counts, t.args[1:]))
    first, *rest = (*t.args[1:], t.args[0]) if counted else t.args
    text = _text(first, int(first.op != "add"))
    for part in rest:
        shown = _text(part, int(part.op != "add"))
        text += f" - {shown[1:]}" if shown.startswith("-") else f" + {shown}"
    return f"({text})" if level > 0 else text


def _counts(t: Term) -> bool:
    """Whether a term is a count, after which a number is written: m + 1, not 1 + m."""
    if t.op == "mul":
        return all(map(_counts, t.args))
    return t.op in ("num", "index", "size") or (t.op == "var" and t.data[1] == "natural")


def _matmul(t: Term, level: int) -> str:
    """A matrix product, left-associative, so that a product on the right gets parentheses."""
    left, right = t.args
    first = _whole(left, 1 if left.op == "matmul" else _closed(left))
    text = f"{first} @ {_whole(right, _closed(right))}"
    return f"({text})" if level > 1 else text


def _closed(t: Term) -> int:
    """The level for a matrix factor: powers need no parentheses."""
    return 2 if t.op in ("iterate", "power") else 3


def _literal(t: Term) -> Term:
    """Return a term without broadcasting around it."""
    return _literal(t.args[0]) if t.op == "broadcast" else t


def _product(t: Term, level: int) -> str:
    """A product with numbers first, a factor −1 as a sign, and inverses as divisors."""
    numbers = [f.data for f in map(_literal, t.args) if f.op == "num"]
    value = prod(numbers, start=Fraction(1))
    factors = [f for f in map(_literal, t.args) if f.op != "num"]
    above = [_text(f, 2) for f in factors if not _inverted(f)]
    below = [_text(f.args[0], 3) for f in factors if _inverted(f)]
    if abs(value) != 1 or not above:
        above.insert(0, str(abs(value)))
    text = "-" * (value < 0) + "/".join(["·".join(above), *below])
    return f"({text})" if level > 1 else text


def _inverted(t: Term) -> bool:
    return t.op == "power" and t.data == -1


def _reduced(t: Term, _: int) -> str:
    (x,) = t.args
    length = x.shape[t.data]
    if length.op == "space":
        return f"E_{_text(length, 3)}[{_text(x, 0)}]"
    source = x.args[0] if x.op == "broadcast" else x
    longer = source.ndim < x.ndim - t.data or source.shape[t.data - x.ndim] is not length
    return f"sum({_in_shape('broadcast_to', x) if longer else _text(x, 0)}, axis={t.data})"


def _stack(t: Term, level: int) -> str:
    """A stack of layers as a power, or with its depth, start and layer."""
    depth, start, _ = t.args
    base = power_base(t)
    if base is not None:
        text = f"{_raised(base)}^{_text(depth, 3)}"
        return f"({text})" if level > 2 else text
    layer = make("index", (depth,), _letter(free(t), "tsjk"))
    state = make("var", (), (_letter(free(t) | {layer}, "yxzuvw"), "real"), t.shape)
    body = _text(instantiate(t.args[2], layer, state), 0)
    shown = ", ".join(_text(v, 0) for v in (layer, state))
    return f"iterate({_text(depth, 0)}, {_text(start, 0)}; {shown} -> {body})"


def _power(t: Term, level: int) -> str:
    (base,) = t.args
    text = f"1/{_text(base, 3)}" if _inverted(t) else f"{_raised(base)}^{t.data}"
    return f"({text})" if level > 2 else text


def _raised(base: Term) -> str:
    """The base of a power; one that ends in a superscript is in parentheses, (Aᵀ)^m."""
    text = _text(base, 3)
    return f"({text})" if text.endswith(("ᵀ", "⁻¹")) else text


def _number(t: Term, level: int) -> str:
    text = str(t.data)
    return f"({text})" if level > 2 and not text.isdigit() else text


def _remainder(t: Term, level: int) -> str:
    text = f"{_text(t.args[0], 2)} mod {_text(t.args[1], 2)}"
    return f"({text})" if level > 0 else text


def _permuted(t: Term, _: int) -> str:
    swapped = t.data == (*range(t.ndim - 2), t.ndim - 1, t.ndim - 2)
    return f"{_text(t.args[0], 3)}ᵀ" if swapped else f"permute({_text(t.args[0], 0)}, {t.data})"


def _joined(t: Term, _: int) -> str:
    """Parts joined along an axis, which is named unless it is the first."""
    where = f", axis={t.data}" if t.data else ""
    return f"{t.op}({', '.join(_text(a, 0) for a in t.args)}{where})"


def _in_shape(name: str, t: Term) -> str:
    lengths = ", ".join(_text(n, 0) for n in t.shape)
    return f"{name}({_text(t.args[0], 0)}, ({lengths}{',' * (t.ndim == 1)}))"


def _whole(t: Term, level: int) -> str:
    """The text of an argument whose shape counts: a repeated number is written with its shape."""
    repeated = t.op == "broadcast" and not _literal(t).ndim
    return _in_shape("broadcast_to", t) if repeated else _text(t, level)


def _with_new_axis(t: Term) -> str:
    return ", ".join("None" if axis == t.data else ":" for axis in range(t.ndim))


def _span(t: Term) -> str:
    axis, step = t.data
    start = _text(t.args[1], 0)
    end = integer(add(t.args[1], mul(num(step), t.shape[axis])))
    whole = f"{start if start != '0' else ''}:{_text(end, 0)}"
    if step == 1:
        return whole
    beyond = number_of(integer(subtract(end, t.args[0].shape[axis])))
    return f"{start}::{step}" if beyond is not None and 0 <= beyond < step else f"{whole}:{step}"


_FORMS: dict[str, Callable[[Term, int], str]] = {
    "index": lambda t, _: str(t.data),
    "size": lambda t, _: str(t.data[0]),
    "space": lambda t, _: str(t.data[0]),
    "var": lambda t, _: str(t.data[0]),
    "num": _number,
    "minus infinity": lambda _, __: "-inf",
    "cut": lambda _, __: "⟨cut⟩",
    "add": _sum,
    "mul": _product,
    "power": _power,
    "entry": lambda t, _: f"{_text(t.args[0], 3)}[{', '.join(_text(a, 0) for a in t.args[1:])}]",
    "indicator": lambda t, _: f"[{_text(t.args[0], 0)}]",
    "floor_divide": lambda t, _: f"⌊{_text(t.args[0], 2)}/{_text(t.args[1], 3)}⌋",
    "remainder": _remainder,
    "inverse": lambda t, _: f"{_text(t.args[0], 3)}⁻¹",
    "matmul": _matmul,
    "permute": _permuted,
    "stack": _joined,
    "concat": _joined,
    "reshape": lambda t, _: _in_shape("reshape", t),
    "gather": lambda t, _: f"{_text(t.args[0], 3)}[{':, ' * t.data}{_text(t.args[1], 0)}]",
    "broadcast": lambda t, level: _text(t.args[0], level),
    "new axis": lambda t, _: f"{_text(t.args[0], 3)}[{_with_new_axis(t)}]",
    "pick": lambda t, _: f"{_text(t.args[0], 3)}[{':, ' * t.data}{_text(t.args[1], 0)}]",
    "iterate": _stack,
    "reduce": _reduced,
    "slice": lambda t, _: f"{_text(t.args[0], 3)}[{':, ' * t.data[0]}{_span(t)}]",
}


def _binder(t: Term, level: int) -> str:
    letter = _letter(free(t))
    at = make("index", (t.args[0],), letter)
    inner = instantiate(t.args[-1], at)
    row = _row(inner, at) if t.op == "tabulate" else None
    if row is not None and at not in free(row):
        return _text(row, 3)
    body = _text(inner, 2)
    if t.op == "tabulate":
        return f"({letter} ↦ {body})"
    if t.args[0].op == "space":
        return f"E_{_text(t.args[0], 3)}[{letter} ↦ {body}]"
    text = f"Σ_{letter} {body}"
    return f"({text})" if level > 2 else text


def _row(t: Term, at: Term) -> Term | None:
    """Return the array of which t is the entry or row at that index, or None."""
    if t.op == "entry" and t.args[-1] is at:
        return make("entry", t.args[:-1]) if len(t.args) > 2 else t.args[0]
    return t.args[0] if t.op == "pick" and not t.data and t.args[1] is at else None


RELATIONS = {"=": "=", ">": ">", ">=": "≥", "!=": "≠"}
_SETS = {"natural": "\u2115", "positive": "ℝ>0", "nonnegative": "ℝ≥0", "boolean": "{T, F}"}


def plain_claim(claim: Claim) -> str:
    """Return a claim as text, with the variables it quantifies over.

    >>> from .claim import at_least, equal, for_all
    >>> from .givens import real, sizes
    >>> (d,) = sizes("d")
    >>> plain_claim(for_all({"x": real(d)}, lambda x: equal(x + x, 2 * x)).claim)
    'for all x ∈ ℝ^d: x + x = 2·x'
    >>> plain_claim(at_least(real().named("c"), 1))
    'c ≥ 1'
    """
    right = "0" if claim.right is None else plain(claim.right)
    line = f"{plain(claim.left)} {RELATIONS[claim.compared]} {right}"
    if claim.relation == "exists" and claim.variable is not None:
        free_of = " and ".join(plain(term) for term in claim.free_of)
        apart = f", the same for every {free_of}," if free_of else ""
        line = f"there is {plain(claim.variable)}{apart} with {line}"
    if not claim.variables:
        return line
    return f"for all {', '.join(_member(*named) for named in claim.variables)}: {line}"


def plain_fact(fact: Instance) -> str:
    """Return a law at the values at which a proof uses it."""
    claim, family = at_values(fact)
    text = plain_claim(claim)
    ranges = ", ".join(f"{plain(i)} < {_length(i.args[0])}" for i in family)
    return f"{text} for all {ranges}" if ranges else text


def _member(name: str, given: Given) -> str:
    if given.below is not None:
        index = given.kind == "index"
        return f"{name} < {plain(given.below)}" if index else f"{name}, {given.says}"
    axes = "×".join(map(_length, given.shape))
    if len(given.shape) > 1:
        axes = f"({axes})"
    return f"{name} ∈ {_SETS.get(given.kind, 'ℝ')}{f'^{axes}' if axes else ''}"


def _length(length: Term) -> str:
    text = plain(length)
    return f"({text})" if length.op in ("add", "mul") else text
