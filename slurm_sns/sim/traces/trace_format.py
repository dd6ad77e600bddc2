"""Read a trace file in one of two ways: fast where it holds plain numbers only, else strictly, line by line.

Both ways give the same records. The fast one judges nothing: at the first thing that is no plain number in range it
stops, and the strict one reads the file from its beginning, takes what is valid all the same and names what is not.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from slurm_sns.policies.placement.node_arrays import NodeArrays
from slurm_sns.sim.traces.files import Source
from slurm_sns.sim.traces.plain_numbers import NotPlain, are_distinct
from slurm_sns.sim.traces.trace_arrays import Column, RecordBuilder, Records

Lines = TypeVar("Lines")


@dataclass(frozen=True)
class TraceFormat(Generic[Lines]):
    """How the lines of a format are read, and become jobs.

    `plain` and `strict` are told how many lines to read, None for all. `plain` gives them part by part, or raises
    NotPlain; `strict` gives them at once, or raises BadInput. `identities` are the numbers of jobs that must be
    distinct. `add` puts the jobs into a builder.
    """

    plain: Callable[[Source, int | None], Iterator[Lines]]
    strict: Callable[[Source, int | None], Lines]
    identities: Callable[[Lines], Column]
    add: Callable[[RecordBuilder, Lines], None]

    def read(self, source: Source, node_arrays: NodeArrays, *, load_factor: float, limit: int | None) -> Records:
        """The records of a file for this pool.

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

    def _add_plain(self, builder: RecordBuilder, source: Source, limit: int | None) -> None:
        """Add the jobs of a file of nothing but plain numbers."""
        identities = [np.zeros(0)]
        for lines in self.plain(source, limit):
            identities.append(self.identities(lines))
            self.add(builder, lines)
        if not builder.jobs or not are_distinct(np.concatenate(identities)):
            raise NotPlain
