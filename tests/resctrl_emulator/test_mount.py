"""The mounted file system: what the kernel's own file system does beside the rules, the hidden files, the clean-up."""

import fcntl
import json
import os
import signal
import stat
import subprocess
import sys
from contextlib import suppress
from errno import E2BIG, EACCES, EBUSY, EINVAL, EIO, ENODEV, ENOSPC, ENOTCONN, EPERM

import pytest

from resctrl_emulator import files, mount
from resctrl_emulator.clients import MountedClient
from resctrl_emulator.machines import MACHINES, XEON
from resctrl_emulator.rules import Tree

pytestmark = pytest.mark.skipif(mount.why_not() is not None, reason=str(mount.why_not()))


def test_a_missing_package_is_a_failure_with_the_line_to_install_it_and_no_skip(monkeypatch):
    monkeypatch.setitem(sys.modules, "mfusepy", None)
    assert mount.why_not() is None
    with pytest.raises(OSError, match=r"mfusepy is not installed .*pip install mfusepy"):
        mount.check()


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    with mount.mounted(tmp_path_factory.mktemp("mount"), "xeon", "--clock", "emulated") as mounted:
        yield mounted


@pytest.fixture
def job(root):
    """A group that the test may remove."""
    (root / "job").mkdir()
    yield root / "job"
    with suppress(FileNotFoundError):
        (root / "job").rmdir()


@pytest.fixture
def sleeper():
    process = subprocess.Popen(["sleep", "60"])
    yield process.pid
    process.kill()
    process.wait()


def refused(call, *arguments):
    try:
        call(*arguments)
    except OSError as error:
        return error.errno
    return 0


def write(path, text):
    """One write. Path.write_text makes two when the first is refused: closing flushes again."""
    handle = os.open(path, os.O_WRONLY)
    try:
        os.write(handle, text.encode())
    finally:
        os.close(handle)


def status(root):
    return (root / "info" / "last_cmd_status").read_text()


def test_an_open_file_of_a_removed_group_is_gone_also_when_the_name_is_used_again(job):
    writer, reader = os.open(job / "schemata", os.O_WRONLY), os.open(job / "tasks", os.O_RDONLY)
    job.rmdir()
    job.mkdir()

    assert refused(os.write, writer, b"L3:0=f\n") == ENODEV
    assert refused(os.read, reader, 100) == ENODEV
    os.close(writer)
    os.close(reader)
    assert (job / "schemata").read_text().endswith("L3:0=fffff;1=fffff\n")


def test_a_write_is_at_most_a_page(job):
    long = b"L3:" + b";".join(b"0=fffff" for _ in range(600)) + b"\n"
    assert len(long) > 4096

    handle = os.open(job / "schemata", os.O_WRONLY)
    assert refused(os.write, handle, long) == E2BIG
    os.close(handle)


def test_every_write_is_a_command_of_its_own_wherever_the_file_stands(job):
    handle = os.open(job / "schemata", os.O_RDWR)
    for ways in (b"f", b"ff"):
        os.write(handle, b"L3:0=" + ways + b"\n")
    os.lseek(handle, 0, os.SEEK_SET)
    assert os.read(handle, 4096).endswith(b"L3:0=000ff;1=fffff\n")
    os.lseek(handle, 0, os.SEEK_SET)
    assert os.read(handle, 5) + os.read(handle, 4096) == (job / "schemata").read_bytes()
    os.close(handle)


def test_opening_with_truncation_is_no_command(root, job):
    with suppress(OSError):
        (job / "schemata").write_text("L3:0=zz\n")
    os.close(os.open(job / "schemata", os.O_WRONLY | os.O_TRUNC | os.O_CREAT))

    assert status(root) == "Non-hex character in the mask zz\n"


