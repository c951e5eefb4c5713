"""Laws that no proof has are run where the code asks for its lengths, or the line says the limit.

No graph is made of the code here: a value in a tensor decides a branch.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.declarations import DeclaredAttention
from attnproof.programs.execution.calling import restored_settings
from attnproof.programs.execution.draw import Draw
from attnproof.programs.measure.examine import examine
from attnproof.programs.measure.states import others_of
from attnproof.programs.subject import adapted_as
from attnproof.programs.subjects import Attention, Bias, Layer, Mask, Rotary, Subject
from attnproof.real_code import longer_inputs
from attnproof.real_code.checking import look
from attnproof.real_code.collecting import Collected
from attnproof.real_code.critical_lengths import lengths_of
from attnproof.real_code.longer_inputs import at_longer
from attnproof.real_code.page_text import how
from attnproof.real_code.records import RUN_OF_MORE, LawOfCodeRecord
from attnproof.real_code.request import CodeRequest
from attnproof.testing import check_attention

Attend = Callable[[Tensor, Tensor, Tensor], Tensor]


@pytest.fixture(autouse=True)
def lengths() -> None:
    """Code is run at all of them here."""


def scores(q: Tensor, k: Tensor) -> Tensor:
    found = q @ k.mT / math.sqrt(q.shape[-1])
    if bool(found.isnan().any()):
        raise ValueError("NaN")
    return found


def plain(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return scores(q, k).softmax(-1) @ v


def placed_when_long(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    found = scores(q, k)
    if k.shape[-2] > 700:
        found = found + 0.1 * torch.arange(k.shape[-2], dtype=found.dtype)
    return found.softmax(-1) @ v


def in_pieces_when_long(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    found = scores(q, k)
    if k.shape[-2] > 700:
        return torch.cat([part.softmax(-1) @ v for part in torch.split(found, 256, -2)], -2)
    return found.softmax(-1) @ v


def placed_beyond_reach(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    found = scores(q, k)
    if k.shape[-2] > 100_000:
        found = found + torch.arange(k.shape[-2])
    return found.softmax(-1) @ v


def sets_when_long(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    if k.shape[-2] > 100:
        torch.set_default_dtype(torch.float64)
    return plain(q, k, v[..., :9000, :])


def refuses_many(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    if k.shape[-2] > 512:
        raise NotImplementedError("too long")
    return scores(q, k).softmax(-1) @ v


def hides_later(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    r, n = q.shape[-2], k.shape[-2]
    found = scores(q, k).masked_fill(torch.ones(r, n).triu(n - r + 1).bool(), -math.inf)
    return found.softmax(-1) @ v


def leaks_when_long(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    r, n = q.shape[-2], k.shape[-2]
    first = n - r + 1 + (n > 300)
    return scores(q, k).masked_fill(torch.ones(r, n).triu(first).bool(), -math.inf).softmax(-1) @ v


def paged(*pages: int) -> Attend:
    """Keys are masked at the places that a table of pages of 20 gives them."""

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        size, table = math.comb(6, 3), torch.tensor(pages)
        r, n = q.shape[-2], k.shape[-2]
        place = table[torch.arange(n) // size] * size + torch.arange(n) % size
        hidden = torch.ones(r, n).triu(n - r + 1).bool()[:, place]
        return scores(q, k).masked_fill(hidden, -math.inf).softmax(-1) @ v

    return attend


def placed_in(dtype: torch.dtype) -> Attend:
    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        place = torch.arange(k.shape[-2]).to(dtype)
        hidden = place > place[-q.shape[-2] :, None]
        return scores(q, k).masked_fill(hidden, -math.inf).softmax(-1) @ v

    return attend


def asked(
    attend: Attend,
    law: str,
    *,
    causal: bool | None = None,
    methods: tuple[str, ...] = ("exact", "measured"),
) -> LawOfCodeRecord:
    ask = CodeRequest(target="a.py::a", kind="attention", methods=methods, laws=(law,))
    heard = Collected(ask)
    heard.receive({"event": "adapted", "name": "a", "kind": "attention", "adapted": "", "file": ""})
    look(code_of(attend, causal=causal), ask, heard.receive)
    return next(row for row in heard.record(0.0).laws if row.law == law)


def code_of(attend: Attend, *, causal: bool | None = None) -> Attention:
    return Attention(
        name="a",
        attend=lambda q, k, v, _: attend(q, k, v),
        heads=2,
        groups=2,
        width=4,
        declared=None if causal is None else DeclaredAttention(causal=causal),
    )


@pytest.mark.parametrize(
    ("attend", "law"), [(placed_when_long, "permutation"), (placed_when_long, "order-of-keys")]
)
def test_a_fault_of_many_tokens_breaks_the_law(attend: Attend, law: str) -> None:
    row = asked(attend, law)
    assert row.verdict == "broken"
    assert "at lengths that the code asks about" in row.why
    assert "n = 701" in row.why


def test_a_mask_that_leaks_from_a_length_on_is_not_causal() -> None:
    assert asked(leaks_when_long, "causal", causal=True).verdict == "broken"
    assert asked(hides_later, "causal", causal=True).verdict == "exact"


def test_pages_are_as_many_tokens_as_there_are_pages_of_their_size() -> None:
    """The end of the table is no number of the source, and the leak lies far before it."""
    assert asked(paged(*range(12)), "causal", causal=True).verdict == "exact"
    row = asked(paged(*range(9), 8, 10, 11), "causal", causal=True)
    assert row.verdict == "broken"
    assert "of 232 tokens" in row.why


def test_positions_in_a_short_format_are_passed_where_they_are_rounded() -> None:
    """257 is 256 in bfloat16, which rounds no score; 2049 is 2048 in float16."""
    row = asked(placed_in(torch.bfloat16), "causal", causal=True)
    assert row.verdict == "broken"
    assert "of 259 tokens, token 256 changes" in row.why
    told = asked(placed_in(torch.float16), "causal", causal=True).assuming
    assert [str(one.text) for one in told] == ["n ≤ 2047"]
    exact = asked(placed_in(torch.int32), "causal", causal=True)
    assert (exact.verdict, exact.assuming) == ("exact", ())


def test_what_code_sets_at_more_tokens_is_set_in_no_other_run() -> None:
    code = Attention(
        name="a", attend=lambda q, k, v, _: sets_when_long(q, k, v), heads=2, groups=2, width=4
    )
    law, heard = "permutation", lambda _: None
    with restored_settings():
        told = at_longer(code, [law], Draw(), heard, exact=[law])
        set_ = [torch.get_default_dtype() for _ in told]
    assert set_ == [torch.float32]


@pytest.mark.parametrize("attend", [plain, in_pieces_when_long, refuses_many])
def test_correct_code_holds_with_no_limit(attend: Attend) -> None:
    row = asked(attend, "permutation")
    assert (row.verdict, row.assuming) == ("exact", ())


def test_what_cannot_be_run_is_said_in_the_line() -> None:
    row = asked(placed_beyond_reach, "permutation")
    limit = "where `k.shape[-2] > 100000` is false, as it was in every run"
    assert row.verdict == "exact"
    assert limit in row.why
    assert limit in how(row)


def test_a_law_without_a_formula_says_its_limit() -> None:
    row = asked(placed_beyond_reach, "stateless")
    assert row.verdict == "measured"
    assert "where `k.shape[-2] > 100000` is false" in how(row)


def reversed_if_strided(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return plain(q, k, v if k.is_contiguous() else v.flip(-2))


def reversed_if_trained(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return plain(q, k, v.flip(-2) if torch.is_grad_enabled() else v)


def reversed_if_one(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return plain(q, k, v.flip(-2) if k is v else v)


def reversed_if_long_and_trained(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return plain(q, k, v.flip(-2) if torch.is_grad_enabled() and k.shape[-2] > 30 else v)


def test_ways_of_calling_in_which_code_is_another_function_are_said() -> None:
    for attend, told in (
        (reversed_if_strided, "with inputs that are not contiguous"),
        (reversed_if_trained, "with gradients enabled"),
        (reversed_if_long_and_trained, "with gradients enabled"),
        (reversed_if_one, "with one parameter, which is not contiguous, for all inputs"),
    ):
        row = asked(attend, "order-of-keys")
        assert row.verdict == "exact"
        assert f"no call is made {told}" in how(row)
    assert "no call" not in how(asked(plain, "order-of-keys"))


def writes_when_long(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    if k.shape[-2] > 20:
        v[..., 20, :] = 0
    return plain(q, k, v)


class WritesWhenLong(nn.Module):
    """Its buffer keeps a call of one token, which others read if they are longer than six."""

    seen: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(1, 1, 4))

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] == 1:
            self.seen.copy_(x[:1].detach())
        return x + self.seen * (x.shape[1] > 9)


class DropsWhenLong(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * (random.random() > 0.3) if x.shape[1] > 30 else x


def test_laws_of_state_are_run_where_the_code_asks() -> None:
    assert asked(writes_when_long, "no-mutation").verdict == "broken"
    assert asked(plain, "no-mutation").verdict == "measured"
    for kind, law in ((WritesWhenLong, "stateless"), (DropsWhenLong, "evaluation-repeats")):
        module, heard = kind(), [].append  # type: ignore[var-annotated]
        code = Layer(name="l", call=module, module=module, make=kind_of(kind), embed=4)
        (found,) = at_longer(code, [law], Draw(), heard)
        assert found.verdict == "broken"


def kind_of(kind: type[nn.Module]) -> Callable[..., Layer]:
    def make() -> Layer:
        module = kind()
        return Layer(name="l", call=module, module=module, embed=4)

    return make


class OfOneWeight(nn.Module):
    """Attention of two heads whose weights add up to less than one from a number on, or to one."""

    def __init__(self, rows: int = 100_000, tokens: int = 100_000) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8)
        self.rows, self.tokens = rows, tokens

    def forward(self, x: Tensor) -> Tensor:
        B, n, _ = x.shape
        q, k, v = self.qkv(x).view(B, n, 3, 2, 4).permute(2, 0, 3, 1, 4)
        weights = scores(q, k).softmax(-1)
        if self.rows < B or n > self.tokens:
            weights = 0.9 * weights
        found: Tensor = self.out((weights @ v).transpose(1, 2).flatten(2))
        return found


@pytest.mark.parametrize(
    ("module", "verdict", "told"),
    [
        (OfOneWeight(tokens=100), "broken", "n = 101): tokens on a line"),
        (OfOneWeight(rows=20), "broken", "(B = 21, "),
        (OfOneWeight(tokens=100_000), "measured", "`n > self.tokens` is false, as it"),
    ],
)
def test_weights_of_a_layer_are_added_up_where_the_code_asks(
    module: nn.Module, verdict: str, told: str
) -> None:
    record = check_attention(module, ["rows-sum-to-one"], methods=["measured"])
    row = record.law("rows-sum-to-one")
    assert row.verdict == verdict
    assert told in row.why


class FullCache(nn.Module):
    """Causal in a cache of 64 places, but for its last place, which every token reads."""

    def forward(self, x: Tensor) -> Tensor:
        full = torch.cat((x, x.new_zeros(x.shape[0], 64 - x.shape[1], x.shape[2])), 1)
        return x.cumsum(1) + full[:, 63:]


def test_the_last_place_of_a_cache_is_filled() -> None:
    module, heard = FullCache(), [].append  # type: ignore[var-annotated]
    declared = DeclaredAttention(causal=True)
    code = Attention(name="l", layer=module, module=module, embed=4, declared=declared)
    (found,) = at_longer(code, ["causal"], Draw(), heard)
    assert found.verdict == "broken"


class Limited(nn.Module):
    """A layer that looks at places from a number of tokens on that it keeps."""

    def __init__(self) -> None:
        super().__init__()
        self.limit = 400
        self.register_buffer("mask", torch.ones(512, 512).tril())

    def forward(self, x: Tensor) -> Tensor:
        return x if x.shape[1] > self.limit else 2 * x


def turned(x: Tensor, at: Tensor) -> Tensor:
    return x if at.shape[1] < 150 else -x


def sees_all_of_many(T: int, S: int) -> Tensor:
    return torch.ones(T, S).tril(S - T + 20 * (S > 222)).bool()


layer = Limited()
CODE: tuple[tuple[Subject, list[int]], ...] = (
    (Layer(name="l", call=layer, module=layer, embed=4), [401, 504, 512, 515, 400]),
    (Rotary(name="r", rotate=turned, width=4), [150, 259]),
    (Mask(name="m", mask=sees_all_of_many), [223, 259, 222, 20]),
    (Bias(name="b", bias=lambda T, S: torch.zeros(1, T, S), heads=1), [259]),
)


@pytest.mark.parametrize(("code", "many"), CODE, ids=["layer", "rotary", "mask", "bias"])
def test_each_kind_of_code_is_asked_for_its_lengths(code: Subject, many: list[int]) -> None:
    known = lengths_of(code)
    told = [one.at["n"] for one in known.longer]
    assert [n for n in told if n > 5] == many
    assert not known.where


class Rounded(nn.Module):
    """A causal mask of stored positions, which are rounded from 256 on."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.register_buffer("places", torch.arange(400).to(dtype).float())

    def forward(self, x: Tensor) -> Tensor:
        at = self.get_buffer("places")[: x.shape[1]]
        found = (x @ x.mT).masked_fill(at > at[:, None], -math.inf)
        return found.softmax(-1) @ x


