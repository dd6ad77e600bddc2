"""A progress bar on standard error, when that is a terminal."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Report(Protocol):
    """Told how much is done now, and of how much where that was not known before."""

    def __call__(self, done: int, total: int | None = None, /) -> None:
        """Show this from now on."""
        ...


@contextmanager
def progress_bar(title: str, total: int = 100) -> Iterator[Report]:
    """A bar that lasts as long as the context, and the function that moves it; `total` may be told later."""
    if not sys.stderr.isatty():
        yield lambda _done, _total=None, /: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total)
        yield lambda done, total=None, /: bar.update(task, completed=done, total=total)
