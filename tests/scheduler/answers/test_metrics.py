"""The values of the metrics, compared with what the site of the case really is."""

from dataclasses import replace

import pytest
from fake_slurm import FakeDecisions, FakeSlurm, Site
from live import ALICE, ENFORCE, FOREIGN, HELD, NOW, SLURMS, job, look, node, pinned, running, situation, tasks, tried

from slurm_sns import __version__
from slurm_sns.errors import BadInput, Outdated, Unreachable
from slurm_sns.gpus import NODE, GpuRequest
from slurm_sns.metric_table import BY_NAME, CYCLE_BOUNDS_S, WAIT_BOUNDS_S, MetricType
from slurm_sns.model import Plan, Reason, WaitKind, gpus_of
from slurm_sns.policies.matching.max_jobs import max_jobs
from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.scheduler.answers.metrics import MetricsAnswers, view_samples
from slurm_sns.scheduler.answers.requests import Answers
from slurm_sns.scheduler.answers.view import RecentCycles, View
from slurm_sns.scheduler.counters import Counters, TimedPolicy, counted
from slurm_sns.scheduler.loop import Scheduler
from slurm_sns.scheduler.watchdog import Watchdog

POLICY = max_jobs(MatchingParameters())
FULL = [node("c1", taken=(28, 28_000)), node("c2", taken=(28, 28_000))]


def view(*jobs, nodes=None, mode="enforce", plan=None, tries=()) -> View:
    seen = situation(look(*jobs, nodes=nodes), *tries, settings=replace(ENFORCE, mode=mode))
    return View(NOW, 0.012, mode, False, 3, 2, 5, seen, POLICY.plan(seen.snapshot) if plan is None else plan)


def shown(of: View) -> dict:
    """The view's values: of a metric without labels the value, else values by label."""
    recent = RecentCycles()
    recent.publish(of)
    return flat(view_samples(of, recent, replace(ENFORCE, mode=of.mode)))


def flat(samples) -> dict:
    found = {}
    for name, values in samples.items():
        labels = BY_NAME[name].labels
        assert all(len(given) == len(labels) for given, _ in values), name
        assert len({tuple(given) for given, _ in values}) == len(values), f"{name}: a label's value comes twice"
        if labels:
            found[name] = {given[0] if len(given) == 1 else tuple(given): value for given, value in values}
        else:
            ((_, found[name]),) = values
    return found


class CountedSite(Site):
    """A site whose scheduler is counted, as `sns scheduler` does it."""

    def counted(self) -> MetricsAnswers:
        self.counters = Counters(self.slurm.now(), ENFORCE.partitions)
        ports, self.recent = counted(self.ports(), self.counters), RecentCycles()
        metrics = MetricsAnswers(
            self.recent,
            self.counters,
            ENFORCE,
            lambda: self.loop.troubles,
            self.slurm.now,
            policy="max-jobs",
            interval_s=1.0,
        )

        def publish(of: View) -> None:
            metrics.publish(of)
            self.recent.publish(of)

        policy = TimedPolicy(POLICY, self.counters, self.slurm.steady)
        self.loop = Scheduler(ports, policy, ENFORCE, publish=publish)
        return metrics


@pytest.fixture
def site() -> CountedSite:
    return CountedSite(FakeSlurm({"c1": 28, "c2": 28}))


