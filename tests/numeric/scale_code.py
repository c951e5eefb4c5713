"""Calls of a fused kernel at a size that a test has time for, and kernels with a planted fault."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from attnproof.numeric.at_scale.call import Call, Kernel, kernel_named
from attnproof.numeric.at_scale.methods import check_at_scale
from attnproof.numeric.results import WayRecord

CPU = torch.device("cpu")
FLASH = kernel_named("flash", CPU)
TOKENS = 1_100
DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.float64)
Attend = Callable[[Tensor, Tensor, Tensor, bool], Tensor]


def call(dtype: torch.dtype = torch.float32, **more: Any) -> Call:
    given = {"tokens": TOKENS, "heads": 2, "width": 64, "dtype": dtype, **more}
    return Call(**{"kernel": FLASH, **given})


def checked(asked: Call, way: str) -> WayRecord:
    (found,) = check_at_scale(asked, [way])
    return found


def planted(fault: Attend) -> Kernel:
    return replace(FLASH, name="planted", attend=fault)


def without(key: Tensor, place: int) -> Tensor:
    return torch.cat((key[:, :place], key[:, place + 1 :]), 1)


def drop(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> Tensor:
    at = k.shape[1] // 3
    if causal:
        return torch.cat(
            (
                FLASH.attend(q[:, :at], k[:, :at], v[:, :at], True),
                FLASH.attend(q[:, at:], k[:, at:], v[:, at:], True),
            ),
            1,
        )
    return FLASH.attend(q, without(k, at), without(v, at), False)


def double(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> Tensor:
    at = k.shape[1] // 3
    if causal:
        return FLASH.attend(q, k, torch.cat((v[:, :1], v[:, :-1]), 1), True)
    keys, values = (torch.cat((x, x[:, at : at + 1]), 1) for x in (k, v))
    return FLASH.attend(q, keys, values, False)


def other_scale(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> Tensor:
    width = q.shape[-1]
    return FLASH.attend(q.double().mul(math.sqrt(width / (width + 1))).to(q.dtype), k, v, causal)


def other_block(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> Tensor:
    out = FLASH.attend(q, k, v, causal).clone()
    rows = out.shape[1] // 4
    out[-1, rows : 2 * rows] = out[-1, 2 * rows : 3 * rows].clone()
    return out


def mask_off_by_one(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> Tensor:
    """Row i sees keys 0 to i + 1, the last row no more than there are."""
    assert causal
    first, last = FLASH.attend(q, k, v, True)[:, -1:], None
    after = torch.cat((q[:, :1], q[:, :-1]), 1)
    last = FLASH.attend(after, k, v, True)
    return torch.cat((last[:, 1:], first), 1)


FAULTS: dict[str, Attend] = {
    "a key dropped": drop,
    "a key counted twice": double,
    "another scale": other_scale,
    "a block of rows from another place": other_block,
}


def one_row(head: int, row: int) -> Attend:
    def fault(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> Tensor:
        out = FLASH.attend(q, k, v, causal).clone()
        out[head, row] = out[head, row - 1]
        return out

    return fault
