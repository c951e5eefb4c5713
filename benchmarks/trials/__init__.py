"""Trials of the policies: correct programs must pass, and planted faults must be caught."""
