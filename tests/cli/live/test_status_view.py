"""`sns status`: what an admin sees at a glance, and what a script finds in it."""

import pytest
from shown import EVIL, FORBIDDEN, NOW, amounts, node, printed, status

from slurm_sns.cli.live.status_view import page, plain_lines, warnings


def facts(answer: dict) -> dict[str, str]:
    """The plain lines by their keys."""
    return dict(line.split(": ", 1) for line in plain_lines(answer, NOW))


PROJECT = {"share": 2.5, "used": {"cores": 4, "memory_mb": 2048}}


def test_suspended_jobs_are_counted_where_there_are_any() -> None:
    assert facts(status(suspended=2))["suspended"] == "2"
    assert "suspended" not in facts(status())


def test_the_plain_text_is_one_fact_a_line() -> None:
    told = facts(status(projects={"physics": PROJECT}, held=1, matched={"mix-fit": 3}, chosen="mix-fit"))
    assert told["mode"] == "enforce"
    assert told["kill switch"] == "off"
    assert told["heartbeat"] == "1 s ago"
    assert told["cycle"] == "12 ms, median 11 ms, p99 44 ms"
    assert (told["waiting"], told["placing"], told["running"], told["held"], told["placed"]) == tuple("51412")
    assert told["gates"] == "5, 2 renewed in the last minute, the nearest opens in 62 min"
    assert told["cores"] == "36/56"
    assert told["memory GiB"] == "128/256"
    assert told["ways"] == "10/40"
    assert told["node c2"] == "cores 8/28, memory GiB 64/128, ways 5/20"
    assert told["account physics"] == "share 2.5, cores 4, memory GiB 2.0"
    assert told["last matches"] == "mix-fit 3; dispatched: mix-fit"
    assert "warning" not in told


def test_held_jobs_are_named_where_there_are_any_and_gates_too() -> None:
    none = {"gated": 0, "renewed_per_minute": 0, "nearest_s": None, "lease_s": 7200}
    assert facts(status(gates=none))["gates"] == "none"
    assert "1 of the waiting ones held" in printed(page(status(held=1), NOW, 120), 120)
    assert "held" not in printed(page(status(), NOW, 120), 120)


@pytest.mark.parametrize(
    ("fields", "part"),
    [
        ({"disabled": True}, "disabled: jobs pass through"),
        ({"trouble": "the store is away"}, "the store is away"),
        ({"at_s": NOW - 60}, "no sign of life for 60 s"),
        ({"nodes_unavailable": {"c4": "drain: disk"}}, "1 node is not used"),
        ({"unreadable": {"job 7": "gres cannot be read: ValueError: x"}}, "job 7: gres cannot be read: ValueError: x"),
        ({"differences": {"job 7": "runs on c1, planned on c2"}}, "job 7 runs on c1, planned on c2"),
    ],
)
def test_what_somebody_should_look_at_is_said_first_on_the_page_and_last_in_the_text(fields: dict, part: str) -> None:
    answer = status(**fields)
    assert any(part in warning for warning in warnings(answer, NOW))
    assert part in printed(page(answer, NOW, 200), 200).splitlines()[1]
    assert part in list(plain_lines(answer, NOW))[-1]


def test_nothing_is_wrong_when_nothing_is_wrong() -> None:
    assert warnings(status(), NOW) == []
    assert "!" not in printed(page(status(), NOW, 200))


def test_the_page_says_how_it_stands() -> None:
    text = printed(page(status(projects={"physics": PROJECT}), NOW, 120), 120)
    first = text.splitlines()[0]
    assert first.startswith("slurm_sns enforce  up 2.0 h  heartbeat 1 s ago")
    assert "5 waiting, 1 placing, 4 running; 2 placed since the start" in text
    assert "5, 2 renewed in the last minute, the nearest opens in" in text
    assert "12 ms, median 11 ms, p99 44 ms" in text
    rows = {line.split()[0]: line.split() for line in text.splitlines() if line}
    assert rows["all"][1:3] == ["2", "36/56"]
    assert rows["physics"] == ["physics", "2.5", "4", "2.0"]


def test_equally_full_nodes_are_one_line_and_the_fullest_come_first() -> None:
    nodes = [{**node("c1"), "names": ["c1", "c3", "c4"]}, node("c2", 28)]
    lines = printed(page(status(node_groups=nodes), NOW, 100), 100).splitlines()
    names = [line.split()[0] for line in lines if line.startswith("c")]
    assert names == ["cycle", "c2", "c[1,3-4]"]


def test_a_thousand_nodes_fit_on_a_page() -> None:
    nodes = [node(f"n{number}", number, 2000) for number in range(1000)]
    lines = printed(page(status(node_groups=nodes), NOW, 100), 100).splitlines()
    assert len(lines) < 40
    assert "... and 984 less full ones" in [line.rstrip() for line in lines]


