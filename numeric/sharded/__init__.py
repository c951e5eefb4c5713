"""Run one check distributed over the processes of ``torchrun``, one device each.

``attention`` runs a kernel on the part of the arrays that a process holds, compares it, and
combines the worst results of all processes; ``statements`` evaluates any equation on such parts,
held as DTensors, operation by operation.
"""

__all__ = ["SIDES_DIFFER"]

SIDES_DIFFER = "the sides differ"
"""The reason for a violated equation whose sides both agree with their definitions."""
