"""`sns top` as its user sees it, by Textual's pilot: views, keys, and acts that nothing does without a yes."""

import asyncio
import re
import runpy
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from overviews import large, overview, running, small, waiting
from shown import EVIL, FORBIDDEN, NOW
from textual.events import Key
from textual.pilot import Pilot

from slurm_sns.cli.live.squeue_options import JobFilter
from slurm_sns.cli.live.top.app import ClusterTop
from slurm_sns.cli.live.top.job_acts import Doors
from slurm_sns.cli.live.top.queue_lines import ColumnLines, JobChoice
from slurm_sns.cli.live.top.screens import ExplanationScreen
from slurm_sns.errors import BadInput, Refused, SnsError, Unreachable

SMALL, WIDE = (80, 24), (160, 50)
CHANGES = [
    {"kind": "time", "options": "-t 1:55:00", "nodes": ["c2"]},
    {"kind": "memory", "options": "--mem=66G", "nodes": ["c3"]},
    {"kind": "cpus per task", "options": "-c 8", "nodes": ["c1"]},
]


def explained(**fields: Any) -> dict[str, Any]:
    answer = {
        "job_id": 4720,
        "label": "4720",
        "pass_through": None,
        "array": "",
        "job": waiting(4720),
        "decisions": [],
        "order": None,
        "considered": None,
        "cycle": None,
        "would_start": CHANGES,
        "unavailable": {},
    }
    return {**answer, **fields}


class Outside:
    """A scheduler and a Slurm of a test: what they answer, and what they were asked."""

    def __init__(self, shown: Any = None, **answers: Any) -> None:
        self.answers = {"overview": shown or small(), "explain": explained(), "release": {"label": "4720"}, **answers}
        self.asked: list[dict] = []
        self.commands: list[tuple[str, ...]] = []
        self.switched: list[bool] = []
        self.may_not = ""
        self.slurm_refuses = ""
        self.is_off = False

    def acts(self) -> list:
        """All that was asked for beside looking."""
        asked = [each for each in self.asked if each["command"] not in ("overview", "explain")]
        return [*asked, *self.commands, *self.switched]

    def _ask(self, request: dict) -> Any:
        self.asked.append(request)
        answer = self.answers[request["command"]]
        if isinstance(answer, Exception):
            raise answer
        return answer() if callable(answer) else answer

    def _run(self, *command: str) -> str:
        if self.slurm_refuses:
            raise Refused(self.slurm_refuses)
        self.commands.append(command)
        return ""

    def _may_switch(self) -> bool:
        if self.may_not:
            raise BadInput(self.may_not)
        return self.is_off

    def _switch(self, on: bool) -> str:
        self.switched.append(on)
        return "slurm_sns is now disabled: jobs pass through to Slurm"

    @property
    def doors(self) -> Doors:
        return Doors(self._ask, self._run, self._may_switch, self._switch, lambda _: "", lambda: NOW)


class Seen:
    """The running application, by keys and by the text on its screen."""

    def __init__(self, pilot: Pilot) -> None:
        self._pilot = pilot

    async def press(self, *keys: str) -> None:
        await self._pilot.press(*keys)
        await self._pilot.pause()

    async def resize(self, width: int, height: int) -> None:
        await self._pilot.resize_terminal(width, height)
        await self._pilot.pause()

    async def click(self, text: str) -> None:
        lines = self.lines()
        at = next(row for row, line in enumerate(lines) if text in line)
        await self._pilot.click(offset=(lines[at].index(text), at))
        await self._pilot.pause()

    def lines(self) -> list[str]:
        strips = self._pilot.app.screen._compositor.render_strips()
        return ["".join(segment.text for segment in strip).rstrip() for strip in strips]

    @property
    def text(self) -> str:
        return "\n".join(self.lines())

    @property
    def told(self) -> str:
        """The text as one line, as a dialog wraps it."""
        return " ".join(self.text.replace("│", " ").replace("|", " ").split())

    @property
    def cursor(self) -> str:
        return next(line for line in self.lines() if line.startswith(">"))

    async def wait_for(self, text: str, *, gone: bool = False) -> None:
        for _ in range(500):
            if (text in self.told) is not gone:
                return
            await self._pilot.pause(0.02)
        pytest.fail(f"{text!r} {'stays in' if gone else 'is not in'}\n{self.text}")


