"""The recent runs of each program (compiled). Twin: module run_times."""

from slurm_sns.policies.placement.compiled import subroutine
from slurm_sns.policies.rescheduling.pool_arrays import NOBODY, NOW, PoolRules, PoolSite


@subroutine
def add_run(site: PoolSite, rules: PoolRules, job: int) -> None:
    """Count the run of a job that completes now."""
    programs, program = site.programs, site.programs.of[job]
    if program == NOBODY:
        return
    last = programs.tail[program]
    programs.next[job] = NOBODY
    if last == NOBODY:
        programs.head[program] = job
    else:
        programs.next[last] = job
    programs.tail[program] = job
    programs.number[program] += 1
    programs.run[program] += site.jobs.run[job]
    _drop_old(site, rules, program)


@subroutine
def expected_run(site: PoolSite, rules: PoolRules, job: int) -> int:
    """The run time of the job as decisions know it, in ticks; NOBODY if nothing is known."""
    if not rules.by_recent_runs or site.programs.of[job] == NOBODY:
        return int(site.jobs.expected[job])
    programs, program = site.programs, site.programs.of[job]
    _drop_old(site, rules, program)
    if programs.number[program] == 0:
        return int(site.jobs.expected[job])
    both = 2 * programs.number[program] * rules.second
    return int((2 * programs.run[program] + programs.number[program] * rules.second) // both * rules.second)


@subroutine
def _drop_old(site: PoolSite, rules: PoolRules, program: int) -> None:
    """Drop the runs that are no longer recent."""
    programs = site.programs
    job = programs.head[program]
    while job != NOBODY and site.lives.end[job] < site.counters[NOW] - rules.recent:
        programs.number[program] -= 1
        programs.run[program] -= site.jobs.run[job]
        job = programs.next[job]
    programs.head[program] = job
    if job == NOBODY:
        programs.tail[program] = NOBODY
