"""Calls of user code that leave inputs, modules and the settings of torch as they were."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parameter import UninitializedParameter

from ..code import Code
from ..subjects import Subject
from .response import unit_of
from .running import seeded, uncompiled

S = TypeVar("S", bound=Subject)


@contextlib.contextmanager
def evaluating(subject: Subject | Code) -> Iterator[None]:
    """Put the module behind the code into evaluation mode; restore each submodule afterwards."""
    module = subject.module
    before = [(part, part.training) for part in modules_of(subject)]
    try:
        if module is not None:
            module.eval()
        yield
    finally:
        for part, training in before:
            part.training = training


def seeded_call(call: Callable[..., Tensor], *given: Any, copied: bool = True) -> Tensor:
    """Return the result of a call in float64 on the CPU, with a fixed seed.

    Code that draws random numbers (dropout) draws the same ones each time, so that two calls do not
    differ by chance.  The random state is restored, and if ``copied``, the tensors passed in are
    not modified.
    """
    own = {id(x): x.clone() for x in given if isinstance(x, Tensor)} if copied else {}
    with torch.random.fork_rng(devices=[]):
        seeded(0)
        result = call(*(own.get(id(x), x) for x in given))  # the same tensor has the same copy
    if not isinstance(result, Tensor):
        raise TypeError(f"wanted a tensor back, got {type(result).__name__}")
    return result.detach().to("cpu", torch.float64, copy=True)


_EARLIER: ContextVar[bool] = ContextVar("earlier", default=False)


@contextlib.contextmanager
def earlier_calls() -> Iterator[None]:
    """Mark the calls of a block as made before the one that a law judges, not judged themselves."""
    token = _EARLIER.set(True)
    try:
        yield
    finally:
        _EARLIER.reset(token)


def is_judged() -> bool:
    """Whether a law judges the result of a call made now."""
    return not _EARLIER.get()


GENERATORS = (torch.Generator, np.random.Generator, np.random.RandomState, random.Random)


def random_states(held: Iterable[Any] = ()) -> list[Any]:
    """Return the states of the global random number generators of Python, numpy and torch.

    Whoever draws numbers changes one of them, or one of the generators ``held`` by the code.
    """
    # to ask cuda otherwise would start it
    known = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    cuda = torch.cuda.get_rng_state_all() if known else ()
    numpy = np.random.get_state()  # noqa: NPY002 (code may draw from it)
    return [random.getstate(), numpy, torch.get_rng_state(), *cuda, *map(_state_of, held)]


def _state_of(one: Any) -> Any:
    """Return the state of a generator; one that has none, as it asks the system, always changes."""
    if isinstance(one, random.SystemRandom):
        return (object(),)
    if isinstance(one, np.random.Generator):
        return (repr(one.bit_generator.state),)
    if isinstance(one, torch.Generator | np.random.RandomState):
        return one.get_state()
    return one.getstate()


def drawn_since(before: Sequence[Any], held: Iterable[Any] = ()) -> bool:
    """Whether random numbers were drawn since the generators had these states.

    >>> before = random_states()
    >>> drawn_since(before), random.random() < 1, drawn_since(before)
    (False, True, True)
    """
    now = random_states(held)
    return len(now) != len(before) or not all(map(_same_state, now, before))


def _same_state(one: Any, other: Any) -> bool:
    if isinstance(one, Tensor):
        return torch.equal(one, other)
    return all(map(np.array_equal, one, other))


def fresh(subject: S, **settings: Any) -> S | None:
    """Build the subject anew, with the same settings or others; None if that is not possible.

    It is in training or evaluation mode as the given one.  A ``TypeError`` counts as "not possible"
    if settings are given (no such setting); any other exception propagates.
    """
    if subject.make is None:
        return None
    try:
        # every fresh build draws the same weights
        with torch.random.fork_rng(devices=[]):
            seeded(0)
            made = subject.make(**settings)
    except TypeError:
        if settings:
            return None
        raise
    if not isinstance(made, type(subject)):
        return None
    if made.module is not None and subject.module is not None:
        made.module.train(subject.module.training)
    return made


def as_lists(x: Tensor) -> Any:
    """Return the numbers of a tensor, rounded to 7 digits, as nested lists for a witness."""
    if x.dim() == 0:
        value = x.item()
        return float(f"{value:.7g}") if isinstance(value, float) else value
    return [as_lists(part) for part in x]


def modules_of(subject: Any) -> list[nn.Module]:
    """The module behind the code and all its submodules; empty if there is none."""
    return list(subject.module.modules()) if subject.module is not None else []


def _parameters(module: nn.Module) -> dict[str, Any]:
    inside: dict[str, Any] = module.__dict__["_parameters"]
    return inside


def _buffers(module: nn.Module) -> dict[str, Any]:
    inside: dict[str, Any] = module.__dict__["_buffers"]
    return inside


@contextlib.contextmanager
def arranged(
    subject: Any, dtype: torch.dtype | None = None, train: bool = False
) -> Iterator[float]:
    """Put the module into evaluation (or training) mode and a dtype, and restore it afterwards.

    Yields the largest unit roundoff among buffers and frozen parameters, 0 if there are none: these
    may be tables that were rounded when they were made, and a finer dtype does not refine them.
    """
    modules = modules_of(subject)
    kept = [(m, dict(m.__dict__), dict(_parameters(m)), dict(_buffers(m))) for m in modules]
    numbers = [(t, t.data) for m in modules for t in _parameters(m).values() if t is not None]
    counted = [(t, t.clone()) for m in modules for t in _buffers(m).values() if t is not None]
    tables = [t for m in modules for t in _buffers(m).values() if t is not None]
    tables += [
        p for m in modules for p in _parameters(m).values() if p is not None and not p.requires_grad
    ]
    floor = max(
        (unit_of(t.dtype) for t in tables if t.is_floating_point() or t.is_complex()), default=0.0
    )
    try:
        for m in modules:
            m.training = train
            if dtype is not None:
                for parameter in _parameters(m).values():
                    if parameter is not None and parameter.is_floating_point():
                        parameter.data = parameter.data.to(dtype)
                for name, buffer in _buffers(m).items():
                    if buffer is not None and buffer.is_floating_point():
                        _buffers(m)[name] = buffer.to(dtype)
        yield floor
    finally:
        for parameter, data in numbers:
            parameter.data = data
        for buffer, values in counted:
            if not torch.equal(buffer, values):
                buffer.copy_(values)
        for m, attributes, parameters, buffers in kept:
            m.__dict__.clear()
            m.__dict__.update(attributes)
            _parameters(m).clear()
            _parameters(m).update(parameters)
            _buffers(m).clear()
            _buffers(m).update(buffers)


@contextlib.contextmanager
def untouched(module: nn.Module | None) -> Iterator[None]:
    """Restore a module after trial calls, so that it keeps no table cached in another dtype.

    A module with uninitialised lazy parameters is left as the first call makes it.
    """
    lazy = module is not None and any(
        isinstance(one, UninitializedParameter) for one in module.parameters()
    )
    if module is None or lazy:
        yield
    else:
        with arranged(SimpleNamespace(module=module), train=module.training):
            yield


Setting = tuple[Callable[[], Any], Callable[[Any], Any]]
Read = dict[str, Any]
PARTS = ("conv", "rnn", "matmul")


@contextlib.contextmanager
def restored_settings() -> Iterator[None]:
    """Restore the global settings of torch afterwards, however the block is left.

    Code that switches off an attention kernel, makes float64 the default, or seeds would otherwise
    affect the next law and the next test.  Restored are: the kernels that scaled dot product
    attention may use, the fast path of transformers, default dtype and device, gradients, autocast,
    the number of threads, deterministic algorithms, the precision of matrix products, and the state
    of the random number generators.  Within the block nothing is compiled.

    >>> with restored_settings():
    ...     torch.set_default_dtype(torch.float64)
    >>> torch.get_default_dtype()
    torch.float32
    """
    before = _read()
    try:
        with uncompiled():
            yield
    finally:
        _write(before)


def _settings() -> dict[str, Setting]:
    cuda, mha, cudnn = torch.backends.cuda, torch.backends.mha, torch.backends.cudnn
    found: dict[str, Setting] = {
        "flash attention": (cuda.flash_sdp_enabled, cuda.enable_flash_sdp),
        "math attention": (cuda.math_sdp_enabled, cuda.enable_math_sdp),
        "efficient attention": (cuda.mem_efficient_sdp_enabled, cuda.enable_mem_efficient_sdp),
        "cudnn attention": (cuda.cudnn_sdp_enabled, cuda.enable_cudnn_sdp),
        "fast path": (mha.get_fastpath_enabled, mha.set_fastpath_enabled),
        "default dtype": (torch.get_default_dtype, torch.set_default_dtype),
        "default device": (torch.get_default_device, _set_device),
        "gradients": (torch.is_grad_enabled, torch.set_grad_enabled),
        "threads": (torch.get_num_threads, torch.set_num_threads),
        "deterministic": (
            _deterministic,
            lambda how: torch.use_deterministic_algorithms(how[0], warn_only=how[1]),
        ),
        "deterministic cudnn": (
            lambda: cudnn.deterministic,
            lambda on: setattr(cudnn, "deterministic", on),
        ),
        "tried cudnn": (lambda: cudnn.benchmark, lambda on: setattr(cudnn, "benchmark", on)),
        "precision of products": (_precision, _set_precision),
        "anomalies": (torch.is_anomaly_enabled, torch.set_anomaly_enabled),
    }
    return found | {f"autocast on {kind}": _autocast(kind) for kind in ("cpu", "cuda")}


def _autocast(kind: str) -> Setting:
    def read() -> tuple[bool, torch.dtype]:
        return torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)

    def write(how: tuple[bool, torch.dtype]) -> None:
        torch.set_autocast_enabled(kind, how[0])
        torch.set_autocast_dtype(kind, how[1])

    return read, write


def _read() -> Read:
    """Return every setting and the states of the random number generators."""
    now: Read = {"random numbers": random_states()}
    return now | {name: read() for name, (read, _) in _settings().items()}


def _write(before: Read) -> None:
    python, numpy, first, *cuda = before["random numbers"]
    random.setstate(python)
    np.random.set_state(numpy)  # noqa: NPY002 (as above)
    torch.set_rng_state(first)
    if cuda:
        torch.cuda.set_rng_state_all(cuda)
    for name, (read, write) in _settings().items():
        if read() != before[name]:
            write(before[name])


def _precision() -> tuple[str, tuple[str, ...]]:
    """The float32 matmul precision in both APIs; the older may raise once the newer is used."""
    try:
        older = torch.get_float32_matmul_precision()
    except RuntimeError:
        older = ""
    return older, tuple(one.fp32_precision for one in _with_precision())


def _set_precision(how: tuple[str, tuple[str, ...]]) -> None:
    if how[0]:
        torch.set_float32_matmul_precision(how[0])
    for one, kept in zip(_with_precision(), how[1], strict=True):
        one.fp32_precision = kept


def _with_precision() -> list[Any]:
    """The backends with a precision setting of their own, the more general first."""
    cuda, cudnn, mkldnn = torch.backends.cuda, torch.backends.cudnn, torch.backends.mkldnn
    every = [torch.backends, mkldnn, cudnn, cuda.matmul]
    every += [getattr(one, part, None) for one in (cudnn, mkldnn) for part in PARTS]
    return [one for one in every if hasattr(one, "fp32_precision")]


def _deterministic() -> tuple[bool, bool]:
    only_warns = torch.is_deterministic_algorithms_warn_only_enabled()
    return torch.are_deterministic_algorithms_enabled(), only_warns


def _set_device(device: torch.device) -> None:
    """Set the default device; the CPU by setting none, since a set device slows every call."""
    torch.set_default_device(None if device.type == "cpu" else device)
