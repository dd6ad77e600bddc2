"""The scheduler's answers on a terminal: readable, and harmless whatever users have written into them."""

import pytest
from rich.console import Console

from slurm_sns.cli.live.explain_view import duration, explanation, folded, plain

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
        "label": "7",
        "user": "alice",
        "account": "physics",
        "name": "wrap",
        "partition": "main",
        "tasks": 4,
        "cpus": 4,
        "state": "waiting",
        "submit_s": NOW - 60,
        "start_s": 0,
        "nodes": [],
        "reason": "",
    }
    return {**shown, **fields}


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
    shown = {"job_id": 7, "label": "7", "pass_through": None, "array": "", "job": None, "decisions": []}
    return {**shown, "considered": None, "cycle": None, "unavailable": {}, **fields}


def test_text_of_others_is_printed_as_it_is_without_its_control_characters() -> None:
    assert printed(plain(EVIL)).rstrip("\n") == HARMLESS


def test_explain_escapes_what_others_wrote() -> None:
    decided = {"at_s": NOW, "action": "note", "nodes": [], "reason": EVIL, "times": 3}
    text = printed(*explanation(explained(job=row(reason=EVIL), decisions=[decided], unavailable={"c1": EVIL})))
    assert "\x1b" not in text
    assert f"{HARMLESS} (3 times)" in text


def test_explain_says_that_capacity_is_withheld_for_others_without_naming_them() -> None:
    tried = {
        "size": "4 cores",
        "nodes_needed": 1,
        "nodes_fitting": 0,
        "nearest": [],
        "withheld_in_the_way": [],
        "withheld_for_others": 2,
        "fits_if_empty": True,
    }
    cycle = {"waiting_jobs": 1, "chosen": "mix-fit", "own_heuristic": None, "members": [member(tried=[tried])]}
    text = printed(*explanation(explained(job=row(), cycle=cycle)))
    assert "it would fit, but capacity is withheld for jobs of other users" in text


def test_explain_of_a_job_that_was_placed() -> None:
    decided = {"at_s": NOW, "action": "start", "nodes": ["c1", "c2"], "reason": "by mix-fit", "times": 1}
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
    assert "It needs 4 cores. Nodes that had this free at its turn: 0; needed: 1." in text
    assert "nearest: c1" in text
    assert "capacity is withheld for job 3" in text
    assert "too small or too few for it, even empty" in text
    assert "node c9 cannot be used: drain" in text
    assert "a heuristic of its own, mix-fit" in text


def test_explain_of_a_pass_through_job_says_why_it_is_slurms_own() -> None:
    why = "it asks for a constraint (--constraint)"
    waits = explained(pass_through=why, job=row(state="waiting", reason="Resources"))
    assert printed(*explanation(waits)) == (
        "job 7 is Slurm's own: it asks for a constraint (--constraint)\n  waiting, Slurm's reason: Resources\n"
    )
    runs = explained(
        pass_through=why, job=row(state="running", nodes=["c1", "c2"]), array="tasks of array 7: 1 running"
    )
    assert printed(*explanation(runs)).splitlines()[1:] == ["  running on c[1-2]", "  tasks of array 7: 1 running"]
    hostile = printed(*explanation(explained(pass_through=EVIL, job=row(state=EVIL, reason=EVIL))))
    assert "\x1b" not in hostile
    assert hostile.count(HARMLESS) == 3


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
