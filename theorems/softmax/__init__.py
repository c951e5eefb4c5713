"""Theorems about softmax, masks, and softmax in one pass."""
