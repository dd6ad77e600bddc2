"""The agent on an emulated node: grants, spare ways, sampling, restarts, and whatever can go wrong."""

import errno
import json
from functools import cache
from pathlib import Path

import pytest
from emulated_node import KEYS, NODE, Jobs, Node
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slurm_sns.config.profiles_yaml import read_profiles
from slurm_sns.node.agent.runs_here import NOT_NAMED
from slurm_sns.node.agent.spool import SpoolFiles
from slurm_sns.node.group_writes import SHARED
from slurm_sns.node.resctrl.groups import Groups
from slurm_sns.package_files import shared_path
from slurm_sns.policies.profile import Run
from slurm_sns.task_ids import task_id
from slurm_sns.wire import grants
from slurm_sns.wire.keys import Keys
from slurm_sns.wire.values import Acknowledged, ActiveRuns, ArrayTask, Change, Grant, RunId


@cache
def paper_run(name: str) -> Run:
    """What the emulated program of this name is, on one node with 16 processes."""
    programs = {each.name: each for each in read_profiles(shared_path("conf/profiles/spread-n-share.yaml"))}
    return programs[name].at(16)[1]


class FullDisk(SpoolFiles):
    """The disk of the spool, which may be full."""

    is_full = False

    def write(self, path: Path, data: bytes) -> None:
        if self.is_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        super().write(path, data)


def refuse(node: Node, path: str, access: str, number: str) -> None:
    """The kernel will refuse the next access of this kind."""
    fault = {"path": path, "access": access, "errno": number, "status": ""}
    (node.root / ".emulator/faults").write_text(json.dumps(fault))


def test_the_only_job_has_all_ways_and_gives_them_back_for_a_second_one(node: Node) -> None:
    first = node.run(1, 4)
    assert node.ways(1) == 18
    assert node.group_with(first) == "job1"
    node.prolog(2, 12)
    assert (node.ways(1), node.ways(2)) == (5, 13), "both have their guarantee before the second one begins"
    assert node.there()[2].ways == 13
    assert node.agent.status.startswith("partition; 2 jobs"), "what systemctl status shows"
    second = node.jobs.start(2)
    node.passes(1.0)
    assert node.group_with(second) == "job2"
    node.ends(2)
    assert node.ways(1) == 18
    node.ends(1)
    assert node.masks().keys() == {SHARED}


def test_the_controller_is_told_on_which_domains_the_cores_of_each_job_lie(node: Node) -> None:
    node.cores = lambda cpus, _: {0: 14, 1: 14} if cpus is None else {1: len(cpus)}
    node.cpus[1] = (14, 15)
    node.restart()
    node.run(1, 4)
    node.run(2, 4)
    assert node.controller.states[-1].facts.cores == (14, 14)
    assert node.there()[1].cores == (0, 2)
    assert node.there()[2].cores == (), "nothing limits it to any CPUs"


