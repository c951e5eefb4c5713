"""A kernel call at scale: its sizes, code and inputs, the memory it takes, and how rows are run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from time import perf_counter
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor

from ..attention_bound import AttentionBound, mapped
from ..devices import synchronize
from ..implementations import UnknownImplementation
from ..implementations.scaled_dot_product import backends, whole_rows
from ..profile import Profile, profile_of
from ..scale import scale_named

# The checked call: the sizes, the kernel, and how its rows are run

T = TypeVar("T")
Attend = Callable[[Tensor, Tensor, Tensor, bool], Tensor]


@dataclass(frozen=True)
class Kernel:
    """Attention as code: (heads, r, d), (heads, n, d), (heads, n, d), causal -> (heads, r, d).

    ``quadratic``: it holds all scores at once.  ``blocks``: single rows and whole blocks of rows do
    not depend on the other rows of the call, so that they can be compared bit for bit.
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
            f"scaled_dot_product_attention ({name})",
            partial(whole_rows, backend),
            AttentionBound(scores_stored=stored, kernel=name),
            quadratic=quadratic,
            blocks=name == "flash" and device.type == "cpu",
        )
        for name, (backend, stored, quadratic) in backends(device).items()
    }


def kernel_named(name: str | Kernel, device: torch.device) -> Kernel:
    """Return the kernel with a short name, or the first fused one for "auto".

    Raises :class:`UnknownImplementation`, naming all, for an unknown name.
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
        return profile_of(self.dtype, self.device)

    def bound(self, queries: int) -> AttentionBound:
        """The bound of the kernel for calls with this number of queries."""
        return replace(self.kernel.bound, queries=queries)

    @property
    def pairs(self) -> int:
        """The number of scores of a whole forward."""
        return self.heads * self.tokens * self.tokens

    def run(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Compute all rows in one forward; inputs and output are on the device."""
        with torch.no_grad():
            return self.kernel.attend(query, key, value, self.causal)

    def rows(self, query: Tensor, key: Tensor, value: Tensor, places: Tensor) -> Tensor:
        """Compute the rows of queries (heads, r, width) at some places, alone.

        A causal row i is run by itself over the first i + 1 keys, as in decoding.
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
    """Return the result and the wall seconds, including the work of the device."""
    synchronize(device)
    started = perf_counter()
    result = work()
    synchronize(device)
    return result, perf_counter() - started


# Queries, keys and values of a call, from its seed, written in the dtype piece by piece

PIECE = 1 << 20  # entries drawn in float32 at once, before they are stored
STREAMS = 16  # most streams of random numbers of one head
SPREAD = scale_named("default").spread  # scores spread 3: a few keys stand out in every row


class Arrays(NamedTuple):
    """Queries, keys and values, (heads, tokens, width), in the dtype on the device."""

    query: Tensor
    key: Tensor
    value: Tensor

    @property
    def bytes(self) -> int:
        """The total number of bytes."""
        return sum(x.numel() * x.element_size() for x in self)


class Clusters(NamedTuple):
    """Arrays whose keys take few distinct values: ``key[h, j] = centres[h, label[j]]``."""

    arrays: Arrays
    centres: Tensor
    label: Tensor

    def head(self, h: int) -> Clusters:
        """The clusters of one head."""
        one = Arrays(*(part[h : h + 1] for part in self.arrays))
        return Clusters(one, self.centres[h : h + 1], self.label)


def generator(call: Call, stream: int, piece: int = 0) -> torch.Generator:
    """Random numbers of one piece of one stream of a seed, the same on every device."""
    return torch.Generator().manual_seed(call.seed * 1_000_003 + stream + (piece << 40))


def filled(
    call: Call,
    rows: int,
    stream: int,
    scale: float | Tensor = 1.0,
    heads: range | None = None,
    plus: Callable[[int, int, int], Tensor] | None = None,
) -> Tensor:
    """Draw (heads, rows, width) normal entries times a scale, in float32, stored in the dtype.

    The scale is one number, or one for each row.

    Every head has its own random numbers, so that it is the same alone as among all heads; so has
    every piece of a head, so that threads can divide the work.  ``plus(head, a, b)`` is added to
    rows a to b before they are stored.
    """
    heads = range(call.heads) if heads is None else heads
    found = torch.empty((len(heads), rows, call.width), dtype=call.dtype, device=call.device)
    step = max(1, PIECE // call.width)

    def fill(item: tuple[int, int]) -> None:
        k, a = item
        b = min(rows, a + step)
        source = generator(call, stream + STREAMS * (heads[k] + 1), a // step)
        piece = torch.randn((b - a, call.width), generator=source)
        piece.mul_(scale[a:b, None] if isinstance(scale, Tensor) else scale)
        found[k, a:b] = piece if plus is None else piece.add_(plus(heads[k], a, b))

    every = [(k, a) for k in range(len(heads)) for a in range(0, rows, step)]
    mapped(fill, every, call.device)
    return found


def arrays(call: Call, rows: int | None = None, heads: range | None = None) -> Arrays:
    """Draw independent normal tokens; ``rows`` queries, for some of the heads.

    Every second query has scores of spread 1 only, so that none of 10⁵ keys is negligible for it.
    """
    n = call.tokens
    rows = n if rows is None else rows
    spread = torch.full((rows,), SPREAD)
    spread[1::2] = 1 / SPREAD
    return Arrays(
        filled(call, rows, 1, spread, heads),
        filled(call, n, 2, SPREAD, heads),
        filled(call, n, 3, 1.0, heads),
    )


def clustered(call: Call, count: int) -> Clusters:
    """Draw keys of ``count`` distinct values, and values that vary around a mean for each cluster.

    The clusters are of uneven sizes, each of at least one key, in random order.
    """
    n, source = call.tokens, generator(call, 4)
    label = torch.randint(count, (n,), generator=source)
    label = torch.minimum(label, torch.randint(count, (n,), generator=source))
    label[torch.randperm(n, generator=source)[:count]] = torch.arange(count)[:n]
    means = torch.randn((call.heads, count, call.width), generator=generator(call, 6))
    centres = filled(call, count, 5, SPREAD)
    values = filled(call, n, 7, plus=lambda head, a, b: means[head, label[a:b]])
    queries = filled(call, n, 8, SPREAD)
    label = label.to(call.device)
    return Clusters(Arrays(queries, centres[:, label], values), centres, label)


# The peak memory of a piece of work, beyond what was held before

OWN = Path("/proc/self")
MACHINE = Path("/proc/meminfo")
FORGET_PEAK = "5"  # written to clear_refs on Linux to reset VmHWM


@dataclass
class Peak:
    """The peak in bytes after the work; None if the system does not report it."""

    beyond: int | None = None


@contextmanager
def peak(device: torch.device) -> Iterator[Peak]:
    """Measure a block: on CUDA by its allocator, on Linux by the resident set of the process."""
    found = Peak()
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        yield found
        found.beyond = torch.cuda.max_memory_allocated(device) - before
        return
    before_here = _kibibytes(OWN / "status", "VmRSS") if _forgotten() else None
    yield found
    after = _kibibytes(OWN / "status", "VmHWM")
    if before_here is not None and after is not None:
        found.beyond = max(0, after - before_here)


def available(device: torch.device) -> int | None:
    """The number of free bytes, or None if the system does not report it."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    return _kibibytes(MACHINE, "MemAvailable")


def _forgotten() -> bool:
    try:
        (OWN / "clear_refs").write_text(FORGET_PEAK, encoding="ascii")
    except OSError:
        return False
    return True


def _kibibytes(file: Path, name: str) -> int | None:
    try:
        lines = file.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    found = next((line.split()[1] for line in lines if line.startswith(f"{name}:")), None)
    return None if found is None else int(found) * 1024
