"""`sns seff` on what sacct of Slurm 26.05 printed, and on the same with memory in it."""

import json
import os
import stat
from dataclasses import replace
from pathlib import Path

import json_output
import pytest

from slurm_sns.cli.live.job_use import COLUMNS, JobUse, advice, jobs_of
from slurm_sns.cli.live.measured_use import over_nodes
from slurm_sns.errors import SnsError

HEADER = "|".join(COLUMNS)
ME = os.geteuid()
#: Recorded on a cluster whose nodes gave no memory; the run times and the memory of these are made up.
TWO_NODES = """\
522|522|UID|COMPLETED|4G|billing=4,cpu=4,mem=4G,node=2|4|2||1795838783|1795838783|1795839383|600|15|00:20:00.487||||c[1-2]|
522.batch|522.batch||COMPLETED||cpu=2,mem=2G,node=1|2|1|1|1795838783|1795838783|1795839383|600||00:00.016|10M|mem=10M|mem=10M|c1|
522.0|522.0||COMPLETED||cpu=4,mem=4G,node=2|4|2|4|1795838784|1795838784|1795839383|599||00:20:00.471|400M|mem=400M|mem=1000M|c[1-2]|
"""
RECORD = "sns:2 g=1795838844 n=c1 at=1795838784 t=0 tg=2 w=6 bw=20"
PLACED = f"""\
528|528|UID|COMPLETED|64G|billing=2,cpu=2,mem=64G,node=1|2|1||1795838000|1795838785|1795839385|600|5|00:19:00|||energy=0|c1|{RECORD}
528.batch|528.batch||COMPLETED||cpu=2,mem=64G,node=1|2|1|1|1795838785|1795838785|1795839385|600||00:19:00|20971520K|mem=20971520K|mem=20971520K|c1|
"""
UNRECORDED = """\
527_0|531|UID|COMPLETED|1G|billing=1,cpu=1,mem=1G,node=1|1|1||1795838784|1795838785|1795838792|7|5|00:00.054||||c1|
527_0.batch|531.batch||COMPLETED||cpu=1,mem=1G,node=1|1|1|1|1795838785|1795838785|1795838792|7||00:00.054|||energy=0|c1|
"""
PENDING = "537|537|UID|PENDING|1G||0|1||1795839406|Unknown|Unknown|0|Partition_Limit|00:00:00||||None assigned|\n"
RUNNING = """\
530|530|UID|RUNNING|1G|billing=1,cpu=1,mem=1G,node=1|1|1||1795838784|1795838785|Unknown|21|5|00:00:00||||c1|
530.batch|530.batch||RUNNING||cpu=1,mem=1G,node=1|1|1|1|1795838785|1795838785|Unknown|21||00:00:00||||c1|
"""
KILLED = """\
540|540|UID|OUT_OF_MEMORY|2G|billing=1,cpu=1,mem=2G,node=1|1|1||1795838784|1795838785|1795838885|100|5|00:01:00||||c1|
540.batch|540.batch||OUT_OF_MEMORY||cpu=1,mem=2G,node=1|1|1|1|1795838785|1795838785|1795838885|100||00:01:00|2090000K|mem=2090000K|mem=2090000K|c1|
"""


def read(text: str) -> JobUse:
    [job] = jobs_of(f"{HEADER}\n{text.replace('UID', str(ME), 1)}")
    return job


def of(text: str, **more: object) -> list[str]:
    return list(advice(replace(read(text), **more)))


