"""What users may ask: why their job is left to Slurm, what their jobs wait for, and which programs have a profile."""

import json
import shlex
from collections.abc import Iterator
from typing import Any

import pytest

from cluster import PYTHON, Cluster
from slurm_sns.scheduler.answers.pass_through import NOT_SHOWN

PATIENCE_S = 120
PROFILES = "/usr/src/slurm_sns/conf/profiles/spread-n-share.yaml"

#: Alice's jobs: how each is submitted, and what `sns explain` says about it.
CASES = {
    "-p plain -n4": "partition plain is not managed",
    "-p main,plain -n4": "partition plain is not managed",
    "-n4 --comment sns:off": "its comment is sns:off",
    "-n4 -w c2": "it names its nodes (--nodelist)",
    "-n1 --exclusive=user": "it says with whom it shares its nodes (--exclusive=user and the like, --oversubscribe)",
    "-N1-2 -n4": NOT_SHOWN,
    "-n1 --gres=llc:4": "it asks for gres (--gres, --gpus)",
    "-N2 --constraint='[ib|opa]'": "it asks for a constraint with counts or brackets (--constraint), or for --batch",
    "-n1 --licenses=matlab:1": "it asks for licences (--licenses)",
}
RUNS, ENDS, ARRAY, MANAGED = "-p plain -n1", "-p plain -n1 -J ends", "-p plain -a 3,7", "-n4"
#: With this option the job waits, whatever is free.
LATER = "--begin=now+600"


@pytest.fixture(scope="module")
def jobs(shared_cluster: Cluster) -> Iterator[dict[str, int]]:
    """The numbers of alice's jobs by their options, and of one of bob's.

    The scheduler has seen the jobs and the profiles.
    """
    cluster = shared_cluster
    cluster.run(f"sns profile import {PROFILES}", "slurm")
    waiting = [*CASES, ARRAY, MANAGED]
    numbers = cluster.submit_all(
        [(RUNS, "sleep 600"), (ENDS, "true"), *((f"{LATER} {each}", "true") for each in waiting)]
    )
    found = dict(zip([RUNS, ENDS, *waiting], numbers, strict=True))
    found["bob"] = cluster.submit(f"-p plain -n1 {LATER}", "true", "bob")
    for options, state in ((RUNS, "RUNNING"), (ENDS, "COMPLETED")):
        number = found[options]
        cluster.wait_for(f"{number} is {state}", lambda n=number, s=state: cluster.job(n).state == s, PATIENCE_S)
    cluster.wait_for_cycles(2, PATIENCE_S)
    cluster.run(f"sns release {found[MANAGED]}", "alice")
    # Before the release it waits for a begin time, too, and for a moment after it Slurm has no reason.
    said = ("left it to Slurm", "Slurm's reason: BeginTime")
    cluster.wait_for(
        "Slurm has said why it waits now",
        lambda: all(each in cluster.run(f"sns explain {found[MANAGED]}", "alice") for each in said),
        PATIENCE_S,
    )
    yield found
    cluster.run("scancel -u alice; scancel -u bob")


#: Sends one request after the other, as `sns` does; a process for each would take most of the time.
ASKS = """
import json, pathlib, sys
from slurm_sns.errors import BadInput
from slurm_sns.sockets.unix_socket import ask
def answer(request):
    try:
        return {"answer": ask(pathlib.Path("/run/sns/scheduler.sock"), request)}
    except BadInput as problem:
        return {"error": str(problem)}
print(json.dumps([answer(each) for each in json.loads(sys.argv[1])]))
"""


def explained(cluster: Cluster, jobs: list[tuple[int, ...]], user: str = "alice") -> list[dict[str, Any]]:
    """The answers about these jobs, each given as (number,) or as (array's number, task)."""
    requests = [{"command": "explain", **dict(zip(("job_id", "task"), job, strict=False))} for job in jobs]
    words = " ".join(map(shlex.quote, ("-c", ASKS, json.dumps(requests))))
    found: list[dict[str, Any]] = json.loads(cluster.run(f"{PYTHON} {words}", user))
    return found


def test_a_user_is_told_why_jobs_that_wait_are_slurms_own(shared_cluster: Cluster, jobs: dict[str, int]) -> None:
    answers = [each["answer"] for each in explained(shared_cluster, [(jobs[options],) for options in CASES])]
    told = {options: answer["pass_through"] for options, answer in zip(CASES, answers, strict=True)}
    assert told == CASES
    assert {answer["job"]["state"] for answer in answers} == {"waiting"}


def test_jobs_that_run_and_that_have_ended_and_tasks_of_arrays_are_explained_too(
    shared_cluster: Cluster, jobs: dict[str, int]
) -> None:
    asked: list[tuple[int, ...]] = [(jobs[RUNS],), (jobs[ENDS],), (jobs[ARRAY], 7), (jobs[ARRAY],)]
    answers = [each["answer"] for each in explained(shared_cluster, asked)]
    assert [each["job"]["state"] for each in answers] == ["running", "ended", "waiting", "waiting"]
    assert {each["pass_through"] for each in answers} == {"partition plain is not managed"}
    assert answers[2]["label"] == f"{jobs[ARRAY]}_7"


