"""What is declared and could not be compared is told; what is advised to be declared works."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from attnproof.cli import main
from attnproof.programs.declarations import COMPARED, DECLARED, compared_by
from attnproof.real_code.asserting import CodeBreaksLaw
from attnproof.real_code.page_text import declaring, exit_code
from attnproof.real_code.records import CodeRecord
from attnproof.testing import (
    assert_attention,
    check_attention,
    check_bias,
    check_mask,
    check_rotary,
)
from attnproof.theorems.laws import LAWS as CODE_LAWS

FEW = ["measured"]
TOLD = "declared, and not checked: "


def attention() -> nn.Module:
    return nn.MultiheadAttention(32, 4, batch_first=True)


def causal(n: int) -> Tensor:
    return torch.ones(n, n, dtype=torch.bool).tril()


def window(n: int, width: int = 4) -> Tensor:
    before = torch.arange(n)[:, None] - torch.arange(n)
    return (before >= 0) & (before < width)


def both_sides(n: int) -> Tensor:
    return (torch.arange(n)[:, None] - torch.arange(n)).abs() < 3


def at_start(q_len: int, kv_len: int) -> Tensor:
    return torch.full((q_len, kv_len), -torch.inf).triu(1)


def strict(n: int) -> Tensor:
    return torch.ones(n, n, dtype=torch.bool).tril(-1)


def test_a_declared_scale_that_is_not_compared_does_not_pass() -> None:
    with pytest.raises(CodeBreaksLaw, match="declared, and not checked") as raised:
        assert_attention(attention(), declared="attention:causal=false,scale=0.25", methods=FEW)
    record = raised.value.record
    law = record.law("scale-as-declared")
    assert law.why.startswith(f"scale=0.25: {TOLD}the code takes tokens")
    assert [one.law for one in record.laws if one.verdict == "unchecked"] == [law.law]
    assert exit_code(record) == 1
    rest = [one for one in record.laws if one is not law]  # what is advised works
    assert exit_code(record.model_copy(update={"laws": (*rest,)})) == 0


def test_what_is_not_declared_is_advised_and_passes() -> None:
    record = check_attention(attention(), methods=["measured", "identity"])
    assert record.law("scale-as-declared").verdict == "not asked"
    assert "--declare attention:causal=false " in declaring(record)
    assert exit_code(record) == 0


def test_a_law_of_other_code_that_compares_what_is_declared_has_a_row() -> None:
    record = check_mask(causal, declared="mask:causal,scale=0.5", methods=FEW)
    assert record.law("causal").verdict == "measured"
    law = record.law("scale-as-declared")
    assert law.why == f"scale=0.5: {TOLD}it is a law of attention code, and this is mask code"
    assert exit_code(record) == 1


def test_a_name_that_means_nothing_here_is_told() -> None:
    def bias(length: int) -> Tensor:
        return -(torch.arange(length)[:, None] - torch.arange(length)).abs().float()

    record = check_bias(bias, declared="bias:name=kerple,heads=1", methods=FEW)
    why = record.law("slopes-as-declared").why
    assert why.startswith(f"name=kerple: {TOLD}it is not the name of a known bias")
    assert f"heads=1: {TOLD}" in why
    assert exit_code(record) == 1


def test_laws_that_were_named_are_asked_alone() -> None:
    declared = "attention:causal=false,scale=0.25"
    record = check_attention(attention(), ["past-is-used"], declared=declared, methods=FEW)
    assert [law.verdict for law in record.laws] == ["measured"]


def test_every_field_has_a_law() -> None:
    known = {law.id for law in CODE_LAWS}
    for name, kind in DECLARED.items():
        assert set(COMPARED[name]) == set(kind.__dataclass_fields__)
        assert {by.law for by in COMPARED[name].values()} <= known


class Blind(nn.Module):
    """Attention that looks at no positions, and takes the place of its first token."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = attention()

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.attention(x, x, x, need_weights=False)[0]
        return found


@pytest.mark.parametrize(
    ("placed", "ways"), [(False, ["relative", "none"]), (True, ["relative", "absolute"])]
)
def test_positions_that_an_order_blind_layer_has_not_are_unchecked(
    placed: bool, ways: list[str]
) -> None:
    code, more = Blind(), {}
    if placed:  # then the law of translation holds of it, and says nothing of relative positions
        more = {"whole_layer": lambda x, _: code(x)}

    def checked(way: str) -> CodeRecord:
        how = {"methods": ["measured", "identity"], "embed": 32, "heads": 4, **more}
        return check_attention(code, declared=f"attention:causal=false,positions={way}", **how)

    for way in ways:
        record = checked(way)
        if way == "none":
            assert record.law("permutation").verdict == "measured"
            assert exit_code(record) == 0
            continue
        law = record.law("translation")
        assert law.verdict == "unchecked"
        assert law.why.startswith(f"positions={way}: {TOLD}")
        assert exit_code(record) == 1