def test_nothing_but_groups_can_be_made_or_removed(root):
    assert refused(os.open, root / "new", os.O_WRONLY | os.O_CREAT) == EACCES
    assert refused(os.open, root / "size", os.O_WRONLY) == EACCES
    assert refused(os.unlink, root / "schemata") == EPERM
    assert refused(os.symlink, "a", root / "new") == EPERM
    assert refused(os.rename, root / "schemata", root / "mode") == EPERM


def test_modes_and_owners_are_those_of_the_kernel_and_can_be_changed(job):
    assert stat.S_IMODE((job / "schemata").stat().st_mode) == 0o644
    assert stat.S_IMODE((job / "size").stat().st_mode) == 0o444
    assert stat.S_IMODE(job.stat().st_mode) == 0o755
    assert (job / "schemata").stat().st_size == 0
    assert (job / "schemata").stat().st_uid == os.geteuid()
    (job / "tasks").chmod(0o664)
    assert stat.S_IMODE((job / "tasks").stat().st_mode) == 0o664
    job.rmdir()
    job.mkdir()
    assert stat.S_IMODE((job / "tasks").stat().st_mode) == 0o644


def test_a_lock_on_the_root_excludes_a_second_one(root):
    first, second = (os.open(root, os.O_RDONLY | os.O_DIRECTORY) for _ in range(2))
    fcntl.flock(first, fcntl.LOCK_EX)
    assert refused(fcntl.flock, second, fcntl.LOCK_EX | fcntl.LOCK_NB) == 11
    fcntl.flock(first, fcntl.LOCK_UN)
    fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(first)
    os.close(second)


def test_a_program_is_started_and_counted_through_the_hidden_files(root, job, sleeper):
    hidden = root / ".emulator"
    assert ".emulator" not in {entry.name for entry in root.iterdir()}
    (job / "schemata").write_text("L3:0=ff;1=ff\n")
    (job / "tasks").write_text(f"{sleeper}\n")
    wish = {"start": "mg", "processes": 16, "tasks": [sleeper], "cores": {"0": 8, "1": 8}, "work_s": 97.86}
    (hidden / "programs").write_text(json.dumps(wish))
    before = float((hidden / "clock").read_text())
    (hidden / "clock").write_text("advance 10\n")

    assert float((hidden / "clock").read_text()) == before + 10
    moved = sum(int((job / f"mon_data/mon_L3_0{at}/mbm_total_bytes").read_text()) for at in (0, 1))
    assert moved / 1e10 == pytest.approx(112, rel=0.01)
    task, instructions, cycles = map(int, (hidden / "counters").read_text().split())
    assert (task, instructions / cycles) == (sleeper, pytest.approx(0.99, rel=0.01))
    shown = json.loads((hidden / "programs").read_text())
    assert (shown["group"], shown["ways"]) == ("job", {"0": 8, "1": 8})
    (hidden / "programs").write_text(json.dumps({"stop": sleeper}))
    assert (hidden / "programs").read_text() == ""


@pytest.mark.parametrize(
    "text",
    [
        "no json",
        "[]",
        '{"start": "nobody", "processes": 16, "tasks": [1], "cores": {"0": 1}}',
        '{"start": "mg", "processes": 16, "tasks": [], "cores": {"0": 1}}',
        '{"start": "mg", "processes": 16, "tasks": [1], "cores": {"5": 1}}',
        '{"start": "mg", "processes": 16, "scale": 3, "tasks": [1], "cores": {"0": 1}}',
    ],
)
def test_what_cannot_be_started_is_refused(root, text):
    assert refused((root / ".emulator" / "programs").write_text, text) == EINVAL


@pytest.mark.parametrize(("name", "number"), [("EINVAL", EINVAL), ("EBUSY", EBUSY), ("EIO", EIO), ("ENOSPC", ENOSPC)])
def test_the_next_access_can_be_refused_with_any_errno(root, job, name, number):
    fault = {"errno": name, "status": "As asked", "times": 2}
    (root / ".emulator/faults").write_text(json.dumps({**fault, "path": "job/schemata", "access": "write"}))
    (root / ".emulator/faults").write_text(json.dumps({**fault, "path": "second", "access": "make"}))

    for _ in range(2):
        assert refused(write, job / "schemata", "L3:0=f\n") == number
        assert status(root) == "As asked\n"
        assert refused((root / "second").mkdir) == number
    assert (root / ".emulator/faults").read_text() == ""
    (job / "schemata").write_text("L3:0=f\n")


