"""Numerical checks of statements: evaluation in torch, rounding bounds, sampling, checks at scale.

The entry point is ``check.measure``; nothing here depends on any particular theorem.
"""
