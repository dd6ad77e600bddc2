"""`sns simulate --policy ce|cs|sns|combined` as a user runs it, in this process."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from json_output import read
from oracles.portfolio import PlainPortfolio

from slurm_sns.cli import main
from slurm_sns.package_files import shared_path
from slurm_sns.policies.combined.combined import combined
from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.policies.placement.heuristics import Heuristic, angle_to_balance
from slurm_sns.policies.spread_n_share.parameters import REPRODUCTION
from slurm_sns.sim.engine.matching import Simulation
from slurm_sns.sim.traces.nodes_csv import read_nodes
from slurm_sns.sim.traces.read_trace import read_records

DATA = Path(__file__).parents[1] / "data" / "netbatch"
PROFILES = str(shared_path("conf/profiles/spread-n-share.yaml"))
PAPER_FIVE = "best-fit-memory,worse-fit-memory,best-fit-cores,worse-fit-cores,mix-fit"
AUTHORS_SEVEN = f"{PAPER_FIVE},memory-first-best,memory-first-worse"

#: Figure 1: MG five times in a row, TS and HC.
FIGURE_1 = "job_id,submit_s,run_s,program,processes\n1,0,487.65,mg,16\n2,0,376.98,ts,16\n3,0,482.33,hc,16\n"


def paper_nodes(count: int) -> str:
    rows = "".join(f"n{at},28,128,20,118.26\n" for at in range(count))
    return "name,cores,mem_gb,ways,bandwidth_gbps\n" + rows


@pytest.fixture
def simulate(capsys, monkeypatch, write, tmp_path):
    """Simulate on so many of the paper's nodes: the summary and the lines of jobs.csv; or status and error."""

    def run(trace, *options, nodes=2, expect=0):
        listed = nodes if isinstance(nodes, str) else write("nodes.csv", paper_nodes(nodes))
        path = trace if isinstance(trace, Path) else write("trace.csv", trace)
        out = tmp_path / "out"
        command = ["sns", "simulate", path, "--nodes", listed, "--out", out, "--json", *options]
        monkeypatch.setattr("sys.argv", [str(each) for each in command])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        assert ended.value.code == expect, printed.err
        if expect:
            return printed.err
        return read("sns simulate", printed.out), (out / "jobs.csv").read_text().splitlines()[1:]

    return run


def test_figure_1_on_two_nodes(simulate):
    summary, lines = simulate(FIGURE_1, "--policy", "sns", "--profiles", PROFILES)

    assert lines == [
        "1,0,0,434,n0+n1,8,1,2,72,2",
        "2,0,0,352,n0+n1,8,1,5,26,2",
        "3,0,0,501,n0+n1,8,1,2,2,2",
    ]  # printed: 443.67, 351.75 and 500.43 s
    assert (summary["policy"], summary["jobs_without_profile"], summary["mean_wait_s"]) == ("sns", 0, 0)
    assert summary["mean_run_s"] == summary["mean_turnaround_s"] == (434 + 352 + 501) / 3


def test_no_more_jobs_with_ways_run_on_a_node_than_it_has_closids(simulate, write):
    header, *rows = paper_nodes(2).splitlines()
    for closids, starts in ((5, ["0", "0", "0"]), (4, ["0", "0", "352"])):
        listed = write("limited.csv", "\n".join([f"{header},closids", *(f"{row},{closids}" for row in rows)]) + "\n")
        lines = simulate(FIGURE_1, "--policy", "sns", "--profiles", PROFILES, nodes=str(listed))[1]
        assert [line.split(",")[2] for line in lines] == starts


def test_figure_1_under_ce_needs_a_third_node(simulate):
    on_three = simulate(FIGURE_1, "--policy", "ce", "--profiles", PROFILES, nodes=3)[1]
    on_two = simulate(FIGURE_1, "--policy", "ce", nodes=2)[1]

    assert on_three == ["1,0,0,488,n0,16,1,,,1", "2,0,0,377,n1,16,1,,,1", "3,0,0,482,n2,16,1,,,1"]
    assert on_two[2] == "3,0,377,859,n1,16,1,,,1"  # in the second in which ts ends


def test_cs_spreads_only_where_scale_one_does_not_fit(simulate):
    lines = simulate(FIGURE_1, "--policy", "cs")[1]

    assert lines == ["1,0,0,488,n0,16,1,,,1", "2,0,0,377,n1,16,1,,,1", "3,0,0,482,n0+n1,8,1,,,2"]


