"""The scheduler's answer in Prometheus' text form."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import accumulate
from math import inf
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from slurm_sns.errors import SnsError
from slurm_sns.metric_table import BY_NAME, METRICS, UP, MetricType, Samples
from slurm_sns.metric_table import Metric as Described


class SchedulerCollector(Collector):
    """Asks the scheduler when metrics are collected. If it does not answer, `slurm_sns_up` is 0 and all that there is.

    Of those who ask here at once, all who came before a question began share its answer: a scheduler that hangs keeps
    nobody waiting for longer than two questions. `log` gets a line when it begins to be silent, and when it answers
    again.
    """

    def __init__(
        self,
        ask: Callable[[], Samples],
        log: Callable[[str], None],
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ask, self._log, self._steady = ask, log, steady
        self._asking = threading.Lock()
        self._began_s = -inf
        self._samples: Samples | None = None
        self._problem = ""

    def describe(self) -> Iterable[Metric]:
        """Nothing: that would ask the scheduler when this is registered."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """All metrics of this moment."""
        samples = self._fresh()
        yield GaugeMetricFamily(UP, BY_NAME["up"].help, value=int(samples is not None))
        for described in METRICS:
            values = (samples or {}).get(described.name.removeprefix("slurm_sns_"))
            if values is not None:
                with suppress(ValueError):  # a scheduler of another version, with other buckets
                    yield family(described, values)

    def _fresh(self) -> Samples | None:
        came_s = self._steady()
        with self._asking:
            if self._began_s < came_s:
                self._began_s, problem = self._steady(), ""
                try:
                    self._samples = self._ask()
                except SnsError as error:
                    self._samples, problem = None, str(error)
                if bool(problem) != bool(self._problem):
                    self._log(problem or "the scheduler answers")
                self._problem = problem
            return self._samples


def family(described: Described, values: Iterable[tuple[list[str], Any]]) -> Metric:
    """The metric with these values, as prometheus_client has it."""
    about = described.name, described.help
    match described.type:
        case MetricType.GAUGE:
            gauge = GaugeMetricFamily(*about, labels=described.labels)
            for labels, value in values:
                gauge.add_metric(labels, value)
            return gauge
        case MetricType.COUNTER:
            counter = CounterMetricFamily(*about, labels=described.labels)
            for labels, value in values:
                counter.add_metric(labels, value)
            return counter
        case MetricType.HISTOGRAM:
            histogram = HistogramMetricFamily(*about, labels=described.labels)
            names = [*map(str, described.bounds), "+Inf"]
            for labels, (counts, total) in values:
                histogram.add_metric(labels, list(zip(names, accumulate(counts), strict=True)), total)
            return histogram


def registry(collector: SchedulerCollector) -> CollectorRegistry:
    """A registry with these metrics alone."""
    made = CollectorRegistry(auto_describe=False)
    made.register(collector)
    return made


def text(collector: SchedulerCollector) -> str:
    """All metrics of this moment, as node_exporter's textfile collector reads them."""
    return generate_latest(registry(collector)).decode()
