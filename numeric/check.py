"""Check a statement numerically by evaluating its term in several dtypes and implementations.

:func:`measure` is the entry point: it draws inputs, evaluates both sides of each conclusion, and
compares their difference with bounds on the rounding error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from time import perf_counter

import torch
from torch import Tensor

from attnproof.symbolic.claim import Claim
from attnproof.symbolic.statement import Statement

from .devices import chosen, dtype_named, dtypes_on, matrix_units, tf32
from .distribution_changes import attention_inputs
from .distributions import NORMAL, Distribution, distributions_named
from .hypotheses import Unsatisfiable, given_and_place
from .implementations import DoesNotFit, Implementation, implementations_named
from .results import MeasuredEvidence, as_float
from .row_selection import TooLarge
from .run import FEWEST, informative, one_thread, run, search
from .scale import Scale, scale_named, sizes_of
from .task import Task, definitions_of, drawn, drawn_again, parts_of

# Several input distributions of one measurement, merged into one result

OVERFLOWED = "a number overflowed, as it does in the definition itself"
UNDERFLOWED = "a positive number became 0, as it does in the definition itself"
RANK = {"non-finite": 3, "violated": 2, "held": 1, "skipped": 0}


def tasks_of(task: Task, distributions: Sequence[Distribution]) -> Iterator[Task]:
    """Yield the task in each distribution, at its sizes.

    A distribution is skipped if it changes nothing in this statement, or if no values drawn from it
    satisfy the hypotheses.
    """
    for distribution in distributions:
        if distribution == task.scale.distribution:
            yield task
            continue
        scale = replace(task.scale, distribution=distribution)
        other = Task(task.statement, scale, task.sizes, task.device, task.seed)
        try:
            changed = distribution == NORMAL or _changed(task, other)
        except Unsatisfiable:
            continue
        if changed:
            yield other


def _changed(task: Task, other: Task) -> bool:
    """Whether the other distribution changes a given that is not computed from others."""
    before, after = task.sample(0), other.sample(0)
    formed = [form.target for form in after.formed if form.target.op == "var"]
    told = set(after.values) - {given_and_place(target)[0] for target in formed}
    return any(not _same(before.values[name], after.values[name]) for name in told)


def _same(a: object, b: object) -> bool:
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return torch.equal(a, b)
    return isinstance(a, Tensor) == isinstance(b, Tensor)


def contradicted(m: MeasuredEvidence) -> bool:
    """Whether a measurement contradicts its claim."""
    return m.status in ("violated", "non-finite")


def beyond_range(found: MeasuredEvidence, claim: Claim) -> str | None:
    """Name the overflow or underflow that may explain the finding, if any."""
    if found.status == "non-finite":
        return OVERFLOWED
    sign = claim.relation == ">" and claim.right is None and found.status == "violated"
    return (
        UNDERFLOWED if sign and as_float(found.error) <= torch.finfo(torch.float64).tiny else None
    )


def ratio_of(m: MeasuredEvidence) -> float:
    """The largest ratio of any applied policy; without one, error over tolerance."""
    applied = [as_float(one.ratio) for one in m.policies if one.status != "skipped"]
    return max(applied, default=m.ratio)


def merged(found: Sequence[MeasuredEvidence], *, first_stands: bool) -> MeasuredEvidence:
    """Return the measurement with the worst status and, among those, the largest ratio.

    ``first_stands``: among equals of status the first wins, as the only one at the requested scale.
    Skipped measurements are named in ``reason`` and not among the ``distributions``.
    """
    told = [m for m in found if m.status != "skipped"]
    if not told:
        return found[0]
    speaker = max(told, key=lambda m: (RANK[m.status], first_stands and m is found[0], ratio_of(m)))
    silent: dict[str, list[str]] = {}
    for m in found:
        if m.status == "skipped":
            silent.setdefault(m.reason, []).append(m.distribution)
    reasons = [f"{', '.join(names)}: {why}" for why, names in silent.items()]
    return replace(
        speaker,
        distributions=tuple(m.distribution for m in told),
        seconds=sum(m.seconds for m in found),
        reason="; ".join(filter(None, (speaker.reason, *reasons))),
    )


def implementations_for(claim: Claim, every: Sequence[Implementation]) -> list[Implementation]:
    """The implementations that replace what a claim contains, or replace nothing."""
    served = definitions_of(claim.at_witness())
    return [one for one in every if not one.replaced or one.serves(served)]


# The measurements of one statement: its tasks in each distribution, and their results

REDRAWS = 16  # most draws of an inequality that should be refuted
SPREAD_DIVISOR = 4  # divides the spread of tokens after an overflow
REDRAWN_NARROWER = (
    f"a number overflowed; the tokens were drawn once more, spread 1/{SPREAD_DIVISOR} as wide"
)
NEAR_POSITIONS = 16  # bounds positions if calmer tokens overflow too, as exp of a position may
REDRAWN_NEARER = f"a number overflowed; positions were drawn once more, below {NEAR_POSITIONS}"
RARELY_EQUAL = "the sides differ in this draw; no draw can show that they are equal somewhere"
UNCHANGED = "these distributions change no input of this statement"
EAGER = Implementation("eager")

Conclusion = tuple[str, Statement, Sequence[Implementation]]
"""The words of a claim, its statement, and the implementations in which it is measured."""


@dataclass
class Measuring:
    """The tasks of a statement, one for each set of givens, and the measurements so far.

    ``at_full_scale``: every distribution runs at the full scale; otherwise only the normal one
    does, and the others run in float32 and below at small sizes.
    """

    scale: Scale
    device: torch.device
    seed: int
    expected: str
    deadline: float | None
    distributions: Sequence[Distribution] = (NORMAL,)
    at_full_scale: bool = False
    results: list[MeasuredEvidence] = field(default_factory=list)
    failed: list[tuple[str, Exception]] = field(default_factory=list)
    tasks: dict[int, Task] = field(default_factory=dict)
    unsatisfiable: Unsatisfiable | None = None
    redraws: dict[tuple[int, int, float, int], Task] = field(default_factory=dict)
    other_tasks: dict[int, list[Task]] = field(default_factory=dict)

    def claims(self, asked: Sequence[Conclusion], wanted: Sequence[torch.dtype]) -> None:
        """Measure claims dtype by dtype, so that all implementations share the exact values."""
        found: dict[tuple[int, int, int], MeasuredEvidence] = {}
        begun: list[tuple[int, Task]] = []
        for at, (says, part, _) in enumerate(asked):
            try:
                made = self._begun(says, part, wanted)
            except Exception as error:  # noqa: BLE001 (reported at the end, with its context)
                self.failed.append((says or "the claim", error))
                continue
            if isinstance(made, Task):
                begun.append((at, made))
            else:
                found[at, 0, 0] = made
        further = {dtype for dtype in wanted if dtype != torch.float64} or set(wanted)
        for (order, dtype), (at, task) in product(enumerate(wanted), begun):
            says, _, able = asked[at]
            task.forget_rows()
            for k, implementation in enumerate(able):
                try:
                    found[at, k, order] = self.in_distributions(
                        task, says, implementation, dtype, more=dtype in further
                    )
                except (DoesNotFit, TooLarge) as reason:
                    found[at, k, order] = task.skipped(
                        says, implementation.name, dtype, str(reason)
                    )
                except Exception as error:  # noqa: BLE001 (reported at the end)
                    whose = f"{says or 'the claim'}, {implementation.name}, {dtype}"
                    self.failed.append((whose, error))
        self.results += [found[place] for place in sorted(found)]

    def _begun(
        self, says: str, part: Statement, wanted: Sequence[torch.dtype]
    ) -> Task | MeasuredEvidence:
        """Return the task of a claim with values drawn, or its only measurement."""
        claim = part.claims[says]
        try:
            if claim.relation == "exists" and claim.witness is None:
                if claim.inner != "=":
                    raise DoesNotFit("an unknown is solved for in equations only; name a witness")
                return _search(part, says, claim, self.seed)
            return self.task(part)
        except (DoesNotFit, Unsatisfiable) as reason:
            bare = Task(part, self.scale, {}, self.device, self.seed)
            return bare.skipped(says, "no implementation", wanted[0], str(reason))

    def task(self, part: Statement) -> Task:
        """Return the task of a statement, with values drawn.

        All parts have the same hypotheses: if they cannot be satisfied once, they never can.
        """
        if self.unsatisfiable is not None:
            raise self.unsatisfiable
        if id(part) not in self.tasks:
            try:
                task = drawn(part, self.scale, self.device, self.seed)
            except Unsatisfiable as error:
                self.unsatisfiable = error
                raise
            self.tasks[id(part)] = informative(task, self.run, drawn_again)
        return self.tasks[id(part)]

    def in_other_distributions(self, task: Task) -> list[Task]:
        """The task in the other distributions: at small sizes and few steps, or at its own."""
        if id(task) not in self.other_tasks:
            self.other_tasks[id(task)] = []
            distributions = [
                distribution for distribution in self.distributions if distribution != NORMAL
            ]
            if distributions and attention_inputs(task.statement):
                try:
                    base = task if self.at_full_scale else self.small(task.statement)
                except Unsatisfiable:  # with so few steps
                    return []
                self.other_tasks[id(task)] = list(tasks_of(base, distributions))
        return self.other_tasks[id(task)]

    def small(self, part: Statement) -> Task:
        """The task of a statement at small sizes and few steps."""
        few = replace(scale_named("small"), steps=FEWEST)
        return drawn(part, few, self.device, self.seed)

    def run(
        self, task: Task, says: str, implementation: Implementation, dtype: torch.dtype
    ) -> MeasuredEvidence:
        """Run one measurement, at most once."""
        key = (says, implementation.name, dtype)
        if key not in task.runs:
            if self.deadline is not None and perf_counter() > self.deadline:
                raise DoesNotFit("not started: the time limit had passed")
            why = task.unrounded(dtype)
            if why is not None:
                raise DoesNotFit(why)
            read = task.statement.claims[says].at_witness()
            with one_thread(task):
                found = run(task, says, read, implementation, dtype)
            name = task.scale.distribution.name
            task.runs[key] = replace(found, distribution=name, distributions=(name,))
        return task.runs[key]

    def redrawn(self, task: Task, seed: int, spread: float, positions: int | None = None) -> Task:
        """The task with another seed, spread of tokens or largest position, drawn at most once."""
        below = task.scale.positions if positions is None else positions
        key = (id(task), seed, spread, below)
        if key not in self.redraws:
            scale = replace(task.scale, spread=spread, positions=below)
            self.redraws[key] = Task(task.statement, scale, task.sizes, task.device, seed)
        return self.redraws[key]

    def in_distributions(
        self,
        task: Task,
        says: str,
        implementation: Implementation,
        dtype: torch.dtype,
        *,
        more: bool,
    ) -> MeasuredEvidence:
        """Run one measurement in all its distributions.

        A statement expected to be refuted is tried until one distribution contradicts it; that it
        holds in others, which may be special, means nothing.
        """
        refuted = self.expected == "refuted"
        found: list[MeasuredEvidence] = []
        if NORMAL in self.distributions:
            found.append(self.normal(task, says, implementation, dtype))
        if more or refuted or self.at_full_scale:
            for other in self.in_other_distributions(task):
                if refuted and any(map(contradicted, found)):
                    break
                found.append(self.in_distribution(other, says, implementation, dtype))
        if not found:
            return task.skipped(says, implementation.name, dtype, UNCHANGED)
        if refuted and not any(map(contradicted, found)):
            return found[0]
        return merged(found, first_stands=NORMAL in self.distributions and not self.at_full_scale)

    def in_distribution(
        self, task: Task, says: str, implementation: Implementation, dtype: torch.dtype
    ) -> MeasuredEvidence:
        """Run one measurement in a distribution other than the normal one.

        It is skipped if a number leaves the range of the dtype in the definition itself as well,
        since that is not a fault of the code.
        """
        try:
            found = self.run(task, says, implementation, dtype)
            why = beyond_range(found, task.statement.claims[says])
            if why is not None:
                plain = self.run(task, says, EAGER, dtype)
                if beyond_range(plain, task.statement.claims[says]) == why:
                    found = replace(found, status="skipped", reason=why)
        except (DoesNotFit, TooLarge) as reason:
            found = task.skipped(says, implementation.name, dtype, str(reason))
        name = task.scale.distribution.name
        return replace(found, distribution=name, distributions=(name,))

    def normal(
        self, task: Task, says: str, implementation: Implementation, dtype: torch.dtype
    ) -> MeasuredEvidence:
        """Run one measurement in the normal distribution.

        For a statement expected to be refuted, return the first draw that contradicts it.  After an
        overflow, tokens are drawn again with a smaller spread, then also at small positions.
        """
        found = self.run(task, says, implementation, dtype)
        spread = task.scale.spread
        if found.status == "non-finite" and self.expected == "proved":
            for positions, told in ((None, REDRAWN_NARROWER), (NEAR_POSITIONS, REDRAWN_NEARER)):
                calmer = self.redrawn(task, task.seed, spread / SPREAD_DIVISOR, positions)
                calm = self.run(calmer, says, implementation, dtype)
                if calm.status != "non-finite":
                    return replace(calm, reason=" ".join(filter(None, (calm.reason, told))))
        relation = task.statement.claims[says].compared
        if self.expected != "refuted" or found.status != "held" or relation == "=":
            return found
        if relation == "!=":
            return replace(found, status="skipped", reason=RARELY_EQUAL)
        for k in range(1, REDRAWS):
            one = self.redrawn(task, task.seed + k, spread)
            found_again = self.run(one, says, implementation, dtype)
            if contradicted(found_again):
                return found_again
        reason = f"held in {REDRAWS} draws: no counterexample was drawn"
        return replace(found, status="skipped", reason=reason)


def _search(statement: Statement, says: str, claim: Claim, seed: int) -> MeasuredEvidence:
    """Measure a claim of existence without a witness, whose unknown is a matrix, at small sizes."""
    small = scale_named("small")
    sizes = sizes_of(statement, small)
    started = perf_counter()
    result = search(statement, claim, sizes, small, seed)
    reason = f"the best matrix leaves a relative residual of {result.residual:.2g}"
    return MeasuredEvidence(
        says=says,
        implementation="least squares",
        device="cpu",
        dtype="float64",
        sizes=sizes,
        seed=seed,
        sampled=f"{result.draws} draws of the values that the unknown must not depend on, "
        "small sizes",
        **replace(result.found, reason=reason).recorded,
        seconds=perf_counter() - started,
        rounding="float64: each operation rounded, and the solver's own error",
    )


# The entry point


class ReadingError(RuntimeError):
    """Evaluating a statement failed; ``measurements`` holds those that succeeded."""

    def __init__(self, text: str, measurements: list[MeasuredEvidence]) -> None:
        super().__init__(text)
        self.measurements = measurements


def measure(
    statement: Statement,
    *,
    scale: str = "default",
    device: str = "auto",
    dtypes: Sequence[str | torch.dtype] | None = None,
    seed: int = 0,
    implementations: Iterable[str | Implementation] | None = None,
    limit_seconds: float | None = None,
    expected: str = "proved",
    distributions: str | Sequence[str | Distribution] = "auto",
) -> list[MeasuredEvidence]:
    """Measure every conclusion of a statement, in every implementation and dtype.

    ``left = right`` holds if the computed sides differ by no more than the sum of their rounding
    bounds, and if each side is within its own bound of the exact value of its term.  ``>=``, ``>``
    and ``!=`` are handled as described in :mod:`~attnproof.numeric.measurement`.  A claim of
    existence is evaluated at its witness, or settled by least squares.  If no values are known that
    satisfy the hypotheses, every conclusion is skipped with that reason.

    ``expected`` is the expected verdict.  If it is "refuted", an inequality that holds in one draw
    is drawn again several times; that it holds means nothing.

    ``distributions``: with "auto" the normal input distribution runs at the given scale, and each
    other distribution that changes something runs at small sizes, in float32 and below.  A list of
    names runs just those, at the given scale.  All are merged into one measurement, which names the
    distribution it comes from: the one that contradicts the claim most, otherwise the normal one.

    On CUDA float32 is measured twice, with TF32 off and on, as the profile says.

    Raises ``ValueError`` (:class:`devices.DeviceAbsent` and its like) for an unavailable device,
    dtype, scale, distribution or implementation, :class:`~attnproof.symbolic.gate.Misread` for a
    statement whose code disagrees with its term, and :class:`ReadingError` at the end if an
    evaluation failed.

    >>> from attnproof.symbolic.givens import permutation, real, sizes
    >>> from attnproof.symbolic.claim import equal
    >>> from attnproof.symbolic.statement import Statement
    >>> n, d = sizes("n", "tokens") + sizes("d", "features")
    >>> givens = {"X": real(n, d), "s": permutation(n)}
    >>> X, s = (given.named(name) for name, given in givens.items())
    >>> claim = equal(X[s].mT @ X[s], X.mT @ X)
    >>> found = measure(Statement(givens, {"": claim}), scale="small", dtypes=["float32"])
    >>> found[0].status
    'held'
    """
    where = chosen(device)
    size = scale_named(scale)
    wanted = [dtype_named(d) for d in dtypes] if dtypes is not None else list(dtypes_on(where))
    every = implementations_named(implementations, where)
    deadline = None if limit_seconds is None else perf_counter() + limit_seconds
    chosen_distributions, at_full_scale = (
        distributions_named(distributions),
        distributions != "auto",
    )
    results: list[MeasuredEvidence] = []
    failed: list[tuple[str, Exception]] = []
    for units in matrix_units(where):
        kinds = [d for d in wanted if d == torch.float32] if units else wanted
        tasks = Measuring(
            size, where, seed, expected, deadline, chosen_distributions, at_full_scale
        )
        with tf32(units):
            asked = [
                (says, part, implementations_for(claim, every))
                for says, claim, part in (parts_of(statement) if kinds else ())
            ]
            tasks.claims(asked, kinds)
        results += tasks.results
        failed += tasks.failed
    if failed:
        where_first, cause = failed[0]
        text = f"{len(failed)} reading(s) failed; the first: {where_first}: {cause!r}"
        raise ReadingError(text, results) from cause
    return results
