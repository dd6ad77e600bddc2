"""The Prometheus beside the mini cluster, and the rules of conf/ with times that a test can wait for."""

import base64
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from cluster import PYTHON, Cluster

ROOT = Path(__file__).parents[2]
RULES = ROOT / "conf" / "prometheus" / "slurm_sns.rules.yml"
PATIENCE_S = 180
#: Exists while another scheduler than the usual one runs.
STARTED = "/tmp/odd/started"
#: What is so long in the rules that nobody waits for it in a test, and what it becomes.
SHORT = (
    (r"for: \w+", "for: 1s"),
    (r"\[1[05]m\]", "[10s]"),
    (r"\[[25]m\]", "[30s]"),  # while it waits for a dead slurmctld, the scheduler answers nobody for ten seconds
    (r"> 600$", "> 10"),
    (r"> 3 \* 86400", "> 5"),
)


class Prometheus:
    """The Prometheus of the cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def _http(self, path: str, data: str = "None") -> str:
        url = f"http://prometheus:9090{path}"
        program = f"import urllib.request as u; print(u.urlopen({json.dumps(url)}, {data}).read().decode())"
        return self.cluster.run(f"{PYTHON} -I -S -c '{program}'")

    def use(self, rules: str) -> None:
        """Have it read these rules."""
        packed = base64.b64encode(rules.encode()).decode()
        file = f"echo {packed} | base64 -d > /etc/prometheus/{RULES.name}"
        self.cluster.engine("exec", f"{self.cluster.project}-prometheus", "sh", "-c", file)
        self._http("/-/reload", 'b""')

    def ask(self, query: str) -> list[dict[str, Any]]:
        """What the query gives now; an error of it fails."""
        answer = json.loads(self._http(f"/api/v1/query?{urlencode({'query': query})}"))
        found: list[dict[str, Any]] = answer["data"]["result"]
        return found

    def has_values(self) -> bool:
        """Whether it runs and has scraped the exporter."""
        try:
            return bool(self.ask("slurm_sns_cores"))
        except AssertionError:  # it does not listen yet
            return False

    def firing(self) -> set[str]:
        """The names of the alerts that fire."""
        return {each["metric"]["alertname"] for each in self.ask('ALERTS{alertstate="firing"}')}

    def wait_for(self, *alerts: str) -> None:
        """Wait until each of these alerts has fired."""
        left = set(alerts)

        def have_fired() -> bool:
            left.difference_update(self.firing())
            return not left

        self.cluster.wait_for(f"{', '.join(alerts)} fire", have_fired, PATIENCE_S, 0.5)

    def wait_for_silence(self, but: frozenset[str] = frozenset()) -> None:
        """Wait until no alert fires but these."""
        self.cluster.wait_for("no alert fires", lambda: self.firing() <= but, PATIENCE_S, 0.5)


def short(rules: str) -> str:
    """The rules with times that a test can wait for."""
    for found, wanted in SHORT:
        rules, many = re.subn(found, wanted, rules, flags=re.MULTILINE)
        assert many, found
    return rules
