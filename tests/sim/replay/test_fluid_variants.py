"""How a site may differ from the paper's model: caps, measured needs, limits, unequal nodes, time slices, requeues.

The ends are computed by hand. Needs are fractions of a node of `PARTS` units, and there is no penalty unless one is
named.
"""

from math import inf, nan

import numpy as np
import pytest

from slurm_sns.errors import BadInput
from slurm_sns.model import Resources
from slurm_sns.policies.dfrs.algorithms import (
    ALGORITHMS,
    GANG,
    GREEDY_RETRY_AT_EVENTS,
    SHARES,
    SHARES_LEAST_LOSS,
    Algorithm,
)
from slurm_sns.policies.placement.node_arrays import NodeArrays, amounts
from slurm_sns.sim.replay.fluid_replay import Requeues, SiteVariant, replay_fluid
from slurm_sns.sim.run import TraceRun
from slurm_sns.sim.trace import TraceArrays
from slurm_sns.sim.traces.fluid_trace import PARTS, whole_nodes

GREEDY, PMTN = ALGORITHMS["dfrs-greedy"], ALGORITHMS["dfrs-greedy-pmtn"]
EVERY = {**ALGORITHMS, "gang": GANG}
MINUTE = SiteVariant(apply_s=60)


def trace_of(*jobs: tuple[float, float, int, float, float]) -> TraceArrays:
    """Jobs of (submit, run time, tasks, CPU need, memory need), the needs as fractions of a node."""
    submit_s, run_s, tasks, cpu, memory = zip(*jobs, strict=True)
    return TraceArrays(
        np.arange(len(jobs)),
        np.array(submit_s, np.float64),
        np.array(run_s, np.float64),
        tasks=np.array(tasks, np.int64),
        cores=np.rint(np.array(cpu) * PARTS).astype(np.int64),
        memory=np.rint(np.array(memory) * PARTS).astype(np.int64),
    )


def nodes_of(*sizes: tuple[float, float]) -> NodeArrays:
    """Nodes of (CPU, memory), as multiples of those of the reference node."""
    names = tuple(f"n{at}" for at in range(len(sizes)))
    return NodeArrays(names, amounts([Resources(round(cpu * PARTS), round(memory * PARTS)) for cpu, memory in sizes]))


def random_trace(seed: int) -> TraceArrays:
    """Forty jobs for four nodes, so many at a time that jobs share nodes, wait and are paused."""
    random = np.random.default_rng(seed)
    submit_s, run_s = np.sort(random.integers(0, 3000, 40)), random.integers(1, 900, 40)
    tasks, needs = random.integers(1, 5, 40), random.integers(1, 11, (2, 40)) / 10
    return trace_of(*zip(submit_s.tolist(), run_s.tolist(), tasks.tolist(), *needs.tolist(), strict=True))


# --- caps at intervals

#: One node: job 0 alone, job 1 from 30 on.
PAIR = trace_of((0, 100, 1, 1, 0.1), (30, 20, 1, 1, 0.1))


def test_without_an_interval_new_caps_count_at_once():
    """Both have a yield of 0.5 from 30 to 70, then job 0 has the node."""
    assert replay_fluid(whole_nodes(1), PAIR, GREEDY).end_s.tolist() == [120, 70]


def test_new_caps_of_running_jobs_count_from_the_next_minute_on():
    """From 30 to 60 the old cap of 1 and the new one of 0.5 share the node in proportion: 2/3 and 1/3.

    At 60 the caps are 0.5 each; job 1 has 10 of its 20 seconds left and ends at 80. Job 0 keeps its cap of 0.5 until
    120, has done 80 by then, and ends at 140.
    """
    run = replay_fluid(whole_nodes(1), PAIR, GREEDY, variant=MINUTE)

    assert run.start_s.tolist() == [0, 30]
    assert run.end_s == pytest.approx([140, 80], abs=1e-6)


