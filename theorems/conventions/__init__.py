"""Conventions of the sources, and the maps between them."""
