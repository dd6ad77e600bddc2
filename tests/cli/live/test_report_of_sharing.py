"""`sns report --config` on a scheduler with partitions whose jobs share cores."""

import os
import time

import pytest
from json_output import read

from slurm_sns.model import Node, Plan, Resources, Snapshot
from slurm_sns.policies.base import Explanation
from slurm_sns.scheduler.history import remember
from slurm_sns.scheduler.ports import PolicyHistory, RestartNote
from slurm_sns.scheduler.sharing.book import FORM, NAME, SharedTime, StoredSharing
from slurm_sns.store.database import open_store
from slurm_sns.store.decisions import StoredDecisions
from slurm_sns.store.history import StoredHistory

#: 2026-11-20.
DAY = 20_777
HOUR_S = 3600.0
TIMES = (
    SharedTime(DAY + 8, "chemistry", 1, 10 * HOUR_S, 10 * HOUR_S),
    SharedTime(DAY, "physics", 3, 90 * HOUR_S, 45 * HOUR_S, 2, HOUR_S),
    SharedTime(DAY + 1, "physics", 1, 1000 * HOUR_S, 450 * HOUR_S),
    SharedTime(DAY + 1, "", pauses=0, lost_core_s=1e-12),
)


@pytest.fixture
def sharing(write_config):
    """A configuration in which partition main shares cores."""

    def write(**more):
        return write_config(mode="enforce", sharing={"partitions": ["main"]}, agents={"controller": "head"}, **more)

    return write


def engine_of(config):
    return open_store(f"sqlite:///{config.parent / 'state' / 'sns.db'}")


def record(config, *times: SharedTime) -> None:
    StoredHistory(engine_of(config)).save([], [], remember(NAME, FORM, StoredSharing(times=times), print))


def record_a_pause(config) -> None:
    decisions = StoredDecisions(engine_of(config), 30, 500)
    snapshot = Snapshot((Node("c1", Resources(4, 100), Resources(2, 50)),), ())
    note = RestartNote("its memory is needed for job 3", Explanation(), (), is_proposal=False)
    more = {"owners": {7: os.getuid()}, "explanations": {}, "tasks": {}}
    decisions.record(time.time(), snapshot, Plan(), {}, restarts={7: note}, **more)


def told(sns, config) -> str:
    return " ".join(sns("report", "--config", config)[1].split())


def test_it_says_what_slurm_charges_and_what_the_runs_had_by_day_and_account(sns, sharing) -> None:
    config = sharing()
    record(config, *TIMES)
    found = read("sns report", sns("report", "--config", config, "--json")[1])
    assert (found["about"], found["title"]) == ("sharing", "Shared cores")
    assert (found["sharing"]["partitions"], found["sharing"]["most_to_a_core"]) == (["main"], 2)
    assert found["sharing"]["times"][0] == {
        "day": "2026-11-20",
        "account": "physics",
        "runs": 3,
        "charged_core_h": 90.0,
        "virtual_core_h": 45.0,
        "pauses": 2,
        "lost_core_h": 1.0,
    }
    days = [(each["day"], each["account"]) for each in found["sharing"]["times"][1:]]
    assert days == [("2026-11-21", "physics"), ("2026-11-28", "chemistry")]


def test_the_page_has_the_sums_the_chart_and_how_to_compare_with_slurm(sns, sharing, tmp_path) -> None:
    config = sharing()
    record(config, *TIMES)
    text = told(sns, config)
    assert (
        "2026-11-20 to 2026-11-28: 5 runs ended where jobs share cores. Slurm charges 1,100.0 core-hours for them; "
        "they had 505.0 (46%)." in text
    )
    assert "2 pauses lost 1.0 core-hours of work at most." in text
    assert "physics 4 1,090.0 495.0 45% 2 1.0 chemistry 1 10.0 10.0 100% 0 0.0" in text
    assert "2026-11-28 1 10.0 10.0 100% 0 0.0 2026-11-21 1 1,000.0 450.0 45% 0 0.0 2026-11-20 3" in text
    assert "TZ=UTC sacct -aXDP -r main -S 2026-11-20 -E 2026-11-29 -o Account,End,CPUTimeRAW" in text
    assert "TRESBillingWeights=CPU=0.5" in text
    assert "UsageFactor=0.5" in text
    sns("report", "--config", config, "--out", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "<svg" in page
    assert "Core-hours on shared cores" in page
    assert "days since 2026-11-20" in page


def test_without_any_run_it_says_where_to_look(sns, sharing) -> None:
    config = sharing()
    record(config)
    assert "no run yet that ended on nodes whose cores are shared, and no pause. sns status" in told(sns, config)


def test_with_restarts_both_are_one_page_and_a_pause_is_no_restart(sns, sharing) -> None:
    config = sharing(rescheduling={"restart": "on"})
    record(config, *TIMES)
    record_a_pause(config)
    found = read("sns report", sns("report", "--config", config, "--json")[1])
    assert (found["about"], found["title"]) == ("restarts", "Restarts of suspended jobs; Shared cores")
    assert (found["restarts"]["restarts"], len(found["sharing"]["times"])) == (0, 3)
    text = told(sns, config)
    assert "no restart and no proposal" in text
    assert "5 runs ended where jobs share cores" in text


def test_a_record_of_another_version_is_an_error_of_one_line(sns, sharing) -> None:
    config = sharing()
    StoredHistory(engine_of(config)).save([], [], PolicyHistory(NAME, 99, "{}"))
    code, output, errors = sns("report", "--config", config)
    assert (code, output) == (1, "")
    assert "the store's record of shared cores: " in errors
    assert len(errors.splitlines()) == 1


def test_a_scheduler_that_neither_restarts_nor_shares_has_no_page(sns, write_config) -> None:
    code, _, errors = sns("report", "--config", write_config(mode="enforce"))
    assert code == 2
    assert "or a partition in sharing.partitions" in errors
