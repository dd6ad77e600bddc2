"""The options that `sns simulate` gets from the policies' parameters: numbers, lists, texts and switches."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from slurm_sns.cli.offline.requested import require_taken, with_policy_options, with_settings
from slurm_sns.errors import BadInput
from slurm_sns.policies.registry import REGISTRY, specification
from slurm_sns.policies.specification import Setting, Specification, parameter


@dataclass(frozen=True)
class Chosen:
    depth: int = parameter(7, Setting("How deep.", least=1, option=True))
    ratio: float = parameter(0.5, Setting("How much.", option=True))
    sizes: tuple[int, ...] = parameter((1, 2), Setting("How large.", option=True))
    colour: str = parameter("red", Setting("In which colour.", choices=lambda: ("red", "green"), option=True))
    is_bright: bool = parameter(False, Setting("Make it bright.", option=True))
    hidden: str = parameter("", Setting("Without an option."))


CHOSEN = Specification("chosen", "For tests.", (Chosen,), "nowhere:nothing")


@pytest.fixture(autouse=True)
def registered(mocker):
    specification.cache_clear()
    mocker.patch.dict(REGISTRY, {"chosen": f"{__name__}:CHOSEN"})
    yield
    specification.cache_clear()


@pytest.fixture
def run():
    """A command with the policies' options, as (what it received, what was printed)."""

    def run(*arguments: str) -> tuple[Mapping[str, Any], str]:
        received: dict[str, Any] = {}

        @with_policy_options(after="before")
        def command(*, before: int = 1, settings: Mapping[str, Any]) -> None:  # noqa: ARG001  a command's shape
            received.update(settings)

        app = typer.Typer()
        app.command()(command)
        done = CliRunner().invoke(app, arguments, env={"COLUMNS": "300"})
        return received, done.output

    return run


def test_what_was_not_given_is_no_setting(run):
    assert run() == ({}, "")


def test_each_kind_of_parameter_is_an_option(run):
    given, _ = run("--depth", "3", "--ratio", "0.25", "--sizes", "1,4", "--colour", "green", "--is-bright")

    assert with_settings(Chosen(), given) == Chosen(3, 0.25, (1, 4), "green", True)


def test_a_switch_takes_no_value_and_has_no_opposite(run):
    assert run("--is-bright") == ({"is_bright": True}, "")
    assert "No such option: --no-is-bright" in run("--no-is-bright")[1]
    assert "unexpected extra argument" in run("--is-bright", "true")[1]


def test_a_setting_without_an_option_has_none(run):
    assert "No such option: --hidden" in run("--hidden", "x")[1]


def test_the_help_shows_defaults_and_the_policies_of_an_option(run):
    text = " ".join(run("--help")[1].replace("│", " ").split())

    assert "How deep (chosen). [default: (7)]" in text
    assert "How large (chosen). [default: (1,2)]" in text
    assert "In which colour (chosen). [default: (red)]" in text
    assert "Make it bright (chosen)." in text
    assert "Make it bright (chosen). [default" not in text
    assert text.index("--before") < text.index("--depth")


def test_batch_policies_have_a_way_of_placing_and_easy_a_switch(run):
    assert run("--placement", "cs", "--extra-nodes-only")[0] == {"placement": "cs", "extra_nodes_only": True}


@pytest.mark.parametrize(
    ("policy", "settings", "words"),
    [
        ("ce", {"placement": "cs"}, "--placement goes with --policy fcfs, easy, not with ce"),
        ("fcfs", {"extra_nodes_only": True}, "--extra-nodes-only goes with --policy easy, not with fcfs"),
        ("max-jobs", {"colour": "red"}, "--colour goes with --policy chosen, not with max-jobs"),
    ],
)
def test_an_option_of_another_policy_is_refused(policy, settings, words):
    with pytest.raises(BadInput, match=words):
        require_taken(specification(policy), policy, settings)


def test_options_of_spreading_go_with_batch_policies_too():
    for policy in ("fcfs", "easy"):
        require_taken(specification(policy), policy, {"alpha": 0.8, "scales": "1,2", "queue_depth": 5})


def test_a_text_that_is_no_choice_is_refused_when_the_policy_is_made():
    with pytest.raises(BadInput, match="colour is 'blue'; valid: red, green"):
        CHOSEN.policy(with_settings(Chosen(), {"colour": "blue"}))
