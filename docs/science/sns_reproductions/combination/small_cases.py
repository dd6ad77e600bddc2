"""Small queues in one cycle on empty nodes: what each variant starts, beside the best of all assignments."""

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import combinations

import numpy as np

from slurm_sns.model import Alternative, Job
from slurm_sns.policies.placement.portfolio import Portfolio
from slurm_sns.policies.placement.waiting_queue import WaitingQueue
from slurm_sns.policies.spread_n_share.parameters import SpreadingParameters
from slurm_sns.sim.engine.spreading_policies import COMBINED
from slurm_sns.sim.traces.program_trace import TraceReader
from sns_reproductions import spread_n_share as sns
from sns_reproductions.combination.variants import PARTS, rules_of
from sns_reproductions.combination.workload import Scarce, drawn, programs

BEST = "best of all"
#: The smallest and the largest number of jobs and of nodes.
JOBS, NODES = (2, 6), (2, 3)
#: How many jobs start, and the sum of their slowdowns with its sign turned: the larger, the better.
Value = tuple[int, float]
#: What is free on each node.
Free = tuple[tuple[int, ...], ...]


def best_of_all(jobs: Sequence[Job], free: Free, capacity: tuple[int, ...]) -> Value:
    """The most jobs that can start on these nodes, all of this capacity, with the least sum of slowdowns."""

    @cache
    def best(at: int, left: Free) -> Value:
        if at == len(jobs):
            return 0, 0.0
        options = [best(at + 1, left)]
        for alternative in jobs[at].alternatives:
            for after in _placed(alternative, left, capacity):
                count, slowdowns = best(at + 1, after)
                options.append((count + 1, slowdowns - alternative.slowdown))
        return max(options)

    return best(0, tuple(sorted(free)))


def _placed(alternative: Alternative, free: Free, capacity: tuple[int, ...]) -> Iterator[Free]:
    """What is left after each way to place the alternative; nodes of which equally much is free are alike."""
    needed = capacity if alternative.exclusive else alternative.demand.all_but_gpus
    fitting = [at for at, left in enumerate(free) if all(a <= b for a, b in zip(needed, left, strict=True))]
    seen = set()
    for chosen in combinations(fitting, alternative.nodes):
        left = [
            tuple(b - a for a, b in zip(needed, each, strict=True)) if at in chosen else each
            for at, each in enumerate(free)
        ]
        seen.add(tuple(sorted(left)))
    yield from seen


def run_case(parameters: SpreadingParameters, seed: int) -> dict[str, list[float]]:
    """One case: by variant of `combined`, and for the best of all assignments, the jobs started and their slowdowns."""
    rng = np.random.default_rng(seed)
    node_arrays = sns.cluster(int(rng.integers(NODES[0], NODES[1] + 1)))
    every = Scarce(tuple(sns.shipped_programs()), much_memory=False)
    jobs = drawn(every, int(rng.integers(JOBS[0], JOBS[1] + 1)), rng, widths={0.5: 0.5, 1: 0.5})
    trace = TraceReader(node_arrays, COMBINED, programs(), parameters).of_programs("the case", jobs).trace
    waiting = [each.job for each in trace.jobs]
    free = tuple(tuple(column) for column in node_arrays.capacity.T.tolist())
    found = {BEST: [float(value) for value in best_of_all(waiting, free, free[0])]}
    for name, variant in PARTS.items():
        if variant.is_plain and variant.is_candidate:
            policy = Portfolio(rules_of(variant, parameters))
            matches = policy.schedule(node_arrays, node_arrays.capacity, WaitingQueue.of(waiting, {})).matches
            found[name] = [float(len(matches)), -sum(match.alternative.slowdown for match in matches)]
    return found
