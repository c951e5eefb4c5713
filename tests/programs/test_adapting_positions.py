"""Rotary code, biases, masks and tables of many signatures become one call each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.code import NoSetting
from attnproof.programs.subject import adapted_as

from .adapting_code import FORMS, distance, rotates_as_half, user_file


def test_code_of_another_angle_is_seen_to_be_other_code(tmp_path: Path) -> None:
    source = FORMS["f(x, positions)"].replace("angles(positions,", "angles(positions + 1,")
    with pytest.raises(AssertionError):
        rotates_as_half(adapted_as(user_file(tmp_path, source).rope, kind="rotary"))


def test_another_base_is_another_build(tmp_path: Path) -> None:
    form = "a module that makes cos and sin, and a function beside it"
    subject: Any = adapted_as(user_file(tmp_path, FORMS[form]).rope, kind="rotary")
    rotates_as_half(subject.make(base=500.0), 500.0)
    assert subject.make(width=32).width == 32
    with pytest.raises(NoSetting, match="not colour"):
        subject.make(colour=1)


def test_a_function_takes_another_base_and_no_other_width(tmp_path: Path) -> None:
    source = """
        def rope(x, positions, theta=10000.0):
            angle = angles(positions, x.shape[-1], theta)[:, None]
            return turn_half(x, angle.cos(), angle.sin())
    """
    subject: Any = adapted_as(user_file(tmp_path, source).rope)
    rotates_as_half(subject.make(base=70.0), 70.0)
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
    subject: Any = adapted_as(file.rope, kind="rotary")
    assert not file.SEEN, "the adapter left nothing behind"
    one, other = subject.make(), subject.make()
    x, at = torch.ones(1, 1, 3, 8), torch.arange(3)[None]
    kept = one.rotate(x, at + 9)
    assert torch.equal(one.rotate(x, at), kept), "the planted fault: the first offset is kept"
    assert not torch.equal(other.rotate(x, at), kept)


def test_axes_that_source_names_are_believed(tmp_path: Path) -> None:
    source = """
        def rope(x):
            b, t, h, d = x.shape
            angle = angles(torch.arange(h), d)
            return turn_half(x, angle.cos(), angle.sin())
    """
    subject: Any = adapted_as(user_file(tmp_path, source).rope, kind="rotary")
    x, at = torch.ones(1, 3, 4, 8), torch.arange(4)[None]
    rotated = subject.rotate(x, at)
    assert torch.equal(rotated[:, :, 0], rotated[:, :, 1]), "tokens rotate alike: the fault is kept"
    assert not torch.equal(rotated[:, 0], rotated[:, 1])
    assert subject.line == "x: B n H D -> x"
    told = adapted_as(user_file(tmp_path, source).rope, "x: B H n D -> x")
    rotates_as_half(told)


@pytest.mark.parametrize(("places", "shape"), [("abt", "3 B n"), ("bta", "B n 3")])
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
    subject: Any = adapted_as(user_file(tmp_path, source).rope, kind="rotary")
    assert subject.axes == 3
    assert subject.line == f"x: B H n D, position_ids: {shape} -> x"


def test_the_end_of_a_table_is_found(tmp_path: Path) -> None:
    form = "a module with a table, f(x, input_pos=None), tokens before heads"
    subject: Any = adapted_as(user_file(tmp_path, FORMS[form]).rope, kind="rotary")
    assert subject.most == 64


@pytest.mark.parametrize(
    ("model", "name", "axes"),
    [
        ("llama", "LlamaRotaryEmbedding", 0),
        ("gemma3", "Gemma3RotaryEmbedding", 0),
        ("deepseek_v2", "DeepseekV2RotaryEmbedding", 0),
        ("gpt_oss", "GptOssRotaryEmbedding", 0),
        ("qwen2_vl", "Qwen2VLRotaryEmbedding", 3),
        ("qwen2_vl", "Qwen2VLVisionRotaryEmbedding", 2),
    ],
)
def test_rotary_classes_of_transformers_adapt(model: str, name: str, axes: int) -> None:
    pytest.importorskip("transformers")
    from attnproof.programs.loading.pretrained import load_class
    from benchmarks.zoo.subjects import rotary_classes

    module = f"transformers.models.{model}.modeling_{model}"
    assert (module, name) in rotary_classes()
    subject: Any = adapted_as(load_class(module, name))
    assert subject.axes == axes
    at = torch.arange(4)[None]
    if axes:
        at = torch.stack([at + 3 * a for a in range(axes)], -1)
    x, y = torch.randn(1, 2, 4, subject.width), torch.randn(1, 2, 4, subject.width)
    scores = [
        (subject.rotate(x, at + s) * subject.rotate_key(y, 2 * at + s)).sum(-1) for s in (0, 5)
    ]
    torch.testing.assert_close(*scores, atol=1e-3, rtol=1e-3)


def test_a_config_of_transformers_is_built_with_its_own_base() -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(hidden_size=32, num_attention_heads=4, head_dim=8)
    config.rope_parameters = {"rope_type": "default", "rope_theta": 300.0}
    subject: Any = adapted_as(config)
    rotates_as_half(subject, 300.0)
    rotates_as_half(subject.make(base=40.0), 40.0)


# biases, masks and tables that are added become one call each


def slopes(heads: int) -> Tensor:
    return 2.0 ** (-8 * torch.arange(1, heads + 1) / heads)


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
    "f(q_len, kv_len, heads), heads last": lambda q_len, kv_len, num_heads: (
        distance(q_len, kv_len)[..., None] * slopes(num_heads)
    ),
    "a row for all queries": lambda heads, n: slopes(heads)[:, None, None] * torch.arange(n),
    "module": Table,
}


@pytest.mark.parametrize("form", BIASES)
def test_a_bias_of_each_form_is_heads_queries_keys(form: str) -> None:
    subject: Any = adapted_as(BIASES[form], kind="bias")
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
    subject: Any = adapted_as(t5.T5Attention, kind="bias")
    assert subject.bias(3, 7).shape == (4, 3, 7)
    window: Any = adapted_as(swin.SwinRelativePositionBias, kind="bias")
    assert window.window(2, 3).shape == (2, 6, 6)


def test_a_window_is_read_through_its_index() -> None:
    class Window(nn.Module):
        def __init__(self, window_size: tuple[int, int], num_heads: int = 2) -> None:
            super().__init__()
            rows, columns = window_size
            self.window_size, self.num_heads = window_size, num_heads
            count = (2 * rows - 1) * (2 * columns - 1)
            self.relative_position_bias_table = nn.Parameter(
                torch.arange(2.0 * count).reshape(count, 2)
            )
            at = torch.cartesian_prod(torch.arange(rows), torch.arange(columns))
            off = at[:, None] - at[None] + torch.tensor([rows - 1, columns - 1])
            index = off[..., 0] * (2 * columns - 1) + off[..., 1]
            self.register_buffer("relative_position_index", index)

        def forward(self, x: Tensor) -> Tensor:
            return x

    subject: Any = adapted_as(Window((2, 3)), kind="bias")
    assert subject.window(3, 4).shape == (2, 12, 12)
    assert len(set(subject.index((3, 4)).flatten().tolist())) == 5 * 7


def test_a_function_that_gives_an_index() -> None:
    def relative_index(sizes: tuple[int, ...]) -> Tensor:
        at = torch.cartesian_prod(*(torch.arange(n) for n in sizes))
        return ((at[:, None] - at[None] + 9) * torch.tensor([100, 1])).sum(-1)

    subject: Any = adapted_as(relative_index, kind="bias")
    assert subject.index((2, 2)).shape == (4, 4)


def test_masks_say_what_true_means() -> None:
    square = torch.ones(6, 6, dtype=torch.bool)
    for call, means in (
        (lambda n: torch.ones(n, n).tril(), "visible"),
        (lambda q_len, kv_len: distance(q_len, kv_len) > 0, "hidden"),
        (lambda T, S: torch.zeros(T, S).masked_fill(distance(T, S) > 0, -torch.inf), "visible"),
    ):
        subject: Any = adapted_as(call, kind="mask")
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


@pytest.mark.parametrize(
    ("call", "scale", "most"),
    [
        (table, 1.0, 4096),
        (lambda positions, d_model: table(len(positions), d_model), 1.0, 4096),
        (Adds, 4.0, 40),
        (lambda x: x + table(x.shape[1], x.shape[2]), 1.0, 4096),
    ],
)
def test_a_table_of_each_form_is_added(call: Any, scale: float, most: int) -> None:
    subject: Any = adapted_as(call, kind="additive")
    assert subject.most == most
    assert subject.scale == pytest.approx(scale)
    x = torch.randn(2, 7, subject.width)
    torch.testing.assert_close(subject.added(x), scale * x + table(7, subject.width))


def test_a_table_added_along_the_rows_stays_a_fault() -> None:
    subject: Any = adapted_as(Rows, kind="additive")
    added = subject.added(torch.zeros(3, 5, subject.width))
    assert torch.equal(added[:, 0], added[:, 1]), "source says rows come first, and is believed"
