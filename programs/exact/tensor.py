"""A tensor subclass that carries residues beside its numbers through unmodified code.

Every ATen operation on it is done twice: on the numbers, by torch, so that shapes, dtypes, views
and errors are those of the user's code; and on the payload, by a rule.  An operation without a rule
is refused, unless all its inputs are known numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, ParamSpec, Self, TypeVar

import torch
from torch import Tensor
from torch._decomp import decomposition_table

from ..execution.response import CONTAINERS, leaves
from .guards import POSITION, as_numbers, reconciled, record_choice, same_in_numbers, whole
from .residues import is_number
from .rules import MOVES, RULES, UNKNOWN, ruled
from .session import Field, Lost, NoMeaning, Number, Pair, Payload, Session, TooDeep

P = ParamSpec("P")
R = TypeVar("R")
CONSTANTS = frozenset(("zeros_like", "ones_like", "empty_like", "full_like", "fill", "zero"))
RANDOM = frozenset(
    ("bernoulli", "native_dropout", "rand_like", "randn_like", "multinomial", "normal", "uniform")
)
OUTSIDE = (Tensor.tolist, Tensor.numpy, Tensor.__array__, Tensor.data_ptr)
SHORT_DTYPES = (torch.float16, torch.bfloat16)
INDEXING = frozenset(
    ("index", "index_put", "gather", "index_select", "embedding", "masked_fill", "where")
)


class Duck(Tensor):
    """A tensor with its ``numbers``, as torch computes them, and its payload ``carried``.

    ``source``: ``POSITION`` if it derives from positions, else 0.
    """

    numbers: Tensor
    carried: Payload
    session: Session
    source: int

    @staticmethod
    def __new__(cls, numbers: Tensor, carried: Payload, session: Session, source: int = 0) -> Self:
        found: Self = torch.Tensor._make_wrapper_subclass(  # noqa: SLF001
            cls,
            numbers.shape,
            strides=numbers.stride(),
            dtype=numbers.dtype,
            storage_offset=numbers.storage_offset(),
            device=numbers.device,
            requires_grad=False,
        )
        return found

    def __init__(
        self, numbers: Tensor, carried: Payload, session: Session, source: int = 0
    ) -> None:
        self.numbers, self.carried, self.session, self.source = numbers, carried, session, source

    def __repr__(self, **kw: Any) -> str:  # type: ignore[override]
        return f"Duck({self.numbers!r}, {type(self.carried).__name__})"

    def __deepcopy__(self, memo: Any) -> Tensor:
        numbers = self.numbers.clone()
        if not self.session.open:
            return numbers
        return Duck(numbers, self.carried.moved(torch.clone), self.session, self.source)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in OUTSIDE:  # these read the memory of a tensor
            if args[0].session.open and not isinstance(args[0].carried, Number):
                told = "reading numbers out of a tensor has no meaning in a finite field"
                args[0].session.refused = NoMeaning(told)
                raise args[0].session.refused
            record_choice(args[0].session, "_local_scalar_dense", None, None, [args[0].source])
            return func(args[0].numbers, *args[1:], **(kwargs or {}))
        with torch._C.DisableTorchFunctionSubclass():  # noqa: SLF001
            return func(*args, **(kwargs or {}))

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        ducks = [x for x in leaves((args, kwargs)) if isinstance(x, Duck)]
        if not all(x.session.open for x in ducks):  # left over from an earlier run
            args, kwargs = map_nested(_current, args), map_nested(_current, kwargs)
            return func(*args, **kwargs)
        session = ducks[0].session
        name = func._schema.name.split("::")[1]  # noqa: SLF001
        try:
            if func._schema.is_mutable:  # noqa: SLF001
                return _in_place(func, name, session, args, kwargs, ducks)
            parts = _parts(func, name)
            if parts is not None:
                return parts(*args, **kwargs)
            numbers = func(*map_nested(numbers_of, args), **map_nested(numbers_of, kwargs))
            same_in_numbers(name, numbers_of(args[0]), getattr(args[0], "carried", None))
            carried = _carried(func, name, session, args, kwargs, ducks)
            sources = [x.source for x in ducks]
            told = "floor_divide" if kwargs.get("rounding_mode") else name
            record_choice(session, told, carried, numbers, sources)
            source = 0 if name in CONSTANTS else max(sources)
            return _wrapped(session, numbers, carried, name, source)
        except (NoMeaning, TooDeep) as error:
            session.refused = error
            raise


def not_intercepted(how: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function of this package so that its own torch calls are not intercepted."""

    @wraps(how)
    def quiet(*args: P.args, **kwargs: P.kwargs) -> R:
        with torch._C.DisableTorchFunction():  # noqa: SLF001
            return how(*args, **kwargs)

    return quiet


