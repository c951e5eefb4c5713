"""The commands, a file for each subject; the command line itself is ``attnproof.cli``."""