def test_a_job_that_its_owner_gave_to_slurm_is_said_to_be_slurms(shared_cluster: Cluster, jobs: dict[str, int]) -> None:
    number = jobs[MANAGED]
    first, second, third = shared_cluster.run(f"sns explain {number}", "alice").splitlines()
    assert first.startswith(f"job {number} is Slurm's own: slurm_sns left it to Slurm: its owner opened its gate")
    assert second == "  waiting, Slurm's reason: BeginTime"
    assert third.endswith("  left to Slurm, as its owner asked")


def test_a_user_counts_what_their_own_held_jobs_wait_for_and_squeues_options_choose_among_them(
    shared_cluster: Cluster, jobs: dict[str, int]
) -> None:
    cluster = shared_cluster
    assert jobs, "the scheduler has profiles and jobs"
    held, array = cluster.submit_all([("-n1 -H", "true"), ("-n1 -H -a 12-99%2", "true")])
    bobs = cluster.submit("-n1 -H", "true", "bob")
    cluster.wait_for_cycles(2, PATIENCE_S)
    asked = f"sns queue -j {held},{array}_13,{bobs}"
    found = {user: json.loads(cluster.run(f"{asked} --why --json", user)) for user in ("alice", "bob", "slurm")}
    assert {each["kind"] for told in found.values() for each in told} == {"held"}
    counts = {user: sum(each["jobs"] for each in told) for user, told in found.items()}
    assert counts == {"alice": 2, "bob": 1, "slurm": 3}
    shown = cluster.run(f"{asked} -h -t PD -S -i -o '%i %u %t %M'", "alice").splitlines()
    assert shown == [f"{array}_[12-99%2] alice PD 0:00", f"{held} alice PD 0:00"]
    cluster.run(f"scancel {held} {array} {bobs}")


def test_wait_ends_when_a_job_starts_or_cannot_start_any_more(shared_cluster: Cluster, jobs: dict[str, int]) -> None:
    cluster = shared_cluster
    started, held = cluster.submit_all([("-n1", "sleep 30"), ("-n1 -H", "true")])
    for number in (started, jobs[RUNS]):
        said = cluster.run(f"sns wait {number} --timeout 100", "alice")
        assert said.startswith(f"job {number} has started on ")
    late = cluster.try_run(f"sns wait {held} --timeout 1", "alice")
    assert (late.returncode, late.stdout) == (1, "")
    assert late.stderr.startswith(f"sns: error: job {held} has not started in time: held (")
    other = cluster.try_run(f"sns wait {held} --timeout 60", "bob")
    assert (other.returncode, other.stderr) == (
        2,
        f"sns: error: job {held}: no job of yours that Slurm or slurm_sns knows\n",
    )
    cluster.run(f"scancel {held} {started}")
    ended = cluster.try_run(f"sns wait {held} --timeout 60", "alice")
    assert (ended.returncode, ended.stderr) == (1, f"sns: error: job {held} ended without having started\n")


def test_another_users_job_is_answered_word_for_word_like_one_that_does_not_exist(
    shared_cluster: Cluster, jobs: dict[str, int]
) -> None:
    asked: list[tuple[int, ...]] = [(jobs[RUNS],), (jobs[ENDS],), (jobs[ARRAY],), (jobs[ARRAY], 7), (99_999_999,)]
    for user, others in (("bob", asked), ("alice", [(jobs["bob"],), (99_999_999,)])):
        labels = ["_".join(map(str, job)) for job in others]
        told = [each["error"] for each in explained(shared_cluster, others, user)]
        assert told == [f"job {label}: no job of yours that Slurm or slurm_sns knows" for label in labels]
    (admins,) = explained(shared_cluster, [(jobs["bob"],)], "slurm")
    assert admins["answer"]["job"]["user"] == "bob"


def test_every_user_sees_the_profiles_as_slurmuser_does(shared_cluster: Cluster, jobs: dict[str, int]) -> None:
    cluster = shared_cluster
    assert jobs, "the profiles are imported"
    # The scheduler looks for new ones every few seconds.
    cluster.wait_for("they are loaded", lambda: "mg" in cluster.run("sns profile list", "alice").split(), PATIENCE_S)
    both = "sns profile list --json && sns profile show mg"
    assert cluster.run(both, "alice") == cluster.run(both, "slurm")


def test_a_user_who_asks_for_an_unknown_program_is_told_what_to_do(shared_cluster: Cluster) -> None:
    answer = shared_cluster.try_run("sns profile show nope", "alice")
    assert (answer.returncode, answer.stdout) == (2, "")
    assert answer.stderr == (
        "sns: error: program 'nope' has no profile; sns profile list shows the programs that have one\n"
    )


def test_no_user_imports_profiles(shared_cluster: Cluster) -> None:
    answer = shared_cluster.try_run(f"sns profile import {PROFILES}", "alice")
    assert answer.returncode == 2
    assert answer.stderr.startswith("sns: error: this runs as slurm")
