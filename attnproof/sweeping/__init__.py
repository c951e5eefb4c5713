"""Finished work that is kept, and sweeps over everything a statement can be measured in."""
