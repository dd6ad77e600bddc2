"""The alert rules and the Grafana pages: each name and label is one of the exporter's, and each alert is explained."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from slurm_sns.metric_table import METRICS, MetricType

ROOT = Path(__file__).parents[2]
PROMETHEUS = ROOT / "conf" / "prometheus"
RULES = PROMETHEUS / "slurm_sns.rules.yml"
ALERTS = {rule["alert"]: rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]}
PAGES = {path.stem: json.loads(path.read_text()) for path in sorted((ROOT / "conf" / "grafana").glob("*.json"))}
#: The labels of each series; those that Prometheus adds are everywhere.
SERIES = {
    name: {*metric.labels, "instance", "job", *(["le"] if name.endswith("_bucket") else [])}
    for metric in METRICS
    for name in metric.series
}
_NAME = re.compile(r"\bslurm_sns_\w+")
_SELECTOR = re.compile(r"\b(slurm_sns_\w+)\{([^}]*)\}")
_GROUPED = re.compile(r"\b(?:by|on|ignoring|without)\s*\(([^)]*)\)")


def queries() -> Iterator[tuple[str, str, str]]:
    """Where, the query, and the text that shows its labels."""
    for name, rule in ALERTS.items():
        shown = " ".join(re.findall(r"\$labels\.(\w+)", " ".join(rule["annotations"].values())))
        yield name, rule["expr"], shown
    for page, content in PAGES.items():
        for panel in content["panels"]:
            for target in panel["targets"]:
                labels = " ".join(re.findall(r"\{\{(\w+)", target["legendFormat"]))
                yield f"{page}: {panel['title']}", target["expr"], labels


ALL = list(queries())


@pytest.mark.parametrize(("query", "shown"), [each[1:] for each in ALL], ids=[each[0] for each in ALL])
def test_each_name_and_label_of_a_query_exists(query: str, shown: str) -> None:
    names = _NAME.findall(query)
    assert names
    assert set(names) <= SERIES.keys()
    for name, matchers in _SELECTOR.findall(query):
        for matcher in filter(None, matchers.split(", ")):
            assert re.match(r"(\w+)(=~|!=|=)\"", matcher)[1] in SERIES[name], matcher
    known = set().union(*(SERIES[name] for name in names))
    for labels in _GROUPED.findall(query):
        assert {label.strip() for label in labels.split(",")} <= known, labels
    assert set(shown.split()) <= known


def test_counters_are_read_by_their_rate_and_gauges_are_not() -> None:
    counters = {name for metric in METRICS if metric.type is not MetricType.GAUGE for name in metric.series}
    for where, query, _ in ALL:
        rated = set(re.findall(r"(?:rate|increase)\((slurm_sns_\w+)", query))
        assert rated == counters & set(_NAME.findall(query)), where


def test_every_metric_is_in_an_alert_or_on_a_page() -> None:
    used = {name for _, query, _ in ALL for name in _NAME.findall(query)}
    assert not [metric.name for metric in METRICS if used.isdisjoint(metric.series)]


def test_each_alert_has_its_heading_in_the_documents_and_says_what_to_do_next() -> None:
    page = (ROOT / "docs" / "admins" / "alerts.md").read_text()
    assert re.findall(r"^### (Sns\w+)$", page, re.MULTILINE) == list(ALERTS)
    for section in re.split(r"^### ", page, flags=re.MULTILINE)[1:]:
        assert "**Means:**" in section
        assert "**Do:**" in section
    for rule in ALERTS.values():
        assert set(rule["annotations"]) == {"summary", "next"}
        assert rule["labels"]["severity"] in ("critical", "warning", "info")


def test_the_panels_of_a_page_lie_side_by_side() -> None:
    for name, page in PAGES.items():
        places = [
            (x, y)
            for at in (panel["gridPos"] for panel in page["panels"])
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        ]
        assert len(set(places)) == len(places), f"{name}: panels lie on each other"
        assert max(x for x, _ in places) < 24, name


def promtool(*words: str) -> str:
    """What promtool prints; `make test-tools` puts it beside the Python of .venv."""
    beside = Path(sys.executable).parent / "promtool"
    command = beside if beside.exists() else shutil.which("promtool")
    assert command, "promtool is missing: make test-tools"
    done = subprocess.run([command, *words], cwd=PROMETHEUS, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_promtool_finds_the_rules_well_formed() -> None:
    assert f"{len(ALERTS)} rules found" in promtool("check", "rules", RULES.name)


def test_alerts_fire_and_stay_silent_as_their_series_say() -> None:
    assert "SUCCESS" in promtool("test", "rules", "slurm_sns.test.yml")


def test_each_alert_fires_in_a_test_of_promtool() -> None:
    tests = yaml.safe_load((PROMETHEUS / "slurm_sns.test.yml").read_text())["tests"]
    fired = {each["alertname"] for test in tests for each in test["alert_rule_test"] if each["exp_alerts"]}
    assert fired == set(ALERTS)
