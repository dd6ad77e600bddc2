"""Whatever is wrong with a node's prolog, epilog or plugin: no job fails because of us, and no node is drained.

The node is c1. What a test breaks there it mends at its end.
"""

import json
import shlex
from collections.abc import Iterator

import pytest

from cluster import PYTHON, Cluster

NODE = "c1"
DIRECTORY, SAVED = "/etc/slurm/sns", "/etc/slurm/sns.saved"
#: Without slurm_sns: Slurm starts them at once, where they are to run.
OPTIONS = f"-p plain -w {NODE} -n2 --mem=100"
#: Listens in the agent's place, and writes what it is told into a file; it answers, or it never does.
LISTENER = """
import os, socket, sys
os.makedirs("/run/sns-agent", exist_ok=True)
path = "/run/sns-agent/agent.sock"
if os.path.exists(path):
    os.unlink(path)
listening = socket.socket(socket.AF_UNIX)
listening.bind(path)
listening.listen(64)
waiting = []
open("/tmp/told", "wb").close()
while True:
    caller, _ = listening.accept()
    if sys.argv[1] == "silent":
        waiting.append(caller)
        continue
    line = b""
    while not line.endswith(b"\\n") and (part := caller.recv(65536)):
        line += part
    with open("/tmp/told", "ab") as told:
        told.write(line)
    caller.sendall(b"{}\\n")
    caller.close()
"""


class Node:
    """The node without its agent."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def run(self, command: str) -> str:
        return self._cluster.run(command, node=NODE)

    def listen(self, how: str) -> None:
        """Put a listener in the agent's place: `answering` or `silent`."""
        self.stop_listening()
        self.run(f"{PYTHON} -I -S -c {shlex.quote(LISTENER)} {how} > /dev/null 2>&1 & echo $! > /tmp/listener")
        self._cluster.wait_for("it listens", lambda: self.run("test -e /tmp/told && echo yes || true") == "yes\n")

    def stop_listening(self) -> None:
        self.run("test ! -e /tmp/listener || kill $(cat /tmp/listener); rm -f /tmp/listener /tmp/told")
        self.run("rm -f /run/sns-agent/agent.sock")

    def told(self) -> list[dict[str, str]]:
        return [json.loads(line) for line in self.run("cat /tmp/told").splitlines()]

    def log(self) -> str:
        return self.run("cat /var/log/slurm/slurmd.log")

    def state(self) -> str:
        return self._cluster.run(f"sinfo -h -n {NODE} -p plain -o %T").strip()


@pytest.fixture
def node(cluster: Cluster) -> Iterator[Node]:
    node = Node(cluster)
    node.run("sns-daemon stop agent")
    node.run(f"cp -a {DIRECTORY} {SAVED}")
    yield node
    node.stop_listening()
    node.run(f"rm -rf {DIRECTORY} && mv {SAVED} {DIRECTORY}")
    cluster.run(f"scontrol update nodename={NODE} state=resume 2> /dev/null || true")
    node.run("test ! -e /sys/fs/resctrl/schemata || sns-daemon start agent")


def assert_a_job_runs(cluster: Cluster, node: Node, options: str = "", script: str = "srun true") -> int:
    """A batch job with a step runs there to its end, and the node is as before."""
    number = cluster.submit(f"{OPTIONS} {options}", script)
    ended = cluster.wait_for_end([number], 120)[number]
    assert (ended.state, ended.nodes) == ("COMPLETED", (NODE,))
    assert cluster.fields(number)["Restarts"] == "0"
    cluster.wait_for("the node is idle", lambda: node.state() == "idle")
    return number


def test_the_agent_is_told_of_a_job_before_it_runs_and_after_it_has_ended(cluster: Cluster, node: Node) -> None:
    node.listen("answering")
    number = assert_a_job_runs(cluster, node, "--extra 'a grant'")
    cluster.wait_for("both were told", lambda: len(node.told()) == 2)
    prolog, epilog = node.told()
    assert (prolog["event"], epilog["event"]) == ("prolog", "epilog")
    assert {each["job"] for each in (prolog, epilog)} == {str(number)}
    assert (prolog["uid"], prolog["restarts"], prolog["node"], prolog["nodes"]) == ("2001", "0", NODE, NODE)
    assert prolog["extra"] == "a grant"


HOSTILE = '$(touch /tmp/owned) `touch /tmp/owned` ; touch /tmp/owned & | \\ \' " {"v":1}'


def test_what_a_user_writes_is_a_text_for_the_agent_and_nothing_else(cluster: Cluster, node: Node) -> None:
    node.listen("answering")
    named = f"-J {shlex.quote(HOSTILE)} --comment {shlex.quote(HOSTILE)} --extra {shlex.quote(HOSTILE)}"
    variables = "SLURM_JOB_EXTRA=forged,SLURM_JOB_ID=1,PATH=/tmp/evil:/bin:/usr/bin,PYTHONPATH=/tmp/evil,SPANK_X=1"
    number = assert_a_job_runs(cluster, node, f"{named} --export=ALL,{variables}")
    cluster.wait_for("both were told", lambda: len(node.told()) == 2)
    assert {(each["job"], each["extra"]) for each in node.told()} == {(str(number), HOSTILE)}
    assert node.run("ls /tmp/owned 2> /dev/null || true") == ""


