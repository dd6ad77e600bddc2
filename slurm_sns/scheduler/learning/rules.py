"""The rules of live learning: the site's settings, and the limits that bound what learning keeps and costs."""

from dataclasses import dataclass, replace
from sys import maxsize

from slurm_sns.policies.sns.drift import DriftParameters
from slurm_sns.policies.sns.exploration import Exploration

#: How long after the end of a run its reports are waited for: an agent reconnects within ten seconds (authenticated),
#: and an epilog that takes two minutes is longer than Slurm's own default limit for it.
REPORTS_WAIT_S = 120.0
#: After so many exploring runs in a row without a measurement a scale is not explored ...
MOST_FAILURES = 2
#: ... for a day: such as a program that does not run on so many nodes, or that ends before it was sampled.
FAILURE_S = 86_400.0
#: A program is re-measured at its users' request at most once in this time: nobody can keep another user's program in
#: exploration for ever.
REPROFILE_PAUSE_S = 86_400.0
#: The most (program, processes) with evidence. Their names come from users. Each takes about 2 KB in memory and in the
#: store, so all of them 20 MB; a large site has some hundred programs.
MOST_LEARNT = 10_000
#: The most users kept for one (program, processes), who may see what is learnt of it.
MOST_USERS = 32


@dataclass(frozen=True, slots=True)
class LearningRules:
    """The rules of a site. `explore`: exploring runs are made, for at most `most_nodes` (a fraction) of its nodes."""

    exploration: Exploration
    drift: DriftParameters
    explore: bool = False
    most_nodes: float = 0.25

    def exploration_on(self, nodes: int) -> Exploration:
        """How far exploration goes on a cluster with so many managed nodes."""
        return replace(self.exploration, most_nodes=self.limit(nodes))

    def limit(self, nodes: int) -> int:
        """How many of this number of managed nodes may hold exploring runs at any time: at least one."""
        return max(1, int(self.most_nodes * nodes))

    @property
    def watch(self) -> DriftParameters:
        """When a program counts as changed. Without exploration strange runs are only counted."""
        return self.drift if self.explore else replace(self.drift, patience=maxsize)
