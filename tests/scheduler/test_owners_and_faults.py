"""Whatever owners do to their jobs, and whatever is lost on the way: every job runs, and all that is theirs stays."""

from contextlib import suppress

from fake_slurm import Crash, FakeSlurm, Site, Wire
from hypothesis import given, settings
from hypothesis import strategies as st
from live import ENFORCE, HELD

from slurm_sns.errors import Refused, SnsError, Unreachable
from slurm_sns.scheduler.observation import JobState

NUMBER = 4
JOBS = st.integers(1, NUMBER + 3)  # some are tasks of an array, or do not exist
ACTIONS = st.one_of(
    st.tuples(st.sampled_from(["hold", "release", "now", "requeue", "cancel"]), JOBS),
    st.tuples(st.just("begin"), JOBS, st.integers(1, 90)),
    st.tuples(st.just("nodes"), JOBS, st.sampled_from([(), ("c1",), ("c2",)])),
    st.tuples(st.just("memory"), JOBS, st.integers(1, 900)),
    st.tuples(st.sampled_from(["disable", "enable", "restart", "stuck", "free", "stop"])),
    st.tuples(st.just("lose"), st.integers(1, 9), st.sampled_from([Crash, Unreachable, Refused]), st.booleans()),
    st.tuples(st.just("wait"), st.sampled_from([1, 5, 11, 70])),
)


class Owners:
    """A site with one scheduler and people; it checks after every step that nothing of theirs was changed."""

    def __init__(self) -> None:
        self.slurm = FakeSlurm({"c1": 4, "c2": 4})
        self.site = Site(self.slurm)
        self.slurm.submit(4, 1, may_restart=True)
        self.slurm.submit(1, words="exclusive", may_restart=True)
        self.slurm.submit_array("0-3", array_limit=2, may_restart=True)
        self.begins: dict[int, int] = {}
        self.nodes: dict[int, tuple[str, ...]] = {}
        self.memory_mb: dict[int, int] = {}
        self.restart()

    def restart(self, wire: Wire | None = None) -> None:
        self.wire = wire or Wire()
        self.scheduler = self.site.scheduler(ENFORCE, self.wire)

    def cycle(self) -> None:
        """A cycle and a second. No order may change who holds a job, or what else is its owner's."""
        before = {job_id: (job.priority == 0, job.nice) for job_id, job in self.slurm.jobs.items()}
        try:
            self.scheduler.cycle()
        except (Crash, SnsError):
            self.restart()
        for job_id, (is_held, nice) in before.items():
            after = self.slurm.jobs[job_id]
            assert ((after.priority == 0), after.nice) == (is_held, nice)
        for job in self.slurm.jobs.values():
            if job.state is JobState.PENDING and not job.record.is_placed:
                assert job.memory_per_cpu_mb == self.memory_mb.get(job.id, 1000)
        self.tick()

    def tick(self) -> None:
        started = len(self.slurm.started)
        self.slurm.sleep(1.0)
        for job_id, nodes in self.slurm.started[started:]:
            assert nodes == self.nodes.get(job_id, nodes), "elsewhere than its owner wants"
            assert self.begins.get(job_id, 0) <= self.slurm.now(), "before the time that its owner has set"

    def act(self, kind: str, job_id: int = 0, *values) -> None:
        if kind in ("disable", "enable"):
            self.site.switch.on = kind == "disable"
        elif kind == "restart":
            self.restart()
        elif kind == "stop":
            with suppress(Crash, SnsError):
                self.scheduler.stop()
            self.restart()
        elif kind in ("stuck", "free"):
            self.slurm.starts_nothing = kind == "stuck"
        elif kind == "lose":
            self.restart(Wire(job_id + 2, values[0]("x"), after=values[1]))
        elif kind == "wait":
            for _ in range(job_id):
                self.cycle()
        elif job_id in self.slurm.jobs:
            self.edit(kind, self.slurm.jobs[job_id], *values)

    def edit(self, kind: str, job, value=None) -> None:
        is_pending = job.state is JobState.PENDING
        if kind == "requeue" and job.state is JobState.RUNNING:
            self.slurm.requeue(job.id)
            self.begins.pop(job.id, None)
        elif kind == "cancel" and not job.is_array_record:
            self.slurm.jobs.pop(job.id)
        elif not is_pending:
            return
        elif kind == "hold":
            self.slurm.change(job.id, **HELD)
        elif kind == "release" and job.priority == 0:
            self.slurm.change(job.id, priority=1500, reason="")
        elif kind == "now":
            self.slurm.change(job.id, begin_s=int(self.slurm.now()))
            self.begins.pop(job.id, None)
        elif kind == "begin" and not job.is_array_record:
            begin_s = int(self.slurm.now()) + value
            self.begins[job.id] = begin_s + (begin_s == job.record.gate_s)  # equal to our gate it would count as ours
            self.slurm.change(job.id, begin_s=self.begins[job.id])
        elif kind == "nodes" and not job.is_array_record:
            self.slurm.change(job.id, pinned_to=value)
            if value and set(value) != set(job.record.nodes):
                self.nodes[job.id] = value
            else:
                self.nodes.pop(job.id, None)
        elif kind == "memory" and not job.is_array_record:
            self.memory_mb[job.id] = value
            self.slurm.change(job.id, memory_per_cpu_mb=value, memory_per_node_mb=None)

    def end(self) -> None:
        """All holds are lifted, and everything runs to its end."""
        self.slurm.starts_nothing = self.site.switch.on = False
        self.restart()
        for _ in range(1200):
            for job in list(self.slurm.jobs.values()):
                if job.priority == 0:
                    self.slurm.change(job.id, priority=1500, reason="")
            self.cycle()
            if not self.slurm.jobs:
                return
        raise AssertionError(self.slurm.jobs)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(ACTIONS, st.integers(0, 2)), max_size=14))
def test_every_job_runs_and_no_hold_no_nice_value_and_no_begin_time_of_its_owners_is_touched(actions) -> None:
    owners = Owners()
    for action, cycles in actions:
        owners.act(*action)
        for _ in range(cycles):
            owners.cycle()
    owners.end()
    assert not [line for line in owners.site.log if "Traceback" in line or line.startswith("error")]
