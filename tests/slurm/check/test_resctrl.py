"""`sns check --node-reports`: each line of resctrl.yaml that a node does not agree with, and reports that are none."""

import json
from pathlib import Path
from typing import Any

import pytest

from slurm_sns.config import configuration
from slurm_sns.errors import BadInput
from slurm_sns.render.texts import texts
from slurm_sns.slurm.check import Finding, node_reports, resctrl
from slurm_sns.slurm.check.node_reports import NodeReport, NodeReports

CACHE = {"name": "L3", "ways": 20, "least_ways": 2}
ROOT = {"name": "", "kind": "root", "masks": {"0": "fffff", "1": "fffff"}}


def report(node: str = "c1", **fields: Any) -> dict[str, Any]:
    """A node that agrees with every line, but for these fields."""
    shown = {
        "format": 1,
        "node": node,
        "missing": [],
        "mount_options": [],
        "caches": [CACHE],
        "bandwidth": {"unit": "percent"},
        "closids": 16,
        "groups": [ROOT],
    }
    return {**shown, **fields}


def group(name: str, kind: str, **masks: str) -> dict[str, Any]:
    return {"name": name, "kind": kind, "masks": {domain.removeprefix("d"): mask for domain, mask in masks.items()}}


@pytest.fixture
def rendered(tmp_path: Path) -> str:
    path = tmp_path / "sns.yaml"
    path.write_text(
        "partitions: [main]\n"
        "nodes:\n"
        "- {names: 'c[1-2]', partitions: [main], cores: 28, memory_mb: 128000, llc_ways: 20, bandwidth_gbps: 118}\n"
        "- {names: s1, partitions: [main], cores: 4, memory_mb: 4000}\n"
    )
    return texts(configuration.load(path), Path("/etc/slurm/sns.yaml"))["resctrl.yaml"]


def told(rendered: str, *reports: dict[str, Any]) -> list[Finding]:
    """What is not simply right."""
    read = {each["node"]: NodeReport.model_validate_json(json.dumps(each)) for each in reports}
    return [each for each in resctrl.findings(rendered, NodeReports(read)) if not each.is_well]


def test_of_nodes_that_have_what_they_are_to_have_nothing_is_said(rendered: str) -> None:
    assert told(rendered, report("c1"), report("c2")) == []


def test_each_line_that_is_right_is_named_once_for_all_nodes(rendered: str) -> None:
    read = {name: NodeReport.model_validate_json(json.dumps(report(name))) for name in ("c1", "c2")}
    found = [each.what for each in resctrl.findings(rendered, NodeReports(read))]
    assert found == [
        f"nodes c[1-2]: resctrl.yaml, {line}"
        for line in (
            "mount_options",
            "gres: llc",
            "gres: membw",
            "closids",
            "shared_group: ways",
            "job_groups: least_ways",
        )
    ]


@pytest.mark.parametrize(
    ("fields", "line", "found", "wanted"),
    [
        ({"caches": [{**CACHE, "ways": 11}]}, "gres: llc", "11", "20"),
        ({"caches": []}, "gres: llc", "no cache control", "20"),
        ({"caches": [{**CACHE, "least_ways": 3}]}, "shared_group: ways", "masks of at least 3 ways", "2"),
        (
            {"groups": [ROOT, group("sns_shared", "shared", d0="c0000", d1="80000")]},
            "shared_group: ways in force",
            "1",
            "2",
        ),
        (
            {"groups": [group("sns_shared", "shared", d0="c0000"), group("sns_job7", "job", d0="7ffff")]},
            "shared_group: ways are no job's",
            "also in sns_job7",
            "in no group of a job",
        ),
    ],
)
def test_a_line_without_which_no_guarantee_holds_is_wrong(
    rendered: str, fields: dict[str, Any], line: str, found: str, wanted: str
) -> None:
    wrong = [each for each in told(rendered, report("c1", **fields), report("c2")) if not each.ok]
    assert [(each.what, each.found, each.wanted) for each in wrong] == [
        (f"node c1: resctrl.yaml, {line}", found, wanted)
    ]
    assert wrong[0].advice


