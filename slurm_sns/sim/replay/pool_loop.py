"""The compiled event loop of a site with pools, apart from the others because jobs are suspended, moved and resumed.

At one instant jobs complete, jobs are submitted in trace order, every pool serves its waiting jobs in list order, and
then the newly suspended jobs are decided on.

The virtual pool chooses the pool of a job that names none, once, at its submission, among the pools in which the job
may run and that have a node that is large enough. Round robin takes the next one in list order after the one that was
taken last, whatever their load; availability takes the one with the largest share of free cores.

Source: Cost-based dynamic job rescheduling (2010), sections 2.1 ("according to resource availability") and 4. The order
of events at one instant, and what is available, are our choice.
"""

from slurm_sns.policies.placement.compiled import entry_point, subroutine
from slurm_sns.policies.rescheduling.changes_kernel import end, join
from slurm_sns.policies.rescheduling.decision_kernel import add_run, add_sample, decide_all
from slurm_sns.policies.rescheduling.pool_arrays import (
    CHECKS,
    CORES_USED,
    FIRST_CHECK,
    IN_HEAP,
    LAST_POOL,
    NOBODY,
    NOW,
    PENDING_END,
    PENDING_FIRST,
    SUBMITTED,
    SUSPENDED_JOBS,
    VISITS,
    Integers,
    PoolRules,
    PoolSite,
)
from slurm_sns.policies.rescheduling.serving_kernel import serve

#: Why a part of the replay ended.
MORE, DONE, FULL, TOO_LATE = range(4)


@entry_point
def replay_some(  # noqa: PLR0917  compiled functions have no keyword-only arguments
    site: PoolSite, rules: PoolRules, cores_used: Integers, suspended_jobs: Integers, every: int, most: int
) -> int:
    """Replay at most so many instants: MORE are left, all jobs are DONE, a log or ring is FULL, or it is TOO_LATE.

    The cores in use and the suspended jobs are sampled at 0, `every`, 2 `every` ..., after the events of that instant.
    """
    counters = site.counters
    for _ in range(most):
        now = _next_instant(site)
        if now != NOBODY and counters[CHECKS] > 0:
            now = min(now, max(site.checks.due[counters[FIRST_CHECK]], counters[NOW]))
        if now == NOBODY:
            return DONE
        if now > rules.latest:
            return TOO_LATE
        _sample(site, cores_used, suspended_jobs, every, now)
        counters[NOW] = now
        while counters[IN_HEAP] > 0 and site.lives.end[site.heap[0]] == now:
            job = site.heap[0]
            end(site, job)
            if rules.restarts:
                add_sample(site, rules, job)
            if rules.by_recent_runs:
                add_run(site, rules, job)
        _submit(site, rules)
        for pool in range(len(site.queues.is_due)):
            if site.queues.is_due[pool]:
                serve(site, rules, pool)
        if rules.restarts:
            decide_all(site, rules)
        counters[PENDING_FIRST], counters[PENDING_END] = 0, 0
        if counters[VISITS] > len(site.logs.visits) or counters[CHECKS] > len(site.checks.due):
            return FULL
    return MORE


@subroutine
def _next_instant(site: PoolSite) -> int:
    """When something happens next, NOBODY if nothing does."""
    counters, submit = site.counters, site.jobs.submit
    ends = site.lives.end[site.heap[0]] if counters[IN_HEAP] > 0 else NOBODY
    if counters[SUBMITTED] == len(submit):
        return ends
    submits = submit[counters[SUBMITTED]]
    return int(submits if ends == NOBODY else min(ends, submits))


@subroutine
def _sample(site: PoolSite, cores_used: Integers, suspended_jobs: Integers, every: int, before: int) -> None:
    """Fill in the samples from the last instant on until `before`, where the next one is."""
    now = site.counters[NOW]
    first = 0 if now < 0 else -(-now // every)
    for at in range(first, min(-(-before // every), len(cores_used))):
        cores_used[at] = site.counters[CORES_USED]
        suspended_jobs[at] = site.counters[SUSPENDED_JOBS]


@subroutine
def _submit(site: PoolSite, rules: PoolRules) -> None:
    """Put the jobs that are submitted now into their pools."""
    counters, jobs = site.counters, site.jobs
    while counters[SUBMITTED] < len(jobs.submit) and jobs.submit[counters[SUBMITTED]] == counters[NOW]:
        job = counters[SUBMITTED]
        counters[SUBMITTED] += 1
        pool = jobs.asked[job]
        if pool == NOBODY:
            pool = _freest_pool(site, job) if rules.by_availability else _next_pool(site, job)
        join(site, rules, pool, job)


@subroutine
def _next_pool(site: PoolSite, job: int) -> int:
    """The virtual pool's choice: the next in list order and round that may hold the job."""
    pools = len(site.queues.is_due)
    pool = site.counters[LAST_POOL]
    for _ in range(pools):
        pool = (pool + 1) % pools
        if _may_hold(site, pool, job):
            break
    site.counters[LAST_POOL] = pool
    return int(pool)


@subroutine
def _freest_pool(site: PoolSite, job: int) -> int:
    """The virtual pool's choice by availability: the largest share of free cores, of equal ones the first."""
    nodes, found, free, cores = site.nodes, NOBODY, 0, 1
    for pool in range(len(site.queues.is_due)):
        if _may_hold(site, pool, job):
            mine, its = 0, 0
            for node in range(nodes.first[pool], nodes.first[pool + 1]):
                mine += nodes.free_cores[node]
                its += nodes.cores[node]
            if found == NOBODY or mine * cores > free * its:
                found, free, cores = pool, mine, its
    return found


@subroutine
def _may_hold(site: PoolSite, pool: int, job: int) -> bool:
    jobs = site.jobs
    return bool(jobs.allowed_sets[jobs.allowed[job], pool] and site.kinds.fits[jobs.kind[job], pool])