def test_an_event_at_the_minute_changes_the_caps_at_once():
    trace = trace_of((0, 100, 1, 1, 0.1), (60, 20, 1, 1, 0.1))

    plain, minute = (replay_fluid(whole_nodes(1), trace, GREEDY, variant=each) for each in (None, MINUTE))

    assert plain.end_s.tolist() == [120, 100]
    assert minute.end_s.tolist() == [130, 100]  # job 0 gets the whole node at 120, with 10 seconds left


def test_only_the_nodes_with_too_large_caps_are_shared_in_proportion():
    """Job 1 fills the memory of the second node and keeps all of its CPU; job 2 comes to the first node."""
    trace = trace_of((0, 100, 1, 1, 0.5), (0, 100, 1, 1, 1), (30, 20, 1, 1, 0.5))
    run = replay_fluid(whole_nodes(2), trace, GREEDY, variant=MINUTE)

    assert run.end_s == pytest.approx([140, 100, 80], abs=1e-6)


def test_a_job_on_several_nodes_is_as_slow_as_on_the_fullest_of_them():
    """Job 0 is on both nodes, job 1 comes to the first: job 0 has 2/3 of both until 60, as in the case of one node."""
    trace = trace_of((0, 100, 2, 1, 0.1), (30, 20, 1, 1, 0.1))

    assert replay_fluid(whole_nodes(2), trace, GREEDY, variant=MINUTE).end_s == pytest.approx([140, 80], abs=1e-6)


def test_jobs_that_start_or_resume_get_their_caps_at_once():
    """Job 1 needs all of the memory: job 0 is paused from 30 to 50."""
    trace = trace_of((0, 100, 1, 1, 1), (30, 20, 1, 1, 1))

    for variant in (None, MINUTE):
        run = replay_fluid(whole_nodes(1), trace, PMTN, variant=variant)
        assert run.end_s.tolist() == [120, 50]
        assert run.preemptions.tolist() == [1, 0]


def test_jobs_that_move_get_their_caps_at_once():
    """Job 0 is on half a node. Job 1 has the whole one until 30; then job 0 moves there, with 85 s left."""
    trace = trace_of((0, 100, 1, 1, 1), (0, 30, 1, 1, 1))

    for variant in (None, MINUTE):
        run = replay_fluid(nodes_of((1, 1), (0.5, 1)), trace, ALGORITHMS["dfrs-dynmcb8"], variant=variant)
        assert run.end_s.tolist() == [115, 30]
        assert run.migrations.tolist() == [1, 0]


# --- measured needs


@pytest.mark.parametrize(("measured", "end_s"), [(0.9, 100), (1.0, 90), (1.1, 90)])
def test_a_need_measured_too_low_slows_a_job_that_is_alone_and_one_measured_too_high_does_not(measured, end_s):
    """The algorithm knows a need of 0.45; at 0.9 the job could use 0.5, and gets nine tenths of it."""
    trace = trace_of((0, 90, 1, 0.45, 0.1))
    run = replay_fluid(whole_nodes(1), trace, GREEDY, variant=SiteVariant(measured=np.array([measured])))

    assert run.end_s == pytest.approx([end_s])


def test_a_need_measured_too_high_takes_from_others_what_the_job_cannot_use():
    """Both need half of the node. Job 0 counts as 0.55, so that job 1 gets 1/1.05 of its need until job 0 ends."""
    trace = trace_of((0, 105, 1, 0.55, 0.1), (0, 100, 1, 0.5, 0.1))
    run = replay_fluid(whole_nodes(1), trace, GREEDY, variant=SiteVariant(measured=np.array([1.1, 1.0])))

    assert run.end_s == pytest.approx([105, 105])


def test_equal_errors_of_all_jobs_cancel_where_the_cpu_is_short():
    """Three jobs that need 0.5 have 2/3 of it each, whatever the algorithm believes."""
    for error in (0.9, 1.0, 1.1):
        trace = trace_of(*[(0, 100, 1, 0.5 * error, 0.1)] * 3)
        run = replay_fluid(whole_nodes(1), trace, GREEDY, variant=SiteVariant(measured=np.full(3, error)))
        assert run.end_s == pytest.approx([150] * 3)


