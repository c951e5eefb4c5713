"""``python -m attnproof``: the same as ``attnproof``."""

from .cli import main

raise SystemExit(main())