def follow(
    story: Callable[[Seen], Awaitable[None]],
    outside: Outside | None = None,
    size: tuple[int, int] = SMALL,
    choice: JobChoice | None = None,
    **options: Any,
) -> Outside:
    """Run the application for the story; what the outside was asked."""
    outside = outside or Outside()

    async def run() -> None:
        app = ClusterTop(outside.doors, choice or JobChoice(), options.pop("form", ColumnLines()), **options)
        async with app.run_test(size=size) as pilot:
            seen = Seen(pilot)
            answer = outside.answers["overview"]
            if not isinstance(answer, Exception) and "mode" in answer:
                await seen.wait_for("waiting,")
            await story(seen)

    asyncio.run(run())
    return outside


def test_it_opens_with_the_queue_in_our_order_with_why_and_when() -> None:
    async def story(seen: Seen) -> None:
        lines = seen.lines()
        assert len(lines) == 24
        assert max(map(len, lines)) <= 80
        assert lines[0] == "enforce  6 waiting, 3 running, 1 never  cycle 12 ms by max-jobs, 1 s ago"
        assert lines[1].split() == ["POS", "JOBID", "USER", "SIZE", "SINCE", "NODES", "START", "WHY"]
        assert [line.split()[1] for line in lines[2:9]][1:] == ["4721", "4722_[3-5]", "4730", "4711", "4715", "4717"]
        assert seen.cursor.startswith("> !1        4720")
        assert "no allowed node has 4 cores" in seen.told
        assert lines[-1].startswith("1/7 (9 jobs)  Enter:explain")
        assert lines[-1].endswith("q:quit")

    follow(story)


def test_a_wide_terminal_shows_queue_and_nodes_and_a_narrow_one_what_n_or_tab_chooses() -> None:
    async def story(seen: Seen) -> None:
        assert "c1 26/28c" in seen.text
        assert "4722_[3-5]" in seen.text
        await seen.resize(*SMALL)
        assert "c1 26/28c" not in seen.text
        for key in ("n", "tab"):
            await seen.press(key)
            assert "c1 26/28c" in seen.text
            assert "4722_[3-5]" not in seen.text
            await seen.press(key)
            assert "4722_[3-5]" in seen.text

    follow(story, size=WIDE)


def test_keys_that_come_at_once_go_to_the_view_that_the_first_one_opens() -> None:
    async def story(seen: Seen) -> None:
        app = seen._pilot.app
        for key in ("n", "n", "enter"):
            app.post_message(Key(key, None))
        await seen.wait_for("job 4720: waiting")

    follow(story)


def test_the_cursor_moves_by_keys_and_stays_on_its_job_when_the_queue_changes() -> None:
    outside = Outside()
    shown = {**small(), "next_s": NOW + 0.6}
    outside.answers["overview"] = shown

    async def story(seen: Seen) -> None:
        await seen.press("down", "j")
        assert "4722_[3-5]" in seen.cursor
        outside.answers["overview"] = {**shown, "jobs": shown["jobs"][1:]}
        await seen.wait_for("!1", gone=True)
        assert "4722_[3-5]" in seen.cursor
        await seen.press("end")
        assert "4717" in seen.cursor
        await seen.press("home", "k")
        assert "4721" in seen.cursor

    follow(story, outside)


def test_a_job_that_has_left_the_queue_is_said_and_no_other_one_is_acted_on() -> None:
    outside = Outside({**small(), "next_s": NOW + 0.6})
    shown = outside.answers["overview"]

    async def story(seen: Seen) -> None:
        await seen.press("down")
        seen._pilot.app.say("an old message")
        outside.answers["overview"] = {**shown, "jobs": [row for row in shown["jobs"] if row["label"] != "4721"]}
        await seen.wait_for("4721 has left the queue")
        assert "old message" not in seen.told
        assert not any(line.startswith(">") for line in seen.lines())
        await seen.press("r", "t", "enter")
        assert "4721 has left the queue: move the cursor" in seen.told
        assert "yes" not in seen.text
        await seen.press("down", "r")
        assert "Give job" in seen.told

    assert all(each["command"] == "overview" for each in follow(story, outside).asked)


