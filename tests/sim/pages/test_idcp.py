"""Reproductions of the paper on rescheduling: claims on results made by hand, the runs, and small pages."""

import csv
from dataclasses import replace
from math import inf, isnan
from pathlib import Path

import numpy as np
import pytest

from slurm_sns.model import Resources
from slurm_sns.policies.placement.node_arrays import NodeArrays, amounts
from slurm_sns.policies.rescheduling.parameters import OFF, ReschedulingParameters
from slurm_sns.sim.pages import FOLDERS
from slurm_sns.sim.pages.claims import ClaimEntry, PageClaims
from slurm_sns.sim.pages.judge import interval
from slurm_sns.sim.pages.page import reproduce, write
from slurm_sns.sim.pages.running import Options, WorkerProcesses
from slurm_sns.sim.replay.pool_replay import replay_pools
from slurm_sns.sim.trace import TraceArrays
from slurm_sns.sim.traces.nodes_csv import TraceSite
from sns_reproductions import idcp
from sns_reproductions.idcp import TAILS, VARIANTS, compared, quantities, table
from sns_reproductions.idcp_activities import run as activities
from sns_reproductions.idcp_beyond import run as beyond
from sns_reproductions.idcp_live import run as live
from sns_reproductions.idcp_suspension import run as suspension
from sns_reproductions.idcp_tables import run as tables

SEEDS = 3
TABLES, TAILS_PAGE, SUSPENSION, BEYOND, LIVE = (
    PageClaims.of(FOLDERS[f"idcp-{name}"]) for name in ("tables", "tails", "suspension", "beyond", "live")
)
PRINTED = TABLES.content.data["printed"]


def claims_on_tables(of):
    """The claims of the tables' page on these samples."""
    return TABLES.judge(tables.measured(of), {})


def near(page, reading, printed: float) -> tuple[float, float]:
    """The range of a printed number in a reading."""
    entry = ClaimEntry.model_validate({"of": "it", "reads": {reading: printed}})
    [claim] = replace(page, content=page.content.model_copy(update={"claims": (entry,)})).judge({"it": 0.0}, {})
    return claim.low, claim.high


def samples(**quantities: float) -> dict[str, np.ndarray]:
    """A variant with the same values for each seed."""
    return {name: np.full(SEEDS, amount, np.float64) for name, amount in quantities.items()}


def printed_table(column, **others: float) -> dict[str, np.ndarray]:
    """A variant with the numbers of a printed column."""
    return samples(**column | others)


@pytest.fixture
def as_printed():
    """All variants of the claims as the paper prints them; what it does not print meets our targets."""
    half = samples(
        **PRINTED["half"],
        suspended_completion_min=1000,
        submitted_min=800,
        paired_with_min=1000,
        paired_without_min=1000,
    )
    others = {
        "high_min": 100,
        "suspensions": 50_000,
        "paired_without_min": 1800,
        "submitted_min": 310,
        "suspended_pct": 4.3,
    }
    without = printed_table(PRINTED["without"], **others, paired_with_min=1800)
    restarted = printed_table(PRINTED["with"], **{**others, "suspensions": 80_000}, paired_with_min=600)
    half_restarted = {**half, **samples(suspended_completion_min=290, completion_min=700, submitted_min=700)}
    readings = {"all": restarted, "suspended": restarted}
    halves = {"half-all": half_restarted, "half-suspended": half_restarted}
    return {"off": without, **readings, "off-half": half, **halves}


# --- claims


def test_a_printed_number_is_met_within_a_factor_of_one_and_a_half_with_the_same_sign():
    assert near(TABLES, "near", 30) == (20, 45)
    assert near(TABLES, "near", -30) == (-45, -20)
    assert near(TABLES, "near_pct", 30) == (20, 45)
    assert near(TABLES, "near_pct", -15) == (-22.5, -10)
    assert near(TABLES, "near_pct", -75) == (-inf, -50)


def test_the_printed_numbers_meet_all_claims_on_tables(as_printed):
    found = claims_on_tables(as_printed)
    assert (len(found), {claim.verdict for claim in found}) == (2 * (12 + 3) + 3, {"holds"})


