"""A progress bar on standard error, when that is a terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(title: str, total: int = 100) -> Iterator[Callable[..., None]]:
    """Show a bar while the context lasts, and give the function `(done, total=None)` that moves it.

    A total that is not known before is given to that function.
    """
    if not sys.stderr.isatty():
        yield lambda _done, _total=None, /: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total)
        yield lambda done, total=None, /: bar.update(task, completed=done, total=total)
