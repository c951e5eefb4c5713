"""One check shared out over the processes of ``torchrun``, a device each.

``shares`` says which part of the arrays a process has, as DTensors; ``attention`` runs the kernel
on that part, compares it, and brings the worst of all processes together; ``statements`` reads
any equation on such parts, ``reading`` operation by operation.
"""

__all__ = ["SIDES_DIFFER"]

SIDES_DIFFER = "the sides differ"
"""The reason of a violated equation whose sides are both what their definitions say."""
