"""Numeric demonstrations of the sources, computed again."""
