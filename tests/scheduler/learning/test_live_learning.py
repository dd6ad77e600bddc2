"""Profiles are learnt live from jobs that run anyway; the cluster and its agents are emulated."""

from dataclasses import replace

import pytest
from emulated import CORES, GBPS, MEMORY_MB, RULES, SNS, WAYS, Cluster, cluster
from fake_slurm import Crash
from live import ENFORCE

from slurm_sns.model import Resources
from slurm_sns.policies.base import NodeType, Request
from slurm_sns.policies.profile import Program, Provenance, Provenances, Run
from slurm_sns.policies.spread_n_share.classify import ProgramClass, classify
from slurm_sns.policies.spread_n_share.exploration import Exploration
from slurm_sns.policies.spread_n_share.learning import LearnableJob, Learning
from slurm_sns.scheduler.learning import conclusions as concluding
from slurm_sns.scheduler.learning.values import FAILURE_S, MOST_FAILURES, REPORTS_WAIT_S, REPROFILE_PAUSE_S, RunOutcome
from slurm_sns.sim.profiling.learning_cluster import Laboratory, Truth
from slurm_sns.wire.values import Point, RunId, RunReport

TRUE = Provenances(Provenance.MEASURED, Provenance.MEASURED, Provenance.MEASURED)
PRINTED = Provenances(Provenance.PRINTED, Provenance.PRINTED, Provenance.PRINTED)


def program(name: str, times_s: dict[int, float], ipc: tuple[float, ...], gbps: tuple[float, ...]) -> Program:
    """A program of 16 processes, with curves at 2, 4, 8 and 20 ways."""
    curves = ((2, 4, 8, 20), ipc, gbps, TRUE)
    return Program(name, tuple(Run(16, scale, time_s, *curves) for scale, time_s in times_s.items()))


#: It scales, bound by bandwidth; it spreads badly, and needs the cache; it does neither.
MG = program("mg", {1: 100.0, 2: 60.0, 4: 40.0}, (0.9, 0.95, 0.98, 1.0), (110.0, 105.0, 101.0, 100.0))
BFS = program("bfs", {1: 100.0, 2: 150.0, 4: 300.0}, (0.3, 0.5, 0.7, 1.0), (9.0, 6.0, 4.0, 2.0))
EP = program("ep", {1: 100.0, 2: 100.0, 4: 100.0}, (1.0, 1.0, 1.0, 1.0), (0.1, 0.1, 0.1, 0.1))
TRUTH = {each.name: each for each in (MG, BFS, EP)}


@pytest.fixture
def site() -> Cluster:
    return cluster(TRUTH)


def explore(site: Cluster, name: str) -> list[tuple[int, bool]]:
    """Run jobs of the program until one does not explore; scale and sampling of those that did."""
    steps = []
    for _ in range(20):
        number = site.run(name)
        started = [line for line in site.site.log if line.startswith(f"job {number}: placed")]
        if not any("explores" in line for line in started):
            return steps
        steps.append((site.nodes_of(number), site.grant_of(number).samples))
    raise AssertionError("exploration does not end")


@pytest.mark.parametrize(
    ("name", "steps", "kind"),
    [
        ("mg", [(1, False), (1, True), (2, False), (2, True), (4, False), (4, True)], ProgramClass.SCALING),
        ("bfs", [(1, False), (1, True), (2, False)], ProgramClass.COMPACT),
        ("ep", [(1, False), (1, True), (2, False), (2, True), (4, False), (4, True)], ProgramClass.NEUTRAL),
    ],
)
def test_an_unknown_program_is_explored_on_empty_nodes_until_its_class_is_known(site, name, steps, kind) -> None:
    assert explore(site, name) == steps
    learnt = site.profile(name)
    assert classify(learnt.at(16), SNS).kind is kind
    for scale, run in learnt.at(16).items():
        true = TRUTH[name].at(16)[scale]
        assert run.time_s == pytest.approx(true.time_s)
        if run.provenance.ipc is Provenance.MEASURED:
            assert run.ipc == pytest.approx(true.ipc)
            assert run.bandwidth_gbps == pytest.approx(true.bandwidth_gbps)


