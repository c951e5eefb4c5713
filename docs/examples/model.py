"""A rotary encoding and an attention layer, as a model has them."""

import torch
from torch import nn


def rope(x, positions, base=10000.0):
    """Rotate the pairs (i, i + D/2) of x, of shape (B, H, n, D), by the angles of its positions."""
    half = x.shape[-1] // 2
    frequencies = base ** (-torch.arange(half, dtype=torch.float32, device=x.device) / half)
    angles = positions[:, None, :, None].to(torch.float32) * frequencies
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, first * sin + second * cos), dim=-1)


class Attention(nn.Module):
    """Causal self-attention over x, of shape (B, n, E), with rotary positions."""

    def __init__(self, width=32, heads=4):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        rows, tokens, width = x.shape
        split = self.qkv(x).view(rows, tokens, 3, self.heads, width // self.heads)
        q, k, v = split.permute(2, 0, 3, 1, 4)
        positions = torch.arange(tokens, device=x.device).expand(rows, tokens)
        q, k = rope(q, positions), rope(k, positions)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(rows, tokens, width))
