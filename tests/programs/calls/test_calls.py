"""Code that is called by its signature: right in every form that people write, wrong ones seen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnproof.cli import main
from attnproof.programs.adapting import OtherKind
from attnproof.programs.execution.draw import Draw
from attnproof.programs.identify import identify
from attnproof.programs.prove import prove
from attnproof.programs.signatures.signature import SignatureError
from attnproof.programs.subject import adapted_as, subject_of
from attnproof.testing import CodeBreaksLaw, assert_attention, assert_rotary, check_rotary


def halves(x: Tensor) -> Tensor:
    u, v = x.chunk(2, -1)
    return torch.cat((-v, u), -1)


def both(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, unsqueeze_dim: int = 1) -> Any:
    cos, sin = cos.unsqueeze(unsqueeze_dim), sin.unsqueeze(unsqueeze_dim)
    return q * cos + halves(q) * sin, k * cos + halves(k) * sin


def by_ids(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, position_ids: Tensor) -> Any:
    return both(q, k, cos[position_ids], sin[position_ids])


def neighbours(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    rotated = torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)
    return x * cos + rotated * sin


def complex_(xq: Tensor, xk: Tensor, freqs_cis: Tensor) -> tuple[Tensor, Tensor]:
    def rotated(x: Tensor) -> Tensor:
        pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * freqs_cis[None, :, None]).flatten(3).to(x.dtype)

    return rotated(xq), rotated(xk)


def angles_of(positions: Tensor, width: int) -> Tensor:
    return positions[..., None] * 10000.0 ** (-torch.arange(0, width, 2) / width)


def at_positions(x: Tensor, positions: Tensor) -> Tensor:
    angle = torch.cat(2 * (angles_of(positions, x.shape[-1]),), -1)
    return x * angle.cos() + halves(x) * angle.sin()


def in_two_axes(x: Tensor, at: Tensor) -> Tensor:
    first, second = x.chunk(2, -1)
    return torch.cat((at_positions(first, at[0]), at_positions(second, at[1])), -1)


def flattened(x: Tensor, rope: tuple[Tensor, Tensor]) -> dict[str, Tensor]:
    heads = x.reshape(*x.shape[:2], -1, 8).transpose(1, 2)
    cos, sin = (torch.cat((part, part), -1) for part in rope)
    return {"rotated": (heads * cos + halves(heads) * sin).transpose(1, 2).flatten(-2)}


def from_the_start(x: Tensor) -> Tensor:
    return at_positions(x, torch.arange(x.shape[-2]))


ROTARY: dict[str, tuple[Callable[..., Any], str]] = {
    "transformers": (both, "q: B H n D, k: B G n D, cos: B n D, sin: B n D -> q, k"),
    "another axis": (
        both,
        "q: B n H D, k: B n G D, cos: B n D, sin: B n D, unsqueeze_dim = 2 -> q, k",
    ),
    "ids into a table": (
        by_ids,
        "q: B H n D, k: B H n D, cos: m D, sin: m D, position_ids: B n -> q, k",
    ),
    "neighbours": (neighbours, "x: B H n D, cos: n D, sin: n D -> x"),
    "complex": (complex_, "xq: B n H D, xk: B n G D, freqs_cis: n D/2 cis -> xq, xk"),
    "positions": (at_positions, "x: n D, positions: n -> x"),
    "positions of rows": (at_positions, "x: B n D, positions: B n -> x"),
    "two coordinates": (in_two_axes, "x: n D, at: 2 n positions -> x"),
    "one axis of heads": (
        flattened,
        "x: B n (H D), rope = (cos: n D/2, sin: n D/2) -> {rotated: B n (H D)}",
    ),
    "no positions": (from_the_start, "x: H n D -> x"),
}


@pytest.mark.parametrize("name", ROTARY)
def test_rotary_code_of_any_form_is_rotary_code(name: str) -> None:
    code, call = ROTARY[name]
    found: Any = subject_of(code, call, "rotary")
    x = torch.randn(3, found.heads, 5, found.width, generator=torch.Generator().manual_seed(0))
    at = torch.tensor([[0, 1, 2, 3, 4], [3, 4, 5, 6, 7], [9, 2, 0, 4, 4]])
    at = at[..., None].expand(3, 5, found.axes) if found.axes else at
    out = found.rotate(x, at)
    assert out.shape == x.shape
    assert torch.allclose(out.norm(dim=-1), x.norm(dim=-1), atol=1e-5)
    assert torch.allclose(out[0, :, 0], x[0, :, 0], atol=1e-6)  # at position 0
    assert not torch.allclose(out[1, :, 0], x[1, :, 0], atol=1e-2)
    assert torch.allclose(found.rotate(x[1:2], at[1:2]), out[1:2], atol=1e-6)
    laws = ["norm"] if found.running is not None else ["relative"]
    record = check_rotary(code, laws, call=call, methods=["measured"])
    assert [law.verdict for law in record.laws] == ["measured"] * len(laws)
    assert call in record.adapted


def test_what_is_called_so_is_proved() -> None:
    code, call = ROTARY["transformers"]
    record = check_rotary(code, ["relative"], call=call, methods=["traced"])
    assert [law.verdict for law in record.laws] == ["proved"]


def keys_backwards(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    return both(q, k, cos, sin)[0], both(q, k, cos, -sin)[1]


OF_TOKENS = ("neighbours", "positions", "positions of rows", "two coordinates")


@pytest.mark.usefixtures("lengths_of_one")
@pytest.mark.parametrize("name", OF_TOKENS)
def test_no_count_of_tokens_is_fixed_by_how_the_code_is_called(name: str) -> None:
    laws = ("relative", "follows-its-ids", "every-head-alike")
    found = {one.law: one for one in prove(subject_of(*ROTARY[name]), laws).findings}
    told = [one.text for one in found["relative"].assuming if one.kind == "for"]
    assert found["relative"].verdict == "holds", found["relative"].why
    assert not [text for text in told if "T" in text or text.startswith(("B =", "H ="))]
    assert found["follows-its-ids"].verdict == "holds" or "B" not in ROTARY[name][1]
    assert found["every-head-alike"].verdict == "holds" or "H" not in ROTARY[name][1]


def rows_mixed(x: Tensor, positions: Tensor) -> Tensor:
    """Right of one row alone."""
    return at_positions(x + (x - x.mean(0, keepdim=True)), positions)


def test_rows_that_share_their_positions_are_asked_together() -> None:
    call, laws = "x: B H n D, positions: n -> x", ("relative", "rows-of-batch-apart")
    right, wrong = (
        {one.law: one.verdict for one in prove(subject_of(code, call), laws).findings}
        for code in (at_positions, rows_mixed)
    )
    assert right == dict.fromkeys(laws, "holds")
    assert wrong == dict.fromkeys(laws, "broken")


def test_a_fault_of_the_keys_alone_is_seen() -> None:
    call = "q: B H n D, k: B H n D, cos: B n D, sin: B n D -> q, k"
    with pytest.raises(CodeBreaksLaw, match="relative"):
        assert_rotary(keys_backwards, ["relative"], call=call)
    right = "q: B H n D, k: B H n D, cos: B n D, sin: B n D -> q, _"
    assert_rotary(both, ["norm"], call=ROTARY["transformers"][1])
    with pytest.raises(SignatureError, match="wanted q and k back"):
        subject_of(keys_backwards, right)


def attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    scores = query @ key.mT / query.shape[-1] ** 0.5
    weights = scores.masked_fill(mask, -torch.inf).softmax(-1)
    return weights @ value, weights


CALL = "query: B H r D, key: B H n D, value: B H n D, mask: B 1 r n hide -> B H r D, w: B H r n"


def test_attention_and_its_mask() -> None:
    found: Any = subject_of(attend, CALL)
    assert found.masks == ("bool",)
    q, k = torch.randn(2, 4, 5, 8), torch.randn(2, 4, 7, 8)
    seen = torch.ones(2, 1, 5, 7, dtype=torch.bool).tril(2)
    assert torch.allclose(
        found.attend(q, k, k, seen),
        nn.functional.scaled_dot_product_attention(q, k, k, seen),
        atol=1e-6,
    )
    assert torch.allclose(found.weights(q, k).sum(-1), torch.ones(2, 4, 5), atol=1e-6)
    laws = ["hidden-keys-do-nothing", "order-of-keys", "rows-sum-to-one"]
    assert_attention(attend, laws, call=CALL)
    with pytest.raises(CodeBreaksLaw, match="in its masks True means that a key is hidden"):
        assert_attention(attend, ["true-means-visible"], call=CALL)
    with pytest.raises(CodeBreaksLaw, match=r"again: .*call='query: B H r D"):
        assert_attention(attend, ["true-means-visible"], call=CALL.replace("hide", "keep"))


def test_what_true_means_is_said_of_the_code_and_not_of_what_it_was_given() -> None:
    said = {"hide": "True means hidden", "keep": "True means visible"}
    for kind, words in said.items():
        hides = kind == "hide"

        def code(q: Tensor, k: Tensor, v: Tensor, m: Tensor, *, hides: bool = hides) -> Tensor:
            return attend(q, k, v, m if hides else ~m)[0]

        call = f"q: B H r D, k: B H n D, v: B H n D, m: B 1 r n {kind} -> B H r D"
        found = identify(subject_of(code, call), Draw(0, torch.float32, "cpu"))
        assert words in found.sentence


class Block(nn.Module):
    def __init__(self, hidden_size: int = 16) -> None:
        super().__init__()
        self.hidden_size = hidden_size
        self.all = nn.Linear(hidden_size, 3 * hidden_size)

    def forward(self, x: Tensor, padding: Tensor) -> Tensor:
        q, k, v = self.all(x).chunk(3, -1)
        scores = (q @ k.mT).masked_fill(~padding[:, None], -torch.inf)
        out: Tensor = scores.softmax(-1) @ v
        return out


def test_a_layer_with_a_mask_of_padding() -> None:
    found: Any = subject_of(Block, "x: B n E, padding: B n keep -> B n E")
    assert found.hide is not None
    assert_attention(
        Block,
        ["hidden-keys-do-nothing", "permutation"],
        call="x: B n E, padding: B n keep -> B n E",
    )
    with pytest.raises(CodeBreaksLaw):
        assert_attention(
            Block,
            ["hidden-keys-do-nothing"],
            call="x: B n E, padding: B n hide -> B n E",
            methods=["measured"],
        )


def test_layers_additive_code_biases_and_masks() -> None:
    layer: Any = subject_of(nn.Linear(6, 6), "input: B n E -> B n E", width=6)
    assert layer.embed == 6
    added: Any = subject_of(
        lambda x: x + torch.arange(x.shape[0])[:, None], "x: n E -> n E", "additive"
    )
    assert added.added(torch.zeros(2, 3, 16))[1, 2, 0] == 2
    bias: Any = subject_of(
        lambda n: -(torch.arange(n)[:, None] - torch.arange(n)).abs().expand(3, n, n),
        "n = n -> H n n",
        heads=3,
    )
    assert bias.bias(2, 4)[0].tolist() == [[-2, -1, 0, -1], [-3, -2, -1, 0]]
    mask: Any = subject_of(
        lambda r, n: torch.ones(r, n, dtype=torch.bool).triu(n - r + 1), "r = r, n = n -> r n hide"
    )
    assert mask.true_means == "hidden"
    assert mask.mask(2, 3).tolist() == [[False, False, True], [False, False, False]]


REFUSED: dict[str, tuple[Any, str, str]] = {
    "a name that is not a parameter": (
        both,
        "q: B H n D, k: B H n D, cosine: n D, sin: n D -> q, k",
        "no parameter 'cosine'",
    ),
    "axes in another order": (
        both,
        "q: B n H D, k: B n H D, cos: B n D, sin: B n D -> q, k",
        "raised RuntimeError|back",
    ),
    "fewer results": (both, "q: B H n D, k: B H n D, cos: B n D, sin: B n D -> q", "back"),
    "more results": (at_positions, "x: n D, positions: n -> x, w: n n", "wanted 2 back"),
    "another shape": (at_positions, "x: n D, positions: n -> out: D n", r"wanted \(8, 5\) back"),
    "tables of no width": (neighbours, "x: n D, cos: n 3, sin: n 3 -> x", "with D or D/2 numbers"),
    "a mask that says nothing": (
        attend,
        CALL.replace(" hide", ""),
        "what True means in mask: keep or hide",
    ),
    "one length for queries and keys": (
        attend,
        CALL.replace("r", "n"),
        "no parameter|queries of length r",
    ),
    "no tokens": (Block, "x: B E, padding: B keep -> B E", "wanted tokens, such as x: B n E"),
    "no mapping": (at_positions, "x: n D, positions: n -> {x: n D}", "wanted a mapping with x"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_call_that_does_not_fit_is_told(name: str) -> None:
    code, call, why = REFUSED[name]
    with pytest.raises(SignatureError, match=why):
        subject_of(code, call)


def test_an_error_of_ours_is_not_told_as_the_code_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attnproof.programs.calls.rotary_calls.read_back", {}.__getitem__)
    with pytest.raises(TypeError):
        subject_of(both, ROTARY["transformers"][1])


def test_what_is_declared_is_held_against_it() -> None:
    from attnproof.programs.declarations import parse

    call = ROTARY["positions"][1]
    found: Any = adapted_as(at_positions, call, declared=parse("rope:base=10000,width=16"))
    assert found.width == 16
    with pytest.raises(OtherKind, match="the declaration is one of attention"):
        adapted_as(at_positions, call, declared=parse("attention:causal"))


def test_the_command_takes_a_call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "model.py"
    file.write_text(
        "def rotate(x, c, s):\n    u, v = x.chunk(2, -1)\n"
        "    import torch\n    return torch.cat((u * c - v * s, u * s + v * c), -1)\n"
    )
    call = "x: B H n D, c: n D/2 cos, s: n D/2 sin -> x"
    given = ["check", f"{file}::rotate", "--law", "norm", "--call"]
    assert main([*given, call]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert f"rotate called as given: {call}" in told
    assert "✓ norm" in told
    assert main([*given, call.replace("c: n", "d: n")]) == 2
    assert "rotate has no parameter 'd'; nearest: " in capsys.readouterr().out
    assert main([*given, "x: B H n D"]) == 2
    assert "without an arrow" in capsys.readouterr().err
    file.write_text(file.read_text().replace("u * s + v * c", "u * s - v * c"))
    assert main(["check", f"{file}::rotate", "--law", "relative", "--call", call]) == 1
    told = " ".join(capsys.readouterr().out.split())
    assert f"--call '{call}'" in told, "the command that shows it again"


def test_how_long_a_table_is_made_is_not_the_code_s_choice() -> None:
    code, call = ROTARY["ids into a table"]
    record = check_rotary(code, ["norm"], call=call, methods=["exact"])
    assert [law.verdict for law in record.laws] == ["exact"]
