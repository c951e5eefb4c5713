"""Call forms: the tables from which a call is guessed when none is given."""
