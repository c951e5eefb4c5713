"""attnproof: theorems on attention and positional encodings, proved and measured.

The public names are listed in ``__init__.pyi``, where type checkers read them too.  Each is loaded
when it is first used, so that ``import attnproof`` stays light.
"""

from pathlib import Path

from .lazy_names import lazy_names

__version__ = "0.1.0"

_HOME, __getattr__ = lazy_names(__name__, Path(__file__).with_suffix(".pyi"))
__all__ = [*_HOME, "__version__"]  # noqa: PLE0604 (the names are strings, from the stub)


def __dir__() -> list[str]:
    return sorted(__all__)
