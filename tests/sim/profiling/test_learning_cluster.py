"""A cluster that begins without any profile and learns them from the jobs it runs."""

from collections import Counter

import pytest

from slurm_sns.policies.spread_n_share.classify import classify
from slurm_sns.policies.spread_n_share.exploration import Exploration
from slurm_sns.policies.spread_n_share.node_choice import spread_n_share
from slurm_sns.policies.spread_n_share.parameters import REPRODUCTION
from slurm_sns.sim.engine.matching import Simulation
from slurm_sns.sim.profiling.learning_cluster import LearningCluster, laboratory_of
from slurm_sns.sim.progress.progress import Fixed
from slurm_sns.sim.traces.program_trace import ProgramJob, TraceReader
from sns_reproductions.spread_n_share import cluster, shipped_programs

PROGRAMS = ("mg", "cg", "bfs", "ep", "hc")
ROUNDS = 12


@pytest.fixture(scope="module")
def ran():
    """Twelve rounds of five programs on eight nodes, the jobs 150 s apart: the laboratory afterwards, and the runs."""
    true = {name: shipped_programs()[name] for name in PROGRAMS}
    jobs = [
        ProgramJob(at, 150.0 * at, true[name].at(16)[1].time_s, name, 16, None)
        for at, name in enumerate(PROGRAMS * ROUNDS)
    ]
    node_arrays = cluster()
    laboratory = laboratory_of(node_arrays, true, Exploration(REPRODUCTION), spread=0.01, seed=3)
    spread = TraceReader(node_arrays, "sns", true, REPRODUCTION).of_programs("the rounds", jobs)
    both = LearningCluster(laboratory, spread_n_share(REPRODUCTION), Fixed(spread.model), jobs)
    outcome = Simulation(node_arrays, spread.trace, both, queue_depth=1000, interval_s=1, progress=both).run()
    return laboratory, outcome


def test_every_program_is_known_in_the_end_and_of_its_true_class(ran):
    laboratory, _ = ran
    for name in PROGRAMS:
        true = shipped_programs()[name]
        learnt = laboratory.of((name, 16)).profile()
        assert classify(learnt.at(16), REPRODUCTION).kind is classify(true.at(16), REPRODUCTION).kind


def test_no_step_is_run_twice_and_none_without_need(ran):
    laboratory, _ = ran
    assert Counter(laboratory.explored).most_common(1)[0][1] == 1
    scales = {name: [step.scale for (program, _), step in laboratory.explored if program == name] for name in PROGRAMS}
    assert scales["bfs"] == [1, 1, 2]  # slower on two nodes: that ends it, and its curves there are not needed
    full = [1, 1, 2, 2, 4, 4, 8, 8]  # as far as there were idle nodes
    assert len(scales["mg"]) >= 4
    assert scales["mg"] == full[: len(scales["mg"])]


def test_exploring_runs_are_alone_and_every_job_runs_once(ran):
    laboratory, outcome = ran
    assert len(outcome.placements) == len(PROGRAMS) * ROUNDS
    alone = sum(placed.alternative.exclusive for placed in outcome.placements)
    assert alone >= len(laboratory.explored)
    assert not laboratory.steps


def test_a_program_is_run_as_soon_as_it_is_known_at_scale_one(ran):
    _, outcome = ran
    shared = [placed for placed in outcome.placements if not placed.alternative.exclusive]
    assert {placed.job.id % len(PROGRAMS) for placed in shared} >= {PROGRAMS.index("mg"), PROGRAMS.index("ep")}
