"""Whole models of transformers, of one small layer each, as attention code on token embeddings.

A model is called the ways that people call it: all tokens at once, in steps with its cache, with
padding, from a later position on, with documents packed into a row, and with the other kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor

from attnproof.programs.declarations import DeclaredAttention
from attnproof.programs.subjects import Attention, Subject

EMBED, HEADS, WIDTH, WINDOW = 32, 4, 8, 3
SIZES = {
    "vocab_size": 40,
    "hidden_size": EMBED,
    "intermediate_size": 48,
    "num_hidden_layers": 1,
    "num_attention_heads": HEADS,
    "max_position_embeddings": 256,
    "pad_token_id": 0,
}
DROPOUTS = (
    "attention_dropout",
    "hidden_dropout",
    "resid_pdrop",
    "attn_pdrop",
    "embd_pdrop",
    "dropout_rate",
    "dropout",
)
GROUPS = {**SIZES, "num_key_value_heads": 2, "head_dim": WIDTH}


@dataclass(frozen=True)
class _Model:
    """One model: its name, the settings of its config, and what is said of it.

    ``ids``: whether it takes position ids; ``packs``: whether it sees documents by them.
    """

    name: str
    settings: dict[str, Any]
    positions: str = "relative"
    ids: bool = True
    packs: bool = False
    causal: bool = True
    window: int | None = None
    more: dict[str, Any] = field(default_factory=dict)


CAUSAL = (
    _Model("Llama", GROUPS, packs=True),
    _Model("Mistral", {**GROUPS, "sliding_window": WINDOW}, packs=True, window=WINDOW),
    _Model("Gemma", GROUPS, packs=True),
    _Model(
        "Gemma2",
        {
            **GROUPS,
            "sliding_window": WINDOW,
            "query_pre_attn_scalar": WIDTH,
            "layer_types": ["sliding_attention"],
        },
        window=WINDOW,
    ),
    _Model("Qwen2", GROUPS, packs=True),
    _Model(
        "GptOss",
        {
            **GROUPS,
            "sliding_window": WINDOW,
            "layer_types": ["sliding_attention"],
            "num_local_experts": 2,
            "num_experts_per_tok": 1,
        },
        window=WINDOW,
    ),
    _Model("GPTNeoX", SIZES, packs=True),
    _Model(
        "GPTJ",
        {
            "vocab_size": 40,
            "n_embd": EMBED,
            "n_head": HEADS,
            "n_layer": 1,
            "n_positions": 256,
            "rotary_dim": 4,
        },
    ),
    _Model("Phi", SIZES),
    _Model("Falcon", {**SIZES, "alibi": False}),
    _Model("Falcon", {**SIZES, "alibi": True}, ids=False, more={"said": "alibi"}),
    _Model(
        "Bloom", {"vocab_size": 40, "hidden_size": EMBED, "n_layer": 1, "n_head": HEADS}, ids=False
    ),
    _Model(
        "Mpt",
        {"vocab_size": 40, "d_model": EMBED, "n_heads": HEADS, "n_layers": 1, "max_seq_len": 64},
        ids=False,
    ),
    _Model(
        "GPT2",
        {"vocab_size": 40, "n_embd": EMBED, "n_head": HEADS, "n_layer": 1, "n_positions": 256},
        positions="absolute",
        packs=True,
    ),
    _Model("OPT", {**SIZES, "ffn_dim": 48, "word_embed_proj_dim": EMBED}, positions="absolute"),
)
BOTH_WAYS = (
    _Model("Bert", SIZES, positions="absolute", causal=False),
    _Model(
        "T5Encoder",
        {
            "vocab_size": 40,
            "d_model": EMBED,
            "d_kv": WIDTH,
            "d_ff": 48,
            "num_layers": 1,
            "num_heads": HEADS,
        },
        ids=False,
        causal=False,
    ),
    _Model("ModernBert", {**SIZES, "global_attn_every_n_layers": 1}, causal=False),
)


def models() -> Iterator[tuple[str, Callable[[], Subject]]]:
    """Each model: its name, and what makes it."""
    for one in (*CAUSAL, *BOTH_WAYS):
        said = f" ({one.more['said']})" if one.more else ""
        yield f"{one.name}Model{said}", partial(_subject, one)


def _built(one: _Model, kernel: str) -> Any:
    import transformers

    family = one.name.removesuffix("Encoder")
    config = getattr(transformers, f"{family}Config")(
        **one.settings,
        attn_implementation=kernel,
        **dict.fromkeys(DROPOUTS, 0.0),
    )
    torch.manual_seed(0)
    return getattr(transformers, f"{one.name}Model")(config).eval()


def _subject(one: _Model) -> Attention:
    model = _built(one, "eager")
    calls = _Calls(model, one)
    paths: dict[str, Callable[..., Tensor]] = {}
    try:
        paths["sdpa"] = _Calls(_built(one, "sdpa"), one).layer
    except (ValueError, ImportError):  # a model without that kernel says so
        paths = {}
    causal, rope = one.causal, one.ids and one.positions == "relative"
    return Attention(
        name=f"{one.name}Model",
        module=model,
        make=lambda: _subject(one),
        paths=paths,
        adapted=f"{one.name}Model of one layer, called with inputs_embeds, eager kernel",
        layer=calls.layer,
        hide=calls.hide,
        embed=EMBED,
        heads=HEADS,
        groups=HEADS,
        width=WIDTH,
        step=calls.step if causal else None,
        padded_step=calls.padded_step if causal else None,
        documents=calls.packed if one.packs else None,
        whole_layer=calls.further if rope else None,
        positional=one.positions == "absolute",
        declared=DeclaredAttention(causal=causal, window=one.window, positions=one.positions),
    )


class _Calls:
    """The ways in which a model is called."""

    def __init__(self, model: Any, one: _Model) -> None:
        self.model, self.one = model, one

    def _call(self, x: Tensor, **more: Any) -> Any:
        if self.one.causal:
            more.setdefault("use_cache", False)
        return self.model(inputs_embeds=x, **more)

    def layer(self, x: Tensor) -> Tensor:
        found: Tensor = self._call(x).last_hidden_state
        return found

    def hide(self, x: Tensor, keep: Tensor) -> Tensor:
        more: dict[str, Any] = {"attention_mask": keep.long()}
        if self.one.ids and self.one.positions == "absolute" and self.one.causal:
            more["position_ids"] = (keep.long().cumsum(-1) - 1).clamp(min=0)
        found: Tensor = self._call(x, **more).last_hidden_state
        return found

    def further(self, x: Tensor, first: int) -> Tensor:
        ids = torch.arange(x.shape[1])[None].expand(x.shape[0], -1) + first
        found: Tensor = self._call(x, position_ids=ids).last_hidden_state
        return found

    def packed(self, x: Tensor, ids: Tensor) -> Tensor:
        found: Tensor = self._call(x, position_ids=ids).last_hidden_state
        return found

    def step(self, x: Tensor, state: Any) -> tuple[Tensor, Any]:
        from transformers import DynamicCache

        state = DynamicCache(config=self.model.config) if state is None else state
        found = self._call(x, past_key_values=state, use_cache=True)
        return found.last_hidden_state, found.past_key_values

    def padded_step(self, x: Tensor, state: Any, pads: Tensor) -> tuple[Tensor, Any]:
        """As `generate` calls it: a mask over all tokens so far, positions counted along it."""
        from transformers import DynamicCache

        cache, before = (DynamicCache(config=self.model.config), 0) if state is None else state
        count = before + x.shape[1]
        keep = (torch.arange(count)[None] >= pads[:, None]).long()
        more: dict[str, Any] = {"attention_mask": keep}
        if self.one.ids:
            more["position_ids"] = (keep.cumsum(-1) - 1).clamp(min=0)[:, before:]
        found = self._call(x, past_key_values=cache, use_cache=True, **more)
        return found.last_hidden_state, (found.past_key_values, count)
