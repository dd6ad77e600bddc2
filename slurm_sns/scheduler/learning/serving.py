"""The profiles that jobs run by: measured ones where they are complete, imported ones otherwise.

An imported profile serves until the exploration of that (program, processes) has been complete; it stays in the store.
A program without an imported profile runs by what is measured as soon as that makes a profile.
"""

from collections.abc import Mapping
from dataclasses import replace

from slurm_sns.policies.profile import Program
from slurm_sns.policies.spread_n_share.evidence import KnownEvidence, Scales
from slurm_sns.policies.spread_n_share.learning import Key
from slurm_sns.policies.spread_n_share.profile_reading import LONGEST_SOURCE
from slurm_sns.scheduler.learning.values import Learnt

MEASURED_HERE = "measured here"


class ServedProfiles:
    """Joins imported and measured profiles. A profile that stays the same stays the very same object."""

    def __init__(self) -> None:
        self._imported: Mapping[str, Program] = {}
        self._learnt: Mapping[Key, Learnt] = {}
        self._programs: Mapping[str, Program] = {}
        self._measured: dict[Key, tuple[Scales, Program | None]] = {}

    def of(self, imported: Mapping[str, Program], learnt: Mapping[Key, Learnt]) -> Mapping[str, Program]:
        """The programs by name."""
        if imported is self._imported and learnt is self._learnt:
            return self._programs
        measured: dict[str, list[Program]] = {}
        kept: dict[Key, tuple[Scales, Program | None]] = {}
        for key, each in learnt.items():
            known = self._measured.get(key)
            if known is None or known[0] is not each.known.current:
                known = (each.known.current, each.known.profile())
            kept[key] = known
            if known[1] is not None and serves(each.known, imported.get(key[0])):
                measured.setdefault(key[0], []).append(known[1])
        found = dict(imported)
        for name, programs in measured.items():
            joined = _joined(imported.get(name), programs)
            before = self._programs.get(name)
            found[name] = before if before == joined and before is not None else joined
        self._measured, self._imported, self._learnt = kept, imported, learnt
        if found != self._programs:
            self._programs = found
        return self._programs


def serves(known: KnownEvidence, imported: Program | None) -> bool:
    """Whether jobs run by what is measured, if it makes a profile, rather than by the imported profile."""
    return known.is_explored or imported is None or not imported.at(known.processes)


def _joined(imported: Program | None, measured: list[Program]) -> Program:
    """One program with the measured runs, and the imported ones of all other numbers of processes.

    What was measured beyond the imported program's largest scale is left out: it was measured before the import.
    """
    ours = {run.processes for program in measured for run in program.runs}
    others = () if imported is None else tuple(run for run in imported.runs if run.processes not in ours)
    most = None if imported is None else imported.max_scale
    here = (run for program in measured for run in program.runs if most is None or run.scale <= most)
    runs = tuple(sorted((*others, *here), key=lambda run: (run.processes, run.scale)))
    if imported is None:
        return replace(measured[0], runs=runs, source=MEASURED_HERE)
    counts = ", ".join(map(str, sorted(ours)[:20]))
    here_too = f"{counts} processes {MEASURED_HERE}"
    room = LONGEST_SOURCE - len(here_too) - 2
    source = f"{imported.source[:room]}; {here_too}" if others else MEASURED_HERE
    return replace(imported, runs=runs, source=source)
