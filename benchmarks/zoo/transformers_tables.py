"""Tables and biases of transformers that are not called by a class's own signature alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn

from attnproof.programs.declarations import DeclaredAdditive, DeclaredBias
from attnproof.programs.subjects import Additive, Bias, Subject

WIDTH, ROWS, HEADS = 16, 256, 4
PADDING = 1  # the id of padding; a token with another id counts


def tables() -> Iterator[tuple[str, Callable[[], Subject]]]:
    """Each: its name, and what makes it."""
    for model in ("marian", "pegasus", "roformer", "informer"):
        yield f"{NAMES[model]}", partial(_filled_later, model)
    yield "M2M100SinusoidalPositionalEmbedding", _of_embeddings
    yield "Speech2TextSinusoidalPositionalEmbedding", partial(_of_ids, "speech_to_text")
    yield "fsmt.SinusoidalPositionalEmbedding", partial(_of_ids, "fsmt")
    yield "SpeechT5ScaledPositionalEncoding", _scaled
    for both in (True, False):
        yield f"T5Attention.compute_bias, {'encoder' if both else 'decoder'}", partial(_t5, both)


NAMES = {
    "marian": "MarianSinusoidalPositionalEmbedding",
    "pegasus": "PegasusSinusoidalPositionalEmbedding",
    "roformer": "RoFormerSinusoidalPositionalEmbedding",
    "informer": "InformerSinusoidalPositionalEmbedding",
    "speech_to_text": "Speech2TextSinusoidalPositionalEmbedding",
    "fsmt": "SinusoidalPositionalEmbedding",
}


def _class(model: str, name: str) -> Any:
    return getattr(import_module(f"transformers.models.{model}.modeling_{model}"), name)


def _table(
    module: nn.Module,
    added: Callable[[Tensor], Tensor],
    make: Callable[[], Subject],
    said: str,
    declared: DeclaredAdditive | None = None,
) -> Additive:
    return Additive(
        name=type(module).__name__,
        module=module.eval(),
        make=make,
        width=WIDTH,
        most=ROWS - 4,
        added=added,
        adapted=said,
        declared=declared,
    )


def _filled_later(model: str) -> Additive:
    """The class makes noise; its model fills in the table as it is initialized."""
    module = _class(model, NAMES[model])(ROWS, WIDTH)
    module.weight.data = module.create_weight()
    return _table(
        module,
        lambda x: x + module(x.shape[:2]).to(x.dtype),
        partial(_filled_later, model),
        "filled by create_weight, as its model does",
        DeclaredAdditive(),
    )


def _of_embeddings() -> Additive:
    """As fairseq has it: frequencies 10000^(−i/(D/2 − 1)), which no `DeclaredAdditive` writes."""
    module = _class("m2m_100", "M2M100SinusoidalPositionalEmbedding")(ROWS, WIDTH, PADDING)
    return _table(
        module,
        lambda x: x + module(inputs_embeds=x).to(x.dtype),
        _of_embeddings,
        "called with inputs_embeds",
    )


def _of_ids(model: str) -> Additive:
    module = _class(model, NAMES[model])(ROWS, WIDTH, PADDING)
    if hasattr(module, "make_weight") and hasattr(module, "weight"):
        module.make_weight(ROWS, WIDTH, PADDING)

    def added(x: Tensor) -> Tensor:
        found: Tensor = module(torch.zeros(x.shape[:2], dtype=torch.int64))
        return x + found.to(x.dtype)

    return _table(module, added, partial(_of_ids, model), "called with ids, none of them padding")


def _scaled() -> Additive:
    module = _class("speecht5", "SpeechT5ScaledPositionalEncoding")(0.0, WIDTH, ROWS)
    return _table(module, module, _scaled, "called with the tokens", DeclaredAdditive())


def _t5(both: bool) -> Bias:
    from transformers import T5Config

    config = T5Config(d_model=32, d_kv=8, num_heads=HEADS, is_decoder=not both)
    torch.manual_seed(0)
    module = _class("t5", "T5Attention")(config, has_relative_attention_bias=True, layer_idx=0)

    def bias(queries: int, keys: int) -> Tensor:
        found: Tensor = module.compute_bias(queries, keys, past_seen_tokens=keys - queries)
        return found[0].detach()

    return Bias(
        name="T5Attention.compute_bias",
        module=module,
        make=partial(_t5, both),
        heads=HEADS,
        bias=bias,
        causal=not both,
        adapted="compute_bias(T, S, past_seen_tokens=S − T)",
        declared=DeclaredBias(name="t5", heads=HEADS, bidirectional=both, buckets=32, distance=128),
    )