def test_the_cursor_stays_on_an_array_of_which_a_task_starts() -> None:
    outside = Outside({**small(), "next_s": NOW + 0.6})
    shown = outside.answers["overview"]

    async def story(seen: Seen) -> None:
        await seen.press("down", "down")
        rows = [running(50, ["c1"], label="4722_3") if row["label"] == "4722_3" else row for row in shown["jobs"]]
        outside.answers["overview"] = {**shown, "jobs": rows}
        await seen.wait_for("4722_[4-5]")
        assert "4722_[4-5]" in seen.cursor
        assert "has left" not in seen.text

    follow(story, outside)


def test_words_that_hide_the_job_of_the_cursor_select_another_one() -> None:
    async def story(seen: Seen) -> None:
        await seen.press("/", *"bob")
        assert "has left" not in seen.text
        await seen.press("enter")
        assert "4730" in seen.cursor

    follow(story)


def test_an_explanation_can_come_before_its_screen_is_made() -> None:
    async def story(seen: Seen) -> None:
        app = seen._pilot.app
        with app._context():
            screen = ExplanationScreen(waiting(1))
            screen.fail("no")
            screen.say("so")
            screen.explain(["an explanation"])
            await app.push_screen(screen)
        await seen.wait_for("an explanation")
        assert "so" in seen.lines()

    follow(story)


def test_an_overview_of_another_version_is_told_and_asked_for_again() -> None:
    shown = small()
    outside = Outside({key: value for key, value in shown.items() if key != "mode"})

    async def story(seen: Seen) -> None:
        await seen.wait_for("sns and the scheduler may be of different versions")
        outside.answers["overview"] = shown
        await seen.wait_for("6 waiting, 3 running")

    follow(story, outside, WIDE)


def test_a_queue_longer_than_the_screen_scrolls_with_the_cursor() -> None:
    async def story(seen: Seen) -> None:
        await seen.press("end")
        assert seen.lines()[-1].startswith("300/300")
        assert "100299" in seen.cursor
        await seen.press("pageup", "pageup")
        assert seen.lines()[-1].startswith("264/300")

    rows = [waiting(100_000 + at, position=at + 1) for at in range(300)]
    follow(story, Outside(overview(rows, [])))


def test_only_the_lines_on_the_screen_are_made() -> None:
    most: list[int] = []

    class Counted(ColumnLines):
        def lines(self, rows, now_s, width):
            most.append(len(rows))
            return super().lines(rows, now_s, width)

    async def story(seen: Seen) -> None:
        await seen.press("end", "home", "pagedown")

    follow(story, Outside(large(10_000, 1000)), form=Counted())
    assert max(most) <= 24


def test_a_slash_filters_while_one_types_and_escape_shows_all() -> None:
    async def story(seen: Seen) -> None:
        await seen.press("/", *"bob")
        assert "4730" in seen.text
        assert "4721" not in seen.text
        await seen.press("enter")
        assert "/:bob" in seen.lines()[-1]
        await seen.press("down")
        assert "4715" in seen.cursor
        await seen.press("escape")
        assert "4721" in seen.text
        assert "/:filter" in seen.lines()[-1]

    follow(story)


def test_letters_typed_into_the_filter_are_no_keys() -> None:
    async def story(seen: Seen) -> None:
        await seen.press("/", *"qrtdn?")
        assert "no jobs" in seen.text
        assert "qrtdn?" in seen.text

    assert follow(story).acts() == []


def test_arrays_are_folded_until_a_is_pressed() -> None:
    async def story(seen: Seen) -> None:
        await seen.press("a")
        assert "4722_4" in seen.text
        assert seen.lines()[-1].startswith("1/9  ")
        await seen.press("a")
        assert "4722_[3-5]" in seen.text

    follow(story)


def test_squeues_options_choose_the_jobs() -> None:
    async def story(seen: Seen) -> None:
        assert "4730" in seen.lines()[2]
        assert "4715" in seen.lines()[3]
        assert "4721" not in seen.text

    follow(story, choice=JobChoice(JobFilter(users="bob"), "-i"))