class TestMeasuring:
    #: Of CG, the paper's program that needs its cache most.
    PROGRAM = "cg"

    @pytest.mark.long
    def test_a_sampled_curve_is_the_emulated_truth_within_5_percent(self, node: Node) -> None:
        truth = paper_run(self.PROGRAM)
        node.run(1, 18, has_nodes_alone=True, samples=True)
        node.program(1, self.PROGRAM)
        node.passes(4 * 5.0 * 4, step_s=0.5)
        assert node.there()[1].is_sampled
        node.ends(1)
        [report] = node.controller.reports
        assert (report.was_sampled, report.was_alone, report.is_whole) == (True, True, True)
        assert [point.ways for point in report.points] == [2, 4, 8, 18]
        for point in report.points:
            assert point.ipc == pytest.approx(truth.ipc_at(point.ways), rel=0.05)
            assert point.bandwidth_gbps == pytest.approx(truth.bandwidth_at(point.ways), rel=0.05)
            assert point.seconds >= 10, "four turns of 5 s, without the first and the last interval of all"

    def test_of_a_program_that_only_the_first_and_the_last_interval_saw_the_ipc_is_known_and_no_bandwidth(
        self, node: Node
    ) -> None:
        truth = paper_run(self.PROGRAM)
        node.run(1, 18, has_nodes_alone=True, samples=True)
        node.passes(1.5, step_s=0.5)
        node.program(1, self.PROGRAM, work_s=2.0)
        node.passes(7.0, step_s=0.5)
        node.ends(1)
        [report] = node.controller.reports
        assert 1 <= len(report.points) <= 2
        for point in report.points:
            assert point.ipc == pytest.approx(truth.ipc_at(point.ways), rel=0.05)
            assert point.bandwidth_gbps is None, "in a part of the interval the program did not run"

    def test_a_timed_run_keeps_its_ways_and_its_time_is_that_between_prolog_and_epilog(self, node: Node) -> None:
        node.run(1, 20, has_nodes_alone=True)
        node.program(1, self.PROGRAM)
        assert node.ways(1) == 18, "a grant of the whole cache is all that jobs can have"
        node.passes(33.0)
        node.ends(1)
        [report] = node.controller.reports
        assert report.ran_s == pytest.approx(34.0)
        assert (report.was_sampled, report.was_alone, report.is_whole) == (False, True, True)
        [point] = report.points
        assert point.ways == 18
        assert point.ipc == pytest.approx(paper_run(self.PROGRAM).ipc_at(18), rel=0.05)

    def test_a_neighbour_ends_the_sampling_and_both_have_their_guarantee(self, node: Node) -> None:
        node.run(1, 10, samples=True)
        node.run(2, 4)
        assert not node.there()[1].is_sampled
        assert (node.ways(1) >= 10, node.ways(2) >= 4) == (True, True)
        node.passes(12)
        assert node.ways(1) >= 10
        node.ends(1)
        assert [report.was_alone for report in node.controller.reports] == [False]

    def test_what_a_job_did_alone_and_beside_a_neighbour_is_told_apart_also_after_a_restart(self, node: Node) -> None:
        node.run(1, 4)
        node.program(1, self.PROGRAM)
        node.passes(35)
        node.restart()
        node.run(2, 8)
        node.passes(35)
        node.ends(1)
        beside, alone = node.controller.reports[0].points
        assert (alone.ways, alone.alone_s) == (18, alone.seconds), "all the time with these ways"
        assert alone.alone_ipc == pytest.approx(alone.ipc)
        assert (beside.alone_s, beside.alone_ipc) == (0, None)
        assert beside.ipc == pytest.approx(paper_run(self.PROGRAM).ipc_at(beside.ways), rel=0.05)

    @pytest.mark.long
    def test_a_job_of_the_shared_group_is_counted_apart(self, node: Node) -> None:
        node.run(1, 4)
        node.program(1, "mg")
        node.run(2)
        node.program(2, "ep")
        node.run(3)
        node.passes(40)
        for job in (1, 2, 3):
            node.ends(job)
        points = {report.run.job_id: report.points for report in node.controller.reports}
        assert [point.ways for point in points[2]] == [0]
        assert points[2][0].bandwidth_gbps < 1 < points[1][0].bandwidth_gbps
        assert points[3] == (), "nothing was executed"

    @pytest.mark.long
    def test_a_suspended_job_is_not_measured_meanwhile(self, node: Node) -> None:
        node.run(1, 18, has_nodes_alone=True)
        node.passes(100)
        node.program(1, self.PROGRAM)
        node.passes(20)
        node.ends(1)
        [report] = node.controller.reports
        [point] = report.points
        assert point.seconds <= 21
        assert point.ipc == pytest.approx(paper_run(self.PROGRAM).ipc_at(18), rel=0.05)


