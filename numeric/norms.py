"""Errors of products of matrices in the Euclidean norm, where entries alone would grow too fast.

Over k products with one matrix M the bound |M|ᵏ r of each entry grows like ‖ |M| ‖₂ᵏ, for an
orthogonal matrix of width d like (2d/π)^(k/2); its errors grow like ‖M‖₂ᵏ, which there is 1.
With t a bound on ‖ΔY‖ (the Euclidean norm of all entries)::

    |(M ΔY)_ij| ≤ ‖M_i‖ t      ‖M ΔY‖ ≤ ‖M‖₂ t      ‖ΔM (Y + ΔY)‖ ≤ ‖ΔM‖ (‖Y‖ + t)
"""

from __future__ import annotations

import torch
from torch import Tensor

LARGEST = 256
"""The largest width at which the norm of a matrix is computed."""


def spectral(matrix: Tensor) -> float:
    """A bound on ‖M‖₂: the largest singular value, with room for its own rounding."""
    top = float(torch.linalg.matrix_norm(matrix, 2))
    return top * (1 + max(matrix.shape) * 2.0**-40)


def through(
    matrix: Tensor, own: Tensor | None, norm: float, values: Tensor, total: float, axis: int
) -> tuple[Tensor, float]:
    """The errors of a product with a matrix: of each entry, and their norm.

    ``matrix`` with errors ``own`` has ``norm`` as ‖M‖₂, and the other factor has ``values`` with
    errors of norm ``total``.  The rows (``axis`` -1) of a left factor or the columns (-2) of a
    right one give the entries.
    """
    entries = matrix.norm(dim=axis) * total
    whole = norm * total
    if own is not None:
        size = float(values.norm()) + total
        entries = entries + own.norm(dim=axis) * size
        whole += float(own.norm()) * size
    return entries, whole
