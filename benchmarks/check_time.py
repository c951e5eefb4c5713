"""`attnproof check` of a function, of a layer, and from the store, in fresh processes.

Processor time in user code, of a check and the processes that it starts: it depends less on what
else the machine does than the time on the wall.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.table import Table

from benchmarks.reference_programs import SOURCE

LLAMA = "transformers.models.llama.modeling_llama"
TARGETS = {
    "attention of q, k, v": [f"{SOURCE}::causal_attention", "--declare", "attention:causal"],
    "rotary function": [f"{SOURCE}::rotate_halves"],
    "layer of one head": [f"{SOURCE}::one_head"],
    "apply_rotary_pos_emb": [f"{LLAMA}::apply_rotary_pos_emb"],
    "LlamaAttention": [f"{LLAMA}::LlamaAttention"],
}


def check_time(rounds: int = 3, targets: dict[str, list[str]] | None = None) -> Table:
    """User seconds of whole checks: the least of some rounds, and what is beyond `import torch`."""
    table = Table("check of", "user s", "beyond import torch", "from the store", title="Checks")
    torch = _least([sys.executable, "-c", "import torch"], rounds)
    table.add_row("(import torch)", f"{torch:.2f}", "", "")
    with tempfile.TemporaryDirectory() as folder:
        for name, words in (TARGETS if targets is None else targets).items():
            store = ["--store", str(Path(folder) / "store.sqlite")]
            command = [sys.executable, "-m", "attnproof", "check", *words, *store]
            whole = _least([*command, "--fresh"], rounds)
            again = _least(command, rounds)
            table.add_row(name, f"{whole:.2f}", f"{whole - torch:.2f}", f"{again:.2f}")
    return table


def _least(command: list[str], rounds: int) -> float:
    return min(_user(command) for _ in range(rounds))


def _user(command: list[str]) -> float:
    """User seconds of a process and of those that it waited for; it may say that laws break."""
    before = os.times().children_user
    done = subprocess.run(command, check=False, capture_output=True)
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stderr.decode(errors="replace"))
    return os.times().children_user - before


def main() -> None:
    """Print the table."""
    from rich.console import Console

    Console(width=140).print(check_time())


if __name__ == "__main__":
    main()
