"""Makes the screenshots of the documentation, docs/img/web-*.png, of a made-up cluster."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parents[1])]

from chromium import Chromium  # noqa: E402 -- beside this file, which is run as a script
from serving import scheduler_of, served  # noqa: E402

IMAGES = HERE.parents[1] / "docs" / "img"
#: GitHub and the site show them in a column; larger files would cost every clone.
MOST_BYTES = 200_000


def main(folder: Path = IMAGES) -> None:
    """Write the pictures."""
    with served(scheduler_of(jobs=40, nodes=12)) as address, Chromium() as browser:
        for name, dark in (("web-light", False), ("web-dark", True)):
            with browser.page(1120, 780, dark=dark, headers={"X-Remote-User": "bob"}) as page:
                page.goto(address)
                page.wait_for("document.querySelector('#wait-curve canvas')")
                if dark:
                    page.click("#rows tr:nth-child(2) button")
                    page.wait_for("document.querySelector('#told table')")
                page.screenshot(folder / f"{name}.png")
                size = (folder / f"{name}.png").stat().st_size
                if size > MOST_BYTES:
                    raise SystemExit(f"{name}.png has {size} bytes; valid: at most {MOST_BYTES}")


if __name__ == "__main__":
    main()
