"""The scheduler's answers on a terminal: readable, and harmless whatever users have written into them."""

import pytest
from rich.console import Console

from slurm_sns.cli.words import duration, explanation, folded, plain, queue_table, status_table

NOW = 100_000.0
EVIL = "\x1b[31mred\x1b[0m [bold]loud[/bold] [/] \r\n\x07 [link=http://x]x[/link] ünï"
HARMLESS = "?[31mred?[0m [bold]loud[/bold] [/] ??? [link=http://x]x[/link] ünï"


def printed(*parts) -> str:
    console = Console(width=250, highlight=False)
    with console.capture() as capture:
        for part in parts:
            console.print(part)
    return capture.get()


def row(**fields):
    shown = {
        "job_id": 7,
        "user": "alice",
        "account": "physics",
        "name": "wrap",
        "partition": "main",
        "tasks": 4,
        "cpus": 4,
        "state": "ours, waiting",
        "submit_s": NOW - 60,
        "start_s": 0,
        "nodes": [],
        "reason": "",
    }
    return {**shown, **fields}


STATUS = {
    "mode": "enforce",
    "disabled": False,
    "at_s": NOW - 1,
    "cycle_s": 0.012,
    "cycles": 3,
    "placed": 2,
    "waiting": 5,
    "placing": 1,
    "running": 4,
    "held_by_owner": 0,
    "nodes": 2,
    "nodes_unavailable": {},
    "capacity": {"cores": 56, "memory_mb": 256_000},
    "free": {"cores": 20, "memory_mb": 128_000},
    "chosen": "",
    "matched": {},
    "projects": {},
}


def member(**fields):
    shown = {
        "heuristic": "mix-fit",
        "jobs_matched": 3,
        "won": True,
        "position": 0,
        "nodes": [],
        "best": [],
        "withheld_for_it": [],
        "tried": [],
    }
    return {**shown, **fields}


def explained(**fields):
    return {"job_id": 7, "job": None, "decisions": [], "considered": None, "cycle": None, "unavailable": {}, **fields}


def test_text_of_others_is_printed_as_it_is_without_its_control_characters() -> None:
    assert printed(plain(EVIL)).rstrip("\n") == HARMLESS


@pytest.mark.parametrize("field", ["name", "user", "account", "partition", "reason"])
def test_no_field_of_a_job_reaches_the_terminal_unescaped(field: str) -> None:
    text = printed(queue_table([row(**{field: EVIL})], NOW))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "[bold]" in text, "and it is shown, not taken for markup"
    assert text.count("\n") == 2, "a heading and one line"


def test_status_and_explain_escape_what_others_wrote() -> None:
    status = {**STATUS, "nodes_unavailable": {"c1": EVIL}, "projects": {EVIL: project()}}
    decided = {"at_s": NOW, "action": "note", "nodes": [], "reason": EVIL}
    parts = explanation(explained(job=row(reason=EVIL), decisions=[decided], unavailable={"c1": EVIL}))
    for text in (printed(status_table(status, NOW)), printed(*parts)):
        assert "\x1b" not in text
        assert HARMLESS in text


def project(share: float = 1.0):
    return {"share": share, "used": {"cores": 4, "memory_mb": 2048}}


def test_status_says_how_it_stands() -> None:
    text = printed(status_table({**STATUS, "projects": {"physics": project(2.5)}, "held_by_owner": 1}, NOW))
    lines = {line.split("  ")[0]: line.split("  ", 1)[1].strip() for line in text.splitlines()}
    assert lines["mode"] == "enforce"
    assert lines["last cycle"] == "1 s ago, took 12 ms"
    assert lines["cycles"] == "3, 2 jobs placed since the start"
    assert lines["free cores"] == "20 of 56 on 2 nodes"
    assert lines["free memory"] == "125.0 of 250.0 GiB"
    assert lines["account physics"] == "share 2.5, uses 4 cores, 2.0 GiB"
    assert lines["held by owner"] == "1"


def test_status_says_when_it_is_disabled() -> None:
    assert "disabled: jobs pass through" in printed(status_table({**STATUS, "disabled": True}, NOW))


def test_an_empty_queue_is_said_in_words() -> None:
    assert queue_table([], NOW) == "no jobs"


