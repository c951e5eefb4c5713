"""Many small cases as one test: to hand out and report each would take longer than the case."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from inspect import signature
from typing import Any

import pytest


def each(cases: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[[], None]]:
    """Make one test of a check of many cases; for several parameters, each is a tuple.

    All are looked at, and the first error names all that fail.
    """
    known = [*cases]

    def made(check: Callable[..., None]) -> Callable[[], None]:
        alone = len(signature(check).parameters) == 1

        def test() -> None:
            assert known, "there is no case"
            failed: list[str] = []
            first: BaseException | None = None
            for k, case in enumerate(known):
                try:
                    check(*((case,) if alone else case))
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 (of any kind)
                    first = first or error
                    failed.append(f"case {k}: {case!r}"[:300])
            if first is not None:
                first.add_note("\n".join(failed))
                raise first

        test.__name__, test.__doc__ = check.__name__, check.__doc__
        return test

    return made
