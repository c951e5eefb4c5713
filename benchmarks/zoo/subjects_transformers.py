"""Hugging Face transformers: every rotary class, rotate functions, attention, biases, tables.

Classes are built from their configs, with random weights, and nothing is downloaded.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from importlib import import_module
from typing import Any

from attnproof.programs.pretrained import the_class
from attnproof.programs.subject import adapted_as
from attnproof.programs.subjects import Subject

from .examining import Maker
from .same_code import by_source
from .transformers_models import models
from .transformers_tables import tables

PACKAGES = ("transformers",)
MODELS = "transformers.models"

# Attention classes by themselves: file and class.
ATTENTION = (
    "llama.LlamaAttention", "gpt_neox.GPTNeoXAttention", "t5.T5Attention", "bert.BertSelfAttention",
    "gpt2.GPT2Attention", "gemma.GemmaAttention", "gemma2.Gemma2Attention",
    "mistral.MistralAttention", "qwen2.Qwen2Attention", "phi.PhiAttention",
    "cohere.CohereAttention", "olmo2.Olmo2Attention", "gpt_oss.GptOssAttention",
    "opt.OPTAttention", "vit.ViTAttention", "roformer.RoFormerSelfAttention",
)  # fmt: skip
# Functions and modules of the other kinds: kind, file and name, and what they are given.
OTHERS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("rotary", "vjepa2.rotate_queries_or_keys", {}),
    ("rotary", "gptj.apply_rotary_pos_emb", {}),
    ("rotary", "codegen.apply_rotary_pos_emb", {}),
    ("rotary", "dinov3_vit.apply_rotary_pos_emb", {}),
    ("bias", "bloom.build_alibi_tensor", {}),
    ("bias", "falcon.build_alibi_tensor", {}),
    ("bias", "mpt.build_mpt_alibi_tensor", {}),
    ("bias", "swin.SwinRelativePositionBias", {}),
    ("bias", "beit.BeitRelativePositionBias", {}),
    ("additive", "whisper.sinusoids", {}),
)
# Configs, as they come, give these classes odd widths, or sections that are not part of the width.
SECTIONS = {
    "rope_type": "default",
    "rope_theta": 10000.0,
    "partial_rotary_factor": 0.5,
    "mrope_section": [8, 12, 12],
}
CONFIGS: dict[str, tuple[str, dict[str, Any]]] = {
    "Glm4MoeRotaryEmbedding": ("Glm4MoeConfig", {"head_dim": 128}),
    "Qwen3OmniMoeThinkerTextRotaryEmbedding": ("Qwen3OmniMoeTextConfig", {"head_dim": 128}),
    "Qwen3OmniMoeTalkerRotaryEmbedding": ("Qwen3OmniMoeTextConfig", {"head_dim": 128}),
    "Glm4vTextRotaryEmbedding": ("Glm4vTextConfig", {"rope_parameters": SECTIONS}),
    "Glm4vMoeTextRotaryEmbedding": (
        "Glm4vMoeTextConfig",
        {"head_dim": 128, "rope_parameters": SECTIONS},
    ),
    "GlmImageTextRotaryEmbedding": ("GlmImageTextConfig", {"rope_parameters": SECTIONS}),
}


def subjects() -> Iterator[tuple[str, Maker]]:
    """Every subject of the library: a name, and what makes it."""
    import_module(f"{MODELS}.llama.modeling_llama")  # loads what all others share
    for place in ATTENTION:
        file, _, name = place.partition(".")
        yield name, partial(_class, "attention", f"{MODELS}.{file}.modeling_{file}", name)
    for kind, place, more in OTHERS:
        file, _, name = place.partition(".")
        told = name if name[0].isupper() and kind != "bias" else f"{file}.{name} ({kind})"
        yield told, partial(_class, kind, f"{MODELS}.{file}.modeling_{file}", name, **more)
    yield from tables()
    for module, name in by_source():
        yield name, partial(_rotary, module, name)
    yield from models()


def same_code() -> list[tuple[str, ...]]:
    """The names of classes with the same code, the one that is looked at first."""
    return [(name, *others) for (_, name), others in by_source().items() if others]


def _rotary(module: str, name: str) -> Subject:
    if name not in CONFIGS:
        return _class("rotary", module, name)
    config, settings = CONFIGS[name]
    made = getattr(import_module(module.replace(".modeling_", ".configuration_")), config)
    return _class("rotary", module, name, settings={"config": made(**settings)})


def _class(kind: str, module: str, name: str, **more: Any) -> Subject:
    return adapted_as(the_class(module, name), kind=kind, name=name, **more)
