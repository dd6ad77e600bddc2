"""pqos (Debian's intel-cmt-cat), a client that nobody here wrote, on the emulated tree.

It looks for /sys/fs/resctrl, and for the word resctrl in /proc/filesystems: both are made in a mount namespace of the
test's own. It has a process namespace, too, because `pqos -R` moves every task of the machine one by one.
"""

import os
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
pqos --iface-os -e llc:0=0x00ff > "$1/first" 2>&1  # makes the groups COS1, COS2, ...
pqos --iface-os -s > "$1/fresh" 2>&1
pqos --iface-os -e llc:1=0x000f > "$1/set" 2>&1
echo $? >> "$1/set"
cat COS1/schemata > "$1/schemata"
sleep 60 & task=$!
pqos --iface-os -a pid:2=$task > "$1/moved" 2>&1
echo "$task" > "$1/task"
cat COS2/tasks > "$1/tasks"
pqos --iface-os -a llc:1=0 > "$1/cpu" 2>&1
cat COS1/cpus_list > "$1/cpus"
pqos --iface-os -s > "$1/shown" 2>&1
pqos --iface-os -R > "$1/reset" 2>&1
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


def test_pqos_shows_the_tree(said):
    shown = [line.strip() for line in said["fresh"].splitlines()]

    assert any(line.startswith("L3CA COS1 => MASK 0x") for line in shown)
    assert any(line.startswith("MBA COS15 => ") for line in shown)
    assert not any("ERROR" in line for line in shown)


def test_pqos_sets_ways(said):
    assert "L3CA COS1 => MASK 0xf" in said["set"]
    assert said["set"].endswith("Allocation configuration altered.\n0\n")
    line = next(line for line in said["schemata"].splitlines() if line.strip().startswith("L3:"))
    assert all(int(part.rpartition("=")[2], 16) == 0xF for part in line.split(";"))
    assert "L3CA COS1 => MASK 0xf\n" in said["shown"]


def test_pqos_moves_tasks_and_cpus(said):
    assert said["tasks"] == said["task"]
    assert f"COS2 => {said['task']}" in said["shown"]
    assert said["cpus"] == "0\n"


def test_pqos_resets_what_it_has_set(said):
    assert "Allocation reset successful" in said["reset"]
    assert len({line.strip() for line in said["all"].splitlines()}) == 2, "the same L3 and MB everywhere"
    assert said["empty"].split() == []
