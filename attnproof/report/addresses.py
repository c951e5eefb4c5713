"""Where each page stands in a report, by what it is about."""

from __future__ import annotations

import re

DEFINITIONS = "definitions.html"
GROWTHS = "scale.html"
ENCODINGS = "encodings"
"""The folder of the pages of encodings, where they stand beside theorems."""


def slug(name: str) -> str:
    """A name as part of an address.

    >>> slug("a/b c-1")
    'a_b_c-1'
    """
    return re.sub(r"[^\w-]", "_", name)


def theorem_file(theorem: str) -> str:
    """The page of a theorem."""
    return f"theorem/{slug(theorem)}.html"


def definition_place(name: str) -> str:
    """A definition, among the others."""
    return f"{DEFINITIONS}#{slug(name)}"


def document_file(document: str) -> str:
    """The page of a document."""
    return f"document-{slug(document)}.html"


def encoding_file(encoding: str) -> str:
    """The page of an encoding, in the folder of its table."""
    return f"encoding-{slug(encoding)}.html"
