"""Jobs with dependencies, begin times or licences, and jobs that their owners change, cancel or give odd names."""

import json
import shlex
from itertools import chain, pairwise
from pathlib import Path

from evidence import fill, in_force

from cluster import Cluster

FAULTY = Path(__file__).with_name("faulty_scheduler.py").read_text()


def said(cluster: Cluster, number: int) -> str:
    """The output of `sns explain`; empty before the scheduler has seen the job."""
    return cluster.try_run(f"sns explain {number}").stdout


#: A job that runs until the test lets it end.
UNTIL_TOLD = "while [ ! -e told ]; do sleep 0.2; done"


def tell(cluster: Cluster) -> None:
    """Let the jobs that run UNTIL_TOLD end."""
    cluster.run("touch told", "alice")


# --- dependencies and times


def test_a_chain_of_jobs_is_placed_link_by_link_and_a_hopeless_one_blocks_nobody(cluster: Cluster) -> None:
    cluster.run("rm -f told", "alice")
    first = cluster.submit("-t 30 -n2", UNTIL_TOLD)
    second = cluster.submit(f"-t 5 -n2 -d afterok:{first}", "sleep 1")
    third = cluster.submit(f"-t 5 -n2 -d afterok:{second}", "sleep 1")
    array = cluster.submit(f"-t 5 -n1 -d afterok:{third} --array=0-3", "sleep 1")
    last = cluster.submit(f"-t 5 -n1 -d afterok:{array}", "true")
    failing = cluster.submit("-t 5 -n1", "exit 3")
    hopeless = cluster.submit(f"-t 5 -n1 -d afterok:{failing}", "true")
    behind = cluster.submit("-t 5 -n1", "true")
    links = [first, second, third, last]
    cluster.wait_for("the first runs", lambda: cluster.job(first).state == "RUNNING")
    cluster.wait_for("it is said", lambda: "starts it when other jobs end" in said(cluster, second))
    assert {cluster.job(number).state for number in (second, third, last)} == {"PENDING"}
    assert cluster.wait_for_end([behind])[behind].state == "COMPLETED"
    tell(cluster)
    ended = cluster.wait_for_end(links, timeout_s=300)
    assert {job.state for job in ended.values()} == {"COMPLETED"}
    starts = cluster.starts(links)
    for before, after in pairwise(links):
        assert ended[after].start_s >= ended[before].end_s
        assert set(ended[after].nodes) == set(starts[after]["nodes"])

    cluster.wait_for("Slurm says it", lambda: cluster.job(hopeless).reason == "DependencyNeverSatisfied", 120)
    cluster.wait_for("it is said", lambda: "DependencyNeverSatisfied" in said(cluster, hopeless))


def test_a_job_that_is_placed_ahead_is_gated_again_when_another_waits_for_room(cluster: Cluster) -> None:
    cluster.run("rm -f told", "alice")
    first = cluster.submit("-t 30 -n1", UNTIL_TOLD)
    ahead = cluster.submit(f"-t 5 -n1 -d afterok:{first}", "true")
    cluster.wait_for("it is placed ahead", lambda: cluster.job(ahead).pinned_to)
    large = cluster.submit("-t 5 -N4 -n4 --exclusive", "true")
    cluster.wait_for("it is gated again", lambda: cluster.job(ahead).is_gated)
    assert not cluster.job(ahead).pinned_to
    assert cluster.job(large).state == "PENDING"
    tell(cluster)
    assert {job.state for job in cluster.wait_for_end([first, ahead, large]).values()} == {"COMPLETED"}


def test_each_kind_of_dependency_lets_a_job_start_about_when_slurm_alone_would(cluster: Cluster) -> None:
    """Each job waits for one that ends after five seconds; `plain` partition's jobs are Slurm's alone.

    Only the job that waits for its name has the name of those it waits for: with that name the others, too, would be
    waited for, and the delays of two links would add up.
    """
    kinds = (
        "afterok:{ok}",
        "afternotok:{bad}",
        "afterany:{bad}",
        "after:{ok}",
        "singleton",
        "afterok:{bad}?afterok:{ok}",
    )
    numbers: dict[str, list[int]] = {}
    for partition in ("main", "plain"):
        options, named = f"-p {partition} -t5 -n1", f"-J {partition}"
        ok, bad = cluster.submit_all([(f"{options} {named}", f"sleep 5; exit {code}") for code in (0, 1)])
        told = [f"{options} -d {kind.format(ok=ok, bad=bad)} {named if kind == 'singleton' else ''}" for kind in kinds]
        numbers[partition] = cluster.submit_all([(each, "true") for each in told])
    seen = cluster.wait_for_end(chain.from_iterable(numbers.values()))
    ended = [(seen[ours], seen[slurms]) for ours, slurms in zip(numbers["main"], numbers["plain"], strict=True)]
    later_s = {kind: ours.start_s - slurms.start_s for kind, (ours, slurms) in zip(kinds, ended, strict=True)}
    assert max(later_s.values()) <= 4, later_s
    assert all(ours.record is not None and ours.record.nodes == ours.nodes for ours, _ in ended)


