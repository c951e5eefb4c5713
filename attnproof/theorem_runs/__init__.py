"""Runs of theorems and claims: found, checked by every method, recorded, stored and printed."""
