"""A job that is only tried: judged as at submission, planned with the last cycle, and never sent."""

from contextlib import suppress
from dataclasses import replace

import pytest
from live import ALICE, BOB, ENFORCE, NOW, job, node, running, tasks
from what_if import POLICY, RULES, TABLE, ask

from slurm_sns.config.profiles_yaml import read_profiles
from slurm_sns.coverage.sbatch_options import PLACING, options, submission_of
from slurm_sns.errors import BadInput
from slurm_sns.gpus import JOB, TASK, GpuRequest
from slurm_sns.model import Resources
from slurm_sns.package_files import shared_path
from slurm_sns.policies.combined.combined import combined
from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.scheduler.observation import ObservedPartition, ObservedReservation
from slurm_sns.scheduler.start_estimates.board import EstimateBoard
from slurm_sns.scheduler.start_estimates.estimator import Estimator, rules_of
from slurm_sns.submit.submission import gpus_of_job

NODES = (node("c1", taken=(0, 100_000)), node("c2", taken=(20, 60_000)))


def tried(words: str, *jobs, nodes=NODES, **more):
    told, _ = options(words.split())
    return ask({"command": "try", "options": dict(told)}, *jobs, nodes=nodes, **more)


def test_a_job_that_fits_starts_now_and_its_nodes_are_named() -> None:
    said = tried("-n4 --mem=60G -t 1:00")
    assert (said["judgement"], said["when"], said["nodes"]) == ("managed", "now", ["c2"])
    (only,) = said["alternatives"]
    assert (only["demand"]["cores"], only["demand"]["memory_mb"], only["slowdown"]) == (4, 61_440, 1.0)
    assert (only["fitting"], only["chosen"], said["would_start"]) == (1, True, [])


@pytest.mark.parametrize(("words", "nodes"), [("-N2", 2), ("-N2 -n1", 1), ("-N2 -n2", 2), ("--ntasks-per-node=4", 1)])
def test_the_number_of_nodes_is_that_which_slurm_would_take(words: str, nodes: int) -> None:
    assert [each["demand"]["nodes"] for each in tried(words)["alternatives"]] == [nodes]


def test_a_job_that_waits_is_told_why_and_what_would_start_it() -> None:
    said = tried("-n4 --mem=90G")
    assert (said["when"], said["nodes"]) == ("waits", [])
    assert "lacks" in said["reason"] or "withheld" in said["reason"]
    assert said["would_start"] == [{"kind": "memory", "options": "--mem=66G", "nodes": ["c2"]}]


def test_its_start_is_estimated_as_if_it_waited_and_nobody_judges_that() -> None:
    board, makes = EstimateBoard(), Estimator(rules_of(POLICY), ENFORCE, lambda: 0.0)
    board.of_tried = makes.of_tried
    held = running(
        1, "c1", start_s=int(NOW) - 600, end_s=int(NOW) + 3000, walltime_s=3600, occupies=Resources(28, 1000)
    )
    full = [node("c1", taken=(28, 1000))]

    waits = tried("-n4 --mem=1G -t 10", held, nodes=full, board=board)["starts"]

    assert waits["limits_s"] == NOW + 3000
    assert makes.now.of == {}
    assert tried("-n4 --mem=60G -t 1:00", board=board)["starts"] is None


def test_it_waits_behind_the_jobs_of_its_account_and_takes_nothing_from_them() -> None:
    before = tasks(1, 8, memory_per_cpu_mb=None, memory_per_node_mb=68_000)
    said = tried("-n1 --mem=60G", before)
    assert (said["position"], said["waiting"], said["when"]) == (2, 2, "waits")
    assert any("physics" in each for each in said["assumed"])
    assert not any("physics" in each for each in tried("-n1 -A chemistry", before)["assumed"])


def test_where_slurms_priorities_order_the_queue_it_is_at_the_end() -> None:
    said = tried("-n1", job(1, submit_s=int(NOW) + 5), has_priorities=True)
    assert said["position"] == 2
    assert any("no priority before it is submitted" in each for each in said["assumed"])


