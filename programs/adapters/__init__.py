"""One file for each kind of code: how people write it, and what the laws call."""
