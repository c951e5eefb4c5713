"""Theorems about rotary position encoding."""
