"""The scheduler's answers on a terminal: readable, and harmless whatever users have written into them."""

import pytest
from rich.console import Console
from shown import row

from slurm_sns.cli.live.terminal import explanation, plain
from slurm_sns.durations import duration

NOW = 100_000.0
EVIL = "\x1b[31mred\x1b[0m [bold]loud[/bold] [/] \r\n\x07 [link=http://x]x[/link] ünï"
HARMLESS = "?[31mred?[0m [bold]loud[/bold] [/] ??? [link=http://x]x[/link] ünï"


def printed(*parts) -> str:
    console = Console(width=250, highlight=False)
    with console.capture() as capture:
        for part in parts:
            console.print(part)
    return capture.get()


def told(**fields):
    return {"summary": [], "heading": "heuristic", "considered": [], "details": [], **fields}


def considered(name="mix-fit", outcome="on c[1-2]", reason="", **figures):
    return {"name": name, "outcome": outcome, "reason": reason, "figures": figures}


def explained(**fields):
    shown = {"job_id": 7, "label": "7", "pass_through": None, "array": "", "job": None, "decisions": []}
    return {**shown, "considered": None, "cycle": None, "unavailable": {}, **fields}


def test_text_of_others_is_printed_as_it_is_without_its_control_characters() -> None:
    assert printed(plain(EVIL)).rstrip("\n") == HARMLESS


def test_explain_escapes_what_others_wrote() -> None:
    decided = {"at_s": NOW, "action": "note", "nodes": [], "reason": EVIL, "times": 3}
    answer = explained(job=row(reason=EVIL), decisions=[decided], cycle=told(), unavailable={"c1": EVIL})
    text = printed(*explanation(answer))
    assert "\x1b" not in text
    assert f"{HARMLESS} (3 times)" in text
    assert f"node c1 cannot be used: {HARMLESS}" in text


def test_explain_of_a_job_that_was_placed() -> None:
    decided = {"at_s": NOW, "action": "start", "nodes": ["c1", "c2"], "reason": "by mix-fit", "times": 1}
    cycle = told(summary=["In that cycle 4 jobs waited."], considered=[considered(**{"jobs matched": 3})])
    job = row(state="running", nodes=["c1", "c2"])
    text = printed(*explanation(explained(job=job, decisions=[decided], cycle=cycle)))
    assert "job 7: running on c[1-2]" in text
    assert "placed on c[1-2], by mix-fit" in text
    assert "In that cycle 4 jobs waited." in text
    heading, shown = (line.split() for line in text.splitlines()[-2:])
    assert heading == ["HEURISTIC", "JOBS", "MATCHED", "OUTCOME"]
    assert shown == ["mix-fit", "3", "on", "c[1-2]"]


def test_explain_of_a_job_that_waits_says_what_was_missing() -> None:
    cycle = told(details=["It needs 4 cores.", "  nearest: c1 lacks 2 cores"])
    text = printed(*explanation(explained(job=row(), cycle=cycle, unavailable={"c9": "drain"})))
    assert "It needs 4 cores.\n  nearest: c1 lacks 2 cores\n" in text
    assert "node c9 cannot be used: drain" in text


def test_unusable_nodes_are_told_where_a_cycle_is_and_nowhere_else() -> None:
    text = printed(*explanation(explained(job=row(), pass_through="it was submitted", unavailable={"c9": "drain"})))
    assert "c9" not in text


def test_any_policys_explanation_is_shown_with_its_own_columns_and_harmless() -> None:
    rows = [considered("a", "yes", EVIL, score=0.123456789), considered("b", "no", cores=4, score=None)]
    text = printed(*explanation(explained(job=row(), considered=told(summary=[EVIL], considered=rows))))
    assert "\x1b" not in text
    assert text.count(HARMLESS) == 2
    assert text.splitlines()[-3].split() == ["HEURISTIC", "SCORE", "CORES", "OUTCOME", "WHY"]
    assert text.splitlines()[-2].split()[:3] == ["a", "0.1235", "yes"]
    assert text.splitlines()[-1].split() == ["b", "4", "no"]


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
    shares = "shares f1 with 1 other: 0.5 of its cores"
    shared = explained(pass_through=why, job=row(state="running", nodes=["f1"], reason=shares))
    assert printed(*explanation(shared)).splitlines()[1] == f"  running on f1, {shares}"
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
