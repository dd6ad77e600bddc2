"""Generate a trace and nodes like pool-a of the reference results, in any size, from a seed.

Assumptions: sizes have the frequencies of reference/netbatch/pool-a (86 % one core, mostly at most 8 GB, some 16, 32
GB and more). As in bursts, jobs come in batches of one size, and the jobs of a batch run about equally long. Run times
are log-normal (median 184 s, mean 780 s). The arrival span is chosen so that the load is the requested one. The nodes
have the six sizes of pool-a in its proportions.

    python tests/benchmarks/pool_a.py DIRECTORY --jobs 1000000 --nodes 1633
"""

import argparse
import gzip
from pathlib import Path

import numpy as np

#: (cores, GB) of a job -> its frequency in pool-a.
SIZES = {
    (1, 4): 13015, (1, 2): 7601, (1, 8): 6845, (1, 1): 4556, (1, 16): 3471, (1, 6): 2965, (4, 4): 1849,
    (1, 32): 1490, (1, 12): 1192, (4, 2): 1062, (4, 8): 870, (1, 24): 763, (4, 1): 670, (1, 64): 659,
    (4, 6): 450, (2, 4): 359, (1, 48): 323, (4, 16): 299, (2, 2): 186, (2, 8): 179, (4, 12): 179, (2, 1): 117,
    (8, 4): 107, (4, 32): 106, (2, 16): 95, (2, 6): 88, (8, 2): 83, (4, 24): 68, (8, 8): 59, (8, 1): 36,
    (4, 64): 34, (8, 16): 32, (8, 6): 31, (2, 32): 29, (2, 12): 28, (4, 48): 27, (2, 24): 19, (2, 64): 17,
    (8, 32): 15, (8, 12): 11,
}  # fmt: skip
#: (cores, GB) of a node -> how many of pool-a's 160 nodes have this size.
NODES = {(12, 48): 26, (16, 128): 13, (16, 64): 21, (4, 16): 18, (8, 32): 58, (8, 64): 24}

MEDIAN_RUN_S, SPREAD_OF_RUN = 184, 1.7
MEAN_BATCH, SPREAD_OF_BATCH = 20, 1.3
PART = 200_000


def write_nodes(path: Path, count: int, seed: int) -> int:
    """Write the nodes and return the number of their cores."""
    rng = np.random.default_rng(seed)
    share = np.array(list(NODES.values())) / sum(NODES.values())
    sizes = np.array(list(NODES))[rng.choice(len(NODES), count, p=share)]
    lines = [f"n{at:05},{cores},{gb}\n" for at, (cores, gb) in enumerate(sizes.tolist())]
    path.write_text("name,cores,mem_gb\n" + "".join(lines))
    return int(sizes[:, 0].sum())


def write_jobs(path: Path, count: int, cores: int, load: float, seed: int) -> None:
    """Write a trace in the format of the reference results; over its arrival span it asks for `load` of the cores."""
    rng = np.random.default_rng(seed)
    sizes = np.array(list(SIZES))
    share = np.array(list(SIZES.values())) / sum(SIZES.values())
    mean_run_s = MEDIAN_RUN_S * np.exp(SPREAD_OF_RUN**2 / 2)
    mean_cores = float((sizes[:, 0] * share).sum())
    seconds_per_job = mean_cores * mean_run_s / (cores * load)
    batch_of_mean_1 = np.exp(-(SPREAD_OF_BATCH**2) / 2)
    written, now_s = 0, 0.0
    with gzip.open(path, "wt", compresslevel=1) as file:
        file.write("job_id,submit_s,run_s,cores,mem_gb\n")
        while written < count:
            batches = PART // MEAN_BATCH
            batch = MEAN_BATCH * batch_of_mean_1 * rng.lognormal(0, SPREAD_OF_BATCH, batches)
            batch = np.minimum(np.ceil(batch).astype(np.int64), 20 * MEAN_BATCH)
            gaps = rng.exponential(seconds_per_job * batch.mean(), batches)
            begin_s = now_s + np.cumsum(gaps)
            now_s = float(begin_s[-1])
            of_batch = np.repeat(np.arange(batches), batch)
            submit = np.sort(begin_s[of_batch] + rng.exponential(20, len(of_batch))).astype(np.int64)
            submit = np.minimum(submit, int(now_s))
            typical = rng.lognormal(0, 0.9 * SPREAD_OF_RUN, batches)[of_batch]
            own = rng.lognormal(0, np.sqrt(1 - 0.9**2) * SPREAD_OF_RUN, len(of_batch))
            run = np.clip(MEDIAN_RUN_S * typical * own, 1, 172_800).astype(np.int64)
            size = sizes[rng.choice(len(sizes), batches, p=share)[of_batch]]
            rows = zip(submit.tolist(), run.tolist(), size[:, 0].tolist(), size[:, 1].tolist(), strict=True)
            for submit_s, run_s, cores_of_job, gb in rows:
                if written == count:
                    break
                written += 1
                file.write(f"{written},{submit_s},{run_s},{cores_of_job},{gb}\n")


def write_pool(directory: Path, jobs: int, nodes: int, load: float, seed: int) -> tuple[Path, Path]:
    """Write trace.csv.gz and nodes.csv."""
    directory.mkdir(parents=True, exist_ok=True)
    cores = write_nodes(directory / "nodes.csv", nodes, seed)
    write_jobs(directory / "trace.csv.gz", jobs, cores, load, seed)
    return directory / "trace.csv.gz", directory / "nodes.csv"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--nodes", type=int, default=1_633)
    parser.add_argument("--load", type=float, default=0.8)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    write_pool(given.directory, given.jobs, given.nodes, given.load, given.seed)
