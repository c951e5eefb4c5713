"""The process in which code is run: findings go to its standard output, a line of JSON each.

It is started by :mod:`attnproof.real_code.running`, as
``python -m attnproof.real_code.worker '{"target": ...}'``.  What the code prints goes to standard
error; what it reads is empty.  The process ends when the one that started it ends.
"""

from __future__ import annotations

import faulthandler
import io
import json
import os
import signal
import sys
import threading
from typing import IO, Any

from .asked import Asked
from .plain import MOST, raised, readable

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> None:
    """Look at one target; never returns."""
    asked = Asked.read((sys.argv[1:] if arguments is None else arguments)[0])
    findings = _streams()
    faulthandler.enable()  # a crash tells its line on standard error
    if hasattr(faulthandler, "register"):
        faulthandler.register(signal.SIGUSR1, all_threads=False)  # asked where it stands

    def tell(event: dict[str, Any]) -> None:
        findings.write(json.dumps(event, allow_nan=False) + "\n")
        findings.flush()

    try:
        _look(asked, tell)
    except BaseException as error:  # noqa: BLE001 (any code may raise anything)
        tell({"event": "refused", "why": raised(error)})
    tell({"event": "ended"})
    os._exit(0)  # threads of the code may be left, and hooks at exit


def _look(asked: Asked, tell: Any) -> None:
    import torch

    from ..numeric.devices import DeviceAbsent, chosen
    from ..numeric.programs.adapting import NoAdapter
    from ..numeric.programs.running import CodeFault
    from .checking import adapted, look
    from .loading import CannotLoad, load

    torch.set_num_threads(1)  # small arrays; and sums in one order on every machine
    tell({"event": "ready", "torch": torch.__version__})
    try:
        chosen(asked.device)
        tell({"event": "begins", "leg": "", "law": "", "does": "being imported"})
        code = load(asked.target)
        tell({"event": "begins", "leg": "", "law": "", "does": "being adapted"})
        subject = adapted(code.thing, asked, code.name, code.file, tell)
    except (CannotLoad, DeviceAbsent, NoAdapter, CodeFault) as error:
        tell({"event": "refused", "why": readable(str(error))[:MOST]})
        return
    look(subject, asked, tell)


def _streams() -> IO[str]:
    """Take standard output and input away from the code; what findings are written to.

    Whoever started this process holds the other end of its input and writes nothing: when that
    end closes nobody listens, and the code, which may never end, is ended.
    """
    findings = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True, errors="replace")  # it may be killed any time
    held = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)

    def watch() -> None:
        while os.read(held, 1):
            pass
        os._exit(3)

    threading.Thread(target=watch, daemon=True).start()
    return findings


if __name__ == "__main__":
    main()
