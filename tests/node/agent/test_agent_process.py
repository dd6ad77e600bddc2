"""The agent as a process: told by the real hook through its real socket, with the real clock; killed under load."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from emulated_node import KEYS, NODE, Jobs
from json_output import read
from resctrl_emulator import mount
from resctrl_emulator.clients import MountedClient

from slurm_sns.errors import BadInput
from slurm_sns.node import hook
from slurm_sns.node.group_writes import SHARED, group_of, masks
from slurm_sns.node.resctrl.groups import Groups
from slurm_sns.node.resctrl.machine import discover
from slurm_sns.sockets.agent_hub import AgentHub
from slurm_sns.sockets.unix_socket import ask
from slurm_sns.wire import grants
from slurm_sns.wire.values import ActiveRuns, Change, Grant, RunId

pytestmark = [
    pytest.mark.skipif(mount.why_not() is not None, reason=str(mount.why_not())),
    pytest.mark.skipif(os.geteuid() != 0, reason="an agent is root"),
]

#: Debian's user nobody.
NOBODY = 65534
#: A busy machine is slow.
WITHIN_S = 60.0


def wait_for(what: str, holds: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + WITHIN_S
    while not holds():
        assert time.monotonic() < deadline_s, f"waited in vain for {what}"
        time.sleep(0.05)


def said_to(path: Path, request: bytes) -> bytes:
    """What comes back."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(path))
        with suppress(BrokenPipeError):  # who is turned away has the answer before the request is read
            connection.sendall(request)
        return connection.recv(1 << 16)


def as_nobody(does: Callable[[], bytes]) -> bytes:
    """What it gives in a process of the user nobody."""
    from_child, to_us = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setuid(NOBODY)
            os.write(to_us, does())
        finally:
            os._exit(0)
    os.close(to_us)
    os.waitpid(child, 0)
    with os.fdopen(from_child, "rb") as stream:
        return stream.read()