class TestGrants:
    def test_a_job_without_a_grant_runs_in_the_shared_group_and_nobody_says_why(self, node: Node) -> None:
        node.plain_prolog(1)
        task = node.jobs.start(1)
        node.passes(1)
        assert (node.group_with(task), node.there()[1].why_shared) == (SHARED, "")

    FORGED = (
        ("of another job", RunId(2), (NODE,), KEYS, "another job"),
        ("of another restart", RunId(1, 1), (NODE,), KEYS, "another restart"),
        ("of another node", RunId(1), ("c2",), KEYS, "other nodes"),
        ("of more nodes", RunId(1), (NODE, "c2"), KEYS, "other nodes"),
        ("signed with another key", RunId(1), (NODE,), Keys.parse(f"first {'cd' * 32}\n"), "does not verify"),
        ("signed with an unknown key", RunId(1), (NODE,), Keys.parse(f"other {'ab' * 32}\n"), "the key other"),
    )

    @pytest.mark.parametrize(("run", "nodes", "keys", "why"), [each[1:] for each in FORGED], ids=[x[0] for x in FORGED])
    def test_one_that_is_forged_stale_or_replayed_counts_as_none_and_that_is_said(
        self, node: Node, run: RunId, nodes: tuple[str, ...], keys: Keys, why: str
    ) -> None:
        node.event("prolog", 1, 0, f"sns:grant={grants.token(Grant(run, nodes, 8), keys)}")
        node.jobs.start(1)
        node.passes(1)
        assert node.ways(1) == 0
        assert why in node.there()[1].why_shared
        assert any("job 1: its grant does not count" in line for line in node.said)

    def test_the_grant_of_an_arrays_task_counts_once_the_controller_says_that_the_job_is_this_task(
        self, node: Node
    ) -> None:
        grant = Grant(RunId(task_id(41, 7)), (NODE,), 6)
        for job_id in (48, 49):  # the owner has copied it to another job of his
            node.event("prolog", job_id, 0, f"notes;sns:grant={grants.token(grant, KEYS)}")
            node.jobs.start(job_id)
        node.passes(1)
        node.restart()
        assert (node.ways(48), node.ways(49)) == (0, 0)
        assert (node.there()[48].why_shared, node.there()[48].awaits_task) == (NOT_NAMED, True)
        runs = frozenset({RunId(48), RunId(49)})
        node.told(ActiveRuns(runs, frozenset({ArrayTask(48, 41, 7), ArrayTask(49, 41, 8)})))
        assert (node.ways(48) >= 6, node.ways(49)) == (True, 0)
        assert not any(there.awaits_task for there in node.there().values())
        assert node.group_with(node.jobs.task(48)) == "job48"
        assert "of another job: 41_7, not 41_8" in node.there()[49].why_shared

    def test_where_the_controller_has_named_the_task_before_its_prolog_comes_the_grant_counts_at_once(
        self, node: Node
    ) -> None:
        node.told(ActiveRuns(frozenset({RunId(48)}), frozenset({ArrayTask(48, 41, 7)})))
        node.event("prolog", 48, 0, f"sns:grant={grants.token(Grant(RunId(task_id(41, 7)), (NODE,), 6), KEYS)}")
        assert node.ways(48) >= 6

    @pytest.mark.long
    @given(st.text(max_size=300))
    @settings(
        max_examples=15,
        suppress_health_check=[*settings.default.suppress_health_check, HealthCheck.function_scoped_fixture],
    )
    def test_whatever_stands_in_a_jobs_extra_stops_nobody(self, node: Node, extra: str) -> None:
        node.event("prolog", 7, 0, extra, nodes=extra)
        node.event("epilog", 7, 0, extra)
        node.event("prolog", 8, 0, f"sns:grant={extra}", nodes=f"c1,{extra}")
        node.event("epilog", 8)
        assert not [line for line in node.said if "defect" in line]
        assert node.there() == {}

    def test_a_change_of_the_controller_is_in_force_at_once_and_an_older_one_is_not(self, node: Node) -> None:
        node.run(1, 4)
        node.run(2, 4)
        node.told(Change(RunId(1), 2, ways=12))
        assert node.ways(1) >= 12
        node.told(Change(RunId(1), 1, ways=4), Change(RunId(1, 1), 3, ways=2), Change(RunId(9), 1, ways=2))
        assert node.ways(1) >= 12

    def test_a_change_that_is_there_before_the_prolog_counts(self, node: Node) -> None:
        node.told(Change(RunId(1, 1), 1, ways=6))
        node.plain_prolog(2)
        node.prolog(1, 3, restarts=1)
        node.prolog(3, 1)
        assert node.ways(1) >= 6
        assert node.agent.state().jobs[1].run == RunId(1, 1)

    def test_a_job_beyond_the_ways_of_the_node_runs_unpartitioned_and_says_why(self, node: Node) -> None:
        node.run(1, 12)
        task = node.run(2, 8)
        assert node.group_with(task) == SHARED
        assert "6 of the 18 for jobs are free" in node.there()[2].why_shared


