"""``prove``: a statement in three lines of a notebook, decided in the same way as any theorem.

The function is run on symbolic arrays, which gives the statement; the gate runs it as written on
numpy; a derivation is searched for, the kernel replays it, and what it rests on is compared with
what is given.  A negative control is optional.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FunctionType, MethodType, NoneType
from typing import TYPE_CHECKING, Any, overload

from ..documents.document import Shown
from ..symbolic.bodies import Links
from ..symbolic.givens import Given
from ..symbolic.refusals import demand
from ..symbolic.statement import Assume, Body, Theorem

if TYPE_CHECKING:
    from rich.text import Text

    from ..documents.evidence import WitnessRecord
    from ..symbolic.certificate import Certificate
    from ..symbolic.decision import Decision, Step
    from ..symbolic.expressions.deriving import Sides
    from ..symbolic.statement import Statement
    from ..theorem_runs.records import ProofRecord

Control = Body | tuple[str, Body]
WANTED = "prove wants a function of what is given, such as prove(lambda X: .., X=real(n))"


class _Stated(Theorem):
    """A statement that is not in a file of theorems."""

    @property
    def place(self) -> str:
        return "prove"


def prove(
    body: Body | Theorem,
    /,
    *,
    given: Mapping[str, Given] | Given | None = None,
    assume: Assume | Given | None = None,
    control: Control | Given | None = None,
    limit: float | Given | None = None,
    numeric: bool | Given = False,
    **givens: Given,
) -> Result:
    """Prove or refute what a function claims about arrays, for all sizes and values.

    The parameters of ``body`` are passed as keywords or in ``given``, each with what it may be:
    ``X=real(n, d)``, ``s=permutation(n)``.  It returns a conclusion (``equal``, ``chain``,
    ``at_least``, ...), or a dict of several by their words, in ordinary array code.  A parameter
    may have the name of an option: a given is never taken for an option, nor an option for a given.

    ``assume`` is a function that returns the hypotheses.  ``control`` is a nearby statement that is
    false, alone or as ``("what is changed", body)``: both are decided, and the result says if the
    control was not refused.  ``limit`` is in seconds of the thread; ``numeric`` also measures in
    torch.  A :class:`~attnproof.Theorem` is accepted as well, with its own control.

    Returns what was found, whatever it is: proved (with its conditions), refuted (with a
    counterexample), misread, or undecided.  Raises ``TypeError`` for a body that is not array code,
    claims nothing, or asks for what is not given; :class:`~attnproof.AxisMismatch` if shapes do not
    fit; and what the body raises on numpy.

    >>> from attnproof import attention, equal, permutation, real, sizes
    >>> r, n, d = sizes("r n d")
    >>> p = prove(
    ...     lambda Q, K, V, s: equal(attention(Q, K[s], V[s]), attention(Q, K, V)),
    ...     Q=real(r, d), K=real(n, d), V=real(n, d), s=permutation(n),
    ... )
    >>> p.verdict
    'proved'
    >>> print(prove(lambda x: equal((x + 1) ** 2, x**2 + 1), x=real()).counterexample.text)
    x = 1: left 4, right 2
    """
    from ..theorem_runs.checking import LIMIT, Options, asked

    options: dict[str, Any] = {"given": given, "assume": assume, "control": control}
    options |= {"limit": limit, "numeric": numeric}
    named = {name: value for name, value in options.items() if isinstance(value, Given)}
    told = {name: value for name, value in options.items() if name not in named}
    theorem = _theorem(body, {**named, **givens}, told)
    seconds = told.get("limit")
    seconds = LIMIT if seconds is None else seconds
    demand(seconds, _is_time, "`limit` is a number of seconds above 0")
    measured = Options(numeric=told.get("numeric", False) is True, scale="small")
    before = Links(theorem.body, theorem.assume)
    record, decision = asked(theorem, measured, seconds)
    return Result(record, theorem.statement, decision, before)


def _is_time(seconds: object) -> bool:
    return isinstance(seconds, int | float) and seconds > 0


def _theorem(
    body: Body | Theorem, named: Mapping[str, Given], options: Mapping[str, Any]
) -> Theorem:
    """Return the question as a theorem, which may have no control."""
    given, assume, control = (options.get(name) for name in ("given", "assume", "control"))
    if isinstance(body, Theorem):
        if named or given is not None or assume is not None or control is not None:
            raise TypeError("a theorem has its givens, hypotheses and control: prove(theorem)")
        return body
    demand(body, (FunctionType, MethodType), WANTED)
    demand(given, (NoneType, Mapping), "`given` names the parameters: given={'X': real(n)}")
    twice = sorted(set(given or ()) & set(named))
    if twice:
        raise TypeError(f"prove: {', '.join(twice)} is given twice; name it once")
    everything = {**(given or {}), **named}
    for name, kind in everything.items():
        demand(kind, Given, f"{name}=.. says what {name} may be, such as real(n)")
    if assume is not None:
        demand(assume, callable, "`assume` is a function that returns a list of hypotheses")
    says: Any
    other: Any
    says, other = control if isinstance(control, tuple) and len(control) == 2 else ("", control)
    if other is not None:
        demand(other, (FunctionType, MethodType), "`control` is a function as the first one is")
        demand(says, str, "`control` may say what is changed: control=('in words', body)")
    _require_asked(everything, (body, assume, other))
    called = body.__name__
    title = "" if called == "<lambda>" else called.replace("_", " ").strip().capitalize()
    return _Stated(title, everything, body, assume=assume, control_body=other, control_says=says)


def _require_asked(given: Mapping[str, Given], code: Sequence[Callable[..., Any] | None]) -> None:
    """Refuse a given that no function asks for: its name, or that of an option, is misspelt."""
    from inspect import signature

    wanted = {name for one in code if one is not None for name in signature(one).parameters}
    for name in given:
        if name not in wanted:
            raise TypeError(
                f"prove: nothing asks for {name}; the parameters are {', '.join(sorted(wanted))}"
            )


class Result(Shown):
    """What ``prove`` found: the verdict with its conditions, and everything that it rests on.

    It displays as ``attnproof show`` shows a theorem.  ``record`` is plain data, ``statement`` what
    the function claimed, ``decision`` the result of the symbolic side (None if that failed with an
    error of attnproof itself, which the page reports).
    """

    def __init__(
        self, record: ProofRecord, statement: Statement, decision: Decision | None, links: Links
    ) -> None:
        self.record, self.statement, self.decision, self._links = record, statement, decision, links

    @property
    def verdict(self) -> str:
        """proved, refuted, misread, undecided, or internal error; never rounded up."""
        return self.record.verdict

    @property
    def conditions(self) -> list[str]:
        """The conditions of the proof, as clauses: for .., if .., where ..; part of the verdict."""
        from ..documents.verdict_line import clauses

        return clauses(self.record.conditions)

    @property
    def counterexample(self) -> WitnessRecord | None:
        """The certified inputs for which a conclusion fails; None if none was found."""
        return next((e.witness for e in self.record.evidence if e.kind == "refuted"), None)

    def steps(self) -> Steps:
        """Return every step that the kernel replayed: where, which rule, and before and after."""
        from ..symbolic.steps import flatten

        claims = self.decision.claims if self.decision is not None else ()
        links = [link for claim in claims for link in claim.links]
        return Steps([s for link in links if link.derivation for s in flatten(link.derivation)])

    def latex(self) -> str:
        """Return the statement in LaTeX: what is given, what is assumed, what is claimed."""
        return self.record.statement.latex

    def sympy(self) -> tuple[Sides, ...]:
        """Return both sides of each conclusion as arrays of SymPy expressions, at small sizes.

        The function is run again, on SymPy's symbols.  Raises ``RuntimeError`` if a name that it
        looks up has changed since, and ``TypeError`` if it is misread.
        """
        from ..symbolic.expressions.deriving import sides
        from ..symbolic.gate import require_read

        require_read(self.statement)
        code = self.statement.code
        if code is None:
            return ()
        if Links(code.body, code.assume).contents != self._links.contents:
            raise RuntimeError(
                "what the function looks up has changed since it was proved; ask prove again"
            )
        return sides(self.statement, code)

    def certificate(self) -> Certificate:
        """Return the proof as data for the kernel to replay.  Raises ``TypeError`` without one."""
        from ..symbolic.certificate import Certificate
        from ..symbolic.decision import Decision

        return Certificate.of(self.statement, self.decision or Decision())

    def to_json(self) -> str:
        """Return the record as JSON; ``attnproof schema --proof`` prints its schema."""
        return self.record.model_dump_json(indent=1) + "\n"

    def page(self, width: int) -> Text:
        """Return the page of ``attnproof show``, 80 columns wide."""
        from rich.text import Text

        from ..theorem_runs.page import page

        del width
        return Text(page(self.record))

    def _repr_html_(self) -> str:
        from ..report.theorems import proof_html

        return proof_html(self.record)


class Steps(Shown, Sequence["Step"]):
    """The kernel's steps, in order."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = tuple(steps)

    @overload
    def __getitem__(self, place: int) -> Step: ...
    @overload
    def __getitem__(self, place: slice) -> Steps: ...
    def __getitem__(self, place: int | slice) -> Step | Steps:
        return Steps(self._steps[place]) if isinstance(place, slice) else self._steps[place]

    def __len__(self) -> int:
        return len(self._steps)

    def page(self, width: int) -> Text:
        """Return what ``attnproof show --steps`` prints of them."""
        from rich.text import Text

        del width
        return Text("\n".join(self._lines()) or "no steps")

    def _lines(self) -> Iterator[str]:
        from ..theorem_runs.page import STEPS, step_lines
        from ..theorem_runs.translation import step_record

        for number, step in enumerate(self._steps[:STEPS], 1):
            lines = step_lines(number, step_record(step))
            yield from (line.removeprefix(" " * 10) for line in lines)
        if len(self) > STEPS:
            yield f"cut: {len(self) - STEPS} more steps"

    def to_json(self) -> str:
        """Return each step as JSON: rule, arguments, path, and the whole before and after."""
        import json

        from ..symbolic.certificate import plain_step

        return json.dumps([plain_step(one) for one in self._steps], ensure_ascii=False) + "\n"
