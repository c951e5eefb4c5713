"""Programs: the user's code, called by a signature in axis letters, and what is found of it."""
