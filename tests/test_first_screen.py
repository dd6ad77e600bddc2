"""README's first screen: the picture is what the code says now, the numbers are those of the pages, it stays short."""

import csv
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
RESULTS = ROOT / "docs" / "science" / "results"
PROGRAM = ROOT / "docs" / "img" / "first.py"
PICTURE = PROGRAM.with_suffix(".svg")
#: A screen and a half.
MOST_BYTES = 6144


def text() -> str:
    """README as one line."""
    return " ".join(README.read_text(encoding="utf-8").split())


def rows(page: str, name: str) -> list[dict[str, str]]:
    with (RESULTS / page / f"{name}.csv").open(encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


@pytest.mark.long
def test_the_picture_shows_what_the_code_answers_and_plans() -> None:
    made = runpy.run_path(str(PROGRAM))["picture"]()
    assert PICTURE.read_text(encoding="utf-8") == made, "run `python docs/img/first.py`"


def test_the_picture_fetches_nothing() -> None:
    drawn = PICTURE.read_text(encoding="utf-8")
    assert drawn.count("http") == drawn.count('xmlns="http://www.w3.org/2000/svg"') == 1
    assert "url(#" in drawn
    assert not any(word in drawn for word in ("@font-face", "@import", "<script", "<image"))


def test_the_caption_has_the_pictures_numbers() -> None:
    drawn = PICTURE.read_text(encoding="utf-8")
    (packed, of), (matched, _) = re.findall(r"(\d+) of (\d+) jobs start", drawn)
    cores, memory = re.findall(r"(\d+) cores, (\d+) GiB</tspan>", drawn)[0]
    assert f"the same {of} jobs" in text()
    assert f"{packed} of them start, and {cores} cores and {memory} GiB are free" in text()
    assert f"Max-Jobs starts {matched}." in text()


def test_readme_is_a_screen_and_a_half() -> None:
    assert len(README.read_bytes()) <= MOST_BYTES


def test_readmes_links_lead_somewhere() -> None:
    targets = re.findall(r"\]\(([^)#]+)", README.read_text(encoding="utf-8"))
    assert [target for target in targets if not (ROOT / target).exists()] == []


def test_the_measured_result_is_that_of_its_page() -> None:
    table = {(row["variant"], row["measure"]): row for row in rows("spread-n-share-beyond", "variants")}

    def shown(variant: str) -> str:
        mean, low, high = (float(table[variant, "throughput"][name]) for name in ("mean", "low", "high"))
        return f"{mean:.1f} % [{low:.1f}, {high:.1f}]"

    def broken(variant: str) -> str:
        return f"{float(table[variant, 'broken']['mean']):.0f} %"

    assert f"is {shown('combined, withholding')} above" in text()
    assert f"gains {shown('cs')} on these queues; {broken('cs')} of its jobs" in text()
    assert f"(here {broken('combined, withholding')})" in text()


def test_the_comparison_with_easy_is_that_of_its_page() -> None:
    found = [row for row in rows("beside-easy", "claims") if row["measure"].endswith("above EASY, limits")]
    mean, wide = (
        [row for row in found if row["measure"].startswith(of)] for of in ("mean wait, ", "mean wait of wide")
    )
    less, more = (sum(row["verdict"] == verdict for row in mean) for verdict in ("holds", "does not hold"))
    assert f"in {less} of {len(mean)} comparisons surely less, in {more} surely longer" in text()
    own = [row for row in mean if row["where"].endswith("own load")]
    less, more = (sum(row["verdict"] == verdict for row in own) for verdict in ("holds", "does not hold"))
    assert f"jobs of {less} of the {len(own)} logs surely wait less on average, of {more} surely longer" in text()
    above = [float(row["mean"]) for row in own]
    assert f"from {-min(above):.1f} % less to {max(above):.1f} % more" in text()
    less, more = (sum(row["verdict"] == verdict for row in wide) for verdict in ("holds", "does not hold"))
    assert f"surely wait longer in {more} of the {len(wide)} comparisons, and surely less in {less}" in text()


def test_where_it_does_not_help_is_what_the_pages_say() -> None:
    spec = (RESULTS / "spread-n-share-spec" / "README.md").read_text(encoding="utf-8")
    (cs, combined, gain) = re.findall(
        r"measured curves ([\d.]+) % .* under CS, .* and ([\d.]+) % under combined, which reach \d+ and (\d+) %", spec
    )[0]
    assert f"reaches only {gain} % of" in text()
    assert f"{combined} % of the jobs run that much longer, and {float(cs):.0f} % under" in text()
