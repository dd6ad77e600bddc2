"""The rendered texts: golden files, byte-stability, and what of the site's own settings they keep."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from slurm_sns.config.configuration import Config, load
from slurm_sns.errors import BadInput
from slurm_sns.render.texts import MARK, scheduler_parameters, texts
from slurm_sns.submit.table import lua_text

SOURCE = Path("/etc/slurm/sns.yaml")
GOLDEN = Path(__file__).parents[1] / "data" / "rendered"
ACCEPT = f"""
The rendered text is not the one in {GOLDEN}. If the new text is right, accept it and read the change in the commit:
    sns render {GOLDEN} --config {GOLDEN / "sns.yaml"}
    rm {GOLDEN / "filter.lua"} {GOLDEN / "hook.py"}
    cd {GOLDEN}; sed -i 's|{GOLDEN / "sns.yaml"}|{SOURCE}|' *.conf *.service resctrl.yaml prolog epilog"""

NODES = "nodes: [{names: c1, partitions: [main], cores: 4, memory_mb: 4000%s}]\n"


def configured(tmp_path: Path, more: str = "", node: str = "") -> Config:
    path = tmp_path / "sns.yaml"
    path.write_text("partitions: [main]\n" + NODES % node + more)
    return load(path)


def options(text: str) -> dict[str, str]:
    """The options of a slurm.conf, without comments."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


class TestGoldenFiles:
    @pytest.mark.parametrize("name", sorted(path.name for path in GOLDEN.iterdir() if path.name != "sns.yaml"))
    def test_the_text_is_the_accepted_one(self, name: str) -> None:
        rendered = texts(load(GOLDEN / "sns.yaml"), SOURCE)
        assert rendered[name] == (GOLDEN / name).read_text(encoding="utf-8"), ACCEPT

    def test_each_file_has_one(self) -> None:
        rendered = texts(load(GOLDEN / "sns.yaml"), SOURCE)
        accepted = {path.name for path in GOLDEN.iterdir()} - {"sns.yaml"}
        assert set(rendered) == accepted | {"filter.lua", "hook.py"}, ACCEPT


class TestEveryText:
    def test_the_same_configuration_gives_the_same_bytes(self, tmp_path: Path) -> None:
        assert texts(configured(tmp_path), SOURCE) == texts(configured(tmp_path), SOURCE)

    def test_the_order_of_accounts_and_settings_does_not_matter(self, tmp_path: Path) -> None:
        one = configured(tmp_path, "matching: {shares: {a: 1, b: 2}}\nmode: advise\n")
        other = configured(tmp_path, "mode: advise\nmatching: {shares: {b: 2, a: 1}}\n")
        assert texts(one, SOURCE) == texts(other, SOURCE)

    def test_the_first_line_says_where_it_comes_from(self, tmp_path: Path) -> None:
        for text in texts(configured(tmp_path), SOURCE).values():
            assert text.partition("\n")[0].endswith(f"Generated from {SOURCE} {MARK}.")

    def test_it_ends_with_one_line_break(self, tmp_path: Path) -> None:
        for text in texts(configured(tmp_path), SOURCE).values():
            assert text.endswith("\n")
            assert not text.endswith("\n\n")

    @pytest.mark.parametrize("path", ["/etc/a b.yaml", "/etc/a\n[Service]", "/etc/%h.yaml", "sns.yaml", "/a/../b"])
    def test_a_configuration_of_an_odd_name_is_refused(self, tmp_path: Path, path: str) -> None:
        with pytest.raises(BadInput, match="its path goes into the files; valid: an absolute path"):
            texts(configured(tmp_path), Path(path))


