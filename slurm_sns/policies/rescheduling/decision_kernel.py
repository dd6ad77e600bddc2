"""The decisions on suspended jobs (compiled): in which pool each is expected to complete first.

The expected remaining completion time in the job's own pool is the mean suspend time of this pool's jobs and what is
left to run, elsewhere the mean wait time and the mean suspend time there and the whole run, from the beginning. The
pool with the smallest sum wins; among equal ones the job's own pool, then the first in list order. A queued job has to
wait in its own pool, too. A move takes effect at once: the job joins the end of the other pool's queue, both pools
serve, and the next decision sees the result.

Means are those of the jobs of the same priority that completed in the pool within the window. A pool without such jobs
counts with the means of the whole site; another pool counts with 0 if it has room for the job now. If no such job
completed anywhere, the job stays.

Means are compared exactly: a mean is a quotient and a remainder of whole ticks, and remainders of different means are
compared by their products.

Source: Cost-based dynamic job rescheduling (2010), equations 2 to 4; equation 5 prints what is left to run where the
text and equation 3 mean the whole run. What a pool without samples counts is our choice.
"""

from slurm_sns.policies.placement.compiled import subroutine
from slurm_sns.policies.rescheduling.changes_kernel import leave_queue, move, note_check
from slurm_sns.policies.rescheduling.pool_arrays import (
    CHECKS,
    DECISIONS,
    FIRST_CHECK,
    NOBODY,
    NOW,
    PENDING_END,
    PENDING_FIRST,
    QUEUED,
    SUSPENDED,
    TERMS,
    PoolRules,
    PoolSite,
)
from slurm_sns.policies.rescheduling.serving_kernel import has_room, serve
from slurm_sns.policies.rescheduling.windows_kernel import drop_old_samples, expected_run

#: Where the means of a term come from: the pool's samples, those of all pools, 0 since it has room now, or nothing.
POOL, SITE, ROOM, NONE = range(4)


@subroutine
def decide_all(site: PoolSite, rules: PoolRules) -> None:
    """Decide on the newly suspended jobs one by one, then on those that have waited; a move takes effect at once."""
    while True:
        job = _next_suspended(site)
        is_queued = job == NOBODY
        if is_queued:
            job = _next_queued(site, rules)
        if job == NOBODY:
            break
        own = site.lives.pool[job]
        chosen = _choose(site, rules, job, is_queued)
        if chosen == own:
            continue
        if is_queued:
            leave_queue(site, rules, chosen, job)
        else:
            move(site, rules, chosen, job)
        serve(site, rules, min(own, chosen))
        serve(site, rules, max(own, chosen))


@subroutine
def _next_suspended(site: PoolSite) -> int:
    """The next newly suspended job, NOBODY if there is none; it is not to be decided on again now."""
    counters, lives = site.counters, site.lives
    while counters[PENDING_FIRST] < counters[PENDING_END]:
        at = counters[PENDING_FIRST]
        job = site.pending[at]
        counters[PENDING_FIRST] += 1
        if lives.state[job] == SUSPENDED and lives.joined[job] == at:
            lives.joined[job] = NOBODY
            return int(job)
        # It has resumed, or was suspended again later.
    return NOBODY


@subroutine
def _next_queued(site: PoolSite, rules: PoolRules) -> int:
    """The next queued job that is due, NOBODY if there is none; its next check is noted."""
    counters, checks = site.counters, site.checks
    while counters[CHECKS] > 0 and checks.due[counters[FIRST_CHECK]] <= counters[NOW]:
        at = counters[FIRST_CHECK]
        job = checks.job[at]
        counters[FIRST_CHECK] = (at + 1) % len(checks.due)
        counters[CHECKS] -= 1
        if site.lives.state[job] == QUEUED and site.lives.end[job] == checks.due[at]:
            note_check(site, rules, job)
            return int(job)
    return NOBODY


@subroutine
def _choose(site: PoolSite, rules: PoolRules, job: int, is_queued: bool) -> int:
    """The pool where the job is expected to complete first."""
    jobs, lives, kind = site.jobs, site.lives, site.jobs.kind[job]
    level, own = site.kinds.level[kind], lives.pool[job]
    samples, waited, suspended = _site_sums(site, rules, level)
    run = expected_run(site, rules, job)
    left = max(run - lives.ran[job], 0) if run != NOBODY else 0
    if samples == 0:
        _note_term(site, own, 0, NONE, 0, 0, left, 1)
        _note_decision(site, job, own, own)
        return int(own)
    here = site.samples.number[own, level]
    basis, count = (POOL, here) if here else (SITE, samples)
    total = site.samples.suspended[own, level] if here else suspended
    wait = 0
    if is_queued:
        wait = site.samples.waited[own, level] if here else waited
    _note_term(site, own, here, basis, wait, total, left, count)
    best, whole, part, parts = own, (wait + total) // count + left, (wait + total) % count, count
    may_move = run != NOBODY and (rules.most_moves == 0 or lives.moves[job] < rules.most_moves)
    there_run = left if rules.takes_remaining or is_queued else run
    if not is_queued:
        there_run += rules.move_cost
    for pool in range(len(site.nodes.first) - 1):
        is_allowed = may_move and jobs.allowed_sets[jobs.allowed[job], pool] and site.kinds.fits[kind, pool]
        if pool == own or not is_allowed:
            continue
        there = site.samples.number[pool, level]
        basis, count, wait, total = SITE, samples, waited, suspended
        if there:
            basis, count = POOL, there
            wait, total = site.samples.waited[pool, level], site.samples.suspended[pool, level]
        elif has_room(site, pool, kind):
            basis, count, wait, total = ROOM, 1, 0, 0
        _note_term(site, pool, there, basis, wait, total, there_run, count)
        mean, rest = (wait + total) // count + there_run, (wait + total) % count
        if mean < whole or (mean == whole and rest * parts < part * count):
            best, whole, part, parts = pool, mean, rest, count
    _note_decision(site, job, own, best)
    return int(best)


@subroutine
def _site_sums(site: PoolSite, rules: PoolRules, level: int) -> tuple[int, int, int]:
    """The number of samples of all pools, and their sums."""
    count, waited, suspended = 0, 0, 0
    for pool in range(len(site.nodes.first) - 1):
        drop_old_samples(site, pool, level, site.counters[NOW] - rules.window)
        count += site.samples.number[pool, level]
        waited += site.samples.waited[pool, level]
        suspended += site.samples.suspended[pool, level]
    return count, waited, suspended


@subroutine
def _note_term(  # noqa: PLR0917  compiled functions have no keyword-only arguments
    site: PoolSite, pool: int, samples: int, basis: int, waited: int, suspended: int, run: int, count: int
) -> None:
    log, row = site.logs.terms, site.counters[TERMS]
    if row < len(log):
        log[row, 0], log[row, 1], log[row, 2], log[row, 3] = site.counters[DECISIONS], pool, samples, basis
        log[row, 4], log[row, 5], log[row, 6], log[row, 7] = waited, suspended, run, count
    site.counters[TERMS] += 1


@subroutine
def _note_decision(site: PoolSite, job: int, own: int, chosen: int) -> None:
    log, row = site.logs.decisions, site.counters[DECISIONS]
    if row < len(log):
        log[row, 0], log[row, 1], log[row, 2], log[row, 3] = site.counters[NOW], job, own, chosen
    site.counters[DECISIONS] += 1
