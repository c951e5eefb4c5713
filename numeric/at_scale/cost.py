"""What a check at scale costs, in forwards of the kernel it checks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter, process_time

import torch

from ..devices import called, synchronize
from .call import Call
from .clustered import CLUSTERS, check_every_row
from .inputs import arrays, clustered
from .methods import ON_ONE_FORWARD

__all__ = ["COUNTED", "ScaleCost", "cost_at_scale"]

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
