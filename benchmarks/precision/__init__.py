"""Rotary encoding in short formats: errors, limits, and the outcome of two checks."""