@pytest.mark.parametrize(
    ("words", "judgement", "why"),
    [
        ("-n1 -w c2", "passes through", "it names its nodes (--nodelist)"),
        ("-n1 -F nodes.txt", "passes through", "it names its nodes (--nodelist)"),
        ("-n1 --hint=nomultithread", "passes through", "it asks for sockets, cores or threads"),
        ("-n1 --ntasks-per-board=1", "passes through", "it limits its tasks per socket or core"),
        ("-n1 --gres=gpu:1", "passes through", "it asks for gres (--gres, --gpus)"),
        ("-n1 -p plain", "passes through", "not all of its partitions are managed"),
        ("-n1 --comment=sns:off", "passes through", "its comment is sns:off"),
        ("-N2-4", "passes through", "it asks for a range of nodes (-N 2-4)"),
        ("-n1 --mem=900G", "refused", "no node has 921600 MiB of memory: the largest node"),
        ("-n1 --sns-alpha=2", "refused", "--sns-alpha '2': alpha must be a number above 0"),
    ],
)
def test_it_is_judged_as_at_submission(words: str, judgement: str, why: str) -> None:
    said = tried(words)
    assert said["judgement"] == judgement
    assert said["why"].startswith(why)
    assert said["when"] == ("never" if judgement == "refused" else "slurm decides")


def test_gpus_are_tried_as_sbatch_reads_them() -> None:
    words = "-n2 --gpus-per-task=a:1 --cpus-per-gpu=2 --mem-per-gpu=1G"
    asked = submission_of(options(words.split())[0])
    assert gpus_of_job(asked) == GpuRequest(TASK, (("a", 1),), 2, 1024)
    assert gpus_of_job(submission_of(options(["--gpus=a:1,b:2"])[0])) == GpuRequest(JOB, (("a", 1), ("b", 2)))
    assert gpus_of_job(submission_of(options(["--gres=gpu:1", "--gres-flags=enforce-binding"])[0])) is None


def test_of_a_partition_that_shares_cores_and_another_one_it_is_told() -> None:
    table = replace(TABLE, partitions={**TABLE.partitions, "small": TABLE.partitions["main"]}, sharing=("small",))
    said = tried("-n1 -p main,small", rules=replace(RULES, table=table))
    assert (said["judgement"], said["when"]) == ("passes through", "slurm decides")
    assert said["why"].startswith("it names a partition whose jobs share cores, and another one")


def test_while_slurm_sns_is_off_slurm_decides() -> None:
    assert tried("-n1", disabled=True)["why"] == "slurm_sns is switched off (sns disable)"


def test_in_the_mode_advise_it_says_that_slurm_places_it() -> None:
    said = tried("-n1", rules=replace(RULES, table=replace(TABLE, mode="advise")))
    assert said["when"] == "now"
    assert "the mode is advise: this is what slurm_sns would do; Slurm places the job" in said["assumed"]


def test_a_partition_that_slurm_does_not_show_is_bad_input() -> None:
    shown = (ObservedPartition("main"), ObservedPartition("plain"))
    with pytest.raises(BadInput, match=r"^partition 'nosuch' is unknown; valid: main, plain$"):
        tried("-n1 -p main,nosuch", partitions=shown)
    many = tuple(ObservedPartition(f"p{number:02}") for number in range(99))
    with pytest.raises(BadInput, match=r"valid: main, p00, .*p18, \.\.\.$"):
        tried("-n1 -p nosuch", partitions=many)
    assert tried("-n1 -p plain", partitions=shown)["judgement"] == "passes through"


def test_a_smaller_limit_that_its_owner_allows_is_not_looked_at() -> None:
    assert "its longest time (-t): --time-min not looked at" in tried("-n1 -t 10 --time-min=5")["assumed"]


def test_what_the_nodes_will_never_hold_once_it_is_looked_at_is_slurms() -> None:
    said = tried("-n1 -C nosuch")
    assert (said["judgement"], said["when"]) == ("passes through", "slurm decides")
    assert said["why"].startswith("no node of its partitions is left by its constraint")