class TestOfTheQueue:
    def test_jobs_are_counted_once_each_by_their_state(self) -> None:
        found = shown(
            view(
                running(1, "c1", tasks=28, cpus=28),
                running(2, "c2", tasks=20, cpus=20, is_completing=True),
                pinned(3, "c2"),
                tasks(4, 28),
                job(5, **HELD),
                job(6, **FOREIGN),
                nodes=FULL,
            )
        )
        states = {"waiting": 1, "held": 1, "placing": 1, "running": 1, "completing": 1, "suspended": 0}
        assert found["jobs"] == states

    def test_waiting_jobs_have_one_kind_each_and_every_resource_that_they_lack(self) -> None:
        jobs = [running(1, "c1", "c2", tasks=56, cpus=56), tasks(2, 28), job(3, **HELD), job(4, waits_for_others=True)]
        found = shown(view(*jobs, nodes=FULL))
        assert {kind: count for kind, count in found["waiting_jobs"].items() if count} == {
            "resources": 1,
            "held": 1,
            "dependency": 1,
        }
        assert {name: count for name, count in found["waiting_jobs_lacking"].items() if count} == {"cores": 1}

    def test_jobs_placed_ahead_wait_for_what_they_wait_for_in_slurm_as_the_count_of_waiting_jobs_has_it(self) -> None:
        after = pinned(1, "c1", begin_s=0, waits_for_others=True, reason="Dependency")
        task = pinned(2, "c1", begin_s=0, array_id=9, array_task=4, array_limit=3, reason="JobArrayTaskLimit")
        found = shown(view(after, task, pinned(3, "c1")))
        assert {kind: count for kind, count in found["waiting_jobs"].items() if count} == {
            "dependency": 1,
            "array limit": 1,
        }
        assert (found["jobs"]["waiting"], found["jobs"]["placing"]) == (2, 1)

    def test_the_kinds_are_all_there_so_that_a_rule_finds_a_zero(self) -> None:
        assert set(shown(view())["waiting_jobs"]) == {kind.value for kind in WaitKind}

    def test_the_oldest_job_is_that_of_its_partitions(self) -> None:
        jobs = [
            tasks(1, 28, submit_s=int(NOW) - 500, partitions=("main", "small")),
            job(2, submit_s=int(NOW) - 90, **HELD),
        ]
        plan = Plan(waiting={1: Reason("no", WaitKind.RESOURCES, "cores")})
        assert shown(view(*jobs, plan=plan))["oldest_waiting_seconds"] == {"main": 500, "small": 500, "urgent": 0}

    def test_jobs_of_slurm_are_counted_by_the_reason_in_their_record_until_they_end(self, site: CountedSite) -> None:
        site.slurm.submit(1, 1)
        Watchdog(site.slurm, site.slurm, lambda: None, clock=site.slurm, log=site.log.append, timeout_s=30).look()
        of_watchdog = list(site.slurm.jobs.values())
        found = shown(view(*of_watchdog, job(7, **SLURMS), job(8, admin_comment="sns:2 free=why-not", begin_s=0)))
        left = {why: count for why, count in found["jobs_left_to_slurm"].items() if count}
        assert left == {"watchdog": 2, "clean stop": 1, "other": 1}


class TestOfTheNodes:
    def test_what_the_cycle_has_placed_is_not_free(self) -> None:
        of = view(tasks(1, 8), nodes=[node("c1"), node("c2", taken=(10, 20_000))])
        assert len(of.plan.starts) == 1
        found = shown(of)
        assert (found["cores"], found["free_cores"]) == (56, 56 - 10 - 8)
        assert found["memory_bytes"] == 2 * 128_000 * 2**20
        assert found["free_memory_bytes"] == (2 * 128_000 - 20_000 - 8000) * 2**20
        assert "cache_ways" not in found, "no node has any"

    def test_a_mode_that_places_nothing_leaves_all_free(self) -> None:
        of = view(tasks(1, 8, **FOREIGN), mode="observe")
        assert len(of.plan.starts) == 1
        assert shown(of)["free_cores"] == 56

    def test_cores_are_stranded_where_no_waiting_job_finds_memory(self) -> None:
        nodes = [node("c1", taken=(8, 127_500)), node("c2", taken=(28, 28_000))]
        assert shown(view(job(1, memory_per_cpu_mb=1000), nodes=nodes))["stranded_cores"] == 20
        assert shown(view(job(1, memory_per_cpu_mb=400), nodes=nodes, plan=Plan()))["stranded_cores"] == 0
        assert shown(view(nodes=nodes))["stranded_cores"] == 0

    def test_gpus_are_stranded_by_type_where_no_job_that_wants_them_finds_cores_and_memory(self) -> None:
        with_gpus = [
            replace(each, capacity=each.capacity._replace(gpus=gpus_of({"a": 2, "b": 1})))
            for each in (node("c1", taken=(26, 26_000)), node("c2", taken=(28, 28_000)))
        ]
        of_type_a = tasks(1, 4, gpus=GpuRequest(NODE, (("a", 1),)))
        found = shown(view(of_type_a, nodes=with_gpus))
        assert (found["free_gpus"], found["stranded_gpus"]) == ({"a": 4, "b": 2}, {"a": 4, "b": 0})
        assert shown(view(tasks(1, 4), nodes=with_gpus))["stranded_gpus"] == {"a": 0, "b": 0}
        assert "stranded_gpus" not in shown(view(tasks(1, 4))), "no node has any"

    def test_free_cores_are_withheld_for_an_over_aged_job(self) -> None:
        old = tasks(1, 28, submit_s=0, memory_per_cpu_mb=100)
        busy = running(2, "c1", tasks=20, cpus=20), running(3, "c2", tasks=24, cpus=24)
        nodes = [node("c1", taken=(20, 20_000)), node("c2", taken=(24, 24_000))]
        of = view(old, *busy, nodes=nodes)
        assert of.plan.report.withheld_for == (1,)
        assert shown(of)["withheld_cores"] in (8, 4), "of the node that is withheld, what is free"
        assert shown(view(*busy, nodes=nodes))["withheld_cores"] == 0