@pytest.mark.parametrize("name", TRUTH)
def test_what_is_learnt_live_is_what_the_simulators_laboratory_learns_without_errors(site, name) -> None:
    explore(site, name)
    capacity = Resources(CORES, MEMORY_MB, WAYS, GBPS)
    laboratory = in_the_laboratory(name, (NodeType(capacity, 4),))
    live, simulated = site.known(name), laboratory.of((name, 16))
    assert live.current.keys() == simulated.current.keys()
    for scale, evidence in simulated.current.items():
        found = live.current[scale]
        assert found.time_s.mean == pytest.approx(evidence.time_s.mean)
        for of_live, of_simulation in ((found.ipc, evidence.ipc), (found.bandwidth_gbps, evidence.bandwidth_gbps)):
            means = {ways: each.mean for ways, each in of_live.items()}
            assert means == pytest.approx({ways: each.mean for ways, each in of_simulation.items()})
    assert [(run.scale, run.provenance) for run in live.profile().runs] == [
        (run.scale, run.provenance) for run in simulated.profile().runs
    ]


def in_the_laboratory(name: str, types: tuple[NodeType, ...]) -> Learning:
    """What the simulator's laboratory learns of the program from jobs that take each step which they are offered."""
    truth = Truth(TRUTH, nearest=False, spread=0.0, seed=1)
    laboratory = Laboratory(truth, Learning(Exploration(SNS), types, can_run=truth.has))
    for number in range(20):
        job = LearnableJob(number, (name, 16), Request(16, memory_per_cpu_mb=1000))
        offer = laboratory.learning.offers([job])[number]
        if offer.step is None:
            return laboratory.learning
        laboratory.learning.started(job, offer.step)
        laboratory.observe(job, offer.alternatives[0])
    raise AssertionError("exploration does not end")


def test_from_then_on_the_program_is_spread_or_packed_by_what_was_measured(site) -> None:
    explore(site, "mg")
    assert site.nodes_of(site.run("mg")) == 4, "it is fastest there"
    explore(site, "ep")
    first, second = site.slurm.run_program("ep"), site.slurm.run_program("ep", 8)
    site.until_done(first, second)
    assert site.nodes_of(first) == 1


def test_the_reason_of_an_exploring_start_says_what_it_explores(site) -> None:
    site.run("mg")
    (start,) = (start for _, plan, *_ in site.site.decisions.cycles for start in plan.starts)
    assert start.reason.endswith("explores mg with 16 processes at scale 1: it is timed")
    assert start.alternative.exclusive


def test_a_program_is_learnt_from_tasks_that_were_placed_straight_from_their_arrays_record(site) -> None:
    site.slurm.submit_array("0-9", 16, words="program=bfs", cpus=16)
    for _ in range(400):
        site.cycle(5.0)
    assert len(site.slurm.ended) == 10
    assert site.profile("bfs").at(16)[1].ipc == pytest.approx(BFS.at(16)[1].ipc)
    assert (site.learnt.state.runs, site.learnt.state.reports) == ({}, {})


# A restart of the scheduler


def test_a_restart_of_the_scheduler_in_every_cycle_changes_nothing(site) -> None:
    explore(site, "mg")
    other = cluster(TRUTH)
    cycle = Cluster.cycle

    def restarted_cycle(seconds: float = 1.0) -> None:
        other.restart()
        cycle(other, seconds)

    other.cycle = restarted_cycle
    assert explore(other, "mg") == [(1, False), (1, True), (2, False), (2, True), (4, False), (4, True)]
    assert other.known("mg") == site.known("mg")
    assert other.learnt.state.runs == other.learnt.state.reports == {}


@pytest.mark.long
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("at", range(12))
def test_a_crash_at_any_change_of_the_store_loses_nothing_and_counts_nothing_twice(site, at: int, after: bool) -> None:
    save, calls = site.learnt.save, []

    def crash(changes) -> None:
        calls.append(changes)
        if len(calls) == at + 1:
            if after:
                save(changes)
            raise Crash
        save(changes)

    site.learnt.save = crash
    cycle = Cluster.cycle

    def cycle_or_restart(seconds: float = 1.0) -> None:
        try:
            cycle(site, seconds)
        except Crash:
            site.restart()

    site.cycle = cycle_or_restart
    numbers = [site.run("mg") for _ in range(6)]
    site.cycle()
    assert len(calls) > at
    assert [site.nodes_of(number) for number in numbers] == [1, 1, 2, 2, 4, 4]
    known = site.known("mg")
    assert [each.time_s.count for each in known.current.values()] == [1, 1, 1]
    assert known.is_explored


