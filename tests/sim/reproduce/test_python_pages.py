"""The pages that are still Python code."""

from slurm_sns.sim.pages.judge import Claim, Interval
from slurm_sns.sim.pages.page import DataTable
from slurm_sns.sim.reproduce.page import Page, write_page


def test_what_a_page_found_stands_before_its_claims(tmp_path):
    result = ["In short:", DataTable("short", ("a", "b"), [(1, 2)])]
    write_page(tmp_path, Page("A title", ["How."], [Claim("", "", "", Interval(1.5, 1, 2), low=0)], result=result))
    text = (tmp_path / "README.md").read_text()
    assert text.index("How.") < text.index("In short:") < text.index("| 1 | 2 |") < text.index("1 claims")
