"""Attention of many signatures becomes one call, with its masks, heads and caches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.subject import adapted_as
from tests.programs.adapting_code import plain, user_file


def rows_of(mask: Tensor) -> Tensor:
    assert mask.dim() == 3
    return mask


ATTENTION = {
    "plain": plain,
    "torch": torch.nn.functional.scaled_dot_product_attention,
    "tokens before heads": lambda q, k, v: plain(
        q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
    ).transpose(1, 2),
    "one head": lambda q, k, v: torch.einsum(
        "bts,bsd->btd", (torch.einsum("btd,bsd->bts", q, k) / q.shape[-1] ** 0.5).softmax(-1), v
    ),
    "merged heads come back": lambda query, key, value: (
        plain(query, key, value).transpose(1, 2).flatten(2)
    ),
    "with weights": lambda q, k, v: (plain(q, k, v), (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)),
    "True hides": lambda q, k, v, mask=None: plain(q, k, v, None if mask is None else ~mask),
    "True hides, mask of (B, T, S)": lambda q, k, v, mask=None: plain(
        q, k, v, None if mask is None else ~rows_of(mask)[:, None]
    ),
}


@pytest.mark.parametrize("form", ATTENTION)
def test_attention_of_each_form_attends_as_it_should(form: str) -> None:
    subject: Any = adapted_as(ATTENTION[form])
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
    subject: Any = adapted_as(torch.nn.functional.scaled_dot_product_attention)
    assert (subject.heads, subject.groups, subject.masks) == (4, 2, ("bool", "float"))
    alone: Any = adapted_as(ATTENTION["plain"])
    assert alone.groups == 4


def test_a_mask_that_leaks_is_still_a_mask() -> None:
    def leaky(q: Tensor, k: Tensor, v: Tensor, mask: Any = None) -> Tensor:
        scores = q @ k.mT
        return (scores if mask is None else scores.masked_fill(mask == 0, -1e-9)).softmax(-1) @ v

    subject: Any = adapted_as(leaky)
    assert subject.masks == ("bool",)


@pytest.mark.parametrize("first", [False, True])
def test_torch_modules_know_whether_rows_come_first(first: bool) -> None:
    torch.manual_seed(3)
    module = nn.MultiheadAttention(16, 2, batch_first=first)
    subject: Any = adapted_as(module)
    x = torch.randn(3, 5, 16)
    other = x.clone()
    other[1] += 1
    assert torch.equal(subject.layer(x)[0], subject.layer(other)[0]), "rows stay apart"
    assert (": B n E" in subject.line) == first
    keep = torch.ones(3, 5, dtype=torch.bool)
    keep[:, 3:] = False
    torch.testing.assert_close(subject.hide(x, keep)[:, :3], subject.layer(x[:, :3]))
    assert set(subject.paths) == {
        "need_weights=True",
        "need_weights=False",
        "no fast path",
        "a mask that shows every key",
        "one tensor for query, key, value",
    }
    for path in subject.paths.values():
        torch.testing.assert_close(path(x), subject.layer(x))
    assert (subject.heads, subject.embed) == (2, 16)


def test_an_attention_of_transformers_steps_with_its_cache() -> None:
    llama = pytest.importorskip("transformers.models.llama.modeling_llama")
    subject: Any = adapted_as(llama.LlamaAttention)
    x = torch.randn(2, 6, subject.embed)
    one, state = subject.step(x[:, :2], None)
    two, _ = subject.step(x[:, 2:], state)
    again, _ = subject.step(x[:, 2:], state)
    torch.testing.assert_close(torch.cat((one, two), 1), subject.layer(x))
    assert torch.equal(two, again), "a state can be used twice"


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("deepseek_v3", "DeepseekV3Attention"),
        ("qwen2_vl", "Qwen2VLAttention"),
        ("stablelm", "StableLmAttention"),
    ],
)
def test_attention_of_transformers_of_odd_sizes_is_built(module: str, name: str) -> None:
    """Keys from a latent; positions of three axes, each with its share of the pairs."""
    file = pytest.importorskip(f"transformers.models.{module}.modeling_{module}")
    subject: Any = adapted_as(getattr(file, name))
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
    subject: Any = adapted_as(user_file(tmp_path, source).CausalAttention)
    x = torch.randn(2, 6, subject.embed)
    one, state = subject.step(x[:, :2], None)
    two, _ = subject.step(x[:, 2:], state)
    torch.testing.assert_close(torch.cat((one, two), 1), subject.layer(x))
