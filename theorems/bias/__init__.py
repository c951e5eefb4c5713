"""Theorems about biases added to the scores."""
