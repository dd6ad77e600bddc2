"""What the scheduler needs for agents on the nodes, built from a configuration: keys, the channel, learning."""

import os

from slurm_sns.config import Config
from slurm_sns.log import Log
from slurm_sns.policies.registry import specification
from slurm_sns.policies.sns.drift import DriftParameters
from slurm_sns.policies.sns.exploration import Exploration
from slurm_sns.policies.sns.parameters import SnsParameters
from slurm_sns.scheduler.dispatch.grant_signer import Sign
from slurm_sns.scheduler.learning.learner import Learner
from slurm_sns.scheduler.learning.rules import LearningRules
from slurm_sns.scheduler.ports import Agents
from slurm_sns.scheduler.settings import Settings
from slurm_sns.sockets.agent_hub import AgentHub
from slurm_sns.sockets.key_file import KeyFile
from slurm_sns.store.database import open_store
from slurm_sns.store.learning import StoredEvidence
from slurm_sns.wire.grants import token


def hub_and_sign(config: Config, log: Log) -> tuple[AgentHub, Sign] | None:
    """The scheduler's end of the agents' channel, and what signs grants; None where no agents are configured."""
    if config.agents.controller is None:
        return None
    keys = KeyFile(config.agents.key_file, os.geteuid(), log)
    return AgentHub(None, config.agents.port, keys, log), lambda grant: token(grant, keys())


def learner(config: Config, agents: Agents, settings: Settings, log: Log) -> Learner | None:
    """What learns the profiles of programs; None for a policy without profiles, and in the modes that place nothing.

    Raises:
        Unreachable: the store cannot be read.
    """
    if config.mode != "enforce" or not specification(config.policy).plans_by_profiles:
        return None
    return Learner(StoredEvidence(open_store(config.database_url)), agents, rules(config), settings, log)


def rules(config: Config) -> LearningRules:
    """The rules of learning, taken from the configuration."""
    told = config.learning
    return LearningRules(
        Exploration(config.parameters(SnsParameters), told.min_cores_per_node, told.saturation),
        DriftParameters(told.drift, told.drift_runs),
        told.explore,
        told.most_nodes,
    )
