"""The submissions of some simulated days at a large site: when, whose, of which program, how large, for how long.

Most come in the afternoon, half as many at the weekend (the sixth and the seventh day). Kinds: arrays, small jobs,
programs with profiles, jobs on whole nodes; and bursts, in which one user submits hundreds of small jobs within
minutes. Run times are lognormal within each kind, and scaled so that all jobs together need the wanted part of all
core-hours. A time limit is the next usual one above one to three times the run time; a few jobs reach theirs.

Everything is drawn from the seed, and the submissions are rows of one array, so that keeping them takes no more memory
as the days pass.
"""

from typing import Any

import numpy as np

DAY_S, HOUR_S = 86_400, 3600
#: Of the nodes (profiled_jobs.PAPER_NODE).
CORES = 28
#: Processes of a program with a profile: all have one for so many.
PROCESSES = 16
#: The rhythm of a day: so much more than the mean at this hour, so much less twelve hours later; and of the weekend.
SWING, BUSIEST_H, WEEKEND = 0.45, 15, 0.5
USERS, ACCOUNTS, OTHER_PROGRAMS = 60, 12, 28
ARRAY, SMALL, PROFILED, WHOLE = range(4)
#: Shares of the submissions; by mix, the median run time of each kind before it is scaled (hours), and by how much
#: arrays have more cores; the spread of run times. In the mix `large` jobs on whole nodes need most core-hours, in
#: `arrays` the tasks of arrays do.
SHARES, SIGMA = (0.1, 0.5, 0.29, 0.11), 1.1
MIXES = {"large": ((0.5, 0.6, 1.0, 2.0), 1), "arrays": ((4.0, 0.6, 1.0, 0.25), 3)}
#: An array's tasks: median, spread, and most.
TASKS, TASKS_SIGMA, MOST_TASKS = 10, 1.0, 500
#: Sizes, with how often each is drawn. No job takes more than this part of the nodes.
SMALL_CORES, WHOLE_NODES, MOST_OF_NODES = (1, 1, 1, 2, 4, 8), (1, 1, 2, 2, 4, 4, 8, 16, 32, 64, 128), 1 / 64
#: Bursts a day, their submissions, and within how many seconds they come.
BURSTS, BURST_JOBS, BURST_S = 2, (300, 1500), 180
LIMITS_S = np.array((300, 900, 1800, *(HOUR_S * hours for hours in (1, 2, 4, 8, 12, 24, 48))))
LEAST_RUN_S, MOST_RUN_S = 5.0, 12.0 * HOUR_S
#: Of all submissions: those that reach their time limit, that are left to Slurm, that their owners cancel.
REACH_LIMIT, TO_SLURM, CANCELLED = 0.02, 0.005, 0.01

ROW = np.dtype(
    [
        *(("at_s", "f8"), ("kind", "i1"), ("user", "i2"), ("program", "i2"), ("tasks", "i4"), ("cores", "i4")),
        *(("nodes", "i4"), ("run_s", "f8"), ("limit_s", "i4"), ("to_slurm", "?"), ("cancelled_s", "f8")),
    ]
)


def submissions(jobs: int, days: int, nodes: int, load: float, *, mix: str = "large", seed: int = 1) -> np.ndarray:
    """So many jobs (each task of an array is one) as rows of type `ROW` in the order of submission."""
    rng, (medians_h, more_cores) = np.random.default_rng(seed), MIXES[mix]
    rows = _sizes(jobs, days, nodes, rng)
    rows["cores"] *= np.where(rows["kind"] == ARRAY, more_cores, 1)
    number = len(rows)
    end_s = days * DAY_S
    burst = _bursts(rows, days, jobs, rng)
    rows["at_s"] = np.where(np.isnan(burst), _moments(number, days, rng), burst)
    rows["user"] = np.where(np.isnan(burst), rng.zipf(1.6, number) % USERS, rows["user"])
    run_s = np.exp(rng.normal(np.log(np.array(medians_h)[rows["kind"]] * HOUR_S), SIGMA))
    needed = rows["tasks"] * rows["cores"]
    for _ in range(8):  # what is cut off at the longest run time is given to the others
        run_s = np.clip(run_s * (load * nodes * CORES * end_s / (needed * run_s).sum()), LEAST_RUN_S, MOST_RUN_S)
    rows["run_s"] = run_s
    rows["limit_s"] = LIMITS_S[np.searchsorted(LIMITS_S[:-1], run_s * rng.uniform(1, 3, number))]
    reaches = rng.random(number) < REACH_LIMIT
    rows["run_s"][reaches] = rows["limit_s"][reaches] * 1.2
    rows["to_slurm"] = rng.random(number) < TO_SLURM
    is_cancelled = (rng.random(number) < CANCELLED) & (rows["tasks"] == 1)
    rows["cancelled_s"] = np.where(is_cancelled, rng.exponential(HOUR_S, number), np.inf)
    return np.sort(rows, order="at_s", kind="stable")