#: What is broken on the node, and what slurmd's log says of it then.
BROKEN = {
    "the rendered directory is missing": (f"rm -r {DIRECTORY}", ""),
    "the script fails": (f"printf '#!/bin/sh\\nexit 1\\n' > {DIRECTORY}/prolog", ""),
    "the script cannot be run": (f"chmod -x {DIRECTORY}/prolog", "prolog: cannot be run: Permission denied"),
    "the hook is missing": (f"rm {DIRECTORY}/hook.py", "hook.py"),
    "the epilog fails": (f"printf '#!/bin/sh\\necho no; kill -9 $$\\n' > {DIRECTORY}/epilog", "epilog: no"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_job_runs_and_its_node_is_not_drained_when(cluster: Cluster, node: Node, what: str) -> None:
    break_it, said = BROKEN[what]
    node.listen("answering")
    node.run(break_it)
    before = len(node.log())
    # A step needs slurm.conf, which includes a file of that directory.
    assert_a_job_runs(cluster, node, script="true" if "directory" in what else "srun true")
    assert said in node.log()[before:]


@pytest.mark.parametrize("silent", ["the agent", "the script"])
def test_a_job_waits_only_some_seconds_when_there_is_no_answer_of(cluster: Cluster, node: Node, silent: str) -> None:
    node.listen("silent")
    if silent == "the script":
        node.run(f"printf '#!/bin/sh\\ntrap \"\" TERM; sleep 600\\n' > {DIRECTORY}/prolog")
    before = len(node.log())
    assert_a_job_runs(cluster, node)
    said = "killed after 12000 ms" if silent == "the script" else "has not answered within 5 s"
    assert said in node.log()[before:]
    assert node.run("pgrep -fx 'sleep 600' || true") == ""


def test_a_task_that_finds_no_group_or_may_not_join_it_runs(cluster: Cluster, node: Node) -> None:
    """The plugin looks where plugstack.conf says; the tree there is a plain directory, and then not root's alone."""
    node.run("mkdir -p -m 755 /tmp/tree/sns_shared && touch /tmp/tree/sns_shared/tasks")
    node.run(f"sed -i 's| resctrl=[^ ]*| resctrl=/tmp/tree|' {DIRECTORY}/plugstack.conf")
    assert_a_job_runs(cluster, node)
    assert node.run("cat /tmp/tree/sns_shared/tasks") != "", "it was the first that joined, or a later one"
    node.run("chmod 777 /tmp/tree; : > /tmp/tree/sns_shared/tasks")
    before = len(node.log())
    assert_a_job_runs(cluster, node)
    assert node.run("cat /tmp/tree/sns_shared/tasks; rm -r /tmp/tree") == ""
    assert "is in no group of /tmp/tree: not of root, or others may write in it" in node.log()[before:]


#: A task with a thread and, a second later, a child with a thread. Each writes the ids of its threads.
TASK = """
import pathlib, subprocess, sys, threading, time
threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
ids = " ".join(path.name for path in pathlib.Path("/proc/self/task").iterdir())
time.sleep(1)
if len(sys.argv) == 1:
    subprocess.Popen([sys.executable, sys.argv[0], "late"])
pathlib.Path(f"/tmp/threads.{len(sys.argv)}").write_text(ids)
time.sleep(600)
"""


@pytest.fixture
def groups(cluster: Cluster, node: Node) -> Iterator[str]:
    """The directory of an emulated resctrl with no groups of ours."""
    if cluster.try_run("test -e /sys/fs/resctrl/schemata", node=NODE).returncode:
        pytest.skip(f"{NODE} has no emulated resctrl (the host has no /dev/fuse, or SNS_RESCTRL=0)")
    node.run("sns agent --clean-up; rm -f /tmp/threads.*")
    yield "/sys/fs/resctrl"
    cluster.run("scancel -u alice")
    node.run("rm -f /tmp/threads.*; sns agent --clean-up")


def threads_of_task(cluster: Cluster, node: Node) -> set[str]:
    """The threads of a task and of its late child, once both run."""
    cluster.wait_for("both run", lambda: "2" in node.run("ls /tmp/threads.* 2> /dev/null | grep -c . || true"))
    found = set(node.run("cat /tmp/threads.1; echo; cat /tmp/threads.2").split())
    assert len(found) == 4
    return found


def test_tasks_their_threads_and_late_children_are_in_their_jobs_group(
    cluster: Cluster, node: Node, groups: str
) -> None:
    cluster.write("/home/alice/task.py", TASK, "alice")
    # In the agent's place the prolog makes the group, before any task starts.
    node.run(f"printf '#!/bin/sh\n/bin/mkdir {groups}/sns_job$SLURM_JOB_ID\n' > {DIRECTORY}/prolog")
    number = cluster.submit(OPTIONS, f"srun -n1 {PYTHON} task.py")
    assert threads_of_task(cluster, node) <= set(node.run(f"cat {groups}/sns_job{number}/tasks").split())
    # The batch step's shell, too.
    batch = node.run(f"scontrol listpids {number}.batch | awk 'NR > 1 {{print $1}}'").split()
    assert set(batch) & set(node.run(f"cat {groups}/sns_job{number}/tasks").split())


def test_tasks_of_a_job_without_a_group_are_in_the_shared_one(cluster: Cluster, node: Node, groups: str) -> None:
    cluster.write("/home/alice/task.py", TASK, "alice")
    node.run(f"mkdir {groups}/sns_shared {groups}/sns_job1")
    cluster.submit(OPTIONS, f"srun -n1 {PYTHON} task.py")
    assert threads_of_task(cluster, node) <= set(node.run(f"cat {groups}/sns_shared/tasks").split())
    assert node.run(f"cat {groups}/sns_job1/tasks") == ""
