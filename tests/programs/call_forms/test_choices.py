"""Nothing is told as broken that hangs on what was chosen here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.call_forms.choices import Choice, checked_under_choices, choices
from attnproof.programs.calls import fitting
from attnproof.programs.declarations import DeclaredAttention
from attnproof.programs.finding import Counterexample, Finding
from attnproof.programs.prove.calls import calls_of
from attnproof.programs.subject import adapted_as
from attnproof.programs.subjects import Subject
from attnproof.real_code.checking import look
from attnproof.real_code.collecting import Collected
from attnproof.real_code.records import LawOfCodeRecord
from attnproof.real_code.request import CodeRequest

SEEN = Counterexample({}, ("a", 1), ("b", 2), 1.0)
BROKEN = Finding("norm", "measured", "broken", "they differ", witness=SEEN)
HOLDS = Finding("norm", "measured", "holds", "")


def rotated(x: Tensor, positions: Tensor) -> Tensor:
    """Vectors (B, n, D), or (B, D, n), at positions."""
    angle = positions[..., None] * 0.5 ** torch.arange(x.shape[-1] // 2)
    u, v = x.chunk(2, -1)
    return torch.cat((u * angle.cos() - v * angle.sin(), u * angle.sin() + v * angle.cos()), -1)


class Wide(nn.Module):
    """Attention that is right at one width alone."""

    def __init__(self, dim: int, right: int = 16) -> None:
        super().__init__()
        self.right, self.out = dim == right, nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.out((x @ x.mT / 4).softmax(-1) @ x)
        return out if self.right else out + x[:1] * 1e-2


def test_a_law_that_another_line_keeps_is_undecided_with_both_lines() -> None:
    first, second = Subject(name="f", line="x: B n E -> x"), Subject(name="g")
    others = [Choice("told", lambda: second, line=True)]

    def find(one: Subject) -> tuple[Finding, ...]:
        return (HOLDS,) if one is second else (BROKEN,)

    (one,) = checked_under_choices(find(first), find, iter(others))
    assert (one.verdict, one.witness) == ("undecided", None)
    assert one.why.startswith("told: ")
    (one,) = checked_under_choices(find(first), lambda _: (BROKEN,), iter(others))
    assert one == BROKEN
    (one,) = checked_under_choices(find(first), find, iter([replace(others[0], line=False)]))
    assert (one.verdict, one.why) == ("broken", "told: they differ")


def test_the_lines_that_fit_are_choices_and_those_that_are_told_are_not() -> None:
    subject = replace(adapted_as(rotated), others=("x: B n D, positions: n -> x",))
    (told,) = (one.words for one in choices(subject, lambda line: adapted_as(rotated, line)))
    assert subject.line in told
    assert subject.others[0] in told
    assert not [*choices(subject)]


def test_a_width_that_nobody_told_is_named_where_another_keeps_the_law() -> None:
    subject = adapted_as(Wide, kind="attention", settings={"right": 32})
    assert dict(subject.sizes) == {"dim": 16}
    assert not adapted_as(Wide, kind="attention", settings={"dim": 16}).sizes
    heard = Collected(
        CodeRequest(target="<f>", methods=("measured",), laws=("rows-of-batch-apart",))
    )
    heard.receive({"event": "adapted", "name": "f", "kind": "attention", "adapted": "", "file": ""})
    look(subject, heard.asked, heard.receive, Wide)
    heard.receive({"event": "ended"})
    (law,) = heard.record(0.0).broken
    assert "dim=16; it holds with dim=32" in law.why


class Flagged(nn.Module):
    """Rotary code that is right with one value of a flag that it must be given."""

    def __init__(self, dim: int, spread: bool, right: bool = True) -> None:
        super().__init__()
        self.dim, self.right, self.spread = dim, right, spread

    def forward(self, x: Tensor, positions: Tensor, woven: bool) -> Tensor:
        out = rotated(x, positions)
        return out if woven is self.right and self.spread else out * (1 + positions[..., None] / 9)


def _norm(thing: type[nn.Module], **settings: bool) -> LawOfCodeRecord:
    asked = CodeRequest(target="<f>", methods=("measured",), laws=("norm",))
    heard = Collected(asked)
    heard.receive({"event": "adapted", "name": "f", "kind": "rotary", "adapted": "", "file": ""})
    subject = adapted_as(thing, kind="rotary", settings=settings)
    look(subject, asked, heard.receive, thing, settings=settings)
    heard.receive({"event": "ended"})
    return heard.record(0.0).law("norm")


def test_a_flag_that_no_name_explains_is_named_where_its_other_value_keeps_the_law() -> None:
    law = _norm(Flagged)
    assert law.verdict == "broken"
    assert "broken with woven = False; it holds with woven = True" in law.why
    assert _norm(Flagged, right=False).verdict == "measured"


def test_a_law_that_no_value_of_a_flag_keeps_names_none() -> None:
    law = _norm(Flagged, spread=False)
    assert law.verdict == "broken"
    assert "it holds with" not in law.why


def test_a_setting_that_no_name_explains_is_named_where_its_other_value_keeps_the_law() -> None:
    class Backwards(Flagged):
        def forward(self, x: Tensor, positions: Tensor) -> Tensor:  # type: ignore[override]
            out = rotated(x, positions)
            return out * (1 + positions[..., None] / 9) if self.spread else out

    subject = adapted_as(Backwards, kind="rotary")
    assert subject.guesses == {"spread": True}
    law = _norm(Backwards)
    assert law.verdict == "broken"
    assert "broken as built with --set spread=True; it holds with spread=False" in law.why
    assert "it holds with" not in _norm(Backwards, spread=True).why


def channels_first_attention(x: Tensor) -> Tensor:
    """Each column is a token, with a bias for each channel; rows can be read as tokens as well."""
    x = x + torch.arange(x.shape[1])[:, None] / 10
    return x @ (x.mT @ x / 4).softmax(-2)


def placed_attention(x: Tensor) -> Tensor:
    """The same with a place for each column: no reading has tokens in any order."""
    return channels_first_attention(x + torch.arange(x.shape[2]) / 10)


def unpacked_attention(x: Tensor) -> Tensor:
    """The order of axes is that of the source, and no guess."""
    b, n, d = x.shape
    return channels_first_attention(x) + 0 * b * n * d


def _permuted(code: Callable[[Tensor], Tensor], line: str = "") -> LawOfCodeRecord:
    laws = ("permutation",)
    asked = CodeRequest(target="<f>", methods=("measured",), laws=laws, call=line)
    heard = Collected(asked)
    heard.receive({"event": "adapted", "name": "f", "kind": "attention", "adapted": "", "file": ""})
    declared = DeclaredAttention(causal=False, positions="none")
    subject = adapted_as(code, line, kind="attention", declared=declared)
    look(subject, asked, heard.receive, code)
    heard.receive({"event": "ended"})
    return heard.record(0.0).law(*laws)


def test_another_line_that_fits_is_looked_for_where_a_law_is_broken() -> None:
    subject = adapted_as(channels_first_attention)
    assert subject.line == "x: B n E -> B n E"
    assert [*subject.others] == ["x: B E n -> B E n"]
    law = _permuted(channels_first_attention)
    assert law.verdict == "undecided"
    for line in (subject.line, subject.others[0]):
        assert f"--call '{line}'" in law.why
    assert _permuted(channels_first_attention, subject.line).verdict == "broken"
    assert _permuted(channels_first_attention, subject.others[0]).verdict == "measured"


def test_what_no_line_keeps_is_broken_and_so_is_what_the_source_unpacks() -> None:
    assert _permuted(placed_attention).verdict == "broken"
    assert not [*adapted_as(unpacked_attention).others]
    assert _permuted(unpacked_attention).verdict == "broken"


def test_lines_are_looked_for_once_and_not_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def rest() -> Iterator[str]:
        asked.append(1)
        yield "x: B E n -> x"
        while True:
            asked.append(1)

    monkeypatch.setattr(fitting, "SECONDS", 0.05)
    others = fitting.Alternatives((), rest)
    assert not asked
    assert [*others] == ["x: B E n -> x"] == [*others]
    assert [*fitting.Alternatives("abcd", rest)] == ["a", "b", "c"]


def test_as_many_queries_as_keys_are_no_other_reading() -> None:
    def mask(q_len: int, kv_len: int) -> Tensor:
        return torch.ones(q_len, kv_len).tril().bool()

    subject = adapted_as(mask)
    assert "q_len = r, kv_len = n" in subject.line
    assert not [*subject.others]


class OfNeighbours(nn.Module):
    """Attention that adds an average over neighbours, which no mask of padding reaches."""

    def __init__(self, embed: int = 16) -> None:
        super().__init__()
        self.out = nn.Linear(embed, embed)

    def forward(self, x: Tensor, mask: Tensor, adj: Tensor) -> Tensor:
        scores = (x @ x.mT / 4).masked_fill(~mask[:, None, :], -torch.inf)
        out: Tensor = self.out(scores.softmax(-1) @ x + adj @ x / x.shape[1])
        return out


def test_what_an_array_made_here_says_of_padding_is_no_fault_of_the_code() -> None:
    line = "x: B n E, mask: B n keep, adj: B n n constant -> B n E"
    subject = adapted_as(OfNeighbours, line, kind="attention", name="attention")
    heard = Collected(
        CodeRequest(target="<f>", methods=("exact", "measured"), laws=("hidden-keys-do-nothing",))
    )
    heard.receive({"event": "adapted", "name": "f", "kind": "attention", "adapted": "", "file": ""})
    look(subject, heard.asked, heard.receive, OfNeighbours)
    heard.receive({"event": "ended"})
    law = heard.record(0.0).law("hidden-keys-do-nothing")
    assert law.verdict == "undecided"
    assert "adj is made here" in law.why
    plain = replace(subject, given={})
    heard = Collected(heard.asked)
    heard.receive({"event": "adapted", "name": "f", "kind": "attention", "adapted": "", "file": ""})
    look(plain, heard.asked, heard.receive, OfNeighbours)
    heard.receive({"event": "ended"})
    assert heard.record(0.0).law("hidden-keys-do-nothing").verdict == "broken"


def of_cells(at: Tensor, *, cells: int = 40, width: int = 16) -> Tensor:
    """Sines and cosines of coordinates (n, 2), which are cut to [0, 1]; rows (n, width)."""
    cell = at.clamp(0, 1) * cells
    speeds = 100.0 ** -(torch.arange(width // 4) / (width // 4))
    angle = cell[..., None] * speeds
    return torch.stack((angle.sin(), angle.cos()), -1).flatten(1)


def of_one_cell(at: Tensor) -> Tensor:
    return of_cells(at, cells=0)


def _of_coordinates(code: Callable[..., Tensor]) -> LawOfCodeRecord:
    asked = CodeRequest(target="<f>", methods=("measured",), laws=("neighbours-differ",))
    heard = Collected(asked)
    heard.receive({"event": "adapted", "name": "f", "kind": "additive", "adapted": "", "file": ""})
    subject = adapted_as(code, "at: n 2 coordinates -> n E", kind="additive")
    look(subject, asked, heard.receive, code)
    heard.receive({"event": "ended"})
    return heard.record(0.0).law("neighbours-differ")


def test_coordinates_that_the_code_clamps_are_tried_between_0_and_1() -> None:
    law = _of_coordinates(of_cells)
    assert law.verdict == "undecided"
    assert "and holds with coordinates in [0, 1)" in law.why
    assert _of_coordinates(of_one_cell).verdict == "broken"


class OfQueries(nn.Module):
    """A bias that each query draws from a table of offsets, as if queries stood at the start."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(65, 8))

    def forward(self, r: int, n: int, query: Tensor) -> Tensor:
        at = (torch.arange(n) - torch.arange(r)[:, None]).clamp(-32, 32) + 32
        return (query[..., None, :] * self.table[at]).sum(-1)


