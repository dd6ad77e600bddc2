"""Read a trace file with a fast reader if it holds only plain numbers, otherwise with a strict one, line by line.

Both readers give the same jobs. The fast reader reports no errors: it stops at the first thing that is not a plain
number in range. The strict reader then reads the file from its beginning, accepts what is valid and names what is not.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from slurm_sns.policies.placement.node_arrays import NodeArrays
from slurm_sns.sim.traces.files import TraceFile
from slurm_sns.sim.traces.plain_numbers import NotPlain, are_distinct
from slurm_sns.sim.traces.trace_arrays import Column, RecordBuilder, TraceArrays

Lines = TypeVar("Lines")


@dataclass(frozen=True)
class TraceFormat(Generic[Lines]):
    """How the lines of a format are read and become jobs.

    `plain` is the fast reader and `strict` the strict one; each takes the number of lines to read, None for all.
    `plain` yields the lines part by part or raises NotPlain. `strict` returns them all at once or raises BadInput.
    `identities` gives the job numbers that must be distinct. `add` adds the jobs to a builder.
    """

    plain: Callable[[TraceFile, int | None], Iterator[Lines]]
    strict: Callable[[TraceFile, int | None], Lines]
    identities: Callable[[Lines], Column]
    add: Callable[[RecordBuilder, Lines], None]

    def read(self, source: TraceFile, node_arrays: NodeArrays, *, load_factor: float, limit: int | None) -> TraceArrays:
        """The jobs of a file that these nodes can hold.

        Raises:
            BadInput: naming the line and what would be valid.
        """
        builder = RecordBuilder(node_arrays, load_factor)
        try:
            self._add_plain(builder, source, limit)
        except NotPlain:
            builder = RecordBuilder(node_arrays, load_factor)
            self.add(builder, self.strict(source, limit))
        return builder.records(source.name)

    def _add_plain(self, builder: RecordBuilder, source: TraceFile, limit: int | None) -> None:
        """Add the jobs of a file that holds only plain numbers."""
        identities = [np.zeros(0)]
        for lines in self.plain(source, limit):
            identities.append(self.identities(lines))
            self.add(builder, lines)
        if not builder.jobs or not are_distinct(np.concatenate(identities)):
            raise NotPlain
