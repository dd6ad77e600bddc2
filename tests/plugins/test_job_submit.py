"""The example job_submit.lua with its modules, in Lua 5.1, against a stand-in for what slurmctld gives them."""

import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from slurm_sns.package_files import shared_path
from slurm_sns.submit.table import FilterTable, NodeShape, lua_string, lua_text

# What Slurm 26.05.5 really gave the script for a plain `sbatch -n4 --wrap ...`; 655.. and 42949672.. mean "not given".
RECORDED = {
    "script": "#!/bin/sh\n",
    "priority": 4294967294,
    "num_tasks": 4,
    "ntasks_per_node": 65534,
    "cpus_per_task": 65534,
    "min_cpus": 4,
    "max_cpus": 4294967294,
    "min_nodes": 4294967294,
    "max_nodes": 4294967294,
    "ntasks_per_tres": 65534,
    "shared": 65534,
    "contiguous": 0,
    "bitflags": 503332864,
    "req_switch": 4294967294,
    "segment_size": 0,
    "boards_per_node": 0,
    "sockets_per_board": 0,
    "sockets_per_node": 65534,
    "cores_per_socket": 65534,
    "threads_per_core": 65534,
    "ntasks_per_board": 0,
    "ntasks_per_socket": 65534,
    "ntasks_per_core": 65534,
    "pn_min_cpus": 65534,
    "pn_min_tmp_disk": 4294967294,
    "reboot": 65534,
    "het_job_offset": 4294967294,
    "begin_time": 0,
    "cron_job": False,
}
# A part of the environment that sbatch sends.
SBATCH = {"SLURM_UMASK": "0022", "SLURM_SUBMIT_HOST": "ctl"}
SPANK = (
    "_SLURM_SPANK_OPTION_sns_sns_alpha=0.9",
    "_SLURM_SPANK_OPTION_sns_sns_max_scale=4",
    "_SLURM_SPANK_OPTION_other_sns_alpha=7",
    "_SLURM_SPANK_OPTION_sns_sns_exclusive=(null)",
)

# log_user formats, as Slurm's own does; what the script sets is printed in the order in which it is set.
STAND_IN = """
local function speaker(name)
  return function(...) print(name .. ": " .. string.format(...)) end
end
slurm = { SUCCESS = 0, ERROR = -1 }
slurm.log_user, slurm.log_error, slurm.log_debug = speaker("user"), speaker("error"), speaker("debug")
local job = setmetatable({}, {
  __index = FIELDS,
  __newindex = function(_, name, value) print("set " .. name .. ": " .. tostring(value)) end,
})
dofile(SCRIPT)
local found, filter = pcall(require, "sns_filter")
if found then filter.table_path = TABLE end
print("answer: " .. slurm_job_submit(job, PARTITIONS, 1000))
print("modify: " .. slurm_job_modify(job, {}, {}, 1000))
"""


def literal(value):
    if isinstance(value, dict):
        return "{" + ",".join(f"[{literal(key)}]={literal(entry)}" for key, entry in value.items()) + "}"
    if isinstance(value, bool):
        return str(value).lower()
    return lua_string(value) if isinstance(value, str) else str(value)


#: What Slurm gives as the most nodes of a partition without such a limit.
UNLIMITED = 4294967295


