"""A fast path for a batch of one that is wrong for long inputs (no guard tells of it)."""

from torch import Tensor, nn


class Layer(nn.Module):
    """Rows of a batch of one and of more than 300 tokens are doubled."""

    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        y = self.up(x)
        if x.shape[0] == 1 and x.shape[1] > 300:
            return 2 * y
        return y


def layer() -> nn.Module:
    return Layer()
