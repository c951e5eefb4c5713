"""Tables whose number of rows is a setting of the class, beside the function that applies them."""

import torch
from torch import Tensor, nn


def rotate_half(x: Tensor) -> Tensor:
    u, v = x.chunk(2, -1)
    return torch.cat((-v, u), -1)


def apply_rotary_pos_emb(t: Tensor, freqs: Tensor, scale: Tensor | float = 1.0) -> Tensor:
    return (t * freqs.cos() + rotate_half(t) * freqs.sin()) * scale


class Angles(nn.Module):
    """Built for a number of rows, as in block-recurrent transformers."""

    inv_freq: Tensor

    def __init__(self, dim: int, width: int) -> None:
        super().__init__()
        self.width = width
        self.register_buffer("inv_freq", 10000.0 ** -(torch.arange(0, dim, 2) / dim))

    def rows(self) -> Tensor:
        angles = torch.arange(float(self.width))[:, None] * self.inv_freq
        return torch.cat((angles, angles), -1)

    def forward(self) -> Tensor:
        return self.rows()


class RotaryByDefault(Angles):
    def __init__(self, dim: int = 16, width: int = 32) -> None:
        super().__init__(dim, width)


class Later(Angles):
    """Its rows are not multiples of the first."""

    def rows(self) -> Tensor:
        return super().rows() ** 2


class WithScales(Angles):
    """Beside a factor for each row and channel, as in xPos."""

    def forward(self) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        at = torch.arange(float(self.width))[:, None] - self.width // 2
        return self.rows(), self.inv_freq.repeat(2) ** (at / 512)


class AxisNamed(Angles):
    """Told which axis of its tokens counts them."""

    def __init__(self, dim: int) -> None:
        super().__init__(dim, 0)

    def forward(self, x: Tensor, seq_dim: int) -> Tensor:  # type: ignore[override]
        angles = torch.arange(float(x.shape[seq_dim]))[:, None] * self.inv_freq
        return torch.cat((angles, angles), -1)
