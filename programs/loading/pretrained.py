"""Classes of Hugging Face transformers, built from configs without weights or network access.

`small_config` makes the config that a class is built from.  The function that applies the cos and
sin of a class is in its file.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import logging
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from ..code import DoesNotFit, Options
from ..execution.running import in_a_line, text_of

SMALL = {
    "hidden_size": 32,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "num_hidden_layers": 2,
    "intermediate_size": 48,
    "vocab_size": 40,
    "d_model": 32,
    "d_kv": 8,
    "num_heads": 4,
    "n_embd": 32,
    "n_head": 4,
    "n_layer": 2,
    "d_ff": 48,
    "num_layers": 2,
    "attention_dropout": 0.0,
    "max_position_embeddings": 512,
    "attn_implementation": "eager",
}
LAYERS = ("num_hidden_layers", "n_layer", "num_layers")  # other settings may list each of them
NARROW = {name: size for name, size in SMALL.items() if name not in LAYERS}
MAX_PARAMETERS = 2**27  # half a gigabyte in float32
NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
PARTS = (
    "text_config",
    "vision_config",
    "audio_config",
    "encoder_config",
    "decoder_config",
    "thinker_config",
    "talker_config",
    "encoder",
    "decoder",
)


def load_class(module: str, name: str) -> type[nn.Module]:
    """Return the class itself; its module is imported."""
    found: type[nn.Module] = getattr(importlib.import_module(module), name)
    return found


def is_config(thing: Any) -> bool:
    """Whether this is a config of transformers or a class of configs."""
    cls = thing if inspect.isclass(thing) else type(thing)
    return any(base.__name__ in ("PreTrainedConfig", "PretrainedConfig") for base in cls.__mro__)


def small_config(annotation: type[Any], cls: Any, told: Mapping[str, Any] = {}) -> Any:
    """Return a config for that class: the default for rotary code, small for code with weights.

    ``told``: settings of the config.  If the class is built from a part of it (text, vision), that
    part is returned.  Raises ``DoesNotFit``.
    """
    with _quiet():
        return _small_config(annotation, cls, told)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silence warnings about small configs, such as token ids that small vocabularies lack."""
    logger = logging.getLogger("transformers")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


def _small_config(annotation: type[Any], cls: Any, told: Mapping[str, Any]) -> Any:
    rotary = "rotary" in getattr(cls, "__name__", "").lower()
    failed = ""
    names = getattr(annotation, "attribute_map", {})  # num_hidden_layers may be set as n_layer
    own = {names.get(name, name) for name in told}
    for sizes in ({}, SMALL) if rotary else (SMALL, NARROW, {}):
        try:
            left = (k for k in sizes if names.get(k, k) not in own and _has(annotation, k))
            small = {k: sizes[k] for k in left}
            config = annotation(**{**small, **told})
            if inspect.isroutine(cls) or _needs_more(cls):
                return config
        except Exception as error:  # noqa: BLE001 (a config may refuse inconsistent sizes)
            failed = text_of(error, 200)
            continue
        for part in _parts(config):
            _completed(part)
            try:
                if not sizes:
                    _require_small(cls, part)
                cls(part, **_layer_index(cls))
            except Exception as error:  # noqa: BLE001 (it may be the wrong part of the config)
                large = str(error) if isinstance(error, DoesNotFit) else ""
                failed = large or failed or in_a_line(error, 200)
                continue
            return part
    raise DoesNotFit(f"{cls.__name__} could not be built from any {annotation.__name__}: {failed}")


def _require_small(cls: Any, config: Any) -> None:
    """Refuse to build a class of many parameters.  Raises ``DoesNotFit``."""
    try:
        with torch.device("meta"):
            made = cls(config, **_layer_index(cls))
    except Exception:  # noqa: BLE001 (it may read numbers, which there are none of)
        return
    many = sum(x.numel() for x in made.parameters())
    if many > MAX_PARAMETERS:
        raise DoesNotFit(
            f"with the sizes of {type(config).__name__} it has {many / 1e6:.0f} million "
            "parameters; give small ones, such as --set config.hidden_size=32 "
            "config.num_attention_heads=4"
        )


