"""Shows an answer once or repeatedly: on a terminal as a page, in a pipe as plain lines, or as JSON.

A watch goes on when the scheduler stops: while that does not answer, the last page stays below a line that says so.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from slurm_sns.cli.live.asking import WATCH_SECONDS
from slurm_sns.cli.live.terminal import clock
from slurm_sns.cli.termination import terminated_as_interrupted
from slurm_sns.errors import BadInput, SnsError

Ask = Callable[[], Any]


class Look(NamedTuple):
    """The two forms in which an answer is shown: `page(answer, now_s, width)` and `lines(answer, now_s)`."""

    page: Callable[[Any, float, int], RenderableType]
    lines: Callable[[Any, float], Iterator[str]]


def show(ask: Ask, look: Look, seconds: float | None, *, watch: bool, as_json: bool) -> None:
    """Print the answer; with `watch` every so many seconds, until Ctrl-C or SIGTERM, neither of which is an error.

    Raises:
        BadInput: the request was at fault, so that asking again would not help; or seconds without `watch`.
    """
    if seconds is not None and not watch:
        raise BadInput(f"{seconds:g}: SECONDS goes with --watch")
    console = Console(highlight=False)
    if watch:
        every_s = WATCH_SECONDS if seconds is None else seconds
        with suppress(KeyboardInterrupt), terminated_as_interrupted():
            if console.is_terminal and not as_json:
                _in_place(console, ask, look, every_s)
            else:
                _in_lines(ask, look, every_s, as_json=as_json)
        return
    answer = ask()
    if as_json:
        print(json.dumps(answer, indent=2))
    elif console.is_terminal:
        console.print(look.page(answer, time.time(), console.width))
    else:
        for line in look.lines(answer, time.time()):
            print(line)


def _in_place(console: Console, ask: Ask, look: Look, every_s: float) -> None:
    """Update the page on the terminal's alternate screen; at the end print the last page on the normal screen."""
    page: RenderableType = Text()
    try:
        with Live(console=console, screen=True, auto_refresh=False, vertical_overflow="crop") as live:
            answer: Any = None
            while True:
                answer, problem = _try(ask, answer)
                now_s = time.time()
                page = Text() if answer is None else look.page(answer, now_s, console.width)
                head = Text(f"{clock(now_s)}  every {every_s:g} s, Ctrl-C ends", style="dim")
                trouble = [Text(f"! {problem}; trying again", style="bold red")] if problem else []
                live.update(Group(head, *trouble, page), refresh=True)
                time.sleep(every_s)
    finally:
        console.print(page)


def _in_lines(ask: Ask, look: Look, every_s: float, *, as_json: bool) -> None:
    """Every `every_s` seconds, print the time and a block of lines, or one line with a JSON object."""
    while True:
        answer, problem = _try(ask, None)
        now_s = time.time()
        if as_json:
            print(json.dumps({"at_s": now_s, "error": problem} if problem else {"at_s": now_s, "answer": answer}))
        else:
            lines = [f"warning: {problem}"] if problem else look.lines(answer, now_s)
            print(f"time: {clock(now_s)}", *lines, "", sep="\n")
        sys.stdout.flush()
        time.sleep(every_s)


def _try(ask: Ask, last: Any) -> tuple[Any, str]:
    """The answer and an empty text, or the last answer and the reason, in one line, why there is no new one."""
    try:
        return ask(), ""
    except BadInput:
        raise
    except SnsError as problem:
        return last, " ".join(str(problem).split())
