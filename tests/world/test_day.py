"""The page of the simulated day says what its samples show."""

from pathlib import Path

from world.day import Sample, write


def samples(growth_mib: float) -> list[Sample]:
    """A day of samples, every hour; the jobs that Slurm knows double at noon, and the time of a cycle with them."""
    known = [100 if hour < 12 else 200 for hour in range(1, 25)]
    return [
        Sample(hour, 1000 * hour, 900 * hour, 5, number, number + 3, 500 + growth_mib * hour, 1, 900, number / 10, 30)
        for hour, number in enumerate(known, 1)
    ]


def test_the_page_of_a_day_says_how_memory_grows_and_what_the_cycle_follows(tmp_path: Path) -> None:
    write(samples(growth_mib=2), tmp_path)
    page = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "# A simulated day: 24,000 jobs in 24 hours" in page
    assert "504.0 to 548.0 MiB" in page
    assert "changes by +2.00 MiB an hour" in page
    assert "at most 203 are remembered" in page
    assert "10.0 to 20.0 ms. Its correlation with the number of\n  jobs that Slurm knows is 1.00" in page
    assert {path.name for path in tmp_path.iterdir()} == {"README.md", "day.csv", "day.png"}
