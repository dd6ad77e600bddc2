"""What `sns render` makes for the agents on the nodes, and what its prolog does with whatever it meets."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from slurm_sns.config.configuration import load
from slurm_sns.package_files import package_text
from slurm_sns.render import files
from slurm_sns.render.texts import MARK, texts

SOURCE = Path("/etc/slurm/sns.yaml")
NODES = "partitions: [main]\nnodes: [{names: c1, partitions: [main], cores: 4, memory_mb: 4000, llc_ways: 20}]\n"
FOR_NODES = {"prolog", "epilog", "hook.py", "sns-agent.service"}


def rendered(tmp_path: Path, more: str = "agents: {controller: ctl}\n") -> dict[str, str]:
    path = tmp_path / "sns.yaml"
    path.write_text(NODES + more)
    return texts(load(path), SOURCE)


def test_without_agents_no_text_speaks_of_them(tmp_path: Path) -> None:
    without = rendered(tmp_path, "")
    assert not FOR_NODES & set(without)
    for name in set(without) - {"resctrl.yaml"}:
        assert "agent" not in without[name].lower(), name
    assert set(rendered(tmp_path)) == set(without) | FOR_NODES


def test_slurms_own_prolog_and_epilog_are_not_touched(tmp_path: Path) -> None:
    """A node on which such a script is missing would be drained; with PrologFlags=Alloc srun waits a second more."""
    lines = rendered(tmp_path)["slurm.conf"].lower().splitlines()
    assert not [line for line in lines if line.startswith(("prolog", "epilog"))]


def test_the_plugin_is_told_where_the_scripts_and_resctrl_are(tmp_path: Path) -> None:
    more = "agents: {controller: ctl, resctrl: /mnt/resctrl}\npaths: {slurm_dir: /opt/slurm/sns}\n"
    line = rendered(tmp_path, more)["plugstack.conf"].splitlines()[-1]
    assert line.startswith("optional sns.so heuristics=")
    assert line.split()[3:] == ["hooks=/opt/slurm/sns", "resctrl=/mnt/resctrl"]


def test_the_hook_is_that_of_the_package(tmp_path: Path) -> None:
    head, _, below = rendered(tmp_path)["hook.py"].partition("\n")
    assert head == f"# Generated from {SOURCE} {MARK}."
    assert below == package_text("node/hook.py")


class TestUnit:
    def test_the_agent_runs_as_root_and_before_slurmd(self, tmp_path: Path) -> None:
        unit = rendered(tmp_path, "agents: {controller: ctl}\npaths: {sns_command: /opt/sns/bin/sns}\n")
        lines = unit["sns-agent.service"].splitlines()
        assert f"ExecStart=/opt/sns/bin/sns agent --config {SOURCE}" in lines
        assert "Before=slurmd.service" in lines
        assert not [line for line in lines if line.startswith(("User=", "Requires="))]

    def test_it_may_write_resctrl_and_its_own_directories_only(self, tmp_path: Path) -> None:
        more = "agents: {controller: ctl, state_dir: /srv/agent, run_dir: /run/other, resctrl: /mnt/resctrl}\n"
        lines = rendered(tmp_path, more)["sns-agent.service"].splitlines()
        writable = [line.partition("=")[2] for line in lines if line.startswith("ReadWritePaths=")]
        assert " ".join(writable).split() == ["/srv/agent", "-/mnt/resctrl", "-/sys/fs/cgroup"]
        assert "RuntimeDirectory=other" in lines
        assert "ProtectSystem=strict" in lines


class Node:
    """A node's files, all below one directory; `run_dir` holds the socket of an agent."""

    def __init__(self, tmp_path: Path, run_dir: Path) -> None:
        self.agent = socket.socket(socket.AF_UNIX)
        self.agent.bind(str(run_dir / "agent.sock"))
        self.run_dir = run_dir
        self.slurm_dir = tmp_path / "etc"
        self.bin = tmp_path / "venv" / "bin"
        self.bin.mkdir(parents=True)
        (self.bin / "sns").touch(mode=0o755)
        (tmp_path / "sns").symlink_to(self.bin / "sns")
        self.has_python(f'exec {sys.executable} "$@"')
        paths = f"paths: {{slurm_dir: {self.slurm_dir}, sns_command: {tmp_path / 'sns'}}}\n"
        files.write(self.slurm_dir, rendered(tmp_path, f"agents: {{controller: ctl, run_dir: {run_dir}}}\n" + paths))

    def has_python(self, text: str) -> None:
        """The interpreter beside the command sns."""
        (self.bin / "python").unlink(missing_ok=True)
        (self.bin / "python").write_text(f"#!/bin/sh\n{text}\n")
        (self.bin / "python").chmod(0o755)

    def has_hook(self, text: str) -> None:
        (self.slurm_dir / "hook.py").write_text(text)

    def run(self, name: str = "prolog", **environment: str) -> subprocess.CompletedProcess[str]:
        """As slurmd does: no environment but the job's, nothing to read."""
        script, nothing = self.slurm_dir / name, subprocess.DEVNULL
        return subprocess.run([script], env=environment, stdin=nothing, capture_output=True, text=True, check=False)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    with tempfile.TemporaryDirectory(dir="/tmp") as run_dir:  # the kernel takes paths of sockets up to 107 bytes
        node = Node(tmp_path, Path(run_dir))
        yield node
        node.agent.close()


