"""The jobs of a trace with the alternatives that a policy of Spread-n-Share's family gives them.

In a CSV of programs the alternatives follow from each job's processes and its program's profile. In SWF no job has a
profile: CS spreads the processes, the other policies keep the equal parts. In a CSV for matching the jobs keep their
own geometry. Under CE all jobs run on empty nodes.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property

from slurm_sns.errors import BadInput, Infeasible
from slurm_sns.model import Alternative, Job
from slurm_sns.policies.base import JobRequest, MakeAlternatives, Request
from slurm_sns.policies.placement.node_arrays import NodeArrays
from slurm_sns.policies.placement.request import compact
from slurm_sns.policies.profile import Program
from slurm_sns.policies.registry import specification
from slurm_sns.policies.specification import GeometryChoice
from slurm_sns.policies.spread_n_share.parameters import SpreadingParameters
from slurm_sns.sim.engine.spreading_policies import policy_of
from slurm_sns.sim.progress.authors_model import AuthorsModel, Runs
from slurm_sns.sim.traces.files import read_text
from slurm_sns.sim.traces.programs_csv import ProgramJob, header_of, read_program_jobs
from slurm_sns.sim.traces.read_trace import read_trace
from slurm_sns.sim.traces.trace import TOO_LARGE, JobMaker, Trace, TraceJob

Alternatives = tuple[Alternative, ...]


@dataclass(frozen=True)
class ProgramTrace:
    """A trace, how long its jobs run, how many of them have no profile, and the lines of those that have one."""

    trace: Trace
    model: AuthorsModel
    without_profile: int
    profiled: tuple[ProgramJob, ...] = ()


@dataclass(frozen=True)
class TraceReader:
    """Reads traces for one policy on one cluster.

    With `user_estimates` jobs are expected to run until the time limits that their owners asked for, otherwise as long
    as they run under CE. `make_alternatives` replaces the policy's own way to make alternatives.
    """

    node_arrays: NodeArrays
    policy: str
    programs: Mapping[str, Program]
    parameters: SpreadingParameters
    user_estimates: bool = False
    make_alternatives: MakeAlternatives | None = None

    def read(self, name: str, *, load_factor: float = 1.0, limit: int | None = None) -> ProgramTrace:
        """The trace in the file `name` (`-`: SWF on standard input).

        Raises:
            BadInput: naming file, line and what would be valid.
        """
        header = header_of(name)
        if "program" in header:
            if self.user_estimates:
                raise BadInput(f"{name}: a CSV has no time limits; valid with user estimates: SWF")
            return self.of_programs(name, read_program_jobs(name, read_text(name), limit), load_factor=load_factor)
        trace = read_trace(
            name, self.node_arrays, load_factor=load_factor, limit=limit, user_estimates=self.user_estimates
        )
        is_swf = "job_id" not in header
        spreads = is_swf and specification(self.policy).geometry is GeometryChoice.ANY_SCALE
        return self._without_programs(trace, self._spread if spreads else self._own_geometry)

    def of_programs(self, name: str, lines: Iterable[ProgramJob], *, load_factor: float = 1.0) -> ProgramTrace:
        """The trace of these jobs; `name` stands for it in errors.

        Raises:
            BadInput: no job is left.
        """
        maker, dropped = JobMaker(load_factor), Counter[str]()
        jobs: list[TraceJob] = []
        run_s: dict[int, float] = {}
        runs: dict[int, Runs] = {}
        profiled: list[ProgramJob] = []
        alternatives_of = cache(self._alternatives_for)
        for line in lines:
            program = self.programs.get(line.program)
            try:
                alternatives = alternatives_of(line.request, program)
            except Infeasible:
                dropped[TOO_LARGE] += 1
                continue
            alternative = alternatives[0]
            made = maker.job(
                line.identity,
                line.submit_s,
                line.run_s,
                nodes=alternative.nodes,
                cores=alternative.demand.cores,
                memory_mb=alternative.demand.memory_mb,
            )
            jobs.append(replace(made, job=replace(made.job, alternatives=alternatives)))
            run_s[line.identity] = line.run_s
            runs[line.identity] = self._runs(program, line.processes)
            if runs[line.identity]:
                profiled.append(line)
        trace = Trace.of(name, jobs, dropped, self.node_arrays)
        without = sum(not runs[each.job.id] for each in trace.jobs)
        return ProgramTrace(trace, AuthorsModel(run_s, runs, self.parameters), without, tuple(profiled))

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

    def _without_programs(self, trace: Trace, alternatives: Callable[[Job], Alternatives]) -> ProgramTrace:
        alternatives_of: dict[Alternatives, Alternatives] = {}
        jobs = []
        for each in trace.jobs:
            known = alternatives_of.get(each.job.alternatives)
            if known is None:
                known = alternatives_of[each.job.alternatives] = alternatives(each.job)
            jobs.append(replace(each, job=replace(each.job, alternatives=known)))
        run_s = {each.job.id: float(each.run_s) for each in jobs}
        model = AuthorsModel(run_s, {}, self.parameters)
        return ProgramTrace(replace(trace, jobs=tuple(jobs)), model, len(jobs))

    def _own_geometry(self, job: Job) -> Alternatives:
        (own,) = job.alternatives
        return self._make_alternatives(JobRequest(own), self.node_arrays.types).alternatives

    def _spread(self, job: Job) -> Alternatives:
        """The alternatives for as many processes as the job has cores, with its memory per core."""
        (own,) = job.alternatives
        cores = own.demand.cores
        request = Request(own.nodes * cores, memory_per_cpu_mb=-(-own.demand.memory_mb // cores))
        try:
            return self._make_alternatives(JobRequest(own, request), self.node_arrays.types).alternatives
        except Infeasible:
            # The memory per core, rounded up, exceeds the nodes' memory: the job keeps its geometry.
            return job.alternatives
