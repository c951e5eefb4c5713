"""Programs: the user's code, called by a signature in axis letters, and what is found of it."""

ORDER = ("signatures", "execution", "loading", "calls", "call_forms")
"""The packages that call the code, each of which imports only those before it; methods follow."""
