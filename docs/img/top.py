"""Make top.svg, the picture of `sns top`: its own screen, on a made-up cluster of six nodes.

`python docs/img/top.py` writes the picture, with the same bytes each time for one version of Textual.
"""

import asyncio
import os
import re
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "cli"))

from overviews import small
from shown import NOW

from slurm_sns.cli.live.top.app import ClusterTop
from slurm_sns.cli.live.top.job_acts import Doors
from slurm_sns.cli.live.top.queue_lines import ColumnLines, JobChoice

PICTURE = Path(__file__).with_name("top.svg")
SIZE = (142, 30)


async def screen() -> str:
    """The screen as SVG."""
    doors = Doors(lambda _: small(), lambda *_: "", lambda: False, lambda _: "", lambda _: "", lambda: NOW)
    app = ClusterTop(doors, JobChoice(), ColumnLines())
    async with app.run_test(size=SIZE) as pilot:
        while not app.has_overview:
            await pilot.pause()
        await pilot.press("n", "n")
        await pilot.pause()
        return app.export_screenshot(title="sns top")


def picture() -> str:
    """The screen in UTC and with colours, without the fonts that Textual would have a reader fetch."""
    with here(TZ="UTC", NO_COLOR=None):
        drawn = asyncio.run(screen())
    for part in (r"@font-face \{.*?\}\s*", r"<!--.*?-->\s*"):
        drawn = re.sub(part, "", drawn, flags=re.DOTALL)
    return "\n".join(line.rstrip() for line in drawn.splitlines()) + "\n"


@contextmanager
def here(**variables: str | None) -> Iterator[None]:
    """With these environment variables, and the time zone that they say."""
    before = {name: os.environ.get(name) for name in variables}
    _set(variables)
    try:
        yield
    finally:
        _set(before)


def _set(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value
    time.tzset()


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