def _sizes(jobs: int, days: int, nodes: int, rng: np.random.Generator) -> np.ndarray:
    """Rows with kind, program, tasks, cores of a task and nodes, whose tasks are `jobs` together."""
    most = jobs + days * BURSTS * BURST_JOBS[1]
    rows = np.zeros(most, ROW)
    rows["kind"] = rng.choice(4, most, p=SHARES)
    kind = rows["kind"]
    tasks = np.clip(np.exp(rng.normal(np.log(TASKS), TASKS_SIGMA, most)), 2, MOST_TASKS).astype(int)
    rows["tasks"] = np.where(kind == ARRAY, tasks, 1)
    number = int(np.searchsorted(np.cumsum(rows["tasks"]), jobs)) + 1
    rows, kind = rows[:number], kind[:number]
    rows["tasks"][-1] -= rows["tasks"].sum() - jobs
    whole = np.minimum(rng.choice(WHOLE_NODES, number), max(1, int(nodes * MOST_OF_NODES)))
    rows["nodes"] = np.where(kind == WHOLE, whole, 1)
    small = np.where(kind == PROFILED, PROCESSES, rng.choice(SMALL_CORES, number))
    rows["cores"] = np.where(kind == WHOLE, whole * CORES, small)
    rows["program"] = rng.integers(OTHER_PROGRAMS, size=number)
    return rows


def _moments(number: int, days: int, rng: np.random.Generator) -> np.ndarray:
    """So many moments by the rhythm of day and week."""
    edges = np.arange(0, days * DAY_S + 1, 600)
    middle_h = (edges[:-1] + 300) / HOUR_S
    rate = 1 + SWING * np.cos(2 * np.pi * (middle_h - BUSIEST_H) / 24)
    rate *= np.where(middle_h // 24 % 7 >= 5, WEEKEND, 1.0)
    share = np.concatenate([[0], np.cumsum(rate)]) / rate.sum()
    return np.interp(rng.random(number), share, edges)


def _bursts(rows: np.ndarray, days: int, jobs: int, rng: np.random.Generator) -> np.ndarray:
    """The moment of each submission that is part of a burst, NaN for the others; a burst has one owner."""
    found = np.full(len(rows), np.nan)
    small = rng.permutation(np.flatnonzero(rows["kind"] == SMALL))
    begins_s = np.sort(rng.random(days * BURSTS)) * days * DAY_S
    for begin_s in begins_s:
        size = min(rng.integers(*BURST_JOBS), jobs // (4 * len(begins_s)))
        part, small = small[:size], small[size:]
        found[part] = np.minimum(begin_s + rng.uniform(0, BURST_S, len(part)), days * DAY_S - 1)
        rows["user"][part] = rng.integers(USERS)
    return found


def user_name(number: int) -> str:
    """The name of a user of these submissions."""
    return f"user{number:02d}"


def asked_of(row: np.void, profiled: list[str]) -> dict[str, Any]:
    """The submission as the model of slurmctld takes it; `profiled` are the names of the programs with profiles."""
    kind, tasks = int(row["kind"]), int(row["tasks"])
    program = int(row["program"])
    asked: dict[str, Any] = {
        "tasks": int(row["cores"]),
        "account": f"account{int(row['user']) % ACCOUNTS}",
        "run_s": float(row["run_s"]),
        "walltime_s": int(row["limit_s"]),
        "name": profiled[program % len(profiled)] if kind == PROFILED else f"program{program}",
    }
    if kind in (ARRAY, SMALL):
        asked |= {"tasks": 1, "cpus_per_task": int(row["cores"])}
    if kind == WHOLE:
        asked |= {"nodes_min": int(row["nodes"]), "nodes_max": int(row["nodes"])}
    if tasks > 1:
        asked["array"] = tuple(range(tasks))
    if row["to_slurm"]:
        asked["comment"] = "sns:off"
    return asked