def test_while_the_store_is_away_jobs_are_placed_and_reports_stay_with_the_agents(site) -> None:
    first = site.slurm.run_program("mg")
    site.cycle()
    site.learnt.broken = True
    site.until_done(first)
    for _ in range(10):
        site.cycle(5.0)
    assert site.slurm.agents.acknowledged == []
    assert "cannot be written: disk I/O error" in site.scheduler.trouble
    second = site.slurm.run_program("ep")
    site.until_done(second)
    assert site.nodes_of(second) == 1, "placed all the same"
    site.learnt.broken = False
    site.cycle()
    assert not site.scheduler.trouble
    assert site.known("mg").current[1].time_s.mean == pytest.approx(100.0)


# Reports


def test_doubled_and_late_reports_count_once(site) -> None:
    site.slurm.agents.doubles = True
    for _ in range(6):
        site.run("mg")
    for _ in range(5):
        site.cycle()
    known = site.known("mg")
    assert [each.time_s.count for each in known.current.values()] == [1, 1, 1]
    assert {each.count for evidence in known.current.values() for each in evidence.ipc.values()} == {1}
    assert site.learnt.state.reports == {}


def test_reports_of_runs_that_nobody_knows_are_acknowledged_and_forgotten(site) -> None:
    number = site.slurm.run_program("mg")
    site.cycle()
    stranger = replace(report_of(RunId(77, 0), "c1"), ended_s=1.0)
    elsewhere = report_of(RunId(number, 0), "c9")
    again = report_of(RunId(number, 3), "c1")
    site.slurm.agents.waiting += [stranger, elsewhere, again]
    site.cycle()
    assert site.slurm.agents.waiting == []
    assert site.learnt.state.reports == {}
    assert set(site.slurm.agents.acknowledged) == {stranger.key, elsewhere.key, again.key}


def report_of(run: RunId, node: str) -> RunReport:
    return RunReport(run, node, 0.0, 10.0, was_alone=True, points=(Point(20, 10.0, 1.0, 50.0),))


