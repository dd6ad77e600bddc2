"""The jobs that completed lately (compiled): the samples of each pool and priority, and the runs of each program.

A job that completed at c is in the window at t if t - W <= c <= t. It counts in the pool where it completed, with what
it waited and was suspended there over all its visits. The paper (section 3.2) can be read in two ways: its averages are
over all jobs that completed, those never suspended with 0 (`all`), or over those that were suspended at least once
(`suspended`).

A job is expected to run for the mean of the recent runs of its program, in whole seconds, else for its time limit: over
24 hours the mean run time of a program's jobs varies little (section 3.2 and figure 5). The paper's own experiments
take run times as known.

Source: Cost-based dynamic job rescheduling (2010).
"""

from slurm_sns.policies.placement.compiled import subroutine
from slurm_sns.policies.rescheduling.pool_arrays import NOBODY, NOW, PoolRules, PoolSite

#: Runs that ended earlier than this before a decision are no longer recent.
RECENT_S = 86_400


@subroutine
def add_sample(site: PoolSite, rules: PoolRules, job: int) -> None:
    """Count a job that completes now."""
    samples, lives = site.samples, site.lives
    if rules.only_suspended and lives.suspensions[job] == 0:
        return
    pool, level = lives.pool[job], site.kinds.level[site.jobs.kind[job]]
    last = samples.tail[pool, level]
    lives.next[job] = NOBODY
    if last == NOBODY:
        samples.head[pool, level] = job
    else:
        lives.next[last] = job
    samples.tail[pool, level] = job
    samples.number[pool, level] += 1
    samples.waited[pool, level] += lives.waited[job]
    samples.suspended[pool, level] += lives.suspended[job]
    drop_old_samples(site, pool, level, lives.end[job] - rules.window)


@subroutine
def drop_old_samples(site: PoolSite, pool: int, level: int, oldest: int) -> None:
    """Drop the samples of jobs that completed before `oldest`."""
    samples, lives = site.samples, site.lives
    job = samples.head[pool, level]
    while job != NOBODY and lives.end[job] < oldest:
        samples.number[pool, level] -= 1
        samples.waited[pool, level] -= lives.waited[job]
        samples.suspended[pool, level] -= lives.suspended[job]
        job = lives.next[job]
    samples.head[pool, level] = job
    if job == NOBODY:
        samples.tail[pool, level] = NOBODY


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
    _drop_old_runs(site, rules, program)


@subroutine
def expected_run(site: PoolSite, rules: PoolRules, job: int) -> int:
    """The run time of the job as decisions know it, in ticks; NOBODY if nothing is known."""
    if not rules.by_recent_runs or site.programs.of[job] == NOBODY:
        return int(site.jobs.expected[job])
    programs, program = site.programs, site.programs.of[job]
    _drop_old_runs(site, rules, program)
    if programs.number[program] == 0:
        return int(site.jobs.expected[job])
    both = 2 * programs.number[program] * rules.second
    return int((2 * programs.run[program] + programs.number[program] * rules.second) // both * rules.second)


@subroutine
def _drop_old_runs(site: PoolSite, rules: PoolRules, program: int) -> None:
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
