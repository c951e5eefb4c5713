"""User code as an object: what kind of thing it is, and how it is called."""