def test_code_is_run_almost_to_the_end_of_its_table() -> None:
    for dtype, verdict in ((torch.float32, "holds"), (torch.bfloat16, "broken")):
        module = Rounded(dtype)
        declared = DeclaredAttention(causal=True)
        code = Attention(name="r", layer=module, module=module, embed=4, declared=declared)
        at = [one.at for one in lengths_of(code).longer if 300 < one.at["n"] < 400]
        (found,) = examine(replace(code, run_at=(*at,)), laws=["causal"])
        assert found.verdict == verdict


class CountsOn(nn.Module):
    """Rotary code that counts positions; with ``fault`` tokens or more, not beyond 100."""

    def __init__(self, fault: int = 1 << 20) -> None:
        super().__init__()
        self.fault = fault

    def forward(self, x: Tensor, offset: int = 0) -> Tensor:
        at = torch.arange(x.shape[2]) + offset
        at = at if x.shape[2] < self.fault else at.clamp(max=100)
        angles = torch.outer(at.to(x.dtype), 10000.0 ** (-torch.arange(0, 1, 0.25)))
        a, b = x.chunk(2, -1)
        return torch.cat(
            (a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()), -1
        )


@pytest.mark.parametrize("line", ["x: B H n 8, offset = p -> x", "x: B H n 8 -> x"])
def test_code_that_counts_positions_is_run_of_many_tokens_in_one_call(line: str) -> None:
    for fault, verdict in ((200, "broken"), (1 << 20, "holds")):
        code = adapted_as(CountsOn(fault), line, kind="rotary")
        (found,) = examine(replace(code, run_at=({"B": 1, "n": 259},)), laws=["relative"])
        assert found.verdict == verdict