def test_counters_can_be_made_unavailable(root, job):
    fault = {"group": "job", "domain": 1, "feature": "llc_occupancy", "reads": "Unavailable"}
    (root / ".emulator/faults").write_text(json.dumps(fault))
    assert (job / "mon_data/mon_L3_01/llc_occupancy").read_text() == "Unavailable\n"

    (root / ".emulator/faults").write_text(json.dumps({**fault, "reads": None}))
    (root / ".emulator/faults").write_text('{"reset": true}')
    assert (job / "mon_data/mon_L3_01/llc_occupancy").read_text() == "0\n"


def test_a_users_task_may_say_what_it_is_and_the_other_hidden_files_are_the_owners(root):
    names = ("", "programs", "clock", "counters", "faults")
    modes = [stat.S_IMODE((root / ".emulator" / name).stat().st_mode) for name in names]
    assert modes == [0o711, 0o666, 0o600, 0o600, 0o600]


def emulator(*arguments, **options):
    return subprocess.Popen(
        [sys.executable, "-m", "resctrl_emulator", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": mount.python_path()},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_unmounts_and_ends_with_0(tmp_path, number):
    process = emulator(tmp_path)
    mount._wait_until_ready(process, tmp_path)
    process.send_signal(number)

    assert process.communicate(timeout=20) == ("", "")
    assert process.returncode == 0
    assert not os.path.ismount(tmp_path)


def test_what_a_killed_emulator_leaves_can_be_unmounted(tmp_path):
    process = emulator(tmp_path)
    mount._wait_until_ready(process, tmp_path)
    process.kill()
    process.communicate()

    assert refused(os.listdir, tmp_path) == ENOTCONN
    mount.unmount(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--machine", "haswell", "--mount-options", "cdp"],
            "mount option cdp: machine haswell has not got it; valid: none",
        ),
        (["--mount-options", "debug"], "mount option debug: machine xeon has not got it; valid: cdp, mba_MBps"),
        (["--profiles", "/nowhere.yaml"], "/nowhere.yaml"),
    ],
)
def test_a_wrong_command_line_ends_with_2_and_one_line(tmp_path, arguments, message):
    process = emulator(tmp_path, *arguments)
    out, err = process.communicate(timeout=20)

    assert (process.returncode, out, err.count("\n")) == (2, "", 1)
    assert message in err


def test_a_mount_point_that_does_not_exist_is_named(tmp_path):
    process = emulator(tmp_path / "nowhere")
    _, err = process.communicate(timeout=20)

    assert process.returncode == 2
    assert "nowhere" in err


@pytest.mark.long
@pytest.mark.parametrize("machine", sorted(MACHINES))
def test_the_mounted_files_are_those_of_the_model(tmp_path, mounts, machine):
    files.write_copy(Tree(MACHINES[machine]), tmp_path)
    root = mounts(machine)
    MountedClient(root).reset()

    def texts(directory):
        return {
            str(path.relative_to(directory)): path.read_text() if path.is_file() else None
            for path in directory.rglob("*")
            if path.name not in ("tasks", "last_cmd_status")
        }

    assert texts(root) == texts(tmp_path)


def test_the_copy_of_a_tree_is_plain_files(tmp_path):
    process = emulator(tmp_path, "--copy")
    process.communicate(timeout=20)

    assert process.returncode == 0
    assert not os.path.ismount(tmp_path)
    assert (tmp_path / "info/L3/cbm_mask").read_text() == f"{XEON.caches[0].mask:x}\n"
