"""What users and admins are told about agents and learning."""

import json
from dataclasses import replace

import pytest
from emulated import RULES, Cluster, cluster
from live import ALICE, BOB, ENFORCE, SHARING
from test_live_learning import BFS, MG, TRUTH, explore

from slurm_sns.cli.live import profile, status_view, terminal
from slurm_sns.errors import BadInput
from slurm_sns.json_text import encoded
from slurm_sns.model import Resources
from slurm_sns.policies.spread_n_share.node_choice import spread_n_share
from slurm_sns.scheduler.answers.requests import Answers
from slurm_sns.scheduler.answers.view import RecentCycles, agents_data, whys_unpartitioned
from slurm_sns.scheduler.observation import JobState
from slurm_sns.scheduler.settings import Settings
from slurm_sns.wire.values import JobThere, NodeFacts, NodeState, RunId

ADMIN = 0
NOW = 1_790_000_000.0


@pytest.fixture
def site() -> Cluster:
    return cluster(TRUTH)


def ask(site: Cluster, command: str, user_id: int = ADMIN, settings: Settings = ENFORCE, **more):
    """The answer, as the socket sends it."""
    recent = RecentCycles()
    recent.publish(site.site.views[-1])
    answers = Answers(recent, site.site.decisions, spread_n_share(), frozenset({ADMIN}), settings=settings, asked=set())
    return json.loads(encoded(answers.answer({"command": command, **more}, user_id)))


def state(name: str, *jobs: JobThere, trouble: str = "", **facts) -> NodeState:
    return NodeState(0.0, NodeFacts(name, **{"ways": 20, **facts}), jobs, trouble)


# status


def test_status_tells_which_agents_answer_and_what_is_wrong_with_them(site) -> None:
    agents = site.slurm.agents
    agents.away.add("c2")
    agents.facts |= {"c3": {"ways": 0, "why_unpartitioned": "resctrl is not mounted"}, "c4": {"mode": "observe"}}
    site.slurm.run_program("mg")
    site.cycle()
    site.cycle()
    told = ask(site, "status", ALICE)
    assert told["agents"] == {
        "nodes": 4,
        "connected": 3,
        "away": ["c2"],
        "troubles": {},
        "unpartitioned": {"c3": "resctrl is not mounted", "c4": "its agent only measures (sns agent --observe)"},
        "confined": [],
    }
    assert told["learning"] == {"programs": 0, "exploring_runs": 1, "exploring_nodes": 1}
    lines = list(status_view.plain_lines(told, told["at_s"]))
    assert "agents: 3 of 4 answer" in lines
    assert "learning: 0 programs, 1 exploring run on 1 node" in lines
    assert "warning: 1 agent does not answer: c2" in lines
    assert "warning: unpartitioned: c3: resctrl is not mounted" in lines


def test_without_agents_status_says_nothing_about_them(site) -> None:
    site.cycle()
    site.site.views.append(replace(site.site.views[-1], agents=None))
    told = ask(site, "status")
    assert "agents" not in told
    assert not [line for line in status_view.plain_lines(told, told["at_s"]) if "agent" in line or "learning" in line]


def test_the_trouble_of_an_agent_is_shown_by_node() -> None:
    told = agents_data({"c1": state("c1", trouble="/var/lib/sns-agent: no space left"), "c9": state("c9")}, {"c1"})
    assert (told["connected"], told["troubles"]) == (1, {"c1": "/var/lib/sns-agent: no space left"})


def test_nodes_whose_jobs_share_cores_need_an_agent_and_no_cache() -> None:
    bound = JobThere(RunId(7), is_confined=True)
    seen = {"c1": state("c1", bound), "f1": state("f1", bound, ways=0), "f2": state("f2", JobThere(RunId(8)), ways=0)}
    told = agents_data(seen, {"c1"}, {"f1", "f2", "f3"})
    assert (told["nodes"], told["connected"], told["away"]) == (4, 3, ["f3"])
    assert (told["confined"], told["unpartitioned"]) == (["f1"], {})


