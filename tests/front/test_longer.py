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
from attnproof.real_code.checking import look
from attnproof.real_code.collecting import Collected
from attnproof.real_code.critical_lengths import lengths_of
from attnproof.real_code.longer_inputs import at_longer
from attnproof.real_code.records import LawOfCodeRecord
from attnproof.real_code.request import CodeRequest
from attnproof.real_code.words import how
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
    declared = None if causal is None else DeclaredAttention(causal=causal)
    code = Attention(
        name="a",
        attend=lambda q, k, v, _: attend(q, k, v),
        heads=2,
        groups=2,
        width=4,
        declared=declared,
    )
    ask = CodeRequest(target="a.py::a", kind="attention", methods=methods, laws=(law,))
    heard = Collected(ask)
    heard.receive({"event": "adapted", "name": "a", "kind": "attention", "adapted": "", "file": ""})
    look(code, ask, heard.receive)
    return next(row for row in heard.record(0.0).laws if row.law == law)


@pytest.mark.parametrize(
    ("attend", "law"),
    [(placed_when_long, "permutation"), (placed_when_long, "order-of-keys")],
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


def test_ways_of_calling_in_which_code_is_another_function_are_said() -> None:
    for attend, told in (
        (reversed_if_strided, "with inputs that are not contiguous"),
        (reversed_if_trained, "with inputs that require gradients"),
        (reversed_if_one, "with one parameter, which is not contiguous, for all inputs"),
    ):
        row = asked(attend, "order-of-keys")
        assert row.verdict == "exact"
        assert f"where no call is made {told}" in how(row)
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
    behind = [one.at["r"] if isinstance(code, Mask | Bias) else 0 for one in known.longer]
    told = [one.at["n"] + r for one, r in zip(known.longer, behind, strict=True)]
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


class Stored(nn.Module):
    """Causal attention as most people write it: the rows of a mask that it stores."""

    bias: Tensor

    def __init__(self, mask: Tensor) -> None:
        super().__init__()
        self.all, self.out, self.heads = nn.Linear(8, 24), nn.Linear(8, 8), 2
        self.register_buffer("bias", mask)

    def forward(self, x: Tensor) -> Tensor:
        B, T, C = x.shape
        q, k, v = (
            y.view(B, T, self.heads, C // self.heads).transpose(1, 2)
            for y in self.all(x).split(C, dim=2)
        )
        seen = self.bias[:, :, :T, :T] if self.bias.ndim == 4 else self.bias[:T, :T]
        found = (q @ k.mT / math.sqrt(k.shape[-1])).masked_fill(seen == 0, -math.inf)
        made: Tensor = self.out((found.softmax(-1) @ v).transpose(1, 2).reshape(B, T, C))
        return made


ROWS = 320  # more than all code is run with


def stored(*faults: tuple[slice, slice, float]) -> Tensor:
    mask = torch.ones(ROWS, ROWS).tril()
    for rows, columns, value in faults:
        mask[rows, columns] = value
    return mask


RIGHT = (stored().view(1, 1, ROWS, ROWS), stored(), stored().bool())


def past_is_used(module: nn.Module) -> LawOfCodeRecord:
    record = check_attention(
        module, ["past-is-used"], declared="attention:causal", methods=["measured"]
    )
    return record.law("past-is-used")


@pytest.mark.parametrize("mask", RIGHT, ids=["of rows and heads", "plain", "truth values"])
def test_a_large_stored_mask_is_proved_of_its_lengths(mask: Tensor) -> None:
    law = check_attention(Stored(mask), ["causal"]).law("causal")
    assert law.verdict == "proved"
    assert f"T + T′ ≤ {ROWS}" in [one.text for one in law.assuming]


def test_a_large_stored_mask_takes_few_long_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    many: list[int] = []

    def softmax(self: Tensor, dim: int) -> Tensor:
        many.append(self.shape[dim])
        return torch.softmax(self, dim)

    monkeypatch.setattr(Tensor, "softmax", softmax)
    assert past_is_used(Stored(RIGHT[0])).verdict == "measured"
    assert 0 < many.count(ROWS) < ROWS // 2  # two for each key would be twice as many


@pytest.mark.parametrize(
    "fault",
    [(slice(280, 281), slice(300, 301), 1.0), (slice(160, None), slice(None), 1.0)],
    ids=["one entry", "from a row on"],
)
def test_a_stored_mask_with_a_fault_is_not_proved(fault: tuple[slice, slice, float]) -> None:
    law = check_attention(Stored(stored(fault)), ["causal"], methods=["traced"]).law("causal")
    assert law.verdict not in ("proved", "exact", "measured")


def test_a_stored_mask_that_is_open_from_a_row_on_is_broken() -> None:
    open_, run = Stored(stored((slice(160, None), slice(None), 1.0))), ["exact", "measured"]
    record = check_attention(open_, ["causal"], declared="attention:causal", methods=run)
    assert record.law("causal").verdict == "broken"


def test_keys_that_a_stored_mask_hides_in_some_rows_are_missed() -> None:
    code = Stored(stored((slice(24, 64), slice(0, 16), 0.0)))
    assert past_is_used(code).verdict == "broken"


ONE_ENTRY = (
    (slice(170, 171), slice(172, 173), 1.0),  # a later token is seen, between two that are cut
    (slice(240, 241), slice(150, 151), 0.0),  # an earlier one is not
)
NOT_LOOKED_AT = f"the entries of the stored mask bias, {ROWS} by {ROWS}, that were not examined"


@pytest.mark.parametrize("fault", ONE_ENTRY)
def test_one_entry_of_a_stored_mask_that_was_not_looked_at_is_told(
    fault: tuple[slice, slice, float],
) -> None:
    laws, methods = ["causal", "past-is-used"], ["exact", "measured"]
    code = Stored(stored(fault))
    record = check_attention(code, laws, declared="attention:causal", methods=methods)
    for law in laws:
        row = record.law(law)
        assert row.verdict in ("exact", "measured")
        assert NOT_LOOKED_AT in row.why
        assert NOT_LOOKED_AT in how(row)
    assert (
        f"the {ROWS - 10} of {ROWS} keys that were not examined" in record.law("past-is-used").why
    )


def test_a_stored_mask_whose_rows_are_alike_needs_no_such_condition() -> None:
    laws, methods = ["causal", "past-is-used"], ["exact", "measured"]
    record = check_attention(Stored(RIGHT[1]), laws, declared="attention:causal", methods=methods)
    assert [record.law(law).verdict for law in laws] == ["exact", "measured"]
    assert not any("not examined" in record.law(law).why for law in laws)


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


# numbers that no comparison asks for: of the source, of what the code keeps, of its operations


@pytest.fixture
def own_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code is run beyond the numbers that are found in it, and not as far as all code is."""
    monkeypatch.setattr("attnproof.real_code.critical_lengths.ALWAYS", {"n": 8, "B": 2})


class Cached(nn.Module):
    """Causal attention of two heads that returns its keys and values, with a fault in these."""

    limit: Tensor
    table: Tensor

    def __init__(self, fault: Callable[[Cached, Tensor], Tensor]) -> None:
        super().__init__()
        self.qkv, self.fault, self.window = nn.Linear(16, 48), fault, 48
        self.register_buffer("limit", torch.tensor([45]))
        self.register_buffer("table", torch.zeros(56, 2))

    def forward(self, x: Tensor, past: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Any]:
        q, k, v = self.qkv(x).view(*x.shape[:2], 3, 2, -1).permute(2, 0, 3, 1, 4)
        if past is not None:
            before = self.fault(self, past[1])
            k, v = torch.cat((past[0][:, :, -before.shape[2] :], k), 2), torch.cat((before, v), 2)
        seen = torch.ones(q.shape[2], k.shape[2]).tril(k.shape[2] - q.shape[2]).bool()
        out = torch.nn.functional.scaled_dot_product_attention(q, k, v, seen)
        return out.transpose(1, 2).flatten(2), (k, v)


def unharmed(_: Cached, v: Tensor) -> Tensor:
    return v


def cut(_: Cached, v: Tensor) -> Tensor:
    return v[:, :, -32:]


def cut_by_power(_: Cached, v: Tensor) -> Tensor:
    return v.narrow(2, max(0, v.shape[2] - 2**6), min(2**6, v.shape[2]))


def cut_as_kept(code: Cached, v: Tensor) -> Tensor:
    return v[:, :, max(0, v.shape[2] - code.window) :]


def cut_as_table(code: Cached, v: Tensor) -> Tensor:
    return v[:, :, -code.table.shape[0] :]


def cut_in_list(code: Cached, v: Tensor) -> Tensor:
    return torch.stack([*v.unbind(2)][-code.window :], 2)


def cut_by_product(code: Cached, v: Tensor) -> Tensor:
    return torch.stack([*v.unbind(2)][-3 * code.window :], 2)


def ring(_: Cached, v: Tensor) -> Tensor:
    return v[:, :, torch.arange(v.shape[2]) % 36]


def zero_behind(code: Cached, v: Tensor) -> Tensor:
    return torch.where(torch.arange(v.shape[2])[:, None] < code.limit, v, 0)


def other_from_50(_: Cached, v: Tensor) -> Tensor:
    return v.flip(2) if v.shape[2] >= 50 else v


def first_row_of_40(_: Cached, v: Tensor) -> Tensor:
    return v[:1].expand_as(v) if len(v) >= 40 else v


def rows_behind_33(_: Cached, v: Tensor) -> Tensor:
    return torch.cat((v[:33], v[33:].flip(0)))


def none_from_40(_: Cached, v: Tensor) -> Tensor:
    return v * (math.nan if v.shape[2] >= 40 else 1.0)


def cut_beyond_reach(_: Cached, v: Tensor) -> Tensor:
    return v[:, :, -3000:]


def in_steps(fault: Callable[[Cached, Tensor], Tensor], *methods: str) -> LawOfCodeRecord:
    line = "x: B n E -> B n E, _; step: x: B n E, past -> B n E, past"
    record = check_attention(
        Cached(fault), ["step-by-step"], call=line, methods=methods or ("exact", "measured")
    )
    return record.law("step-by-step")


@pytest.mark.usefixtures("own_numbers")
@pytest.mark.parametrize(
    "fault",
    [
        *(cut, cut_by_power, cut_as_kept, cut_as_table, cut_in_list, ring),
        *(zero_behind, other_from_50, first_row_of_40, rows_behind_33),
    ],
)
def test_a_cache_that_fails_from_a_number_on_is_never_exact(fault: Any) -> None:
    row = in_steps(fault)
    assert row.verdict == "broken"
    assert "at lengths that the code asks about" in row.why


def test_a_number_that_is_not_found_is_passed_as_all_code_is_run_beyond_it() -> None:
    assert in_steps(cut_by_product).verdict == "broken"


@pytest.mark.usefixtures("own_numbers")
def test_a_cache_that_is_nan_from_a_number_on_is_never_exact() -> None:
    row = in_steps(none_from_40)
    assert row.verdict == "undecided"
    assert "NaN" in row.why


def test_a_number_beyond_what_was_run_stands_on_the_line() -> None:
    row = in_steps(cut_beyond_reach)
    assert (row.verdict, [one.text for one in row.assuming]) == ("exact", ["n ≤ 2999"])
    assert "for n ≤ 2999" in how(row)
    row = in_steps(unharmed)
    assert (row.verdict, row.assuming) == ("exact", ())


def test_finite_fields_alone_say_below_which_numbers_they_are() -> None:
    assert "n ≤ 31" in [one.text for one in in_steps(cut, "exact").assuming]
    assert "B ≤ 32" in [one.text for one in in_steps(rows_behind_33, "exact").assuming]
