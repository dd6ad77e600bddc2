"""Speeds of jobs that share a node, and running jobs timed anew when neighbours come and go."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_sns.config.profiles_yaml import read_profiles
from slurm_sns.model import Alternative, Job, Resources
from slurm_sns.policies.baselines.compact import compact_shared
from slurm_sns.policies.placement.node_arrays import NodeArrays, amounts
from slurm_sns.policies.profile import Provenance, Provenances, Run
from slurm_sns.policies.spread_n_share.node_choice import spread_n_share
from slurm_sns.policies.spread_n_share.parameters import REPRODUCTION
from slurm_sns.sim.engine.matching import Simulation
from slurm_sns.sim.progress.authors_model import AuthorsModel
from slurm_sns.sim.progress.contended import Contended
from slurm_sns.sim.progress.contention import Occupant, SharedNode, held_ways, partitioned, speeds, unpartitioned
from slurm_sns.sim.progress.progress import Fixed, PlacedRun
from slurm_sns.sim.traces.program_trace import TraceReader

SHIPPED = {
    program.name: program
    for program in read_profiles(Path(__file__).parents[3] / "conf" / "profiles" / "spread-n-share.yaml")
}
WAYS, PEAK = 20, 118.0
OWN_WAYS = SharedNode(WAYS, PEAK)
NO_SPARE = SharedNode(WAYS, PEAK, gives_spare=False)
ONE_CACHE = SharedNode(WAYS, PEAK, is_partitioned=False)
ASSUMED = Provenances(Provenance.ASSUMED, Provenance.ASSUMED, Provenance.ASSUMED)


def run(ipc=(1.0, 1.0), bandwidth=(0.0, 0.0), ways=(2, 20), time_s=100.0):
    return Run(16, 1, time_s, ways, ipc, bandwidth, ASSUMED)


def shipped(name, ways=0, cores=14):
    return Occupant(SHIPPED[name].at(16)[1], cores, ways)


def test_a_job_alone_with_all_ways_has_the_speed_of_its_profile():
    for name in SHIPPED:
        for node in (OWN_WAYS, ONE_CACHE):
            assert speeds((shipped(name, WAYS),), node) == (1.0,)


def test_fewer_ways_cost_what_the_curve_says():
    job = Occupant(run(ipc=(0.5, 1.0)), 4, 11)

    assert speeds((job,), NO_SPARE) == (0.75,)


def test_ways_that_nobody_owns_are_given_away_the_remainder_to_the_oldest():
    jobs = (shipped("ep", 2), shipped("mg", 3), shipped("hc", 2))

    assert partitioned(jobs, OWN_WAYS) == (7.0, 7.0, 6.0)
    assert sum(partitioned(jobs, OWN_WAYS)) == WAYS
    assert partitioned(jobs, NO_SPARE) == (2.0, 3.0, 2.0)


def test_a_shared_cache_belongs_to_who_fills_it():
    quiet, loud = Occupant(run(bandwidth=(1.0, 1.0)), 4), Occupant(run(bandwidth=(9.0, 9.0)), 4)

    assert unpartitioned((quiet, loud), ONE_CACHE) == pytest.approx((2.0, 18.0), abs=0.05)


def test_partitions_protect_a_program_that_lives_in_the_cache():
    beside = (shipped("bfs", 18), shipped("ep", 2))
    assert speeds(beside, OWN_WAYS)[0] >= 0.9 - 1e-3
    assert speeds((shipped("bfs"), shipped("mg")), ONE_CACHE)[0] < 0.6


def test_two_programs_that_fill_the_bandwidth_slow_each_other_down_and_one_that_needs_none_is_left_alone():
    both = speeds((shipped("mg", 10), shipped("lu", 10)), OWN_WAYS)
    calm = speeds((shipped("mg", 10), shipped("ep", 10)), OWN_WAYS)

    assert max(both) < 0.75
    assert min(calm) > 0.95


def test_a_node_without_ways_slows_nobody_down_by_its_cache():
    jobs = (shipped("bfs"), shipped("ep"))

    assert speeds(jobs, SharedNode.of(0, 0, is_partitioned=True)) == pytest.approx((1.0, 1.0), abs=1e-4)


@st.composite
def profiled(draw):
    ipc = sorted(draw(st.lists(st.floats(0.05, 2.0), min_size=3, max_size=3)))
    bandwidth = sorted(draw(st.lists(st.floats(0, 110.0), min_size=3, max_size=3)), reverse=True)
    return Occupant(run(tuple(ipc), tuple(bandwidth), (2, 8, 20)), draw(st.integers(1, 9)), draw(st.integers(2, 6)))


@given(st.lists(profiled(), min_size=1, max_size=3), st.sampled_from([OWN_WAYS, NO_SPARE, ONE_CACHE]))
def test_any_mix_shares_out_no_more_ways_than_there_are_and_nobody_is_faster_than_alone(jobs, node):
    ways = held_ways(tuple(jobs), node)

    assert sum(ways) <= WAYS + 1e-6
    for speed, job, held in zip(speeds(tuple(jobs), node), jobs, ways, strict=True):
        assert 0 < speed <= job.run.kept_at(held) + 1e-9


@given(st.lists(profiled(), min_size=2, max_size=3))
def test_a_neighbour_less_makes_nobody_slower_where_ways_are_owned(jobs):
    together = speeds(tuple(jobs), NO_SPARE)
    without = speeds(tuple(jobs[:-1]), NO_SPARE)

    assert all(now >= then - 1e-9 for now, then in zip(without, together[:-1], strict=True))


# --- timed anew


def node_arrays_of(count, ways=WAYS):
    return NodeArrays(
        tuple(f"n{at}" for at in range(count)), amounts([Resources(28, 128 * 1024, ways, int(PEAK))] * count)
    )


class Bench:
    """A cluster on which a test starts and ends jobs by hand."""

    def __init__(self, runs, work_s=1000.0, nodes=2, **options):
        self.runs = {at: {1: each} for at, each in enumerate(runs)}
        model = AuthorsModel(dict.fromkeys(self.runs, work_s), self.runs, REPRODUCTION)
        self.progress = Contended(node_arrays_of(nodes), model, **{"is_partitioned": True, **options})
        self.ends = {}

    def start(self, job, now_s, nodes=(0,), ways=10):
        way = Alternative(len(nodes), Resources(14, 1024, ways, 0))
        placed = PlacedRun(Job(job, 0, (way,)), way, np.array(nodes), now_s, now_s)
        self._note(self.progress.start(placed))

    def finish(self, job):
        self._note(self.progress.finish(self.ends.pop(job)))

    def _note(self, timed):
        self.ends |= {placed.job.id: placed for placed in timed}

    def end_s(self, job):
        return self.ends[job].end_s


HALF_AT_TEN = run(ipc=(0.5, 0.5, 1.0), bandwidth=(0.0, 0.0, 0.0), ways=(2, 10, 20))


def test_a_job_is_timed_anew_when_a_neighbour_comes_and_again_when_it_goes():
    bench = Bench([HALF_AT_TEN, HALF_AT_TEN])
    bench.start(0, 0)
    assert bench.end_s(0) == 1000  # alone it is given all ways

    bench.start(1, 400)
    assert bench.end_s(0) == 400 + 1200
    assert bench.end_s(1) == 400 + 2000

    bench.finish(0)
    assert bench.end_s(1) == 1600 + (1000 - 600)


def test_the_slowest_node_decides():
    bench = Bench([HALF_AT_TEN, HALF_AT_TEN])
    bench.start(0, 0, nodes=(0, 1))
    bench.start(1, 0, nodes=(1,))

    assert bench.end_s(0) == 2000


def test_jobs_without_profile_run_as_long_as_the_trace_says():
    bench = Bench([HALF_AT_TEN])
    bench.runs[7] = {}
    bench.progress._model.run_s[7] = 50.4
    bench.start(7, 10)

    assert bench.end_s(7) == 60
    bench.finish(7)


@given(st.data())
def test_the_integral_of_the_speed_is_the_work(data):
    count = data.draw(st.integers(1, 6))
    occupants = [data.draw(profiled()) for _ in range(count)]
    bench = Bench([each.run for each in occupants], work_s=500.0, is_partitioned=data.draw(st.booleans()))
    starts = sorted((data.draw(st.integers(0, 800)), job) for job in range(count))
    done, speed, since = dict.fromkeys(range(count), 0.0), {}, {}
    now_s, slots = 0, {}

    def pass_time(to_s):
        for job, at_speed in speed.items():
            done[job] += at_speed * (to_s - since[job])
            since[job] = to_s
        for job, running in bench.progress._running.items():
            speed[job] = running.speed
            since.setdefault(job, to_s)

    while starts or bench.ends:
        due = min((placed.end_s, 0, job) for job, placed in bench.ends.items()) if bench.ends else (10**9, 0, -1)
        if starts and starts[0][0] < due[0] and sum(on == 0 for on in slots.values()) < 3:
            at_s, job = starts.pop(0)
            now_s = max(now_s, at_s)
            slots[job] = 0
            pass_time(now_s)
            bench.start(job, now_s, ways=occupants[job].ways)
        else:
            now_s, _, job = due
            pass_time(now_s)
            # An end is rounded to a whole second, and a run has at least one.
            assert done[job] == pytest.approx(500.0, abs=1.0)
            del speed[job], slots[job]
            bench.finish(job)
        pass_time(now_s)


def mix(jobs=40, seed=1):
    lots = np.random.default_rng(seed)
    names = sorted(SHIPPED)
    lines = ["job_id,submit_s,run_s,program,processes"]
    lines += [
        f"{at},{int(lots.integers(0, 2000))},{int(lots.integers(50, 900))},{names[lots.integers(len(names))]},16"
        for at in range(jobs)
    ]
    return "\n".join(lines)


def simulate(policy, node_arrays, text, progress_of, tmp_path):
    path = tmp_path / "mix.csv"
    path.write_text(text)
    spread = TraceReader(node_arrays, policy, SHIPPED, REPRODUCTION).read(str(path))
    scheduler = spread_n_share(REPRODUCTION)
    progress = progress_of(node_arrays, spread.model)
    return Simulation(node_arrays, spread.trace, scheduler, queue_depth=1000, interval_s=1, progress=progress).run()


def test_where_nobody_shares_it_is_the_authors_model(tmp_path):
    """Under CE every job is alone on its nodes."""
    node_arrays, text = node_arrays_of(4), mix()

    def contended(node_arrays, model):
        return Contended(node_arrays, model, is_partitioned=True, gives_spare=False)

    fixed = simulate("ce", node_arrays, text, lambda _, model: Fixed(model), tmp_path)
    same = simulate("ce", node_arrays, text, contended, tmp_path)

    assert [(each.start_s, each.end_s) for each in same.placements] == [
        (each.start_s, each.end_s) for each in fixed.placements
    ]


def test_sharing_under_contention_is_slower_than_the_authors_model_says_and_loses_no_job(tmp_path):
    node_arrays, text = node_arrays_of(4), mix()

    def contended(node_arrays, model):
        return Contended(node_arrays, model, is_partitioned=True, gives_spare=False)

    fixed = simulate("sns", node_arrays, text, lambda _, model: Fixed(model), tmp_path)
    slower = simulate("sns", node_arrays, text, contended, tmp_path)

    assert len(slower.placements) == 40
    assert sum(each.end_s - each.start_s for each in slower.placements) > sum(
        each.end_s - each.start_s for each in fixed.placements
    )
    assert Counter(each.job.id for each in slower.placements).most_common(1)[0][1] == 1


def test_a_job_may_be_spread_further_than_its_profile_goes(tmp_path):
    """Under CS with 16 nodes; then it counts as at the largest scale that was measured."""
    node_arrays = node_arrays_of(16)
    jobs = "job_id,submit_s,run_s,program,processes\n" + "".join(f"{at},0,100,ep,16\n" for at in range(30))
    ep = replace(SHIPPED["ep"], runs=tuple(run for run in SHIPPED["ep"].runs if run.scale <= 2))
    path = tmp_path / "wide.csv"
    path.write_text(jobs)
    spread = TraceReader(node_arrays, "cs", {"ep": ep}, REPRODUCTION).read(str(path))
    progress = Contended(node_arrays, spread.model, is_partitioned=False)

    done = Simulation(
        node_arrays, spread.trace, compact_shared(), queue_depth=1000, interval_s=1, progress=progress
    ).run()

    assert max(placed.alternative.scale for placed in done.placements) > 2
    assert len(done.placements) == 30


def test_the_same_mix_gives_the_same_ends_twice(tmp_path):
    node_arrays, text = node_arrays_of(4), mix(seed=5)
    runs = [
        simulate(
            "sns",
            node_arrays,
            text,
            lambda node_arrays, model: Contended(node_arrays, model, is_partitioned=True),
            tmp_path,
        )
        for _ in range(2)
    ]

    assert [each.end_s for each in runs[0].placements] == [each.end_s for each in runs[1].placements]