class Process:
    """The agent of a node with an emulated resctrl, and its prologs and epilogs."""

    def __init__(self, directory: Path, root: Path, jobs: Jobs, port: int = 1) -> None:
        self.directory, self.root, self.jobs = directory, root, jobs
        self.socket, self.log = directory / "run" / "agent.sock", directory / "agent.log"
        (directory / "sns.key").write_text(f"first {KEYS.signing.secret.hex()}\n")
        (directory / "sns.key").chmod(0o600)
        (directory / "sns.yaml").write_text(
            "partitions: [main]\n"
            f"nodes: [{{names: {NODE}, partitions: [main], cores: 28, memory_mb: 1000, llc_ways: 20}}]\n"
            "agents:\n"
            "  controller: 127.0.0.1\n"
            f"  port: {port}\n"
            f"  key_file: {directory}/sns.key\n"
            f"  run_dir: {directory}/run\n"
            f"  state_dir: {directory}/state\n"
            f"  resctrl: {root}\n"
            "  confine_system: false\n"
            "  sample_s: 0.5\n"
            "  monitor_s: 0.5\n"
            "  vanished_after_s: 3\n"
        )
        self.process: subprocess.Popen[bytes]

    def command(self, *arguments: str) -> list[str]:
        at = ["--config", str(self.directory / "sns.yaml"), "--node", NODE, "--processes", str(self.jobs.folder)]
        return [sys.executable, "-m", "resctrl_emulator.agent", *at, *arguments]

    def start(self) -> None:
        environment = {**os.environ, "PYTHONPATH": mount.python_path()}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(self.command(), env=environment, stderr=log, stdout=log)
        wait_for("the agent", self._answers)

    def end(self, number: int = signal.SIGKILL) -> int:
        self.process.send_signal(number)
        return self.process.wait(WITHIN_S)

    def hook(self, event: str, job_id: int, ways: int = 0) -> str:
        """What prolog or epilog of a job print into slurmd's log; they always end with 0."""
        grant = Grant(RunId(job_id), (NODE,), ways)
        environment = {
            "SLURM_JOB_ID": str(job_id),
            "SLURM_JOB_NODELIST": NODE,
            "SLURM_JOB_EXTRA": f"sns:grant={grants.token(grant, KEYS)}",
            "SLURM_JOB_NAME": "$(reboot) `reboot` \n\x1b[2J",
        }
        command = [sys.executable, "-I", "-S", hook.__file__, event, str(self.socket)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert done.stdout == ""
        return done.stderr

    def run(self, job_id: int, ways: int) -> int:
        assert self.hook("prolog", job_id, ways) == ""
        return self.jobs.start(job_id)

    def show(self) -> dict[str, object]:
        return read("sns agent", json.dumps(ask(self.socket, {"event": "show"}, "agent")))

    def group_with(self, process: int) -> str:
        groups = Groups(self.root)
        return next((name for name in groups.names() if process in groups.tasks(name)), "")

    def ways(self, job_id: int) -> int:
        groups = Groups(self.root)
        if group_of(job_id) not in groups.names():
            return 0
        return masks(discover(self.root), groups.read(group_of(job_id)))[0].bit_count()

    def _answers(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        try:
            self.show()
        except Exception:  # noqa: BLE001 -- it has not begun yet
            return False
        return True


@pytest.fixture(scope="module")
def tree(processes_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A mounted tree with the real clock."""
    directory = tmp_path_factory.mktemp("process") / "xeon"
    with mount.mounted(directory, "xeon", "--processes", str(processes_folder)) as root:
        yield root


@pytest.fixture
def agent(tree: Path, jobs: Jobs, tmp_path: Path) -> Iterator[Process]:
    MountedClient(tree).reset()
    found = Process(tmp_path, tree, jobs)
    found.start()
    yield found
    found.end()


class TestController:
    """A scheduler's end of the channel, which is away now and then."""

    @pytest.fixture
    def hub(self) -> Iterator[AgentHub]:
        with AgentHub("127.0.0.1", 0, lambda: KEYS, lambda _: None) as hub:
            yield hub

    @pytest.fixture
    def agent(self, hub: AgentHub, tree: Path, jobs: Jobs, tmp_path: Path) -> Iterator[Process]:
        MountedClient(tree).reset()
        found = Process(tmp_path, tree, jobs, hub.port)
        found.start()
        yield found
        found.end()

    def test_it_is_told_of_the_node_and_says_what_changes(self, hub: AgentHub, agent: Process) -> None:
        agent.run(1, 4)
        agent.run(2, 4)
        wait_for("the state of the node", lambda: NODE in hub.states() and len(hub.states()[NODE].jobs) == 2)
        state = hub.states()[NODE]
        assert (state.facts.ways, state.facts.measures_ipc, state.facts.why_unpartitioned) == (20, True, "")
        assert [job.ways for job in state.jobs] == [9, 9]
        hub.show_active({NODE: ActiveRuns(frozenset({RunId(1), RunId(2)}))})
        hub.change({NODE: [Change(RunId(1), 1, ways=14)]})
        wait_for("the change", lambda: agent.ways(1) >= 14)
        assert agent.ways(2) == 4

    @pytest.mark.long
    def test_reports_come_once_it_is_back_and_are_forgotten_when_stored(self, agent: Process, hub: AgentHub) -> None:
        spool = agent.directory / "state" / "spool"
        wait_for("the first state", lambda: NODE in hub.states())
        hub.close()
        for job in (1, 2, 3):
            agent.run(job, 3)
            agent.jobs.end(job)
            agent.hook("epilog", job)
        agent.end()
        agent.start()
        assert len(list(spool.glob("*.report"))) == 3
        with AgentHub("127.0.0.1", hub.port, lambda: KEYS, lambda _: None) as back:
            wait_for("the reports", lambda: len(back.reports()) == 3)
            assert [report.run.job_id for report in back.reports()] == [1, 2, 3]
            back.acknowledge([report.key for report in back.reports()])
            wait_for("an empty spool", lambda: not list(spool.glob("*.report")))
            agent.run(4, 3)
            agent.jobs.end(4)
            agent.hook("epilog", 4)
            wait_for("the next report", lambda: [report.run.job_id for report in back.reports()] == [4])


def test_a_job_from_prolog_to_epilog(agent: Process) -> None:
    task = agent.run(1, 4)
    assert agent.ways(1) == 18, "it has them when its prolog ends"
    wait_for("its task in its group", lambda: agent.group_with(task) == "job1")
    agent.jobs.end(1)
    assert agent.hook("epilog", 1) == ""
    assert Groups(agent.root).names() == (SHARED,)
    [report] = (agent.directory / "state" / "spool").glob("*.report")
    assert json.loads(report.read_text())["is_whole"] is True


@pytest.mark.long
def test_killed_and_restarted_under_load_every_job_keeps_its_ways(agent: Process) -> None:
    tasks = {job: agent.run(job, 3) for job in (1, 2, 3)}
    for number in (4, 5, 6):
        agent.end()
        assert "no agent answers" in agent.hook("prolog", number, 3), "the job starts all the same"
        tasks[number] = agent.jobs.start(number)
        agent.jobs.end(number - 3)
        del tasks[number - 3]
        agent.hook("epilog", number - 3)
        agent.start()
        left = {job for job in (1, 2, 3) if job in tasks}
        for job in left:
            assert agent.ways(job) >= 3
            assert agent.group_with(tasks[job]) == group_of(job)
    wait_for("those that ended have gone", lambda: {each["job"] for each in agent.show()["jobs"]} == {4, 5, 6})
    assert Groups(agent.root).names() == (SHARED,)
    reports = [json.loads(path.read_text()) for path in (agent.directory / "state" / "spool").glob("*.report")]
    assert len(reports) == 3
    assert [each["is_whole"] for each in reports] == [False] * 3


@pytest.mark.long
def test_a_stop_leaves_the_jobs_what_they_have_and_a_clean_up_takes_it_back(agent: Process) -> None:
    task = agent.run(1, 4)
    wait_for("its task in its group", lambda: agent.group_with(task) == "job1")
    assert agent.end(signal.SIGTERM) == 0
    assert agent.group_with(task) == "job1"
    command = [sys.executable, "-c", "from slurm_sns.cli import main; main()", "agent", "--clean-up"]
    done = subprocess.run(
        [*command, "--config", str(agent.directory / "sns.yaml")], check=True, capture_output=True, text=True
    )
    assert done.stdout == "2 groups removed\n"
    assert Groups(agent.root).names() == ()
    agent.start()


def test_another_users_process_at_the_socket_is_refused_and_changes_nothing(agent: Process) -> None:
    agent.run(1, 4)
    assert agent.socket.stat().st_mode & 0o777 == 0o600
    # Somebody opens the file to all: the kernel still says who asks.
    reachable = Path("/tmp") / f"sns-agent-{os.getpid()}.sock"
    os.link(agent.socket, reachable)
    try:
        reachable.chmod(0o666)
        answer = as_nobody(lambda: said_to(reachable, b'{"event": "epilog", "job": 1}\n'))
    finally:
        reachable.unlink()
    assert json.loads(answer) == {"error": f"user id {NOBODY} may not ask here", "bad_input": True}
    assert agent.ways(1) == 18


WRONG = ({}, {"event": "x"}, {"event": "prolog"}, {"event": ["prolog"], "job": 1}, {"event": "epilog", "job": -1})


def test_a_request_that_is_none_stops_nobody(agent: Process) -> None:
    for request in WRONG:
        with pytest.raises(BadInput, match="valid"):
            ask(agent.socket, request, "agent")
    agent.run(1, 4)
    assert agent.ways(1) == 18


@pytest.mark.long
def test_once_does_what_is_due_and_says_what_is_here(agent: Process) -> None:
    agent.run(1, 4)
    agent.end()
    agent.jobs.start(2)
    environment = {**os.environ, "PYTHONPATH": mount.python_path()}
    done = subprocess.run(agent.command("--once"), env=environment, check=True, capture_output=True, text=True)
    shown = read("sns agent", done.stdout)
    assert {each["job"]: (each["ways"], each["why_shared"]) for each in shown["jobs"]} == {
        1: (18, ""),
        2: (0, "its prolog did not reach the agent"),
    }
    assert agent.ways(1) == 18
    agent.start()


def test_two_agents_on_one_node_are_one(agent: Process) -> None:
    environment = {**os.environ, "PYTHONPATH": mount.python_path()}
    done = subprocess.run(agent.command("--once"), env=environment, check=False, capture_output=True, text=True)
    assert (done.returncode, "another one runs already" in done.stderr) == (1, True)
