"""A progress bar on standard error, when that is a terminal."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class ReportProgress(Protocol):
    """Reports progress: how much is done now, and out of how much if that was not known before."""

    def __call__(self, done: int, total: int | None = None, /) -> None:
        """Show this progress."""
        ...


@contextmanager
def progress_bar(title: str, total: int = 100) -> Iterator[ReportProgress]:
    """Show a bar while the context lasts, and give the function that moves it; `total` may be given to that later."""
    if not sys.stderr.isatty():
        yield lambda _done, _total=None, /: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total)
        yield lambda done, total=None, /: bar.update(task, completed=done, total=total)