def test_status_counts_the_agents_of_nodes_whose_jobs_share_cores(site) -> None:
    site.cycle()
    view = site.site.views[-1]
    bare = {name: replace(each, capacity=Resources(28, 128_000)) for name, each in view.situation.nodes.items()}
    site.site.views.append(replace(view, situation=replace(view.situation, nodes=bare), agents={}))
    assert ask(site, "status")["agents"]["away"] == []
    sharing = replace(ENFORCE, sharing=replace(SHARING, partitions=frozenset({"main"})))
    assert ask(site, "status", settings=sharing)["agents"]["away"] == sorted(bare)
    bound = {name: state(name, JobThere(RunId(7), is_confined=name == "c2")) for name in bare}
    site.site.views.append(replace(view, agents=bound))
    told = ask(site, "status", settings=sharing)
    assert told["agents"]["confined"] == ["c2"]
    warning = "warning: jobs share the cores of c2, but some may not use all: run sns check"
    assert warning in status_view.plain_lines(told, told["at_s"])


# queue


def test_a_running_job_without_its_ways_says_where_and_why(site) -> None:
    explore(site, "bfs")
    number = site.slurm.run_program("bfs", user_id=BOB)
    site.cycle()
    site.cycle()
    agents, (node,) = site.slurm.agents, site.slurm.jobs[number].allocated
    own = agents.states
    there = state(node, JobThere(RunId(number), why_shared="out of CLOSIDs"))
    agents.states = lambda: {**own(), node: there}
    site.cycle()
    (row,) = ask(site, "queue", BOB)
    assert row["reason"] == f"unpartitioned on {node}: out of CLOSIDs"
    agents.states = lambda: {name: each for name, each in own().items() if name != node}
    site.cycle()
    (row,) = ask(site, "queue", BOB)
    assert row["reason"] == f"unpartitioned on {node}: no agent answers there"
    assert ask(site, "queue", ALICE) == []


def test_many_nodes_are_named_shortly_and_each_reason_once(site) -> None:
    number = site.slurm.run_program("mg")
    names = tuple(f"c{at}" for at in range(1, 7))
    job = replace(site.slurm.jobs[number], state=JobState.RUNNING, allocated=names)
    told = {name: state(name, JobThere(RunId(number), why_shared="no CAT")) for name in names[:5]}
    told["c6"] = state("c6", JobThere(RunId(number, 1), why_shared="of an earlier run"), JobThere(RunId(number)))
    assert whys_unpartitioned(told, [job]) == {number: "unpartitioned on c1, c2, c3 and 2 more: no CAT"}


# explain


def test_explain_says_what_a_waiting_or_running_job_explores(site) -> None:
    site.slurm.starts_nothing = True
    number = site.slurm.run_program("mg")
    site.cycle()
    waits = ask(site, "explain", ALICE, job_id=number)["learning"]
    assert waits == "explores mg with 16 processes at scale 1: it is timed; on 1 empty node"
    site.slurm.starts_nothing = False
    site.cycle()
    site.cycle()
    answer = ask(site, "explain", ALICE, job_id=number)
    assert answer["learning"] == "explores mg with 16 processes at scale 1: it is timed"
    assert f"  {answer['learning']}" in list(terminal.explanation(answer))
    assert ask(site, "queue", ALICE)[0]["state"] == "running"


def test_explain_says_why_a_job_does_not_explore_and_names_no_other_users_job() -> None:
    site = cluster(TRUTH, rules=replace(RULES, most_nodes=0.25))
    first = site.slurm.run_program("mg", user_id=BOB)
    site.slurm.starts_nothing = True
    site.cycle()
    filler = [site.slurm.run_program("ep", 28, memory_per_cpu_mb=4000) for _ in range(4)]
    second, other = site.slurm.run_program("mg", 28), site.slurm.run_program("bfs", 28)
    site.cycle()
    told = {each: ask(site, "explain", ALICE, job_id=each)["learning"] for each in (second, other, *filler)}
    limit = "exploring runs hold 1 nodes; learning.most_nodes allows 1 at a time, and it would need 1"
    assert set(told.values()) == {f"does not explore its program now: {limit}"}
    assert not any(f"job {first}" in text for text in told.values())


