"""How code of each kind is called by a given signature."""