def test_help_lists_the_keys_and_closes() -> None:
    async def story(seen: Seen) -> None:
        await seen.press("?")
        assert "release the job to Slurm" in seen.text
        await seen.press("n", "/", "a", "d")  # keys of the views do nothing here
        assert "release the job to Slurm" in seen.text
        await seen.press("escape")
        assert "4721" in seen.text

    assert follow(story).acts() == []


def test_nodes_are_chosen_by_arrows_and_told_and_listed_by_enter() -> None:
    async def story(seen: Seen) -> None:
        await seen.press("n")
        assert "c1: free 2 of 28 cores" in seen.told
        await seen.press("right")
        assert "c2: free 12 of 28 cores" in seen.told
        await seen.press("enter")
        assert "12 of 20 cache ways free" in seen.text
        assert "A 88 8c,16G (of Slurm alone)" in seen.told
        await seen.press("enter")
        await seen.wait_for("It would start now with one of these changes")

    outside = follow(story)
    assert {"command": "explain", "job_id": 4715} in outside.asked


def test_a_job_of_somebody_else_is_not_explained() -> None:
    async def story(seen: Seen) -> None:
        await seen.press("n", "enter", "down", "down", "enter")
        await seen.wait_for("this job is somebody else's")

    assert all(each["command"] == "overview" for each in follow(story).asked)


def test_nodes_can_be_one_line_each() -> None:
    async def story(seen: Seen) -> None:
        await seen.press("n", "c")
        assert ">c1           [a4711aaaaaaaaabbb··\u2571] 26/28c 128/128G 16/20w" in seen.text
        await seen.press("c")
        assert "┌──" in seen.text

    follow(story)


def test_a_thousand_nodes_scroll() -> None:
    async def story(seen: Seen) -> None:
        await seen.press("n", "end")
        assert seen.lines()[-1].startswith("1000/1000")
        assert "n00999" in seen.text
        await seen.press("c", "home")
        assert "n00000" in seen.cursor

    follow(story, Outside(large(100, 1000)))


def test_the_mouse_chooses_as_keys_do() -> None:
    async def story(seen: Seen) -> None:
        await seen.click("4721")
        assert "4721" in seen.cursor
        await seen.click("4721")
        await seen.wait_for("It would start now")
        await seen.press("escape", "n")
        await seen.click("c3 kept")
        assert "c3: free 28 of 28 cores" in seen.told

    follow(story)


def test_enter_explains_with_what_would_start_the_job_now() -> None:
    async def story(seen: Seen) -> None:
        await seen.press("enter")
        await seen.wait_for("job 4720: waiting")
        assert "--mem=66G on c3" in seen.told
        await seen.press("escape")
        assert seen.cursor

    assert {"command": "explain", "job_id": 4720} in follow(story).asked


@pytest.mark.parametrize(
    "problem", [SnsError("too many jobs are\nbeing explained"), BadInput("too many jobs are being explained")]
)
def test_an_explanation_that_fails_is_one_sentence(problem: Exception) -> None:
    async def story(seen: Seen) -> None:
        await seen.press("enter")
        await seen.wait_for("! too many jobs are being explained")

    follow(story, Outside(explain=problem))


def test_an_explanation_that_cannot_be_read_is_one_sentence() -> None:
    async def story(seen: Seen) -> None:
        await seen.press("enter")
        await seen.wait_for("! the answer cannot be read: KeyError")

    follow(story, Outside(explain={"label": "1"}))


def test_an_explanation_that_comes_after_it_was_closed_is_dropped() -> None:
    comes = threading.Event()

    def late() -> dict:
        comes.wait(10)
        return explained()

    async def story(seen: Seen) -> None:
        await seen.press("enter", "escape")
        comes.set()
        await seen.press("down")
        assert "4721" in seen.cursor

    follow(story, Outside(explain=late))


