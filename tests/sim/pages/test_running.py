"""Workers, and results that are kept."""

from slurm_sns.sim.pages.running import KeptFunction, WorkerProcesses


def test_work_on_several_processes_comes_back_in_order():
    assert WorkerProcesses(2)(abs, [-3, -2, 1]) == [3, 2, 1]


def test_results_are_kept_and_only_what_is_missing_is_done_again(tmp_path):
    done = []

    def find(piece):
        done.append(piece)
        return [piece[1] / 3]

    keeping, pieces = KeptFunction(find, tmp_path / "kept"), [("A", 1), ("A", 2), ("B", 0.5)]
    found = keeping.results(pieces, WorkerProcesses(1), resume=True)
    assert found == [[1 / 3], [2 / 3], [0.5 / 3]]
    keeping.path(("A", 2)).unlink()
    assert keeping.results(pieces, WorkerProcesses(1), resume=True) == found
    assert done == [*pieces, ("A", 2)]
    assert keeping.results(pieces[:1], WorkerProcesses(1), resume=False) == found[:1]
    assert [path.name for path in keeping.folder.iterdir()] == ["A-1.json"]