def map_nested(how: Callable[[Any], Any], x: Any) -> Any:
    """Apply a function to the value, or to each entry of nested lists, tuples and dictionaries."""
    if isinstance(x, (tuple, list)):
        return type(x)([map_nested(how, v) if isinstance(v, CONTAINERS) else how(v) for v in x])
    if isinstance(x, dict):
        return {k: map_nested(how, v) for k, v in x.items()}
    return how(x)


def numbers_of(x: Any) -> Any:
    """Return the plain numbers of a ``Duck``, and anything else unchanged."""
    return x.numbers if isinstance(x, Duck) else x


def _current(x: Any) -> Any:
    return x.numbers if isinstance(x, Duck) and not x.session.open else x


def payload_of(x: Any) -> Any:
    """Return the payload of a ``Duck``, and anything else unchanged.

    Raises ``NoMeaning`` if the payload is lost.
    """
    if not isinstance(x, Duck):
        return x
    if isinstance(x.carried, Lost):
        raise NoMeaning(x.carried.why)
    return x.carried


def _carried(
    func: Any,
    name: str,
    session: Session,
    args: Any,
    kwargs: Mapping[str, Any],
    ducks: Sequence[Duck],
) -> Any:
    """Return the payload of each result; None if the result is just known numbers."""
    constant = all(isinstance(x.carried, Number) for x in ducks)
    if name in INDEXING:
        args = (*args[:1], *(map_nested(_place, a) for a in args[1:]))
    elif name == "_to_copy":
        return _cast(args[0], kwargs)
    if name in MOVES:
        _in_place_of_bits(func, args)
        if not isinstance(args[0], Duck):
            return _settled(None, constant, name)
        return _moved(func, name, payload_of(args[0]), args[1:], kwargs)
    if name in UNKNOWN:
        if constant:
            return None
        rest = list(args[1:])
        if any(isinstance(x, Tensor) for x in (*rest, *kwargs.values())):
            raise NoMeaning(f"torch.{name} of two tensors has no meaning in a finite field")
        plain = {k: v for k, v in kwargs.items() if v is not None}
        told = f"{name}/{rest}/{plain}" if rest or plain else name
        return session.unknown_function(told, session.field(payload_of(args[0])))
    if name not in RULES:
        return _settled(None, constant, name)
    given = map_nested(payload_of, args), _known(map_nested(payload_of, kwargs))
    return _settled(ruled(name, session, *given), constant, name)


def _parts(func: Any, name: str) -> Callable[..., Any] | None:
    """Return torch's decomposition of an operation without a rule; None if there is none."""
    if name in RULES or name in MOVES or name in UNKNOWN or name in RANDOM:
        return None
    if name == "_to_copy" or name in INDEXING:
        return None
    if func._can_decompose():  # noqa: SLF001
        composed: Callable[..., Any] = func.decompose
        return composed
    return decomposition_table.get(func)


