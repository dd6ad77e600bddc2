"""The compiled twins of modules yield_search and stretch_search."""

from slurm_sns.policies.dfrs import stretch_search, yield_search
from slurm_sns.policies.dfrs.fluid_arrays import DecisionMoment, FluidCluster, Integers
from slurm_sns.policies.dfrs.mcb8 import TOLERANCE
from slurm_sns.policies.dfrs.mcb8_kernel import pack
from slurm_sns.policies.placement.compiled import entry_point, subroutine

_DENOMINATOR = float(yield_search.DENOMINATOR)
_WHOLE, _LEAST, _ACCURACY = yield_search.WHOLE, yield_search.LEAST, yield_search.ACCURACY
_LEAST_YIELD, _STRETCH_ACCURACY = stretch_search.LEAST_YIELD, stretch_search.ACCURACY


@entry_point
def search_yield(cluster: FluidCluster, jobs: Integers, by_priority: Integers) -> tuple[int, int]:
    """Pack the jobs, given in submit order, for the largest yield; those that are left out have no nodes.

    `by_priority` are the same jobs, with the highest priority first. Returns the numerator of the yield that was found,
    0 if no job is left, and how many jobs were left out: the last ones of `by_priority`.
    """
    too_many = _without_memory(cluster, jobs, by_priority)
    left = cluster.space.packed[: len(jobs) - too_many]
    for dropped in range(too_many, len(jobs)):
        found, row = _bisect_yield(cluster, left)
        if found:
            _take_over(cluster, left, row)
            return found, dropped
        left = left[: _leave_out(cluster, left, by_priority[len(jobs) - 1 - dropped])]
    return 0, len(jobs)


@subroutine
def _bisect_yield(cluster: FluidCluster, jobs: Integers) -> tuple[int, int]:
    """The numerator of the last yield that succeeds, 0 if the least one fails, and the row that holds its packing."""
    required, packings = cluster.space.required, cluster.space.packings
    row, found, tried = 0, 0, _WHOLE
    low, high = _LEAST, _WHOLE
    while True:
        for job in jobs:
            required[job] = cluster.needs.cpu[job] * tried
        if pack(cluster, jobs, _DENOMINATOR, 0.0, packings[row]):
            found, low = tried, tried
            row = 1 - row
        elif tried == _LEAST:
            return 0, 0
        else:
            high = tried
        if found and high - low <= _ACCURACY:
            return found, 1 - row
        tried = (low + high) // 2 if found else _LEAST


@entry_point
def search_stretch(cluster: FluidCluster, jobs: Integers, by_priority: Integers, clock: DecisionMoment) -> None:
    """The same for the smallest estimated stretch; the yields that it asks for become the jobs' floors."""
    too_many = _without_memory(cluster, jobs, by_priority)
    left = cluster.space.packed[: len(jobs) - too_many]
    for dropped in range(too_many, len(jobs)):
        found, row = _bisect_stretch(cluster, left, clock)
        if found > 0.0:
            _take_over(cluster, left, row)
            for job in left:
                cluster.states.floor[job] = _yield_for(cluster, job, found, clock)
            return
        left = left[: _leave_out(cluster, left, by_priority[len(jobs) - 1 - dropped])]


@subroutine
def _bisect_stretch(cluster: FluidCluster, jobs: Integers, clock: DecisionMoment) -> tuple[float, int]:
    """The last stretch that succeeds, 0 if the largest fails, and the row that holds its packing."""
    required, packings = cluster.space.required, cluster.space.packings
    low, high = 0.0, 0.0
    for job in jobs:
        low = max(low, _stretch(cluster, job, 1.0, clock))
        high = max(high, _stretch(cluster, job, _LEAST_YIELD, clock))
    row, found, tried = 0, 0.0, low
    while True:
        for job in jobs:
            required[job] = cluster.needs.cpu[job] * _yield_for(cluster, job, tried, clock)
        if pack(cluster, jobs, 1.0, TOLERANCE, packings[row]):
            found, high = tried, tried
            row = 1 - row
        elif tried == high:
            return 0.0, 0
        else:
            low = tried
        if found > 0.0 and high / low <= _STRETCH_ACCURACY:
            return found, 1 - row
        tried = (low + high) / 2 if found > 0.0 else high


@subroutine
def _stretch(cluster: FluidCluster, job: int, cpu_yield: float, clock: DecisionMoment) -> float:
    """The job's stretch at the next run, if it has this yield until then."""
    flow_s = clock.now_s - cluster.needs.submit_s[job] + clock.period_s
    return flow_s / (cluster.states.virtual_s[job] + cpu_yield * clock.period_s)


@subroutine
def _yield_for(cluster: FluidCluster, job: int, stretch: float, clock: DecisionMoment) -> float:
    """The yield that brings the job to this stretch at the next run."""
    flow_s = clock.now_s - cluster.needs.submit_s[job] + clock.period_s
    wanted = (flow_s / stretch - cluster.states.virtual_s[job]) / clock.period_s
    return min(max(wanted, _LEAST_YIELD), 1.0)


@subroutine
def _without_memory(cluster: FluidCluster, jobs: Integers, by_priority: Integers) -> int:
    """Write the jobs whose memory together the nodes have to `space.packed`; how many are left out at once.

    No packing of more jobs succeeds, so that the searches for them, which all fail, are not made.
    """
    needs, states, space = cluster.needs, cluster.states, cluster.space
    memory = 0.0
    for job in jobs:
        memory += needs.memory[job] * needs.tasks[job]
        space.left[job] = needs.tasks[job]
    dropped = 0
    while memory > cluster.capacity.all_memory:
        worst = by_priority[len(jobs) - 1 - dropped]
        memory -= needs.memory[worst] * needs.tasks[worst]
        states.has_nodes[worst] = False
        space.left[worst] = 0
        dropped += 1
    count = 0
    for job in jobs:
        if space.left[job]:
            space.packed[count] = job
            count += 1
    return dropped


@subroutine
def _leave_out(cluster: FluidCluster, jobs: Integers, dropped: int) -> int:
    """Take one of the jobs away, which gets no nodes; the number of those that are left."""
    cluster.states.has_nodes[dropped] = False
    count = 0
    for job in jobs:
        if job != dropped:
            jobs[count] = job
            count += 1
    return count


@subroutine
def _take_over(cluster: FluidCluster, jobs: Integers, row: int) -> None:
    """Give these jobs the places of a packing."""
    needs, states = cluster.needs, cluster.states
    for job in jobs:
        for place in range(needs.first[job], needs.end[job]):
            states.places[place] = cluster.space.packings[row, place]
        states.has_nodes[job] = True
