"""One look by scontrol: what is asked, in which order, and what a failing part leaves."""

import pytest
import scontrol_samples as samples

from slurm_sns.errors import Unreachable
from slurm_sns.scheduler.observation import Backfill
from slurm_sns.slurm.scontrol_state import ScontrolState

SHOWN = {
    "config": samples.CONFIG,
    "job": samples.job() + samples.job(JobId="2", **samples.RUNNING),
    "node": samples.node(),
    "reservation": "No reservations in the system\n",
    "partition": samples.partition(),
}


class Slurm:
    """Answers as scontrol does, and notes what it is asked; slurmdbd is away."""

    def __init__(self, **shown: str) -> None:
        self.shown = {**SHOWN, **shown}
        self.asked: list[tuple[str, ...]] = []

    def __call__(self, *words: str, timeout_s: float = 0) -> str:
        self.asked.append(words)
        if words[0] == "sacctmgr":
            raise Unreachable(f"slurmdbd is away, asked for {timeout_s} s")
        return self.shown[words[-1]]


def test_jobs_are_read_before_nodes_and_nothing_else_is_asked_without_accounts() -> None:
    slurm = Slurm()
    seen = ScontrolState(print, ask=slurm).observe()
    assert [words[-1] for words in slurm.asked] == ["config", "job", "node", "reservation", "partition"]
    assert all(words[0] == "scontrol" and words[-2] == "show" for words in slurm.asked)
    assert [(job.id, job.user, job.allocated) for job in seen.jobs] == [(1, "alice", ()), (2, "alice", ("c1",))]
    assert ([each.name for each in seen.nodes], [each.name for each in seen.partitions]) == (["c1"], ["main"])
    assert (seen.has_priorities, seen.backfill, seen.reservations) == (True, Backfill(3600, 10), ())


def test_with_accounts_it_goes_on_when_slurmdbd_is_away() -> None:
    kept = samples.CONFIG.replace("Type   = (null)", "Type   = accounting_storage/slurmdbd", 1)
    told: list[str] = []
    seen = ScontrolState(told.append, ask=Slurm(config=kept)).observe()
    assert len(seen.jobs) == 2
    assert "slurmdbd is away" in told[0]


def test_a_look_that_shows_no_nodes_is_no_look() -> None:
    hidden = samples.CONFIG.replace("= none\nSchedulerP", "= nodes\nSchedulerP")
    with pytest.raises(Unreachable, match="PrivateData hides them"):
        ScontrolState(print, ask=Slurm(node="", config=hidden)).observe()


@pytest.mark.parametrize(
    ("fields", "asked"),
    [
        ({"NumNodes": "2-4"}, "range of nodes"),
        ({"NtasksPerN:B:S:C": "0:0:2:*"}, "tasks per board, socket, core"),
        ({"NtasksPerN:B:S:C": "0:0:*:1"}, "tasks per board, socket, core"),
        ({"CoreSpec": "1"}, "specialised cores"),
        ({"ThreadSpec": "2"}, "specialised cores"),
        ({"Network": "sn_all"}, "network"),
        ({"NtasksPerTRES": "2"}, "tasks per gpu"),
        ({"Reboot": "1"}, "reboot"),
        ({"BatchFeatures": "ib"}, "constraint"),
        ({"SpreadJob": "Yes"}, "spread job"),
        ({"Comment": "sns:off"}, "sns:off"),
    ],
)
def test_what_only_the_submit_filter_looks_at_is_left_to_slurm_here_too(fields: dict[str, str], asked: str) -> None:
    (job,) = ScontrolState(print, ask=Slurm(job=samples.job(**fields))).observe().jobs
    assert job.asks_for == (asked,)


def test_the_site_is_as_sns_draft_takes_it() -> None:
    state = ScontrolState(print, ask=Slurm())
    with pytest.raises(Unreachable, match="nothing has been observed"):
        state.site(None)
    site = state.site(state.observe())
    assert (site.user, site.memory_per_cpu_mb, site.default_partition) == ("slurm", 4500, "main")
    assert (site.has_priorities, site.keeps_accounts, site.has_boost) == (True, False, True)
