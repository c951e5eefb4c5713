"""Positions told apart, and the simplest ways to write them."""
