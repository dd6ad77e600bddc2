"""The one sequence of 20 jobs that is recorded in the authors' prototype: its jobs, and their times under CE.

Source: a comment in SSparser.py of Uberun, the prototype (github.com/thu-pacman/Uberun). It ran on the paper's eight
nodes; mean wait and run are printed in whole seconds, the end of the last job in hundredths of an hour.
"""

from collections.abc import Sequence

from slurm_sns.sim.engine.disciplines import TEXT
from slurm_sns.sim.engine.spreading_policies import AUTHORS, CE
from slurm_sns.sim.pages.judge import Claim, exactly
from slurm_sns.sim.reproduce.spread_n_share.runs import Runs, place, shipped_programs
from slurm_sns.sim.workloads.sequences import TestProgram, jobs_of, population

#: Program and processes of each job, in the order of their submits.
RECORDED = (
    *("ep-16", "hc-28", "ts-16", "rnn-16", "cg-16", "ts-16", "ep-16", "hc-16", "ep-16", "gan-16"),
    *("bw-16", "bw-28", "nw-16", "ep-16", "hc-28", "bfs-16", "cg-16", "wc-16", "hc-16", "nw-16"),
)
#: The recorded numbers of the sequence by name.
RECORDED_NUMBERS = {"mean wait (s)": 320, "mean run time (s)": 422, "end of the last job (h)": 0.36}
#: The number that follows from what the experiment was given.
GIVEN = "mean run time (s)"
#: Our number may differ from the recorded one by this fraction.
NEAR = 0.05


def recorded_claims(discipline: str = TEXT) -> list[Claim]:
    """The claims that our numbers under a queue discipline equal the recorded ones.

    Under CE no job has neighbours, so that all progress models give the same times. The mean run time is an input: run
    times under CE were given.
    """
    runs = Runs.of(place(CE, AUTHORS, jobs_of(_members(RECORDED)), discipline=discipline))
    ours = (runs.wait_s.mean(), runs.run_s.mean(), runs.end_s.max() / 3600)
    return [
        Claim(
            "prototype",
            f"a recorded sequence under CE: {text} {number}",
            "CE",
            exactly(found),
            *_near(number),
            is_input=text == GIVEN,
        )
        for (text, number), found in zip(RECORDED_NUMBERS.items(), map(float, ours), strict=True)
    ]


def _near(number: float) -> tuple[float, float]:
    return (1 - NEAR) * number, (1 + NEAR) * number


def _members(names: Sequence[str]) -> tuple[TestProgram, ...]:
    by_name = {f"{member.program}-{member.processes}": member for member in population(shipped_programs())}
    return tuple(by_name[name] for name in names)
