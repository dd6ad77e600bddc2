"""What `sns exporter` serves: Prometheus' text form, and nothing old while the scheduler does not answer."""

import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from socket import create_connection

import pytest
from prometheus_client.parser import text_string_to_metric_families

from slurm_sns.errors import SnsError, Unreachable
from slurm_sns.exporter.exposition import SchedulerCollector, text
from slurm_sns.exporter.http_server import MOST_CONNECTIONS, MetricsServer, server
from slurm_sns.metric_table import BY_NAME, METRICS, MetricType
from slurm_sns.sockets.unix_socket import ControlSocket

SAMPLES = {
    "mode": [(["observe"], 0), (["enforce"], 1)],
    "slurm_read_errors_total": [([], 7)],
    "job_wait_seconds": [(["main"], ([1, 0, 2] + [0] * 7 + [1], 700_000.5))],
    "cores": [([], 92)],
}


def series(shown: str) -> dict[tuple, float]:
    """The value of each series, by its name and its labels."""
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(shown)
        for sample in family.samples
    }


class Scheduler:
    """Answers with `samples`, or raises `problem`."""

    def __init__(self) -> None:
        self.samples, self.problem = SAMPLES, None
        self.asked = 0
        self.looks_at_clock = count(1)
        self.time_s = 0.0
        self.hangs: threading.Event | None = None
        self.log: list[str] = []
        self.collector = SchedulerCollector(self.ask, self.log.append, self.steady)

    def steady(self) -> float:
        self.time_s = float(next(self.looks_at_clock))
        return self.time_s

    def ask(self):
        self.asked += 1
        if self.hangs is not None:
            self.hangs.wait(10)
        if self.problem is not None:
            raise self.problem
        return self.samples

    def shown(self) -> dict[tuple, float]:
        return series(text(self.collector))


@pytest.fixture
def scheduler() -> Scheduler:
    return Scheduler()


def test_values_are_those_of_the_scheduler(scheduler: Scheduler) -> None:
    found = scheduler.shown()
    assert found["slurm_sns_up",] == 1
    assert found["slurm_sns_mode", ("mode", "enforce")] == 1
    assert found["slurm_sns_slurm_read_errors_total",] == 7
    assert found["slurm_sns_cores",] == 92


def test_buckets_of_a_histogram_count_all_that_is_below(scheduler: Scheduler) -> None:
    found = scheduler.shown()

    def bucket(bound: str) -> float:
        return found["slurm_sns_job_wait_seconds_bucket", ("le", bound), ("partition", "main")]

    assert [bucket(bound) for bound in ("10.0", "60.0", "300.0", "604800.0", "+Inf")] == [1, 1, 3, 3, 4]
    assert found["slurm_sns_job_wait_seconds_count", ("partition", "main")] == 4
    assert found["slurm_sns_job_wait_seconds_sum", ("partition", "main")] == 700_000.5


def test_a_silent_scheduler_leaves_up_0_and_nothing_else(scheduler: Scheduler) -> None:
    scheduler.shown()
    scheduler.problem = Unreachable("no scheduler answers at /run/sns/scheduler.sock: Connection refused")
    assert scheduler.shown() == {("slurm_sns_up",): 0}
    scheduler.shown()
    scheduler.problem = None
    assert scheduler.shown()["slurm_sns_cores",] == 92
    assert scheduler.log == [
        "no scheduler answers at /run/sns/scheduler.sock: Connection refused",
        "the scheduler answers",
    ], "one line when it begins, one when it is over"


def test_whoever_comes_while_the_scheduler_hangs_shares_the_next_answer(scheduler: Scheduler) -> None:
    scheduler.hangs = threading.Event()
    found: list[dict[tuple, float]] = []
    callers = [threading.Thread(target=lambda: found.append(scheduler.shown())) for _ in range(10)]
    for each in callers:
        each.start()
    while scheduler.time_s < len(callers) + 1:  # each looks when it comes, and one when it asks
        threading.Event().wait(0.01)
    scheduler.hangs.set()
    for each in callers:
        each.join()
    assert scheduler.asked == 2
    assert [each["slurm_sns_up",] for each in found] == [1] * len(callers)
    scheduler.shown()
    assert scheduler.asked == 3, "whoever comes later gets an answer of their own"


