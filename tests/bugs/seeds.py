"""Correct code over many seeds: how often a law is called broken that is not.

``python -m tests.bugs.seeds --seeds 1000`` asks, for every bug, the law that catches it of the code
without the bug, and every law of every control and correct code for a hundredth of the seeds.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from time import perf_counter

import torch

from attnproof.programs.draw import Draw
from attnproof.programs.measure.examine import examine
from attnproof.programs.subjects import Subject

from .corpus import all_bugs, all_controls


def alarms(place: int, seeds: int, laws: tuple[str, ...]) -> tuple[str, Counter[str], list[str]]:
    """The name of one correct code, its verdicts over the seeds, and what was called broken."""
    torch.set_num_threads(1)
    name, subject = _correct(place)
    found: Counter[str] = Counter()
    broken = []
    for seed in range(seeds):
        for finding in examine(subject, (Draw(seed=seed),), laws):
            found[finding.verdict] += 1
            if finding.verdict == "broken":
                broken.append(f"{name}, seed {seed}: {finding.law}: {finding.why}")
    return name, found, broken


def _correct(place: int) -> tuple[str, Subject]:
    bugs = all_bugs()
    if place < len(bugs):
        return bugs[place].id, bugs[place].correct()
    control = all_controls()[place - len(bugs)]
    return control.id, control.subject()


def main() -> int:
    """Print the counts; 1 if anything was called broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    from joblib import Parallel, delayed

    bugs, controls = all_bugs(), all_controls()
    some = max(1, given.seeds // 100)
    tasks: list[tuple[int, int, tuple[str, ...]]] = [
        (k, given.seeds, (bug.law,)) for k, bug in enumerate(bugs)
    ]
    tasks += [(k, some, ()) for k in range(len(bugs) + len(controls))]
    start, total = perf_counter(), Counter[str]()
    broken: list[str] = []
    work = Parallel(n_jobs=given.jobs, return_as="generator_unordered")
    for done, (name, found, told) in enumerate(work(delayed(alarms)(*t) for t in tasks), 1):
        total += found
        broken += told
        print(
            f"\r{done}/{len(tasks)} {name:6} {perf_counter() - start:.0f} s",
            end="",
            file=sys.stderr,
        )
    print(file=sys.stderr)
    told = ", ".join(f"{count} {verdict}" for verdict, count in sorted(total.items()))
    print(f"{len(bugs)} correct codes and {len(controls)} controls, {given.seeds} seeds: {told}")
    print("\n".join(broken))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
