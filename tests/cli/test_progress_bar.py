"""The progress bar of long work: on a terminal only, and never where the results go."""

import io
import sys

import pytest

from slurm_sns.cli.progress_bar import progress_bar


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("told", [(3,), (3, 10)])
def test_nothing_is_written_where_standard_error_is_no_terminal(told, capsys):
    with progress_bar("jobs started", 10) as report:
        report(*told)

    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(("total", "told"), [(10, (10,)), (100, (7, 7))])
def test_a_terminal_is_shown_how_much_is_done_of_what_is_known_last(total, told, capsys, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")

    with progress_bar("jobs started", total) as report:
        report(*told)

    assert "jobs started" in terminal.getvalue()
    assert "100%" in terminal.getvalue()
    assert capsys.readouterr().out == ""
