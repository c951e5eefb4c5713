"""``prove``: a statement in three lines of a notebook, on the way that every theorem goes.

The function is run on symbolic arrays and gives the statement; the gate runs it as it was written,
on numpy; a derivation is searched, the kernel replays it, and what it rests on is compared with
what is given.  A negative control may be told and need not be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, overload

from .document import Shown
from .symbolic.bodies import Links
from .symbolic.givens import Given
from .symbolic.refusals import demand
from .symbolic.statement import Assume, Body, Theorem

if TYPE_CHECKING:
    from rich.text import Text

    from .evidence import WitnessRecord
    from .records import ProofRecord
    from .symbolic.certificate import Certificate
    from .symbolic.decision import Decision, Step
    from .symbolic.expressions.deriving import Sides
    from .symbolic.statement import Statement

Control = Body | tuple[str, Body]
WANTED = "prove wants a function of what is given, such as prove(lambda X: .., X=real(n))"


class _Stated(Theorem):
    """A statement that stands in no file of theorems."""

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
    """Prove or refute what a function claims of arrays, for all sizes and values.

    The parameters of ``body`` are named as keywords, each with what it may be, or in ``given``:
    ``X=real(n, d)``, ``s=permutation(n)``.  It returns a conclusion (``equal``, ``chain``,
    ``at_least``, ...), or several by their words, in ordinary array code.  A parameter may be
    called as an option is: a given is never an option, and an option is never a given.

    ``assume`` is a function that returns the hypotheses.  ``control`` is a nearby statement that
    is false, alone or as ``("what is changed", body)``: both are decided, and the answer says if
    it was not refused.  ``limit`` is in seconds of the thread; ``numeric`` measures in torch too.
    A :class:`~attnproof.Theorem` is taken as well, with the control it has.

    Returns what was found, whatever that is: proved (with its conditions), refuted (with a
    counterexample), misread, or undecided.  Raises ``TypeError`` for a body that is no array code,
    that claims nothing, or that asks for what is not given;
    :class:`~attnproof.AxisMismatch` where shapes do not fit; and what the body raises on numpy.

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
    from .checking import LIMIT, Options, asked

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
    """What is asked, as a theorem; its control may be missing."""
    given, assume, control = (options.get(name) for name in ("given", "assume", "control"))
    if isinstance(body, Theorem):
        if named or given is not None or assume is not None or control is not None:
            raise TypeError("a theorem has its givens, hypotheses and control: prove(theorem)")
        return body
    demand(body, (FunctionType, MethodType), WANTED)
    demand(given, _is_table, "`given` names the parameters: given={'X': real(n)}")
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


def _is_table(given: object) -> bool:
    return given is None or isinstance(given, Mapping)


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
    """What ``prove`` found: the verdict with its conditions, and all that it rests on.

    It shows itself as ``attnproof show`` shows a theorem.  ``record`` is plain data, ``statement``
    what the function claimed, ``decision`` what the symbolic side came to (None where that failed
    with an error of attnproof itself, which the page tells).
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
        """Under what it is proved, as clauses: for .., if .., where ..; part of the verdict."""
        from .verdict_line import clauses

        return clauses(self.record.conditions)

    @property
    def counterexample(self) -> WitnessRecord | None:
        """The inputs for which a conclusion fails, certified; None where none was found."""
        return next((e.witness for e in self.record.evidence if e.kind == "refuted"), None)

    def steps(self) -> Steps:
        """Every step that the kernel replayed: where, which rule, what it made of what."""
        from .symbolic.steps import flatten

        claims = self.decision.claims if self.decision is not None else ()
        links = [link for claim in claims for link in claim.links]
        return Steps([s for link in links if link.derivation for s in flatten(link.derivation)])

    def latex(self) -> str:
        """The statement in LaTeX: what is given, what is assumed, what is claimed."""
        return self.record.statement.latex

    def sympy(self) -> tuple[Sides, ...]:
        """Both sides of each conclusion as arrays of SymPy expressions, at small sizes.

        The function is run again, on SymPy's symbols.  Raises ``RuntimeError`` where a name that it
        looks up stands for something else by now, and ``TypeError`` where it is misread.
        """
        from .symbolic.expressions.deriving import sides
        from .symbolic.gate import require_read

        require_read(self.statement)
        code = self.statement.code
        if code is None:
            return ()
        if Links(code.body, code.assume).held != self._links.held:
            raise RuntimeError(
                "what the function looks up has changed since it was proved; ask prove again"
            )
        return sides(self.statement, code)

    def certificate(self) -> Certificate:
        """The proof as plain data, which the kernel replays.  Raises ``TypeError`` without one."""
        from .symbolic.certificate import Certificate
        from .symbolic.decision import Decision

        return Certificate.of(self.statement, self.decision or Decision())

    def to_json(self) -> str:
        """The record as JSON; ``attnproof schema --proof`` prints its schema."""
        return self.record.model_dump_json(indent=1) + "\n"

    def page(self, width: int) -> Text:
        """The page of ``attnproof show``, 80 columns wide."""
        from rich.text import Text

        from .page import page

        del width
        return Text(page(self.record))

    def _repr_html_(self) -> str:
        from .report.theorems import proof_html

        return proof_html(self.record)


class Steps(Shown, Sequence["Step"]):
    """The kernel's steps in their order."""

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
        """What ``attnproof show --steps`` prints of them."""
        from rich.text import Text

        del width
        return Text("\n".join(self._lines()) or "no steps")

    def _lines(self) -> Iterator[str]:
        from .page import STEPS, step_lines
        from .translate import step_record

        for number, step in enumerate(self._steps[:STEPS], 1):
            lines = step_lines(number, step_record(step))
            yield from (line.removeprefix(" " * 10) for line in lines)
        if len(self) > STEPS:
            yield f"cut: {len(self) - STEPS} more steps"

    def to_json(self) -> str:
        """Each step with its rule, arguments, path, and the whole before and after, as text."""
        import json

        from .symbolic.certificate import plain_step

        return json.dumps([plain_step(one) for one in self._steps], ensure_ascii=False) + "\n"
