"""The sliding window of each pool and level (compiled). Twin: module samples."""

from slurm_sns.policies.placement.compiled import subroutine
from slurm_sns.policies.rescheduling.pool_arrays import NOBODY, PoolRules, PoolSite


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
    drop_old(site, pool, level, lives.end[job] - rules.window)


@subroutine
def drop_old(site: PoolSite, pool: int, level: int, oldest: int) -> None:
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
