"""The events of the Slurm simulator, as a trace."""

import pytest

from slurm_sns.errors import BadInput
from slurm_sns.model import Resources
from slurm_sns.policies.placement.node_arrays import NodeArrays, amounts
from slurm_sns.sim.traces.files import TraceFile
from slurm_sns.sim.traces.slurm_events import read_events

NODES = NodeArrays(("small", "large"), amounts([Resources(32, 187_000), Resources(40, 754_000)]))
BEGIN = "-dt {} -e submit_batch_job | -sim-walltime  100.50 --uid=u -J j -t 3-00:00:00 -q q"


def read(*options, load_factor=1.0):
    lines = [f"{BEGIN.format(100 * at)} {text} pseudo.job" for at, text in enumerate(options)]
    source = TraceFile("events", "\n".join(lines).encode())
    return read_events(source, NODES, partition="main", memory_mb_per_core=2800, load_factor=load_factor)


def kinds(*options):
    records = read(*options)
    return [records.kinds[kind][:3] for kind in records.kind]


@pytest.mark.parametrize(
    ("options", "nodes", "cores", "memory_mb"),
    [
        ("-N 1 -n 32 -p main --mem=500G", 1, 32, 512_000),
        ("-N    2 -n     36 -p main --mem=187000M", 2, 18, 187_000),
        ("-N 2 -n 5 -p main", 2, 3, 8_400),
        ("-N 1 -n 4 -p main --mem=62G --exclusive", 1, 32, 187_000),
        ("-N 1 -n 40 -p main --mem=62G --exclusive=user --constraint=CPU-Gold-6230", 1, 40, 187_000),
    ],
)
def test_a_job_asks_for_nodes_cores_and_memory(options, nodes, cores, memory_mb):
    assert kinds(options) == [(nodes, cores, memory_mb)]


def test_jobs_on_gpus_and_of_other_partitions_are_left_out():
    assert len(kinds("-N 1 -n 1 -p main --gres=gpu:2", "-N 1 -n 1 -p debug", "-N 1 -n 1 -p main")) == 1
    with pytest.raises(BadInput, match="no job of partition main"):
        kinds("-N 1 -n 1 -p debug")


def test_times_are_whole_seconds_and_arrivals_are_scaled():
    records = read("-N 1 -n 1 -p main", "-N 1 -n 1 -p main", load_factor=0.5)
    assert records.submit_s.tolist() == [0, 50]
    assert records.run_s.tolist() == [101, 101]


@pytest.mark.parametrize("options", ["-N one -n 1 -p main", "-N 1 -n 1 -p main --mem=muchG", "-N 0 -n 1 -p main"])
def test_what_is_not_a_number_is_named_with_its_line(options):
    with pytest.raises(BadInput, match=r"events, line 2: .*; valid: "):
        read("-N 1 -n 1 -p main", options)


def test_a_line_that_is_no_submission_is_named():
    with pytest.raises(BadInput, match="events, line 1: 'garbage'; valid: -dt"):
        read_events(TraceFile("events", b"garbage"), NODES, partition="main", memory_mb_per_core=1)