def test_the_tasks_of_an_array_start_after_those_of_another(cluster: Cluster) -> None:
    first = cluster.submit("-t5 -n1 -a 0-2", "sleep $((3 * SLURM_ARRAY_TASK_ID))")
    second = cluster.submit(f"-t5 -n1 -a 0-2 -d aftercorr:{first}", "true")
    times = f"SLURM_TIME_FORMAT=%s sacct -nPXD -j {first},{second} -o JobID,Start,End"

    def rows() -> dict[str, tuple[str, str]]:
        return {job: (start, end) for job, start, end in (line.split("|") for line in cluster.run(times).splitlines())}

    def have_ended() -> bool:
        found = rows()
        return len(found) == 6 and all(end.isdigit() for _, end in found.values())

    cluster.wait_for("all six have ended", have_ended)
    found = rows()
    waits_s = [int(found[f"{second}_{task}"][0]) - int(found[f"{first}_{task}"][1]) for task in range(3)]
    assert 0 <= min(waits_s) <= max(waits_s) <= 5, waits_s


def test_a_job_with_a_begin_time_is_placed_when_it_may_begin(cluster: Cluster) -> None:
    number = cluster.submit("-t 5 -n2 --begin=now+3600", "sleep 1")
    cluster.wait_for("it is said", lambda: "may begin in" in said(cluster, number))
    assert cluster.job(number).is_gated
    earlier = f"scontrol update JobId={number} StartTime=now+5 && squeue -h -j {number} -o %S | date -f - +%s"
    begin_s = int(cluster.run(earlier, "alice"))
    ended = cluster.wait_for_end([number])[number]
    assert ended.state == "COMPLETED"
    assert ended.start_s >= begin_s
    assert cluster.starts([number])[number]["nodes"] == list(ended.nodes)


def test_jobs_that_wait_for_licences_are_left_to_slurm_and_do_not_block_managed_jobs(cluster: Cluster) -> None:
    cluster.run("rm -f told", "alice")
    licensed = cluster.submit_all([("-t 30 -n1 -L matlab:2", UNTIL_TOLD)] * 3)
    ours = cluster.submit_all([("-t 5 -n4", "sleep 1")] * 6)
    cluster.wait_for("the licences run out", lambda: cluster.job(licensed[2]).reason == "Licenses")
    ended = cluster.wait_for_end(ours)
    assert {job.state for job in ended.values()} == {"COMPLETED"}
    starts = cluster.starts(ours)
    assert all(set(ended[number].nodes) == set(starts[number]["nodes"]) for number in ours)
    assert cluster.job(licensed[2]).reason == "Licenses"
    assert cluster.job(licensed[2]).record is None
    tell(cluster)
    assert {job.state for job in cluster.wait_for_end(licensed).values()} == {"COMPLETED"}


# --- changes by the owner


def test_the_plan_follows_the_changes_that_an_owner_makes_to_a_gated_job(cluster: Cluster) -> None:
    filler = fill(cluster)
    smaller, wider, elsewhere, left, shorter = cluster.submit_all([("-t 10 -n8 --mem-per-cpu=100", "sleep 1")] * 5)
    changes = {
        smaller: "NumTasks=3",
        wider: "NumNodes=2",
        elsewhere: "Partition=small",
        left: "Partition=plain",
        shorter: "TimeLimit=2",
    }
    for number, change in changes.items():
        assert cluster.job(number).is_gated
        cluster.run(f"scontrol update JobId={number} {change}", "alice")
    cluster.wait_for("the one in the other partition is Slurm's", lambda: not cluster.job(left).is_gated)
    why = "left to Slurm: partition plain is not managed"
    cluster.wait_for("it is recorded", lambda: why in said(cluster, left))
    assert cluster.wait_for_end([elsewhere])[elsewhere].state == "COMPLETED", "partition small has room"
    cluster.run(f"scancel {filler}")
    ended = cluster.wait_for_end(changes)
    assert {job.state for job in ended.values()} == {"COMPLETED"}
    planned = cluster.starts(set(changes) - {left})
    assert all(set(ended[number].nodes) == set(start["nodes"]) for number, start in planned.items())
    assert (ended[smaller].cpus, planned[smaller]["demand"]["cores"]) == (3, 3)
    assert len(ended[wider].nodes) == 2
    assert set(ended[elsewhere].nodes) == {"s1", "s2"}
    assert cluster.fields(shorter)["TimeLimit"] == "00:02:00"


