"""The rules of the simulated Slurm (tests/world) are those of a real one: one table of steps, run on both.

All cases run at the same time, each with jobs and nodes of its own, so that they wait together. Users' and
administrators' commands are Slurm's own; our orders come from the real executor, which runs as SlurmUser.
"""

import base64
import json
import os
import pickle
import shlex
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from slurm_conf import added_to_slurm_conf

from cluster import PYTHON, Cluster
from container_shell import Done
from slurm_sns.errors import Refused
from slurm_sns.scheduler.gate.orders import Order

sys.path.append(str(Path(__file__).parents[1]))  # pytest's importlib mode puts no test folder on the path

from world.slurm_table import ALONE, CASES, LAST, PARTITIONS, TIERS
from world.table_on_model import run
from world.table_steps import DONE, Row, Running, Shown, differences

#: Runs on the controller as SlurmUser. A request is a line of JSON, and so is its answer: ["jobs", FIRST] asks for all
#: jobs from this id on, ["node", NAME] for a node, ["order", PICKLED] carries out an order of ours.
SERVER = """
import base64, dataclasses, functools, json, pickle, pwd, sys
from slurm_sns.slurm import translate
from slurm_sns.slurm.api import pyslurm
from slurm_sns.slurm.executor import SlurmExecutor

@functools.cache
def user_name(number):
    return pwd.getpwuid(number).pw_name

def answer(what, argument):
    if what == "jobs":
        records = pyslurm().Jobs.load()
        return [dataclasses.asdict(translate.job(each, user_name)) for each in records.values() if each.id >= argument]
    if what == "node":
        return dataclasses.asdict(translate.node(pyslurm().Nodes.load()[argument]))
    order = pickle.loads(base64.b64decode(argument))
    (done,) = SlurmExecutor().execute((order,))
    return str(done.refused or done.unreachable or "done")

for line in sys.stdin:
    print(json.dumps(answer(*json.loads(line)), default=sorted), flush=True)
"""

#: A job that SIGTERM does not end; Slurm kills it after KillWait.
STUBBORN = "trap '' TERM; while :; do sleep 1; done"

#: Undoes what an unfinished case has left: a drained node, reservations, limits. Slurm refuses what is undone already.
RESTORE = """
scontrol update NodeName=c1 State=RESUME
scontrol update PartitionName=main Nodes=c[1-4]
for name in now later; do scontrol delete ReservationName=$name; done
sacctmgr -i modify account where name=chemistry set GrpTRES=cpu=-1
sacctmgr -i modify user where name=bob set MaxJobs=-1
sacctmgr -i modify user where name=alice,bob set qos-=small
sacctmgr -i delete qos small
chmod u+w /var/lib/slurm/slurmctld
true
"""
#: Lets slurmctld save its state, and then no more until it is killed: its directory is read-only. One that has never
#: ended cleanly would not start again, because only then it saves the associations' usage.
SAVE = """
cd /var/lib/slurm/slurmctld
if [ ! -e assoc_usage ]; then
    pid=$(cat /run/slurm/slurmctld.pid); kill $pid; while [ -e /proc/$pid ]; do sleep 0.1; done; slurmctld
    until scontrol ping | grep -q UP; do sleep 0.2; done
fi
name=saved$(date +%s%N)
runuser -u alice -- sbatch -H -J $name -o /dev/null --wrap true
until grep -qa $name job_state; do sleep 0.1; done
chmod a-w .
"""
KILL = """
pid=$(cat /run/slurm/slurmctld.pid); kill -9 $pid; while [ -e /proc/$pid ]; do sleep 0.1; done
chmod u+w /var/lib/slurm/slurmctld
slurmctld
until scontrol ping | grep -q UP; do sleep 0.2; done
scancel $(squeue -h -a -u alice -o "%i %j" | grep saved | cut -d" " -f1)
while sinfo -h -o %t | grep -qE 'unk|[*]'; do sleep 0.5; done
"""
#: Jobs of a higher PriorityTier suspend those of a lower one.
SUSPENDING = ("PreemptType=preempt/partition_prio", "PreemptMode=SUSPEND,GANG")
#: How often the cases look whether what they wait for has come true.
EVERY_S = 0.1


