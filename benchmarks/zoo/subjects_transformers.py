"""Hugging Face transformers: every rotary class, rotate functions, attention, biases, tables.

Classes are built from their configs, with random weights, and nothing is downloaded.

The library repeats a rotary class in every model that uses it.  Each source is looked at once: two
are the same code if their text, and that of the functions in their file with rotary or rotate in
their name, is equal but for the names of models, and if their configs choose the same function
among those.  Llama's class is looked at for all of its copies; of others the first by name.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from attnproof.programs.pretrained import load_class, rotary_classes
from attnproof.programs.subject import adapted_as
from attnproof.programs.subjects import Subject

from .examining import Maker
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
BEST_KNOWN = ("LlamaRotaryEmbedding",)
# The setting by which a config chooses the function that rotates neighbouring channels.
CHOOSES = re.compile(r"^\s*rope_interleave\b[^=\n]*=\s*(\w+)", re.MULTILINE)


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
    return adapted_as(load_class(module, name), kind=kind, name=name, **more)


@cache
def by_source() -> dict[tuple[str, str], tuple[str, ...]]:
    """(module, class) of the first class of each source, with the names of its copies."""
    first: dict[str, tuple[str, str]] = {}
    found: dict[tuple[str, str], list[str]] = {}
    for module, name in sorted(rotary_classes(), key=lambda place: place[1] not in BEST_KNOWN):
        text = _text(module, name)
        if text not in first:
            first[text] = (module, name)
            found[module, name] = []
        else:
            found[first[text]].append(name)
    return {place: tuple(names) for place, names in found.items()}


def _text(module: str, name: str) -> str:
    """The code of a class and of the functions that rotate, less comments and names of models."""
    tree = ast.parse(_source(module))
    model = name.partition("Rotary")[0]
    parts = []
    for node in tree.body:
        rotates = isinstance(node, ast.FunctionDef) and re.search("rotary|rotate", node.name)
        if rotates or (isinstance(node, ast.ClassDef) and node.name == name):
            for inner in ast.walk(node):
                body = getattr(inner, "body", None)
                if isinstance(body, list) and body and _is_docstring(body[0]):
                    inner.body = body[1:] or [ast.Pass()]  # type: ignore[attr-defined]
            parts.append(ast.unparse(node))
    text = "\n".join([*sorted(parts), *_chosen(module)])
    return re.sub(rf"\b{model}\w*?(Config|Rotary)", r"Model\1", text) if model else text


def _chosen(module: str) -> list[str]:
    """What the config of the model says of the function that rotates, if it says something."""
    place = module.replace(".modeling_", ".configuration_")
    return CHOOSES.findall(_source(place)) if place != module and find_spec(place) else []


def _source(module: str) -> str:
    spec = find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).read_text(encoding="utf-8")


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