class PlacedAttention(Blind):
    """The same attention with a learned vector for each place."""

    def __init__(self) -> None:
        super().__init__()
        self.places = nn.Parameter(torch.randn(64, 32, generator=torch.Generator().manual_seed(1)))

    def forward(self, x: Tensor, place: int = 0) -> Tensor:
        return super().forward(x + self.places[place : place + x.shape[1]])


def test_absolute_positions_are_compared_where_tokens_can_be_moved() -> None:
    code, declared = PlacedAttention(), "attention:causal=false,positions=absolute"
    how = {"methods": ["measured", "identity"], "embed": 32, "heads": 4}
    record = check_attention(code, declared=declared, whole_layer=code, **how)
    assert record.law("translation").verdict == "not asked"
    assert exit_code(record) == 0
    alone = check_attention(code, declared=declared, **how).law("translation")
    assert alone.verdict == "unchecked"
    assert alone.why.endswith("whether it has absolute positions was not read")


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("rope:base=10000,factor=4", "rotary", "factor=4"),
        ("rope:base=10000,scaling=linear,factor=4,low=2", "rotary", "low=2"),
        ("rope:base=10000,frequencies=1;0.5", "rotary", "base=10000"),
        ("bias:name=kerple,slopes=0.5;0.25", "bias", "name=kerple"),
        ("sinusoidal:base=10,frequencies=1;0.5", "additive", "base=10"),
    ],
)
def test_what_nothing_reads_beside_the_rest_is_unchecked(text: str, kind: str, words: str) -> None:
    found = compared_by(text, kind)
    assert [one for one, by in found.items() if by.unread] == [words]


def test_a_field_that_nothing_reads_does_not_pass_beside_a_law_that_holds() -> None:
    def rope(x: Tensor, position_ids: Tensor) -> Tensor:
        half = x.shape[-1] // 2
        a = position_ids[:, None, :, None] * 10000.0 ** (-torch.arange(half).double() / half)
        u, v = x.double().chunk(2, -1)
        return torch.cat((u * a.cos() - v * a.sin(), v * a.cos() + u * a.sin()), -1).to(x.dtype)

    plain = check_rotary(rope, declared="rope:base=10000", methods=FEW)
    assert exit_code(plain) == 0
    record = check_rotary(rope, declared="rope:base=10000,factor=4", methods=FEW)
    law = record.law("frequencies-as-declared")
    assert law.verdict == "unchecked"
    assert law.why.startswith(f"factor=4: {TOLD}it is used only with scaling=")
    assert law.why.endswith("the law by itself is measured")
    assert exit_code(record) == 1


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        (causal, "mask:causal=true"),
        (window, "mask:causal=true,window=4"),
        (both_sides, "mask:causal=false,window=3"),
        (at_start, "mask:causal=true,alignment=start"),
        (strict, ""),
        (lambda n: torch.eye(n).bool(), ""),
    ],
    ids=["causal", "window", "both sides", "at start", "strict", "itself"],
)
def test_what_is_advised_works(code: Callable[..., Tensor], wanted: str) -> None:
    told = declaring(check_mask(code, methods=["measured", "identity"]))
    assert (f"--declare {wanted} " in told) if wanted else not told
    if wanted:
        assert exit_code(check_mask(code, declared=wanted, methods=FEW)) == 0


def test_the_command_counts_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.py"
    file.write_text("import torch\ndef causal(n):\n    return torch.ones(n, n).bool().tril()\n")
    assert main(["check", f"{file}::causal", "--declare", "mask:causal,scale=0.5"]) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert "1 unchecked" in shown
    assert "scale-as-declared: declared, and not checked: the exit code is 1" in shown


def test_the_command_advises_its_own_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.py"
    file.write_text("def odd_mask(colour, shade):\n    return 3\n")
    assert main(["check", f"{file}::odd_mask"]) == 2
    shown = capsys.readouterr().out
    assert "--as rotary" in shown
    assert "kind=" not in shown
    assert "mask=lambda queries, keys: odd_mask(queries, keys)," in shown
