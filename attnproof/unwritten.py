"""What is said where a method of an encoding is called that its class does not write."""

from __future__ import annotations

import inspect
from typing import Any

__all__ = ["EXAMPLES", "unwritten"]

# Where each is written, to look at; beside these, `attnproof new` explains what acts on scores.
EXAMPLES = {
    "add": "attnproof/encodings/sinusoidal.py",
    "relate": "attnproof/encodings/shaw.py",
    "bias": "attnproof/encodings/alibi.py",
    "sees": "attnproof/encodings/causal_window.py",
    "shift": "attnproof/encodings/sinusoidal.py",
    "bound": "attnproof/encodings/matrix_powers.py",
    "beyond": "tests/encodings/test_laws_of_positions.py",
    "apart": "attnproof/encodings/rope.py",
    "fall": "attnproof/encodings/alibi.py",
    "margin": "attnproof/encodings/alibi.py",
}


def unwritten(encoding: Any, base: type, method: str) -> str:
    """What is wrong with a call of ``method`` of this encoding, which only ``base`` has.

    It names the class and the method, says what the method gives in the words and shapes of the
    base class, and where an example stands.

    >>> from attnproof import Encoding
    >>> class Mine(Encoding): pass
    >>> print(unwritten(Mine(), Encoding, "add"))
    Mine does not write add(p), which was called: it is to give what is added to the token at p:
    positions (..) -> (.., d). Write it in class Mine, as attnproof/encodings/sinusoidal.py does,
    or call it only where Mine.defines('add')
    """
    cls = type(encoding)
    hook = getattr(base, method)
    names = [name for name in inspect.signature(hook).parameters if name != "self"]
    call = f"{method}({', '.join(names)})"
    words = (inspect.getdoc(hook) or "").partition("\n")[0]  # empty under python -OO
    gives = f": it is to give {words[:1].lower()}{words[1:]}" if words else "."
    if cls.defines(method):
        return (
            f"{cls.__name__}.{call} calls that of {base.__name__}, which is not written{gives} "
            f"Drop the call of super().{method}; {EXAMPLES[method]} shows one that is whole"
        )
    return (
        f"{cls.__name__} does not write {call}, which was called{gives} Write it in class "
        f"{cls.__name__}, as {EXAMPLES[method]} does, or call it only where "
        f"{cls.__name__}.defines({method!r})"
    )