def test_no_claim_holds_if_restarts_change_nothing_but_that_high_priority_jobs_do_not_suffer(as_printed):
    off = {name: as_printed["off-half" if "half" in name else "off"] for name in as_printed}
    restarts = [claim for claim in claims_on_tables(off) if "averages" in claim.measure]
    assert {claim.text for claim in restarts if claim.verdict == "holds"} == {
        "little or no adverse impact on high-priority jobs"
    }


def test_the_inputs_are_the_printed_column_without_restarts_beside_ours(as_printed):
    content = TABLES.content.model_copy(update={"tables": {"inputs": TABLES.content.tables["inputs"]}})
    rows = replace(TABLES, content=content).rows(content.data | {"samples": as_printed})["inputs"]
    assert [row[1] for row in rows] == [36_459, 97.3, 1432.6, 1824.6, 840_552, 305.6, 4.3, 42.3]
    assert [row[2].mean for row in rows] == pytest.approx([row[1] for row in rows])


def test_the_printed_reductions_meet_all_claims_on_tails():
    without, with_restarts = {}, {}
    for tail in TAILS_PAGE.content.data["tails"][:2]:
        for name in ("median", "late"):
            minutes, percent = tail[name]
            column, before = f"{tail['jobs']}_{name}_min", minutes / percent * 100
            without[column], with_restarts[column] = before, before + minutes
    paired = {"paired_with_min": 1, "paired_without_min": 1}
    without, with_restarts = samples(**without, **paired), samples(**with_restarts, **paired)
    found = TAILS_PAGE.judge(quantities({"off": without, "all": with_restarts, "suspended": with_restarts}), {})
    assert (len(found), {claim.verdict for claim in found}) == (16, {"holds"})
    texts = list(dict.fromkeys(claim.text for claim in found))
    assert texts[0] == "longest 5 % of all jobs: restarts lower the median by 602 min (25 %)"
    assert texts[-1] == "longest 5 % of suspended jobs: restarts lower the 95th percentile by 7154 min (48 %)"


def test_what_a_seed_does_not_have_leaves_the_claim_undecided(as_printed):
    as_printed["all"]["suspend_min"][1] = np.nan
    claim = next(each for each in claims_on_tables(as_printed) if "suspend time" in each.measure)
    assert isnan(claim.found.mean)
    assert claim.verdict == "cannot tell"


def test_quantities_of_two_variants():
    one, other = samples(high_min=90), samples(high_min=120)
    found = compared("all", one, other)
    assert found["all difference high_min"].tolist() == [-30] * SEEDS
    assert found["all change high_min"].tolist() == [-25] * SEEDS
    paired = samples(paired_with_min=60, paired_without_min=80)
    found = quantities({"off": paired, "all": paired})
    assert found["all paired_with_min"].tolist() == [60] * SEEDS
    assert found["all paired"].tolist() == [-25] * SEEDS
    assert "off paired" not in found


# --- runs


def test_each_variant_differs_from_its_baseline_in_nothing_that_concerns_a_replay_without_restarts():
    concerned = ("suspended_memory", "heuristic", "virtual_pool")
    for name, variant in VARIANTS.items():
        baseline = VARIANTS[variant.baseline]
        assert baseline.baseline == variant.baseline
        assert baseline.parameters.restart == OFF
        assert (variant.parameters.restart == OFF) == (name == variant.baseline)
        for each in ("halved", "workload", "is_fair", "is_common"):
            assert getattr(baseline, each) == getattr(variant, each)
        for each in concerned:
            assert getattr(baseline.parameters, each) == getattr(variant.parameters, each)
    assert VARIANTS["all"].parameters == replace(VARIANTS["suspended"].parameters, averages="all")


def test_half_of_the_machines_are_the_first_of_each_pool_and_at_least_one():
    pool_of = np.array([0, 1, 0, 1, 0, 2, 1, 0, 0])
    nodes = NodeArrays(tuple("abcdefghi"), np.arange(36).reshape(4, 9))
    half = idcp.halved(TraceSite(nodes, ("x", "y", "z"), pool_of))
    assert half.nodes.names == ("a", "b", "c", "f")
    assert half.pool_of.tolist() == [0, 1, 0, 2]
    assert half.nodes.capacity[0].tolist() == [0, 1, 2, 5]