def test_a_node_that_does_not_report_in_time_leaves_the_step_to_the_next_job(site) -> None:
    for _ in range(2):
        site.run("mg")
    timed = site.slurm.run_program("mg")
    site.cycle()
    silent = site.slurm.jobs[timed].pinned_to[0]
    site.slurm.agents.away.add(silent)
    site.until_done(timed)
    run = site.learnt.state.runs[RunId(timed, 0)]
    assert run.outcome is RunOutcome.SUCCEEDED
    assert len(site.learnt.state.reports[run.run]) == 1
    for _ in range(int(REPORTS_WAIT_S) // 5 + 2):
        site.cycle(5.0)
    assert site.learnt.state.runs == {}
    site.slurm.agents.away.clear()
    site.cycle()
    assert site.slurm.agents.waiting == [], "it is told to forget the report, which comes too late"
    assert 2 not in site.known("mg").current
    assert site.nodes_of(site.run("mg")) == 2
    assert site.known("mg").current[2].time_s.mean == pytest.approx(60.0)


def test_the_step_of_a_run_that_has_ended_is_not_run_again_before_its_reports_had_time_to_come(site) -> None:
    first = site.slurm.run_program("mg")
    site.cycle()
    (node,) = site.slurm.jobs[first].pinned_to
    site.slurm.agents.away.add(node)
    site.until_done(first)
    second = site.slurm.run_program("mg")
    site.cycle()
    assert not site.site.views[-1].situation.explorations.offered
    site.slurm.agents.away.clear()
    site.until_done(second)
    assert not site.grant_of(second).has_nodes_alone
    third = site.run("mg")
    assert site.grant_of(third).samples, "the first one was timed"


def test_nodes_that_report_while_slurm_still_shows_the_job_are_heard(site) -> None:
    number = site.slurm.run_program("mg")
    site.cycle(5.0)
    (node,) = site.slurm.jobs[number].allocated
    site.slurm.agents.waiting.append(replace(report_of(RunId(number, 0), node), ran_s=98.0))
    site.cycle()
    assert site.learnt.state.reports[RunId(number, 0)].keys() == {node}
    assert (number, 0) not in [key[:2] for key in site.learnt.state.learnt]
    site.until_done(number)
    assert site.known("mg").current[1].time_s.mean == 98.0, "the first report of a node counts"


# Runs that give no measurement


def test_a_run_that_fails_gives_nothing_and_after_two_the_scale_is_left_alone_for_a_day(site) -> None:
    for attempt in range(MOST_FAILURES):
        number = site.slurm.run_program("mg")
        site.slurm.fails.add(number)
        site.until_done(number)
        assert not site.grant_of(number).samples
        failures = site.learnt.state.learnt["mg", 16].failures
        assert (failures[1].runs, site.known("mg").current) == (attempt + 1, {})
    ordinary = site.slurm.run_program("mg")
    site.cycle()
    assert site.site.views[-1].situation.explorations.offered == {}
    site.until_done(ordinary)
    site.slurm.step(FAILURE_S + 1)
    site.run("mg")
    assert site.known("mg").current[1].is_timed


def test_a_job_beside_another_one_gives_no_run_time(site) -> None:
    number = site.slurm.run_program("mg")
    site.cycle(5.0)
    site.slurm.shared.add(number)
    site.until_done(number)
    assert site.known("mg").current == {}
    assert site.learnt.state.learnt["mg", 16].failures[1].runs == 1


def test_a_suspended_run_gives_no_run_time(site) -> None:
    number = site.slurm.run_program("mg")
    site.cycle(5.0)
    site.slurm.suspend(number)
    site.cycle()
    site.slurm.resume(number)
    site.until_done(number)
    assert site.known("mg").current == {}


def test_a_requeued_run_gives_nothing_and_the_next_run_of_the_job_does(site) -> None:
    number = site.slurm.run_program("mg")
    site.cycle(5.0)
    site.slurm.requeue_by_force(number)
    site.slurm.agents.waiting.append(replace(report_of(RunId(number, 0), "c1"), ran_s=5.0))
    site.until_done(number)
    assert site.known("mg").current[1].time_s.mean == pytest.approx(100.0)
    assert site.learnt.state.learnt["mg", 16].failures == {}
    assert {each[0] for each in site.slurm.agents.acknowledged} == {number}


def test_a_placement_that_is_taken_back_leaves_its_step_to_be_offered_again(site) -> None:
    site.slurm.starts_nothing = True
    number = site.slurm.run_program("mg")
    site.cycle()
    assert RunId(number, 0) in site.learnt.state.runs
    site.cycle(ENFORCE.place_timeout_s + 1)
    site.cycle()
    site.cycle()
    assert site.learnt.state.runs == {}
    site.slurm.starts_nothing = False
    site.slurm.sleep(ENFORCE.backoff_s)
    site.until_done(number)
    assert site.known("mg").current[1].is_timed


def test_a_program_that_ends_before_all_ways_were_sampled_is_not_sampled(site) -> None:
    site.run("mg")
    site.slurm.agents.report = cut_short(site.slurm.agents.report, site.slurm.agents)
    site.run("mg")
    assert not site.known("mg").current[1].is_sampled
    assert site.learnt.state.learnt["mg", 16].failures[1].runs == 1


def cut_short(report, agents):
    """Reports without what was measured with all ways."""

    def shortened(*values, **named) -> None:
        report(*values, **named)
        agents.waiting = [replace(each, points=each.points[:-1]) for each in agents.waiting]

    return shortened


# Drift and re-measurement


def test_a_program_that_changes_is_measured_again_and_the_old_profile_serves_meanwhile(site) -> None:
    explore(site, "bfs")
    old = site.profile("bfs")
    site.slurm.agents.changed["bfs"] = 1.5
    for _ in range(2):
        site.run("bfs")
        assert site.known("bfs").renewal is None
    site.run("bfs")
    assert site.known("bfs").renewal == {}
    assert site.known("bfs").current[1].time_s.mean == pytest.approx(100.0), "strange runs are not added to it"
    timed = site.run("bfs")
    assert site.profile("bfs") == old
    assert (site.nodes_of(timed), site.known("bfs").renewal[1].time_s.mean) == (1, pytest.approx(150.0))
    explore(site, "bfs")
    assert site.known("bfs").renewal is None
    assert site.profile("bfs").at(16)[1].time_s == pytest.approx(150.0)


def test_one_ordinary_run_ends_a_row_of_strange_ones(site) -> None:
    explore(site, "bfs")
    for changed in (1.5, 1.5, 1.0, 1.5, 1.5):
        site.slurm.agents.changed["bfs"] = changed
        site.run("bfs")
    assert (site.known("bfs").strange, site.known("bfs").renewal) == (2, None)


def test_without_exploration_runs_are_watched_and_nothing_is_measured_again() -> None:
    site = cluster(TRUTH, rules=replace(RULES, explore=False))
    site.site.profiles.programs = {"bfs": BFS}
    site.slurm.agents.changed["bfs"] = 1.5
    for _ in range(5):
        site.run("bfs")
    assert (site.known("bfs").strange, site.known("bfs").renewal) == (5, None)
    assert site.profile("bfs") == BFS


def test_an_unknown_program_is_not_explored_without_exploration() -> None:
    site = cluster(TRUTH, rules=replace(RULES, explore=False))
    numbers = [site.run("mg") for _ in range(3)]
    assert [site.grant_of(number).has_nodes_alone for number in numbers] == [False] * 3
    assert site.known("mg").profile() is None
    assert site.known("mg").current[1].time_s.count == 3, "they happened to be alone"


def test_an_ordinary_run_that_happens_to_be_alone_is_a_measurement_too(site) -> None:
    explore(site, "bfs")
    before = site.known("bfs").current[1]
    site.run("bfs")
    after = site.known("bfs").current[1]
    assert after.time_s.count == before.time_s.count + 1
    assert after.ipc[20].count == before.ipc[20].count + 1
    assert after.ipc[2].count == before.ipc[2].count


def test_an_owner_has_a_program_measured_again_once_in_a_while_and_once_for_a_job(site) -> None:
    explore(site, "bfs")
    old = site.profile("bfs")
    first = site.run("bfs", reprofile=True)
    assert not site.grant_of(first).samples
    assert site.grant_of(first).has_nodes_alone
    assert site.profile("bfs") == old
    assert set(site.known("bfs").renewal) == {1}
    explore(site, "bfs")
    assert site.known("bfs").renewal is None
    site.run("bfs", reprofile=True)
    assert site.known("bfs").renewal is None, "it was measured again a moment ago"
    site.slurm.step(REPROFILE_PAUSE_S + 1)
    site.run("bfs", reprofile=True)
    assert site.known("bfs").renewal is not None


def test_nobody_begins_the_re_measurement_of_an_unknown_program(site) -> None:
    site.run("mg", reprofile=True)
    assert site.known("mg").renewal is None
    assert site.known("mg").current[1].is_timed


def test_an_imported_profile_serves_until_measured_evidence_is_complete_and_is_kept(site) -> None:
    printed = tuple(replace(run, time_s=3 * run.time_s, provenance=PRINTED) for run in BFS.runs)
    imported = Program("bfs", printed, "a paper")
    site.site.profiles.programs = {"bfs": imported}
    number = site.run("bfs")
    assert not site.learnt.state.learnt["bfs", 16].known.current.get(2)
    assert site.profile("bfs") == imported
    assert not site.grant_of(number).samples
    site.run("bfs", reprofile=True)
    site.run("bfs")
    assert site.profile("bfs") == imported
    explore(site, "bfs")
    assert site.profile("bfs").at(16)[1].time_s == pytest.approx(100.0)
    assert site.profile("bfs").source == "measured here"
    assert site.site.profiles.programs == {"bfs": imported}


# What exploration may cost


def test_exploring_runs_hold_at_most_the_nodes_that_the_site_allows() -> None:
    site = cluster(TRUTH, nodes=4, rules=replace(RULES, most_nodes=0.5))
    numbers = [site.slurm.run_program(name) for name in ("mg", "bfs", "ep") for _ in range(6)]
    most = 0
    for _ in range(900):
        site.cycle(5.0)
        held = sum(len(run.nodes) for run in site.learnt.state.runs.values() if run.explores_now)
        most = max(most, held)
        if set(numbers) <= set(site.slurm.ended):
            break
    assert most == 2
    for _ in range(20):
        site.run("mg")
    assert set(site.known("mg").current) == {1, 2}, "scale 4 needs more nodes than it allows"
    assert site.known("mg").is_explored


def test_a_small_site_may_explore_on_one_node() -> None:
    site = cluster(TRUTH, nodes=2, rules=replace(RULES, most_nodes=0.01))
    site.run("mg")
    assert site.known("mg").current[1].is_timed


def test_the_job_that_the_limit_keeps_from_exploring_says_so_and_runs_as_it_would_without(site) -> None:
    site = cluster(TRUTH, nodes=4, rules=replace(RULES, most_nodes=0.25))
    first, second = site.slurm.run_program("mg"), site.slurm.run_program("bfs")
    site.cycle()
    assert site.site.views[-1].situation.explorations.not_offered == {
        second: "exploring runs hold 1 nodes; learning.most_nodes allows 1 at a time, and it would need 1"
    }
    site.until_done(first, second)
    assert not site.grant_of(second).has_nodes_alone


def test_one_job_of_a_program_explores_and_the_others_run_as_without_a_profile(site) -> None:
    first, second = site.slurm.run_program("mg"), site.slurm.run_program("mg")
    site.cycle()
    assert set(site.site.views[-1].situation.explorations.offered) == {first}
    assert site.site.views[-1].situation.explorations.not_offered == {second: "another job explores its program"}
    site.until_done(first, second)
    assert (site.grant_of(second).ways, site.grant_of(second).has_nodes_alone) == (0, False)


@pytest.mark.parametrize(
    "facts",
    [
        {"mode": "observe"},
        {"ways": 0, "why_unpartitioned": "resctrl is not mounted"},
        {"measures_ipc": False},
        {"measures_bandwidth": False},
        None,
    ],
)
def test_nothing_explores_on_a_node_whose_agent_is_away_or_cannot_measure(site, facts: dict | None) -> None:
    agents = site.slurm.agents
    if facts is None:
        agents.away.update({"c1", "c2", "c4"})
    else:
        agents.facts |= dict.fromkeys(("c1", "c2", "c4"), facts)
    first, second = site.slurm.run_program("mg"), site.slurm.run_program("bfs")
    site.cycle()
    assert site.slurm.jobs[first].pinned_to == ("c3",)
    why = site.site.views[-1].situation.explorations.not_offered[second]
    assert why == (
        "it would need 1 empty nodes whose agent partitions the cache and measures; it may use 0 such nodes now"
    )
    site.until_done(first, second)
    assert not site.grant_of(second).has_nodes_alone


def test_jobs_of_every_kind_run_without_agents_as_they_did_before_there_were_any(site) -> None:
    site.slurm.agents.away.update(site.slurm.cores)
    numbers = [site.slurm.run_program(name) for name in TRUTH]
    site.until_done(*numbers)
    assert {site.grant_of(number).has_nodes_alone for number in numbers} == {False}


# What users can write


@pytest.mark.parametrize(
    "fields",
    [
        {"words": "alpha=0.9", "name": "rm -rf / ; \x1b[31m"},
        {"words": "alpha=0.9", "name": "a" * 65},
        {"words": "alpha=0.9", "name": ""},
        {"words": "alpha=0.9", "name": "mg\nsns:1 program=cg"},
        {"words": "alpha=0.9", "name": "pr\u00f6gramm"},
        {"name": "mg"},
        {"words": "program=mg fixed", "nodes_min": 1},
    ],
)
def test_nothing_is_learnt_from_a_job_whose_program_has_no_name_or_whose_nodes_are_fixed(site, fields: dict) -> None:
    site.slurm.submit(16, cpus=16, **fields)
    site.until_done(1)
    assert (site.learnt.state.learnt, site.learnt.saved) == ({}, [])


def test_a_flood_of_names_forgets_unexplored_programs_and_no_complete_profile(site, monkeypatch) -> None:
    monkeypatch.setattr(concluding, "MOST_LEARNT", 3)
    explore(site, "bfs")
    truth = dict(site.slurm.agents.truth)
    for number in range(6):
        truth[f"x{number}"] = replace(EP, name=f"x{number}")
    site.slurm.agents.truth = truth
    for number in range(6):
        site.run(f"x{number}")
    assert set(site.learnt.state.learnt) == {("bfs", 16), ("x4", 16), ("x5", 16)}
    site.restart()
    assert site.site.log[-1] != "x"
    assert site.known("bfs").is_explored
