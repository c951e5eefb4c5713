"""From an object to a program: the code it reaches, how it is built, and what names say."""