def test_the_longest_are_the_last_5_percent_and_at_least_one():
    assert idcp.tail(np.arange(1.0, 201))[0] == 191
    assert idcp.tail(np.arange(1.0, 201))[-1] == 200
    assert idcp.tail(np.array([3.0, 7, 5]))[20] == 7
    assert idcp.tail(np.array([])) == []


def test_a_replay_without_restarts_is_its_own_pair_and_one_with_them_has_the_same_jobs():
    without, restarted = (idcp.run((0.02, 1, name)) for name in ("off", "all"))
    assert without["paired"]["jobs"] == restarted["paired"]["jobs"] == without["period"]["jobs_suspended"] > 0
    assert without["paired"]["with_s"] == without["paired"]["without_s"] == restarted["paired"]["without_s"]
    assert (without["paired"]["earlier_pct"], without["paired"]["later_pct"]) == (0, 0)
    assert restarted["paired"]["with_s"] < restarted["paired"]["without_s"]
    assert without["period"]["restarts_total"] == 0 < restarted["period"]["restarts_total"]
    assert without["work_core_s"] == restarted["work_core_s"]
    assert all(len(without["tails"][key]) == len(idcp.TAIL_SHARES) for key in TAILS.values())


def test_in_one_pool_for_all_the_same_jobs_complete_earlier():
    bound, common = (idcp.run((0.02, 1, name)) for name in ("off", "off-common"))
    assert [found["work_core_s"] for found in (bound, common)] == [bound["work_core_s"]] * 2
    assert common["submitted_s"]["all"] < bound["submitted_s"]["all"]
    assert common["period"]["suspensions_total"] < bound["period"]["suspensions_total"]


def test_a_mean_over_nothing_is_no_number():
    found = dict(idcp.run((0.02, 1, "off")))
    found["period"] = {**found["period"], "mean_suspend_s": None}
    found["tails"] = {**found["tails"], "suspended": []}
    of = table([found])
    assert isnan(of["suspend_min"][0])
    assert isnan(of["suspended_late_min"][0])
    assert of["suspended_completion_min"][0] == found["period"]["suspended_mean_completion_s"] / 60


# --- a year


def test_the_distribution_of_suspension_times_is_told_as_in_the_paper():
    found = suspension.distribution(np.array([100.0, 200, 300, 6000, 200_000]), SUSPENSION.content.data)
    assert found == {"median_s": 300, "long_pct": 40, "tail_pct": 20, "longest_s": 200_000}
    assert set(suspension.distribution(np.array([]), SUSPENSION.content.data).values()) == {None}


def test_each_suspension_of_a_job_counts_with_the_mean_of_that_job():
    assert suspension.each_suspension(np.array([600.0, 90]), np.array([3, 1])).tolist() == [200, 200, 200, 90]


def test_the_ten_weeks_begin_where_most_jobs_are_suspended_in_them():
    by_day = np.zeros(200, np.int64)
    by_day[[40, 120, 150]] = 5
    assert suspension.busiest(by_day) == 150 - suspension.FIGURE_2_DAYS + 1
    assert suspension.busiest(by_day[:30]) == 0


def test_a_number_that_no_seed_has_is_shown_as_none():
    data = SUSPENSION.content.data
    found = suspension.run_year((0.01, 12, 1), data)
    nothing = {**found, "weeks": suspension.distribution(np.array([]), data), "spells_h": []}
    shown = suspension.ours([nothing, nothing], [row[-1] for row in data["inputs"]])
    assert shown["weeks median_s"] == "none"
    assert shown["longest_spell_h"] == "none"
    assert shown["mean_utilisation_pct"] == interval([found["mean_utilisation_pct"]] * 2)


# --- activities


def test_an_estimate_is_the_mean_of_the_programs_runs_that_ended_in_the_day_before():
    day = 86_400
    trace = TraceArrays(
        np.arange(6),
        np.array([0, 0, 0, 100, day, day + 60]),
        np.array([10, 30, 50, 20, 20, 20]),
        priority=np.zeros(6, np.int64),
        program=np.array([0, 0, 1, 0, 0, 0]),
        programs=("a", "b"),
    )
    end = np.array([60, 100, 50, 2 * day, 2 * day, 2 * day])
    found = activities.estimates(trace, end, trace.priority == 0)
    assert np.isnan(found[:3]).all()
    assert found[3:].tolist() == [20, 20, 30]


# --- fair queueing