class OnCluster:
    """The mini cluster as the table's Slurm (world.table_steps.Slurm)."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        docker = shlex.split(os.environ.get("DOCKER_COMMAND", "docker"))
        line = [*docker, "exec", "-i", "-u", "slurm", f"{cluster.project}-ctl", PYTHON, "-c", SERVER]
        self._server = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._jobs: Sequence[Shown] | None = None
        self._first = 0
        self._until_closed = ExitStack()
        self._preempts = False

    def close(self) -> None:
        self._server.communicate()
        self._until_closed.close()

    def refresh(self) -> None:
        """What was read is out of date."""
        self._jobs = None

    def now_s(self) -> float:
        return time.time()

    def submit(self, who: str, options: Sequence[str], run_s: float, how: str) -> int:
        script = {"fail": f"sleep {run_s:g}; exit 1", "stubborn": STUBBORN}.get(how, f"sleep {run_s:g}")
        done = self._run(who, "sbatch", "--parsable", "-o", "/dev/null", *options, "--wrap", script)
        if done.returncode != 0:
            raise Refused(" ".join(done.stderr.split()))
        number = int(done.stdout)
        self._first = self._first or number
        return number

    def scontrol(self, who: str, words: Sequence[str]) -> str:
        return _answer(self._run(who, "scontrol", *words))

    def cancel(self, who: str, addresses: Sequence[str]) -> str:
        return _answer(self._run(who, "scancel", *addresses))

    def node(self, name: str, state: str) -> str:
        words = {"drain": ("State=DRAIN", "Reason=test"), "down": ("State=DOWN", "Reason=test")}
        return self.scontrol("root", ("update", f"NodeName={name}", *words.get(state, ("State=RESUME",))))

    def partition(self, name: str, fields: Mapping[str, str]) -> str:
        changes = (f"{field}={value}" for field, value in fields.items())
        return self.scontrol("root", ("update", f"PartitionName={name}", *changes))

    def limit(self, account: str, cores: int | None) -> str:
        return self._modify("account", account, f"GrpTRES=cpu={-1 if cores is None else cores}")

    def qos_limit(self, qos: str, cores: int | None) -> str:
        return self._modify("qos", qos, f"GrpTRES=cpu={-1 if cores is None else cores}")

    def user_limit(self, user: str, jobs: int | None) -> str:
        return self._modify("user", user, f"MaxJobs={-1 if jobs is None else jobs}")

    def _modify(self, what: str, name: str, change: str) -> str:
        return _answer(self._run("root", "sacctmgr", "-i", "modify", what, "where", f"name={name}", "set", change))

    def reserve(self, name: str, node: str, in_s: int, lasting_s: int) -> str:
        times = (f"StartTime=now+{in_s}", f"EndTime=now+{in_s + lasting_s}")
        words = (f"ReservationName={name}", *times, "Users=root", f"Nodes={node}", "Flags=IGNORE_JOBS")
        return self.scontrol("root", ("create", "reservation", *words))

    def unreserve(self, name: str) -> str:
        return self.scontrol("root", ("delete", f"ReservationName={name}"))

    def preempt(self) -> str:
        if self._preempts:
            return DONE
        self._preempts = True
        own = (f"PartitionName={name} Nodes=c1 PriorityTier={TIERS.get(name, 1)}" for name in ("low", "high"))
        with_preemption = added_to_slurm_conf(self._cluster, *SUSPENDING, *own)
        self._until_closed.enter_context(with_preemption)
        return DONE

    def save(self) -> str:
        return _answer(self._run("root", "bash", "-c", SAVE))

    def kill(self) -> str:
        return _answer(self._run("root", "bash", "-c", KILL))

    def order(self, order: Order) -> str:
        self.refresh()
        return str(self._ask("order", base64.b64encode(pickle.dumps(order)).decode()))

    def jobs(self) -> Sequence[Shown]:
        if self._jobs is None:
            self._jobs = self._ask("jobs", self._first)
        return self._jobs

    def see_node(self, name: str) -> Shown:
        found: Shown = self._ask("node", name)
        return found

    def _run(self, who: str, *words: str) -> Done:
        self.refresh()
        return self._cluster.try_run(shlex.join(words), who)

    def _ask(self, what: str, argument: object) -> Any:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps([what, argument]) + "\n")
        self._server.stdin.flush()
        return json.loads(self._server.stdout.readline())


def _answer(done: Done) -> str:
    return DONE if done.returncode == 0 else " ".join((done.stderr + done.stdout).split())


def run_all(slurm: OnCluster, cases: Mapping[str, Sequence[str]]) -> dict[str, list[Row]]:
    """The rows of all cases: first of those that would disturb others, one by one."""
    rows: dict[str, list[Row]] = {}
    together = {name: lines for name, lines in cases.items() if name not in (*ALONE, *LAST)}
    for group in (*([name] for name in ALONE), together, *([name] for name in LAST)):
        rows |= run_together(slurm, {name: cases[name] for name in group if name in cases})
    return rows


def run_together(slurm: OnCluster, cases: Mapping[str, Sequence[str]]) -> dict[str, list[Row]]:
    """The rows of these cases, which run at the same time.

    Each goes on as soon as what it waits for comes true. When none does, one more case begins: so nothing that Slurm
    shows for a few seconds only is missed.
    """
    running = {name: Running(slurm, lines) for name, lines in cases.items()}
    to_begin = {name: case.steps() for name, case in running.items()}
    left: dict[str, Iterator[None]] = {}
    while to_begin or left:
        slurm.refresh()
        if not [name for name in list(left) if _goes_on(slurm, running[name], name, left)]:
            if to_begin:
                name = next(iter(to_begin))
                left[name] = to_begin.pop(name)
                _goes_on(slurm, running[name], name, left)
            else:
                time.sleep(EVERY_S)
    return {name: case.rows for name, case in running.items()}


def _goes_on(slurm: OnCluster, case: Running, name: str, left: dict[str, Iterator[None]]) -> bool:
    """Carry out the case until it has to wait, and return whether any step was carried out."""
    done = case.done
    if next(left[name], "over") == "over":
        del left[name]
        slurm.cancel("root", [str(each) for each in case.ids.values()])
        return True
    return case.done > done


@contextmanager
def prepared(cluster: Cluster) -> Iterator[OnCluster]:
    """The cluster with the table's own partitions, and main on the nodes that the table has for it."""
    cluster.run(f"scontrol update PartitionName=main Nodes={','.join(PARTITIONS['main'])}")
    own = [name for name in PARTITIONS if len(name) == 1]
    for name in own:
        fields = f"Nodes={','.join(PARTITIONS[name])} PriorityTier={TIERS.get(name, 1)}"
        cluster.run(f"scontrol create PartitionName={name} {fields}")
    cluster.run("sacctmgr -i add qos small && sacctmgr -i modify user where name=alice,bob set qos+=small")
    slurm = OnCluster(cluster)
    try:
        yield slurm
    finally:
        slurm.close()
        cluster.run(f"scancel -u alice; scancel -u bob; {RESTORE}")
        cluster.wait_for("no jobs", lambda: not cluster.run("squeue -a -h").strip())
        cluster.run("\n".join(f"scontrol delete PartitionName={name} || true" for name in own))


def unlike(slurm: OnCluster, names: Iterable[str]) -> dict[str, list[str]]:
    """How these cases differ on the model and on the real Slurm; those that do not are left out."""
    real = run_all(slurm, {name: CASES[name] for name in names})
    found = {name: differences(name, run(CASES[name]), rows) for name, rows in real.items()}
    return {name: each for name, each in found.items() if each}


def test_the_model_does_what_slurm_does(planned_by_hand: Cluster) -> None:
    """A case that differs is run again without the others: what lasts for seconds may have passed unseen among them.

    The cluster is prepared anew for that: the last cases restart slurmctld, which then has lost the table's partitions.
    """
    with prepared(planned_by_hand) as slurm:
        found = unlike(slurm, CASES)
    if found:
        with prepared(planned_by_hand) as slurm:
            found = unlike(slurm, found)
    assert not found, "\n".join(each for lines in found.values() for each in lines)
