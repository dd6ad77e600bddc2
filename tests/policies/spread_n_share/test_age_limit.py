"""A job older than the age limit: everything else gives way on the nodes that are kept for it."""

from programs import GB, PAPER_NODE, paper_nodes, paper_programs, snapshot, summary

from slurm_sns.model import Alternative, Job, Resources, Snapshot
from slurm_sns.policies.spread_n_share.node_choice import spread_n_share
from slurm_sns.policies.spread_n_share.parameters import REPRODUCTION

POLICY = spread_n_share(REPRODUCTION)


def busy(cores: int) -> Resources:
    return PAPER_NODE.minus(Resources(cores, 0, 0, 0))


def job(identity, cores=1, nodes=1, *, old=False, exclusive=False) -> Job:
    alternative = Alternative(nodes, Resources(cores, GB, 2, 1), exclusive=exclusive)
    return Job(identity, identity, (alternative,), order=(identity,), over_aged=old)


def test_the_nodes_with_the_fewest_used_cores_are_kept_whole():
    nodes = paper_nodes(3, {"n0": busy(10), "n1": busy(4), "n2": busy(6)})

    plan = POLICY.plan(Snapshot(nodes, (job(1), job(2, 28, nodes=2, old=True))))

    assert summary(plan) == {1: (1, ("n0",))}  # not the idlest: n1 and n2 are kept
    assert plan.waiting[2] == "finds no place yet; capacity is withheld for it on n1, n2"


def test_ties_go_by_the_machine_list():
    nodes = paper_nodes(3, dict.fromkeys(("n0", "n1", "n2"), busy(4)))

    plan = POLICY.plan(Snapshot(nodes, (job(1), job(2, 28, nodes=2, old=True))))

    assert plan.starts[0].nodes == ("n2",)


def test_nodes_are_kept_for_one_job_at_a_time_the_oldest():
    nodes = paper_nodes(2, {"n0": busy(4), "n1": busy(6)})
    old = (job(3, 28, old=True), job(2, 27, old=True))

    plan = POLICY.plan(Snapshot(nodes, (job(9), *old)))

    assert summary(plan) == {9: (1, ("n1",))}  # n0 is kept for job 2, none for job 3


def test_an_old_job_that_fits_at_any_scale_starts_first():
    programs = paper_programs()
    nodes = paper_nodes(2, {"n1": busy(24)})
    young, old = snapshot(nodes, programs["ep"], programs["mg"]).waiting
    old = Job(old.id, old.submit_s, old.alternatives, order=(2,), over_aged=True)

    plan = POLICY.plan(Snapshot(nodes, (young, old)))

    assert summary(plan) == {2: (1, ("n0",))}  # at scale 1, its last: n1 lacks the cores for scale 2


def test_it_is_kept_at_the_first_scale_that_the_cluster_could_hold():
    nodes = paper_nodes(2, {"n0": busy(28), "n1": busy(27)})
    ways = (Alternative(4, Resources(4, GB, 2, 1), scale=4), Alternative(2, Resources(8, GB, 2, 1), scale=2))
    old = Job(1, 1, ways, over_aged=True)

    plan = POLICY.plan(Snapshot(nodes, (job(2), old)))

    assert not plan.starts  # n1 is kept, and n0 has no room for anybody
    assert plan.waiting[1] == "finds no place yet; capacity is withheld for it on n1"


def test_only_nodes_that_it_may_use_are_kept():
    nodes = paper_nodes(2, {"n0": busy(1), "n1": busy(20)})
    old = Job(1, 1, (Alternative(1, Resources(28, GB)),), allowed=frozenset({"n1"}), over_aged=True)

    assert summary(POLICY.plan(Snapshot(nodes, (job(2), old)))) == {2: (1, ("n0",))}


def test_nobody_starves_as_long_as_jobs_end():
    """Small jobs come for ever; the wide one starts when what ran on its nodes has ended."""
    running: dict[str, list[int]] = {name: [] for name in ("n0", "n1", "n2")}
    for moment in range(60):
        running = {name: [end for end in ends if end > moment] for name, ends in running.items()}
        nodes = paper_nodes(3, {name: busy(7 * len(ends)) for name, ends in running.items()})
        young = tuple(job(100 + moment * 20 + at, 7) for at in range(13))
        wide = job(1, 28, nodes=3, old=moment >= 10)
        plan = POLICY.plan(Snapshot(nodes, (*young, wide)))
        started = summary(plan)
        if 1 in started:
            assert moment > 10
            return
        for identity, (_, (name,)) in started.items():
            running[name].append(moment + 3 + identity % 5)
    raise AssertionError("the wide job never started")