def test_activities_take_turns_by_their_virtual_clocks():
    """Each activity has one core of the two. Activity 0 floods the queue; the first job of activity 1 is second."""
    trace = TraceArrays(
        np.arange(5),
        np.array([0, 0, 0, 1, 30]),
        np.array([10, 10, 10, 10, 10]),
        cores=np.ones(5, np.int64),
        program=np.array([0, 0, 0, 1, 0]),
        programs=("a", "b"),
    )
    site = TraceSite(NodeArrays(("n",), amounts([Resources(2, 1024)])), ("p",), np.zeros(1, np.int64))

    assert idcp.fair_turns(site, trace).tolist() == [0, 2, 3, 1, 4]


def test_a_pool_serves_queued_jobs_of_equal_priority_by_their_turns():
    """One core. Job 0 runs; of the others the turns are 3, 1, 2."""
    count = 4
    trace = TraceArrays(
        np.arange(count),
        np.array([0, 1, 2, 3]),
        np.full(count, 10),
        cores=np.ones(count, np.int64),
        memory=np.ones(count, np.int64),
        priority=np.zeros(count, np.int64),
        pool=np.zeros(count, np.int64),
        allowed=np.zeros(count, np.int64),
        allowed_sets=np.ones((1, 1), np.bool_),
        program=np.zeros(count, np.int64),
        programs=("a",),
    )
    site = TraceSite(NodeArrays(("n",), amounts([Resources(1, 1024)])), ("p",), np.zeros(1, np.int64))
    parameters = ReschedulingParameters(restart="off")

    fair = replay_pools(site, trace, parameters, turns=np.array([0, 3, 1, 2]))
    plain = replay_pools(site, trace, parameters)

    assert fair.start.tolist() == [0, 30, 10, 20]
    assert plain.start.tolist() == [0, 10, 20, 30]


# --- pages


@pytest.fixture
def small(monkeypatch):
    """A very small site, and a short year."""
    monkeypatch.setattr(idcp, "QUICK_SCALE", 0.02)
    monkeypatch.setattr(live, "QUICK_SCALE", 0.02)
    monkeypatch.setattr(suspension, "QUICK_SCALE", 0.01)
    monkeypatch.setattr(suspension, "QUICK_DAYS", 20)


def options(out: Path, kept: Path, *, resume: bool = True) -> Options:
    return Options(out, seeds=2, quick=True, workers=WorkerProcesses(1), resume=resume, runs=kept)


@pytest.mark.usefixtures("small")
def test_pages_share_their_results_and_repeat_only_their_own_without_resume(tmp_path):
    kept = tmp_path / "kept"
    for name in ("tables", "tails"):
        _, seeds = reproduce(f"idcp-{name}", options(tmp_path / name, kept))
        assert seeds == 2
    before = {path: path.stat().st_mtime_ns for path in (kept / "idcp").iterdir()}
    assert len(before) == 2 * len(TABLES.content.data["variants"])
    text = (tmp_path / "tails" / "README.md").read_bytes()

    reproduce("idcp-tails", options(tmp_path / "again", kept, resume=False))
    after = {path: path.stat().st_mtime_ns for path in (kept / "idcp").iterdir()}
    changed = {path.name for path in before if after[path] != before[path]}
    assert changed == {f"0.02-{seed}-{name}.json" for seed in (1, 2) for name in ("off", "all", "suspended")}
    assert (tmp_path / "again" / "README.md").read_bytes() == text


@pytest.mark.usefixtures("small")
def test_the_page_of_activities_names_its_inputs(tmp_path):
    claims, _ = reproduce("idcp-activities", options(tmp_path, tmp_path / "kept"))
    assert [claim.is_input for claim in claims] == [True, True, False, False]
    assert (tmp_path / "figure-5.svg").stat().st_size > 1000