class TestWhetherTheSmallestFits:
    def idle(self, *jobs, kind=WaitKind.RESOURCES, about="cores", nodes=None, tries=()):
        plan = Plan(waiting={each.id: Reason("waits", kind, about) for each in jobs})
        return shown(view(*jobs, nodes=nodes, plan=plan, tries=tries))["smallest_waiting_job_fits"]

    def test_it_does_where_a_plan_leaves_it_waiting_for_nothing(self) -> None:
        assert self.idle(tasks(1, 28), tasks(2, 2)) == 1

    def test_it_does_not_where_nodes_are_full(self) -> None:
        full = [node("c1", taken=(27, 1000)), node("c2", taken=(1, 127_900))]
        assert self.idle(tasks(1, 28), tasks(2, 2), nodes=full) == 0
        assert shown(view())["smallest_waiting_job_fits"] == 0

    @pytest.mark.parametrize("kind", [WaitKind.LIMIT, WaitKind.WITHHELD, WaitKind.NEXT, WaitKind.KEPT])
    def test_a_job_that_waits_for_something_else_does_not_count(self, kind: WaitKind) -> None:
        assert self.idle(job(1), kind=kind) == 0

    def test_a_job_that_needs_an_empty_node_counts_with_one(self) -> None:
        used = [node("c1", taken=(1, 1000)), node("c2", taken=(1, 1000))]
        assert self.idle(tasks(1, 2, "exclusive"), nodes=used) == 0
        assert self.idle(tasks(1, 2, "exclusive"), nodes=[used[0], node("c2")]) == 1

    def test_a_job_whose_placements_fail_counts_by_what_it_asks_for(self) -> None:
        failed = tried(1, retry_s=NOW + 50, note="Slurm refused it")
        assert shown(view(job(1), tries=[failed]))["smallest_waiting_job_fits"] == 1
        assert shown(view(job(1), tries=[failed], nodes=FULL))["smallest_waiting_job_fits"] == 0