# --- time limits

#: Two jobs that share a node.
SHARING = trace_of((0, 100, 1, 1, 0.1), (0, 100, 1, 1, 0.1))


def limited(trace: TraceArrays, *limits_s: float, algorithm=GREEDY, penalty_s: float = 0):
    variant = SiteVariant(limit_s=np.array(limits_s))
    return replay_fluid(whole_nodes(1), trace, algorithm, penalty_s=penalty_s, variant=variant)


def test_a_job_is_killed_exactly_at_its_limit():
    alone = trace_of((5, 100, 1, 1, 0.1))
    short, enough = limited(alone, 60), limited(alone, 100)

    assert (short.killed.tolist(), short.end_s.tolist(), short.wall_s.tolist()) == ([True], [65], [60])
    assert (enough.killed.tolist(), enough.end_s.tolist(), enough.wall_s.tolist()) == ([False], [105], [100])


def test_a_limit_counts_wall_time_and_a_killed_job_leaves_its_node_to_the_others():
    """At 150 both have done 75. Job 0 is killed then, and job 1 ends at 175: it would have been killed at 180."""
    run = limited(SHARING, 150, 180)

    assert run.killed.tolist() == [True, False]
    assert run.end_s.tolist() == [150, 175]
    assert run.wall_s == pytest.approx([150, 175])


def test_events_of_other_jobs_do_not_move_the_moment_at_which_a_job_is_killed():
    """A third job comes at 60 and ends at 90. Job 0 has done 70 when it is killed at 150."""
    trace = trace_of((0, 100, 1, 1, 0.1), (0, 100, 1, 1, 0.1), (60, 10, 1, 1, 0.1))
    run = limited(trace, 150, inf, inf)

    assert run.killed.tolist() == [True, False, False]
    assert run.end_s == pytest.approx([150, 180, 90])


@pytest.mark.parametrize("no_limit", [inf, nan])
def test_a_job_without_a_limit_is_never_killed(no_limit):
    run = limited(SHARING, no_limit, no_limit)

    assert not run.killed.any()
    assert run.end_s.tolist() == [200, 200]


def test_a_limit_counts_penalties_but_no_pauses():
    """Job 0 runs 30 s, is paused until 50, serves the penalty of 300 s and needs 70 s more: 400 s on its node."""
    trace = trace_of((0, 100, 1, 1, 1), (30, 20, 1, 1, 1))
    enough, short = (limited(trace, limit_s, inf, algorithm=PMTN, penalty_s=300) for limit_s in (400, 399))

    assert (enough.killed.tolist(), enough.end_s.tolist()) == ([False, False], [420, 50])
    assert (short.killed.tolist(), short.end_s.tolist()) == ([True, False], [419, 50])


# --- unequal nodes


def test_a_task_does_not_go_to_a_node_with_less_memory_than_it_needs():
    """Job 0 fills the large node until 100. Job 1 does not fit on the small one and waits; job 2 does."""
    unequal = nodes_of((0.5, 0.5), (1, 1))
    trace = trace_of((0, 100, 1, 0.1, 1), (10, 20, 1, 0.1, 0.6), (20, 20, 1, 0.1, 0.5))
    run = replay_fluid(unequal, trace, GANG)

    assert run.start_s.tolist() == [0, 100, 20]
    assert [run.nodes(job) for job in range(3)] == [[1], [1], [0]]


def test_a_task_that_needs_the_cpu_of_a_reference_node_runs_at_half_speed_on_half_a_node():
    """Two tasks on the two nodes: the job has the yield that its small node allows."""
    unequal = nodes_of((0.5, 1), (1.5, 1))

    for name, algorithm in EVERY.items():
        alone = replay_fluid(unequal, trace_of((0, 100, 2, 1, 1)), algorithm)
        assert alone.end_s.tolist() == [200], name


