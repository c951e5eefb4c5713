"""What rotary code is, read off the classes of transformers."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from attnproof.programs.identify import identify
from attnproof.programs.subjects import Rotary

from .identified import part

BRAIN, HALF = torch.bfloat16, torch.float16


def _llama(**options: Any) -> tuple[Rotary, torch.nn.Module]:
    from transformers import LlamaConfig
    from transformers.models.llama import modeling_llama

    base = options.pop("base", 500_000.0)
    most = options.pop("most", 131072)
    config = LlamaConfig(
        hidden_size=512,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=most,
        rope_parameters={"rope_theta": base, "rope_type": "default", **options},
    )
    made = modeling_llama.LlamaRotaryEmbedding(config)

    def rotate(x: Tensor, p: Tensor) -> Tensor:
        found: Tensor = modeling_llama.apply_rotary_pos_emb(x, x, *made(x, p))[0]
        return found

    return Rotary(name="llama", rotate=rotate, width=128), made


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "half-split, width 128, base 500000, angles"),
        (
            {"base": 10_000.0, "rope_type": "linear", "factor": 8.0},
            "base 10000, positions divided by 8, angles",
        ),
        (
            {
                "rope_type": "llama3",
                "factor": 8.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 8192,
            },
            "base 500000, Llama 3.1 factor 8, low 1, high 4, original length 8192, angles",
        ),
        (
            {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768},
            "base 500000, YaRN factor 4, original length 32768, attention factor 1.139, angles",
        ),
        (
            {
                "base": 150_000.0,
                "rope_type": "yarn",
                "factor": 32.0,
                "truncate": False,
                "original_max_position_embeddings": 4096,
            },
            "base 150000, YaRN factor 32, original length 4096, attention factor 1.347, angles",
        ),
        (
            {"base": 10_000.0, "most": 2048, "rope_type": "dynamic", "factor": 4.0},
            "base 10000, dynamic NTK factor 4, original length 2048, angles",
        ),
    ],
)
def test_the_ladders_of_transformers(options: Any, words: str) -> None:
    found = identify(_llama(**options)[0])
    assert words in found.sentence
    assert part(found, "angles").words == "angles computed in float32"


def test_a_cast_module_of_transformers_is_refused() -> None:
    code, module = _llama()
    module.to(BRAIN)
    found = identify(code)
    assert part(found, "angles").words == "frequencies rounded to bfloat16"
    assert part(found, "exact to").value < 20
    assert part(found, "base").value == 500_000


def test_frequencies_that_switch_with_the_length() -> None:
    code, _ = _llama(
        base=10_000.0,
        rope_type="longrope",
        short_factor=[1 + 0.01 * j for j in range(64)],
        long_factor=[1 + 0.5 * j for j in range(64)],
        original_max_position_embeddings=4096,
    )
    found = identify(code)
    assert part(found, "length").words == "other frequencies in calls of more than 4096 positions"
    assert not part(found, "length").certain
    assert identify(_llama()[0]).part("length") is None


@pytest.mark.parametrize("name", ["gpt_neox", "phi"])
def test_a_quarter_of_the_channels_of_transformers(name: str) -> None:
    import importlib

    import transformers

    short = {"gpt_neox": "GPTNeoX", "phi": "Phi"}[name]
    config = getattr(transformers, f"{short}Config")(
        hidden_size=256,
        num_attention_heads=2,
        rope_parameters={
            "rope_theta": 10_000.0,
            "rope_type": "default",
            "partial_rotary_factor": 0.25,
        },
    )
    module = importlib.import_module(f"transformers.models.{name}.modeling_{name}")
    made = getattr(module, f"{short}RotaryEmbedding")(config)

    def rotate(x: Tensor, p: Tensor) -> Tensor:
        cos, sin = made(x, p)
        n = cos.shape[-1]
        rotated = module.apply_rotary_pos_emb(x[..., :n], x[..., :n], cos, sin)[0]
        return torch.cat((rotated, x[..., n:]), -1)

    found = identify(Rotary(name=name, rotate=rotate, width=128))
    assert found.sentence.startswith("rotary, half-split, width 32 of 128, base 10000, angles")


def test_the_three_axes_of_qwen2_vl() -> None:
    from transformers.models.qwen2_vl import modeling_qwen2_vl
    from transformers.models.qwen2_vl.configuration_qwen2_vl import Qwen2VLTextConfig

    config = Qwen2VLTextConfig(
        hidden_size=512,
        num_attention_heads=4,
        num_key_value_heads=4,
        rope_parameters={"rope_theta": 1e6, "rope_type": "default", "mrope_section": [16, 24, 24]},
    )
    make: Any = modeling_qwen2_vl.Qwen2VLRotaryEmbedding
    made = make(config)

    def rotate(x: Tensor, p: Tensor) -> Tensor:
        cos, sin = made(x, p.permute(2, 0, 1))
        found: Tensor = modeling_qwen2_vl.apply_rotary_pos_emb(x, x, cos, sin)[0]
        return found

    found = identify(Rotary(name="qwen2-vl", rotate=rotate, width=128, axes=3))
    assert part(found, "axes").words == "3 axes with 16, 24, 24 pairs"
    assert part(found, "base").value == 1_000_000