def test_metrics_of_another_version_of_the_scheduler_are_left_out(scheduler: Scheduler) -> None:
    other_buckets = [(["main"], ([1, 2], 3.0))]
    scheduler.samples = {**SAMPLES, "of_tomorrow": [([], 1)], "job_wait_seconds": other_buckets}
    found = scheduler.shown()
    assert not any("tomorrow" in name or "job_wait" in name for name, *_ in found)
    assert found["slurm_sns_cores",] == 92


def test_each_metric_has_its_help_and_type(scheduler: Scheduler) -> None:
    empty = {MetricType.HISTOGRAM: ([0], 0.0)}
    scheduler.samples = {
        name: [(["x"] * len(each.labels), ([0] * (len(each.bounds) + 1), 0.0) if each.type in empty else 0)]
        for name, each in BY_NAME.items()
        if name != "up"
    }
    shown = text(scheduler.collector)
    for metric in METRICS:
        assert f"# HELP {metric.name} {metric.help}\n# TYPE {metric.name} {metric.type}\n" in shown


class TestServer:
    @pytest.fixture
    def serving(self, scheduler: Scheduler) -> Iterator[MetricsServer]:
        with server("127.0.0.1", 0, scheduler.collector) as serving:
            thread = threading.Thread(target=serving.serve_forever, args=(0.05,))
            thread.start()
            yield serving
            serving.shutdown()
            thread.join()

    def fetch(self, serving: MetricsServer) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{serving.server_port}/metrics", timeout=10) as answer:
            return answer.read().decode()

    def test_it_serves_the_metrics(self, serving: MetricsServer) -> None:
        assert series(self.fetch(serving))["slurm_sns_up",] == 1

    def test_connections_that_say_nothing_keep_nobody_out_for_long(self, serving: MetricsServer) -> None:
        address = ("127.0.0.1", serving.server_port)
        silent = [create_connection(address, timeout=10) for _ in range(MOST_CONNECTIONS)]
        with closing(create_connection(address, timeout=10)) as one_more:
            assert one_more.recv(1) == b"", "closed at once"
        for each in silent:
            each.close()
        # Their threads see it at once; the loop below only spares the test a race.
        for _ in range(100):
            try:
                assert series(self.fetch(serving))["slurm_sns_up",] == 1
                break
            except OSError:
                threading.Event().wait(0.05)
        else:
            pytest.fail("it serves nobody any more")

    def test_an_address_in_use_is_one_clear_line(self, serving: MetricsServer, scheduler: Scheduler) -> None:
        with pytest.raises(SnsError, match=r"127.0.0.1 port \d+ cannot be listened at: Address already in use"):
            server("127.0.0.1", serving.server_port, scheduler.collector)


WITHOUT_PYSLURM = """
import sys
sys.argv = ["sns", "exporter", "--once", "--socket", sys.argv[1]]
from slurm_sns.cli import main
try:
    main()
except SystemExit as ended:
    loaded = {"pyslurm", "numba", "numpy", "sqlalchemy", "slurm_sns.slurm", "slurm_sns.scheduler"} & set(sys.modules)
    sys.exit(ended.code or (str(sorted(loaded)) if loaded else 0))
"""


def once(socket: Path) -> str:
    done = subprocess.run([sys.executable, "-c", WITHOUT_PYSLURM, socket], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_once_prints_the_metrics_in_a_process_without_pyslurm(tmp_path: Path) -> None:
    path = tmp_path / "scheduler.sock"
    assert series(once(path)) == {("slurm_sns_up",): 0}
    with ControlSocket(path, lambda request, _: SAMPLES if request == {"command": "metrics"} else {}):
        found = series(once(path))
    assert (found["slurm_sns_up",], found["slurm_sns_cores",]) == (1, 92)
