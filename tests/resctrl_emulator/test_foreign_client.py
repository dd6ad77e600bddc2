"""pqos (Debian's intel-cmt-cat), a client that nobody here wrote, on the emulated tree.

It looks for /sys/fs/resctrl, and for the word resctrl in /proc/filesystems: both are made in a mount namespace of the
test's own. It has a process namespace, too, because `pqos -R` moves every task of the machine one by one.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from resctrl_emulator import mount

#: pqos takes the most of MB from the processor's vendor, not from the tree.
MACHINES = {"AuthenticAMD": "amd", "GenuineIntel": "xeon"}
NAMESPACES = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")

SCRIPT = """
set -eu
directory=$1
say() { # FILE OPTION...: what pqos says, and its exit code in a last line
    file=$directory/$1
    shift
    pqos --iface-os "$@" > "$file" 2>&1
    echo $? >> "$file"
}
mount -t tmpfs tmpfs /sys/fs
mkdir /sys/fs/resctrl
{ cat /proc/filesystems; printf 'nodev\\tresctrl\\n'; } > "$1/filesystems"
mount --bind "$1/filesystems" /proc/filesystems
"$2" -m resctrl_emulator /sys/fs/resctrl --machine "$3" --fit-host > "$1/log" 2>&1 &
emulator=$!
waited=0
until grep -q ' /sys/fs/resctrl ' /proc/mounts; do
    waited=$((waited + 1)); test $waited -lt 300; sleep 0.05
done
cd /sys/fs/resctrl
set +e
say first -e llc:0=0x00ff # makes the groups COS1, COS2, ...
say fresh -s
say set -e llc:1=0x000f
cat COS1/schemata > "$1/schemata"
sleep 60 & task=$!
say moved -a pid:2=$task
echo "$task" > "$1/task"
cat COS2/tasks > "$1/tasks"
say cpu -a llc:1=0
cat COS1/cpus_list > "$1/cpus"
say shown -s
say reset -R
cat COS*/schemata schemata > "$1/all"
cat COS*/tasks COS*/cpus_list > "$1/empty"
kill $task $emulator
wait
"""


def vendor():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("vendor_id"):
            return line.split()[-1]
    return ""


def why_not():
    if mount.why_not():
        return mount.why_not()
    if shutil.which("pqos") is None:
        return "pqos is not installed (apt-get install intel-cmt-cat)"
    if vendor() not in MACHINES:
        return f"pqos knows processors of {' and '.join(MACHINES)}, and not {vendor() or 'this one'}"
    trial = [*NAMESPACES, "mount", "-t", "tmpfs", "tmpfs", "/sys/fs"]
    if shutil.which("unshare") is None or subprocess.run(trial, capture_output=True, check=False).returncode:
        return "no mount namespace of our own can be made here"
    return None


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """What pqos wrote, and what stood in the tree, step by step."""
    reason = why_not()
    if reason:
        pytest.skip(reason)
    mount.check()
    directory = tmp_path_factory.mktemp("pqos")
    (directory / "script").write_text(SCRIPT)
    subprocess.run(
        [*NAMESPACES, "sh", str(directory / "script"), str(directory), sys.executable, MACHINES[vendor()]],
        env={**os.environ, "PYTHONPATH": mount.python_path()},
        check=True,
        timeout=120,
    )
    assert (directory / "log").read_text() == ""
    return {path.name: path.read_text() for path in directory.iterdir()}


#: Any command on an Intel or AMD machine writes this.
NOTE = [
    "NOTE:  Mixed use of MSR and kernel interfaces to manage",
    "       CAT or CMT & MBM may lead to unexpected behavior.",
]
#: Its first command looks for the groups COS1, COS2, ... before it makes them, and for a free one among them. A fresh
#: tree has no groups, the kernel's no more than ours: these files cannot be opened there either.
NO_GROUPS_YET = re.compile(
    r"ERROR: Could not open (schemata|cpus) file /sys/fs/resctrl/COS(\d+)/\1 for COS \2"
    r"|WARN: Unable to check if MBA CTRL is enabled - No free group"
)


def test_pqos_complains_of_nothing_but_groups_that_a_fresh_tree_does_not_have(said):
    lines = [line for line in said["first"].splitlines() if not NO_GROUPS_YET.fullmatch(line)]
    assert lines[:2] == NOTE
    assert all(re.fullmatch(r".* L3CA COS0 => MASK 0xff", line) for line in lines[2:-2])
    assert lines[-2:] == ["Allocation configuration altered.", "0"]


@pytest.mark.parametrize("command", ["fresh", "set", "moved", "cpu", "shown", "reset"])
def test_pqos_complains_of_nothing_once_the_groups_are_there(said, command):
    lines = said[command].splitlines()
    assert lines[:2] == NOTE
    assert lines[-1] == "0"
    assert [line for line in lines if line.startswith(("ERROR", "WARN"))] == []


def test_pqos_shows_the_tree(said):
    shown = [line.strip() for line in said["fresh"].splitlines()]

    assert any(line.startswith("L3CA COS1 => MASK 0x") for line in shown)
    assert any(line.startswith("MBA COS15 => ") for line in shown)


def test_pqos_sets_ways(said):
    assert "L3CA COS1 => MASK 0xf" in said["set"]
    assert said["set"].endswith("Allocation configuration altered.\n0\n")
    line = next(line for line in said["schemata"].splitlines() if line.strip().startswith("L3:"))
    assert all(int(part.rpartition("=")[2], 16) == 0xF for part in line.split(";"))
    assert "L3CA COS1 => MASK 0xf\n" in said["shown"]


def test_pqos_moves_tasks_and_cpus(said):
    for command in ("moved", "cpu"):
        assert said[command].splitlines() == [*NOTE, "Allocation configuration altered.", "0"]
    assert said["tasks"] == said["task"]
    assert f"COS2 => {said['task']}" in said["shown"]
    assert said["cpus"] == "0\n"


def test_pqos_resets_what_it_has_set(said):
    assert "Allocation reset successful" in said["reset"]
    assert len({line.strip() for line in said["all"].splitlines()}) == 2, "the same L3 and MB everywhere"
    assert said["empty"].split() == []