class Site:
    """A cluster's files, and what a submission to it says and sets."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.table_path, self.heartbeat, self.kill_switch = folder / "filter.lua", folder / "beat", folder / "off"
        self.modules = shared_path("plugins/job_submit")
        self.heartbeat.write_text(f"{time.time():.0f}\n")
        self.partitions = {"main": {"max_nodes": UNLIMITED}, "plain": {"max_nodes": UNLIMITED}}
        self.render()

    def render(self, mode="enforce", **changes):
        shapes = {"main": (NodeShape(28, 28, 128000, 4),)}
        paths = {"heartbeat_path": str(self.heartbeat), "kill_switch_path": str(self.kill_switch)}
        table = FilterTable(mode, shapes, "main", ("mix-fit",), 4500, heartbeat_timeout_s=60, **paths, **changes)
        self.table_path.write_text(lua_text(table))

    def submit(self, *, spank=(), environment=None, **fields):
        environment = SBATCH if environment is None else environment
        job = {**RECORDED, **fields, "spank_job_env_size": len(spank), "environment": environment}
        if spank:
            job["spank_job_env"] = dict(enumerate(spank))
        job = {name: value for name, value in job.items() if value is not None}
        given = {"TABLE": str(self.table_path), "SCRIPT": str(shared_path("plugins/job_submit/job_submit.lua"))}
        head = f"package.path = {literal(str(self.modules / '?.lua'))}\nlocal FIELDS = {literal(job)}\n"
        head += f"local PARTITIONS = {literal(self.partitions)}\n"
        head += "".join(f"local {name} = {literal(value)}\n" for name, value in given.items())
        lua = shutil.which("lua5.1") or pytest.fail("lua5.1 is needed (Debian: apt-get install lua5.1)")
        ran = subprocess.run(
            [lua, "-"], input=(head + STAND_IN).encode(), capture_output=True, check=True, cwd=self.folder
        )
        lines = [self._shown(line) for line in ran.stdout.decode().splitlines()]
        assert lines.pop() == "modify: 0"
        return lines

    @staticmethod
    def _shown(line):
        """The line, with NOW+120 for the first gate: Lua asks the clock."""
        return re.sub(r"\b[0-9]{10}\b", lambda found: f"NOW+{round((int(found[0]) - time.time()) / 60) * 60}", line)


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


OPEN = ["set max_nodes: 500000", "set bitflags: 503333376"]
GATED = ["set admin_comment: sns:2 g=NOW+120", *OPEN, "set begin_time: NOW+120", "answer: 0"]


def test_a_job_as_slurm_sends_it_gets_a_record_and_then_a_gate(site):
    assert site.submit() == GATED
    assert site.submit(priority=0) == GATED  # sbatch --hold
    assert site.submit(extra="sns:1 notes") == GATED  # a field of its owner's


def test_the_scheduler_is_told_of_a_gated_job_by_a_byte_where_it_has_made_the_file(site):
    told = site.folder / "submitted"
    site.submit()
    assert not told.exists()
    told.write_bytes(b"")
    assert (site.submit(partition="plain")[-1], told.read_bytes()) == ("answer: 0", b"")
    for _ in range(3):
        assert site.submit() == GATED
        assert told.read_bytes() == b"1"
    told.unlink()
    told.mkdir()
    assert site.submit() == GATED


def test_a_begin_time_of_the_owners_is_kept_in_the_record(site):
    begin_s = round(time.time()) + 3600
    set_record, *_, set_begin, _ = site.submit(begin_time=begin_s)
    assert (set_record, set_begin) == ("set admin_comment: sns:2 g=NOW+3600 b=NOW+3600", "set begin_time: NOW+3600")


def test_what_the_sites_own_script_has_set_in_admin_comment_stays(site):
    assert site.submit(admin_comment="project 7")[0] == "set admin_comment: project 7;sns:2 g=NOW+120"


def test_the_owner_of_a_gated_job_is_told_if_the_site_wants_it(site):
    site.render(tells_users=True)
    told = "user: sns: slurm_sns will place this job; see: sns queue"
    assert site.submit() == [*GATED[:-1], told, "answer: 0"]
    site.render("advise", tells_users=True)
    assert told not in site.submit()


@pytest.mark.parametrize("expression", ["0-199", "0-15:4,20%3", "7"])
def test_an_array_is_gated_like_one_of_its_tasks(site, expression):
    assert site.submit(array_inx=expression) == GATED
    assert "128000 MiB" in site.submit(array_inx=expression, min_mem_per_node=131072)[0]


@pytest.mark.parametrize(
    "partitions",
    [{}, {"main": {}}, {"main": {"max_nodes": 2}}, {"main": {"max_nodes": UNLIMITED}, "plain": {"max_nodes": 64}}],
    ids=str,
)
def test_where_a_partition_gives_only_so_many_nodes_nothing_is_said_of_nodes(site, partitions):
    site.partitions = partitions
    assert site.submit() == [line for line in GATED if line not in OPEN]


def test_other_flags_of_slurm_say_nothing_to_us(site):
    _, flags = OPEN
    assert site.submit(bitflags=2**40 + 512 + 255) == [each for each in GATED if each != flags]
    assert site.submit(bitflags=None) == ["set bitflags: 512" if each == flags else each for each in GATED]


def test_a_job_of_several_tasks_and_nothing_else_may_have_any_number_of_nodes_but_prefers_few(site):
    assert site.submit(num_tasks=2)[1:3] == OPEN


@pytest.mark.parametrize(
    "fields",
    [
        {"num_tasks": 1},
        {"num_tasks": None},
        {"num_tasks": 4294967294},
        {"min_nodes": 2, "max_nodes": 2},
        {"ntasks_per_node": 2},
        {"environment": {"SLURM_DISTRIBUTION": "block"}},
    ],
)
def test_a_job_of_one_task_or_with_a_geometry_of_its_own_keeps_its_number_of_nodes(site, fields):
    assert [line.split(":")[0] for line in site.submit(**fields)] == ["set admin_comment", "set begin_time", "answer"]


def test_the_options_of_the_spank_plugin_are_read(site):
    assert site.submit(spank=SPANK)[0] == "set admin_comment: sns:2 alpha=0.9 max-scale=4 exclusive g=NOW+120"


def test_a_distribution_is_seen_in_the_environment(site):
    assert site.submit(environment={"SLURM_DISTRIBUTION": "block"})[0] == "set admin_comment: sns:2 fixed g=NOW+120"


def test_advise_writes_the_record_alone_and_says_so_in_it(site):
    site.render("advise")
    assert site.submit() == ["set admin_comment: sns:2 free=advise", "answer: 0"]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"script": None, "environment": {}}, "not a batch job"),
        ({"partition": "gpu"}, "partition not managed"),
        ({"clusters": "mini"}, "clusters"),  # as sbatch -M and SLURM_CLUSTERS send it
        ({"comment": "sns:off"}, "off"),
        ({"het_job_offset": 0}, "heterogeneous job"),
        ({"shared": 2}, "exclusive or oversubscribe"),
        ({"core_spec": 2}, "specialised cores"),
        ({"cron_job": True}, "cron job"),
        ({"bitflags": 503333120}, "spread job"),  # recorded, too
        ({"bitflags": 2**40 + 256 + 1}, "spread job"),
        ({"priority": 7}, "own priority"),
        ({"admin_comment": "sns:2 free=x"}, "own admin comment"),
        ({"script": "#!/bin/sh\n#SBATCH --deadline=noon\n"}, "deadline"),
        ({"tres_per_task": "cpu=2,gres/gpu=1"}, "gres per task"),
    ],
)
def test_a_job_that_passes_is_not_touched(site, fields, reason):
    assert site.submit(**fields) == [f"debug: sns: passes through: {reason}", "answer: 0"]


def test_a_refusal_speaks_to_the_user_and_changes_nothing(site):
    said, answer = site.submit(comment="sns:program=%s %d %n")
    assert said.startswith("user: sns: --comment sns:program '%s %d %n': a program name is")
    assert answer == "answer: -1"
    assert "128000 MiB" in site.submit(min_mem_per_node=131072)[0]


@pytest.mark.parametrize("beat", [None, "", "soon", "12a", "-5", "1e99", "9" * 40, "100", "0x7fffffff"])
def test_without_a_fresh_heartbeat_everything_passes(site, beat):
    site.heartbeat.unlink()
    if beat is not None:
        site.heartbeat.write_text(beat)
    (said, answer) = site.submit(comment="sns:alpha=2")
    assert said in {"debug: sns: passes through: no heartbeat", "debug: sns: passes through: stale heartbeat"}
    assert answer == "answer: 0"


def test_the_kill_switch_lets_everything_pass_also_when_it_cannot_be_opened(site):
    passed = ["debug: sns: passes through: kill switch", "answer: 0"]
    site.kill_switch.symlink_to(site.kill_switch)  # a loop: it exists, and open fails
    assert site.submit() == passed
    site.kill_switch.unlink()
    assert site.submit() == GATED
    site.kill_switch.touch()
    assert site.submit() == passed


BROKEN = {
    "syntax": "return {",
    "text": "hello",
    "nothing": "",
    "number": "return 1",
    "version": "return {version = 1}",
    "fields": "return {version = 2}",
    "reaches out": "os.exit(3)",
    "reads": "return io.open('/etc/passwd')",
    "size": "return {}" + " " * 1048576,
    "error": "error('boom')",
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_a_broken_table_is_logged_and_the_job_passes(site, text):
    site.table_path.write_text(text)
    said, answer = site.submit(comment="sns:alpha=2")
    assert said.startswith("error: sns: ")
    assert said.endswith("the job passes as it is")
    assert answer == "answer: 0"


def test_a_missing_table_is_logged_and_the_job_passes(site):
    site.table_path.unlink()
    said, answer = site.submit()
    assert "filter.lua: No such file or directory; the job passes as it is" in said
    assert answer == "answer: 0"


def test_compiled_lua_is_not_accepted_as_a_table(site):
    dump = f"io.write(string.dump(loadfile({literal(str(site.table_path))})))"
    compiled = subprocess.run(["lua5.1", "-e", dump], capture_output=True, check=True).stdout
    site.table_path.write_bytes(compiled)
    assert "compiled Lua is not accepted" in site.submit()[0]


def test_without_its_modules_the_script_still_accepts_jobs(site):
    site.modules = site.folder
    said, answer = site.submit()
    assert said.startswith("error: sns: module 'sns_filter' not found")
    assert answer == "answer: 0"


def test_errors_inside_the_filter_are_not_the_users(site):
    said, answer = site.submit(comment=5.5, spank=("_SLURM_SPANK_OPTION_sns_sns_alpha=0.5",), num_tasks="many")
    assert said.startswith("error: sns: ")
    assert answer == "answer: 0"