def test_packing_puts_a_job_on_the_node_that_is_large_enough():
    """DYNMCB8 finds the yield of 1; GREEDY takes the first of two empty nodes."""
    unequal, trace = nodes_of((0.5, 1), (1.5, 1)), trace_of((0, 100, 1, 1, 1))

    assert replay_fluid(unequal, trace, ALGORITHMS["dfrs-dynmcb8"]).end_s.tolist() == [100]
    assert replay_fluid(unequal, trace, GREEDY).end_s.tolist() == [200]


# --- gang scheduling


def test_jobs_on_a_node_have_equal_slices_that_are_not_filled_up():
    """Three needs of 0.6 are two slices; when one job is left it has all of them."""
    run = replay_fluid(whole_nodes(1), trace_of(*[(0, 50, 1, 0.6, 0.1)] * 2, (0, 60, 1, 0.6, 0.1)), GANG)

    assert run.end_s.tolist() == [100, 100, 110]


def test_a_job_has_as_many_slices_as_its_fullest_node():
    """Job 0 is on both nodes, job 1 on the first and job 2 on the second, from 50 on."""
    trace = trace_of((0, 100, 2, 1, 0.1), (0, 50, 1, 1, 0.1), (50, 100, 1, 1, 0.1))
    run = replay_fluid(whole_nodes(2), trace, GANG)

    # Until 100 job 0 has every second slice of both nodes. Job 2 has joined it on the second node at 50.
    assert run.end_s[1] == 100
    assert run.end_s.tolist() == [200, 100, 225]


def test_jobs_wait_for_memory_and_are_tried_again_at_each_event():
    """Job 1 needs all of the memory; job 2, which is small, starts before it."""
    trace = trace_of((0, 100, 1, 1, 0.5), (10, 10, 1, 1, 1), (20, 40, 1, 1, 0.5))
    run = replay_fluid(whole_nodes(1), trace, GANG)

    # From 20 on jobs 0 and 2 take turns; job 2 ends at 100, job 0 has 40 s left then.
    assert run.end_s[2] == 100
    assert run.end_s[0] == 140
    assert run.start_s.tolist() == [0, 140, 20]


# --- pauses by a requeue, and few jobs to a core

#: The yields of the paper.
BY_YIELDS = SHARES._replace(by_weight=False)
#: Job 1 needs the memory of job 0, which has done 50 s of its 100.
TWO = trace_of((0, 100, 1, 1, 1), (50, 20, 1, 1, 1))


def replayed(
    trace: TraceArrays, restartable: list[bool], algorithm: Algorithm = SHARES, *, penalty_s: float = 0, **more: float
) -> TraceRun:
    most_to_a_core = more.pop("most_to_a_core", inf)
    requeues = Requeues(np.array(restartable), **more)
    site = SiteVariant(most_to_a_core=most_to_a_core, requeues=requeues)
    return replay_fluid(whole_nodes(1), trace, algorithm, penalty_s=penalty_s, variant=site)


@pytest.mark.parametrize(
    ("checkpoint_s", "lost_s", "end_s"), [(inf, 50, 170), (30, 20, 140), (25, 0, 120), (0, 0, 120)]
)
def test_a_paused_job_begins_again_with_its_last_checkpoint(checkpoint_s, lost_s, end_s):
    run = replayed(TWO, [True, True], checkpoint_s=checkpoint_s)
    assert run.end_s.tolist() == [end_s, 70]
    assert run.lost_s.tolist() == [lost_s, 0]
    assert run.preemptions.tolist() == [1, 0]


def test_each_start_after_a_pause_costs_the_penalty():
    assert replayed(TWO, [True, True], checkpoint_s=30, penalty_s=300).end_s.tolist() == [440, 70]


def test_a_job_that_cannot_restart_is_not_paused():
    run = replayed(TWO, [False, True])
    assert run.end_s.tolist() == [100, 120]
    assert run.preemptions.tolist() == [0, 0]


