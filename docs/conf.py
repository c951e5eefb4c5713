"""How the site is built: ``make docs``, and then docs/_build/html/index.html."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
sys.path[:0] = [str(DOCS), str(DOCS.parent)]

import generated  # noqa: E402 (it stands beside this file)

import attnproof  # noqa: E402

# Cells of notebooks find the command and the checkout, and print as wide as a page is.
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
os.environ["PYTHONPATH"] = str(DOCS.parent)
os.environ["ATTNPROOF_EXAMPLES"] = str(DOCS / "examples")
os.environ["COLUMNS"] = "96"
os.environ["TTY_COMPATIBLE"] = "0"  # a cell's terminal is none that could show progress

project = "attnproof"
author = "The attnproof authors"
copyright = author
version = release = attnproof.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build", "_generated/extra", "examples"]
myst_heading_anchors = 4
suppress_warnings = ["myst.header"]  # pages of results begin with tables of their own

nb_execution_mode = "force"  # what is kept would be of other code
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_merge_streams = True

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
add_module_names = False

html_theme = "furo"
html_title = f"attnproof {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = ["_generated/extra"]
html_copy_source = False
html_show_sphinx = False


def read(app: Any, name: str, source: list[str]) -> None:
    """Links out of docs/ lead to pages of the site; the first page begins with the README."""
    here = (DOCS / f"{name}.md").parent
    if name == "index":
        source[0] = source[0].replace("<!-- README.md -->", generated.outside("README.md"))
    elif not name.startswith("_generated"):
        source[0] = generated.linked(source[0], here)


def bars(app: Any, what: str, name: str, of: Any, options: Any, lines: list[str]) -> None:
    """A bar in a docstring is one of a formula, and no substitution."""
    for place, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            parts = line.split("``")
            parts[::2] = [part.replace("|", r"\|") for part in parts[::2]]
            lines[place] = "``".join(parts)


def signature(
    app: Any, what: str, name: str, of: Any, options: Any, given: str | None, returned: str | None
) -> tuple[str | None, str | None]:
    """Names of types without their modules."""
    return tuple(told and re.sub(r"~(?:\w+\.)*(\w+)", r"\1", told) for told in (given, returned))


def setup(app: Any) -> None:
    """Write the pages that are made from the code, and mend what is read."""
    generated.write()
    app.connect("autodoc-process-docstring", bars)
    app.connect("autodoc-process-signature", signature)
    app.connect("source-read", read)
