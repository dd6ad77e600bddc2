"""The table of Slurm's rules on the model: the mini cluster's site, and the commands as calls of the model."""

from argparse import ArgumentParser
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
from random import Random
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from slurm_sns.errors import Refused
from slurm_sns.model import Resources
from slurm_sns.scheduler.gate.orders import Order
from slurm_sns.scheduler.observation import ObservedJob
from slurm_sns.slurm import executor, rpc
from slurm_sns.submit.judge import Manage, PassThrough
from world.history import History
from world.slurm import Slurm, SlurmSite
from world.slurm_jobs import expression, numbers
from world.slurm_table import PARTITIONS, TIERS
from world.table_steps import DONE, Row, Running, Shown

#: The nodes of the mini cluster (containers/etc/slurm.conf).
BIG, LITTLE = Resources(28, 128000, 20, 118), Resources(4, 32768)
SITE = SlurmSite(
    nodes={**{f"c{number}": BIG for number in range(1, 5)}, "s1": LITTLE, "s2": LITTLE},
    partitions={name: (nodes, TIERS.get(name, 1)) for name, nodes in PARTITIONS.items()},
    min_job_age_s=600.0,
    bf_interval_s=10.0,
    requeue_delay_s=5.0,
    memory_per_cpu_mb=4500,
)
MANAGED = ("main", "small")
FIRST_LEASE_S = 60
#: Between two steps of a case so many seconds pass at most, as on a real cluster.
BETWEEN_S = 0.1


class Times:
    """The world of the model: a clock and nothing else."""

    def __init__(self, seed: int) -> None:
        self.true_s = 0.0
        self.random = Random(seed)
        self.history = History(self)

    def wall_s(self) -> float:
        return 1_700_000_000.0 + self.true_s


class OnModel:
    """The model as the table's Slurm (world.table_steps.Slurm)."""

    def __init__(self, seed: int) -> None:
        self._times = Times(seed)
        self.slurm = Slurm(SITE, self._times)
        #: How each job was shown last, and the same as JSON gives it.
        self._seen: dict[int, tuple[ObservedJob, Shown]] = {}

    def now_s(self) -> float:
        return self._times.wall_s()

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        until_s = self._times.true_s + seconds
        while self.slurm.next_s() <= until_s:
            self._times.true_s = self.slurm.next_s()
            self.slurm.step()
        self._times.true_s = until_s

    def submit(self, who: str, options: Sequence[str], run_s: float, how: str) -> int:
        asked = {**_asked(options, self.now_s()), "run_s": run_s, "fails": how == "fail"}
        asked["account"] = {"alice": "physics", "bob": "chemistry"}[who]
        fixed = " fixed" if "nodes_min" in asked or "tasks_per_node" in asked else ""
        gate_s = max(int(self.now_s()) + FIRST_LEASE_S, asked.get("begin_s", 0))
        own = f" b={asked['begin_s']}" if "begin_s" in asked else ""
        is_managed = asked["partition"] in MANAGED and not asked.get("required")
        managed = Manage(f"sns:2{fixed} g={gate_s}{own}", gate_s)
        return self.slurm.submit(asked, who, managed if is_managed else PassThrough("partition not managed"))

    def scontrol(self, who: str, words: Sequence[str]) -> str:
        return _answer(lambda: self.slurm.scontrol(tuple(words), _by(who)))

    def cancel(self, who: str, addresses: Sequence[str]) -> str:
        return _answer(lambda: [self.slurm.cancel(address, _by(who)) for address in addresses])

    def node(self, name: str, state: str) -> str:
        return _answer(lambda: self.slurm.update_node(name, state))

    def partition(self, name: str, fields: Mapping[str, str]) -> str:
        given: dict[str, Any] = {}
        if "State" in fields:
            given["state"] = fields["State"]
        if "MaxTime" in fields:
            given["max_time_s"] = None if fields["MaxTime"] == "UNLIMITED" else int(fields["MaxTime"]) * 60
        if "MaxNodes" in fields:
            given["max_nodes"] = None if fields["MaxNodes"] == "UNLIMITED" else int(fields["MaxNodes"])
        return _answer(lambda: self.slurm.update_partition(name, **given))

    def limit(self, account: str, cores: int | None) -> str:
        return _answer(lambda: self.slurm.set_limit(account, cores))

    def qos_limit(self, qos: str, cores: int | None) -> str:
        return _answer(lambda: self.slurm.set_qos_limit(qos, cores))

    def user_limit(self, user: str, jobs: int | None) -> str:
        return _answer(lambda: self.slurm.set_user_limit(user, jobs))

    def reserve(self, name: str, node: str, in_s: int, lasting_s: int) -> str:
        begin_s = int(self.now_s()) + in_s
        return _answer(lambda: self.slurm.reserve(name, (node,), begin_s, begin_s + lasting_s))

    def unreserve(self, name: str) -> str:
        return _answer(lambda: self.slurm.unreserve(name))

    def preempt(self) -> str:
        self.slurm.site = replace(self.slurm.site, suspends_by_tier=True)
        return DONE

    def save(self) -> str:
        return _answer(self.slurm.save)

    def kill(self) -> str:
        return _answer(self.slurm.go_back)

    def order(self, order: Order) -> str:
        instead = {
            "pyslurm": lambda: self._pyslurm,
            "has_library": lambda: False,
            "run": lambda _command, *words: self.slurm.scontrol(words, "scheduler"),
            "answers": nullcontext,
            "translate": SimpleNamespace(job=lambda record: record),
        }
        with patch.multiple(rpc, **instead):
            (answer,) = executor.SlurmExecutor().execute((order,))
        return str(answer.refused or answer.unreachable or DONE)

    @property
    def _pyslurm(self) -> SimpleNamespace:
        slurm = self.slurm

        class Job:
            def __init__(self, job_id: int) -> None:
                self._id = job_id

            load = staticmethod(slurm.load_job)

            def modify(self, change: SimpleNamespace) -> None:
                slurm.modify(self._id, change, "scheduler")

            def requeue(self) -> None:
                slurm.requeue(self._id, "scheduler")

        return SimpleNamespace(Job=Job, JobSubmitDescription=SimpleNamespace)

    def jobs(self) -> Sequence[Shown]:
        found = []
        for job in self.slurm.load_jobs():
            seen = self._seen.get(job.id)
            if seen is None or seen[0] is not job:
                seen = self._seen[job.id] = job, _plain(asdict(job))
            found.append(seen[1])
        return found

    def see_node(self, name: str) -> Shown:
        return next(_plain(asdict(node)) for node in self.slurm.load_nodes() if node.name == name)


