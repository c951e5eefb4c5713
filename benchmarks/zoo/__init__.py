"""Check rotary, attention and position code of public libraries: every law for every class."""
