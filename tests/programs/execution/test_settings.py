"""Settings of configs, and of the whole process, which is as it was after code of others."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any, NoReturn

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.code import NoSetting
from attnproof.programs.execution.calling import restored_settings
from attnproof.programs.execution.running import CodeFault, limited, seeded
from attnproof.programs.no_adapter import NoAdapter
from attnproof.programs.subject import adapted_as
from attnproof.programs.subjects import Attention, Rotary
from attnproof.real_code.asserting import check_rotary
from attnproof.real_code.checking import look
from attnproof.real_code.request import CodeRequest, settings_of
from tests.conftest import torch_settings


class GPTConfig:
    """It has what it is given, and nothing else."""

    def __init__(self, block_size: int, **more: Any) -> None:
        self.block_size = block_size
        vars(self).update(more)


class CausalSelfAttention(nn.Module):
    def __init__(self, config) -> None:  # type: ignore[no-untyped-def]
        super().__init__()
        self.n_head, self.block_size = config.n_head, config.block_size
        self.parts = nn.Linear(config.n_embd, 3 * config.n_embd)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (
            part.unflatten(-1, (self.n_head, -1)).transpose(1, 2)
            for part in self.parts(x).chunk(3, -1)
        )
        late = torch.ones(x.shape[1], x.shape[1]).triu(1).bool()
        weights = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(late, -torch.inf).softmax(-1)
        out: Tensor = (weights @ v).transpose(1, 2).flatten(2)
        return out


def test_a_config_that_lacks_what_is_read_of_it_is_made_of_what_is_read() -> None:
    subject = adapted_as(CausalSelfAttention)
    assert isinstance(subject, Attention)
    assert "config.n_embd=16" in subject.adapted


@pytest.mark.parametrize(
    "words",
    [
        ["n_embd=32", "n_head=2", "block_size=64"],
        ["config.n_embd=32", "config.n_head=2", "config.block_size=64"],
    ],
)
def test_settings_of_a_config_are_told_by_their_names(words: list[str]) -> None:
    subject: Any = adapted_as(CausalSelfAttention, "x: B n E -> B n E", settings=settings_of(words))
    assert (subject.embed, subject.heads) == (32, 2)
    assert subject.module.block_size == 64


def test_what_is_no_name_is_no_setting() -> None:
    with pytest.raises(ValueError, match="wanted a setting NAME=VALUE"):
        settings_of(["config.=3"])
    with pytest.raises(NoSetting, match="is built with"):
        adapted_as(nn.MultiheadAttention, settings={"wide.head": 3})


def test_a_size_that_heads_share_is_that_of_tokens() -> None:
    class MultiHeadedAttention(CausalSelfAttention):
        def __init__(self, num_heads: int, size: int) -> None:
            super().__init__(GPTConfig(8, n_head=num_heads, n_embd=size))

    subject: Any = adapted_as(MultiHeadedAttention)
    assert subject.embed == 16


class NestedAttention(CausalSelfAttention):
    """The same of a config that has parts, which are read in three ways."""

    def __init__(self, config) -> None:  # type: ignore[no-untyped-def]
        attention = config.attention
        size, kept = config.model.embed_dim, config["cache"]["block_size"]
        super().__init__(GPTConfig(kept, n_head=attention.num_heads, n_embd=size))
        self.scaled = config.scaled


def test_a_config_has_parts_where_what_is_read_of_it_is_read_in_turn() -> None:
    subject = adapted_as(NestedAttention)
    assert isinstance(subject, Attention)
    for told in ("config.attention.num_heads=2", "config.model.embed_dim=16"):
        assert told in subject.adapted
    module: Any = subject.module
    assert module.scaled is False  # and is no part


@pytest.mark.parametrize("ahead", ["", "config."])
def test_a_part_of_a_part_is_told_by_its_path(ahead: str) -> None:
    words = [f"{ahead}attention.num_heads=4", f"{ahead}model.embed_dim=32"]
    subject: Any = adapted_as(NestedAttention, settings=settings_of(words))
    assert (subject.embed, subject.heads) == (32, 4)
    assert "num_heads=" not in subject.adapted
    with pytest.raises(NoAdapter):
        adapted_as(NestedAttention, settings=settings_of([f"{ahead}attention=4"]))


# what torch keeps for a whole process is as it was after code of others, however that ends


def change_everything() -> None:
    """Set each thing to another value than before."""
    cuda, mha = torch.backends.cuda, torch.backends.mha
    cuda.enable_flash_sdp(enabled=not cuda.flash_sdp_enabled())  # type: ignore[no-untyped-call]
    cuda.enable_math_sdp(enabled=not cuda.math_sdp_enabled())  # type: ignore[no-untyped-call]
    efficient = cuda.mem_efficient_sdp_enabled()  # type: ignore[no-untyped-call]
    cuda.enable_mem_efficient_sdp(enabled=not efficient)
    cuda.enable_cudnn_sdp(enabled=not cuda.cudnn_sdp_enabled())  # type: ignore[no-untyped-call]
    mha.set_fastpath_enabled(not mha.get_fastpath_enabled())
    torch.set_default_dtype(torch.float64)
    torch.set_default_device("meta")
    torch.set_grad_enabled(not torch.is_grad_enabled())
    torch.set_num_threads(torch.get_num_threads() + 1)
    torch.use_deterministic_algorithms(not torch.are_deterministic_algorithms_enabled())
    torch.set_float32_matmul_precision("high")
    torch.set_autocast_enabled("cpu", True)
    torch.backends.cudnn.benchmark = not torch.backends.cudnn.benchmark
    torch.manual_seed(123456)


@pytest.fixture(scope="module", autouse=True)
def libraries() -> None:
    """Torch loads libraries at the first change of some settings: no limit is to cut that short."""
    with restored_settings():
        change_everything()


def settings() -> dict[str, object]:
    """What the suite watches of every test, and more."""
    return torch_settings() | {
        "device": torch.get_default_device(),
        "threads": torch.get_num_threads(),
        "autocast": torch.is_autocast_enabled("cpu"),
        "tried": torch.backends.cudnn.benchmark,
        "cudnn": torch.backends.cuda.cudnn_sdp_enabled(),  # type: ignore[no-untyped-call]
        "random": torch.get_rng_state().tolist(),
    }


def quietly(x: Tensor) -> Tensor:
    change_everything()
    return x


def raising(x: Tensor) -> NoReturn:
    change_everything()
    raise ValueError(x.shape)


def endless(_: Tensor) -> NoReturn:
    change_everything()
    while True:
        time.sleep(0.01)


@pytest.mark.parametrize("code", [quietly, raising, endless])
def test_a_block_gives_back_what_it_was_given(code: Callable[[Tensor], Tensor]) -> None:
    before = settings()
    with contextlib.suppress(CodeFault, ValueError), restored_settings(), limited(0.05):
        code(torch.zeros(2))
    assert settings() == before


def test_both_ways_to_set_a_precision_are_set_back() -> None:
    """After the newer the older may raise."""
    backends: Any = torch.backends

    def now() -> tuple[str, ...]:
        parts = backends, backends.cuda.matmul, backends.mkldnn, backends.cudnn.conv
        return torch.get_float32_matmul_precision(), *(p.fp32_precision for p in parts)

    before = now()
    with restored_settings():
        torch.set_float32_matmul_precision("medium")
    assert now() == before
    with restored_settings():
        backends.fp32_precision = "tf32"
        backends.cuda.matmul.fp32_precision = "ieee"
    assert now() == before


def rotated(x: Tensor, position_ids: Tensor) -> Tensor:
    """Half-split, in float64."""
    frequencies = 10000.0 ** (-torch.arange(0, x.shape[-1], 2, dtype=torch.float64) / x.shape[-1])
    a = position_ids[:, None, :, None].to(torch.float64) * frequencies
    u, v = x.to(torch.float64).chunk(2, -1)
    return torch.cat((u * a.cos() - v * a.sin(), v * a.cos() + u * a.sin()), -1).to(x.dtype)


def rope_that_sets(x: Tensor, position_ids: Tensor) -> Tensor:
    result = rotated(x, position_ids)
    torch.set_default_dtype(torch.float64)
    torch.backends.cuda.enable_math_sdp(enabled=False)
    torch.manual_seed(7)
    return result


def rope_that_sets_and_raises(x: Tensor, position_ids: Tensor) -> Tensor:
    result = rope_that_sets(x, position_ids)
    if int(position_ids.max()) > 1000:
        raise RuntimeError("no more")
    return result


@pytest.mark.parametrize("code", [rope_that_sets, rope_that_sets_and_raises])
def test_an_assertion_leaves_the_process_as_it_was(code: Callable[..., Tensor]) -> None:
    before = settings()
    check_rotary(code, ["norm", "linear"], methods=["measured", "exact"])
    assert settings() == before


def test_an_assertion_that_finds_no_adapter_does_so_too() -> None:
    before = settings()
    with pytest.raises(TypeError, match="no adapter fits"):
        check_rotary(raising)
    assert settings() == before


@pytest.mark.usefixtures("every_length")
def test_what_is_set_in_one_law_is_not_set_in_the_next() -> None:
    at_the_end: list[tuple[str, torch.dtype]] = []

    def tell(event: dict[str, Any]) -> None:
        if event["event"] == "found":
            at_the_end.append((event["finding"]["method"], torch.get_default_dtype()))

    subject = Rotary(name="rope", rotate=rope_that_sets, width=8)
    asked = CodeRequest(target="<rope>", laws=("norm", "linear"), methods=("measured", "exact"))
    look(subject, asked, tell)
    assert at_the_end == [
        (method, torch.float32) for method in ("measured", "exact") for _ in range(2)
    ]


def test_seeding_is_that_of_torch() -> None:
    with restored_settings():
        torch.manual_seed(5)
        drawn = torch.rand(4)
        seeded(6)
        assert not torch.equal(torch.rand(4), drawn)
        seeded(5)
        assert torch.equal(torch.rand(4), drawn)
