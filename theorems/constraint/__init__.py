"""Encodings whose scores depend on the offset: the functional equation and its solutions."""
