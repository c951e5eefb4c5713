"""What is asked of a kernel at scale: the sizes, the kernel, and how its rows are run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from time import perf_counter
from typing import TypeVar

import torch
from torch import Tensor

from ..attention_bound import AttentionBound
from ..devices import synchronize
from ..implementations import UnknownImplementation
from ..implementations.scaled_dot_product import backends, whole_rows
from ..profile import Profile, profile_of

__all__ = ["Call", "Kernel", "kernel_named", "kernels", "timed"]

T = TypeVar("T")
Attend = Callable[[Tensor, Tensor, Tensor, bool], Tensor]


@dataclass(frozen=True)
class Kernel:
    """Attention as code: (heads, r, d), (heads, n, d), (heads, n, d), causal -> (heads, r, d).

    ``quadratic``: it holds all scores at once.  ``blocks``: rows, and whole blocks of rows, are
    computed alike whatever stands beside them, so that they can be compared bit for bit.
    """

    name: str
    attend: Attend
    bound: AttentionBound = field(default_factory=AttentionBound)
    quadratic: bool = False
    blocks: bool = False


def kernels(device: torch.device) -> dict[str, Kernel]:
    """The backends of scaled_dot_product_attention on a device, by their short names."""
    return {
        name: Kernel(
            f"scaled_dot_product_attention ({name})", partial(whole_rows, backend),
            AttentionBound(scores_stored=stored, kernel=name), quadratic=quadratic,
            blocks=name == "flash" and device.type == "cpu",
        )
        for name, (backend, stored, quadratic) in backends(device).items()
    }  # fmt: skip


def kernel_named(name: str | Kernel, device: torch.device) -> Kernel:
    """The kernel of a short name; the first that is fused for "auto".

    Raises :class:`UnknownImplementation`, naming all, for a name that none has.
    """
    if isinstance(name, Kernel):
        return name
    every = kernels(device)
    if name == "auto":
        return next((k for k in every.values() if not k.quadratic), next(iter(every.values())))
    if name not in every:
        raise UnknownImplementation(
            f"kernel {name!r} was asked for; on {device} there are {', '.join(every)}"
        )
    return every[name]


@dataclass(frozen=True)
class Call:
    """Attention of ``heads`` heads over ``tokens`` tokens of ``width`` features."""

    kernel: Kernel
    tokens: int = 16_384
    heads: int = 8
    width: int = 64
    dtype: torch.dtype = torch.float32
    device: torch.device = torch.device("cpu")  # noqa: RUF009 (a constant)
    causal: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("tokens", "heads", "width"):
            if getattr(self, name) < 1:
                raise ValueError(f"wanted {name} of at least 1, got {getattr(self, name)}")

    @cached_property
    def profile(self) -> Profile:
        """The rounding model of the dtype on the device, looked up once."""
        return profile_of(self.dtype, self.device, str(self.dtype).removeprefix("torch."))

    def bound(self, queries: int) -> AttentionBound:
        """The bound of the kernel where each call has so many queries."""
        return replace(self.kernel.bound, queries=queries)

    @property
    def pairs(self) -> int:
        """How many scores a whole forward has."""
        return self.heads * self.tokens * self.tokens

    def run(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """All rows in one forward; what the kernel reads and writes is on the device."""
        with torch.no_grad():
            return self.kernel.attend(query, key, value, self.causal)

    def rows(self, query: Tensor, key: Tensor, value: Tensor, places: Tensor) -> Tensor:
        """The rows whose queries (heads, r, width) stand at some places, alone.

        A causal row i is run by itself over the first i + 1 keys, as decoding does.
        """
        with torch.no_grad():
            if not self.causal:
                return self.kernel.attend(query, key, value, False)
            alone = [
                self.kernel.attend(query[:, r : r + 1], key[:, : i + 1], value[:, : i + 1], False)
                for r, i in enumerate(places.tolist())
            ]
            return torch.cat(alone, dim=1)


def timed(work: Callable[[], T], device: torch.device) -> tuple[T, float]:
    """The result and the wall seconds, once the device is done."""
    synchronize(device)
    started = perf_counter()
    result = work()
    synchronize(device)
    return result, perf_counter() - started
