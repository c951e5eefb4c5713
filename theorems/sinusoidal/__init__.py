"""Theorems about sinusoidal position encodings."""