def test_of_a_known_program_explain_says_nothing_about_exploring(site) -> None:
    explore(site, "bfs")
    site.slurm.starts_nothing = True
    number = site.slurm.run_program("bfs")
    site.cycle()
    answer = ask(site, "explain", job_id=number)
    assert answer["learning"] == ""
    assert not [line for line in terminal.explanation(answer) if "explore" in str(line)]


# profile


def test_profile_tells_where_each_number_comes_from_and_how_sure_it_is(site) -> None:
    explore(site, "bfs")
    told = ask(site, "profile", program="bfs")
    measured = dict.fromkeys(("time_s", "ipc", "bandwidth_gbps"), "measured")
    assert told["programs"]["bfs"]["runs"][0]["provenance"] == measured
    learnt = told["learnt"]["16"]
    assert (learnt["serves"], learnt["is_explored"], learnt["re_measurement"], learnt["exploring"]) == (
        "measured",
        True,
        None,
        None,
    )
    one, two = learnt["measured"]
    assert (one["time_s"]["count"], one["time_s"]["mean"]) == (2, pytest.approx(100.0))
    assert one["points"][0] == {
        "ways": 2,
        "ipc": {"count": 1, "mean": pytest.approx(0.3), "spread": 0.0},
        "bandwidth_gbps": {"count": 1, "mean": pytest.approx(9.0), "spread": 0.0},
    }
    assert (two["scale"], two["points"]) == (2, [])
    (listed,) = ask(site, "profile")
    assert listed["classes"][0]["class"] == "compact"
    assert profile.learning_state(listed["learnt"]["16"]) == "measured"


def test_profile_tells_of_a_re_measurement_and_of_strange_runs(site) -> None:
    explore(site, "bfs")
    site.slurm.agents.changed["bfs"] = 1.5
    site.run("bfs")
    assert ask(site, "profile", program="bfs")["learnt"]["16"]["strange_runs"] == 1
    site.run("bfs")
    site.run("bfs")
    site.run("bfs")
    learnt = ask(site, "profile", program="bfs")["learnt"]["16"]
    assert [each["scale"] for each in learnt["re_measurement"]] == [1]
    text = [str(part) for part in profile.learnt_parts("bfs", 16, learnt)]
    assert "  it is measured again; the profile of before serves meanwhile" in text
    assert profile.learning_state(learnt) == "measured, is measured again"


def test_a_program_that_is_only_being_explored_is_listed_and_has_no_profile_yet(site) -> None:
    number = site.slurm.run_program("mg")
    site.cycle()
    site.cycle()
    (listed,) = ask(site, "profile")
    assert (listed["program"], listed["classes"]) == ("mg", [])
    assert profile.learning_state(listed["learnt"]["16"]) == "no profile yet, exploration goes on, explores scale 1 now"
    told = ask(site, "profile", program="mg")
    assert (told["programs"], told["learnt"]["16"]["exploring"]["job_id"]) == ({}, number)


def test_programs_of_other_users_are_not_shown_and_their_jobs_not_named(site) -> None:
    site.site.profiles.programs = {"bfs": BFS}
    explore(site, "mg")
    assert [each["program"] for each in ask(site, "profile", ALICE)] == ["bfs", "mg"]
    assert [each["program"] for each in ask(site, "profile", BOB)] == ["bfs"]
    with pytest.raises(BadInput, match="program 'mg' has no profile"):
        ask(site, "profile", BOB, program="mg")
    number = site.slurm.run_program("bfs", reprofile=True)
    site.cycle()
    site.cycle()
    exploring = {user: ask(site, "profile", user, program="bfs")["learnt"]["16"]["exploring"] for user in (ALICE, BOB)}
    assert exploring == {
        ALICE: {"job_id": number, "scale": 1, "samples": False},
        BOB: {"job_id": None, "scale": 1, "samples": False},
    }


def test_an_imported_program_of_which_nothing_is_learnt_is_told_as_before(site) -> None:
    site.site.profiles.programs = {"mg": MG}
    site.cycle()
    assert ask(site, "profile", program="mg").keys() == {"programs"}
    assert ask(site, "profile")[0].keys() == {"program", "source", "max_scale", "classes"}