def test_vectors_that_a_bias_is_given_are_not_0_and_stand_on_the_line_of_a_proof() -> None:
    laws = ("offset-only", "last-rows")
    asked = CodeRequest(target="<f>", methods=("traced", "measured"), laws=laws)
    heard = Collected(asked)
    heard.receive({"event": "adapted", "name": "f", "kind": "bias", "adapted": "", "file": ""})
    subject = adapted_as(OfQueries, "r = r, n = n, query: B 2 r 8 -> B 2 r n", kind="bias")
    look(subject, asked, heard.receive, OfQueries)
    heard.receive({"event": "ended"})
    record = heard.record(0.0)
    assert record.law("last-rows").verdict == "broken"
    told = [one.text for one in record.law("offset-only").assuming]
    assert "query is one vector for all tokens, chosen here" in told


def test_constants_and_a_context_that_layers_are_given_stand_on_the_line_of_a_proof() -> None:
    line = "x: B n E, mask: B n keep, adj: B n n constant -> B n E"
    subject = adapted_as(OfNeighbours, line, kind="attention", name="attention")
    (call, *_) = calls_of(subject)
    assert "adj is made here, the same for all tokens" in [one.text for one in call.where]


def test_what_additive_code_is_handed_stands_on_the_line_of_a_proof() -> None:
    def added(x: Tensor, size: Tensor, of: Tensor) -> Tensor:
        return x + of * torch.arange(x.shape[1])[:, None] + 0 * size.sum()

    line = "x: B n E, size: B n tokens, of: B n E constant -> B n E"
    (call, *_) = calls_of(adapted_as(added, line, kind="additive"))
    assert [one.text for one in call.where] == ["all of size are 0", "all of of are 1"]