class TestActs:
    def test_a_release_is_sent_after_yes(self) -> None:
        async def story(seen: Seen) -> None:
            await seen.press("r")
            assert "Give job 4720 (wide) to Slurm?" in seen.told
            await seen.press("y")
            await seen.wait_for("job 4720 is left to Slurm within a few seconds")

        assert follow(story).acts() == [{"command": "release", "job_id": 4720}]

    @pytest.mark.parametrize("no", [("n",), ("escape",), ("enter",), ("q",)])
    def test_nothing_is_sent_after_no(self, no: tuple[str, ...]) -> None:
        async def story(seen: Seen) -> None:
            for keys in (("r",), ("t",), ("d",)):
                await seen.press(*keys)
                if keys == ("t",):
                    await seen.wait_for("Try 4720 with")
                    await seen.press("enter")
                    await seen.wait_for("scontrol update")
                else:
                    await seen.wait_for("y: yes")
                await seen.press(*no)
                await seen.wait_for("nothing was done")

        assert follow(story).acts() == []

    def test_less_is_tried_by_the_command_that_was_shown(self) -> None:
        async def story(seen: Seen) -> None:
            await seen.press("enter")
            await seen.wait_for("It would start now")
            await seen.press("t", "down", "enter")
            assert "scontrol update JobId=4720 MinMemoryNode=67584" in seen.told
            await seen.press("y")
            await seen.wait_for("Slurm has changed the job")

        assert follow(story).commands == [("scontrol", "update", "JobId=4720", "MinMemoryNode=67584")]

    def test_what_slurm_cannot_change_is_told_and_not_run(self) -> None:
        async def story(seen: Seen) -> None:
            await seen.press("t")
            await seen.wait_for("Try 4720 with")
            await seen.press("end", "enter")
            await seen.wait_for("submit 4720 again with -c 8")

        assert follow(story).acts() == []

    def test_slurms_refusal_is_shown(self) -> None:
        outside = Outside()
        outside.slurm_refuses = "scontrol: Access/permission denied"

        async def story(seen: Seen) -> None:
            await seen.press("t")
            await seen.wait_for("Try 4720 with")
            await seen.press("enter", "y")
            await seen.wait_for("! scontrol: Access/permission denied")

        follow(story, outside)

    def test_a_job_that_no_change_would_start_says_so(self) -> None:
        async def story(seen: Seen) -> None:
            await seen.press("t")
            await seen.wait_for("4720: no smaller request is known that would start it now")

        follow(story, Outside(explain=explained(would_start=[])))

    def test_an_admin_disables_after_yes(self) -> None:
        async def story(seen: Seen) -> None:
            await seen.press("d")
            await seen.wait_for("Disable slurm_sns?")
            await seen.press("y")
            await seen.wait_for("slurm_sns is now disabled")

        assert follow(story).acts() == [True]

    def test_what_is_disabled_is_enabled(self) -> None:
        async def story(seen: Seen) -> None:
            assert "! disabled: jobs pass through to Slurm until sns enable" in seen.text
            await seen.press("d")
            await seen.wait_for("Enable slurm_sns?")
            await seen.press("y")
            await seen.wait_for("slurm_sns is now")

        outside = Outside({**small(), "disabled": True})
        outside.is_off = True
        assert follow(story, outside).acts() == [False]

    def test_what_somebody_else_disabled_meanwhile_is_not_disabled_again(self) -> None:
        outside = Outside()
        outside.is_off = True

        async def story(seen: Seen) -> None:
            await seen.press("d")
            await seen.wait_for("Enable slurm_sns?")

        follow(story, outside)

    def test_after_an_act_a_new_overview_is_asked_for(self) -> None:
        outside = Outside({**small(), "next_s": NOW + 100})

        async def story(seen: Seen) -> None:
            outside.answers["overview"] = overview([waiting(9)], [])
            await seen.press("r", "y")
            await seen.wait_for("1 waiting, 0 running")

        follow(story, outside)

    def test_a_job_that_runs_by_now_is_not_changed(self) -> None:
        outside = Outside()

        async def story(seen: Seen) -> None:
            await seen.press("enter")
            await seen.wait_for("It would start now")
            outside.answers["explain"] = explained(job=running(4720, ["c1"]))
            await seen.press("t")
            await seen.wait_for("! 4720 no longer waits (it is running): nothing was changed")

        assert follow(story, outside).acts() == []

    @pytest.mark.parametrize(
        ("later", "told"),
        [
            ({"job": running(4720, ["c1"])}, "! 4720 no longer waits (it is running): nothing was changed"),
            ({"job": None}, "! 4720 no longer waits (it is no longer in Slurm): nothing was changed"),
            ({"would_start": CHANGES[1:]}, "! 4720 would no longer start with -t 1:55:00: nothing was changed"),
        ],
    )
    def test_a_job_that_has_started_before_the_yes_is_not_changed(self, later: dict, told: str) -> None:
        outside = Outside()

        async def story(seen: Seen) -> None:
            await seen.press("t")
            await seen.wait_for("Try 4720 with")
            await seen.press("enter")
            outside.answers["explain"] = explained(**later)
            await seen.press("y")
            await seen.wait_for(told)

        assert follow(story, outside).acts() == []

    def test_no_question_comes_over_a_screen_that_was_opened_meanwhile(self) -> None:
        comes = threading.Event()

        def late() -> dict:
            comes.wait(10)
            return explained()

        async def story(seen: Seen) -> None:
            await seen.press("t", "r")
            comes.set()
            await seen.wait_for("another screen was opened meanwhile: press t again")
            assert "Give job 4720" in seen.told
            assert "Try 4720" not in seen.told

        assert follow(story, Outside(explain=late)).acts() == []

    def test_acts_on_jobs_do_nothing_on_the_help_page(self) -> None:
        async def story(seen: Seen) -> None:
            await seen.press("?", "r", "t")
            assert "Nothing is changed before you have said yes" in seen.text

        outside = follow(story)
        assert outside.acts() == []
        assert all(each["command"] == "overview" for each in outside.asked)

    def test_whatever_goes_wrong_is_one_line(self) -> None:
        async def story(seen: Seen) -> None:
            await seen.press("enter")
            await seen.wait_for("! ZeroDivisionError: by nothing")

        follow(story, Outside(explain=ZeroDivisionError("by\nnothing")))

    @pytest.mark.parametrize(
        ("wait_s", "told"),
        [(10.0, "job 4720 is left to Slurm"), (0.0, "it is not known whether 4720 was given to Slurm; see: sns exp")],
    )
    def test_what_came_of_an_act_is_told_after_the_end(self, wait_s: float, told: str) -> None:
        comes = threading.Event()
        asked = threading.Event()

        def late() -> dict:
            asked.set()
            comes.wait(10)
            return {"label": "4720"}

        outside = Outside(release=late)
        app = ClusterTop(outside.doors, JobChoice(), ColumnLines())

        async def run() -> None:
            async with app.run_test(size=SMALL) as pilot:
                seen = Seen(pilot)
                await seen.wait_for("waiting,")
                await seen.press("r", "y", "q")

        asyncio.run(run())
        assert asked.wait(10)
        if wait_s:
            comes.set()
        [line] = app.outcomes(wait_s)
        comes.set()
        assert line.startswith(told)

    def test_what_the_screen_has_told_is_not_told_again(self) -> None:
        outside = Outside()
        app = ClusterTop(outside.doors, JobChoice(), ColumnLines())

        async def run() -> None:
            async with app.run_test(size=SMALL) as pilot:
                seen = Seen(pilot)
                await seen.wait_for("waiting,")
                await seen.press("r", "y")
                await seen.wait_for("job 4720 is left to Slurm")

        asyncio.run(run())
        assert app.outcomes() == []

    def test_nobody_else_is_asked_whether_to_disable(self) -> None:
        outside = Outside()
        outside.may_not = "only root and slurm may do this"

        async def story(seen: Seen) -> None:
            await seen.press("d")
            await seen.wait_for("! only root and slurm may do this")
            assert "yes" not in seen.text

        assert follow(story, outside).acts() == []