def test_a_reason_that_nobody_gave_is_not_printed() -> None:
    text = printed(queue_table([row(state="running", nodes=["c1"], reason="")], NOW))
    assert "None" not in text
    assert text.splitlines()[1].split() == ["7", "alice", "physics", "main", "wrap", "4", "60", "s", "running", "c1"]


def test_explain_of_a_job_that_was_placed() -> None:
    decided = {"at_s": NOW, "action": "start", "nodes": ["c1", "c2"], "reason": "by mix-fit"}
    cycle = {"waiting_jobs": 4, "chosen": "mix-fit", "own_heuristic": None, "members": [member(nodes=["c1", "c2"])]}
    job = row(state="running", nodes=["c1", "c2"])
    text = printed(*explanation(explained(job=job, decisions=[decided], cycle=cycle)))
    assert "job 7: running on c[1-2]" in text
    assert "placed on c[1-2], by mix-fit" in text
    assert "In that cycle 4 jobs waited; mix-fit matched the most and was dispatched." in text
    assert "mix-fit *" in text
    assert "3 (most)" in text


def test_explain_of_a_job_that_waits_says_what_was_missing() -> None:
    lack = {"node": "c1", "lacks": [2, 0, 0, 0], "not_empty": False}
    tried = {
        "size": "4 cores",
        "nodes_needed": 1,
        "nodes_fitting": 0,
        "nearest": [lack],
        "withheld_in_the_way": [3],
        "fits_if_empty": False,
    }
    cycle = {"waiting_jobs": 1, "chosen": "mix-fit", "own_heuristic": "mix-fit", "members": [member(tried=[tried])]}
    text = printed(*explanation(explained(job=row(), cycle=cycle, unavailable={"c9": "drain"})))
    assert "It needs 4 cores: 1 of the nodes; 0 had that free at its turn." in text
    assert "nearest: c1" in text
    assert "capacity is withheld for job 3" in text
    assert "too small or too few for it, even empty" in text
    assert "node c9 cannot be used: drain" in text
    assert "a heuristic of its own, mix-fit" in text


def test_explain_of_a_job_that_is_over() -> None:
    assert "job 7: no longer in Slurm" in printed(*explanation(explained()))


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-3, "0 s"), (0.4, "0 s"), (119, "119 s"), (120, "2 min"), (7199, "120 min"), (7200, "2.0 h"), (172_800, "2.0 d")],
)
def test_durations_are_short(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_node_names_are_folded_as_slurm_folds_them() -> None:
    assert folded(["c2", "c1", "c3", "s1"]) == "c[1-3],s1"
    assert folded([]) == ""


SCALE = {
    "scale": 2,
    "exclusive": False,
    "nodes": 2,
    "tasks_per_node": 8,
    "cores": 8,
    "memory_mb": 8192,
    "ways": 3,
    "bandwidth_gbps": 60,
    "corrected_time_s": 81.5,
    "full_ipc": 1.0,
    "target_ipc": 0.9,
    "ipc": 0.92,
    "slowdown": 0.905,
    "dropped": "",
}


def considered(**fields):
    shown = {
        "program": "mg",
        "processes": 16,
        "alpha": 0.9,
        "fewest_nodes": 1,
        "kind": "scaling",
        "ideal_scale": 8,
        "bottleneck": "bandwidth",
        "profiled_processes": 16,
        "considered": [SCALE],
        "note": "",
    }
    return {**shown, **fields}


def test_explain_of_a_spreadable_job_shows_its_class_and_each_scale_with_its_figures() -> None:
    whole = {**SCALE, "scale": 1, "exclusive": True}
    dropped = {**SCALE, "scale": 8, "ways": None, "dropped": "it needs 8 nodes; 4 are large enough"}
    text = printed(*explanation(explained(considered=considered(considered=[SCALE, whole, dropped]))))
    assert "Program mg is scaling (bound by bandwidth), fastest at scale 8" in text
    assert "2 2 8 8 8192 3 60 81.5 1 0.9 0.92 0.905" in " ".join(text.split())
    assert "on empty nodes" in text
    assert "no: it needs 8 nodes; 4 are large enough" in text


def test_explain_of_a_program_without_profile_says_so() -> None:
    text = printed(*explanation(explained(considered=considered(program=EVIL, kind=None, note="no profile"))))
    assert "no profile" in text
    assert "\x1b" not in text