SAYS_WHAT_IT_IS_GIVEN = "import os, sys; print(sys.argv[1:], sys.flags.isolated, sys.flags.no_site, os.environ['JOB'])"


@pytest.mark.parametrize("name", ["prolog", "epilog"])
def test_the_scripts_give_the_hook_its_event_the_socket_and_the_jobs_environment(node: Node, name: str) -> None:
    node.has_hook(SAYS_WHAT_IT_IS_GIVEN)
    done = node.run(name, JOB="$(id) `id` ; \n'\"")
    assert done.stdout == f"['{name}', '{node.run_dir}/agent.sock'] 1 1 $(id) `id` ; \n'\"\n"
    assert (done.returncode, done.stderr) == (0, "")


def test_a_node_without_an_agent_runs_nothing_and_says_nothing(node: Node) -> None:
    node.has_hook("print('hook')")
    (node.run_dir / "agent.sock").unlink()
    (node.run_dir / "agent.sock").touch()
    done = node.run()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


BREAKS: dict[str, Callable[[Node], object]] = {
    "no hook": lambda node: (node.slurm_dir / "hook.py").unlink(),
    "a hook that fails": lambda node: node.has_hook("raise SystemExit(3)"),
    "a hook that is no Python": lambda node: node.has_hook("\x00("),
    "a hook that kills itself": lambda node: node.has_hook("import os; os.kill(os.getpid(), 9)"),
    "an interpreter that fails": lambda node: node.has_python("exit 127"),
    "no command sns and no interpreter": lambda node: shutil.rmtree(node.bin),
}


@pytest.mark.parametrize("what", BREAKS)
def test_whatever_is_missing_or_fails_the_prolog_ends_with_0(node: Node, what: str) -> None:
    BREAKS[what](node)
    assert node.run().returncode == 0


def test_a_variable_of_the_job_changes_no_command(node: Node, tmp_path: Path) -> None:
    """Slurm gives a prolog no variable that the user has named, but for the prefix SPANK_."""
    node.has_hook("")
    evil = tmp_path / "evil"
    evil.mkdir()
    for name in ("timeout", "readlink", "dirname", "python3"):
        (evil / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/owned\n")
        (evil / name).chmod(0o755)
    done = node.run(PATH=str(evil), PYTHONPATH=str(evil), PYTHONSTARTUP=str(evil / "python3"))
    assert done.returncode == 0
    assert not (tmp_path / "owned").exists()


@pytest.mark.long
def test_a_prolog_that_is_ended_ends_with_0(node: Node, tmp_path: Path) -> None:
    """The signal reaches the whole group, as slurmd sends it; the shell has no other way to end with 0."""
    node.has_hook(f"import pathlib, time; pathlib.Path({str(tmp_path / 'began')!r}).touch(); time.sleep(600)")
    running = subprocess.Popen([node.slurm_dir / "prolog"], env={}, start_new_session=True)
    while not (tmp_path / "began").exists():
        assert running.poll() is None
    os.killpg(running.pid, 15)
    assert running.wait() == 0
