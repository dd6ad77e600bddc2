"""What the documents say of the reproductions of Max-Jobs is what their pages say."""

import csv
import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.sim.pages.judge import FAILS, HOLDS, IDENTICAL, INPUTS, UNDECIDED
from sns_reproductions.netbatch import EVERYWHERE, FAILS_TOLD, HANGS, HOLDS_TOLD, NOWHERE
from sns_reproductions.netbatch_sweeps import ROWS, workload_digest

ROOT = Path(__file__).parents[3]
SCIENCE = ROOT / "docs" / "science"
RESULTS = SCIENCE / "results"
#: The table of all results, and the page on Max-Jobs.
INDEX = (SCIENCE / "index.md").read_text(encoding="utf-8")
PAGE = (SCIENCE / "max-jobs.md").read_text(encoding="utf-8")


def counts_in_the_table(name):
    """The last four cells of the row of this page: claims that hold, do not hold, cannot be told, are not judged."""
    rows = [line for line in INDEX.splitlines() if f"](results/{name}/README.md) |" in line]
    assert len(rows) == 1
    return [int(cell) for cell in rows[0].split("|")[-5:-1]]


@pytest.mark.parametrize("claims", sorted(RESULTS.glob("*/claims.csv")), ids=lambda claims: claims.parent.name)
def test_the_table_of_results_has_the_verdicts_of_the_page(claims):
    with claims.open(encoding="utf-8", newline="") as file:
        of = Counter(row["verdict"] for row in csv.DictReader(file))
    not_judged = sum(of[each] for each in (*INPUTS, IDENTICAL))

    assert counts_in_the_table(claims.parent.name) == [of[HOLDS], of[FAILS], of[UNDECIDED], not_judged]
    assert of.total() == of[HOLDS] + of[FAILS] + of[UNDECIDED] + not_judged


def test_every_page_of_results_is_in_the_table():
    for page in RESULTS.glob("*/README.md"):
        assert INDEX.count(f"](results/{page.parent.name}/README.md) |") == 1


#: How the page on Max-Jobs names two kinds of cycles, and their names on the page of results.
CYCLES = {
    "looks at 20,000 jobs, withholds at one position (the default)": "depth 20,000 or all, 1 reservation",
    "looks at all jobs, withholds for every unmatched job (the paper's rule)": (
        "depth 20,000 or all, one reservation for each unmatched job"
    ),
}


def test_the_table_of_cycles_has_the_verdicts_of_the_page():
    with (RESULTS / "netbatch-depth" / "claims.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    expected = set()
    for told, group in CYCLES.items():
        of = Counter(row["verdict"] for row in rows if row["group"] == group)
        asked = of[HOLDS] + of[FAILS] + of[UNDECIDED]
        expected.add(f"| {told} | {asked} | {of[HOLDS]} | {of[FAILS]} | {of[UNDECIDED]} |")

    table = PAGE.split("| Max-Jobs, a cycle | claims |")[1].split("\n\n")[0].splitlines()[2:]
    assert set(table) == expected


def test_the_default_cycle_is_the_one_that_the_page_calls_so():
    default = MatchingParameters()
    assert (default.queue_depth, default.reservations) == (20_000, 1)


#: The columns of the table.
CALLS = (EVERYWHERE, HOLDS_TOLD, NOWHERE, FAILS_TOLD, HANGS, UNDECIDED)
#: How the table names what a page varies.
VARIED = {"netbatch-variants": "times, memory, machines, bursts", "netbatch-machines": "the buckets' machines"}


def test_the_table_says_what_became_of_the_claims_when_one_thing_was_varied():
    expected = set()
    for name, varied in VARIED.items():
        with (RESULTS / name / "called.csv").open(encoding="utf-8", newline="") as file:
            called = [row["called"] for row in csv.DictReader(file)]
        counts = [sum(each.startswith(word) for each in called) for word in CALLS]
        assert sum(counts) == len(called)
        link = f"[{varied}](results/{name}/README.md)"
        expected.add(f"| {link} | {len(called)} | {' | '.join(map(str, counts))} |")

    table = PAGE.split("| Max-Jobs, varied | claims |")[1].split("\n\n")[0].splitlines()[2:]
    assert set(table) == expected


def test_every_page_on_max_jobs_is_named_on_the_page_of_its_paper():
    for page in RESULTS.glob("netbatch-*/README.md"):
        assert f"](results/{page.parent.name}/README.md)" in PAGE


@pytest.mark.parametrize("file", sorted(RESULTS.glob(f"netbatch-*/{ROWS}")), ids=lambda file: file.parent.name)
def test_the_rows_beside_a_page_are_of_the_generator_as_it_is(file):
    with gzip.open(file, "rt", encoding="utf-8") as rows:
        assert json.loads(next(rows))["workload"] == workload_digest()
