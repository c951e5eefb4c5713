"""Sweeps over everything that a statement can be measured in, and errors at scale."""
