"""Rotary, attention and position code of public libraries, every law asked of every class."""