@pytest.mark.parametrize(
    ("fields", "line", "found"),
    [
        ({"mount_options": ["cdp", "mba_MBps"]}, "mount_options", "cdp,mba_MBps"),
        ({"caches": [{**CACHE, "ways": 24}]}, "gres: llc", "24"),
        ({"bandwidth": None}, "gres: membw", "no bandwidth control"),
        ({"closids": 8}, "closids", "8"),
        (
            {"closids": 12, "groups": [ROOT, group("a", "other"), group("b", "other")]},
            "closids",
            "12, 2 of them in groups of others",
        ),
    ],
)
def test_a_line_that_costs_something_is_a_warning(rendered: str, fields: dict[str, Any], line: str, found: str) -> None:
    (warning,) = told(rendered, report("c1", **fields), report("c2"))
    assert (warning.ok, warning.what, warning.found) == (True, f"node c1: resctrl.yaml, {line}", found)
    assert warning.advice


def test_the_warning_about_closids_says_how_many_jobs_they_are_for(rendered: str) -> None:
    (warning,) = told(rendered, report("c1", closids=8), report("c2", closids=8))
    assert warning.what == "nodes c[1-2]: resctrl.yaml, closids"
    assert warning.wanted == "at least 11"
    assert warning.advice == (
        "at most 6 jobs of a node have ways or bandwidth of their own; the others run unpartitioned; "
        "sns.yaml, nodes: closids: 8, and no more jobs with ways are planned there"
    )


def test_of_closids_that_sns_yaml_gives_nothing_is_said(tmp_path: Path) -> None:
    entry = (
        "{names: c1, partitions: [main], cores: 28, memory_mb: 128000, llc_ways: 20, bandwidth_gbps: 118, closids: 7}"
    )
    (tmp_path / "sns.yaml").write_text(f"partitions: [main]\nnodes: [{entry}]\n")
    limited = texts(configuration.load(tmp_path / "sns.yaml"), Path("/etc/slurm/sns.yaml"))["resctrl.yaml"]
    groups = [ROOT, group("a", "other")]
    assert told(limited, report("c1", closids=8, groups=groups)) == []
    (warning,) = told(limited, report("c1", closids=7, groups=groups))
    assert "closids: 6, and no more jobs" in warning.advice


def test_a_job_without_ways_in_a_domain_has_the_shared_ones_there(rendered: str) -> None:
    groups = [
        group("sns_shared", "shared", d0="c0000", d1="fffff"),
        group("sns_job7", "job", d0="3ffff", d1="fffff"),
        group("sns_job8", "job", d0="c0000", d1="fffff"),
    ]
    assert told(rendered, report("c1", groups=groups), report("c2")) == []


SHARED = group("sns_shared", "shared", d0="c0000", d1="c0000")
JOBS = (group("sns_job7", "job", d0="1ff", d1="1ff"), group("sns_job8", "job", d0="3fe00", d1="3fe00"))


def job(number: int, mask: str, **fields: Any) -> dict[str, Any]:
    return {**group(f"sns_job{number}", "job", d0=mask, d1=mask), **fields}


@pytest.mark.parametrize(
    ("groups", "line", "found"),
    [
        (JOBS, "shared_group: name", "none"),
        ((SHARED, job(7, "3f"), job(8, "3f")), "job_groups: ways are one job's each", "sns_job7, sns_job8"),
        ((SHARED, job(7, "3f"), job(8, "60"), job(9, "3f80")), "job_groups: ways are one job's each", "sns_job8"),
        ((SHARED, *JOBS, group("x", "other", d0="3ffff")), "job_groups: ways are no one else's", "also in x"),
        ((SHARED, JOBS[0], group("x", "other", d0="100")), "job_groups: ways are no one else's", "also in x"),
    ],
    ids=["no shared group", "two jobs on one mask", "a common way", "others on all ways", "others on one way"],
)
def test_groups_that_break_a_guarantee_are_wrong(
    rendered: str, groups: tuple[dict[str, Any], ...], line: str, found: str
) -> None:
    (wrong,) = [each for each in told(rendered, report("c1", groups=[ROOT, *groups]), report("c2")) if not each.ok]
    assert wrong.what == f"node c1: resctrl.yaml, {line}"
    assert found in wrong.found
    assert wrong.advice