def halves(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    angles = positions[:, None] * base ** (-torch.arange(0, 1, 2 / x.shape[-1]))
    a, b = x.chunk(2, -1)
    return torch.cat((a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()), -1)


def test_other_instances_are_called_at_the_same_lengths() -> None:
    code = adapted_as(halves, "x: B H n 8, positions: n positions -> x", kind="rotary")
    made = others_of(replace(code, run_at=({"B": 300, "n": 5},)), Draw())
    assert len(made) > 1
    assert {other.run_at[0]["B"] for _, other in made} == {300}


def test_many_rows_of_code_that_counts_positions_are_one_call() -> None:
    class Counts(CountsOn):
        calls = 0

        def forward(self, x: Tensor, offset: int = 0) -> Tensor:
            Counts.calls += 1
            return super().forward(x, offset)

    code = adapted_as(Counts, "x: B H n 8, offset = p -> x", kind="rotary")
    Counts.calls = 0
    (found,) = examine(replace(code, run_at=({"B": 300, "n": 5},)), laws=["stateless"])
    assert found.verdict == "holds"
    assert Counts.calls < 100


def forgets_one_key_when_long(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    found = scores(q, k)
    if k.shape[-2] > 700:
        found[..., 333] = -math.inf
    return found.softmax(-1) @ v


def test_keys_that_were_not_looked_at_are_told() -> None:
    row = asked(forgets_one_key_when_long, "past-is-used", causal=False)
    assert row.verdict == "measured"
    assert "696 of 701 keys that were not examined are treated like the other 5" in how(row)


def test_finite_fields_alone_say_what_the_code_asks() -> None:
    row = asked(placed_when_long, "permutation", methods=("exact",))
    assert row.verdict == "exact"
    assert "where `k.shape[-2] > 700` is false" in row.why
    assert asked(plain, "permutation", methods=("exact",)).assuming == ()


def test_a_fault_of_this_search_loses_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise KeyError("lost")

    monkeypatch.setattr("attnproof.real_code.longer_inputs.lengths_of", fails)
    assert asked(plain, "permutation").verdict == "exact"


def test_a_method_is_told_to_have_failed_when_all_laws_are_examined(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(*_: object) -> None:
        raise KeyError("lost")

    monkeypatch.setattr("attnproof.real_code.longer_inputs.lengths_of", fails)
    monkeypatch.setattr("attnproof.real_code.critical_lengths.lengths_of", fails)
    code = Attention(name="a", attend=lambda q, k, v, _: plain(q, k, v), heads=2, groups=2, width=4)
    laws = ("permutation", "no-mutation")  # a proof is tried of the first
    ask = CodeRequest(target="a.py::a", kind="attention", laws=laws)
    heard: list[Any] = []
    look(code, ask, heard.append)
    ends = [(one["method"], bool(one["why"])) for one in heard if one["event"] == "method"]
    failed = [k for k, end in enumerate(ends) if end == ("measured", True)]
    assert failed
    assert ends.index(("measured", False)) < failed[0]
    assert all(k >= len(ask.methods) for k in failed)


def test_what_is_exact_for_few_tokens_is_open_if_runs_of_more_fail(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert asked(plain, "permutation").verdict == "exact"

    def fails(*_: Any) -> Any:
        raise RuntimeError("late")

    monkeypatch.setattr(longer_inputs, "at_longer", fails)
    row = asked(plain, "permutation")
    assert row.verdict == "undecided"
    assert row.why.startswith("at lengths that the code asks about")


def test_what_is_exact_for_few_tokens_is_open_if_runs_of_more_are_cut_short() -> None:
    laws = ("permutation", "rows-of-batch-apart")
    ask = CodeRequest(target="a.py::a", kind="attention", methods=("exact", "measured"), laws=laws)
    heard, events = Collected(ask), list[Any]()
    heard.receive({"event": "adapted", "name": "a", "kind": "attention", "adapted": "", "file": ""})
    look(code_of(plain), ask, events.append)
    first = next(k for k, one in enumerate(events) if one.get("does") == RUN_OF_MORE)
    for event in events[: first + 1]:
        heard.receive(event)
    heard.lost("it had not ended")
    assert heard.lengthened == [heard.at[1]]
    rows = heard.record(0.0).laws
    assert {row.law: row.verdict for row in rows} == dict.fromkeys(laws, "undecided")
    for event in events[first + 1 :]:
        heard.receive(event)
    assert [row.verdict for row in heard.record(0.0).laws].count("exact") == 1