def test_combined_starts_as_many_at_once(simulate):
    summary, lines = simulate(FIGURE_1, "--policy", "combined", "--profiles", PROFILES)

    assert [line.split(",")[2] for line in lines] == ["0", "0", "0"]
    assert summary["portfolio"][:5] == PAPER_FIVE.split(",")
    assert summary["portfolio"][-1] == "idlest"


def test_options_reach_the_policy(simulate):
    lines = simulate(
        FIGURE_1, "--policy", "sns", "--profiles", PROFILES, "--scales", "1", "--alpha", "0.7", "--beta", "0"
    )[1]

    assert lines[0] == "1,0,0,610,n0,16,1,2,112,1"


def test_under_contention_neighbours_count(simulate):
    summary, lines = simulate(FIGURE_1, "--policy", "sns", "--profiles", PROFILES, "--progress", "contention")

    assert [int(line.split(",")[3]) for line in lines] == [433, 336, 493]
    assert summary["progress"] == "contention"


def test_an_unknown_model_of_progress_is_refused(simulate):
    error = simulate(FIGURE_1, "--policy", "sns", "--progress", "magic", expect=2)

    assert error == "sns: error: --progress is 'magic'; valid: authors, contention\n"


ROUNDS = "job_id,submit_s,run_s,program,processes\n" + "".join(
    f"{3 * at + kind},{150 * (3 * at + kind)},{run_s},{program},16\n"
    for at in range(10)
    for kind, (program, run_s) in enumerate((("mg", 487.65), ("bfs", 452.94), ("unknown", 300)))
)


def test_profiles_are_learnt_from_the_runs_the_same_with_the_same_seed(simulate):
    options = ("--policy", "sns", "--profiles", PROFILES, "--learn", "0.02")
    summary, lines = simulate(ROUNDS, *options, nodes=8)
    again = simulate(ROUNDS, *options, nodes=8)[1]
    other = simulate(ROUNDS, *options, "--seed", "7", nodes=8)[1]

    assert (summary["programs"], summary["programs_learnt"]) == (2, 2)
    assert summary["exploring_runs"] > 4
    assert summary["jobs_without_profile"] == 10
    assert len(lines) == 30
    assert lines == again != other


@pytest.mark.parametrize(
    ("trace", "options", "said"),
    [
        (ROUNDS, ("--policy", "ce", "--profiles", PROFILES), "--learn goes with --policy sns, combined, not with ce"),
        (ROUNDS, ("--policy", "sns"), "--learn needs --profiles: how the programs truly run"),
        (ROUNDS, ("--policy", "mix-fit"), "--learn goes with --policy sns, combined, not with mix-fit"),
        ("job_id,submit_s,run_s,cores,mem_gb\n1,0,5,1,1\n", ("--policy", "sns", "--profiles", PROFILES), "no job has"),
    ],
)
def test_what_cannot_be_learnt_is_one_line(simulate, trace, options, said):
    error = simulate(trace, *options, "--learn", "0.1", expect=2)

    assert said in error
    assert error.count("\n") == 1


def test_errors_of_measurement_are_a_share(simulate):
    error = simulate(ROUNDS, "--policy", "sns", "--profiles", PROFILES, "--learn", "-1", expect=2)

    assert error == "sns: error: --learn is -1.0; valid: 0 to 1\n"


def test_a_configuration_gives_what_is_not_given_on_the_command_line(simulate, write):
    config = write(
        "sns.yaml",
        "partitions: [p]\nnodes: [{names: n, partitions: [p], cores: 1, memory_mb: 1024}]\n"
        "spread_n_share: {alpha: 0.7, scales: [1], shared_ways: 3}\n",
    )

    options = ("--policy", "sns", "--profiles", PROFILES, "--config", config)
    summary, lines = simulate(FIGURE_1, *options)

    assert (summary["alpha"], summary["scales"], summary["shared_ways"]) == (0.7, [1], 3)
    assert lines[0] == "1,0,0,610,n0,16,1,2,112,1"
    assert simulate(FIGURE_1, *options, "--alpha", "0.9")[0]["alpha"] == 0.9


