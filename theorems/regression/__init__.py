"""Attention as a linear model: orthonormal keys and least squares."""
