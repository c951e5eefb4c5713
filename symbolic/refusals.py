"""Operations that symbolic arrays refuse, with messages for the author of the code.

A statement is one line of code for all sizes.  Python's own protocols (a loop, ``len``, ``if``,
``float``) and the functions of NumPy and torch need numbers, or run a different program at each
size; on a symbolic array they would not compute what the line computes on numbers.

A symbolic array has no truth value, length or hash.  Code that catches the refusal and goes on, or
that asks for the class of an array, a missing method or its text, does one thing on symbols and may
do another on numbers, at sizes and values that are never tried; code that counts its calls may
behave differently later.  So a body is refused if it asked for such a thing or changed its
environment, whatever it returned.

Not detected are questions that involve no method of an array, such as ``xp is numpy``,
``xp.__name__``, ``hasattr(x, "term")``, ``x.device is None``, the time of day, how often a cache
was used, or, in code that knows the class, ``isinstance(x, Array)``.

A Python error raised inside attnproof, for a number instead of a function or for one argument too
many, would look like a fault of attnproof (``faults``).  So arguments are checked where they are
passed in.
"""

from __future__ import annotations

import operator
import pickle
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dis import get_instructions
from functools import cache
from inspect import signature
from itertools import pairwise
from pathlib import Path
from sysconfig import get_path
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType
from typing import Any, NoReturn, ParamSpec, TypeVar
from warnings import catch_warnings, simplefilter

# Checks of the arguments of public functions

P = ParamSpec("P")
R = TypeVar("R")


def checked_call(
    public: Callable[..., Any], build: Callable[P, R], *args: P.args, **named: P.kwargs
) -> R:
    """Call ``build`` with these arguments, which are those of ``public``.

    Raises ``TypeError``, with the parameters of ``public``, for arguments that do not fit them.

    >>> checked_call(divmod, divmod, 7, 2)
    (3, 1)
    """
    try:
        return build(*args, **named)
    except TypeError as error:
        refused = _refused(public, args, named)
        if refused:
            raise TypeError(refused) from error.__cause__
        raise


