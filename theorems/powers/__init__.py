"""Positions encoded by the powers of one matrix."""
