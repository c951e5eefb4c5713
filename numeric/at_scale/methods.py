"""The ways to check a kernel at scale, chosen by size, each with what it costs.

Where a forward over all rows is possible, one forward serves sampled rows and rows alone, and one
on clustered keys has every row compared; else a few rows reach over all keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter, process_time

import torch
from torch import Tensor

from ..devices import called, synchronize
from ..implementations import DoesNotFit
from ..measurement import Judged
from .call import Arrays, Call, arrays, available, clustered, peak, timed
from .clusters import CLUSTERS, check_every_row
from .comparison import Found, Worst, judged
from .sampled import NoRoom, alone, keys_permuted, queries_permuted, reach, sampled

# The ways to check a kernel at scale, chosen by size, each with what it costs

Tell = Callable[[str, int, int], None]
Check = Callable[[Call, Arrays, Tensor], tuple[Worst, str, str]]

ON_ONE_FORWARD: dict[str, Check] = {
    "sampled": sampled, "alone": alone, "queries": queries_permuted, "keys": keys_permuted,
}  # fmt: skip
BITWISE = ("alone", "queries")
WAYS = {
    "sampled": "sampled rows of one forward against float64",
    "clustered": "every row of one forward against float64, on keys of few distinct values",
    "alone": "rows run alone, the same bits as among all rows",
    "queries": "permuted queries, the same rows bit for bit (a second forward)",
    "keys": "permuted keys and values on some rows, within two rounding bounds",
    "reach": "a few rows over all keys, against float64",
}
USUAL = ("sampled", "clustered", "alone")
PAIRS = 1 << 34
"""The most scores a whole forward may have: 45,000 tokens in 8 heads, half a minute of 2 cores."""
HELD_PAIRS = 1 << 28
"""The same for a kernel that holds them all."""
COPIES = 6  # of the inputs: drawn, permuted, the output and its copy in float64 in pieces


def whole_forward(call: Call) -> bool:
    """Whether all rows can be computed: time for the scores, memory for the arrays."""
    item = torch.empty((), dtype=call.dtype).element_size()
    free = available(call.device)
    room = free is None or COPIES * call.heads * call.tokens * call.width * item < free
    return room and call.pairs <= (HELD_PAIRS if call.kernel.quadratic else PAIRS)


def chosen_ways(call: Call) -> tuple[str, ...]:
    """What is done by default at this size."""
    return USUAL if whole_forward(call) else ("reach",)


def check_at_scale(
    call: Call, ways: Sequence[str] = (), tell: Tell | None = None
) -> Iterator[Found]:
    """Check a kernel in these ways, or in those its size allows; a record of each, as it is done.

    What the kernel refuses, and what memory has no room for, is skipped with that reason.  Raises
    ``ValueError`` for a way that is not there, naming all.
    """
    wanted = tuple(dict.fromkeys(ways)) or chosen_ways(call)
    for way in wanted:
        if way not in WAYS:
            raise ValueError(f"way {way!r} was asked for; there are {', '.join(WAYS)}")
    shared = _Shared(call)
    for k, way in enumerate(wanted):
        if tell is not None:
            tell(way, k, len(wanted))
        started = perf_counter()
        try:
            with torch.no_grad():
                yield _one(call, way, shared)
        except (DoesNotFit, NoRoom) as reason:
            skipped = Worst(0.0, 0.0, (), "skipped", str(reason))
            yield _found(call, way, skipped, "nothing", "", ())
        except RuntimeError as error:
            if not _memory(error):
                raise
            told = f"memory ran out after {perf_counter() - started:.1f} s: {error}"
            yield _found(call, way, Worst(0.0, 0.0, (), "skipped", told), "nothing", "", ())


def _memory(error: RuntimeError) -> bool:
    return isinstance(error, torch.OutOfMemoryError) or "allocate memory" in str(error)


@dataclass
class _Shared:
    """Arrays and one forward that several ways look at; its time counts for each of them."""

    call: Call
    made: list[tuple[Arrays, Tensor, float, int | None]] = field(default_factory=list)

    def forward(self) -> tuple[Arrays, Tensor, float, int | None]:
        """Inputs, output, seconds and peak memory of the one forward."""
        if not self.made:
            x = arrays(self.call)
            with peak(self.call.device) as memory:
                output, seconds = timed(lambda: self.call.run(*x), self.call.device)
            self.made.append((x, output, seconds, memory.beyond))
        return self.made[0]


def _one(call: Call, way: str, shared: _Shared) -> Found:
    if way == "reach":
        return _reached(call)
    if not whole_forward(call):
        raise NoRoom(
            f"wanted a forward over all rows, which at {call.heads} × {call.tokens:,} tokens takes "
            f"{call.pairs:.1e} scores; ask for fewer tokens, or for the way 'reach'"
        )
    if way == "clustered":
        return _clustered(call)
    x, output, forward, held = shared.forward()
    started = perf_counter()
    with peak(call.device) as memory:
        worst, looked, misses = ON_ONE_FORWARD[way](call, x, output)
        synchronize(call.device)
    seconds = forward + perf_counter() - started
    beyond = None if memory.beyond is None or held is None else max(
        held, memory.beyond + output.numel() * output.element_size()
    )  # fmt: skip
    policy = judged(worst, looked)
    if way in BITWISE:
        policy = replace(policy, policy="bitwise")
    found = _found(call, way, worst, looked, misses, (policy, *worst.further))
    return replace(
        found, seconds=seconds, kernel_seconds=forward, forwards=seconds / forward,
        bytes_of_inputs=x.bytes, bytes_beyond=beyond,
    )  # fmt: skip


def _clustered(call: Call) -> Found:
    x = clustered(call, min(CLUSTERS, call.tokens))
    with peak(call.device) as memory:
        started = perf_counter()
        output, forward = timed(lambda: call.run(*x.arrays), call.device)
        checked = check_every_row(call, x, output)
        seconds = perf_counter() - started
    worst, keys = checked.worst, checked.keys.judged()
    looked = f"every row against float64, keys of {x.centres.shape[1]} distinct values"
    policies = (judged(worst, looked), keys)
    if keys.status == "violated" and worst.status in ("held", "skipped"):
        worst = replace(worst, status="violated", reason=keys.told)
    found = _found(call, "clustered", worst, looked, "", policies)
    return replace(
        found, seconds=seconds, kernel_seconds=forward, forwards=seconds / forward,
        bytes_of_inputs=x.arrays.bytes, bytes_beyond=memory.beyond,
    )  # fmt: skip


def _reached(call: Call) -> Found:
    started = perf_counter()
    with peak(call.device) as memory:
        found = reach(call)
    beyond = None if memory.beyond is None else max(0, memory.beyond - found.bytes_of_inputs)
    one = _found(
        call, "reach", found.worst, found.looked, "of rows that were not computed it says nothing",
        (judged(found.worst, found.looked), *found.worst.further),
    )  # fmt: skip
    return replace(
        one, seconds=perf_counter() - started, kernel_seconds=found.kernel_seconds,
        bytes_of_inputs=found.bytes_of_inputs, bytes_beyond=beyond,
    )  # fmt: skip


def _found(
    call: Call, way: str, worst: Worst, looked: str, misses: str, policies: tuple[Judged, ...]
) -> Found:
    return Found(
        way, call.kernel.name, called(call.device), str(call.dtype).removeprefix("torch."),
        call.tokens, call.heads, call.width, call.causal, call.seed, looked, misses, worst.status,
        worst.error, worst.tolerance, worst.place, worst.reason, str(call.profile), policies,
    )  # fmt: skip


# What a check at scale costs, in forwards of the kernel it checks

COUNTED = ("clustered", *ON_ONE_FORWARD)


@dataclass(frozen=True)
class ScaleCost:
    """Seconds of one forward and of one check, the forward included, each the least of rounds.

    ``cpu_ratio`` is the ratio in processor time, which a busy machine disturbs less; it says
    nothing on a GPU.
    """

    way: str
    call: Call
    forward_seconds: float
    check_seconds: float
    ratio: float
    cpu_ratio: float

    def __str__(self) -> str:
        call = self.call
        dtype = str(call.dtype).removeprefix("torch.")
        return (
            f"{self.way}: {call.kernel.name} on {called(call.device)}, {call.heads} × "
            f"{call.tokens:,} tokens of {call.width}, {dtype}{', causal' * call.causal}: one "
            f"forward {self.forward_seconds:.3f} s, with the check {self.check_seconds:.3f} s = "
            f"{self.ratio:.3f} forwards (in processor time {self.cpu_ratio:.3f})"
        )


def cost_at_scale(call: Call, way: str, rounds: int = 5) -> ScaleCost:
    """One forward against one forward with its check, in turn in one process, the order changing.

    Raises ``ValueError`` for a way that has no whole forward to be measured by.
    """
    if way == "clustered":
        clusters = clustered(call, min(CLUSTERS, call.tokens))
        x = clusters.arrays

        def check() -> object:
            return check_every_row(call, clusters, call.run(*x))
    elif way in ON_ONE_FORWARD:
        x = arrays(call)

        def check() -> object:
            return ON_ONE_FORWARD[way](call, x, call.run(*x))
    else:
        raise ValueError(
            f"way {way!r} was asked for; those counted in forwards are {', '.join(COUNTED)}"
        )

    def forward() -> object:
        return call.run(*x)

    times: dict[Callable[[], object], list[tuple[float, float]]] = {forward: [], check: []}
    with torch.no_grad():
        check()
        for k in range(rounds):
            for work in (forward, check) if k % 2 == 0 else (check, forward):
                times[work].append(_timed(work, call.device))
    (wall, cpu), (check_wall, check_cpu) = (
        (min(w for w, _ in times[work]), min(c for _, c in times[work]))
        for work in (forward, check)
    )
    return ScaleCost(way, call, wall, check_wall, check_wall / wall, check_cpu / cpu)


def _timed(work: Callable[[], object], device: torch.device) -> tuple[float, float]:
    """Wall seconds and processor seconds."""
    synchronize(device)
    wall, cpu = perf_counter(), process_time()
    work()
    synchronize(device)
    return perf_counter() - wall, process_time() - cpu

