"""The lines of jobs.csv and cycles.csv, letter by letter."""

import numpy as np
import pytest

from slurm_sns.model import Alternative, Resources
from slurm_sns.policies.placement.node_arrays import NodeArrays, amounts
from slurm_sns.sim.results.result_files import result_files
from slurm_sns.sim.run import Cycles, TraceRun
from slurm_sns.sim.trace import TraceArrays

NODES = NodeArrays(("A", "B", "C"), amounts([Resources(4, 4096)] * 3))


def run(unit, *, spreads=False):
    """Three jobs, the second one on two nodes, at multiples of this many seconds."""
    whole, on_two = Alternative(1, Resources(1, 1024)), Alternative(2, Resources(2, 1536, 3, 5), scale=2)
    trace = TraceArrays(
        np.array([7, 8, 9]),
        np.array([0, 1, 2]) * unit,
        np.array([5, 5, 5]) * unit,
        kind=np.array([0, 1, 1], np.int32),
        kinds=[(1, 1, 1024, ""), (1, 1, 1024, "")],
        given_choices=[(whole,), (whole, on_two)],
    )
    done = TraceRun(
        trace,
        np.array([0, 2, 4]) * unit,
        np.array([5, 7, 9]) * unit,
        np.array([2, 0, 1]),
        spread=np.array([2, 0], np.int32),
        choice=np.array([0, 1, 0], np.int8),
        cycles=Cycles(*(np.array(each) for each in ([0, 2], [1, 2], [1, 0], [1, -1], [2, 3])))._replace(
            time_s=np.array([0, 2]) * unit
        ),
        members=("one", "two"),
    )
    return {name: "".join(lines).splitlines()[1:] for name, lines in result_files(done, NODES, spreads=spreads).items()}


@pytest.mark.parametrize(("spreads", "scales"), [(False, ["", ""]), (True, ["1", "2"])])
def test_whole_seconds_have_no_decimals(spreads, scales):
    one, two = scales
    assert run(1, spreads=spreads) == {
        "jobs.csv": [f"7,0,0,5,C,1,1,,,{one}", f"8,1,2,7,C+A,2,1.5,3,5,{two}", f"9,2,4,9,B,1,1,,,{one}"],
        "cycles.csv": ["0,1,1,two,two", "2,2,0,,one+two"],
    }


def test_other_moments_are_those_of_floats_and_of_jobs_to_the_nanosecond():
    assert run(1.0000000001 / 3) == {
        "jobs.csv": [
            "7,0,0,1.666666667,C,1,1,,,",
            "8,0.333333333,0.666666667,2.333333334,C+A,2,1.5,3,5,",
            "9,0.666666667,1.333333333,3.0,B,1,1,,,",
        ],
        "cycles.csv": ["0.0,1,1,two,two", f"{2 * (1.0000000001 / 3)},2,0,,one+two"],
    }
