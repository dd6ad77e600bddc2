"""All parallel jobs of Trinity on a large cluster, under CE and Spread-n-Share, each in a process of its own.

    python tests/benchmarks/trinity.py TRACE.swf.gz [--nodes 32768] [--ratio 0.9] [--policies ce,sns] [--seed 1]

TRACE is the Trinity trace of the ATLAS repository in SWF, 32 processors a node. As in Spread-n-Share (SC'19), section
6.4: jobs on more than one node and on at most 4,096, on nodes of 28 cores; each runs a scaling program with probability
RATIO, else one of the others; the profile with 16 processes serves every size. Prints JSON: for each policy the user +
system seconds of the whole process (with functions compiled before), those of the replay alone, those of the same
process with one job, the peak memory, and the results of the simulation; and the sum over the policies.
"""

import argparse
import gzip
import json
import multiprocessing
import resource
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from profiled_jobs import PAPER_NODE, programs

from slurm_sns.model import Node
from slurm_sns.policies.placement.node_arrays import NodeArrays
from slurm_sns.policies.spread_n_share.parameters import REPRODUCTION
from slurm_sns.sim.engine.matching import Simulation
from slurm_sns.sim.engine.spreading_policies import policy_of
from slurm_sns.sim.progress.progress import Fixed
from slurm_sns.sim.traces.program_trace import ProgramJob, TraceReader

TRINITY_CORES, CORES, MOST_NODES = 32, 28, 4096
SCALING = ("mg", "cg", "lu", "ts", "bw")
PARAMETERS = replace(REPRODUCTION, one_profile_for_all_sizes=True, unspreadable_is_compact=True)


def parallel_jobs(trace: Path, ratio: float, seed: int) -> list[ProgramJob]:
    """The trace's jobs on several nodes, with a program for each."""
    rng = np.random.default_rng(seed)
    others = sorted(set(programs()) - set(SCALING))
    jobs = []
    with gzip.open(trace, "rt") as file:
        for line in file:
            if line.startswith(";"):
                continue
            fields = line.split()
            identity, submit_s, run_s, processors = (int(float(fields[at])) for at in (0, 1, 3, 4))
            nodes = -(-processors // TRINITY_CORES)
            if run_s > 0 and 1 < nodes <= MOST_NODES:
                group = SCALING if rng.random() < ratio else others
                program = group[rng.integers(len(group))]
                jobs.append(ProgramJob(identity, submit_s, run_s, program, nodes * CORES, None))
    return jobs


def simulated(policy: str, jobs: list[ProgramJob], nodes: int) -> dict[str, float]:
    """Replay the jobs; seconds are the processor time of this process."""
    node_arrays = NodeArrays.of(Node(f"n{at:05}", PAPER_NODE, PAPER_NODE) for at in range(nodes))
    spread = TraceReader(node_arrays, policy, programs(), PARAMETERS).of_programs("trinity", jobs)
    scheduler = policy_of(policy, PARAMETERS)
    began_s = time.process_time()
    simulation = Simulation(
        node_arrays, spread.trace, scheduler, queue_depth=1000, interval_s=1, progress=Fixed(spread.model)
    )
    outcome = simulation.run()
    replay_s = time.process_time() - began_s
    used = resource.getrusage(resource.RUSAGE_SELF)
    placements = outcome.placements
    return {
        "jobs": len(placements),
        "cycles": len(outcome.cycles),
        "longest_queue": max(cycle.waiting for cycle in outcome.cycles),
        "mean_wait_s": round(float(np.mean([each.start_s - each.job.submit_s for each in placements])), 1),
        "mean_run_s": round(float(np.mean([each.end_s - each.start_s for each in placements])), 1),
        "cpu_s": round(used.ru_utime + used.ru_stime, 2),
        "replay_s": round(replay_s, 2),
        "peak_mb": round(used.ru_maxrss / 1024),
    }


def in_a_process(*arguments: object) -> dict[str, float]:
    """Simulate in a new process."""
    with multiprocessing.get_context("spawn").Pool(1) as workers:
        return workers.apply(simulated, arguments)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", type=Path)
    parser.add_argument("--nodes", type=int, default=32_768)
    parser.add_argument("--ratio", type=float, default=0.9)
    parser.add_argument("--policies", default="ce,sns")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    jobs = parallel_jobs(given.trace, given.ratio, given.seed)
    policies = given.policies.split(",")
    result: dict[str, object] = {}
    for policy in policies:
        in_a_process(policy, jobs[:1], given.nodes)  # the first run compiles
        one = in_a_process(policy, jobs[:1], given.nodes)["cpu_s"]
        result[policy] = in_a_process(policy, jobs, given.nodes) | {"one_job_s": one}
    result["together_s"] = round(sum(result[policy]["cpu_s"] for policy in policies), 2)
    sys.stdout.write(json.dumps({"nodes": given.nodes, "ratio": given.ratio, **result}, indent=2) + "\n")


if __name__ == "__main__":
    main()
