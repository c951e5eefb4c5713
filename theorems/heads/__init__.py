"""Several heads, concatenated and mixed."""
