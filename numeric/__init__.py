"""Statements in numbers: torch readings, rounding bounds, sampling, scale.

``check.measure`` is the way in; nothing here knows any theorem.
"""
