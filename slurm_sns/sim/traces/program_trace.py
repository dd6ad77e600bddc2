"""The jobs of a trace with the alternatives that a policy of Spread-n-Share's family gives them.

In a CSV of programs the alternatives follow from each job's processes and its program's profile. In SWF and a dump of
sacct no job has a profile: CS spreads the processes, the other policies keep the equal parts. In a CSV for matching the
jobs keep their own geometry. Under CE all jobs run on empty nodes.

The header of a CSV of programs is `job_id,submit_s,run_s,program,processes`, optionally `alpha`. `run_s` is the run
time under CE. A job whose program is not among the profiles is a job without profile.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np

from slurm_sns.errors import BadInput, Infeasible
from slurm_sns.model import Alternative
from slurm_sns.policies.base import JobRequest, MakeAlternatives, Request
from slurm_sns.policies.placement.node_arrays import NodeArrays, fits_ever
from slurm_sns.policies.placement.request import compact
from slurm_sns.policies.profile import Program
from slurm_sns.policies.registry import specification
from slurm_sns.policies.specification import GeometryChoice
from slurm_sns.policies.spread_n_share.parameters import SpreadingParameters
from slurm_sns.sim.engine.spreading_policies import policy_of
from slurm_sns.sim.progress.authors_model import AuthorsModel, Runs, time_factor
from slurm_sns.sim.trace import SMALLEST_MEMORY_MB, TOO_LARGE, Alternatives, Trace, TraceArrays
from slurm_sns.sim.traces.columns import CsvReader, Distinct, Number, Text
from slurm_sns.sim.traces.files import TraceFile, header_of
from slurm_sns.sim.traces.read_trace import read_records
from slurm_sns.sim.traces.site_partitions import EVERYWHERE, SitePartitions
from slurm_sns.sim.traces.trace_builder import of_kinds

#: As in --sns-program and in files of profiles.
PROGRAM = re.compile(r"[A-Za-z0-9._+-]{1,64}\Z")

HEADER = "job_id,submit_s,run_s,program,processes and optionally alpha"
CHECKS = (
    Number("job_id", 0, whole=True),
    Distinct("job_id"),
    Number("submit_s", 0),
    Number("run_s", 0),
    Text("program", lambda text: bool(PROGRAM.match(text)), "1 to 64 letters, digits and . _ + -"),
    Number("processes", 1, whole=True),
    Number("alpha", np.nextafter(0, 1), 1, empty=True, valid="empty, or a number above 0, at most 1"),
)


@dataclass(frozen=True, slots=True)
class ProgramJob:
    """A line of the trace; `alpha` is None where it gives none."""

    identity: int
    submit_s: float
    run_s: float
    program: str
    processes: int
    alpha: float | None

    @property
    def request(self) -> Request:
        """What the job asks for."""
        return Request(self.processes, memory_per_node_mb=SMALLEST_MEMORY_MB, alpha=self.alpha)


@dataclass(frozen=True)
class ProgramTrace:
    """A trace, how long its jobs run (with their run times under CE as the file has them), and those with a profile."""

    records: TraceArrays
    model: AuthorsModel
    profiled: tuple[ProgramJob, ...] = ()

    @property
    def without_profile(self) -> int:
        """How many jobs have no profile."""
        return len(self.records) - len(self.profiled)

    @cached_property
    def trace(self) -> Trace:
        """The jobs as values."""
        return self.records.values()


@dataclass(frozen=True)
class TraceReader:
    """Reads traces for one policy on one cluster.

    With `user_estimates` jobs are expected to run until the time limits that their owners asked for, otherwise as long
    as they run under CE. `make_alternatives` replaces the policy's own way to make alternatives. `partitions` says
    where jobs of sacct may run.
    """

    node_arrays: NodeArrays
    policy: str
    programs: Mapping[str, Program]
    parameters: SpreadingParameters
    user_estimates: bool = False
    make_alternatives: MakeAlternatives | None = None
    partitions: SitePartitions = EVERYWHERE

    def read(self, name: str, *, load_factor: float = 1.0, limit: int | None = None) -> ProgramTrace:
        """The trace in the file `name` (`-`: SWF on standard input).

        Raises:
            BadInput: naming file, line and what would be valid.
        """
        header = header_of(name)
        if "program" in header:
            if self.user_estimates:
                raise BadInput(f"{name}: a CSV has no time limits; valid with user estimates: SWF, sacct")
            return self.of_programs(name, read_program_jobs(TraceFile.of(name), limit), load_factor=load_factor)
        records = read_records(
            name,
            self.node_arrays,
            load_factor=load_factor,
            limit=limit,
            user_estimates=self.user_estimates,
            partitions=self.partitions,
        )
        is_log = "job_id" not in header
        spreads = is_log and specification(self.policy).geometry is GeometryChoice.ANY_SCALE
        return self._without_programs(records, self._spread if spreads else self._own_geometry)

    def of_programs(self, name: str, lines: Iterable[ProgramJob], *, load_factor: float = 1.0) -> ProgramTrace:
        """The trace of these jobs; `name` stands for it in errors.

        Raises:
            BadInput: no job is left.
        """
        dropped = Counter[str]()
        kinds: dict[tuple[Alternatives, str, int], int] = {}
        runs_of: list[Runs] = []
        kept: list[ProgramJob] = []
        kind: list[int] = []
        alternatives_of = cache(self._alternatives_for)
        for line in lines:
            program = self.programs.get(line.program)
            try:
                alternatives = alternatives_of(line.request, program)
            except Infeasible:
                dropped[TOO_LARGE] += 1
                continue
            # Jobs of one kind also take the same times in their alternatives, compared with the first.
            number = kinds.setdefault((alternatives, line.program, line.processes), len(kinds))
            if number == len(runs_of):
                runs_of.append(self._runs(program, line.processes))
            kept.append(line)
            kind.append(number)
        records = of_kinds(
            name,
            self.node_arrays,
            [alternatives for alternatives, _, _ in kinds],
            np.array(kind, np.int32),
            identity=np.array([line.identity for line in kept], np.int64),
            submit_s=np.array([line.submit_s for line in kept], np.float64),
            run_s=np.array([line.run_s for line in kept], np.float64),
            run_factors=[
                [time_factor(runs, alternative, self.parameters) for alternative in alternatives]
                for (alternatives, _, _), runs in zip(kinds, runs_of, strict=True)
            ],
            load_factor=load_factor,
            dropped=dropped,
        )
        there = set(records.identity.tolist())
        of_line = [(line, runs_of[number]) for line, number in zip(kept, kind, strict=True) if line.identity in there]
        model = AuthorsModel(
            {line.identity: line.run_s for line, _ in of_line},
            {line.identity: runs for line, runs in of_line if runs},
            self.parameters,
        )
        return ProgramTrace(records, model, tuple(line for line, runs in of_line if runs))

    @cached_property
    def _make_alternatives(self) -> MakeAlternatives:
        return self.make_alternatives or policy_of(self.policy, self.parameters).alternatives

    def _alternatives_for(self, request: Request, program: Program | None) -> Alternatives:
        asked = JobRequest(compact(request, self.node_arrays.types), request, program)
        return self._make_alternatives(asked, self.node_arrays.types).alternatives

    def _runs(self, program: Program | None, processes: int) -> Runs:
        if program is None:
            return {}
        return program.at(processes, nearest=self.parameters.one_profile_for_all_sizes)

    def _without_programs(
        self, records: TraceArrays, alternatives: Callable[[Alternative], Alternatives]
    ) -> ProgramTrace:
        allowed = records.allowed_nodes or [None] * len(records.kinds)
        given = [
            self._that_fit(alternatives(own), own, nodes)
            for (own,), nodes in zip(records.choices, allowed, strict=True)
        ]
        run_s = dict(zip(records.identity.tolist(), records.run.astype(np.float64).tolist(), strict=True))
        return ProgramTrace(replace(records, given_choices=given), AuthorsModel(run_s, {}, self.parameters))

    def _that_fit(self, alternatives: Alternatives, own: Alternative, allowed: frozenset[str] | None) -> Alternatives:
        """Those that the allowed nodes can hold; if there are none the job keeps its geometry."""
        if allowed is None:
            return alternatives
        return tuple(each for each in alternatives if fits_ever(self.node_arrays, each, allowed)) or (own,)

    def _own_geometry(self, own: Alternative) -> Alternatives:
        return self._make_alternatives(JobRequest(own), self.node_arrays.types).alternatives

    def _spread(self, own: Alternative) -> Alternatives:
        """The alternatives for as many processes as the job has cores, with its memory per core."""
        cores = own.demand.cores
        request = Request(own.nodes * cores, memory_per_cpu_mb=-(-own.demand.memory_mb // cores))
        try:
            return self._make_alternatives(JobRequest(own, request), self.node_arrays.types).alternatives
        except Infeasible:
            # The memory per core, rounded up, exceeds the nodes' memory: the job keeps its geometry.
            return (own,)


def read_program_jobs(source: TraceFile, limit: int | None = None) -> list[ProgramJob]:
    """The jobs of a CSV file in the order of its lines; with a `limit` only the first ones, at most that many.

    Raises:
        BadInput: naming the line and what would be valid.
    """
    reader = CsvReader(source, HEADER, CHECKS, limit)
    table = reader.table()
    alpha = table.get("alpha", np.full(len(table["job_id"]), np.nan)).tolist()
    columns = (
        table["job_id"].astype(np.int64).tolist(),
        table["submit_s"].tolist(),
        table["run_s"].tolist(),
        reader.listed("program", table),
        table["processes"].astype(np.int64).tolist(),
        [None if math.isnan(each) else each for each in alpha],
    )
    return list(map(ProgramJob, *columns))
