"""Trials of the policies: correct programs that must pass, planted faults that must not."""