def _known(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    drop = ("dtype", "layout", "device", "pin_memory", "memory_format", "non_blocking")
    return {k: v for k, v in kwargs.items() if k not in drop}


def _settled(found: Any, constant: bool, name: str) -> Any:
    if found is NotImplemented:
        return NotImplemented
    if name in RANDOM:
        raise NoMeaning(f"it draws random numbers (torch.{name}): check it in evaluation mode")
    if found is None and not constant:
        read = name == "_local_scalar_dense"
        told = "reading a number out of a tensor" if read else f"torch.{name}"
        raise NoMeaning(f"{told} has no meaning in a finite field")
    return found


def _place(x: Any) -> Any:
    """Return known indices or booleans as plain numbers, and anything else unchanged."""
    if isinstance(x, Duck) and isinstance(x.carried, Number) and not x.dtype.is_floating_point:
        return x.numbers
    return x


def _cast(x: Duck, kwargs: Mapping[str, Any]) -> Payload | None:
    """Return the payload of a cast, which is exact; to integers, only for whole known numbers."""
    dtype = kwargs.get("dtype") or x.dtype
    if dtype.is_complex and not isinstance(x.carried, Pair):
        return x.session.pair(x.carried)
    if not (dtype.is_floating_point or dtype.is_complex):
        if not isinstance(x.carried, Number):
            raise NoMeaning(f"a cast to {dtype} has no meaning in a finite field")
        if dtype == torch.bool or not x.carried.whole:
            return None
    found: Payload = payload_of(x).moved(torch.clone)
    return found


def _moved(func: Any, name: str, payload: Payload, args: Any, kwargs: Any) -> Any:
    several: list[Any] = []

    def how(v: Tensor) -> Tensor:
        try:
            found = func(v, *args, **kwargs)
        except RuntimeError:
            if name not in ("view", "_unsafe_view", "_reshape_alias", "as_strided"):
                raise
            found = v.reshape(args[0])
        if isinstance(found, Tensor):
            return found
        several.append(found)
        return v

    found = payload.moved(how)
    if not several:
        return found
    order = iter(several)
    columns = [next(order) for _ in several]
    results = []
    for k in range(len(columns[0])):
        column = iter(columns)
        results.append(payload.moved(lambda _, column=column, k=k: next(column)[k]))  # type: ignore[misc]
    return results


def _in_place_of_bits(func: Any, args: Any) -> None:
    """Raise ``NoMeaning`` for moves that depend on the memory layout of the numbers."""
    if func._overloadname == "dtype":  # noqa: SLF001
        raise NoMeaning("reading the bits of a number as another has no meaning in a finite field")
    if "as_strided" in func._schema.name and isinstance(args[0], Duck):  # noqa: SLF001
        numbers = args[0].numbers
        if not numbers.is_contiguous() or numbers.storage_offset():
            raise NoMeaning("torch.as_strided of a part of a tensor")


def _wrapped(session: Session, numbers: Any, carried: Any, name: str, source: int = 0) -> Any:
    """Wrap results with their payloads; known numbers stay plain unless they must be followed.

    Followed are whole numbers, and real numbers computed from positions.
    """
    if isinstance(numbers, (tuple, list)):
        parts = carried if isinstance(carried, (tuple, list)) else [carried] * len(numbers)
        return type(numbers)(
            _wrapped(session, x, p, name, source) for x, p in zip(numbers, parts, strict=False)
        )
    if not isinstance(numbers, Tensor):
        return numbers
    if isinstance(carried, Tensor):
        return carried
    if numbers.dtype in SHORT_DTYPES:
        session.short = max(session.short, torch.finfo(numbers.dtype).eps / 2)
    if carried is NotImplemented:
        return Duck(numbers, session.constant(numbers), session)
    if carried is None:
        if numbers.dtype in (torch.int64, torch.int32):
            return Duck(numbers, whole(numbers), session, source)
        if source == POSITION and numbers.is_floating_point() and name not in INDEXING:
            return Duck(numbers, as_numbers(numbers), session, source)
        return numbers
    carried = reconciled(carried, numbers, name)
    if not _overlaps(numbers):  # code may write to each entry
        carried = carried.moved(lambda v: v.contiguous() if _overlaps(v) else v)
    return Duck(numbers, carried, session, source)


def _overlaps(x: Tensor) -> bool:
    """Whether several entries share memory, as after expand."""
    return any(n > 1 and stride == 0 for n, stride in zip(x.shape, x.stride(), strict=True))


def _in_place(
    func: Any, name: str, session: Session, args: Any, kwargs: Any, ducks: Sequence[Duck]
) -> Any:
    target = args[0]
    if "out" in kwargs:
        raise NoMeaning(f"torch.{name} with out= writes into a tensor made before")
    constant = all(isinstance(x.carried, Number) for x in ducks)
    if not isinstance(target, Duck):
        if not constant:
            raise NoMeaning(f"torch.{name} writes into a tensor that holds plain numbers")
        func(*map_nested(numbers_of, args), **map_nested(numbers_of, kwargs))
        kept_apart = [x.source for x in ducks if name not in ("index_put_", "masked_fill_")]
        record_choice(session, name, None, None, kept_apart)
        return target
    found = _carried(func, name.rstrip("_"), session, args, kwargs, ducks)
    func(*map_nested(numbers_of, args), **map_nested(numbers_of, kwargs))
    sources = [x.source for x in ducks]
    record_choice(session, name.rstrip("_"), found, None, sources)
    target.source = max(sources)
    if found is None or found is NotImplemented:
        found = as_numbers(target.numbers)
    found = reconciled(found, target.numbers, name)
    _write(target, found, session)
    return target


def _write(target: Duck, found: Payload, session: Session) -> None:
    old = target.carried
    if isinstance(old, Field) and is_number(found):
        found = session.field(found)
    if type(old) is type(found) and isinstance(old, (Field, Pair)):
        for before, after in zip(_fields_of(old), _fields_of(found), strict=True):
            for into, x in zip(before.levels, after.levels, strict=True):
                if into is not None:
                    into.copy_(torch.full_like(into, torch.nan) if x is None else x)
        session.written = True
        return
    if isinstance(old, Number) and isinstance(found, Number) and len(old.terms) == len(found.terms):
        for (n, f), (m, g) in zip(old.terms, found.terms, strict=True):
            n.copy_(m)
            f.copy_(g)
        return
    if target.numbers._base is not None:  # noqa: SLF001
        raise NoMeaning("a write into a part of a tensor that holds plain numbers")
    target.carried = found


def _fields_of(x: Any) -> tuple[Field, ...]:
    return (x.real, x.imag) if isinstance(x, Pair) else (x,)
