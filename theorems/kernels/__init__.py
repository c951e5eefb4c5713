"""Attention with any score function, and the kernels of distance."""
