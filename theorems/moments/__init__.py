"""Expectations and variances of scores."""