class TestEvents:
    def test_a_second_prolog_and_a_second_epilog_change_nothing(self, node: Node) -> None:
        node.run(1, 4)
        node.passes(20)
        node.prolog(1, 9)
        node.prolog(1, 4)
        assert node.there()[1].ways == 18
        node.ends(1)
        node.epilog(1)
        assert [report.ran_s for report in node.controller.reports] == [pytest.approx(21.0)]

    def test_a_newer_restart_takes_the_place_of_the_older_one_whose_epilog_never_came(self, node: Node) -> None:
        node.run(1, 4)
        node.prolog(1, 6, restarts=1)
        assert node.there()[1].run == RunId(1, 1)
        node.epilog(1)
        assert 1 in node.there(), "an epilog of the older one is late"
        node.epilog(1, restarts=1)
        assert [(report.run.restarts, report.is_whole) for report in node.controller.reports] == [(0, False), (1, True)]

    def test_a_job_whose_epilog_is_never_called_has_gone_after_a_while(self, node: Node) -> None:
        node.run(1, 4)
        node.jobs.end(1)
        node.passes(50)
        assert 1 in node.there()
        node.passes(30)
        assert (node.there(), node.masks().keys()) == ({}, {SHARED})
        assert [report.is_whole for report in node.controller.reports] == [False]

    def test_a_job_that_the_controller_calls_active_has_not_gone(self, node: Node) -> None:
        node.prolog(1, 4)
        node.told(ActiveRuns(frozenset({RunId(1)})))
        node.passes(200)
        assert 1 in node.there()
        node.told(ActiveRuns())
        node.passes(30)
        assert node.there() == {}

    def test_a_job_that_ends_during_its_setup_leaves_nothing(self, node: Node) -> None:
        node.prolog(1, 4)
        node.epilog(1)
        node.prolog(2, 4)
        node.jobs.start(2)
        node.ends(2)
        assert (node.there(), node.masks().keys()) == ({}, {SHARED})
        assert [report.points for report in node.controller.reports] == [(), ()]

    def test_a_job_without_a_prolog_is_seen_and_makes_nobody_else_alone(self, node: Node) -> None:
        node.run(1, 4)
        node.jobs.start(2)
        node.passes(20)
        assert node.there()[2].why_shared == "its prolog did not reach the agent"
        node.ends(1)
        node.ends(2)
        assert [(each.was_alone, each.is_whole) for each in node.controller.reports] == [(False, True), (False, False)]

    def test_a_prolog_that_comes_after_its_job_has_begun_still_brings_the_grant(self, node: Node) -> None:
        task = node.jobs.start(1)
        node.passes(20)
        node.prolog(1, 4)
        node.passes(20)
        assert node.group_with(task) == "job1"
        assert not node.agent.state().jobs[0].why_shared

    def test_steps_that_start_late_join_the_group_too(self, node: Node) -> None:
        node.run(1, 4)
        late = node.jobs.another_step(1)
        node.passes(11)
        assert node.group_with(late) == "job1"