def _refused(public: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> str:
    taken = signature(public)
    try:
        taken.bind(*args, **named)
    except TypeError as error:
        told = ", ".join(taken.parameters)
        return f"{getattr(public, '__name__', public)}({told}): {error}"
    return ""


def demand(found: Any, kind: type | tuple[type, ...] | Callable[..., bool], where: str) -> None:
    """Raise ``TypeError`` for an argument that is not of a type, or that fails a predicate.

    ``where`` says what is expected, and for what.

    >>> demand(3, callable, "rows wants a function of one index, such as lambda i: X[i]")
    Traceback (most recent call last):
    TypeError: rows wants a function of one index, such as lambda i: X[i]; got int: 3
    """
    fits = isinstance(found, kind) if isinstance(kind, type | tuple) else kind(found)
    if not fits:
        raise TypeError(f"{where}; got {type(found).__name__}: {found!r}")


# Requests of code that only numbers could answer, and state that it keeps from call to call

PYTHON_FILES = ("<frozen ", str(Path(get_path("stdlib")) / "functools.py"))  # abc, singledispatch
_REQUESTS: ContextVar[list[str] | None] = ContextVar(
    "what the code requested in this run", default=None
)


def record_request(what: str) -> None:
    """Record that the code asked for this."""
    asked = _REQUESTS.get()
    if asked is not None:
        asked.append(what)


def record_user_request(what: str) -> None:
    """Record a request if an author's code made it, directly or through Python's own functions.

    Requests by attnproof itself or by a library are ignored.
    """
    if _REQUESTS.get() is None:
        return
    frame: FrameType | None = sys._getframe(2)  # noqa: SLF001 (the one public way costs 20 times more)
    while frame is not None and frame.f_code.co_filename.startswith(PYTHON_FILES):
        frame = frame.f_back
    if frame is not None and _is_user_code(frame.f_code.co_filename):
        record_request(what)


def refuse_truth_of_a_claim(_: object) -> bool:
    """Refuse an author's ``and``, ``or`` or ``if`` of claims, which would drop one of them."""
    if _is_user_code(sys._getframe(1).f_code.co_filename):  # noqa: SLF001 (as in record_user_request)
        raise TypeError(
            "a claim is neither true nor false before it is proved, so no `and`, `or`, `not` or "
            "`if`: return a dict of all claims, {'first': equal(..), 'second': equal(..)}"
        )
    return True


@contextmanager
def arrays_only(who: str, *roots: Any) -> Iterator[None]:
    """Refuse code that asks an array for anything but arrays, or changes reachable state.

    The state is what can be reached from the roots.  Raises ``TypeError`` when the block ends
    without another error.

    >>> from attnproof.symbolic import equal, real, theorem
    >>> @theorem("A number is itself", given={"x": real()})
    ... def same(x):
    ...     return equal(x if isinstance(x, float) else x, x)
    >>> same.statement  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    TypeError: ...: the code asks for the class of a symbolic array (isinstance), and goes on: ...
    """
    from .bodies import Links

    before = Links(*roots)
    asked = ["the class of an array (type)"] if before.types else []
    drawn = _generators()
    token = _REQUESTS.set(asked)
    try:
        yield
    finally:
        _REQUESTS.reset(token)
    if asked:
        raise TypeError(
            f"{who}: the code asks for {asked[0]}, and goes on: on numbers it may do something "
            "else than on symbols; write one line of array code for both"
        )
    if before.contents != Links(*roots).contents:
        raise TypeError(f"{who}: it keeps state between calls; compute everything anew")
    if drawn != _generators():
        raise TypeError(
            f"{who}: it draws random numbers, so each call may say something else; name the "
            "numbers in `given`, where they are any numbers"
        )


def _generators() -> bytes:
    """Return the states of the random generators of Python and NumPy that all code shares."""
    numpy: Any = sys.modules.get("numpy.random")
    return pickle.dumps((random.getstate(), numpy and numpy.get_state()))


def state_fingerprint(thing: Any, parts: tuple[Any, ...]) -> tuple[object, ...]:
    """Return a fingerprint of the state of a thing that its parts do not show; () for none."""
    if isinstance(thing, FunctionType):
        return tuple((name, id(value)) for name, value in vars(thing).items())
    if parts or isinstance(thing, str | int | float | complex | bytes | None | BuiltinFunctionType):
        return ()
    with catch_warnings(), suppress(Exception):
        simplefilter("ignore")
        return (pickle.dumps(thing),)
    return (object(),) if isinstance(thing, Iterator) else ()  # a generator: it may have moved on


def calls_type(thing: FunctionType) -> bool:
    """Whether a function, or one nested in it, calls ``type`` on something other than ``self``."""
    if "type" in thing.__globals__ or not _is_user_code(thing.__code__.co_filename):
        return False
    return _types_in(thing.__code__)


@cache
def _types_in(code: CodeType) -> bool:
    inner = any(_types_in(const) for const in code.co_consts if isinstance(const, CodeType))
    if inner or "type" not in code.co_names:
        return inner
    steps = [one for one in get_instructions(code) if one.opname not in ("PUSH_NULL", "CACHE")]
    return any(
        one.opname == "LOAD_GLOBAL"
        and one.argval == "type"
        and not (after.opname.startswith("LOAD_FAST") and after.argval in ("self", "cls"))
        for one, after in pairwise(steps)
    )


@cache
def _is_user_code(file: str) -> bool:
    from .bodies import is_library

    return not is_library(file)


# Refused names and protocols, each with what to write instead

PREFIX_MASK = "with i = xp.arange(n), xp.where(i[None, :] <= i[:, None], .., 0)"
NO_ORDER = (
    "the law for any given permutation or index map, such as permutation(n): sorting and searching "
    "are not terms"
)
NO_MAXIMUM = (
    "xp.maximum(a, b) for two arrays; the largest entry of an axis is not a term: state the law "
    "for any number in its place, or for a number m with at_least(m, x) assumed"
)
VARIANCE = "xp.mean((x - xp.mean(x, axis=a, keepdims=True)) ** 2, axis=a), and xp.sqrt of it"
NO_SOLVER = "the inverse B of A as a given, with (A @ B, xp.eye(n)) assumed"
COUNT_OF_TRUE = "xp.sum(xp.astype(mask, xp.float64), axis=..) compared with 0, or with the length"

REPLACEMENTS: dict[str, str] = {
    "dot": "a @ b",
    "mm": "a @ b",
    "bmm": "a @ b",
    "mv": "a @ b",
    "vdot": "xp.sum(a * b)",
    "inner": "xp.sum(a * b, axis=-1)",
    "vecdot": "xp.sum(a * b, axis=-1)",
    "outer": "a[:, None] * b[None, :]",
    "einsum": "a @ b, or xp.sum(a[.., None] * b, axis=..)",
    "tensordot": "a @ b, or xp.sum(a[.., None] * b, axis=..)",
    "kron": "xp.reshape(a[:, None, :, None] * b[None, :, None, :], (n * r, m * s))",
    "cumsum": f"xp.sum of {PREFIX_MASK}",
    "cumulative_sum": f"xp.sum of {PREFIX_MASK}",
    "cumprod": f"xp.exp of a sum of logarithms, {PREFIX_MASK}",
    "prod": "iterate(n, 1, lambda i, y: y * x[i])",
    "max": NO_MAXIMUM,
    "min": NO_MAXIMUM,
    "amax": NO_MAXIMUM,
    "amin": NO_MAXIMUM,
    "var": VARIANCE,
    "std": VARIANCE,
    "average": "xp.sum(w * x, axis=..) / xp.sum(w, axis=..)",
    "argmax": NO_ORDER,
    "argmin": NO_ORDER,
    "sort": NO_ORDER,
    "argsort": NO_ORDER,
    "topk": NO_ORDER,
    "searchsorted": NO_ORDER,
    "nonzero": NO_ORDER,
    "unique_values": NO_ORDER,
    "any": COUNT_OF_TRUE,
    "all": COUNT_OF_TRUE,
    "count_nonzero": COUNT_OF_TRUE,
    "flip": "rows(n, lambda i: x[n - 1 - i])",
    "roll": "xp.concat((x[n - k:], x[:n - k]))",
    "repeat": "xp.reshape of xp.broadcast_to(x[:, None], (n, k))",
    "tile": "xp.reshape of xp.broadcast_to(x[None], (k, n))",
    "take": "x[table]",
    "take_along_axis": "rows(n, lambda i: x[i][table[i]])",
    "gather": "x[table]",
    "pad": "xp.concat of x and xp.zeros",
    "diag": "xp.eye(n) * x[:, None]",
    "diagonal": "rows(n, lambda i: x[i, i])",
    "trace": "xp.sum(xp.eye(n) * x)",
    "transpose": "x.mT, or xp.permute_dims(x, axes)",
    "swapaxes": "x.mT, or xp.permute_dims(x, axes)",
    "unsqueeze": "x[..., None]",
    "concatenate": "xp.concat",
    "hstack": "xp.concat",
    "vstack": "xp.concat",
    "cat": "xp.concat",
    "split": "slices, x[:m] and x[m:]",
    "unstack": "x[0], x[1], ..",
    "linspace": "start + step * xp.arange(n)",
    "meshgrid": "x[:, None] and y[None, :]",
    "empty": "xp.zeros, or a given of any numbers: real(n)",
    "empty_like": "xp.zeros_like, or a given of any numbers: real(n)",
    "round": "xp.floor(x + 0.5), which rounds halves up",
    "rint": "xp.floor(x + 0.5), which rounds halves up",
    "trunc": "xp.sign(x) * xp.floor(xp.abs(x))",
    "log2": "xp.log(x) / xp.log(2)",
    "log10": "xp.log(x) / xp.log(10)",
    "exp2": "2.0 ** x",
    "sigmoid": "1 / (1 + xp.exp(-x))",
    "logaddexp": "xp.log(xp.exp(a) + xp.exp(b))",
    "softmax": "softmax(x) of attnproof",
    "hypot": "xp.sqrt(a ** 2 + b ** 2)",
    "reciprocal": "1 / x",
    "copysign": "xp.sign(y) * xp.abs(x)",
    "linalg": NO_SOLVER,
    "inv": NO_SOLVER,
    "solve": NO_SOLVER,
    "norm": "xp.sqrt(xp.sum(x ** 2, axis=..))",
    "vector_norm": "xp.sqrt(xp.sum(x ** 2, axis=..))",
    "nan": "the line for inputs at which it has a value: no term is NaN",
    "isnan": "nothing: a term is never NaN",
    "isfinite": "~(x == -xp.inf)",
    "isinf": "x == -xp.inf",
    "power": "x ** y",
    "absolute": "xp.abs(x)",
    "mod": "x % y",
    "true_divide": "x / y",
    "divide": "x / y",
    "multiply": "x * y",
    "mul": "x * y",
    "div": "x / y",
    "sub": "x - y",
    "negative": "-x",
    "neg": "-x",
    "invert": "~mask",
    "bitwise_and": "a & b",
    "bitwise_or": "a | b",
    "array": "xp.stack((a, b)), or rows(n, lambda i: ..)",
}


def hint(name: str) -> str:
    """Return what to write instead of a function of that name, as the end of a sentence."""
    from . import namespace

    if name in namespace.NAMES:
        return f"write xp.{name}(..) with xp = array_namespace(x) from array_api_compat"
    if name in REPLACEMENTS:
        return f"write {REPLACEMENTS[name]}"
    return f"symbolic arrays have {', '.join(namespace.NAMES)}"


LOOP = (
    "a symbolic array cannot be iterated over, since its length is a symbol.  "
    "Write xp.sum(x, axis=0) for sum(x), rows(n, lambda i: ..) for a list, iterate(n, start, step) "
    "for a loop, and x[0], x[1] for single rows"
)
NUMBER = (
    "a symbolic array is not a Python number: write xp.sqrt(x) for math.sqrt(x), xp.floor(x) for "
    "int(x) of x >= 0, and rows(n, ..) or iterate(n, ..) for range(n)"
)
REFUSED = {
    ("__iter__", "__reversed__"): LOOP,
    ("__len__", "__length_hint__"): (
        "the length of a symbolic array is a term: write x.shape[0] for len(x), x.ndim for "
        "len(x.shape)"
    ),
    ("__contains__",): (
        "whether a number is in a symbolic array is not a truth value: write xp.isin(x, table), or "
        "compare, x == a"
    ),
    ("__bool__",): (
        "a symbolic array has no truth value, so no if, and, or, not, min, max or chain a < b < c: "
        "write xp.where(condition, a, b), & | ~, xp.minimum, xp.maximum, (a < b) & (b < c)"
    ),
    (
        "__float__",
        "__int__",
        "__index__",
        "__complex__",
        "__round__",
        "__trunc__",
        "__floor__",
        "__ceil__",
    ): NUMBER,
    ("__setitem__", "__delitem__"): (
        "a symbolic array cannot be changed: write xp.where(xp.arange(n) == i, value, x) for "
        "x[i] = value, and xp.concat for a slice"
    ),
    ("__sizeof__",): "a symbolic array has no bytes: write x.size for the number of entries",
    ("__divmod__", "__rdivmod__"): "divmod of symbolic arrays: write x // y and x % y",
    ("__lshift__", "__rlshift__", "__rshift__", "__rrshift__"): (
        "shifts of symbolic arrays: write x * 2 ** k and x // 2 ** k"
    ),
    ("__array__", "__buffer__", "__dlpack__", "__dlpack_device__"): (
        "numpy and torch would treat a symbolic array as a single opaque object: "
        "write xp.stack((a, b)) for np.array([a, b]), and xp = array_namespace(x) from "
        "array_api_compat for np"
    ),
}

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "true_divide": operator.truediv,
    "power": operator.pow,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "equal": operator.eq,
    "not_equal": operator.ne,
}


