"""The process in which code is run: findings go to its standard output, a line of JSON each.

It is started by :mod:`attnproof.real_code.running`, as
``python -m attnproof.real_code.worker '{"target": ...}'``.  What the code prints goes to standard
error; what it reads is empty.  The process ends when the one that started it ends.
"""

from __future__ import annotations

import faulthandler
import gc
import json
import os
import signal
import sys
import threading
from typing import IO, Any

from ..symbolic.faults import fault_of
from .asked import Asked
from .plain import MOST, raised, readable
from .printing import counting

YOUNG = 1_000_000  # objects made before cycles are looked for: loading torch makes as many


def main(arguments: list[str] | None = None) -> None:
    """Look at one target; never returns."""
    gc.set_threshold(YOUNG)
    asked = Asked.read((sys.argv[1:] if arguments is None else arguments)[0])
    findings = _streams()
    sys.stdout = printed = counting(1)
    faulthandler.enable()  # a crash tells its line on standard error
    if hasattr(faulthandler, "register"):
        faulthandler.register(signal.SIGUSR1, all_threads=False)  # asked where it stands

    own = os.getpid()

    def tell(event: dict[str, Any]) -> None:
        if os.getpid() != own:
            os._exit(0)  # the code forked, and this is the copy: it would tell all of it twice
        findings.write(json.dumps(event, allow_nan=False) + "\n")
        findings.flush()

    try:
        _look(asked, tell)
    except BaseException as error:  # noqa: BLE001 (any code may raise anything)
        fault = fault_of(error)
        tell({
            "event": "refused", "why": raised(error) if fault is None else fault.told,
            "traceback": fault.traceback if fault is not None else "",
        })  # fmt: skip
    tell({"event": "printed", **printed.told()})
    tell({"event": "ended"})
    os._exit(0)  # threads of the code may be left, and hooks at exit


def _look(asked: Asked, tell: Any) -> None:
    import torch

    from ..numeric.devices import DeviceAbsent, chosen
    from ..programs.adapting import NoAdapter, OtherKind
    from ..programs.code import NoSetting
    from ..programs.running import CodeFault
    from ..programs.signature import SignatureError
    from .checking import adapted, look
    from .loading import CannotLoad, load
    from .unchanged import sources_loaded

    torch.set_num_threads(1)  # small arrays; and sums in one order on every machine
    tell({"event": "ready", "torch": torch.__version__})
    try:
        chosen(asked.device)
        tell({"event": "begins", "leg": "", "law": "", "does": "being imported"})
        code = load(asked.target)
        gc.freeze()  # what is loaded stays, and is not gone through again
        tell({"event": "begins", "leg": "", "law": "", "does": "being adapted"})
        subject = adapted(code.thing, asked, code.name, code.file, tell)
    except (
        CannotLoad, CodeFault, DeviceAbsent, NoAdapter, NoSetting, OtherKind, SignatureError,
    ) as error:  # fmt: skip
        why = error.on_command_line if isinstance(error, NoAdapter) else str(error)
        tell({"event": "refused", "why": readable(why)[:MOST]})
        return
    look(subject, asked, tell, code.thing)
    tell({"event": "files", "files": sources_loaded(code.file)})


def _streams() -> IO[str]:
    """Take standard output and input away from the code; what findings are written to.

    Whoever started this process holds the other end of its input and writes nothing: when that
    end closes nobody listens, and the code, which may never end, is ended.
    """
    findings = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
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
