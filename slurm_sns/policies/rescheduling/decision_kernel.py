"""The decisions on suspended jobs (compiled): in which pool each is expected to complete first.

The expected remaining completion time in the job's own pool is the mean suspend time of this pool's jobs and what is
left to run, elsewhere the mean wait time and the mean suspend time there and the whole run, from the beginning. The
pool with the smallest sum wins; among equal ones the job's own pool, then the first in list order. A queued job has to
wait in its own pool, too. A move takes effect at once: the job joins the end of the other pool's queue, both pools
serve, and the next decision sees the result.

Means are those of the jobs of the same priority that completed in the pool within the window: a job that completed at c
is in the window at t if t - W <= c <= t. It counts in the pool where it completed, with what it waited and was
suspended there over all its visits. The paper (section 3.2) can be read in two ways: its averages are over all jobs
that completed, those never suspended with 0 (`all`), or over those that were suspended at least once (`suspended`). A
pool without such jobs counts with the means of the whole site; another pool counts with 0 if it has room for the job
now. If no such job completed anywhere, the job stays.

A job is expected to run for the mean of the recent runs of its program, in whole seconds, else for its time limit: over
24 hours the mean run time of a program's jobs varies little (section 3.2 and figure 5). The paper's own experiments
take run times as known.

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

#: Where the means of a term come from: the pool's samples, those of all pools, 0 since it has room now, or nothing.
POOL, SITE, ROOM, NONE = range(4)
#: Runs that ended earlier than this before a decision are no longer recent.
RECENT_S = 86_400


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
    run = _expected_run(site, rules, job)
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
        _drop_old_samples(site, pool, level, site.counters[NOW] - rules.window)
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
    _drop_old_samples(site, pool, level, lives.end[job] - rules.window)


@subroutine
def _drop_old_samples(site: PoolSite, pool: int, level: int, oldest: int) -> None:
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
def _expected_run(site: PoolSite, rules: PoolRules, job: int) -> int:
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
