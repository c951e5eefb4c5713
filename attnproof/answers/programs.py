"""``check``, ``identify`` and ``equal``: the answers of the commands of these names, in Python.

Each takes code as an object, which need not be in a file, or as a target, ``"FILE.py::NAME"``.  It
returns the record that the command writes, which displays as the command prints it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..documents.document import laid_out
from ..documents.evidence import ShownRecord
from ..real_code.equal_records import MAX_WIDTH, EqualRecord, page
from ..real_code.records import CodeRecord
from ..real_code.request import LIMIT, METHODS, code_request

if TYPE_CHECKING:
    from rich.console import RenderableType


class CheckedCode(ShownRecord, CodeRecord):
    """The record of ``attnproof check``: each law of the code with its verdict."""

    def page(self, width: int) -> RenderableType:
        """Return what ``attnproof check`` prints."""
        from ..real_code.table import code_page

        return code_page(self, width)


class IdentifiedCode(ShownRecord, CodeRecord):
    """The record of ``attnproof identify``: what the code is, each part with its evidence."""

    def page(self, width: int) -> RenderableType:
        """Return what ``attnproof identify`` prints."""
        from ..real_code.table import identity_page

        return identity_page(self, width)


class ComparedPrograms(ShownRecord, EqualRecord):
    """The record of ``attnproof equal``: whether two programs are the same function."""

    def page(self, width: int) -> RenderableType:
        """Return what ``attnproof equal`` prints."""
        return laid_out(page(self), min(width, MAX_WIDTH))


def check(
    code: Any,
    /,
    kind: str = "",
    laws: Iterable[str] = (),
    *,
    declared: str = "",
    call: str = "",
    seed: int | None = None,
    dtype: str = "",
    device: str = "",
    strict: bool = False,
    card: bool = False,
    limit: float = LIMIT,
    **how: Any,
) -> CheckedCode:
    """Check which laws PyTorch code obeys, which it breaks and with what input, and what it is.

    ``code`` is a function or a module (or a class, with its settings in ``how``), or a target,
    ``"rope.py::turn"`` or ``"package.module::Name"``.  ``kind`` is one of rotary, attention, bias,
    additive, mask and layer; an empty one is inferred from the signature.  ``call`` says how the
    code is called, in axis letters, ``"q: B H n D, k: B H n D -> q, k"``; ``declared`` what it is
    meant to be, ``"rope:base=10000"``; ``laws`` are ids, by default all of the kind.  ``how``
    passes what cannot be inferred, such as ``width=64``; ``settings={..}`` are those of the
    constructor, and for a target ``how`` is taken as settings too.

    One law may take ``limit`` seconds.  An object runs in this process, as in
    :mod:`attnproof.testing`, and nothing is stored.  There the limit is processor time, for each
    method, and it interrupts what Python runs in the main thread; a single call that never returns
    to Python is not ended.  A target runs in a process of its own, as for the command, which is
    ended.

    Raises ``ValueError`` for an unknown law, kind, dtype or device, or an invalid seed, declaration
    or call, and ``NoAdapter`` (a ``TypeError``) for an object that cannot be called; a target that
    cannot be run says so in its record.

    >>> found = check(lambda q, k, v: (q @ k.mT).softmax(-1) @ v, laws=["permutation"],
    ...     call="q: B H r D, k: B H n D, v: B H n D -> B H r D")
    >>> found.kind, found.law("permutation").verdict
    ('attention', 'proved')
    """
    more = {"declared": declared, "call": call, "seed": seed, "dtype": dtype, "device": device}
    options = {"laws": laws, "strict": strict, "card": card, **more}
    return CheckedCode.showing(_looked_at(code, kind, METHODS, limit, options, how))


def identify(
    code: Any,
    /,
    kind: str = "",
    *,
    call: str = "",
    seed: int | None = None,
    dtype: str = "",
    device: str = "",
    limit: float = LIMIT,
    **how: Any,
) -> IdentifiedCode:
    """Identify PyTorch code: layout, base, scaling, slopes, mask, each with its evidence.

    Takes the arguments of :func:`check`, and raises the same errors.

    >>> import torch
    >>> found = identify(lambda n: torch.ones(n, n, dtype=torch.bool).tril(), "mask")
    >>> found.identity.sentence
    'mask, causal, aligned at the end, True means visible, bool'
    """
    options = {"call": call, "seed": seed, "dtype": dtype, "device": device}
    return IdentifiedCode.showing(_looked_at(code, kind, ("identity",), limit, options, how))


def _looked_at(
    code: Any,
    kind: str,
    methods: tuple[str, ...],
    limit: float,
    options: dict[str, Any],
    how: dict[str, Any],
) -> CodeRecord:
    """Return the record of an object, or of a target, which runs as for the command."""
    from ..real_code.asserting import check_code

    if not isinstance(code, str):
        return check_code(kind, code, methods=methods, limit=limit, **options, **how)
    from ..real_code.asserting import known_laws
    from ..real_code.running import Limits
    from ..real_code.targets import run_target

    more = how.pop("settings", {})
    asked = code_request(
        code,
        kind=kind,
        methods=methods,
        limit=limit,
        settings=tuple(f"{name}={value!r}" for name, value in {**how, **more}.items()),
        dtypes=(options.pop("dtype"),),
        laws=known_laws(options.pop("laws", ()), kind),
        **options,
    )
    return run_target(asked, Limits(limit), identifying=methods == ("identity",))[0]
