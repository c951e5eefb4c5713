"""A table that is kept under a part of what it depends on, and scores too large for a softcap."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.execution.draw import Draw
from attnproof.programs.finding import Finding
from attnproof.programs.measure.examine import examine
from attnproof.programs.reading.projections import projected
from attnproof.programs.subject import adapted_as
from attnproof.programs.subjects import Attention, Rotary, Subject

KEPT: dict[str, dict[Hashable, Tensor]] = {}


def rotated(x: Tensor, angles: Tensor) -> Tensor:
    left, right = x.chunk(2, -1)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    return torch.cat((left * cos - right * sin, right * cos + left * sin), -1)


def rotary(*lacking: str) -> type[nn.Module]:
    """A rotary module whose table is kept for all instances, under all but what is lacking."""
    kept = KEPT.setdefault(" ".join(lacking), {})

    class OfModule(nn.Module):
        def __init__(self, dim: int = 8, base: float = 10000.0) -> None:
            super().__init__()
            self.dim, self.base = dim, base

        def forward(self, x: Tensor, offset: int = 0) -> Tensor:
            n = x.shape[-2]
            key = {
                "length": n,
                "start": offset,
                "base": self.base,
                "dtype": x.dtype,
                "width": x.shape[-1],
            }
            at = tuple(value for name, value in key.items() if name not in lacking)
            if at not in kept:
                omega = self.base ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1])
                places = torch.arange(offset, offset + n)
                kept[at] = (places[:, None] * omega).to(x.dtype)
            return rotated(x, kept[at])

    return OfModule


def forgets(*lacking: str) -> Finding:
    KEPT.pop(" ".join(lacking), None)
    line = "x: B H n D, offset = p -> B H n D"
    subject = adapted_as(rotary(*lacking), line, kind="rotary", settings={"dim": 8})
    (found,) = examine(subject, (Draw(0),), ("stateless",))
    return found


def test_a_table_kept_under_all_that_it_depends_on_is_right() -> None:
    assert forgets().verdict == "holds"


@pytest.mark.parametrize(
    ("part", "after"),
    [
        ("start", "a call of the same length from another start"),
        ("base", "base 777"),
        ("dtype", "bfloat16"),
    ],
)
def test_a_table_kept_under_a_part_of_it_is_found(part: str, after: str) -> None:
    seen = forgets(part)
    assert seen.verdict == "broken"
    assert after in seen.why


def function(*lacking: str) -> Callable[[Tensor, Tensor], Tensor]:
    """A rotary function whose table is kept in its module, under all but what is lacking."""
    kept: dict[Hashable, Tensor] = {}

    def rotate(x: Tensor, positions: Tensor) -> Tensor:
        n, width = x.shape[-2:]
        key = {"length": n, "width": width, "device": x.device}
        at = tuple(value for name, value in key.items() if name not in lacking)
        if at not in kept:
            omega = 10000.0 ** (-torch.arange(0, width, 2, device=x.device) / width)
            kept[at] = torch.arange(4096, device=x.device)[:, None] * omega
        return rotated(x, kept[at][positions][:, None])

    return rotate


@pytest.mark.parametrize(
    ("part", "after"), [("", ""), ("width", "fewer channels"), ("device", "another device (meta)")]
)
def test_a_table_of_a_function_is_of_one_width_and_device(part: str, after: str) -> None:
    subject = Rotary(name="rotate", rotate=function(part), width=8, heads=2, most=4096)
    (found,) = examine(subject, (Draw(0),), ("stateless",))
    assert found.verdict == ("broken" if part else "holds")
    assert (f"{after} a call raises" in found.why) == bool(part)


class Capped:
    """Attention whose scores are capped by a hyperbolic tangent."""

    def __init__(self, tanh: Any) -> None:
        self.tanh = tanh

    def __call__(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        scores = q @ k.mT / q.shape[-1] ** 0.5
        return torch.softmax(50 * self.tanh(scores / 50), -1) @ v


def by_exponentials(x: Tensor) -> Tensor:
    """No number where e to the 2x is beyond all numbers."""
    return (torch.exp(2 * x) - 1) / (torch.exp(2 * x) + 1)


def large(tanh: Any) -> set[str]:
    def attend(q: Tensor, k: Tensor, v: Tensor, _: Tensor | None = None) -> Tensor:
        return Capped(tanh)(q, k, v)

    subject: Subject = Attention(name="capped", attend=attend, heads=2, groups=2, width=4)
    found = examine(subject, (Draw(0),), ("shift-of-scores", "finite"))
    return {one.verdict for one in found}


def test_a_softcap_that_overflows_is_found() -> None:
    assert "broken" in large(by_exponentials)
    assert "broken" not in large(torch.tanh)


class CappedLayer(nn.Module):
    """The same on tokens."""

    def __init__(self, tanh: Any) -> None:
        super().__init__()
        self.attend = Capped(tanh)
        self.q_proj, self.k_proj, self.v_proj, self.out = (nn.Linear(8, 8) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (
            part(x).unflatten(-1, (2, 4)).transpose(1, 2)
            for part in (self.q_proj, self.k_proj, self.v_proj)
        )
        found: Tensor = self.out(self.attend(q, k, v).transpose(1, 2).flatten(2))
        return found


@pytest.mark.parametrize(
    ("tanh", "verdict"), [(by_exponentials, "broken"), (torch.tanh, "not asked")]
)
def test_a_softcap_that_overflows_inside_a_layer_is_found(tanh: Any, verdict: str) -> None:
    layer = CappedLayer(tanh)
    subject = Attention(name="capped", layer=layer, module=layer, heads=2, embed=8)
    (found,) = examine(subject, (Draw(0),), ("shift-of-scores",))
    assert found.verdict == verdict
    told = {"broken": "large scores give nan inside", "not asked": "large ones give finite numbers"}
    assert told[verdict] in found.why


def test_projections_of_other_tokens_than_were_given_are_not_set() -> None:
    layer = CappedLayer(torch.tanh)
    once = Attention(name="layer", layer=layer, module=layer, heads=2, embed=8)
    assert projected(once) is not None
    assert projected(replace(once, layer=lambda x: layer(x.repeat(1, 2, 1)))) is None


class WideValues(CappedLayer):
    """Values are wider than queries and keys."""

    def __init__(self) -> None:
        super().__init__(torch.tanh)
        self.v_proj, self.out = nn.Linear(8, 12), nn.Linear(12, 8)

    def forward(self, x: Tensor) -> Tensor:
        q, k = (part(x) for part in (self.q_proj, self.k_proj))
        found: Tensor = self.out((q @ k.mT).softmax(-1) @ self.v_proj(x))
        return found


def test_projections_of_wider_values_are_not_set() -> None:
    """What is read is no number for each channel of the queries."""
    layer = WideValues()
    assert projected(Attention(name="wide", layer=layer, module=layer, heads=2, embed=8)) is None


class Switching(nn.Module):
    """Another base from 80 tokens on, as of a longer context: right, and no cache."""

    def forward(self, x: Tensor, offset: int = 0) -> Tensor:
        n = x.shape[-2]
        omega = (500.0 if n < 80 else 900.0) ** (-torch.arange(0, 8, 2) / 8)
        return rotated(x, torch.arange(offset, offset + n)[:, None] * omega)


def test_tables_that_change_with_the_length_are_no_fault_of_a_cache() -> None:
    subject = adapted_as(Switching(), "x: B H n D, offset = p -> B H n D", kind="rotary")
    for seed in range(3):
        (found,) = examine(subject, (Draw(seed),), ("stateless",))
        assert found.verdict == "holds"


class Ladder(nn.Module):
    """Angles of frequencies in a buffer, which a cast rounds, or of float32 after any cast."""

    exact = False
    omega: Tensor

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.register_buffer("omega", 10000.0 ** (-torch.arange(0, dim, 2) / dim))

    def forward(self, n: int) -> Tensor:
        dim = 2 * len(self.omega)
        omega = 10000.0 ** (-torch.arange(0, dim, 2) / dim) if self.exact else self.omega
        return torch.arange(n)[:, None] * omega


class Exact(Ladder):
    exact = True


@pytest.mark.parametrize(("ladder", "verdict"), [(Ladder, "broken"), (Exact, "holds")])
def test_a_cast_reaches_a_module_that_is_built_of_the_width_of_a_call(
    ladder: type[Ladder], verdict: str
) -> None:
    line = "n = n -> angles: n D/2; then rotated(x: B H n D, angles: n D/2 angles -> x); "
    subject = adapted_as(ladder, line + "built with dim = D", kind="rotary")
    (found,) = examine(subject, (Draw(0),), ("survives-casting",))
    assert found.verdict == verdict


class KeptAngles(nn.Module):
    """Attention whose angles are kept in a buffer, as many as were asked for.

    ``stale``: in the format of the call that made them, whatever the next is.
    """

    stale = False
    kept: Tensor

    def __init__(self, dim: int = 16) -> None:
        super().__init__()
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.rates = nn.Parameter(10000.0 ** -(torch.arange(dim // 2) / (dim // 2)))
        self.register_buffer("kept", torch.zeros(64, dim // 2), persistent=False)
        self.many = 0

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > self.many:
            angles = torch.arange(n)[:, None] * self.rates.detach()
            rounded = angles.to(torch.bfloat16) if self.stale and n > 8 else angles
            self.kept[:n], self.many = rounded.to(self.kept.dtype), n
        q, k, v = self.qkv(x).chunk(3, -1)
        both = (rotated(one, self.kept[:n]) for one in (q, k))
        weights = torch.softmax(next(both) @ next(both).mT / 4, -1)
        out: Tensor = weights @ v
        return out


class StaleAngles(KeptAngles):
    stale = True


@pytest.mark.parametrize(("code", "verdict"), [(KeptAngles, "holds"), (StaleAngles, "broken")])
def test_what_is_tried_while_it_is_built_leaves_no_table(code: Any, verdict: str) -> None:
    made = adapted_as(code, "x: B n E -> B n E", name="attention")
    assert examine(made, (Draw(),), ("stateless",))[0].verdict == verdict


class OfFirstDtype:
    """Rotary code that keeps angles, of positions in ``dtype`` or in that of the first vectors."""

    def __init__(self, dtype: torch.dtype | None) -> None:
        self.dtype, self.angles = dtype, torch.zeros(0, 4)

    def __call__(self, x: Tensor) -> Tensor:
        count = x.shape[2]
        if len(self.angles) < count:
            at = torch.arange(count, dtype=self.dtype or x.dtype).float()
            self.angles = at[:, None] * 100.0 ** (-torch.arange(4) / 4)
        angles, (a, b) = self.angles[:count].to(torch.float32), x.chunk(2, -1)
        parts = a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()
        return torch.cat(parts, -1).to(x.dtype)


@pytest.mark.parametrize(("dtype", "verdict"), [(None, "broken"), (torch.float32, "holds")])
def test_positions_rounded_beyond_256_are_not_left_to_later_calls(dtype: Any, verdict: str) -> None:
    subject = adapted_as(lambda: OfFirstDtype(dtype), "x: B H n 8 -> x", kind="rotary")
    (found,) = examine(subject, (Draw(0),), ("stateless",))
    assert found.verdict == verdict
    assert ("on data in bfloat16" in found.why) == (verdict == "broken")


class Centred:
    """Factors that are 1 in the middle of a call; ``kept``: those of the longest call are kept."""

    def __init__(self, kept: bool) -> None:
        self.kept, self.factors = kept, torch.zeros(0)

    def __call__(self, x: Tensor) -> Tensor:
        count = x.shape[2]
        if len(self.factors) < count or not self.kept:
            self.factors = 0.999 ** (torch.arange(count) - count // 2)
        at = torch.arange(count)[:, None] * 100.0 ** (-torch.arange(4) / 4)
        a, b = x.chunk(2, -1)
        rotated = torch.cat((a * at.cos() - b * at.sin(), a * at.sin() + b * at.cos()), -1)
        return (rotated * self.factors[:count, None]).to(x.dtype)


@pytest.mark.parametrize(("kept", "verdict"), [(True, "broken"), (False, "holds")])
def test_what_depends_on_the_length_is_called_at_several_lengths(kept: bool, verdict: str) -> None:
    subject = adapted_as(lambda: Centred(kept), "x: B H n 8 -> x", kind="rotary")
    (found,) = examine(subject, (Draw(0),), ("stateless",))
    assert found.verdict == verdict
    assert ("longer call" in found.why) == kept


class PlacesLast(nn.Module):
    """What is projected after values are vectors for offsets, and not what attention gives."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(16, 16) for _ in range(3))
        self.offsets = nn.Embedding(7, 16)
        self.places = nn.Linear(16, 16)

    def forward(self, x: Tensor) -> Tensor:
        n, q, k, v = x.shape[1], self.q(x), self.k(x), self.v(x)
        at = (torch.arange(n)[:, None] - torch.arange(n) + 3).clamp(0, 6)
        own = (q @ self.places(self.offsets.weight).mT).gather(2, at.expand(len(x), n, n))
        found: Tensor = (q @ k.mT + own).softmax(-1) @ v
        return found


def test_a_projection_of_no_tokens_reads_nothing() -> None:
    code: Any = adapted_as(PlacesLast, "x: B n E -> B n E", kind="attention")
    assert projected(code) is None