def test_a_job_is_not_paused_before_it_has_run_for_a_while():
    """Job 2 comes when job 0 has run long enough; job 1, which came before that, then takes its place."""
    trace = trace_of((0, 100, 1, 1, 1), (50, 20, 1, 1, 1), (60, 10, 1, 0.1, 1))
    run = replayed(trace, [True, False, False], protect_s=60)
    assert run.start_s.tolist() == [0, 60, 80]
    assert run.lost_s.tolist() == [60, 0, 0]


def test_a_job_is_paused_a_limited_number_of_times():
    trace = trace_of((0, 100, 1, 1, 1), (50, 20, 1, 1, 1), (80, 20, 1, 1, 1))
    often, once = (replayed(trace, [True, False, False], checkpoint_s=0, most_pauses=each) for each in (5, 1))
    assert (often.preemptions[0], often.end_s.tolist()) == (2, [140, 70, 100])
    assert (once.preemptions[0], once.end_s.tolist()) == (1, [120, 70, 140])


def test_by_loss_a_long_job_with_a_fresh_checkpoint_is_paused_before_a_short_one():
    """At 65 s job 0 would lose the 5 s since its checkpoint, job 1 its 25 s; without checkpoints job 0 loses 65 s."""
    trace = trace_of((0, 200, 1, 0.1, 0.5), (40, 100, 1, 0.1, 0.5), (65, 10, 1, 0.1, 0.5))
    by_loss = replayed(trace, [True, True, True], SHARES_LEAST_LOSS, checkpoint_s=60)
    assert by_loss.lost_s.tolist() == [5, 0, 0]
    by_priority = replayed(trace, [True, True, True], SHARES, checkpoint_s=60)
    assert by_priority.lost_s.tolist() == [5, 0, 0]
    lost_all = replayed(trace, [True, True, True], SHARES_LEAST_LOSS)
    assert lost_all.lost_s.tolist() == [0, 25, 0]


def test_virtual_time_can_fall_with_the_progress():
    """Job 0 has run longest and loses all. Then job 2 is the one with the most virtual time, if that is forgotten."""
    trace = trace_of((0, 300, 1, 0.1, 0.5), (90, 300, 1, 0.1, 0.5), (100, 10, 1, 0.1, 0.5), (150, 10, 1, 0.1, 0.5))
    keeps, forgets = (replayed(trace, [True, True, False, False], forgets=each) for each in (False, True))
    assert keeps.lost_s.tolist() == [140, 0, 0, 0]
    assert forgets.lost_s.tolist() == [100, 60, 0, 0]


def test_a_job_that_was_paused_pauses_others_only_if_it_may():
    """Job 0 is paused for job 1 at 50. When job 2 ends at 60, job 0 may take the memory back."""
    trace = trace_of((0, 100, 1, 0.1, 0.9), (50, 20, 1, 0.1, 0.9), (55, 5, 1, 0.1, 0.1))
    waits, insists = (replayed(trace, [True] * 3, checkpoint_s=0, pauses_again=each) for each in (False, True))
    assert (waits.preemptions.tolist(), waits.end_s.tolist()) == ([1, 0, 0], [120, 70, 60])
    assert insists.preemptions[1] == 1


def test_jobs_wait_where_as_many_share_a_core_as_may():
    trace = trace_of(*[(0, 60, 1, 1, 0.1)] * 3)
    run = replayed(trace, [False] * 3, most_to_a_core=2)
    assert run.start_s.tolist() == [0, 0, 120]
    assert run.end_s.tolist() == [120, 120, 180]


def test_a_job_that_no_empty_node_may_have_is_refused():
    with pytest.raises(BadInput, match="job 0 is"):
        replayed(trace_of((0, 10, 3, 0.5, 0.1)), [True], most_to_a_core=1)


def test_by_weight_a_node_is_shared_by_need():
    """Job 0 has 1/1.5 of its need until job 1, which has the same yield, ends."""
    run = replayed(trace_of((0, 60, 1, 1, 0.1), (0, 20, 1, 0.5, 0.1)), [False, False])
    assert run.end_s == pytest.approx([70, 30])