class TestRestart:
    @pytest.mark.long
    def test_an_agent_that_was_killed_goes_on_where_it_was(self, node: Node) -> None:
        first = node.run(1, 4)
        node.run(2, 6)
        node.program(1, "cg")
        node.passes(30)
        before = node.masks()
        node.restart()
        assert node.masks() == before
        assert node.group_with(first) == "job1"
        node.passes(30)
        node.ends(1)
        [report] = node.controller.reports
        assert (report.is_whole, report.ran_s) == (True, pytest.approx(62.0))
        measured_s = sum(point.seconds for point in report.points)
        assert measured_s >= 40, "what was measured before is not lost, but for the first and the last interval"

    def test_a_job_that_was_alone_may_not_have_been_while_no_agent_was_there(self, node: Node) -> None:
        node.run(1, 4)
        node.restart()
        node.ends(1)
        node.run(2, 18, has_nodes_alone=True)
        node.restart()
        node.ends(2)
        alone = {report.run.job_id: report.was_alone for report in node.controller.reports}
        assert alone == {1: False, 2: True}

    @pytest.mark.long
    def test_jobs_that_began_and_ended_meanwhile_are_found_and_missed(self, node: Node) -> None:
        node.run(1, 4)
        node.run(2, 4)
        node.jobs.end(1)
        node.jobs.start(3)
        node.restart()
        node.passes(70)
        assert node.there().keys() == {2, 3}
        assert set(node.masks()) == {SHARED, "job2"}

    def test_a_group_that_was_made_and_never_written_is_no_claim_to_all_ways(self, node: Node) -> None:
        (node.root / "sns_job1").mkdir()
        node.jobs.start(1)
        node.restart()
        [there] = node.agent.state().jobs
        assert (there.ways, there.is_found) == (0, True)
        node.told(Change(RunId(1), 1, 4))
        assert node.ways(1) == 18, "its own 4 and the spare ones"
        assert not node.there()[1].is_found

    def test_after_a_boot_the_runs_of_before_are_reported_as_cut_short(self, node: Node) -> None:
        node.run(1, 4)
        node.program(1, "cg")
        node.passes(30)
        node.jobs.end(1)
        node.boot = "second boot"
        node.restart()
        assert node.there() == {}
        [report] = node.controller.reports
        assert (report.is_whole, report.run) == (False, RunId(1))
        assert report.points

    BROKEN = ("", "{}", "[]", '{"version": 99}', "\0", '{"version": 1, "runs": [{}]}', "1" * 9999)

    @pytest.mark.long
    @pytest.mark.parametrize("text", BROKEN)
    def test_a_broken_state_file_is_one_line_and_what_the_tree_shows_stays(self, node: Node, text: str) -> None:
        node.run(1, 4)
        node.run(2, 6)
        before = node.masks()
        (node.state / "jobs.json").write_text(text)
        node.said.clear()
        node.restart()
        assert node.masks() == before
        assert len([line for line in node.said if "jobs.json" in line]) == 1
        assert (node.there()[1].ways > 4, node.there()[1].why_shared) == (True, "")
        node.ends(1)
        assert node.ways(2) == 18

    def test_nothing_of_the_disk_is_needed(self, node: Node) -> None:
        node.run(1, 4)
        (node.state / "jobs.json").unlink()
        (node.state / "jobs.json").mkdir()
        node.run(2, 6)
        assert (node.ways(1) >= 4, node.ways(2) >= 6) == (True, True)
        node.passes(30)
        assert "jobs.json cannot be written" in node.agent.state().trouble
        assert len([line for line in node.said if "jobs.json cannot be written" in line]) == 1
        (node.state / "jobs.json").rmdir()
        node.passes(10)
        assert node.agent.state().trouble == ""


class TestTree:
    JOBS = ((1, 4), (2, 6))

    @pytest.mark.long
    @pytest.mark.parametrize("number", ["ENOSPC", "EBUSY", "EINVAL", "EPERM", "EIO"])
    @pytest.mark.parametrize("access", ["make", "write"])
    def test_what_is_refused_is_said_and_tried_again(self, node: Node, access: str, number: str) -> None:
        node.run(1, 4)
        path = "sns_job2" if access == "make" else "sns_job2/schemata"
        refuse(node, path, access, number)
        node.run(2, 6)
        node.passes(70)
        assert (node.ways(1) >= 4, node.ways(2) >= 6) == (True, True)
        assert node.group_with(node.jobs.task(2)) == "job2"
        assert (node.agent.state().trouble, node.there()[2].why_shared) == ("", "")

    def test_a_group_for_which_the_kernel_had_no_room_is_tried_again_soon(self, node: Node) -> None:
        refuse(node, "sns_job1", "make", "ENOSPC")
        node.prolog(1, 4)
        assert node.there()[1].why_shared
        node.passes(2)
        assert node.ways(1) >= 4
        assert node.there()[1].why_shared == ""

    @pytest.mark.long
    def test_out_of_closids_a_job_runs_unpartitioned_and_says_so(self, node: Node) -> None:
        for job in range(1, 16):
            node.prolog(job, 1)
        there = node.there()
        assert [job for job in there if there[job].why_shared] == [15]
        assert "all 14 CLOSIDs for jobs are taken" in there[15].why_shared
        for job in range(1, 15):
            node.epilog(job)
        assert node.there()[15].ways == 18

    @pytest.mark.long
    def test_a_group_that_somebody_removed_is_made_again(self, node: Node) -> None:
        task = node.run(1, 4)
        node.run(2, 6)
        node.program(2, "cg")
        node.passes(20)
        for name in ("sns_job1", "sns_job2", f"sns_{SHARED}"):
            (node.root / name).rmdir()
        node.passes(20)
        assert (node.ways(1) >= 4, node.ways(2) >= 6, node.group_with(task)) == (True, True, "job1")
        node.passes(30)
        node.ends(2)
        assert all(point.bandwidth_gbps is not None for point in node.controller.reports[-1].points)

    def test_groups_of_jobs_that_nobody_knows_are_removed_and_those_of_others_stay(self, node: Node) -> None:
        (node.root / "sns_job99").mkdir()
        (node.root / "someone").mkdir()
        node.passes(70)
        assert node.masks().keys() == {SHARED}
        assert (node.root / "someone").is_dir()
        (node.root / "someone").rmdir()

    def test_what_runs_besides_jobs_is_confined_if_that_is_wanted(self, root: Path, jobs: Jobs, tmp_path: Path) -> None:
        stranger = jobs.start(0)
        node = Node(root, jobs, tmp_path / "state", confine_system=True)
        assert node.group_with(stranger) == SHARED
        Groups(root).remove_all()
        assert stranger in Groups(root).root_tasks()

    def test_without_resctrl_the_agent_measures_what_it_can(self, node: Node, tmp_path: Path) -> None:
        node.root = tmp_path
        node.missing = lambda: ["the kernel has no resctrl"]
        node.restart()
        node.run(1, 4)
        assert node.there()[1].why_shared == "the kernel has no resctrl"
        assert node.agent.state().facts.why_unpartitioned == "the kernel has no resctrl"
        node.ends(1)
        assert len(node.controller.reports) == 1

    def test_resctrl_that_is_mounted_later_is_taken_up(self, node: Node, tmp_path: Path) -> None:
        mounted, node.root = node.root, tmp_path / "later"
        node.missing = lambda: [] if node.root.is_dir() else ["not mounted"]
        node.restart()
        task = node.run(1, 4)
        assert node.there()[1].why_shared == "not mounted"
        node.root.symlink_to(mounted)
        node.passes(11)
        assert (node.ways(1), node.group_with(task), node.there()[1].why_shared) == (18, "job1", "")

    def test_an_agent_that_observes_writes_nothing_and_measures(self, root: Path, jobs: Jobs, tmp_path: Path) -> None:
        before = sorted(str(path) for path in root.iterdir())
        node = Node(root, jobs, tmp_path / "state", observes=True, confine_system=True)
        node.run(1, 4, samples=True)
        node.program(1, "cg")
        node.passes(30)
        assert (node.there()[1].why_shared, node.agent.state().facts.mode) == ("the agent only observes", "observe")
        assert sorted(str(path) for path in root.iterdir()) == before
        node.ends(1)
        [point] = node.controller.reports[0].points
        assert (point.ways, point.bandwidth_gbps, node.controller.reports[0].was_sampled) == (0, None, False)
        assert point.ipc == pytest.approx(paper_run("cg").full_ipc, rel=0.05)


