"""Which runs are on a node: every event may come twice, late, or not at all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_sns.node.agent.in_force import needs, why_shared
from slurm_sns.node.agent.presence import LastSeen
from slurm_sns.node.agent.runs_here import MOST_RUNS, NOT_NAMED, RunHere, RunsHere
from slurm_sns.task_ids import task_id
from slurm_sns.wire.values import ActiveRuns, ArrayTask, Change, Grant, RunId


def grant(run: RunId, ways: int = 4, **more: object) -> Grant:
    return Grant(run, ("c1",), ways, **more)


def here(*runs: RunId) -> RunsHere:
    found = RunsHere()
    for at, run in enumerate(runs):
        found = found.with_prolog(run, float(at), grant(run)).runs
    return found


def test_a_prolog_brings_what_was_granted() -> None:
    [run] = RunsHere().with_prolog(RunId(1), 5.0, grant(RunId(1), 7, bandwidth_gbps=3, samples=True)).runs.runs
    assert (run.ways, run.bandwidth_gbps, run.samples, run.began_s, run.is_whole) == (7, 3, True, 5.0, True)


def test_one_job_is_alone_until_a_second_one_comes_and_never_again() -> None:
    both = here(RunId(1), RunId(2))
    assert [each.was_alone for each in both.runs] == [False, False]
    after = both.with_epilog(RunId(2)).runs
    assert [each.was_alone for each in after.runs] == [False]
    assert here(RunId(1)).runs[0].was_alone


def test_only_a_run_that_is_alone_is_sampled() -> None:
    one = RunsHere().with_prolog(RunId(1), 0, grant(RunId(1), samples=True)).runs
    assert one.sampled is not None
    assert one.with_prolog(RunId(2), 0, None).runs.sampled is None


class TestGrantsOfArrayTasks:
    """Job 48 shows the grant of task 7 of array 41."""

    RUN, TASK = RunId(48), ArrayTask(48, 41, 7)
    GRANT = grant(RunId(task_id(41, 7)), 6, has_nodes_alone=True, samples=True)
    NAMED = ActiveRuns(frozenset({RUN}), frozenset({TASK}))

    def shown(self) -> RunsHere:
        return RunsHere().with_prolog(self.RUN, 0.0, self.GRANT).runs

    def test_it_has_nothing_until_the_controller_says_that_it_is_the_task(self) -> None:
        [run] = self.shown().runs
        assert (run.ways, run.samples, run.why_no_grant) == (0, False, NOT_NAMED)
        [run] = self.shown().with_named(self.NAMED).runs
        assert (run.ways, run.samples, run.has_nodes_alone) == (6, True, True)
        assert (run.why_no_grant, run.claim) == ("", None)

    @pytest.mark.parametrize(
        "active", [ActiveRuns(), ActiveRuns(frozenset({RunId(48, 1), RunId(47)}), frozenset({ArrayTask(47, 41, 7)}))]
    )
    def test_what_the_controller_says_of_other_runs_changes_nothing(self, active: ActiveRuns) -> None:
        assert self.shown().with_named(active) == self.shown()

    @pytest.mark.parametrize(("tasks", "is_what"), [({ArrayTask(48, 41, 8)}, "41_8"), (set(), "48")])
    def test_a_job_that_is_something_else_gets_nothing_and_it_is_said_why(self, tasks, is_what: str) -> None:
        [run] = self.shown().with_named(ActiveRuns(frozenset({self.RUN}), frozenset(tasks))).runs
        assert (run.ways, run.why_no_grant) == (0, f"the grant is of another job: 41_7, not {is_what}")
        assert run.claim is None

    def test_a_second_prolog_does_not_claim_again(self) -> None:
        named = self.shown().with_named(self.NAMED).with_change(Change(self.RUN, 1, 2))
        assert named.with_prolog(self.RUN, 1.0, self.GRANT).runs == named

    def test_what_the_controller_has_changed_since_stays(self) -> None:
        changed = self.shown().with_change(Change(self.RUN, 1, 2))
        for tasks, has_nodes_alone in ((self.NAMED.tasks, True), (frozenset(), False)):
            [run] = changed.with_named(ActiveRuns(frozenset({self.RUN}), tasks)).runs
            assert (run.ways, run.why_no_grant, run.has_nodes_alone) == (2, "", has_nodes_alone)

    def test_the_grant_is_not_for_a_later_run_of_the_job(self) -> None:
        later = RunId(48, 1)
        runs = self.shown().with_prolog(later, 1.0, None).runs
        named = runs.with_named(ActiveRuns(frozenset({later}), self.NAMED.tasks))
        assert [(each.run, each.ways, each.claim) for each in named.runs] == [(later, 0, None)]


RUN = st.builds(RunId, st.integers(1, 3), st.integers(0, 2))
EVENT = st.one_of(
    st.tuples(st.just("prolog"), RUN),
    st.tuples(st.just("epilog"), RUN),
    st.tuples(st.just("found"), RUN),
    st.tuples(st.just("vanished"), RUN),
    st.tuples(st.just("change"), RUN, st.integers(0, 3), st.integers(0, 20)),
)


def after(runs: RunsHere, event: tuple) -> tuple[RunsHere, tuple[RunHere, ...]]:
    kind, run = event[:2]
    if kind == "prolog":
        found = runs.with_prolog(run, 0, grant(run))
    elif kind == "epilog":
        found = runs.with_epilog(run)
    elif kind == "vanished":
        found = runs.without_vanished([run.job_id])
    else:
        is_change = kind == "change"
        return (runs.with_change(Change(run, *event[2:])) if is_change else runs.with_found({run: 0}, 0)), ()
    return found.runs, found.ended


@given(st.lists(EVENT, max_size=30))
def test_each_event_twice_is_as_once_and_no_run_is_lost_or_ends_twice(events: list[tuple]) -> None:
    runs = RunsHere()
    for event in events:
        before = runs
        runs, ended = after(runs, event)
        assert after(runs, event) == (runs, ())
        assert len({each.run.job_id for each in runs.runs}) == len(runs.runs)
        left = {each.run for each in before.runs} - {each.run for each in runs.runs}
        assert left == {each.run for each in ended}
        assert [each.number for each in runs.runs] == sorted(each.number for each in runs.runs)


@given(st.lists(EVENT, max_size=20), RUN)
def test_a_newer_restart_is_never_displaced_by_an_older_one(events: list[tuple], run: RunId) -> None:
    newer = RunId(run.job_id, 9)
    runs = RunsHere().with_prolog(newer, 0, grant(newer)).runs
    for event in events:
        if event[0] != "vanished":
            runs, _ = after(runs, event)
    assert runs.of(run.job_id) is not None
    assert runs.of(run.job_id).run == newer


@pytest.mark.long
def test_changes_for_runs_that_never_come_do_not_pile_up() -> None:
    runs = RunsHere()
    for number in range(MOST_RUNS + 10):
        runs = runs.with_change(Change(RunId(number + 1), 1, 2))
    assert len(runs.early) == MOST_RUNS


class TestNeeds:
    def test_the_oldest_comes_first_and_cores_are_those_that_are_known(self) -> None:
        found = needs(here(RunId(7), RunId(3)), {3: {0: 4}}, 18, 0)
        assert [(each.job_id, each.cores) for each in found] == [(7, None), (3, {0: 4})]

    @pytest.mark.parametrize(("has_nodes_alone", "ways"), [(True, 18), (False, 20)])
    def test_a_run_whose_nodes_are_its_own_has_no_more_than_there_are(self, has_nodes_alone: bool, ways: int) -> None:
        run = RunId(1)
        runs = RunsHere().with_prolog(run, 0, grant(run, 20, has_nodes_alone=has_nodes_alone)).runs
        assert needs(runs, {}, 18, 0)[0].ways == ways

    def test_a_sampled_run_has_all_ways_and_for_the_moment_fewer(self) -> None:
        run = RunId(1)
        runs = RunsHere().with_prolog(run, 0, grant(run, 0, samples=True)).runs
        [found] = needs(runs, {}, 18, 4)
        assert (found.ways, found.sampled_ways) == (18, 4)
        assert needs(runs, {}, 0, 0)[0].ways == 0, "nothing can be partitioned here"

    @pytest.mark.parametrize(
        ("run", "ways", "why"),
        [
            (RunHere(RunId(1), 1, 0, ways=4), 4, ""),
            (RunHere(RunId(1), 1, 0), 0, ""),
            (RunHere(RunId(1), 1, 0, ways=4), 0, "no resctrl"),
            (RunHere(RunId(1), 1, 0, samples=True), 0, "no resctrl"),
            (RunHere(RunId(1), 1, 0, why_no_grant="forged"), 0, "forged"),
            (RunHere(RunId(1), 1, 0, is_found=True), 0, "its prolog did not reach the agent"),
            (RunHere(RunId(1), 1, 0, ways=3, is_found=True), 3, ""),
        ],
    )
    def test_why_a_run_has_no_ways(self, run: RunHere, ways: int, why: str) -> None:
        assert why_shared(run, ways, ("", "no resctrl", "no ways")) == why


class TestVanished:
    RUN = RunId(1, 2)

    @pytest.mark.parametrize(
        ("seen_s", "active", "gone"),
        [
            (41.0, None, False),
            (40.0, None, True),
            (0.0, frozenset(), True),
            (0.0, frozenset({RUN}), False),
            (0.0, frozenset({RunId(1, 1)}), True),
        ],
    )
    def test_a_job_has_gone_when_nobody_has_seen_it_for_long(self, seen_s: float, active, gone: bool) -> None:
        seen = LastSeen(after_s=60.0)
        seen.begin(1, seen_s)
        seen.active = active
        assert seen.vanished(here(self.RUN), 100.0) == ({1} if gone else set())


def test_a_run_that_was_found_has_the_restart_count_that_the_controller_names() -> None:
    found = here(RunId(2, 0)).with_found({RunId(1, 0): 18}, 1.0)
    after = found.with_restarts([RunId(1, 3), RunId(2, 1)])
    assert [each.run for each in after.runs] == [RunId(2, 0), RunId(1, 3)], "a run whose prolog came is what it is"


def test_a_change_for_a_run_that_was_found_says_what_it_has() -> None:
    found = RunsHere().with_found({RunId(1, 0): 18}, 1.0)
    [run] = found.with_change(Change(RunId(1, 0), 1, 4)).runs
    assert (run.ways, run.is_found, run.is_whole) == (4, False, False)