@pytest.mark.parametrize("width", [40, 60, 80, 100, 160, 300])
def test_the_page_fits_the_terminal(width: int) -> None:
    answer = status(projects={"physics": PROJECT}, nodes_unavailable={"c9": "drain: " + "long " * 40})
    assert all(len(line) <= width for line in printed(page(answer, NOW, width), width).splitlines())


def test_a_resource_that_a_cluster_has_not_is_not_shown() -> None:
    text = printed(page(status(), NOW, 200))
    assert "WAYS" in text
    assert "GB/S" not in text


def test_closids_are_shown_where_they_are_counted() -> None:
    few = {
        "names": ["c1"],
        "capacity": {**amounts(4, 4096, 20), "closids": 6},
        "free": {**amounts(4, 4096, 20), "closids": 1},
    }
    answer = status(node_groups=[few], capacity={**amounts(4, 4096, 20), "closids": 6}, free=few["free"])
    assert facts(answer)["CLOSIDs"] == "5/6"
    assert facts(answer)["node c1"] == "cores 0/4, memory GiB 0/4, ways 0/20, CLOSIDs 5/6"
    assert "CLOSIDS" in printed(page(answer, NOW, 200))
    assert "CLOSIDs" not in facts(status())


def test_gpus_are_shown_by_type_where_there_are_any() -> None:
    has, left = ({**amounts(4, 4096), "gpus": gpus} for gpus in ({"a": 2, "": 4}, {"": 1}))
    answer = status(node_groups=[{"names": ["c1"], "capacity": has, "free": left}], capacity=has, free=left)
    assert (facts(answer)["GPUs a"], facts(answer)["GPUs"]) == ("2/2", "3/4")
    assert facts(answer)["node c1"] == "cores 0/4, memory GiB 0/4, GPUs a 2/2, GPUs 3/4"
    assert "GPUS A" in printed(page(answer, NOW, 200), 200)
    assert "GPUs" not in facts(status())


def test_withheld_capacity_can_leave_less_than_nothing_free() -> None:
    answer = status(node_groups=[{"names": ["c1"], "capacity": amounts(4, 4096), "free": amounts(-2, -100)}])
    assert "node c1: cores 6/4" in "\n".join(plain_lines(answer, NOW))
    assert printed(page(answer, NOW, 120), 120)


def test_nothing_that_others_wrote_reaches_the_terminal_as_more_than_text() -> None:
    answer = status(nodes_unavailable={"c1": EVIL}, projects={EVIL: PROJECT}, trouble=EVIL, matched={EVIL: 1})
    for text in (printed(page(answer, NOW, 300), 300), "\n".join(plain_lines(answer, NOW))):
        assert not [each for each in FORBIDDEN if each in text]
        assert "[bold]loud[/bold]" in text
    assert all(": " in line for line in plain_lines(answer, NOW)), "and none begins a line of its own"


def test_restarts_are_told_where_there_were_any():
    restarts = [{"user": "alice", "restarts": 2, "lost_core_h": 3.04, "proposed": 0, "proposed_core_h": 0.0}]
    restarts += [{"user": "bob", "restarts": 0, "lost_core_h": 0.0, "proposed": 1, "proposed_core_h": 0.5}]
    told = [line for line in plain_lines(status(restarts=restarts), NOW) if line.startswith("restarts")]
    assert told == [
        "restarts alice: 2 in 24 h, at most 3.0 core-hours lost",
        "restarts bob: 1 proposed in 24 h, at most 0.5 core-hours",
    ]
    both = "2 in 24 h, at most 3.0 core-hours lost; 1 proposed in 24 h, at most 0.5 core-hours"
    assert both in " ".join(printed(page(status(restarts=restarts), NOW, 200), 200).split())


def test_shared_cores_are_told_where_a_partition_shares() -> None:
    sharing = {"jobs": 12, "least_yield": 0.5, "pauses": 3, "lost_core_h": 4.06, "most_lost_core_h": 38.4}
    told = (
        "12 jobs share cores, each with 0.5 of its own or more; 3 pauses in 24 h, at most 4.1 of 38.4 core-hours lost"
    )
    assert facts(status(sharing=sharing))["sharing"] == told
    assert told in " ".join(printed(page(status(sharing=sharing), NOW, 200), 200).split())
    idle = {**sharing, "jobs": 0, "least_yield": 1.0, "pauses": 0, "lost_core_h": 0.0}
    assert facts(status(sharing=idle))["sharing"].startswith("no job shares cores; 0 pauses in 24 h")
    assert "sharing" not in facts(status(sharing=None))
    assert "sharing" not in facts(status()), "nor does a scheduler of another version say it"


def test_the_record_of_estimates_is_told_where_there_is_one() -> None:
    told = status(estimates={"starts": 812, "inside": 674})
    assert "estimates: 83% of last week's 812 starts lay in their range" in list(plain_lines(told, NOW))
    assert "83% of last week's 812 starts lay in their range" in printed(page(told, NOW, 120))
    assert not [line for line in plain_lines(status(estimates=None), NOW) if line.startswith("estimates")]
