"""`sns node`: what a machine can do and has, what would be written for some jobs, and that neither command writes."""

import fcntl
import gzip
import json
import os
import sys
import tarfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from shown import EVIL, FORBIDDEN

from slurm_sns.cli.live import node_missing
from slurm_sns.cli.live.node_missing import missing
from slurm_sns.cli.live.node_report import report
from slurm_sns.node.counters.perf_event import Event, PerfError

sys.path.append(str(Path(__file__).parents[2] / "node"))  # resctrl_trees
sys.path.append(str(Path(__file__).parents[2]))  # resctrl_emulator

from resctrl_emulator import mount
from resctrl_trees import ARCHIVE, amd, contents, intel

CAPTURED = (
    "resctrl.full",
    "resctrl.l2",
    "resctrl.l2cdp",
    "resctrl.l2l3mb",
    "resctrl.nol3",
    "resctrl.nol3.mbps",
    "resctrl.nomb",
    "resctrl.nomb.cdp",
)
WITHOUT_BANDWIDTH = ("resctrl.l2", "resctrl.l2cdp", "resctrl.nomb", "resctrl.nomb.cdp")
#: Machines of the emulator, with jobs that meet on them; the second mix follows on the first.
MIXES = {
    "xeon": ("1:3:40,2:2:5:14+0,3:1,4:0:10", "2:2:5:14+0,3:1,5:6:60"),
    "xeon-cdp": ("1:3,2:2,3:4", "3:4,4:2"),
    "xeon-mib": ("1:3:40,2:2:5", "2:2:5,3:8:50"),
    "haswell": ("1:3,2:2", "2:2,3:6"),
    "l2": ("1:2,2:2", "2:2,3:3"),
    "amd": ("1:3:40,2:2:5:4+0+0+0,3:1", "3:1,4:9"),
    "sparse": ("1:3:40,2:2:5,3:4", "1:3:40,3:4,4:5"),
    "xeon-without-l3": ("1:0:40,2:0:5", "2:0:5"),
}


