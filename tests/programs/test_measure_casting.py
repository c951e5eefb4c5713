"""What counts in a cast: of the module that works, however it is called, and not of its data."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.finding import Finding
from attnproof.programs.measure.examine import examine
from attnproof.programs.subject import adapted_as
from attnproof.programs.subjects import Rotary, Subject
from tests.programs.rotary_code import half, ladder

LAW = "survives-casting"


def _found(code: Subject) -> Finding:
    (found,) = examine(code, laws=(LAW,))
    return found


def _rotated(x: Tensor, angles: Tensor) -> Tensor:
    a, b = x.chunk(2, -1)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class ByMethod(nn.Module):
    """Rotates by a method alone; ``keeps`` the longest table of angles that it has made."""

    omega: Tensor
    buffer, keeps = True, True

    def __init__(self, dim: int = 8) -> None:
        super().__init__()
        if self.buffer:
            self.register_buffer("omega", ladder(dim))
        else:  # no cast reaches it
            self.omega = ladder(dim)
        self.angles: Tensor | None = None

    def rotated(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        n = q.shape[-2]
        if self.angles is None or len(self.angles) < n or not self.keeps:
            self.angles = torch.arange(n).float()[:, None] * self.omega
        return _rotated(q, self.angles[:n]), _rotated(k, self.angles[:n])


class Exact(ByMethod):
    buffer = False


class Anew(ByMethod):
    keeps = False


@pytest.mark.parametrize("built", ["", "; built with dim = D"])
@pytest.mark.parametrize(
    ("code", "verdict"), [(ByMethod, "broken"), (Anew, "broken"), (Exact, "holds")]
)
def test_a_cast_reaches_a_module_that_is_called_by_a_method(
    code: type[ByMethod], verdict: str, built: str
) -> None:
    """It was looked for where ``forward`` is called, and this law held of it."""
    line = f"q: B H n D, k: B G n D -> q, k; method rotated{built}"
    assert _found(adapted_as(code, line, kind="rotary")).verdict == verdict


def test_where_no_module_is_seen_at_work_nothing_is_said_to_hold() -> None:
    class Other(nn.Module):
        """Named as the module of the code, and not what works."""

    code = Rotary(name="code", rotate=half(ladder(8)), width=8, module=Other())
    found = _found(code)
    assert found.verdict == "undecided"
    assert "which module works" in found.why


class OfData(nn.Module):
    """Angles in the format of the data, of frequencies that a cast reaches, or of none."""

    omega: Tensor
    buffer = False

    def __init__(self, dim: int = 8) -> None:
        super().__init__()
        if self.buffer:
            self.register_buffer("omega", ladder(dim))

    def forward(self, x: Tensor) -> Tensor:
        omega = self.omega.float() if self.buffer else ladder(x.shape[-1])
        return _rotated(x, (torch.arange(x.shape[-2])[:, None] * omega).to(x.dtype))


class OfBoth(OfData):
    buffer = True


@pytest.mark.parametrize(("code", "verdict"), [(OfData, "holds"), (OfBoth, "broken")])
def test_what_the_format_of_the_data_does_is_no_fault_of_a_cast(
    code: type[OfData], verdict: str
) -> None:
    """It is one of angles: those of a module without a single number were called changed."""
    subject = adapted_as(code, "x: B H n D -> x", kind="rotary")
    assert _found(subject).verdict == verdict
    (angles,) = examine(subject, laws=("angles-are-exact",))
    assert angles.verdict == "broken"