class TestScheduler:
    def test_it_may_begin_after_the_view(self) -> None:
        outside = Outside()
        outside.answers["overview"] = Unreachable("no scheduler answers at /run/sns/scheduler.sock")

        async def story(seen: Seen) -> None:
            await seen.wait_for("! no answer for 0 s, asking again: no scheduler answers")
            await seen.press("down", "n", "enter", "r", "t", "d", "n")  # no job, no node, no answer: nothing happens
            outside.answers["overview"] = small()
            await seen.wait_for("6 waiting, 3 running")
            assert "asking again" not in seen.text

        follow(story, outside)

    def test_the_last_page_stays_while_it_is_away(self) -> None:
        outside = Outside({**small(), "next_s": NOW + 0.6})

        async def story(seen: Seen) -> None:
            outside.answers["overview"] = Unreachable("no scheduler answers")
            await seen.wait_for("asking again: no scheduler answers")
            assert "4721" in seen.text
            await seen.press("down")
            assert "4721" in seen.cursor
            outside.answers["overview"] = overview([waiting(9)], [])
            await seen.wait_for("1 waiting, 0 running")

        follow(story, outside)

    def test_keys_count_while_an_answer_takes_long(self) -> None:
        answers = threading.Event()

        def slow() -> dict:
            answers.wait(20)
            return small()

        outside = Outside({**small(), "next_s": NOW + 0.6})

        async def story(seen: Seen) -> None:
            outside.answers["overview"] = slow
            while outside.asked[-1:] == outside.asked[:1] and len(outside.asked) < 2:
                await asyncio.sleep(0.05)
            await seen.press("down")
            assert "4721" in seen.cursor
            answers.set()

        follow(story, outside)