class TestSlurmConf:
    def test_what_a_partition_needs_whose_jobs_share_cores_is_named(self, tmp_path: Path) -> None:
        assert "FORCE" not in texts(configured(tmp_path), SOURCE)["slurm.conf"]
        path = tmp_path / "sns.yaml"
        path.write_text(
            "partitions: [main, shared]\nagents: {controller: head}\n"
            "nodes: [{names: c1, partitions: [main], cores: 4, memory_mb: 4000},"
            " {names: 'f[1-8]', partitions: [shared], cores: 4, memory_mb: 4000}]\n"
            "sharing: {partitions: [shared], most_to_a_core: 3}\n"
        )
        text = texts(load(path), SOURCE)["slurm.conf"]
        assert "#     PartitionName=shared OverSubscribe=FORCE:3 PreemptMode=OFF\n" in text
        assert "#     NodeName=f[1-8] CpuBind=none\n" in text
        assert "#     ConstrainCores=no\n" in text
        assert "NodeName=c1" not in text
        assert "OverSubscribe" not in options(text)

    def test_the_sites_own_options_stay_and_come_first(self, tmp_path: Path) -> None:
        site = """\
slurm:
  job_submit_plugins: [require_timelimit]
  gres_types: [gpu]
  accounting_tres: [gres/gpu, license/x]
  priority_flags: [MAX_TRES]
  scheduler_parameters: [bf_continue, bf_interval=60]
"""
        config = configured(tmp_path, site, ", llc_ways: 20, bandwidth_gbps: 118")
        found = options(texts(config, SOURCE)["slurm.conf"])
        assert found.pop("SchedulerParameters").startswith("bf_continue,bf_interval=60,disable_job_shrink,")
        assert found == {
            "JobSubmitPlugins": "require_timelimit,lua",
            "GresTypes": "gpu,llc,membw",
            "AccountingStorageTRES": "gres/gpu,license/x,gres/llc,gres/membw",
            "PriorityFlags": "MAX_TRES,ACCRUE_ALWAYS",
        }

    def test_an_option_that_the_site_sets_is_not_set_again(self, tmp_path: Path) -> None:
        config = configured(tmp_path, "slurm: {scheduler_parameters: [sched_interval=30, disable_job_shrink]}\n")
        text = texts(config, SOURCE)["slurm.conf"]
        words = options(text)["SchedulerParameters"].split(",")
        names = [word.partition("=")[0] for word in words]
        assert sorted(names) == sorted({option.partition("=")[0] for option, _ in scheduler_parameters(config)})
        assert "sched_interval=30" in words
        assert "sched_interval=3:" not in text

    @pytest.mark.parametrize(("ours", "slurms"), [(50, 100), (700, 700), (5000, 1000)])
    def test_slurm_reaches_what_a_cycle_places(self, tmp_path: Path, ours: int, slurms: int) -> None:
        config = configured(tmp_path, f"matching: {{queue_depth: {ours}}}\n")
        words = options(texts(config, SOURCE)["slurm.conf"])["SchedulerParameters"].split(",")
        assert f"default_queue_depth={slurms}" in words

    def test_what_the_site_lists_already_is_listed_once(self, tmp_path: Path) -> None:
        config = configured(tmp_path, "slurm: {job_submit_plugins: [lua, pbs], priority_flags: [ACCRUE_ALWAYS]}\n")
        found = options(texts(config, SOURCE)["slurm.conf"])
        assert found["JobSubmitPlugins"] == "lua,pbs"
        assert found["PriorityFlags"] == "ACCRUE_ALWAYS"

    def test_nodes_without_ways_and_bandwidth_need_no_gres(self, tmp_path: Path) -> None:
        rendered = texts(configured(tmp_path), SOURCE)
        assert not {"GresTypes", "AccountingStorageTRES"} & set(options(rendered["slurm.conf"]))
        assert "Gres=" not in rendered["slurm.conf"]
        assert options(rendered["gres.conf"]) == {}

    def test_where_no_slurmdbd_runs_no_gres_is_recorded(self, tmp_path: Path) -> None:
        config = configured(tmp_path, "slurm: {accounting_tres: null}\n", ", llc_ways: 20")
        assert set(options(texts(config, SOURCE)["slurm.conf"])) >= {"GresTypes", "SchedulerParameters"}
        assert "AccountingStorageTRES" not in options(texts(config, SOURCE)["slurm.conf"])

    def test_ways_alone_are_a_gres_of_their_own(self, tmp_path: Path) -> None:
        rendered = texts(configured(tmp_path, node=", llc_ways: 11"), SOURCE)
        assert options(rendered["slurm.conf"])["GresTypes"] == "llc"
        assert "NodeName=c1 Name=llc Count=11 Flags=CountOnly,explicit\n" in rendered["gres.conf"]
        assert "membw" not in rendered["gres.conf"]


