"""Code of many signatures becomes one call, and code that fits nothing is told why."""

from __future__ import annotations

import importlib.util
import itertools
import textwrap
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnproof.numeric.programs.adapters.code import NoSetting
from attnproof.numeric.programs.adapting import NoAdapter, adapt
from attnproof.numeric.programs.declared import DeclaredRotary
from attnproof.numeric.programs.running import CodeFault
from attnproof.numeric.programs.subjects import Attention, Bias, Rotary

HALF = """
    import torch
    from torch import nn

    def angles(positions, width, base=10000.0):
        ladder = base ** (-torch.arange(0, width, 2) / width)
        return positions[..., None].float() * ladder

    def turn_half(x, cos, sin):
        a, b = x.chunk(2, -1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)
"""
NUMBERS = itertools.count()


def user_file(folder: Path, source: str) -> ModuleType:
    """A user's file, imported."""
    path = folder / f"user_{next(NUMBERS)}.py"
    path.write_text(textwrap.dedent(HALF) + textwrap.dedent(source))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def half(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """What every rotary form below should give: halves paired, tokens at positions (B, T)."""
    width = x.shape[-1]
    ladder = base ** (-torch.arange(0, width, 2) / width)
    angle = (positions[..., None].float() * ladder)[:, None]
    a, b = x.chunk(2, -1)
    return torch.cat((a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()), -1)


def turns_as_half(subject: Any, base: float = 10000.0) -> None:
    assert isinstance(subject, Rotary)
    x = torch.randn(2, 3, 4, subject.width, generator=torch.Generator().manual_seed(1))
    for positions in ([[0, 1, 2, 3], [0, 1, 2, 3]], [[3, 1, 9, 0], [2, 2, 7, 40]],
                      [[5, 6, 7, 8], [0, 0, 0, 0]]):  # fmt: skip
        at = torch.tensor(positions)
        for turn in (subject.turn, subject.turn_key):
            torch.testing.assert_close(turn(x, at), half(x, at, base), atol=1e-5, rtol=1e-5)


FORMS = {
    "f(x, positions)": """
        def rope(x, positions):
            angle = angles(positions, x.shape[-1])[:, None]
            return turn_half(x, angle.cos(), angle.sin())
    """,
    "f(x, positions), tokens before heads": """
        def rope(x, positions):
            angle = angles(positions, x.shape[-1])[:, :, None]
            return turn_half(x, angle.cos(), angle.sin())
    """,
    "f(x, positions), no heads": """
        def rope(x, positions):
            b, t, d = x.shape
            angle = angles(positions, d)
            return turn_half(x, angle.cos(), angle.sin())
    """,
    "f(x, positions), one row": """
        def rope(x, positions):
            t, d = x.shape
            angle = angles(positions, d)
            return turn_half(x, angle.cos(), angle.sin())
    """,
    "f(q, k, positions) of all rows": """
        def rope(q, k, pos):
            assert pos.dim() == 1
            angle = angles(pos, q.shape[-1])
            return turn_half(q, angle.cos(), angle.sin()), turn_half(k, angle.cos(), angle.sin())
    """,
    "f(x), running": """
        def rope(x):
            angle = angles(torch.arange(x.shape[2]), x.shape[-1])
            return turn_half(x, angle.cos(), angle.sin())
    """,
    "f(x), running, tokens before heads": """
        def rope(x):
            angle = angles(torch.arange(x.shape[1]), x.shape[-1])[:, None]
            return turn_half(x, angle.cos(), angle.sin())
    """,
    "f(x, offset)": """
        def rope(x, offset=0):
            angle = angles(torch.arange(offset, offset + x.shape[-2]), x.shape[-1])
            return turn_half(x, angle.cos(), angle.sin())
    """,
    "f(q, k, cos, sin), with a function that makes them": """
        def precompute_cos_sin(head_dim, max_seq_len):
            angle = angles(torch.arange(max_seq_len), head_dim)
            return angle.cos(), angle.sin()

        def rope(q, k, cos, sin):
            return turn_half(q, cos, sin), turn_half(k, cos, sin)
    """,
    "f(q, k, cos, sin, position_ids), with a module of a table": """
        class RotaryTable(nn.Module):
            def __init__(self, dim):
                super().__init__()
                self.dim = dim

            def forward(self, x, seq_len=None):
                angle = angles(torch.arange(seq_len), self.dim)
                return angle.cos(), angle.sin()

        def rope(q, k, cos, sin, position_ids):
            cos, sin = cos[position_ids].unsqueeze(1), sin[position_ids].unsqueeze(1)
            return turn_half(q, cos, sin), turn_half(k, cos, sin)
    """,
    "f(x, cos, sin) alone": """
        def rope(x, cos, sin):
            return turn_half(x, cos, sin)
    """,
    "f(x, freqs_cis), complex": """
        def precompute_freqs_cis(dim, end, theta=10000.0):
            angle = angles(torch.arange(end), dim, theta)
            return torch.polar(torch.ones_like(angle), angle)

        def rope(xq, xk, freqs_cis):
            assert freqs_cis.shape == (xq.shape[1], xq.shape[-1] // 2)
            by = freqs_cis[None, :, None]
            return (turn_half(xq, by.real, by.imag), turn_half(xk, by.real, by.imag))
    """,
    "a module with a table, f(x, input_pos=None), tokens before heads": """
        class rope(nn.Module):
            def __init__(self, dim, max_seq_len=64, base=10000):
                super().__init__()
                self.register_buffer("cache", angles(torch.arange(max_seq_len), dim, base))

            def forward(self, x, *, input_pos=None):
                angle = self.cache[: x.size(1)] if input_pos is None else self.cache[input_pos]
                angle = angle.view(-1, x.size(1), 1, angle.size(-1))
                return turn_half(x, angle.cos(), angle.sin())
    """,
    "a module that makes cos and sin, and a function beside it": """
        class rope(nn.Module):
            def __init__(self, head_dim, base=10000.0):
                super().__init__()
                self.head_dim, self.base = head_dim, base

            def forward(self, x, position_ids):
                angle = angles(position_ids, self.head_dim, self.base)
                return angle.cos(), angle.sin()

        def apply_rotary_pos_emb(q, k, cos, sin, unsqueeze_dim=1):
            cos, sin = cos.unsqueeze(unsqueeze_dim), sin.unsqueeze(unsqueeze_dim)
            return turn_half(q, cos, sin), turn_half(k, cos, sin)
    """,
    "a module with a method that turns": """
        class rope(nn.Module):
            def __init__(self, dim):
                super().__init__()
                self.dim = dim

            def forward(self, t):
                raise RuntimeError("call rotate_queries_or_keys")

            def rotate_queries_or_keys(self, t, seq_dim=-2, offset=0):
                angle = angles(torch.arange(offset, offset + t.shape[seq_dim]), self.dim)
                return turn_half(t, angle.cos(), angle.sin())
    """,
    "a factory": """
        class Encoding(nn.Module):
            def forward(self, x, positions):
                angle = angles(positions, x.shape[-1])[:, None]
                return turn_half(x, angle.cos(), angle.sin())

        def rope():
            return Encoding()
    """,
    "positions that must not be integers": """
        def rope(x, pos):
            angle = torch.einsum("bt,d->btd", pos, angles(torch.tensor(1.0), x.shape[-1]))[:, None]
            return turn_half(x, angle.cos(), angle.sin())
    """,
}


@pytest.mark.parametrize("form", FORMS)
def test_rotary_code_of_each_form_turns_as_it_should(form: str, tmp_path: Path) -> None:
    subject = adapt(user_file(tmp_path, FORMS[form]).rope, "rotary")
    turns_as_half(subject)
    assert "called as" in subject.adapted
    assert subject.make is not None
    turns_as_half(subject.make())


@pytest.mark.parametrize("form", FORMS)
def test_rotary_code_is_taken_for_rotary_code(form: str, tmp_path: Path) -> None:
    assert adapt(user_file(tmp_path, FORMS[form]).rope).kind == "rotary"


def test_code_of_another_angle_is_seen_to_be_other_code(tmp_path: Path) -> None:
    source = FORMS["f(x, positions)"].replace("angles(positions,", "angles(positions + 1,")
    with pytest.raises(AssertionError):
        turns_as_half(adapt(user_file(tmp_path, source).rope, "rotary"))


def test_another_base_is_another_build(tmp_path: Path) -> None:
    form = "a module that makes cos and sin, and a function beside it"
    subject = adapt(user_file(tmp_path, FORMS[form]).rope, "rotary")
    assert subject.make is not None
    turns_as_half(subject.make(base=500.0), 500.0)
    assert subject.make(width=32).width == 32
    with pytest.raises(NoSetting, match="no colour"):
        subject.make(colour=1)


def test_a_function_takes_another_base_and_no_other_width(tmp_path: Path) -> None:
    source = """
        def rope(x, positions, theta=10000.0):
            angle = angles(positions, x.shape[-1], theta)[:, None]
            return turn_half(x, angle.cos(), angle.sin())
    """
    subject = adapt(user_file(tmp_path, source).rope)
    assert subject.make is not None
    turns_as_half(subject.make(base=70.0), 70.0)
    with pytest.raises(NoSetting):
        subject.make(window=3)


REMEMBERS = """
    SEEN = {}

    def rope(x, offset=0):
        if x.shape[-2] not in SEEN:
            SEEN[x.shape[-2]] = angles(torch.arange(offset, offset + x.shape[-2]), x.shape[-1])
        angle = SEEN[x.shape[-2]]
        return turn_half(x, angle.cos(), angle.sin())
"""


def test_a_function_that_remembers_in_its_file_is_fresh_each_time(tmp_path: Path) -> None:
    file = user_file(tmp_path, REMEMBERS)
    subject = adapt(file.rope, "rotary")
    assert subject.make is not None
    assert not file.SEEN, "the adapter left nothing behind"
    one, other = subject.make(), subject.make()
    x, at = torch.ones(1, 1, 3, 8), torch.arange(3)[None]
    kept = one.turn(x, at + 9)
    assert torch.equal(one.turn(x, at), kept), "the planted fault: the first offset is kept"
    assert not torch.equal(other.turn(x, at), kept)


def test_an_instance_is_copied_and_not_used() -> None:
    class Counting(nn.Module):
        calls = 0

        def forward(self, x: Tensor, positions: Tensor) -> Tensor:
            self.calls += 1
            return half(x, positions)

    mine = Counting()
    subject = adapt(mine, "rotary")
    assert mine.calls == 0
    assert subject.module is not mine
    turns_as_half(subject)


def test_axes_that_source_names_are_believed(tmp_path: Path) -> None:
    source = """
        def rope(x):
            b, t, h, d = x.shape
            angle = angles(torch.arange(h), d)
            return turn_half(x, angle.cos(), angle.sin())
    """
    subject = adapt(user_file(tmp_path, source).rope, "rotary")
    assert isinstance(subject, Rotary)
    x, at = torch.ones(1, 3, 4, 8), torch.arange(4)[None]
    turned = subject.turn(x, at)
    assert torch.equal(turned[:, :, 0], turned[:, :, 1]), "tokens turn alike: the fault is kept"
    assert not torch.equal(turned[:, 0], turned[:, 1])
    said = adapt(user_file(tmp_path, source).rope, "rotary", order="bhtd")
    assert "(B, H, T, D)" in said.adapted


@pytest.mark.parametrize(("places", "shape"), [("abt", "(3, B, T)"), ("bta", "(B, T, 3)")])
def test_positions_of_three_coordinates(places: str, shape: str, tmp_path: Path) -> None:
    axis = places.index("a")
    source = f"""
        def rope(x, position_ids):
            p = position_ids.movedim({axis}, -1)
            assert p.dim() == 3
            ladder = torch.arange(x.shape[-1] // 2)
            angle = torch.gather(p.float(), -1, (ladder % 3).expand(*p.shape[:2], -1))[:, None]
            return turn_half(x, angle.cos(), angle.sin())
    """
    subject = adapt(user_file(tmp_path, source).rope, "rotary")
    assert isinstance(subject, Rotary)
    assert subject.axes == 3
    assert shape in subject.adapted


def test_the_end_of_a_table_is_found(tmp_path: Path) -> None:
    form = "a module with a table, f(x, input_pos=None), tokens before heads"
    subject = adapt(user_file(tmp_path, FORMS[form]).rope, "rotary")
    assert isinstance(subject, Rotary)
    assert subject.most == 64


def test_a_subject_is_returned_with_what_is_declared() -> None:
    mine = Rotary(name="mine", turn=half, width=8)
    assert adapt(mine) is mine
    declared = DeclaredRotary(base=10000.0)
    made = adapt(mine, declared=declared, name="theirs")
    assert (made.name, getattr(made, "declared", None)) == ("theirs", declared)
    with pytest.raises(ValueError, match="is rotary code"):
        adapt(mine, "bias")
    assert adapt(lambda: mine) is mine


def test_fields_are_set_and_stay_set_when_built_anew() -> None:
    subject = adapt(half, "rotary", first=-4)
    assert isinstance(subject, Rotary)
    assert subject.make is not None
    assert subject.first == subject.make().first == -4
    with pytest.raises(TypeError, match="no colour"):
        adapt(half, "rotary", colour=1)


def rows_of(mask: Tensor) -> Tensor:
    assert mask.dim() == 3
    return mask


def plain(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """Attention on (B, H, T, D) with a mask in the canonical form."""
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        hides = mask.dtype == torch.bool
        scores = scores.masked_fill(~mask, -torch.inf) if hides else scores + mask
    out: Tensor = scores.softmax(-1) @ v
    return out


ATTENTION = {
    "plain": plain,
    "torch": torch.nn.functional.scaled_dot_product_attention,
    "tokens before heads": lambda q, k, v: plain(
        q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)).transpose(1, 2),
    "one head": lambda q, k, v: torch.einsum(
        "bts,bsd->btd", (torch.einsum("btd,bsd->bts", q, k) / q.shape[-1] ** 0.5).softmax(-1), v),
    "merged heads come back": lambda query, key, value: plain(query, key, value)
    .transpose(1, 2).flatten(2),
    "with weights": lambda q, k, v: (
        plain(q, k, v), (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)),
    "True hides": lambda q, k, v, mask=None: plain(q, k, v, None if mask is None else ~mask),
    "True hides, mask of (B, T, S)": lambda q, k, v, mask=None: plain(
        q, k, v, None if mask is None else ~rows_of(mask)[:, None]),
}  # fmt: skip


@pytest.mark.parametrize("form", ATTENTION)
def test_attention_of_each_form_attends_as_it_should(form: str) -> None:
    subject = adapt(ATTENTION[form])
    assert isinstance(subject, Attention)
    assert subject.attend is not None
    generator = torch.Generator().manual_seed(2)
    q, k, v = (torch.randn(2, 4, n, 8, generator=generator) for n in (3, 5, 5))
    torch.testing.assert_close(subject.attend(q, k, v, None), plain(q, k, v))
    seen = torch.rand(2, 1, 3, 5, generator=generator) > 0.3
    seen[..., 0] = True
    if "mask" in form or form in ("plain", "torch", "True hides"):
        assert "bool" in subject.masks
        torch.testing.assert_close(subject.attend(q, k, v, seen), plain(q, k, v, seen))
    if "float" in subject.masks:
        added = torch.where(seen, 0.5, -torch.inf)
        torch.testing.assert_close(subject.attend(q, k, v, added), plain(q, k, v, added))
    assert (subject.weights is not None) == (form == "with weights")


def test_groups_of_heads_are_found() -> None:
    subject = adapt(torch.nn.functional.scaled_dot_product_attention)
    assert isinstance(subject, Attention)
    assert (subject.heads, subject.groups, subject.masks) == (4, 2, ("bool", "float"))
    alone = adapt(ATTENTION["plain"])
    assert isinstance(alone, Attention)
    assert alone.groups == 4


def test_a_mask_that_leaks_is_still_a_mask() -> None:
    def leaky(q: Tensor, k: Tensor, v: Tensor, mask: Any = None) -> Tensor:
        scores = q @ k.mT
        return (scores if mask is None else scores.masked_fill(mask == 0, -1e-9)).softmax(-1) @ v

    subject = adapt(leaky)
    assert isinstance(subject, Attention)
    assert subject.masks == ("bool",)


@pytest.mark.parametrize("first", [False, True])
def test_torch_modules_know_whether_rows_come_first(first: bool) -> None:
    torch.manual_seed(3)
    module = nn.MultiheadAttention(16, 2, batch_first=first)
    subject = adapt(module)
    assert isinstance(subject, Attention)
    assert subject.layer is not None
    assert subject.hide is not None
    x = torch.randn(3, 5, 16)
    other = x.clone()
    other[1] += 1
    assert torch.equal(subject.layer(x)[0], subject.layer(other)[0]), "rows stay apart"
    assert ("(B, T, E)" in subject.adapted) == first
    keep = torch.ones(3, 5, dtype=torch.bool)
    keep[:, 3:] = False
    torch.testing.assert_close(subject.hide(x, keep)[:, :3], subject.layer(x[:, :3]))
    assert {"need_weights=True", "need_weights=False", "no fast path"} == set(subject.paths)
    for path in subject.paths.values():
        torch.testing.assert_close(path(x), subject.layer(x))
    assert (subject.heads, subject.embed) == (2, 16)


def test_an_attention_of_transformers_steps_with_its_cache() -> None:
    llama = pytest.importorskip("transformers.models.llama.modeling_llama")
    subject = adapt(llama.LlamaAttention)
    assert isinstance(subject, Attention)
    assert subject.layer is not None
    assert subject.step is not None
    x = torch.randn(2, 6, subject.embed)
    one, state = subject.step(x[:, :2], None)
    two, _ = subject.step(x[:, 2:], state)
    again, _ = subject.step(x[:, 2:], state)
    torch.testing.assert_close(torch.cat((one, two), 1), subject.layer(x))
    assert torch.equal(two, again), "a state can be used twice"


@pytest.mark.parametrize(
    ("module", "name"),
    [("deepseek_v3", "DeepseekV3Attention"), ("qwen2_vl", "Qwen2VLAttention"),
     ("stablelm", "StableLmAttention")],
)  # fmt: skip
def test_attention_of_transformers_of_odd_sizes_is_built(module: str, name: str) -> None:
    """Keys from a latent; positions of three axes, each with its share of the pairs."""
    file = pytest.importorskip(f"transformers.models.{module}.modeling_{module}")
    subject = adapt(getattr(file, name))
    assert isinstance(subject, Attention)
    assert subject.layer is not None
    x = torch.randn(2, 5, subject.embed)
    later = torch.cat((x[:, :4], torch.randn(2, 1, subject.embed)), 1)
    torch.testing.assert_close(subject.layer(later)[:, :4], subject.layer(x)[:, :4])


def test_a_layer_that_gives_its_cache_back_steps(tmp_path: Path) -> None:
    source = """
        class CausalAttention(nn.Module):
            def __init__(self, n_embd):
                super().__init__()
                self.qkv = nn.Linear(n_embd, 3 * n_embd)

            def forward(self, x, layer_past=None):
                q, k, v = self.qkv(x).chunk(3, -1)
                if layer_past is not None:
                    k = torch.cat((layer_past[0], k), 1)
                    v = torch.cat((layer_past[1], v), 1)
                late = torch.ones(q.shape[1], k.shape[1]).triu(k.shape[1] - q.shape[1] + 1)
                scores = (q @ k.mT).masked_fill(late.bool(), -torch.inf)
                return scores.softmax(-1) @ v, (k, v)
    """
    subject = adapt(user_file(tmp_path, source).CausalAttention)
    assert isinstance(subject, Attention)
    assert subject.layer is not None
    assert subject.step is not None
    x = torch.randn(2, 6, subject.embed)
    one, state = subject.step(x[:, :2], None)
    two, _ = subject.step(x[:, 2:], state)
    torch.testing.assert_close(torch.cat((one, two), 1), subject.layer(x))


def slopes(heads: int) -> Tensor:
    return 2.0 ** (-8 * torch.arange(1, heads + 1) / heads)


def distance(queries: int, keys: int) -> Tensor:
    return torch.arange(keys)[None] - torch.arange(keys - queries, keys)[:, None]


class Table(nn.Module):
    """A learned bias of offsets."""

    def __init__(self, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.table = nn.Embedding(65, num_heads)

    def forward(self, query_length: int, key_length: int) -> Tensor:
        at = distance(query_length, key_length).clamp(-32, 32) + 32
        found: Tensor = self.table(at)
        return found.permute(2, 0, 1)[None]


BIASES = {
    "f(T, S)": lambda T, S: slopes(4)[:, None, None] * distance(T, S),
    "f(heads, T)": lambda heads, n: slopes(heads)[:, None, None] * distance(n, n),
    "f(T), one head": lambda seq_len: distance(seq_len, seq_len) * 0.25,
    "f(q_len, kv_len, heads), heads last": lambda q_len, kv_len, num_heads: distance(q_len, kv_len)[
        ..., None] * slopes(num_heads),
    "a row for all queries": lambda heads, n: slopes(heads)[:, None, None] * torch.arange(n),
    "module": Table,
}  # fmt: skip


@pytest.mark.parametrize("form", BIASES)
def test_a_bias_of_each_form_is_heads_queries_keys(form: str) -> None:
    subject = adapt(BIASES[form], "bias")
    assert isinstance(subject, Bias)
    assert subject.bias is not None
    made = subject.bias(3, 7)
    assert made.shape == (subject.heads, 3, 7)
    rows = made - made[..., :1]
    assert torch.equal(made, subject.bias(7, 7)[:, 4:])
    if form not in ("module", "f(T), one head"):
        wanted = slopes(4)[:, None, None] * torch.arange(7)
        torch.testing.assert_close(rows, wanted.expand_as(rows))


def test_the_bias_of_t5_and_of_swin() -> None:
    t5 = pytest.importorskip("transformers.models.t5.modeling_t5")
    swin = pytest.importorskip("transformers.models.swin.modeling_swin")
    subject = adapt(t5.T5Attention, "bias")
    assert isinstance(subject, Bias)
    assert subject.bias is not None
    assert subject.bias(3, 7).shape == (4, 3, 7)
    window = adapt(swin.SwinRelativePositionBias, "bias")
    assert isinstance(window, Bias)
    assert window.window is not None
    assert window.window(2, 3).shape == (2, 6, 6)


def test_a_window_is_read_through_its_index() -> None:
    class Window(nn.Module):
        def __init__(self, window_size: tuple[int, int], num_heads: int = 2) -> None:
            super().__init__()
            rows, columns = window_size
            self.window_size, self.num_heads = window_size, num_heads
            count = (2 * rows - 1) * (2 * columns - 1)
            self.relative_position_bias_table = nn.Parameter(torch.arange(
                2.0 * count).reshape(count, 2))  # fmt: skip
            at = torch.cartesian_prod(torch.arange(rows), torch.arange(columns))
            off = at[:, None] - at[None] + torch.tensor([rows - 1, columns - 1])
            index = off[..., 0] * (2 * columns - 1) + off[..., 1]
            self.register_buffer("relative_position_index", index)

        def forward(self, x: Tensor) -> Tensor:
            return x

    subject = adapt(Window((2, 3)), "bias")
    assert isinstance(subject, Bias)
    assert subject.window is not None
    assert subject.index is not None
    assert subject.window(3, 4).shape == (2, 12, 12)
    assert len(set(subject.index((3, 4)).flatten().tolist())) == 5 * 7


def test_a_function_that_gives_an_index() -> None:
    def relative_index(sizes: tuple[int, ...]) -> Tensor:
        at = torch.cartesian_prod(*(torch.arange(n) for n in sizes))
        return ((at[:, None] - at[None] + 9) * torch.tensor([100, 1])).sum(-1)

    subject = adapt(relative_index, "bias")
    assert isinstance(subject, Bias)
    assert subject.index is not None
    assert subject.index((2, 2)).shape == (4, 4)


def test_masks_say_what_true_means() -> None:
    square = torch.ones(6, 6, dtype=torch.bool)
    for call, means in (
        (lambda n: torch.ones(n, n).tril(), "visible"),
        (lambda q_len, kv_len: distance(q_len, kv_len) > 0, "hidden"),
        (lambda T, S: torch.zeros(T, S).masked_fill(distance(T, S) > 0, -torch.inf), "visible"),
    ):
        subject: Any = adapt(call, "mask")
        mask = subject.mask(6, 6)
        assert subject.true_means == means
        seen = mask == 0 if mask.dtype != torch.bool else mask if means == "visible" else ~mask
        assert torch.equal(seen, square.tril())


def table(length: int, width: int) -> Tensor:
    angle = torch.arange(length)[:, None] * 10000.0 ** (-torch.arange(0, width, 2) / width)
    return torch.stack((angle.sin(), angle.cos()), -1).flatten(1)


class Adds(nn.Module):
    """x: [seq_len, batch_size, embedding_dim], as in torch's tutorial."""

    def __init__(self, d_model: int, max_len: int = 40) -> None:
        super().__init__()
        self.d_model = d_model
        self.register_buffer("pe", table(max_len, d_model)[:, None])

    def forward(self, x: Tensor) -> Tensor:
        """x: [seq_len, batch_size, embedding_dim]"""
        scaled: Tensor = x * self.d_model**0.5
        return scaled + self.get_buffer("pe")[: x.size(0)]


class Rows(Adds):
    """x: [batch_size, seq_len, embedding_dim]"""

    def forward(self, x: Tensor) -> Tensor:
        """x: [batch_size, seq_len, embedding_dim]"""
        return x + self.get_buffer("pe")[: x.size(0)]


@pytest.mark.parametrize(("call", "scale", "most"), [
    (table, 1.0, 4096), (lambda positions, d_model: table(len(positions), d_model), 1.0, 4096),
    (Adds, 4.0, 40), (lambda x: x + table(x.shape[1], x.shape[2]), 1.0, 4096),
])  # fmt: skip
def test_a_table_of_each_form_is_added(call: Any, scale: float, most: int) -> None:
    subject: Any = adapt(call, "additive")
    assert subject.most == most
    assert subject.scale == pytest.approx(scale)
    x = torch.randn(2, 7, subject.width)
    torch.testing.assert_close(subject.added(x), scale * x + table(7, subject.width))


def test_a_table_added_along_the_rows_stays_a_fault() -> None:
    subject: Any = adapt(Rows, "additive")
    added = subject.added(torch.zeros(3, 5, subject.width))
    assert torch.equal(added[:, 0], added[:, 1]), "source says rows come first, and is believed"


LAYERS = (nn.Linear(8, 8), nn.LayerNorm(16), nn.GRU(8, 8, batch_first=True))


@pytest.mark.parametrize("module", LAYERS)
def test_what_is_nothing_else_is_a_layer(module: nn.Module) -> None:
    assert adapt(module).kind == "layer"


def test_the_guess_is_said() -> None:
    assert "taken for attention code" in adapt(plain).adapted
    assert "taken for" not in adapt(plain, "attention").adapted


def test_code_that_fits_nothing_is_told_what_was_tried_and_what_to_write() -> None:
    def odd(colour: str, shade: str) -> str:
        return colour + shade

    with pytest.raises(NoAdapter) as caught:
        adapt(odd)
    assert set(caught.value.tried) == {"rotary", "attention", "bias", "additive", "mask", "layer"}
    text = str(caught.value)
    assert "test_adapting.py" in text
    assert "'shade'" in text
    assert "def subject():" in text


def test_a_class_that_wants_what_no_name_says_is_told() -> None:
    class Wants(nn.Module):
        def __init__(self, colour: str) -> None:  # noqa: ARG002
            super().__init__()

        def forward(self, x: Tensor) -> Tensor:
            return x

    with pytest.raises(NoAdapter, match="'colour'"):
        adapt(Wants)
    assert adapt(Wants, settings={"colour": "red"}).kind == "layer"


def test_what_cannot_be_called_is_told() -> None:
    with pytest.raises(NoAdapter, match="nothing that can be called"):
        adapt(3)
    with pytest.raises(ValueError, match="kind is one of"):
        adapt(plain, "colour")


def test_code_that_prints_is_not_heard(capfd: pytest.CaptureFixture[str]) -> None:
    def talks(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        print("hello")
        return plain(q, k, v)

    adapt(talks)
    assert capfd.readouterr() == ("", "")


def test_the_random_state_is_as_it_was() -> None:
    before = torch.random.get_rng_state()
    adapt(lambda x: x + torch.randn_like(x), "layer")
    assert torch.equal(before, torch.random.get_rng_state())


def test_code_that_does_not_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attnproof.numeric.programs.adapting.SECONDS", 0.2)

    def forever(x: Tensor) -> Tensor:
        while True:
            x = x + 1

    with pytest.raises(CodeFault, match="did not end"):
        adapt(forever)


@pytest.mark.parametrize(("model", "name", "axes"), [
    ("llama", "LlamaRotaryEmbedding", 0), ("gemma3", "Gemma3RotaryEmbedding", 0),
    ("deepseek_v2", "DeepseekV2RotaryEmbedding", 0), ("gpt_oss", "GptOssRotaryEmbedding", 0),
    ("qwen2_vl", "Qwen2VLRotaryEmbedding", 3), ("qwen2_vl", "Qwen2VLVisionRotaryEmbedding", 2),
])  # fmt: skip
def test_rotary_classes_of_transformers_adapt(model: str, name: str, axes: int) -> None:
    pytest.importorskip("transformers")
    from attnproof.numeric.programs.adapters.transformers import rotary_classes, the_class

    module = f"transformers.models.{model}.modeling_{model}"
    assert (module, name) in rotary_classes()
    subject = adapt(the_class(module, name))
    assert isinstance(subject, Rotary)
    assert subject.axes == axes
    at = torch.arange(4)[None]
    if axes:
        at = torch.stack([at + 3 * a for a in range(axes)], -1)
    x, y = torch.randn(1, 2, 4, subject.width), torch.randn(1, 2, 4, subject.width)
    scores = [(subject.turn(x, at + s) * subject.turn_key(y, 2 * at + s)).sum(-1) for s in (0, 5)]
    torch.testing.assert_close(*scores, atol=1e-3, rtol=1e-3)


def test_a_config_of_transformers_is_built_with_its_own_base() -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(hidden_size=32, num_attention_heads=4, head_dim=8)
    config.rope_parameters = {"rope_type": "default", "rope_theta": 300.0}
    subject = adapt(config)
    turns_as_half(subject, 300.0)
    assert subject.make is not None
    turns_as_half(subject.make(base=40.0), 40.0)
