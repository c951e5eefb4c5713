"""The numeric demonstrations of the sources, recomputed."""
