"""The mini cluster as a Python object: run commands in its containers, submit jobs, and see how they ran.

The demo and the tests on the cluster use it. cluster.sh brings the cluster up and takes it down.
"""

import json
import os
import shlex
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from ClusterShell.NodeSet import NodeSet

from container_shell import ContainerShell, Done
from slurm_sns.submit import record as records
from slurm_sns.submit.record import Record

#: The Python in which slurm_sns is installed on the controller.
PYTHON = "/opt/sns/bin/python"
#: The nodes of partition shared in etc/slurm.conf.
SHARING_NODES = ("f1", "f2")
#: Those of partition gpu.
GPU_NODES = ("g1", "g2", "g3")
_ASK = """
import json, pathlib, sys
from slurm_sns.sockets.unix_socket import ask
path = pathlib.Path("/run/sns/scheduler.sock")
print(json.dumps([ask(path, each) for each in json.loads(sys.argv[1])]))
"""
_FIELDS = (
    *("JobArrayID", "UserName", "State", "Reason", "PriorityLong", "ReqNodes", "NodeList", "StartTime", "SubmitTime"),
    *("NumCPUs", "EndTime", "EligibleTime", "admin_comment"),
)
_ENDED = frozenset({"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED"})


@dataclass(frozen=True)
class Seen:
    """One job as squeue shows it; times are Unix seconds, 0 where there is none yet."""

    id: int
    user: str
    state: str
    reason: str
    priority: int
    pinned_to: tuple[str, ...]
    nodes: tuple[str, ...]
    start_s: float
    submit_s: float
    cpus: int
    end_s: float = 0.0
    begin_s: float = 0.0
    admin_comment: str = ""

    @property
    def record(self) -> Record | None:
        """What slurm_sns noted in the job."""
        return records.read(self.admin_comment)

    @property
    def noted(self) -> str:
        """The hints in the record; empty without a record."""
        return "" if self.record is None else records.segment(Record(self.record.hints))

    @property
    def is_gated(self) -> bool:
        """Whether it waits until slurm_sns places it."""
        record = self.record
        return self.state == "PENDING" and record is not None and not record.is_slurms and not record.is_placed

    @property
    def is_held(self) -> bool:
        """Whether somebody holds it."""
        return self.state == "PENDING" and self.priority == 0

    @property
    def has_ended(self) -> bool:
        """Whether the job has ended for good."""
        return self.state in _ENDED


class CommandFailed(AssertionError):
    """A command in a container ended with another exit code than 0."""