class TestFilterTable:
    def test_lua_reads_what_the_configuration_says(self, tmp_path: Path) -> None:
        more = "submit: {tells_users: true}\nscheduler: {heartbeat_timeout_s: 50}\nslurm: {memory_per_cpu_mb: 4500}\n"
        config = configured(tmp_path, "mode: advise\ndefault_partition: other\n" + more)
        path = tmp_path / "filter.lua"
        path.write_text(texts(config, SOURCE)["filter.lua"])
        asked = "t.mode, t.default_partition, t.default_memory_per_cpu_mb, t.partitions.main[1].memory_mb"
        paths = "t.heartbeat_path, t.kill_switch_path"
        script = f"t = dofile(arg[1]); print({asked}, {paths}, t.first_lease_s, t.tells_users)"
        said = subprocess.run(
            ["lua5.1", "-", path], input=script, capture_output=True, text=True, check=True
        ).stdout.split()
        files = ["/run/sns/heartbeat", "/var/lib/sns/disabled"]
        assert said == ["advise", "other", "4500", "4000", *files, "100", "true"]

    def test_it_is_the_tables_own_text_below_our_line(self, tmp_path: Path) -> None:
        config = configured(tmp_path)
        below = texts(config, SOURCE)["filter.lua"].partition("\n")[2]
        assert below == lua_text(config.filter_table(str(SOURCE)))


class TestUnits:
    @pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd on this machine")
    def test_systemd_finds_nothing_wrong(self, tmp_path: Path) -> None:
        units = []
        for name, text in texts(configured(tmp_path, "agents: {controller: ctl}\n"), SOURCE).items():
            if name.endswith(".service"):
                units.append(tmp_path / name)
                units[-1].write_text(text.replace("\nExecStart=sns ", "\nExecStart=true "))  # sns is not installed here
        done = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True, text=True, check=False)
        assert (len(units), done.returncode, done.stdout + done.stderr) == (5, 0, "")

    def test_systemd_makes_the_directories_under_its_own_roots(self, tmp_path: Path) -> None:
        unit = texts(configured(tmp_path, "paths: {run_dir: /run/a/b, state_dir: /var/lib/c}\n"), SOURCE)
        for name in ("sns-scheduler.service", "sns-watchdog.service"):
            assert "\nRuntimeDirectory=a/b\n" in unit[name]
            assert "\nStateDirectory=c\n" in unit[name]
            assert "ReadWritePaths" not in unit[name]

    def test_other_directories_are_made_writable(self, tmp_path: Path) -> None:
        unit = texts(configured(tmp_path, "paths: {state_dir: /srv/sns, run_dir: /srv/run}\n"), SOURCE)
        assert re.findall(r"^ReadWritePaths=(.*)$", unit["sns-scheduler.service"], re.MULTILINE) == [
            "/srv/run",
            "/srv/sns",
        ]
        assert "RuntimeDirectory" not in unit["sns-scheduler.service"]
        assert "StateDirectory" not in unit["sns-scheduler.service"]

    def test_the_exporter_has_no_right_of_slurms_user_and_asks_the_configured_socket(self, tmp_path: Path) -> None:
        unit = texts(configured(tmp_path, "paths: {run_dir: /run/a}\n"), SOURCE)["sns-exporter.service"]
        assert "\nExecStart=sns exporter --socket /run/a/scheduler.sock\n" in unit
        assert "\nDynamicUser=yes\n" in unit
        assert "\nUser=" not in unit

    def test_the_daemons_run_as_slurms_user_with_this_configuration(self, tmp_path: Path) -> None:
        unit = texts(configured(tmp_path, "slurm: {user: slurmadm}\npaths: {sns_command: /opt/sns/bin/sns}\n"), SOURCE)
        for name in ("scheduler", "watchdog", "web"):
            text = unit[f"sns-{name}.service"]
            assert f"\nExecStart=/opt/sns/bin/sns {name} --config {SOURCE}\n" in text
            assert "\nUser=slurmadm\n" in text