@pytest.fixture
def sacct(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Makes a sacct that prints these jobs of this user, and notes how it was called."""

    def made(text: str, status: int = 0) -> Path:
        answer, called, command = tmp_path / "answer", tmp_path / "called", tmp_path / "sacct"
        answer.write_text(f"{HEADER}\n{text.replace('UID', str(ME))}" if status == 0 else text)
        to = "" if status == 0 else " >&2"
        command.write_text(
            f'#!/bin/sh\nprintf "%s\\n" "$SLURM_TIME_FORMAT" "$@" > {called}\ncat {answer}{to}\nexit {status}\n'
        )
        command.chmod(command.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
        return called

    return made


def test_memory_is_that_of_the_fullest_node_and_asked_for_on_each_node() -> None:
    job = read(TWO_NODES)
    assert (job.asked_mb, job.memory) == (2048, (400, 510, 810))
    assert job.busy_cpus == pytest.approx(2.0)


@pytest.mark.parametrize(("text", "mb"), [("2Gn", 2048), ("1Gc", 2048), ("4G", 2048), ("0", 2048), ("0n", 2048)])
def test_what_was_asked_for_is_read_as_each_version_writes_it(text: str, mb: int) -> None:
    assert read(TWO_NODES.replace("|4G|", f"|{text}|", 1)).asked_mb == mb


def test_tasks_may_be_uneven_where_the_first_node_has_other_cpus_than_the_mean() -> None:
    job = read(TWO_NODES.replace("cpu=2,mem=2G,node=1|2|", "cpu=3,mem=3G,node=1|3|"))
    assert job.memory == (400, 510, 1210)
    assert job.enough_mb is None


def test_all_tasks_but_one_may_have_been_on_one_node() -> None:
    # srun -n9 -m plane=8: eight tasks of 10 GiB on the first node
    plane = "522.0|522.0||COMPLETED||cpu=16,mem=240G,node=2|16|2|9|1795838784|1795838784|1795839383|599||00:20:00"
    text = TWO_NODES.replace("|4G|billing=4,cpu=4,mem=4G,node=2|4|", "|240G|billing=16,cpu=16,mem=240G,node=2|16|")
    text = text.replace("cpu=2,mem=2G,node=1|2|", "cpu=8,mem=120G,node=1|8|")
    lines = [*text.splitlines()[:2], f"{plane}|10G|mem=10G|mem=90G|c[1-2]|"]
    job = read("\n".join(lines) + "\n")
    assert job.memory is not None
    assert job.memory.at_most_mb == 8 * 10 * 1024 + 10
    overcommitted = read("\n".join(lines).replace("|16|2|9|", "|2|2|9|") + "\n\n").memory
    assert overcommitted == job.memory
    unknown = read("\n".join([lines[0].replace("|16|2||", "||2||"), lines[2]])).memory
    assert unknown is not None
    assert unknown.at_most_mb == 8 * 10 * 1024


def test_nodes_are_even_only_where_no_other_split_of_the_cpus_is_possible() -> None:
    three = TWO_NODES.replace("c[1-2]", "c[1-3]").replace("node=2", "node=3").replace("|4|2|", "|6|3|")
    assert read(three).enough_mb is None  # 2, 3 and 1 CPUs, perhaps
    ones = three.replace("|6|3|", "|3|3|").replace("cpu=2,mem=2G,node=1|2|", "cpu=1,mem=2G,node=1|1|")
    assert read(ones).is_even


def test_a_step_without_memory_in_accounting_leaves_the_job_without_advice() -> None:
    assert read(TWO_NODES.replace("|400M|mem=400M|mem=1000M|", "||||")).enough_mb is None


@pytest.mark.parametrize(
    ("label", "task", "has"),
    [
        *(("41_7", 7, True), ("41_[3-9%2]", 7, True), ("41_[1,3-9:4,12]", 7, True), ("41_[3-9]", 10, False)),
        *(("41_[1,3,...]", 99, True), ("42_7", 7, False), ("41+0", 7, False), ("41", 7, False)),
    ],
)
def test_a_task_of_an_array_is_found_by_its_number(label: str, task: int, has: bool) -> None:
    assert replace(read(PENDING), label=label).is_of(41, task) is has


def test_a_task_that_waits_in_its_arrays_record_is_pending(sns, config: Path, sacct) -> None:
    sacct(PENDING.replace("537|", "537_[3-9]|", 1))
    for job in ("537_7", "537_07"):
        code, output, errors = sns("seff", job, "--config", config)
        assert (code, errors) == (0, "")
        assert output.startswith("job 537_[3-9]: PENDING")


def test_few_questions_are_asked_and_only_about_jobs_that_could_ask_for_less(sns, config, sacct, scheduler) -> None:
    placed = [PLACED.replace("528", str(number)) for number in range(601, 606)]
    sacct(PENDING + UNRECORDED + RUNNING + TWO_NODES + "".join(placed))
    asked = []
    scheduler["smaller-request"] = lambda request: asked.append(request["job_id"])
    assert sns("seff", "522", *map(str, range(601, 606)), "--config", config)[0] == 0
    assert asked == [601, 602, 603]


def test_advice_is_above_the_most_that_was_used_and_by_cpu_over_several_nodes() -> None:
    assert read(TWO_NODES).enough_mb == 1024  # 810 and 20 %
    assert of(TWO_NODES) == ["ask for --mem-per-cpu=512M the next time: 20% above the upper bound of what Slurm saw"]
    assert of(PLACED) == ["ask for --mem=24G the next time: 20% above the upper bound of what Slurm saw"]


@pytest.mark.parametrize(
    "unsafe",
    [{"state": "CANCELLED"}, {"state": "TIMEOUT"}, {"state": "RUNNING"}, {"ran_s": 60.0}, {"asked_mb": 25_000}],
)
def test_no_advice_to_take_less_after_a_run_that_may_not_show_all(unsafe: dict[str, object]) -> None:
    assert of(PLACED, **unsafe) == []


def test_a_job_that_was_killed_is_told_to_ask_for_more() -> None:
    assert of(KILLED) == ["it was killed for want of memory: ask for more, such as --mem=3G"]
    step = KILLED.replace("OUT_OF_MEMORY", "FAILED", 1)
    assert of(step) == of(KILLED)


def test_idle_cpus_are_told() -> None:
    assert of(PLACED, cpu_s=300.0)[1:] == [
        "it kept 0.5 of 2 CPUs busy: see whether the program uses all of them, or ask for fewer"
    ]


def test_cpu_time_that_was_not_gathered_is_no_idleness() -> None:
    assert read(PLACED.replace("00:19:00", "00:00:00")).busy_cpus is None
    assert read(PLACED.replace("00:19:00", "00:00.034")).busy_cpus == 0


def test_a_line_that_cannot_be_read_costs_that_line() -> None:
    text = f"{HEADER}\nnonsense\n\n9.batch|9.batch|\n{PENDING}x|y|z\n{'|' * 30}\n"
    assert [job.label for job in jobs_of(text)] == ["537"]
    odd = read(PLACED.replace("1795838785", "soon").replace("20971520K", "much").replace("|2|1||", "|two|1||"))
    assert (odd.start_s, odd.memory, odd.cpus) == (None, None, None)
    with pytest.raises(SnsError, match="without its header"):
        jobs_of("Slurm accounting storage is disabled\n")


def test_one_job_is_a_table(sns, config: Path, sacct) -> None:
    called = sacct(TWO_NODES)
    code, output, errors = sns("seff", "522", "--config", config)
    assert (code, errors) == (0, "")
    assert [" ".join(line.split()) for line in output.splitlines()] == [
        "job 522: COMPLETED on c[1-2], started 0 s after its submission",
        "ASKED USED",
        "memory 2 GiB on each node about 510 MiB (at least 400 MiB, at most 810 MiB), 25% on the fullest node",
        "CPUs 4 2 busy, 50%",
        "time 15 min 10 min",
        "ask for --mem-per-cpu=512M the next time: 20% above the upper bound of what Slurm saw",
    ]
    assert called.read_text().splitlines()[:2] == ["%s", "--jobs=522"]


def test_several_jobs_are_a_line_each(sns, config: Path, sacct) -> None:
    sacct(TWO_NODES + UNRECORDED + PENDING + RUNNING)
    output = sns("seff", "522", "527", "537", "530", "--config", config)[1]
    assert [line.split()[:2] for line in output.splitlines()[1:5]] == [
        ["522", "COMPLETED"],
        ["527_0", "COMPLETED"],
        ["537", "PENDING"],
        ["530", "RUNNING"],
    ]
    assert "not recorded" in output.splitlines()[2]
    assert "530: it runs: accounting has its use after its end; until then: sstat -a -j 530" in output


def test_the_scheduler_says_what_a_smaller_request_would_have_won(sns, config: Path, sacct, scheduler) -> None:
    sacct(PLACED)
    asked = []
    scheduler["smaller-request"] = lambda request: (
        asked.append(request) or {"placed_s": 1795838784.0, "earlier_s": 1795838184.0, "cycles": 3}
    )
    output = sns("seff", "528", "--config", config)[1]
    assert output.splitlines()[-1] == "with 24 GiB on each node it would have started about 10 min sooner"
    assert asked == [{"command": "smaller-request", "job_id": 528, "memory_mb": 24 * 1024}]
    assert json.loads(sns("seff", "528", "--json", "--config", config)[1])[0]["ways"] == 6


def test_without_a_scheduler_it_works_too(sns, tmp_path: Path, sacct) -> None:
    sacct(PLACED)
    code, output, errors = sns("seff", "528", "--config", tmp_path / "none.yaml")
    assert (code, errors) == (0, "")
    assert "ask for --mem=24G" in output
    assert "sooner" not in output


def test_jobs_of_others_are_answered_like_jobs_that_do_not_exist(
    sns, tmp_path: Path, sacct, monkeypatch: pytest.MonkeyPatch
) -> None:
    none = "sns: error: job 522: no such job in accounting, or not yours\n"
    monkeypatch.setattr("os.geteuid", lambda: 4711)
    sacct(TWO_NODES)
    assert sns("seff", "522", "--config", tmp_path / "none.yaml") == (2, "", none)
    sacct("")
    assert sns("seff", "522", "--config", tmp_path / "none.yaml") == (2, "", none)


def test_a_job_that_is_missing_among_others_is_named(sns, config: Path, sacct) -> None:
    sacct(TWO_NODES)
    code, output, errors = sns("seff", "522", "99", "--config", config)
    assert (code, errors) == (0, "sns: job 99: no such job in accounting, or not yours\n")
    assert output.startswith("job 522")


def test_without_sacct_or_accounting_one_line_says_so(sns, config: Path, sacct, monkeypatch) -> None:
    sacct("Slurm accounting storage is disabled\n", status=1)
    assert sns("seff", "1", "--config", config) == (1, "", "sns: error: sacct: Slurm accounting storage is disabled\n")
    monkeypatch.setenv("PATH", "/nonexistent")
    assert sns("seff", "1", "--config", config)[2] == "sns: error: sacct cannot be run: No such file or directory\n"


@pytest.mark.parametrize("job", ["x", "0", "41_", "41.batch", "-S", "41,42"])
def test_a_job_is_named_by_its_number(sns, config: Path, job: str) -> None:
    code, output, errors = sns("seff", "--config", config, "--", job)
    assert (code, output) == (2, "")
    assert "JOBID" in errors


def test_a_job_text_is_no_markup(sns, config: Path, sacct) -> None:
    sacct(PENDING.replace("None assigned", "c[red]\x1b[2J"))
    assert "\x1b" not in sns("seff", "537", "--config", config)[1]


def on_node(node: str = "c1", **more: object) -> dict[str, object]:
    """What the agent of a node says of a run that was alone for two of its ten minutes."""
    ipcs = {"ipc": 1.04, "alone_s": 120.0, "ipc_alone": 1.2, "ipc_beside": 1.0}
    times = {"ended_s": 1795839385.0, "seconds": 600.0, "restarts": 0}
    return {"node": node, "least_ways": 6, "most_ways": 20, "bandwidth_gbps": 12.34, **ipcs, **times, **more}


def rows_of(output: str) -> list[str]:
    return [" ".join(line.split()) for line in output.splitlines()]


def test_what_agents_have_measured_is_shown_with_the_cost_of_neighbours(sns, config, sacct, scheduler) -> None:
    sacct(PLACED)
    asked = []
    answer = {"has_agents": True, "jobs": {"528": [on_node()]}}
    scheduler["measured"] = lambda request: asked.append(request) or answer
    lines = rows_of(sns("seff", "528", "--config", config)[1])
    assert asked == [{"command": "measured", "job_ids": [528]}]
    assert lines[5:8] == [
        "cache ways 6 given on each node had 6 to 20",
        "GB/s 20 given on each node 12.3 on average",
        "IPC - 1.04 on average",
    ]
    assert lines[8] == "its IPC was 1 beside other jobs, 1.2 alone on the node: they cost it 17%"
    [job] = json_output.read("sns seff", sns("seff", "528", "--json", "--config", config)[1])
    assert job["measured"]["neighbours_cost"] == pytest.approx(1 / 6)


@pytest.mark.parametrize(
    "case",
    [
        (PLACED, False, "not measured: no agent on the nodes"),
        (PLACED, True, "not measured"),
        (PLACED.replace("COMPLETED", "RUNNING"), True, "not known yet: agents report after its end"),
    ],
)
def test_where_nothing_was_measured_it_says_so(sns, config, sacct, scheduler, case) -> None:
    text, has_agents, told = case
    sacct(text)
    earlier = {"528": [on_node(ended_s=1795838000.0)]}  # a run before this one
    scheduler["measured"] = {"has_agents": has_agents, "jobs": earlier}
    lines = rows_of(sns("seff", "528", "--config", config)[1])
    assert f"cache ways 6 given on each node {told}" in lines
    assert f"IPC - {told}" in lines


def test_what_a_node_cannot_measure_is_said_of_that_quantity(sns, config, sacct, scheduler) -> None:
    sacct(TWO_NODES)
    seen = {"least_ways": 0, "most_ways": 0, "ipc": None, "ipc_alone": None, "ipc_beside": None, "alone_s": 0.0}
    scheduler["measured"] = {"has_agents": True, "jobs": {"522": [on_node(**seen), on_node("c2", **seen)]}}
    assert rows_of(sns("seff", "522", "--config", config)[1])[5:8] == [
        "cache ways - had none of its own",
        "GB/s - 12.3 on average on a node",
        "IPC - not measured",
    ]


def test_without_a_scheduler_it_says_that_it_is_not_known(sns, config, sacct) -> None:
    sacct(PLACED)
    output = sns("seff", "528", "--config", config)[1]
    assert "cache ways 6 given on each node not known: no scheduler answers here" in rows_of(output)
    assert "IPC" not in output


def test_another_error_of_the_scheduler_is_shown_in_its_words(sns, config, sacct, scheduler) -> None:
    sacct(PLACED)
    scheduler |= {"measured": SnsError("the store: broken"), "smaller-request": None}
    output = " ".join(sns("seff", "528", "--config", config)[1].split())
    assert "not known: the store: broken" in output


def test_several_jobs_have_columns_of_what_was_measured(sns, config, sacct, scheduler) -> None:
    sacct(PLACED + TWO_NODES)
    scheduler["measured"] = {"has_agents": True, "jobs": {"528": [on_node(bandwidth_gbps=None)]}}
    lines = rows_of(sns("seff", "528", "522", "--config", config)[1])
    assert lines[0].endswith("USED IPC GB/S")
    assert lines[1].endswith(" 1.04 -")
    assert lines[2].endswith(" - -")


def test_means_are_weighed_by_time_and_only_nodes_that_were_both_are_compared() -> None:
    only_beside = on_node("c2", seconds=300.0, ipc=0.44, alone_s=0.0, ipc_alone=None, ipc_beside=0.44)
    short = on_node("c3", seconds=300.0, ipc=0.44, alone_s=2.0, ipc_alone=9.0)
    use = over_nodes([on_node(), only_beside, short])
    assert use["ipc"] == pytest.approx((600 * 1.04 + 600 * 0.44) / 1200)
    assert (use["ipc_alone"], use["ipc_beside"]) == pytest.approx((1.2, 1.0))
    unknown = over_nodes([on_node(ipc=None, ipc_alone=None, ipc_beside=None, alone_s=0.0)])
    assert (unknown["ipc"], unknown["neighbours_cost"]) == (None, None)
