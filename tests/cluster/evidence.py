"""Evidence that a fault did no harm: what the jobs themselves wrote, Slurm's accounting, the logs, the queue."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from typing import Any

from cluster import Cluster, unfold

HEARTBEAT_TIMEOUT_S = 10  # containers/sns.yaml
#: Capacity of the c and of the s nodes: cores, MiB, cache ways without the shared ones, GB/s.
CAPACITY = {
    "c": {"cpu": 28, "mem": 128_000, "gres/llc": 18, "gres/membw": 118},
    "s": {"cpu": 4, "mem": 32_768},
}
LIMITED = frozenset(name for amounts in CAPACITY.values() for name in amounts)


def work(seconds: float | str) -> str:
    """A job script that writes `start` when it starts and `end` when it ends to a file of its own in ~/work."""
    return f"echo start >> work/$SLURM_JOB_ID; sleep {seconds}; echo end >> work/$SLURM_JOB_ID"


def begin(cluster: Cluster) -> None:
    """Remove what jobs of earlier tests wrote."""
    for user in ("alice", "bob"):
        cluster.run("rm -rf work; mkdir work", user)


def written(cluster: Cluster, user: str = "alice") -> dict[int, list[str]]:
    """The words that each job of the user's wrote, by job."""
    lines: dict[int, list[str]] = {}
    for line in cluster.run("grep -H . work/* /dev/null || true", user).splitlines():
        path, word = line.split(":")
        lines.setdefault(int(path.rsplit("/", 1)[1]), []).append(word)
    return lines


@dataclass(frozen=True)
class Run:
    """One run of one job, as Slurm accounts for it: times in Unix seconds, amounts by Slurm's names, memory in MiB."""

    job_id: int
    state: str
    start_s: int
    end_s: int
    nodes: tuple[str, ...]
    allocated: Mapping[str, float]
    restarts: int


def runs(cluster: Cluster, job_ids: Iterable[int]) -> list[Run]:
    """Every run of these jobs, also those before a requeue, once slurmdbd knows of the end of each job.

    The query ends two hours from now: it includes runs from a time when slurmctld's clock was ahead.
    """
    numbers = sorted(job_ids)
    found: list[Run] = []

    def all_ended() -> bool:
        found[:] = [
            run
            for line in cluster.run(
                f"SLURM_TIME_FORMAT=%s sacct -nPXD -E now+2hours -j {','.join(map(str, numbers))} "
                "-o JobIDRaw,State%30,Start,End,NodeList%200,AllocTRES%200,Restarts"
            ).splitlines()
            if (run := _run(line)) is not None
        ]
        return {run.job_id for run in found if run.state == "COMPLETED"} == set(numbers)

    cluster.wait_for("slurmdbd knows that the jobs have completed", all_ended, timeout_s=120, every_s=1)
    return found


def _run(line: str) -> Run | None:
    number, state, start, end, nodes, allocated, restarts = line.split("|")
    if not (start.isdigit() and end.isdigit()):
        return None  # it did not run
    tres = dict(each.split("=") for each in allocated.split(",") if each)
    memory_mb = float(tres["mem"][:-1]) * {"M": 1, "G": 1024, "T": 1024**2}[tres["mem"][-1]]
    amounts = {name: memory_mb if name == "mem" else float(amount) for name, amount in tres.items() if name in LIMITED}
    return Run(int(number), state.split()[0], int(start), int(end), unfold(nodes), amounts, int(restarts))


def over_capacity(of: Iterable[Run]) -> list[str]:
    """The nodes and moments at which runs held more than a node's capacity, as text.

    Accounting has only the sum of a run: equal parts on its nodes are assumed.
    """
    found, all_runs = [], list(of)
    for moment in sorted({run.start_s for run in all_runs}):
        held: defaultdict[tuple[str, str], float] = defaultdict(float)
        for run in all_runs:
            if run.start_s <= moment < run.end_s:
                for node, (name, amount) in product(run.nodes, run.allocated.items()):
                    held[node, name] += amount / len(run.nodes)
        found += [
            f"{node} at {moment}: {amount:g} of {name}"
            for (node, name), amount in held.items()
            if amount > CAPACITY[node[0]].get(name, 0) + 1e-6
        ]
    return found


def planned(cluster: Cluster) -> dict[int, tuple[str, ...]]:
    """The nodes on which the scheduler's log says that each job was placed last.

    Jobs that were left to Slurm or taken back after that are left out.
    """
    nodes: dict[int, tuple[str, ...]] = {}
    for line in cluster.run("grep -h '^[-0-9: ,]* job [0-9]*: ' /var/log/sns/*.log | sort").splitlines():
        number, text = line.split(" job ", 1)[1].split(": ", 1)
        if text.startswith("placed on ") and "did not start" not in text:
            nodes[int(number)] = tuple(text.removeprefix("placed on ").split(":")[0].split(","))
        else:
            nodes.pop(int(number), None)
    return nodes