@pytest.mark.parametrize(
    ("groups", "line", "found", "wanted"),
    [
        (
            (group("sns_shared", "shared", d0="ffc00", d1="c0000"), job(7, "3ff")),
            "shared_group: ways in force",
            "10",
            "2",
        ),
        ((group("sns_shared", "shared", d0="ffc00"),), "shared_group: ways in force", "10", "2"),
        ((SHARED, job(7, "1"), job(8, "3fffe")), "job_groups: least_ways in force", "1", "at least 2"),
        ((SHARED, *(job(n, "c0000") for n in range(12))), "job_groups: most", "12", "at most 9"),
        (
            (group("x", "other", d0="3ffff"),),
            "job_groups: ways are no one else's",
            "also in x",
            "in no group of others",
        ),
        (
            (SHARED, *JOBS, group("sns_old", "stray", d0="fffff")),
            "names of groups",
            "sns_old",
            "sns_shared, sns_job with a number",
        ),
    ],
    ids=["10 shared ways", "10 without jobs", "a job with 1 way", "12 jobs", "others on the ways for jobs", "a stray"],
)
def test_groups_that_cost_something_are_a_warning(
    rendered: str, groups: tuple[dict[str, Any], ...], line: str, found: str, wanted: str
) -> None:
    (warning,) = told(rendered, report("c1", groups=[ROOT, *groups]), report("c2"))
    assert (warning.ok, warning.what) == (True, f"node c1: resctrl.yaml, {line}")
    assert (warning.found, warning.wanted) == (found, wanted)
    assert warning.advice


def test_jobs_with_more_ways_than_all_jobs_are_to_have_are_told(rendered: str) -> None:
    found = told(rendered, report("c1", groups=[SHARED, job(7, "7ffff")]), report("c2"))
    assert [(each.ok, each.what.partition(", ")[2], each.found) for each in found] == [
        (False, "shared_group: ways are no job's", "also in sns_job7"),
        (True, "job_groups: ways in force", "19"),
    ]


@pytest.mark.parametrize(
    "groups",
    [
        (),
        (SHARED,),
        (group("sns_shared", "shared", d0="fffff", d1="fffff"),),
        (SHARED, *JOBS),
        (SHARED, *JOBS, job(9, "c0000")),
        (SHARED, JOBS[0], job(8, "fffff", tasks=0), job(9, "fffff", tasks=0)),
        (SHARED, *JOBS, group("x", "other", d0="c0000")),
        (group("sns_shared", "shared", d0="ffff"), group("x", "other", d0="f0000")),
    ],
    ids=[
        "nobody enforces",
        "no job yet",
        "all ways are shared while no job has any",
        "two jobs",
        "a job with bandwidth alone",
        "groups that were made a moment ago",
        "others on the shared ways",
        "others have the rest exclusively",
    ],
)
def test_groups_that_are_as_a_layout_makes_them_are_right(rendered: str, groups: tuple[dict[str, Any], ...]) -> None:
    found = told(rendered, report("c1", groups=[ROOT, *groups]), report("c2"))
    assert [each for each in found if "no one else's" not in each.what] == []


@pytest.mark.parametrize(
    ("shared", "jobs", "wrong"),
    [
        ("fc000", ("7f", "3f80"), []),
        ("fc000", ("ff", "fff00"), []),  # jobs may use what nobody owns
        ("c0000", ("3ff", "ffc00"), []),  # the fewest ways that the kernel takes
        ("fffff", ("3ff", "ffc00"), ["shared_group: ways are no job's"]),
        ("c0000", ("3ff", "3ff"), ["job_groups: ways are one job's each"]),
    ],
)
def test_where_no_ways_are_set_aside_the_shared_group_leaves_each_job_some(
    tmp_path: Path, shared: str, jobs: tuple[str, str], wrong: list[str]
) -> None:
    entry = "{names: c1, partitions: [main], cores: 28, memory_mb: 128000, llc_ways: 20}"
    (tmp_path / "sns.yaml").write_text(f"partitions: [main]\nnodes: [{entry}]\nspread_n_share: {{shared_ways: 0}}\n")
    rendered = texts(configuration.load(tmp_path / "sns.yaml"), Path("/etc/slurm/sns.yaml"))["resctrl.yaml"]
    groups = [group("sns_shared", "shared", d0=shared), *(job(7 + place, mask) for place, mask in enumerate(jobs))]
    found = told(rendered, report("c1", groups=groups))
    assert [each.what.partition(", ")[2] for each in found] == wrong
    assert not any(each.ok for each in found)