class TestReports:
    def test_they_wait_for_the_controller_and_go_when_it_has_stored_them(self, node: Node) -> None:
        node.controller.is_connected = False
        for job in (1, 2):
            node.run(job, 4)
            node.ends(job)
        assert node.controller.reports == []
        assert node.spooled() == ["1-0-c1.report", "2-0-c1.report"]
        node.restart()
        node.controller.is_connected = True
        node.passes(1)
        assert [each.run.job_id for each in node.controller.reports] == [1, 2]
        assert node.spooled() != [], "nobody has stored them yet"
        node.told(Acknowledged(tuple(each.key for each in node.controller.reports)))
        assert node.spooled() == []
        node.restart()
        node.passes(60)
        assert len(node.controller.reports) == 2

    def test_a_full_disk_loses_none(self, root: Path, jobs: Jobs, tmp_path: Path) -> None:
        disk = FullDisk()
        node = Node(root, jobs, tmp_path / "state", spool_files=disk)
        disk.is_full = True
        for job in (1, 2):
            node.run(job, 4)
            node.ends(job)
        assert [each.run.job_id for each in node.controller.reports] == [1, 2], "they are sent all the same"
        assert "kept in memory only" in node.agent.state().trouble
        node.passes(60)
        assert node.spooled() == []
        disk.is_full = False
        node.passes(40)
        assert node.spooled() == ["1-0-c1.report", "2-0-c1.report"]
        assert node.agent.state().trouble == ""

    def test_a_broken_one_is_put_aside(self, node: Node) -> None:
        node.run(1, 4)
        node.ends(1)
        spool = node.state / "spool"
        (spool / "2-0-c1.report").write_text("{")
        (spool / "3-0-c1.report").write_bytes((spool / "1-0-c1.report").read_bytes())
        node.restart()
        assert node.spooled() == ["1-0-c1.report"]
        assert sorted(path.name for path in spool.glob("*.broken")) == ["2-0-c1.broken", "3-0-c1.broken"]
        assert len([line for line in node.said if "put aside" in line]) == 2
