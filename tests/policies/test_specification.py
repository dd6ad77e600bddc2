"""What a policy declares: the values that its settings accept, and where it may be used."""

from dataclasses import dataclass

import pytest

from slurm_sns.errors import BadInput
from slurm_sns.policies.registry import REGISTRY, live_policies, specification
from slurm_sns.policies.specification import Setting, parameter, require_within_limits


@dataclass(frozen=True)
class Chosen:
    colour: str = parameter("red", Setting("A colour.", choices=lambda: ("red", "green")))
    is_bright: bool = parameter(False, Setting("Whether it is bright."))
    name: str = parameter("", Setting("Any text."))


def test_a_text_with_choices_is_one_of_them():
    require_within_limits(Chosen("green", True, "anything"))
    with pytest.raises(BadInput, match="colour is 'blue'; valid: red, green"):
        require_within_limits(Chosen("blue"))


def test_a_long_text_is_shortened():
    with pytest.raises(BadInput, match=f"colour is '{'x' * 40}'; valid"):
        require_within_limits(Chosen("x" * 1000))


def test_policies_for_simulations_are_no_live_policies():
    assert {"fcfs", "easy"} <= {name for name in REGISTRY if specification(name).is_simulated_only}
    assert {"max-jobs", "ce", "cs", "sns", "combined"} <= set(live_policies())
    assert not {"fcfs", "easy"} & set(live_policies())


@pytest.mark.parametrize("name", [name for name in REGISTRY if specification(name).factory])
def test_every_policy_can_be_made_with_its_defaults(name):
    policy = specification(name).policy()

    assert callable(policy.plan)
    assert callable(policy.alternatives)


def test_a_policy_that_only_a_replay_of_its_own_simulates_makes_no_plans():
    with pytest.raises(BadInput, match="policy 'rescheduling' makes no plans"):
        specification("rescheduling").policy()
