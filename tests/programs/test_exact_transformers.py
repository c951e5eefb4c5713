"""Code of transformers, unmodified, over finite fields: used rightly it obeys, used wrongly not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from torch import Tensor

from attnproof.programs.subjects import Attention, Rotary, Subject
from tests.programs.exact_asked import ATTENTION, OF_ROTARY, of, verdict


def llama(variant: str = "") -> tuple[Rotary, Attention]:
    from transformers.models.llama import modeling_llama as hf
    from transformers.models.llama.configuration_llama import LlamaConfig

    config = LlamaConfig(hidden_size=32, num_attention_heads=4, num_key_value_heads=2, head_dim=8)
    rotary = hf.LlamaRotaryEmbedding(config)
    module: Any = SimpleNamespace(num_key_value_groups=2, training=False)

    def rotate(x: Tensor, positions: Tensor) -> Tensor:
        cos, sin = rotary(x, positions)
        if variant == "interleaved table":
            cos, sin = (t[..., :4].repeat_interleave(2, -1) for t in (cos, sin))
        if variant == "cosines of the next position":
            cos = rotary(x, positions + 1)[0]
        found: Tensor = hf.apply_rotary_pos_emb(x, x, cos, sin)[0]
        return found

    def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        if variant == "tiled heads":
            k, v = k[:, [0, 1, 0, 1]], v[:, [0, 1, 0, 1]]
            groups: Any = SimpleNamespace(num_key_value_groups=1, training=False)
            found: Tensor = hf.eager_attention_forward(groups, q, k, v, mask, 8**-0.5)[0]
            return found.transpose(1, 2)
        if variant == "a key dropped":
            k, v = k[:, :, :-1], v[:, :, :-1]
            mask = None if mask is None else mask[..., :-1]
        found = hf.eager_attention_forward(module, q, k, v, mask, 8**-0.5)[0].transpose(1, 2)
        return found * 1.001 if variant == "a factor" else found

    return (
        Rotary(name="llama", rotate=rotate, width=8, heads=4, module=rotary),
        Attention(name="llama", attend=attend, heads=4, groups=2, width=8, masks=("float",)),
    )


def test_llama_of_transformers_obeys_exactly() -> None:
    pytest.importorskip("transformers")
    rotary, attention = llama()
    assert {f.verdict for f in of(rotary, *OF_ROTARY).values()} == {"holds"}
    assert {f.verdict for f in of(attention, *ATTENTION).values()} == {"holds"}


@pytest.mark.parametrize(
    ("variant", "law"),
    [
        ("interleaved table", "relative"),
        ("cosines of the next position", "norm"),
        ("tiled heads", "groups-of-heads"),
        ("a key dropped", "order-of-keys"),
        ("a factor", "rows-sum-to-one"),
    ],
)
def test_llama_of_transformers_used_wrongly_is_refused(variant: str, law: str) -> None:
    pytest.importorskip("transformers")
    rotary, attention = llama(variant)
    kind: Subject = rotary if law in OF_ROTARY[:7] else attention
    assert verdict(kind, law) == "broken"
