"""Whether two programs are one function: the command, its record and its page."""
