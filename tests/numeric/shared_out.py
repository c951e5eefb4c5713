"""Run by torchrun: cases of sharded checks, printed by process 0 as JSON."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from attnproof.numeric.at_scale.call import Call, Kernel, kernel_named
from attnproof.numeric.row_selection import Replacement, Rows, Where, never
from attnproof.numeric.sharded.attention import CannotShare, check_sharded, processes
from attnproof.numeric.sharded.statements import SharedReading, measure_sharded
from attnproof.theorem_runs.catalogue import load_catalogue
from tests.numeric.statements import PAIRS

CPU = torch.device("cpu")
FLASH = kernel_named("flash", CPU)
CASES: dict[str, dict[str, Any]] = {
    "heads": {"heads": 4, "tokens": 700},
    "heads, causal": {"heads": 2, "tokens": 700, "causal": True},
    "rows": {"heads": 1, "tokens": 1_024},
    "bfloat16": {"heads": 2, "tokens": 640, "dtype": torch.bfloat16},
}
SELECT = SharedReading.select
THEOREMS = (
    "positions-must-move-with-their-tokens",
    "pooling-after-an-equivariant-map-is-invariant",
    "any-score-function-keeps-the-symmetries",
    "rows-of-softmax-are-distributions",
)
REFUSED: dict[str, dict[str, Any]] = {
    "causal rows": {"heads": 3, "tokens": 640, "causal": True},
    "uneven rows": {"heads": 3, "tokens": 650},
}


def call(kernel: Kernel = FLASH, **given: Any) -> Call:
    return Call(kernel, device=CPU, **given)


def wrong_on_process_1(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> Tensor:
    if dist.get_rank() == 1:
        k, v = k[:, 1:], v[:, 1:]
    return FLASH.attend(q, k, v, causal)


def _wrong_weights(scores: Any) -> Any:
    return torch.softmax(scores, -1) * (1.01 if dist.get_rank() == 1 else 1)


def _other_rows_on_process_1(self: SharedReading, value: Any, where: Where) -> Any:
    if dist.get_rank() == 1:
        where = tuple(rows and Rows(rows.places.flip(0)) for rows in where)
    return SELECT(self, value, where)


def main() -> None:
    found: dict[str, object] = {}
    with processes(CPU) as mesh:
        for name, given in CASES.items():
            found[name] = dataclasses.asdict(check_sharded(call(**given), mesh))
        faulty = Kernel("planted", wrong_on_process_1, FLASH.bound)
        for name in ("heads", "rows"):
            one = check_sharded(call(faulty, **CASES[name]), mesh)
            found[f"fault, {name}"] = dataclasses.asdict(one)
        for name, given in REFUSED.items():
            try:
                check_sharded(call(**given), mesh)
            except CannotShare as reason:
                found[name] = str(reason)
        (measured,) = measure_sharded(PAIRS, mesh)
        found["statement"] = dataclasses.asdict(measured)
        wrong = {"softmax": Replacement(_wrong_weights, (-2,), never)}
        (measured,) = measure_sharded(PAIRS, mesh, replaced=wrong)
        found["fault, statement"] = dataclasses.asdict(measured)
        (measured,) = measure_sharded(PAIRS, mesh, scale="small")
        found["small statement"] = dataclasses.asdict(measured)
        for name in THEOREMS:
            (entry,) = load_catalogue().only(name).entries
            for statement, expected in zip(entry.statements, ("proved", "refuted"), strict=True):
                read = measure_sharded(statement, mesh, scale="small", expected=expected)
                found[f"{name}, {expected}"] = [dataclasses.asdict(m) for m in read]
        (entry,) = load_catalogue().only(THEOREMS[0]).entries
        SharedReading.select = _other_rows_on_process_1  # type: ignore[method-assign]
        read = measure_sharded(entry.statements[0], mesh, scale="small")
        found["fault, selection"] = [dataclasses.asdict(m) for m in read]
        if mesh.get_rank() == 0:
            print(json.dumps(found))


if __name__ == "__main__":
    main()
