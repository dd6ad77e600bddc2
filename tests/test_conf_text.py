"""Slurm's configuration files as lines, with what they include."""

from pathlib import Path

from slurm_sns.conf_text import Line, read


def options(path: Path) -> list[tuple[str, str]]:
    return [line.option for line in read(path) if line.option]


def test_an_option_is_read_without_comment_quotes_and_continuation(tmp_path: Path) -> None:
    path = tmp_path / "slurm.conf"
    path.write_text(
        '# ClusterName=no\n\n  ClusterName = site # ours\nSchedulerParameters=bf_continue,\\\nbf_interval=30\nA="b c"\n'
    )
    assert options(path) == [
        ("clustername", "site"),
        ("schedulerparameters", "bf_continue,bf_interval=30"),
        ("a", "b c"),
    ]


def test_a_line_stands_as_it_is_in_its_file(tmp_path: Path) -> None:
    path = tmp_path / "slurm.conf"
    path.write_text("NodeName=n1 \\\n  CPUs=4  # one\nPartitionName=p Nodes=ALL")
    assert [line.text for line in read(path)] == ["NodeName=n1 \\\n  CPUs=4  # one", "PartitionName=p Nodes=ALL"]
    assert read(path)[0].content.split() == ["NodeName=n1", "CPUs=4"]


def test_includes_are_followed_where_they_stand_by_name_and_by_pattern(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "a.conf").write_text("A=1\n")
    (tmp_path / "parts" / "b.conf").write_text("B=1\n")
    (tmp_path / "nodes.conf").write_text(f"N=1\nInclude {tmp_path}/parts/*.conf\n")
    path = tmp_path / "slurm.conf"
    path.write_text("F=1\ninclude nodes.conf\nL=1\n")
    assert [name for name, _ in options(path)] == ["f", "n", "a", "b", "l"]


def test_a_file_that_includes_itself_or_is_missing_does_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "slurm.conf"
    path.write_text("Include slurm.conf\nInclude none.conf\nA=1\n")
    assert options(path) == [("a", "1")]
    assert read(tmp_path / "none.conf") == ()


def test_a_word_that_begins_with_include_is_no_include() -> None:
    assert Line(Path("/a"), "IncludeThis /etc/x").included(Path("/etc")) == ()