@pytest.fixture(autouse=True)
def no_slurm(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests may themselves run in a job of Slurm."""
    monkeypatch.delenv("SLURMD_NODENAME", raising=False)


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the trees that were captured on real machines."""
    if not ARCHIVE.is_file():
        pytest.skip(f"{ARCHIVE} is missing (SNS_SHARED names the folder)")
    folder = tmp_path_factory.mktemp("captured")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.fixture
def node(sns) -> Callable[..., dict[str, Any]]:
    """The JSON of `sns node ...`, which succeeds."""

    def node(*words: object) -> dict[str, Any]:
        code, output, errors = sns("node", *words, "--json")
        assert (code, errors) == (0, "")
        return json.loads(output)

    return node


@pytest.fixture
def emulated(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """A mounted tree of that machine type."""
    if mount.why_not():
        pytest.skip(str(mount.why_not()))
    with ExitStack() as stack:
        yield lambda machine: stack.enter_context(mount.mounted(tmp_path / machine, machine, "--clock", "emulated"))


def carry_out(root: Path, changes: list[dict[str, Any]]) -> None:
    """Do what would be done, as one write each; the kernel's answer to a wrong one is an error."""
    for change in changes:
        if change["do"] == "make":
            (root / change["group"]).mkdir()
        elif change["do"] == "remove":
            (root / change["group"]).rmdir()
        else:
            assert change["do"] == "write"
            handle = os.open(root / change["group"] / "schemata", os.O_WRONLY)
            os.write(handle, change["schemata"].encode())
            os.close(handle)


class TestShow:
    def test_it_says_what_an_intel_machine_offers(self, node, tmp_path: Path) -> None:
        found = node("show", "--root", intel(tmp_path / "tree"), "--node", "c1")
        assert (found["format"], found["node"], found["missing"], found["mount_options"]) == (1, "c1", [], [])
        assert found["caches"] == [
            {
                "name": "L3",
                "ways": 20,
                "mask": "fffff",
                "least_ways": 2,
                "shareable": "c0000",
                "is_sparse": False,
                "domains": [0, 1],
                "closids": 16,
            }
        ]
        limits = {"least": 10, "step": 10, "most": 100}
        assert found["bandwidth"] == {"unit": "percent", **limits, "domains": [0, 1], "closids": 8}
        assert found["monitoring"]["rmids"] == 192
        assert (found["closids"], found["closids_for_jobs"]) == (8, 6)
        assert found["counters"].keys() == {"instructions", "memory_controllers"}

    def test_it_says_what_each_group_has(self, node, tmp_path: Path) -> None:
        root = intel(tmp_path / "tree")
        for name, masks in {"sns_shared": "c0000", "sns_job7": "3f", "sns_x": "fffff", "theirs": "ff"}.items():
            (root / name / "mon_data" / "mon_L3_00").mkdir(parents=True)
            (root / name / "schemata").write_text(f"L3:0={masks};1={masks}\nMB:0=50;1=100\n")
            (root / name / "tasks").write_text("11\n12\n13\n")
            (root / name / "mon_data" / "mon_L3_00" / "llc_occupancy").write_text("3145728\n")
        (root / "sns_half").mkdir()  # it vanishes while we look
        found = node("show", "--root", root)
        kinds = {group["name"]: group["kind"] for group in found["groups"]}
        assert kinds == {"": "root", "sns_job7": "job", "sns_shared": "shared", "sns_x": "stray", "theirs": "other"}
        job = next(group for group in found["groups"] if group["kind"] == "job")
        assert job == {
            "name": "sns_job7",
            "kind": "job",
            "tasks": 3,
            "masks": {"0": "3f", "1": "3f"},
            "schemata": {"L3": {"0": "3f", "1": "3f"}, "MB": {"0": 50, "1": 100}},
            "occupied_bytes": 3145728,
        }
        assert found["closids_for_jobs"] == 5

    def test_a_group_of_others_without_ways_yet_takes_a_closid(self, sns, node, tmp_path: Path) -> None:
        root = intel(tmp_path / "tree")
        (root / "theirs").mkdir()
        for name, text in {"schemata": "L3:uninitialized\n", "tasks": "", "mode": "pseudo-locksetup\n"}.items():
            (root / "theirs" / name).write_text(text)
        found = node("show", "--root", root)
        assert found["closids_for_jobs"] == 5
        assert [(group["name"], group["kind"], group["masks"]) for group in found["groups"]][1:] == [
            ("theirs", "other", {})
        ]
        assert "groups of others 1, jobs 5" in " ".join(sns("node", "show", "--root", root)[1].split())

    def test_on_a_terminal_it_is_facts_and_a_table(self, sns, tmp_path: Path) -> None:
        root = intel(tmp_path / "tree")
        (root / "sns_shared").mkdir()
        (root / "sns_shared" / "schemata").write_text("L3:0=c0000;1=c0000\nMB:0=100;1=50\n")
        (root / "sns_shared" / "tasks").write_text("")
        code, output, _ = sns("node", "show", "--root", root)
        lines = [" ".join(line.split()) for line in output.splitlines()]
        assert code == 0
        assert "20 ways (mask fffff, c0000 of them used by devices, too) in each of 2 domains (0, 1)" in output
        assert "CLOSIDs 8: the root group 1, the shared group 1, jobs 6" in lines
        assert "(root) fffff 100 2 all that nobody has put into a group" in lines
        assert "sns_shared c0000 0=100 1=50 0 jobs without ways of their own, the system" in lines

    @pytest.mark.parametrize("tree", CAPTURED)
    def test_it_reads_every_captured_tree_and_changes_nothing(self, sns, node, captured: Path, tree: str) -> None:
        before = contents(captured / tree)
        found = node("show", "--root", captured / tree)
        assert sns("node", "show", "--root", captured / tree)[0] == 0
        assert contents(captured / tree) == before
        assert bool(found["caches"]) == ("nol3" not in tree)
        assert (found["bandwidth"] is None) == (tree in WITHOUT_BANDWIDTH)
        assert ("cdp" in found["mount_options"]) == (tree == "resctrl.nomb.cdp")
        assert ("cdpl2" in found["mount_options"]) == (tree == "resctrl.l2cdp")
        assert ("mba_MBps" in found["mount_options"]) == (tree == "resctrl.nol3.mbps")

    def test_the_last_level_cache_is_the_first(self, node, captured: Path) -> None:
        assert [each["name"] for each in node("show", "--root", captured / "resctrl.l2l3mb")["caches"]] == ["L3", "L2"]

    def test_what_others_named_reaches_no_terminal(self, sns, node, tmp_path: Path) -> None:
        root = intel(tmp_path / "tree")
        for name in (EVIL.replace("/", "|"), os.fsdecode(b"\xff\xfe")):
            (root / name).mkdir()
            (root / name / "schemata").write_text("L3:0=fffff;1=fffff\n")
            (root / name / "tasks").write_text("")
        _, output, _ = sns("node", "show", "--root", root)
        assert not any(each in output for each in FORBIDDEN)
        assert all(group["name"].isprintable() for group in node("show", "--root", root)["groups"] if group["name"])

    @pytest.mark.parametrize("name", ["c 1", "c1\n", "-x", "x" * 65, "c[1-2]"])
    def test_a_name_that_no_node_has_is_refused(self, sns, tmp_path: Path, name: str) -> None:
        code, _, errors = sns("node", "show", "--root", intel(tmp_path / "tree"), f"--node={name}")
        assert (code, errors.count("\n")) == (2, 1)
        assert "no name of a node" in errors

    def test_in_a_job_the_node_has_slurms_name(self, node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        root = intel(tmp_path / "tree")
        assert node("show", "--root", root)["node"] == os.uname().nodename.partition(".")[0]
        monkeypatch.setenv("SLURMD_NODENAME", "c4")
        assert node("show", "--root", root)["node"] == "c4"

    def test_a_tree_that_shows_nonsense_is_one_line(self, sns, tmp_path: Path) -> None:
        root = intel(tmp_path / "tree")
        (root / "info" / "L3" / "cbm_mask").write_text("many\n")
        code, output, errors = sns("node", "show", "--root", root)
        assert (code, output, errors.count("\n")) == (1, "", 1)
        assert "cbm_mask is 'many'" in errors

    def test_counters_that_can_be_used_have_no_reason(self, mocker, tmp_path: Path) -> None:
        def opened(event: Event, *_: object, **__: object) -> int:
            if event.kind:
                raise PerfError(13, "the memory controllers")
            return 5

        pmu = tmp_path / "devices" / "amd_umc_0"
        pmu.mkdir(parents=True)
        (pmu / "type").write_text("12\n")
        (pmu / "cpumask").write_text("0\n")
        perf = mocker.Mock(open=opened)
        counters = report("c1", intel(tmp_path / "tree"), [], perf, tmp_path / "devices")["counters"]
        assert counters["instructions"] == ""
        assert counters["memory_controllers"].startswith("the memory controllers cannot be counted: no permission")
        assert [call.args for call in perf.close.call_args_list] == [(5,), (5,)]


class TestMissing:
    @pytest.fixture
    def host(self, tmp_path: Path) -> Callable[..., Path]:
        """A machine with these files; kernel and processor have resctrl unless they say otherwise."""

        def host(**files: str) -> Path:
            shown = {
                "proc/mounts": "proc /proc proc rw 0 0\n",
                "proc/filesystems": "nodev\tproc\nnodev\tresctrl\n",
                "proc/cpuinfo": "processor\t: 0\nflags\t\t: fpu rdt_a cat_l3\n",
                "proc/sys/kernel/osrelease": "6.1.0-18-amd64\n",
                "boot/config-6.1.0-18-amd64": "CONFIG_X86_CPU_RESCTRL=y\n",
                **{name.replace("__", "/"): text for name, text in files.items()},
            }
            for name, text in shown.items():
                (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
                (tmp_path / name).write_text(text)
            return tmp_path

        return host

    def test_nothing_is_missing_where_it_is_mounted(self, host, tmp_path: Path) -> None:
        assert missing(intel(tmp_path / "tree"), host()) == []

    def test_a_kernel_that_has_it_needs_the_mount(self, host) -> None:
        (line,) = missing(Path("/nowhere"), host())
        assert "mount -t resctrl resctrl /sys/fs/resctrl" in line
        assert "/etc/fstab: resctrl /sys/fs/resctrl resctrl defaults 0 0" in line

    def test_where_it_is_mounted_elsewhere_that_is_said(self, host) -> None:
        (line,) = missing(Path("/nowhere"), host(proc__mounts="resctrl /mnt/resctrl resctrl rw,relatime 0 0\n"))
        assert line.endswith("resctrl is mounted at /mnt/resctrl: --root /mnt/resctrl")

    def test_a_processor_without_the_flags_may_need_the_bios(self, host) -> None:
        without = {"proc__filesystems": "nodev\tproc\n", "proc__cpuinfo": "flags\t: fpu\n"}
        first, *_, last = missing(Path("/nowhere"), host(**without))
        assert "none of rdt_a, cat_l3, cat_l2, mba, cqm_llc" in first
        assert "BIOS: switch on Resource Director Technology (Intel) or Platform QoS (AMD)" in first
        assert "mount -t resctrl" in last

    def test_a_virtual_machine_is_told_apart(self, host) -> None:
        without = {"proc__filesystems": "nodev\tproc\n", "proc__cpuinfo": "flags\t: fpu hypervisor\n"}
        first, *_ = missing(Path("/nowhere"), host(**without))
        assert "virtual machine" in first
        assert "BIOS" not in first

    @pytest.mark.parametrize("option", node_missing.OPTIONS)
    def test_a_kernel_built_with_it_is_recognised(self, host, tmp_path: Path, option: str) -> None:
        shown = host(proc__filesystems="nodev\tproc\n")
        (shown / "boot" / "config-6.1.0-18-amd64").unlink()
        assert any("it needs CONFIG_X86_CPU_RESCTRL=y" in line for line in missing(Path("/nowhere"), shown))
        with gzip.open(tmp_path / "proc" / "config.gz", "wt") as file:
            file.write(f"# CONFIG_EXPERT is not set\n{option}=y\n")
        assert not any("CONFIG" in line for line in missing(Path("/nowhere"), shown))

    def test_a_kernel_built_without_it_is_named(self, host) -> None:
        shown = host(proc__filesystems="nodev\tproc\n")
        (shown / "boot" / "config-6.1.0-18-amd64").write_text("# CONFIG_X86_CPU_RESCTRL is not set\n")
        first, _ = missing(Path("/nowhere"), shown)
        assert first.startswith("the kernel was built without CONFIG_X86_CPU_RESCTRL")

    def test_a_command_line_that_turns_it_off_is_named(self, host) -> None:
        line = "quiet rdt=!l3cat,!mba ro\n"
        first, _ = missing(Path("/nowhere"), host(proc__filesystems="nodev\tproc\n", proc__cmdline=line))
        assert "has rdt=!l3cat,!mba" in first

    def test_a_machine_that_shows_nothing_at_all_is_told_all(self, tmp_path: Path) -> None:
        assert len(missing(Path("/nowhere"), tmp_path)) == 3

    def test_show_reports_it_and_fails(self, sns, tmp_path: Path) -> None:
        code, output, errors = sns("node", "show", "--root", tmp_path, "--node", "c1")
        assert (code, errors) == (1, "")
        assert "! missing: " in output
        code, output, _ = sns("node", "show", "--root", tmp_path, "--node", "c1", "--json")
        found = json.loads(output)
        assert code == 1
        assert found["missing"]
        assert (found["caches"], found["groups"], found["closids"]) == ([], [], 0)

    def test_layout_says_it_in_one_line(self, sns, tmp_path: Path) -> None:
        code, output, errors = sns("node", "layout", "--root", tmp_path, "--jobs", "1:4")
        assert (code, output, errors.count("\n")) == (1, "", 1)
        assert "is not a resctrl file system" in errors


class TestLayout:
    def test_it_says_what_each_job_would_have(self, node, tmp_path: Path) -> None:
        jobs = "1:3:40,2:2:5:4+0"
        found = node("layout", "--root", intel(tmp_path / "tree"), "--jobs", jobs, "--bandwidth-gbps", 118.26)
        assert (found["mask"], found["shared_ways"], found["without"]) == ("fffff", 2, {})
        assert found["domains"]["1"] == {
            "shared": {"guaranteed": None, "granted": "c0000", "bandwidth": 100},
            "job1": {"guaranteed": "7", "granted": "3ffff", "bandwidth": 40},
            "job2": {"guaranteed": None, "granted": "c0000", "bandwidth": 100},
        }
        assert found["domains"]["0"]["job2"]["bandwidth"] == 10

    def test_a_tree_that_another_program_changes_is_shown_and_that_is_said(self, sns, node, tmp_path: Path) -> None:
        words = ("node", "layout", "--root", intel(tmp_path / "tree"), "--jobs", "1:4")
        line = "! another program holds the lock of the tree and may be changing it"
        other = os.open(words[3], os.O_RDONLY)
        try:
            fcntl.flock(other, fcntl.LOCK_SH)
            assert node(*words[1:])["is_changing"] is False, "it only reads, too"
            fcntl.flock(other, fcntl.LOCK_EX)
            assert node(*words[1:])["is_changing"] is True
            assert line in sns(*words)[1]
        finally:
            os.close(other)
        assert line not in sns(*words)[1]

    def test_on_a_terminal_the_ways_are_a_picture(self, sns, tmp_path: Path) -> None:
        code, output, _ = sns("node", "layout", "--root", amd(tmp_path / "tree"), "--jobs", "1:3:40,2:14,3:2")
        lines = [line.split() for line in output.splitlines()]
        assert code == 0
        assert ["shared", "++..............", "-", "c000", "2048"] in lines
        assert ["job1", "........+++++###", "7", "ff", "160"] in lines
        assert "! job 2 has no ways of its own: it needs 14 cache ways; 9 of the 14 for jobs are free" in output
        assert "  write sns_job1/schemata  MB:0=160;8=160" in output

    def test_it_starts_from_the_groups_that_are_there(self, node, sns, tmp_path: Path) -> None:
        root = intel(tmp_path / "tree")
        for name, mask in {"sns_shared": "c0000", "sns_job7": "3ff00", "sns_job8": "ff", "theirs": "fffff"}.items():
            (root / name).mkdir()
            (root / name / "schemata").write_text(f"    L3:0={mask};1={mask}\n    MB:0=100;1=100\n")
            (root / name / "tasks").write_text("21\n22\n" if name == "sns_job8" else "")
        before = contents(root)
        found = node("layout", "--root", root, "--jobs", "7:4,9:2")
        assert contents(root) == before
        assert found["changes"][:2] == [
            {"do": "move", "group": "sns_shared", "threads": 2},
            {"do": "remove", "group": "sns_job8"},
        ]
        assert found["moved"] == []
        assert int(found["domains"]["0"]["job7"]["guaranteed"], 16) & ~0x3FF00 == 0
        assert list(found["domains"]["0"]) == ["shared", "job7", "job9"]
        _, output, _ = sns("node", "layout", "--root", root, "--jobs", "7:4,9:2")
        assert "  move 2 threads to sns_shared\n  remove sns_job8\n" in output

    @pytest.mark.parametrize("tree", CAPTURED)
    def test_on_every_captured_tree_it_changes_nothing(self, sns, node, captured: Path, tree: str) -> None:
        before = contents(captured / tree)
        words = ("layout", "--root", captured / tree, "--jobs", "1:3:4,2:2", "--bandwidth-gbps", 100)
        found = node(*words)
        assert sns("node", *words)[0] == 0
        assert contents(captured / tree) == before
        assert any(change["do"] == "make" for change in found["changes"])

    @pytest.mark.long
    @pytest.mark.parametrize("machine", MIXES)
    def test_the_kernels_rules_accept_all_that_would_be_written(self, node, emulated, machine: str) -> None:
        root = emulated(machine)
        for jobs in MIXES[machine]:
            words = ("layout", "--root", root, "--jobs", jobs, "--bandwidth-gbps", 118.26)
            planned = node(*words)
            assert planned["changes"]
            carry_out(root, planned["changes"])
            groups = {group["name"].removeprefix("sns_"): group for group in node("show", "--root", root)["groups"]}
            assert groups.keys() - {""} == planned["domains"]["0"].keys()
            for domain, wanted in planned["domains"].items():
                for name, limits in wanted.items():
                    assert groups[name]["masks"].get(domain) == limits["granted"]
                    assert groups[name]["schemata"].get("MB", {}).get(domain) == limits["bandwidth"]
            assert node(*words)["changes"] == []

    def test_no_job_is_a_layout_too(self, node, tmp_path: Path) -> None:
        found = node("layout", "--root", intel(tmp_path / "tree"), "--jobs", "")
        assert found["domains"]["0"] == {"shared": {"guaranteed": None, "granted": "fffff", "bandwidth": 100}}

    def test_nothing_to_write_is_said(self, sns, emulated) -> None:
        root = emulated("xeon")
        (root / "sns_shared").mkdir()
        assert sns("node", "layout", "--root", root, "--jobs", "")[1].rstrip().endswith("nothing would be written")

    @pytest.mark.parametrize(
        ("jobs", "part"),
        [
            ("1", "--jobs has '1'; valid: JOB:WAYS"),
            ("1:4,", "--jobs has ''"),
            ("1:4 2:8", "--jobs has '1:4 2:8'"),
            ("0:4", "--jobs has '0:4'"),
            ("-1:4", "--jobs has '-1:4'"),
            ("1:-4", "--jobs has '1:-4'"),
            ("1:4:nan", "--jobs has '1:4:nan'"),
            ("1:4:1e9", "--jobs has '1:4:1e9'"),
            ("1:4:", "--jobs has '1:4:'"),
            ("1:400", "--jobs has '1:400'"),
            ("1:٤", "--jobs has '1:٤'"),
            ("x" * 500, "...'; valid"),
            ("1:4\n2:8", "--jobs has '1:4\\n2:8'"),
            ("1:4,1:8", "--jobs names job 1 twice; valid: each once"),
            ("1:4:0:8", "job 1 has cores 8; valid: its cores in each of the 2 cache domains (0, 1), such as 8+8"),
            ("1:4:0:8+8+8", "job 1 has cores 8+8+8"),
            ("1:4:0:0+0", "job 1 has cores 0+0"),
            ("1:4:40", "valid: with --bandwidth-gbps, the memory bandwidth of the whole node"),
            (",".join(f"{each}:1" for each in range(1, 5000)), "--jobs names more than 4096 jobs"),
        ],
    )
    def test_jobs_that_cannot_be_are_refused_in_one_line(self, sns, tmp_path: Path, jobs: str, part: str) -> None:
        code, output, errors = sns("node", "layout", "--root", intel(tmp_path / "tree"), f"--jobs={jobs}")
        assert (code, output, errors.count("\n")) == (2, "", 1)
        assert part in errors
        assert len(errors) < 400

    @pytest.mark.parametrize(
        "words",
        [("--shared-ways", "65"), ("--shared-ways", "-1"), ("--bandwidth-gbps", "0"), ("--bandwidth-gbps", "x")],
    )
    def test_limits_of_the_options_are_said(self, sns, tmp_path: Path, words: tuple[str, str]) -> None:
        code, _, errors = sns("node", "layout", "--root", intel(tmp_path / "tree"), "--jobs", "1:4", *words)
        assert (code, errors.count("\n")) == (2, 1)


class TestCheck:
    """What `sns node show --json` prints is what `sns check --node-reports` reads."""

    @pytest.fixture
    def checked(self, sns, write_config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        """The findings about resctrl.yaml and reports, of nodes that have 20 ways and 118 GB/s."""
        monkeypatch.setenv("SLURM_CONF", str(tmp_path / "slurm.conf"))
        (tmp_path / "slurm.conf").write_text("ClusterName=site\n")
        entry = {"names": "c[1-2]", "partitions": ["main"], "cores": 28, "memory_mb": 4000, "llc_ways": 20}
        config = write_config(nodes=[{**entry, "bandwidth_gbps": 118}])

        def checked(*words: object) -> dict[str, dict[str, Any]]:
            code, output, errors = sns("check", "--json", "--config", config, *words)
            assert (code, errors) == (1, "")  # there is no Slurm
            findings = {each["what"]: each for each in json.loads(output)}
            said = ("resctrl.yaml", "resctrl is mounted", "node reports")
            return {what: each for what, each in findings.items() if any(f" {each}" in f" {what}" for each in said)}

        checked.config = config
        return checked

    def test_reports_of_the_nodes_are_compared(self, checked, node, tmp_path: Path) -> None:
        (tmp_path / "reports").mkdir()
        for name in ("c1", "c2"):
            shown = node("show", "--root", intel(tmp_path / name), "--node", name)
            (tmp_path / "reports" / name).write_text(json.dumps(shown))
        findings = checked("--node-reports", tmp_path / "reports")
        assert all(each["ok"] for each in findings.values())
        assert [what for what, each in findings.items() if each.get("warning")] == [
            "nodes c[1-2]: resctrl.yaml, closids"
        ]

    def test_a_node_without_resctrl_is_wrong(self, checked, sns, tmp_path: Path) -> None:
        _, output, _ = sns("node", "show", "--root", tmp_path, "--node", "c1", "--json")
        (tmp_path / "report").write_text(output)
        findings = checked("--node-reports", tmp_path / "report")
        assert not findings["node c1: resctrl is mounted"]["ok"]
        assert "is not a resctrl file system" in findings["node c1: resctrl is mounted"]["found"]
        assert "no report" in findings["node c2: not compared with resctrl.yaml"]["found"]

    def test_without_reports_nothing_is_said_about_nodes(self, checked) -> None:
        assert checked() == {}

    def test_what_a_report_says_reaches_no_terminal(self, checked, sns, tmp_path: Path) -> None:
        hostile = {"format": 1, "node": "c1", "missing": [EVIL], "mount_options": [], "caches": []}
        (tmp_path / "report").write_text(json.dumps({**hostile, "bandwidth": None, "closids": 0, "groups": []}))
        _, output, _ = sns("check", "--config", checked.config, "--node-reports", tmp_path / "report")
        assert "resctrl is mounted: found ?[31mred" in output
        assert not any(each in output for each in FORBIDDEN)

    def test_reports_that_are_not_there_are_one_line(self, checked, sns, tmp_path: Path) -> None:
        code, output, errors = sns("check", "--config", checked.config, "--node-reports", tmp_path / "none")
        assert (code, output, errors.count("\n")) == (2, "", 1)
        assert "No such file or directory" in errors