def test_features_excluded_nodes_and_whole_nodes_count() -> None:
    nodes = (node("c1", features=frozenset({"ib"})), node("c2", features=frozenset({"ib"})), node("c3", taken=(1, 1)))
    assert tried("-n1 -C ib -x c1", nodes=nodes)["nodes"] == ["c2"]
    said = tried("-n1 --exclusive -x c[1-2]", nodes=nodes)
    assert (said["when"], said["alternatives"][0]["exclusive"]) == ("waits", True)


def test_a_shorter_limit_is_proposed_also_where_its_partition_is_closed_to_it() -> None:
    hour = ObservedPartition("main", walltime_s=3600)
    said = tried("-n1 -t 2:00:00", partitions=(hour,))
    assert (said["when"], said["would_start"][0]["options"]) == ("waits", "-t 1:00:00")
    soon = ObservedReservation("m", frozenset({"c1", "c2"}), int(NOW) + 1800, int(NOW) + 9000)
    assert tried("-n1", partitions=(hour,), reservations=(soon,))["would_start"][0]["options"] == "-t 0:29:00"


def test_each_alternative_of_a_known_program_has_its_slowdown() -> None:
    policy = combined(MatchingParameters())
    programs = {each.name: each for each in read_profiles(shared_path("conf/profiles/spread-n-share.yaml"))}
    room = {"ways": 20, "bandwidth_gbps": 118}
    nodes = [node(f"c{number}") for number in range(1, 5)]
    nodes = [replace(each, capacity=each.capacity._replace(**room)) for each in nodes]
    spreading = replace(RULES.spreading, alternatives=policy.alternatives, programs=programs)
    rules = replace(RULES, spreading=spreading)
    said = tried(
        "-n16 --mem=4G --sns-program=mg --sns-alpha=0.9", nodes=nodes, policy=policy, rules=rules, programs=programs
    )
    assert len(said["alternatives"]) > 1
    assert sum(each["chosen"] for each in said["alternatives"]) == 1
    assert len({each["slowdown"] for each in said["alternatives"]}) > 1


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ({}, "options: valid are"),
        ({"options": ["-n1"]}, "options: valid are"),
        ({"options": {"ntasks": 4}}, "options: valid are"),
        ({"options": {"rm": "-rf"}}, "option --rm: valid are"),
        ({"options": {"ntasks": "0"}}, "-n 0: valid are whole numbers from 1"),
        ({"options": {"ntasks": "9" * 11}}, "valid are whole numbers from 1"),
        ({"options": {"ntasks": "9" * 3000}}, "--ntasks '9+': valid are whole numbers"),
        ({"options": {"ntasks": "x"}}, "--ntasks 'x': valid are whole numbers, as 4 or 4k"),
        ({"options": {"mem": "9" * 15 + "T"}}, "valid is less than 2\\*\\*40 MiB"),
        ({"options": {"mem": "x"}}, "memory 'x': valid are"),
        ({"options": {"time": "tomorrow"}}, "--time 'tomorrow': valid are"),
        ({"options": {"exclude": "c[1"}}, "--exclude 'c\\[1': valid are names"),
        ({"options": {"exclude": "./nodes"}}, "--exclude './nodes' is a file; valid here: names of nodes"),
        ({"options": {"nodes": "many"}}, "-N 'many': valid are a number of nodes and a range, as 2 and 2-4"),
    ],
)
def test_what_cannot_be_read_is_one_line_that_says_what_is_valid(request_, said: str) -> None:
    with pytest.raises(BadInput, match=said) as problem:
        ask({"command": "try", **request_}, nodes=NODES)
    assert "\n" not in str(problem.value)


@pytest.mark.parametrize("name", sorted(PLACING))
@pytest.mark.parametrize("value", ["", "1", "\x00", "é" * 50, "-1", "c[1-9999999]", "1e9"])
def test_no_value_of_any_option_is_more_than_bad_input(name: str, value: str) -> None:
    with suppress(BadInput):
        ask({"command": "try", "options": {"mem": "1G", name: value}}, nodes=NODES)


def test_nothing_is_told_of_other_users_jobs() -> None:
    other = job(77, user_id=BOB, memory_per_cpu_mb=120_000)  # capacity is withheld for it
    assert "77" not in str(tried("-n1 --mem=120G", other, user=ALICE))