class TestOfALoop:
    def test_a_start_is_counted_once_with_its_wait(self, site: CountedSite) -> None:
        metrics = site.counted()
        site.slurm.submit(28, 28, run_s=40.0)
        site.slurm.submit(28, run_s=5.0)
        for _ in range(80):
            site.loop.cycle()
            site.slurm.sleep(1.0)
        found = flat(metrics.answer())
        counts, total_s = found["job_wait_seconds"]["main"]
        started = {job_id for job_id, _ in site.slurm.started}
        assert (sum(counts), started) == (3, {1, 2, 3})
        assert 40 <= total_s <= 50, "two started at once, one after the run of another"
        assert counts[0] == 2
        assert found["job_changes_total"]["place", "done"] == 3
        assert sum(found["cycle_duration_seconds"][0]) == 80
        assert 1 <= sum(found["portfolio_wins_total"].values()) <= 3

    def test_a_start_before_the_scheduler_is_not_counted(self, site: CountedSite) -> None:
        site.slurm.jobs[1] = running(1, "c1", start_s=int(NOW) - 10)
        metrics = site.counted()
        site.loop.cycle()
        assert sum(flat(metrics.answer())["job_wait_seconds"]["main"][0]) == 0

    def test_placements_that_slurm_does_not_start_are_counted_when_they_are_taken_back(self, site: CountedSite) -> None:
        metrics = site.counted()
        site.slurm.starts_nothing = True
        site.slurm.submit(1)
        for _ in range(int(ENFORCE.place_timeout_s) + 5):
            site.loop.cycle()
            site.slurm.sleep(1.0)
        assert flat(metrics.answer())["placements_taken_back_total"] == {"limit": 0, "not started": 1}

    def test_a_users_limit_is_no_failure_of_slurm(self, site: CountedSite) -> None:
        metrics = site.counted()
        site.slurm.limits["physics"] = 0
        site.slurm.submit(1)
        for _ in range(5):
            site.loop.cycle()
            site.slurm.sleep(1.0)
        assert flat(metrics.answer())["placements_taken_back_total"] == {"limit": 1, "not started": 0}

    def test_an_order_that_was_held_back_is_no_change_and_no_refusal(self, site: CountedSite) -> None:
        def outdated(_order) -> None:
            raise Outdated("it has changed since it was looked at")

        metrics = site.counted()
        site.slurm.submit(1)
        site.slurm.place = outdated
        site.loop.cycle()
        changes = flat(metrics.answer())["job_changes_total"]
        assert [number for (kind, _), number in changes.items() if kind == "place" and number] == []

    def test_reads_that_fail_are_errors_and_trouble(self, site: CountedSite) -> None:
        metrics = site.counted()
        site.slurm.observe = lambda: (_ for _ in ()).throw(Unreachable("slurmctld does not answer"))
        stops = iter([False, True])
        site.loop.run(1.0, lambda: next(stops), hands_over=lambda: True)
        found = flat(metrics.answer())
        assert (found["slurm_read_errors_total"], found["trouble"]["cycle"], found["trouble"]["store"]) == (1, 1, 0)
        assert "last_cycle_timestamp_seconds" not in found

    def test_a_store_that_fails_is_trouble_of_its_own(self, site: CountedSite) -> None:
        site.decisions = FakeDecisions(broken=True)
        metrics = site.counted()
        site.slurm.submit(1)
        site.loop.cycle()
        trouble = flat(metrics.answer())["trouble"]
        assert {part for part, is_there in trouble.items() if is_there} == {"store"}

    def test_the_values_of_a_cycle_end_with_its_heartbeat(self, site: CountedSite) -> None:
        metrics = site.counted()
        site.loop.cycle()
        ended_s = site.slurm.now()
        site.slurm.time_s += ENFORCE.heartbeat_timeout_s
        assert flat(metrics.answer())["cores"] == 56
        site.slurm.time_s += 1
        found = flat(metrics.answer())
        assert "cores" not in found
        assert "jobs" not in found
        assert found["last_cycle_timestamp_seconds"] == ended_s
        assert sum(found["cycle_duration_seconds"][0]) == 1


def test_every_value_is_in_the_table_and_every_metric_has_a_value(site: CountedSite) -> None:
    metrics = site.counted()
    site.slurm.submit(1)
    site.loop.cycle()
    found = metrics.answer()
    of_agents = {"agents", "agents_in_trouble", "agents_unpartitioned", "exploring_nodes"}
    of_gres = {name for name in BY_NAME if "cache_ways" in name or "bandwidth" in name or "gpus" in name}
    of_sharing = {name for name in BY_NAME if name.startswith("sharing_")}
    assert set(found) == set(BY_NAME) - {"up"} - of_agents - of_gres - of_sharing
    assert flat(found)["build_info"] == {(__version__, "max-jobs"): 1}
    assert flat(found)["mode"] == {"observe": 0, "advise": 0, "enforce": 1}
    for name, bounds in (("cycle_duration_seconds", CYCLE_BOUNDS_S), ("job_wait_seconds", WAIT_BOUNDS_S)):
        assert all(len(counts) == len(bounds) + 1 for _, (counts, _) in found[name])


def test_names_are_those_of_prometheus_conventions() -> None:
    for metric in BY_NAME.values():
        assert metric.name.startswith("slurm_sns_")
        assert metric.name.endswith("_total") == (metric.type is MetricType.COUNTER), metric.name
        assert not {"user", "account", "job", "le"} & set(metric.labels), metric.name
        assert bool(metric.bounds) == (metric.type is MetricType.HISTOGRAM)


def test_any_user_may_ask_also_before_the_first_cycle(site: CountedSite) -> None:
    metrics = site.counted()
    given = {"settings": ENFORCE, "asked": set()}
    answers = Answers(site.recent, site.decisions, POLICY, frozenset({0}), metrics=metrics.answer, **given)
    assert flat(answers.answer({"command": "metrics"}, ALICE))["slurm_read_errors_total"] == 0
    site.loop.cycle()
    with pytest.raises(BadInput, match=r"valid: .*metrics"):
        answers.answer({"command": "metric"}, ALICE)
