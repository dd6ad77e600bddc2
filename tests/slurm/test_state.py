"""One look at the cluster: what is asked, in which order, and what a failing part leaves."""

from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
import recorded

from slurm_sns.errors import BadInput, Unreachable
from slurm_sns.scheduler.observation import EMPTY_QUEUE, NO_PREEMPTION, DatabaseQueue, PreemptionRules
from slurm_sns.slurm import api, state
from slurm_sns.slurm.accounting import AccountingValues
from slurm_sns.slurm.state import JobsAlone, SlurmState, shows_estimates


def configuration(**fields) -> SimpleNamespace:
    """What is read of pyslurm.slurmctld.Config."""
    shown = {"version": "26.05.5", "preempt_type": None, "preempt_mode": "OFF", "scheduler_parameters": {}}
    shown |= {"priority_type": "priority/multifactor", "priority_site_factor_plugin": None, "max_dbd_msgs": 40_024}
    shown |= {
        "kill_wait_time": 10,
        "mail_program": "/bin/mail",
        "topology_plugin": "topology/flat",
        "select_type_parameters": ["CR_CORE_MEMORY"],
    }
    return SimpleNamespace(**{**shown, **recorded.WEIGHTS, **fields})


@pytest.fixture
def cluster(pyslurm):
    pyslurm.Jobs.load.return_value = {1: recorded.job(user_id=0)}
    pyslurm.Nodes.load.return_value = {"c1": recorded.node()}
    pyslurm.Reservations.load.return_value = {}
    pyslurm.Partitions.load.return_value = {
        "main": recorded.partition(priority_tier=2),
        "low": recorded.partition(name="low", priority_tier=None),
    }
    pyslurm.slurmctld.Config.load.return_value = configuration()
    pyslurm.slurmctld.diag.return_value = SimpleNamespace(dbd_agent_queue_size=0)
    return pyslurm


class Raising:
    """A record with a field that pyslurm cannot convert."""

    def __init__(self, record, *names: str) -> None:
        self._record, self._names = record, names

    def __getattr__(self, name: str):
        if name in self._names:
            raise ValueError(f"invalid literal in {name}")
        return getattr(self._record, name)


class Known:
    """Slurm's accounting, which answers."""

    def numbers(self) -> AccountingValues:
        return AccountingValues((("high", 5), ("normal", 0)), (), (("physics", 3.0),))


def test_jobs_are_read_before_nodes_so_that_none_is_missed(cluster) -> None:
    order = MagicMock()
    order.attach_mock(cluster.Jobs.load, "jobs")
    order.attach_mock(cluster.Nodes.load, "nodes")
    seen = SlurmState(Known()).observe()
    assert [call[0] for call in order.mock_calls] == ["jobs", "nodes"]
    assert ([each.id for each in seen.jobs], [each.name for each in seen.nodes]) == ([1], ["c1"])
    assert seen.jobs[0].user == "root"
    assert [(each.name, each.tier) for each in seen.partitions] == [("main", 2), ("low", 0)]
    assert (seen.qos_priorities, seen.shares) == (Known().numbers().qos_priorities, Known().numbers().shares)


def test_jobs_that_wait_where_they_were_placed_are_watched_those_placed_last_first(cluster, mocker) -> None:
    mocker.patch.object(state, "MOST_WATCHED", 2)
    cluster.Jobs.load.return_value = {
        number: recorded.job(id=number, admin_comment=f"sns:2 g=9{record}", state=job_state)
        for number, record, job_state in (
            (1, " n=c1 at=7", "PENDING"),
            (2, " n=c1 at=8", "RUNNING"),
            (3, "", "PENDING"),
            (4, " n=c1 at=9", "PENDING"),
            (5, " n=c1 at=8", "PENDING"),
        )
    }
    looks = SlurmState(Known())
    look = mocker.patch.object(looks.seen, "look", wraps=looks.seen.look)
    looks.observe(), looks.observe()
    assert [call.args for call in look.mock_calls] == [([],), ([4, 5],)]


def test_partitions_are_looked_at_every_time_because_one_may_be_closed_at_any_moment(cluster) -> None:
    state = SlurmState(Known())
    assert state.observe().partitions[0].state == "UP"
    cluster.Partitions.load.return_value["main"].state = "DOWN"
    assert state.observe().partitions[0].state == "DOWN"


def test_who_only_frees_jobs_reads_nothing_but_jobs(cluster) -> None:
    seen = JobsAlone().observe()
    assert [each.id for each in seen.jobs] == [1]
    assert (seen.nodes, seen.partitions) == ((), ())
    assert not any(each.load.called for each in (cluster.Nodes, cluster.Reservations, cluster.Partitions))
    assert not cluster.slurmctld.mock_calls


@pytest.mark.parametrize("errno", [1800, 2002])
def test_a_look_that_fails_in_any_way_is_no_look(cluster, errno: int) -> None:
    cluster.Nodes.load.side_effect = cluster.RPCError(errno, "no")
    with pytest.raises(Unreachable):
        SlurmState(Known()).observe()