@pytest.mark.usefixtures("small")
def test_the_tables_show_what_is_published_beside_ours_and_name_the_inputs(tmp_path):
    reproduce("idcp-tables", options(tmp_path, tmp_path / "kept"))
    text = (tmp_path / "README.md").read_text()
    assert "| published, without restarts (input) | 36459 | 97.3 | 1432.6 |" in text
    assert "| without restarts (input) |" in text
    with (tmp_path / "inputs.csv").open() as file:
        rows = list(csv.reader(file))
    assert rows[0][1] == "published, without restarts (input)"
    assert len(rows) == 1 + 8
    with (tmp_path / "seeds.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 2 * len(TABLES.content.data["variants"])


@pytest.mark.usefixtures("small")
def test_sentences_have_the_numbers_of_this_run_and_what_it_does_not_show_is_not_said(tmp_path, as_printed):
    rest = dict.fromkeys(TABLES.content.data["shown"], 1.0) | {"high_min": 100.0}
    paired = {"paired_with_min": 600, "paired_without_min": 1800, "paired_earlier_pct": 90, "paired_later_pct": 4}
    variants = {
        name: samples(**rest | paired) | as_printed.get(name, {}) | samples(**paired)
        for name in TABLES.content.data["variants"]
    }

    def page(**changed: float) -> str:
        of = variants | {"off": variants["off"] | samples(**changed)}
        results = tables.results_of(options(tmp_path, tmp_path), of)
        write(tmp_path, TABLES, results)
        return (tmp_path / "README.md").read_text()

    more = page(suspended_completion_min=2000, suspensions=90_000, completed=1)
    assert "complete after 600.0 min instead of 1800.0 min; 90.0 % of them complete earlier and 4.0 % later" in more
    assert "ours for 567 min. A restart does not shorten this part, so our gain is smaller. This is" in more
    assert "Suspensions become fewer, though more jobs are suspended: a job that" in more
    assert "Fewer of all jobs complete" not in more
    less = page(suspended_completion_min=1500, suspensions=10_000)
    assert "Fewer of all jobs complete" in less
    assert "ours for 67 min. This is tested" in less
    assert "Suspensions become fewer" not in less


@pytest.mark.usefixtures("small")
def test_the_page_of_the_year_claims_nothing(tmp_path):
    claims, _ = reproduce("idcp-suspension", options(tmp_path, tmp_path / "kept"))
    assert claims == []
    assert "published (input of the calibration)" in (tmp_path / "README.md").read_text()
    assert not (tmp_path / "claims.csv").exists()
    assert {path.name for path in tmp_path.glob("*.png")} == {
        "figure-2.png",
        "figure-3-utilisation.png",
        "figure-3-suspended.png",
    }


@pytest.mark.usefixtures("small")
def test_what_each_change_adds_is_measured_in_both_readings(tmp_path):
    data = BEYOND.content.data
    data = data | {"changed": {key: data["changed"][key] for key in ("", "keeps-work", "freed")}}
    page = replace(BEYOND, content=BEYOND.content.model_copy(update={"data": data}))
    results = beyond.run(options(tmp_path, tmp_path / "kept"), data)
    [written] = results.tables
    rows = [dict(zip(written.header, row, strict=True)) for row in written.rows]
    assert [(row["no."], row["averages"]) for row in rows[:3]] == [(1, "all"), (1, "suspended"), (2, "all")]
    kept = rows[2]
    assert kept["wasted core-hours"].mean == 0 < rows[0]["wasted core-hours"].mean
    assert kept["all jobs, over the paper's rule, %"].mean < 0
    assert len(page.judge(results.quantities, results.fields)) == 2 * len(rows)
    assert {path.stem for path in tmp_path.glob("*.svg")} == {"all-jobs", "suspended-jobs", "high-priority-jobs"}


@pytest.mark.usefixtures("small")
def test_the_page_beyond_the_paper_judges_and_shows_every_change(tmp_path):
    claims, _ = reproduce("idcp-beyond", options(tmp_path, tmp_path / "kept"))
    assert len(claims) == 2 * 2 * len(BEYOND.content.data["changed"])
    text = (tmp_path / "README.md").read_text()
    assert all(f"| {told} | suspended |" in text for told in BEYOND.content.data["changed"].values())


@pytest.mark.usefixtures("small")
def test_the_page_of_live_limits_judges_each_rule_in_both_readings(tmp_path):
    claims, _ = reproduce("idcp-live", options(tmp_path, tmp_path / "kept"))
    data = LIVE.content.data
    assert len(claims) == 2 * (4 * len(data["rules"]) + len(data["over"]))
    rows = [line for line in (tmp_path / "README.md").read_text().splitlines() if "restarts |" in line]
    assert [sum(line.startswith(f"| {told} |") for line in rows) for told in data["sites"].values()] == [1] * 3
