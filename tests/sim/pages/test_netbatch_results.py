"""What README says of the reproductions of Max-Jobs is what their pages say."""

import csv
import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.sim.pages.judge import FAILS, HOLDS, INPUTS, UNDECIDED
from sns_reproductions.netbatch import EVERYWHERE, FAILS_TOLD, HANGS, HOLDS_TOLD, NOWHERE
from sns_reproductions.netbatch_sweeps import ROWS, workload_digest

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "docs" / "science" / "results"
README = (ROOT / "README.md").read_text(encoding="utf-8")

#: Pages that ask the paper's claims again with an assumption changed.
ASKED_AGAIN = {"netbatch-variants", "netbatch-depth", "netbatch-machines"}
#: Pages that judge our own expectations only.
OURS = {"netbatch-site"}


def netbatch_verdicts():
    """How many claims of each page on Max-Jobs have each verdict."""
    found = {}
    for page in sorted(RESULTS.glob("netbatch-*/claims.csv")):
        if page.parent.name not in ASKED_AGAIN | OURS:
            with page.open(encoding="utf-8", newline="") as file:
                found[page.parent.name] = Counter(row["verdict"] for row in csv.DictReader(file))
    return found


def test_the_table_of_max_jobs_has_the_verdicts_of_the_pages_and_counts_no_inputs():
    expected = set()
    for name, of in netbatch_verdicts().items():
        asked = of[HOLDS] + of[FAILS] + of[UNDECIDED]
        inputs = sum(of[each] for each in INPUTS)
        link = f"[{name.removeprefix('netbatch-')}](docs/science/results/{name}/README.md)"
        expected.add(f"| {link} | {asked} | {of[HOLDS]} | {of[FAILS]} | {of[UNDECIDED]} | {inputs} |")

    table = README.split("| Max-Jobs, page | claims |")[1].split("\n\n")[0].splitlines()[2:]
    assert set(table) == expected


#: How README names two kinds of cycles, and their names on the page.
CYCLES = {
    "looks at 20,000 jobs, withholds at one position (the default)": "depth 20,000 or all, 1 reservation",
    "looks at all jobs, withholds for every unmatched job (the paper's rule)": (
        "depth 20,000 or all, one reservation for each unmatched job"
    ),
}


def test_the_table_of_cycles_has_the_verdicts_of_the_page():
    with (ROOT / "docs" / "science" / "results" / "netbatch-depth" / "claims.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    expected = set()
    for told, group in CYCLES.items():
        of = Counter(row["verdict"] for row in rows if row["group"] == group)
        asked = of[HOLDS] + of[FAILS] + of[UNDECIDED]
        expected.add(f"| {told} | {asked} | {of[HOLDS]} | {of[FAILS]} | {of[UNDECIDED]} |")

    table = README.split("| Max-Jobs, a cycle | claims |")[1].split("\n\n")[0].splitlines()[2:]
    assert set(table) == expected


def test_the_default_cycle_is_the_one_that_readme_calls_so():
    default = MatchingParameters()
    assert (default.queue_depth, default.reservations) == (20_000, 1)


#: The columns of README's table.
CALLS = (EVERYWHERE, HOLDS_TOLD, NOWHERE, FAILS_TOLD, HANGS, UNDECIDED)
#: How the table of README names what a page varies.
VARIED = {"netbatch-variants": "times, memory, machines, bursts", "netbatch-machines": "the buckets' machines"}


def test_the_table_says_what_became_of_the_claims_when_one_thing_was_varied():
    expected = set()
    for name, varied in VARIED.items():
        with (ROOT / "docs" / "science" / "results" / name / "called.csv").open(encoding="utf-8", newline="") as file:
            called = [row["called"] for row in csv.DictReader(file)]
        counts = [sum(each.startswith(word) for each in called) for word in CALLS]
        assert sum(counts) == len(called)
        link = f"[{varied}](docs/science/results/{name}/README.md)"
        expected.add(f"| {link} | {len(called)} | {' | '.join(map(str, counts))} |")

    table = README.split("| Max-Jobs, varied | claims |")[1].split("\n\n")[0].splitlines()[2:]
    assert set(table) == expected


def test_every_page_on_max_jobs_is_listed():
    for page in RESULTS.glob("netbatch-*/README.md"):
        assert f"docs/science/results/{page.parent.name}/README.md" in README


@pytest.mark.parametrize("file", sorted(RESULTS.glob(f"netbatch-*/{ROWS}")), ids=lambda file: file.parent.name)
def test_the_rows_beside_a_page_are_of_the_generator_as_it_is(file):
    with gzip.open(file, "rt", encoding="utf-8") as rows:
        assert json.loads(next(rows))["workload"] == workload_digest()
