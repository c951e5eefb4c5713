"""The measurements of one statement: its tasks in each design, and which of them spoke."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from time import perf_counter

import torch

from attnproof.symbolic.claim import Claim
from attnproof.symbolic.statement import Statement

from .attention_inputs import read_as
from .design_results import beyond_range, contradicted, merged, tasks_of
from .designs import NORMAL, Design
from .existence import search
from .hypotheses_hold import Unsatisfiable
from .implementations import DoesNotFit, Implementation
from .measurement import Measurement
from .parts import again, drawn
from .run import run
from .scale import Scale, scale_named, sizes_of
from .steps import FEWEST, informative, one_thread
from .task import Task
from .walk import TooLarge

__all__ = ["Measuring"]

REDRAWS = 16  # of an inequality that should be refuted, until one draw contradicts it
CALMER = 4  # by so much less do tokens spread where a number overflowed
OVERFLOW = f"a number overflowed; the tokens were drawn once more, spread 1/{CALMER} as wide"
NEAR = 16  # positions are below it where calmer tokens overflow too: exp of a position, say
OVERFLOWED_AFAR = f"a number overflowed; positions were drawn once more, below {NEAR}"
RARELY_EQUAL = "the sides differ in this draw; that they are equal somewhere, no draw can show"
UNCHANGED = "these designs change nothing in this statement"
EAGER = Implementation("eager")


@dataclass
class Measuring:
    """The tasks of a statement, one for each set of givens, and what was measured so far.

    ``everywhere``: every design is run at the scale; otherwise the normal one is, and the others,
    in float32 and below, at small sizes.
    """

    scale: Scale
    device: torch.device
    seed: int
    expected: str
    deadline: float | None
    designs: Sequence[Design] = (NORMAL,)
    everywhere: bool = False
    results: list[Measurement] = field(default_factory=list)
    failed: list[tuple[str, Exception]] = field(default_factory=list)
    made: dict[int, Task] = field(default_factory=dict)
    unsatisfiable: Unsatisfiable | None = None
    others: dict[tuple[int, int, float, int], Task] = field(default_factory=dict)
    tried: dict[int, list[Task]] = field(default_factory=dict)

    def claim(
        self, part: Statement, says: str, able: list[Implementation], wanted: list[torch.dtype]
    ) -> None:
        """Measure one claim."""
        claim = part.claims[says]
        try:
            if claim.relation == "exists" and claim.witness is None:
                if claim.inner != "=":
                    raise DoesNotFit("only equations are solved for an unknown; name a witness")
                self.results.append(_search(part, says, claim, self.seed))
                return
            task = self.task(part)
        except (DoesNotFit, Unsatisfiable) as reason:
            bare = Task(part, self.scale, {}, self.device, self.seed)
            eager = Implementation("no implementation")
            self.results.append(bare.skipped(says, eager, wanted[0], str(reason)))
            return
        further = _further(wanted)
        for implementation, dtype in product(able, wanted):
            try:
                self.results.append(
                    self.in_designs(task, says, implementation, dtype, more=dtype in further)
                )
            except (DoesNotFit, TooLarge) as reason:
                self.results.append(task.skipped(says, implementation, dtype, str(reason)))
            except Exception as error:  # noqa: BLE001 (told at the end)
                whose = f"{says or 'the claim'}, {implementation.name}, {dtype}"
                self.failed.append((whose, error))

    def task(self, part: Statement) -> Task:
        """The task of a statement, with values drawn.

        The hypotheses are those of all parts: if none satisfy them once, none do.
        """
        if self.unsatisfiable is not None:
            raise self.unsatisfiable
        if id(part) not in self.made:
            try:
                task = drawn(part, self.scale, self.device, self.seed)
            except Unsatisfiable as error:
                self.unsatisfiable = error
                raise
            self.made[id(part)] = informative(task, self.run, again)
        return self.made[id(part)]

    def others_of(self, task: Task) -> list[Task]:
        """The task in the other designs: at small sizes and few steps, or as it is."""
        if id(task) not in self.tried:
            self.tried[id(task)] = []
            designs = [design for design in self.designs if design != NORMAL]
            if designs and read_as(task.statement):
                try:
                    base = task if self.everywhere else self.small(task.statement)
                except Unsatisfiable:  # by so few steps
                    return []
                self.tried[id(task)] = list(tasks_of(base, designs))
        return self.tried[id(task)]

    def small(self, part: Statement) -> Task:
        """The task of a statement at small sizes and few steps."""
        few = replace(scale_named("small"), steps=FEWEST)
        return drawn(part, few, self.device, self.seed)

    def run(
        self, task: Task, says: str, implementation: Implementation, dtype: torch.dtype
    ) -> Measurement:
        """One measurement, made once."""
        key = (says, implementation.name, dtype)
        if key not in task.runs:
            if self.deadline is not None and perf_counter() > self.deadline:
                raise DoesNotFit("not begun: the limit of time had passed")
            why = task.unrounded(dtype)
            if why is not None:
                raise DoesNotFit(why)
            read = task.statement.claims[says].at_witness()
            with one_thread(task):
                found = run(task, says, read, implementation, dtype)
            name = task.scale.design.name
            task.runs[key] = replace(found, design=name, designs=(name,))
        return task.runs[key]

    def other(
        self, task: Task, seed: int, spread: float, positions: int | None = None
    ) -> Task:
        """The task with another seed, spread of tokens or largest position, drawn once."""
        below = task.scale.positions if positions is None else positions
        key = (id(task), seed, spread, below)
        if key not in self.others:
            scale = replace(task.scale, spread=spread, positions=below)
            self.others[key] = Task(task.statement, scale, task.sizes, task.device, seed)
        return self.others[key]

    def in_designs(
        self, task: Task, says: str, implementation: Implementation, dtype: torch.dtype, *,
        more: bool,
    ) -> Measurement:  # fmt: skip
        """One measurement in all its designs.

        What should be refuted is tried until one contradicts it; that it holds in others, which
        may be special, says nothing.
        """
        refuted = self.expected == "refuted"
        found: list[Measurement] = []
        if NORMAL in self.designs:
            found.append(self.normal(task, says, implementation, dtype))
        if more or refuted or self.everywhere:
            for other in self.others_of(task):
                if refuted and any(map(contradicted, found)):
                    break
                found.append(self.designed(other, says, implementation, dtype))
        if not found:
            return task.skipped(says, implementation, dtype, UNCHANGED)
        if refuted and not any(map(contradicted, found)):
            return found[0]
        return merged(found, first_stands=NORMAL in self.designs and not self.everywhere)

    def designed(
        self, task: Task, says: str, implementation: Implementation, dtype: torch.dtype
    ) -> Measurement:
        """One measurement in a design that is not the normal one.

        Where a number leaves the range of the dtype in the definition itself too, that says
        nothing of the code.
        """
        try:
            found = self.run(task, says, implementation, dtype)
            why = beyond_range(found, task.statement.claims[says])
            if why is not None:
                plain = self.run(task, says, EAGER, dtype)
                if beyond_range(plain, task.statement.claims[says]) == why:
                    found = replace(found, status="skipped", reason=why)
        except (DoesNotFit, TooLarge) as reason:
            found = task.skipped(says, implementation, dtype, str(reason))
        name = task.scale.design.name
        return replace(found, design=name, designs=(name,))

    def normal(
        self, task: Task, says: str, implementation: Implementation, dtype: torch.dtype
    ) -> Measurement:
        """One measurement in the normal design.

        Of what should be refuted it is the first draw that contradicts it.  Where a number
        overflows, the tokens are drawn once more and spread less, then at small positions too.
        """
        found = self.run(task, says, implementation, dtype)
        spread = task.scale.spread
        if found.status == "non-finite" and self.expected == "proved":
            for positions, told in ((None, OVERFLOW), (NEAR, OVERFLOWED_AFAR)):
                calmer = self.other(task, task.seed, spread / CALMER, positions)
                calm = self.run(calmer, says, implementation, dtype)
                if calm.status != "non-finite":
                    return replace(calm, reason=" ".join(filter(None, (calm.reason, told))))
        relation = task.statement.claims[says].compared
        if self.expected != "refuted" or found.status != "held" or relation == "=":
            return found
        if relation == "!=":
            return replace(found, status="skipped", reason=RARELY_EQUAL)
        for k in range(1, REDRAWS):
            one = self.other(task, task.seed + k, spread)
            found_again = self.run(one, says, implementation, dtype)
            if contradicted(found_again):
                return found_again
        reason = f"held in {REDRAWS} draws: where it fails, if it does, was not drawn"
        return replace(found, status="skipped", reason=reason)


def _further(wanted: Sequence[torch.dtype]) -> set[torch.dtype]:
    """The dtypes in which further designs are tried: those that models run in, float64 alone."""
    return {dtype for dtype in wanted if dtype != torch.float64} or set(wanted)


def _search(statement: Statement, says: str, claim: Claim, seed: int) -> Measurement:
    """A claim of existence without a witness, at small sizes: its unknown is a whole matrix."""
    small = scale_named("small")
    sizes = sizes_of(statement, small)
    started = perf_counter()
    result = search(statement, claim, sizes, small, seed)
    found = result.found
    return Measurement(
        says, "least squares", "cpu", "float64", sizes, seed,
        f"{result.draws} draws of what the unknown must not depend on, small sizes",
        found.error, found.tolerance, found.place, perf_counter() - started, found.status,
        f"the best matrix leaves a relative residual of {result.residual:.2g}",
        "float64: each operation rounded, and the solver's own error",
    )  # fmt: skip
