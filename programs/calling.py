"""Calls of code of others, after which inputs, module and the settings of torch are as before."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.parameter import UninitializedParameter

from .response import unit_of
from .running import seeded
from .subjects import Subject

S = TypeVar("S", bound=Subject)


@contextlib.contextmanager
def evaluating(subject: Subject) -> Iterator[None]:
    """The module behind the code in evaluation; afterwards each part is as it was."""
    module = subject.module
    before = [(part, part.training) for part in module.modules()] if module is not None else []
    try:
        if module is not None:
            module.eval()
        yield
    finally:
        for part, training in before:
            part.training = training


def calm(call: Callable[..., Tensor], *given: Any, copied: bool = True) -> Tensor:
    """The result in float64 on the CPU, with the random numbers of one seed.

    Code that draws random numbers (dropout) draws the same ones each time, so that what differs
    between two calls is not chance.  The caller's random state is as it was, and so are the tensors
    that are given, if they are ``copied``.
    """
    own = {id(x): x.clone() for x in given if isinstance(x, Tensor)} if copied else {}
    with torch.random.fork_rng(devices=[]):
        seeded(0)
        result = call(*(own.get(id(x), x) for x in given))  # one tensor stays one
    if not isinstance(result, Tensor):
        raise TypeError(f"wanted a tensor back, got {type(result).__name__}")
    return result.detach().to("cpu", torch.float64, copy=True)


def fresh(subject: S, **settings: Any) -> S | None:
    """A new one of the same settings, or with others; None where the code cannot be built so.

    It is in training or evaluation as the given one is.

    What cannot be built is told by a ``TypeError`` (no such setting); any other fault is raised.
    """
    if subject.make is None:
        return None
    try:
        # Weights are drawn as those of every other fresh one.
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


def plain(x: Tensor) -> Any:
    """The numbers of a tensor for a witness, with 7 digits: nested lists."""
    if x.dim() == 0:
        value = x.item()
        return float(f"{value:.7g}") if isinstance(value, float) else value
    return [plain(part) for part in x]


def modules_of(subject: Any) -> list[nn.Module]:
    """Every module behind the code."""
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
    """The module in evaluation (or training) and in a format; yields the unit of its tables.

    Numbers that nobody trains (buffers, frozen parameters) may be tables that were rounded when
    they were made: cast to a finer format they stay as coarse as they were.
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
    """What is tried on a module leaves nothing in it: no table, cached when it had another format.

    Parameters that the first call draws stay as they are drawn.
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
def given_back() -> Iterator[None]:
    """Afterwards torch is set as it was before, however the block is left.

    Code that rotates a kernel of attention off, makes float64 the default, or seeds, would change
    what the next law, and the next test, stand on.  What is meant: which kernels scaled dot
    product attention may use, the fast path of transformers, dtype and device by default,
    gradients, autocast, the number of threads, deterministic algorithms, the precision of
    matrix products, and the state of random numbers.

    >>> with given_back():
    ...     torch.set_default_dtype(torch.float64)
    >>> torch.get_default_dtype()
    torch.float32
    """
    before = _read()
    try:
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
    """Each setting that can be read, and the random numbers."""
    now: Read = {"random numbers": torch.get_rng_state()}
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]  # to ask it otherwise would start it
        now["random numbers of cuda"] = torch.cuda.get_rng_state_all()
    return now | {name: read() for name, (read, _) in _settings().items()}


def _write(before: Read) -> None:
    torch.set_rng_state(before["random numbers"])
    if "random numbers of cuda" in before:
        torch.cuda.set_rng_state_all(before["random numbers of cuda"])
    for name, (read, write) in _settings().items():
        if read() != before[name]:
            write(before[name])


def _precision() -> tuple[str, tuple[str, ...]]:
    """Of products in float32; it is set in two ways, and after the newer the older may raise."""
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
    """What has a precision of its own, the wider first."""
    cuda, cudnn, mkldnn = torch.backends.cuda, torch.backends.cudnn, torch.backends.mkldnn
    every = [torch.backends, mkldnn, cudnn, cuda.matmul]
    every += [getattr(one, part, None) for one in (cudnn, mkldnn) for part in PARTS]
    return [one for one in every if hasattr(one, "fp32_precision")]


def _deterministic() -> tuple[bool, bool]:
    only_warns = torch.is_deterministic_algorithms_warn_only_enabled()
    return torch.are_deterministic_algorithms_enabled(), only_warns


def _set_device(device: torch.device) -> None:
    """The CPU is the default where none was set; to set it would slow every call down."""
    torch.set_default_device(None if device.type == "cpu" else device)
