"""Workers, and results that are kept."""

import os
from dataclasses import replace

import pytest

from slurm_sns.errors import SnsError
from slurm_sns.sim.pages.running import Options, WorkerProcesses


def test_work_on_several_processes_comes_back_in_order():
    assert WorkerProcesses(2)(abs, [-3, -2, 1]) == [3, 2, 1]


def test_a_killed_process_is_one_line_of_error():
    with pytest.raises(SnsError, match="one of 2 processes was killed"):
        WorkerProcesses(2)(os._exit, [1])


def test_results_are_kept_and_only_what_is_missing_is_done_again(tmp_path):
    done = []

    def find(piece):
        done.append(piece)
        return [piece[1] / 3]

    options, pieces = Options(tmp_path, workers=WorkerProcesses(1), resume=True), [("A", 1), ("A", 2), ("B", 0.5)]
    folder = tmp_path / "runs" / "kept"
    found = options.results("kept", find, pieces)
    assert found == {pieces[0]: [1 / 3], pieces[1]: [2 / 3], pieces[2]: [0.5 / 3]}
    (folder / "A-2.json").unlink()
    assert options.results("kept", find, pieces) == found
    assert done == [*pieces, ("A", 2)]
    anew = replace(options, resume=False)
    assert anew.results("kept", find, pieces[:1], shared=True) == {pieces[0]: [1 / 3]}
    assert done == [*pieces, ("A", 2), ("A", 1)]
    assert len(list(folder.iterdir())) == 3
    anew.results("kept", find, pieces[:1])
    assert [path.name for path in folder.iterdir()] == ["A-1.json"]
