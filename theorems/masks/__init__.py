"""Masks and the order they bring."""