def _needs_more(cls: Any) -> bool:
    """Whether a class must be given more than a config and the index of a layer."""
    _, *known = inspect.signature(cls.__init__).parameters.values()
    needed = [one.name for one in known if one.default is one.empty and one.kind in NAMED]
    spare = known[0].kind in NAMED and known[0].name not in needed
    return spare or not {*needed} <= {known[0].name, "layer_idx"}


def _layer_index(cls: Any) -> dict[str, int]:
    """Return the index of the layer, for classes that take one."""
    known = inspect.signature(cls.__init__).parameters
    return {"layer_idx": 0} if "layer_idx" in known else {}


def _has(annotation: type[Any], name: str) -> bool:
    if name == "attn_implementation":
        return True
    names = {
        *getattr(annotation, "attribute_map", {}),
        *inspect.signature(annotation.__init__).parameters,
    }
    held = getattr(annotation, name, None)
    if isinstance(held, property) and held.fset is None:
        return False  # computed from other settings
    return name in names or hasattr(annotation, name)


def _parts(config: Any) -> Iterator[Any]:
    yield config
    for name in PARTS:
        part = getattr(config, name, None)
        if is_config(part):
            yield from _parts(part)


def _completed(config: Any) -> None:
    """Set a rotary base if the default config has none, and make the numbers of heads agree."""
    if getattr(config, "rope_parameters", "") is None:
        config.rope_parameters = {"rope_type": "default", "rope_theta": 10000.0}
    heads = getattr(config, "num_attention_heads", 0)
    if getattr(config, "kv_lora_rank", None) and getattr(config, "num_key_value_heads", 0) != heads:
        config.num_key_value_heads = heads  # keys from a shared latent: as many heads as queries


def sections_of(table: Any) -> list[int]:
    """Return how many pairs each position axis has in a table with several (text, rows, columns).

    Those of a small table are set so that they fit its width.
    """
    found = getattr(table, "mrope_section", None)
    frequencies = getattr(table, "inv_freq", None)
    if not isinstance(found, list | tuple) or frequencies is None:
        return []
    pairs, axes = len(frequencies), len(found)
    if sum(found) != pairs >= axes:
        table.mrope_section = [pairs // axes] * (axes - 1) + [pairs - pairs // axes * (axes - 1)]
    return list(table.mrope_section)


def layer_types(module: nn.Module, options: Options) -> Options:
    """Return the options, with the first ``layer_type`` of the module if its call takes one."""
    try:
        wanted = "layer_type" in inspect.signature(module.forward).parameters
    except (TypeError, ValueError):
        return options
    if not wanted or "layer_type" in options.arguments:
        return options
    found = [
        name.removesuffix("_inv_freq")
        for name, _ in module.named_buffers()
        if name.endswith("_inv_freq") and not name.endswith("original_inv_freq")
    ]
    if not found:
        return options
    return replace(options, arguments={**options.arguments, "layer_type": found[0]})


def class_for(config: Any, kind: str | None) -> type[nn.Module]:
    """Return the class to check for a config: its attention, or its rotary embedding.

    Raises ``DoesNotFit`` if its model has no such class.
    """
    cls = config if inspect.isclass(config) else type(config)
    space = importlib.import_module(cls.__module__.replace(".configuration_", ".modeling_"))
    ends = ("RotaryEmbedding",) if kind in (None, "rotary") else ("Attention", "SelfAttention")
    prefix = cls.__name__.removesuffix("Config")
    named = [v for k, v in vars(space).items() if k.endswith(ends) and inspect.isclass(v)]
    own = [v for v in named if v.__name__.startswith(prefix)]
    if not own and not named:
        raise DoesNotFit(f"{space.__name__} has no class whose name ends in {' or '.join(ends)}")
    return load_class(space.__name__, (own or named)[0].__name__)
