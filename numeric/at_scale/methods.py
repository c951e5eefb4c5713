"""The methods to check a kernel at scale, chosen by size, each with its cost.

If a forward over all rows is possible, one forward serves sampled rows and rows run alone, and
another on clustered keys has every row compared; otherwise a few rows are run over all keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter

import torch
from torch import Tensor

from ..devices import synchronize
from ..implementations import DoesNotFit
from ..results import WayRecord
from .call import Arrays, Call, arrays, available, clustered, peak, timed
from .clusters import CLUSTERS, check_every_row
from .comparison import Worst, judge, kernel_check
from .sampled_rows import NoMemory, alone, keys_permuted, queries_permuted, reach, sampled

# The methods by name

Check = Callable[[Call, Arrays, Tensor], tuple[Worst, str, str]]

ON_ONE_FORWARD: dict[str, Check] = {
    "sampled": sampled,
    "alone": alone,
    "queries": queries_permuted,
    "keys": keys_permuted,
}
BITWISE = ("alone", "queries")
METHODS = {
    "sampled": "sampled rows of one forward against float64",
    "clustered": "every row of one forward against float64, on keys of few distinct values",
    "alone": "rows run alone, bitwise equal to those of the whole forward",
    "queries": "permuted queries, rows bitwise equal (a second forward)",
    "keys": "permuted keys and values on some rows, within two rounding bounds",
    "reach": "a few rows over all keys, against float64",
}
DEFAULT_METHODS = ("sampled", "clustered", "alone")
FORWARD_SCORES = 1 << 34
"""The most scores of a whole forward pass: 45,000 tokens in 8 heads, half a minute on 2 cores."""
STORED_SCORES = 1 << 28
"""The same for a kernel that keeps all scores in memory."""
COPIES = 6  # of one input: inputs drawn and permuted, the output, and float64 pieces of it


def whole_forward(call: Call) -> bool:
    """Whether all rows can be computed: time for the scores, memory for the arrays."""
    item = torch.empty((), dtype=call.dtype).element_size()
    free = available(call.device)
    room = free is None or COPIES * call.heads * call.tokens * call.width * item < free
    return room and call.pairs <= (STORED_SCORES if call.kernel.quadratic else FORWARD_SCORES)


def default_methods(call: Call) -> tuple[str, ...]:
    """The default methods at this size."""
    return DEFAULT_METHODS if whole_forward(call) else ("reach",)


def check_at_scale(
    call: Call, methods: Sequence[str] = (), tell: Callable[[str], None] = lambda _: None
) -> Iterator[WayRecord]:
    """Check a kernel by these methods, or by those its size allows, yielding a record of each.

    What the kernel refuses, or memory cannot hold, is skipped with that reason.  Raises
    ``ValueError`` for an unknown method, naming all.
    """
    wanted = tuple(dict.fromkeys(methods)) or default_methods(call)
    for method in wanted:
        if method not in METHODS:
            raise ValueError(f"way {method!r} was asked for; there are {', '.join(METHODS)}")
    shared = _Shared(call)
    for method in wanted:
        tell(method)
        started = perf_counter()
        try:
            with torch.no_grad():
                yield _run_method(call, method, shared)
        except (DoesNotFit, NoMemory) as reason:
            skipped = Worst(0.0, 0.0, (), "skipped", str(reason))
            yield kernel_check(call, method, skipped, "nothing", "", ())
        except RuntimeError as error:
            if not _is_out_of_memory(error):
                raise
            told = f"memory ran out after {perf_counter() - started:.1f} s: {error}"
            yield kernel_check(
                call, method, Worst(0.0, 0.0, (), "skipped", told), "nothing", "", ()
            )


def _is_out_of_memory(error: RuntimeError) -> bool:
    return isinstance(error, torch.OutOfMemoryError) or "allocate memory" in str(error)


@dataclass
class _Shared:
    """Arrays and one forward that several methods share; its time counts for each of them."""

    call: Call
    results: list[tuple[Arrays, Tensor, float, int | None]] = field(default_factory=list)

    def forward(self) -> tuple[Arrays, Tensor, float, int | None]:
        """Inputs, output, seconds and peak memory of the one forward."""
        if not self.results:
            x = arrays(self.call)
            with peak(self.call.device) as memory:
                output, seconds = timed(lambda: self.call.run(*x), self.call.device)
            self.results.append((x, output, seconds, memory.beyond))
        return self.results[0]


def _run_method(call: Call, method: str, shared: _Shared) -> WayRecord:
    if method == "reach":
        return _check_reached_rows(call)
    if not whole_forward(call):
        raise NoMemory(
            f"wanted a forward over all rows, which at {call.heads} × {call.tokens:,} tokens takes "
            f"{call.pairs:.1e} scores; ask for fewer tokens, or for the way 'reach'"
        )
    if method == "clustered":
        return _check_clustered(call)
    x, output, forward, held = shared.forward()
    started = perf_counter()
    with peak(call.device) as memory:
        worst, looked, misses = ON_ONE_FORWARD[method](call, x, output)
        synchronize(call.device)
    seconds = forward + perf_counter() - started
    beyond = (
        None
        if memory.beyond is None or held is None
        else max(held, memory.beyond + output.numel() * output.element_size())
    )
    policy = judge(worst, looked)
    if method in BITWISE:
        policy = replace(policy, policy="bitwise")
    found = kernel_check(call, method, worst, looked, misses, (policy, *worst.further))
    return replace(
        found,
        seconds=seconds,
        kernel_seconds=forward,
        forwards=seconds / forward,
        bytes_of_inputs=x.bytes,
        bytes_beyond=beyond,
    )


def _check_clustered(call: Call) -> WayRecord:
    x = clustered(call, min(CLUSTERS, call.tokens))
    with peak(call.device) as memory:
        started = perf_counter()
        output, forward = timed(lambda: call.run(*x.arrays), call.device)
        checked = check_every_row(call, x, output)
        seconds = perf_counter() - started
    worst, keys = checked.worst, checked.keys.judged()
    looked = f"every row against float64, keys of {x.centres.shape[1]} distinct values"
    policies = (judge(worst, looked), keys)
    if keys.status == "violated" and worst.status in ("held", "skipped"):
        worst = replace(worst, status="violated", reason=keys.told)
    found = kernel_check(call, "clustered", worst, looked, "", policies)
    return replace(
        found,
        seconds=seconds,
        kernel_seconds=forward,
        forwards=seconds / forward,
        bytes_of_inputs=x.arrays.bytes,
        bytes_beyond=memory.beyond,
    )


def _check_reached_rows(call: Call) -> WayRecord:
    started = perf_counter()
    with peak(call.device) as memory:
        found = reach(call)
    beyond = None if memory.beyond is None else max(0, memory.beyond - found.bytes_of_inputs)
    one = kernel_check(
        call,
        "reach",
        found.worst,
        found.looked,
        "rows that were not computed are not checked",
        (judge(found.worst, found.looked), *found.worst.further),
    )
    return replace(
        one,
        seconds=perf_counter() - started,
        kernel_seconds=found.kernel_seconds,
        bytes_of_inputs=found.bytes_of_inputs,
        bytes_beyond=beyond,
    )
