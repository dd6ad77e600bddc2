"""What would start a waiting job now: only changes with which the policy starts it, the smallest of each kind."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from live import ADVISED, ALICE, BOB, ENFORCE, HELD, NOW, SUBMIT, job, look, node, running, situation, tasks
from what_if import POLICY, RULES, ask

from slurm_sns.config.profiles_yaml import read_profiles
from slurm_sns.errors import BadInput
from slurm_sns.model import Plan, Resources
from slurm_sns.package_files import shared_path
from slurm_sns.policies.combined.combined import combined
from slurm_sns.policies.matching.max_jobs import max_jobs
from slurm_sns.policies.matching.parameters import UNTIL_START, MatchingParameters
from slurm_sns.scheduler.answers.last_cycle import LastCycle
from slurm_sns.scheduler.answers.start_now import MOST_PLANS, starting_changes
from slurm_sns.scheduler.observation import ObservedPartition, ObservedReservation

NODES = (node("c1", taken=(0, 100_000)), node("c2", taken=(20, 60_000)))


def by_node(identity: int, memory_mb: int, **fields):
    """A job that asks for so much memory on each of its nodes."""
    return job(identity, **{"memory_per_cpu_mb": None, "memory_per_node_mb": memory_mb, **fields})


def changes(*jobs, nodes=NODES, **more):
    """What would start job 1: by kind, the options and the nodes."""
    found = ask({"command": "explain", "job_id": 1}, *jobs, nodes=nodes, **more)["would_start"]
    return {each["kind"]: (each["options"], each["nodes"]) for each in found}


def test_the_largest_memory_that_a_node_has_is_proposed_as_one_would_type_it() -> None:
    assert changes(by_node(1, 100_000)) == {"memory": ("--mem=66G", ["c2"])}
    assert changes(by_node(1, 100_000), nodes=(node("c1", taken=(0, 125_001)),)) == {"memory": ("--mem=2999M", ["c1"])}


def test_memory_by_cpu_is_proposed_by_cpu() -> None:
    two = job(1, tasks=2, cpus=2, memory_per_cpu_mb=50_000)
    assert changes(two) == {"memory": ("--mem-per-cpu=33G", ["c2"])}


def test_on_several_nodes_the_smallest_of_the_best_counts() -> None:
    wide = by_node(1, 100_000, tasks=2, cpus=2, nodes_min=2, nodes_max=2)
    three = (*NODES, node("c3", taken=(0, 90_000)))
    assert changes(wide, nodes=three)["memory"] == ("--mem=37G", ["c2", "c3"])


def test_what_an_earlier_job_takes_in_the_cycle_is_not_offered() -> None:
    first = by_node(2, 68_000, submit_s=1, user_id=BOB)
    assert changes(by_node(1, 100_000), first)["memory"] == ("--mem=27G", ["c1"])


def test_a_time_limit_that_ends_before_a_reservation_is_proposed_with_time_to_type_it() -> None:
    soon = ObservedReservation("maintenance", frozenset({"c1"}), int(NOW) + 1800, int(NOW) + 9000)
    assert changes(job(1), nodes=(node("c1"),), reservations=(soon,)) == {"time": ("-t 0:29:00", ["c1"])}
    later = replace(soon, start_s=int(NOW) + 3 * 86_400)
    long = job(1, walltime_s=9 * 86_400)
    assert changes(long, nodes=(node("c1"),), reservations=(later,)) == {"time": ("-t 2-23:55:00", ["c1"])}


def test_the_limit_of_its_partition_is_proposed() -> None:
    hour = ObservedPartition("main", walltime_s=3600)
    assert changes(job(1, walltime_s=7200), partitions=(hour,)) == {"time": ("-t 1:00:00", ["c1"])}


def test_fewer_cpus_of_each_task_keep_tasks_and_memory() -> None:
    threads = {"tasks": 1, "cpus": 28, "cpus_per_task": 28}
    nodes = (node("c1", taken=(20, 0)),)
    assert changes(by_node(1, 1000, **threads), nodes=nodes) == {"cpus per task": ("-c 8", ["c1"])}
    by_cpu = job(1, **threads, memory_per_cpu_mb=1024)
    assert changes(by_cpu, nodes=nodes) == {"cpus per task": ("-c 8 --mem=28G", ["c1"])}


def test_tasks_are_laid_evenly_on_a_fixed_number_of_nodes_or_on_more_nodes_and_never_lost() -> None:
    nodes = (node("c1", taken=(20, 0)), node("c2", taken=(20, 0)), node("c3", taken=(20, 0)))
    fixed = by_node(1, 1000, words="fixed", tasks=16, cpus=16, nodes_min=2, nodes_max=2)
    assert changes(fixed, nodes=nodes) == {"tasks per node": ("--ntasks-per-node=8", ["c1", "c2"])}
    free = tasks(1, 24)
    assert changes(free, nodes=nodes)["tasks per node"] == ("--ntasks-per-node=8", ["c1", "c2", "c3"])
    assert not changes(tasks(1, 25), nodes=nodes)


def test_a_spreadable_job_is_told_the_scale_that_it_may_allow() -> None:
    nodes = tuple(node(f"c{number}", taken=(20, 0)) for number in range(1, 5))
    nodes = tuple(replace(each, capacity=each.capacity._replace(ways=20, bandwidth_gbps=118)) for each in nodes)
    programs = {each.name: each for each in read_profiles(shared_path("conf/profiles/spread-n-share.yaml"))}
    policy = combined(MatchingParameters())
    spreading = replace(RULES.spreading, alternatives=policy.alternatives, programs=programs)
    more = {"policy": policy, "rules": replace(RULES, spreading=spreading), "programs": programs}
    found = changes(tasks(1, 16, "alpha=0.5 program=mg max-scale=1"), nodes=nodes, **more)
    assert found.keys() == {"scale"}  # its geometry is slurm_sns's own choice
    assert found["scale"][0] == "--sns-max-scale=2"
    assert len(found["scale"][1]) == 2


def test_of_an_array_the_next_task_is_changed() -> None:
    record = by_node(1, 100_000, array_id=1, array_tasks="3-9")
    assert changes(record)["memory"] == ("--mem=66G", ["c2"])
    hour = ObservedPartition("main", walltime_s=3600)
    shorter = by_node(1, 1000, array_id=1, array_tasks="3-9", walltime_s=7200)
    assert changes(shorter, partitions=(hour,))["time"][0] == "-t 1:00:00"
    assert not changes(by_node(1, 1000, array_id=1, array_tasks="3-9"))


@pytest.mark.parametrize("fields", [HELD, {"waits_for_others": True}])
def test_nothing_is_proposed_for_a_job_that_would_not_start_anyhow(fields) -> None:
    assert not changes(by_node(1, 100_000, **fields))


def test_nothing_is_proposed_for_a_job_that_starts_or_while_slurm_sns_is_off() -> None:
    assert not changes(by_node(1, 1000))
    assert not changes(by_node(1, 100_000), disabled=True)


def test_nobody_else_is_told() -> None:
    with pytest.raises(BadInput, match="no job of yours"):
        changes(by_node(1, 100_000), user=BOB)
    assert changes(by_node(1, 100_000), user=0)


def test_in_the_mode_advise_it_is_the_same() -> None:
    rules = replace(RULES, table=replace(RULES.table, mode="advise"))
    assert changes(by_node(1, 100_000, **ADVISED), rules=rules)["memory"][0] == "--mem=66G"


class CountingPolicy:
    """Plans, and counts how often."""

    def __init__(self) -> None:
        self.plans = 0

    def __call__(self, snapshot) -> Plan:
        self.plans += 1
        return replace(POLICY.plan(snapshot), actions=())


def of_cycle(*jobs, nodes, plan=POLICY.plan, **observed):
    seen = situation(look(*jobs, nodes=nodes, **observed))
    return LastCycle(seen, ENFORCE, RULES.spreading, plan), POLICY.plan(seen.snapshot)


def test_few_plans_are_made_and_one_only_where_each_takes_long() -> None:
    soon = ObservedReservation("soon", frozenset({"c1"}), int(NOW) + 3600, int(NOW) + 99_999)
    nodes = (node("c1"), node("c2", taken=(0, 100_000)))
    wanted, policy = by_node(1, 68_000, walltime_s=9000), CountingPolicy()
    cycle, plan = of_cycle(wanted, nodes=nodes, plan=policy, reservations=(soon,))
    (waiting,) = cycle.snapshot.waiting
    slow = iter(range(1000))
    assert starting_changes(cycle, wanted, waiting, plan, lambda: float(next(slow))) == []
    assert policy.plans == 1
    policy.plans = 0
    assert starting_changes(cycle, wanted, waiting, plan, lambda: 0.0) == []
    assert 1 < policy.plans <= MOST_PLANS


def test_the_heuristic_that_matches_most_decides_how_much_memory_is_enough() -> None:
    """In the cycles of other heuristics c0 and c4 have more, but one of those would match fewer jobs and lose."""
    free_mb = {"c0": (23, 48_374), "c1": (25, 11_218), "c2": (15, 65_265), "c3": (26, 121_762), "c4": (19, 24_355)}
    nodes = [node(name, taken=(28 - cores, 128_000 - mb)) for name, (cores, mb) in free_mb.items()]
    asked = (48_868, 25_215, 36_527, 79_321)
    others = [by_node(at, mb, submit_s=at, user_id=BOB) for at, mb in enumerate(asked, 2)]
    wanted = by_node(1, 127_999, tasks=2, cpus=2, nodes_min=2, nodes_max=2, submit_s=50)
    assert changes(*others, wanted, nodes=nodes)["memory"] == ("--mem=22G", ["c0", "c4"])


ONE_HEURISTIC = max_jobs(MatchingParameters(portfolio=("mix-fit",)))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([POLICY, ONE_HEURISTIC]))
def test_the_memory_that_is_proposed_starts_the_job_and_with_one_heuristic_it_is_the_largest(seed: int, policy) -> None:
    draw = Random(seed)
    nodes = tuple(node(f"c{at}", taken=(draw.randint(0, 27), draw.randint(0, 126_000))) for at in range(5))
    others = [by_node(at, draw.randint(1, 90_000), submit_s=at, user_id=BOB) for at in range(2, 6)]
    count = draw.choice([1, 2])
    wanted = by_node(1, 127_999, tasks=2, cpus=2, nodes_min=count, nodes_max=count, submit_s=50)
    cycle, _ = of_cycle(*others, wanted, nodes=nodes, plan=policy.plan)
    plan = policy.plan(cycle.snapshot)
    waiting = next((each for each in cycle.snapshot.waiting if each.id == 1), None)
    if waiting is None or any(start.job_id == 1 for start in plan.starts):
        return
    found = starting_changes(cycle, wanted, waiting, plan, lambda: 0.0)
    proposed = next((each["options"] for each in found if each["kind"] == "memory"), "--mem=0M")
    proposed_mb = int(proposed.removeprefix("--mem=")[:-1]) * {"M": 1, "G": 1024}[proposed[-1]]

    def starts(memory_mb: int) -> bool:
        made, _ = cycle.job_of(replace(wanted, memory_per_node_mb=memory_mb), waiting)
        return cycle.start_of(made) is not None

    assert not proposed_mb or starts(proposed_mb)
    if policy is ONE_HEURISTIC:  # and it is rounded down as one types it: to whole GiB at most
        larger = {each.capacity.memory_mb - each.allocated.memory_mb for each in nodes} | {proposed_mb + 1024}
        assert not any(starts(each) for each in larger if proposed_mb + 1024 <= each < 127_999)


def test_an_owner_sees_only_their_own_nodes_and_no_job_of_others() -> None:
    other = by_node(77, 68_000, submit_s=1, user_id=BOB)
    told = ask({"command": "explain", "job_id": 1}, by_node(1, 100_000), other, nodes=NODES, user=ALICE)
    assert "77" not in str(told["would_start"])


UNTIL = max_jobs(MatchingParameters(withhold=UNTIL_START))
#: c1 is busy for two hours more, so the job of BOB on two nodes is promised both from then on; c2 is free now.
BUSY = running(41, "c1", end_s=int(NOW) + 7200, occupies=Resources(28, 28_000), walltime_s=9000)
WIDE = job(7, tasks=56, cpus=56, nodes_min=2, nodes_max=2, submit_s=SUBMIT - 1, user_id=BOB)
TWO = (node("c1", taken=(28, 28_000)), node("c2"))


def until_start(wanted, *more, command="explain", **request):
    asked = {"command": command, "job_id": wanted.id, **request}
    return ask(asked, BUSY, WIDE, wanted, *more, nodes=TWO, policy=UNTIL, user=ALICE)


def test_the_largest_limit_that_ends_before_a_promised_start_is_proposed() -> None:
    told = until_start(job(1, walltime_s=5 * 3600))
    assert told["would_start"][0] == {"kind": "time", "options": "-t 1:55:00", "nodes": ["c2"]}


def test_the_job_for_which_capacity_is_withheld_until_its_start_is_not_named_to_others() -> None:
    told = until_start(job(1, walltime_s=5 * 3600))
    why = "would fit, but capacity is withheld for another user's job, which starts in 2:00:00"
    assert told["job"]["reason"] == f"{why} if jobs end at their limits"
    assert told["job"]["waits"]["about"] == "another user's job on c1, c2"
    assert "job 7" not in str(told)


def test_a_job_that_ends_before_a_promised_start_starts_and_needs_no_change() -> None:
    told = until_start(job(1, walltime_s=7200))
    assert told["job"]["reason"].startswith("by best-fit-memory, which matched 1 job")
    assert not told["would_start"]


def test_it_is_so_among_jobs_of_several_accounts_too() -> None:
    wide = replace(WIDE, account="chemistry", submit_s=SUBMIT)
    short, long = job(1, walltime_s=7200), job(2, walltime_s=7201)
    plan = UNTIL.plan(situation(look(BUSY, wide, short, long, nodes=TWO)).snapshot)
    assert [start.job_id for start in plan.starts] == [1]
    assert plan.waiting[7].endswith("it starts on c1, c2")


def test_a_job_without_a_limit_is_told_one_with_which_it_starts() -> None:
    assert until_start(job(1, walltime_s=None))["would_start"][0]["options"] == "-t 1:55:00"


def test_a_job_that_is_promised_a_start_says_when_and_where() -> None:
    told = until_start(replace(WIDE, id=1, user_id=ALICE, submit_s=SUBMIT - 2))["job"]
    assert told["reason"] == "finds no place yet; in 2:00:00, if jobs end at their limits, it starts on c1, c2"
    assert (told["waits"]["kind"], told["waits"]["about"]) == ("next", "c1, c2")


def test_moments_that_change_nothing_use_up_no_plans_before_the_promised_start_comes() -> None:
    elsewhere = [ObservedReservation(f"r{at}", frozenset({"c9"}), int(NOW) + at * 3600, 10**6) for at in range(3, 12)]
    wanted = job(1, walltime_s=20 * 3600)
    found = ask(
        {"command": "explain", "job_id": 1}, BUSY, WIDE, wanted, nodes=TWO, policy=UNTIL, reservations=tuple(elsewhere)
    )["would_start"]
    assert found[0]["options"] == "-t 1:55:00"


def test_a_job_that_cannot_end_before_is_offered_the_memory_of_nodes_that_are_not_promised() -> None:
    nodes = (*TWO, node("c3", taken=(26, 100_000)))
    wanted = by_node(1, 60_000, walltime_s=5 * 3600)
    found = ask({"command": "explain", "job_id": 1}, BUSY, WIDE, wanted, nodes=nodes, policy=UNTIL)["would_start"]
    assert {"kind": "memory", "options": "--mem=27G", "nodes": ["c3"]} in found
