"""The answers of commands in Python and notebooks, as records that display themselves."""
