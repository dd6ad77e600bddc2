"""One look at the cluster: what is asked, in which order, and what a failing part leaves."""

from unittest.mock import MagicMock

import pytest
import recorded

from slurm_sns.errors import BadInput, Unreachable
from slurm_sns.slurm import api
from slurm_sns.slurm.accounting import Numbers
from slurm_sns.slurm.state import SlurmState


@pytest.fixture
def cluster(pyslurm):
    pyslurm.Jobs.load.return_value = {1: recorded.job(user_id=0)}
    pyslurm.Nodes.load.return_value = {"c1": recorded.node()}
    pyslurm.Reservations.load.return_value = {}
    pyslurm.Partitions.load.return_value = {
        "main": recorded.partition(priority_tier=2),
        "low": recorded.partition(name="low", priority_tier=None),
    }
    return pyslurm


class Known:
    """Slurm's accounting, which answers."""

    def numbers(self) -> Numbers:
        return Numbers((("high", 5), ("normal", 0)), (), (("physics", 3.0),))


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


def test_partitions_are_looked_at_every_time_because_one_may_be_closed_at_any_moment(cluster) -> None:
    state = SlurmState(Known())
    assert state.observe().partitions[0].state == "UP"
    cluster.Partitions.load.return_value["main"].state = "DOWN"
    assert state.observe().partitions[0].state == "DOWN"


def test_who_only_releases_jobs_asks_for_no_order_of_the_queue(cluster) -> None:
    assert SlurmState().observe().partitions == ()
    assert not cluster.Partitions.load.called


@pytest.mark.parametrize("errno", [1800, 2002])
def test_a_look_that_fails_in_any_way_is_no_look(cluster, errno: int) -> None:
    cluster.Nodes.load.side_effect = cluster.RPCError(errno, "no")
    with pytest.raises(Unreachable):
        SlurmState().observe()


def test_pyslurm_is_never_loaded_where_slurm_has_no_configuration(monkeypatch, tmp_path) -> None:
    """Its import would end the process."""
    monkeypatch.setenv("SLURM_CONF", str(tmp_path / "slurm.conf"))
    api.pyslurm.cache_clear()
    with pytest.raises(BadInput, match="no Slurm configuration here"):
        api.pyslurm()
