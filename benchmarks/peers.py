"""Compare the cost of rotation equivariance checks: e3nn's, a direct loop, and attnproof's.

One head of attention over 1,024 tokens, each 21 vectors in space ("21x1o"), in float32, under the
same 20 elements of O(3).  A direct loop needs 21 forward passes, one for each element and one
without rotation; evaluating several elements in one call may cost less.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from time import perf_counter

import torch
import torch.nn.functional as F  # noqa: N812 (its usual name)
from rich.table import Table
from torch import Tensor

from attnproof.numeric.implementations import implementations_named
from attnproof.numeric.torch_reading import TorchReading
from attnproof.symbolic import namespace as xp
from attnproof.symbolic.array import Array
from attnproof.symbolic.claim import Claim, equal
from attnproof.symbolic.givens import real, sizes
from attnproof.theorems.definitions.attention import attention
from benchmarks.numeric_time import largest_difference

TOKENS, VECTORS, ELEMENTS, TOGETHER, ROUNDS = 1_024, 21, 20, 10, 25
KERNEL = "scaled_dot_product_attention (flash)"


def against_peers() -> Table:
    """Return the minimum time of each check over interleaved rounds, in forward passes."""
    torch.manual_seed(0)
    wide = [torch.randn(TOKENS, VECTORS, 3, dtype=torch.float64) for _ in range(3)]
    stored = [x.float() for x in wide]
    elements = [_element() for _ in range(ELEMENTS)]
    ways: dict[str, tuple[str, Callable[[], float]]] = {
        "one forward": ("", lambda: _forward(*stored)),
        "attnproof": ("21", _ours(stored, elements)),
        "a direct loop": ("21", lambda: _direct(stored, elements)),
    }
    if find_spec("e3nn") is not None:
        ways["e3nn equivariance_error"] = ("40", _e3nn(stored))
    times: dict[str, list[float]] = {name: [] for name in ways}
    errors = {name: check() for name, (_, check) in ways.items()}
    for _ in range(ROUNDS):
        for name, (_, check) in ways.items():
            start = perf_counter()
            check()
            times[name].append(perf_counter() - start)
    table = Table(
        "check",
        "forwards run",
        "seconds",
        "cost in forwards",
        "largest error",
        title=f"{ELEMENTS} elements of O(3), {TOKENS:,} tokens of {VECTORS} vectors, float32",
    )
    one = min(times["one forward"])
    for name, (forwards, _) in ways.items():
        least = min(times[name])
        error = f"{errors[name]:.1e}" if forwards else ""
        table.add_row(name, forwards, f"{least:.4f}", f"{least / one:.1f}", error)
    if find_spec("e3nn") is None:
        table.add_row("e3nn equivariance_error", "", "", "not installed: the extra benchmarks", "")
    return table


def _element() -> Tensor:
    """Return a random element of O(3)."""
    q, r = torch.linalg.qr(torch.randn(3, 3, dtype=torch.float64))
    signed: Tensor = q * torch.sign(torch.diagonal(r))
    return signed


def _attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    a, b, c = (x.reshape(1, 1, len(x), -1) for x in (q, k, v))
    return F.scaled_dot_product_attention(a, b, c)[0, 0].reshape(v.shape)


def _forward(q: Tensor, k: Tensor, v: Tensor) -> float:
    _attend(q, k, v)
    return 0.0


def _direct(stored: list[Tensor], elements: list[Tensor]) -> float:
    """Compute the base once, and apply each element in float64 to inputs and output."""
    base, worst = _attend(*stored).double(), 0.0
    for g in elements:
        moved = _attend(*((x.double() @ g).float() for x in stored))
        worst = max(worst, float((moved.double() - base @ g).abs().max()))
    return worst


def _claim() -> Claim:
    """Att(Q g_e, K g_e, V g_e) = Att(Q, K, V) g_e for E elements g_e, tokens of B m-vectors."""
    n, m = (*sizes("n", "tokens"), *sizes("m", "features"))
    (b,), (e,) = sizes("B", "blocks"), sizes("E", "heads")
    q, k, v = (real(n, b * m).named(name) for name in "QKV")
    g = real(e, m, m).named("g")

    def rotated(x: Array) -> Array:
        return xp.reshape(xp.reshape(x, (n * b, m)) @ g, (e, n, b * m))

    return equal(attention(rotated(q), rotated(k), rotated(v)), rotated(attention(q, k, v)))


def _ours(stored: list[Tensor], elements: list[Tensor]) -> Callable[[], float]:
    """Evaluate both sides of the claim from its term, several elements at once; the base once."""
    claim, (code,) = _claim(), implementations_named([KERNEL], torch.device("cpu"))
    assert claim.right is not None
    left, right, base = claim.left, claim.right, claim.right.args[0].args[0].args[0]
    flat = dict(zip("QKV", (x.reshape(TOKENS, -1) for x in stored), strict=True))

    def check() -> float:
        known, worst = None, 0.0
        for some in torch.split(torch.stack(elements), TOGETHER):
            lengths = {"n": TOKENS, "B": VECTORS, "m": 3, "E": len(some)}
            read = TorchReading(
                lengths, {**flat, "g": some}, torch.float32, torch.device("cpu"), code.replaced
            )
            with torch.no_grad():
                known = read(base) if known is None else known
                read.known[base] = known
                worst = max(worst, largest_difference(read(left), read(right)))
        return worst

    return check


def _e3nn(stored: list[Tensor]) -> Callable[[], float]:
    """Run ten trials with and without parity: 20 elements, the base recomputed for each."""
    from e3nn.util.test import equivariance_error

    irreps = f"{VECTORS}x1o"
    flat = [x.reshape(TOKENS, -1) for x in stored]

    def function(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q[None, None], k[None, None], v[None, None])[0, 0]

    def check() -> float:
        found = equivariance_error(
            function, flat, irreps_in=[irreps] * 3, irreps_out=[irreps], ntrials=ELEMENTS // 2
        )
        return max(float(error.max()) for error in found.values())

    return check
