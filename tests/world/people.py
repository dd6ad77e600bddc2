"""What users and administrators do: they submit, change, hold, release and cancel jobs; they change nodes and limits.

Nobody waits for an answer. What slurmctld refuses stays undone; a submission that finds no slurmctld is tried again, as
sbatch does.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from slurm_sns.errors import Refused
from slurm_sns.submit.judge import Refuse
from world.daemons import Filter
from world.history import Event
from world.ports import Controller
from world.schedule import OF_THE_JOB, OWNER, Step

#: sbatch tries again after so long, so many times.
AGAIN_S, MOST_TRIES = 1.5, 12


class People:
    """Users and administrators. `ids` gives the job ids by the labels of the schedule."""

    def __init__(self, controller: Controller, submit_filter: Filter) -> None:
        self._controller, self._filter = controller, submit_filter
        self.ids: dict[int, int] = {}
        self._meant: str | None = None
        #: In the quiet time people only submit what they could not submit before.
        self.is_quiet = False
        self.actions: dict[str, Callable[..., None]] = {
            "submit": self.submit,
            "edit": self.edit,
            "command": self.command,
            "cancel": self.cancel,
            "node": self.node,
            "partition": self.partition,
            "limit": self.limit,
            "reserve": self.reserve,
            "unreserve": self.unreserve,
        }

    def do(self, step: Step, event: Event | None = None) -> None:
        """Do what a step of a person says; if it follows an event, to the job and the node of that event."""
        if self.is_quiet:
            return
        data = {name: value for name, value in step.data.items() if name not in ("trap", "after")}
        self._meant = None if event is None else str(event.job)
        if event is not None and event.job not in self._controller.slurm.jobs:
            return
        if event is not None and data.get("by") == OWNER:
            data["by"] = self._controller.slurm.jobs[event.job].user
        if event is not None and data.get("name") == OF_THE_JOB:
            now = event.data["now"]
            data["name"] = (event.data.get("nodes") or now.nodes or ("c1",))[0]
        self._try(lambda: self.actions[step.what](**data))

    def _try(self, action: Callable[[], object]) -> None:
        """Do something that Slurm may refuse; the history then says so."""
        with suppress(Refused):
            action()

    def _again(self, action: Callable[[], object]) -> None:
        """Try an action again a little later."""
        world = self._controller.world
        world.at(world.true_s + AGAIN_S, lambda: self._try(action))

    def reaches_slurmctld(self) -> bool:
        """Whether commands of Slurm work now."""
        return self._controller.slurmctld != "down" and self._controller.munge_is_up

    def submit(self, label: int, by: str, asked: Mapping[str, Any], tries: int = 1) -> None:
        """sbatch."""
        world = self._controller.world
        if not self.reaches_slurmctld():
            if tries < MOST_TRIES:
                self._again(lambda: self.submit(label, by, asked, tries + 1))
            return
        wanted = {name: tuple(value) if isinstance(value, list) else value for name, value in asked.items()}
        begin_in_s, after = wanted.pop("begin_in_s", None), wanted.pop("after", None)
        if begin_in_s is not None:
            wanted["begin_s"] = int(world.wall_s() + begin_in_s)
        if "deadline_in_s" in wanted:
            wanted["deadline_s"] = int(world.wall_s() + wanted.pop("deadline_in_s"))
        if after is not None and after[1] in self.ids:
            wanted["dependency"] = (after[0], (self.ids[after[1]],))
        verdict = self._filter.verdict(wanted)
        if isinstance(verdict, Refuse):
            world.history.add("submit", by=by, **wanted, user=by, verdict="refused", why=verdict.message)
            return
        slurm = self._controller.slurm
        self.ids[label] = slurm.next_id  # those who wait for this submission must know it by then
        try:
            slurm.submit(wanted, by, verdict)
        except Refused:
            del self.ids[label]
            raise

    def edit(self, by: str, job: int, fields: Mapping[str, str], task: int | None = None) -> None:
        """Scontrol update. Times are so many seconds from now; a `*` in AdminComment stands for the text there now."""
        now_s = self._controller.world.wall_s()

        def words(address: str) -> tuple[str, ...]:
            first = self._controller.slurm.jobs.get(self._controller.slurm.first_of(address))
            has = "" if first is None else first.admin_comment
            given = {name: text.replace("*", has) if name == "AdminComment" else text for name, text in fields.items()}
            for name in ("StartTime", "Deadline"):
                if name in given and given[name] != "now":
                    given[name] = str(int(now_s + float(given[name])))
            return ("update", f"JobId={address}", *(f"{name}={text}" for name, text in given.items()))

        self._scontrol(by, job, task, words)

    def command(self, by: str, job: int, do: str, task: int | None = None) -> None:
        """Scontrol hold, uhold, release, requeue, requeuehold, suspend, resume."""
        self._scontrol(by, job, task, lambda address: (do, address))

    def _scontrol(self, by: str, job: int, task: int | None, words: Callable[[str], tuple[str, ...]]) -> None:
        if (self._meant or job in self.ids) and self.reaches_slurmctld():
            self._controller.slurm.scontrol(words(self._address(job, task)), by)

    def cancel(self, by: str, job: int, task: int | None = None) -> None:
        """scancel."""
        if (self._meant or job in self.ids) and self.reaches_slurmctld():
            self._controller.slurm.cancel(self._address(job, task), by)

    def _address(self, job: int, task: int | None) -> str:
        if self._meant is not None:
            return self._meant
        return str(self.ids[job]) if task is None else f"{self.ids[job]}_{task}"

    # --- administrators

    def node(self, name: str, state: str) -> None:
        """Drain a node, or let it fail or return. A node that fails needs no slurmctld for it, but is seen later."""
        self._when_up(lambda: self._controller.slurm.update_node(name, state))

    def partition(self, name: str, fields: Mapping[str, Any]) -> None:
        """scontrol update PartitionName."""
        self._when_up(lambda: self._controller.slurm.update_partition(name, **fields))

    def limit(
        self, account: str = "", qos: str = "", user: str = "", cores: int | None = None, jobs: int | None = None
    ) -> None:
        """Sacctmgr: the cores of an account or of a QOS, or the jobs of a user."""
        slurm = self._controller.slurm
        if user:
            self._when_up(lambda: slurm.set_user_limit(user, jobs))
        elif qos:
            self._when_up(lambda: slurm.set_qos_limit(qos, cores))
        else:
            self._when_up(lambda: slurm.set_limit(account, cores))

    def reserve(self, name: str, nodes: list[str], in_s: float, for_s: float) -> None:
        """scontrol create reservation."""
        begin_s = int(self._controller.world.wall_s() + in_s)
        self._when_up(lambda: self._controller.slurm.reserve(name, nodes, begin_s, int(begin_s + for_s)))

    def unreserve(self, name: str) -> None:
        """scontrol delete reservation."""
        self._when_up(lambda: self._controller.slurm.unreserve(name))

    def _when_up(self, change: Callable[[], object]) -> None:
        """Make the change as soon as slurmctld answers."""
        if self._controller.slurmctld == "down":
            self._again(lambda: self._when_up(change))
        elif not self.is_quiet:
            change()
