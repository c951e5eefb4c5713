"""Rotary code of many signatures becomes one call, and rotates as it should."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from attnproof.programs.code import NoSetting
from attnproof.programs.subject import adapted_as
from attnproof.programs.subjects import Rotary
from tests.programs.adapting_code import FORMS, rotates_as_half, user_file


@pytest.mark.parametrize("form", FORMS)
def test_rotary_code_of_each_form_rotates_as_it_should(form: str, tmp_path: Path) -> None:
    subject = adapted_as(user_file(tmp_path, FORMS[form]).rope, kind="rotary")
    rotates_as_half(subject)
    assert "called as" in subject.adapted
    assert subject.make is not None
    rotates_as_half(subject.make())


@pytest.mark.parametrize("form", FORMS)
def test_rotary_code_is_taken_for_rotary_code(form: str, tmp_path: Path) -> None:
    assert adapted_as(user_file(tmp_path, FORMS[form]).rope).kind == "rotary"


def test_code_of_another_angle_is_seen_to_be_other_code(tmp_path: Path) -> None:
    source = FORMS["f(x, positions)"].replace("angles(positions,", "angles(positions + 1,")
    with pytest.raises(AssertionError):
        rotates_as_half(adapted_as(user_file(tmp_path, source).rope, kind="rotary"))


def test_another_base_is_another_build(tmp_path: Path) -> None:
    form = "a module that makes cos and sin, and a function beside it"
    subject = adapted_as(user_file(tmp_path, FORMS[form]).rope, kind="rotary")
    assert subject.make is not None
    rotates_as_half(subject.make(base=500.0), 500.0)
    assert subject.make(width=32).width == 32
    with pytest.raises(NoSetting, match="no colour"):
        subject.make(colour=1)


def test_a_function_takes_another_base_and_no_other_width(tmp_path: Path) -> None:
    source = """
        def rope(x, positions, theta=10000.0):
            angle = angles(positions, x.shape[-1], theta)[:, None]
            return turn_half(x, angle.cos(), angle.sin())
    """
    subject = adapted_as(user_file(tmp_path, source).rope)
    assert subject.make is not None
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
    subject = adapted_as(file.rope, kind="rotary")
    assert subject.make is not None
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
    subject = adapted_as(user_file(tmp_path, source).rope, kind="rotary")
    assert isinstance(subject, Rotary)
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
    subject = adapted_as(user_file(tmp_path, source).rope, kind="rotary")
    assert isinstance(subject, Rotary)
    assert subject.axes == 3
    assert subject.line == f"x: B H n D, position_ids: {shape} -> x"


def test_the_end_of_a_table_is_found(tmp_path: Path) -> None:
    form = "a module with a table, f(x, input_pos=None), tokens before heads"
    subject = adapted_as(user_file(tmp_path, FORMS[form]).rope, kind="rotary")
    assert isinstance(subject, Rotary)
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
    from attnproof.programs.pretrained import rotary_classes, the_class

    module = f"transformers.models.{model}.modeling_{model}"
    assert (module, name) in rotary_classes()
    subject = adapted_as(the_class(module, name))
    assert isinstance(subject, Rotary)
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
    subject = adapted_as(config)
    rotates_as_half(subject, 300.0)
    assert subject.make is not None
    rotates_as_half(subject.make(base=40.0), 40.0)
