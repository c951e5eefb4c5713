"""The mask that is read of code of which nothing is declared is asked of all lengths."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from attnproof import check
from attnproof.programs.declarations import DeclaredAttention
from attnproof.programs.finding import Part
from attnproof.programs.identified_mask import mask_as_read, with_mask, with_mask_of
from attnproof.programs.subjects import Attention, Mask
from attnproof.real_code.page_text import declaring, exit_code
from attnproof.real_code.records import CodeRecord
from attnproof.real_code.request import CodeRequest
from attnproof.testing import check_attention, check_mask

Rule = Callable[[Tensor, Tensor], Tensor]
OF_MASKS = ["causal", "past-is-used", "window-as-declared", "alignment"]
FEW = ["measured", "identity"]


class Tokens(nn.Module):
    """Attention of tokens under a rule for the places of query and key."""

    def __init__(self, rule: Rule, wide: int = 16, heads: int = 2) -> None:
        super().__init__()
        self.rule, self.heads = rule, heads
        self.qkv, self.out = nn.Linear(wide, 3 * wide), nn.Linear(wide, wide)

    def forward(self, x: Tensor) -> Tensor:
        b, n, e = x.shape
        i = torch.arange(n)
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = scaled_dot_product_attention(q, k, v, attn_mask=self.rule(i[:, None], i[None, :]))
        found: Tensor = self.out(y.transpose(1, 2).reshape(b, n, e))
        return found


RULES: Mapping[str, Rule] = {
    "past": lambda q, k: k <= q,
    "window": lambda q, k: (k <= q) & (k > q - 16),
    "dilated": lambda q, k: (k <= q) & ((k > q - 3) | ((q - k) % 20 == 0)),
    "sinks": lambda q, k: (k <= q) & ((k > q - 6) | (k < 2)),
    "leaks at 50": lambda q, k: (k <= q) | ((q > 50) & (k == q + 1)),
    "wider at 50": lambda q, k: (k <= q) & ((k > q - 5) | (q > 45)),
    "all": lambda q, k: k < q + 10_000,
    "blocks": lambda q, k: k // 4 <= q // 4,
    "own": lambda q, k: k == q,
}


def verdicts(record: CodeRecord) -> dict[str, str]:
    return {law.law: law.verdict for law in record.laws if law.law in OF_MASKS}


NONE = dict.fromkeys(OF_MASKS, "not asked")
CAUSAL = {**NONE, "causal": "measured"}


@pytest.mark.parametrize(
    ("rule", "found"),
    [
        ("past", {**CAUSAL, "past-is-used": "measured"}),
        ("window", {**CAUSAL, "past-is-used": "measured", "window-as-declared": "measured"}),
        ("dilated", CAUSAL),
        ("sinks", CAUSAL),
        ("all", NONE),
        ("blocks", NONE),
        ("own", NONE),
    ],
)
def test_a_layer_is_asked_what_was_read_of_it(rule: str, found: dict[str, str]) -> None:
    record = check_attention(Tokens(RULES[rule]), methods=FEW)
    assert verdicts(record) == found
    assert exit_code(record) == 0
    assert ("checked against the mask that was identified" in declaring(record)) == (found != NONE)
    assert ("holds it to that mask" in declaring(record)) == (found not in (NONE, CAUSAL))


def test_a_law_that_is_named_alone_is_not_put_off_by_what_is_read() -> None:
    """Who names ``permutation`` says that it should hold, of a causal layer too."""
    record = check(Tokens(RULES["past"]), laws=["permutation"])
    assert record.law("permutation").verdict == "broken"


def test_what_is_read_of_few_tokens_is_proved_of_all() -> None:
    record = check(Tokens(RULES["window"]), laws=["causal"])
    assert record.law("causal").verdict == "proved"


def test_a_leak_that_few_tokens_do_not_show_is_broken() -> None:
    found = [*FEW, "exact"]  # what the graph of the code is, takes longest to see
    record = check_attention(Tokens(RULES["leaks at 50"]), ["causal"], methods=found)
    assert record.law("causal").verdict == "broken"
    assert exit_code(record) == 1


def test_a_rule_that_more_tokens_change_is_no_fault_but_where_it_is_declared() -> None:
    def wider(n: int, m: int) -> Tensor:
        i = torch.arange(n)[:, None] + m - n
        return RULES["wider at 50"](i, torch.arange(m)[None, :])

    read = Mask(name="wider", mask=wider)
    asked = with_mask(read, "mask:causal=true,window=5,alignment=end")
    record = check_mask(asked, methods=["measured"])
    assert record.law("window-as-declared").verdict == "not asked"
    assert "declare what is meant" in record.law("window-as-declared").why
    declared = replace(read, declared=DeclaredAttention(causal=True, window=5))
    told = check_mask(declared, methods=["measured"])
    assert told.law("window-as-declared").verdict == "broken"


def test_a_window_that_is_wider_than_what_was_read_is_no_fault_by_any_method() -> None:
    def wide(seq_len: int) -> Tensor:
        i = torch.arange(seq_len)
        return (i[None] <= i[:, None]) & (i[:, None] - i[None] < 200)

    record = check_mask(wide)
    assert exit_code(record) == 0
    assert not record.broken
    declared = check_mask(wide, declared="mask:causal=true")
    assert {law.law for law in declared.broken} == {"past-is-used", "alignment"}
    assert "query 0 of 1 does not see key 0 of 260" in declared.law("past-is-used").why


def test_where_the_last_query_stands_is_not_guessed() -> None:
    """Of a mask with no simple rule it is not read, and fewer queries than keys show later keys."""

    def in_blocks(n: int, m: int) -> Tensor:
        i, j = torch.arange(n)[:, None] + m - n, torch.arange(m)[None, :]
        return (j <= i) & (i // 8 == j // 8)

    record = check_mask(in_blocks, methods=FEW)
    assert verdicts(record)["causal"] == "not asked"
    assert exit_code(record) == 0


def test_what_is_asked_by_name_is_not_told_as_read() -> None:
    record = check(Tokens(RULES["all"]), laws=["causal"])
    assert record.law("causal").verdict == "broken"
    assert "were asked" not in declaring(record)
    assert "checked against the mask that was identified" not in declaring(record)


def test_what_is_declared_comes_first() -> None:
    record = check_attention(Tokens(RULES["past"]), declared="attention:causal=false", methods=FEW)
    assert record.law("causal").verdict == "not asked"
    assert record.law("past-is-used").verdict == "broken"
    made = Mask(name="m", mask=torch.ones, declared=DeclaredAttention())
    assert with_mask(made, "mask:causal=true") is made
    other = replace(made, declared=None, as_read=DeclaredAttention(causal=True))
    assert with_mask_of(other, made) is made


def test_other_choices_are_asked_what_was_read() -> None:
    """A leak at the width that was guessed alone is told with that width."""

    def sized(dim: int = 16) -> Attention:
        layer = Tokens(RULES["leaks at 50" if dim == 16 else "past"], dim)
        return Attention(name="sized", layer=layer, embed=dim, sizes={"dim": dim}, make=sized)

    record = check_attention(sized(), methods=FEW)
    assert record.law("causal").verdict == "broken"
    told = "broken as built with --set dim=16; it holds with dim=32"
    assert record.law("causal").why.startswith(told)


def test_a_mask_that_is_given_is_none_of_the_code() -> None:
    def attend(x: Tensor, causal_mask: Tensor) -> Tensor:
        s = (x @ x.mT).masked_fill(~causal_mask, -torch.inf)
        return s.softmax(-1) @ x

    given = {"rule": "irregular", "ahead": False, "given": "a causal mask"}
    assert not mask_as_read("attention", [Part("mask", given, "", "", certain=False)])
    ahead = {"rule": "irregular", "ahead": True}
    assert not mask_as_read("attention", [Part("mask", ahead, "", "", certain=False)])
    assert not mask_as_read("rotary", [Part("mask", {"rule": "causal", "after": 0}, "", "")])


def test_a_process_that_follows_knows_what_was_read() -> None:
    asked = CodeRequest(target="a.py::b", as_read="mask:causal=true", methods=("traced",))
    assert CodeRequest.read(asked.text()) == asked
    made: Any = with_mask(Mask(name="m", mask=torch.ones), asked.as_read)
    assert made.as_read == DeclaredAttention(causal=True, alignment="")


def at_end(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    n, m = q.shape[-2], k.shape[-2]
    mask = torch.arange(n)[:, None] + m - n >= torch.arange(m)[None, :]
    return scaled_dot_product_attention(q, k, v, attn_mask=mask)


def drops_a_row(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.cat((0 * at_end(q, k, v)[..., :1, :], at_end(q, k, v)[..., 1:, :]), -2)


@pytest.mark.parametrize(("code", "verdict"), [(at_end, "proved"), (drops_a_row, "broken")])
def test_of_more_queries_than_keys_the_first_may_see_none(code: Any, verdict: str) -> None:
    """Under a mask that is aligned at the end: no fault, and of as many it is asked."""
    record = check(code, laws=["rows-sum-to-one"])
    law = record.law("rows-sum-to-one")
    assert law.verdict == verdict
    if verdict == "proved":
        assert any("as many queries as keys" in str(one) for one in law.assuming)


def near(q: Tensor, k: Tensor, v: Tensor, far: int = 7) -> Tensor:
    """Attention over a window to both sides, which few tokens do not show."""
    i = torch.arange(q.shape[-2])
    apart = (i[:, None] - i[None, :]).abs()
    return scaled_dot_product_attention(q, k, v, attn_mask=apart <= far)


@pytest.mark.parametrize(
    ("far", "laws", "verdict"),
    [
        (7, [], "not asked"),
        (7, ["order-of-keys"], "broken"),
        (10**6, ["order-of-keys"], "measured"),
    ],
)
def test_no_law_without_an_order_holds_under_a_window_that_was_read(
    far: int, laws: list[str], verdict: str
) -> None:
    def windowed(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return near(q, k, v, far)

    call = "q: B H n D, k: B H n D, v: B H n D -> B H n D"
    record = check_attention(windowed, call=call, laws=laws, methods=FEW)
    law = record.law("order-of-keys")
    assert law.verdict == verdict
    assert law.verdict != "not asked" or "a window of 7 before and 7 after" in law.why