class ArrayApiOnly:
    """A base class that refuses Python's protocols and the functions of other libraries."""

    __slots__ = ()

    @property
    def __class__(self) -> Any:
        """The class, which ``isinstance`` asks for."""
        record_user_request("the class of a symbolic array (isinstance)")
        return type(self)

    @__class__.setter
    def __class__(self, _: Any) -> NoReturn:
        raise TypeError("a symbolic array cannot be changed")

    @classmethod
    def __torch_function__(cls, func: Any, *_: Any) -> NoReturn:
        name = str(getattr(func, "__name__", "this function")).strip("_")
        raise TypeError(f"torch.{name} got a symbolic array; {hint(name)}")

    def __array_function__(self, func: Any, *_: Any) -> NoReturn:
        name = str(getattr(func, "__name__", "this function"))
        raise TypeError(f"numpy.{name} got a symbolic array; {hint(name)}")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Accept a NumPy scalar as the left operand of an operator; refuse all else of NumPy."""
        name = str(ufunc.__name__)
        scalar = len(inputs) == 2 and type(inputs[0]).__module__ == "numpy"
        if method == "__call__" and not options and scalar and name in OPERATORS:
            if inputs[0].shape == () and hasattr(inputs[0], "item"):
                return OPERATORS[name](inputs[0].item(), inputs[1])
            raise TypeError(
                f"numpy.{name} got a numpy array and a symbolic one; build the numpy array from "
                "numbers with xp.arange, xp.stack and rows, or declare it as a given"
            )
        raise TypeError(f"numpy.{name} got a symbolic array; {hint(name)}")


def _refuse(name: str, why: str) -> Callable[..., NoReturn]:
    def refused(*_: Any, **__: Any) -> NoReturn:
        record_request(f"{name} of a symbolic array")
        raise TypeError(why)

    refused.__name__ = refused.__qualname__ = name
    refused.__doc__ = f"Refused: {why}."
    return refused


for _names, _why in REFUSED.items():
    for _name in _names:
        setattr(ArrayApiOnly, _name, _refuse(_name, _why))