def test_the_same_input_gives_the_same_bytes(simulate):
    for policy in ("cs", "sns", "combined"):
        options = (FIGURE_1, "--policy", policy, "--profiles", PROFILES)
        assert simulate(*options)[1] == simulate(*options)[1]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--policy", "snss"), "valid: first-fit, best-fit-cores"),
        (
            ("--policy", "mix-fit", "--alpha", "0.5"),
            "--alpha goes with --policy ce, cs, sns, combined, fcfs, easy, slurm, not",
        ),
        (("--policy", "max-jobs", "--profiles", PROFILES), "--profiles goes with --policy ce, cs, sns, combined"),
        (("--policy", "sns", "--alpha", "0"), "alpha is 0.0; valid: above 0, at most 1"),
        (("--policy", "sns", "--beta", "-1"), "beta is -1.0; valid: from 0"),
        (
            ("--policy", "sns", "--scales", "1,two"),
            "--scales is '1,two'; valid: whole numbers separated by commas, as in 1,2,4,8",
        ),
        (("--policy", "sns", "--scales", "2,4"), "scales are 2,4; valid: 1 and others"),
        (
            ("--policy", "sns", "--reservations", "1"),
            "--reservations goes with --policy max-jobs, combined",
        ),
        (
            ("--policy", "sns", "--portfolio", "mix-fit"),
            "--portfolio goes with --policy max-jobs, combined, not with sns",
        ),
        (("--policy", "combined", "--portfolio", "magic"), "heuristic 'magic' is unknown"),
        (("--policy", "sns", "--profiles", "/nonexistent"), "/nonexistent cannot be read"),
        (("--policy", "mix-fit"), "line 1: column"),
    ],
)
def test_bad_use_is_one_line_and_exit_2(simulate, options, words):
    error = simulate(FIGURE_1, *options, expect=2)

    assert words in error
    assert error.count("\n") == 1


def test_profiles_with_more_ways_than_any_node_are_refused(simulate, write):
    few = write("few.csv", "name,cores,mem_gb,ways,bandwidth_gbps\na,28,128,11,118\n")

    error = simulate(FIGURE_1, "--policy", "sns", "--profiles", PROFILES, nodes=few, expect=2)

    assert "20; valid: at most 11, the most ways that any node has" in error


# --- without profiles, combined is Max-Jobs: the reference results line for line ---


def reference(name) -> list[str]:
    return gzip.decompress((DATA / f"small.{name}.csv.gz").read_bytes()).decode().splitlines()[1:]


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "portfolio"),
    [
        *((name, name) for name in ("first-fit", "best-fit-memory", "worse-fit-cores", "mix-fit")),
        ("max-jobs-7", AUTHORS_SEVEN),
        ("max-jobs-7", f"{AUTHORS_SEVEN},best-fit-ways,worse-fit-bandwidth,idlest"),
    ],
)
def test_without_profiles_combined_is_max_jobs_line_for_line(simulate, name, portfolio):
    options = ("--policy", "combined", "--portfolio", portfolio, "--interval", "30")

    lines = simulate(DATA / "small.jobs.csv.gz", *options, nodes=str(DATA / "small.nodes.csv"))[1]

    rows = [line.split(",") for line in lines]
    assert [f"{row[0]},{row[2]},{row[4]}" for row in rows] == reference(name)


class GeneralAngle(PlainPortfolio):
    """Combined by the plain twin, with Mix-Fit by the angle for any number of resources."""

    def _chooser(self, member):
        return (lambda _job: MixFitByGeneralAngle()) if member == "mix-fit" else super()._chooser(member)


class MixFitByGeneralAngle(Heuristic):
    def __call__(self, capacity, free, candidates, demand):
        used = (capacity - free)[:2, candidates] + np.array([[demand[0]], [demand[1]]])
        return angle_to_balance((1.01 * capacity[:2, candidates] - used) / capacity[:2, candidates])


@pytest.mark.long
@pytest.mark.parametrize(("name", "portfolio"), [("mix-fit", "mix-fit"), ("max-jobs-7", AUTHORS_SEVEN)])
def test_the_plain_twin_and_the_general_angle_change_no_placement(name, portfolio):
    node_arrays = read_nodes(str(DATA / "small.nodes.csv"))
    trace = read_records(str(DATA / "small.jobs.csv.gz"), node_arrays).values()
    matching = MatchingParameters(portfolio=tuple(portfolio.split(",")))
    policy = GeneralAngle(combined(matching, REPRODUCTION, portfolio=matching.portfolio).rules)

    outcome = Simulation(node_arrays, trace, policy, queue_depth=1000, interval_s=30).run()

    rows = [f"{each.job.id},{each.start_s},{node_arrays.names[each.nodes[0]]}" for each in outcome.placements]
    assert rows == reference(name)
