"""What the scheduler is built from where agents are configured."""

import getpass
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import create_autospec

import pytest
from default_settings import SETTINGS

from slurm_sns.cli.live import duties, parts
from slurm_sns.config import configuration
from slurm_sns.errors import SnsError
from slurm_sns.model import Snapshot
from slurm_sns.scheduler.ports import Agents
from slurm_sns.wire.grants import verified
from slurm_sns.wire.keys import Keys, key_line
from slurm_sns.wire.values import Grant, RunId

KEY = key_line("k1", bytes(range(32)))
GRANT = Grant(RunId(7, 1), ("c1", "c2"), 4, 20)


@pytest.fixture
def write_config(tmp_path):
    def write(agent_settings: str = "", more: str = "mode: enforce\npolicy: sns"):
        path = tmp_path / "sns.yaml"
        path.write_text(
            f"{more}\npartitions: [batch]\n"
            "nodes: [{names: 'n[1-8]', partitions: [batch], cores: 28, memory_mb: 128000, llc_ways: 20}]\n"
            f"slurm: {{user: {getpass.getuser()}}}\n"
            f"agents: {{{agent_settings}}}\n"
            "learning: {explore: true, most_nodes: 0.5, min_cores_per_node: 3, saturation: 0.1, drift: 0.2,\n"
            "           drift_runs: 4}\n"
            f"paths: {{state_dir: {tmp_path}, run_dir: {tmp_path / 'run'}}}\n"
        )
        return configuration.load(path)

    return write


def test_without_a_controller_there_are_no_agents_and_no_grants(write_config) -> None:
    assert parts.hub_and_sign(write_config(), print) is None


def test_grants_are_signed_with_the_key_file_as_it_is_now(write_config, tmp_path) -> None:
    key_file = tmp_path / "sns.key"
    config = write_config(f"controller: localhost, port: 6830, key_file: {key_file}")
    _, sign = parts.hub_and_sign(config, print)
    with pytest.raises(SnsError, match=r"sns.key.*sns key new makes one"):
        sign(GRANT)
    key_file.touch(mode=0o600)
    key_file.write_text(KEY)
    found = verified(sign(GRANT), Keys.parse(KEY), GRANT.run, "c2", ["c2", "c1"])
    assert (found.run, found.ways, found.bandwidth_gbps) == (GRANT.run, 4, 20)


def test_learning_follows_the_settings(write_config) -> None:
    rules = parts.rules(write_config())
    assert (rules.explore, rules.limit(8), rules.limit(1)) == (True, 4, 1)
    assert (rules.exploration.min_cores_per_node, rules.exploration.saturation) == (3, 0.1)
    assert (rules.drift.threshold, rules.drift.patience) == (0.2, 4)
    assert rules.exploration.spreading.shared_ways == 2


@pytest.mark.parametrize(
    ("more", "learns"),
    [
        ("mode: enforce\npolicy: sns", True),
        ("mode: enforce\npolicy: combined", True),
        ("mode: enforce\npolicy: max-jobs", False),
        ("mode: observe\npolicy: sns", False),
        ("mode: advise\npolicy: sns", False),
    ],
)
def test_profiles_are_learnt_where_jobs_are_placed_by_profiles(write_config, more: str, learns: bool) -> None:
    found = parts.learner(write_config(more=more), create_autospec(Agents), SETTINGS, print)
    assert (found is not None) == learns


class TestStatusLine:
    VIEW = SimpleNamespace(disabled=False, situation=SimpleNamespace(snapshot=Snapshot((), ())), took_s=0.0124)

    @pytest.mark.parametrize(
        ("trouble", "view", "line"),
        [
            ("", None, "enforce; first cycle"),
            ("", VIEW, "enforce; 0 waiting; cycle 12 ms"),
            ("", SimpleNamespace(**VIEW.__dict__ | {"disabled": True}), "enforce; disabled; cycle 12 ms"),
            ("slurmctld does not answer", VIEW, "enforce; slurmctld does not answer"),
        ],
    )
    def test_it_says_what_the_last_cycle_did_or_why_there_is_none(self, trouble: str, view, line: str) -> None:
        assert parts.status_line("enforce", trouble, view) == line


def test_each_beat_is_a_sign_of_life_for_systemd_also_on_a_full_disk(tmp_path) -> None:
    said: list[str] = []
    heartbeat = parts.LivingHeartbeat(tmp_path / "heartbeat", lambda: said.append("lives"))
    heartbeat.beat(7.9)
    assert (heartbeat.last(), said) == (7, ["lives"])
    lost = parts.LivingHeartbeat(tmp_path / "gone" / "heartbeat", lambda: said.append("lives"))
    with pytest.raises(SnsError):
        lost.beat(8)
    assert len(said) == 2


@pytest.mark.parametrize(
    ("told_to_stop", "has_turn", "ends", "hands_over"),
    [(False, True, False, True), (False, False, True, True), (True, True, True, False), (True, False, True, False)],
)
def test_a_scheduler_ends_with_its_turn_and_gives_jobs_to_slurm_only_when_told_to_stop(
    mocker, told_to_stop: bool, has_turn: bool, ends: bool, hands_over: bool
) -> None:
    stop = mocker.Mock(**{"is_set.return_value": told_to_stop, "hands_over.return_value": False})
    turn = mocker.Mock(**{"lasts.return_value": has_turn})
    is_stopping, is_handed_over = duties.with_turn(stop.is_set, stop, turn)
    assert (is_stopping(), is_handed_over()) == (ends, hands_over)


def test_with_one_controller_there_is_no_lease_and_the_watchdog_is_always_on_duty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mocker
) -> None:
    monkeypatch.setenv("SLURM_CONF", str(tmp_path / "slurm.conf"))
    (tmp_path / "slurm.conf").write_text("SlurmctldHost=somewhere\n")
    assert duties.turn(mocker.Mock()) is None
    is_on_duty, _ = duties.watchdog_duty(mocker.Mock(), mocker.Mock())
    assert is_on_duty()