@pytest.mark.parametrize(
    ("version", "estimates"),
    [
        ("24.11.5", True),
        ("25.05.8", True),
        ("25.11.2", True),
        ("26.05.0", False),
        ("26.05.5", False),
        ("26.11.0", False),
    ],
)
def test_which_slurm_shows_its_own_estimate_of_the_nodes_as_the_owners_choice(version: str, estimates: bool) -> None:
    assert shows_estimates(version) is estimates


def test_slurms_configuration_is_looked_at_every_time_because_slurmctld_may_start_anew_unnoticed(cluster) -> None:
    state = SlurmState(Known())
    before = state.observe()
    assert (before.preemption, before.has_boost) == (replace(NO_PREEMPTION, of_qos=None), True)
    cluster.slurmctld.Config.load.return_value = configuration(
        version="24.11.5",
        preempt_type="preempt/qos",
        preempt_mode="REQUEUE",
        priority_type="priority/basic",
        scheduler_parameters={"bf_window": 60},
    )
    after = state.observe()
    assert (after.preemption, after.has_boost) == (PreemptionRules("preempt/qos", "REQUEUE", None), False)
    assert after.backfill.window_s == 3600


@pytest.mark.parametrize(
    ("shown", "has_boost"),
    [
        ({}, True),
        ({"priority_site_factor_plugin": "site_factor/none"}, True),
        ({"priority_site_factor_plugin": "site_factor/example"}, False),
        ({"priority_type": "priority/basic"}, False),
        ({"priority_type": None}, False),
        ({"scheduler_parameters": {"enable_user_top": True}}, False),
    ],
)
def test_a_site_factor_of_ours_counts_beside_other_factors_and_without_a_plugin(cluster, shown, has_boost) -> None:
    cluster.slurmctld.Config.load.return_value = configuration(**shown)
    assert SlurmState(Known()).observe().has_boost is has_boost


@pytest.mark.parametrize(
    ("shown", "has_priorities"),
    [
        ({}, True),
        ({"priority_weight_age": 0}, False),
        ({"priority_weight_age": 0, "priority_weight_tres": {"mem": "0.03"}}, True),
        ({"priority_type": "priority/basic"}, False),
    ],
)
def test_slurm_computes_priorities_where_it_has_weights(cluster, shown, has_priorities: bool) -> None:
    cluster.slurmctld.Config.load.return_value = configuration(**shown)
    assert SlurmState(Known()).observe().has_priorities is has_priorities


def test_whether_slurm_fills_one_socket_after_the_other(cluster) -> None:
    assert not SlurmState(Known()).observe().fills_sockets
    words = ["CR_CORE_MEMORY", "CR_CORE_DEFAULT_DIST_BLOCK"]
    cluster.slurmctld.Config.load.return_value = configuration(select_type_parameters=words)
    assert SlurmState(Known()).observe().fills_sockets


@pytest.mark.parametrize(
    ("parameters", "has_extra"), [(None, True), ({"bf_window": 60}, True), ({"extra_constraints": True}, False)]
)
def test_where_slurm_reads_extra_as_constraints_it_is_not_ours(cluster, parameters, has_extra: bool) -> None:
    cluster.slurmctld.Config.load.return_value = configuration(scheduler_parameters=parameters)
    assert SlurmState(Known()).observe().has_extra is has_extra


def test_the_messages_that_wait_for_slurmdbd_are_counted_and_cost_no_look(cluster) -> None:
    cluster.slurmctld.diag.return_value = SimpleNamespace(dbd_agent_queue_size=12_345)
    assert SlurmState(Known()).observe().database_queue == DatabaseQueue(12_345, 40_024)
    cluster.slurmctld.Config.load.return_value = configuration(max_dbd_msgs=None)
    assert SlurmState(Known()).observe().database_queue == DatabaseQueue(12_345, EMPTY_QUEUE.most)
    for errno in (1800, 2002):
        cluster.slurmctld.diag.side_effect = cluster.RPCError(errno, "no")
        assert SlurmState(Known()).observe().database_queue == EMPTY_QUEUE


def test_a_record_that_cannot_be_read_costs_that_record_only(cluster) -> None:
    bad = Raising(recorded.job(id=2, user_id=0, state="RUNNING", allocated_nodes="c1", cpus=4), "dependencies")
    cluster.Jobs.load.return_value = {1: recorded.job(user_id=0), 2: bad}
    cluster.Nodes.load.return_value = {"c1": recorded.node(), "c2": Raising(recorded.node(name="c2"), "real_memory")}
    seen = SlurmState(Known()).observe()
    assert [(each.id, each.state.value) for each in seen.jobs] == [(1, "pending"), (2, "running")]
    assert seen.jobs[1].occupies.cores == 4, "it is counted all the same"
    assert [bool(each.unavailable) for each in seen.nodes] == [False, True]
    assert set(seen.unreadable) == {"job 2", "node c2"}


def test_pyslurm_is_never_loaded_where_slurm_has_no_configuration(monkeypatch, tmp_path) -> None:
    """Its import would end the process."""
    monkeypatch.setenv("SLURM_CONF", str(tmp_path / "slurm.conf"))
    api.pyslurm.cache_clear()
    with pytest.raises(BadInput, match="no Slurm configuration here"):
        api.pyslurm()
