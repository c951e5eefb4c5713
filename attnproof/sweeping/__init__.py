"""Sweeps over everything that a statement can be measured in, and the store of finished work."""
