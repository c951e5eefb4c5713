"""Trials of the policies: honest code that must pass, planted faults that must not."""
