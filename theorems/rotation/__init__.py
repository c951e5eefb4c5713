"""Theorems about plane rotations and blocks of them."""