def run(lines: Sequence[str], seed: int = 0) -> list[Row]:
    """The rows of one case on a model of its own."""
    slurm = OnModel(seed)
    case = Running(slurm, lines)
    random = Random(seed)
    for _ in case.steps(lambda: slurm.advance(random.uniform(0, BETWEEN_S))):
        slurm.advance(0.1)
    return case.rows


def _plain(value: Any) -> Any:
    """As JSON gives it: lists, and no sets."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, frozenset):
        return sorted(value)
    return [_plain(each) for each in value] if isinstance(value, tuple | list) else value


def _by(who: str) -> str:
    return "admin" if who == "root" else who


def _answer(call: Callable[[], object]) -> str:
    try:
        call()
    except Refused as refusal:
        return str(refusal)
    return DONE


def _options() -> ArgumentParser:
    parser = ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("-n", dest="tasks", type=int)
    parser.add_argument("-N", dest="nodes")
    parser.add_argument("-c", dest="cpus_per_task", type=int)
    parser.add_argument("-t", dest="minutes", type=int)
    parser.add_argument("-p", dest="partition", default="main")
    parser.add_argument("--qos")
    parser.add_argument("-w", dest="required")
    parser.add_argument("-x", dest="excluded")
    parser.add_argument("-a", dest="array")
    parser.add_argument("-d", dest="dependency")
    parser.add_argument("-H", dest="held", action="store_true")
    parser.add_argument("--ntasks-per-node", dest="tasks_per_node", type=int)
    parser.add_argument("--mem", dest="memory_per_node_mb", type=int)
    parser.add_argument("--mem-per-cpu", dest="memory_per_cpu_mb", type=int)
    parser.add_argument("--nice", type=int)
    parser.add_argument("--begin")
    parser.add_argument("--exclusive", dest="is_alone", action="store_true")
    parser.add_argument("--gres")
    parser.add_argument("--extra")
    parser.add_argument("--comment")
    parser.add_argument("--no-requeue", dest="may_restart", action="store_false")
    return parser


OPTIONS = _options()


def _asked(options: Sequence[str], now_s: float) -> dict[str, Any]:
    """sbatch's options as the model's `asked`."""
    given = vars(OPTIONS.parse_args(options))
    asked = {name: value for name, value in given.items() if value is not None}
    asked["walltime_s"] = asked.pop("minutes") * 60
    if "memory_per_node_mb" in asked:
        asked.pop("memory_per_cpu_mb", None)
    for name in ("required", "excluded"):
        if name in asked:
            asked[name] = tuple(asked[name].split(","))
    if "nodes" in asked:
        least, _, most = asked.pop("nodes").partition("-")
        asked["nodes_min"], asked["nodes_max"] = int(least), int(most or least)
        asked.setdefault("tasks", int(least))
    if "array" in asked:
        tasks, _, limit = asked.pop("array").partition("%")
        asked["array"] = tuple(numbers(tasks))
        assert expression(asked["array"]) == tasks
        asked["array_limit"] = int(limit) if limit else None
    if "dependency" in asked:
        kind, *ids = asked.pop("dependency").split(":")
        asked["dependency"] = (kind, tuple(map(int, ids)))
    if "begin" in asked:
        asked["begin_s"] = int(now_s) + int(asked.pop("begin").removeprefix("now+"))
    if "gres" in asked:
        amounts = dict(each.split(":") for each in asked.pop("gres").split(","))
        asked["ways"], asked["bandwidth_gbps"] = int(amounts.pop("llc", 0)), int(amounts.pop("membw", 0))
        asked["gres"] = tuple(sorted(amounts))
    return asked