@pytest.mark.parametrize("size", [SMALL, WIDE, (40, 10)])
def test_hostile_names_are_shown_harmless_and_are_no_markup(size: tuple[int, int]) -> None:
    evil = waiting(
        1,
        name=EVIL,
        user=EVIL,
        account=EVIL,
        partition=EVIL,
        reason=EVIL,
        waits={"kind": "other", "about": EVIL, "features": EVIL},
    )
    shown = small()
    shown["jobs"].insert(0, evil)
    shown["nodes"][0] = {**shown["nodes"][0], "name": EVIL, "unavailable": EVIL, "kept_for": [EVIL]}
    shown["trouble"] = EVIL

    async def story(seen: Seen) -> None:
        pages = [seen.text]
        for keys in (("r",), ("n",), ("t",), ("escape",), ("enter",), ("escape",), ("n",), ("c",), ("enter",)):
            await seen.press(*keys)
            pages.append(seen.text)
        assert "[bold]" in "".join(pages)
        assert not any(letter in page for page in pages for letter in FORBIDDEN)

    answer = explained(job=evil, array=EVIL, would_start=[{"kind": "x", "options": EVIL, "nodes": ["c1"]}])
    follow(story, Outside(shown, explain=answer), size)


def test_without_unicode_every_character_is_ascii() -> None:
    async def story(seen: Seen) -> None:
        assert seen.text.isascii()
        await seen.press("r")
        assert seen.text.isascii()
        assert "+----" in seen.text
        await seen.press("n", "?")
        assert seen.text.isascii()

    follow(story, size=WIDE, ascii_only=True)


def test_no_color_leaves_marks_by_which_all_can_be_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    colours: set[str] = set()

    async def story(seen: Seen) -> None:
        app = seen._pilot.app
        assert app.no_color
        assert any(type(each).__name__ == "NoColor" for each in app.get_line_filters())
        assert seen.cursor.startswith(">")
        assert "!1" in seen.text
        assert "\u2571" in seen.text
        for widget in app.screen.walk_children():
            for strip in widget.render_lines(widget.size.region):
                for segment in strip.apply_filter(app._filters[-1], app.screen.styles.background):
                    style = segment.style
                    colours.update(
                        str(each) for each in (style.color, style.bgcolor) if style and each and not each.is_default
                    )

    follow(story, size=WIDE)
    assert colours == set()


@pytest.mark.long
def test_ten_thousand_jobs_and_a_thousand_nodes_are_shown_and_filtered() -> None:
    async def story(seen: Seen) -> None:
        await seen.press("end", "home", "down")
        await seen.press("/", *"user7 ")
        assert all("user7" in line for line in seen.lines()[2:10])

    follow(story, Outside(large(10_000, 1000)))


@pytest.mark.long
def test_the_picture_of_the_documentation_has_the_texts_of_today() -> None:
    program = Path(__file__).parents[3] / "docs" / "img" / "top.py"
    drawn = program.with_suffix(".svg").read_text(encoding="utf-8")
    made = runpy.run_path(str(program))["picture"]()

    def texts(of: str) -> str:  # the drawing around them is Textual's, and another one with another release of it
        return "".join(re.findall(r"<text[^>]*>([^<]*)</text>", of))

    assert "kept&#160;for&#160;4720" in texts(drawn)
    assert texts(drawn) == texts(made), "run `python docs/img/top.py`"
    assert drawn.count("http") == drawn.count('xmlns="http://www.w3.org/2000/svg"') == 1
