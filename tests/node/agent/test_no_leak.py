"""Whatever comes in whatever order, and wherever the agent is killed: no group leaks, no run is lost or doubled."""

import tempfile
from pathlib import Path

import pytest
from bare_node import BareNode
from hypothesis import example, given, settings
from hypothesis import strategies as st

from slurm_sns.node.group_writes import SHARED, group_of
from slurm_sns.wire.values import RunId

JOBS = (1, 2, 3, 4)
RUN = st.builds(RunId, st.sampled_from(JOBS), st.integers(0, 1))
EVENT = st.one_of(
    st.tuples(st.just("prolog"), RUN, st.integers(0, 12)),
    st.tuples(st.just("epilog"), RUN),
    st.tuples(st.just("tasks begin"), st.sampled_from(JOBS)),
    st.tuples(st.just("tasks end"), st.sampled_from(JOBS)),
    st.tuples(st.just("time"), st.sampled_from((1, 11, 70))),
    st.tuples(st.just("restart")),
    st.tuples(st.just("controller"), st.booleans()),
    st.tuples(st.just("killed"), st.integers(0, 5)),
    st.tuples(st.just("refused"), st.integers(0, 5)),
)


def carry_out(node: BareNode, event: tuple) -> None:
    kind = event[0]
    if kind == "prolog":
        node.event("prolog", *event[1:])
    elif kind == "epilog":
        node.event("epilog", event[1])
    elif kind == "tasks begin":
        node.jobs.running.add(event[1])
    elif kind == "tasks end":
        node.jobs.running.discard(event[1])
    elif kind == "time":
        node.passes(event[1])
    elif kind == "restart":
        node.restart()
    elif kind == "controller":
        node.controller.is_connected = event[1]
    elif kind == "killed":
        node.kill_in(event[1])
    else:
        node.refuse_in(event[1])


@pytest.mark.long
@example([("tasks begin", 1), ("prolog", RunId(1), 0), ("epilog", RunId(1)), ("restart",)])
@given(st.lists(EVENT, max_size=25))
@settings(max_examples=60)
def test_of_any_story(events: list[tuple]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        node = BareNode(Path(directory))
        begun: set[RunId] = set()
        for event in events:
            carry_out(node, event)
            if node.is_up and node.agent.state().trouble == "":
                assert node.overlaps() == []
                begun |= set(node.there())
        node.controller.is_connected = True
        node.jobs.running.clear()
        node.passes(200)
        assert node.there() == set()
        assert node.groups() == {SHARED}
        assert {report.run for report in node.reports()} >= begun
        assert not [line for line in node.said if "defect" in line]
        node.restart()
        node.passes(2)
        told = {report.key: report for report in node.reports()}
        assert all(told[report.key] == report for report in node.reports()), "one run, one report"


class TestKilledBeforeEachChange:
    """kill -9 while jobs come and go; then the agent starts again."""

    @pytest.mark.parametrize("change", range(6))
    def test_all_have_their_ways_after_the_next_start(self, change: int, tmp_path: Path) -> None:
        node = BareNode(tmp_path)
        for job in (1, 2):
            node.event("prolog", RunId(job), 4)
            node.jobs.running.add(job)
        node.passes(2)
        node.kill_in(change)
        node.event("prolog", RunId(3), 6)
        node.jobs.running.add(3)
        was_killed = not node.is_up
        node.kill_in(change)
        node.jobs.running.discard(1)
        node.event("epilog", RunId(1))
        node.restart()
        node.passes(12)
        assert {group_of(2), SHARED} <= node.groups()
        assert node.overlaps() == []
        assert {2, 3} <= {run.job_id for run in node.there()}
        node.jobs.running.clear()
        node.passes(200)
        assert (node.groups(), node.there()) == ({SHARED}, set())
        assert {report.run.job_id for report in node.reports()} == {1, 2, 3}
        assert was_killed == (change < 4), "else nothing is shown"