class Cluster:
    """The running mini cluster named `project`: without it, as SNS_PROJECT says."""

    def __init__(self, project: str | None = None) -> None:
        self.project = project or os.environ.get("SNS_PROJECT", "slurm-sns")
        self._docker = shlex.split(os.environ.get("DOCKER_COMMAND", "docker"))
        self._shells: dict[str, ContainerShell] = {}

    def try_run(self, command: str, user: str = "root", node: str = "ctl", timeout_s: float = 120) -> Done:
        """Run a shell command in a container, in the user's home; never raises for its exit code."""
        home = f"/home/{user}" if user in ("alice", "bob") else "/"
        shell = self._shells.setdefault(node, ContainerShell(self._docker, f"{self.project}-{node}"))
        return shell.run(command, user, home, timeout_s)

    def run(self, command: str, user: str = "root", node: str = "ctl", timeout_s: float = 120) -> str:
        """Run a shell command in a container and return what it prints.

        Raises:
            CommandFailed: its exit code is not 0.
        """
        done = self.try_run(command, user, node, timeout_s)
        if done.returncode != 0:
            raise CommandFailed(f"{user}@{node}: {command}: exit {done.returncode}: {done.stderr}{done.stdout}")
        return done.stdout

    def close(self) -> None:
        """End the shells in the containers; the cluster goes on."""
        for shell in self._shells.values():
            shell.close()

    def engine(self, *words: str) -> str:
        """Run a command of the container engine itself, such as pause, stop or network, and return what it prints.

        Raises:
            CommandFailed: its exit code is not 0.
        """
        done = subprocess.run([*self._docker, *words], capture_output=True, text=True, timeout=120, check=False)
        if done.returncode != 0:
            raise CommandFailed(f"{' '.join(words)}: exit {done.returncode}: {done.stderr}{done.stdout}")
        return done.stdout

    def start_nodes(self, names: Sequence[str], *, agents: bool = False) -> None:
        """Start these nodes, which are no part of the cluster at its start, and wait until they are idle.

        Few tests need them: those of partition shared, whose jobs share cores, and those of partition gpu. `agents`:
        with an agent each.
        """
        image = self.engine("inspect", "-f", "{{.Image}}", f"{self.project}-ctl").strip()
        rights = ["--cap-add=SYS_PTRACE", "--cap-add=SYS_ADMIN", "--security-opt=apparmor=unconfined"]
        volumes = [f"--volume={self.project}_secrets:/run/cluster", f"--volume={self.project}_home:/home"]
        for name in names:
            where = [f"--name={self.project}-{name}", f"--hostname={name}", f"--network-alias={name}"]
            where.append(f"--network={self.project}_default")
            self.engine(
                "run", "--detach", "--init", *rights, *volumes, *where, f"--env=SNS_AGENT={int(agents)}", image, "node"
            )
        idle = f"sinfo -h -N -n {','.join(names)} -o %T"  # they are Slurm's once their slurmds have called slurmctld
        self.wait_for("the nodes are idle", lambda: self.run(idle).split() == ["idle"] * len(names))

    def stop_nodes(self, names: Sequence[str]) -> None:
        """Remove these nodes; Slurm forgets them."""
        self.run(f"scontrol update NodeName={','.join(names)} State=FUTURE")
        for name in names:
            if name in self._shells:
                self._shells.pop(name).close()
        self.engine("rm", "--force", "--volumes", *(f"{self.project}-{name}" for name in names))

    def write(self, path: str, text: str, user: str = "root") -> None:
        """Write a file on the controller."""
        self.run(f"printf %s {shlex.quote(text)} > {shlex.quote(path)}", user)

    def submit(self, options: str, script: str = "sleep 1", user: str = "alice") -> int:
        """Submit a job with sbatch, as a user would, and return its id."""
        return self.submit_all([(options, script)], user)[0]

    def submit_all(self, jobs: Iterable[tuple[str, str]], user: str = "alice") -> list[int]:
        """Submit (options, script) pairs in order, in one shell, and return their job ids."""
        lines = [
            f"sbatch --parsable -o /dev/null {options} --wrap {shlex.quote(script)} || exit" for options, script in jobs
        ]
        return [int(line) for line in self.run("\n".join(lines), user).split()]

    def jobs(self) -> dict[int, Seen]:
        """All jobs that slurmctld still knows, by id."""
        found = {}
        fields = ",".join(f"{name}:|" for name in _FIELDS)
        for line in self.run(f"SLURM_TIME_FORMAT=%s squeue -a -h -t all -O '{fields}'").splitlines():
            number, user, state, reason, priority, pinned, nodes, start, submit, cpus, end, begin, comment = line.split(
                "|", len(_FIELDS) - 1
            )
            if not number.isdigit():
                continue  # a task of an array
            found[int(number)] = Seen(
                int(number),
                user,
                state,
                reason,
                int(priority),
                unfold(pinned),
                unfold(nodes),
                _seconds(start),
                _seconds(submit),
                int(cpus),
                _seconds(end),
                _seconds(begin),
                comment.removesuffix("|"),
            )
        return found

    def job(self, job_id: int) -> Seen:
        """One job that slurmctld still knows."""
        return self.jobs()[job_id]

    def fields(self, job_id: int | str) -> dict[str, str]:
        """`scontrol show job` as a mapping."""
        words = self.run(f"scontrol show job -o {job_id}").split(" ")
        return dict(word.split("=", 1) for word in words if "=" in word)

    def ask(self, *requests: dict[str, Any], user: str = "root") -> list[Any]:
        """The scheduler's answers as `sns ... --json` prints them. `sns` itself would take a second to load.

        Raises:
            CommandFailed: no scheduler answers, or it answered with an error.
        """
        answers: list[Any] = json.loads(self.run(_ask(requests), user))
        return answers

    def try_ask(self, request: dict[str, Any], user: str = "root") -> Any:
        """The scheduler's answer to one request; None if it fails."""
        done = self.try_run(_ask([request]), user)
        return json.loads(done.stdout)[0] if done.returncode == 0 else None

    def status(self, user: str = "root") -> dict[str, Any]:
        """`sns status --json`."""
        answer: dict[str, Any] = self.ask({"command": "status"}, user=user)[0]
        return answer

    def queue(self, user: str = "root") -> list[dict[str, Any]]:
        """`sns queue --json`."""
        answer: list[dict[str, Any]] = self.ask({"command": "queue"}, user=user)[0]
        return answer

    def row(self, job_id: int) -> dict[str, Any]:
        """The job's row of `sns queue`; empty if it is not a job of slurm_sns."""
        return next((each for each in self.queue() if each["job_id"] == job_id), {})

    def explain(self, job_id: int | str, user: str = "root") -> dict[str, Any]:
        """`sns explain --json` of a job, or of a task as `41_7`."""
        number, _, task = str(job_id).partition("_")
        named = {"job_id": int(number), **({"task": int(task)} if task else {})}
        answer: dict[str, Any] = self.ask({"command": "explain", **named}, user=user)[0]
        return answer

    def try_explain(self, job_id: int) -> dict[str, Any]:
        """As `explain`; empty if the scheduler does not know the job (yet) or does not answer."""
        answer: dict[str, Any] = self.try_ask({"command": "explain", "job_id": job_id}) or {}
        return answer

    def decisions(self, job_ids: Iterable[int]) -> dict[int, list[dict[str, Any]]]:
        """The decisions about each job, oldest first: `sns explain` for all at once."""
        answers = self.ask(*({"command": "explain", "job_id": int(each)} for each in job_ids))
        return {answer["job_id"]: answer["decisions"] for answer in answers}

    def starts(self, job_ids: Iterable[int]) -> dict[int, dict[str, Any]]:
        """The last recorded placement of each job.

        A cycle writes its record when it has sent its placements: a short job may have ended by then.
        """
        numbers, found = list(job_ids), dict[int, dict[str, Any]]()

        def are_recorded() -> bool:
            for number, decided in self.decisions(numbers).items():
                found.update((number, each) for each in decided if each["action"] == "start")
            return found.keys() == set(numbers)

        self.wait_for("the placements are recorded", are_recorded)
        return found

    def daemon(self, verb: str, name: str = "scheduler", options: str = "", config: str = "") -> str:
        """`sns-daemon start|stop|kill|restart|status scheduler|watchdog`."""
        setting = f"SNS_CONFIG={shlex.quote(config)} " if config else ""
        return self.run(f"{setting}sns-daemon {verb} {name} {options}")

    def wait_for_scheduler(self) -> None:
        """Wait until the scheduler answers: after it takes its lock it still has to open its store and load code."""
        self.wait_for("the scheduler answers", lambda: self.try_ask({"command": "status"}) is not None, 180)

    def wait_for_cycles(self, many: int, timeout_s: float = 60) -> None:
        """Wait until so many more cycles have ended. The second is the first that has begun since."""
        seen = self.status()["cycles"]
        self.wait_for(f"{many} cycles later", lambda: self.status()["cycles"] >= seen + many, timeout_s)

    def wait_for(self, what: str, holds: Callable[[], bool], timeout_s: float = 60, every_s: float = 0.15) -> float:
        """Wait until `holds()` is true, and return the seconds that it took.

        Raises:
            TimeoutError: it did not become true within `timeout_s`; the message has `what` and the queue.
        """
        began = time.monotonic()
        while not holds():
            if time.monotonic() - began > timeout_s:
                raise TimeoutError(f"not within {timeout_s} s: {what}\n{self.run('squeue -a')}")
            time.sleep(every_s)
        return time.monotonic() - began

    def wait_for_end(self, job_ids: Iterable[int], timeout_s: float = 120) -> dict[int, Seen]:
        """Wait until all these jobs have ended, and return them as squeue then shows them."""
        wanted = set(job_ids)

        def all_ended() -> bool:
            seen = self.jobs()
            return all(job_id in seen and seen[job_id].has_ended for job_id in wanted)

        self.wait_for(f"{len(wanted)} jobs end", all_ended, timeout_s)
        return {job_id: job for job_id, job in self.jobs().items() if job_id in wanted}


def _ask(requests: Iterable[dict[str, Any]]) -> str:
    """The command that asks the scheduler and prints all its answers."""
    return f"{PYTHON} -c {shlex.quote(_ASK)} {shlex.quote(json.dumps(list(requests)))}"


def _seconds(text: str) -> float:
    return float(text) if text.isdigit() else 0.0


@cache
def unfold(nodes: str) -> tuple[str, ...]:
    """`c[1-3]` as a tuple of node names."""
    return tuple(NodeSet(nodes)) if nodes and nodes != "(null)" else ()


def fold(nodes: Iterable[str]) -> str:
    """Node names as a list like `c[1-3]`."""
    return str(NodeSet.fromlist(list(nodes)))