def test_time_slices_lose_their_switches():
    trace = trace_of((0, 60, 1, 1, 0.1), (0, 60, 1, 1, 0.1))
    run = replay_fluid(whole_nodes(1), trace, GANG._replace(switch_loss=0.25))
    assert run.end_s == pytest.approx([160, 160])


@pytest.mark.parametrize("seed", range(3))
def test_with_every_job_restartable_and_nothing_lost_it_is_greedy_pmtn(seed):
    """The trace's jobs come one at a time, so that nobody is paused who has just begun."""
    trace = random_trace(seed)
    trace = trace.only(np.unique(trace.submit_s, return_index=True)[1])
    paper, ours = (replay_fluid(whole_nodes(4), trace, each, penalty_s=30) for each in (PMTN, BY_YIELDS))
    assert paper.preemptions.sum() > 0
    assert np.array_equal(paper.end, ours.end)
    assert np.array_equal(paper.preemptions, ours.preemptions)


@pytest.mark.parametrize("seed", range(3))
def test_without_restartable_jobs_it_is_greedy_that_tries_again_at_every_event(seed):
    trace = random_trace(seed)
    site = SiteVariant(requeues=Requeues(np.zeros(len(trace), np.bool_)))
    paper = replay_fluid(whole_nodes(4), trace, GREEDY_RETRY_AT_EVENTS)
    ours = replay_fluid(whole_nodes(4), trace, BY_YIELDS, variant=site)
    assert np.array_equal(paper.end, ours.end)


@pytest.mark.parametrize("algorithm", [SHARES, SHARES_LEAST_LOSS], ids=["priority", "loss"])
@pytest.mark.parametrize("checkpoint_s", [0, 60, inf])
def test_each_job_ends_when_it_has_done_its_work_and_what_it_lost(algorithm, checkpoint_s):
    for seed in range(3):
        trace = random_trace(seed)
        restartable = np.random.default_rng(seed).random(len(trace)) < 0.5
        site = SiteVariant(most_to_a_core=4, requeues=Requeues(restartable, checkpoint_s))
        run = replay_fluid(whole_nodes(4), trace, algorithm, variant=site, penalty_s=30)
        assert (run.preemptions[~restartable] == 0).all()
        assert (run.lost_s[run.preemptions == 0] == 0).all()
        assert (run.lost_s <= run.preemptions * np.minimum(trace.run_s, checkpoint_s) + 1e-6).all()
        assert (run.wall_s >= trace.run_s + run.lost_s - 1e-6).all()


# --- the paper's model


@pytest.mark.parametrize("name", EVERY)
def test_without_variants_nothing_changes(name):
    trace = random_trace(1)
    none = SiteVariant(apply_s=0, measured=np.ones(len(trace)), limit_s=np.full(len(trace), inf))

    plain, same = (
        replay_fluid(whole_nodes(4), trace, EVERY[name], penalty_s=30, variant=variant) for variant in (None, none)
    )

    for each in ("start", "end", "place", "spread", "preemptions", "migrations", "tasks_moved", "killed", "wall_s"):
        assert np.array_equal(getattr(plain, each), getattr(same, each))
    assert (plain.used, plain.instants) == (same.used, same.instants)
    assert not plain.killed.any()


@pytest.mark.parametrize("variant", [None, MINUTE, SiteVariant(apply_s=7)])
@pytest.mark.parametrize("name", EVERY)
def test_every_job_ends_and_has_nodes_for_at_least_its_run_time(name, variant):
    for seed in range(5):
        trace = random_trace(seed)
        run = replay_fluid(whole_nodes(4), trace, EVERY[name], penalty_s=30, variant=variant)
        assert (run.start_s >= trace.submit_s).all()
        assert (run.wall_s >= trace.run_s - 1e-6).all()
        assert (run.wall_s <= run.end_s - run.start_s + 1e-6).all()
