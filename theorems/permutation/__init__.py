"""Theorems about permutations of tokens, queries, keys and values."""
