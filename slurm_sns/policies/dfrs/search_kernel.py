"""DYNMCB8 and its variants: the largest yield, or smallest stretch, at which MCB8 packs all jobs, found by bisection.

If no packing is found, the job of the lowest priority is left out, and the search begins again. The packing of the last
success counts. Feasibility is not monotone, so the points and their order are part of the method.

*Yield*: the search tries a yield of 1, then 0.01, and then bisects the range between them until it is at most 0.01
wide. All points are multiples of 1/12800, and with CPU needs times a numerator everything is integers.

*Stretch*: the stretch of a job at the next run, T seconds from now, is estimated as (flow + T) / (virtual + y T), with
its flow time and virtual time now and its yield y until then. A target S asks each job for the yield that brings it to
S, at least 0.01 and at most 1. Tried are the smallest S that any yields could reach, then the largest that matters, and
then the middle of the range until its ends differ by at most 1 %.

Source: Dynamic fractional resource scheduling (IPDPS 2010), section III-B. The least yield for all, where the paper
raises negative ones only, is our choice.
"""

from slurm_sns.policies.dfrs.fluid_arrays import DecisionMoment, FluidCluster, Integers, copy
from slurm_sns.policies.dfrs.job_lists import give_all_nodes
from slurm_sns.policies.dfrs.mcb8_kernel import pack
from slurm_sns.policies.dfrs.order_kernel import sort_by_submit
from slurm_sns.policies.placement.compiled import entry_point, subroutine

#: The yields that are tried, as numerators of this denominator: 1, 0.01, and the points of the bisection.
DENOMINATOR = 12800
_WHOLE, _LEAST, _ACCURACY = 12800, 128, 128
LEAST_YIELD = 0.01
_STRETCH_ACCURACY = 1.01
#: The requirements of a stretch are no exact numbers: they fit if they exceed a node by no more than this fraction.
_TOLERANCE = 1e-9


@entry_point
def search_yield(cluster: FluidCluster, by_priority: Integers) -> tuple[int, int]:
    """Pack the jobs, given with the highest priority first, for the largest yield; all others have no nodes.

    Returns the numerator of the yield that was found, 0 if no job is left, and how many jobs are packed: the first ones
    of `by_priority`.
    """
    left = cluster.space.packed[: len(by_priority)]
    copy(left, by_priority)
    sort_by_submit(left, cluster.space.key, cluster.space.spare)
    while len(left):
        found, row = _bisect_yield(cluster, left)
        if found:
            _take_over(cluster, left, row)
            return found, len(left)
        left = left[: _leave_out(left, by_priority[len(left) - 1])]
    _take_over(cluster, left, 0)
    return 0, 0


@subroutine
def _bisect_yield(cluster: FluidCluster, jobs: Integers) -> tuple[int, int]:
    """The numerator of the last yield that succeeds, 0 if the least one fails, and the row that holds its packing."""
    required, packings = cluster.space.required, cluster.space.packings
    row, found, tried = 0, 0, _WHOLE
    low, high = _LEAST, _WHOLE
    while True:
        for job in jobs:
            required[job] = cluster.needs.cpu[job] * tried
        if pack(cluster, jobs, float(DENOMINATOR), 0.0, packings[row]):
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
def search_stretch(cluster: FluidCluster, by_priority: Integers, clock: DecisionMoment) -> None:
    """Pack the jobs for the smallest estimated stretch; the yields that it asks for become the jobs' floors."""
    left = cluster.space.packed[: len(by_priority)]
    copy(left, by_priority)
    sort_by_submit(left, cluster.space.key, cluster.space.spare)
    while len(left):
        found, row = _bisect_stretch(cluster, left, clock)
        if found > 0.0:
            _take_over(cluster, left, row)
            for job in left:
                cluster.states.floor[job] = _yield_for(cluster, job, found, clock)
            return
        left = left[: _leave_out(left, by_priority[len(left) - 1])]
    _take_over(cluster, left, 0)


@subroutine
def _bisect_stretch(cluster: FluidCluster, jobs: Integers, clock: DecisionMoment) -> tuple[float, int]:
    """The last stretch that succeeds, 0 if the largest fails, and the row that holds its packing."""
    required, packings = cluster.space.required, cluster.space.packings
    low, high = 0.0, 0.0
    for job in jobs:
        low = max(low, _stretch(cluster, job, 1.0, clock))
        high = max(high, _stretch(cluster, job, LEAST_YIELD, clock))
    row, found, tried = 0, 0.0, low
    while True:
        for job in jobs:
            required[job] = cluster.needs.cpu[job] * _yield_for(cluster, job, tried, clock)
        if pack(cluster, jobs, 1.0, _TOLERANCE, packings[row]):
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
    return min(max(wanted, LEAST_YIELD), 1.0)


@subroutine
def _leave_out(jobs: Integers, dropped: int) -> int:
    """Take one of the jobs away; the number of those that are left."""
    count = 0
    for job in jobs:
        if job != dropped:
            jobs[count] = job
            count += 1
    return count


@subroutine
def _take_over(cluster: FluidCluster, jobs: Integers, row: int) -> None:
    """Give these jobs the places of a packing, and all others none."""
    for job in jobs:
        for place in range(cluster.needs.first[job], cluster.needs.end[job]):
            cluster.states.places[place] = cluster.space.packings[row, place]
    give_all_nodes(cluster, jobs)