def applied(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    u, v = x.chunk(2, -1)
    return x * cos + torch.cat((-v, u), -1) * sin


class Distances(nn.Module):
    """A bias of one length, built with a number that no name explains."""

    def __init__(self, steepness: int) -> None:
        super().__init__()
        self.steepness = steepness

    def forward(self, seq_len: int) -> Tensor:
        at = torch.arange(seq_len)
        return -self.steepness * (at[None] - at[:, None]).abs()[None] / 2


def test_what_was_chosen_of_a_call_stands_on_the_line_of_a_proof() -> None:
    law = "relative"
    asked = CodeRequest(target="<f>", methods=("traced",), laws=(law,))
    heard = Collected(asked)
    heard.receive({"event": "adapted", "name": "f", "kind": "rotary", "adapted": "", "file": ""})
    look(adapted_as(applied, kind="rotary"), asked, heard.receive, applied)
    heard.receive({"event": "ended"})
    record = heard.record(0.0).law(law)
    assert record.verdict == "proved"
    told = "it is called with a table of each channel, halves alike, base 10000, made here"
    assert told in [one.text for one in record.assuming]
    (call, *_) = calls_of(adapted_as(Distances, kind="bias"))
    assert [one.text for one in call.where] == [
        "it is built as with --set steepness=2",
        "it takes one length, so fewer queries are read from the last rows",
    ]
    (call, *_) = calls_of(adapted_as(Distances, kind="bias", settings={"steepness": 2}))
    assert [one.text for one in call.where] == [
        "it takes one length, so fewer queries are read from the last rows"
    ]


def test_a_mask_that_is_left_out_is_told_beside_what_else_was_chosen() -> None:
    def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        assert q.shape == k.shape
        scores = q @ k.mT / q.shape[-1] ** 0.5 + (0 if mask is None else mask)
        out: Tensor = scores.softmax(-1) @ v
        return out

    line = "q: B H n D, k: B H n D, v: B H n D, mask: B 1 n n add -> B H n D"
    plain, *masked = calls_of(adapted_as(attend, line))
    assert [call.name for call in masked] == ["attend_under", "attend_plus"]
    assert [one.text for one in plain.where] == [
        "it takes one length: fewer queries are put in the last places",
        "no mask is given",
    ]