def test_a_node_without_resctrl_is_wrong_and_says_itself_what_it_lacks(rendered: str) -> None:
    (wrong,) = told(rendered, report("c1", missing=["the kernel was built without it"], caches=[]), report("c2"))
    assert (wrong.ok, wrong.what) == (False, "node c1: resctrl is mounted")
    assert wrong.found == "the kernel was built without it"


def test_nodes_whose_resources_are_not_managed_are_not_compared(rendered: str) -> None:
    assert told(rendered, report("c1"), report("c2"), report("s1", missing=["all"], caches=[], closids=0)) == []


def test_nodes_that_did_not_report_and_reports_of_other_nodes_are_named(rendered: str) -> None:
    other, missing = told(rendered, report("c1"), report("login"))
    assert (other.what, other.found) == ("node login: in no node type of resctrl.yaml", "a report")
    assert (missing.what, missing.found) == ("node c2: not compared with resctrl.yaml", "no report")
    assert other.ok
    assert missing.ok


class TestFiles:
    def write(self, path: Path, content: object) -> Path:
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    def test_a_directory_has_a_file_for_each_node(self, tmp_path: Path) -> None:
        for name in ("c1", "c2"):
            self.write(tmp_path / name, report(name))
        self.write(tmp_path / ".hidden", "")
        found = node_reports.read([tmp_path])
        assert (list(found.reports), found.unreadable) == (["c1", "c2"], ())

    def test_fields_of_a_later_version_do_not_matter(self, tmp_path: Path) -> None:
        found = node_reports.read([self.write(tmp_path / "c1", report(new={"a": [1]}))])
        assert found.reports["c1"].closids == 16

    @pytest.mark.parametrize(
        "content",
        [
            "",
            "c1: ssh: connect to host c1 port 22: No route to host\n",
            "[" * 100_000,
            "{}",
            "null",
            report(format=2),
            report(node="c1\n[bold]"),
            report(node="../../etc"),
            report(closids=-1),
            report(closids="16"),
            report(caches=[{**CACHE, "ways": True}]),
            report(groups=[group("g", "owner")]),
            report(groups=[group("g", "job", d0="0x7")]),
            report(groups=[group("g", "job", d0="f" * 17)]),
            report(groups=[group("g" * 600, "other")]),
            report(missing=["x"] * 9),
            '{"format": 1, "node": "\\ud800"}',
            " " * (node_reports.LONGEST_REPORT + 1),
        ],
    )
    def test_a_file_that_is_no_report_is_one_wrong_line_and_the_others_count(
        self, rendered: str, tmp_path: Path, content: object
    ) -> None:
        bad = self.write(tmp_path / "bad", content)
        found = node_reports.read([bad, self.write(tmp_path / "c2", report("c2"))])
        assert list(found.reports) == ["c2"]
        (line,) = found.unreadable
        assert line.startswith(str(bad))
        assert line.isprintable()
        assert len(line) < 500
        wrong = [each for each in resctrl.findings(rendered, found) if not each.ok]
        assert [each.found for each in wrong] == [line]

    def test_a_second_report_of_a_node_is_refused(self, tmp_path: Path) -> None:
        first, second = self.write(tmp_path / "a", report("c1")), self.write(tmp_path / "b", report("c1", closids=4))
        found = node_reports.read([first, second])
        assert found.reports["c1"].closids == 16
        assert found.unreadable == (f"{second} is a second report of node c1; valid: one of each node",)

    def test_a_path_that_is_not_there_is_the_callers_mistake(self, tmp_path: Path) -> None:
        with pytest.raises(BadInput, match="No such file or directory; valid: a file or a directory of files"):
            node_reports.read([tmp_path / "none"])
        (tmp_path / "empty").mkdir()
        with pytest.raises(BadInput, match="has no files; valid: one for each node"):
            node_reports.read([tmp_path / "empty"])