def test_a_job_that_is_cancelled_between_observation_and_placement_is_refused_and_stays_cancelled(
    planned_by_hand: Cluster,
) -> None:
    cluster = planned_by_hand
    cancelled, other = cluster.submit_all([("-t 5 -n2", "true")] * 2)
    cluster.run("mkdir -p /tmp/faults")
    cluster.write("/tmp/faults/sns", FAULTY)
    cluster.run("chmod 755 /tmp/faults/sns")
    cluster.try_run("PATH=/tmp/faults:$PATH SNS_FAULT=place:before:1:freeze sns-daemon start scheduler")
    process = "$(cat /run/sns/scheduler.pid)"
    cluster.wait_for("it is about to place", lambda: cluster.run(f"ps -o stat= -p {process}").startswith("T"))
    cluster.run(f"scancel {cancelled}", "alice")
    cluster.run(f"kill -CONT {process}")
    assert cluster.wait_for_end([other])[other].state == "COMPLETED"
    refused = f"job {cancelled}: Slurm refused the placement"
    cluster.wait_for("it is in the log", lambda: refused in cluster.run("tail -n 50 /var/log/sns/scheduler.log"))
    assert cluster.job(cancelled).state == "CANCELLED"
    cluster.run("sns-daemon stop scheduler; rm -r /tmp/faults")


def test_a_job_that_its_owner_requeues_runs_again_where_it_is_planned_again(cluster: Cluster) -> None:
    number = cluster.submit("-t 5 -n4 --requeue", "sleep $((SLURM_RESTART_COUNT ? 1 : 600))")
    cluster.wait_for("it runs", lambda: cluster.job(number).state == "RUNNING")
    cluster.run(f"scontrol requeue {number}", "alice")
    ended = cluster.wait_for_end([number])[number]
    assert ended.state == "COMPLETED"
    decided = in_force(cluster.explain(number)["decisions"])
    assert [each["action"] for each in decided] == ["start", "note", "start"]
    assert set(ended.nodes) == set(decided[-1]["nodes"])


# --- texts of users


#: Bytes that a terminal, a shell, a format string, a database query or a decoder might interpret; none may.
HOSTILE = (
    b"\xff\xfe",
    b"\xc3",
    b"\xed\xa0\x80",
    b"\xf0\x9f\x98\x80 \xc3\xa9",
    b"\xe2\x80\xaereversed",
    b"line\nother line\r",
    b"tab\tbell\x07\x01\x7f",
    b"\x1b[2J\x1b[31mred\x1b]0;title\x07",
    b"\x9b31m",
    b"'\"`$(touch /tmp/hostile)`",
    b";|&<>*?~!",
    b"%s%n%d%",
    b"[bold]loud[/bold][/]",
    b"{user}{0}",
    b"a|b|c",
    b"'; DROP TABLE decisions; --",
    b"x" * 900,
)


def test_names_and_comments_of_any_bytes_are_planned_and_shown_harmlessly(cluster: Cluster) -> None:
    lines = []
    for text in HOSTILE:
        octal = "".join("\\0" + format(byte, "03o") for byte in text)
        word = f"$(printf %b '{octal}'; printf .)"  # without the dot the shell would take newlines at the end away
        options = f'-t 5 -n1 --mem=100 -J "{word}" --comment "{word}"'
        lines.append(f"sbatch --parsable -o /dev/null {options} --wrap 'sleep 2' || exit")
    lines.append("sbatch --parsable -o /dev/null -t 5 -n1 --mem=100 --array=0-1 -J $'\\xff' --wrap 'sleep 1'")
    numbers = [int(line) for line in cluster.run("\n".join(lines), "alice").split()]
    assert len(numbers) == len(HOSTILE) + 1
    cluster.wait_for("they are seen", lambda: len(json.loads(cluster.run("sns queue --json", "alice"))) > 0)
    for command in ("sns queue", "sns queue --json", "sns status", f"sns explain {numbers[0]}"):
        shown = cluster.run(f"script -qec {shlex.quote(command)} /dev/null | tr -d '\\r'", "alice")
        assert all(character.isprintable() or character == "\n" for character in colourless(shown)), (command, shown)
    ended = cluster.wait_for_end(numbers[:-1])
    assert {job.state for job in ended.values()} == {"COMPLETED"}
    starts = cluster.starts(ended)
    assert all(set(ended[number].nodes) == set(start["nodes"]) for number, start in starts.items())
    log = cluster.run("tail -n 400 /var/log/sns/scheduler.log")
    assert all(character.isprintable() or character == "\n" for character in log)
    assert cluster.try_run("test -e /tmp/hostile").returncode != 0


def colourless(text: str) -> str:
    """The text without the escape codes by which sns itself colours a row or a heading."""
    for code in range(50):
        text = text.replace(f"\x1b[{code}m", "")
    return text