def check(cluster: Cluster, job_ids: Iterable[int], restarted: frozenset[int] = frozenset()) -> list[Run]:
    """Check that no job was lost or started twice, no node over capacity, and each job ran where it was last placed.

    A job that Slurm started itself may have run anywhere. Those in `restarted` may have been requeued by Slurm.
    """
    numbers = set(job_ids)
    seen = runs(cluster, numbers)
    assert over_capacity(seen) == []
    completed = Counter(run.job_id for run in seen if run.state == "COMPLETED")
    assert completed == dict.fromkeys(numbers, 1)
    once = numbers - restarted
    assert Counter(run.job_id for run in seen if run.job_id in once) == dict.fromkeys(once, 1)
    wrote = written(cluster)
    assert {number: wrote.get(number) for number in once} == {number: ["start", "end"] for number in once}
    meant = planned(cluster)
    elsewhere = {
        run.job_id: (run.nodes, meant[run.job_id])
        for run in seen
        if run.job_id in meant and run.job_id in once and set(run.nodes) != set(meant[run.job_id])
    }
    assert elsewhere == {}
    return seen


def in_force(decisions: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """A job's decisions without the placements that were taken back because Slurm did not start the job."""
    kept: list[dict[str, Any]] = []
    for each in decisions:
        if each["action"] == "note" and "but Slurm did not start it" in each["reason"]:
            kept.remove([start for start in kept if start["action"] == "start"][-1])
        else:
            kept.append(each)
    return kept


def waits_for_us(cluster: Cluster) -> list[int]:
    """The jobs that Slurm cannot start freely because of us: gated, or pinned to nodes of our choice."""
    return [job.id for job in cluster.jobs().values() if job.is_gated or (job.state == "PENDING" and job.pinned_to)]


def freed_in_time(cluster: Cluster, log: "Log") -> None:
    """Wait until no job waits for us, and check in the watchdog's log that it freed them within the promised time.

    The times are those that the daemons wrote themselves: the duration of our own queries must not count as delay.
    """
    cluster.wait_for("no job waits for us", lambda: not waits_for_us(cluster), timeout_s=120)
    last_beat_s = int(cluster.run("cat /run/sns/heartbeat"))
    freed = log.lines("left to Slurm")
    assert freed
    assert max(map(logged_s, freed)) - last_beat_s <= HEARTBEAT_TIMEOUT_S + 5
    # The submit filter counts in whole seconds: it may still gate a job a second after the watchdog's first look.
    cluster.wait_for("jobs pass", lambda: int(cluster.run("date +%s")) - last_beat_s > HEARTBEAT_TIMEOUT_S)


def notes(cluster: Cluster, number: int) -> list[str]:
    """The reasons of the decisions about the job, without its placements; empty before the scheduler has seen it."""
    found = cluster.try_explain(number).get("decisions", ())
    return [each["reason"] for each in found if each["action"] == "note"]


def fill(cluster: Cluster) -> int:
    """Fill partition main with a pass-through job, so that the following jobs wait; return its number."""
    filler = cluster.submit("-N4 --exclusive", "sleep 3600", "bob")
    cluster.wait_for("it runs", lambda: cluster.job(filler).state == "RUNNING")
    return filler


def is_decided(cluster: Cluster, number: int) -> bool:
    """Whether there is a decision record of the job; there is none before the scheduler has seen the job."""
    return bool(cluster.try_explain(number).get("decisions"))


def logged_s(line: str) -> float:
    """When a line was logged, in Unix seconds. The log is in the container's time zone, which is UTC."""
    day, clock, _ = line.split(" ", 2)
    return datetime.fromisoformat(f"{day} {clock.replace(',', '.')}+00:00").timestamp()


class FreedNodes:
    """When each job had left its last node, by slurmctld's log, from now on until `of_jobs` is called.

    A job holds its nodes until the last of them has completed, which on a busy machine is later than its end.
    """

    _LOG = "/var/log/slurm/slurmctld.log"
    #: slurmctld says so, with `debug2`, when a node of the job has completed.
    _SAID = re.compile(r"^\[(\S+)\] debug2: _slurm_rpc_epilog_complete: JobId=(\d+) ", re.MULTILINE)

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._from = int(cluster.run(f"stat -c %s {self._LOG}; scontrol setdebug debug2").split()[0]) + 1

    def of_jobs(self) -> dict[int, float]:
        """Unix seconds by job id, as the log has them."""
        text = f"tail -c +{self._from} {self._LOG} | grep _slurm_rpc_epilog_complete"
        said = self._cluster.run(f"scontrol setdebug info; {text}")
        return {int(number): _unix_s(at) for at, number in self._SAID.findall(said)}  # the last of several nodes


def _unix_s(logged: str) -> float:
    """The log is in the container's time zone, which is UTC."""
    return datetime.fromisoformat(logged).replace(tzinfo=UTC).timestamp()


class Log:
    """The lines of a daemon's log from now on."""

    def __init__(self, cluster: Cluster, name: str = "scheduler") -> None:
        self._cluster, self._path = cluster, f"/var/log/sns/{name}.log"
        self._from = int(cluster.run(f"stat -c %s {self._path}")) + 1

    def lines(self, *about: str) -> list[str]:
        """The lines; if `about` is given, only those that contain one of its texts."""
        text = self._cluster.run(f"tail -c +{self._from} {self._path}")
        return [line for line in text.splitlines() if not about or any(each in line for each in about)]

    def repeated(self, about: str) -> list[str]:
        """The lines about it that an earlier line has, too, without one between that says that a problem is over."""
        told, again = set[str](), list[str]()
        for line in self.lines(about):
            text = line.split(maxsplit=2)[2]
            if text.startswith("over after"):
                told.clear()
            elif text in told:
                again.append(line)
            else:
                told.add(text)
        return again
